//! The endpoint of one rank on a wire: credits, the queue of frames that the lane has not taken,
//! and the polling thread, which writes received frames into the rank's own message slots.
//!
//! A sender takes the endpoint's lock and posts at once. Frames that the lane refuses stay in
//! `outgoing`; the polling thread posts them. The polling thread sleeps on the lane's descriptor.
//! On a wire without a descriptor it sleeps for the time that the lane names, or else for at most
//! `LONGEST`; a sender wakes it since an answer is likely, and application threads that wait poll
//! the wire as well (`polling`).

mod closing;
mod helpers;
mod hubs;
mod news;
mod polling;
mod signals;
mod singles;
mod ways;

use super::ended::{End, Ended};
use super::grants::{Grants, Line, Out, Packet, Taken, line_of};
use super::outgoing::{KEPT, Outgoing, class_of};
use super::packet::{self, OwnedFrame, answer_and_packet_of};
use super::pieces::{self, Joins};
use super::receipts::Receipts;
use super::remote::{Memory, Posted};
use super::tickets::Tickets;
use super::{Armed, CARD, Event, Wire, WireLane};
use crate::fail;
use crate::transport::carrier::{Polled, Sleeper};
use crate::transport::frame::{Class, Frame};
use crate::util::backoff::{Backoff, looks};
use crate::util::socket::{Wake, interest, poll_for};
use crate::util::status::{Error, Result, Status};
use crate::util::thread::{Thread, spawn_quiet, this_thread};
use helpers::{Helper, Helpers};
use hubs::Hubs;
pub use news::{Deliver, News, Signalled, Unreachable};
#[cfg(test)]
pub use news::{no_news, no_slot};
use once_cell::race::OnceBox;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

mod posts;
mod rounds;
use posts::{Batch, Ring};
use rounds::{Events, Results};
use ways::Asked;

/// How long the polling thread sleeps at most while frames wait for the lane or for a slot.
const AGAIN: Duration = Duration::from_micros(100);
/// How long the polling thread sleeps at most otherwise.
const SLEEP: Duration = Duration::from_millis(50);
/// The first and the longest sleep of the polling thread where the wire has no descriptor.
const SHORTEST: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_millis(1);
const STACK: usize = 256 << 10;
/// How long the endpoint waits for news of a peer's death after the wire has lost the peer. Then it
/// reports the peer as unreachable.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most errors of the wire that the endpoint reports on stderr.
const REPORTS: u32 = 10;
/// The length of `outgoing` from which on the endpoint accepts no further frame that needs a grant:
/// no request to an owner, and no message of a user. The limit of requests to owners is higher, so
/// they make progress when users have filled the queue.
const QUEUED: [usize; 2] = [256, 192];

/// One rank's endpoint on a wire.
pub struct Endpoint {
    shared: Arc<Shared>,
    memory: Memory,
    card: Vec<u8>,
    /// The thread that has opened the wire.
    opener: libc::pthread_t,
    thread: Option<Thread>,
}

struct Shared {
    me: u32,
    /// Most bytes of payload of a reply to this rank.
    medium: usize,
    deliver: Deliver,
    state: Mutex<State>,
    /// Number of threads that wait for the lock in order to post.
    wanted: AtomicU32,
    /// The last arm() named no descriptor.
    naps: AtomicBool,
    helpers: Helpers,
    wake: Wake,
    unreachable: OnceBox<Unreachable>,
    signalled: OnceBox<Signalled>,
    ended: Arc<Ended>,
    ring: OnceBox<Ring>,
    failed: Box<dyn Fn() + Send + Sync>,
}

struct State {
    lane: Box<dyn WireLane>,
    grants: Grants,
    /// Where the wire can do what it needs. Behind the lane, which may use its memory.
    tickets: Option<Tickets>,
    receipts: Receipts,
    joins: Joins,
    outgoing: Outgoing,
    /// Room that threads have asked for, and that has not come since.
    asked: Vec<Asked>,
    relayed: Box<dyn Fn(u32, Vec<u8>) + Send>,
    hubs: Hubs,
    /// Received answers and replies that have found no slot.
    asides: Answers,
    /// Peers that the wire does not reach any more.
    lost: BTreeSet<u32>,
    /// Those that are still to be reported as unreachable, each with the time at which they are.
    reports: Vec<(u32, Instant)>,
    posted: Posted,
    batch: Batch,
    events: Events,
    /// The results of a round, and packets to send. They are kept to reuse their memory, and are
    /// empty between rounds. The results are in a box, since each round takes them out.
    results: Option<Box<Results>>,
    out: Out,
    /// Buffers of commands that nobody waits for any more. The lane may use them until close().
    abandoned: Vec<Box<[u8]>>,
    /// The error with which the wire has failed.
    failure: Option<Error>,
    asleep: Asleep,
    /// The endpoint is being dropped: the polling thread must end.
    over: bool,
    /// The lane is closed: nobody may call it.
    closed: bool,
    reported: u32,
}

/// Whether the polling thread sleeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asleep {
    No,
    /// On the lane's descriptor.
    OnDescriptor,
    /// For a time: the lane has no descriptor.
    ForATime,
}

