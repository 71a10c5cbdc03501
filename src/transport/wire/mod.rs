//! Ranks that only a network reaches. Everything is posted and completes later.
//!
//! A [`Wire`] is one network as one rank uses it, a [`WireLane`] what one thread at a time posts to
//! and polls. What a network must do is stated here; `simulated` is the shortest one to read.
//! [`endpoint`] is what is done once for every wire: credits ([`grants`]), frames as bytes
//! (`packet`), their pieces (`pieces`), acknowledgements (`receipts`), and the thread that polls.
//!
//! Commands and events have the layout of `llcl_wire.h`, so arrays of them are handed to a module
//! as they are: frames, and reads and writes where the network has them (`remote`). What
//! else a network can do becomes further values of `op` and `event`; the words for it are in their
//! places and 0.

mod ended;
pub mod endpoint;
pub mod grants;
pub mod imports;
pub mod module;
mod outgoing;
mod packet;
mod pieces;
mod receipts;
pub mod remote;
#[cfg(feature = "simulated")]
pub mod simulated;
mod table;

use crate::fail;
use crate::util::status::{Result, Status};
use std::os::fd::RawFd;
use std::time::Duration;

/// Answers and what keeps the frames of all classes going: taken unconditionally.
pub const CLASS_ANSWER: u32 = 0;
/// Requests to agents.
pub const CLASS_LIB: u32 = 1;
/// Messages of users.
pub const CLASS_USER: u32 = 2;
/// Knocks for requests to agents, for responses, and for requests: classes of their own, since
/// knocks stay in their frames until they are answered, and nothing else may wait behind them.
pub const CLASS_KNOCKS: [u32; 3] = [4, 5, 6];
/// Most bytes of a frame of these classes.
pub const KNOCK_MOST: usize = 512;
/// Classes have smaller numbers.
pub const CLASSES: usize = 7;
/// Reads, writes and atomics.
pub const CLASS_RMA: u32 = 3;
/// Most bytes of a card.
pub const CARD: usize = 64;

/// What a wire can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Most bytes of a frame.
    pub frame_most: usize,
    /// It answers fence() with [`Event::FENCED`]; else with [`Event::UNFENCEABLE`].
    pub can_fence: bool,
    /// It reads and writes memory that peers have registered, and needs no thread of theirs for it.
    pub remote: bool,
    /// Bytes of a write that post() copies, see [`Command::INLINE`].
    pub inline_most: usize,
    /// This rank's side of a read, and of a write that is not inline, must be registered too.
    pub needs_local_key: bool,
    /// Most bytes of a read or a write; 0: any number.
    pub message_most: u64,
    /// Atomic operations on aligned words of 8 bytes: a bit for each, by its number in `llcl.h`.
    pub atomics: u64,
}

/// Memory that was registered, as the wire knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Key {
    /// For commands of this rank: [`Piece::local`].
    pub local: u64,
    /// For commands of peers: [`Command::wire`].
    pub wire: [u64; 4],
}

/// Bytes of a command, in this process's memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Piece {
    /// Where they begin.
    pub address: *const u8,
    /// How many they are.
    pub size: u64,
    /// What names the memory to the wire; 0: nothing is needed.
    pub local: u64,
}

/// What is posted: 128 bytes for ever.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Command {
    /// What is to be done: one of the constants below.
    pub op: u8,
    /// [`Command::ATOMIC`]: the operation, by its number in `llcl.h`.
    pub atomic: u8,
    /// [`Command::ATOMIC`]: the word's type, likewise.
    pub kind: u8,
    /// How many pieces there are.
    pub pieces: u8,
    /// [`Command::INLINE`], or 0.
    pub flags: u32,
    /// Comes back with [`Event::DONE`].
    pub tag: u64,
    /// The peer's side: an address in its process.
    pub remote: u64,
    /// The peer's key for it.
    pub wire: [u64; 4],
    /// Bytes of all pieces; of an atomic the word's.
    pub size: u64,
    /// First number of an atomic.
    pub operand: u64,
    /// What a compare-and-swap compares with.
    pub compare: u64,
    notice: u32,
    order: u32,
    /// The pieces.
    pub piece: *const Piece,
    reserved: [u64; 4],
}

impl Command {
    /// Copies from the peer's memory. Done: the bytes are here.
    pub const READ: u8 = 1;
    /// Copies to the peer's memory. Done: the peer sees the bytes.
    pub const WRITE: u8 = 2;
    /// Changes a word of the peer's; has no pieces. Done: what it was before is in the event.
    pub const ATOMIC: u8 = 3;
    /// Sends its bytes as one frame.
    pub const FRAME: u8 = 4;
    /// In `flags`, of a write of at most `inline_most` bytes: post() copies them.
    pub const INLINE: u32 = 1;

    /// The command to send one piece as a frame. Both pointers are used by post() at once, the
    /// bytes until the event of `tag`.
    pub fn frame(tag: u64, piece: &Piece) -> Command {
        Command {
            op: Command::FRAME,
            atomic: 0,
            kind: 0,
            pieces: 1,
            flags: 0,
            tag,
            remote: 0,
            wire: [0; 4],
            size: piece.size,
            operand: 0,
            compare: 0,
            notice: 0,
            order: 0,
            piece,
            reserved: [0; 4],
        }
    }
}

