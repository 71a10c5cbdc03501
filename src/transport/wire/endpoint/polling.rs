//! Who polls a wire: the polling thread `llcl-wire` and, on a wire without a descriptor,
//! application threads that wait for something.
//!
//! A thread polls under the endpoint's lock. An application thread only tries the lock, so at most
//! the polling thread waits for it in order to poll. A thread that waits for the lock in order to
//! post counts itself in `wanted`; application threads do not poll while the count is not 0.
//!
//! While application threads poll, the polling thread sleeps, for `BESIDE` at first and twice as
//! long each time, up to `BESIDE_MOST`. A thread that falls asleep wakes it (`leave`); one that
//! stops polling in another way, for instance since it computes, tells nobody. When none has polled
//! since its last look, and none is inside a poll, the polling thread polls again. It then stays awake (`util::backoff`) until
//! `LINGER` after the last event; after that it sleeps between two polls, longer each time, up to
//! `LONGEST` (or for the time that the lane names).

use super::*;
use crate::transport::wire::CLASS_KNOCKS;
use crate::transport::wire::tickets::Taker;

/// How long the polling thread leaves the wire to application threads that poll, before it looks
/// for the first time whether they still do.
const BESIDE: Duration = Duration::from_micros(100);
/// The longest such time. Each look takes the core of a thread that polls; a rank whose threads
/// stop polling serves its peers' requests this much later at most.
const BESIDE_MOST: Duration = Duration::from_millis(1);
/// How long after the last event the polling thread goes on without sleeping, on a wire without a
/// descriptor: a program that has sent a message usually sends more, and a sleep takes longer than
/// a round trip.
const LINGER: Duration = Duration::from_micros(200);
/// How often a thread that posts yields and tries again before it sleeps on the lock. One round of
/// polling takes some microseconds.
const TURNS: u32 = 64;
/// Most events of one poll.
const EVENTS: usize = 32;
/// The timer slack of the polling thread: how late the kernel may end its sleep.
const SLACK_NS: libc::c_ulong = 1000;

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

impl State {
    /// Whether a round has nothing to do unless the lane has an event, beside ends of commands and
    /// of service. `in_a_row`: as of has_served_all(). A peer that waits for a receipt needs no
    /// term: it waits only while frames of it are missing, and then one comes, or in no slot, and
    /// then `grants` has not served all.
    fn is_settled(&mut self, in_a_row: bool) -> bool {
        self.outgoing.waiting() == 0
            && self.tickets.is_none()
            && self.lost.is_empty()
            && self.asked.is_empty()
            && self.grants.has_served_all(in_a_row)
    }

    /// Handles the packets of a received frame. Held: the frame is given back later.
    pub(super) fn take_frame(
        &mut self,
        event: &Event,
        frame: &[u8],
        medium: usize,
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
        results: &mut Results,
    ) -> std::result::Result<Taken, String> {
        let (mut packet, mut others) = pieces::split(frame);
        if !others.is_empty() && CLASS_KNOCKS.contains(&event.class) {
            return Err(format!("several packets in a frame of class {}", event.class));
        }
        loop {
            if !self.take_single(event, packet, medium, deliver, results) {
                results.others = true;
                match self.take(event, packet, medium, &mut results.out)? {
                    Taken::Held => return Ok(Taken::Held),
                    Taken::Aside(owned) => results.answers.push((event.peer, owned)),
                    Taken::Copied => {}
                }
            }
            if others.is_empty() {
                return Ok(Taken::Copied);
            }
            (packet, others) = pieces::split(others);
        }
    }
}

