//! The table of a peer's regions as this process knows them, and the look-up that every access
//! begins with.

use crate::transport::address::{ANY, Address, INDICES, Key};
use crate::util::memory::Mapping;
use crate::util::status::Result;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// One region of one peer.
#[repr(C, align(64))]
struct Entry {
    /// The life that the rest describes; while there is none, a number that is no key of this index
    /// (0, and 1 for index 0), so that one comparison is enough to refuse the key 0, too.
    key: AtomicU64,
    /// Where the region is mapped here.
    base: AtomicPtr<u8>,
    /// How many aligned words there are; 0 where the region itself is not aligned.
    words: AtomicU64,
    /// The owner's own word for this region: holds the same key for as long as the region lives.
    live: AtomicPtr<AtomicU64>,
    /// Its length in bytes.
    length: AtomicU64,
}

/// Bytes of a word.
const WORD: u64 = 8;
/// Bytes of an address space, and more.
const EVERYTHING: u64 = 1 << 63;

/// The life of [`ANY`] in the eyes of all look-ups but those for the near side: there is none.
static NO_LIFE: AtomicU64 = AtomicU64::new(0);

impl Entry {
    #[inline(always)]
    fn place_of_word(&self, offset: u64) -> Option<*mut u8> {
        // An offset that is not aligned becomes a number larger than any count: one comparison
        // checks both.
        if offset.rotate_right(WORD.trailing_zeros()) >= self.words.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.base.load(Ordering::Relaxed).wrapping_add(offset as usize))
    }

    /// Whether the region lives in its owner's eyes.
    #[inline(always)]
    fn lives(&self, key: u64) -> bool {
        // SAFETY: a key of this index was stored after `live`, which points into a mapping that is
        // kept as long as this table.
        let live = unsafe { &*self.live.load(Ordering::Relaxed) };
        // Relaxed: the owner may end the region's life at any later moment anyway; its memory
        // stays mapped here while the caller is pinned.
        live.load(Ordering::Relaxed) == key
    }

    #[inline(always)]
    fn place(&self, address: Address, size: u64) -> Option<*mut u8> {
        let last = self.length.load(Ordering::Relaxed).checked_sub(size)?;
        if address.offset > last {
            return None;
        }
        Some(self.base.load(Ordering::Relaxed).wrapping_add(address.offset as usize))
    }
}

/// The table of one's own regions, by its address alone: a look-up in it follows one pointer less,
/// and its entries end with the region, so nobody else need be asked whether it lives.
#[derive(Clone, Copy)]
pub struct OwnTable(*const Entry);

impl OwnTable {
    #[inline(always)]
    fn known(&self, key: u64) -> Option<&Entry> {
        // SAFETY: as in ImportTable::entry(); whoever made this vouches for the table.
        let entry = unsafe { &*self.0.add(Key(key).index()) };
        // Acquire: as in ImportTable::known().
        (entry.key.load(Ordering::Acquire) == key).then_some(entry)
    }

    /// As ImportTable::find().
    #[inline(always)]
    pub fn find(&self, address: Address, size: u64) -> Option<*mut u8> {
        self.known(address.key)?.place(address, size)
    }

    /// The same for an aligned word of 8 bytes.
    #[inline(always)]
    pub fn find_word(&self, address: Address) -> Option<*mut u8> {
        self.known(address.key)?.place_of_word(address.offset)
    }
}

/// A peer's regions by index. The table takes address space for every index there can be, and
/// memory only for the pages in use; so a look-up needs no bound and no second level.
pub struct ImportTable {
    entries: Mapping,
}

impl ImportTable {
    /// A table that knows nothing.
    pub fn new() -> Result<ImportTable> {
        let table = ImportTable { entries: Mapping::anonymous(INDICES * size_of::<Entry>())? };
        table.forget(0);
        Ok(table)
    }

    #[inline(always)]
    fn entry(&self, index: usize) -> &Entry {
        debug_assert!(index < INDICES);
        // SAFETY: the mapping holds INDICES entries, an index has 16 bits, and zero bytes are a
        // valid entry.
        unsafe { &*self.entries.base().cast::<Entry>().add(index) }
    }

    /// The entry of a region, if it is known. Its owner may have ended its life.
    #[inline(always)]
    fn known(&self, key: u64) -> Option<&Entry> {
        let entry = self.entry(Key(key).index());
        // Acquire: pairs with the Release in learn(); the entry's other words belong to the key.
        (entry.key.load(Ordering::Acquire) == key).then_some(entry)
    }

    /// Where `size` bytes at `address` are mapped here, if the region is known, lives and holds
    /// them. The caller is pinned, or is the one who alone forgets entries.
    #[inline(always)]
    pub fn find(&self, address: Address, size: u64) -> Option<*mut u8> {
        let entry = self.known(address.key)?;
        if entry.lives(address.key) { entry.place(address, size) } else { None }
    }

    /// The same for an aligned word of 8 bytes.
    #[inline(always)]
    pub fn find_word(&self, address: Address) -> Option<*mut u8> {
        let entry = self.known(address.key)?;
        if entry.lives(address.key) { entry.place_of_word(address.offset) } else { None }
    }

    /// The table of one's own regions.
    ///
    /// # Safety
    /// The table stays where it is, and is used no longer than it is there.
    pub unsafe fn own(&self) -> OwnTable {
        OwnTable(self.entries.base().cast())
    }

    /// Lets look-ups for the near side find all memory of this process by the key [`ANY`]. All others see that it
    /// does not live: what a peer asks for, and what is sent to oneself as to a peer, must lie in a region.
    pub fn know_own_memory(&self) {
        self.learn(ANY, std::ptr::null_mut(), EVERYTHING, (&raw const NO_LIFE).cast_mut());
    }

    /// As find(), in the table of one's own regions and for the near side of an operation.
    pub fn find_near(&self, address: Address, size: u64) -> Option<*mut u8> {
        // SAFETY: used no longer than `self`.
        unsafe { self.own() }.find(address, size)
    }

    /// The length of the region, if it is known and lives.
    pub fn length(&self, key: Key) -> Option<u64> {
        self.find(Address { offset: 0, key: key.0 }, 0)?;
        Some(self.entry(key.index()).length.load(Ordering::Relaxed))
    }

    /// Whether `key` is what the table has at its index.
    pub fn knows(&self, key: Key) -> bool {
        key.0 != 0 && self.entry(key.index()).key.load(Ordering::Acquire) == key.0
    }

    /// Fills an entry that is empty. Callers exclude one another; `live` outlives the table.
    pub fn learn(&self, key: Key, base: *mut u8, length: u64, live: *mut AtomicU64) {
        let entry = self.entry(key.index());
        entry.base.store(base, Ordering::Relaxed);
        entry.length.store(length, Ordering::Relaxed);
        let words = if (base as u64).is_multiple_of(WORD) { length / WORD } else { 0 };
        entry.words.store(words, Ordering::Relaxed);
        entry.live.store(live, Ordering::Relaxed);
        // Release: pairs with the Acquire in find().
        entry.key.store(key.0, Ordering::Release);
    }

    /// Empties the entry at `index`. What it led to may be unmapped after `quiesce`.
    pub fn forget(&self, index: usize) {
        // Relaxed: quiesce() orders it before the unmapping.
        self.entry(index).key.store((index == 0).into(), Ordering::Relaxed);
    }
}
