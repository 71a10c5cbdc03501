//! This rank's own memory: one memory file that holds the control area and every allocated region,
//! and the directory by which peers find them.

use crate::fail;
use crate::transport::node::control::{Control, KIND_ADDRESS, KIND_FILE};
use crate::util::config::Config;
use crate::util::extents::Extents;
use crate::util::memory::{Mapping, MemoryFile, physical_memory, whole_pages};
use crate::util::status::Result;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// From this size on, huge pages are worth asking for.
pub const HUGE: usize = 2 << 20;

/// One rank's memory file with its control area.
pub struct Segment {
    file: MemoryFile,
    control: Control,
    /// What of the file is free. The file itself never gets shorter: a freed range gives its pages back.
    extents: Mutex<Extents>,
    hugepages: bool,
}

/// Where a region's bytes are.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// In the memory file, from this offset on.
    File(u64),
    /// In the owner's process, at this address.
    Own(u64),
}

impl Segment {
    /// A fresh file with an empty control area, for a world of `size` ranks.
    pub fn create(config: &Config, size: u32) -> Result<Segment> {
        let file = MemoryFile::create()?;
        let control = Control::create(&file, config, size)?;
        let extents = Mutex::new(Extents::from(control.length() as u64));
        Ok(Segment { file, control, extents, hugepages: config.hugepages == 1 })
    }

    /// The control area.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The descriptor that peers receive.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn extents(&self) -> MutexGuard<'_, Extents> {
        self.extents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `size` bytes of the file and maps them. They read as zero.
    pub fn allocate(&self, size: usize) -> Result<(Place, Mapping)> {
        let most = physical_memory();
        let Some(length) = whole_pages(size).filter(|length| *length as u64 <= most) else {
            fail!(ERR_NO_MEMORY, "size is {size}, expected at most the machine's {most} bytes");
        };
        let mut extents = self.extents();
        let offset = extents.take(length as u64)?;
        // With the lock: the file never gets shorter than another thread has made it meanwhile.
        let mapping = self.provide(offset, length).inspect_err(|_| {
            extents.give(offset, length as u64);
        })?;
        if self.hugepages && size >= HUGE {
            mapping.advise_huge();
        }
        Ok((Place::File(offset), mapping))
    }

    fn provide(&self, offset: u64, length: usize) -> Result<Mapping> {
        let (before, end) = (self.file.length()?, offset + length as u64);
        if before > offset {
            // Used before; a peer that still had the former region in its hands may have stored since its end.
            self.file.release(offset, length as u64)?;
        }
        if before < end {
            self.file.extend(end)?;
        }
        self.file.map(offset, length)
    }

    /// Gives an allocated region's memory back to the kernel, whoever still has it mapped.
    pub fn release(&self, place: Place, size: usize) {
        if let Place::File(offset) = place {
            let length = whole_pages(size).unwrap_or(size) as u64;
            // Where the pages do not go back now, they do when the range is used again.
            let _ = self.file.release(offset, length);
            self.extents().give(offset, length);
        }
    }

    /// Lets peers find a region. The index is free and below the configured number of regions.
    pub fn publish(&self, index: usize, key: u64, place: Place, size: u64) {
        let Some(entry) = self.control.directory(index) else { return };
        let (kind, base) = match place {
            Place::File(offset) => (KIND_FILE, offset),
            Place::Own(address) => (KIND_ADDRESS, address),
        };
        // A reader that sees one of the new words must not see the old key a second time.
        fence(Ordering::Release);
        entry.kind.store(kind, Ordering::Relaxed);
        entry.base.store(base, Ordering::Relaxed);
        entry.length.store(size, Ordering::Relaxed);
        entry.forget_users();
        // Release: pairs with the Acquire in node::Shm::locate.
        entry.key.store(key, Ordering::Release);
    }

    /// Ends a region's life in the eyes of everybody.
    pub fn retract(&self, index: usize) {
        if let Some(entry) = self.control.directory(index) {
            entry.key.store(0, Ordering::Release);
        }
    }

    /// Whether a peer, or one that is a multiple of 256 ranks apart, has looked the region up.
    pub fn is_used_by(&self, index: usize, peer: u32) -> bool {
        self.control.directory(index).is_some_and(|entry| entry.is_used_by(peer))
    }

    /// The word that holds the region's key while it lives.
    pub fn live(&self, index: usize) -> *mut AtomicU64 {
        self.control
            .directory(index)
            .map_or(std::ptr::null_mut(), |entry| (&raw const entry.key).cast_mut())
    }
}
