//! One rank's end of a wire, whichever it is: credits, the queues behind the lane, and the thread
//! that polls it and puts what has come into the rank's own slots.
//!
//! A thread that sends takes the lock and posts at once. What the lane does not take stays queued
//! (`outgoing`) and is posted by the polling thread. That thread sleeps on the lane's descriptor; where
//! the wire has none, it naps, at most `LONGEST`; a send wakes it, since an answer will come.

use super::grants::{Grants, Line, Out, Packet, line_of};
use super::outgoing::Outgoing;
use super::packet::{self, Parcel, packet_of};
use super::pieces::{self, Joins};
use super::receipts::Receipts;
use super::{Armed, CARD, Event, Wire, WireLane};
use crate::fail;
use crate::transport::frame::{Class, Frame};
use crate::util::socket::{Wake, interest, poll_for};
use crate::util::status::{Result, Status};
use crate::util::thread::{Thread, spawn_quiet};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
/// Events of one poll.
const EVENTS: usize = 32;
/// How many packets that nobody should send are told of.
const TOLD_OF: u32 = 10;

/// Puts a frame of a rank into this rank's slots. False: there is none for it now.
pub type Deliver = Box<dyn Fn(u32, Class, &Frame) -> bool + Send>;

/// Gives what the hub in a rank's process has sent to the one in this process. Called under the
/// endpoint's lock.
pub type Relayed = Box<dyn Fn(u32, Vec<u8>) + Send>;

/// The end of one rank.
pub struct Endpoint {
    shared: Arc<Shared>,
    card: Vec<u8>,
    thread: Option<Thread>,
}

struct Shared {
    me: u32,
    /// Most bytes of a reply that this rank takes.
    medium: usize,
    state: Mutex<State>,
    wake: Wake,
}

struct State {
    lane: Box<dyn WireLane>,
    grants: Grants,
    receipts: Receipts,
    joins: Joins,
    outgoing: Outgoing,
    relayed: Relayed,
    asleep: Asleep,
    over: bool,
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
type Aside = Vec<(u32, Parcel)>;

impl State {
    fn say(&mut self, me: u32, peer: u32, what: &str) {
        self.told_of += 1;
        if self.told_of <= TOLD_OF {
            eprintln!("libllcl: rank {me}: from the wire to rank {peer}: {what}; dropped");
        }
    }

    /// Takes in a frame. A frame in it for which a place was set aside is returned.
    fn take(
        &mut self,
        from: u32,
        bytes: &[u8],
        medium: usize,
        out: &mut Out,
    ) -> std::result::Result<Option<Parcel>, String> {
        let Some(packet) = self.joins.take(from, bytes, packet::MOST)? else { return Ok(None) };
        match packet_of(&packet, medium)? {
            Packet::Asked(sent) => self.receipts.asked(from, sent),
            Packet::Told(delivered) => self.receipts.told(from, delivered),
            Packet::Relayed(bytes) => (self.relayed)(from, bytes),
            packet => return self.grants.take(from, packet, out),
        }
        Ok(None)
    }

    /// Whether something waits that a later round may do though nothing else comes.
    fn is_stuck(&self) -> bool {
        self.grants.is_stuck() || self.outgoing.is_waiting()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts packets, or queues what the lane does not take.
    fn send(&self, state: &mut State, out: Out) {
        out.iter().for_each(|(to, packet)| state.outgoing.add(*to, packet));
        let State { lane, outgoing, .. } = &mut *state;
        for (peer, why) in outgoing.pump(&mut **lane) {
            state.say(self.me, peer, &why);
        }
    }

    /// As send(), for a thread that does not poll.
    fn send_and_wake(&self, mut state: MutexGuard<'_, State>, out: Out) {
        self.send(&mut state, out);
        let waiting = state.outgoing.is_waiting();
        if state.asleep == Asleep::Naps || state.asleep == Asleep::Deep && waiting {
            state.asleep = Asleep::No;
            drop(state);
            self.wake.wake();
        }
    }

    fn event(&self, state: &mut State, event: &Event, out: &mut Out, aside: &mut Aside) {
        let peer = event.peer;
        match event.event {
            Event::DONE => {
                state.outgoing.done(event.tag);
                if event.status != 0 {
                    state.say(self.me, peer, &format!("{:?}", Status(event.status)));
                }
            }
            Event::FRAME => {
                let bytes = match event.size {
                    0 => &[],
                    // SAFETY: the lane keeps them until they are given back.
                    size => unsafe { std::slice::from_raw_parts(event.bytes, size as usize) },
                };
                let taken = state.take(peer, bytes, self.medium, out);
                state.lane.give_back(event.frame);
                match taken {
                    Ok(parcel) => aside.extend(parcel.map(|parcel| (peer, parcel))),
                    Err(why) => state.say(self.me, peer, &why),
                }
            }
            Event::LOST => {
                state.outgoing.discard(peer);
                state.say(self.me, peer, &format!("lost: {:?}", Status(event.status)));
            }
            Event::FENCED => {
                state.grants.fenced(peer);
                state.joins.forget(peer);
                state.outgoing.fenced(peer);
            }
            // UNFENCEABLE: what the dead was granted stays out of use.
            _ => {}
        }
    }

    /// Takes in what has come and sends what can be sent; whether anything has come.
    fn round(&self, deliver: &Deliver) -> bool {
        let mut guard = self.lock();
        let state = &mut *guard;
        let (mut events, mut out, mut aside) = ([Event::NONE; EVENTS], Out::new(), Aside::new());
        let count = state.lane.poll(&mut events).min(EVENTS);
        for event in &events[..count] {
            self.event(state, event, &mut out, &mut aside);
        }
        let State { grants, receipts, .. } = state;
        let into_slot = |from: u32, parcel: &Parcel| {
            let delivered = deliver(from, parcel.class, &parcel.frame());
            if delivered {
                receipts.delivered(from);
            }
            delivered
        };
        grants.serve(into_slot, &mut out);
        receipts.tell(&mut out);
        self.send(state, out);
        drop(guard);
        // A place that was set aside may be waited for.
        for (from, parcel) in &aside {
            deliver(*from, parcel.class, &parcel.frame());
            self.lock().receipts.delivered(*from);
        }
        count > 0
    }

    /// Sleeps until something may have come.
    fn sleep(&self, nap: &mut Duration) {
        let mut state = self.lock();
        let longest = if state.is_stuck() { AGAIN } else { SLEEP };
        let (fd, limit) = match state.lane.arm() {
            Armed::PollNow => return,
            Armed::Fd(fd, time) => (Some(fd), longest.min(time)),
            Armed::PollAfter(Duration::ZERO) => (None, longest.min(*nap)),
            Armed::PollAfter(time) => (None, longest.min(time)),
        };
        *nap = (*nap * 2).min(LONGEST);
        if !state.over {
            state.asleep = if fd.is_some() { Asleep::Deep } else { Asleep::Naps };
            drop(state);
            // SAFETY: the lane keeps its descriptor open until it is disarmed.
            let fd = fd.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) });
            let fds = [Some(self.wake.as_fd()), fd].into_iter().flatten();
            let mut waits: Vec<_> = fds.map(|fd| interest(fd, libc::POLLIN)).collect();
            if poll_for(&mut waits, limit).is_ok_and(|ready| ready > 0) {
                *nap = SHORTEST;
            }
            state = self.lock();
        }
        state.asleep = Asleep::No;
        self.wake.clear();
        state.lane.disarm();
    }

    fn run(&self, deliver: &Deliver) {
        let mut nap = SHORTEST;
        while !self.lock().over {
            if self.round(deliver) {
                nap = SHORTEST;
            } else {
                self.sleep(&mut nap);
            }
        }
    }
}

