//! Wires: networks to ranks whose memory this process cannot map. A rank posts commands; their
//! completions arrive later as events.
//!
//! The traits in this file state what a network must implement: a [`Wire`] is one network as one
//! rank uses it; a [`WireLane`] is its queue of commands and events, used by one thread at a time.
//! `simulated` is the shortest implementation. [`endpoint`] implements, once for all wires, what
//! every network needs above that: credits ([`grants`], [`tickets`]), the encoding of packets
//! (`packet`), their segmentation (`pieces`), confirmation of delivery (`receipts`), the numbering
//! of reads, writes and atomics (`remote`), and the polling thread.
//!
//! [`Command`] and [`Event`] have the layout of `llcl_wire.h`, so arrays of them go to a module
//! without conversion. Further abilities of networks become further values of `op` and `event`;
//! their fields exist already and are 0.

mod buffers;
mod bundle;
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
mod signals;
#[cfg(feature = "simulated")]
pub mod simulated;
mod table;
pub mod tickets;

use crate::fail;
use crate::util::status::{Result, Status};
use std::os::fd::RawFd;
use std::time::Duration;

/// Frames that need no credit: answers and replies, for which the receiver has reserved a slot, and
/// the packets of `grants`, `receipts` and hubs. The receiver takes them in without a slot, so this
/// class always makes progress.
pub const CLASS_ANSWER: u32 = 0;
/// Requests to owners of memory.
pub const CLASS_LIB: u32 = 1;
/// Active messages of users.
pub const CLASS_USER: u32 = 2;
/// Knocks (requests for credits) for requests to owners, for responses, and for requests of users.
/// A knock may occupy a receive until the receiver has answered it, so each kind has a class of its
/// own: frames of other classes do not wait behind it.
pub const CLASS_KNOCKS: [u32; 3] = [4, 5, 6];
/// Most bytes of a frame of a class in [`CLASS_KNOCKS`].
pub const KNOCK_MOST: usize = 512;
/// Number of classes; each class number is smaller.
pub const CLASSES: usize = 7;
/// Reads, writes and atomics.
pub const CLASS_RMA: u32 = 3;
/// Most bytes of a card: the address by which peers connect to a rank.
pub const CARD: usize = 64;

/// The abilities of a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Most bytes of a frame.
    pub frame_most: usize,
    /// The wire reads and writes memory that peers have registered, without a thread of the peer.
    pub remote: bool,
    /// Most bytes of a write that post() copies, see [`Command::INLINE`].
    pub inline_most: usize,
    /// The local buffer of a read, and of a write that is not inline, must be registered, too.
    pub needs_local_key: bool,
    /// Most bytes of a read or a write; 0: any number.
    pub message_most: u64,
    /// The atomic operations that the wire offers on aligned words of 8 bytes: bit n stands for
    /// the `LLCL_OP_*` with number n.
    pub atomics: u64,
    /// The number of bits of a notice, see [`Command::NOTICE`]; 0: writes have none.
    pub notice_bits: u32,
    /// A frame waits at its sender while its receiver has no free receive: [`Event::DONE`] of a
    /// frame says that it lies in a receive of the peer, or that the peer is gone.
    pub shared_queue: bool,
    /// How many words a notice may bring beside its number, see [`Command::words`].
    pub notice_words: u32,
    /// Each notice that brings words has a number for [`WireLane::answer`], here and at all peers
    /// that have this ability, too.
    pub answers: bool,
    /// Only calls of the thread that has opened the wire make progress, so it polls where it waits.
    pub opener_polls: bool,
}

/// The words of a notice that brings words.
pub const NOTICE_WORDS: usize = 4;

impl Caps {
    /// Whether a write may bring a signal: its notice has room for the words of `signals`.
    pub fn has_signals(&self) -> bool {
        self.remote && self.notice_bits >= 8 && self.notice_words as usize >= NOTICE_WORDS
    }

    /// Whether a write of no bytes may bring an atomic: the wire answers it with a value.
    pub fn has_atomics(&self) -> bool {
        self.has_signals() && self.notice_bits >= 16 && self.answers
    }
}

/// The keys of one registration of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Key {
    /// The local key: [`Piece::local`] in commands of this rank.
    pub local: u64,
    /// The remote key: [`Command::wire`] in commands of peers.
    pub wire: [u64; 4],
}

/// A buffer in this process's memory.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Piece {
    /// Its first byte.
    pub address: *const u8,
    /// Its length in bytes.
    pub size: u64,
    /// The local key of the registration that covers the buffer; 0 where the wire needs none.
    pub local: u64,
}

