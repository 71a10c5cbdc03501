//! The sleeping threads of one rank as everybody sees them: which words they wait for, and the
//! bells that wake them.
//!
//! Lies in the control area of the rank whose threads sleep. A thread that stores into memory of
//! the rank asks after the store whether somebody sleeps on one of these bytes. Three words of 64
//! bits, the *marks*, give the answer for nearly everybody by one load of a line that nobody writes
//! while nobody falls asleep or wakes: a mark has the bit of each word (or of each page, or of each
//! of the owner's own addresses) that somebody waits for. Only where the bit is set are the places
//! searched.
//!
//! No store is overlooked: `transport::sleepers` has the other half of the protocol, and the
//! argument.

use crate::transport::address::Address;
use crate::util::bell::Bell;
use crate::util::fence::light_fence;
use crate::util::sync::{AtomicU32, AtomicU64, Ordering};

/// Words that threads of one rank can wait for at the same time, any number of threads for each.
/// Where there are more, the last place stands for all the others, and any store rings it.
#[cfg(not(loom))]
pub const PLACES: usize = 256;
/// Few enough for loom to go through every order.
#[cfg(loom)]
pub const PLACES: usize = 3;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The word as peers name it; None: no peer can change it.
    pub name: Option<Address>,
    /// The word's address in the owner's process; None: the owner's own completions do not change
    /// it.
    pub local: Option<u64>,
}

impl Awaited {
    /// Whatever the owner's process may do by itself.
    pub const ANYTHING: Awaited = Awaited { name: None, local: Some(ANY_ADDRESS) };

    /// A word of the owner's process that no peer can name.
    pub fn private(word: *const u64) -> Awaited {
        Awaited { name: None, local: Some(word as u64) }
    }
}

/// `local` of a place whose threads look whatever the owner's process does.
const ANY_ADDRESS: u64 = u64::MAX;
/// `local` of a place whose word the owner's completions do not change.
const NO_ADDRESS: u64 = 0;
/// `key` of a place whose word no peer can name.
const NO_KEY: u64 = 0;
/// `key` of the place for threads that found no other.
const ANY_KEY: u64 = u64::MAX;

/// One word that threads sleep on. Only its owner writes it, under the lock of
/// `transport::sleepers`.
#[repr(C, align(32))]
struct Place {
    bell: Bell,
    /// Not 0: threads sleep here, or are about to; then 1 more than the place whose bell wakes
    /// them: a thread that waits for several words has a place for each, and sleeps on one bell.
    taken: AtomicU32,
    key: AtomicU64,
    offset: AtomicU64,
    local: AtomicU64,
}

/// Has a bit for everything that somebody waits for. A line of its own: writers read it after each
/// store.
#[repr(C, align(64))]
struct Marks {
    /// By words of 8 bytes.
    words: AtomicU64,
    /// By pages of 4 KiB, for long stores, and for words whose bit somebody else has set.
    pages: AtomicU64,
    /// By addresses in the owner's process.
    locals: AtomicU64,
    /// How many places from the first on may be taken. 0: nobody sleeps.
    used: AtomicU32,
}

/// The sleeping threads of one rank. All zero: nobody sleeps.
#[repr(C)]
pub struct Waiters {
    marks: Marks,
    places: [Place; PLACES],
}

/// What the marks are to say.
#[derive(Clone, Copy, Default)]
pub struct Bits {
    words: u64,
    pages: u64,
    locals: u64,
    used: u32,
}

impl Bits {
    /// Adds what belongs to a word at place number `place`.
    pub fn add(&mut self, awaited: Option<Awaited>, place: usize) {
        self.used = place as u32 + 1;
        let Some(Awaited { name, local }) = awaited else {
            return (self.words, self.pages, self.locals) = (u64::MAX, u64::MAX, u64::MAX);
        };
        if let Some(name) = name {
            self.words |= words(name, 8);
            self.pages |= pages(name, 8);
        }
        self.locals |= match local {
            None => 0,
            Some(ANY_ADDRESS) => u64::MAX,
            Some(local) => 1 << (local >> 3 & 63),
        };
    }
}

