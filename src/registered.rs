//! What applications register under an id of their own: codecs and filters.

#![forbid(unsafe_code)]

use crate::error::Result;
use crate::fork::Global;
use crate::memory::{boxed, reserve};

/// Entries in the order of their registration. None is ever freed: operations under way refer to them. One that was
/// forgotten takes no more memory when it is registered again.
pub(crate) struct Registered<E: 'static>(Global<Lists<E>>);

struct Lists<E: 'static> {
    known: Vec<(u8, &'static E)>,
    /// What was forgotten, but may be in use.
    forgotten: Vec<(u8, &'static E)>,
}

impl<E> Registered<E> {
    pub(crate) const fn new() -> Registered<E> {
        Registered(Global::new(Lists { known: Vec::new(), forgotten: Vec::new() }))
    }

    /// The first entry of which `is_wanted` holds.
    pub(crate) fn find(&'static self, is_wanted: impl Fn(&E) -> bool) -> Option<&'static E> {
        self.0.lock().known.iter().map(|&(_, entry)| entry).find(|entry| is_wanted(entry))
    }

    /// Registers `entry` under `id`. If that is taken, nothing changes. Tells whether it was free, or `has_same_name`
    /// holds of the known entry and the new one. A forgotten entry may take the place of a new one if `are_alike` holds
    /// of both.
    ///
    /// # Errors
    ///
    /// `MemoryAlloc`.
    pub(crate) fn add(
        &'static self,
        id: u8,
        entry: E,
        has_same_name: impl FnOnce(&E, &E) -> bool,
        are_alike: impl Fn(&E, &E) -> bool,
    ) -> Result<bool> {
        let Lists { known, forgotten } = &mut *self.0.lock();
        if let Some((_, known)) = known.iter().find(|(taken, _)| *taken == id) {
            return Ok(has_same_name(known, &entry));
        }
        // Forgetting must not fail.
        reserve(forgotten, known.len() + 1)?;
        reserve(known, 1)?;
        let known_before = forgotten.iter().position(|(was, old)| *was == id && are_alike(old, &entry));
        known.push(match known_before {
            Some(at) => forgotten.swap_remove(at),
            None => (id, &*Box::leak(boxed(|| entry)?)),
        });
        Ok(true)
    }

    /// Forgets all entries. Operations under way keep theirs.
    pub(crate) fn clear(&'static self) {
        let Lists { known, forgotten } = &mut *self.0.lock();
        forgotten.append(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_until_they_are_forgotten() {
        static WORDS: Registered<&str> = Registered::new();
        let add = |id, word| WORDS.add(id, word, |known, new| known == new, |_, _| false).unwrap();
        assert!(add(1, "one") && add(2, "two"));
        assert!(add(1, "one") && !add(1, "another"));
        assert_eq!(WORDS.find(|word| word.ends_with('e')), Some(&"one"));
        assert_eq!(WORDS.find(|word| word.starts_with('a')), None);
        WORDS.clear();
        assert_eq!(WORDS.find(|_| true), None);
        assert!(add(1, "another"));
    }

    #[test]
    fn what_is_registered_again_and_again_takes_memory_once() {
        static WORDS: Registered<&str> = Registered::new();
        let mut addresses = Vec::new();
        for round in 0..10 {
            let words = if round % 2 == 0 { ["one", "two"] } else { ["two", "one"] };
            for (id, word) in (1..).zip(words) {
                assert_eq!(WORDS.add(id, word, |_, _| false, |old, new| old == new), Ok(true));
                addresses.push(WORDS.find(|found| *found == word).map(std::ptr::from_ref));
            }
            WORDS.clear();
        }
        addresses.sort();
        addresses.dedup();
        // Two words under two numbers each.
        assert_eq!(addresses.len(), 4);
    }
}
