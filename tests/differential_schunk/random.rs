//! Random sequences of operations.

use std::ffi::CStr;

use super::case::{Case, compare_seen, read_all, start};
use super::common::OURS;
use super::common::check::{equal, for_seeds};
use super::common::clib::Clib;
use super::common::schunk_api::SchunkApi;
use super::steps::STEPS;

#[test]
fn random_sequences_agree() {
    for_seeds(150, |theirs, rng| {
        let mut case = start(theirs, rng);
        let what = format!(
            "contiguous {} on disk {} typesize {} codec {} level {} blocksize {} items {} threads {}/{} filters {:?} variable {}",
            case.place.0,
            case.place.1,
            case.cparams.typesize,
            case.cparams.compcode,
            case.cparams.clevel,
            case.cparams.blocksize,
            case.items,
            case.cparams.nthreads,
            case.dparams.nthreads,
            case.cparams.filters,
            case.variable,
        );
        let total: usize = STEPS.iter().map(|s| s.0).sum();
        let mut log = Vec::new();
        let nsteps = rng.range(5, 40);
        let trace = std::env::var_os("BLOSC2_DIFF_TRACE").is_some();
        for _ in 0..nsteps {
            let mut at = rng.below(total);
            let (_, name, step) = STEPS
                .iter()
                .find(|s| {
                    if at < s.0 {
                        true
                    } else {
                        at -= s.0;
                        false
                    }
                })
                .expect("one is drawn");
            if trace {
                eprintln!("  {name}");
            }
            let done = step(&mut case, rng, theirs)
                .and_then(|how| compare_seen(&case).map(|()| how).map_err(|e| format!("{e} (after {name})")));
            match done {
                Ok(how) => log.push(format!("{name} {how}")),
                Err(why) => {
                    let last: Vec<String> = log.split_off(log.len().saturating_sub(8));
                    return Err(format!("{what}\n  ...{}\n  {name}: {why}", last.join(", ")));
                }
            }
        }
        finish(case, theirs).map_err(|why| format!("{what}\n {}\n finally: {why}", log.join(", ")))
    });
}

/// Each reads everything of its own and of the other.
fn finish(mut case: Case, theirs: &'static Clib) -> Result<(), String> {
    read_all("ours", &mut case.ours, &case.model)?;
    read_all("theirs", &mut case.theirs, &case.model)?;
    let (our_len, _, our_frame) = case.ours.to_buffer();
    let (their_len, _, their_frame) = case.theirs.to_buffer();
    equal("our frame", our_len > 0, true)?;
    equal("their frame", their_len > 0, true)?;
    let (our_api, their_api) = (SchunkApi::of(&OURS), SchunkApi::of(theirs));
    for (what, api, frame) in [
        ("our frame in theirs", their_api, &our_frame),
        ("their frame in ours", our_api, &their_frame),
        ("our frame in ours", our_api, &our_frame),
    ] {
        let mut back = api.open_buffer(frame).ok_or(format!("{what} cannot be opened"))?;
        read_all(what, &mut back, &case.model)?;
    }
    if case.place.1 {
        let (a, b) = case.paths();
        let Case { ours, theirs: other, .. } = case;
        drop((ours, other));
        let open = |api: &SchunkApi, path: &CStr| api.open(path).ok_or(format!("{path:?} cannot be opened"));
        read_all("our file in theirs", &mut open(&their_api, &a)?, &case.model)?;
        read_all("their file in ours", &mut open(&our_api, &b)?, &case.model)?;
    }
    Ok(())
}
