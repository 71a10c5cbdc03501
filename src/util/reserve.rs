//! What the library lives on where the system gives no memory: a fixed piece of the library's own
//! data, which takes no memory until it is used.
//!
//! Rust's collections and reference counts end the process where an allocation fails. Behind this
//! allocator small ones do not fail while the reserve lasts. It lasts for the calls under way: a
//! call that makes something new asks [`must_be_left`] first, and answers LLCL_ERR_NO_MEMORY where
//! half of the reserve is in use. So what exists goes on and can be freed. What may be larger than
//! a quarter of the reserve is allocated by [`boxed`] or `try_reserve`, whose failure is a status,
//! or asked for beforehand by [`must_hold`]. (docs/decisions/0010-memory-runs-out.md)

use crate::fail;
use crate::util::status::Result;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Twice what a context takes from its making to its end: some 400 KiB with the default sizes, 1.6
/// MiB with the largest.
const BYTES: usize = 4 << 20;
/// The reserve is given out in grains of so many bytes, which is also the largest alignment.
const GRAIN: usize = 256;
const GRAINS: usize = BYTES / GRAIN;

#[repr(C, align(256))]
struct Memory(UnsafeCell<[u8; BYTES]>);

// SAFETY: each grain belongs to one allocation at a time; `TAKEN` says which are free.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; BYTES]));
/// A bit for each grain, under a lock that is taken where there is no memory, and nowhere else.
static TAKEN: Mutex<[u64; GRAINS / 64]> = Mutex::new([0; GRAINS / 64]);
static GRAINS_TAKEN: AtomicUsize = AtomicUsize::new(0);

fn taken() -> MutexGuard<'static, [u64; GRAINS / 64]> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses to make anything new where half of the reserve is in use and the system gives no memory.
pub fn must_be_left() -> Result<()> {
    let taken = GRAINS_TAKEN.load(Ordering::Relaxed) * GRAIN;
    if taken > BYTES / 2 && !system_gives(BYTES / 64) {
        fail!(
            ERR_NO_MEMORY,
            "the system gives no memory: {taken} of the library's reserve of {BYTES} bytes are in use"
        );
    }
    Ok(())
}

fn system_gives(bytes: usize) -> bool {
    let Ok(layout) = Layout::from_size_align(bytes, 1) else { return false };
    // SAFETY: the layout is not empty; what is allocated is given back.
    unsafe {
        // Else the compiler leaves an allocation out that nobody uses.
        let pointer = std::hint::black_box(System.alloc(layout));
        if !pointer.is_null() {
            System.dealloc(pointer, layout);
        }
        !pointer.is_null()
    }
}

/// Refuses what takes about so many bytes, in several allocations, where the system does not give
/// them in one. Another thread may take them before they are used: then the reserve is left.
pub fn must_hold(bytes: u64) -> Result<()> {
    must_be_left()?;
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    if size > BYTES / 4 && !system_gives(size) {
        fail!(ERR_NO_MEMORY, "the system gives no memory: expected {bytes} bytes");
    }
    Ok(())
}

/// The items in memory of their own, for numbers of items that a user or a configuration decides
/// on. `what` names them in the message of the failure.
pub fn boxed<T>(what: &str, items: impl ExactSizeIterator<Item = T>) -> Result<Box<[T]>> {
    let (mut all, count) = (Vec::new(), items.len());
    if all.try_reserve_exact(count).is_err() {
        fail!(ERR_NO_MEMORY, "no memory for {count} {what} of {} bytes each", size_of::<T>());
    }
    all.extend(items);
    Ok(all.into_boxed_slice())
}

fn base() -> *mut u8 {
    MEMORY.0.get().cast()
}

fn grains(layout: Layout) -> usize {
    layout.size().div_ceil(GRAIN).max(1)
}

fn is_ours(pointer: *mut u8) -> bool {
    (pointer as usize).wrapping_sub(base() as usize) < BYTES
}

