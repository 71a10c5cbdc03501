//! Which way a frame goes that needs a slot of its receiver: into the shared queue of the wire, by
//! a ticket, or by a knock and grants. A frame for which there is no room is refused.
//!
//! A thread whose frame was refused may ask for room before it sleeps. The endpoint keeps where the
//! frame would go, and the round that finds room there wakes the thread. Both happen under the
//! endpoint's lock, and the thread looks for room after it has asked, so it misses no room.

use super::*;
use crate::transport::carrier::Bytes;
use crate::transport::wire::tickets::{Use, Waiting};

/// Most entries of `State::asked`. A thread whose question finds no place naps.
const ASKED: usize = 512;

/// Where the frame of a sleeping thread would go: peer, line, class, bytes, and the thread.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Asked(u32, Line, Class, usize, Sleeper);

impl State {
    /// The threads for whose frames there is room now; their questions are forgotten.
    pub(super) fn answered_by_room(&mut self) -> Vec<Sleeper> {
        let (mut asked, mut woken) = (std::mem::take(&mut self.asked), Vec::new());
        asked.retain(|Asked(to, line, class, size, sleeper)| {
            let room = self.has_room(*to, *line, *class, *size);
            if room && !woken.contains(sleeper) {
                woken.push(*sleeper);
            }
            !room
        });
        self.asked = asked;
        woken
    }

    /// Whether a frame goes into the peer's shared queue.
    fn queues(&self, to: u32, line: Line, size: usize) -> bool {
        self.outgoing.queues(to, line, size) && !self.grants.is_dead(to)
    }

    /// Whether a frame goes by a ticket.
    fn takes_ticket(&self, to: u32, line: Line, size: usize) -> bool {
        let knocks = || self.grants.knocks(to, line);
        self.tickets.as_ref().is_some_and(|it| it.taker.takes(to, line, size, knocks()))
    }

    /// Whether one more frame of so many bytes that needs a slot of its receiver is accepted.
    pub(super) fn has_room(&self, to: u32, line: Line, class: Class, size: usize) -> bool {
        let room = |tickets: &Tickets| tickets.taker.has_room(to, line);
        if self.outgoing.waiting() >= QUEUED[usize::from(class != Class::Lib)] {
            return false;
        }
        if self.queues(to, line, size) {
            return self.outgoing.has_room(to, line);
        }
        match self.takes_ticket(to, line, size) {
            true => self.tickets.as_ref().is_some_and(room),
            false => self.grants.has_room(to, line),
        }
    }

    /// Takes a frame for which there is room.
    fn send(&mut self, (to, line): (u32, Line), (class, frame): (Class, &Frame), out: &mut Out) {
        let size = frame.header.len() + frame.payload.len();
        if self.queues(to, line, size) {
            self.receipts.sent(to);
            return out.push((to, Packet::Queued(line, OwnedFrame::of(class, frame))));
        }
        let takes = self.takes_ticket(to, line, size);
        match self.tickets.as_mut().filter(|_| takes) {
            Some(tickets) => tickets.send(to, line, OwnedFrame::of(class, frame)),
            None => self.knock((to, line), (class, frame), out),
        }
    }

    fn knock(&mut self, to: (u32, Line), message: (Class, &Frame), out: &mut Out) {
        if self.grants.send(to, message, &mut self.outgoing.buffers, out) {
            self.receipts.sent(to.0);
        }
    }

    /// Frames that cannot have tickets any more knock.
    fn knock_all(&mut self, to: u32, left: Vec<Waiting>, out: &mut Out) {
        for (line, owned) in left {
            self.knock((to, line), (owned.class, &owned.frame()), out);
        }
    }

    /// A packet about the use of slots has come.
    pub(super) fn use_changed(&mut self, (from, number, change): (u32, u64, Use), out: &mut Out) {
        if self.grants.is_dead(from) {
            return;
        }
        if matches!(change, Use::Offer(_)) && (self.tickets.is_none() || self.is_lost(from)) {
            return out.push((from, Packet::Use(number, Use::Released(0))));
        }
        let take = |tickets: &mut Tickets| tickets.take(from, number, change, out);
        let left = self.tickets.as_mut().map(take).unwrap_or_default();
        self.knock_all(from, left, out);
    }

