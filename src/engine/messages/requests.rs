//! Messages of this rank that wait for a reply or whose end fires a completion. Each has an entry.
//! The entry's tag travels with the message and comes back with the reply. The share of replies has
//! as many slots as this table has entries, so each message with an entry has a slot for its reply,
//! or waits for one while replies are set aside.
//!
//! A message ends by its reply, by the death of its receiver, or by cancellation. The thread that
//! ends it first takes the entry by one compare-and-swap on the generation, which changes with each
//! use of the entry. So each message ends once.
//!
//! The thread then reports the end: it fires the completions. It frees the entry before, so that a
//! callback can post the next message even if the table is full. The entry notes the generation
//! whose end is reported until the completions have fired, since a flush waits until then. It has
//! one place for that note. So a second message, which ends in the entry while the end of the first
//! one is still reported, keeps the entry until its own completions have fired. A flush waits for
//! the generations that it has found, and not for later ones, so callbacks that always post the
//! next message do not keep it waiting.

use crate::engine::completion::Completion;
use crate::util::pin::thread_number;
use crate::util::sync::{
    AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, UnsafeCell, fence, fence_behind_rmw,
};
use std::sync::PoisonError;

#[cfg(all(test, loom))]
mod models;

/// The actions at the end of a message.
#[derive(Clone, Copy)]
pub struct Waiting {
    /// The receiver of the message.
    pub peer: u32,
    /// The buffer for the reply's bytes; null: they are dropped.
    pub reply: *mut u8,
    /// The size of the buffer.
    pub capacity: usize,
    /// Receives the reply's size; may be null.
    pub reply_size: *mut usize,
    /// Local completion of a BULK payload, which stays in the sender's memory until the end.
    pub on_local: Completion,
    /// Completion of the message.
    pub on_complete: Completion,
}

#[repr(align(128))]
struct Entry {
    /// Upper half: the generation of the tag while a message waits, and with ENDING while its taker
    /// keeps the entry; else 0. Lower half: the generation of a message that has freed the entry
    /// and whose completions have not all fired; 0: none. The entry may be in use again by then.
    state: AtomicU64,
    /// The last generation used. Only the thread that has claimed the entry writes it.
    generation: AtomicU32,
    /// The receiver of the message in the upper half of `state`.
    peer: AtomicU32,
    /// The receiver of the message in the lower half.
    reported_peer: AtomicU32,
    waiting: UnsafeCell<Waiting>,
}

/// See the head of the file.
pub struct Requests {
    /// A bit for each entry, set if it is free.
    free: Box<[AtomicU64]>,
    /// For each word of `free`, the largest number of its entries that were in use at once.
    records: Box<[AtomicU32]>,
    entries: Box<[Entry]>,
    used: AtomicBool,
    /// Entries of messages that ended without a reply, each with the first reply ticket that cannot
    /// be that of the message's reply. Until the tickets before it are consumed or set aside, a
    /// reply to the old message may still take a slot, so the entry must not be used again.
    draining: Mutex<Vec<(u64, usize)>>,
    has_draining: AtomicBool,
}

// SAFETY: only the thread that has claimed an entry uses its cell, then only the one that has taken
// its tag. The pointers in it are to memory of the user, which any thread may use.
unsafe impl Send for Requests {}
// SAFETY: as above.
unsafe impl Sync for Requests {}

const NOBODY: Waiting = Waiting {
    peer: 0,
    reply: std::ptr::null_mut(),
    capacity: 0,
    reply_size: std::ptr::null_mut(),
    on_local: Completion::NOTHING,
    on_complete: Completion::NOTHING,
};

/// The bit of a generation in `state` that says that a thread has taken the tag.
const ENDING: u64 = 1 << 31;

fn index_of(tag: u64) -> usize {
    tag as u32 as usize
}

/// The generation of a tag or of a state.
fn generation_of(word: u64) -> u64 {
    word >> 32
}

/// The generation whose end is reported, after it has freed the entry.
fn reported_of(state: u64) -> u64 {
    u64::from(state as u32)
}

