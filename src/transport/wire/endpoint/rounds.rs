//! Rounds: what the thread that polls a wire does with the lane's events, and with what waits.

use super::*;
use crate::transport::wire::signals::Come;
use crate::transport::wire::tickets::Taker;
use crate::transport::wire::{CLASS_KNOCKS, CLASS_USER};

/// Most events of one poll.
const EVENTS: usize = 32;

/// The array of one poll. It is kept, since clearing it takes nearly as long as a poll without
/// events.
pub(super) struct Events(Vec<Event>);

impl Default for Events {
    fn default() -> Events {
        Events(vec![Event::NONE; EVENTS])
    }
}

// SAFETY: the lane overwrites events before they are read, so no pointer passes between threads.
unsafe impl Send for Events {}

/// What the handled events of a round leave.
#[derive(Default)]
pub(super) struct Results {
    /// Packets to send.
    pub out: Out,
    pub answers: Answers,
    /// Completions of reads, writes and atomics.
    pub ends: Vec<End>,
    /// Signals whose bytes have come.
    pub signals: Vec<Come>,
    /// There were events after which the round must serve all that waits.
    pub others: bool,
    /// There were events that bring the engine's lane work.
    pub for_lane: bool,
}

impl Results {
    /// Whether it has nothing that the round must serve; completions and signals do not count.
    fn is_empty(&self) -> bool {
        self.out.is_empty() && self.answers.is_empty()
    }
}

/// Whether an event brings the engine's lane nothing: the end of a frame, a frame with a message
/// for a handler, or a service of this rank's memory.
fn is_for_handlers(event: &Event) -> bool {
    const RESPONSES: u32 = CLASS_KNOCKS[1];
    const REQUESTS: u32 = CLASS_KNOCKS[2];
    match event.event {
        Event::DONE => !Posted::is_tag(event.tag),
        Event::SERVED => true,
        Event::FRAME => matches!(event.class, CLASS_USER | RESPONSES | REQUESTS),
        _ => false,
    }
}

/// Whether an event is the end of a frame that the peer has got.
fn ends_frame(event: &Event) -> bool {
    event.event == Event::DONE
        && event.status == 0
        && !Posted::is_tag(event.tag)
        && !Taker::is_tag(event.tag)
}

impl State {
    /// Handles the events of a look, if all are ends of frames and services: usually these come
    /// alone, before the peer's next message.
    fn end_frames(&mut self, count: usize) -> bool {
        let events = &self.events.0[..count];
        let all = events.iter().all(|it| ends_frame(it) || it.event == Event::SERVED);
        if all {
            let ends = events.iter().filter(|it| it.event == Event::DONE);
            ends.for_each(|event| self.outgoing.done(event.tag));
        }
        all
    }

    /// Whether a round has nothing to do unless the lane has an event, beside ends of commands and
    /// of service, or an answer of a knock is due. A peer that waits for a receipt needs no term:
    /// it waits only while frames of it are missing, and then one comes, or in no slot, and then
    /// `grants` has not served all.
    pub(super) fn is_settled(&self) -> bool {
        self.outgoing.waiting() == 0
            && self.tickets.is_none()
            && self.reports.is_empty()
            && self.asked.is_empty()
            && self.hubs.ending.is_empty()
            && self.grants.has_served_all()
    }

    /// Handles the packets of a received frame. Held: the frame is given back later.
    #[inline(never)]
    pub(super) fn take_frame(
        &mut self,
        event: &Event,
        frame: &[u8],
        medium: usize,
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
        results: &mut Results,
    ) -> std::result::Result<Taken, String> {
        if !pieces::split(frame).1.is_empty() && CLASS_KNOCKS.contains(&event.class) {
            return Err(format!("several packets in a frame of class {}", event.class));
        }
        let mut left = self.take_stream(event, frame, medium, deliver, results);
        while !left.is_empty() || frame.is_empty() {
            let (piece, others) = pieces::split(left);
            if let Some(packet) = self.joins.take(event.peer, piece, packet::MOST)? {
                if !self.take_single(event, &packet, medium, deliver, results) {
                    results.others = true;
                    match self.take(event, &packet, medium, &mut results.out)? {
                        Taken::Held => return Ok(Taken::Held),
                        Taken::Aside(owned) => results.answers.push((event.peer, owned)),
                        Taken::Copied => {}
                    }
                }
                self.joins.recycle(packet);
            }
            left = self.take_stream(event, others, medium, deliver, results);
        }
        Ok(Taken::Copied)
    }
}

