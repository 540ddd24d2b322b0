//! Large things, such as encoders, that threads borrow for one operation each, and places for those that nobody is
//! using.
//!
//! With many threads, most of which are idle, it would be very much if each kept its own. So there are some more places
//! than processors, and what finds none is freed. Each thread has a place that it looks at first: with no more threads
//! than places, it finds there what it put there itself, which may still be in the cache of its processor. Of more
//! threads, about as many as there are processors need something at a time, so that there is nearly always something
//! for them, and a place afterwards.
//!
//! Taking something and putting it back is an exchange of a pointer, without a lock: the child of a `fork` finds a
//! place empty or with something whole.

use crate::cpu;
use crate::error::Result;
use crate::fork::Lazy;
use crate::memory::{boxed, made};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Places for each processor. A thread may be made to wait for a processor while it has something.
const PER_PROCESSOR: usize = 2;
/// Places with few processors.
const LEAST: usize = 8;
/// Places at the most.
const MOST: usize = 256;

static PLACES: Lazy<usize> = Lazy::new(|| Box::leak(Box::new(places(cpu::processors()))));

/// How many places there are with this number of processors.
fn places(processors: usize) -> usize {
    processors.saturating_mul(PER_PROCESSOR).clamp(LEAST, MOST)
}

/// A place, in a cache line of its own: most threads have one to themselves.
#[repr(align(64))]
struct Place<T>(AtomicPtr<T>);

/// Things of one kind, made as they are needed.
pub(crate) struct Shelf<T: 'static> {
    places: [Place<T>; MOST],
    /// How many have begun to use it.
    begun: AtomicUsize,
    make: fn() -> T,
}

impl<T: Send> Shelf<T> {
    /// An empty shelf for what `make` makes.
    pub(crate) const fn new(make: fn() -> T) -> Shelf<T> {
        let places = [const { Place(AtomicPtr::new(ptr::null_mut())) }; MOST];
        Shelf { places, begun: AtomicUsize::new(0), make }
    }

    /// Frees all that is there.
    pub(crate) fn clear(&'static self) {
        self.usable().for_each(|place| drop(place.take()));
    }

    /// Something that is there, preferably at the place `own`, or a new thing if there is nothing.
    #[inline]
    fn take(&'static self, own: usize) -> Result<Box<T>> {
        self.places[own].take().map_or_else(|| self.take_elsewhere(), Ok)
    }

    #[cold]
    fn take_elsewhere(&'static self) -> Result<Box<T>> {
        self.usable().find_map(Place::take).map_or_else(|| boxed(self.make), Ok)
    }

    /// Puts something there, preferably at the place `own`. If there is no room, it is freed.
    #[inline]
    fn put(&'static self, own: usize, thing: Box<T>) {
        if let Err(thing) = self.places[own].put(thing) {
            self.put_elsewhere(thing);
        }
    }

    #[cold]
    fn put_elsewhere(&'static self, mut thing: Box<T>) {
        for place in self.usable() {
            match place.put(thing) {
                Ok(()) => return,
                Err(back) => thing = back,
            }
        }
    }

    fn usable(&self) -> impl Iterator<Item = &Place<T>> {
        self.places[..*PLACES].iter()
    }
}

impl<T: Send> Place<T> {
    #[inline]
    fn take(&self) -> Option<Box<T>> {
        if self.0.load(Ordering::Relaxed).is_null() {
            return None;
        }
        let taken = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: `put` made it from a box, and nobody else gets it: each pointer is swapped out once.
        (!taken.is_null()).then(|| unsafe { Box::from_raw(taken) })
    }

    /// Puts something here, or gives it back if there is something already.
    #[inline]
    fn put(&self, thing: Box<T>) -> std::result::Result<(), Box<T>> {
        if !self.0.load(Ordering::Relaxed).is_null() {
            return Err(thing);
        }
        let new = Box::into_raw(thing);
        let put = self.0.compare_exchange(ptr::null_mut(), new, Ordering::Release, Ordering::Relaxed);
        // SAFETY: made above, and nobody else has seen it.
        put.map(drop).map_err(|_| unsafe { Box::from_raw(new) })
    }
}

