//! A peer's regions as this rank knows them that reaches the peer by a wire: key -> what it takes
//! to check an access here. Nothing of the peer is mapped, so what is not known is asked for: the
//! first use of a key is a question to its owner, and its answer holds until the region has ended.
//!
//! Nobody tells when a region ends. An operation that its owner has refused makes the key unknown
//! again, and the next use asks once more; a region that is learned where another one was known, at
//! the same index, shows that the other has ended. So there are no more entries than indices.

use crate::transport::address::Key;
use std::collections::{HashMap, HashSet, VecDeque};

/// Keys of regions that have ended, as their owner has said, that are remembered.
const ENDED: usize = 64;

/// A region as its owner describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import {
    /// Where it begins for its owner.
    pub base: u64,
    /// Its length in bytes.
    pub length: u64,
    /// What the wire needs to read and write there; None: only its owner does.
    pub wire: Option<[u64; 4]>,
}

/// What a look-up finds.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// It lives, as far as is known.
    Living(Import),
    /// Its owner has said that no living region has this key.
    Ended,
    /// Nothing is known, and a question is under way.
    Asked,
    /// Nothing is known; the caller is to ask.
    Unknown,
}

/// See the head of the file.
#[derive(Default)]
pub struct Imports {
    /// By index: the key of the life that was learned last, and what it is.
    living: HashMap<usize, (u64, Import)>,
    ended: VecDeque<u64>,
    asked: HashSet<u64>,
}

impl Imports {
    /// What is known of a key. After Unknown the next look finds Asked, until answered().
    pub fn look(&mut self, key: u64) -> Found {
        match self.known(key).copied() {
            Some(import) => Found::Living(import),
            _ if self.ended.contains(&key) => Found::Ended,
            _ if self.asked.insert(key) => Found::Unknown,
            _ => Found::Asked,
        }
    }

    /// What a key leads to, as far as is known; nobody is asked.
    pub fn known(&self, key: u64) -> Option<&Import> {
        let (known, import) = self.living.get(&Key(key).index())?;
        (*known == key).then_some(import)
    }

    /// The question for a key was answered: what it leads to, or None where it leads to nothing.
    pub fn answered(&mut self, key: u64, import: Option<Import>) {
        self.asked.remove(&key);
        match import {
            Some(import) => drop(self.living.insert(Key(key).index(), (key, import))),
            None => {
                if self.ended.len() == ENDED {
                    self.ended.pop_front();
                }
                self.ended.push_back(key);
                self.forget(key);
            }
        }
    }

    /// The question for a key has come to nothing, as where its owner has died.
    pub fn unanswered(&mut self, key: u64) {
        self.asked.remove(&key);
    }

    /// The owner has refused an operation that named this key.
    pub fn forget(&mut self, key: u64) {
        let index = Key(key).index();
        if self.living.get(&index).is_some_and(|(known, _)| *known == key) {
            self.living.remove(&index);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const IMPORT: Import = Import { base: 64, length: 100, wire: None };

    #[test]
    fn a_key_is_asked_for_once_and_then_known_until_its_owner_refuses_it() {
        let (mut imports, key) = (Imports::default(), Key::new(3, 1, 7).0);
        assert_eq!(imports.look(key), Found::Unknown);
        assert_eq!(imports.look(key), Found::Asked);
        imports.answered(key, Some(IMPORT));
        assert_eq!(imports.look(key), Found::Living(IMPORT));
        assert_eq!((imports.known(key), imports.known(key + 1)), (Some(&IMPORT), None));
        imports.forget(Key::new(3, 1, 8).0);
        assert_eq!(imports.look(key), Found::Living(IMPORT));
        imports.forget(key);
        assert_eq!(imports.look(key), Found::Unknown);
        imports.unanswered(key);
        assert_eq!(imports.look(key), Found::Unknown);
        imports.answered(key, None);
        assert_eq!(imports.look(key), Found::Ended);
    }

    #[test]
    fn memory_is_bounded_by_the_indices_and_a_stale_key_does_not_displace_a_living_one() {
        let (mut imports, last) = (Imports::default(), Key::new(3, 1, 999).0);
        for life in 1..1000 {
            let key = Key::new(3, 1, life).0;
            assert_eq!(imports.look(key), Found::Unknown);
            imports.answered(key, Some(IMPORT));
        }
        for life in 1..500 {
            let stale = Key::new(3, 1, life).0;
            assert_eq!(imports.look(stale), Found::Unknown);
            imports.answered(stale, None);
            assert_eq!(imports.look(last), Found::Living(IMPORT));
        }
        assert!(imports.living.len() == 1 && imports.ended.len() == ENDED);
        assert!(imports.asked.is_empty());
    }
}
