//! Timing of two subjects that take turns.

use std::time::{Duration, Instant};

/// One sample repeats its subject until it takes about this long, so that the clock's cost does not count.
const SAMPLE: Duration = Duration::from_micros(100);
/// Calls that take longer than this get two samples per epoch, the first call being one, and two epochs.
const SLOW: Duration = Duration::from_millis(4);
/// How often the subjects are made anew, in changing order. Where a context happens to lie in memory changes the time
/// of short calls by up to a third; with several placements each subject meets a good one.
const EPOCHS: u32 = 4;
/// Where the first subject looks more than this many times as slow as the second one, a cell is measured [`DOUBT`]
/// times as long: such cells are few, and what remains of the difference is then not noise.
const DOUBTFUL: f64 = 1.03;
const DOUBT: u32 = 2;

/// Something to time: each call does the work once.
pub type Subject<'a> = Box<dyn FnMut() + 'a>;
/// Makes a subject with everything prepared, or says why it cannot.
pub type Prepare<'a> = &'a dyn Fn() -> Result<Subject<'a>, String>;

/// Best times of one call, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Of the first subject.
    pub first: f64,
    /// Of the second one, if any.
    pub second: Option<f64>,
}

/// Times one subject for about half of `budget`.
pub fn alone(budget: Duration, first: Prepare<'_>) -> Result<Timing, String> {
    let mut best = f64::INFINITY;
    for _ in 0..EPOCHS {
        let mut subject = first()?;
        let once = sample(1, &mut subject);
        best = best.min(once);
        let start = Instant::now();
        loop {
            best = best.min(sample(repeats(once), &mut subject));
            if start.elapsed() >= budget / 2 / EPOCHS {
                break;
            }
        }
    }
    Ok(Timing { first: best, second: None })
}

/// Times both subjects for about `budget` in all. They take turns, and who goes first changes with every round.
pub fn interleaved(budget: Duration, first: Prepare<'_>, second: Prepare<'_>) -> Result<Timing, String> {
    let mut best = (f64::INFINITY, f64::INFINITY);
    let mut epoch = 0;
    loop {
        let epochs = if best.0.max(best.1) > SLOW.as_secs_f64() { EPOCHS / 2 } else { EPOCHS };
        let doubtful = best.0 > best.1 * DOUBTFUL;
        if epoch >= epochs * if doubtful { DOUBT } else { 1 } {
            return Ok(Timing { first: best.0, second: Some(best.1) });
        }
        let (mut subject1, mut subject2);
        if epoch % 2 == 0 {
            subject1 = first()?;
            subject2 = second()?;
        } else {
            subject2 = second()?;
            subject1 = first()?;
        }
        let once = (sample(1, &mut subject1), sample(1, &mut subject2));
        best = (best.0.min(once.0), best.1.min(once.1));
        let repeats = repeats(once.0.max(once.1));
        let start = Instant::now();
        for round in 0_u32.. {
            if round % 2 == 0 {
                best.0 = best.0.min(sample(repeats, &mut subject1));
                best.1 = best.1.min(sample(repeats, &mut subject2));
            } else {
                best.1 = best.1.min(sample(repeats, &mut subject2));
                best.0 = best.0.min(sample(repeats, &mut subject1));
            }
            if start.elapsed() >= budget / EPOCHS {
                break;
            }
        }
        epoch += 1;
    }
}

/// Seconds per call over `repeats` calls.
fn sample(repeats: u32, subject: &mut Subject<'_>) -> f64 {
    let start = Instant::now();
    for _ in 0..repeats {
        subject();
    }
    start.elapsed().as_secs_f64() / f64::from(repeats)
}

/// How many calls of `seconds` make up one sample.
fn repeats(seconds: f64) -> u32 {
    (SAMPLE.as_secs_f64() / seconds.max(1e-9)).ceil().clamp(1.0, 100_000.0) as u32 // in range: clamped
}