/// The bits of a run of `last - first + 1` neighbours that begins at the bit of `first`, plus
/// `turn`.
#[inline(always)]
fn run(first: u64, last: u64, turn: u64) -> u64 {
    let bits = if last - first >= 63 { u64::MAX } else { (2 << (last - first)) - 1 };
    bits.rotate_left((first.wrapping_add(turn) & 63) as u32)
}

/// The bits of the words that `size` bytes touch, at least one.
#[inline(always)]
fn words(at: Address, size: u64) -> u64 {
    run(at.offset >> 3, at.offset.saturating_add(size - 1) >> 3, at.key)
}

/// Where the pages of a region begin among the bits: regions of one rank differ in the lowest bits
/// of their keys.
#[inline(always)]
fn scatter(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58
}

/// The bits of the pages that `size` bytes touch, at least one.
#[inline(always)]
fn pages(at: Address, size: u64) -> u64 {
    run(at.offset >> 12, at.offset.saturating_add(size - 1) >> 12, scatter(at.key))
}

impl Waiters {
    /// To be called after a store into `size` bytes at `address` of the rank's memory.
    #[inline(always)]
    pub fn touched(&self, address: Address, size: u64) {
        light_fence();
        let marks = self.marks.pages.load(Ordering::Relaxed);
        if marks != 0 && size != 0 && marks & pages(address, size) != 0 {
            self.wake_at(address, size);
        }
    }

    /// Whether somebody may sleep on the aligned word at `address`: to be asked after the store.
    #[inline(always)]
    pub fn any_at(&self, address: Address) -> bool {
        light_fence();
        let bit = (address.offset >> 3).wrapping_add(address.key) & 63;
        self.marks.words.load(Ordering::Relaxed) >> bit & 1 != 0 && self.any_in_page(address)
    }

    /// The second look, for words whose bit somebody else's has set: those that are 512 bytes apart
    /// share one.
    #[inline(always)]
    fn any_in_page(&self, address: Address) -> bool {
        let bit = (address.offset >> 12).wrapping_add(scatter(address.key)) & 63;
        self.marks.pages.load(Ordering::Relaxed) >> bit & 1 != 0
    }

    /// Whether anybody sleeps: to be asked after the store.
    #[inline(always)]
    pub fn any(&self) -> bool {
        light_fence();
        self.marks.used.load(Ordering::Relaxed) != 0
    }

    /// Wakes the threads that sleep on a word in `size` bytes at `address`, which is not 0.
    #[cold]
    pub fn wake_at(&self, address: Address, size: u64) {
        let (marks_words, marks_pages) =
            (self.marks.words.load(Ordering::Relaxed), self.marks.pages.load(Ordering::Relaxed));
        if marks_words & words(address, size) == 0 || marks_pages & pages(address, size) == 0 {
            return;
        }
        self.wake(|place| {
            let (key, offset) =
                (place.key.load(Ordering::Relaxed), place.offset.load(Ordering::Relaxed));
            key == ANY_KEY
                || key == address.key
                    && offset < address.offset.saturating_add(size)
                    && address.offset < offset.saturating_add(8)
        });
    }

    /// To be called after the rank's own process stored into a completion word.
    #[inline(always)]
    pub fn touched_word(&self, word: u64) {
        light_fence();
        if self.marks.locals.load(Ordering::Relaxed) >> (word >> 3 & 63) & 1 != 0 {
            self.wake(|place| {
                let local = place.local.load(Ordering::Relaxed);
                local == word || local == ANY_ADDRESS
            });
        }
    }

    /// To be called after the rank's own process may have stored anywhere, as callbacks and
    /// handlers do, and when something happened that all waiting threads must hear of.
    #[inline(always)]
    pub fn touched_anything(&self) {
        if self.any() {
            self.wake(|_| true);
        }
    }

