//! The table of a peer's regions as this process knows them, and the look-up that every access
//! begins with.

use crate::fail;
use crate::transport::address::{ANY, Address, INDICES, Key};
use crate::util::memory::Mapping;
use crate::util::pin::quiesce;
use crate::util::status::Result;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// One region of one peer.
#[derive(Default)]
#[repr(C, align(64))]
struct Entry {
    /// The life that the rest describes; while there is none, a number that is no key of this index
    /// (0, and 1 for index 0), so that one comparison is enough to refuse the key 0, too.
    key: AtomicU64,
    /// Where the region is mapped here.
    base: AtomicPtr<u8>,
    /// How many aligned words there are; 0 where the region itself is not aligned, or adapters
    /// change its words.
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
    /// Takes over what another entry says; nobody else sees this one.
    fn assign(&mut self, other: &Entry) {
        self.key = other.key.load(Ordering::Relaxed).into();
        self.base = other.base.load(Ordering::Relaxed).into();
        self.words = other.words.load(Ordering::Relaxed).into();
        self.live = other.live.load(Ordering::Relaxed).into();
        self.length = other.length.load(Ordering::Relaxed).into();
    }

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
        // SAFETY: as in ImportTable::entry(); the caller of own() vouches for the table.
        let entry = unsafe { &*self.0.add(Key(key).index()) };
        // Acquire: as in ImportTable::known().
        (entry.key.load(Ordering::Acquire) == key).then_some(entry)
    }

    /// As ImportTable::find().
    #[inline(always)]
    pub fn find(&self, address: Address, size: u64) -> Option<*mut u8> {
        self.known(address.key)?.place(address, size)
    }

    /// Like `find`, for an aligned word of 8 bytes.
    #[inline(always)]
    pub fn find_word(&self, address: Address) -> Option<*mut u8> {
        self.known(address.key)?.place_of_word(address.offset)
    }
}

/// A peer's regions by index. It has as many entries as the largest index that was learned needs;
/// an index beyond leads to some other entry, whose key differs. So a look-up needs no bound and no
/// second level.
pub struct ImportTable {
    /// One less than the number of entries, a power of two, times the size of an entry: picks the
    /// place of an entry out of a key. Never larger than what `entries` has room for.
    mask: AtomicUsize,
    entries: AtomicPtr<Entry>,
    /// Where the entries of one's own regions are, which never move.
    whole: Option<Mapping>,
}

/// Entries of a new table: few, since most peers are used for few regions. At least two: see
/// forget().
const ENTRIES: usize = 4;

fn mask_of(entries: usize) -> usize {
    (entries - 1) * size_of::<Entry>()
}

fn empty(entries: usize) -> Result<Box<[Entry]>> {
    let mut table = Vec::new();
    if table.try_reserve_exact(entries).is_err() {
        fail!(ERR_NO_MEMORY, "no memory for a table of {entries} regions");
    }
    table.resize_with(entries, Entry::default);
    Ok(table.into())
}

impl ImportTable {
    /// A table that knows nothing.
    pub fn new() -> Result<ImportTable> {
        let entries = Box::into_raw(empty(ENTRIES)?).cast();
        Ok(ImportTable::with(entries, ENTRIES, None))
    }

    /// A table with room for every index that there can be, which stays where it is. It takes
    /// address space for all, and memory for those in use.
    pub fn whole() -> Result<ImportTable> {
        let room = Mapping::anonymous(INDICES * size_of::<Entry>())?;
        Ok(ImportTable::with(room.base().cast(), INDICES, Some(room)))
    }

    fn with(entries: *mut Entry, count: usize, whole: Option<Mapping>) -> ImportTable {
        let (mask, entries) = (AtomicUsize::new(mask_of(count)), AtomicPtr::new(entries));
        let table = ImportTable { mask, entries, whole };
        table.forget(0);
        table
    }

    /// How many entries there are.
    fn count(&self) -> usize {
        self.mask.load(Ordering::Relaxed) / size_of::<Entry>() + 1
    }

    /// The entry at which a key stands if it is known.
    #[inline(always)]
    fn entry(&self, key: u64) -> &Entry {
        // Acquire, twice: a thread that sees a mask sees the entries for which it was made, or
        // more; one that sees entries sees what was put there. Both pair with grow().
        let mask = self.mask.load(Ordering::Acquire);
        let entries = self.entries.load(Ordering::Acquire);
        let offset = (key as usize).wrapping_mul(size_of::<Entry>()) & mask;
        // SAFETY: the mask leads to one of the entries, which the caller's pin keeps; zero bytes
        // are a valid entry.
        unsafe { &*entries.byte_add(offset) }
    }

    /// Makes room for an index. Callers exclude one another, and are not pinned.
    pub fn grow(&self, index: usize) -> Result<()> {
        let count = self.count();
        if index < count {
            return Ok(());
        }
        let mut larger = empty((index + 1).next_power_of_two())?;
        let mask = mask_of(larger.len());
        for at in 0..count {
            larger[at].assign(self.entry(at as u64));
        }
        // Release: a thread that sees the new place sees what stands there; pairs with entry(),
        // where the mask comes first.
        let old = self.entries.swap(Box::into_raw(larger).cast(), Ordering::AcqRel);
        self.mask.store(mask, Ordering::Release);
        quiesce();
        // SAFETY: made by empty() with so many entries, and no pinned thread has found it
        // since.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(old, count)) });
        Ok(())
    }

