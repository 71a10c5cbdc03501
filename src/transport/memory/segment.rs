//! The own memory of a rank: one memory file, which holds the control area and every allocated
//! region, and the allocation of ranges of the file. The directory in the control area tells peers
//! where the regions are.

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

/// From this size on a region asks the kernel for huge pages.
pub const HUGE: usize = 2 << 20;

/// One rank's memory file with its control area.
pub struct Segment {
    file: MemoryFile,
    control: Control,
    /// The file never gets shorter: a freed range only returns its pages to the kernel.
    ranges: Mutex<Ranges>,
    hugepages: bool,
}

/// The ranges of the file that belong to no region.
struct Ranges {
    /// Ranges that a new region may take.
    free: Extents,
    /// Ranges into which a living peer may still store, by a copy that it began before the region
    /// was freed.
    aside: Vec<Aside>,
    /// Sum of the lengths of `aside`.
    aside_bytes: u64,
}

struct Aside {
    offset: u64,
    length: u64,
    held: Holders,
}

/// Which ranks may still store into a range of a freed region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// The ranks that have looked the region up.
    pub users: Users,
    /// The number of the first request to release freed regions that covers this range; see
    /// core::recall.
    pub since: u64,
}

/// Why a region gets no memory.
#[derive(Debug)]
pub struct Refusal {
    /// The error for the caller.
    pub error: Error,
    /// The file cannot grow, but ranges lie aside: the caller may succeed after their holders have
    /// released them.
    pub aside: bool,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal { error, aside: false }
    }
}

/// The location of a region's bytes.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// In the memory file, from this offset on.
    File(u64),
    /// In the owner's process, at this address.
    Own(u64),
}

impl Segment {
    /// Makes a file with an empty control area, for a world of `size` ranks.
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

    /// Takes `size` bytes of the file and maps them at `at`, or, if `at` is null, where the kernel
    /// chooses. The bytes are zero.
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
        // Under the lock: provide() reads the file's length and sets a larger one; without the lock
        // it could cut off what another thread has added in between.
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

    /// By how many bytes the file can still grow: the machine has memory for them, and the limit of
    /// file sizes allows them.
    pub fn room(&self) -> u64 {
        let length = self.file.length().unwrap_or_default();
        available_memory().min(file_size_limit().saturating_sub(length))
    }