/// A work request. Its size of 128 bytes is part of the interface and never changes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Command {
    /// The operation: one of the constants below.
    pub op: u8,
    /// [`Command::ATOMIC`]: the number of the `LLCL_OP_*`.
    pub atomic: u8,
    /// [`Command::ATOMIC`]: the number of the word's `LLCL_TYPE_*`.
    pub kind: u8,
    /// Length of the array `piece`.
    pub pieces: u8,
    /// [`Command::INLINE`], or 0.
    pub flags: u32,
    /// Chosen by the poster; [`Event::DONE`] returns it.
    pub tag: u64,
    /// The remote address, in the peer's address space.
    pub remote: u64,
    /// The remote key, see [`Key::wire`].
    pub wire: [u64; 4],
    /// Sum of the sizes of all pieces; for an atomic, the size of the word.
    pub size: u64,
    /// The operand of an atomic; for a compare-and-swap, the new value.
    pub operand: u64,
    /// The value that a compare-and-swap expects.
    pub compare: u64,
    /// The number that a write with [`Command::NOTICE`] brings, of [`Caps::notice_bits`].
    pub notice: u32,
    order: u32,
    /// The local buffers.
    pub piece: *const Piece,
    /// What a write with [`Command::NOTICE`] and [`Command::WORDS`] brings beside the number.
    pub words: [u64; 4],
}

impl Command {
    /// Copies from the peer's memory. At [`Event::DONE`] the bytes are in the local buffer.
    pub const READ: u8 = 1;
    /// Copies to the peer's memory. At [`Event::DONE`] the peer's threads see the bytes.
    pub const WRITE: u8 = 2;
    /// Executes an atomic operation on a word of the peer's memory. It has no pieces;
    /// [`Event::fetched`] returns the value that the word had before.
    pub const ATOMIC: u8 = 3;
    /// Sends its bytes as one frame.
    pub const FRAME: u8 = 4;
    /// A flag of a write of at most [`Caps::inline_most`] bytes: post() copies the bytes.
    pub const INLINE: u32 = 1;
    /// A flag of a write: the peer gets [`Event::NOTICE`] when the bytes are in its memory.
    pub const NOTICE: u32 = 2;
    /// A flag of a write with [`Command::NOTICE`]: the notice brings `words`, too.
    pub const WORDS: u32 = 16;
    /// A flag of a write with [`Command::WORDS`]: the writer waits for the value of the answer.
    pub const FETCH: u32 = 32;

    /// The command that sends one piece as a frame. The lane reads `piece` during post() only, and
    /// the bytes to which it points until the event of `tag`.
    pub fn frame(tag: u64, piece: &Piece) -> Command {
        Command { op: Command::FRAME, tag, size: piece.size, piece, ..Command::NOTHING }
    }

    /// A command of one piece that a caller completes.
    pub const NOTHING: Command = Command {
        op: 0,
        atomic: 0,
        kind: 0,
        pieces: 1,
        flags: 0,
        tag: 0,
        remote: 0,
        wire: [0; 4],
        size: 0,
        operand: 0,
        compare: 0,
        notice: 0,
        order: 0,
        piece: std::ptr::null(),
        words: [0; 4],
    };
}

/// An entry of a poll's result. Its size of 64 bytes is part of the interface and never changes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// The kind of event: one of the constants below.
    pub event: u32,
    /// The peer: of a command its target, of a frame its sender.
    pub peer: u32,
    /// [`Event::DONE`]: the status of the command; [`Event::LOST`] and [`Event::DEVICE`]: the
    /// error.
    pub status: i32,
    /// [`Event::FRAME`]: the class of the frame.
    pub class: u32,
    /// [`Event::DONE`]: the tag of the command; [`Event::NOTICE`]: the notice.
    pub tag: u64,
    /// [`Event::DONE`] of an atomic: the value that the word had before; of a write with
    /// [`Command::WORDS`]: the value that the peer has passed to answer(); 0 if it has not called
    /// it.
    pub fetched: u64,
    /// [`Event::FRAME`]: the number by which give_back() returns the frame to the wire.
    /// [`Event::NOTICE`]: the number by which answer() answers the write; 0: the wire brings no
    /// answers.
    pub frame: u64,
    /// [`Event::FRAME`]: the bytes of the frame, valid until give_back(). [`Event::NOTICE`]: its
    /// words, valid until the next poll().
    pub bytes: *const u8,
    /// The length of `bytes`.
    pub size: u64,
    reserved: u64,
}

impl Event {
    /// A command has completed; the wire does not touch its local buffer any more.
    pub const DONE: u32 = 1;
    /// A frame has arrived.
    pub const FRAME: u32 = 2;
    /// A write with notice has arrived, and its bytes are in memory. `tag` is the notice.
    pub const NOTICE: u32 = 3;
    /// A connection is established.
    pub const CONNECTED: u32 = 4;
    /// The network does not reach the peer any more.
    pub const LOST: u32 = 5;
    /// Answer to fence(): nothing that the peer sent arrives after this event.
    pub const FENCED: u32 = 6;
    /// Answer to fence(): the wire cannot tell when the last data of the peer arrives.
    pub const UNFENCEABLE: u32 = 7;
    /// The adapter has failed: the wire neither sends nor receives any more.
    pub const DEVICE: u32 = 8;
    /// poll() has progressed an operation of a peer, such as a read of this rank's memory. The
    /// caller should go on polling, since the peer probably continues.
    pub const SERVED: u32 = 9;

