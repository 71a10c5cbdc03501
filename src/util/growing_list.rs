//! A list that only grows, without a lock. If a child is forked while another thread changes the
//! list, the child can use it: it has the new item or does not.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The list, with the newest item first.
pub struct GrowingList<T: 'static>(AtomicPtr<Entry<T>>);

struct Entry<T> {
    item: T,
    /// Set before the entry is in the list.
    next: *const Entry<T>,
}

impl<T: Send + Sync> GrowingList<T> {
    /// Empty.
    #[allow(clippy::new_without_default, reason = "used for statics")]
    pub const fn new() -> GrowingList<T> {
        GrowingList(AtomicPtr::new(ptr::null_mut()))
    }

    /// Adds an item, which then lives for ever.
    pub fn push(&self, item: T) -> &'static T {
        let mut first = self.0.load(Ordering::Relaxed);
        let entry = Box::leak(Box::new(Entry { item, next: first }));
        loop {
            entry.next = first;
            let place = &raw mut *entry;
            // Release: a thread that finds the entry finds it complete. Only this thread has
            // changed it before.
            match self.0.compare_exchange(first, place, Ordering::Release, Ordering::Relaxed) {
                // SAFETY: it was leaked above, and is only read from now on.
                Ok(_) => return unsafe { &(*place).item },
                Err(other) => first = other,
            }
        }
    }

    /// The items that are in the list now. Async-signal-safe.
    pub fn iter(&self) -> impl Iterator<Item = &'static T> {
        let mut entry: *const Entry<T> = self.0.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: null, or an entry, which lives for ever and does not change.
            let at: &'static Entry<T> = unsafe { entry.as_ref() }?;
            entry = at.next;
            Some(&at.item)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn items_of_all_threads_are_kept_newest_first() {
        let list = GrowingList::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let list = &list;
                scope.spawn(move || {
                    for item in 0..100 {
                        assert_eq!(*list.push((thread, item)), (thread, item));
                    }
                });
            }
        });
        for thread in 0..4 {
            let of_it: Vec<u32> =
                list.iter().filter(|item| item.0 == thread).map(|item| item.1).collect();
            assert_eq!(of_it, (0..100).rev().collect::<Vec<u32>>());
        }
    }
}
