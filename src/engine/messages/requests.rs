//! Messages of this rank that wait for a reply or whose end fires a completion. Each has an entry.
//! The entry's tag travels with the message and comes back with the reply. The share of replies has
//! as many slots as this table has entries, so each message with an entry has a slot for its reply.
//!
//! A message ends by its reply, by the death of its receiver, or by cancellation. The thread that
//! ends it first takes the entry by one compare-and-swap on the generation, which changes with each
//! use of the entry. So each message ends once.

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
    /// Upper half: the generation of the tag while a message waits, else 0. Lower half: the number
    /// of reporters. A reporter is a thread that has taken a tag of this entry and has not fired
    /// its completion yet; the entry may be in use again by then.
    state: AtomicU64,
    /// The last generation used. Only the thread that has claimed the entry writes it.
    generation: AtomicU32,
    peer: AtomicU32,
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
    /// be that of the message's reply. Until the tickets before it are consumed, a reply to the old
    /// message may still take a slot, so the entry must not be used again.
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

fn index_of(tag: u64) -> usize {
    tag as u32 as usize
}

/// The generation of a tag or of a state.
fn generation_of(word: u64) -> u64 {
    word >> 32
}

fn reporters_of(state: u64) -> u32 {
    state as u32
}

impl Requests {
    /// A table of `capacity` entries, a multiple of 64.
    pub fn new(capacity: usize) -> Requests {
        let entry = |_| Entry {
            state: AtomicU64::new(0),
            generation: AtomicU32::new(0),
            peer: AtomicU32::new(0),
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
        entry.peer.store(waiting.peer, Ordering::Relaxed);
        let generation = entry.generation.load(Ordering::Relaxed).wrapping_add(1).max(1);
        entry.generation.store(generation, Ordering::Relaxed);
        let tag = u64::from(generation) << 32 | index as u64;
        // Release: publishes the entry; pairs with take(). An addition, because the lower half may
        // count reporters of an earlier message.
        entry.state.fetch_add(u64::from(generation) << 32, Ordering::Release);
        // Fence between the store above and the caller's check whether the peer is dead; pairs with
        // tags().
        fence_behind_rmw();
        Some((tag, self.record(index / 64, index as u64 % 64)))
    }

    /// Whether the message of a tag from tags() has not ended, or its completion has not fired.
    pub fn waits(&self, tag: u64) -> bool {
        let Some(entry) = self.entries.get(index_of(tag)) else { return false };
        // Acquire: pairs with reported(). A thread that sees the end sees what the reply and the
        // completion have written.
        let state = entry.state.load(Ordering::Acquire);
        // A tag of generation 0 stands for the reporters only.
        let waits = generation_of(tag) != 0 && generation_of(state) == generation_of(tag);
        waits || reporters_of(state) != 0
    }

    /// Takes an entry to end its message. The caller then releases the entry, fires the completions
    /// and calls reported(). None: another thread has taken it.
    pub fn take(&self, tag: u64) -> Option<Waiting> {
        let entry = self.entries.get(index_of(tag)).filter(|_| generation_of(tag) != 0)?;
        let mut state = entry.state.load(Ordering::Relaxed);
        loop {
            if generation_of(state) != generation_of(tag) {
                return None;
            }
            // Generation and reporter change in one step, so waits() stays true in between.
            let taken = u64::from(reporters_of(state) + 1);
            // Acquire: pairs with insert().
            match entry.state.compare_exchange(state, taken, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        // SAFETY: only this thread has taken the tag, and the entry is not free.
        Some(entry.waiting.with(|place| unsafe { *place }))
    }

    /// To be called when the completions of a taken entry have fired.
    pub fn reported(&self, tag: u64) {
        if let Some(entry) = self.entries.get(index_of(tag)) {
            // Release: pairs with waits(). The count is above 0, so the subtraction does not change
            // the generation.
            entry.state.fetch_sub(1, Ordering::Release);
        }
    }

    /// Frees a taken entry whose reply was consumed, or that gets none.
    pub fn release(&self, tag: u64) {
        self.vacate(index_of(tag));
    }

    fn vacate(&self, index: usize) {
        // Release: pairs with claim_bit() and in_use().
        self.free[index / 64].fetch_or(1 << (index % 64), Ordering::Release);
    }

    /// Like `release`, for an entry whose reply may still come: frees it when consumed() is called
    /// with `until` or a later ticket.
    pub fn release_later(&self, tag: u64, until: u64) {
        let mut draining = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        draining.push((until, index_of(tag)));
        self.has_draining.store(true, Ordering::Relaxed);
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

    /// The tags of all messages that wait for peers that `fits`; and a tag of generation 0, which
    /// cannot be taken, for each other entry that has reporters.
    pub fn tags(&self, fits: impl Fn(u32) -> bool) -> Vec<u64> {
        // Fence between the store that marks a peer dead, which `fits` may check, and the loads of
        // the entries; pairs with insert().
        fence(Ordering::SeqCst);
        let waiting = self.entries.iter().enumerate().filter_map(|(index, entry)| {
            // Acquire: the peer is that of the tag, or of a later use of the entry; take() then
            // fails.
            let state = entry.state.load(Ordering::Acquire);
            if generation_of(state) != 0 && fits(entry.peer.load(Ordering::Relaxed)) {
                return Some(generation_of(state) << 32 | index as u64);
            }
            // Reporters of an earlier use of the entry. No real tag has the generation 0.
            (reporters_of(state) != 0).then_some(index as u64)
        });
        waiting.collect()
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
        pending.release(tag);
        pending.reported(tag);
        assert!(!pending.waits(tag));
        let (again, _) = insert(&pending, 4).unwrap();
        assert_eq!(index_of(again), index_of(tag));
        assert_ne!(again, tag);
        assert!(pending.take(tag).is_none() && !pending.is_empty());
    }

    #[test]
    fn a_full_table_refuses_and_a_draining_entry_stays_taken_until_its_ticket_has_passed() {
        let pending = Requests::new(64);
        let tags: Vec<u64> = (0..64).map(|_| insert(&pending, 1).unwrap().0).collect();
        assert!(insert(&pending, 1).is_none());
        pending.take(tags[5]).unwrap();
        // Tickets wrap.
        pending.release_later(tags[5], 2);
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
                                    pending.release(tag);
                                    pending.reported(tag);
                                    ended.fetch_add(1, Ordering::Relaxed);
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
