//! The path to one peer: a [`Port`] tells how this process reaches the peer, finds the peer's
//! mapped regions, and knows the peer's sleeping threads. Any thread uses it.

use crate::fail;
use crate::transport::address::{Address, Key};
use crate::transport::imports::{ImportTable, OwnTable};
use crate::transport::waiters::Waiters;
use crate::util::memory::Mapping;
use crate::util::pin::{is_pinned, quiesce};
use crate::util::status::{Error, Result, Status};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError, TryLockError};

/// The transport that leads to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Loopback: the rank is this one.
    Own,
    /// Shared memory.
    Node,
    /// A wire.
    Wire,
}

/// The path to one peer. Made at the first use of the peer and kept until the context ends.
pub struct Port {
    /// The peer's rank.
    pub peer: u32,
    /// The number of its process (pid).
    pub process: u32,
    /// The transport that leads to it.
    pub reach: Reach,
    /// The number of its node, for users.
    pub node: u32,
    imports: ImportTable,
    /// The peer's sleeping threads, in its control area, which the transport keeps mapped.
    waiters: *const Waiters,
    learned: Mutex<Learned>,
}

thread_local! {
    static LEARNING: Cell<bool> = const { Cell::new(false) };
}

/// While it exists, the calling thread holds the lock `learned` of a port, or waits for it.
struct Learning(());

impl Learning {
    /// None: the thread has one already, so this call comes from a signal handler that interrupted
    /// it. Signal handlers must not call this library; a refusal is still better than a deadlock.
    fn begin() -> Option<Learning> {
        LEARNING.with(|learning| !learning.replace(true)).then(|| Learning(()))
    }
}

impl Drop for Learning {
    fn drop(&mut self) {
        LEARNING.with(|learning| learning.set(false));
    }
}

#[derive(Default)]
struct Learned {
    /// The mappings of known regions, by index. None: the owner of the memory keeps the mapping.
    mappings: HashMap<usize, Option<Mapping>>,
    /// The peer is gone: learn() does nothing any more.
    closed: bool,
}

// SAFETY: `waiters` points to atomics in shared memory that stays mapped as long as the port lives.
unsafe impl Send for Port {}
// SAFETY: as above.
unsafe impl Sync for Port {}

impl Port {
    /// A port that knows no region yet; `imports` is an empty table.
    ///
    /// # Safety
    /// `waiters` stays valid as long as the port.
    pub unsafe fn new(
        peer: u32,
        process: u32,
        waiters: *const Waiters,
        imports: ImportTable,
    ) -> Port {
        let (reach, node) = (Reach::Node, 0);
        Port { peer, process, reach, node, imports, waiters, learned: Mutex::default() }
    }

    /// The port with another transport and number of node.
    pub fn by(self, reach: Reach, node: u32) -> Port {
        Port { reach, node, ..self }
    }

    /// The local address of `size` bytes at `address`, if they are mapped here and the region
    /// lives. The caller is pinned.
    #[inline(always)]
    pub fn find(&self, address: Address, size: u64) -> Option<*mut u8> {
        self.imports.find(address, size)
    }

    /// The local address of an aligned word of 8 bytes, as find() gives it.
    #[inline(always)]
    pub fn find_word(&self, address: Address) -> Option<*mut u8> {
        self.imports.find_word(address)
    }

    /// Where a region begins here, and its length, if it is known and lives. The caller is pinned.
    #[inline(always)]
    pub fn region(&self, key: u64) -> Option<(*mut u8, u64)> {
        self.imports.region(key)
    }

    /// The address of an operation's local buffer, in the port to oneself. The buffer lies in a
    /// region, or, by the key ANY, anywhere in the process.
    #[inline(always)]
    pub fn find_near(&self, address: Address, size: u64) -> Option<*mut u8> {
        self.imports.find_near(address, size)
    }

    /// As region(), in a port to oneself and for the near side, as find_near().
    pub fn region_near(&self, key: u64) -> Option<(*mut u8, u64)> {
        self.imports.region_near(key)
    }

    /// Lets find_near() accept the key ANY. For the port to oneself.
    pub fn know_own_memory(&self) {
        self.imports.know_own_memory();
    }

