//! Handles that have ended. The memory of a handle is kept for a while after its end, so that a
//! call with the old handle is refused and does not read memory of another object.
//!
//! A forked child may end contexts of its own. Another thread of its parent may have been in the
//! middle of keep() or place(), and does not exist in the child, so no call waits for another one.

use std::collections::VecDeque;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The number of handles that must end after a handle before its memory is used again.
const KEPT: usize = 256;

/// The ended handles of one kind in this process. (A sanitizer has such a quarantine for freed
/// memory.)
pub struct Quarantine<T> {
    /// Those that ended last, newest first. From Box::into_raw, or null.
    new: AtomicPtr<Ended<T>>,
    /// The others, oldest first.
    old: Mutex<VecDeque<Box<T>>>,
}

struct Ended<T> {
    handle: Box<T>,
    next: *mut Ended<T>,
}

impl<T> Quarantine<T> {
    /// None yet.
    #[allow(clippy::new_without_default, reason = "used for statics")]
    pub const fn new() -> Quarantine<T> {
        Quarantine { new: AtomicPtr::new(ptr::null_mut()), old: Mutex::new(VecDeque::new()) }
    }

    /// A new object, in the memory of the oldest ended handle, or in new memory.
    pub fn place(&self, object: T) -> Box<T> {
        match self.oldest() {
            Some(mut place) => {
                *place = object;
                place
            }
            None => Box::new(object),
        }
    }

    /// A handle that ended before KEPT others. None also if another thread looks for one.
    fn oldest(&self) -> Option<Box<T>> {
        // try_lock(), because in a forked child the thread that holds the lock may not exist.
        let mut old = self.old.try_lock().ok()?;
        // Acquire: pairs with keep().
        let mut next = self.new.swap(ptr::null_mut(), Ordering::Acquire);
        let mut newest_first = Vec::new();
        while !next.is_null() {
            // SAFETY: the swap has given this thread all that keep() has linked.
            let ended = unsafe { Box::from_raw(next) };
            next = ended.next;
            newest_first.push(ended.handle);
        }
        old.extend(newest_first.into_iter().rev());
        if old.len() > KEPT { old.pop_front() } else { None }
    }

    /// Keeps handles that have ended. A call with an old handle may read their content.
    pub fn keep(&self, ended: impl IntoIterator<Item = Box<T>>) {
        for handle in ended {
            let mut next = self.new.load(Ordering::Relaxed);
            let entry = Box::into_raw(Box::new(Ended { handle, next }));
            loop {
                // Release: whoever takes the entry finds it complete.
                match self.new.compare_exchange(next, entry, Ordering::Release, Ordering::Relaxed) {
                    Ok(_) => break,
                    Err(other) => next = other,
                }
                // SAFETY: the entry is not linked yet, so it is this thread's.
                unsafe { (*entry).next = next };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_late_and_then_in_order() {
        let ended = Quarantine::new();
        let first: Vec<Box<usize>> = (0..KEPT + 2).map(|i| ended.place(i)).collect();
        let places: Vec<*const usize> = first.iter().map(|at| &raw const **at).collect();
        ended.keep(first);
        for at in &places[..2] {
            let again = ended.place(7);
            assert_eq!((&raw const *again, *again), (*at, 7));
            std::mem::forget(again);
        }
        assert!(!places.contains(&(&raw const *ended.place(7))));
    }

    #[test]
    fn no_call_waits_for_a_thread_that_does_not_exist_in_the_child() {
        let ended = Quarantine::new();
        let taken = ended.old.lock();
        ended.keep((0..KEPT + 1).map(Box::new));
        assert_eq!(*ended.place(7), 7);
        drop(taken);
        let again = ended.place(7);
        ended.keep([again]);
    }
}
