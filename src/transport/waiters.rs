//! The sleeping threads of one rank, in shared memory: for which words they wait, and the bells
//! (futexes) that wake them.
//!
//! [`Waiters`] lies in the control area of the rank whose threads sleep, its owner. A thread of any
//! rank that stores into the owner's memory checks afterwards whether a thread sleeps on one of the
//! stored bytes. Usually one load answers this: three words of 64 bits, the *marks*, have a bit for
//! each word, page or local address for which a thread waits (several share a bit). Their cache
//! line changes only when threads fall asleep or wake up. If the bit is set, the storing thread
//! searches the *places*, one for each awaited word, and rings the bells of those that its store
//! has touched.
//!
//! `transport::sleepers` has the other half of the protocol, and the proof that no store is missed.

use crate::transport::address::Address;
use crate::util::bell::Bell;
use crate::util::fence::light_fence;
use crate::util::sync::{AtomicU32, AtomicU64, Ordering};

/// Number of places. Any number of threads may wait for the word of a place. The last place is for
/// all threads that find no other free; every store rings it.
#[cfg(not(loom))]
pub const PLACES: usize = 256;
/// Few, so that loom can try every order.
#[cfg(loom)]
pub const PLACES: usize = 3;

/// A word for which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The word's address for peers; None: it lies in no region, so no peer can change it.
    pub name: Option<Address>,
    /// The word's address in the owner's process; None: completions of the owner do not change it.
    pub local: Option<u64>,
}

impl Awaited {
    /// Every completion in the owner's process.
    pub const ANYTHING: Awaited = Awaited { name: None, local: Some(ANY_ADDRESS) };

    /// A word of the owner's process that lies in no region.
    pub fn private(word: *const u64) -> Awaited {
        Awaited { name: None, local: Some(word as u64) }
    }
}

/// `local` of a place whose threads wake at every completion in the owner's process.
const ANY_ADDRESS: u64 = u64::MAX;
/// `local` of a place whose word the owner's completions do not change.
const NO_ADDRESS: u64 = 0;
/// `key` of a place whose word lies in no region.
const NO_KEY: u64 = 0;
/// `key` of the last place, for threads that found no other free.
const ANY_KEY: u64 = u64::MAX;

/// A word on which threads sleep. Only the owner writes places, under the lock of
/// `transport::sleepers`; peers ring the bells.
#[repr(C, align(32))]
struct Place {
    bell: Bell,
    /// 0: the place is free. Else threads sleep here, or are about to, on the bell of the place
    /// with number `taken - 1`. A thread that waits for several words has a place for each, and
    /// sleeps on the bell of the first one.
    taken: AtomicU32,
    key: AtomicU64,
    offset: AtomicU64,
    local: AtomicU64,
}

/// Bits for everything for which threads wait. On a cache line of its own, since every thread that
/// stores reads it.
#[repr(C, align(64))]
struct Marks {
    /// By words of 8 bytes.
    words: AtomicU64,
    /// By pages of 4 KiB: for long stores, and as a second check of words, which share bits.
    pages: AtomicU64,
    /// By addresses in the owner's process.
    locals: AtomicU64,
    /// Places with this number and higher ones are free. 0: no thread sleeps.
    used: AtomicU32,
}

/// The sleeping threads of one rank. All zero: no thread sleeps.
#[repr(C)]
pub struct Waiters {
    marks: Marks,
    places: [Place; PLACES],
}

/// New values of the marks.
#[derive(Clone, Copy, Default)]
pub struct Bits {
    words: u64,
    pages: u64,
    locals: u64,
    used: u32,
}

