//! MPI's requests that are under way. There are two kinds. *Receives* accept messages of all
//! classes from any rank; when a message has come, another receive is posted at once. *Singles*
//! send or receive one message. MPI may use the bytes of a request until it has ended the request.
//! So a box whose request MPI does not end is leaked.
//!
//! A receive fits every message, so MPI matches a message with the first receive that is posted. If
//! each class had its own receives, MPI would search all of them for each message. The bytes of
//! large operations travel on a communicator of their own, where these receives do not match.

use crate::asked::Asked;
use crate::calls::{begin_receive, cancel, is_over_by};
use crate::failures::Failures;
use crate::message::Notice;
use crate::mpi::{self, Communicator, Failure};
use crate::table::{Event, Status};
use mpi_sys as ffi;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::{Duration, Instant};

mod ends;

/// The receives that are posted.
pub const RECEIVES: usize = 32;
/// How long MPI may need to end all receives that were cancelled.
const CANCEL: Duration = Duration::from_millis(100);
/// Most buffers that are kept for requests and answers.
const MESSAGES: usize = 8;
/// The class LLCL_CLASS_RMA: this module's requests for reads and writes. A message's class is its
/// tag in MPI: the seven of llcl_wire.h, and ANSWERS.
pub const REQUESTS: u32 = 3;
/// This module's answers to those requests.
pub const ANSWERS: u32 = 7;
/// Most bytes of a frame, and the bytes of a receive. MPI sends messages up to this size over TCP
/// without asking the receiver first; with that question a message takes three times as long. UCX,
/// which MPICH uses, asks from 8 KiB on, Open MPI's own TCP from 64 KiB on.
pub const FRAME_MOST: usize = if IS_OPEN_MPI { (32 << 10) + 512 } else { OVER_UCX };
/// Most bytes of a frame that goes over UCX.
const OVER_UCX: usize = 8000;
const IS_OPEN_MPI: bool =
    matches!(env!("LLCL_MPI_BUILT_FOR").as_bytes(), [b'o', b'p', b'e', b'n', ..]);
/// Most bytes of a request or an answer with several operations. MPIs send messages up to this size
/// eagerly.
pub const MESSAGE_MOST: usize = 4000;

/// A receive from any rank.
struct Receive {
    /// FRAME_MOST bytes.
    bytes: Box<[u8]>,
    handle: ffi::MPI_Request,
}

/// A message that a receive has brought. The box may be longer.
pub struct Came {
    pub bytes: Box<[u8]>,
    pub size: usize,
    pub class: u32,
    pub peer: u32,
}

/// A send or a receive of one message.
pub enum Single {
    /// Sends a frame. libllcl keeps its bytes until the event DONE.
    Frame { tag: u64, peer: u32 },
    /// Sends a request or an answer.
    Message(Vec<u8>),
    /// Receives the bytes of this rank's large read with this number. `cancelled`, here and below:
    /// cancel() has cancelled the receive.
    Read { number: u32, cancelled: bool },
    /// Sends the bytes of this rank's large write with this number.
    Write(u32),
    /// Sends the bytes of a peer's large read from a region of this rank.
    Served { peer: u32, region: u64 },
    /// Receives the bytes of a peer's large write, number `index` at the peer, to a region of this
    /// rank; None: the write is refused. `notice`: libllcl is told of it when the bytes are there.
    /// The notice is in a box, since frames, which are moved several times, would need its room.
    Stored {
        peer: u32,
        index: u32,
        region: Option<NonZeroU64>,
        notice: Option<Box<Notice>>,
        cancelled: bool,
    },
    /// A Stored of a dead peer, which does not count in `served` any more. Its region stays in use.
    Outlasts { region: Option<NonZeroU64>, cancelled: bool },
    /// A Frame to a dead peer, which does not count in `frames` any more.
    Undelivered { tag: u64, peer: u32 },
    /// A Read, Write or Served of a dead peer, which counts as ended although MPI has not ended it.
    /// `memory`: of a Read, where MPI may still store; else empty.
    Abandoned { memory: Range<u64>, cancelled: bool },
}

