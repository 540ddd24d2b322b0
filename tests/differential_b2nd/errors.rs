//! Wrong and unusual arguments: the same codes, the same arrays.

use super::case::settled;
use super::common::OURS;
use super::common::b2nd_api::{Array, ArrayApi, Recipe, SeenArray};
use super::common::check::{equal, for_seeds};
use super::common::clib::Clib;
use super::common::schunk_api::Place;

fn recipe(lib: &Clib, shape: &[i64], chunkshape: &[i32], blockshape: &[i32], typesize: i32) -> Recipe {
    let mut cparams = lib.cparams();
    cparams.typesize = typesize;
    cparams.compcode = 1;
    Recipe {
        shape: shape.to_vec(),
        chunkshape: chunkshape.to_vec(),
        blockshape: blockshape.to_vec(),
        dtype: None,
        dtype_format: 0,
        metalayers: Vec::new(),
        place: Place { contiguous: false, urlpath: None },
        cparams,
        // SAFETY: no preconditions.
        dparams: unsafe { (lib.f.blosc2_get_blosc2_dparams_defaults)() },
    }
}

type Shapes = (&'static [i64], &'static [i32], &'static [i32]);

/// Shapes that contexts and arrays refuse or take.
const SHAPES: [Shapes; 22] = [
    (&[], &[], &[]),
    (&[10], &[7], &[2]),
    (&[0], &[0], &[0]),
    (&[0], &[3], &[2]),
    (&[5], &[3], &[0]),
    (&[-1], &[3], &[1]),
    (&[5], &[-3], &[1]),
    (&[5], &[3], &[-1]),
    (&[5], &[3], &[9]),
    (&[5, 0], &[3, 0], &[2, 0]),
    (&[5, 4], &[3, 3], &[2, 2]),
    (&[i64::MAX], &[2], &[1]),
    (&[i64::MAX / 2], &[i32::MAX], &[1]),
    (&[0, i64::MAX], &[10, 10], &[2, 2]),
    (&[0, i64::MAX - 9], &[10, 10], &[2, 2]),
    (&[0, i64::MAX / 10 * 10], &[10, 10], &[2, 2]),
    (&[1000], &[i32::MAX], &[1]),
    (&[10, 10], &[70_000, 70_000], &[1, 1]),
    (&[10, 10], &[70_000, 70_000], &[70_000, 70_000]),
    (&[10, 10, 0], &[10, 10, 10], &[10, 10, 10]),
    (&[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], &[1; 16], &[1; 16]),
    (&[2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3], &[2; 16], &[1; 16]),
];

/// A code, and of an array that was made what it shows, the codes of refreshing it, making it a frame and opening that,
/// and what is in the frame.
type Made = (i32, Option<(SeenArray, i32, i32, i32, Option<SeenArray>)>);

/// What comes of an array of these shapes, filled in the way `kind`; `None` if there is no context for it.
fn made(
    lib: &'static Clib,
    (shape, chunkshape, blockshape): Shapes,
    typesize: i32,
    kind: usize,
) -> Option<Made> {
    let api = ArrayApi::of(lib);
    let ctx = api.ctx(&recipe(lib, shape, chunkshape, blockshape, typesize))?;
    let (code, array) = match kind {
        4 => api.full(&ctx, &[7; 8]),
        _ => api.make(&ctx, kind),
    };
    let told = array.map(|mut array| {
        let frame = array.to_cframe();
        let back = api.open_buffer(&frame.2);
        (settled(&array), array.refresh(), frame.0, back.0, back.1.map(|array| array.seen()))
    });
    Some((code, told))
}

#[test]
fn shapes_are_taken_or_refused_alike() {
    for_seeds(1, |theirs, _| {
        for shapes in SHAPES {
            for typesize in [1, 4, 8] {
                for kind in 0..5 {
                    let what = format!("{shapes:?} typesize {typesize} kind {kind}");
                    equal(&what, made(&OURS, shapes, typesize, kind), made(theirs, shapes, typesize, kind))?;
                }
            }
        }
        Ok(())
    });
}

/// The array 1..=20 of shape (5, 4), and what it holds.
fn small(lib: &'static Clib) -> Array {
    let api = ArrayApi::of(lib);
    let ctx = api.ctx(&recipe(lib, &[5, 4], &[3, 3], &[2, 2], 1)).expect("a context");
    let data: Vec<u8> = (1..=20).collect();
    assert_eq!(api.build(&ctx, &data[..19]).0, -12, "too short");
    api.build(&ctx, &data).1.expect("an array")
}

fn content(array: &Array) -> Vec<u8> {
    let mut data = vec![0; usize::try_from(array.shape().iter().product::<i64>()).expect("small")];
    let code = array.to_cbuffer(&mut data);
    data.push(code.to_le_bytes()[0]);
    data
}

/// Start and stop of a box, the shape of a buffer, and its size.
type Edges = ([i64; 2], [i64; 2], [i64; 2], usize);

/// A change of an array.
type Call = fn(&mut Array) -> i32;

#[test]
fn slices_at_the_edges() {
    for_seeds(1, |theirs, _| {
        let boxes: [Edges; 13] = [
            ([0, 0], [5, 4], [5, 4], 20),
            ([1, 1], [3, 3], [2, 5], 10),
            ([1, 1], [3, 3], [2, 2], 3),
            ([1, 1], [3, 3], [1, 2], 4),
            ([0, 0], [0, 0], [0, 0], 0),
            ([4, 3], [5, 4], [1, 1], 1),
            ([4, 3], [6, 6], [2, 3], 6),
            ([0, 0], [6, 6], [6, 6], 36),
            ([5, 0], [6, 4], [1, 4], 4),
            ([0, 4], [5, 6], [5, 2], 10),
            ([-1, 0], [2, 2], [3, 2], 6),
            ([3, 3], [6, 6], [3, 3], 9),
            ([0, 3], [3, 6], [3, 3], 9),
        ];
        for (start, stop, buffershape, size) in boxes {
            let run = |lib: &'static Clib| {
                let mut array = small(lib);
                let mut dest = vec![9; size];
                let read = array.get_slice(&start, &stop, &buffershape, &mut dest);
                let written = array.set_slice(&start, &stop, &buffershape, &vec![100; size]);
                (read, dest, written, content(&array))
            };
            equal(&format!("{start:?}..{stop:?} of {buffershape:?}"), run(&OURS), run(theirs))?;
        }
        Ok(())
    });
}

