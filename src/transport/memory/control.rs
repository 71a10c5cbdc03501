//! The control area: the beginning of every rank's memory file, which peers of the node map when
//! they connect. Its header has a few numbers from which the layout of the rest follows.

use crate::fail;
use crate::transport::memory::directory::DirectoryEntry;
use crate::transport::memory::message_area::{MessageArea, MessageHead, Numbers, REPLIES, Sizes};
use crate::transport::memory::names::{NAMES, NamedPlace, Names, REFUSALS};
use crate::transport::memory::slots;
use crate::transport::waiters::Waiters;
use crate::util::bell::Bell;
use crate::util::config::Config;
use crate::util::memory::{Mapping, MemoryFile, page_size, whole_pages};
use crate::util::random::random;
use crate::util::status::Result;
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, Ordering};

/// The first word of a control area; the last digit is the version of the layout.
const MAGIC: u64 = u64::from_le_bytes(*b"llcl-ca7");

/// The beginning of the area.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    /// A random number, by which a peer checks that a kernel copy reads from the right process.
    token: AtomicU64,
    /// Number of entries of the directory.
    regions: AtomicU64,
    /// The kernel's number (tid) of a thread that lives as long as the rank; 0: not set yet.
    resident: AtomicU64,
    /// The numbers of the message area.
    numbers: Numbers,
    bell: Bell,
    waiters: Waiters,
    message_area: MessageHead,
}

#[derive(Clone, Copy)]
struct Layout {
    regions: usize,
    directory: usize,
    names: usize,
    message_area: Sizes,
    claims: usize,
    message_slots: usize,
    payloads: usize,
    total: usize,
}

impl Layout {
    fn new(regions: u64, message_area: Sizes) -> Layout {
        let regions = regions as usize;
        let page = page_size();
        let round = |at: usize| at.next_multiple_of(page);
        let directory = round(size_of::<Header>());
        let names = round(directory + regions * size_of::<DirectoryEntry>());
        let claims = round(names + (NAMES + REFUSALS) * size_of::<NamedPlace>());
        let message_slots = round(claims + message_area.all() * size_of::<AtomicU64>());
        let payloads = round(message_slots + message_area.all() * size_of::<slots::Slot>());
        let total = round(payloads + message_area.payloads());
        Layout { regions, directory, names, message_area, claims, message_slots, payloads, total }
    }
}

/// A control area, of this rank or a peer.
pub struct Control {
    /// The whole area of this rank; of a peer, the part in front of the message slots.
    near: Mapping,
    /// The message slots of a peer, mapped at their first use.
    far: OnceBox<Mapping>,
    /// The peer's memory file, if the kernel cannot map more of it by means of `near`.
    file: Option<MemoryFile>,
    /// A lower bound of the file's length, which never shrinks.
    length: AtomicU64,
    layout: Layout,
}

impl Control {
    /// Lays out this rank's area at the beginning of `file`.
    pub fn create(file: &MemoryFile, config: &Config, size: u32) -> Result<Control> {
        let message_area = Sizes::configured(config, size);
        let layout = Layout::new(config.regions, message_area);
        file.extend(layout.total as u64)?;
        let control = Control {
            near: file.map(0, layout.total)?,
            far: OnceBox::new(),
            file: None,
            length: AtomicU64::new(layout.total as u64),
            layout,
        };
        let header = control.header();
        header.regions.store(config.regions, Ordering::Relaxed);
        header.token.store(random(), Ordering::Relaxed);
        header.numbers.write(&message_area);
        control.reset_message_area();
        // Release: a process that sees the magic sees the rest; pairs with open().
        header.magic.store(MAGIC, Ordering::Release);
        Ok(control)
    }

