//! What all operations on one kind of super-chunk share: making it, checking it, timing.

use std::time::Instant;

use crate::bench::clib::Clib;
use crate::bench::measure::{Subject, Timing};
use crate::bench::ops::{both, cparams, time};
use crate::bench::options::Key;
use crate::bench::report::{Record, Versus};
use crate::bench::schunk::{Api, Content, Place, Schunk};
use crate::bench::{Bench, Libs};

/// Super-chunks are changed at least this often before the best time is taken.
const ROUNDS: u32 = 4;

/// One operation with one set of parameters.
pub struct Cell<'a> {
    pub libs: &'a Libs,
    pub key: Key,
    /// Where the chunks are.
    pub place: Place,
    /// The name of the operation.
    pub op: &'static str,
}

impl<'a> Cell<'a> {
    /// Item size in bytes.
    pub fn typesize(&self) -> usize {
        usize::try_from(self.key.data.typesize()).expect("positive")
    }

    /// Keeps a result. `bytes` is what one call handles, 0 if its time is what counts.
    pub fn record(&self, bench: &mut Bench, bytes: usize, timing: Timing) {
        let versus = Versus::Theirs;
        bench.record(Record { op: self.op, key: self.key, bytes, timing, versus, cbytes: None });
    }

    /// Runs `check` with each library.
    pub fn each_library(&self, check: impl Fn(&'a Clib) -> Result<(), String>) -> Result<(), String> {
        both(self.libs).try_for_each(|lib| check(lib).map_err(|why| format!("{}: {why}", lib.path.display())))
    }

    /// A super-chunk made by `lib` of `data`, in chunks of `chunksize` bytes.
    fn build(
        &self,
        lib: &'a Clib,
        blocksize: i32,
        data: &[u8],
        chunksize: usize,
    ) -> Result<Schunk<'a>, String> {
        let mut params = cparams(lib, &self.key);
        params.blocksize = blocksize;
        let schunk = Api::find(lib)?.create(self.place, &params)?;
        schunk.meta_add(c"shape", &[1; 24]);
        data.chunks(chunksize).for_each(|chunk| schunk.append(chunk));
        Ok(schunk)
    }

    /// What each library makes of `data`, in chunks of `chunksize` bytes, after both have read it: the content that the
    /// C library made, when there is one, so that both work on the same bytes.
    pub fn checked(&self, blocksize: i32, data: &[u8], chunksize: usize) -> Result<Content, String> {
        let mut content = None;
        for lib in both(self.libs) {
            let made = self
                .build(lib, blocksize, data, chunksize)
                .and_then(|schunk| schunk.into_content(self.place))?;
            self.check(&made, chunksize, data.chunks(chunksize))?;
            content = Some(made);
        }
        Ok(content.expect("ours at least"))
    }

    /// What our library makes of `data`, in chunks of `chunksize` bytes, after both have read it: for as many chunks as
    /// would take the C library too long.
    pub fn ours(&self, data: &[u8], chunksize: usize) -> Result<Content, String> {
        let made = self.build(&self.libs.ours, 0, data, chunksize)?.into_content(self.place)?;
        self.check(&made, chunksize, data.chunks(chunksize))?;
        Ok(made)
    }

    /// Fails unless both libraries find `chunks` in `content`.
    pub fn check<'c>(
        &self,
        content: &Content,
        chunksize: usize,
        chunks: impl Iterator<Item = &'c [u8]> + Clone,
    ) -> Result<(), String> {
        self.each_library(|lib| {
            let schunk = Api::find(lib)?.open_copy(content)?;
            let mut back = vec![0xA5; chunksize];
            for (nchunk, expected) in chunks.clone().enumerate() {
                let n = schunk.read(nchunk, &mut back);
                if back[..n] != *expected {
                    return Err(format!("chunk {nchunk} holds other data"));
                }
            }
            Ok(())
        })
    }

    /// Fails unless what `change` makes of `content` holds `chunks`, whichever library changes it and whichever reads
    /// it.
    pub fn check_change<'c>(
        &self,
        content: &Content,
        change: impl Fn(&Schunk<'_>),
        chunksize: usize,
        chunks: impl Iterator<Item = &'c [u8]> + Clone,
    ) -> Result<(), String> {
        self.each_library(|lib| {
            let schunk = Api::find(lib)?.open_copy(content)?;
            change(&schunk);
            self.check(&schunk.into_content(self.place)?, chunksize, chunks.clone())
        })
    }

    /// Runs `work` while opened super-chunks get the threads that the key asks for: they take the libraries' number.
    fn with_threads<R>(&self, work: impl FnOnce() -> R) -> R {
        both(self.libs).for_each(|lib| {
            lib.set_nthreads(self.key.threads);
        });
        let result = work();
        both(self.libs).for_each(|lib| {
            lib.set_nthreads(1);
        });
        result
    }

    /// Times `work` on one open super-chunk per library.
    pub fn time_reading<'s>(
        &self,
        bench: &Bench,
        content: &'s Content,
        work: impl Fn(&Schunk<'s>) + Copy + 's,
    ) -> Result<Timing, String>
    where
        'a: 's,
    {
        self.with_threads(|| {
            time(self.libs, bench.options.budget(160), |lib| {
                let schunk = Api::find(lib)?.open_copy(content)?;
                let subject: Subject<'s> = Box::new(move || work(&schunk));
                Ok(subject)
            })
        })
    }

    /// Times opening and closing.
    pub fn time_opening(&self, bench: &Bench, content: &Content) -> Result<Timing, String> {
        time(self.libs, bench.options.budget(160), |lib| {
            let (api, path, mut buffer) = (Api::find(lib)?, content.path(), content.bytes());
            Ok(Box::new(move || api.open_and_close(content, &path, &mut buffer)))
        })
    }

    /// Times `change` on what `prepare` makes; only the change counts. The libraries take turns, and who goes first
    /// changes with every round.
    pub fn time_changing(
        &self,
        bench: &Bench,
        prepare: impl Fn(&'a Clib) -> Result<Schunk<'a>, String>,
        change: impl Fn(&Schunk<'a>),
    ) -> Result<Timing, String> {
        let budget = bench.options.budget(400);
        let once = |lib: &'a Clib| -> Result<f64, String> {
            let schunk = prepare(lib)?;
            let start = Instant::now();
            change(&schunk);
            Ok(start.elapsed().as_secs_f64())
        };
        self.with_threads(|| {
            let mut libs = vec![(&self.libs.ours, f64::INFINITY)];
            libs.extend(self.libs.theirs.as_ref().map(|theirs| (theirs, f64::INFINITY)));
            let start = Instant::now();
            for round in 0_u32.. {
                if round >= ROUNDS && start.elapsed() >= budget {
                    break;
                }
                for i in 0..libs.len() {
                    let turn = (i + round as usize) % libs.len(); // widening
                    let (lib, best) = &mut libs[turn];
                    *best = best.min(once(lib)?);
                }
            }
            Ok(Timing { first: libs[0].1, second: libs.get(1).map(|&(_, best)| best) })
        })
    }
}
