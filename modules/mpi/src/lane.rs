//! The lane that libllcl posts to and polls. This file has the frames; `remote` (at the requester)
//! and `serving` (at the owner) have the reads and writes. `requests` holds the sends and receives
//! that MPI has not ended.

use crate::frames::Received;
use crate::message::{NOTICE_WORDS, Notice};
use crate::mpi::{self, Communicator, Failure};
use crate::places::share_of;
use crate::remote::Remote;
use crate::requests::{ANSWERS, Came, Ended, REQUESTS, Requests, Single};
use crate::table::{Card, Command, Event, Host, Piece, Status};
use crate::unsent::{Unsent, Write};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most frames that MPI has not finished sending. Frames of class USER stop at three quarters, so
/// that answers and the library's own frames still find room.
pub const DEPTH: usize = 256;
const USER: u32 = 2;
/// Most frames of a class.
fn depth_of(class: u32) -> usize {
    if class == USER { DEPTH / 4 * 3 } else { DEPTH }
}

/// How long MPI_Finalize waits for the sends that are under way.
const LAST: Duration = Duration::from_secs(1);

/// The lane with a lock, since several threads use it. If only one thread may call MPI, the other
/// threads return the events that its calls have found, and keep their commands for it.
pub struct Shared {
    lane: Mutex<MpiLane>,
}

// SAFETY: MPI's requests may be used by any thread, one at a time, which the lock ensures. The host
// may be used by any thread.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub fn new(lane: MpiLane) -> Shared {
        Shared { lane: Mutex::new(lane) }
    }

    /// Locks the lane.
    pub fn lane(&self) -> MutexGuard<'_, MpiLane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the calling thread may close the wire. If not, passes the reason to libllcl.
    pub fn may_close(&self) -> bool {
        let mut lane = self.lane();
        let may = lane.requests.may_call();
        lane.abandoned = !may;
        if !may {
            let thread = "the thread that has initialised MPI";
            crate::say(lane.host, &format!("llcl_finalize must be called by {thread}"));
        }
        may
    }

    /// Called inside MPI_Finalize, while MPI can still be called: cancels the receives, and reports
    /// the device as failed to libllcl. After this the lane calls nothing of MPI.
    pub fn end(&self) {
        let mut lane = self.lane();
        if !lane.abandoned {
            lane.drain(LAST);
        }
        lane.requests.take_back();
        lane.waiting.clear();
        lane.requests.events.clear();
        lane.words.clear();
        // An earlier failure may have been among the events.
        lane.failed = false;
        lane.tell_failure(
            Status::ERR_STATE,
            "MPI_Finalize was called before llcl_finalize, which must come first",
        );
        lane.ended = true;
    }

    /// Ends a registration. Waits until MPI has ended the transfers in the region, so that MPI
    /// neither reads nor writes that memory after the call, except that it may read for a send to
    /// a dead peer: MPI cannot cancel it. After `patience` it gives up with an error; at once if
    /// MPI has failed, or may store the bytes of a read of a dead peer there. A thread that may not
    /// call MPI depends on the one that may.
    pub fn deregister(&self, region: u64, patience: Duration) -> i32 {
        let limit = Instant::now() + patience;
        let memory = self.lane().remote.memory_of(region);
        loop {
            let mut lane = self.lane();
            if lane.requests.may_call() && !lane.is_over() {
                lane.advance(None);
                lane.end_fences();
            }
            let is_idle = lane.remote.forget(region) || lane.ended;
            if is_idle && !lane.may_use(&memory, true) {
                return Status::OK;
            }
            if lane.failed || lane.may_use(&memory, false) {
                crate::say(lane.host, "MPI may still use this region's memory");
                return Status::ERR_SYSTEM;
            }
            if Instant::now() >= limit {
                crate::say(lane.host, "MPI does not end a transfer of this region's memory");
                return Status::ERR_SYSTEM;
            }
            drop(lane);
            std::thread::yield_now();
        }
    }
}

/// A command that waits for the thread that may call MPI.
struct Waiting {
    peer: u32,
    class: u32,
    command: Command,
    piece: Piece,
}

/// The words of a notice; libllcl reads them where they are.
type Words = Box<[u64; NOTICE_WORDS]>;
/// Most boxes that are kept for words.
const SPARE: usize = 8;

/// The state of a lane.
pub struct MpiLane {
    pub(crate) requests: Requests,
    pub(crate) remote: Remote,
    pub(crate) unsent: Unsent,
    /// If only one thread may call MPI: the commands that other threads have posted, and the dead
    /// peers for which they have asked for a fence.
    waiting: VecDeque<Waiting>,
    fences: Vec<u32>,
    pub(crate) received: Received,
    /// The words of the notices in `events`, in their order. `returned`: those of the notices
    /// that the last poll() has returned.
    words: VecDeque<Words>,
    returned: Vec<Words>,
    /// Boxes for words.
    spare: Vec<Words>,
    /// Short sleeps of the polling thread since the last event (`sleeps`).
    pub(crate) short_sleeps: u32,
    /// Valid as long as the wire.
    host: *const Host,
    /// A call of MPI has failed: the lane begins no further transfers.
    failed: bool,
    /// libllcl has closed the wire on a thread that may not call MPI, and uses nothing of it any
    /// more. MPI_Finalize ends the lane.
    abandoned: bool,
    /// The program finalises MPI, or close() was called.
    ended: bool,
}

