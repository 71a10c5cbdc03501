//! Memory of a rank that peers find by a name on which both have agreed without a word, such as the
//! number of a team: a table in the control area, which its owner writes and every peer reads.
//!
//! A name is given to one place only, ever: whoever finds it twice around the place has read the place.

use crate::transport::address::Address;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Entries of the table.
pub const NAMES: usize = 1024;
/// An entry lies at most so far behind the one that its name points at.
const WINDOW: usize = 32;

/// A name and the place that has it.
#[repr(C, align(32))]
pub struct NamedPlace {
    /// 0: free; 1: being filled in. Written last, cleared first.
    name: AtomicU64,
    key: AtomicU64,
    offset: AtomicU64,
}

const FREE: u64 = 0;
const FILLING: u64 = 1;

/// The table of one rank.
pub struct Names<'a>(pub &'a [NamedPlace]);

impl Names<'_> {
    fn window(&self, name: u64) -> impl Iterator<Item = &NamedPlace> {
        let first = name as usize;
        (0..WINDOW.min(self.0.len())).map(move |at| &self.0[first.wrapping_add(at) % self.0.len()])
    }

    /// Gives a place of the caller's own memory a name that is neither 0 nor 1. False: the table is too full.
    pub fn announce(&self, name: u64, place: Address) -> bool {
        let free = self.window(name).find(|entry| {
            // Relaxed: threads of the owner only take turns here; nothing is read that another wrote.
            let (taken, no) = (Ordering::Relaxed, Ordering::Relaxed);
            entry.name.compare_exchange(FREE, FILLING, taken, no).is_ok()
        });
        let Some(entry) = free else { return false };
        // A reader that sees one of the new words must not see the entry's last name a second time;
        // pairs with the fence in find().
        fence(Ordering::Release);
        entry.key.store(place.key, Ordering::Relaxed);
        entry.offset.store(place.offset, Ordering::Relaxed);
        // Release: who sees the name sees the place; pairs with the Acquire in find().
        entry.name.store(name, Ordering::Release);
        true
    }

    /// The name means nothing any more.
    pub fn withdraw(&self, name: u64) {
        if let Some(entry) =
            self.window(name).find(|entry| entry.name.load(Ordering::Relaxed) == name)
        {
            entry.name.store(FREE, Ordering::Release);
        }
    }

    /// The place that has this name.
    pub fn find(&self, name: u64) -> Option<Address> {
        self.window(name).find_map(|entry| {
            // Acquire: pairs with the Release in announce().
            if entry.name.load(Ordering::Acquire) != name {
                return None;
            }
            let key = entry.key.load(Ordering::Relaxed);
            let offset = entry.offset.load(Ordering::Relaxed);
            // Keeps the second look at the name behind the loads; pairs with the fence in announce().
            fence(Ordering::Acquire);
            (entry.name.load(Ordering::Relaxed) == name).then_some(Address { offset, key })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(size: usize) -> Vec<NamedPlace> {
        let empty = || NamedPlace {
            name: AtomicU64::new(FREE),
            key: AtomicU64::new(0),
            offset: AtomicU64::new(0),
        };
        (0..size).map(|_| empty()).collect()
    }

    #[test]
    fn names_that_point_at_one_entry_are_told_apart_until_the_window_is_full() {
        let entries = table(NAMES);
        let names = Names(&entries);
        let nth = |n: u64| (n + 1) * NAMES as u64 + 7;
        let place = |n: u64| Address { offset: 10 * n, key: n + 1 };
        assert_eq!(names.find(nth(0)), None);
        for n in 0..WINDOW as u64 {
            assert!(names.announce(nth(n), place(n)));
        }
        assert!(!names.announce(nth(99), place(99)));
        for n in 0..WINDOW as u64 {
            assert_eq!(names.find(nth(n)), Some(place(n)));
        }
        names.withdraw(nth(3));
        assert_eq!(names.find(nth(3)), None);
        assert_eq!(names.find(nth(4)), Some(place(4)));
        assert!(names.announce(nth(99), place(99)));
        assert_eq!(names.find(nth(99)), Some(place(99)));
    }

    #[test]
    fn the_window_of_the_last_entry_begins_anew_at_the_first() {
        let entries = table(NAMES);
        let names = Names(&entries);
        let (one, two) = (2 * NAMES as u64 - 1, 3 * NAMES as u64 - 1);
        assert!(names.announce(one, Address { offset: 1, key: 1 }));
        assert!(names.announce(two, Address { offset: 2, key: 2 }));
        assert_eq!(names.find(two), Some(Address { offset: 2, key: 2 }));
    }
}
