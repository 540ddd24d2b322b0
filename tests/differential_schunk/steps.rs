//! The operations of the random sequences: each is done with both libraries and with the model.

use std::ffi::CString;

use super::case::{Case, differing, draw_params, forget_current, make_chunk, read_all};
use super::common::check::{equal, same};
use super::common::clib::Clib;
use super::common::data::make_data;
use super::common::schunk_api::{Schunk, SchunkApi, Seen};
use super::common::{OURS, Rng, int};
use super::model::size;

pub type Step = fn(&mut Case, &mut Rng, &'static Clib) -> Result<String, String>;

/// The operations, with how often they are drawn.
pub const STEPS: [(usize, &str, Step); 20] = [
    (8, "append buffer", append_buffer),
    (6, "append chunk", append_chunk),
    (5, "insert chunk", insert_chunk),
    (5, "update chunk", update_chunk),
    (4, "delete chunk", delete_chunk),
    (4, "decompress chunk", decompress_chunk),
    (3, "get chunk", get_chunk),
    (3, "get lazy chunk", get_lazychunk),
    (4, "get slice", get_slice),
    (4, "set slice", set_slice),
    (3, "get sparse", get_sparse),
    (2, "slice nchunks", slice_nchunks),
    (2, "reorder", reorder),
    (2, "metalayers", metalayers),
    (3, "vlmetalayers", vlmetalayers),
    (2, "to buffer", to_buffer),
    (1, "append file", append_file),
    (2, "copy", copy),
    (2, "reopen", reopen),
    (2, "params", params),
];

/// Whether the C library refuses a short chunk after short ones, in frames only.
fn is_refused_after_short_ones(case: &Case, n: i64) -> bool {
    let full = case.model.chunksize;
    case.framed() && full > 0 && n < full && size(&case.model.data()) < full
}

/// Whether a chunk of `data` at `at` is something that both libraries store well.
fn may_store(case: &Case, fixed: bool, data: &[u8]) -> bool {
    (fixed || case.variable)
        && (case.variable || size(data) <= case.model.chunksize || case.model.chunksize == -1)
}

fn append_buffer(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    let mut n = case.draw_size(rng);
    if rng.one_in(6) && case.model.chunks.len() > 1 {
        n = rng.range(1, case.items) * case.typesize();
    }
    let data = case.data(rng, n);
    let fixed = case.model.insert_stays_fixed(case.model.chunks.len(), size(&data));
    if is_refused_after_short_ones(case, size(&data)) {
        return Ok("-".into());
    }
    if !may_store(case, fixed, &data)
        || (!case.variable
            && case.model.chunks.is_empty()
            && case.model.chunksize > 0
            && size(&data) != case.model.chunksize)
    {
        return Ok("-".into());
    }
    equal("code", case.ours.append_buffer(&data), case.theirs.append_buffer(&data))?;
    let at = case.model.chunks.len();
    if case.model.chunks.is_empty() && case.model.chunksize > 0 && size(&data) > case.model.chunksize {
        return Ok("refused".into());
    }
    // The contexts of the C library keep the smallest block size that they ever used.
    case.drifted |= case.variable || size(&data) < case.model.chunksize;
    case.model.insert(at, data);
    Ok(n.to_string())
}

fn append_chunk(case: &mut Case, rng: &mut Rng, theirs: &'static Clib) -> Result<String, String> {
    put(case, rng, theirs, true)
}

fn insert_chunk(case: &mut Case, rng: &mut Rng, theirs: &'static Clib) -> Result<String, String> {
    put(case, rng, theirs, false)
}

fn put(case: &mut Case, rng: &mut Rng, theirs: &'static Clib, append: bool) -> Result<String, String> {
    let n = case.draw_size(rng);
    let data = case.data(rng, n);
    let at = if append { case.model.chunks.len() } else { rng.below(case.model.chunks.len() + 1) };
    let empty_with_size = case.model.chunks.is_empty() && case.model.chunksize > 0;
    let fixed = case.model.insert_stays_fixed(at, size(&data));
    if append && is_refused_after_short_ones(case, size(&data)) {
        return Ok("-".into());
    }
    if !may_store(case, fixed, &data) || (empty_with_size && size(&data) != case.model.chunksize) {
        return Ok("-".into());
    }
    let maker: &Clib = if rng.one_in(2) { &OURS } else { theirs };
    let chunk = make_chunk(rng, case, maker, &data);
    case.foreign = true;
    let copy = rng.one_in(2);
    let position = i64::try_from(at).expect("few chunks");
    let call = |s: &mut Schunk| {
        if append { s.append_chunk(&chunk, copy) } else { s.insert_chunk(position, &chunk, copy) }
    };
    let (a, b) = (call(&mut case.ours), call(&mut case.theirs));
    equal("code", a, b)?;
    equal("code", a, case.model.len() + 1)?;
    case.model.insert(at, data);
    Ok(format!("{n} at {at}"))
}

fn update_chunk(case: &mut Case, rng: &mut Rng, theirs: &'static Clib) -> Result<String, String> {
    if case.model.chunks.is_empty() || rng.one_in(10) {
        let chunk = make_chunk(rng, case, theirs, &[1; 64]);
        let at = rng.pick(&[-1, case.model.len(), i64::MAX, i64::MIN]);
        equal("code", case.ours.update_chunk(at, &chunk, true), case.theirs.update_chunk(at, &chunk, true))?;
        return Ok(format!("refused {at}"));
    }
    let at = rng.below(case.model.chunks.len());
    let n = if case.variable && rng.one_in(2) { case.draw_size(rng) } else { case.model.chunks[at].len() };
    let data = case.data(rng, n);
    if !case.variable && !case.model.update_stays_fixed(at, size(&data)) {
        return Ok("-".into());
    }
    let maker: &Clib = if rng.one_in(2) { &OURS } else { theirs };
    let chunk = make_chunk(rng, case, maker, &data);
    case.foreign = true;
    let copy = rng.one_in(2);
    let position = i64::try_from(at).expect("few chunks");
    equal(
        "code",
        case.ours.update_chunk(position, &chunk, copy),
        case.theirs.update_chunk(position, &chunk, copy),
    )?;
    case.drifted |= !case.framed() && (case.is_special(&case.model.chunks[at]));
    case.model.update(at, data);
    Ok(format!("{at}"))
}

fn delete_chunk(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    let at = if rng.one_in(8) {
        rng.pick(&[-1, case.model.len(), i64::MAX])
    } else {
        i64::try_from(rng.below(case.model.chunks.len() + 1)).expect("few")
    };
    equal("code", case.ours.delete_chunk(at), case.theirs.delete_chunk(at))?;
    if let Some(i) = usize::try_from(at).ok().filter(|&i| i < case.model.chunks.len()) {
        case.drifted |= case.place.0 || (!case.framed() && case.is_special(&case.model.chunks[i]));
        case.model.chunks.remove(i);
    }
    Ok(at.to_string())
}

fn decompress_chunk(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    let at = i64::try_from(rng.below(case.model.chunks.len() + 2)).expect("few") - 1;
    let n = usize::try_from(at).ok().and_then(|i| case.model.chunks.get(i)).map_or(10, Vec::len);
    let room = match rng.below(5) {
        0 => n / 2,
        1 => n - 1,
        2 => n + 7,
        3 => 0,
        _ => n,
    };
    let (mut a, mut b) = (vec![0x5A; room], vec![0x5A; room]);
    let codes = (case.ours.decompress_chunk(at, &mut a), case.theirs.decompress_chunk(at, &mut b));
    equal(&format!("code ({room} of {n})"), codes.0, codes.1)?;
    if codes.0 > 0 {
        same("content", &a, &b)?;
    }
    Ok(at.to_string())
}

fn get_chunk(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    fetch(case, rng, false)
}

fn get_lazychunk(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    fetch(case, rng, true)
}

fn fetch(case: &mut Case, rng: &mut Rng, lazy: bool) -> Result<String, String> {
    let at = i64::try_from(rng.below(case.model.chunks.len() + 2)).expect("few") - 1;
    let (a, b) = (case.ours.get_chunk(at, lazy), case.theirs.get_chunk(at, lazy));
    let exact = case.exact && !case.drifted;
    if exact || a.0 < 0 || b.0 < 0 || (lazy && case.place.1 && !case.drifted) {
        equal("code", a.0, b.0)?;
    }
    equal("needs_free", a.1, b.1)?;
    // With threads, theirs has the blocks in the order in which they were done.
    if exact && !lazy && case.cparams.nthreads == 1 {
        same("chunk", &a.2, &b.2)?;
    }
    if lazy && a.0 > 0 {
        let i = usize::try_from(at).expect("in range");
        let n = case.model.chunks[i].len();
        let (mut x, mut y) = (vec![0; n], vec![0; n]);
        // SAFETY: live handles; the bytes outlive the calls.
        let codes = unsafe {
            let run = |s: &Schunk, chunk: &[u8], dest: &mut [u8]| {
                (s.api.lib.f.blosc2_decompress_ctx)(
                    (*s.raw).dctx,
                    chunk.as_ptr().cast(),
                    int(chunk.len()),
                    dest.as_mut_ptr().cast(),
                    int(n),
                )
            };
            (run(&case.ours, &a.2, &mut x), run(&case.theirs, &b.2, &mut y))
        };
        equal("decoded", codes.0, codes.1)?;
        same("lazy", &x, &case.model.chunks[i])?;
        if n > 3 * case.typesize() && !case.cparams.filters.contains(&3) {
            let typesize = if case.cparams.typesize > 255 { 1 } else { case.typesize() };
            let first = rng.below(n / typesize);
            let count = rng.range(0, n / typesize - first);
            let (mut x, mut y) = (vec![0; count * typesize], vec![0; count * typesize]);
            // SAFETY: live handles; the bytes outlive the calls.
            let codes = unsafe {
                let run = |s: &Schunk, chunk: &[u8], dest: &mut [u8]| {
                    (s.api.lib.f.blosc2_getitem_ctx)(
                        (*s.raw).dctx,
                        chunk.as_ptr().cast(),
                        int(chunk.len()),
                        int(first),
                        int(count),
                        dest.as_mut_ptr().cast(),
                        int(dest.len()),
                    )
                };
                (run(&case.ours, &a.2, &mut x), run(&case.theirs, &b.2, &mut y))
            };
            equal("getitem", codes.0, codes.1)?;
            let expected = &case.model.chunks[i][first * typesize..][..count * typesize];
            // Theirs is not always right about items of the last, shorter block.
            same("items", &x, expected)?;
        }
    }
    Ok(at.to_string())
}

/// A position below `n`.
fn below(rng: &mut Rng, n: i64) -> i64 {
    i64::try_from(rng.below(usize::try_from(n).expect("a count"))).expect("below an i64")
}

fn nitems(case: &Case) -> i64 {
    size(&case.model.data()) / i64::from(case.cparams.typesize)
}

fn get_slice(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    if case.model.chunksize == 0 || case.model.chunks.is_empty() || case.cparams.filters.contains(&3) {
        return Ok("-".into()); // the C library divides by zero, or reads DELTA wrongly
    }
    let n = nitems(case);
    let start = below(rng, n + 1);
    let stop = if rng.one_in(10) { n + 3 } else { start + below(rng, n - start + 1) };
    let start = if rng.one_in(20) { -2 } else { start };
    let bytes = usize::try_from(stop - start).expect("a range") * case.typesize();
    let (mut a, mut b) = (vec![0x5A; bytes], vec![0x5A; bytes]);
    let codes = (case.ours.get_slice(start, stop, &mut a), case.theirs.get_slice(start, stop, &mut b));
    equal(&format!("code of {start}..{stop} of {n}"), codes.0, codes.1)?;
    if codes.0 == 0 {
        same(
            "slice",
            &a,
            &case.model.data()[usize::try_from(start).expect("positive") * case.typesize()..][..bytes],
        )?;
    }
    // Where the C library stops after an error is left to it.
    forget_current(case);
    Ok(format!("{start}..{stop}"))
}

fn set_slice(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    let n = nitems(case);
    if case.model.chunksize <= 0 || n == 0 {
        return Ok("-".into());
    }
    let start = below(rng, n + 1);
    let stop = start + below(rng, n - start + 1);
    let typesize = case.typesize() as i64;
    // A part as long as the short last chunk, at the start of another one, makes the C library cut that one.
    let full = case.model.chunksize / typesize;
    let short = n % full;
    let last_part = stop % full;
    if short != 0
        && ((stop - start >= short && last_part == short && stop <= n - short)
            || (start % full == 0 && stop - start == short && stop < n))
    {
        return Ok("-".into());
    }
    let data = case.data(rng, usize::try_from(stop - start).expect("a range") * case.typesize());
    let specials = case.model.chunks.iter().any(|c| case.is_special(c));
    equal(
        &format!("code of {start}..{stop} of {n}"),
        case.ours.set_slice(start, stop, &data),
        case.theirs.set_slice(start, stop, &data),
    )?;
    case.model.overwrite(usize::try_from(start * typesize).expect("positive"), &data);
    case.sliced = true;
    case.drifted |= (specials && !case.framed()) || short != 0 || case.foreign;
    // Whole chunks do not set the number in the C library.
    forget_current(case);
    Ok(format!("{start}..{stop}"))
}

fn get_sparse(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    // SAFETY: a live handle.
    let blocksize = unsafe { (*case.theirs.raw).blocksize };
    let n = nitems(case);
    if n == 0
        || case.model.chunksize <= 0
        || blocksize == 0
        || case.cparams.filters.contains(&3)
        || case.model.chunksize % i64::from(case.cparams.typesize) != 0
    {
        return Ok("-".into());
    }
    let mut coords: Vec<i64> = (0..rng.below(30)).map(|_| below(rng, n)).collect();
    if rng.one_in(6) {
        coords.push(rng.pick(&[-1, n, i64::MAX]));
    }
    let bytes = coords.len() * case.typesize();
    let (mut a, mut b) = (vec![0x5A; bytes], vec![0x5A; bytes]);
    let codes = (case.ours.get_sparse(&coords, &mut a), case.theirs.get_sparse(&coords, &mut b));
    if codes.0 == 0 {
        let data = case.model.data();
        let expected: Vec<u8> = coords
            .iter()
            .flat_map(|&c| {
                &data[usize::try_from(c).expect("positive") * case.typesize()..][..case.typesize()]
            })
            .copied()
            .collect();
        same("items", &a, &expected)?;
    }
    if codes.1 != -3 && codes.1 != -6 {
        // Chunks with another block size than the super-chunk's are beyond the C library.
        equal(&format!("code of {coords:?} of {n}"), codes.0, codes.1)?;
    }
    forget_current(case);
    Ok(format!("{}", coords.len()))
}

fn slice_nchunks(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    let n = nitems(case);
    if case.model.chunksize == 0 {
        return Ok("-".into());
    }
    let draw = |rng: &mut Rng| below(rng, n + 9);
    let (start, stop) = (draw(rng), draw(rng));
    if stop < start {
        return Ok("-".into());
    }
    equal(
        &format!("{start}..{stop}"),
        case.ours.slice_nchunks(start, stop),
        case.theirs.slice_nchunks(start, stop),
    )?;
    Ok(String::new())
}

fn reorder(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    let n = case.model.chunks.len();
    if n == 0 {
        return Ok("-".into()); // allocates `data` in the C library
    }
    if rng.one_in(6) {
        let mut order: Vec<i64> = (0..case.model.len()).collect();
        if let Some(first) = order.first_mut() {
            *first = rng.pick(&[-1, 1, case.model.len()]);
        }
        if order != [1] && order.len() != 2 || n == 0 {
            equal("refused", case.ours.reorder(&order), case.theirs.reorder(&order))?;
        }
        return Ok("refused".into());
    }
    let short = size(&case.model.chunks[n - 1]) < case.model.chunksize;
    let movable = if short { n - 1 } else { n };
    let mut order: Vec<usize> = (0..n).collect();
    for i in 1..movable {
        order.swap(i, rng.below(i + 1));
    }
    let numbers: Vec<i64> = order.iter().map(|&i| i64::try_from(i).expect("few")).collect();
    equal("code", case.ours.reorder(&numbers), case.theirs.reorder(&numbers))?;
    case.model.chunks = order.iter().map(|&i| case.model.chunks[i].clone()).collect();
    Ok(String::new())
}

fn draw_name(rng: &mut Rng) -> CString {
    let names = ["a", "bb", "", "a name of exactly 31 characters", "nothing"];
    CString::new(rng.pick(&names)).expect("no NUL")
}

fn metalayers(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    let name = draw_name(rng);
    let len = rng.pick(&[0, 1, 10, 300]);
    let content = rng.bytes(len);
    let text = name.to_str().expect("ASCII").to_string();
    let known = case.model.metalayers.iter().position(|(n, _)| *n == text);
    if rng.one_in(2) {
        // With chunks in a frame there is no room; the C library damages the frame then.
        if case.framed()
            && (!case.model.chunks.is_empty()
                || case.ours.seen().cbytes != 0
                || case.theirs.seen().cbytes != 0)
        {
            return Ok("-".into());
        }
        let codes = (case.ours.meta_add(&name, &content), case.theirs.meta_add(&name, &content));
        equal("add", codes.0, codes.1)?;
        if known.is_none() {
            case.model.metalayers.push((text, content));
        }
    } else {
        equal("update", case.ours.meta_update(&name, &content), case.theirs.meta_update(&name, &content))?;
        if let Some(old) =
            known.map(|i| &mut case.model.metalayers[i].1).filter(|old| old.len() >= content.len())
        {
            old[..content.len()].copy_from_slice(&content);
        }
    }
    Ok(String::new())
}

fn vlmetalayers(case: &mut Case, rng: &mut Rng, _: &'static Clib) -> Result<String, String> {
    let name = draw_name(rng);
    let len = rng.pick(&[0, 1, 10, 300, 20_000]);
    let content = make_data(rng, "text", 1, len);
    let text = name.to_str().expect("ASCII").to_string();
    let known = case.model.vlmetalayers.iter().position(|(n, _)| *n == text);
    match rng.below(4) {
        0 => {
            equal(
                "add",
                case.ours.vlmeta_set(true, &name, &content),
                case.theirs.vlmeta_set(true, &name, &content),
            )?;
            if known.is_none() {
                case.model.vlmetalayers.push((text, content));
            }
        }
        1 => {
            equal(
                "update",
                case.ours.vlmeta_set(false, &name, &content),
                case.theirs.vlmeta_set(false, &name, &content),
            )?;
            if let Some(i) = known {
                case.model.vlmetalayers[i].1 = content;
            }
        }
        2 => {
            equal("get", case.ours.vlmeta_get(&name), case.theirs.vlmeta_get(&name))?;
            equal("exists", case.ours.vlmeta_exists(&name), case.theirs.vlmeta_exists(&name))?;
        }
        _ => {
            equal("delete", case.ours.vlmeta_delete(&name), case.theirs.vlmeta_delete(&name))?;
            if let Some(i) = known {
                case.model.vlmetalayers.remove(i);
            }
        }
    }
    Ok(String::new())
}

fn to_buffer(case: &mut Case, _: &mut Rng, theirs: &'static Clib) -> Result<String, String> {
    let (a, b) = (case.ours.to_buffer(), case.theirs.to_buffer());
    equal("needs_free", a.1, b.1)?;
    equal("success", a.0 > 0, b.0 > 0)?;
    let mut back = SchunkApi::of(theirs).open_buffer(&a.2).ok_or("theirs does not open ours")?;
    read_all("ours in theirs", &mut back, &case.model)?;
    let mut back2 = SchunkApi::of(&OURS).open_buffer(&b.2).ok_or("ours does not open theirs")?;
    read_all("theirs in ours", &mut back2, &case.model)?;
    let mask = |mut seen: Seen| {
        seen.cbytes = 0;
        if case.model.chunks.is_empty() {
            seen.chunksize = 0; // in the C library's frame only if there are metalayers
        }
        seen.vlmetalayers.clear();
        if case.drifted || case.sliced {
            seen.blocksize = 0; // that of all chunks, or 0
        }
        seen
    };
    if case.typesize() <= 255 {
        // The C library's copies of items above 255 bytes say that they have one byte.
        equal("seen", mask(back2.seen()), mask(back.seen()))?;
    }
    Ok(String::new())
}

fn append_file(case: &mut Case, _: &mut Rng, theirs: &'static Clib) -> Result<String, String> {
    let path = case.scratch.path("several");
    for schunk in [&case.ours, &case.theirs] {
        for api in [SchunkApi::of(&OURS), SchunkApi::of(theirs)] {
            let offset = schunk.append_file(&path);
            let mut back = api.open_offset(&path, offset).ok_or(format!("no frame at {offset}"))?;
            read_all("frame in a file", &mut back, &case.model)?;
        }
    }
    equal("removed", SchunkApi::of(&OURS).remove(&path), 0)?;
    Ok(String::new())
}

fn copy(case: &mut Case, rng: &mut Rng, theirs: &'static Clib) -> Result<String, String> {
    let to = rng.pick(&[(false, false), (true, false), (true, true), (false, true)]);
    let short = case.model.chunks.last().is_some_and(|last| size(last) < case.model.chunksize);
    let same_params = rng.one_in(2) || short || case.model.chunksize == 0;
    let (mut cparams, dparams, _) = draw_params(rng, theirs);
    cparams.typesize = case.cparams.typesize;
    cparams.filters = [0, 0, 0, 0, 0, 1];
    cparams.blocksize = if rng.one_in(2) { 0 } else { cparams.typesize * int(rng.range(1, 100)) };
    let params = if same_params { None } else { Some((&cparams, &dparams)) };
    let a = case.ours.copy(&case.scratch.place(to.0, to.1, "our copy"), params);
    let b = case.theirs.copy(&case.scratch.place(to.0, to.1, "their copy"), params);
    let mut a = a.ok_or("ours cannot be copied")?;
    let Some(mut b) = b else {
        forget_current(case);
        read_all("our copy", &mut a, &case.model)?;
        drop(a);
        remove_copies(case);
        return Ok("theirs refuses".into());
    };
    read_all("our copy", &mut a, &case.model)?;
    read_all("their copy", &mut b, &case.model)?;
    let mask = |mut seen: Seen| {
        seen.cbytes = 0;
        seen.storage.1 = None;
        seen.vlmetalayers.clear();
        if seen.typesize > 255 {
            seen.typesize = 1; // which theirs says as soon as a context was used
        }
        if case.drifted || case.sliced {
            seen.blocksize = 0; // the last one that the context used
        }
        seen
    };
    differing("copy", &mask(a.seen()), &mask(b.seen()))?;
    if !case.drifted && !case.sliced {
        let typesize = case.cparams.typesize;
        let mask = |(code, shown): (i32, String)| match typesize {
            // Theirs forgets sizes that contexts do not know.
            256.. => (code, shown.replace(&format!("typesize: {typesize},"), "typesize: 1,")),
            _ => (code, shown),
        };
        equal("parameters", mask(a.get_cparams()), mask(b.get_cparams()))?;
    }
    drop((a, b));
    remove_copies(case);
    Ok(format!("to {to:?} same {same_params}"))
}

fn remove_copies(case: &Case) {
    for name in ["our copy", "their copy"] {
        SchunkApi::of(&OURS).remove(&case.scratch.path(name));
    }
}

fn reopen(case: &mut Case, rng: &mut Rng, theirs: &'static Clib) -> Result<String, String> {
    if !case.place.1 {
        return Ok("-".into());
    }
    let swap = rng.one_in(2);
    if swap {
        // What the two files hold may differ in how it got there.
        case.swapped = !case.swapped;
        case.drifted = true;
    }
    let (a, b) = case.paths();
    case.ours = SchunkApi::of(&OURS).open(&a).ok_or("ours does not open")?;
    case.theirs = SchunkApi::of(theirs).open(&b).ok_or("theirs does not open")?;
    equal("refresh", case.ours.refresh(), case.theirs.refresh())?;
    Ok(if swap { "each other's".into() } else { String::new() })
}

fn params(case: &mut Case, _: &mut Rng, _: &'static Clib) -> Result<String, String> {
    equal("cparams", case.ours.get_cparams(), case.theirs.get_cparams())?;
    equal("dparams", case.ours.get_dparams(), case.theirs.get_dparams())?;
    if !case.model.chunks.is_empty() {
        // The C library reads an index that is not there.
        equal("offsets", case.ours.offsets().is_some(), case.theirs.offsets().is_some())?;
    }
    if !case.framed() && case.exact && !case.drifted {
        equal("frame_len", case.ours.frame_len(), case.theirs.frame_len())?;
    }
    Ok(String::new())
}