/// What a poll tells: 64 bytes for ever.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// What has happened: one of the constants below.
    pub event: u32,
    /// The peer it is about.
    pub peer: u32,
    /// [`Event::DONE`] and [`Event::LOST`]: how it went.
    pub status: i32,
    /// [`Event::FRAME`]: its class.
    pub class: u32,
    /// [`Event::DONE`]: the command's.
    pub tag: u64,
    /// [`Event::DONE`] of an atomic: what the word was before.
    pub fetched: u64,
    /// [`Event::FRAME`]: to be given back under this number.
    pub frame: u64,
    /// [`Event::FRAME`]: its bytes, valid until it is given back.
    pub bytes: *const u8,
    /// [`Event::FRAME`]: how many they are.
    pub size: u64,
    reserved: u64,
}

impl Event {
    /// A command has ended, and its bytes are its owner's again.
    pub const DONE: u32 = 1;
    /// A frame has come.
    pub const FRAME: u32 = 2;
    /// A connection stands.
    pub const CONNECTED: u32 = 4;
    /// A peer is not reached any more.
    pub const LOST: u32 = 5;
    /// Nothing of a peer comes any more.
    pub const FENCED: u32 = 6;
    /// It cannot be said when nothing of a peer comes any more.
    pub const UNFENCEABLE: u32 = 7;
    /// The device has failed: nothing more is sent, and nothing more comes.
    pub const DEVICE: u32 = 8;
    /// The lane has done something for a peer, such as to read this rank's memory: more may follow.
    pub const SERVED: u32 = 9;

    /// The place of an event that has not happened.
    pub const NONE: Event = Event::about(0, 0);

    /// An event about a peer, with nothing else to tell.
    pub const fn about(event: u32, peer: u32) -> Event {
        Event {
            event,
            peer,
            status: 0,
            class: 0,
            tag: 0,
            fetched: 0,
            frame: 0,
            bytes: std::ptr::null(),
            size: 0,
            reserved: 0,
        }
    }
}

const _: () = assert!(size_of::<Command>() == 128 && size_of::<Event>() == 64);

/// What is to be done before a thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armed {
    /// Not to sleep: something has come.
    PollNow,
    /// It becomes readable when something comes; to be polled after this time at the latest.
    Fd(RawFd, Duration),
    /// The wire tells nobody: nothing comes before this time. Zero: it does not know.
    PollAfter(Duration),
}

/// One network, as one rank uses it. Any thread.
pub trait Wire: Send + Sync {
    /// What it can do; always the same.
    fn caps(&self) -> Caps;

    /// What peers need to know to connect to this rank: at most [`CARD`] bytes.
    fn card(&self) -> Result<Vec<u8>>;

    /// Lets peers that have the key read and write this memory from now on.
    fn register(&self, address: *mut u8, size: u64) -> Result<Key> {
        let _ = (address, size);
        fail!(ERR_UNSUPPORTED, "this wire reads and writes no memory of peers")
    }

    /// Ends that. When this has returned, nothing lands in the memory any more, whoever has sent
    /// it, the dead too; commands that come later end with ERR_KEY, and no later registration gets
    /// this key. A wire that cannot promise this has no `remote`.
    fn deregister(&self, key: &Key) -> Result<()> {
        let _ = key;
        Ok(())
    }

    /// What one thread at a time posts to and polls. To be made once.
    fn lane(&self) -> Result<Box<dyn WireLane>>;
}

/// See the head of the file. One thread at a time.
pub trait WireLane: Send {
    /// Begins to connect to a peer; the end is an event. A peer of which a frame has come counts as
    /// connected.
    fn connect(&mut self, peer: u32, card: &[u8]) -> Result<()>;

    /// Takes commands for one peer and one class, in this order, from the first on; how many, and
    /// where they are not all, why: RETRY_QUEUE_FULL (post again after a poll),
    /// RETRY_CONNECTING (after [`Event::CONNECTED`]), or an error, which ends what is between the
    /// two ranks. Commands may overtake each other.
    ///
    /// # Safety
    /// The pieces are valid during the call; their bytes are valid and do not change until
    /// [`Event::DONE`] or close().
    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status);

    /// Fills in what has happened, from the first place on; answers how much. A wire has a fixed
    /// number of receives for each class, 16 or more. A frame that finds none, since those before
    /// it were not given back, stays with the network and delays no frame of another class.
    fn poll(&mut self, events: &mut [Event]) -> usize;

    /// The memory of a frame that has come is the wire's again.
    fn give_back(&mut self, frame: u64);

    /// Prepares for a sleep. Whoever slept calls disarm(); posting is allowed in between, and
    /// polling where the answer names no descriptor.
    fn arm(&mut self) -> Armed;

    /// Ends arm(), if it did not answer PollNow.
    fn disarm(&mut self);

    /// The peer has died: asks for the event [`Event::FENCED`] or [`Event::UNFENCEABLE`]. Before it
    /// each read, write and atomic for the peer ends with [`Event::DONE`].
    fn fence(&mut self, peer: u32);

    /// Why the device has failed, after [`Event::DEVICE`]; may be empty.
    fn why(&self) -> String {
        String::new()
    }

    /// Ends the lane, after up to `drain` for what was taken. The bytes of all commands are their
    /// owner's again.
    fn close(&mut self, drain: Duration) -> Result<()>;
}
