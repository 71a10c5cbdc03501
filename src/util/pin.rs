//! Pins: how memory is unmapped although other threads may be in the middle of a copy.
//!
//! A thread that is about to access mapped memory pins itself, looks the address up, does its work
//! and unpins. A thread that wants to unmap memory first removes the address from the table, and
//! then calls [`quiesce`]. That returns when every pin that was held at the moment of the call has
//! been released.
//!
//! A pin costs two plain stores to a line that no other thread writes. The pin must be visible
//! before the address is looked up. The unmapping thread executes the fence for that:
//! `membarrier(2)` makes every running thread of the process execute one. (The scheme is that of
//! asymmetric read-copy-update; see docs/decisions/0002-unmapping.md.) Where the kernel lacks this
//! call, each pin executes a fence.
//!
//! The process has one list of pins for all contexts, so a thread has one pin however many contexts
//! it uses. A forked child has a copy of the list, and none of the threads that hold the pins:
//! release_in_child().

use crate::util::fork::call_in_child;
use crate::util::growing_list::GrowingList;
use crate::util::once::Answer;
use crate::util::own_word::own_word;
use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence};

/// One thread's pin: the epoch in which it was taken, or 0 while it is not held. Only its thread
/// writes the word. The thread stores the epoch and does not increment the word, so that an
/// operation does not wait for the store of the previous one.
#[derive(Default)]
struct Pin {
    epoch: AtomicU64,
    /// Whether a living thread uses it; a pin is reused, never freed.
    taken: AtomicBool,
    /// The thread's number: how many pins are older.
    number: usize,
    /// The number again, or HIDDEN.
    shown: AtomicUsize,
}

/// See hide_number().
const HIDDEN: usize = usize::MAX;

/// Counts the calls of quiesce(). Every pin reads it; its line changes only when memory is
/// unmapped.
static EPOCH: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(1));

static PINS: GrowingList<CachePadded<Pin>> = GrowingList::new();
/// How many there are.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether the kernel offers membarrier(), so that a pin needs no fence.
#[inline(always)]
fn asymmetric() -> bool {
    static ASYMMETRIC: Answer = Answer::new();
    ASYMMETRIC.get_or_ask(register_membarrier)
}

thread_local! {
    /// This thread's pin. When the thread ends, another thread may take the pin.
    static MINE: Mine = const { Mine(Cell::new(std::ptr::null())) };
}

struct Mine(Cell<*const Pin>);

impl Drop for Mine {
    fn drop(&mut self) {
        quick::set(std::ptr::null());
        // SAFETY: it is null or one of PINS, which live for ever.
        if let Some(pin) = unsafe { self.0.get().as_ref() } {
            // Release: pairs with the Acquire in free_pin(); the next user sees a pin that is not
            // held.
            pin.taken.store(false, Ordering::Release);
        }
    }
}

own_word! {
    /// This thread's pin. Null before the first use, and if the kernel does not offer the fence.
    quick, "rs_llcl_pin", super::Pin
}

/// A small number that no other living thread has. If a later thread gets the number, it sees all
/// stores of the earlier one. None in a thread that has never been pinned, and if the kernel does
/// not offer the fence.
#[inline(always)]
pub fn thread_number() -> Option<usize> {
    // SAFETY: it is null or one of PINS, which live for ever.
    unsafe { quick::get().as_ref() }.map(|pin| pin.number)
}

/// Like thread_number(), but None between hide_number() and show_number(). So one load tells
/// whether the thread has a number and may use the short paths.
#[inline(always)]
pub fn shown_number() -> Option<usize> {
    // SAFETY: it is null or one of PINS, which live for ever.
    let pin = unsafe { quick::get().as_ref() }?;
    let shown = pin.shown.load(Ordering::Relaxed);
    (shown != HIDDEN).then_some(shown)
}

/// See shown_number(). It first gives the thread a number, because a number that the thread got
/// later would be shown.
#[inline(always)]
pub fn hide_number() {
    if quick::get().is_null() {
        number_thread();
    }
    // SAFETY: as above.
    if let Some(pin) = unsafe { quick::get().as_ref() } {
        pin.shown.store(HIDDEN, Ordering::Relaxed);
    }
}

/// Ends hide_number().
#[inline(always)]
pub fn show_number() {
    // SAFETY: as above.
    if let Some(pin) = unsafe { quick::get().as_ref() } {
        pin.shown.store(pin.number, Ordering::Relaxed);
    }
}

/// Gives the calling thread a number, if possible.
#[cold]
pub fn number_thread() {
    if asymmetric() && MINE.try_with(|mine| mine.0.get().is_null()).unwrap_or(false) {
        adopt();
    }
}

