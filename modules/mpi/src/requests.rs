//! The requests of MPI that are under way. There are two kinds. *Receives* accept messages of a
//! class from any rank; the lane posts a receive again when its bytes were read. *Singles* send or
//! receive one message. MPI may use the bytes of a request until it has ended the request. So a box
//! whose request MPI does not end is leaked.

use crate::message::Notice;
use crate::mpi::{self, Communicator, Failure};
use mpi_sys as ffi;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// The receives from any rank: class, number, bytes of each.
const RECEIVES: [(u32, usize, usize); CLASSES] = [
    (0, 32, FRAME_MOST),
    (1, 16, FRAME_MOST),
    (2, 32, FRAME_MOST),
    (3, 16, MESSAGE_MOST),
    (4, 16, KNOCK_MOST),
    (5, 16, KNOCK_MOST),
    (6, 16, KNOCK_MOST),
    (7, 32, MESSAGE_MOST),
];
/// The number of classes. A message's class is its tag in MPI: the seven of llcl_wire.h, and
/// ANSWERS.
pub const CLASSES: usize = 8;
/// The class LLCL_CLASS_RMA: this module's requests for reads and writes.
pub const REQUESTS: u32 = 3;
/// This module's answers to those requests.
pub const ANSWERS: u32 = 7;
/// Most bytes of a frame.
pub const FRAME_MOST: usize = 8192;
/// Most bytes of a request or an answer. MPIs send messages up to this size eagerly.
pub const MESSAGE_MOST: usize = 4000;
/// LLCL_KNOCK_MOST of llcl_wire.h.
const KNOCK_MOST: usize = 512;
/// How long MPI may need to end a receive that was cancelled.
const CANCEL: Duration = Duration::from_millis(100);

/// A receive from any rank.
struct Receive {
    bytes: Box<[u8]>,
    class: u32,
    /// MPI_REQUEST_NULL: the receive is not posted.
    handle: ffi::MPI_Request,
}

/// A send or a receive of one message.
pub enum Single {
    /// Sends a frame. libllcl keeps its bytes until the event DONE.
    Frame { tag: u64, peer: u32 },
    /// Sends a request or an answer.
    Message(#[expect(dead_code, reason = "MPI reads it")] Box<[u8]>),
    /// Receives the bytes of this rank's large read with this number.
    Read(u32),
    /// Sends the bytes of this rank's large write with this number.
    Write(u32),
    /// Sends the bytes of a peer's large read from a region of this rank.
    Served { peer: u32, region: u64 },
    /// Receives the bytes of a peer's large write, number `index` at the peer, to a region of this
    /// rank. If there is no such region, `refused` takes the bytes, since the peer is sending them.
    /// `notice`: libllcl is told of it when the bytes are there.
    Stored {
        peer: u32,
        index: u32,
        region: Option<u64>,
        refused: Option<Box<[u8]>>,
        notice: Option<Notice>,
    },
    /// A Read, Write or Served of a dead peer, which counts as ended although MPI has not ended it.
    Abandoned,
}

/// A request that MPI has ended.
pub enum Ended {
    /// A receive from any rank: its index, and the sender and the size of the message.
    Came { at: usize, peer: u32, size: usize },
    /// A single.
    Single { single: Single, cancelled: bool },
}

/// See the head of the file.
pub struct Requests {
    communicator: Communicator,
    receives: Vec<Receive>,
    /// The receives that are posted, by class, in the order of posting. MPI matches messages with
    /// receives in that order, so test() asks for the first of each class only.
    posted: [VecDeque<usize>; CLASSES],
    singles: Vec<Single>,
    /// The requests of the singles, at the same indices.
    handles: Vec<ffi::MPI_Request>,
    /// How many singles are frames.
    pub frames: usize,
    /// The arrays of MPI_Testsome, kept for their memory.
    asked: Vec<ffi::MPI_Request>,
    indices: Vec<i32>,
    statuses: Vec<MaybeUninit<ffi::MPI_Status>>,
}

impl Requests {
    /// Posts all receives.
    pub fn new(communicator: Communicator) -> Result<Requests, Failure> {
        let mut requests = Requests {
            communicator,
            receives: Vec::new(),
            posted: Default::default(),
            singles: Vec::new(),
            handles: Vec::new(),
            frames: 0,
            asked: Vec::new(),
            indices: Vec::new(),
            statuses: Vec::new(),
        };
        for (class, count, size) in RECEIVES {
            for _ in 0..count {
                // SAFETY: a constant of the MPI that the module was built for.
                let handle = unsafe { ffi::RSMPI_REQUEST_NULL };
                requests.receives.push(Receive { bytes: vec![0; size].into(), class, handle });
                requests.post(requests.receives.len() - 1)?;
            }
        }
        Ok(requests)
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.communicator.rank
    }

