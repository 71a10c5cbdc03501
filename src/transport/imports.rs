//! The table of a peer's regions that this process has mapped, and the look-up with which every
//! access begins.

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
    /// The region's key. An empty entry has a number that is no key of this index (0; for index 0
    /// it is 1), so that one comparison also refuses the key 0.
    key: AtomicU64,
    /// The address at which the region is mapped here.
    base: AtomicPtr<u8>,
    /// Number of aligned words; 0 if the region's begin is not aligned, or if adapters execute its
    /// atomics.
    words: AtomicU64,
    /// A word in the owner's directory that holds the key as long as the region lives.
    live: AtomicPtr<AtomicU64>,
    /// The region's length in bytes.
    length: AtomicU64,
}

/// Size of a word in bytes.
const WORD: u64 = 8;
/// Larger than an address space.
const EVERYTHING: u64 = 1 << 63;

/// The `live` word of [`ANY`]: look-ups that check it find that the region does not live, so only
/// find_near(), which does not check, accepts this key.
static NO_LIFE: AtomicU64 = AtomicU64::new(0);

impl Entry {
    /// Copies another entry. No other thread uses this one yet.
    fn assign(&mut self, other: &Entry) {
        self.key = other.key.load(Ordering::Relaxed).into();
        self.base = other.base.load(Ordering::Relaxed).into();
        self.words = other.words.load(Ordering::Relaxed).into();
        self.live = other.live.load(Ordering::Relaxed).into();
        self.length = other.length.load(Ordering::Relaxed).into();
    }

    #[inline(always)]
    fn place_of_word(&self, offset: u64) -> Option<*mut u8> {
        // The rotation turns an offset that is not aligned into a number larger than any count, so
        // one comparison checks alignment and bound.
        if offset.rotate_right(WORD.trailing_zeros()) >= self.words.load(Ordering::Relaxed) {
            return None;
        }
        Some(self.base.load(Ordering::Relaxed).wrapping_add(offset as usize))
    }

    /// Whether the region lives: its owner has not freed it.
    #[inline(always)]
    fn lives(&self, key: u64) -> bool {
        // SAFETY: learn() stored `live` before the key that the caller has found. It points into a
        // mapping that is kept as long as this table.
        let live = unsafe { &*self.live.load(Ordering::Relaxed) };
        // Relaxed: the owner may free the region right after any load. The memory stays mapped here
        // while the caller is pinned.
        live.load(Ordering::Relaxed) == key
    }

