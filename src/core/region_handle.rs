//! The handle of a region: an object with an address of its own, which outlives the region and the
//! context, so that a call with a freed handle is refused.

use crate::core::region::{Regions, Wanted};
use crate::fail;
use crate::transport::address::{Address, Key};
use crate::util::quarantine::Quarantine;
use crate::util::status::Result;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of freed handles that are not used again, so that a second free is recognised.
const QUARANTINE: usize = 256;

/// Handles of contexts that have ended.
static ENDED: Quarantine<RegionHandle> = Quarantine::new();

/// The object to which a user's handle points.
#[derive(Debug)]
pub struct RegionHandle {
    /// The context's handles, valid as long as the region is live; never null.
    handles: *const Handles,
    /// Its index among the context's handles.
    at: usize,
    key: AtomicU64,
    address: AtomicPtr<u8>,
    size: AtomicUsize,
    live: AtomicBool,
}

// SAFETY: `handles` points to an object that any thread may use; `at` does not change, and the
// other fields are atomics.
unsafe impl Send for RegionHandle {}
// SAFETY: as above.
unsafe impl Sync for RegionHandle {}

/// A context's handles. Its address must not change once it has made one.
pub struct Handles {
    regions: Arc<Regions>,
    #[allow(clippy::vec_box, reason = "users hold the addresses")]
    all: Mutex<(Vec<Box<RegionHandle>>, VecDeque<usize>)>,
}

impl RegionHandle {
    /// Whether the region has not been freed.
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    /// Its first byte; null once it is freed.
    pub fn address(&self) -> *mut u8 {
        match self.is_live() {
            true => self.address.load(Ordering::Relaxed),
            false => std::ptr::null_mut(),
        }
    }

    /// Its length; 0 once it is freed.
    pub fn size(&self) -> usize {
        if self.is_live() { self.size.load(Ordering::Relaxed) } else { 0 }
    }

    /// Maps a part of it once more, see Regions::alias().
    pub fn alias(&self, part: (u64, usize), at: *mut u8, access: i32) -> Result<*mut u8> {
        let (regions, key) = self.regions()?;
        regions.alias(key, part, at, access)
    }

    /// Unmaps an alias that alias() has mapped.
    pub fn unalias(&self, at: *mut u8) -> Result<()> {
        let (regions, key) = self.regions()?;
        regions.unalias(key, at)
    }

    /// The regions of its context, and its key, for calls that change the region.
    fn regions(&self) -> Result<(&Regions, Key)> {
        if !self.is_live() {
            fail!(ERR_STATE, "the region has been freed before, or its context has ended");
        }
        // SAFETY: the region is live, hence its context is, which keeps the handles.
        let handles = unsafe { &*self.handles };
        handles.regions.must_be_own()?;
        Ok((&handles.regions, Key(self.key.load(Ordering::Relaxed))))
    }

    /// The address of an offset in the region. For a freed region it is an address that operations
    /// refuse.
    pub fn at(&self, offset: u64) -> Address {
        Address { offset, key: if self.is_live() { self.key.load(Ordering::Relaxed) } else { 0 } }
    }
}

impl Handles {
    /// No handles yet.
    pub fn new(regions: Arc<Regions>) -> Handles {
        Handles { regions, all: Mutex::default() }
    }

    /// Makes a region.
    pub fn make(&self, wanted: Wanted, size: usize) -> Result<*mut RegionHandle> {
        let made = self.regions.make(wanted, size)?;
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let (handles, freed) = &mut *all;
        let at = match freed.len() > QUARANTINE {
            true => freed.pop_front(),
            false => None,
        };
        let at = at.unwrap_or_else(|| {
            handles.push(ENDED.place(RegionHandle {
                handles: self,
                at: handles.len(),
                key: AtomicU64::new(0),
                address: AtomicPtr::default(),
                size: AtomicUsize::new(0),
                live: AtomicBool::new(false),
            }));
            handles.len() - 1
        });
        let handle = &*handles[at];
        handle.key.store(made.key.0, Ordering::Relaxed);
        handle.address.store(made.address, Ordering::Relaxed);
        handle.size.store(size, Ordering::Relaxed);
        // Release: pairs with the Acquire in is_live().
        handle.live.store(true, Ordering::Release);
        Ok((&raw const *handle).cast_mut())
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        let all = self.all.get_mut().unwrap_or_else(PoisonError::into_inner);
        all.0.iter().for_each(|handle| handle.live.store(false, Ordering::Release));
        ENDED.keep(all.0.drain(..));
    }
}

/// Frees the region of a handle.
pub fn free_region(handle: &RegionHandle) -> Result<()> {
    let (regions, key) = handle.regions()?;
    // SAFETY: the context of a live region keeps the handles.
    let handles = unsafe { &*handle.handles };
    regions.free(key, || {
        handle.live.store(false, Ordering::Release);
        let mut all = handles.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.1.push_back(handle.at);
    })
}