    #[cold]
    fn wake(&self, concerns: impl Fn(&Place) -> bool) {
        // What the marks said may be old by now, and that is enough: the places of threads that
        // slept before the store have not changed since.
        let used = self.marks.used.load(Ordering::Relaxed) as usize;
        for place in &self.places[..used.min(PLACES)] {
            let taken = place.taken.load(Ordering::Relaxed);
            if taken != 0 && concerns(place) {
                // What a scribbling process has written names some place.
                self.places[(taken - 1) as usize % PLACES].bell.ring();
            }
        }
    }

    /// What those at this place sleep on.
    pub fn bell(&self, place: usize) -> &Bell {
        &self.places[place].bell
    }

    /// Lays a word into a free place, whose sleepers the bell of place number `bell` wakes. For the
    /// owner, under its lock.
    pub fn fill(&self, place: usize, awaited: Option<Awaited>, bell: usize) {
        let place = &self.places[place];
        let (key, offset) = match awaited {
            None => (ANY_KEY, 0),
            Some(Awaited { name, .. }) => name.map_or((NO_KEY, 0), |name| (name.key, name.offset)),
        };
        let local = awaited.map_or(Some(ANY_ADDRESS), |awaited| awaited.local);
        place.key.store(key, Ordering::Relaxed);
        place.offset.store(offset, Ordering::Relaxed);
        place.local.store(local.unwrap_or(NO_ADDRESS), Ordering::Relaxed);
        place.taken.store(bell as u32 + 1, Ordering::Relaxed);
    }

    /// Nobody sleeps at this place any more. For the owner, under its lock.
    pub fn clear(&self, place: usize) {
        self.places[place].taken.store(0, Ordering::Relaxed);
    }

    /// Tells threads that store for what this process waits. For the owner, under its lock.
    pub fn mark(&self, bits: Bits) {
        self.marks.words.store(bits.words, Ordering::Relaxed);
        self.marks.pages.store(bits.pages, Ordering::Relaxed);
        self.marks.locals.store(bits.locals, Ordering::Relaxed);
        self.marks.used.store(bits.used, Ordering::Relaxed);
    }

    /// Nobody sleeps: loom's atomics are not made of zeros.
    #[cfg(loom)]
    pub fn new() -> Waiters {
        let zero = || AtomicU64::new(0);
        let marks = Marks { words: zero(), pages: zero(), locals: zero(), used: AtomicU32::new(0) };
        let places = std::array::from_fn(|_| Place {
            bell: Bell::new(),
            taken: AtomicU32::new(0),
            key: zero(),
            offset: zero(),
            local: zero(),
        });
        Waiters { marks, places }
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Place>() == 32 && size_of::<Marks>() == 64);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const KEY: u64 = 7;

    /// Each store that touches a byte of an awaited word finds a bit of that word in both marks.
    #[test]
    fn bytes_in_common_have_a_bit_in_common() {
        for word in (0..4200).step_by(4) {
            let mut bits = Bits::default();
            let name = Some(Address { offset: word, key: KEY });
            bits.add(Some(Awaited { name, local: None }), 0);
            for size in [1, 2, 3, 8, 9, 64, 511, 512, 513, 4096, 300_000] {
                for first in [word.saturating_sub(size - 1), word, word + 1, word + 7] {
                    let store = Address { offset: first, key: KEY };
                    assert_ne!(bits.words & words(store, size), 0, "{word} {first} {size}");
                    assert_ne!(bits.pages & pages(store, size), 0, "{word} {first} {size}");
                }
            }
        }
        let end = Address { offset: u64::MAX - 3, key: KEY };
        assert_eq!(words(end, u64::MAX).count_ones(), 1, "a store that leaves the address space");
    }

    #[test]
    fn short_stores_have_few_bits() {
        let at = |offset| Address { offset, key: KEY };
        assert_eq!(words(at(64), 8).count_ones(), 1);
        assert_eq!(words(at(68), 8).count_ones(), 2);
        assert_eq!(words(at(64), 64).count_ones(), 8);
        assert_eq!(words(at(64), 512).count_ones(), 64);
        assert_eq!(pages(at(4000), 4096).count_ones(), 2);
        assert_eq!(pages(at(0), 1 << 18).count_ones(), 64);
    }
}
