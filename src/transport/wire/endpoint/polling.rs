//! How a wire is polled: by the thread `llcl-wire`, and where the wire wakes nobody, by threads
//! that wait for something as well.
//!
//! Whoever polls holds the endpoint's lock, and tries only: never do two threads wait to poll. A
//! thread that posts counts itself in `wanted` while it waits for the lock; those who poll then
//! step aside.
//!
//! No wake-up is lost: a thread that has polled may leave or fall asleep and tells nobody, since
//! the polling thread never sleeps for long beside it. It looks again after `BESIDE` whether
//! anybody else has polled since, and if not polls itself: without a pause but yields for `LINGER`
//! after the last event, then with naps that grow to `LONGEST`.

use super::*;

/// How long the polling thread leaves the wire to the threads that wait, before it looks again.
const BESIDE: Duration = Duration::from_micros(100);
/// How long after the last event it polls without naps where the wire wakes nobody: a program that
/// has sent something sends more, and a nap costs more than an exchange.
const LINGER: Duration = Duration::from_micros(200);
/// How often a thread that posts gives its core away before it sleeps on the lock. One round of a
/// poller takes some microseconds.
const TURNS: u32 = 64;
/// How late the kernel may end a nap.
const SLACK_NS: libc::c_ulong = 1000;

impl Shared {
    /// The state, for a thread that does not poll.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.try_lock().unwrap_or_else(|| self.lock_in_turn())
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// To fall asleep on the lock costs more than what its holder does, and whoever polls takes it
    /// again before a sleeper is awake.
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

    /// The state, for a thread that polls. None: another thread has it, or wants to post.
    fn lock_to_poll(&self) -> Option<MutexGuard<'_, State>> {
        // Relaxed: a hint.
        (self.wanted.load(Ordering::Relaxed) == 0).then(|| self.try_lock()).flatten()
    }

    fn event(&self, state: &mut State, event: &Event, (out, aside, ends): Come) {
        let peer = event.peer;
        match event.event {
            Event::DONE if Posted::is_tag(event.tag) => ends.extend(state.posted.end(event)),
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
                match state.take(event, bytes, self.medium, out) {
                    Ok(Taken::Held) => return,
                    Ok(Taken::Copied) => {}
                    Ok(Taken::Aside(owned)) => aside.push((peer, owned)),
                    Err(why) => state.say(self.me, peer, &why),
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
                state.lose(self.me, peer, &format!("lost: {:?}", Status(event.status)));
            }
            Event::FENCED => {
                state.grants.fenced(peer);
                state.joins.forget(peer);
                state.outgoing.fenced(peer);
                ends.extend(state.posted.end_all(peer));
            }
            // What the dead was granted stays out of use.
            Event::UNFENCEABLE => ends.extend(state.posted.end_all(peer)),
            _ => {}
        }
    }

    /// Takes in what has come and sends what can be sent; whether anything has come.
    pub(super) fn round(
        &self,
        mut guard: MutexGuard<'_, State>,
        deliver: &dyn Fn(u32, Class, &Frame) -> bool,
    ) -> bool {
        let state = &mut *guard;
        let (mut events, mut out, mut aside) = ([Event::NONE; EVENTS], Out::new(), Aside::new());
        let mut ends = Vec::new();
        let failed_before = state.failure.is_some();
        let count = state.lane.poll(&mut events).min(EVENTS);
        for event in &events[..count] {
            self.event(state, event, (&mut out, &mut aside, &mut ends));
        }
        let State { grants, receipts, lane, .. } = state;
        let (into_slot, mut back) =
            (|from: u32, it: &OwnedFrame| deliver(from, it.class, &it.frame()), Vec::new());
        grants.serve(into_slot, &mut out, &mut back);
        back.into_iter().for_each(|frame| lane.give_back(frame));
        receipts.tell(grants, &mut out);
        self.send(state, out);
        let given_up = if state.lost.is_empty() { Vec::new() } else { state.given_up() };
        let failed = state.failure.is_some() && !failed_before;
        drop(guard);
        if failed {
            (self.failed)();
        }
        self.tell(&ends);
        for peer in given_up {
            self.unreachable.get().into_iter().for_each(|tell| tell(peer));
        }
        // A place that was set aside may be waited for.
        for (from, owned) in &aside {
            deliver(*from, owned.class, &owned.frame());
        }
        count > 0
    }

    /// Sleeps until something may have come; whether somebody has woken it. Where all is over the
    /// lane may be closed.
    pub(super) fn sleep(&self, nap: &mut Duration) -> bool {
        let mut state = self.lock();
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
        state.asleep = if fd.is_some() { Asleep::Deep } else { Asleep::Naps };
        drop(state);
        // SAFETY: the lane keeps its descriptor open until it is disarmed.
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

    /// Leaves the wire to the threads that wait, for a moment. Nobody but the end of the endpoint
    /// ends it early.
    fn step_aside(&self) {
        let _ = poll_for(&mut [interest(self.wake.as_fd(), libc::POLLIN)], BESIDE);
        self.wake.clear();
    }

    /// What the polling thread does until the end.
    pub(super) fn run(&self) {
        // SAFETY: a number; it concerns this thread only. Where the kernel refuses, naps last
        // longer.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, SLACK_NS) };
        let (mut nap, mut last) = (SHORTEST, Instant::now());
        loop {
            let mut state = self.lock();
            if state.over {
                return;
            }
            if std::mem::take(&mut state.helped) {
                drop(state);
                self.step_aside();
            } else if self.round(state, &self.deliver) {
                (nap, last) = (SHORTEST, Instant::now());
            } else if self.naps.load(Ordering::Relaxed) && last.elapsed() < LINGER {
                std::thread::yield_now();
            } else if self.sleep(&mut nap) {
                (nap, last) = (SHORTEST, Instant::now());
            }
        }
    }
}

impl Endpoint {
    /// For a thread that waits: takes in what has come, where nobody would wake the polling thread.
    /// False: nothing has come, or another thread is at it.
    pub fn help(&self) -> bool {
        if !self.wakes_nobody() {
            return false;
        }
        let Some(mut state) = self.shared.lock_to_poll() else { return false };
        if state.over || state.asleep == Asleep::Deep {
            return false;
        }
        state.helped = true;
        self.shared.round(state, &self.shared.deliver)
    }

    /// Whether threads that wait should call help().
    #[inline]
    pub fn wakes_nobody(&self) -> bool {
        // Relaxed: a hint; until it is seen the polling thread polls.
        self.shared.naps.load(Ordering::Relaxed)
    }
}
