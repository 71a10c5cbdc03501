//! For tests: counts how many bytes each part of a program has allocated. A thread declares by
//! counted() for which part it works. Freed memory is subtracted from the part that has allocated
//! it.

use crate::util::reserve::Reserve;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Parts are numbered from 1 to PARTS - 1. 0 is the number of allocations that belong to no part;
/// they are not counted.
pub const PARTS: usize = 4;

static BYTES: [AtomicUsize; PARTS] = [const { AtomicUsize::new(0) }; PARTS];
static MOST: [AtomicUsize; PARTS] = [const { AtomicUsize::new(0) }; PARTS];

thread_local! {
    static PART: Cell<usize> = const { Cell::new(0) };
    /// Bytes of the thread at present, and the most there were since peak() began.
    static OWN: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// Calls `work`, and counts its allocations for `part`.
pub fn counted<T>(part: usize, work: impl FnOnce() -> T) -> T {
    let before = PART.replace(part);
    let result = work();
    PART.set(before);
    result
}

/// Bytes that a part has allocated and not freed.
pub fn bytes_of(part: usize) -> usize {
    BYTES[part].load(Ordering::Relaxed)
}

/// The most bytes of a part at one time since the last call of this function.
pub fn most_of(part: usize) -> usize {
    MOST[part].swap(bytes_of(part), Ordering::Relaxed)
}

/// Calls `work`. Returns its result, and the most bytes by which the thread's memory grew during
/// the call.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = OWN.get().0;
    OWN.set((before, before));
    let done = work();
    (done, (OWN.get().1 - before) as usize)
}

fn note_own(bytes: isize) {
    // A thread that is ending has no counter any more.
    let _ = OWN.try_with(|own| {
        let (now, most) = own.get();
        own.set((now + bytes, most.max(now + bytes)));
    });
}

/// The allocator of the library, which writes the part in front of each allocation.
pub struct Counted(pub Reserve);

/// Bytes in front of an allocation of this layout, and the layout with them.
fn with_head(layout: Layout) -> (usize, Layout) {
    let head = layout.align().max(16);
    // SAFETY: the callers' sizes are far below the largest.
    (head, unsafe { Layout::from_size_align_unchecked(layout.size() + head, layout.align()) })
}

// SAFETY: the allocator behind it allocates; its pointers are moved on by a multiple of the
// alignment that was asked for, and moved back before they are freed.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (head, whole) = with_head(layout);
        // SAFETY: as the caller promises.
        let pointer = unsafe { self.0.alloc(whole) };
        if pointer.is_null() {
            return pointer;
        }
        let part = PART.try_with(Cell::get).unwrap_or(0);
        // Counters that all threads share would slow every test down.
        if part != 0 {
            let now = BYTES[part].fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
            MOST[part].fetch_max(now, Ordering::Relaxed);
        }
        note_own(layout.size() as isize);
        // SAFETY: the allocation begins with `head` bytes, 16 or more.
        unsafe {
            pointer.write(part as u8);
            pointer.add(head)
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let (head, whole) = with_head(layout);
        note_own(-(layout.size() as isize));
        // SAFETY: alloc() has moved it on by so much and has written the part there.
        unsafe {
            let pointer = pointer.sub(head);
            let part = usize::from(pointer.read());
            if part != 0 {
                BYTES[part].fetch_sub(layout.size(), Ordering::Relaxed);
            }
            self.0.dealloc(pointer, whole);
        }
    }
}