impl MpiLane {
    /// Makes the lane of a communicator.
    pub fn new(communicator: Communicator, host: *const Host) -> Result<MpiLane, Failure> {
        Ok(MpiLane {
            requests: Requests::new(communicator)?,
            remote: Remote::default(),
            unsent: Unsent::default(),
            waiting: VecDeque::new(),
            fences: Vec::new(),
            received: Received::default(),
            words: VecDeque::new(),
            returned: Vec::new(),
            spare: Vec::new(),
            short_sleeps: 0,
            host,
            failed: false,
            abandoned: false,
            ended: false,
        })
    }

    /// `threads` of llcl_wire_caps_t.
    pub fn threads(&self) -> u32 {
        if self.requests.may_be_called_by_all() { 0 } else { 2 }
    }

    /// This rank's card. A rank has the same number in MPI as in libllcl, so a peer needs nothing
    /// else to reach it.
    pub fn card(&self) -> Card {
        Card::of(self.requests.rank())
    }

    /// Reports the failure of MPI to libllcl, once; libllcl then ends all operations.
    fn tell_failure(&mut self, status: i32, why: &str) {
        if !self.failed && !self.ended {
            self.failed = true;
            crate::say(self.host, why);
            self.requests.events.push_back(Event { status, ..Event::about(Event::DEVICE, 0) });
        }
    }

    /// Returns whether a call of MPI succeeded. Reports its failure to libllcl.
    pub(crate) fn went_well(&mut self, end: Result<(), Failure>) -> bool {
        if let Err((status, why)) = &end {
            self.tell_failure(*status, why);
        }
        end.is_ok()
    }

    /// Reports the peer as connected at once: MPI connects by itself with the first message.
    pub fn connect(&mut self, peer: u32, card: Card) -> i32 {
        if card != Card::of(peer) {
            return Status::ERR_INVALID;
        }
        self.requests.events.push_back(Event::about(Event::CONNECTED, peer));
        Status::OK
    }

