//! Memory from the kernel: anonymous files that are shared by descriptor, and mappings that
//! unmap themselves.

use crate::fail;
use crate::util::futex;
use crate::util::once::Answer;
use crate::util::status::{Error, Result, Status};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// The size of a page, in bytes.
pub fn page_size() -> usize {
    // SAFETY: sysconf has no precondition.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// `size` rounded up to whole pages, or None where that does not fit.
pub fn whole_pages(size: usize) -> Option<usize> {
    let page = page_size();
    size.checked_add(page - 1).map(|sum| sum & !(page - 1))
}

/// The machine's memory, in bytes. No single allocation can be larger.
pub fn physical_memory() -> u64 {
    // SAFETY: sysconf has no precondition.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    pages.max(0) as u64 * page_size() as u64
}

/// The length to which this process may extend a file, in bytes.
pub fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: limit is a valid place for the answer. On an error `limit` stays without a limit.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}

/// A memory file without a name: it ends with its last descriptor and mapping.
#[derive(Debug)]
pub struct MemoryFile(OwnedFd);

impl MemoryFile {
    /// A new file of no length.
    pub fn create() -> Result<MemoryFile> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is NUL-terminated; it is only a label in /proc.
        let fd = unsafe { libc::memfd_create(c"llcl".as_ptr(), flags) };
        if fd < 0 {
            return Err(Error::system("memfd_create"));
        }
        // SAFETY: fd was opened above and has no other owner.
        let file = MemoryFile(unsafe { OwnedFd::from_raw_fd(fd) });
        // The seal prevents every process from shrinking the file, by which processes that map it
        // would end with SIGBUS.
        // SAFETY: a plain system call on a descriptor that file owns.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) } != 0 {
            return Err(Error::system("fcntl(F_ADD_SEALS)"));
        }
        Ok(file)
    }

    /// A file that another rank sent.
    pub fn received(fd: OwnedFd) -> MemoryFile {
        MemoryFile(fd)
    }

    /// Extends the file to `length` bytes, more than it has. New bytes read as zero and take no
    /// memory yet.
    pub fn extend(&self, length: u64) -> Result<()> {
        let limit = file_size_limit();
        if length > limit {
            // The kernel would end the process by SIGXFSZ.
            fail!(
                ERR_NO_MEMORY,
                "this rank's memory file would have {length} bytes, RLIMIT_FSIZE (ulimit -f) allows {limit}"
            );
        }
        // SAFETY: a plain system call on a descriptor that self owns.
        if unsafe { libc::ftruncate(self.0.as_raw_fd(), length as libc::off_t) } != 0 {
            return Err(Error::system("ftruncate"));
        }
        Ok(())
    }

    /// The file's length in bytes.
    pub fn length(&self) -> Result<u64> {
        // SAFETY: all-zero is a valid stat, which fstat then fills.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: stat is a valid place for the answer.
        if unsafe { libc::fstat(self.0.as_raw_fd(), &mut stat) } != 0 {
            return Err(Error::system("fstat"));
        }
        Ok(stat.st_size as u64)
    }

    /// Gives the pages of a range back to the kernel. Mappings stay valid and read as zero.
    pub fn release(&self, offset: u64, length: u64) -> Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let (file, offset, length) = (self.0.as_raw_fd(), offset as i64, length as i64);
        // SAFETY: a plain system call on a descriptor that self owns.
        match unsafe { libc::fallocate(file, mode, offset, length) } {
            0 => Ok(()),
            _ => Err(Error::system("fallocate(FALLOC_FL_PUNCH_HOLE)")),
        }
    }

    /// Maps `length` bytes from `offset`, shared, for loads and stores. The file may be shorter,
    /// see [`Mapping::has_memory`].
    pub fn map(&self, offset: u64, length: usize) -> Result<Mapping> {
        Mapping::new(length, libc::MAP_SHARED, self.0.as_raw_fd(), offset)
    }

    /// Like `map`, but at the address `at`, where nothing may be mapped yet (null: the kernel
    /// chooses), and with the rights `access` (PROT_*).
    pub fn map_at(&self, at: *mut u8, access: i32, offset: u64, length: usize) -> Result<Mapping> {
        let flags = match at.is_null() {
            true => libc::MAP_SHARED,
            false => libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE,
        };
        let (fd, offset) = (self.0.as_raw_fd(), offset as libc::off_t);
        // SAFETY: MAP_FIXED_NOREPLACE replaces no mapping; a kernel that does not know the flag
        // takes the address as a hint.
        let base = unsafe { libc::mmap(at.cast(), length, access, flags, fd, offset) };
        let is_taken = base == libc::MAP_FAILED
            && std::io::Error::last_os_error().raw_os_error() == Some(libc::EEXIST);
        let mapping = if is_taken { None } else { Some(Mapping::made(base, length, "mmap")?) };
        match mapping.filter(|mapping| at.is_null() || mapping.base() == at) {
            Some(mapping) => Ok(mapping),
            None => fail!(
                ERR_RANGE,
                "address is {at:?}, and in the {length} bytes from there something is mapped already"
            ),
        }
    }
}

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The smallest range of which clear() returns pages to the kernel instead of writing zeros.
const WORTH_RELEASING: usize = 128 << 10;