const _: () = assert!(size_of::<Single>() <= 32, "frames, which are moved several times, grow");

impl Single {
    /// Whether it may be a receive, which can be cancelled.
    fn receives(&self) -> bool {
        self.is_receive() || matches!(self, Single::Abandoned { .. })
    }

    /// Marks a receive as cancelled. False: it is marked already, or cannot be a receive.
    fn mark_cancelled(&mut self) -> bool {
        match self {
            Single::Read { cancelled, .. }
            | Single::Stored { cancelled, .. }
            | Single::Outlasts { cancelled, .. }
            | Single::Abandoned { cancelled, .. } => !std::mem::replace(cancelled, true),
            _ => false,
        }
    }

    /// Whether it is a receive.
    fn is_receive(&self) -> bool {
        match self {
            Single::Read { .. } | Single::Stored { .. } | Single::Outlasts { .. } => true,
            Single::Abandoned { memory, .. } => !memory.is_empty(),
            _ => false,
        }
    }

    /// Whether MPI uses memory that libllcl must keep.
    fn uses_memory(&self) -> bool {
        !matches!(
            self,
            Single::Message(_)
                | Single::Stored { region: None, .. }
                | Single::Outlasts { region: None, .. }
        )
    }
}

/// A request that MPI has ended.
pub enum Ended {
    Came(Came),
    /// `cancelled`: MPI has not transferred the bytes, since the receive was cancelled or the peer
    /// has died.
    Single {
        single: Single,
        cancelled: bool,
    },
}

/// See the head of the file.
pub struct Requests {
    communicator: Communicator,
    /// Most bytes of a frame that this rank sends.
    pub frame_most: usize,
    /// The receives that are posted, in the order of posting, in which MPI matches them.
    receives: VecDeque<Receive>,
    /// Receives that a later one has overtaken: MPI has matched them, and their bytes are still
    /// under way.
    overtaken: Vec<Receive>,
    /// Boxes for receives.
    spare: Vec<Box<[u8]>>,
    /// Memory of requests and answers that MPI has sent at once, for the next ones.
    messages: Vec<Vec<u8>>,
    singles: Vec<Single>,
    /// The requests of the singles, at the same indices.
    handles: Vec<ffi::MPI_Request>,
    /// The singles from this one on are sends and receives about which no call has asked MPI yet.
    unasked: usize,
    /// How many singles are frames.
    pub frames: usize,
    /// The requests that have ended, for the caller of test(), which takes them out. The ends of
    /// frames are events at once.
    pub ended: VecDeque<Ended>,
    /// Events that the lane has not returned to libllcl yet.
    pub events: VecDeque<Event>,
    pub failures: Failures,
    /// How often test() was called.
    turns: u32,
    asked: Asked,
}

impl Requests {
    /// Posts all receives.
    pub fn new(communicator: Communicator) -> Result<Requests, Failure> {
        // Also then receives have FRAME_MOST bytes, so this rank need not know what its peers use.
        let over_ucx = IS_OPEN_MPI && mpi::is_over_ucx();
        let mut requests = Requests {
            frame_most: if over_ucx { OVER_UCX } else { FRAME_MOST },
            receives: VecDeque::new(),
            overtaken: Vec::new(),
            spare: Vec::new(),
            messages: Vec::new(),
            singles: Vec::new(),
            handles: Vec::new(),
            unasked: 0,
            frames: 0,
            ended: VecDeque::new(),
            events: VecDeque::new(),
            failures: Failures::new(communicator.handle),
            communicator,
            turns: 0,
            asked: Asked::default(),
        };
        requests.fill()?;
        Ok(requests)
    }

    /// Posts receives until there are RECEIVES.
    #[inline]
    fn fill(&mut self) -> Result<(), Failure> {
        if self.receives.len() < RECEIVES { self.post_receives() } else { Ok(()) }
    }