    /// Where the region begins, and its length.
    #[inline(always)]
    fn whole(&self) -> (*mut u8, u64) {
        (self.base.load(Ordering::Relaxed), self.length.load(Ordering::Relaxed))
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

/// The table of this rank's own regions. A look-up here is shorter than in an ImportTable: the
/// table does not move, so there is no pointer to load; and freeing a region empties its entry, so
/// there is no `live` word to check.
#[derive(Clone, Copy)]
pub struct OwnTable(*const Entry);

impl OwnTable {
    #[inline(always)]
    fn known(&self, key: u64) -> Option<&Entry> {
        // SAFETY: the table has an entry for every index; the caller of own() keeps the table.
        let entry = unsafe { &*self.0.add(Key(key).index()) };
        // Acquire: as in ImportTable::known().
        (entry.key.load(Ordering::Acquire) == key).then_some(entry)
    }

    /// The address of `size` bytes at `address`, if a region holds them.
    #[inline(always)]
    pub fn find(&self, address: Address, size: u64) -> Option<*mut u8> {
        self.known(address.key)?.place(address, size)
    }

    /// The address of an aligned word of 8 bytes, if a region holds it.
    #[inline(always)]
    pub fn find_word(&self, address: Address) -> Option<*mut u8> {
        self.known(address.key)?.place_of_word(address.offset)
    }

    /// As ImportTable::region().
    #[inline(always)]
    pub fn region(&self, key: u64) -> Option<(*mut u8, u64)> {
        self.known(key).map(Entry::whole)
    }
}

/// A peer's regions by index. The table has as many entries as the largest known index needs. A
/// larger index is taken modulo this number and leads to an entry with another key, so a look-up
/// needs neither a check of the bound nor a second level.
pub struct ImportTable {
    /// The number of entries is a power of two; the mask is one less, times the size of an entry.
    /// It turns a key into the offset of its entry. Never larger than `entries` allows.
    mask: AtomicUsize,
    entries: AtomicPtr<Entry>,
    /// The memory of a table made by whole(), which never moves.
    whole: Option<Mapping>,
}

/// Entries of a new table: few, since a rank uses few regions of most peers. At least two: see
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
    /// An empty table, which grows.
    pub fn new() -> Result<ImportTable> {
        let entries = Box::into_raw(empty(ENTRIES)?).cast();
        Ok(ImportTable::with(entries, ENTRIES, None))
    }

    /// An empty table with room for every possible index, which never moves. It takes address space
    /// for all entries, but memory only for the pages in use.
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

    /// Number of entries.
    fn count(&self) -> usize {
        self.mask.load(Ordering::Relaxed) / size_of::<Entry>() + 1
    }

    /// The entry that holds a key, if the table knows the key.
    #[inline(always)]
    fn entry(&self, key: u64) -> &Entry {
        // Both Acquire loads pair with grow(). First: a thread that sees a new mask also sees the
        // new entries, or later ones. Second: a thread that sees new entries sees their contents.
        let mask = self.mask.load(Ordering::Acquire);
        let entries = self.entries.load(Ordering::Acquire);
        let offset = (key as usize).wrapping_mul(size_of::<Entry>()) & mask;
        // SAFETY: the mask never exceeds the entries; the caller's pin keeps them allocated; zero
        // bytes are a valid entry.
        unsafe { &*entries.byte_add(offset) }
    }

    /// Makes room for an index. The callers hold a lock and are not pinned.
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
        // Release, here and below: pairs with entry(). The mask is stored last and loaded first, so
        // no thread combines the new mask with the old entries.
        let old = self.entries.swap(Box::into_raw(larger).cast(), Ordering::AcqRel);
        self.mask.store(mask, Ordering::Release);
        quiesce();
        // SAFETY: empty() made it with `count` entries; after quiesce() no pinned thread uses it.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(old, count)) });
        Ok(())
    }

    /// The entry of a region, if the table knows it. Its owner may have freed it.
    #[inline(always)]
    fn known(&self, key: u64) -> Option<&Entry> {
        let entry = self.entry(key);
        // Acquire: pairs with the Release in learn(): the entry's other words belong to this key.
        (entry.key.load(Ordering::Acquire) == key).then_some(entry)
    }

    /// The local address of `size` bytes at `address`, if the table knows the region, the region
    /// lives and holds the bytes. The caller is pinned, or holds the lock under which entries are
    /// removed.
    #[inline(always)]
    pub fn find(&self, address: Address, size: u64) -> Option<*mut u8> {
        let entry = self.known(address.key)?;
        if entry.lives(address.key) { entry.place(address, size) } else { None }
    }

    /// The local address of an aligned word of 8 bytes, as find() gives it.
    #[inline(always)]
    pub fn find_word(&self, address: Address) -> Option<*mut u8> {
        let entry = self.known(address.key)?;
        if entry.lives(address.key) { entry.place_of_word(address.offset) } else { None }
    }

    /// Where a region begins here, and its length, if it is known and lives. The caller is pinned,
    /// and may use all of it until it releases the pin.
    #[inline(always)]
    pub fn region(&self, key: u64) -> Option<(*mut u8, u64)> {
        let entry = self.known(key)?;
        if entry.lives(key) { Some(entry.whole()) } else { None }
    }

    /// This table as the table of own regions. It was made by whole().
    ///
    /// # Safety
    /// The ImportTable is not dropped while the result is in use.
    pub unsafe fn own(&self) -> OwnTable {
        debug_assert!(self.whole.is_some());
        OwnTable(self.entries.load(Ordering::Relaxed))
    }

    /// Lets find_near() find all memory of this process by the key [`ANY`]. Other look-ups refuse
    /// this key: memory that a peer requests, or that this rank accesses as its own peer, must lie
    /// in a region.
    pub fn know_own_memory(&self) {
        let live = (&raw const NO_LIFE).cast_mut();
        // SAFETY: NO_LIFE is static; who uses the key ANY vouches for the memory.
        unsafe { self.learn(ANY, std::ptr::null_mut(), EVERYTHING, live) };
    }

