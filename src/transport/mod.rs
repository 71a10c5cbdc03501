//! Layer 2: how a rank's memory is reached. A transport answers, for one peer, where a remote
//! address lies ([`Access`]), carries small [`Message`]s to the peer's agent, and brings answers
//! back. What is mapped is touched by any thread directly; only what needs an agent at the other
//! end goes through `post` and `poll`, which the holder of the lane's role calls.
//!
//! [`loopback`] is the smallest transport: read it first. No transport knows another; [`fabric`]
//! knows all of them and which leads to whom, and is what the layers above use.

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

/// How a span of remote memory can be reached from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is mapped: [`Port::find`] gives the address for loads, stores and atomic instructions.
    Mapped,
    /// The kernel copies from and to this address of the peer's process.
    Kernel(u64),
    /// Only the owner can touch it, at this address; ask its agent by message.
    Message(u64),
    /// A network reads and writes there, at this address of the peer's process; see
    /// `Fabric::post_remote`.
    Posted(u64),
}

/// The kernel copies so many pairs in one call.
pub const PAIRS: usize = 1024;

/// As many bytes here and in a peer's process, for the kernel to copy.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Ours.
    pub ours: *mut u8,
    /// The address in the peer's process.
    pub theirs: u64,
    /// How many.
    pub size: usize,
}

/// Most bytes that a [`Message`] or a [`Reply`] brings.
pub const CHUNK: usize = 32 << 10;
/// How many requests with more bytes than [`SMALL_REQUEST`] an agent has places for, and how many
/// answers with more than [`SMALL_REPLY`] an asker.
pub const CHUNKS: usize = 16;
/// Bytes that a request brings in the place of its words.
pub const SMALL_REQUEST: usize = 48;
/// Bytes that an answer brings there.
pub const SMALL_REPLY: usize = 80;

/// Words that a [`Message`] carries besides its kind and tag.
pub const MESSAGE_WORDS: usize = 5;

/// A request to a peer's agent: plain data of fixed size. What the words mean is the engine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Message {
    /// What is asked for.
    pub kind: u32,
    /// The rank that asks.
    pub source: u32,
    /// Names the asker's operation; the answer carries it back.
    pub tag: u64,
    /// The rest, as the kind says.
    pub words: [u64; MESSAGE_WORDS],
}

/// The answer to a [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The tag of the message that is answered.
    pub tag: u64,
    /// How it went.
    pub status: Status,
    /// What an atomic operation fetched; else 0.
    pub result: u64,
}

/// What became of a message that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It lies in a slot of the peer's.
    Taken,
    /// All slots hold requests: nothing was sent; try again later.
    Full,
}

/// What the polling side hands each event to.
pub trait Sink {
    /// A peer asks for something. The bytes are valid during the call.
    fn request(&mut self, message: &Message, bytes: &[u8]);
    /// A peer answers. The bytes are valid during the call.
    fn reply(&mut self, reply: Reply, bytes: &[u8]);
    /// What was posted to a network has ended.
    fn ended(&mut self, end: Reply);
}

/// What a transport offers to any thread, at any time.
pub trait Transport: Send + Sync {
    /// How `size` bytes at `address` are reached. Maps the region where that is possible; the
    /// caller then finds it in the port. The caller is not pinned.
    fn locate(&self, port: &Port, address: Address, size: u64) -> Result<Access>;

    /// How memory that the peer registered in place is reached.
    fn registered_access(&self, port: &Port) -> Access;

    /// Why the kernel does not copy from the peer's process, and to it: an errno each; 0: it does,
    /// or is not asked to.
    fn kernel_refusals(&self, port: &Port) -> (i32, i32);

    /// Copies the peer's side of each pair to ours. ERR_UNSUPPORTED: nothing was copied, the peer's
    /// agent must do it.
    ///
    /// # Safety
    /// Our sides are valid for writing.
    unsafe fn kernel_read(&self, port: &Port, pairs: &[Pair]) -> Result<()>;

    /// Copies our side of each pair to the peer's. ERR_UNSUPPORTED: as kernel_read().
    ///
    /// # Safety
    /// Our sides are valid for reading.
    unsafe fn kernel_write(&self, port: &Port, pairs: &[Pair]) -> Result<()>;

    /// Sends a request to the peer's agent, with up to CHUNK bytes, and wakes it if it sleeps.
    fn post(&self, port: &Port, message: &Message, bytes: &[u8]) -> Posted;

    /// Answers a request, with up to CHUNK bytes; there is always room, because the asker set it
    /// aside.
    fn reply(&self, port: &Port, reply: Reply, bytes: &[u8]);

    /// The peer is dead: what it has half sent may be passed over. True the first time.
    fn mark_dead(&self, peer: u32) -> bool;
}

/// The receiving end of a transport. Only the holder of the lane's role has it.
pub trait Receiver: Send {
    /// Hands what has come to the sink, up to a bounded number; returns how many.
    fn poll(&mut self, sink: &mut dyn Sink) -> usize;

    /// Announces that nobody polls from now on, so that a sender must ring. False:
    /// something has come already, or is just coming.
    fn arm(&mut self) -> bool;

    /// Somebody polls again.
    fn disarm(&mut self);
}