/// Whether the calling thread is pinned: it runs a signal handler that has interrupted a pinned
/// call, and must not call quiesce(), which would wait for that call.
pub fn is_pinned() -> bool {
    let mine = MINE.try_with(|mine| mine.0.get()).unwrap_or(std::ptr::null());
    // SAFETY: it is null or one of PINS, which live for ever.
    unsafe { mine.as_ref() }.is_some_and(|pin| pin.epoch.load(Ordering::Relaxed) != 0)
}

/// While this lives, nothing that this thread looks up is unmapped.
#[must_use]
pub struct Pinned<'a> {
    pin: &'a Pin,
    /// The thread is ending and cannot keep the pin for a further use, so it gives the pin back.
    borrowed: bool,
    /// The thread was pinned already: a signal handler has interrupted a pinned call. The handler
    /// must not end the pin of the call.
    inner: bool,
}

/// Pins this thread. The thread must not wait for another thread while it is pinned. Pins nest only
/// if a signal handler uses the library. That is not allowed, but must not end the pin of the
/// interrupted call.
#[inline(always)]
pub fn pin<'a>() -> Pinned<'a> {
    match pin_if_known() {
        Some(pinned) => pinned,
        None => pin_slowly(),
    }
}

/// Like `pin`, for code that must not call a function. None in a thread that has never been pinned,
/// and if the kernel does not offer the fence.
#[inline(always)]
pub fn pin_if_known<'a>() -> Option<Pinned<'a>> {
    // SAFETY: it is null or one of PINS, which live for ever.
    unsafe { quick::get().as_ref() }.map(|pin| hold(pin))
}

#[inline(always)]
fn hold(pin: &Pin) -> Pinned<'_> {
    let inner = pin.epoch.load(Ordering::Relaxed) != 0;
    if !inner {
        // Acquire: pairs with the increment in quiesce(). A thread that reads the new epoch sees
        // that the address was removed.
        pin.epoch.store(EPOCH.load(Ordering::Acquire), Ordering::Relaxed);
    }
    // Keeps the compiler from moving look-ups above the store; the membarrier in quiesce() orders
    // the processor.
    compiler_fence(Ordering::SeqCst);
    Pinned { pin, borrowed: false, inner }
}

#[cold]
#[inline(never)]
fn pin_slowly<'a>() -> Pinned<'a> {
    let known = MINE.try_with(|mine| mine.0.get()).unwrap_or(std::ptr::null());
    // SAFETY: it is null or one of PINS, which live for ever.
    let known = unsafe { known.as_ref() };
    let mut pinned = hold(known.unwrap_or_else(adopt));
    pinned.borrowed = known.is_none() && MINE.try_with(|_| ()).is_err();
    if !asymmetric() {
        fence(Ordering::SeqCst);
    }
    pinned
}

impl Drop for Pinned<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.inner {
            // Release: everything done under the pin comes before; pairs with the Acquire in
            // quiesce().
            self.pin.epoch.store(0, Ordering::Release);
        }
        if self.borrowed {
            self.pin.taken.store(false, Ordering::Release);
        }
    }
}

/// Called at the first use in a thread: takes the pin of a thread that has ended, or makes a new
/// one.
#[cold]
#[inline(never)]
fn adopt() -> &'static Pin {
    let pin = free_pin().unwrap_or_else(|| {
        call_in_child(release_in_child);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let taken = AtomicBool::new(true);
        PINS.push(Pin { number, taken, ..Pin::default() }.into())
    });
    pin.shown.store(pin.number, Ordering::Relaxed);
    // A thread that is ending cannot keep the pin, so pin_slowly() gives it back.
    let kept = MINE.try_with(|mine| mine.0.set(&raw const **pin)).is_ok();
    if kept && asymmetric() {
        quick::set(&raw const **pin);
    }
    pin
}

/// Takes the free pin with the smallest number.
fn free_pin() -> Option<&'static CachePadded<Pin>> {
    loop {
        let free = PINS.iter().filter(|pin| !pin.taken.load(Ordering::Relaxed));
        let pin = free.min_by_key(|pin| pin.number)?;
        // Acquire: pairs with the Release of the thread that gave the pin back.
        let taken = pin.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            return Some(pin);
        }
    }
}