    /// Maps a peer's area, and checks all numbers in its header. Closes the descriptor, unless the
    /// kernel needs it for further mappings.
    pub fn open(file: MemoryFile, peer: u32) -> Result<Control> {
        let length = file.length()?;
        let head = whole_pages(size_of::<Header>()).unwrap_or(usize::MAX);
        if length < head as u64 {
            fail!(ERR_SYSTEM, "memory file of rank {peer} has {length} bytes, expected {head}");
        }
        let mapping = file.map(0, head)?;
        // SAFETY: the mapping is longer than a header, and any bytes are a valid header.
        let header = unsafe { &*mapping.base().cast::<Header>() };
        // Acquire: pairs with the Release in create().
        let magic = header.magic.load(Ordering::Acquire);
        let regions = header.regions.load(Ordering::Relaxed);
        let sane = (1..=65535).contains(&regions);
        let message_area = header.numbers.read().filter(|_| magic == MAGIC && sane);
        let Some(message_area) = message_area else {
            fail!(ERR_SYSTEM, "memory file of rank {peer} was laid out by another version");
        };
        let layout = Layout::new(regions, message_area);
        if length < layout.total as u64 {
            fail!(ERR_SYSTEM, "memory file of rank {peer} has {length} bytes, too few");
        }
        let control = Control {
            near: file.map(0, layout.claims)?,
            far: OnceBox::new(),
            file: (!Mapping::can_map_again()).then_some(file),
            length: AtomicU64::new(length),
            layout,
        };
        control.map_first_pages();
        Ok(control)
    }

    /// Makes the kernel map the two pages that every use of a peer needs, by a store to each: at a
    /// load the kernel would also map all pages around that have memory.
    fn map_first_pages(&self) {
        self.header().resident.fetch_or(0, Ordering::Relaxed);
        if let Some(entry) = self.directory(0) {
            entry.touch();
        }
    }

    /// Maps `length` bytes of the peer's memory file from `offset` on; None: the file is shorter.
    pub fn map(&self, offset: u64, length: usize) -> Result<Option<Mapping>> {
        let mapping = match &self.file {
            Some(file) => file.map(offset, length)?,
            None => self.near.again(offset as usize, length)?,
        };
        let end = offset.saturating_add(length as u64);
        if end > self.length.load(Ordering::Relaxed) {
            if !mapping.has_memory() {
                return Ok(None);
            }
            self.length.fetch_max(end, Ordering::Relaxed);
        }
        Ok(Some(mapping))
    }

    /// The address of an offset in `near`.
    fn at<T>(&self, offset: usize) -> *mut T {
        debug_assert!(offset < self.near.length());
        self.near.base().wrapping_add(offset).cast()
    }

    /// The base address for offsets of the message slots: their mapping's address minus their
    /// offset in the area.
    fn rest(&self) -> Result<*mut u8> {
        let (claims, total) = (self.layout.claims, self.layout.total);
        if self.near.length() == total {
            return Ok(self.near.base());
        }
        let far =
            self.far.get_or_try_init(|| match self.map(claims as u64, total - claims)? {
                Some(mapping) => Ok(Box::new(mapping)),
                None => fail!(ERR_SYSTEM, "a peer's memory file is shorter than it was"),
            })?;
        Ok(far.base().wrapping_sub(claims))
    }

    fn header(&self) -> &Header {
        // SAFETY: the mapping begins with a header, which is made of atomics.
        unsafe { &*self.at(0) }
    }

    /// The address of the area in this process. Its first two words never change.
    pub fn base(&self) -> *mut u8 {
        self.near.base()
    }

    /// Length of the area in bytes; regions begin behind it in the file.
    pub fn length(&self) -> usize {
        self.layout.total
    }

    /// The kernel's number (tid) of a thread that lives as long as the rank; 0: not set yet.
    pub fn resident(&self) -> u32 {
        self.header().resident.load(Ordering::Relaxed) as u32
    }

    /// Declares that the calling thread lives as long as the rank.
    pub fn set_resident(&self) {
        // SAFETY: the call has no arguments and touches no memory.
        let number = unsafe { libc::gettid() };
        self.header().resident.store(number as u64, Ordering::Relaxed);
    }

    /// The bell on which the rank's progress thread sleeps.
    pub fn bell(&self) -> &Bell {
        &self.header().bell
    }

    /// The rank's sleeping threads.
    pub fn waiters(&self) -> &Waiters {
        &self.header().waiters
    }

    /// The directory entry at `index`; None: the directory is shorter.
    pub fn directory(&self, index: usize) -> Option<&DirectoryEntry> {
        let at = self.layout.directory + index * size_of::<DirectoryEntry>();
        // SAFETY: the layout has `regions` entries there, made of atomics.
        (index < self.layout.regions).then(|| unsafe { &*self.at(at) })
    }