impl Requests {
    /// A table of `capacity` entries, a multiple of 64.
    pub fn new(capacity: usize) -> Requests {
        let entry = |_| Entry {
            state: AtomicU64::new(0),
            generation: AtomicU32::new(0),
            peer: AtomicU32::new(0),
            reported_peer: AtomicU32::new(0),
            waiting: UnsafeCell::new(NOBODY),
        };
        Requests {
            free: (0..capacity / 64).map(|_| AtomicU64::new(u64::MAX)).collect(),
            records: (0..capacity / 64).map(|_| AtomicU32::new(0)).collect(),
            entries: (0..capacity).map(entry).collect(),
            used: AtomicBool::new(false),
            draining: Mutex::default(),
            has_draining: AtomicBool::new(false),
        }
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.in_use() == 0
    }

    fn in_use(&self) -> u64 {
        // Acquire: pairs with vacate().
        let free = self.free.iter().map(|word| word.load(Ordering::Acquire).count_ones());
        self.entries.len() as u64 - u64::from(free.sum::<u32>())
    }

    /// Whether a message ever had an entry.
    pub fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Makes is_used() true. Returns whether it was false before.
    pub fn begin_use(&self) -> bool {
        !self.is_used() && !self.used.swap(true, Ordering::SeqCst)
    }

    /// The number of entries in use, if word `word` of `free` has never had so many in use, else 0.
    /// `bit` is the entry just claimed, the lowest free one of the word. Counting all words for
    /// each message would take longer than the rest of insert().
    #[inline(always)]
    fn record(&self, word: usize, bit: u64) -> u64 {
        let most = &self.records[word];
        if (bit as u32) < most.load(Ordering::Relaxed) {
            return 0;
        }
        most.store(bit as u32 + 1, Ordering::Relaxed);
        self.in_use().max(bit + 1)
    }

    /// Makes an entry and returns its tag, and the number of entries in use if that may be a new
    /// maximum, else 0. None: all entries are in use.
    ///
    /// # Safety
    /// The completions are valid, and the user keeps what they name and the places for the reply
    /// until `on_complete` has fired.
    pub unsafe fn insert(&self, waiting: Waiting) -> Option<(u64, u64)> {
        let first = thread_number().unwrap_or(0);
        let index = (0..self.free.len()).find_map(|step| {
            let at = (first + step) % self.free.len();
            claim_bit(&self.free[at]).map(|bit| at * 64 + bit)
        })?;
        let entry = &self.entries[index];
        // SAFETY: this thread has claimed the entry.
        entry.waiting.with_mut(|place| unsafe { place.write(waiting) });
        // Release: a thread in tags() that sees this peer sees that the state has changed.
        entry.peer.store(waiting.peer, Ordering::Release);
        let next = u64::from(entry.generation.load(Ordering::Relaxed) + 1) % ENDING;
        let generation = next.max(1);
        entry.generation.store(generation as u32, Ordering::Relaxed);
        let tag = generation << 32 | index as u64;
        // Release: publishes the entry; pairs with take(). An addition, because the lower half may
        // be that of an earlier message.
        entry.state.fetch_add(generation << 32, Ordering::Release);
        // Fence between the store above and the caller's check whether the peer is dead; pairs with
        // tags().
        fence_behind_rmw();
        Some((tag, self.record(index / 64, index as u64 % 64)))
    }

    /// Whether the message of a tag has not ended, or its completions have not fired.
    pub fn waits(&self, tag: u64) -> bool {
        let Some(entry) = self.entries.get(index_of(tag)) else { return false };
        // Acquire: pairs with finish(). A thread that sees the end sees what the reply and the
        // completions have written.
        let (state, generation) = (entry.state.load(Ordering::Acquire), generation_of(tag));
        generation_of(state) & !ENDING == generation || reported_of(state) == generation
    }

