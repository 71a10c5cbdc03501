//! A value that is made at its first use. The type of once_cell does not fit: it needs the handle
//! of the calling thread. The standard library allocates that handle, and the process ends if the
//! allocation fails.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A value, or none yet.
#[derive(Debug)]
pub struct Once<T> {
    /// Whether the value was made. From then on no thread writes it.
    made: AtomicBool,
    value: UnsafeCell<Option<T>>,
    /// Held by the thread that makes it.
    making: Mutex<()>,
}

// SAFETY: the value is written once, under the lock and before `made`, and only read afterwards.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once::new()
    }
}

impl<T> Once<T> {
    /// None yet.
    pub const fn new() -> Once<T> {
        Once { made: AtomicBool::new(false), value: UnsafeCell::new(None), making: Mutex::new(()) }
    }

    /// The value, if it was made.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        // Acquire: pairs with the Release in put().
        if !self.made.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: it was written before `made`, and nobody writes it again.
        unsafe { (*self.value.get()).as_ref() }
    }

    /// The value, made by `make` unless it was made before. Other threads that call it meanwhile
    /// wait.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.get_or_try_init(|| Ok::<T, std::convert::Infallible>(make())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// Like get_or_init(). If `make` fails there is no value, and the next caller tries again.
    pub fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let made = make()?;
        Ok(self.put(made, &making))
    }

    /// Stores the value. Err: there is one already.
    pub fn set(&self, value: T) -> Result<(), T> {
        let making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if self.made.load(Ordering::Relaxed) {
            return Err(value);
        }
        self.put(value, &making);
        Ok(())
    }

    /// Stores the value. The caller has checked that there is none.
    fn put(&self, value: T, _making: &MutexGuard<'_, ()>) -> &T {
        // SAFETY: the lock is held and `made` is false, so nobody else reads or writes the value.
        let value = unsafe { (*self.value.get()).insert(value) };
        // Release: pairs with the Acquire in get().
        self.made.store(true, Ordering::Release);
        value
    }
}

/// The answer to a question about the process or the machine, which is asked at the first use. For
/// statics: it has no lock, which a child that is forked meanwhile would find taken for ever.
pub struct Answer(AtomicU8);

const NO: u8 = 1;
const YES: u8 = 2;

impl Answer {
    /// Not asked yet.
    #[allow(clippy::new_without_default, reason = "used for statics")]
    pub const fn new() -> Answer {
        Answer(AtomicU8::new(0))
    }

    /// The answer. Several threads may ask at the same time; the first answer counts for all.
    #[inline(always)]
    pub fn get_or_ask(&self, ask: impl FnOnce() -> bool) -> bool {
        // Acquire: pairs with the Release below; what the question has done has been done.
        match self.0.load(Ordering::Acquire) {
            0 => self.ask(ask),
            known => known == YES,
        }
    }

    #[cold]
    fn ask(&self, ask: impl FnOnce() -> bool) -> bool {
        let answer = if ask() { YES } else { NO };
        match self.0.compare_exchange(0, answer, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => answer == YES,
            Err(first) => first == YES,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn it_is_made_once_and_again_after_a_failure() {
        let (once, made) = (Once::new(), AtomicU32::new(0));
        assert_eq!(once.get_or_try_init(|| Err::<u32, u32>(5)), Err(5));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let make = || Ok::<u32, u32>(made.fetch_add(1, Ordering::Relaxed) + 7);
                    assert_eq!(once.get_or_try_init(make), Ok(&7));
                });
            }
        });
        assert_eq!((once.get(), made.into_inner(), once.set(3)), (Some(&7), 1, Err(3)));
    }

    #[test]
    fn the_first_answer_counts_for_all() {
        let answer = Answer::new();
        // While this thread asks, another one answers.
        let slow = answer.get_or_ask(|| {
            assert!(answer.get_or_ask(|| true));
            false
        });
        assert!(slow && answer.get_or_ask(|| false));
    }
}