/// Grains from the reserve, or null.
#[cold]
fn take(layout: Layout) -> *mut u8 {
    let wanted = grains(layout);
    if layout.align() > GRAIN || wanted > GRAINS / 4 {
        return std::ptr::null_mut();
    }
    let mut taken = taken();
    let mut free = 0;
    for grain in 0..GRAINS {
        free = if taken[grain / 64] >> (grain % 64) & 1 == 0 { free + 1 } else { 0 };
        if free == wanted {
            let first = grain + 1 - wanted;
            (first..=grain).for_each(|grain| taken[grain / 64] |= 1 << (grain % 64));
            GRAINS_TAKEN.fetch_add(wanted, Ordering::Relaxed);
            return base().wrapping_add(first * GRAIN);
        }
    }
    std::ptr::null_mut()
}

#[cold]
fn give(pointer: *mut u8, layout: Layout) {
    let first = (pointer as usize - base() as usize) / GRAIN;
    let mut taken = taken();
    (first..first + grains(layout)).for_each(|grain| taken[grain / 64] &= !(1 << (grain % 64)));
    GRAINS_TAKEN.fetch_sub(grains(layout), Ordering::Relaxed);
}

/// The system's allocator, and behind it the reserve.
pub struct Reserve;

// SAFETY: what the system gives is given back to it, and grains are given to one owner at a time.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let pointer = unsafe { System.alloc(layout) };
        if pointer.is_null() { take(layout) } else { pointer }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let mut pointer = unsafe { System.alloc_zeroed(layout) };
        if pointer.is_null() {
            pointer = take(layout);
            if !pointer.is_null() {
                // SAFETY: the grains are ours and hold that much.
                unsafe { pointer.write_bytes(0, layout.size()) };
            }
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match is_ours(pointer) {
            true => give(pointer, layout),
            // SAFETY: as the caller promises; it came from the system.
            false => unsafe { System.dealloc(pointer, layout) },
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_ours(pointer) {
            // SAFETY: as the caller promises; it came from the system.
            let moved = unsafe { System.realloc(pointer, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller promises that the new size is one of a layout; both sides hold what is
        // copied.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(pointer, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 64).unwrap()
    }

    /// The tests of a process share the reserve; nobody else runs out of memory meanwhile.
    #[test]
    fn grains_belong_to_one_owner_and_come_back() {
        let (a, b, c) = (take(layout(1)), take(layout(GRAIN + 1)), take(layout(GRAIN)));
        assert!([a, b, c].iter().all(|pointer| is_ours(*pointer)));
        assert_eq!((b as usize - a as usize, c as usize - b as usize), (GRAIN, 2 * GRAIN));
        give(b, layout(GRAIN + 1));
        assert_eq!(take(layout(3 * GRAIN)) as usize - c as usize, GRAIN, "a gap that is too small");
        assert_eq!(take(layout(2 * GRAIN)), b);
        assert!(take(layout(BYTES / 4 + 1)).is_null());
        give(b, layout(2 * GRAIN));
        must_be_left().unwrap();
        // SAFETY: made above, of that layout; what it held is copied.
        unsafe {
            a.write(7);
            let moved = Reserve.realloc(a, layout(1), 3000);
            assert!(!is_ours(moved) && moved.read() == 7);
            Reserve.dealloc(moved, layout(3000));
        }
        give(c, layout(GRAIN));
        give(c.wrapping_add(GRAIN), layout(3 * GRAIN));
        assert_eq!(GRAINS_TAKEN.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_no_memory_holds_is_a_status() {
        let error = boxed("things", (0..isize::MAX as usize).map(|_| 0_u64)).unwrap_err();
        assert_eq!(error.status, crate::util::status::Status::ERR_NO_MEMORY);
        assert_eq!(*boxed("things", [1, 2].into_iter()).unwrap(), [1, 2]);
        let error = must_hold(u64::MAX).unwrap_err();
        assert_eq!(error.status, crate::util::status::Status::ERR_NO_MEMORY);
        must_hold(1 << 20).unwrap();
    }
}
