//! The memory that teams and plans of a context take: counted, bounded, and given back when no rank can
//! touch it any more.
//!
//! A rank that ends a plan does not wait for the others. It says in its session that it has left; its
//! memory goes when all others have said so too, which is looked for whenever memory is asked for.

use crate::core::region::Made;
use crate::core::services::Services;
use crate::fail;
use crate::transport::address::{Address, Key};
use crate::util::pin::pin;
use crate::util::status::Result;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// See the head of the file.
pub struct Arena {
    services: Arc<Services>,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    used: u64,
    graves: Vec<Grave>,
}

/// Memory that other ranks may still touch.
struct Grave {
    key: Key,
    bytes: u64,
    /// For each of them, where it says that it has left: a word of 4 bytes.
    others: Vec<(u32, Address)>,
}

impl Arena {
    /// Nothing is taken yet.
    pub fn new(services: Arc<Services>) -> Arena {
        Arena { services, books: Mutex::default() }
    }

    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fresh zeroed memory that peers map, within the limit of the configuration.
    pub fn allocate(&self, bytes: u64) -> Result<Made> {
        self.collect();
        let limit = self.services.config.coll_memory << 20;
        let mut books = self.books();
        let used = books.used;
        if bytes > limit.saturating_sub(used) {
            fail!(
                ERR_NO_MEMORY,
                "{bytes} bytes are needed and {used} of {limit} are in use; see LLCL_COLL_MEMORY"
            );
        }
        let made = self.services.allocate(bytes as usize)?;
        books.used += bytes;
        Ok(made)
    }

    /// Gives memory back that no other rank has been told of.
    pub fn discard(&self, key: Key, bytes: u64) {
        // It cannot fail: the region is ours, and this is the only place that frees it.
        let _ = self.services.free(key);
        self.books().used -= bytes;
    }

    /// Gives memory back when the others have left it: each says so at the place named.
    pub fn mark_dead(&self, key: Key, bytes: u64, others: Vec<(u32, Address)>) {
        self.books().graves.push(Grave { key, bytes, others });
        self.collect();
    }

    /// Frees what nobody can touch any more.
    fn collect(&self) {
        let (gone, kept) = {
            let mut books = self.books();
            let graves = std::mem::take(&mut books.graves);
            graves.into_iter().partition::<Vec<_>, _>(|retired| self.is_left(retired))
        };
        self.books().graves.extend(kept);
        for retired in gone {
            self.discard(retired.key, retired.bytes);
        }
    }

    fn is_left(&self, retired: &Grave) -> bool {
        retired.others.iter().all(|(peer, place)| {
            let _pinned = pin();
            let word = self.services.routes.known(*peer).and_then(|port| port.find(*place, 4));
            // Memory that is gone was left by everybody; so was that of a rank that is dead.
            word.is_none_or(|word| {
                // SAFETY: found while pinned; a word that its owner changes atomically.
                let word = unsafe { AtomicU32::from_ptr(word.cast()) };
                // Acquire: pairs with the Release of whoever leaves.
                word.load(Ordering::Acquire) != 0
            })
        })
    }
}