    /// Posts a receive. The bytes that it has brought before are overwritten.
    pub fn post(&mut self, at: usize) -> Result<(), Failure> {
        // SAFETY: a constant of the MPI that the module was built for.
        let anybody = unsafe { ffi::RSMPI_ANY_SOURCE };
        let Receive { bytes, class, .. } = &mut self.receives[at];
        let (from, start, size) = ((anybody, *class), bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the bytes lie in a box that stays until MPI has ended the receive.
        self.receives[at].handle = unsafe { self.begin_receive(from, start, size)? };
        self.posted[from.1 as usize].push_back(at);
        Ok(())
    }

    /// The class of a receive, and its bytes, which stay until it is posted again.
    pub fn bytes(&self, at: usize) -> (u32, &[u8]) {
        (self.receives[at].class, &self.receives[at].bytes)
    }

    /// Takes the box out of a receive, so that the lane can use it and `self` at the same time.
    /// put_back() must follow before the receive is posted again.
    pub fn take_out(&mut self, at: usize) -> Box<[u8]> {
        std::mem::take(&mut self.receives[at].bytes)
    }

    /// Puts back the box of take_out().
    pub fn put_back(&mut self, at: usize, bytes: Box<[u8]>) {
        self.receives[at].bytes = bytes;
    }

    fn add(&mut self, single: Single, handle: ffi::MPI_Request) {
        self.frames += usize::from(matches!(single, Single::Frame { .. }));
        self.singles.push(single);
        self.handles.push(handle);
    }

    /// Begins to send bytes to a peer.
    ///
    /// # Safety
    /// The bytes are valid and unchanged until the single has ended.
    pub unsafe fn send(
        &mut self,
        (peer, tag): (u32, u32),
        bytes: *const u8,
        size: usize,
        single: Single,
    ) -> Result<(), Failure> {
        let mut handle = MaybeUninit::uninit();
        // SAFETY: as the caller promises.
        let code = unsafe {
            ffi::MPI_Isend(
                bytes.cast(),
                size as i32,
                ffi::RSMPI_UINT8_T,
                peer as i32,
                tag as i32,
                self.communicator.handle,
                handle.as_mut_ptr(),
            )
        };
        mpi::check("MPI_Isend", code)?;
        // SAFETY: MPI_Isend() has written it.
        self.add(single, unsafe { handle.assume_init() });
        Ok(())
    }

    /// Begins to send a request or an answer.
    pub fn send_message(&mut self, to: (u32, u32), bytes: Box<[u8]>) -> Result<(), Failure> {
        let (start, size) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the box is kept until the single has ended.
        unsafe { self.send(to, start, size, Single::Message(bytes)) }
    }

    /// Begins to receive bytes from a peer.
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
        // SAFETY: as the caller promises.
        let handle = unsafe { self.begin_receive((peer as i32, tag), bytes, size)? };
        self.add(single, handle);
        Ok(())
    }

    /// # Safety
    /// The bytes are valid, and nobody else uses them, until MPI has ended the receive.
    unsafe fn begin_receive(
        &self,
        (source, tag): (i32, u32),
        bytes: *mut u8,
        size: usize,
    ) -> Result<ffi::MPI_Request, Failure> {
        let mut handle = MaybeUninit::uninit();
        // SAFETY: as the caller promises.
        let code = unsafe {
            ffi::MPI_Irecv(
                bytes.cast(),
                size as i32,
                ffi::RSMPI_UINT8_T,
                source,
                tag as i32,
                self.communicator.handle,
                handle.as_mut_ptr(),
            )
        };
        mpi::check("MPI_Irecv", code)?;
        // SAFETY: MPI_Irecv() has written it.
        Ok(unsafe { handle.assume_init() })
    }

    /// Cancels single receives. test() still returns each of them: as cancelled, or as ended where
    /// its message came first.
    pub fn cancel(&mut self, fits: impl Fn(&Single) -> bool) {
        for (single, handle) in self.singles.iter().zip(&mut self.handles) {
            if fits(single) {
                // SAFETY: MPI has not ended the requests of the singles.
                unsafe { ffi::MPI_Cancel(handle) };
            }
        }
    }

    /// All singles. The caller may replace one, but must keep the boxes that MPI uses.
    pub fn singles(&mut self) -> impl Iterator<Item = &mut Single> {
        self.singles.iter_mut()
    }