/// Waits until every pin that is held now has been released. Must not be called while pinned.
pub fn quiesce() {
    // A thread that pins itself in the new epoch, or in the old one but after the fence, does not
    // find the address, which was removed before. The same holds for a thread whose new pin is not
    // in the list yet: it pins itself after that.
    let epoch = EPOCH.fetch_add(1, Ordering::SeqCst) + 1;
    if asymmetric() {
        insist(|| membarrier(MEMBARRIER_PRIVATE_EXPEDITED));
    }
    fence(Ordering::SeqCst);
    for pin in PINS.iter() {
        // Acquire: pairs with the Release of unpinning; the thread's accesses have ended.
        while (1..epoch).contains(&pin.epoch.load(Ordering::Acquire)) {
            std::thread::yield_now();
        }
    }
}

/// Called in a forked child: releases the pins of the parent's other threads. They do not exist in
/// the child, where quiesce() would wait for them for ever.
fn release_in_child() {
    let own = quick::get();
    for pin in PINS.iter() {
        // The thread that has called fork() may be pinned if it did so in a signal handler. What it
        // accesses belongs to its parent's contexts, which the child never unmaps. So its pin may
        // be released as well.
        pin.epoch.store(0, Ordering::Relaxed);
        // `own` is null without the kernel's fence, and for a thread that never had a pin. It is
        // unknown then which pin is this thread's, and the others stay taken.
        if !own.is_null() && !std::ptr::eq(own, &raw const **pin) {
            pin.taken.store(false, Ordering::Relaxed);
        }
    }
}

/// Like global_fence(), for callers for which it has succeeded before.
pub fn global_fence_or_pause() {
    insist(global_fence);
}

/// Calls `fenced` until it succeeds, at most TRIES times. `fenced` has succeeded before. It may
/// fail for a moment because memory is short, or always because the program has filtered its system
/// calls since. If it always fails, this function sleeps, and relies on it that after so long a
/// pause all earlier stores of other threads are visible.
fn insist(fenced: impl Fn() -> bool) {
    const TRIES: usize = 100;
    for _ in 0..TRIES {
        if fenced() {
            return;
        }
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(1));
}

const MEMBARRIER_GLOBAL_EXPEDITED: i32 = 1 << 1;
const MEMBARRIER_REGISTER_GLOBAL_EXPEDITED: i32 = 1 << 2;
const MEMBARRIER_PRIVATE_EXPEDITED: i32 = 1 << 3;
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;

fn membarrier(command: i32) -> bool {
    // SAFETY: a plain system call without memory arguments.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

fn register_membarrier() -> bool {
    membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED)
        && membarrier(MEMBARRIER_REGISTER_GLOBAL_EXPEDITED)
}

/// Whether this process takes part in [`global_fence`]; false on kernels before 4.16.
pub fn joins_global_fence() -> bool {
    asymmetric()
}

/// Makes every running thread of every process that has joined execute a full fence. False: the
/// kernel does not offer it.
pub fn global_fence() -> bool {
    fence(Ordering::SeqCst);
    asymmetric() && membarrier(MEMBARRIER_GLOBAL_EXPEDITED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn quiesce_waits_for_a_pin_that_is_held_and_for_none_that_comes_later() {
        let held = AtomicBool::new(false);
        let given_up = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let pinned = pin();
                held.store(true, Ordering::SeqCst);
                std::thread::sleep(std::time::Duration::from_millis(30));
                given_up.store(true, Ordering::SeqCst);
                drop(pinned);
                for _ in 0..1000 {
                    let _pinned = pin();
                }
            });
            while !held.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            quiesce();
            assert!(given_up.load(Ordering::SeqCst));
        });
    }

    #[test]
    fn an_inner_pin_takes_nothing_from_the_outer_one() {
        let outer = pin();
        let epoch = outer.pin.epoch.load(Ordering::Relaxed);
        EPOCH.fetch_add(1, Ordering::SeqCst);
        drop(pin());
        assert_eq!(outer.pin.epoch.load(Ordering::Relaxed), epoch);
        assert!(is_pinned());
        let word = outer.pin;
        drop(outer);
        assert!(!is_pinned());
        assert_eq!(word.epoch.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn memory_taken_away_after_quiesce_is_never_seen_by_a_pinned_reader() {
        let place = AtomicUsize::new(0);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let _pinned = pin();
                        let address = place.load(Ordering::Acquire) as *const u64;
                        if !address.is_null() {
                            // SAFETY: the pin keeps the box alive.
                            assert_eq!(unsafe { address.read_volatile() }, 7);
                        }
                    }
                });
            }
            for _ in 0..2000 {
                let fresh = Box::into_raw(Box::new(7u64));
                place.store(fresh as usize, Ordering::Release);
                place.store(0, Ordering::SeqCst);
                quiesce();
                // SAFETY: no thread can look it up, and every thread that was pinned before has
                // ended its pin.
                unsafe {
                    fresh.write_volatile(0);
                    drop(Box::from_raw(fresh));
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
