//! The operations of the random sequences: each is done with both libraries and with the plain array.

use super::case::{Case, differing, draw_grid, draw_place, read_all, settled};
use super::common::b2nd_api::{Array, ArrayApi, ArrayCtx, Recipe};
use super::common::check::{equal, same};
use super::common::clib::Clib;
use super::common::{OURS, Rng};
use super::dense::{Dense, at, each, items, number, ranges};

/// What an operation says it did, or what is wrong.
pub type Done = Result<String, String>;
pub type Step = fn(&mut Case, &mut Rng, &'static Clib) -> Done;

/// The operations, with how often they are drawn.
pub const STEPS: [(usize, &str, Step); 17] = [
    (8, "set slice", set_slice),
    (6, "get slice", get_slice),
    (4, "get sparse", get_sparse),
    (4, "get orthogonal", get_orthogonal),
    (4, "set orthogonal", set_orthogonal),
    (5, "resize", resize),
    (4, "insert", insert),
    (5, "append", append),
    (4, "delete", delete),
    (3, "copy", copy),
    (4, "slice to array", slice),
    (3, "concatenate", concatenate),
    (2, "frame", cframe),
    (2, "save", save),
    (3, "reopen", reopen),
    (3, "views", views),
    (2, "vlmetalayers", vlmetalayers),
];

/// A position below or at `n`.
fn below(rng: &mut Rng, n: i64) -> i64 {
    i64::try_from(rng.below(at(n))).expect("below an i64")
}

/// A box inside the array.
fn draw_box(case: &Case, rng: &mut Rng) -> (Vec<i64>, Vec<i64>) {
    let small = rng.one_in(3);
    case.dense
        .shape
        .iter()
        .enumerate()
        .map(|(dim, &n)| {
            let from = below(rng, n + 1);
            let chunk = i64::from(case.recipe.chunkshape[dim]);
            match rng.below(6) {
                0 => (0, n),
                1 => (from / chunk * chunk, (from / chunk * chunk + chunk).min(n).max(from / chunk * chunk)),
                _ if small => (from, (from + 1).min(n)),
                _ => (from, from + below(rng, n - from + 1)),
            }
        })
        .unzip()
}

fn extents(start: &[i64], stop: &[i64]) -> Vec<i64> {
    start.iter().zip(stop).map(|(a, b)| b - a).collect()
}

fn set_slice(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    let (start, stop) = draw_box(case, rng);
    let shape = extents(&start, &stop);
    if items(&shape) == 0 {
        return Ok("-".into()); // the C library compresses the chunks around it again
    }
    let data = case.data(rng, items(&shape));
    let codes = (
        case.ours.set_slice(&start, &stop, &shape, &data),
        case.theirs.set_slice(&start, &stop, &shape, &data),
    );
    equal(&format!("code of {start:?}..{stop:?}"), codes.0, codes.1)?;
    case.dense.overwrite(&ranges(&start, &stop), &data);
    case.drifted = true;
    Ok(format!("{start:?}..{stop:?}"))
}

fn get_slice(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    let (start, stop) = draw_box(case, rng);
    let shape = extents(&start, &stop);
    // Wider than the box now and then.
    let wide: Vec<i64> = shape.iter().map(|&n| if rng.one_in(5) { n + below(rng, 4) } else { n }).collect();
    let size = items(&wide) * case.dense.typesize;
    let (mut a, mut b) = (vec![0x5A; size], vec![0x5A; size]);
    let codes = (
        case.ours.get_slice(&start, &stop, &wide, &mut a),
        case.theirs.get_slice(&start, &stop, &wide, &mut b),
    );
    let what = format!("{start:?}..{stop:?} into {wide:?}");
    equal(&format!("code of {what}"), codes.0, codes.1)?;
    // The C library decompresses a chunk that is the whole box straight into the buffer, however wide that is.
    if wide == shape || case.recipe.chunkshape.iter().map(|&n| i64::from(n)).ne(shape.iter().copied()) {
        same(&what, &a, &b)?;
    }
    if items(&shape) > 0 {
        let mut expected = vec![0; size];
        each(&shape, |k| {
            let index: Vec<i64> = k.iter().zip(&start).map(|(k, from)| k + from).collect();
            let n = number(&wide, k) * case.dense.typesize;
            expected[n..n + case.dense.typesize].copy_from_slice(case.dense.item(&index));
        });
        same("content", &a, &expected)?;
    }
    Ok(what)
}

fn get_sparse(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    let n = i64::try_from(items(&case.dense.shape)).expect("small");
    if n == 0 || case.ndim() == 0 {
        return Ok("-".into());
    }
    let mut coords: Vec<i64> = (0..rng.below(40)).map(|_| below(rng, n)).collect();
    if rng.one_in(8) {
        coords.push(rng.pick(&[-1, n, i64::MAX]));
    }
    let typesize = case.dense.typesize;
    let (mut a, mut b) = (vec![0x5A; coords.len() * typesize], vec![0x5A; coords.len() * typesize]);
    let codes = (case.ours.get_sparse(&coords, &mut a), case.theirs.get_sparse(&coords, &mut b));
    equal(&format!("code of {coords:?} of {n}"), codes.0, codes.1)?;
    same("items", &a, &b)?;
    if codes.0 == 0 {
        let expected: Vec<u8> =
            coords.iter().flat_map(|&c| &case.dense.bytes[at(c) * typesize..][..typesize]).copied().collect();
        same("items", &a, &expected)?;
    }
    Ok(coords.len().to_string())
}

fn draw_selection(case: &Case, rng: &mut Rng) -> Vec<Vec<i64>> {
    case.dense
        .shape
        .iter()
        .map(|&n| {
            let count = rng.range(1, 6);
            (0..count).map(|_| below(rng, n)).collect()
        })
        .collect()
}

fn get_orthogonal(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    if items(&case.dense.shape) == 0 || case.ndim() == 0 {
        return Ok("-".into());
    }
    let selection = draw_selection(case, rng);
    let expected = case.dense.select(&selection);
    let (mut a, mut b) = (vec![0x5A; expected.len()], vec![0x5A; expected.len()]);
    equal(
        "code",
        case.ours.get_orthogonal(&selection, &mut a),
        case.theirs.get_orthogonal(&selection, &mut b),
    )?;
    same("theirs", &b, &expected)?;
    same("ours", &a, &expected)?;
    Ok(format!("{selection:?}"))
}

fn set_orthogonal(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    if items(&case.dense.shape) == 0 || case.ndim() == 0 {
        return Ok("-".into());
    }
    let selection = draw_selection(case, rng);
    let data = case.data(rng, selection.iter().map(Vec::len).product());
    equal(
        "code",
        case.ours.set_orthogonal(&selection, &data),
        case.theirs.set_orthogonal(&selection, &data),
    )?;
    case.dense.overwrite(&selection, &data);
    case.drifted = true;
    Ok(format!("{selection:?}"))
}

/// Most items that arrays grow to.
const MOST: usize = 20_000;

fn resize(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    let aligned = rng.one_in(3);
    let mut start = Vec::new();
    let mut shape = Vec::new();
    for (dim, &n) in case.dense.shape.iter().enumerate() {
        let chunk = i64::from(case.recipe.chunkshape[dim]);
        let new = match rng.below(5) {
            0 => n,
            1 if aligned => n + chunk * (1 + below(rng, 2)),
            2 if aligned && n >= chunk => n - chunk,
            _ => below(rng, n + n / 2 + 4),
        };
        let tail = n.min(new);
        let steps = n.min(if new < n { new } else { n }) / chunk;
        let from = if aligned && rng.one_in(2) { below(rng, steps + 1) * chunk } else { tail };
        start.push(from);
        shape.push(new);
    }
    if items(&shape) > MOST {
        return Ok("-".into());
    }
    let start = aligned.then_some(start.as_slice());
    equal(
        &format!("code to {shape:?} at {start:?}"),
        case.ours.resize(&shape, start),
        case.theirs.resize(&shape, start),
    )?;
    case.drifted = true;
    case.take_theirs()?;
    Ok(format!("{shape:?} at {start:?}"))
}

/// A dimension, and data for more of it.
fn draw_slab(case: &Case, rng: &mut Rng) -> Option<(i8, Vec<u8>, i64)> {
    if case.ndim() == 0 {
        return None;
    }
    let axis = rng.below(case.ndim());
    let mut slab = case.dense.shape.clone();
    let chunk = i64::from(case.recipe.chunkshape[axis]);
    slab[axis] = if rng.one_in(2) { chunk * (1 + below(rng, 2)) } else { below(rng, 8) };
    // Nothing along another dimension: the C library divides by zero.
    let others: i64 = slab.iter().enumerate().filter(|(dim, _)| *dim != axis).map(|(_, &n)| n).product();
    if others == 0 || items(&slab) + items(&case.dense.shape) > MOST {
        return None;
    }
    Some((i8::try_from(axis).expect("small"), case.data(rng, items(&slab)), slab[axis]))
}

fn insert(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    let Some((axis, data, count)) = draw_slab(case, rng) else { return Ok("-".into()) };
    let n = case.dense.shape[usize::try_from(axis).expect("small")];
    let chunk = i64::from(case.recipe.chunkshape[usize::try_from(axis).expect("small")]);
    let from = match rng.below(4) {
        0 => n,
        1 => n + 1,
        2 => below(rng, n / chunk + 1) * chunk,
        _ => below(rng, n + 1),
    };
    let codes = (case.ours.insert(&data, axis, from), case.theirs.insert(&data, axis, from));
    equal(&format!("code: {count} at {from} of {n} of axis {axis}"), codes.0, codes.1)?;
    case.drifted = true;
    // Where nothing comes in, the C library compresses a chunk again all the same; a special one then is no longer
    // special.
    case.exact &= count > 0;
    case.take_theirs()?;
    Ok(format!("{count} at {from} of axis {axis}: {}", codes.0))
}

fn append(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    let Some((axis, mut data, count)) = draw_slab(case, rng) else { return Ok("-".into()) };
    if rng.one_in(8) && case.dense.typesize > 1 {
        data.pop();
    }
    // The shortcut of the C library, which corrupts arrays of most shapes.
    let (chunks, blocks) = (&case.recipe.chunkshape, &case.recipe.blockshape);
    let same_blocks = chunks.iter().zip(blocks).skip(1).all(|(c, b)| c == b);
    let chunk_bytes: usize = chunks
        .iter()
        .zip(blocks)
        .map(|(&c, &b)| at(i64::from(c)).next_multiple_of(at(i64::from(b))))
        .product::<usize>()
        * case.dense.typesize;
    if axis == 0 && same_blocks && data.len() == chunk_bytes {
        let whole_rows = case.dense.shape.iter().zip(chunks).skip(1).all(|(&n, &c)| n == i64::from(c));
        if !whole_rows || case.dense.shape[0] % i64::from(chunks[0]) != 0 || chunks[0] % blocks[0] != 0 {
            return Ok("-".into());
        }
    }
    let codes = (case.ours.append(&data, axis), case.theirs.append(&data, axis));
    equal(&format!("code: {count} of axis {axis}"), codes.0, codes.1)?;
    case.drifted = true;
    case.take_theirs()?;
    Ok(format!("{count} of axis {axis}: {}", codes.0))
}

fn delete(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    if case.ndim() == 0 {
        return Ok("-".into());
    }
    let axis = rng.below(case.ndim());
    let n = case.dense.shape[axis];
    let chunk = i64::from(case.recipe.chunkshape[axis]);
    let (from, count) = match rng.below(4) {
        0 => {
            let count = below(rng, n + 1);
            (n - count, count)
        }
        1 => (0, n + 1),
        2 => {
            let from = below(rng, n / chunk + 1) * chunk;
            (from, ((n - from) / chunk * chunk).min(chunk))
        }
        _ => {
            let from = below(rng, n + 1);
            (from, below(rng, n - from + 1))
        }
    };
    let axis = i8::try_from(axis).expect("small");
    let codes = (case.ours.delete(axis, from, count), case.theirs.delete(axis, from, count));
    equal(&format!("code: {count} at {from} of {n} of axis {axis}"), codes.0, codes.1)?;
    case.drifted = true;
    // Where nothing comes in, the C library compresses a chunk again all the same; a special one then is no longer
    // special.
    case.exact &= count > 0;
    case.take_theirs()?;
    Ok(format!("{count} at {from} of axis {axis}: {}", codes.0))
}

/// Contexts of both libraries for a new array at a drawn place, with the parameters of the case.
fn contexts(
    case: &Case,
    rng: &mut Rng,
    theirs: &'static Clib,
    shape: &[i64],
) -> Result<(ArrayCtx, ArrayCtx), String> {
    let place = draw_place(rng);
    let (chunkshape, blockshape) = if rng.one_in(2) {
        (case.recipe.chunkshape.clone(), case.recipe.blockshape.clone())
    } else {
        draw_grid(rng, shape)
    };
    let mut recipe = Recipe { shape: shape.to_vec(), chunkshape, blockshape, ..case.recipe.clone() };
    if rng.one_in(3) {
        recipe.cparams.compcode = 1;
        recipe.cparams.clevel = 3;
    }
    let make = |lib: &'static Clib, name: &str| {
        let recipe = Recipe { place: case.scratch.place(place.0, place.1, name), ..recipe.clone() };
        ArrayApi::of(lib).ctx(&recipe).ok_or(format!("no context for {name}"))
    };
    Ok((make(&OURS, "our other")?, make(theirs, "their other")?))
}

