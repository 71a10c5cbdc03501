//! A role: a try-lock around a value. One thread at a time holds it; a thread that finds it taken
//! does not wait for it.

use crate::util::sync::{AtomicU32, Ordering, UnsafeCell, fence};
use std::ops::{Deref, DerefMut};

/// A value that belongs to the thread that holds the role.
pub struct Role<T> {
    held: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the role uses the value, and `held` passes it to the next holder by
// Release and Acquire.
unsafe impl<T: Send> Sync for Role<T> {}

/// A guard: its thread holds the role until it drops the guard. If FENCED, the drop ends with the
/// full fence that `engine::handover` needs.
pub struct Held<'a, T, const FENCED: bool = true>(&'a Role<T>);

impl<T> Role<T> {
    /// A free role.
    pub fn new(value: T) -> Role<T> {
        Role { held: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// The value's address, for comparisons only: the caller need not hold the role.
    pub fn address(&self) -> *const T {
        self.value.with(|value| value)
    }

    /// Takes the role if it is free. If another thread holds it, that holder sees after its drop of
    /// the role everything that the caller stored before this call. Both threads run a full fence
    /// between their own store and their load of the other's word (see `engine::handover`).
    #[inline]
    pub fn take(&self) -> Option<Held<'_, T>> {
        // SeqCst fence: between the caller's stores and the load of `held`; pairs with drop.
        fence(Ordering::SeqCst);
        self.take_unfenced().map(|held| {
            std::mem::forget(held);
            Held(self)
        })
    }

    /// Like `take`, without the two fences, which take as long as a short message. For roles whose
    /// holders need not look again after they have given the role up.
    #[inline]
    pub fn take_unfenced(&self) -> Option<Held<'_, T, false>> {
        if self.held.load(Ordering::Relaxed) != 0 {
            return None;
        }
        // Acquire: pairs with the Release in drop.
        self.held
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| Held(self))
    }
}

impl<T, const FENCED: bool> Drop for Held<'_, T, FENCED> {
    #[inline]
    fn drop(&mut self) {
        // Release: hands the value to the next holder.
        self.0.held.store(0, Ordering::Release);
        if FENCED {
            // SeqCst fence: between the store above and the holder's later loads, which look for
            // work that came meanwhile; pairs with take().
            fence(Ordering::SeqCst);
        }
    }
}

impl<T, const FENCED: bool> Deref for Held<'_, T, FENCED> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: only the holder of the role uses the value; the borrow ends before the role is
        // given up.
        self.0.value.with(|value| unsafe { &*value })
    }
}

impl<T, const FENCED: bool> DerefMut for Held<'_, T, FENCED> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and self is borrowed exclusively.
        self.0.value.with_mut(|value| unsafe { &mut *value })
    }
}
