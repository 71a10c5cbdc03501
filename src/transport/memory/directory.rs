//! The directory of a rank's regions, in its control area. Peers look regions up there, and note
//! that they use them; the owner reads these notes when it frees a region.
//!
//! # Which peers may access a freed region
//!
//! ```text
//! owner                              peer
//! 1  key = 0 (`retract`)             a  sets its bit (`add_user`)
//! 2  fence                           b  fence
//! 3  reads the bits (`users`)        c  reads the key again before each access
//! ```
//!
//! Both fences are sequentially consistent, so one comes first. If (2) comes before (b), the peer
//! sees at (c) that the region was freed, and does not access it. If (b) comes before (2), the
//! owner sees the peer's bit at (3). So if the owner finds no bit, no peer accesses the memory any
//! more.

use crate::util::sync::{AtomicU64, Ordering, fence};

/// `kind` of an allocated region, which peers map: the base is an offset in the memory file.
pub const KIND_FILE: u64 = 1;
/// `kind` of registered memory: the base is an address in the owner's process.
pub const KIND_ADDRESS: u64 = 2;

/// The entry of one region. Only the owner writes it, except `users`.
#[repr(C, align(64))]
pub struct DirectoryEntry {
    /// The region's key while the region lives, else 0. The owner writes it last and clears it
    /// first.
    key: AtomicU64,
    /// One of the kinds above.
    kind: AtomicU64,
    /// The region's begin, see the kinds.
    base: AtomicU64,
    /// Its length in bytes.
    length: AtomicU64,
    /// A bit for each peer that has looked the region up, by its rank modulo 256.
    users: [AtomicU64; 4],
}

/// The peers that have looked a region up: bit n stands for all ranks that are n modulo 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Users([u64; 4]);

impl Users {
    /// The numbers of the bits that are set.
    pub fn bits(self) -> impl Iterator<Item = u32> {
        (0..Users::BITS).filter(move |bit| self.0[*bit as usize / 64] & 1 << (bit % 64) != 0)
    }

    /// Number of bits.
    pub const BITS: u32 = 256;
}

impl DirectoryEntry {
    /// Enters a region. Called by the owner while the entry is empty.
    pub fn publish(&self, key: u64, kind: u64, base: u64, length: u64) {
        // A reader that sees one of the new words must not find the old key at its second load;
        // pairs with the fence in snapshot().
        fence(Ordering::Release);
        self.kind.store(kind, Ordering::Relaxed);
        self.base.store(base, Ordering::Relaxed);
        self.length.store(length, Ordering::Relaxed);
        self.users.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        // Release: pairs with the Acquire in snapshot().
        self.key.store(key, Ordering::Release);
    }

    /// Empties the entry: from now on no rank finds the region.
    pub fn retract(&self) {
        self.key.store(0, Ordering::Release);
    }

    /// A consistent copy of kind, base and length; None: the entry does not hold `key`.
    pub fn snapshot(&self, key: u64) -> Option<(u64, u64, u64)> {
        // Acquire: pairs with the Release in publish().
        let before = self.key.load(Ordering::Acquire);
        let kind = self.kind.load(Ordering::Relaxed);
        let base = self.base.load(Ordering::Relaxed);
        let length = self.length.load(Ordering::Relaxed);
        // Keeps the second load of the key behind the other loads; pairs with the fence in
        // publish().
        fence(Ordering::Acquire);
        let after = self.key.load(Ordering::Relaxed);
        (key != 0 && before == key && after == key).then_some((kind, base, length))
    }

    /// Notes that a peer is about to use the region. The peer calls it before its first access.
    pub fn add_user(&self, peer: u32) {
        let (word, bit) = (&self.users[peer as usize / 64 % 4], 1 << (peer % 64));
        if word.load(Ordering::Relaxed) & bit == 0 {
            // Before the first access, so that a thread that learns of the peer's death also sees
            // the bit.
            word.fetch_or(bit, Ordering::SeqCst);
        }
        // Also if another rank has set the bit: the load of the key before each access comes after
        // this fence. Pairs with the fence in users().
        fence(Ordering::SeqCst);
    }

    /// The peers that may still access the region after retract(). No other peer accesses it any
    /// more.
    pub fn users(&self) -> Users {
        // Pairs with the fence in add_user(): a peer whose bit is not seen here sees that the key
        // is gone.
        fence(Ordering::SeqCst);
        Users(std::array::from_fn(|at| self.users[at].load(Ordering::SeqCst)))
    }

    /// Whether this peer, or one with the same bit, has called add_user() since publish().
    pub fn is_used_by(&self, peer: u32) -> bool {
        self.users[peer as usize / 64 % 4].load(Ordering::SeqCst) & 1 << (peer % 64) != 0
    }

    /// The word that holds the region's key while the region lives.
    pub fn live(&self) -> *mut std::sync::atomic::AtomicU64 {
        (&raw const self.key).cast_mut().cast()
    }

    /// Stores to the entry's page without changing it.
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

    /// The owner gives the entry of a region to another one while a peer looks up one of the two.
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

    /// The owner frees a region, and uses the memory again if it finds no users, while a peer looks
    /// the region up and stores there.
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
                    // SAFETY: loom reports another thread that accesses the cell at the same time.
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