/// Compares two new arrays with what they must hold, and drops them with their files.
fn compare_made(
    case: &Case,
    what: &str,
    made: ((i32, Option<Array>), (i32, Option<Array>)),
    dense: &Dense,
) -> Result<(), String> {
    let ((code, ours), (their_code, theirs)) = made;
    equal(&format!("{what}: code"), code, their_code)?;
    if let (Some(ours), Some(theirs)) = (&ours, &theirs) {
        read_all(&format!("{what} of theirs"), theirs, dense)?;
        read_all(&format!("{what} of ours"), ours, dense)?;
        differing(what, &settled(ours), &settled(theirs))?;
        let layers =
            |array: &Array| array.with_schunk(|s| (s.seen().metalayers, s.vlmeta_names(), s.seen().nchunks));
        equal(&format!("{what}: metalayers"), layers(ours), layers(theirs))?;
    }
    drop((ours, theirs));
    for name in ["our other", "their other"] {
        case.ours.api.schunks.remove(&case.scratch.path(name));
    }
    Ok(())
}

fn copy(case: &mut Case, rng: &mut Rng, theirs: &'static Clib) -> Done {
    let (a, b) = contexts(case, rng, theirs, &case.dense.shape)?;
    let made = (case.ours.copy(&a), case.theirs.copy(&b));
    compare_made(case, "copy", made, &case.dense)?;
    Ok(String::new())
}