/// Received answers and replies, with their senders. This rank reserved a slot for each of them
/// when it sent the request.
type Answers = Vec<(u32, OwnedFrame)>;

impl State {
    fn report(&mut self, me: u32, peer: u32, what: &str) {
        self.reported += 1;
        if self.reported <= REPORTS {
            eprintln!("libllcl: rank {me}: from the wire to rank {peer}: {what}; dropped");
        }
    }

    /// The wire does not reach a peer any more. Frames may be missing, so this rank sends nothing
    /// to the peer from now on, except of the use of slots.
    fn mark_lost(&mut self, me: u32, peer: u32, why: &str, out: &mut Out) {
        self.outgoing.discard(peer);
        self.tickets.iter_mut().for_each(|tickets| tickets.lose(peer, out));
        let is_dead = self.grants.is_dead(peer);
        if (!is_dead || self.hubs.are_heard_from(peer)) && !self.is_lost(peer) {
            if !is_dead {
                self.report(me, peer, why);
            }
            self.lost.insert(peer);
            self.reports.push((peer, Instant::now() + PATIENCE));
        }
        self.lose_hub(peer);
    }

    /// The wire could not send a frame that it had taken. The operation or message of that frame
    /// cannot end without it, so a living peer is lost, and one that has left with its hub.
    fn frame_failed(&mut self, me: u32, peer: u32, status: Status, out: &mut Out) {
        if !self.grants.is_dead(peer) || self.hubs.are_heard_from(peer) {
            self.mark_lost(me, peer, &format!("a frame: {status:?}"), out);
        } else if status != Status::ERR_PEER_DEAD {
            self.report(me, peer, &format!("{status:?}"));
        }
    }

    /// Reports a wire that has not completed all frames for a peer before it reports the peer as
    /// fenced. `outgoing` keeps their bytes, which the wire may still read.
    fn check_fence(&mut self, me: u32, peer: u32) {
        let taken = self.outgoing.taken(peer);
        if taken > 0 {
            let what = format!(
                "FENCED, but {taken} frames have no DONE, expected DONE of each before; their \
                 memory stays in use"
            );
            self.report(me, peer, &what);
        }
    }

    /// Whether the wire has lost a peer. A dead peer need not be lost: the hub in the process of a
    /// rank that has left may still serve its machine, and packets to it are sent (`hubs`).
    fn is_lost(&self, peer: u32) -> bool {
        self.lost.contains(&peer)
    }

    /// Lost peers whose `PATIENCE` has ended since the last call.
    fn overdue(&mut self) -> Vec<u32> {
        let now = Instant::now();
        self.reports.extract_if(.., |(_, until)| *until <= now).map(|(peer, _)| peer).collect()
    }

    /// Handles a received packet.
    fn take(
        &mut self,
        event: &Event,
        packet: &[u8],
        medium: usize,
        out: &mut Out,
    ) -> std::result::Result<Taken, String> {
        let from = event.peer;
        let (answered, packet) = answer_and_packet_of(packet, medium)?;
        if class_of(&packet) != event.class {
            let (came, class) = (event.class, class_of(&packet));
            return Err(format!("a packet of class {class} as a frame of class {came}"));
        }
        if let Some(answered) = answered {
            self.grants.answered(from, answered, out);
        }
        match packet {
            Packet::Asked if self.grants.is_dead(from) => {} // it would be kept for ever
            Packet::Asked => self.receipts.asked(from),
            Packet::Delivered => self.receipts.confirmed(from),
            Packet::Relayed(bytes) if bytes.is_empty() => {} // a pulse
            Packet::Relayed(bytes) => (self.relayed)(from, bytes),
            Packet::Use(number, change) => self.use_changed((from, number, change), out),
            packet => return self.grants.take(from, packet, event.frame, out),
        }
        Ok(Taken::Copied)
    }

    /// Whether frames wait for a slot or for the lane: a later round may succeed without an event.
    fn is_stuck(&self) -> bool {
        self.grants.is_stuck() || self.waits_for_lane() || !self.asides.is_empty()
    }
}

impl Shared {
    /// Posts packets, and queues the frames that the lane does not take.
    fn send(&self, state: &mut State, mut out: Out) {
        if state.failure.is_some() || state.closed {
            return;
        }
        if out.is_empty() && state.outgoing.waiting() == 0 && state.tickets.is_none() {
            // A message that waits for grants.
            state.out = out;
            return;
        }
        for (to, packet) in out.drain(..) {
            if state.may_send(to, &packet) {
                let answered = state.grants.ride(to, &packet);
                state.outgoing.add(to, packet, answered);
            }
        }
        // A longer list, of a rank that has sent to many others, is freed.
        if out.capacity() <= KEPT {
            state.out = out;
        }
        let State { lane, outgoing, tickets, .. } = &mut *state;
        let mut refused = outgoing.pump(&mut **lane);
        if let Some(tickets) = tickets {
            refused.extend(tickets.pump(&mut **lane));
        }
        for (peer, why) in refused {
            // The network would not carry the report, either.
            state.mark_lost(self.me, peer, &format!("refused: {why}"), &mut Out::new());
        }
    }

