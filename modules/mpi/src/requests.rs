//! What MPI is asked for and has not ended: receives from anybody, which are posted again as soon
//! as what they have brought was taken, and sends and receives of a single message. MPI may use
//! their bytes until it has ended them; so where MPI does not give a box back, it is leaked.

use crate::mpi::{self, Communicator, Failure};
use mpi_sys as ffi;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// Receives from anybody: class, how many, and bytes of each.
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
/// Classes, which are MPI's tags: those of llcl_wire.h, of which 3 has this module's requests, and
/// 7, its answers.
pub const CLASSES: usize = 8;
/// See above.
pub const REQUESTS: u32 = 3;
/// See above.
pub const ANSWERS: u32 = 7;
/// Most bytes of a frame: what the receives have room for.
pub const FRAME_MOST: usize = 8192;
/// Most bytes of a request or an answer: MPIs send so many at once.
pub const MESSAGE_MOST: usize = 4000;
/// Most bytes of a frame with a knock.
const KNOCK_MOST: usize = 512;
/// How long a receive that was cancelled may need.
const CANCEL: Duration = Duration::from_millis(100);

/// A receive from anybody.
struct Receive {
    bytes: Box<[u8]>,
    class: u32,
    /// MPI's; null: not posted.
    handle: ffi::MPI_Request,
}

