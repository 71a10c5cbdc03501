//! One rank's end of a wire, whichever it is: credits, the queues behind the lane, and the thread
//! that polls it and puts what has come into the rank's own slots.
//!
//! A thread that sends takes the lock and posts at once. What the lane does not take stays queued
//! (`outgoing`) and is posted by the polling thread. That thread sleeps on the lane's descriptor;
//! where the wire has none, it naps, at most `LONGEST`; a send wakes it, since an answer will come.
//! There threads that wait poll too (`polling`).

mod news;
mod polling;

use super::ended::{End, Ended};
use super::grants::{Grants, Line, Out, Packet, Taken, line_of};
use super::outgoing::{Outgoing, class_of};
use super::packet::{self, OwnedFrame, packet_of};
use super::pieces::{self, Joins};
use super::receipts::Receipts;
use super::remote::{Memory, Posted};
use super::{Armed, CARD, Event, Wire, WireLane};
use crate::fail;
use crate::transport::frame::{Class, Frame};
use crate::util::socket::{Wake, interest, poll_for};
use crate::util::status::{Error, Result, Status};
use crate::util::thread::{Thread, spawn_quiet};
pub use news::{Deliver, News, Unreachable};
#[cfg(test)]
pub use news::{no_news, nowhere};
use once_cell::race::OnceBox;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

mod posts;
use posts::{Batch, Ring};

/// How long the thread waits before it tries again what found no room.
const AGAIN: Duration = Duration::from_micros(100);
/// How long it sleeps at most where the wire wakes it.
const SLEEP: Duration = Duration::from_millis(50);
/// Its first nap where the wire wakes nobody, and the longest.
const SHORTEST: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_millis(1);
/// How long what was taken may need at the end.
const DRAIN: Duration = Duration::from_secs(1);
const STACK: usize = 256 << 10;
/// How long a peer that the wire does not reach any more may be dead without this rank having
/// heard.
const PATIENCE: Duration = Duration::from_secs(1);
/// Events of one poll.
const EVENTS: usize = 32;
/// How many packets that nobody should send are told of.
const TOLD_OF: u32 = 10;
/// Frames that the lane has not taken, beyond which no new frame that needs a grant is accepted: of
/// requests to agents, and of messages.
const QUEUED: [usize; 2] = [256, 192];

/// The end of one rank.
pub struct Endpoint {
    shared: Arc<Shared>,
    memory: Memory,
    card: Vec<u8>,
    thread: Option<Thread>,
}

struct Shared {
    me: u32,
    /// Most bytes of a reply that this rank takes.
    medium: usize,
    deliver: Deliver,
    state: Mutex<State>,
    /// Threads that wait for the state, and do not poll.
    wanted: AtomicU32,
    /// The wire has no descriptor.
    naps: AtomicBool,
    wake: Wake,
    unreachable: OnceBox<Unreachable>,
    ended: Arc<Ended>,
    ring: OnceBox<Ring>,
    failed: Box<dyn Fn() + Send + Sync>,
}

struct State {
    lane: Box<dyn WireLane>,
    grants: Grants,
    receipts: Receipts,
    joins: Joins,
    outgoing: Outgoing,
    relayed: Box<dyn Fn(u32, Vec<u8>) + Send>,
    /// Peers that the wire does not reach; and when patience ends, None: it has, or they are dead.
    lost: Vec<(u32, Option<Instant>)>,
    posted: Posted,
    batch: Batch,
    /// Bytes that the lane may still read, until it is closed.
    kept: Vec<Box<[u8]>>,
    /// Why the wire has failed.
    failure: Option<Error>,
    asleep: Asleep,
    /// A thread that waits has polled since the polling thread looked.
    helped: bool,
    over: bool,
    /// The lane is not to be used any more.
    closed: bool,
    told_of: u32,
}

/// Whether the polling thread sleeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asleep {
    No,
    /// The wire wakes it.
    Deep,
    /// Nobody wakes it: it naps.
    Naps,
}

/// Frames that have come, for which this rank has set places aside.
type Aside = Vec<(u32, OwnedFrame)>;
/// What comes of an event: packets to be sent, frames, ends of what was posted.
type Come<'a> = (&'a mut Out, &'a mut Aside, &'a mut Vec<End>);

