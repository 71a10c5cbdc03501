//! A value that is made at its first use. Not once_cell's: that one asks for the handle of the calling thread, which the
//! standard library allocates, and it ends the process where that fails.

use std::sync::{Mutex, OnceLock, PoisonError};

/// A value, or none yet.
#[derive(Debug)]
pub struct Once<T> {
    value: OnceLock<T>,
    /// Held by who makes it.
    making: Mutex<()>,
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once::new()
    }
}

impl<T> Once<T> {
    /// None yet.
    pub const fn new() -> Once<T> {
        Once { value: OnceLock::new(), making: Mutex::new(()) }
    }

    /// The value, if it was made.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value, made by `make` unless it was made before. Who comes meanwhile waits.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.value.get_or_init(make)
    }

    /// The same; where `make` fails there is none, and the next one tries again.
    pub fn get_or_try_init<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let made = make()?;
        Ok(self.value.get_or_init(|| made))
    }

    /// Puts the value in. Err: there is one.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)
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
}
