//! Shared memory between the processes of one node. Every rank has one memory file; peers map its
//! control area at first use and its regions one by one. Descriptors come through the bootstrap, so
//! no file has a name, and none is left behind when processes are killed.

mod kernel_copy;
mod late_rings;
mod links;
pub mod receiver;
mod short_senders;

use crate::bootstrap::{Bootstrap, Card};
use crate::fail;
use crate::transport::address::{Address, Key};
use crate::transport::carrier::{Bytes, Carrier, Peer, Sleeper};
use crate::transport::frame::{Class, Frame};
use crate::transport::imports::ImportTable;
use crate::transport::memory::control::Control;
use crate::transport::memory::directory::{DirectoryEntry, KIND_ADDRESS, KIND_FILE};
use crate::transport::memory::message_area::{MessageHead, host_of, nearest_share};
use crate::transport::memory::message_receiver::{MessageReceiver, Peers};
use crate::transport::memory::message_sender::MessageSender;
use crate::transport::memory::segment::{HUGE, Segment};
use crate::transport::port::Port;
use crate::transport::requests::{frame_of, frame_of_reply};
use crate::transport::{Access, Message, Pair, Posted, Reply, Transport};
use crate::util::counters::Counters;
use crate::util::memory::{MemoryFile, whole_pages};
use crate::util::status::{Error, Result, Status};
use crate::util::sync::{AtomicBool, AtomicPtr, Ordering};
use links::Links;
use once_cell::race::OnceBox;
use short_senders::ShortSenders;
use std::sync::Arc;

/// The transport to the ranks of this node.
pub struct Node {
    own: Arc<Segment>,
    bootstrap: Arc<Bootstrap>,
    // Declared, and so dropped, before the links that they point into.
    senders: Box<[OnceBox<MessageSender<'static>>]>,
    /// The senders for short messages, by rank; null for dead ranks and for ranks to which only the
    /// general path of messages leads.
    short_senders: ShortSenders<MessageSender<'static>>,
    links: Arc<Links>,
    dead: Arc<[AtomicBool]>,
    /// Ranks of other nodes, none of whose memory is mapped.
    far: Box<[AtomicBool]>,
    kernel_copies: bool,
}

/// The link to a peer that was contacted.
struct Link {
    control: Control,
    process: u32,
    /// Whether the kernel lets this process copy from the peer's.
    kernel_copies: bool,
    /// The errno of the refusal. 0: the kernel copies, or was not asked.
    refusal: i32,
    /// The errno with which the kernel refuses to copy to the peer's process, or 0.
    write_refusal: i32,
}

pub use kernel_copy::permit as permit_kernel_copies;

/// The data that a rank publishes beside its memory file: its process, and the address of its
/// control area there, so that peers can try whether the kernel copies from it.
pub fn card(own: &Segment) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&u64::from(std::process::id()).to_ne_bytes());
    bytes[8..].copy_from_slice(&(own.control().base() as u64).to_ne_bytes());
    bytes
}

impl Node {
    /// The transport of the rank whose memory is `own`.
    pub fn new(own: Arc<Segment>, bootstrap: Arc<Bootstrap>, kernel_copies: bool) -> Node {
        let size = bootstrap.size() as usize;
        let flags = || (0..size).map(|_| AtomicBool::new(false));
        let dead: Arc<[AtomicBool]> = flags().collect();
        let links = Arc::new(Links::new(own.clone(), bootstrap.clone(), dead.clone()));
        let senders = (0..size).map(|_| OnceBox::new()).collect();
        Node {
            own,
            bootstrap,
            senders,
            short_senders: ShortSenders::new(size),
            links,
            dead,
            far: flags().collect(),
            kernel_copies,
        }
    }

    /// The receiver. Called once.
    pub fn receiver(&self, counts: Arc<Counters>) -> receiver::NodeReceiver {
        receiver::NodeReceiver::new(self.own.clone(), self.ranks(), counts)
    }

    /// The dead ranks, and the interface by which receivers ring other ranks.
    fn ranks(&self) -> (Arc<[AtomicBool]>, Arc<dyn Peers>) {
        (self.dead.clone(), self.links.clone())
    }