    /// The table of own regions, in the port to oneself, which was made with ImportTable::whole().
    ///
    /// # Safety
    /// The port is not moved or dropped while the table is in use.
    pub unsafe fn own_table(&self) -> OwnTable {
        // SAFETY: the caller keeps the port, and so the table, in its place.
        unsafe { self.imports.own() }
    }

    /// The length of a region in bytes, if it is known and lives.
    pub fn length(&self, key: Key) -> Option<u64> {
        self.imports.length(key)
    }

    /// The peer's sleeping threads. A thread that stores into the peer's memory must notify them.
    #[inline(always)]
    pub fn waiters(&self) -> &Waiters {
        // SAFETY: see new().
        unsafe { &*self.waiters }
    }

    /// Adds a region to the table. `make` maps it; learn() calls `make` only if no other thread has
    /// added the region meanwhile. A region that was at this index before is unmapped when no
    /// thread uses it any more.
    ///
    /// RETRY_BUSY: a signal handler has interrupted this very function, or the caller is pinned, so
    /// quiesce() would wait for itself.
    ///
    /// # Safety
    /// `live` outlives the port. The bytes that `make` answers belong to the mapping that it
    /// answers, or stay valid until `live` has lost the key and quiesce() has returned since.
    pub unsafe fn learn(
        &self,
        key: Key,
        live: *mut AtomicU64,
        make: impl FnOnce() -> Result<(Option<Mapping>, *mut u8, u64)>,
    ) -> Result<()> {
        let learning = Learning::begin().filter(|_| !is_pinned());
        let Some(_learning) = learning else {
            return Err(Error::bare(Status::RETRY_BUSY));
        };
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if learned.closed || self.imports.knows(key) {
            return Ok(());
        }
        if learned.mappings.try_reserve(1).is_err() {
            fail!(ERR_NO_MEMORY, "no memory for more than {} regions", learned.mappings.len());
        }
        self.imports.grow(key.index())?;
        let (mapping, base, length) = make()?;
        if let Some(old) = learned.mappings.remove(&key.index()) {
            self.imports.forget(key.index());
            quiesce();
            drop(old);
        }
        learned.mappings.insert(key.index(), mapping);
        // SAFETY: as the caller promises; a mapping in `learned` is kept until forget(), quiesce().
        unsafe { self.imports.learn(key, base, length, live) };
        Ok(())
    }

    /// Removes the region at `index` from the table, waits until no thread uses it, and returns its
    /// mapping, which the caller then drops. The caller is not pinned.
    pub fn forget(&self, index: usize) -> Option<Mapping> {
        let _learning = Learning::begin();
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let old = learned.mappings.remove(&index)?;
        self.imports.forget(index);
        quiesce();
        old
    }

    /// Releases the regions that the peer has freed. After Ok no store of this process reaches
    /// their memory, not even one that a thread had begun before. Their addresses stay mapped, and
    /// read as zero, because the user may hold pointers (`llcl_remote_pointer`). Waits for no other
    /// thread. RETRY_BUSY: another thread is adding a region.
    ///
    /// A thread that adds one of these regions after this call does not store there: after learn()
    /// it checks that the region lives, and the peer freed it before this call.
    pub fn cut_off_freed(&self) -> Result<()> {
        let busy = || Error::bare(Status::RETRY_BUSY);
        let _learning = Learning::begin().ok_or_else(busy)?;
        let learned = match self.learned.try_lock() {
            Ok(learned) => learned,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(busy()),
        };
        for (index, mapping) in &learned.mappings {
            if self.imports.has_ended(*index) {
                mapping.as_ref().map_or(Ok(()), Mapping::cut_off)?;
                self.imports.forget(*index);
            }
        }
        Ok(())
    }

    /// Closes the port to a peer that is gone: find() finds no region from now on. The mappings
    /// stay until the port is dropped, because the user may hold pointers.
    pub fn close(&self) {
        let _learning = Learning::begin();
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.closed = true;
        for index in learned.mappings.keys() {
            self.imports.forget(*index);
        }
    }
}