impl Shared {
    /// Locks the state, for a thread that may wait: one that posts, or the polling thread.
    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.try_lock().unwrap_or_else(|| self.lock_in_turn())
    }

    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Yields before it sleeps on the lock: a sleep takes longer than the holder needs, and a
    /// polling thread would take the lock again before the sleeper is awake.
    #[cold]
    fn lock_in_turn(&self) -> MutexGuard<'_, State> {
        // Relaxed: a hint.
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let mut tries = (0..TURNS).map(|_| {
            std::thread::yield_now();
            self.try_lock()
        });
        let state = tries.find_map(|state| state);
        let state =
            state.unwrap_or_else(|| self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        state
    }

    /// Locks the state, for an application thread that polls. None: another thread holds the lock,
    /// or waits for it in order to post.
    fn lock_to_poll(&self) -> Option<MutexGuard<'_, State>> {
        // Relaxed: a hint.
        (self.wanted.load(Ordering::Relaxed) == 0).then(|| self.try_lock()).flatten()
    }

    fn event(
        &self,
        state: &mut State,
        event: &Event,
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
        results: &mut Results,
    ) {
        let peer = event.peer;
        results.others |= !matches!(event.event, Event::DONE | Event::SERVED | Event::FRAME);
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
            Event::FRAME => {
                let bytes = match event.size {
                    0 => &[],
                    // SAFETY: the lane keeps the bytes valid until give_back() below.
                    size => unsafe { std::slice::from_raw_parts(event.bytes, size as usize) },
                };
                match state.take_frame(event, bytes, self.medium, deliver, results) {
                    Ok(Taken::Held) => return,
                    Ok(_) => {}
                    Err(why) => {
                        results.others = true;
                        state.report(self.me, peer, &why);
                    }
                }
                state.lane.give_back(event.frame);
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
            Event::UNFENCEABLE => results.ends.extend(state.posted.end_all(peer)),
            _ => {}
        }
    }

    /// Handles the next events, delivers received frames, grants credits and posts queued packets.
    pub(super) fn round(
        &self,
        mut guard: MutexGuard<'_, State>,
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
    ) -> Polled {
        let state = &mut *guard;
        let mut events = std::mem::take(&mut state.events.0);
        let count = state.lane.poll(&mut events).min(EVENTS);
        // A thread that polls a wire without a descriptor looks several times in a row.
        let in_a_row = self.naps.load(Ordering::Relaxed);
        if count == 0 && state.asides.is_empty() && state.is_settled(in_a_row) {
            state.events.0 = events;
            return Polled::Nothing;
        }
        let ends = std::mem::take(&mut state.ends);
        let answers = std::mem::take(&mut state.asides);
        let out = std::mem::take(&mut state.out);
        let mut results = Results { ends, answers, out, ..Results::default() };
        let failed_before = state.failure.is_some();
        for event in &events[..count] {
            self.event(state, event, deliver, &mut results);
        }
        state.events.0 = events;
        let Results { mut out, mut answers, mut ends, signals, others, mut for_lane } = results;
        for_lane |= !ends.is_empty();
        let rings = self.hand_over(&mut ends);
        state.ends = ends;
        let may_end = count > 0 && !others && out.is_empty() && answers.is_empty();
        if may_end && state.is_settled(in_a_row) {
            (state.out, state.asides) = (out, answers);
            drop(guard);
            if rings {
                self.ring(Sleeper::Progress);
            }
            return if for_lane { Polled::Others } else { Polled::Messages };
        }
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
        let overdue = if state.lost.is_empty() { Vec::new() } else { state.overdue() };
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
        self.signal(&signals);
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

    /// The polling thread's sleep between two rounds. Returns whether it must poll without further
    /// sleep: an event is ready, or a descriptor has ended the sleep.
    pub(super) fn sleep(&self, nap: &mut Duration) -> bool {
        let mut state = self.lock();
        // The endpoint may have closed the lane already.
        if state.over {
            return false;
        }
        let longest = if state.is_stuck() { AGAIN } else { SLEEP };
        let (fd, limit) = match state.lane.arm() {
            Armed::PollNow => return true,
            Armed::Fd(fd, time) => (Some(fd), longest.min(time)),
            Armed::PollAfter(Duration::ZERO) => (None, longest.min(*nap)),
            Armed::PollAfter(time) => (None, longest.min(time)),
        };
        *nap = (*nap * 2).min(LONGEST);
        // Relaxed: a hint.
        self.naps.store(fd.is_none(), Ordering::Relaxed);
        state.asleep = if fd.is_some() { Asleep::OnDescriptor } else { Asleep::ForATime };
        drop(state);
        // SAFETY: the lane keeps its descriptor open until disarm().
        let fd = fd.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) });
        let fds = [Some(self.wake.as_fd()), fd].into_iter().flatten();
        let mut waits: Vec<_> = fds.map(|fd| interest(fd, libc::POLLIN)).collect();
        let woken = poll_for(&mut waits, limit).is_ok_and(|ready| ready > 0);
        state = self.lock();
        state.asleep = Asleep::No;
        self.wake.clear();
        state.lane.disarm();
        woken
    }

    /// Leaves the wire to application threads for some time, or until one of them falls asleep, the
    /// endpoint is dropped, or a peer has died.
    pub(super) fn sleep_aside(&self, beside: &mut Duration) {
        let _ = poll_for(&mut [interest(self.wake.as_fd(), libc::POLLIN)], *beside);
        *beside = (*beside * 2).min(BESIDE_MOST);
        self.helpers.come_back();
        self.wake.clear();
    }

    /// Does so many rounds, or fewer if there is an event. Returns whether there was one; None: the
    /// endpoint is being dropped.
    fn look(&self, rounds: u32) -> Option<bool> {
        for _ in 0..rounds {
            let state = self.lock();
            if state.over {
                return None;
            }
            if self.round(state, &self.deliver).is_any() {
                return Some(true);
            }
        }
        Some(false)
    }

    /// The loop of the polling thread; ends when the endpoint is dropped.
    pub(super) fn run(&self) {
        // SAFETY: passes a number, and changes this thread only. If the kernel refuses, sleeps last
        // longer.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) };
        let (mut nap, mut beside, mut backoff) = (SHORTEST, BESIDE, Backoff::new(LINGER));
        loop {
            if self.helpers.step_aside() {
                self.sleep_aside(&mut beside);
                // Events may have come until now.
                nap = SHORTEST;
                backoff.renew();
                continue;
            }
            beside = BESIDE;
            let naps = self.naps.load(Ordering::Relaxed);
            let Some(came) = self.look(if naps { looks() } else { 1 }) else { return };
            let stays_awake = came || naps && backoff.pause();
            if came || !stays_awake && self.sleep(&mut nap) {
                nap = SHORTEST;
                backoff.renew();
            }
        }
    }
}

