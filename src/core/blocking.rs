//! How a thread waits for the lane: awake at first, working for it meanwhile; then asleep.

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

/// What a thread needs that waits for the library's own words.
#[derive(Clone, Copy)]
pub(super) struct Blocking<'a> {
    pub(super) lane: &'a Lane,
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) poster: &'a Poster,
    pub(super) spin: Duration,
}

/// How long a thread sleeps between two tries of something that nobody announces.
const NAP: Duration = Duration::from_micros(100);

/// How long a waiting thread stays awake that is to do so for `spin_us`: longer where it polls a wire
/// that wakes nobody, since otherwise it depends on the naps of the polling thread.
pub(super) fn patience(spin_us: u64, routes: &Routes) -> Duration {
    /// As the longest of these naps.
    const BY_WIRE: Duration = Duration::from_millis(1);
    let spin = Duration::from_micros(spin_us);
    if routes.fabric().has_silent_wire() { spin.max(BY_WIRE) } else { spin }
}

impl<'a> Blocking<'a> {
    /// Works for a burst of looks, until `done`: for the lane, and for active messages where
    /// there are some. `backoff` begins anew when messages were handled.
    pub(super) fn help_until(self, backoff: &mut Backoff, done: impl Fn() -> bool) -> bool {
        if self.poster.has_parked() {
            self.poster.post_parked();
        }
        if core_is_shared() || self.lane.routes().fabric().has_silent_wire() {
            // A burst would only keep those waiting that are to bring what is waited for; and it
            // does not look where a wire brings it.
            if !done() && self.help_others() {
                backoff.renew();
            }
            return done();
        }
        if !self.dispatcher.is_in_use() || !self.may_handle() {
            return self.lane.help_until(done);
        }
        if self.dispatcher.help_until(&done) > 0 {
            backoff.renew();
        }
        if done() {
            return true;
        }
        // The lane gets a single round: what it brings is rarely waited for by a program that uses
        // messages, and it takes as long as an answer.
        self.lane.help_others();
        done()
    }

    /// Works for a moment for whatever there is to do. True: something was done.
    pub(super) fn help_others(self) -> bool {
        let posted = self.poster.has_parked() && self.poster.post_parked() > 0;
        let handled = self.may_handle() && self.dispatcher.help() > 0;
        self.lane.help_others() || handled || posted
    }

    /// Whether a thread of the program runs handlers: in offload mode only where nobody else does.
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

    /// Waits for a completion word, which is set in any case.
    #[inline]
    pub(super) fn until_set(self, word: &AtomicU64) {
        // Acquire: pairs with the Release of the completion.
        let done = || word.load(Ordering::Acquire) != 0;
        if !done() {
            self.until(Awaited::private(word.as_ptr()), done);
        }
    }

    /// Waits until `done`, which what is awaited announces.
    #[inline(never)]
    pub(super) fn until(self, awaited: Awaited, done: impl Fn() -> bool + Copy) {
        self.until_or(awaited, None, done);
    }