    /// Maps a part of an allocated region a second time, with the access rights `access` (PROT_*).
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
            // A former region had this range. A peer that had mapped it may have stored after the
            // region was freed, so return the pages once more.
            self.file.release(offset, length as u64)?;
        }
        if before < end {
            self.file.extend(end).map_err(|error| Refusal { error, aside: true })?;
        }
        Ok(self.file.map_at(at, libc::PROT_READ | libc::PROT_WRITE, offset, length)?)
    }

    /// Returns an allocated region's pages to the kernel, even if peers still have them mapped. No
    /// region gets the range before give_back().
    pub fn empty(&self, place: Place, size: usize) {
        if let Place::File(offset) = place {
            // An error is ignored: provide() returns the pages when the range is used again.
            let _ = self.file.release(offset, whole_pages(size).unwrap_or(size) as u64);
        }
    }

    /// Lets new regions use the range of an emptied region: at once if no living rank holds it
    /// (`is_held` is false), else when reclaim() finds that none does.
    pub fn give_back(&self, place: Place, size: usize, held: Holders, is_held: bool) {
        let Place::File(offset) = place else { return };
        let length = whole_pages(size).unwrap_or(size) as u64;
        let mut ranges = self.ranges();
        if !is_held {
            return ranges.free.give(offset, length);
        }
        if ranges.aside.try_reserve(1).is_err() {
            // No memory for the entry: the range is lost.
            return;
        }
        ranges.aside_bytes += length;
        // One entry for adjacent ranges with the same holders, as regions leave them that were
        // allocated and freed one after the other.
        let last = ranges.aside.last_mut().filter(|last| last.held == held);
        match last.filter(|last| last.offset + last.length == offset) {
            Some(last) => last.length += length,
            None => ranges.aside.push(Aside { offset, length, held }),
        }
    }

    /// Frees the ranges that lie aside and that no living rank holds any more.
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

    /// Whether half of the file or more lies aside, so that the owner should ask the holders to
    /// release it.
    pub fn is_mostly_aside(&self) -> bool {
        let ranges = self.ranges();
        ranges.aside_bytes >= ranges.free.end() / 2
    }

    /// The holders of each range that lies aside.
    pub fn holders(&self) -> Vec<Holders> {
        self.ranges().aside.iter().map(|range| range.held).collect()
    }

    /// Enters a region into the directory. The index is free and below the configured number of
    /// regions.
    pub fn publish(&self, index: usize, key: u64, place: Place, size: u64) {
        let Some(entry) = self.control.directory(index) else { return };
        let (kind, base) = match place {
            Place::File(offset) => (KIND_FILE, offset),
            Place::Own(address) => (KIND_ADDRESS, address),
        };
        entry.publish(key, kind, base, size);
    }

    /// Removes a region from the directory: from now on no rank finds it.
    pub fn retract(&self, index: usize) {
        if let Some(entry) = self.control.directory(index) {
            entry.retract();
        }
    }

    /// Whether a peer has looked the region up. Ranks whose distance is a multiple of 256 share the
    /// answer.
    pub fn is_used_by(&self, index: usize, peer: u32) -> bool {
        self.control.directory(index).is_some_and(|entry| entry.is_used_by(peer))
    }

    /// The ranks that may still access a region after retract(): those that have looked it up. No
    /// other rank accesses it any more.
    pub fn users(&self, index: usize) -> Users {
        self.control.directory(index).map_or_else(Users::default, |entry| entry.users())
    }

    /// The word in the directory that holds the region's key while the region lives.
    pub fn live(&self, index: usize) -> *mut AtomicU64 {
        self.control.directory(index).map_or(std::ptr::null_mut(), |entry| entry.live())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SIZE: usize = 4096;

    fn holders(since: u64) -> Holders {
        Holders { users: Users::default(), since }
    }

    /// Allocates three pages, one behind the other, and frees them. The second and the third wait
    /// for the same holders, the first for others.
    fn three_aside(segment: &Segment) -> [u64; 3] {
        let places = [1, 2, 2].map(|since| {
            let (place, _mapping) = segment.allocate(SIZE, std::ptr::null_mut()).unwrap();
            (place, since)
        });
        places.map(|(place, since)| {
            segment.give_back(place, SIZE, holders(since), true);
            let Place::File(offset) = place else { unreachable!("allocated") };
            offset
        })
    }

    fn taken(segment: &Segment) -> u64 {
        match segment.allocate(SIZE, std::ptr::null_mut()).unwrap().0 {
            Place::File(offset) => offset,
            Place::Own(_) => unreachable!("allocated"),
        }
    }

    #[test]
    fn a_range_is_used_again_when_its_own_holders_have_let_go() {
        let segment = Segment::create(&Config::from_environment().unwrap(), 3).unwrap();
        let [first, second, third] = three_aside(&segment);
        assert_eq!([second, third], [first + SIZE as u64, first + 2 * SIZE as u64]);
        assert_eq!(segment.holders(), [holders(1), holders(2)]);
        segment.reclaim(|held| held.since == 2);
        assert_eq!([taken(&segment), taken(&segment)], [first, third + SIZE as u64]);
        segment.reclaim(|_| false);
        assert!(segment.holders().is_empty());
        assert_eq!([taken(&segment), taken(&segment)], [second, third]);
    }

    #[test]
    fn what_is_used_again_does_not_count_as_waiting() {
        let segment = Segment::create(&Config::from_environment().unwrap(), 3).unwrap();
        let all = segment.ranges().free.end() as usize;
        let (place, _mapping) = segment.allocate(2 * all, std::ptr::null_mut()).unwrap();
        segment.give_back(place, 2 * all, holders(1), true);
        assert!(segment.is_mostly_aside());
        segment.reclaim(|_| false);
        assert!(!segment.is_mostly_aside());
    }

    #[test]
    fn a_range_that_cannot_be_mapped_is_given_back() {
        let segment = Segment::create(&Config::from_environment().unwrap(), 3).unwrap();
        let next = taken(&segment) + SIZE as u64;
        let used = segment.control().base();
        assert!(segment.allocate(SIZE, used).is_err(), "something is mapped there");
        assert_eq!(taken(&segment), next);
    }
}
