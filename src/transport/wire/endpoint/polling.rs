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
//! since its last look, and none is inside a poll, the polling thread polls again. It then stays
//! awake (`util::backoff`) until `LINGER` after the last event; after that it sleeps between two
//! polls, longer each time, up to `LONGEST` (or for the time that the lane names).

use super::*;

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
/// The timer slack of the polling thread: how late the kernel may end its sleep.
const SLACK_NS: libc::c_ulong = 1000;

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
        state.grants.has_slept();
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
    /// Polls, for an application thread that waits, on a wire without a descriptor, up to so many
    /// times while there is no event. Calls `before` before it does anything that brings the
    /// engine's lane work. Nothing: there was no event, the wire has a descriptor, or another
    /// thread uses the endpoint.
    #[inline]
    pub fn help(&self, looks: u32, before: &mut dyn FnMut()) -> Polled {
        self.help_as(Helper::Program, looks, before)
    }

    /// Like `help`, for the progress thread, which leaves the wire to application threads that
    /// poll. If both polled, each event would keep the progress thread awake, on a core that
    /// another thread needs.
    pub fn help_aside(&self, looks: u32, before: &mut dyn FnMut()) -> Polled {
        match self.shared.helpers.last() {
            Helper::Program => Polled::Nothing,
            _ => self.help_as(Helper::Progress, looks, before),
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

    #[inline]
    fn help_as(&self, helper: Helper, looks: u32, before: &mut dyn FnMut()) -> Polled {
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
        self.shared.round_after(looks, state, before, &self.shared.deliver)
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
