//! What applications register under an id of their own: codecs and filters.

use crate::fork::Global;

/// Entries in the order of their registration. None is ever freed: operations under way refer to them.
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

    /// Registers `entry` under `id`. If that is taken, nothing changes. Tells whether it was free, or `is_same` holds of the
    /// known entry and the new one.
    pub(crate) fn add(&'static self, id: u8, entry: E, is_same: impl FnOnce(&E, &E) -> bool) -> bool {
        let known = &mut self.0.lock().known;
        match known.iter().find(|(taken, _)| *taken == id) {
            Some((_, known)) => is_same(known, &entry),
            None => {
                known.push((id, Box::leak(Box::new(entry))));
                true
            }
        }
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
        let same = |known: &&str, new: &&str| known == new;
        assert!(WORDS.add(1, "one", same) && WORDS.add(2, "two", same));
        assert!(WORDS.add(1, "one", same) && !WORDS.add(1, "another", same));
        assert_eq!(WORDS.find(|word| word.ends_with('e')), Some(&"one"));
        assert_eq!(WORDS.find(|word| word.starts_with('a')), None);
        WORDS.clear();
        assert_eq!(WORDS.find(|_| true), None);
        assert!(WORDS.add(1, "another", same));
    }
}