/// Sets bytes of a shared mapping of a memory file to zero. Whole pages of a large range are
/// returned to the kernel.
///
/// # Safety
/// The range belongs to one mapping of this process, and no other thread accesses it meanwhile.
pub unsafe fn clear(start: *mut u8, bytes: usize) {
    let page = page_size();
    let (first, end) =
        ((start as usize).next_multiple_of(page), (start as usize + bytes) & !(page - 1));
    let inner = end.saturating_sub(first);
    // SAFETY: whole pages within the range that the caller vouches for.
    let released =
        bytes >= WORTH_RELEASING && removes() && unsafe { remove(first as *mut u8, inner) };
    let (head, tail) = match released {
        true => (first - start as usize, start as usize + bytes - end),
        false => (bytes, 0),
    };
    // SAFETY: both lie within the range.
    unsafe {
        start.write_bytes(0, head);
        start.add(bytes - tail).write_bytes(0, tail);
    }
}

/// Gives whole pages of a memory file back to the kernel. Returns whether the kernel reports
/// success.
///
/// # Safety
/// As clear(), of whole pages.
unsafe fn remove(first: *mut u8, bytes: usize) -> bool {
    // SAFETY: as the caller promises.
    unsafe { libc::madvise(first.cast(), bytes, libc::MADV_REMOVE) == 0 }
}

/// Whether pages are zero after remove(). User-mode emulation by qemu reports success and does
/// nothing, so this function tries it once.
fn removes() -> bool {
    static REMOVES: Answer = Answer::new();
    let try_one = || -> Result<bool> {
        let file = MemoryFile::create()?;
        file.extend(page_size() as u64)?;
        let page = file.map(0, page_size())?;
        // SAFETY: the page is mapped for writing, and nobody else knows it.
        let left = unsafe {
            page.base().write_volatile(1);
            !remove(page.base(), page_size()) || page.base().read_volatile() != 0
        };
        Ok(!left)
    };
    REMOVES.get_or_ask(|| try_one().unwrap_or(false))
}

