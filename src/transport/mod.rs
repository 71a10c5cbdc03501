//! Layer 2: transports, by which a rank reaches the memory of its peers. A transport tells how a
//! remote address is reached ([`Access`]), carries requests ([`Message`]) to the owner of memory,
//! and brings the answers back. At the owner, the holder of the engine lane's role serves them. Any
//! thread accesses mapped memory directly. Only operations that the owner must execute use `post`
//! and `poll`; the holder of this rank's role calls these.
//!
//! [`loopback`] is the smallest transport: read it first. Transports do not know each other. The
//! layers above use [`fabric`], which chooses the transport for each peer.

pub mod address;
pub mod carrier;
#[cfg(all(test, not(loom)))]
mod conformance;
pub mod fabric;
pub mod frame;
pub mod imports;
pub mod loopback;
pub mod memory;
pub mod node;
pub mod port;
pub mod remote;
pub mod requests;
pub mod sleepers;
pub mod waiters;
pub mod wire;

use crate::util::status::{Result, Status};
use address::Address;
use port::Port;

/// How this process reaches a range of remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The range is mapped: [`Port::find`] gives the address for loads, stores and atomics.
    Mapped,
    /// The kernel copies from and to this address of the peer's process.
    Kernel(u64),
    /// Only the owner accesses the range, at this address, on request.
    Message(u64),
    /// A network reads and writes the range, at this address of the peer's process; see
    /// `Fabric::post_remote`.
    Posted(u64),
}

/// Most pairs of one copy by the kernel.
pub const PAIRS: usize = 1024;

/// A local buffer and a remote one of equal size, between which the kernel copies.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The local buffer.
    pub ours: *mut u8,
    /// The address of the remote buffer in the peer's process.
    pub theirs: u64,
    /// Size of each in bytes.
    pub size: usize,
}

/// Most bytes of data with a [`Message`] or a [`Reply`].
pub const CHUNK: usize = 32 << 10;
/// Slots of a rank for requests with more than [`SMALL_REQUEST`] bytes, and slots for answers with
/// more than [`SMALL_REPLY`] bytes.
pub const CHUNKS: usize = 16;
/// Most bytes of data that travel inside the slot of a request.
pub const SMALL_REQUEST: usize = 48;
/// Most bytes of data that travel inside the slot of an answer.
pub const SMALL_REPLY: usize = 80;

/// Words of a [`Message`] besides its kind and tag.
pub const MESSAGE_WORDS: usize = 5;

/// A request to a peer: plain data of fixed size. The engine defines kinds and words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Message {
    /// The kind of request.
    pub kind: u32,
    /// The requester's rank.
    pub source: u32,
    /// The requester's operation; the answer returns it.
    pub tag: u64,
    /// Parameters of the kind.
    pub words: [u64; MESSAGE_WORDS],
}

/// The answer to a [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The tag of the request.
    pub tag: u64,
    /// The status of the operation.
    pub status: Status,
    /// The value that an atomic operation has fetched; else 0.
    pub result: u64,
}

/// The result of post().
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// The transport has accepted the message and will put it into a slot of the peer.
    Taken,
    /// No slot or credit is free: nothing was sent; try again later.
    Full,
}

/// Takes the events that a [`Receiver`] polls.
pub trait Sink {
    /// A peer requests an operation. The bytes are valid during the call.
    fn request(&mut self, message: &Message, bytes: &[u8]);
    /// A peer answers a request. The bytes are valid during the call.
    fn reply(&mut self, reply: Reply, bytes: &[u8]);
    /// An operation that this rank has posted to a network has completed.
    fn ended(&mut self, end: Reply);
}

/// The sending side of a transport. Any thread may call, at any time.
pub trait Transport: Send + Sync {
    /// Tells how `size` bytes at `address` are reached. Maps the region if the transport can; the
    /// caller then finds it in the port. The caller is not pinned.
    fn locate(&self, port: &Port, address: Address, size: u64) -> Result<Access>;

    /// How memory of the peer is reached that the peer has registered and not allocated; the
    /// address in the answer is 0.
    fn registered_access(&self, port: &Port) -> Access;

    /// Two errno values: why the kernel does not copy from the peer's process, and why not to it.
    /// 0: it copies, or this transport does not use it.
    fn kernel_refusals(&self, port: &Port) -> (i32, i32);

    /// Copies the remote buffer of each pair to the local one. ERR_UNSUPPORTED: nothing was copied;
    /// the caller must request the copy from the peer.
    ///
    /// # Safety
    /// The local buffers are valid for writing.
    unsafe fn kernel_read(&self, port: &Port, pairs: &[Pair]) -> Result<()>;

    /// Copies the local buffer of each pair to the remote one. ERR_UNSUPPORTED: as for
    /// kernel_read().
    ///
    /// # Safety
    /// The local buffers are valid for reading.
    unsafe fn kernel_write(&self, port: &Port, pairs: &[Pair]) -> Result<()>;

    /// Sends a request to the peer, with up to CHUNK bytes, and wakes it if it sleeps.
    fn post(&self, port: &Port, message: &Message, bytes: &[u8]) -> Posted;

    /// Answers a request, with up to CHUNK bytes. False: no slot is free, and nothing was sent. The
    /// requester has reserved one, but a message whose sender is stopped may hold it.
    #[must_use]
    fn reply(&self, port: &Port, reply: Reply, bytes: &[u8]) -> bool;

    /// Marks a peer as dead: receivers may skip messages that it has begun and not published. True
    /// the first time.
    fn mark_dead(&self, peer: u32) -> bool;
}

/// The receiving side of a transport. Only the holder of the lane's role uses it.
pub trait Receiver: Send {
    /// Hands received messages to the sink, a bounded number per call; returns how many.
    fn poll(&mut self, sink: &mut dyn Sink) -> usize;

    /// Announces that nobody polls from now on, so that a sender must ring. False: a message has
    /// arrived already, or is about to.
    fn arm(&mut self) -> bool;

    /// Announces that the caller polls again.
    fn disarm(&mut self);
}