impl Shared {
    /// Handles an event. The usual ones of messages are handled here, without a call.
    #[inline(always)]
    fn event(
        &self,
        state: &mut State,
        event: &Event,
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
        results: &mut Results,
    ) {
        match event.event {
            Event::FRAME => {
                let bytes = match event.size {
                    0 => &[],
                    // SAFETY: the lane keeps the bytes valid until give_back() below.
                    size => unsafe { std::slice::from_raw_parts(event.bytes, size as usize) },
                };
                let only = pieces::only(bytes, packet::MOST);
                let taken = only.is_some_and(|packet| {
                    state.take_single(event, packet, self.medium, deliver, results)
                });
                if taken || !self.holds(state, (event, bytes), deliver, results) {
                    state.lane.give_back(event.frame);
                }
            }
            _ if ends_frame(event) => state.outgoing.done(event.tag),
            _ => self.other_event(state, event, results),
        }
    }

    /// Handles a frame by take_frame(). Returns whether it is given back later.
    fn holds(
        &self,
        state: &mut State,
        (event, bytes): (&Event, &[u8]),
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
        results: &mut Results,
    ) -> bool {
        match state.take_frame(event, bytes, self.medium, deliver, results) {
            Ok(taken) => taken == Taken::Held,
            Err(why) => {
                results.others = true;
                state.report(self.me, event.peer, &why);
                false
            }
        }
    }

    #[inline(never)]
    fn other_event(&self, state: &mut State, event: &Event, results: &mut Results) {
        let peer = event.peer;
        results.others |= !matches!(event.event, Event::DONE | Event::SERVED | Event::NOTICE);
        match event.event {
            Event::DONE if Posted::is_tag(event.tag) => {
                results.ends.extend(state.posted.end(event));
            }
            Event::DONE if Taker::is_tag(event.tag) => {
                state.end_of_use(self.me, event, &mut results.out);
            }
            Event::NOTICE => {
                if let Err(why) = state.noticed(event, self.medium, results) {
                    state.report(self.me, peer, &why);
                }
            }
            Event::DONE => {
                state.outgoing.done(event.tag);
                if event.status != 0 {
                    state.frame_failed(self.me, peer, Status(event.status), &mut results.out);
                }
            }
            Event::DEVICE => {
                let status = Status(event.status);
                let why = state.lane.why();
                let why = if why.is_empty() { format!("{status:?}") } else { why };
                state.failure = Some(Error::new(status, format!("the wire has failed: {why}")));
            }
            Event::LOST => {
                let why = format!("lost: {:?}", Status(event.status));
                state.mark_lost(self.me, peer, &why, &mut results.out);
            }
            Event::FENCED => {
                state.grants.fenced(peer);
                state.tickets.iter_mut().for_each(|tickets| tickets.fenced(peer));
                state.joins.forget(peer);
                state.check_fence(self.me, peer);
                results.ends.extend(state.posted.end_all(peer));
            }
            // Without fenced(), the buffers that were granted to the dead peer stay out of use.
            Event::UNFENCEABLE => {
                state.joins.forget(peer);
                results.ends.extend(state.posted.end_all(peer));
            }
            _ => {}
        }
    }

    /// One round after one look.
    pub(super) fn round(
        &self,
        guard: MutexGuard<'_, State>,
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
    ) -> Polled {
        self.round_after(1, guard, &mut || (), deliver)
    }

    /// Looks for events, up to so many times while there are none. Then handles them, delivers
    /// received frames, grants credits and posts queued packets. Calls `before` before it does
    /// anything that brings the engine's lane work.
    #[inline(always)]
    pub(super) fn round_after(
        &self,
        looks: u32,
        mut guard: MutexGuard<'_, State>,
        before: &mut dyn FnMut(),
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
    ) -> Polled {
        let state = &mut *guard;
        let settled = state.asides.is_empty() && state.is_settled();
        let mut count = state.lane.poll(&mut state.events.0).min(EVENTS);
        let late = state.grants.is_late(count > 0);
        for _ in 1..looks {
            // Relaxed: a hint.
            if count > 0 || !settled || late || self.wanted.load(Ordering::Relaxed) > 0 {
                break;
            }
            count = state.lane.poll(&mut state.events.0).min(EVENTS);
        }
        if settled && !late {
            if count == 0 {
                return Polled::Nothing;
            }
            if state.end_frames(count) {
                return Polled::Messages;
            }
        }
        self.handle((count, late), guard, before, deliver)
    }