    /// Takes the first of the commands, as many as there is room for. Returns how many, and why the
    /// next one was not taken.
    ///
    /// # Safety
    /// The pieces are valid during the call, their bytes until the commands have ended.
    #[inline(always)]
    pub unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (u32, i32) {
        if self.ended || self.failed {
            return (0, Status::ERR_STATE);
        }
        if !self.requests.may_call() {
            // SAFETY: passed on to the caller.
            return unsafe { self.defer(peer, class, commands) };
        }
        if class == REQUESTS {
            // SAFETY: passed on to the caller.
            return unsafe { self.post_remote(peer, commands) };
        }
        let depth = depth_of(class);
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

    /// Keeps the first of the commands for the thread that may call MPI; parameters and results are
    /// those of post().
    ///
    /// # Safety
    /// As of post().
    #[cold]
    unsafe fn defer(&mut self, peer: u32, class: u32, commands: &[Command]) -> (u32, i32) {
        let own = self.waiting.iter().filter(|it| it.peer == peer).count();
        let places = share_of(depth_of(class), self.waiting.len() - own);
        let taken = commands.len().min(places.saturating_sub(own));
        for command in &commands[..taken] {
            // SAFETY: the caller promises a valid piece.
            let piece = unsafe { *command.piece };
            self.waiting.push_back(Waiting { peer, class, command: *command, piece });
        }
        let all = taken == commands.len();
        (taken as u32, if all { Status::OK } else { Status::RETRY_QUEUE_FULL })
    }

    /// Posts what other threads have left for the thread that may call MPI: commands in a row for
    /// one peer and class together.
    #[inline]
    fn catch_up(&mut self) {
        if !self.waiting.is_empty() {
            self.post_waiting();
        }
    }

    #[cold]
    fn post_waiting(&mut self) {
        let mut left = std::mem::take(&mut self.waiting);
        while let Some((peer, class)) = left.front().map(|it| (it.peer, it.class)) {
            let row = left.iter().take_while(|it| (it.peer, it.class) == (peer, class));
            let commands: Vec<Command> =
                row.map(|it| Command { piece: &it.piece, ..it.command }).collect();
            // SAFETY: the pieces lie in `left`, and their bytes are valid until the command has
            // ended.
            let (taken, _) = unsafe { self.post(peer, class, &commands) };
            drop(left.drain(..taken as usize));
            self.waiting.extend(left.drain(..commands.len() - taken as usize));
        }
    }

    /// Ends what other threads have left for a dead peer.
    pub(crate) fn drop_waiting(&mut self, peer: u32) {
        let status = Status::ERR_PEER_DEAD;
        let (of_dead, others) = (self.waiting.drain(..)).partition(|it| it.peer == peer);
        self.waiting = others;
        let of_dead: VecDeque<Waiting> = of_dead;
        for tag in of_dead.into_iter().map(|it| it.command.tag) {
            self.requests.events.push_back(Event {
                tag,
                status,
                ..Event::about(Event::DONE, peer)
            });
        }
    }

    /// Keeps a fence for the thread that may call MPI. False: this is that thread.
    pub(crate) fn defer_fence(&mut self, peer: u32) -> bool {
        let deferred = !self.is_over() && !self.requests.may_call();
        if deferred {
            self.fences.push(peer);
        }
        deferred
    }

    /// Lets MPI progress, and handles each send and receive that MPI has ended. Events go to
    /// `requests.events`, but a frame of the oldest receive goes to `place`, if there is one.
    /// Returns whether it did.
    pub(crate) fn advance(&mut self, place: Option<&mut Event>) -> bool {
        let mut placed = false;
        match (self.requests.test(), place) {
            (Ok(Some(came)), Some(place)) if !matches!(came.class, REQUESTS | ANSWERS) => {
                *place = self.frame(came);
                placed = true;
            }
            (Ok(Some(came)), _) => self.came(came),
            (Ok(None), _) => {}
            (Err((status, why)), _) => {
                self.tell_failure(status, &why);
                return false;
            }
        }
        while let Some(ended) = self.requests.ended.pop_front() {
            match ended {
                Ended::Came(came) => self.came(came),
                Ended::Single { single, cancelled } => self.transferred(single, cancelled),
            }
        }
        if self.requests.failures.has_news() {
            for peer in self.requests.failures.take() {
                let status = Status::ERR_PEER_DEAD;
                self.requests.events.push_back(Event { status, ..Event::about(Event::LOST, peer) });
            }
        }
        placed
    }

    #[inline]
    fn came(&mut self, came: Came) {
        match came.class {
            REQUESTS => self.requested(came),
            ANSWERS => self.answered(came),
            _ => {
                let event = self.frame(came);
                self.requests.events.push_back(event);
            }
        }
    }

    /// Reports the notice of a peer's write, whose bytes are in this rank's memory. Returns whether
    /// it brings words: then libllcl answers the write.
    pub(crate) fn notice(&mut self, (peer, index): (u32, u32), notice: Notice) -> bool {
        let Notice { number, fetches, words } = notice;
        let mut event = Event { tag: number.into(), ..Event::about(Event::NOTICE, peer) };
        let answers = words.is_some();
        if let Some(came) = words {
            let mut words = self.spare.pop().unwrap_or_default();
            *words = came;
            (event.bytes, event.size) = (words.as_ptr().cast(), size_of_val(&*words) as u64);
            event.frame = self.unsent.number(Write { peer, number: index, fetches });
            self.words.push_back(words);
        }
        self.requests.events.push_back(event);
        answers
    }

    /// Writes events to `events`, and returns how many.
    pub fn poll(&mut self, events: &mut [Event]) -> u32 {
        let (may_call, mut count) = (self.requests.may_call(), 0);
        if !self.fences.is_empty() && (may_call || self.is_over()) {
            std::mem::take(&mut self.fences).into_iter().for_each(|peer| self.fence(peer));
        }
        if may_call && !self.is_over() {
            self.catch_up();
            self.send_answers();
            if self.requests.events.is_empty() {
                count = usize::from(self.advance(events.first_mut()));
            }
        }
        if may_call || self.is_over() {
            self.end_fences();
        }
        if !self.returned.is_empty() {
            self.spare.append(&mut self.returned);
            self.spare.truncate(SPARE);
        }
        for place in &mut events[count..] {
            let Some(event) = self.requests.events.pop_front() else { break };
            *place = event;
            if place.event == Event::NOTICE && place.size > 0 {
                self.returned.extend(self.words.pop_front());
                self.unsent.open += 1;
            }
            count += 1;
        }
        if count > 0 {
            self.short_sleeps = 0;
        }
        count as u32
    }

    /// Whether the lane makes no further calls of MPI.
    pub(crate) fn is_over(&self) -> bool {
        self.failed || self.ended
    }

    /// Waits until MPI has ended all sends, for `drain` at most.
    fn drain(&mut self, drain: Duration) {
        let limit = Instant::now() + drain;
        let has_sent_all = |it: &MpiLane| {
            it.waiting.is_empty() && it.unsent.is_empty() && it.requests.has_sent_all()
        };
        while !has_sent_all(self) && !self.failed && Instant::now() < limit {
            self.catch_up();
            self.send_answers();
            self.advance(None);
            std::thread::yield_now();
        }
    }

    /// Waits for the sends, cancels the receives, and frees the communicator.
    pub fn close(&mut self, drain: Duration) -> i32 {
        if self.ended || mpi::is_finalized() {
            // MPI_Finalize has ended all transfers, and MPI must not be called after it.
            return Status::ERR_STATE;
        }
        self.drain(drain);
        self.ended = true;
        self.requests.close()
    }
}