    /// An empty entry for poll() to overwrite.
    pub const NONE: Event = Event::about(0, 0);

    /// An event of this kind and peer, all other fields 0.
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

/// How the polling thread may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Armed {
    /// It must not sleep: an event is ready.
    PollNow,
    /// It sleeps until the descriptor becomes readable, which happens when an event is ready; it
    /// polls after this time at the latest.
    Fd(RawFd, Duration),
    /// The wire has no descriptor. No event is ready before this time; zero: the time is unknown.
    PollAfter(Duration),
}

/// One network, as one rank uses it. Any thread may call.
pub trait Wire: Send + Sync {
    /// The abilities; every call returns the same.
    fn caps(&self) -> Caps;

    /// The address by which peers connect to this rank: at most [`CARD`] bytes.
    fn card(&self) -> Result<Vec<u8>>;

    /// Registers memory: from now on peers that have the key may read and write it.
    fn register(&self, address: *mut u8, size: u64) -> Result<Key> {
        let _ = (address, size);
        fail!(ERR_UNSUPPORTED, "this wire reads and writes no memory of peers")
    }

    /// Ends a registration. Waits up to `patience` for transfers of the memory that are under way.
    /// Ok: no peer, living or dead, changes the memory any more. Err: a peer may, so the memory
    /// must stay valid. Commands that arrive later end with ERR_KEY, and no later registration gets
    /// this key. A wire that cannot promise this has no `remote`.
    fn deregister(&self, key: &Key, patience: Duration) -> Result<()> {
        let _ = (key, patience);
        Ok(())
    }

    /// Opens the lane. Called once.
    fn lane(&self) -> Result<Box<dyn WireLane>>;
}

/// The queue of commands and events of a wire. One thread at a time may call.
pub trait WireLane: Send {
    /// Begins to connect to a peer; [`Event::CONNECTED`] reports success. A peer from which a frame
    /// has arrived is connected already.
    fn connect(&mut self, peer: u32, card: &[u8]) -> Result<()>;

    /// Takes a prefix of these commands for one peer and one class. Returns its length and, where
    /// it is not all, why the lane stopped: RETRY_QUEUE_FULL (post the rest after a poll),
    /// RETRY_CONNECTING (post the rest after [`Event::CONNECTED`]), or an error: the network does
    /// not reach the peer any more. Commands may overtake each other.
    ///
    /// # Safety
    /// The pieces are valid during the call; the bytes to which they point are valid until
    /// [`Event::DONE`] or close(). Until then nobody changes the bytes of a frame or a write, and
    /// nobody uses those of a read.
    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status);

    /// Writes the next events to `events` and returns their number. Frames that were not given back
    /// delay no frame of another class. Either a wire has a fixed number of receives for each
    /// class, 16 or more, and further frames of the class stay in the network; or it receives
    /// every frame.
    fn poll(&mut self, events: &mut [Event]) -> usize;

    /// Returns the memory of a received frame to the wire.
    fn give_back(&mut self, frame: u64);

    /// Answers the write of a notice that has a number: its completion at the writer gets this
    /// status and value. The answer may wait for other data for this peer, until the end of the
    /// next poll() that makes progress. That to a write with [`Command::FETCH`] waits until all
    /// notices that poll() has returned are answered, if the calling thread can make progress.
    /// While one waits arm() returns [`Armed::PollNow`]. A wire whose notices have no numbers does
    /// nothing here.
    fn answer(&mut self, notice: u64, status: Status, value: u64);

    /// Prepares for a sleep, which disarm() ends. Other threads may post in between; they may poll
    /// in between if the answer is [`Armed::PollAfter`].
    fn arm(&mut self) -> Armed;

    /// Ends the sleep for which arm() prepared. Not called after [`Armed::PollNow`].
    fn disarm(&mut self);

    /// Tells the wire that the peer has died. The wire completes each read, write and atomic for
    /// the peer with [`Event::DONE`], then reports [`Event::FENCED`] or [`Event::UNFENCEABLE`].
    /// Before [`Event::FENCED`] it completes each frame for the peer, too.
    fn fence(&mut self, peer: u32);

    /// The reason of [`Event::DEVICE`], as text; may be empty.
    fn why(&self) -> String {
        String::new()
    }

    /// Closes the lane. The wire has up to `drain` to send what it has taken. Ok: it touches the
    /// bytes of no command any more. Err: it may, so the caller keeps them, and the lane.
    fn close(&mut self, drain: Duration) -> Result<()>;
}
