//! Files of replaced chunks that a directory keeps for chunks to come.

use super::*;

/// A directory with `nchunks` chunks in a file each.
fn directory(path: &Path, nchunks: usize) -> Frame {
    let mut frame = create(Kind::Dir, path);
    for i in 0..nchunks {
        frame.append(&padded(400, i)).unwrap();
    }
    frame
}

/// The names of kept files.
fn kept(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".b2spare")).collect()
}

#[test]
fn files_are_kept_of_chunks_that_are_replaced_by_stored_ones_alone() {
    let path = TempPath::new("kept");
    let mut frame = directory(&path, 10);
    frame.update(0, &padded(400, 20)).unwrap();
    assert!(kept(&path).is_empty());
    frame.update(0, &padded(400, 21)).unwrap();
    assert_eq!(kept(&path).len(), 1);
    for i in 1..6 {
        frame.update(i, &zeros(400)).unwrap();
    }
    frame.delete(6).unwrap();
    assert_eq!(kept(&path).len(), 1);
    // From here on, files are used again.
    for i in 0..20 {
        frame.update(7, &padded(400, i)).unwrap();
    }
    assert!((1..=4).contains(&kept(&path).len()), "{:?}", kept(&path));
    assert_eq!(*frame.chunk(7).unwrap(), padded(400, 19));
    drop(frame);
    assert!(kept(&path).is_empty());
}

#[test]
fn files_that_others_left_behind_are_removed() {
    let path = TempPath::new("left");
    drop(directory(&path, 3));
    for slot in ["00", "05", "1F"] {
        fs::write(path.join(format!("{slot}.b2spare")), "left").unwrap();
    }
    let mut frame = Frame::open(&path, 0, &FrameOptions::default()).unwrap();
    frame.update(0, &padded(400, 20)).unwrap();
    assert_eq!(kept(&path).len(), 3);
    frame.update(0, &padded(400, 21)).unwrap();
    assert_eq!(kept(&path), ["00.b2spare"]);
    drop(frame);
    assert!(kept(&path).is_empty());
}