    #[inline(never)]
    fn post_receives(&mut self) -> Result<(), Failure> {
        while self.receives.len() < RECEIVES {
            let mut bytes = self.spare.pop().unwrap_or_else(|| vec![0; FRAME_MOST].into());
            // SAFETY: constants of the MPI that the module was built for.
            let any = unsafe { (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG) };
            let communicator = self.communicator.handle;
            // SAFETY: the bytes lie in a box that stays until MPI has ended the receive.
            match unsafe { begin_receive(communicator, any, bytes.as_mut_ptr(), FRAME_MOST) } {
                Ok(handle) => self.receives.push_back(Receive { bytes, handle }),
                Err(_) if self.failures.excuse(false) => self.recycle(bytes),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Whether any thread may call MPI.
    pub fn may_be_called_by_all(&self) -> bool {
        matches!(self.communicator.threads, mpi::Threads::Any)
    }

    /// Whether the calling thread may call MPI.
    pub fn may_call(&self) -> bool {
        self.communicator.threads.have_this()
    }

    /// Takes back the box of a message, for another receive.
    pub fn recycle(&mut self, bytes: Box<[u8]>) {
        if bytes.len() == FRAME_MOST && self.spare.len() < RECEIVES {
            self.spare.push(bytes);
        }
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.communicator.rank
    }

    #[inline(always)]
    fn add(&mut self, single: Single, handle: ffi::MPI_Request) {
        self.frames += usize::from(matches!(single, Single::Frame { .. }));
        self.singles.push(single);
        self.handles.push(handle);
    }

    /// Begins to send a message of a class to a peer, or the bytes of a large operation.
    ///
    /// # Safety
    /// The bytes are valid and unchanged until the single has ended.
    #[inline(always)]
    pub unsafe fn send(
        &mut self,
        (peer, tag): (u32, u32),
        bytes: *const u8,
        size: usize,
        single: Single,
    ) -> Result<(), Failure> {
        let communicator = match tag {
            0..=ANSWERS => self.communicator.handle,
            _ => self.communicator.large,
        };
        let mut handle = MaybeUninit::uninit();
        // SAFETY: as the caller promises.
        let code = unsafe {
            ffi::MPI_Isend(
                bytes.cast(),
                size as i32,
                ffi::RSMPI_UINT8_T,
                peer as i32,
                tag as i32,
                communicator,
                handle.as_mut_ptr(),
            )
        };
        match mpi::check("MPI_Isend", code) {
            Ok(()) => {
                // SAFETY: MPI_Isend() has written it.
                self.add(single, unsafe { handle.assume_init() });
                Ok(())
            }
            Err(failure) => self.refused(peer, single, failure),
        }
    }

    /// MPI has refused to begin a single. If the peer has died, test() returns the single as
    /// cancelled.
    #[cold]
    fn refused(&mut self, peer: u32, single: Single, failure: Failure) -> Result<(), Failure> {
        self.failures.look();
        if !self.failures.has(peer) {
            return Err(failure);
        }
        self.has_ended(single, true);
        Ok(())
    }

    /// The memory of an earlier request or answer.
    pub fn spare_message(&mut self) -> Option<Vec<u8>> {
        self.messages.pop()
    }

    /// Begins to send a request or an answer.
    #[inline(always)]
    pub fn send_message(&mut self, to: (u32, u32), bytes: Vec<u8>) -> Result<(), Failure> {
        let (start, size) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the bytes are kept until the single has ended.
        unsafe { self.send(to, start, size, Single::Message(bytes)) }
    }

    /// Begins to receive the bytes of a large operation.
    ///
    /// # Safety
    /// The bytes are valid, and nobody else uses them, until the single has ended.
    pub unsafe fn receive(
        &mut self,
        (peer, tag): (u32, u32),
        bytes: *mut u8,
        size: usize,
        single: Single,
    ) -> Result<(), Failure> {
        let from = (peer as i32, tag as i32);
        // SAFETY: as the caller promises.
        match unsafe { begin_receive(self.communicator.large, from, bytes, size) } {
            Ok(handle) => {
                self.add(single, handle);
                Ok(())
            }
            Err(failure) => self.refused(peer, single, failure),
        }
    }

    /// Cancels single receives. test() still returns each of them: as cancelled, or as ended where
    /// its message came first. MPI is told once of each: when a receive is cancelled that was
    /// cancelled before, Open MPI removes it from its list of receives a second time, and crashes.
    pub fn cancel(&mut self, fits: impl Fn(&Single) -> bool) {
        for (single, handle) in self.singles.iter_mut().zip(&mut self.handles) {
            if fits(single) && single.mark_cancelled() {
                // SAFETY: MPI has not ended the requests of the singles.
                unsafe { ffi::MPI_Cancel(handle) };
            }
        }
    }

    /// All singles. The caller may replace one, but must keep the boxes that MPI uses.
    pub fn singles(&mut self) -> impl Iterator<Item = &mut Single> {
        let of_ended = |ended| match ended {
            &mut Ended::Single { ref mut single, .. } => Some(single),
            Ended::Came(_) => None,
        };
        self.singles.iter_mut().chain(self.ended.iter_mut().filter_map(of_ended))
    }

    /// Takes the frames to a dead peer out of `frames`: MPI may never end them, and those to other
    /// peers would wait for it.
    pub fn abandon_frames(&mut self, dead: u32) {
        for single in &mut self.singles {
            if let Single::Frame { tag, peer } = *single
                && peer == dead
            {
                *single = Single::Undelivered { tag, peer };
                self.frames -= 1;
            }
        }
    }

    fn has_ended(&mut self, single: Single, cancelled: bool) {
        match single {
            Single::Frame { tag, peer } | Single::Undelivered { tag, peer } => {
                self.has_sent(tag, peer, cancelled)
            }
            single => self.ended.push_back(Ended::Single { single, cancelled }),
        }
    }

    /// MPI has ended the send of a frame.
    #[inline]
    fn has_sent(&mut self, tag: u64, peer: u32, cancelled: bool) {
        let status = if cancelled { Status::ERR_PEER_DEAD } else { Status::OK };
        self.events.push_back(Event { tag, status, ..Event::about(Event::DONE, peer) });
    }

    /// Removes a single that MPI has ended.
    fn remove(&mut self, at: usize) -> Single {
        self.handles.swap_remove(at);
        let single = self.singles.swap_remove(at);
        self.frames -= usize::from(matches!(single, Single::Frame { .. }));
        single
    }

    /// Whether MPI has ended all sends but frames to the dead.
    pub fn has_sent_all(&self) -> bool {
        let of_dead = |it: &Single| matches!(it, Single::Undelivered { .. });
        self.singles.iter().all(|it| it.receives() || of_dead(it))
    }

    /// Cancels all receives. Leaks the boxes of the requests that MPI does not end. False: MPI may
    /// still use memory of libllcl.
    pub fn take_back(&mut self) -> bool {
        let posted = self.receives.iter_mut().chain(&mut self.overtaken);
        posted.for_each(|receive| cancel(&mut receive.handle));
        self.cancel(Single::is_receive);
        let limit = Instant::now() + CANCEL;
        for mut receive in self.receives.drain(..).chain(self.overtaken.drain(..)) {
            if !is_over_by(limit, &mut receive.handle) {
                std::mem::forget(receive.bytes);
            }
        }
        let mut none = true;
        self.frames = 0;
        for (single, mut handle) in self.singles.drain(..).zip(self.handles.drain(..)) {
            // Sends cannot be cancelled reliably, so MPI may still read their bytes.
            if !(single.is_receive() && is_over_by(limit, &mut handle)) {
                none &= !single.uses_memory();
                std::mem::forget(single);
            }
        }
        none
    }

    /// Cancels all receives, and frees the communicator. An error also if MPI may still use memory
    /// of libllcl.
    pub fn close(&mut self) -> i32 {
        let none = self.take_back();
        let freed = self.communicator.close();
        if none { freed } else { Status::ERR_SYSTEM }
    }
}

impl Drop for Requests {
    /// Cancels the receives where open() fails after some were posted: MPI must not write to boxes
    /// that are freed.
    fn drop(&mut self) {
        if !mpi::is_finalized() {
            self.close();
        }
    }
}