impl Endpoint {
    /// Polls once, for an application thread that waits, on a wire without a descriptor. Nothing:
    /// there was no event, the wire has a descriptor, or another thread uses the endpoint.
    pub fn help(&self) -> Polled {
        self.help_as(Helper::Program)
    }

    /// Like `help`, for the progress thread, which leaves the wire to application threads that
    /// poll. If both polled, each event would keep the progress thread awake, on a core that
    /// another thread needs.
    pub fn help_aside(&self) -> Polled {
        match self.shared.helpers.last() {
            Helper::Program => Polled::Nothing,
            _ => self.help_as(Helper::Progress),
        }
    }

    /// To be called by an application thread that has polled, before it sleeps: the polling thread
    /// polls at once, unless other threads do. It might else leave the wire alone for BESIDE_MOST,
    /// in which no byte of a long transfer moves.
    pub fn leave(&self) {
        if self.shared.helpers.leave() {
            self.shared.wake.wake();
        }
    }

    fn help_as(&self, helper: Helper) -> Polled {
        if !self.wakes_nobody() || self.opener_polls() && !self.must_poll_here() {
            return Polled::Nothing;
        }
        // Before the lock: if the polling thread has the lock, it must step aside, too.
        self.shared.helpers.note(helper);
        let Some(state) = self.shared.lock_to_poll() else { return Polled::Nothing };
        if state.over || state.asleep == Asleep::OnDescriptor {
            return Polled::Nothing;
        }
        let _inside = self.shared.helpers.enter(helper);
        self.shared.round(state, &self.shared.deliver)
    }

    /// See `Caps::opener_polls`.
    pub fn opener_polls(&self) -> bool {
        self.memory.caps().opener_polls
    }

    /// Whether the calling thread is the only one that makes progress: see `Caps::opener_polls`.
    pub fn must_poll_here(&self) -> bool {
        self.opener_polls() && this_thread() == self.opener
    }

    /// Whether threads that wait should call help(): the wire has no descriptor.
    #[inline]
    pub fn wakes_nobody(&self) -> bool {
        // Relaxed: a hint; a thread that sees it late leaves polling to the polling thread.
        self.shared.naps.load(Ordering::Relaxed)
    }
}
