//! A table of named places in a rank's memory, in its control area: the owner writes it, and peers
//! look places up by names that both sides compute, such as a number from that of a team.
//!
//! No two places ever have the same name. So a reader that finds the name both before and after it
//! has read an entry's place has read the place of this name.
//!
//! Behind the table lie entries for refusals: names for which the owner has no place, perhaps
//! because the table is full. Every peer that looks for such a name increments a counter in the
//! entry once, so the owner knows when no further peer will look for the name.

use crate::transport::address::Address;
use crate::util::sync::{AtomicU64, Ordering, fence};

/// Entries of the table.
pub const NAMES: usize = 1024;
/// Entries for refusals: so many threads of the owner can refuse names at the same time without
/// waiting for each other.
pub const REFUSALS: usize = 32;
/// A name modulo the size of the table is the first entry of its window; the name stands in one of
/// the window's entries.
const WINDOW: usize = 32;

/// An entry: a name and its place.
#[repr(C, align(32))]
pub struct NamedPlace {
    /// The name; 0: the entry is free; 1: a thread fills it in. Written last, cleared first.
    name: AtomicU64,
    key: AtomicU64,
    /// For a refusal: number of peers that have seen it.
    offset: AtomicU64,
}

const FREE: u64 = 0;
const FILLING: u64 = 1;

/// The table of one rank, and its refusals.
pub struct Names<'a> {
    /// Names with places.
    pub places: &'a [NamedPlace],
    /// Refused names.
    pub refusals: &'a [NamedPlace],
}

impl Names<'_> {
    fn window(&self, name: u64) -> impl Iterator<Item = &NamedPlace> {
        let (first, places) = (name as usize, self.places);
        (0..WINDOW.min(places.len())).map(move |at| &places[first.wrapping_add(at) % places.len()])
    }

    /// Fills a free one of these entries. False: none is free.
    fn fill<'b>(
        mut entries: impl Iterator<Item = &'b NamedPlace>,
        name: u64,
        place: Address,
    ) -> bool {
        let free = entries.find(|entry| {
            // Relaxed: it only excludes other threads of the owner; this thread reads nothing that
            // they have written.
            let (taken, no) = (Ordering::Relaxed, Ordering::Relaxed);
            entry.name.compare_exchange(FREE, FILLING, taken, no).is_ok()
        });
        let Some(entry) = free else { return false };
        // A reader that sees one of the new words must not find the entry's old name at its second
        // load; pairs with the fence in find().
        fence(Ordering::Release);
        entry.key.store(place.key, Ordering::Relaxed);
        entry.offset.store(place.offset, Ordering::Relaxed);
        // Release: a thread that sees the name sees the place; pairs with the Acquire in find().
        entry.name.store(name, Ordering::Release);
        true
    }

    /// Publishes a place in the caller's own memory under a name, which is neither 0 nor 1. False:
    /// the name's window is full.
    pub fn announce(&self, name: u64, place: Address) -> bool {
        Names::fill(self.window(name), name, place)
    }

    /// Publishes that a name will have no place. False: all entries for refusals are in use, try
    /// again.
    pub fn refuse(&self, name: u64) -> bool {
        Names::fill(self.refusals.iter(), name, Address { offset: 0, key: 0 })
    }

    fn refusal(&self, name: u64) -> Option<&NamedPlace> {
        // Acquire: pairs with the Release in fill().
        self.refusals.iter().find(|entry| entry.name.load(Ordering::Acquire) == name)
    }

    /// Whether the owner refuses a name. If so, counts the peer; so a peer does not ask again after
    /// true. The owner keeps the refusal until all peers have seen it.
    pub fn see_refusal(&self, name: u64) -> bool {
        let found = self.refusal(name);
        // Release: the owner reuses the entry after it has seen the last increment; pairs with the
        // Acquire in refusals_seen().
        found.map(|entry| entry.offset.fetch_add(1, Ordering::Release)).is_some()
    }

    /// Number of peers that have seen the refusal of a name.
    pub fn refusals_seen(&self, name: u64) -> u64 {
        self.refusal(name).map_or(0, |entry| entry.offset.load(Ordering::Acquire))
    }

    /// Removes a name with its place or refusal.
    pub fn withdraw(&self, name: u64) {
        let mut entries = self.window(name).chain(self.refusals);
        if let Some(entry) = entries.find(|entry| entry.name.load(Ordering::Relaxed) == name) {
            entry.name.store(FREE, Ordering::Release);
        }
    }

    /// The place of a name.
    pub fn find(&self, name: u64) -> Option<Address> {
        self.window(name).find_map(|entry| {
            // Acquire: pairs with the Release in fill().
            if entry.name.load(Ordering::Acquire) != name {
                return None;
            }
            let key = entry.key.load(Ordering::Relaxed);
            let offset = entry.offset.load(Ordering::Relaxed);
            // Keeps the second load of the name behind the other loads; pairs with the fence in
            // fill().
            fence(Ordering::Acquire);
            (entry.name.load(Ordering::Relaxed) == name).then_some(Address { offset, key })
        })
    }
}

