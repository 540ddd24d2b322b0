//! Numbers of chunk files: small enough for the C library, and nobody else's files.

use super::*;

/// The numbers of the chunk files in a directory.
fn numbers(path: &Path) -> Vec<u64> {
    let names = fs::read_dir(path).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut numbers: Vec<u64> =
        names.filter_map(|name| u64::from_str_radix(name.strip_suffix(".chunk")?, 16).ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Checks that the directory holds `model`, in files with numbers that the C library takes.
fn check(frame: &Frame, path: &Path, model: &[Vec<u8>], what: &str) {
    assert!(contents(frame) == model, "{what}");
    assert!(contents(&reopen(frame)) == model, "{what}");
    let numbers = numbers(path);
    let stored = model.iter().filter(|chunk| chunk.len() > 32).count();
    assert_eq!(numbers.len(), stored, "{what}: {numbers:?}");
    let last = numbers.last().copied().unwrap_or(0);
    assert!(stored == 0 || last + 32 <= frame.header().cbytes, "{what}: {last}");
}

fn random_chunk(random: &mut Random) -> Vec<u8> {
    let seed = u8::try_from(random.below(256)).unwrap();
    match random.below(4) {
        0 => zeros(200),
        1 => chunk(200, seed),
        2 => short(200, seed),
        _ => longer(200, seed, 300),
    }
}

#[test]
fn numbers_stay_below_the_sizes_of_the_chunks() {
    for seed in 1..20 {
        let path = TempPath::new("numbers");
        let mut frame = create(Kind::Dir, &path);
        let mut random = Random::new(seed);
        let mut model: Vec<Vec<u8>> = (0..20).map(|i| longer(200, i, 300)).collect();
        frame.append_all(&model.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
        for step in 0..400 {
            let n = model.len();
            // Many updates, then some that leave less.
            let shrinking = step % 100 > 80;
            match random.below(10) {
                0 if !shrinking => {
                    let new = random_chunk(&mut random);
                    frame.append(&new).unwrap();
                    model.push(new);
                }
                1 if n > 4 && shrinking => {
                    let start = random.below(n);
                    let end = (start + 1 + random.below(n / 2)).min(n);
                    frame.delete_all(std::slice::from_ref(&(start..end))).unwrap();
                    model.drain(start..end);
                }
                2 if n > 0 => {
                    let new: Vec<Vec<u8>> = (0..n).map(|_| random_chunk(&mut random)).collect();
                    let changes: Vec<(usize, &[u8])> = new.iter().map(Vec::as_slice).enumerate().collect();
                    frame.update_all(&changes).unwrap();
                    model = new;
                }
                _ if n > 0 => {
                    let nchunk = random.below(n);
                    let new = if shrinking { zeros(200) } else { longer(200, 7, 300) };
                    frame.update(nchunk, &new).unwrap();
                    model[nchunk] = new;
                }
                _ => {}
            }
            check(&frame, &path, &model, &format!("seed {seed}, step {step}"));
        }
    }
}

#[test]
fn new_versions_get_small_numbers() {
    let path = TempPath::new("versions");
    let mut frame = create(Kind::Dir, &path);
    for seed in 0..5 {
        frame.append(&chunk(4000, seed)).unwrap();
    }
    let mut last = 0;
    for seed in 0..250 {
        frame.update(usize::from(seed) % 3, &chunk(4000, seed)).unwrap();
        last = last.max(*numbers(&path).last().unwrap());
    }
    assert!((30..64).contains(&last), "{last}");
}

#[test]
fn files_that_cannot_be_read_keep_their_numbers() {
    let path = TempPath::new("unreadable");
    let mut frame = create(Kind::Dir, &path);
    let chunks: Vec<Vec<u8>> = (0..200).map(|seed| chunk(4, seed)).collect();
    frame.append_all(&chunks.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    fs::remove_file(path.join("000000C6.chunk")).unwrap();
    frame.delete_all(std::slice::from_ref(&(0..197))).unwrap();
    let found: Vec<bool> = (0..3).map(|i| frame.chunk(i).is_ok()).collect();
    assert_eq!((found, numbers(&path)), (vec![true, false, true], vec![0, 2]));
}

#[cfg(unix)]
#[test]
fn what_lies_where_a_chunk_goes_is_replaced_and_not_written_to() {
    use std::os::unix::fs::symlink;
    let path = TempPath::new("link");
    let other = TempPath::new("elsewhere");
    fs::write(&*other, "somebody's").unwrap();
    let mut frame = create(Kind::Dir, &path);
    frame.append(&chunk(400, 0)).unwrap();
    symlink(&*other, path.join("00000001.chunk")).unwrap();
    fs::hard_link(&*other, path.join("00000002.chunk")).unwrap();
    symlink(path.join("absent"), path.join("00000003.chunk")).unwrap();
    fs::create_dir(path.join("00000004.chunk")).unwrap();
    for seed in 1..4 {
        frame.append(&chunk(400, seed)).unwrap();
    }
    assert_eq!(frame.append(&chunk(400, 4)).unwrap_err().kind(), ErrorKind::ChunkAppend);
    assert_eq!(fs::read(&*other).unwrap(), b"somebody's");
    assert!(!path.join("absent").exists());
    assert_eq!(contents(&frame), (0..4).map(|seed| chunk(400, seed)).collect::<Vec<_>>());
    assert_eq!(contents(&reopen(&frame)), contents(&frame));
    fs::remove_dir(path.join("00000004.chunk")).unwrap();
}
