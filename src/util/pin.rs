//! Pins: how memory is unmapped while other threads may be in the middle of a copy.
//!
//! A thread that is about to touch mapped memory pins itself, looks the address up, does its
//! work and unpins. Whoever wants to unmap first makes the address impossible to look up, then
//! calls [`quiesce`], which returns when every pin that was held at that moment has been given up.
//!
//! A pin costs two plain stores to a line that no other thread writes. The fence between "I am
//! pinned" and "I look the address up" is paid by the other side: `membarrier(2)` makes every
//! running thread of the process execute one. (The scheme is that of asymmetric read-copy-update;
//! see docs/decisions/0002-unmapping.md.) Where the kernel lacks it, the pin pays with a fence.
//!
//! The list of threads is the one thing in this library that belongs to the process and not to a
//! context: a thread pins itself once, whatever number of contexts it uses.

use crossbeam_utils::CachePadded;
use once_cell::sync::Lazy;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence, fence};
use std::sync::{Mutex, PoisonError};

/// One thread's pin: odd while pinned. Written by its thread alone.
#[derive(Default)]
struct Pin {
    count: AtomicU64,
    /// Whether a living thread uses it; a pin is reused, never freed.
    taken: AtomicBool,
    /// The kernel does not run the fence, so the thread must.
    fences: AtomicBool,
}

struct Registry {
    pins: Mutex<Vec<&'static CachePadded<Pin>>>,
    /// The kernel runs the fence for us.
    asymmetric: bool,
}

static REGISTRY: Lazy<Registry> =
    Lazy::new(|| Registry { pins: Mutex::new(Vec::new()), asymmetric: register_membarrier() });

thread_local! {
    /// This thread's pin, null before its first use. No destructor, so that reading it is one load.
    static MINE: Cell<*const Pin> = const { Cell::new(std::ptr::null()) };
    /// Gives the pin back when the thread ends.
    static RETURN: Return = const { Return };
}

struct Return;

impl Drop for Return {
    fn drop(&mut self) {
        let mine = MINE.replace(std::ptr::null());
        // SAFETY: mine is null or one of the registry's pins, which live for ever.
        if let Some(pin) = unsafe { mine.as_ref() } {
            // Release: pairs with the Acquire in adopt(); the next user sees an even count.
            pin.taken.store(false, Ordering::Release);
        }
    }
}

/// While this lives, nothing that this thread looks up is unmapped.
#[must_use]
pub struct Pinned<'a> {
    pin: &'a Pin,
}

/// Pins this thread. Must not be nested, and its holder must not wait for another thread.
#[inline(always)]
pub fn pin<'a>() -> Pinned<'a> {
    let mine = MINE.get();
    // SAFETY: mine is null or one of the registry's pins, which live for ever.
    let pin = match unsafe { mine.as_ref() } {
        Some(pin) => pin,
        None => adopt(),
    };
    let count = pin.count.load(Ordering::Relaxed);
    debug_assert!(count & 1 == 0, "pins do not nest");
    pin.count.store(count + 1, Ordering::Relaxed);
    // Keeps the compiler from moving look-ups above the store; the processor is held back by the
    // membarrier in quiesce().
    compiler_fence(Ordering::SeqCst);
    if pin.fences.load(Ordering::Relaxed) {
        fence(Ordering::SeqCst);
    }
    Pinned { pin }
}

impl Drop for Pinned<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let count = self.pin.count.load(Ordering::Relaxed);
        // Release: everything done under the pin comes before; pairs with the Acquire in quiesce().
        self.pin.count.store(count + 1, Ordering::Release);
    }
}

/// First use in this thread: takes a pin that an ended thread left, or a new one.
#[cold]
#[inline(never)]
fn adopt() -> &'static Pin {
    let mut pins = REGISTRY.pins.lock().unwrap_or_else(PoisonError::into_inner);
    // Acquire: pairs with the Release of the thread that gave the pin back.
    let pin: &'static CachePadded<Pin> =
        match pins.iter().find(|pin| !pin.taken.load(Ordering::Acquire)) {
            Some(pin) => pin,
            None => {
                let pin: &'static CachePadded<Pin> = Box::leak(Box::default());
                pin.fences.store(!REGISTRY.asymmetric, Ordering::Relaxed);
                pins.push(pin);
                pin
            }
        };
    pin.taken.store(true, Ordering::Relaxed);
    MINE.set(&raw const **pin);
    // Registers the destructor; in a thread that is already ending the pin stays taken.
    let _ = RETURN.try_with(|_| ());
    pin
}

/// Waits until every pin held at this moment has been given up. Must not be called while pinned.
pub fn quiesce() {
    if REGISTRY.asymmetric {
        membarrier(MEMBARRIER_PRIVATE_EXPEDITED);
    }
    fence(Ordering::SeqCst);
    let pins = REGISTRY.pins.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for pin in pins {
        // Acquire: pairs with the Release of unpinning; what the thread did is over.
        let count = pin.count.load(Ordering::Acquire);
        while count & 1 == 1 && pin.count.load(Ordering::Acquire) == count {
            std::thread::yield_now();
        }
    }
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
    REGISTRY.asymmetric
}

/// Makes every running thread of every process that joined execute a full fence. False where the
/// kernel does not offer it.
pub fn global_fence() -> bool {
    fence(Ordering::SeqCst);
    REGISTRY.asymmetric && membarrier(MEMBARRIER_GLOBAL_EXPEDITED)
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
                // SAFETY: nobody can look it up and every pin of before has been given up.
                unsafe {
                    fresh.write_volatile(0);
                    drop(Box::from_raw(fresh));
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