fn slice(case: &mut Case, rng: &mut Rng, theirs: &'static Clib) -> Done {
    let (start, stop) = draw_box(case, rng);
    let shape = extents(&start, &stop);
    let (a, b) = contexts(case, rng, theirs, &shape)?;
    let made = (case.ours.slice(&a, &start, &stop), case.theirs.slice(&b, &start, &stop));
    let dense =
        Dense { shape, typesize: case.dense.typesize, bytes: case.dense.select(&ranges(&start, &stop)) };
    if case.ndim() > 0 {
        compare_made(case, &format!("slice {start:?}..{stop:?}"), made, &dense)?;
    } else {
        compare_made(case, "slice of a scalar", made, &case.dense)?;
    }
    Ok(String::new())
}

/// `first`, and behind it along one axis `data`, which has the shape `shape`.
fn joined(first: &Dense, along: usize, shape: &[i64], data: &[u8]) -> Dense {
    let mut size = shape.to_vec();
    size[along] += first.shape[along];
    let bytes = vec![0; items(&size) * first.typesize];
    let mut dense = Dense { shape: size, typesize: first.typesize, bytes };
    let whole = |shape: &[i64]| ranges(&vec![0; shape.len()], shape);
    dense.overwrite(&whole(&first.shape), &first.bytes);
    let mut behind = whole(shape);
    behind[along].iter_mut().for_each(|i| *i += first.shape[along]);
    dense.overwrite(&behind, data);
    dense
}

