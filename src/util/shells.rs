//! Objects whose addresses users hold: what is left of them after their end, kept for a while, so
//! that a handle that has ended is recognised and not followed into memory that something else
//! uses.

use std::collections::VecDeque;
use std::sync::Mutex;

/// So many ended objects lie between the end of one and its place being used again.
const KEPT: usize = 256;

/// The ended objects of one kind in this process.
pub struct Shells<T>(Mutex<VecDeque<Box<T>>>);

impl<T> Shells<T> {
    /// None yet.
    #[allow(clippy::new_without_default, reason = "used for statics")]
    pub const fn new() -> Shells<T> {
        Shells(Mutex::new(VecDeque::new()))
    }

    /// A new object, in the place of the one that ended first, or in one of its own.
    pub fn place(&self, object: T) -> Box<T> {
        // Not by waiting: in a forked child nobody may be there to unlock it.
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

    /// Objects that have ended: what they still hold is what a call with an old handle may look at.
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
        let shells = Shells::new();
        let first: Vec<Box<usize>> = (0..KEPT + 2).map(|i| shells.place(i)).collect();
        let places: Vec<*const usize> = first.iter().map(|at| &raw const **at).collect();
        shells.keep(first);
        for at in &places[..2] {
            let again = shells.place(7);
            assert_eq!((&raw const *again, *again), (*at, 7));
            std::mem::forget(again);
        }
        assert!(!places.contains(&(&raw const *shells.place(7))));
    }
}