    /// Whether mark_dead() was called for a peer.
    pub fn is_dead(&self, peer: u32) -> bool {
        // Acquire: pairs with the Release in mark_dead().
        self.dead.get(peer as usize).is_some_and(|dead| dead.load(Ordering::Acquire))
    }

    /// Marks a rank as one of another node.
    pub fn set_far(&self, peer: u32) {
        // Release: pairs with the Acquire in is_far().
        self.far[peer as usize].store(true, Ordering::Release);
    }

    /// Whether set_far() was called for a rank.
    pub fn is_far(&self, peer: u32) -> bool {
        self.far.get(peer as usize).is_some_and(|far| far.load(Ordering::Acquire))
    }

    /// Makes the port to a peer from its card. Called by one thread at a time.
    pub fn connect(&self, peer: u32, card: Card) -> Result<Port> {
        let link = self.links.peers[peer as usize]
            .get_or_try_init(|| self.open(peer, card).map(Box::new))
            .map(|link| &**link)?;
        self.links.contacted(peer, link);
        let (waiters, imports) = (link.control.waiters(), ImportTable::new()?);
        // SAFETY: links are never removed, and Routes drops its ports before the transport.
        Ok(unsafe { Port::new(peer, link.process, waiters, imports) })
    }

    fn open(&self, peer: u32, card: Card) -> Result<Link> {
        let word = |at: usize| {
            let bytes = card.blob.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_ne_bytes)
        };
        let (Some(process), Some(base), 16) = (word(0), word(8), card.blob.len()) else {
            fail!(ERR_SYSTEM, "card of rank {peer} has {} bytes, expected 16", card.blob.len());
        };
        let process = process as u32;
        let Some(fd) = card.fd else {
            fail!(ERR_SYSTEM, "card of rank {peer} has no descriptor, expected one of a neighbour");
        };
        let control = Control::open(MemoryFile::received(fd), peer)?;
        let refusal = if self.kernel_copies { refusal(process, base, &control) } else { 0 };
        let kernel_copies = self.kernel_copies && refusal == 0;
        let owner = kernel_copy::Owner { process, resident: control.resident() };
        let write_refusal = if kernel_copies { kernel_copy::probe_write(owner) } else { refusal };
        Ok(Link { control, process, kernel_copies, refusal, write_refusal })
    }

    /// Wakes a peer's progress thread. Does nothing if the peer was not contacted.
    pub fn ring(&self, peer: u32) {
        if let Some(link) = self.links.get(peer) {
            link.control.bell().ring();
        }
    }

    /// Whether a connected peer refuses a name; see `Names::see_refusal`.
    pub fn see_refusal(&self, peer: u32, name: u64) -> bool {
        let link = self.links.get(peer);
        link.is_some_and(|link| link.control.names().see_refusal(name))
    }

    /// The place that a connected peer has published under a name.
    pub fn announced(&self, peer: u32, name: u64) -> Option<Address> {
        self.links.get(peer)?.control.names().find(name)
    }

    /// The owner of a port's memory, for the kernel.
    fn owner(&self, port: &Port) -> kernel_copy::Owner {
        kernel_copy::Owner { process: port.process, resident: self.linked(port).control.resident() }
    }

    /// The link behind a port: made by connect() before there was a port.
    fn linked(&self, port: &Port) -> &Link {
        match self.links.get(port.peer) {
            Some(link) => link,
            None => unreachable!("a port without a link"),
        }
    }
}

/// The errno with which the kernel refuses to copy from `process`, the owner of the control area;
/// 0: it copies.
fn refusal(process: u32, base: u64, control: &Control) -> i32 {
    let owner = kernel_copy::Owner { process, resident: control.resident() };
    // SAFETY: the control area is mapped and begins with two words that do not change.
    unsafe { kernel_copy::probe(owner, base, control.base()) }
}