/// Why a single message is sent or received.
pub enum Single {
    /// A frame of libllcl, which has its bytes.
    Frame { tag: u64, peer: u32 },
    /// A request or an answer.
    Message(#[expect(dead_code, reason = "MPI reads it")] Box<[u8]>),
    /// The bytes of a large read of this rank's, by its index.
    Read(u32),
    /// The bytes of a large write of this rank's.
    Write(u32),
    /// Those of a peer's read of a region of this rank's; None: it is not waited for any more.
    Served { peer: u32, region: Option<u64> },
    /// Those of a peer's write to it. Without a region they go into a box, and it is refused.
    Stored { peer: u32, index: u32, region: Option<u64>, refused: Option<Box<[u8]>> },
    /// One of this rank's that nobody waits for any more, since the peer is dead.
    Lost,
}

/// What has ended.
pub enum Ended {
    /// Something has come from a peer: in which receive, and how many bytes.
    Came { at: usize, peer: u32, size: usize },
    /// A single message.
    Single { single: Single, cancelled: bool },
}

/// See the head of the file.
pub struct Requests {
    communicator: Communicator,
    receives: Vec<Receive>,
    /// Those that are posted, for each class in this order. MPI fills them in this order, too, so
    /// only the first of each is asked for.
    posted: [VecDeque<usize>; CLASSES],
    singles: Vec<Single>,
    /// MPI's, of the singles.
    handles: Vec<ffi::MPI_Request>,
    /// Frames among the singles.
    pub frames: usize,
    /// Scratch.
    asked: Vec<ffi::MPI_Request>,
    indices: Vec<i32>,
    statuses: Vec<MaybeUninit<ffi::MPI_Status>>,
}

impl Requests {
    /// All receives are posted.
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
                // SAFETY: a constant of the MPI that was built for.
                let handle = unsafe { ffi::RSMPI_REQUEST_NULL };
                requests.receives.push(Receive { bytes: vec![0; size].into(), class, handle });
                requests.post(requests.receives.len() - 1)?;
            }
        }
        Ok(requests)
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.communicator.rank
    }

    /// Posts a receive from anybody, whose bytes nobody reads any more.
    pub fn post(&mut self, at: usize) -> Result<(), Failure> {
        // SAFETY: a constant of the MPI that was built for.
        let anybody = unsafe { ffi::RSMPI_ANY_SOURCE };
        let Receive { bytes, class, .. } = &mut self.receives[at];
        let (from, start, size) = ((anybody, *class), bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the bytes lie in a box that stays until MPI has ended the receive.
        self.receives[at].handle = unsafe { self.begin_receive(from, start, size)? };
        self.posted[from.1 as usize].push_back(at);
        Ok(())
    }

    /// What a receive has brought: its class, and its bytes, until it is posted again.
    pub fn bytes(&self, at: usize) -> (u32, &[u8]) {
        (self.receives[at].class, &self.receives[at].bytes)
    }

    /// Takes out the bytes of a receive; put_back() gives them back before it is posted again.
    pub fn take_out(&mut self, at: usize) -> Box<[u8]> {
        std::mem::take(&mut self.receives[at].bytes)
    }

    /// See take_out().
    pub fn put_back(&mut self, at: usize, bytes: Box<[u8]>) {
        self.receives[at].bytes = bytes;
    }

    fn add(&mut self, single: Single, handle: ffi::MPI_Request) {
        self.frames += usize::from(matches!(single, Single::Frame { .. }));
        self.singles.push(single);
        self.handles.push(handle);
    }

    /// Sends bytes to a peer.
    ///
    /// # Safety
    /// They are valid and unchanged until the single has ended.
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

    /// Sends a request or an answer.
    pub fn send_message(&mut self, to: (u32, u32), bytes: Box<[u8]>) -> Result<(), Failure> {
        let (start, size) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the box is kept until the single has ended.
        unsafe { self.send(to, start, size, Single::Message(bytes)) }
    }

    /// Receives bytes of a peer.
    ///
    /// # Safety
    /// They are valid and nobody else's until the single has ended.
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
    /// The bytes are valid and nobody else's until MPI has ended the receive.
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

    /// Cancels receives of single messages. MPI ends them, in this way or by what has come.
    pub fn cancel(&mut self, fits: impl Fn(&Single) -> bool) {
        for (single, handle) in self.singles.iter().zip(&mut self.handles) {
            if fits(single) {
                // SAFETY: a request of MPI's that is under way.
                unsafe { ffi::MPI_Cancel(handle) };
            }
        }
    }

    /// The singles, which may be changed but for their bytes.
    pub fn singles(&mut self) -> impl Iterator<Item = &mut Single> {
        self.singles.iter_mut()
    }

    /// Asks MPI for what has ended, and lets it go on meanwhile.
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
        // MPI_UNDEFINED is below 0: there was nothing to ask for.
        let ended = ended.max(0) as usize;
        let mut all = Vec::with_capacity(ended);
        let mut singles = Vec::new();
        for (index, status) in self.indices[..ended].iter().zip(&self.statuses) {
            // SAFETY: MPI has written as many of them as have ended.
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

    /// Whether nothing is being sent.
    pub fn has_sent_all(&self) -> bool {
        self.singles.iter().all(|it| matches!(it, Single::Read(_) | Single::Stored { .. }))
    }

    /// Takes all receives back. What MPI does not give back is leaked.
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
            // MPI may read a message that it has not sent yet, and says of no send that it was
            // cancelled in time.
            if !(receives && take_back(&mut handle)) {
                std::mem::forget(single);
            }
        }
    }

    /// Takes all receives back, and lets go of the communicator.
    pub fn close(&mut self) -> i32 {
        self.take_back();
        self.communicator.close()
    }
}

impl Drop for Requests {
    /// Where opening has failed: what was posted must not be written to any more.
    fn drop(&mut self) {
        if !mpi::is_finalized() {
            self.close();
        }
    }
}

/// Cancels a receive; whether MPI has let go of its bytes.
fn take_back(handle: &mut ffi::MPI_Request) -> bool {
    let (limit, mut ended) = (Instant::now() + CANCEL, 0);
    // SAFETY: a request of this communicator, or null, which has ended.
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
    // SAFETY: a status of a receive that has ended.
    unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &mut size) };
    size.max(0) as usize
}

fn is_cancelled(status: &ffi::MPI_Status) -> bool {
    let mut cancelled = 0;
    // SAFETY: a status of a request that has ended.
    unsafe { ffi::MPI_Test_cancelled(status, &mut cancelled) };
    cancelled != 0
}
