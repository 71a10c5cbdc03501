//! The directory of a rank's regions, which lies in its control area: how peers find a region, and
//! how the owner knows which peers have.
//!
//! # Who may touch a region that has ended
//!
//! ```text
//! owner                              peer
//! 1  key = 0 (`retract`)             a  sets its bit (`add_user`)
//! 2  fence                           b  fence
//! 3  reads the bits (`users`)        c  looks whether the key still stands, before each access
//! ```
//!
//! The fences stand in one order for all. (2) before (b): the peer sees at (c) that the life has
//! ended, and touches nothing. (b) before (2): the owner sees the bit at (3). So memory that the
//! owner finds without users is touched by nobody any more.

use crate::util::sync::{AtomicU64, Ordering, fence};

/// `kind` of a region that peers can map: the base is an offset in the memory file.
pub const KIND_FILE: u64 = 1;
/// `kind` of memory that the owner registered in place: the base is an address in its process.
pub const KIND_ADDRESS: u64 = 2;

/// What peers read of one region. Written by the owner only, but for `users`.
#[repr(C, align(64))]
pub struct DirectoryEntry {
    /// The region's key while it lives; 0 before and after. Written last, cleared first.
    key: AtomicU64,
    /// One of the kinds above.
    kind: AtomicU64,
    /// Where the region begins.
    base: AtomicU64,
    /// Its length in bytes.
    length: AtomicU64,
    /// A bit for each peer that has looked the region up, by its rank modulo 256.
    users: [AtomicU64; 4],
}

/// The peers that have looked a region up, as bits: each by its rank modulo 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Users([u64; 4]);

impl Users {
    /// The bits that are set.
    pub fn bits(self) -> impl Iterator<Item = u32> {
        (0..Users::BITS).filter(move |bit| self.0[*bit as usize / 64] & 1 << (bit % 64) != 0)
    }

    /// How many bits there are.
    pub const BITS: u32 = 256;
}

impl DirectoryEntry {
    /// A region's life begins. The owner's, where no region is.
    pub fn publish(&self, key: u64, kind: u64, base: u64, length: u64) {
        // A reader that sees one of the new words must not see the old key a second time; pairs
        // with the fence in snapshot().
        fence(Ordering::Release);
        self.kind.store(kind, Ordering::Relaxed);
        self.base.store(base, Ordering::Relaxed);
        self.length.store(length, Ordering::Relaxed);
        self.users.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        // Release: pairs with the Acquire in snapshot().
        self.key.store(key, Ordering::Release);
    }

    /// The region's life ends in the eyes of everybody.
    pub fn retract(&self) {
        self.key.store(0, Ordering::Release);
    }

    /// Kind, base and length as they were at one moment; None: the entry does not hold `key`.
    pub fn snapshot(&self, key: u64) -> Option<(u64, u64, u64)> {
        // Acquire: pairs with the Release in publish().
        let before = self.key.load(Ordering::Acquire);
        let kind = self.kind.load(Ordering::Relaxed);
        let base = self.base.load(Ordering::Relaxed);
        let length = self.length.load(Ordering::Relaxed);
        // Keeps the second look at the key behind the other loads; pairs with the fence in
        // publish().
        fence(Ordering::Acquire);
        let after = self.key.load(Ordering::Relaxed);
        (key != 0 && before == key && after == key).then_some((kind, base, length))
    }

    /// A peer is about to use the region: a thread that waits for a word in it counts on that peer.
    pub fn add_user(&self, peer: u32) {
        let (word, bit) = (&self.users[peer as usize / 64 % 4], 1 << (peer % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            // Before the first access; a thread that sees the peer dead sees this, which came from
            // it.
            word.fetch_or(bit, Ordering::SeqCst);
        }
        // Whoever set the bit: the look at the key that precedes each access comes after it. Pairs
        // with the fence in users().
        fence(Ordering::SeqCst);
    }

    /// Who may have looked the region up whose life retract() has ended: after this nobody else
    /// touches it.
    pub fn users(&self) -> Users {
        // Pairs with the fence in add_user(): a peer that is not seen here sees that the life has
        // ended.
        fence(Ordering::SeqCst);
        Users(std::array::from_fn(|at| self.users[at].load(Ordering::SeqCst)))
    }

    /// Whether this peer, or one of the same bit, has called add_user() in the region's present
    /// life.
    pub fn is_used_by(&self, peer: u32) -> bool {
        self.users[peer as usize / 64 % 4].load(Ordering::SeqCst) & 1 << (peer % 64) != 0
    }

    /// The word that holds the region's key while it lives.
    pub fn live(&self) -> *mut std::sync::atomic::AtomicU64 {
        (&raw const self.key).cast_mut().cast()
    }

    /// Writes to the entry's page, and changes nothing.
    pub fn touch(&self) {
        self.kind.fetch_or(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    fn entry() -> DirectoryEntry {
        let word = || AtomicU64::new(0);
        let users = std::array::from_fn(|_| word());
        DirectoryEntry { key: word(), kind: word(), base: word(), length: word(), users }
    }

    /// The place of a region is used for another one while a peer looks up one of the two.
    fn looks_up(key: u64, expected: (u64, u64, u64)) {
        let mut bounded = loom::model::Builder::new();
        bounded.preemption_bound = Some(2);
        bounded.check(move || {
            let entry = Arc::new(entry());
            entry.publish(7, 1, 70, 700);
            let owner = entry.clone();
            let owner = thread::spawn(move || {
                owner.retract();
                owner.publish(8, 2, 80, 800);
            });
            assert!(entry.snapshot(key).is_none_or(|seen| seen == expected));
            owner.join().unwrap();
        });
    }

    #[test]
    fn loom_a_snapshot_of_a_life_that_ends_has_nothing_of_the_next() {
        looks_up(7, (1, 70, 700));
    }

    #[test]
    fn loom_a_snapshot_of_a_life_that_begins_is_whole() {
        looks_up(8, (2, 80, 800));
    }

    /// The owner uses memory again that it finds without users, while a peer looks the region up
    /// and stores there.
    #[test]
    fn loom_memory_without_users_is_touched_by_nobody() {
        loom::model(|| {
            let shared = Arc::new((entry(), UnsafeCell::new(0_u64)));
            shared.0.publish(7, 1, 70, 700);
            let peer = shared.clone();
            let peer = thread::spawn(move || {
                let (entry, memory) = &*peer;
                entry.add_user(1);
                if entry.key.load(Ordering::Relaxed) == 7 {
                    // SAFETY: loom reports whoever else is there at the same time.
                    memory.with_mut(|memory| unsafe { *memory = 1 });
                }
            });
            let (entry, memory) = &*shared;
            entry.retract();
            let users = entry.users();
            if users == Users::default() {
                // SAFETY: as above.
                memory.with_mut(|memory| unsafe { *memory = 2 });
            } else {
                assert!(users.bits().eq([1]) && entry.is_used_by(1));
            }
            peer.join().unwrap();
        });
    }
}
