//! A cache of the regions of a peer behind a wire: from a region's key to what this rank needs in
//! order to check and post an access. At the first use of a key this rank asks the owner of the
//! region.
//!
//! The owner does not tell when it frees a region. When the owner refuses an operation because of
//! its key, this rank forgets the key, and the next use asks again. The cache has one entry for
//! each index of the owner's directory: a new region at an index replaces the old one, which must
//! have been freed. So the owner's number of indices bounds the cache.

use crate::transport::address::Key;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many keys of freed regions a rank remembers, so that it does not ask for them again.
const ENDED: usize = 64;

/// A region as its owner describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import {
    /// Added to an offset it gives the address for the wire or the owner: the region's address in
    /// the owner's process if `wire` is there, else what the owner's directory has as its base.
    pub base: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The remote key; None: the wire does not reach the region, only its owner does.
    pub wire: Option<[u64; 4]>,
}

/// The result of a look-up.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// The region lives, as far as this rank knows.
    Living(Import),
    /// The owner has answered that no living region has this key.
    Ended,
    /// The key is unknown, and a question to the owner is pending.
    Asked,
    /// The key is unknown; the caller must ask the owner.
    Unknown,
}

/// The regions of one peer.
#[derive(Default)]
pub struct Imports {
    /// By index: the key that was learned last, and its region.
    living: BTreeMap<usize, (u64, Import)>,
    /// The last `ENDED` keys that the owner has called freed.
    ended: VecDeque<u64>,
    /// Keys for which a question is pending.
    asked: BTreeSet<u64>,
}

impl Imports {
    /// Looks a key up. After Unknown, further look-ups find Asked until answered() or unanswered().
    pub fn look(&mut self, key: u64) -> Found {
        match self.known(key).copied() {
            Some(import) => Found::Living(import),
            _ if self.ended.contains(&key) => Found::Ended,
            _ if self.asked.insert(key) => Found::Unknown,
            _ => Found::Asked,
        }
    }

    /// The region of a key, if this rank knows it; asks nobody.
    pub fn known(&self, key: u64) -> Option<&Import> {
        let (known, import) = self.living.get(&Key(key).index())?;
        (*known == key).then_some(import)
    }

    /// Notes the owner's answer for a key; None: no living region has it.
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

    /// Notes that a question ended without an answer, for example since the owner died.
    pub fn unanswered(&mut self, key: u64) {
        self.asked.remove(&key);
    }

    /// Removes a key: the owner has refused an operation because of it.
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