    /// Like `until`, but no longer than the deadline. False: it has passed.
    pub(super) fn until_or(
        self,
        awaited: Awaited,
        deadline: Option<Instant>,
        done: impl Fn() -> bool + Copy,
    ) -> bool {
        let mut backoff = Backoff::new(self.spin);
        while !self.help_until(&mut backoff, done) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return done();
            }
            if !backoff.pause() && self.sleep(awaited, left, done) {
                backoff.renew();
            }
        }
        true
    }

    /// Works or pauses between two tries of something that nobody announces. False: the deadline
    /// has passed.
    pub(super) fn pause_or(self, backoff: &mut Backoff, deadline: Option<Instant>) -> bool {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return false;
        }
        if self.help_others() {
            backoff.renew();
        } else if !backoff.pause() {
            std::thread::sleep(NAP);
        }
        true
    }

    /// Tries until the answer is not "try again". Between two tries it executes commands of this
    /// context.
    pub(super) fn until_accepted<T>(self, attempt: impl Fn() -> Result<T>) -> Result<T> {
        let mut backoff = Backoff::new(self.spin);
        let routes = self.lane.routes();
        loop {
            let contacts = routes.contacts();
            match attempt() {
                Err(error) if error.status == Status::RETRY_QUEUE_FULL => {
                    let room = self.lane.room();
                    if room.wait_for_turn() || self.lane.drain() {
                        continue;
                    }
                    if let Some(end) = room.wait(|| accepted(attempt())) {
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
        }
    }

    /// The port to a peer; waits until it was contacted. `open` says why the caller must not go on.
    pub(super) fn port(self, peer: u32, open: impl Fn() -> Result<()>) -> Result<&'a Port> {
        self.until_accepted(|| {
            open()?;
            self.lane.routes().port(peer)
        })
    }

    /// Contacts all these peers at the same time and waits until each was contacted, or has failed;
    /// then answers the first failure.
    pub(super) fn connect(
        self,
        peers: impl Iterator<Item = u32> + Clone,
        open: impl Fn() -> Result<()>,
    ) -> Result<()> {
        for peer in peers.clone() {
            // What an earlier contact failed of does not count.
            let _ = self.lane.routes().port(peer);
        }
        let mut end = Ok(());
        for peer in peers {
            let port = self.port(peer, &open).map(drop);
            end = end.and(port);
        }
        end
    }

    /// Waits until everything accepted before, for one peer or for ALL_PEERS, has ended.
    #[inline]
    pub(super) fn flush(self, peer: u32) -> Result<()> {
        self.until_posted(peer);
        if !self.lane.has_ended() {
            return self.flush_with_role(peer);
        }
        // What this thread has stored into peers' memory comes before whatever it reads next.
        fence(Ordering::SeqCst);
        if self.dispatcher.awaits_ends() {
            self.flush_messages(peer, None);
        }
        Ok(())
    }

    /// Waits until what was parked before for the peer, or for ALL_PEERS, was posted.
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

    /// A word that becomes non-zero when all that the lane has now for the peer, or for ALL_PEERS,
    /// has ended. None: its queue is full.
    pub(super) fn begin_flush(self, peer: u32) -> Option<Arc<AtomicU64>> {
        let word = Arc::new(AtomicU64::new(0));
        let mut flush = Command::new(Op::FLUSH, peer);
        // A call and not a store: the waiting thread may leave earlier, and the word stays for the
        // flush.
        flush.on_complete = Completion {
            kind: CALL,
            call: flush_has_ended as *const c_void,
            target: Arc::into_raw(word.clone()).cast_mut().cast(),
            ..Completion::NOTHING
        };
        match self.lane.put(&flush, &[]) {
            Ok(asleep) => self.lane.wake_executor(asleep),
            Err(_) => {
                // SAFETY: the share that the flush would have had; it was not accepted.
                drop(unsafe { Arc::from_raw(flush.on_complete.target.cast::<AtomicU64>()) });
                return None;
            }
        }
        Some(word)
    }

    /// Like `flush`, through the queue, whether or not something is under way: a thread that had
    /// the role before has given it up.
    #[inline(never)]
    pub(super) fn flush_with_role(self, peer: u32) -> Result<()> {
        let ended = AtomicU64::new(0);
        let mut flush = Command::new(Op::FLUSH, peer);
        flush.on_complete = Completion::store_on(&ended);
        let asleep = self.until_accepted(|| self.lane.put(&flush, &[]))?;
        self.lane.wake_executor(asleep);
        self.until_set(&ended);
        self.flush_messages(peer, None);
        Ok(())
    }

    /// Waits for the ends of messages that were sent before, as far as a sender waits for them.
    /// False: the deadline has passed.
    #[inline(never)]
    fn flush_messages(self, peer: u32, deadline: Option<Instant>) -> bool {
        let tags = self.dispatcher.waiting(|to| peer == ALL_PEERS || peer == to);
        tags.into_iter()
            .all(|tag| self.until_or(Awaited::ANYTHING, deadline, || !self.dispatcher.waits(tag)))
    }
}

/// The callback of the flush in begin_flush().
unsafe extern "C-unwind" fn flush_has_ended(word: *mut c_void, _: Status) {
    // SAFETY: begin_flush() has given this share of the word to the flush, which ends once.
    let word = unsafe { Arc::from_raw(word.cast_const().cast::<AtomicU64>()) };
    // Release: what the operations have done is seen by every thread that sees the word.
    word.store(1, Ordering::Release);
}

/// None: try again.
pub(super) fn accepted<T>(end: Result<T>) -> Option<Result<T>> {
    match end {
        Err(error) if error.status.is_retry() => None,
        end => Some(end),
    }
}