    /// Takes an entry to end its message. The caller then calls finish(). None: another thread has
    /// taken it.
    pub fn take(&self, tag: u64) -> Option<Waiting> {
        // A tag that comes from a peer may have any bits.
        let is_real = |generation: u64| generation != 0 && generation & ENDING == 0;
        let entry = self.entries.get(index_of(tag)).filter(|_| is_real(generation_of(tag)))?;
        let mut state = entry.state.load(Ordering::Relaxed);
        loop {
            if generation_of(state) != generation_of(tag) {
                return None;
            }
            let taken = state | ENDING << 32;
            // Acquire: pairs with insert().
            match entry.state.compare_exchange(state, taken, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        // SAFETY: only this thread has taken the tag, and the entry is not free.
        Some(entry.waiting.with(|place| unsafe { *place }))
    }

    /// Frees a taken entry and calls `fire`, which fires the completions; see the head of the file
    /// for the order. `until`: None if the message's reply was consumed, or the message gets none.
    /// Else the reply may still come, and the entry is free when consumed() is called with this
    /// ticket or a later one.
    pub fn finish(&self, tag: u64, until: Option<u64>, fire: impl FnOnce()) {
        let Some(entry) = self.entries.get(index_of(tag)) else { return };
        let generation = generation_of(tag);
        // Acquire: pairs with the end of the earlier report, below.
        let early = reported_of(entry.state.load(Ordering::Acquire)) == 0;
        if early {
            // Release: as the peer in insert().
            entry.reported_peer.store(entry.peer.load(Ordering::Relaxed), Ordering::Release);
            // Release: publishes the peer. No other thread changes the state: the tag is taken, and
            // no earlier message is being reported.
            entry.state.store(generation, Ordering::Release);
            self.free(tag, until);
        }
        fire();
        // Release: pairs with waits(). The subtraction leaves the other half as it is.
        match early {
            true => _ = entry.state.fetch_sub(generation, Ordering::Release),
            false => {
                entry.state.fetch_sub((generation | ENDING) << 32, Ordering::Release);
                self.free(tag, until);
            }
        }
    }

    fn free(&self, tag: u64, until: Option<u64>) {
        match until {
            None => self.vacate(index_of(tag)),
            Some(until) => {
                let mut draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
                draining.push((until, index_of(tag)));
                self.has_draining.store(true, Ordering::Relaxed);
            }
        }
    }

    fn vacate(&self, index: usize) {
        // Release: pairs with claim_bit() and in_use().
        self.free[index / 64].fetch_or(1 << (index % 64), Ordering::Release);
    }

    /// Whether consumed() may free entries.
    #[inline(always)]
    pub fn is_draining(&self) -> bool {
        self.has_draining.load(Ordering::Relaxed)
    }

    /// All replies before the ticket `next` were consumed.
    #[inline]
    pub fn consumed(&self, next: u64) {
        if self.is_draining() {
            self.end_draining(next);
        }
    }

    #[cold]
    fn end_draining(&self, next: u64) {
        let mut draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        draining.retain(|(until, index)| {
            let over = next.wrapping_sub(*until) as i64 >= 0;
            if over {
                self.vacate(*index);
            }
            !over
        });
        self.has_draining.store(!draining.is_empty(), Ordering::Relaxed);
    }

    /// The tags of all messages to peers that `fits` that wait, or whose completions have not all
    /// fired.
    pub fn tags(&self, fits: impl Fn(u32) -> bool) -> Vec<u64> {
        // Fence between the store that marks a peer dead, which `fits` may check, and the loads of
        // the entries; pairs with insert().
        fence(Ordering::SeqCst);
        let found = self.entries.iter().enumerate().flat_map(|(index, entry)| {
            let both = entry.generations().map(|(generation, peer)| {
                (generation != 0 && fits(peer)).then_some(generation << 32 | index as u64)
            });
            both.into_iter().flatten()
        });
        found.collect()
    }
}

impl Entry {
    /// The generations of the message that waits and of the one whose end is reported, each with
    /// its receiver; 0: there is none.
    fn generations(&self) -> [(u64, u32); 2] {
        loop {
            // Acquire: pairs with insert() and finish(), so the peers are those of these
            // generations, or of later ones.
            let state = self.state.load(Ordering::Acquire);
            let waits = (generation_of(state) & !ENDING, self.peer.load(Ordering::Relaxed));
            let reported = (reported_of(state), self.reported_peer.load(Ordering::Relaxed));
            // The peer of a later generation comes with the change of the state before it.
            fence(Ordering::Acquire);
            if self.state.load(Ordering::Relaxed) == state {
                return [waits, reported];
            }
        }
    }
}

fn claim_bit(word: &AtomicU64) -> Option<usize> {
    let mut seen = word.load(Ordering::Relaxed);
    while seen != 0 {
        let bit = seen.trailing_zeros();
        // Acquire: pairs with vacate().
        match word.compare_exchange_weak(
            seen,
            seen & !(1 << bit),
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => return Some(bit as usize),
            Err(now) => seen = now,
        }
    }
    None
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// An entry of a message to `peer` that names no memory.
    fn insert(pending: &Requests, peer: u32) -> Option<(u64, u64)> {
        // SAFETY: there is nothing to keep.
        unsafe { pending.insert(Waiting { peer, ..NOBODY }) }
    }

    #[test]
    fn an_entry_is_taken_once_and_its_old_tag_finds_nothing() {
        let pending = Requests::new(64);
        let (tag, in_use) = insert(&pending, 3).unwrap();
        assert_eq!((in_use, pending.waits(tag)), (1, true));
        assert_eq!(pending.tags(|peer| peer == 3), [tag]);
        assert_eq!(pending.take(tag).unwrap().peer, 3);
        assert!(pending.take(tag).is_none() && pending.take(0).is_none());
        assert!(pending.waits(tag), "the completion has not fired");
        pending.finish(tag, None, || assert!(pending.waits(tag)));
        assert!(!pending.waits(tag));
        let (again, _) = insert(&pending, 4).unwrap();
        assert_eq!(index_of(again), index_of(tag));
        assert_ne!(again, tag);
        assert!(pending.take(tag).is_none() && !pending.is_empty());
    }

    /// The callback of each message posts the next one, to another peer, and a second thread ends
    /// it before the callback has returned.
    #[test]
    fn a_message_that_ends_beside_a_report_keeps_its_entry_and_each_peer_has_its_own_tags() {
        let pending = Requests::new(64);
        let (first, _) = insert(&pending, 1).unwrap();
        pending.take(first).unwrap();
        pending.finish(first, None, || {
            let (second, _) = insert(&pending, 2).unwrap();
            assert_eq!(index_of(first), index_of(second));
            pending.take(second).unwrap();
            assert_eq!(pending.tags(|peer| peer == 1), [first]);
            assert_eq!(pending.tags(|peer| peer == 2), [second]);
            pending.finish(second, None, || {
                let (third, _) = insert(&pending, 3).unwrap();
                assert_ne!(index_of(third), index_of(second), "the second keeps its entry");
                assert_eq!(pending.tags(|_| true), [second, first, third]);
                pending.take(third).unwrap();
                pending.finish(third, None, || {});
            });
            assert!(pending.waits(first) && !pending.waits(second) && pending.is_empty());
        });
        assert!(!pending.waits(first) && pending.tags(|_| true).is_empty());
    }

    #[test]
    fn a_full_table_refuses_and_a_draining_entry_stays_taken_until_its_ticket_has_passed() {
        let pending = Requests::new(64);
        let tags: Vec<u64> = (0..64).map(|_| insert(&pending, 1).unwrap().0).collect();
        assert!(insert(&pending, 1).is_none());
        pending.take(tags[5]).unwrap();
        // Tickets wrap.
        pending.finish(tags[5], Some(2), || {});
        pending.consumed(u64::MAX);
        assert!(insert(&pending, 1).is_none());
        pending.consumed(2);
        assert!(insert(&pending, 1).is_some());
    }

    #[test]
    fn several_threads_end_each_entry_once() {
        let pending = Requests::new(64);
        let ended = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..3000 {
                        if let Some((tag, _)) = insert(&pending, 7) {
                            for tag in pending.tags(|_| true).into_iter().chain([tag]) {
                                if pending.take(tag).is_some() {
                                    pending.finish(tag, None, || {
                                        ended.fetch_add(1, Ordering::Relaxed);
                                    });
                                }
                            }
                        }
                    }
                });
            }
        });
        assert!(pending.is_empty() && ended.into_inner() > 0);
    }
}