/// What somebody has of a [`Shelf`]: one thing while it is in use.
pub(crate) struct Loan<T: 'static> {
    shelf: &'static Shelf<T>,
    thing: Option<Box<T>>,
    /// The number of the place to look at first; `None` before the first use.
    own: Option<usize>,
}

impl<T: Send> Loan<T> {
    /// Nothing yet.
    pub(crate) const fn of(shelf: &'static Shelf<T>) -> Loan<T> {
        Loan { shelf, thing: None, own: None }
    }

    /// The thing, taken from the shelf now if it was not before.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    #[inline]
    pub(crate) fn get(&mut self) -> Result<&mut T> {
        let Loan { shelf, thing, own } = self;
        let thing = made(thing, || {
            let turn = || shelf.begun.fetch_add(1, Ordering::Relaxed) % *PLACES;
            shelf.take(*own.get_or_insert_with(turn))
        });
        thing.map(|thing| &mut **thing)
    }

    /// Whether there is something to be put back.
    #[inline]
    pub(crate) fn is_out(&self) -> bool {
        self.thing.is_some()
    }

    /// Puts the thing back.
    #[inline]
    pub(crate) fn end(&mut self) {
        if let (Some(thing), Some(own)) = (self.thing.take(), self.own) {
            self.shelf.put(own, thing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn there_is_room_for_more_than_the_processors_use_at_once() {
        assert_eq!([1, 4, 5, 64, 128, 1000].map(places), [8, 8, 10, 128, 256, 256]);
        assert_eq!(places(usize::MAX), MOST);
    }

    #[test]
    fn what_was_put_back_comes_again_and_nobody_else_gets_it_meanwhile() {
        static SHELF: Shelf<u32> = Shelf::new(|| 7);
        let (mut loan, mut other) = (Loan::of(&SHELF), Loan::of(&SHELF));
        *loan.get().unwrap() += 1;
        assert_eq!((loan.get(), other.get()), (Ok(&mut 8), Ok(&mut 7)));
        assert!(loan.is_out() && other.is_out());
        loan.end();
        loan.end();
        assert!(!loan.is_out());
        other.end();
        assert_eq!((other.get(), loan.get()), (Ok(&mut 7), Ok(&mut 8)));
        loan.end();
        SHELF.clear();
        assert_eq!(loan.get(), Ok(&mut 7));
    }

    /// Things that exist.
    static THINGS: AtomicUsize = AtomicUsize::new(0);

    struct Counted;

    impl Drop for Counted {
        fn drop(&mut self) {
            THINGS.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn many_idle_threads_keep_no_more_than_there_are_places() {
        static SHELF: Shelf<Counted> = Shelf::new(|| {
            THINGS.fetch_add(1, Ordering::Relaxed);
            Counted
        });
        let nthreads = *PLACES + 9;
        let all = Barrier::new(nthreads);
        let count = || {
            all.wait();
            let things = THINGS.load(Ordering::Relaxed);
            all.wait();
            things
        };
        let use_thrice = || {
            let mut loan = Loan::of(&SHELF);
            [(); 3].map(|()| {
                loan.get().unwrap();
                let in_use = count();
                loan.end();
                (in_use, count())
            })
        };
        let counts: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..nthreads).map(|_| scope.spawn(use_thrice)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(counts.iter().all(|counts| *counts == [(nthreads, *PLACES); 3]));
        SHELF.clear();
        assert_eq!(THINGS.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn loans_one_after_the_other_are_of_the_same_thing() {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        static SHELF: Shelf<usize> = Shelf::new(|| MADE.fetch_add(1, Ordering::Relaxed));
        for _ in 0..2 * MOST {
            let mut loan = Loan::of(&SHELF);
            assert_eq!(loan.get(), Ok(&mut 0));
            loan.end();
        }
        SHELF.clear();
    }
}