fn concatenate(case: &mut Case, rng: &mut Rng, theirs: &'static Clib) -> Done {
    let Some((axis, data, count)) = draw_slab(case, rng) else { return Ok("-".into()) };
    let along = usize::try_from(axis).expect("small");
    let mut shape = case.dense.shape.clone();
    shape[along] = count;
    let same_grid = rng.one_in(2);
    let (chunkshape, blockshape) = if same_grid {
        (case.recipe.chunkshape.clone(), case.recipe.blockshape.clone())
    } else {
        draw_grid(rng, &shape)
    };
    let place = draw_place(rng);
    let recipe = Recipe { shape: shape.clone(), chunkshape, blockshape, ..case.recipe.clone() };
    let make = |lib: &'static Clib, name: &str| {
        let recipe = Recipe { place: case.scratch.place(place.0, place.1, name), ..recipe.clone() };
        let api = ArrayApi::of(lib);
        let ctx = api.ctx(&recipe).ok_or(format!("no context for {name}"))?;
        let made = api.build(&ctx, &data);
        made.1.ok_or(format!("{name}: {}", made.0))
    };
    let (tail, their_tail) = (make(&OURS, "our tail")?, make(theirs, "their tail")?);
    let what = format!("{count} of axis {axis}");
    let dense = joined(&case.dense, along, &shape, &data);
    if rng.one_in(2) {
        // In a context with another grid the C library makes arrays that cannot be read.
        let joined = dense.shape.clone();
        let context = |lib: &'static Clib, name: &str| {
            let place = case.scratch.place(place.1, place.0, name);
            ArrayApi::of(lib)
                .ctx(&Recipe { shape: joined.clone(), place, ..case.recipe.clone() })
                .ok_or("no context")
        };
        let (a, b) = (context(&OURS, "our other")?, context(theirs, "their other")?);
        let (mut ours, mut theirs) =
            (case.ours.concatenate(&a, &tail, axis), case.theirs.concatenate(&b, &their_tail, axis));
        if theirs.1.as_ref().is_some_and(|array| read_all("joined", array, &dense).is_err()) {
            // What the C library joins loses items of the tail now and then.
            if let Some(array) = &ours.1 {
                read_all("joined", array, &dense)?;
            }
            (ours.1, theirs.1) = (None, None);
        }
        compare_made(case, &format!("joined: {what}"), (ours, theirs), &dense)?;
    } else {
        equal(
            &format!("code: {what}"),
            case.ours.extend(&tail, axis),
            case.theirs.extend(&their_tail, axis),
        )?;
        case.drifted = true;
        let (mut a, mut b) = (vec![0x5A; dense.bytes.len()], vec![0x5A; dense.bytes.len()]);
        equal("to_cbuffer", case.ours.to_cbuffer(&mut a), case.theirs.to_cbuffer(&mut b))?;
        same("extended", &a, &dense.bytes)?;
        if b != dense.bytes {
            // What the C library extends loses items of the tail now and then.
            let (start, size) = (vec![0; dense.shape.len()], dense.shape.clone());
            equal("repaired", case.theirs.set_slice(&start, &size, &size, &dense.bytes), 0)?;
        }
        case.take_theirs()?;
    }
    drop((tail, their_tail));
    for name in ["our tail", "their tail"] {
        case.ours.api.schunks.remove(&case.scratch.path(name));
    }
    Ok(what)
}