impl State {
    fn say(&mut self, me: u32, peer: u32, what: &str) {
        self.told_of += 1;
        if self.told_of <= TOLD_OF {
            eprintln!("libllcl: rank {me}: from the wire to rank {peer}: {what}; dropped");
        }
    }

    /// The wire does not reach a peer any more: what it has lost cannot be known, so nothing is
    /// sent to it from now on.
    fn lose(&mut self, me: u32, peer: u32, why: &str) {
        self.outgoing.discard(peer);
        if !self.grants.is_dead(peer) && self.lost.iter().all(|(lost, _)| *lost != peer) {
            self.say(me, peer, why);
            self.lost.push((peer, Some(Instant::now() + PATIENCE)));
        }
    }

    /// Whether the wire does not reach a peer: nothing is sent there, whatever the lane would do
    /// with it. A rank that has died may be reached: the hub in the process of one that has left
    /// works on for its machine.
    fn is_lost(&self, peer: u32) -> bool {
        self.lost.iter().any(|(lost, _)| *lost == peer)
    }

    /// Those for whom patience is over.
    fn given_up(&mut self) -> Vec<u32> {
        let now = Instant::now();
        let over = self.lost.iter_mut().filter(|(_, until)| until.is_some_and(|it| it <= now));
        over.map(|(peer, until)| (*peer, *until = None).0).collect()
    }

    /// Takes in a frame.
    fn take(
        &mut self,
        event: &Event,
        bytes: &[u8],
        medium: usize,
        out: &mut Out,
    ) -> std::result::Result<Taken, String> {
        let from = event.peer;
        let Some(packet) = self.joins.take(from, bytes, packet::MOST)? else {
            return Ok(Taken::Copied);
        };
        let packet = packet_of(&packet, medium)?;
        if class_of(&packet) != event.class {
            let (came, class) = (event.class, class_of(&packet));
            return Err(format!("a packet of class {class} as a frame of class {came}"));
        }
        match packet {
            Packet::Asked => self.receipts.asked(from),
            Packet::Told => self.receipts.told(from),
            Packet::Relayed(bytes) => (self.relayed)(from, bytes),
            packet => return self.grants.take(from, packet, event.frame, out),
        }
        Ok(Taken::Copied)
    }

    /// Whether one more frame of so many bytes that needs a grant is accepted.
    fn has_room(&self, to: u32, line: Line, class: Class, size: usize) -> bool {
        self.outgoing.waiting() < QUEUED[usize::from(class != Class::Lib)]
            && self.grants.has_room(to, line, size)
    }

    /// Whether something waits that a later round may do though nothing else comes.
    fn is_stuck(&self) -> bool {
        self.grants.is_stuck() || self.outgoing.waiting() > 0
    }
}

impl Shared {
    /// Posts packets, or queues what the lane does not take.
    fn send(&self, state: &mut State, out: Out) {
        if state.failure.is_some() || state.closed {
            return;
        }
        for (to, packet) in &out {
            if !state.is_lost(*to) {
                state.outgoing.add(*to, packet);
            }
        }
        let State { lane, outgoing, .. } = &mut *state;
        for (peer, why) in outgoing.pump(&mut **lane) {
            state.lose(self.me, peer, &format!("refused: {why}"));
        }
    }

    /// As send(), for a thread that does not poll.
    fn send_and_wake(&self, mut state: MutexGuard<'_, State>, out: Out) {
        self.send(&mut state, out);
        let waiting = state.outgoing.waiting() > 0;
        if state.must_wake(waiting) {
            drop(state);
            self.wake.wake();
        }
    }
}

impl Endpoint {
    /// The end of rank `me` of `size`, which takes replies of up to `medium` bytes; frames that
    /// come are given to `deliver`; the bootstrap hears what `news` has.
    pub fn join(
        rank: (u32, u32),
        wire: Arc<dyn Wire>,
        medium: usize,
        deliver: Deliver,
        news: News,
    ) -> Result<Endpoint> {
        let mut end = Endpoint::without_thread(rank, wire, medium, deliver, news)?;
        let runs = end.shared.clone();
        end.thread = Some(spawn_quiet("llcl-wire", STACK, move || runs.run())?);
        Ok(end)
    }

