//! How a thread waits for the lane. At first the thread stays awake and helps with progress, then
//! it sleeps.

use crate::core::deadline::Deadline;
use crate::core::poster::Poster;
use crate::engine::command::{ALL_PEERS, Command, Op};
use crate::engine::completion::{CALL, Completion};
use crate::engine::lane::{Execution, Lane};
use crate::engine::messages::dispatch::Dispatcher;
use crate::engine::routes::Routes;
use crate::transport::port::Port;
use crate::transport::waiters::Awaited;
use crate::util::backoff::{Backoff, core_is_shared};
use crate::util::status::{Result, Status};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// The parts of a context that a waiting thread uses, and how long it stays awake.
#[derive(Clone, Copy)]
pub(super) struct Blocking<'a> {
    pub(super) lane: &'a Lane,
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) poster: &'a Poster,
    pub(super) spin: Duration,
}

/// How long a thread sleeps between two attempts, if nothing announces that the next one can
/// succeed.
const NAP: Duration = Duration::from_micros(100);

/// How long a waiting thread stays awake: for `spin_us`, but longer if it polls a wire that wakes
/// no thread, since it would otherwise depend on the naps of the polling thread.
pub(super) fn patience(spin_us: u64, routes: &Routes) -> Duration {
    /// How long a thread stays awake at least if it polls a wire that wakes no thread: as long as
    /// the longest nap of the polling thread.
    const BY_WIRE: Duration = Duration::from_millis(1);
    let spin = Duration::from_micros(spin_us);
    if routes.fabric().has_silent_wire() { spin.max(BY_WIRE) } else { spin }
}

/// Polls the wire while there are events, for a thread that waits for the launcher.
pub(super) fn poll_wire(routes: &Routes) {
    /// Most polls of a wire in a row, since the thread may have a deadline.
    const ROUNDS: u32 = 64;
    let _ = (0..ROUNDS).all(|_| routes.fabric().help_wire(1, &mut || ()).is_any());
}

impl<'a> Blocking<'a> {
    /// Helps with progress for some rounds, until `done`: with the lane, and with active messages
    /// if there are any. `backoff` begins anew when messages were handled. Behind a handler it also
    /// returns if the deadline has passed.
    pub(super) fn help_until(
        self,
        backoff: &mut Backoff,
        deadline: &Deadline,
        done: impl Fn() -> bool,
    ) -> bool {
        let late = || deadline.has_passed();
        if self.poster.has_parked() {
            self.poster.post_parked();
        }
        if core_is_shared() || self.lane.routes().fabric().has_silent_wire() {
            // On a shared core rounds of looks without a message would only delay the threads for
            // which this thread waits. On a silent wire only help_others() polls the wire.
            if self.may_handle() {
                self.dispatcher.note_waiting();
            }
            // On a shared core all messages that wait, since their sender has filled its slots
            // before it has given the core to this thread.
            let handle = || match core_is_shared() {
                true => self.dispatcher.help_on(&done, &late),
                false => self.dispatcher.help(&|| done() || late()),
            };
            if !done() && self.help_others_or(handle, &done) {
                backoff.renew();
            }
            return done();
        }
        if !self.dispatcher.is_in_use() || !self.may_handle() {
            return self.lane.help_until(done);
        }
        if self.dispatcher.help_until(&done, &late) > 0 {
            backoff.renew();
        }
        if done() {
            return true;
        }
        // Only one round for the lane: a program that uses messages rarely waits for the lane, and
        // a round takes so long that an answer may arrive meanwhile.
        self.lane.help_others();
        done()
    }

    /// Helps with progress for one round. True: there was work.
    pub(super) fn help_others(self) -> bool {
        self.help_others_within(None)
    }

    /// Like `help_others`, but runs no further handler when the deadline has passed.
    fn help_others_within(self, deadline: Option<Instant>) -> bool {
        let deadline = Deadline::new(deadline);
        self.help_others_or(|| self.dispatcher.help(&|| deadline.has_passed()), || false)
    }

    /// Like `help_others`, where `handle` handles messages and returns their number. It leaves the
    /// lane and the wire alone if the handlers of messages that had come have made `done` true: a
    /// poll of a wire takes as long as a message. The only thread that may poll the wire polls it
    /// all the same, since peers may wait for that.
    fn help_others_or(self, handle: impl Fn() -> usize, done: impl Fn() -> bool) -> bool {
        let posted = self.poster.has_parked() && self.poster.post_parked() > 0;
        let handled = self.may_handle() && handle() > 0;
        if handled && done() && !self.lane.routes().fabric().must_poll_here() {
            return true;
        }
        self.lane.help_others() || handled || posted
    }

    /// Whether a thread of the program may run handlers: in offload mode only polled ones.
    fn may_handle(self) -> bool {
        self.lane.execution() != Execution::Offload || self.dispatcher.is_polled()
    }