/// Whether the C library writes a copy that it cannot read: items above 255 bytes have one byte there.
fn is_lost_by_theirs(case: &Case) -> bool {
    case.dense.typesize > 255
}

fn cframe(case: &mut Case, _: &mut Rng, theirs: &'static Clib) -> Done {
    let (a, b) = (case.ours.to_cframe(), case.theirs.to_cframe());
    equal("code", (a.0, a.1), (b.0, b.1))?;
    let (ours, theirs) = (ArrayApi::of(&OURS), ArrayApi::of(theirs));
    let lost = is_lost_by_theirs(case);
    for (what, api, frame) in
        [("ours in theirs", theirs, &a.2), ("theirs in ours", ours, &b.2), ("ours", ours, &a.2)]
    {
        if lost && what == "theirs in ours" {
            continue;
        }
        let (code, back) = api.open_buffer(frame);
        let back = back.ok_or(format!("{what}: {code}"))?;
        read_all(what, &back, &case.dense)?;
        differing(what, &settled(&back), &settled(&case.theirs))?;
    }
    Ok(String::new())
}

fn save(case: &mut Case, rng: &mut Rng, theirs: &'static Clib) -> Done {
    if is_lost_by_theirs(case) {
        return Ok("-".into());
    }
    let (a, b) = (case.scratch.path("our other"), case.scratch.path("their other"));
    let (ours, theirs) = (ArrayApi::of(&OURS), ArrayApi::of(theirs));
    if rng.one_in(2) {
        equal("code", case.ours.save(&a), case.theirs.save(&b))?;
        equal("code of a second time", case.ours.save(&a), case.theirs.save(&b))?;
        compare_made(case, "saved", (ours.open(&b), theirs.open(&a)), &case.dense)?;
    } else {
        let padding = vec![7; rng.pick(&[0, 1, 1000])];
        for path in [&a, &b] {
            std::fs::write(path.to_str().expect("UTF-8"), &padding).expect("writable");
        }
        let offsets = (case.ours.save_append(&a), case.theirs.save_append(&b));
        equal("offset", offsets.0, offsets.1)?;
        compare_made(
            case,
            "appended",
            (ours.open_offset(&b, offsets.1), theirs.open_offset(&a, offsets.0)),
            &case.dense,
        )?;
    }
    Ok(String::new())
}

