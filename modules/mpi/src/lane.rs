//! The lane: frames of libllcl, and reads and writes (`remote`), over what MPI is asked for
//! (`requests`).

use crate::mpi::{self, Communicator, Failure};
use crate::remote::Remote;
use crate::requests::{ANSWERS, Ended, REQUESTS, Requests, Single};
use crate::table::{Card, Command, Event, Host, Status};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use crate::requests::FRAME_MOST;

/// Frames being sent; three quarters of them may be of the class USER.
pub const DEPTH: usize = 256;
const USER: u32 = 2;
/// How long sends may need that are under way when the program finalises MPI.
const LAST: Duration = Duration::from_secs(1);

/// The lane, as libllcl's threads and the thread that calls MPI_Finalize use it.
pub struct Shared {
    lane: Mutex<Lane>,
}

// SAFETY: MPI's requests may be used by any thread, one at a time; libllcl's host by any.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// See the head of the file.
    pub fn new(lane: Lane) -> Shared {
        Shared { lane: Mutex::new(lane) }
    }

    /// The lane, for one thread.
    pub fn lane(&self) -> MutexGuard<'_, Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program finalises MPI, which is still there: lets go of it, and tells libllcl.
    pub fn end(&self) {
        let mut lane = self.lane();
        lane.drain(LAST);
        lane.requests.take_back();
        lane.events.clear();
        lane.tell_failure(
            Status::ERR_STATE,
            "MPI_Finalize was called before llcl_finalize, which must come first",
        );
        lane.ended = true;
    }

    /// Ends a registration: nothing is read or written there any more.
    pub fn deregister(&self, region: u64) -> i32 {
        /// How long a peer may need that is in the middle of something.
        const PATIENCE: Duration = Duration::from_secs(10);
        let limit = Instant::now() + PATIENCE;
        loop {
            let mut lane = self.lane();
            if lane.ended || lane.failed || lane.remote.forget(region) {
                return Status::OK;
            }
            lane.advance();
            if Instant::now() >= limit {
                crate::say(lane.host, "MPI does not end a transfer of this region's memory");
                return Status::ERR_SYSTEM;
            }
            drop(lane);
            std::thread::yield_now();
        }
    }
}

/// See the head of the file.
pub struct Lane {
    pub(crate) requests: Requests,
    pub(crate) remote: Remote,
    /// To be told.
    pub(crate) events: VecDeque<Event>,
    /// libllcl's, valid as long as the wire.
    host: *const Host,
    /// MPI has failed: nothing more is asked of it.
    failed: bool,
    /// MPI is over, or about to be.
    ended: bool,
}

impl Lane {
    /// The lane of a communicator.
    pub fn new(communicator: Communicator, host: *const Host) -> Result<Lane, Failure> {
        Ok(Lane {
            requests: Requests::new(communicator)?,
            remote: Remote::default(),
            events: VecDeque::new(),
            host,
            failed: false,
            ended: false,
        })
    }

    /// What peers need to know: their ranks are the same in MPI, so only that it is MPI.
    pub fn card(&self) -> Card {
        Card::of(self.requests.rank())
    }

    /// MPI has failed: libllcl is told once, and asks for the end of everything.
    fn tell_failure(&mut self, status: i32, why: &str) {
        if !self.failed && !self.ended {
            self.failed = true;
            crate::say(self.host, why);
            self.events.push_back(Event { status, ..Event::about(Event::DEVICE, 0) });
        }
    }

    /// Takes in how a call of MPI went; whether well.
    pub(crate) fn went_well(&mut self, end: Result<(), Failure>) -> bool {
        if let Err((status, why)) = &end {
            self.tell_failure(*status, why);
        }
        end.is_ok()
    }

    /// Connecting needs nothing: MPI does it with the first frame.
    pub fn connect(&mut self, peer: u32, card: Card) -> i32 {
        if card != Card::of(peer) {
            return Status::ERR_INVALID;
        }
        self.events.push_back(Event::about(Event::CONNECTED, peer));
        Status::OK
    }

    /// Takes commands as far as there is room.
    ///
    /// # Safety
    /// The pieces are valid, their bytes until the commands have ended.
    pub unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (u32, i32) {
        if self.ended || self.failed {
            return (0, Status::ERR_STATE);
        }
        if class == REQUESTS {
            // SAFETY: passed on to the caller.
            return unsafe { self.post_remote(peer, commands) };
        }
        let depth = if class == USER { DEPTH / 4 * 3 } else { DEPTH };
        for (taken, command) in (0..).zip(commands) {
            if self.requests.frames >= depth {
                return (taken, Status::RETRY_QUEUE_FULL);
            }
            // SAFETY: as the caller promises.
            let sent = unsafe {
                let piece = &*command.piece;
                let single = Single::Frame { tag: command.tag, peer };
                self.requests.send((peer, class), piece.address.cast(), piece.size as usize, single)
            };
            if !self.went_well(sent) {
                return (taken, Status::ERR_SYSTEM);
            }
        }
        (commands.len() as u32, Status::OK)
    }

    /// Takes what MPI has ended.
    pub(crate) fn advance(&mut self) {
        let ended = match self.requests.test() {
            Ok(ended) => ended,
            Err((status, why)) => return self.tell_failure(status, &why),
        };
        for ended in ended {
            match ended {
                Ended::Came { at, peer, size } => match self.requests.bytes(at).0 {
                    REQUESTS => self.requested(at, peer, size),
                    ANSWERS => self.answered(at, peer, size),
                    class => self.events.push_back(Event {
                        class,
                        frame: at as u64,
                        bytes: self.requests.bytes(at).1.as_ptr(),
                        size: size as u64,
                        ..Event::about(Event::FRAME, peer)
                    }),
                },
                Ended::Single { single: Single::Frame { tag, peer }, .. } => {
                    self.events.push_back(Event { tag, ..Event::about(Event::DONE, peer) });
                }
                Ended::Single { single, cancelled } => self.transferred(single, cancelled),
            }
        }
    }

    /// Tells what has happened.
    pub fn poll(&mut self, events: &mut [Event]) -> u32 {
        if self.events.is_empty() && !self.failed && !self.ended {
            self.advance();
        }
        self.end_fences();
        let count = events.len().min(self.events.len());
        for (place, event) in events.iter_mut().zip(self.events.drain(..count)) {
            *place = event;
        }
        count as u32
    }

    /// A frame's bytes may be written again.
    pub fn give_back(&mut self, frame: u64) {
        if !self.ended && !self.failed {
            let posted = self.requests.post(frame as usize);
            self.went_well(posted);
        }
    }

    /// Whether nothing more is asked of MPI.
    pub(crate) fn is_over(&self) -> bool {
        self.failed || self.ended
    }

    /// Whether something is to be told at once.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Waits for the sends.
    fn drain(&mut self, drain: Duration) {
        let limit = Instant::now() + drain;
        while !self.requests.has_sent_all() && !self.failed && Instant::now() < limit {
            self.advance();
            std::thread::yield_now();
        }
    }

    /// Ends what is under way, and lets go of the communicator.
    pub fn close(&mut self, drain: Duration) -> i32 {
        if self.ended || mpi::is_finalized() {
            // What was under way has ended with MPI, and nothing may be asked of it.
            return Status::ERR_STATE;
        }
        self.drain(drain);
        self.ended = true;
        self.requests.close()
    }
}