impl Node {
    /// Looks `size` bytes at `address` up in the owner's directory: the kind of the region, its
    /// beginning and its length. The directory notes that this rank uses the region.
    fn look_up(&self, port: &Port, address: Address, size: u64) -> Result<(u64, u64, u64)> {
        let (key, link) = (Key(address.key), self.linked(port));
        if self.is_dead(port.peer) {
            fail!(ERR_PEER_DEAD, "rank {} has died or has left", port.peer);
        }
        if address.key != 0 && key.owner() != port.peer {
            let (owner, peer) = (key.owner(), port.peer);
            fail!(ERR_KEY, "key {:#x} is of rank {owner}, expected one of peer {peer}", key.0);
        }
        let entry = link.control.directory(key.index());
        let Some((kind, base, length)) = entry.and_then(|entry| entry.snapshot(key.0)) else {
            fail!(ERR_KEY, "key {:#x} names no live region of rank {}", key.0, port.peer);
        };
        address.check(size, length)?;
        if let Some(entry) = entry {
            entry.add_user(self.bootstrap.rank());
        }
        Ok((kind, base, length))
    }
}

impl Transport for Node {
    fn locate(&self, port: &Port, address: Address, size: u64) -> Result<Access> {
        let (kind, base, length) = self.look_up(port, address, size)?;
        let (key, link) = (Key(address.key), self.linked(port));
        match kind {
            KIND_FILE => {
                let live = self.live(link, key);
                let make = || {
                    // Whole pages, because the owner maps whole pages.
                    let pages = whole_pages(length as usize).unwrap_or(length as usize);
                    let Some(mapping) = link.control.map(base, pages)? else {
                        fail!(ERR_SYSTEM, "rank {} published a region outside its file", port.peer);
                    };
                    if length as usize >= HUGE {
                        mapping.advise_huge();
                    }
                    let start = mapping.base();
                    Ok((Some(mapping), start, length))
                };
                // SAFETY: the peer's segment, which has `live`, stays mapped as long as the port;
                // the bytes are those of the mapping.
                unsafe { port.learn(key, live, make)? };
                Ok(Access::Mapped)
            }
            KIND_ADDRESS if link.kernel_copies => Ok(Access::Kernel(base + address.offset)),
            _ => Ok(Access::Message(base + address.offset)),
        }
    }

    fn kernel_refusals(&self, port: &Port) -> (i32, i32) {
        let link = self.linked(port);
        (link.refusal, link.write_refusal)
    }

    fn registered_access(&self, port: &Port) -> Access {
        if self.linked(port).kernel_copies { Access::Kernel(0) } else { Access::Message(0) }
    }

    unsafe fn kernel_read(&self, port: &Port, pairs: &[Pair]) -> Result<()> {
        // SAFETY: the caller vouches for the local buffers.
        unsafe { kernel_copy::read(self.owner(port), pairs) }
    }

    unsafe fn kernel_write(&self, port: &Port, pairs: &[Pair]) -> Result<()> {
        // SAFETY: the caller vouches for the local buffers.
        unsafe { kernel_copy::write(self.owner(port), pairs) }
    }

    fn post(&self, port: &Port, message: &Message, bytes: &[u8]) -> Posted {
        // A peer that has a port has a MessageSender.
        let posted = self
            .message_sender(port.peer)
            .is_ok_and(|message_sender| message_sender.ask(&frame_of(message, bytes)));
        if posted { Posted::Taken } else { Posted::Full }
    }

    fn reply(&self, port: &Port, reply: Reply, bytes: &[u8]) -> bool {
        self.message_sender(port.peer)
            .is_ok_and(|message_sender| message_sender.answer(&frame_of_reply(&reply, bytes)))
    }

    fn mark_dead(&self, peer: u32) -> bool {
        self.short_senders.mark_dead(peer, &self.dead[peer as usize])
    }
}

/// Active messages.
impl Node {
    /// The receiver of messages of one class. Called once for each class.
    pub fn message_receiver(&self, counts: Arc<Counters>, class: Class) -> MessageReceiver {
        MessageReceiver::new(self.own.clone(), self.ranks(), counts, class)
    }