#[test]
fn sizes_change_or_not() {
    for_seeds(1, |theirs, _| {
        let steps: [([i64; 2], Option<[i64; 2]>); 14] = [
            ([5, 4], None),
            ([6, 4], None),
            ([-1, 4], None),
            ([8, 4], Some([5, 0])),
            ([8, 4], Some([6, 0])),
            ([8, 4], Some([3, 0])),
            ([11, 4], Some([3, 0])),
            ([11, 4], Some([3, 9])),
            ([5, 4], Some([3, 0])),
            ([8, 4], Some([0, 0])),
            ([5, 7], Some([0, 3])),
            ([0, 0], Some([0, 0])),
            ([3, 3], Some([0, 0])),
            ([4, 4], None),
        ];
        let (mut ours, mut other) = (small(&OURS), small(theirs));
        for (shape, start) in steps {
            let start = start.as_ref().map(<[i64; 2]>::as_slice);
            let run = |array: &mut Array| (array.resize(&shape, start), settled(array), content(array));
            equal(&format!("{shape:?} at {start:?}"), run(&mut ours), run(&mut other))?;
        }
        let calls: [(&str, Call); 12] = [
            ("insert: no whole slab", |a| a.insert(&[1; 3], 0, 0)),
            ("insert: no such axis", |a| a.insert(&[1; 4], 2, 0)),
            ("insert: not aligned", |a| a.insert(&[1; 4], 0, 1)),
            ("insert: nothing", |a| a.insert(&[], 0, 0)),
            ("insert: at the end", |a| a.insert(&[1; 4], 0, 4)),
            ("append: no whole slab", |a| a.append(&[1; 3], 0)),
            ("append: no such axis", |a| a.append(&[1; 4], 2)),
            ("append: nothing", |a| a.append(&[], 0)),
            ("append", |a| a.append(&[2; 5], 1)),
            ("delete: no such axis", |a| a.delete(2, 0, 1)),
            ("delete: too much", |a| a.delete(0, 0, 99)),
            ("delete", |a| a.delete(0, 4, 1)),
        ];
        for (what, call) in calls {
            let run = |array: &mut Array| (call(array), settled(array), content(array));
            equal(what, run(&mut ours), run(&mut other))?;
        }
        Ok(())
    });
}

#[test]
fn selections_are_checked_alike() {
    for_seeds(1, |theirs, _| {
        let run = |lib: &'static Clib| {
            let mut array = small(lib);
            let mut dest = vec![0; 64];
            let mut codes = Vec::new();
            for coords in [&[0, 19, 5][..], &[0, 20], &[-1], &[i64::MAX], &[]] {
                codes.push(array.get_sparse(coords, &mut dest[..coords.len()]));
            }
            codes.push(array.get_sparse(&[0, 1, 2], &mut dest[..2]));
            for rows in [&[0, 1][..], &[0, 50], &[]] {
                let selection = [rows.to_vec(), vec![2]];
                codes.push(array.get_orthogonal(&selection, &mut dest[..rows.len()]));
                codes.push(array.set_orthogonal(&selection, &vec![1; rows.len()]));
                codes.push(array.get_orthogonal(&selection, &mut dest[..rows.len() + 1]));
            }
            codes.push(array.squeeze(Some(&[true, false])).0);
            codes.push(array.squeeze(Some(&[false, false])).0);
            codes.push(array.expand(&[true, false, false]).0);
            codes.push(array.expand(&[false, false, false]).0);
            (codes, content(&array), dest)
        };
        equal("codes", run(&OURS), run(theirs))
    });
}