    /// As join(), but nobody polls.
    fn without_thread(
        (me, size): (u32, u32),
        wire: Arc<dyn Wire>,
        medium: usize,
        deliver: Deliver,
        news: News,
    ) -> Result<Endpoint> {
        let (caps, card) = (wire.caps(), wire.card()?);
        if caps.frame_most < pieces::LEAST {
            let (most, least) = (caps.frame_most, pieces::LEAST);
            fail!(ERR_UNSUPPORTED, "a wire takes frames of {most} bytes, expected {least} or more");
        }
        if card.len() > CARD {
            let size = card.len();
            fail!(ERR_UNSUPPORTED, "a wire's card has {size} bytes, expected at most {CARD}");
        }
        let state = State {
            lane: wire.lane()?,
            grants: Grants::default(),
            receipts: Receipts::new(size),
            joins: Joins::default(),
            outgoing: Outgoing::new(caps.frame_most),
            relayed: news.relayed,
            lost: Vec::new(),
            posted: Posted::default(),
            batch: Batch::default(),
            kept: Vec::new(),
            failure: None,
            asleep: Asleep::No,
            helped: false,
            over: false,
            closed: false,
            told_of: 0,
        };
        let (state, wake, failed) = (Mutex::new(state), Wake::new()?, news.failed);
        let shared = Shared {
            me,
            medium,
            deliver,
            state,
            wanted: AtomicU32::new(0),
            naps: AtomicBool::new(false),
            wake,
            unreachable: OnceBox::new(),
            ended: Arc::default(),
            ring: OnceBox::new(),
            failed,
        };
        let (shared, memory) = (Arc::new(shared), Memory::new(wire));
        Ok(Endpoint { shared, memory, card, thread: None })
    }

    /// What peers need to know of this end.
    pub fn card(&self) -> &[u8] {
        &self.card
    }

    /// A peer has shown its card.
    pub fn connect(&self, peer: u32, card: &[u8]) -> Result<()> {
        self.shared.lock().lane.connect(peer, card)
    }

    /// See `Carrier::has_credit`.
    pub fn has_credit(&self, to: u32, class: Class) -> bool {
        line_of(class, 0, 0).is_none_or(|line| self.shared.lock().has_room(to, line, class, 0))
    }

    /// See `Carrier::put`. `medium`: most bytes of a payload that the peer takes in a small slot.
    pub fn put(&self, to: u32, class: Class, frame: &Frame, medium: usize) -> bool {
        let mut out = Out::new();
        let (mut state, size) = (self.shared.lock(), frame.header.len() + frame.payload.len());
        match line_of(class, frame.payload.len(), medium) {
            None => out.push((to, Packet::Frame(None, OwnedFrame::of(class, frame)))),
            Some(line) if !state.has_room(to, line, class, size) => return false,
            Some(line) => {
                if state.grants.send(to, line, OwnedFrame::of(class, frame), &mut out) {
                    state.receipts.sent(to);
                }
            }
        }
        self.shared.send_and_wake(state, out);
        true
    }

    /// Whether all frames of this rank that needed a grant lie in slots of living ranks. Asks them
    /// where that is not known, so call it again.
    pub fn has_delivered_all(&self) -> bool {
        let (mut out, mut state) = (Out::new(), self.shared.lock());
        let State { grants, receipts, .. } = &mut *state;
        let all = receipts.all_delivered(grants, &mut out);
        self.shared.send_and_wake(state, out);
        all
    }

    /// A peer has died.
    pub fn mark_dead(&self, peer: u32) {
        let mut state = self.shared.lock();
        state.grants.mark_dead(peer);
        state.receipts.mark_dead(peer);
        state.outgoing.discard(peer);
        let lost = state.lost.iter_mut().filter(|(lost, _)| *lost == peer);
        lost.for_each(|(_, until)| *until = None);
        state.lane.fence(peer);
        drop(state);
        self.shared.wake.wake();
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.wake.wake();
        let limit = Instant::now() + Duration::from_secs(10);
        // What the thread tells of a peer may let go of the last that has this end.
        let ended = |thread: Thread| thread.is_current() || thread.join_until(limit);
        if self.thread.take().is_none_or(ended) {
            self.memory.deregister_all();
            let mut state = self.shared.lock();
            state.closed = true;
            let _ = state.lane.close(DRAIN);
        }
    }
}

#[cfg(all(test, feature = "simulated", not(loom)))]
mod memory;
#[cfg(all(test, feature = "simulated", not(loom)))]
mod tests;