fn reopen(case: &mut Case, rng: &mut Rng, theirs: &'static Clib) -> Done {
    if !case.place.1 {
        equal("refresh", case.ours.refresh(), case.theirs.refresh())?;
        return Ok("-".into());
    }
    let swap = rng.one_in(2);
    case.swapped ^= swap;
    let (a, b) = case.paths();
    let (a, b) = (ArrayApi::of(&OURS).open(&a), ArrayApi::of(theirs).open(&b));
    equal("code", a.0, b.0)?;
    case.ours = a.1.ok_or("ours does not open")?;
    case.theirs = b.1.ok_or("theirs does not open")?;
    case.drifted = true;
    equal("refresh", case.ours.refresh(), case.theirs.refresh())?;
    Ok(if swap { "each other's".into() } else { String::new() })
}

fn views(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    let drop_dims: Vec<bool> = case.dense.shape.iter().map(|&n| n == 1 && rng.one_in(2)).collect();
    // A view without a dimension of longer chunks cannot be read with the C library.
    let usable = |gone: &dyn Fn(usize) -> bool| {
        (0..case.ndim())
            .all(|dim| !gone(dim) || (case.recipe.chunkshape[dim] == 1 && case.recipe.blockshape[dim] == 1))
    };
    let mut shape = case.dense.shape.clone();
    let made = match rng.below(3) {
        0 => {
            if !usable(&|dim| case.dense.shape[dim] == 1) {
                return Ok("-".into());
            }
            shape.retain(|&n| n != 1);
            (case.ours.squeeze(None), case.theirs.squeeze(None))
        }
        1 => {
            if !usable(&|dim| drop_dims[dim]) {
                return Ok("-".into());
            }
            let mut keep = drop_dims.iter();
            shape.retain(|_| !keep.next().expect("as many"));
            (case.ours.squeeze(Some(&drop_dims)), case.theirs.squeeze(Some(&drop_dims)))
        }
        _ => {
            let mut axis = Vec::new();
            shape.clear();
            for &n in &case.dense.shape {
                if rng.one_in(3) {
                    axis.push(true);
                    shape.push(1);
                }
                axis.push(false);
                shape.push(n);
            }
            if rng.one_in(2) {
                axis.push(true);
                shape.push(1);
            }
            (case.ours.expand(&axis), case.theirs.expand(&axis))
        }
    };
    let ((code, ours), (their_code, theirs)) = made;
    equal("code", code, their_code)?;
    if let (Some(ours), Some(theirs)) = (ours, theirs) {
        // The C library would free the variable-length metalayers with the view and with the array.
        let theirs = std::mem::ManuallyDrop::new(theirs);
        let dense = Dense { shape, ..case.dense.clone() };
        read_all("their view", &theirs, &dense)?;
        read_all("our view", &ours, &dense)?;
        differing("view", &settled(&ours), &settled(&theirs))?;
        let (a, b) = (ours.to_cframe(), theirs.to_cframe());
        equal("frame of the view", (a.0, a.1), (b.0, b.1))?;
    }
    Ok(String::new())
}

fn vlmetalayers(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Done {
    let content = rng.bytes(30);
    let set = |array: &Array, add| array.with_schunk(|s| s.vlmeta_set(add, c"vl", &content));
    for add in [true, false] {
        equal("code", set(&case.ours, add), set(&case.theirs, add))?;
    }
    let get = |array: &Array| array.with_schunk(|s| s.vlmeta_get(c"vl"));
    equal("content", get(&case.ours), get(&case.theirs))?;
    Ok(String::new())
}