    /// The rank's table of names.
    pub fn names(&self) -> Names<'_> {
        let (first, count) = (self.at(self.layout.names), NAMES + REFUSALS);
        // SAFETY: the layout has that many entries there, made of atomics.
        let (places, refusals) =
            unsafe { std::slice::from_raw_parts(first, count) }.split_at(NAMES);
        Names { places, refusals }
    }

    /// The head of the rank's message area.
    pub fn message_head(&self) -> &MessageHead {
        &self.header().message_area
    }

    /// The numbers of the rank's message area.
    pub fn message_sizes(&self) -> Sizes {
        self.layout.message_area
    }

    /// The rank's message area, for its senders. Maps the slots at the first call.
    pub fn message_area(&self) -> Result<MessageArea<'_>> {
        // SAFETY: rest() is the base of the mapped slots.
        self.rest().map(|base| unsafe { self.message_area_at(base) })
    }

    /// The message area, if this is the control area of this rank itself.
    pub fn own_message_area(&self) -> MessageArea<'_> {
        debug_assert!(self.near.length() == self.layout.total);
        // SAFETY: the whole area is mapped there.
        unsafe { self.message_area_at(self.near.base()) }
    }

    /// # Safety
    /// The area's slots are mapped at their offsets from `base`, as long as this object lives.
    unsafe fn message_area_at(&self, base: *mut u8) -> MessageArea<'_> {
        let Layout { message_area: sizes, claims, message_slots, payloads, .. } = self.layout;
        // SAFETY: the layout has that many claims and slots there, made of atomics and cells.
        let (claims, slots) = unsafe {
            (
                std::slice::from_raw_parts(base.wrapping_add(claims).cast(), sizes.all()),
                std::slice::from_raw_parts(base.wrapping_add(message_slots).cast(), sizes.all()),
            )
        };
        let payloads = base.wrapping_add(payloads);
        MessageArea { head: self.message_head(), sizes, claims, slots, payloads }
    }

    /// Resets all shares and counters. The SendCNT of a share may lie with another rank, which
    /// resets it: all SendCNTs begin with the same number, for whichever share.
    fn reset_message_area(&self) {
        let message_area = self.own_message_area();
        message_area.head.reset_counters();
        for share in message_area.sizes.each_share() {
            message_area.share(share, message_area.head).reset();
        }
    }

    /// Bytes of the slots of active messages, whatever the number of senders.
    pub fn message_bytes(&self) -> u64 {
        let sizes = self.layout.message_area;
        let each = size_of::<AtomicU64>() + size_of::<slots::Slot>();
        (sizes.of_messages() * each + sizes.payloads_of_messages()) as u64
    }

    /// The ticket that the next reply to this rank gets.
    pub fn replies_sent(&self) -> u64 {
        let message_area = self.own_message_area();
        message_area.share(REPLIES, message_area.head).sent()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::memory::message_area::{REPLIES, RESPONSES};
    use crate::transport::memory::slots::FIRST;
    use std::os::fd::AsFd;

    #[test]
    fn a_peer_sees_what_the_owner_laid_out_and_refuses_what_it_did_not() {
        let file = MemoryFile::create().unwrap();
        let copy = || MemoryFile::received(file.as_fd().try_clone_to_owned().unwrap());
        assert!(Control::open(copy(), 3).is_err());
        let own = Control::create(&file, &Config::from_environment().unwrap(), 2).unwrap();
        let seen = Control::open(copy(), 3).unwrap();
        own.directory(5).unwrap().publish(77, 1, 2, 3);
        assert_eq!(seen.directory(5).unwrap().snapshot(77), Some((1, 2, 3)));
        assert!(seen.directory(1024).is_none());
        let message_area = seen.message_area().unwrap();
        assert_eq!(message_area.share(0, message_area.head).send.load(Ordering::Relaxed), FIRST);
        assert_eq!(message_area.sizes.slots_of(REPLIES), message_area.sizes.requests);
        let last = |area: MessageArea<'_>| area.near_place(RESPONSES, u64::MAX);
        let medium = message_area.sizes.medium;
        // SAFETY: both lie in areas that are mapped, at the last byte of the last payload.
        unsafe {
            last(own.own_message_area()).add(medium - 1).write(9);
            assert_eq!(last(message_area).add(medium - 1).read(), 9);
        }
        let behind = own.length() as u64;
        assert!(seen.map(behind, 1).unwrap().is_none());
        file.extend(behind + 1).unwrap();
        assert!(seen.map(behind, 1).unwrap().is_some());
        own.header().regions.store(0, Ordering::Relaxed);
        let error = Control::open(copy(), 3).err().unwrap();
        assert!(error.message().contains("rank 3"), "{error}");
    }
}