    /// Posts packets for a thread that does not poll, and wakes the polling thread if it must poll
    /// for them.
    fn send_and_wake(&self, mut state: MutexGuard<'_, State>, out: Out) {
        self.send(&mut state, out);
        self.wake_after_post(state);
    }

    #[inline(always)]
    fn wake_after_post(&self, mut state: MutexGuard<'_, State>) {
        if state.asleep == Asleep::No {
            return;
        }
        let waiting = state.waits_for_lane();
        if self.must_wake(&mut state, waiting) {
            drop(state);
            self.wake.wake();
        }
    }
}

impl Endpoint {
    /// Opens the endpoint of a rank and starts the polling thread.
    ///
    /// `rank`: its number and the number of ranks. `medium`: most bytes of payload of a reply to
    /// this rank. `deliver` writes a received frame into a slot. `news` are the bootstrap's
    /// callbacks.
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

    /// The endpoint of join() without its polling thread.
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
            fail!(
                ERR_UNSUPPORTED,
                "the wire takes frames of at most {most} bytes, expected {least} or more"
            );
        }
        if card.len() > CARD {
            let size = card.len();
            fail!(ERR_UNSUPPORTED, "the wire's card has {size} bytes, expected at most {CARD}");
        }
        // Before the area of the tickets is registered, which the wire may use until it is closed.
        let wake = Wake::new()?;
        let state = State {
            lane: wire.lane()?,
            grants: Grants::default(),
            tickets: Tickets::new(&wire, &caps)?,
            receipts: Receipts::new(size),
            joins: Joins::default(),
            outgoing: Outgoing::new(&caps),
            asked: Vec::new(),
            asides: Vec::new(),
            relayed: news.relayed,
            lost: BTreeSet::new(),
            reports: Vec::new(),
            posted: Posted::default(),
            batch: Batch::default(),
            events: Events::default(),
            results: None,
            out: Out::new(),
            abandoned: Vec::new(),
            hubs: Hubs::default(),
            failure: None,
            asleep: Asleep::No,
            over: false,
            closed: false,
            reported: 0,
        };
        let (state, failed) = (Mutex::new(state), news.failed);
        let shared = Shared {
            me,
            medium,
            deliver,
            state,
            wanted: AtomicU32::new(0),
            naps: AtomicBool::new(false),
            helpers: Helpers::default(),
            wake,
            unreachable: OnceBox::new(),
            signalled: OnceBox::new(),
            ended: Arc::default(),
            ring: OnceBox::new(),
            failed,
        };
        let (shared, memory) = (Arc::new(shared), Memory::new(wire));
        let opener = this_thread();
        Ok(Endpoint { shared, memory, card, opener, thread: None })
    }

    /// The address by which peers connect to this endpoint.
    pub fn card(&self) -> &[u8] {
        &self.card
    }

    /// Begins to connect to the peer that has this card.
    pub fn connect(&self, peer: u32, card: &[u8]) -> Result<()> {
        self.shared.lock().lane.connect(peer, card)
    }

    /// Whether all frames of this rank that needed a slot lie in slots of their receivers; frames
    /// for dead ranks do not count. Asks the receivers where it does not know, so poll it.
    pub fn has_delivered_all(&self) -> bool {
        let (mut out, mut state) = (Out::new(), self.shared.lock());
        let State { grants, receipts, tickets, outgoing, .. } = &mut *state;
        let taken = tickets.as_mut().is_none_or(Tickets::all_delivered);
        // A question comes behind the frames that have ended.
        let all = outgoing.has_queued_all() && receipts.all_delivered(grants, &mut out) && taken;
        self.shared.send_and_wake(state, out);
        all
    }

    /// Gives up a peer that has died or left: discards the frames for it, and asks the wire for a
    /// fence (see `hubs`). Later calls do nothing.
    pub fn mark_dead(&self, peer: u32) {
        let mut state = self.shared.lock();
        if state.grants.is_dead(peer) {
            return;
        }
        state.grants.mark_dead(peer);
        state.tickets.iter_mut().for_each(|tickets| tickets.mark_dead(peer));
        state.receipts.mark_dead(peer);
        if !state.hubs.was_lost(peer) {
            state.reports.retain(|(lost, _)| *lost != peer);
        }
        state.cut(peer);
        drop(state);
        self.shared.wake.wake();
    }
}

#[cfg(all(test, feature = "simulated", not(loom)))]
mod crossed;
#[cfg(all(test, feature = "simulated", not(loom)))]
mod faults;
#[cfg(all(test, feature = "simulated", not(loom)))]
mod memory;
#[cfg(all(test, feature = "simulated", not(loom)))]
mod shared_queue;
#[cfg(all(test, feature = "simulated", not(loom)))]
mod tests;
#[cfg(all(test, feature = "simulated", not(loom)))]
mod trips;
#[cfg(all(test, feature = "simulated", not(loom)))]
mod turns;
#[cfg(all(test, feature = "simulated", not(loom)))]
mod uses;
