//! This rank's own memory: one memory file that holds the control area and every allocated region,
//! and the directory by which peers find them.

use crate::transport::memory::control::Control;
use crate::transport::memory::directory::{KIND_ADDRESS, KIND_FILE, Users};
use crate::util::available_memory::available_memory;
use crate::util::config::Config;
use crate::util::extents::Extents;
use crate::util::memory::{Mapping, MemoryFile, file_size_limit, physical_memory, whole_pages};
use crate::util::status::{Error, Result, Status};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// From this size on, huge pages are worth asking for.
pub const HUGE: usize = 2 << 20;

/// One rank's memory file with its control area.
pub struct Segment {
    file: MemoryFile,
    control: Control,
    /// The file itself never gets shorter: a freed range gives its pages back.
    ranges: Mutex<Ranges>,
    hugepages: bool,
}

/// The ranges of the file that no region has.
struct Ranges {
    free: Extents,
    /// Those that a living peer may still store into, by a copy that it began before the region
    /// ended.
    aside: Vec<Aside>,
    /// How many bytes they have.
    aside_bytes: u64,
}

struct Aside {
    offset: u64,
    length: u64,
    held: Holders,
}

/// Which ranks may still store into a range that no region has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// The ranks that have looked its last region up.
    pub users: Users,
    /// Which request to let go of what has ended covers it; see core::recall.
    pub since: u64,
}

/// Why there is no memory for a region.
#[derive(Debug)]
pub struct Refusal {
    /// What the caller is told.
    pub error: Error,
    /// The file may not get longer, but ranges of it lie aside: there may be room when their users
    /// have let go of them.
    pub aside: bool,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { error, aside: false }
    }
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
        let free = Extents::from(control.length() as u64);
        let ranges = Mutex::new(Ranges { free, aside: Vec::new(), aside_bytes: 0 });
        Ok(Segment { file, control, ranges, hugepages: config.hugepages == 1 })
    }

    /// The control area.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The descriptor that peers receive.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `size` bytes of the file and maps them at `at`, or where the kernel chooses if that is
    /// null. They read as zero.
    pub fn allocate(
        &self,
        size: usize,
        at: *mut u8,
    ) -> std::result::Result<(Place, Mapping), Refusal> {
        let most = physical_memory();
        let Some(length) = whole_pages(size).filter(|length| *length as u64 <= most) else {
            let text = format!("size is {size}, expected at most the machine's {most} bytes");
            return Err(Error::new(Status::ERR_NO_MEMORY, text).into());
        };
        let mut ranges = self.ranges();
        let offset = ranges.free.take(length as u64)?;
        // With the lock: the file never gets shorter than another thread has made it meanwhile.
        let provided = self.provide(offset, length, at);
        let mapping = provided.map_err(|error| {
            ranges.free.give(offset, length as u64);
            Refusal { aside: error.aside && !ranges.aside.is_empty(), ..error }
        })?;
        if self.hugepages && size >= HUGE {
            mapping.advise_huge();
        }
        Ok((Place::File(offset), mapping))
    }

    /// Bytes for which there is memory and that the file may still grow by.
    pub fn room(&self) -> u64 {
        let length = self.file.length().unwrap_or_default();
        available_memory().min(file_size_limit().saturating_sub(length))
    }

    /// Maps a part of an allocated region once more, with the rights `access` (PROT_*).
    pub fn map_again(
        &self,
        at: *mut u8,
        access: i32,
        offset: u64,
        length: usize,
    ) -> Result<Mapping> {
        self.file.map_at(at, access, offset, length)
    }

    fn provide(
        &self,
        offset: u64,
        length: usize,
        at: *mut u8,
    ) -> std::result::Result<Mapping, Refusal> {
        let (before, end) = (self.file.length()?, offset + length as u64);
        if before > offset {
            // Used before; a peer that still had the former region in its hands may have stored
            // since its end.
            self.file.release(offset, length as u64)?;
        }
        if before < end {
            self.file.extend(end).map_err(|error| Refusal { error, aside: true })?;
        }
        Ok(self.file.map_at(at, libc::PROT_READ | libc::PROT_WRITE, offset, length)?)
    }

    /// Gives an allocated region's memory back to the kernel, also where peers still have it
    /// mapped. Its range is not used again before give_back().
    pub fn empty(&self, place: Place, size: usize) {
        if let Place::File(offset) = place {
            // Where the pages do not go back now, they do when the range is used again.
            let _ = self.file.release(offset, whole_pages(size).unwrap_or(size) as u64);
        }
    }

    /// The range of an emptied region may be used again: at once where `is_held` is false, else
    /// when reclaim() finds it so.
    pub fn give_back(&self, place: Place, size: usize, held: Holders, is_held: bool) {
        let Place::File(offset) = place else { return };
        let length = whole_pages(size).unwrap_or(size) as u64;
        let mut ranges = self.ranges();
        if !is_held {
            return ranges.free.give(offset, length);
        }
        if ranges.aside.try_reserve(1).is_err() {
            // Where memory is so short that this cannot be noted the range is lost.
            return;
        }
        ranges.aside_bytes += length;
        // Regions that are allocated and freed one after the other, with the same users, take one
        // entry.
        let last = ranges.aside.last_mut().filter(|last| last.held == held);
        match last.filter(|last| last.offset + last.length == offset) {
            Some(last) => last.length += length,
            None => ranges.aside.push(Aside { offset, length, held }),
        }
    }

    /// Makes the ranges free again that nobody holds any more.
    pub fn reclaim(&self, is_held: impl Fn(Holders) -> bool) {
        let mut ranges = self.ranges();
        let Ranges { free, aside, aside_bytes } = &mut *ranges;
        aside.retain(|range| {
            let kept = is_held(range.held);
            if !kept {
                *aside_bytes -= range.length;
                free.give(range.offset, range.length);
            }
            kept
        });
    }

    /// Whether so much of the file lies aside that it is time to ask for it.
    pub fn is_mostly_aside(&self) -> bool {
        let ranges = self.ranges();
        ranges.aside_bytes >= ranges.free.end() / 2
    }

    /// By whom the ranges are held that lie aside.
    pub fn holders(&self) -> Vec<Holders> {
        self.ranges().aside.iter().map(|range| range.held).collect()
    }

    /// Lets peers find a region. The index is free and below the configured number of regions.
    pub fn publish(&self, index: usize, key: u64, place: Place, size: u64) {
        let Some(entry) = self.control.directory(index) else { return };
        let (kind, base) = match place {
            Place::File(offset) => (KIND_FILE, offset),
            Place::Own(address) => (KIND_ADDRESS, address),
        };
        entry.publish(key, kind, base, size);
    }

    /// Ends a region's life in the eyes of everybody.
    pub fn retract(&self, index: usize) {
        if let Some(entry) = self.control.directory(index) {
            entry.retract();
        }
    }

    /// Whether a peer, or one that is a multiple of 256 ranks apart, has looked the region up.
    pub fn is_used_by(&self, index: usize, peer: u32) -> bool {
        self.control.directory(index).is_some_and(|entry| entry.is_used_by(peer))
    }

    /// The ranks that may have looked the region up whose life retract() has ended: after this
    /// nobody else touches it.
    pub fn users(&self, index: usize) -> Users {
        self.control.directory(index).map_or_else(Users::default, |entry| entry.users())
    }

    /// The word that holds the region's key while it lives.
    pub fn live(&self, index: usize) -> *mut AtomicU64 {
        self.control.directory(index).map_or(std::ptr::null_mut(), |entry| entry.live())
    }
}