impl Endpoint {
    /// The end of rank `me`, which takes replies of up to `medium` bytes; frames that come are given
    /// to `deliver`, and what other hubs send to `relayed`.
    pub fn join(
        me: u32,
        wire: &dyn Wire,
        medium: usize,
        deliver: Deliver,
        relayed: Relayed,
    ) -> Result<Endpoint> {
        let (caps, card) = (wire.caps(), wire.card()?);
        if caps.frame_most < pieces::LEAST {
            let (most, least) = (caps.frame_most, pieces::LEAST);
            fail!(ERR_UNSUPPORTED, "a wire takes frames of {most} bytes, expected {least} or more");
        }
        if card.len() > CARD {
            fail!(
                ERR_UNSUPPORTED,
                "a wire's card has {} bytes, expected at most {CARD}",
                card.len()
            );
        }
        let state = State {
            lane: wire.lane()?,
            grants: Grants::default(),
            receipts: Receipts::default(),
            joins: Joins::default(),
            outgoing: Outgoing::new(caps.frame_most),
            relayed,
            asleep: Asleep::No,
            over: false,
            told_of: 0,
        };
        let shared = Arc::new(Shared { me, medium, state: Mutex::new(state), wake: Wake::new()? });
        let runs = shared.clone();
        let thread = spawn_quiet("llcl-wire", STACK, move || runs.run(&deliver))?;
        Ok(Endpoint { shared, card, thread: Some(thread) })
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
        let has_room = |line: Line| self.shared.lock().grants.has_room(to, line);
        line_of(class, 0, 0).is_none_or(has_room)
    }

    /// See `Carrier::put`. `medium`: most bytes of a payload that the peer takes in a small slot.
    pub fn put(&self, to: u32, class: Class, frame: &Frame, medium: usize) -> bool {
        let mut out = Out::new();
        let mut state = self.shared.lock();
        match line_of(class, frame.payload.len(), medium) {
            None => out.push((to, Packet::Frame(None, Parcel::of(class, frame)))),
            Some(line) if !state.grants.has_room(to, line) => return false,
            Some(line) => state.grants.send(to, line, Parcel::of(class, frame), &mut out),
        }
        state.receipts.sent(to);
        self.shared.send_and_wake(state, out);
        true
    }

    /// What takes packets of the hub in this process to another, as long as this end lives.
    pub fn relay(&self) -> Box<dyn Fn(u32, Vec<u8>) + Send + Sync> {
        let end = Arc::downgrade(&self.shared);
        Box::new(move |to, packet| {
            if let Some(shared) = end.upgrade() {
                shared.send_and_wake(shared.lock(), vec![(to, Packet::Relayed(packet))]);
            }
        })
    }

    /// Whether all frames of this rank lie in slots of living ranks, or were dropped there. Asks
    /// them where that is not known, so call it again.
    pub fn has_delivered_all(&self) -> bool {
        let (mut out, mut state) = (Out::new(), self.shared.lock());
        let all = state.receipts.all_delivered(&mut out);
        self.shared.send_and_wake(state, out);
        all
    }

    /// A peer has died.
    pub fn mark_dead(&self, peer: u32) {
        let mut state = self.shared.lock();
        state.grants.bury(peer);
        state.receipts.bury(peer);
        state.outgoing.discard(peer);
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
        if self.thread.take().is_none_or(|thread| thread.join_until(limit)) {
            let _ = self.shared.lock().lane.close(DRAIN);
        }
    }
}

#[cfg(all(test, feature = "simulated", not(loom)))]
mod tests;