/// A mapping, which is unmapped when this is dropped.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is an address range; its users synchronise their accesses.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes of this mapping's file, which begin `offset` bytes after the mapping's
    /// first byte, possibly after its end. So nobody has to keep a descriptor of the file.
    pub fn again(&self, offset: usize, length: usize) -> Result<Mapping> {
        let well_formed = length > 0 && offset.is_multiple_of(page_size());
        let Some(all) = offset.checked_add(length).filter(|_| well_formed) else {
            fail!(ERR_SYSTEM, "there is no mapping of {length} bytes from {offset} on");
        };
        // mremap() with an old size of 0 maps a shared file a second time.
        // SAFETY: the kernel chooses the place, and leaves the old mapping as it is.
        let base = unsafe { libc::mremap(self.base().cast(), 0, all, libc::MREMAP_MAYMOVE) };
        let whole = Mapping::made(base, all, "mremap")?;
        if offset > 0 {
            // SAFETY: whole pages of the new mapping, which are not used yet.
            unsafe { libc::munmap(whole.base().cast(), offset) };
        }
        // SAFETY: offset is less than what is mapped from there.
        let base = unsafe { whole.base.add(offset) };
        std::mem::forget(whole);
        Ok(Mapping { base, length })
    }

    /// Whether again() works. Emulations of Linux may refuse it, so this function tries it once.
    pub fn can_map_again() -> bool {
        static CAN: Answer = Answer::new();
        let try_one = || -> Result<bool> {
            let (file, page) = (MemoryFile::create()?, page_size());
            file.extend(2 * page as u64)?;
            let first = file.map(0, page)?;
            let (second, again) = (file.map(page as u64, page)?, first.again(page, page)?);
            // SAFETY: both are mapped for writing, and no other thread knows them.
            Ok(unsafe {
                second.base().write_volatile(1);
                again.base().read_volatile() == 1
            })
        };
        CAN.get_or_ask(|| try_one().unwrap_or(false))
    }

    /// Whether the file reaches to the last byte of the mapping. If not, a process that touches
    /// that byte ends by SIGBUS. The page takes memory from now on.
    pub fn has_memory(&self) -> bool {
        let last = self.length.saturating_sub(1) & !(page_size() - 1);
        futex::is_word(self.base() as usize + last)
    }

    /// Replaces the mapped memory by private memory that reads as zero. Another thread may store
    /// there at the same time: after this has returned no store reaches the old memory.
    pub fn cut_off(&self) -> Result<()> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: the range is ours and stays mapped; its content is not needed any more.
        let base = unsafe { libc::mmap(self.base().cast(), self.length, access, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(Error::system("mmap(MAP_FIXED)"));
        }
        Ok(())
    }

    /// Address space that reads as zero and takes memory page by page as it is written.
    pub fn anonymous(length: usize) -> Result<Mapping> {
        Mapping::new(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1, 0)
    }

    fn new(length: usize, flags: i32, fd: i32, offset: u64) -> Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the place, so nothing that exists is touched.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), length, access, flags, fd, offset as libc::off_t)
        };
        Mapping::made(base, length, "mmap")
    }

    /// The mapping of the address that `call` has returned, or an error.
    fn made(base: *mut libc::c_void, length: usize, call: &str) -> Result<Mapping> {
        if base == libc::MAP_FAILED {
            let errno = std::io::Error::last_os_error();
            if errno.raw_os_error() == Some(libc::ENOMEM) {
                fail!(ERR_NO_MEMORY, "{call} of {length} bytes: {errno}");
            }
            return Err(Error::system(call));
        }
        match NonNull::new(base.cast()) {
            Some(base) => Ok(Mapping { base, length }),
            None => Err(Error::bare(Status::ERR_SYSTEM)),
        }
    }

    /// The first byte.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// How many bytes there are.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Asks for huge pages. The kernel may decline, which only costs speed.
    pub fn advise_huge(&self) {
        // SAFETY: the range is ours; the advice does not change what it holds.
        unsafe { libc::madvise(self.base().cast(), self.length, libc::MADV_HUGEPAGE) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by new(); its users have ended before its owner drops it.
        unsafe { libc::munmap(self.base().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_of_one_range_show_the_same_bytes_until_they_are_released() {
        let page = page_size();
        let file = MemoryFile::create().unwrap();
        file.extend(4 * page as u64).unwrap();
        assert_eq!(file.length().unwrap(), 4 * page as u64);
        let (a, b) = (file.map(page as u64, page).unwrap(), file.map(page as u64, page).unwrap());
        // SAFETY: both mappings are alive and a page long.
        unsafe {
            a.base().write(42);
            assert_eq!(b.base().read(), 42);
            file.release(page as u64, page as u64).unwrap();
            assert_eq!(b.base().read(), 0);
        }
    }

    #[test]
    fn a_range_is_mapped_where_it_is_asked_for_unless_something_is_there() {
        let (page, file) = (page_size(), MemoryFile::create().unwrap());
        file.extend(2 * page as u64).unwrap();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let first = file.map_at(std::ptr::null_mut(), access, 0, 2 * page).unwrap();
        let refused = file.map_at(first.base(), access, 0, page).unwrap_err();
        assert_eq!(refused.status, Status::ERR_RANGE);
        // SAFETY: the mapping is alive and two pages long.
        unsafe { first.base().add(page).write(5) };
        let place = first.base();
        drop(first);
        let again = file.map_at(place, libc::PROT_READ, page as u64, page).unwrap();
        assert_eq!(again.base(), place);
        // SAFETY: the mapping is alive and a page long.
        assert_eq!(unsafe { place.read() }, 5);
    }

    #[test]
    fn what_is_mapped_is_mapped_again_without_a_descriptor_and_behind_its_end() {
        let (page, file) = (page_size(), MemoryFile::create().unwrap());
        file.extend(4 * page as u64).unwrap();
        let (first, all) = (file.map(0, page).unwrap(), file.map(0, 4 * page).unwrap());
        drop(file);
        let (same, behind) =
            (first.again(0, page).unwrap(), first.again(2 * page, 2 * page).unwrap());
        // SAFETY: all of them are alive and as long as they say.
        unsafe {
            all.base().write(1);
            all.base().add(3 * page).write(3);
            assert_eq!((first.base().read(), same.base().read()), (1, 1));
            assert_eq!(behind.base().add(page).read(), 3);
        }
        assert_eq!(behind.length(), 2 * page);
        assert!(behind.has_memory() && !first.again(2 * page, 3 * page).unwrap().has_memory());
        assert!(first.again(1, page).is_err() && first.again(page, usize::MAX).is_err());
        assert!(first.again(page, 0).is_err() && first.again(0, 0).is_err());
        assert!(Mapping::can_map_again());
    }

    #[test]
    fn a_mapping_that_was_cut_off_shows_zeros_and_its_stores_reach_no_file() {
        let (page, file) = (page_size(), MemoryFile::create().unwrap());
        file.extend(page as u64).unwrap();
        let (cut, kept) = (file.map(0, page).unwrap(), file.map(0, page).unwrap());
        // SAFETY: both are alive and a page long, before and after.
        unsafe {
            cut.base().write_volatile(1);
            cut.cut_off().unwrap();
            assert_eq!((cut.base().read_volatile(), kept.base().read_volatile()), (0, 1));
            cut.base().write_volatile(2);
            assert_eq!(kept.base().read_volatile(), 1);
        }
    }

    #[test]
    fn a_memory_file_gets_longer_and_never_shorter() {
        let (page, file) = (page_size() as u64, MemoryFile::create().unwrap());
        file.extend(2 * page).unwrap();
        assert!(file.extend(page).unwrap_err().message().contains("ftruncate"));
        assert_eq!(file.length().unwrap(), 2 * page);
    }

    #[test]
    fn a_cleared_range_reads_as_zero_and_its_neighbours_stay() {
        let page = page_size();
        let file = MemoryFile::create().unwrap();
        file.extend(64 * page as u64).unwrap();
        let mapping = file.map(0, 64 * page).unwrap();
        for (start, bytes) in [(100, 200), (page, page), (100, 40 * page), (page, 60 * page)] {
            // SAFETY: all within the mapping, which no other code uses.
            unsafe {
                mapping.base().write_bytes(7, 64 * page);
                clear(mapping.base().add(start), bytes);
                let seen = std::slice::from_raw_parts(mapping.base(), 64 * page);
                let zeros = |range: &[u8]| range.iter().filter(|byte| **byte == 0).count();
                assert_eq!((zeros(seen), zeros(&seen[start..start + bytes])), (bytes, bytes));
            }
        }
    }

    #[test]
    fn sizes_round_up_to_pages() {
        let page = page_size();
        assert_eq!(whole_pages(1), Some(page));
        assert_eq!(whole_pages(page), Some(page));
        assert_eq!(whole_pages(page + 1), Some(2 * page));
        assert_eq!(whole_pages(usize::MAX), None);
    }
}