    /// The control area of this rank or of a rank that was contacted; for another rank it begins
    /// the contact.
    fn control(&self, rank: u32) -> Result<&Control> {
        if rank == self.bootstrap.rank() {
            return Ok(self.own.control());
        }
        if let Some(link) = self.links.get(rank) {
            return Ok(&link.control);
        }
        if self.is_dead(rank) {
            fail!(ERR_PEER_DEAD, "rank {rank} has died or has left");
        }
        if self.is_far(rank) {
            fail!(ERR_UNSUPPORTED, "rank {rank} runs on another node");
        }
        self.bootstrap.ask_card(rank);
        Err(Error::bare(Status::RETRY_CONNECTING))
    }

    /// The sender to a peer that was sent to before.
    #[inline(always)]
    pub fn known_sender(&self, peer: u32) -> Option<&MessageSender<'static>> {
        self.senders.get(peer as usize)?.get()
    }

    /// The rank that hosts the SendCNT of the peer's share that is nearest to this rank. None: the
    /// peer is not connected.
    pub fn nearest_host(&self, peer: u32) -> Option<u32> {
        let (me, size) = (self.bootstrap.rank(), self.bootstrap.size());
        let shares = self.control(peer).ok()?.message_sizes().shares;
        Some(host_of(peer, nearest_share(peer, me, shares, size), size))
    }

    /// The sender to this rank or to a peer that was contacted; made at the first use.
    pub fn message_sender(&self, peer: u32) -> Result<&MessageSender<'static>> {
        let Some(place) = self.senders.get(peer as usize) else {
            fail!(ERR_INVALID, "peer is {peer}, expected a rank below {}", self.senders.len());
        };
        let sender = place.get_or_try_init(|| {
            let control = self.control(peer)?;
            let (me, size) = (self.bootstrap.rank(), self.bootstrap.size());
            let home = nearest_share(peer, me, control.message_sizes().shares, size);
            // SAFETY: links and so control areas are never removed, and `senders` is dropped before
            // them.
            let control = unsafe { &*std::ptr::from_ref(control) };
            Ok::<_, Error>(Box::new(MessageSender::new(
                control.message_area()?,
                (me, peer),
                home,
                control.bell(),
            )))
        })?;
        if sender.has_short_path() {
            self.short_senders.open(peer, sender, &self.dead[peer as usize]);
        }
        Ok(sender)
    }

    /// The senders for short messages, by rank. They live as long as this.
    pub fn short_senders(&self) -> &[AtomicPtr<MessageSender<'static>>] {
        self.short_senders.places()
    }

    /// The message head of the rank that hosts the SendCNT of a peer's share.
    #[cold]
    fn host(&self, peer: u32, share: usize) -> Result<&'static MessageHead> {
        let host = host_of(peer, share, self.bootstrap.size());
        let head = self.control(host)?.message_head();
        // SAFETY: as in message_sender().
        Ok(unsafe { &*std::ptr::from_ref(head) })
    }
}

impl Carrier for Node {
    fn has_credit(&self, to: &Peer, class: Class, (_, payload): Bytes) -> bool {
        to.may_have_credit(class, payload)
    }

    /// A thread of the program sleeps at the peer instead: see MessageSender::watch().
    fn ask_wake(&self, to: &Peer, class: Class, _: Bytes, sleeper: Sleeper) -> bool {
        match (class, sleeper) {
            (Class::Requests, Sleeper::Progress) => to.ask_wake_for_requests(),
            (Class::Lib, Sleeper::Progress) => to.ask_wake_for_owner(),
            (Class::Responses, Sleeper::Handlers) => to.ask_wake_for_responses(),
            _ => return false,
        }
        true
    }

    #[inline(always)]
    fn put(&self, to: &Peer, class: Class, frame: &Frame, counts: &Counters) -> bool {
        to.put(class, frame, |share| self.host(to.peer(), share), counts)
    }
}

impl Node {
    fn live(&self, link: &Link, key: Key) -> *mut std::sync::atomic::AtomicU64 {
        link.control.directory(key.index()).map_or(std::ptr::null_mut(), DirectoryEntry::live)
    }
}
