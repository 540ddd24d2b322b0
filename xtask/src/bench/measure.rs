//! Timing of two subjects that take turns.

use std::time::{Duration, Instant};

/// One sample repeats its subject until it takes about this long, so that the clock's cost does not count.
const SAMPLE: Duration = Duration::from_micros(100);
/// Calls that take longer than this get two samples per epoch, the first call being one, and two epochs.
const SLOW: Duration = Duration::from_millis(4);
/// How often the subjects are made anew, in changing order. Where a context happens to lie in memory changes the time
/// of short calls by up to a third; with several placements each subject meets a good one.
const EPOCHS: u32 = 4;
/// Where one subject looks at most this many times as fast as the other, whichever it is, a cell is measured [`DOUBT`]
/// times as long: there, noise could decide which of them is the faster one.
const DOUBTFUL: f64 = 1.2;
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
        if epoch >= epochs * if is_doubtful(best) { DOUBT } else { 1 } {
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

/// Whether noise could decide which of the two times is the better one.
fn is_doubtful(times: (f64, f64)) -> bool {
    times.0.max(times.1) <= times.0.min(times.1) * DOUBTFUL
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_doubtful_does_not_depend_on_who_is_faster() {
        for (slow, doubtful) in [(1.0, true), (1.04, true), (1.19, true), (1.21, false), (5.0, false)] {
            assert_eq!((is_doubtful((1.0, slow)), is_doubtful((slow, 1.0))), (doubtful, doubtful), "{slow}");
        }
    }

    #[test]
    fn short_calls_are_repeated_until_the_clock_does_not_count() {
        assert_eq!((repeats(1.0), repeats(30e-6), repeats(0.0)), (1, 4, 100_000));
    }

    #[test]
    fn both_subjects_are_made_as_often_and_called_as_often_after_that() {
        let (made, called) = (std::cell::RefCell::new([0; 2]), std::cell::RefCell::new([0; 2]));
        let prepare = |which: usize| {
            let (made, called) = (&made, &called);
            move || -> Result<Subject<'_>, String> {
                made.borrow_mut()[which] += 1;
                Ok(Box::new(move || called.borrow_mut()[which] += 1))
            }
        };
        let timing = interleaved(Duration::from_millis(4), &prepare(0), &prepare(1)).unwrap();
        assert!(timing.first > 0.0 && timing.second.is_some_and(|second| second > 0.0));
        let ([made1, made2], [called1, called2]) = (*made.borrow(), *called.borrow());
        assert!(made1 >= EPOCHS && made1 == made2, "{made1} and {made2}");
        assert_eq!(called1, called2);
    }
}
