//! Frames under way: receives from anybody that are posted again as soon as their frame was given
//! back, and sends.

use crate::mpi::{self, Communicator, Failure};
use crate::table::{Card, Command, Event, Host, Status};
use mpi_sys as ffi;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most bytes of a frame: what the receives have room for.
pub const FRAME_MOST: usize = 8192;
/// Sends under way; three quarters of them may be of the class USER.
pub const DEPTH: usize = 256;
/// Receives that wait for frames: class, how many, and bytes of each. The last three are of knocks.
const RECEIVES: [(u32, usize, usize); 6] = [
    (0, 32, FRAME_MOST),
    (1, 16, FRAME_MOST),
    (2, 32, FRAME_MOST),
    (4, 16, KNOCK_MOST),
    (5, 16, KNOCK_MOST),
    (6, 16, KNOCK_MOST),
];
/// Most bytes of a frame with a knock.
const KNOCK_MOST: usize = 512;
const USER: u32 = 2;

/// The lane, as libllcl's threads and the thread that calls MPI_Finalize use it.
pub struct Shared {
    lane: Mutex<Lane>,
    host: *const Host,
}

// SAFETY: the lane's requests may be used by any thread, one at a time; the host by any.
unsafe impl std::marker::Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// `host`: libllcl's, valid as long as the wire.
    pub fn new(lane: Lane, host: *const Host) -> Shared {
        Shared { lane: Mutex::new(lane), host }
    }

    /// The lane, for one thread.
    pub fn lane(&self) -> MutexGuard<'_, Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program finalises MPI, which is still there: lets go of it, and tells libllcl.
    pub fn end(&self) {
        let mut lane = self.lane();
        lane.finish(LAST);
        lane.events.clear();
        lane.events
            .push_back(Event { status: Status::ERR_STATE, ..Event::about(Event::DEVICE, 0) });
        lane.ended = true;
        crate::say(
            self.host,
            "MPI_Finalize was called before llcl_finalize, which must come first",
        );
    }
}

/// How long sends may need that are under way when the program finalises MPI.
const LAST: Duration = Duration::from_secs(1);

struct Receive {
    bytes: Box<[u8]>,
    class: u32,
}

struct Send {
    tag: u64,
    peer: u32,
}

/// See the head of the file.
pub struct Lane {
    communicator: Communicator,
    receives: Vec<Receive>,
    sends: Vec<Send>,
    /// MPI's, first of the receives, then of the sends, at the same indices.
    requests: Vec<ffi::MPI_Request>,
    /// To be told.
    events: VecDeque<Event>,
    failed: Option<i32>,
    /// MPI is over, or about to be.
    ended: bool,
}

impl Lane {
    /// The lane of a communicator.
    pub fn new(communicator: Communicator) -> Result<Lane, Failure> {
        let mut lane = Lane {
            communicator,
            receives: Vec::new(),
            sends: Vec::new(),
            requests: Vec::new(),
            events: VecDeque::new(),
            failed: None,
            ended: false,
        };
        for (class, count, size) in RECEIVES {
            for _ in 0..count {
                lane.receives.push(Receive { bytes: vec![0; size].into(), class });
                // SAFETY: a constant of the MPI that was built for.
                lane.requests.push(unsafe { ffi::RSMPI_REQUEST_NULL });
                lane.receive(lane.receives.len() - 1)?;
            }
        }
        Ok(lane)
    }

    /// What peers need to know: their ranks are the same in MPI, so only that it is MPI.
    pub fn card(&self) -> Card {
        Card::of(self.communicator.rank)
    }

    fn receive(&mut self, at: usize) -> Result<(), Failure> {
        let Receive { bytes, class } = &mut self.receives[at];
        // SAFETY: the bytes lie in a box that stays until the receive is over.
        let code = unsafe {
            ffi::MPI_Irecv(
                bytes.as_mut_ptr().cast(),
                bytes.len() as i32,
                ffi::RSMPI_UINT8_T,
                ffi::RSMPI_ANY_SOURCE,
                *class as i32,
                self.communicator.handle,
                &mut self.requests[at],
            )
        };
        mpi::check("MPI_Irecv", code)
    }

    /// Connecting needs nothing: MPI does it with the first frame.
    pub fn connect(&mut self, peer: u32, card: Card) -> i32 {
        if card != Card::of(peer) {
            return Status::ERR_INVALID;
        }
        self.events.push_back(Event::about(Event::CONNECTED, peer));
        Status::OK
    }