impl Bits {
    /// Adds the bits of the word at place number `place`; None: of any word.
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

/// The bits of the numbers `first` to `last`, where number n has bit (n + `turn`) mod 64.
#[inline(always)]
fn run(first: u64, last: u64, turn: u64) -> u64 {
    let bits = if last - first >= 63 { u64::MAX } else { (2 << (last - first)) - 1 };
    bits.rotate_left((first.wrapping_add(turn) & 63) as u32)
}

/// The bits of the words that `size` bytes touch. `size` is not 0.
#[inline(always)]
fn words(at: Address, size: u64) -> u64 {
    run(at.offset >> 3, at.offset.saturating_add(size - 1) >> 3, at.key)
}

/// The bit of a region's first page. Keys of one rank's regions differ in their lowest bits; the
/// multiplication spreads them.
#[inline(always)]
fn scatter(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58
}

/// The bits of the pages that `size` bytes touch. `size` is not 0.
#[inline(always)]
fn pages(at: Address, size: u64) -> u64 {
    run(at.offset >> 12, at.offset.saturating_add(size - 1) >> 12, scatter(at.key))
}

impl Waiters {
    /// Wakes the threads that wait for a word in `size` bytes at `address`. Call it after storing
    /// there; the light fence inside orders the two.
    #[inline(always)]
    pub fn touched(&self, address: Address, size: u64) {
        light_fence();
        let marks = self.marks.pages.load(Ordering::Relaxed);
        if marks != 0 && size != 0 && marks & pages(address, size) != 0 {
            self.wake_at(address, size);
        }
    }

    /// Whether a thread may sleep on the aligned word at `address`. Call it after storing there; if
    /// true, call wake_at().
    #[inline(always)]
    pub fn any_at(&self, address: Address) -> bool {
        light_fence();
        let bit = (address.offset >> 3).wrapping_add(address.key) & 63;
        self.marks.words.load(Ordering::Relaxed) >> bit & 1 != 0 && self.any_in_page(address)
    }

    /// The second check of any_at(): words whose distance is a multiple of 512 bytes share a bit,
    /// but most of them differ in the bit of their page.
    #[inline(always)]
    fn any_in_page(&self, address: Address) -> bool {
        let bit = (address.offset >> 12).wrapping_add(scatter(address.key)) & 63;
        self.marks.pages.load(Ordering::Relaxed) >> bit & 1 != 0
    }

    /// Whether a thread sleeps. Call it after storing.
    #[inline(always)]
    pub fn any(&self) -> bool {
        light_fence();
        self.marks.used.load(Ordering::Relaxed) != 0
    }

    /// The word that is 0 if no thread sleeps, for loops that store often: read it after each store
    /// and a light fence.
    pub fn sleepers(&self) -> &AtomicU32 {
        &self.marks.used
    }

    /// Wakes the threads that sleep on a word in `size` bytes at `address`. `size` is not 0.
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

    /// Wakes the threads that wait for a completion word. The owner's process calls it after
    /// storing into the word.
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

    /// Wakes all threads. The owner's process calls it after callbacks and handlers, which may have
    /// stored anywhere, and when all waiting threads must look, for example after a death.
    #[inline(always)]
    pub fn touched_anything(&self) {
        if self.any() {
            self.wake(|_| true);
        }
    }

    #[cold]
    fn wake(&self, concerns: impl Fn(&Place) -> bool) {
        // The places may have changed since the caller read the marks. The store cannot miss a
        // thread for this reason: a thread that slept before the store keeps its place until it
        // wakes.
        let used = self.marks.used.load(Ordering::Relaxed) as usize;
        for place in &self.places[..used.min(PLACES)] {
            let taken = place.taken.load(Ordering::Relaxed);
            if taken != 0 && concerns(place) {
                // Modulo: a faulty peer may have overwritten `taken`.
                self.places[(taken - 1) as usize % PLACES].bell.ring();
            }
        }
    }

    /// The bell of a place.
    pub fn bell(&self, place: usize) -> &Bell {
        &self.places[place].bell
    }

    /// Writes a word into a free place; its threads sleep on the bell of place number `bell`.
    /// Called by the owner under its lock.
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

    /// Frees a place. Called by the owner under its lock.
    pub fn clear(&self, place: usize) {
        self.places[place].taken.store(0, Ordering::Relaxed);
    }

    /// Publishes new marks. Called by the owner under its lock.
    pub fn mark(&self, bits: Bits) {
        self.marks.words.store(bits.words, Ordering::Relaxed);
        self.marks.pages.store(bits.pages, Ordering::Relaxed);
        self.marks.locals.store(bits.locals, Ordering::Relaxed);
        self.marks.used.store(bits.used, Ordering::Relaxed);
    }

    /// A value without sleepers, since zeroed memory does not make loom's atomics.
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
    /// The store may begin before the word, and end after it.
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