#[cfg(test)]
fn table(size: usize) -> Vec<NamedPlace> {
    let word = || AtomicU64::new(FREE);
    (0..size).map(|_| NamedPlace { name: word(), key: word(), offset: word() }).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn names_that_point_at_one_entry_are_told_apart_until_the_window_is_full() {
        let entries = table(NAMES);
        let refusals = table(2);
        let names = Names { places: &entries, refusals: &refusals };
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
        let refusals = table(2);
        let names = Names { places: &entries, refusals: &refusals };
        let (one, two) = (2 * NAMES as u64 - 1, 3 * NAMES as u64 - 1);
        assert!(names.announce(one, Address { offset: 1, key: 1 }));
        assert!(names.announce(two, Address { offset: 2, key: 2 }));
        assert_eq!(names.find(two), Some(Address { offset: 2, key: 2 }));
    }
    #[test]
    fn a_full_table_can_refuse_and_knows_who_has_heard() {
        let (entries, refusals) = (table(1), table(2));
        let names = Names { places: &entries, refusals: &refusals };
        assert!(names.announce(5, Address { offset: 1, key: 1 }));
        assert!(!names.announce(6, Address { offset: 1, key: 1 }));
        assert!(names.refuse(6) && names.refuse(7) && !names.refuse(8));
        assert!(names.find(6).is_none() && !names.see_refusal(5) && !names.see_refusal(8));
        assert!(names.see_refusal(7) && names.see_refusal(7) && names.see_refusal(6));
        assert_eq!((names.refusals_seen(6), names.refusals_seen(7)), (1, 2));
        names.withdraw(7);
        assert!(!names.see_refusal(7) && names.refuse(8));
        assert_eq!(
            (names.refusals_seen(6), names.refusals_seen(7), names.refusals_seen(8)),
            (1, 0, 0)
        );
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    fn place(number: u64) -> Address {
        Address { offset: number, key: number }
    }

    /// The owner gives the entry of a name to another name while a peer looks both names up.
    #[test]
    fn loom_a_name_leads_to_its_own_place() {
        loom::model(|| {
            let entries = Arc::new((table(1), table(1)));
            let own = entries.clone();
            Names { places: &own.0, refusals: &own.1 }.announce(5, place(50));
            let owner = thread::spawn(move || {
                let names = Names { places: &own.0, refusals: &own.1 };
                names.withdraw(5);
                assert!(names.announce(6, place(60)));
            });
            let names = Names { places: &entries.0, refusals: &entries.1 };
            for (name, at) in [(5, 50), (6, 60)] {
                assert!(names.find(name).is_none_or(|found| found == place(at)));
            }
            owner.join().unwrap();
            assert_eq!((names.find(5), names.find(6)), (None, Some(place(60))));
        });
    }

    /// When the owner counts a peer that has seen a refusal, it sees what the peer did before.
    #[test]
    fn loom_who_is_counted_has_been_told() {
        loom::model(|| {
            let shared = Arc::new((table(1), table(1), UnsafeCell::new(0)));
            Names { places: &shared.0, refusals: &shared.1 }.refuse(7);
            let peer = shared.clone();
            let peer = thread::spawn(move || {
                // SAFETY: loom reports another thread that accesses the cell at the same time.
                peer.2.with_mut(|done| unsafe { *done = 1 });
                assert!(Names { places: &peer.0, refusals: &peer.1 }.see_refusal(7));
            });
            let names = Names { places: &shared.0, refusals: &shared.1 };
            if names.refusals_seen(7) == 1 {
                // SAFETY: as above.
                shared.2.with(|done| assert_eq!(unsafe { *done }, 1));
            }
            peer.join().unwrap();
            assert_eq!(names.refusals_seen(7), 1);
            names.withdraw(7);
            assert!(!names.see_refusal(7) && names.refuse(8));
        });
    }
}
