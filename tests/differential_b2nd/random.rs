//! Random sequences of operations.

use super::case::{Case, compare, read_all, start};
use super::common::OURS;
use super::common::b2nd_api::ArrayApi;
use super::common::check::{equal, for_seeds};
use super::common::clib::Clib;
use super::steps::STEPS;

#[test]
fn random_sequences_agree() {
    for_seeds(150, |theirs, rng| {
        let mut case = start(theirs, rng)?;
        let what = format!(
            "contiguous {} on disk {} shape {:?} chunks {:?} blocks {:?} typesize {} codec {} level {} threads {}/{}",
            case.place.0,
            case.place.1,
            case.recipe.shape,
            case.recipe.chunkshape,
            case.recipe.blockshape,
            case.dense.typesize,
            case.recipe.cparams.compcode,
            case.recipe.cparams.clevel,
            case.recipe.cparams.nthreads,
            case.recipe.dparams.nthreads,
        );
        compare(&case).map_err(|why| format!("{what}\n  at the start: {why}"))?;
        let total: usize = STEPS.iter().map(|s| s.0).sum();
        let mut log = Vec::new();
        let trace = std::env::var_os("BLOSC2_DIFF_TRACE").is_some();
        for _ in 0..rng.range(4, 25) {
            let mut at = rng.below(total);
            let drawn = STEPS.iter().find(|s| {
                let found = at < s.0;
                at = at.wrapping_sub(s.0);
                found
            });
            let (_, name, step) = drawn.expect("one is drawn");
            if trace {
                eprintln!("  {name}");
            }
            let done = step(&mut case, rng, theirs).and_then(|how| {
                compare(&case).map(|()| how.clone()).map_err(|e| format!("{e} (after {name} {how})"))
            });
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
fn finish(case: Case, theirs: &'static Clib) -> Result<(), String> {
    read_all("ours", &case.ours, &case.dense)?;
    read_all("theirs", &case.theirs, &case.dense)?;
    let (ours, other) = (ArrayApi::of(&OURS), ArrayApi::of(theirs));
    if case.place.1 {
        let (a, b) = case.paths();
        for (what, api, path) in [("our file in theirs", other, &a), ("their file in ours", ours, &b)] {
            let (code, back) = api.open(path);
            read_all(what, &back.ok_or(format!("{what}: {code}"))?, &case.dense)?;
        }
    }
    let (a, b) = (case.ours.to_cframe(), case.theirs.to_cframe());
    equal("frames", (a.0, a.1), (b.0, b.1))?;
    Ok(())
}