    /// The round after a look that has found so many events, or if there is something else to do:
    /// `late` says whether the answer of a knock is due.
    #[inline(never)]
    fn handle(
        &self,
        (count, late): (usize, bool),
        mut guard: MutexGuard<'_, State>,
        before: &mut dyn FnMut(),
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
    ) -> Polled {
        let state = &mut *guard;
        if !state.events.0[..count].iter().all(is_for_handlers) {
            before();
        }
        let mut results = state.results.take().unwrap_or_default();
        let failed_before = state.failure.is_some();
        for at in 0..count {
            let event = state.events.0[at];
            self.event(state, &event, deliver, &mut results);
        }
        let for_lane = std::mem::take(&mut results.for_lane) || !results.ends.is_empty();
        let rings = self.hand_over(&mut results.ends);
        let others = std::mem::take(&mut results.others) || !results.is_empty();
        if count == 0 || others || late || !state.asides.is_empty() || !state.is_settled() {
            return self.serve((count, rings, failed_before), guard, results, before, deliver);
        }
        let signals = (!results.signals.is_empty()).then(|| std::mem::take(&mut results.signals));
        state.results = Some(results);
        drop(guard);
        if rings {
            self.ring(Sleeper::Progress);
        }
        let for_lane = for_lane || signals.is_some();
        if let Some(signals) = signals {
            self.signal(signals);
        }
        if for_lane { Polled::Others } else { Polled::Messages }
    }

    /// The rest of a round that must serve all that waits. `rings`: the progress thread must be
    /// woken for completions.
    #[inline(never)]
    fn serve(
        &self,
        (count, rings, failed_before): (usize, bool, bool),
        mut guard: MutexGuard<'_, State>,
        mut results: Box<Results>,
        before: &mut dyn FnMut(),
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
    ) -> Polled {
        before();
        let state = &mut *guard;
        let (mut answers, signals) =
            (std::mem::take(&mut state.asides), std::mem::take(&mut results.signals));
        answers.append(&mut results.answers);
        // send() keeps the memory of `out` as `state.out`, and `results.out` that of the old one.
        std::mem::swap(&mut results.out, &mut state.out);
        let mut out = std::mem::take(&mut state.out);
        state.results = Some(results);
        let State { grants, receipts, lane, tickets, .. } = state;
        let (into_slot, mut back) =
            (|from: u32, it: &OwnedFrame| deliver(from, it.class, &it.frame()), Vec::new());
        let tickets_first = tickets.as_mut().is_some_and(Tickets::goes_first);
        if !tickets_first {
            grants.serve(into_slot, &mut out, &mut back);
        }
        match tickets {
            Some(tickets) => tickets.serve(&mut grants.streams, into_slot, &mut out),
            None => grants.streams.clear(),
        }
        if tickets_first {
            grants.serve(into_slot, &mut out, &mut back);
        }
        back.into_iter().for_each(|frame| lane.give_back(frame));
        receipts.confirm(grants, &mut out);
        self.send(state, out);
        state.end_hubs();
        let overdue = if state.reports.is_empty() { Vec::new() } else { state.overdue() };
        let failed = state.failure.is_some() && !failed_before;
        let woken = state.answered_by_room();
        drop(guard);
        if failed {
            (self.failed)();
        }
        if rings {
            self.ring(Sleeper::Progress);
        }
        woken.into_iter().for_each(|sleeper| self.ring(sleeper));
        self.signal(signals);
        for peer in overdue {
            self.unreachable.get().into_iter().for_each(|report| report(peer));
        }
        // Without the lock, for which threads that post would wait.
        answers.retain(|(from, owned)| !deliver(*from, owned.class, &owned.frame()));
        if !answers.is_empty() {
            self.lock().asides.append(&mut answers);
        }
        if count > 0 { Polled::Others } else { Polled::Nothing }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_was_not_sent_takes_a_round() {
        let done = Event::about(Event::DONE, 1);
        assert!(ends_frame(&done));
        assert!(!ends_frame(&Event { status: -5, ..done }));
        assert!(!ends_frame(&Event::about(Event::FRAME, 1)));
    }
}