    /// Returns the requests that have ended. MPI progresses inside this call.
    pub fn test(&mut self) -> Result<Vec<Ended>, Failure> {
        let heads: [Option<usize>; CLASSES] =
            std::array::from_fn(|class| self.posted[class].front().copied());
        self.asked.clear();
        self.asked.extend(heads.iter().flatten().map(|at| self.receives[*at].handle));
        let own = self.asked.len();
        self.asked.extend(&self.handles);
        let (count, mut ended) = (self.asked.len(), 0);
        self.indices.resize(count, 0);
        self.statuses.resize(count, MaybeUninit::uninit());
        // SAFETY: arrays of `count` places each.
        let code = unsafe {
            ffi::MPI_Testsome(
                count as i32,
                self.asked.as_mut_ptr(),
                &mut ended,
                self.indices.as_mut_ptr(),
                self.statuses.as_mut_ptr().cast(),
            )
        };
        for (at, handle) in heads.iter().flatten().zip(&self.asked) {
            self.receives[*at].handle = *handle;
        }
        self.handles.copy_from_slice(&self.asked[own..]);
        mpi::check("MPI_Testsome", code)?;
        // MPI_UNDEFINED, which is negative, means that no request was active.
        let ended = ended.max(0) as usize;
        let mut all = Vec::with_capacity(ended);
        let mut singles = Vec::new();
        for (index, status) in self.indices[..ended].iter().zip(&self.statuses) {
            // SAFETY: MPI has written a status for each request that has ended.
            let status = unsafe { status.assume_init_ref() };
            match *index as usize {
                head if head < own => {
                    let Some(at) = heads.iter().flatten().nth(head).copied() else { continue };
                    self.posted[self.receives[at].class as usize].pop_front();
                    let (peer, size) = (status.MPI_SOURCE as u32, size_of(status));
                    all.push(Ended::Came { at, peer, size });
                }
                index => singles.push((index - own, is_cancelled(status))),
            }
        }
        singles.sort_unstable();
        for (at, cancelled) in singles.into_iter().rev() {
            self.handles.swap_remove(at);
            let single = self.singles.swap_remove(at);
            self.frames -= usize::from(matches!(single, Single::Frame { .. }));
            all.push(Ended::Single { single, cancelled });
        }
        Ok(all)
    }

    /// Whether MPI has ended all sends but those to the dead.
    pub fn has_sent_all(&self) -> bool {
        let unsent = |it: &Single| {
            !matches!(it, Single::Read(_) | Single::Stored { .. } | Single::Abandoned)
        };
        !self.singles.iter().any(unsent)
    }

    /// Cancels all receives. Leaks the boxes of the requests that MPI does not end.
    pub fn take_back(&mut self) {
        for mut receive in self.receives.drain(..) {
            if !take_back(&mut receive.handle) {
                std::mem::forget(receive.bytes);
            }
        }
        self.posted = Default::default();
        self.frames = 0;
        for (single, mut handle) in self.singles.drain(..).zip(self.handles.drain(..)) {
            let receives = matches!(single, Single::Read(_) | Single::Stored { .. });
            // Sends cannot be cancelled reliably, so MPI may still read their bytes.
            if !(receives && take_back(&mut handle)) {
                std::mem::forget(single);
            }
        }
    }

    /// Cancels all receives, and frees the communicator.
    pub fn close(&mut self) -> i32 {
        self.take_back();
        self.communicator.close()
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

/// Cancels a receive. Returns whether MPI has ended it.
fn take_back(handle: &mut ffi::MPI_Request) -> bool {
    let (limit, mut ended) = (Instant::now() + CANCEL, 0);
    // SAFETY: a request that MPI has not ended, or MPI_REQUEST_NULL.
    unsafe {
        if *handle == ffi::RSMPI_REQUEST_NULL {
            return true;
        }
        ffi::MPI_Cancel(handle);
        while ffi::MPI_Test(handle, &mut ended, ffi::RSMPI_STATUS_IGNORE) == 0 {
            if ended != 0 || Instant::now() >= limit {
                break;
            }
            std::thread::yield_now();
        }
    }
    ended != 0
}

fn size_of(status: &ffi::MPI_Status) -> usize {
    let mut size = 0;
    // SAFETY: MPI has written the status of a receive.
    unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &mut size) };
    size.max(0) as usize
}

fn is_cancelled(status: &ffi::MPI_Status) -> bool {
    let mut cancelled = 0;
    // SAFETY: MPI has written the status of a request.
    unsafe { ffi::MPI_Test_cancelled(status, &mut cancelled) };
    cancelled != 0
}