    /// The address of an operation's local buffer: in an own region, or anywhere by the key
    /// [`ANY`].
    pub fn find_near(&self, address: Address, size: u64) -> Option<*mut u8> {
        // SAFETY: the result is used in this expression only.
        unsafe { self.own() }.find(address, size)
    }

    /// As region(), in the table of one's own regions and for the near side of an operation.
    pub fn region_near(&self, key: u64) -> Option<(*mut u8, u64)> {
        // SAFETY: used no longer than `self`.
        unsafe { self.own() }.region(key)
    }

    /// The length of a region in bytes, if it is known and lives.
    pub fn length(&self, key: Key) -> Option<u64> {
        self.region(key.0).map(|(_, length)| length)
    }

    /// Whether the table knows a key, even if its region was freed.
    pub fn knows(&self, key: Key) -> bool {
        key.0 != 0 && self.entry(key.0).key.load(Ordering::Acquire) == key.0
    }

    /// Whether the entry at `index` describes a region that its owner has freed. The table has room
    /// for the index.
    pub fn has_ended(&self, index: usize) -> bool {
        let entry = self.entry(index as u64);
        let key = entry.key.load(Ordering::Acquire);
        // An empty entry holds 0, or a key of another index.
        key != 0 && Key(key).index() == index && !entry.lives(key)
    }

    /// Fills an empty entry, for which there is room. The callers hold a lock.
    ///
    /// # Safety
    /// `live` outlives the table. The `length` bytes at `base` stay valid until `live` has lost the
    /// key or forget() has emptied the entry, and quiesce() has returned since.
    pub unsafe fn learn(&self, key: Key, base: *mut u8, length: u64, live: *mut AtomicU64) {
        let entry = self.entry(key.0);
        entry.base.store(base, Ordering::Relaxed);
        entry.length.store(length, Ordering::Relaxed);
        // find_word() must not find words of a device region: its callers would change them by
        // processor atomics.
        let has_words = (base as u64).is_multiple_of(WORD) && !key.is_device();
        let words = if has_words { length / WORD } else { 0 };
        entry.words.store(words, Ordering::Relaxed);
        entry.live.store(live, Ordering::Relaxed);
        // Release: publishes the words above; pairs with the Acquire in known().
        entry.key.store(key.0, Ordering::Release);
    }

    /// Empties the entry at `index`, for which there is room. After quiesce() the caller may unmap
    /// the region. The entry of index 0 gets 1, a key of index 1: a look-up of this key goes to
    /// entry 1.
    pub fn forget(&self, index: usize) {
        // Relaxed: quiesce() orders the store before the unmapping.
        self.entry(index as u64).key.store((index == 0).into(), Ordering::Relaxed);
    }
}

impl Drop for ImportTable {
    fn drop(&mut self) {
        if self.whole.is_none() {
            let entries = std::ptr::slice_from_raw_parts_mut(*self.entries.get_mut(), self.count());
            // SAFETY: empty() made it with `count()` entries, and nobody uses a dropped table.
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
            // SAFETY: the words of `live` outlive the uses of the table.
            unsafe { table.learn(key, word.cast(), 8, (&raw const live[at]).cast_mut()) };
            assert_eq!(find(key.0), Some(word.cast()));
            assert!(table.knows(key) && table.count() <= 1024);
        }
        assert!(find(Key::new(3, 5, 7).0).is_some());
        let (device, live) = (Key::new(5, 5, 7 | DEVICE), AtomicU64::new(0));
        live.store(device.0, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { table.learn(device, live.as_ptr().cast(), 8, (&raw const live).cast_mut()) };
        assert!(find(device.0).is_none() && table.length(device) == Some(8));
        for absent in [0, 1, Key::new(7, 5, 7).0, Key::new(1024 + 3, 5, 7).0, Key::new(3, 5, 8).0] {
            assert_eq!(find(absent), None, "{absent:#x}");
        }
        table.forget(3);
        assert_eq!(find(Key::new(3, 5, 7).0), None);
    }
}
