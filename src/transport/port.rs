//! The path to one peer, as any thread uses it.

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

/// What leads to a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is this rank itself.
    Own,
    /// Memory that both map.
    Node,
    /// A wire.
    Wire,
}

/// What is known of one peer. Made at the first use of the peer and kept until the context ends.
pub struct Port {
    /// Its rank.
    pub peer: u32,
    /// Its process.
    pub process: u32,
    /// What leads there.
    pub reach: Reach,
    /// The number of its node, for users.
    pub node: u32,
    imports: ImportTable,
    /// Its threads that sleep; in the control area that the transport keeps mapped.
    waiters: *const Waiters,
    learned: Mutex<Learned>,
}

thread_local! {
    static LEARNING: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread has, or waits for, the lock of what a port has learned.
struct Learning(());

impl Learning {
    /// None: the thread is there already, and was interrupted by a signal handler that calls this
    /// library. It is forbidden to do so, but to wait for oneself would be a bad answer.
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
    /// What is mapped, by index. None for memory that the owner itself keeps.
    mappings: HashMap<usize, Option<Mapping>>,
    /// The peer is gone: nothing may be learned any more.
    closed: bool,
}

// SAFETY: `waiters` points to shared memory that is kept as long as the port and holds atomics.
unsafe impl Send for Port {}
// SAFETY: as above.
unsafe impl Sync for Port {}

impl Port {
    /// A port through which nothing is known yet, with an empty table.
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

    /// Notes what leads to the peer, and on which node the peer runs.
    pub fn by(self, reach: Reach, node: u32) -> Port {
        Port { reach, node, ..self }
    }

    /// Where `size` bytes at `address` are mapped here, if they are. The caller is pinned.
    #[inline(always)]
    pub fn find(&self, address: Address, size: u64) -> Option<*mut u8> {
        self.imports.find(address, size)
    }

    /// Like `find`, for an aligned word of 8 bytes.
    #[inline(always)]
    pub fn find_word(&self, address: Address) -> Option<*mut u8> {
        self.imports.find_word(address)
    }

    /// In a port to oneself: as find(), for the near side of an operation, which may also be any
    /// memory of the process, by the key ANY.
    #[inline(always)]
    pub fn find_near(&self, address: Address, size: u64) -> Option<*mut u8> {
        self.imports.find_near(address, size)
    }

    /// Makes this a port to oneself, whose near side may be any memory of the process.
    pub fn know_own_memory(&self) {
        self.imports.know_own_memory();
    }

    /// The table of a port to oneself, which was made with a whole table.
    ///
    /// # Safety
    /// The port stays where it is, and the table is used no longer than it is there.
    pub unsafe fn own_table(&self) -> OwnTable {
        // SAFETY: as the caller promises.
        unsafe { self.imports.own() }
    }

    /// The length of a region that is known and lives.
    pub fn length(&self, key: Key) -> Option<u64> {
        self.imports.length(key)
    }

    /// The peer's sleeping threads: to be told of every store into its memory.
    #[inline(always)]
    pub fn waiters(&self) -> &Waiters {
        // SAFETY: see new().
        unsafe { &*self.waiters }
    }

    /// Makes a region findable. RETRY_BUSY inside a signal handler that interrupts just this, or a
    /// call that is pinned, for which quiesce() would wait.
    /// `make` maps it, and is called only if nobody was faster; what it replaces is unmapped when
    /// no thread uses it any more.
    pub fn learn(
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
        self.imports.learn(key, base, length, live);
        Ok(())
    }

    /// Makes the region at `index` impossible to find and waits until no thread uses it. What it
    /// was mapped by is the caller's, who unmaps it. The caller is not pinned.
    pub fn forget(&self, index: usize) -> Option<Mapping> {
        let _learning = Learning::begin();
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let old = learned.mappings.remove(&index)?;
        self.imports.forget(index);
        quiesce();
        old
    }

    /// Lets go of the regions whose life the peer has ended: when this has answered Ok, no store of
    /// this process reaches their memory, not even one that was begun before. Their places stay
    /// mapped, and read as zero, because pointers into them may have been handed out. Waits for
    /// nobody. RETRY_BUSY: another thread is just learning a region.
    ///
    /// A thread that learns one of them after this does not store there: it looks whether the
    /// region lives after it has had the lock, and the peer had ended its life before this call.
    pub fn let_go(&self) -> Result<()> {
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

    /// The peer is gone: nothing of it is found from now on. Its mappings stay until the port
    /// goes, because pointers into them may have been handed out.
    pub fn close(&self) {
        let _learning = Learning::begin();
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.closed = true;
        for index in learned.mappings.keys() {
            self.imports.forget(*index);
        }
    }
}