    /// The entry of a region, if it is known. Its owner may have ended its life.
    #[inline(always)]
    fn known(&self, key: u64) -> Option<&Entry> {
        let entry = self.entry(key);
        // Acquire: pairs with the Release in learn(); the entry's other words belong to the key.
        (entry.key.load(Ordering::Acquire) == key).then_some(entry)
    }

    /// Where `size` bytes at `address` are mapped here, if the region is known, lives and holds
    /// them. The caller is pinned, or is the one thread that forgets entries.
    #[inline(always)]
    pub fn find(&self, address: Address, size: u64) -> Option<*mut u8> {
        let entry = self.known(address.key)?;
        if entry.lives(address.key) { entry.place(address, size) } else { None }
    }

    /// Like `find`, for an aligned word of 8 bytes.
    #[inline(always)]
    pub fn find_word(&self, address: Address) -> Option<*mut u8> {
        let entry = self.known(address.key)?;
        if entry.lives(address.key) { entry.place_of_word(address.offset) } else { None }
    }

    /// The table of one's own regions, made by whole().
    ///
    /// # Safety
    /// The table is used no longer than it is there.
    pub unsafe fn own(&self) -> OwnTable {
        debug_assert!(self.whole.is_some());
        OwnTable(self.entries.load(Ordering::Relaxed))
    }

    /// Lets look-ups for the near side find all memory of this process by the key [`ANY`]. All
    /// others see that it does not live: what a peer asks for, and what is sent to oneself as to a
    /// peer, must lie in a region.
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
        Some(self.entry(key.0).length.load(Ordering::Relaxed))
    }

    /// Whether `key` is what the table has at its index.
    pub fn knows(&self, key: Key) -> bool {
        key.0 != 0 && self.entry(key.0).key.load(Ordering::Acquire) == key.0
    }

    /// Whether the entry at `index`, for which there is room, describes a life that its owner has
    /// ended.
    pub fn has_ended(&self, index: usize) -> bool {
        let entry = self.entry(index as u64);
        let key = entry.key.load(Ordering::Acquire);
        // What forget() leaves at an index is no key of that index.
        key != 0 && Key(key).index() == index && !entry.lives(key)
    }

    /// Fills an entry that is empty, and for which there is room. Callers exclude one another;
    /// `live` outlives the table.
    pub fn learn(&self, key: Key, base: *mut u8, length: u64, live: *mut AtomicU64) {
        let entry = self.entry(key.0);
        entry.base.store(base, Ordering::Relaxed);
        entry.length.store(length, Ordering::Relaxed);
        // Who finds a word changes it as a processor does.
        let has_words = (base as u64).is_multiple_of(WORD) && !key.is_device();
        let words = if has_words { length / WORD } else { 0 };
        entry.words.store(words, Ordering::Relaxed);
        entry.live.store(live, Ordering::Relaxed);
        // Release: pairs with the Acquire in find().
        entry.key.store(key.0, Ordering::Release);
    }

    /// Empties the entry at `index`, for which there is room. What it led to may be unmapped after
    /// `quiesce`. The entry of index 0 gets a key of index 1, which nobody looks up there.
    pub fn forget(&self, index: usize) {
        // Relaxed: quiesce() orders it before the unmapping.
        self.entry(index as u64).key.store((index == 0).into(), Ordering::Relaxed);
    }
}

impl Drop for ImportTable {
    fn drop(&mut self) {
        if self.whole.is_none() {
            let entries = std::ptr::slice_from_raw_parts_mut(*self.entries.get_mut(), self.count());
            // SAFETY: made by empty() with so many entries; the owner drops the table and uses it
            // no more.
            drop(unsafe { Box::from_raw(entries) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::address::DEVICE;
    use crate::util::pin::pin;

    #[test]
    fn a_table_grows_with_its_indices_and_finds_what_it_knew_and_no_other_key() {
        let table = ImportTable::new().unwrap();
        let live: Vec<_> = (0..1000).map(|at| AtomicU64::new(Key::new(at, 5, 7).0)).collect();
        let find = |key: u64| {
            let _pinned = pin();
            table.find_word(Address { offset: 0, key })
        };
        for at in [0, 3, 4, 999] {
            table.grow(at).unwrap();
            let (key, word) = (Key::new(at, 5, 7), live[at].as_ptr());
            table.learn(key, word.cast(), 8, (&raw const live[at]).cast_mut());
            assert_eq!(find(key.0), Some(word.cast()));
            assert!(table.knows(key) && table.count() <= 1024);
        }
        assert!(find(Key::new(3, 5, 7).0).is_some());
        let (device, live) = (Key::new(5, 5, 7 | DEVICE), AtomicU64::new(0));
        live.store(device.0, Ordering::Relaxed);
        table.learn(device, live.as_ptr().cast(), 8, (&raw const live).cast_mut());
        assert!(find(device.0).is_none() && table.length(device) == Some(8));
        for absent in [0, 1, Key::new(7, 5, 7).0, Key::new(1024 + 3, 5, 7).0, Key::new(3, 5, 8).0] {
            assert_eq!(find(absent), None, "{absent:#x}");
        }
        table.forget(3);
        assert_eq!(find(Key::new(3, 5, 7).0), None);
    }
}