    /// Takes commands as far as sends are free.
    ///
    /// # Safety
    /// The pieces are valid, their bytes until the commands have ended.
    pub unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (u32, i32) {
        if self.ended {
            return (0, Status::ERR_STATE);
        }
        let depth = if class == USER { DEPTH / 4 * 3 } else { DEPTH };
        for (taken, command) in (0..).zip(commands) {
            if self.sends.len() >= depth {
                return (taken, Status::RETRY_QUEUE_FULL);
            }
            let mut request = MaybeUninit::uninit();
            // SAFETY: as the caller promises.
            let code = unsafe {
                let piece = &*command.piece;
                ffi::MPI_Isend(
                    piece.address.cast(),
                    piece.size as i32,
                    ffi::RSMPI_UINT8_T,
                    peer as i32,
                    class as i32,
                    self.communicator.handle,
                    request.as_mut_ptr(),
                )
            };
            if code != 0 {
                return (taken, Status::ERR_SYSTEM);
            }
            // SAFETY: MPI_Isend() has written it.
            self.requests.push(unsafe { request.assume_init() });
            self.sends.push(Send { tag: command.tag, peer });
        }
        (commands.len() as u32, Status::OK)
    }

    /// Takes what MPI has finished.
    fn advance(&mut self) {
        let count = self.requests.len();
        let (mut finished, mut indices) = (0, vec![0; count]);
        let mut statuses: Vec<MaybeUninit<ffi::MPI_Status>> = Vec::with_capacity(count);
        // SAFETY: MaybeUninit needs no value; MPI writes the first `finished` of them.
        unsafe { statuses.set_len(count) };
        // SAFETY: arrays of `count` places each.
        let code = unsafe {
            ffi::MPI_Testsome(
                count as i32,
                self.requests.as_mut_ptr(),
                &mut finished,
                indices.as_mut_ptr(),
                statuses.as_mut_ptr().cast(),
            )
        };
        if code != 0 {
            self.failed.get_or_insert(code);
        }
        let receives = self.receives.len();
        let mut sent = Vec::new();
        // MPI_UNDEFINED is below 0.
        for (index, status) in indices.iter().zip(&statuses).take(finished.max(0) as usize) {
            match *index as usize {
                at if at < receives => {
                    // SAFETY: MPI has written it.
                    let event = self.frame(at, unsafe { status.assume_init_ref() });
                    self.events.push_back(event);
                }
                at => sent.push(at),
            }
        }
        sent.sort_unstable();
        for at in sent.into_iter().rev() {
            self.requests.swap_remove(at);
            let Send { tag, peer } = self.sends.swap_remove(at - receives);
            self.events.push_back(Event { tag, ..Event::about(Event::DONE, peer) });
        }
    }

    fn frame(&self, at: usize, status: &ffi::MPI_Status) -> Event {
        let (mut size, receive) = (0, &self.receives[at]);
        // SAFETY: a status of a receive that is over.
        unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &mut size) };
        Event {
            class: receive.class,
            frame: at as u64,
            bytes: receive.bytes.as_ptr(),
            size: size.max(0) as u64,
            ..Event::about(Event::FRAME, status.MPI_SOURCE as u32)
        }
    }

    /// Tells what has happened.
    pub fn poll(&mut self, events: &mut [Event]) -> u32 {
        if self.events.is_empty() && self.failed.is_none() && !self.ended {
            self.advance();
        }
        let count = events.len().min(self.events.len());
        for (place, event) in events.iter_mut().zip(self.events.drain(..count)) {
            *place = event;
        }
        count as u32
    }

    /// A frame's bytes may be written again.
    pub fn give_back(&mut self, frame: u64) {
        if !self.ended && self.receive(frame as usize).is_err() {
            self.failed.get_or_insert(1);
        }
    }

    /// Whether something is to be told at once.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// MPI does not say when nothing of a rank comes any more.
    pub fn fence(&mut self, peer: u32) {
        self.events.push_back(Event::about(Event::UNFENCEABLE, peer));
    }

    /// Waits for the sends, and takes the receives back.
    fn finish(&mut self, drain: Duration) {
        let limit = Instant::now() + drain;
        while !self.sends.is_empty() && self.failed.is_none() && Instant::now() < limit {
            self.advance();
            std::thread::yield_now();
        }
        // SAFETY: requests of this lane; those of receives that have come are null. Waiting for a
        // receive that was cancelled ends at once.
        unsafe {
            for request in &mut self.requests[..self.receives.len()] {
                if *request != ffi::RSMPI_REQUEST_NULL {
                    ffi::MPI_Cancel(request);
                    ffi::MPI_Wait(request, ffi::RSMPI_STATUS_IGNORE);
                }
            }
        }
    }

    /// Ends what is under way, and lets go of the communicator.
    pub fn close(&mut self, drain: Duration) -> i32 {
        if self.ended || mpi::is_finalized() {
            // What was under way has ended with MPI, and nothing may be asked of it.
            return Status::ERR_STATE;
        }
        self.finish(drain);
        self.ended = true;
        self.communicator.close()
    }
}