    /// Sleeps until `enough`, or until something may have happened; see Sleepers::sleep().
    pub(super) fn sleep(
        self,
        awaited: Awaited,
        limit: Option<Duration>,
        enough: impl Fn() -> bool,
    ) -> bool {
        self.sleep_any(&[awaited], limit, enough)
    }

    /// Like `sleep`, for one of several.
    pub(super) fn sleep_any(
        self,
        awaited: &[Awaited],
        limit: Option<Duration>,
        enough: impl Fn() -> bool,
    ) -> bool {
        self.dispatcher.sleep(awaited, limit, enough)
    }

    /// Waits for a completion word. The completion fires in any case, so the wait has no limit.
    #[inline]
    pub(super) fn until_set(self, word: &AtomicU64) {
        // Acquire: pairs with the Release of the completion.
        let done = || word.load(Ordering::Acquire) != 0;
        if !done() {
            self.until(Awaited::private(word.as_ptr()), done);
        }
    }

    /// Waits until `done`. The change of the awaited word wakes the thread.
    #[inline(never)]
    pub(super) fn until(self, awaited: Awaited, done: impl Fn() -> bool + Copy) {
        self.until_or(awaited, None, done);
    }

    /// Like `until`, but no longer than the deadline, and one handler. False: it has passed.
    pub(super) fn until_or(
        self,
        awaited: Awaited,
        deadline: Option<Instant>,
        done: impl Fn() -> bool + Copy,
    ) -> bool {
        let mut backoff = Backoff::for_polls(self.spin);
        let limit = Deadline::new(deadline);
        while !self.help_until(&mut backoff, &limit, done) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return done();
            }
            if !backoff.pause()
                && (self.handles_late(&limit, done) || self.sleep(awaited, left, done))
            {
                backoff.renew();
            }
        }
        true
    }

    /// Handles the messages that came during the last yield of a wait, which other threads of this
    /// core may have used for long: their sender has filled its slots before it has yielded. If
    /// this thread slept instead, `llcl-handlers` would take its place. True: there were messages.
    pub(super) fn handles_late(self, deadline: &Deadline, done: impl Fn() -> bool) -> bool {
        core_is_shared()
            && self.may_handle()
            && !done()
            && self.dispatcher.help_on(&done, &|| deadline.has_passed()) > 0
    }

    /// Helps or pauses between two attempts, if nothing announces that the next one can succeed.
    /// False: the deadline has passed.
    pub(super) fn pause_or(self, backoff: &mut Backoff, deadline: Option<Instant>) -> bool {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return false;
        }
        if self.help_others_within(deadline) {
            backoff.renew();
        } else if !backoff.pause() {
            std::thread::sleep(NAP);
        }
        true
    }

    /// Tries until the answer is not "try again". Between two tries it executes commands of this
    /// context.
    pub(super) fn until_accepted<T>(self, attempt: impl Fn() -> Result<T>) -> Result<T> {
        let contacts = self.lane.routes().contacts();
        self.until_accepted_after((contacts, attempt()), attempt)
    }

    /// Like until_accepted(), behind a first try: `contacts` before it, and its end.
    pub(super) fn until_accepted_after<T>(
        self,
        (mut contacts, mut end): (u64, Result<T>),
        attempt: impl Fn() -> Result<T>,
    ) -> Result<T> {
        let mut backoff = Backoff::new(self.spin);
        let routes = self.lane.routes();
        loop {
            match end {
                // A thread that alone makes a wire progress must poll, so it waits as below.
                Err(error)
                    if error.status == Status::RETRY_QUEUE_FULL
                        && !routes.fabric().must_poll_here() =>
                {
                    let room = self.lane.room();
                    if !room.wait_for_turn()
                        && !self.lane.drain()
                        && let Some(end) = room.wait(|| accepted(attempt()))
                    {
                        return end;
                    }
                }
                Err(error) if error.status == Status::RETRY_CONNECTING => {
                    if self.help_others() {
                        backoff.renew();
                    } else if !backoff.pause() {
                        self.sleep(routes.next_contact(), None, || routes.contacts() != contacts);
                    }
                }
                Err(error) if error.status.is_retry() => {
                    self.pause_or(&mut backoff, None);
                }
                end => return end,
            }
            contacts = routes.contacts();
            end = attempt();
        }
    }

    /// The port to a peer; waits until it was contacted. An error of `open` ends the wait.
    pub(super) fn port(self, peer: u32, open: impl Fn() -> Result<()>) -> Result<&'a Port> {
        self.until_accepted(|| {
            open()?;
            self.lane.routes().port(peer)
        })
    }

    /// Contacts all these peers at the same time and waits until each contact has succeeded or
    /// failed. Returns the first failure.
    pub(super) fn connect(
        self,
        peers: impl Iterator<Item = u32> + Clone,
        open: impl Fn() -> Result<()>,
    ) -> Result<()> {
        for peer in peers.clone() {
            // Begins the contact. If an earlier contact has failed, this call only takes its error,
            // and the loop below begins the contact.
            let _ = self.lane.routes().port(peer);
        }
        let mut end = Ok(());
        for peer in peers {
            let port = self.port(peer, &open).map(drop);
            end = end.and(port);
        }
        end
    }

    /// Waits until all requests that were accepted before this call, for one peer or for ALL_PEERS,
    /// have ended.
    #[inline]
    pub(super) fn flush(self, peer: u32) -> Result<()> {
        self.until_posted(peer);
        if !self.lane.has_ended() {
            return self.flush_with_role(peer);
        }
        // This thread's stores into peers' memory come before its next loads.
        fence(Ordering::SeqCst);
        if self.dispatcher.awaits_ends() {
            self.flush_messages(peer, None);
        }
        Ok(())
    }

    /// Waits until the requests parked before for the peer, or for ALL_PEERS, were posted.
    #[inline]
    pub(super) fn until_posted(self, peer: u32) {
        if self.poster.has_parked() {
            self.until_posted_or(peer, None);
        }
    }

    fn until_posted_or(self, peer: u32, deadline: Option<Instant>) -> bool {
        let last = self.poster.last_parked();
        let posted = || !self.poster.has_parked_before(peer, last);
        self.until_or(Awaited::private(self.poster.parked_word()), deadline, posted)
    }

    /// Like `flush`, but no longer than the deadline. False: it has passed.
    pub(super) fn flush_or(self, peer: u32, deadline: Option<Instant>) -> bool {
        if self.poster.has_parked() && !self.until_posted_or(peer, deadline) {
            return false;
        }
        if !self.lane.has_ended() {
            let mut backoff = Backoff::new(self.spin);
            let ended = loop {
                match self.begin_flush(peer) {
                    Some(ended) => break ended,
                    None if self.pause_or(&mut backoff, deadline) => {}
                    None => return false,
                }
            };
            // Acquire: pairs with the Release in flush_has_ended().
            let done = || ended.load(Ordering::Acquire) != 0;
            if !self.until_or(Awaited::private(ended.as_ptr()), deadline, done) {
                return false;
            }
        }
        fence(Ordering::SeqCst);
        self.flush_messages(peer, deadline)
    }

    /// A word that becomes non-zero when all present operations of the lane for the peer, or for
    /// ALL_PEERS, have ended. None: the queue is full.
    pub(super) fn begin_flush(self, peer: u32) -> Option<Arc<AtomicU64>> {
        let word = Arc::new(AtomicU64::new(0));
        let mut flush = Command::new(Op::FLUSH, peer);
        // The completion is a call and not a store, because the waiting thread may stop waiting
        // before the flush ends. The flush holds a reference to the word, and the call drops it.
        flush.on_complete = Completion {
            kind: CALL,
            call: flush_has_ended as *const c_void,
            target: Arc::into_raw(word.clone()).cast_mut().cast(),
            ..Completion::NOTHING
        };
        // SAFETY: the flush keeps the word by its reference.
        match unsafe { self.lane.put(&flush, &[]) } {
            Ok(asleep) => self.lane.wake_executor(asleep),
            Err(_) => {
                // SAFETY: the reference for the flush, which was not accepted.
                drop(unsafe { Arc::from_raw(flush.on_complete.target.cast::<AtomicU64>()) });
                return None;
            }
        }
        Some(word)
    }

    /// Like `flush`, but always through the queue. When it returns, a thread that had the role
    /// before has given it up.
    #[inline(never)]
    pub(super) fn flush_with_role(self, peer: u32) -> Result<()> {
        let ended = AtomicU64::new(0);
        let mut flush = Command::new(Op::FLUSH, peer);
        flush.on_complete = Completion::store_on(&ended);
        // SAFETY: this function returns after the flush has set the word.
        let asleep = self.until_accepted(|| unsafe { self.lane.put(&flush, &[]) })?;
        self.lane.wake_executor(asleep);
        self.until_set(&ended);
        self.flush_messages(peer, None);
        Ok(())
    }

    /// Waits until those messages have ended that were sent before and have a completion or a
    /// reply. False: the deadline has passed.
    #[inline(never)]
    fn flush_messages(self, peer: u32, deadline: Option<Instant>) -> bool {
        let tags = self.dispatcher.waiting(|to| peer == ALL_PEERS || peer == to);
        tags.into_iter()
            .all(|tag| self.until_or(Awaited::ANYTHING, deadline, || !self.dispatcher.waits(tag)))
    }
}

/// The callback of the flush in begin_flush().
unsafe extern "C-unwind" fn flush_has_ended(word: *mut c_void, _: Status) {
    // SAFETY: begin_flush() has given this reference to the flush, which ends once.
    let word = unsafe { Arc::from_raw(word.cast_const().cast::<AtomicU64>()) };
    // Release: a thread that sees the word sees the effects of the operations.
    word.store(1, Ordering::Release);
}

/// None: the attempt was refused with a "try again" status.
pub(super) fn accepted<T>(end: Result<T>) -> Option<Result<T>> {
    match end {
        Err(error) if error.status.is_retry() => None,
        end => Some(end),
    }
}