    /// A write of tickets, a fetch-and-add or a read has ended.
    pub(super) fn end_of_use(&mut self, me: u32, event: &Event, out: &mut Out) {
        let wrote = self.tickets.as_ref().is_some_and(|it| it.taker.is_write(event.tag));
        let done = |tickets: &mut Tickets| tickets.done(event, out);
        let left = self.tickets.as_mut().map(done).unwrap_or_default();
        if event.status != 0 && !self.grants.is_dead(event.peer) {
            let what = format!("slots: {:?}", Status(event.status));
            if wrote {
                // A frame is lost.
                return self.mark_lost(me, event.peer, &what, out);
            }
            self.report(me, event.peer, &what);
        }
        self.knock_all(event.peer, left, out);
    }

    /// A write with notice has come; what is wrong with it.
    pub(super) fn notice(
        &mut self,
        event: &Event,
        medium: usize,
    ) -> std::result::Result<(), String> {
        let tickets = self.tickets.as_mut().ok_or("a notice, but no slots were offered")?;
        tickets.notice(event.peer, event.tag, medium)
    }

    /// Whether something waits for the lane, or for slots of a peer that must be looked at again.
    pub(super) fn waits_for_lane(&self) -> bool {
        self.outgoing.waiting() > 0 || self.tickets.as_ref().is_some_and(Tickets::is_stuck)
    }
}

impl Endpoint {
    /// See `Carrier::has_credit`. `to`: the peer, and most bytes of payload of its small slots.
    pub fn has_credit(
        &self,
        (to, medium): (u32, usize),
        class: Class,
        (header, payload): Bytes,
    ) -> bool {
        let line = line_of(class, payload, medium);
        line.is_none_or(|line| self.shared.lock().has_room(to, line, class, header + payload))
    }

    /// See `Carrier::ask_wake`. A silent wire needs threads that poll it, so the sender of a
    /// request must not sleep there.
    pub fn ask_wake(
        &self,
        (to, medium): (u32, usize),
        class: Class,
        (header, payload): Bytes,
        sleeper: Sleeper,
    ) -> bool {
        let Some(line) = line_of(class, payload, medium) else { return false };
        if class != Class::Responses && self.wakes_nobody() {
            return false;
        }
        let mut state = self.shared.lock();
        let it = Asked(to, line, class, header + payload, sleeper);
        if !state.asked.contains(&it) {
            if state.asked.len() == ASKED {
                return false;
            }
            state.asked.push(it);
        }
        true
    }

    /// See `Carrier::put`. `medium`: most bytes of payload of a small slot of the peer.
    pub fn put(&self, to: u32, class: Class, frame: &Frame, medium: usize) -> bool {
        let mut state = self.shared.lock();
        let line = line_of(class, frame.payload.len(), medium);
        if state.has_short_ways() {
            if let Some(line) = line
                && let Some(taken) = state.wait_behind((to, line), (class, frame))
            {
                if taken {
                    self.shared.wake_after_post(state);
                }
                return taken;
            }
            if state.post_single(self.shared.me, (to, line), class, frame) {
                self.shared.wake_after_post(state);
                return true;
            }
        }
        self.put_in_queue(state, (to, line), class, frame)
    }

    /// put() for a frame that takes the long way.
    #[inline(never)]
    fn put_in_queue(
        &self,
        mut state: MutexGuard<'_, State>,
        (to, line): (u32, Option<Line>),
        class: Class,
        frame: &Frame,
    ) -> bool {
        let size = frame.header.len() + frame.payload.len();
        if let Some(line) = line
            && !state.has_room(to, line, class, size)
        {
            return false;
        }
        let mut out = std::mem::take(&mut state.out);
        match line {
            None => out.push((to, Packet::Frame(None, OwnedFrame::of(class, frame)))),
            Some(line) => state.send((to, line), (class, frame), &mut out),
        }
        self.shared.send_and_wake(state, out);
        true
    }
}
