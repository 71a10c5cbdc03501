//! A reserve for allocations when the system gives no memory: a fixed block of the library's own
//! data, which takes no memory until it is used.
//!
//! Rust's collections and reference counts end the process if an allocation fails. With this
//! allocator small allocations do not fail while the reserve lasts. It is meant for the calls under
//! way. A call that makes a new object calls [`must_be_left`] first, and returns LLCL_ERR_NO_MEMORY
//! if half of the reserve is in use. So existing objects continue to work and can be freed. Code
//! that may allocate more than a quarter of the reserve at once uses [`boxed`] or `try_reserve`,
//! whose failure is a status, or calls [`must_hold`] before.
//! (docs/decisions/0010-memory-runs-out.md)

use crate::fail;
use crate::util::status::Result;
use crate::util::sync::{AtomicU64, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::AtomicUsize;

/// More than twice what a context allocates: some 400 KiB with the default sizes, 1.6 MiB with the
/// largest.
const BYTES: usize = 4 << 20;
/// The reserve is allocated in grains of this size, in bytes, which is also the largest alignment.
const GRAIN: usize = 256;
const GRAINS: usize = BYTES / GRAIN;

#[repr(C, align(256))]
struct Memory(UnsafeCell<[u8; BYTES]>);

// SAFETY: each grain belongs to one allocation at a time; `TAKEN` says which are free.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; BYTES]));
/// A bit for each grain: whether it belongs to an allocation.
#[cfg(not(loom))]
static TAKEN: [AtomicU64; GRAINS / 64] = [const { AtomicU64::new(0) }; GRAINS / 64];
/// Loom's atomics live in its models only.
#[cfg(loom)]
static TAKEN: [AtomicU64; 0] = [];
static GRAINS_TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Takes `wanted` adjacent free grains and returns the first. It takes no lock: if a child were
/// forked while another thread held the lock, the lock would stay held in the child. The grains
/// that such a thread is taking are lost to the child.
fn claim(taken: &[AtomicU64], wanted: usize) -> Option<usize> {
    let mut free = 0;
    for grain in 0..taken.len() * 64 {
        // Relaxed: only a hint, since claim_all() decides.
        let word = taken[grain / 64].load(Ordering::Relaxed);
        free = if word >> (grain % 64) & 1 == 0 { free + 1 } else { 0 };
        if free >= wanted && claim_all(taken, grain + 1 - wanted, wanted) {
            return Some(grain + 1 - wanted);
        }
    }
    None
}

/// Takes these grains, if all of them are free.
fn claim_all(taken: &[AtomicU64], first: usize, count: usize) -> bool {
    for (word, bits) in masks(first, count) {
        // Acquire: pairs with give_all(), which follows the last owner's accesses.
        let before = taken[word].fetch_or(bits, Ordering::Acquire);
        if before & bits != 0 {
            // Another thread has some of them. Those that this call has taken are given back.
            taken[word].fetch_and(!(bits & !before), Ordering::Relaxed);
            let done = (word * 64).saturating_sub(first);
            give_all(taken, first, done);
            return false;
        }
    }
    true
}

/// Frees these grains.
fn give_all(taken: &[AtomicU64], first: usize, count: usize) {
    for (word, bits) in masks(first, count) {
        // Release: pairs with claim_all().
        taken[word].fetch_and(!bits, Ordering::Release);
    }
}

/// The words in which these grains have their bits, each with these bits.
fn masks(first: usize, count: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = first + count;
    (first / 64..end.div_ceil(64)).map(move |word| {
        let from = first.saturating_sub(word * 64);
        let to = (end - word * 64).min(64);
        (word, if to > from { u64::MAX >> (64 - (to - from)) << from } else { 0 })
    })
}

/// An error if half of the reserve is in use and the system gives no memory.
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
    // SAFETY: the layout is not empty, and the allocation is freed.
    unsafe {
        // Without black_box the compiler would remove the unused allocation.
        let pointer = std::hint::black_box(System.alloc(layout));
        if !pointer.is_null() {
            System.dealloc(pointer, layout);
        }
        !pointer.is_null()
    }
}

/// An error if the system does not give `bytes` in one allocation. It is an estimate: the caller
/// will make several allocations, and for those the reserve helps if another thread takes the
/// memory first.
pub fn must_hold(bytes: u64) -> Result<()> {
    must_be_left()?;
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    if size > BYTES / 4 && !system_gives(size) {
        fail!(ERR_NO_MEMORY, "the system gives no memory: expected {bytes} bytes");
    }
    Ok(())
}

/// A box of items whose number a user or a configuration chooses. `what`: their name in the error
/// message.
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
    let Some(first) = claim(&TAKEN, wanted) else { return std::ptr::null_mut() };
    GRAINS_TAKEN.fetch_add(wanted, Ordering::Relaxed);
    base().wrapping_add(first * GRAIN)
}

#[cold]
fn give(pointer: *mut u8, layout: Layout) {
    let first = (pointer as usize - base() as usize) / GRAIN;
    GRAINS_TAKEN.fetch_sub(grains(layout), Ordering::Relaxed);
    give_all(&TAKEN, first, grains(layout));
}

/// An allocator that uses the reserve when the system's allocator fails.
pub struct Reserve;

// SAFETY: memory of the system is freed to the system, and a grain has one owner at a time.
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

    /// No other test of the process uses the reserve meanwhile, since none runs out of memory.
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
    fn grains_over_several_words_are_taken_together_or_not_at_all() {
        let taken = [const { AtomicU64::new(0) }; 3];
        assert_eq!(
            (claim(&taken, 60), claim(&taken, 70), claim(&taken, 1)),
            (Some(0), Some(60), Some(130))
        );
        let words = || taken.each_ref().map(|word| word.load(Ordering::Relaxed));
        let before = words();
        assert!(!claim_all(&taken, 120, 11) && !claim_all(&taken, 130, 62) && words() == before);
        give_all(&taken, 60, 70);
        assert_eq!(words(), [u64::MAX >> 4, 0, 4]);
        assert_eq!(
            (claim(&taken, 71), claim(&taken, 64), claim(&taken, 62)),
            (None, Some(60), None)
        );
        give_all(&taken, 60, 64);
        give_all(&taken, 0, 60);
        give_all(&taken, 130, 1);
        assert_eq!(words(), [0; 3]);
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

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// Two threads take grains on both sides of a word's end, write there and give the grains back.
    /// Both want one of the grains. It never belongs to both, and each thread sees what the other
    /// has written there before.
    #[test]
    fn loom_grains_belong_to_one_thread_at_a_time() {
        let mut bounded = loom::model::Builder::new();
        bounded.preemption_bound = Some(3);
        bounded.check(|| {
            let taken = [0, 0].map(AtomicU64::new);
            let grains = [0, 0, 0].map(|_| UnsafeCell::new(0_u8));
            let shared = Arc::new((taken, grains));
            let work = |first: usize| {
                let shared = shared.clone();
                move || {
                    let (taken, grains) = &*shared;
                    for _ in 0..2 {
                        if !claim_all(taken, first, 2) {
                            continue;
                        }
                        for grain in &grains[first - 63..][..2] {
                            // SAFETY: loom reports two threads that access a grain at the same
                            // time.
                            grain.with_mut(|grain| unsafe { *grain += 1 });
                        }
                        give_all(taken, first, 2);
                    }
                }
            };
            let other = thread::spawn(work(63));
            work(64)();
            other.join().unwrap();
            let words = shared.0.each_ref().map(|word| word.load(Ordering::Relaxed));
            assert_eq!(words, [0, 0]);
        });
    }
}
