//! Handles that have ended. The memory of a handle is kept for a while after its end, so that a
//! call with the old handle is refused and does not read memory of another object.

use std::collections::VecDeque;
use std::sync::Mutex;

/// The number of handles that must end after a handle before its memory is used again.
const KEPT: usize = 256;

/// The ended handles of one kind in this process. (A sanitizer has such a quarantine for freed
/// memory.)
pub struct Quarantine<T>(Mutex<VecDeque<Box<T>>>);

impl<T> Quarantine<T> {
    /// None yet.
    #[allow(clippy::new_without_default, reason = "used for statics")]
    pub const fn new() -> Quarantine<T> {
        Quarantine(Mutex::new(VecDeque::new()))
    }

    /// A new object, in the memory of the oldest ended handle, or in new memory.
    pub fn place(&self, object: T) -> Box<T> {
        // try_lock(), because in a forked child the thread that holds the lock may not exist.
        let old = self
            .0
            .try_lock()
            .ok()
            .and_then(|mut ended| if ended.len() > KEPT { ended.pop_front() } else { None });
        match old {
            Some(mut place) => {
                *place = object;
                place
            }
            None => Box::new(object),
        }
    }

    /// Keeps handles that have ended. A call with an old handle may read their content.
    pub fn keep(&self, ended: impl IntoIterator<Item = Box<T>>) {
        match self.0.lock() {
            Ok(mut all) => all.extend(ended),
            Err(_) => ended.into_iter().for_each(std::mem::forget),
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
}
