//! The calls on messages that wait or poll.

use super::timed::Call;
use super::{Parameters, Send};
use crate::core::blocking::accepted;
use crate::core::context::Context;
use crate::core::submit::{Accepted, FLAG_DEFER, FLAG_PARK, check_flags, must_be_nothing};
use crate::engine::lane::Execution;
use crate::engine::messages::deferred::MOST;
pub use crate::engine::messages::dispatch::Look;
use crate::engine::messages::{LONG, MEDIUM};
use crate::transport::carrier::Sleeper;
use crate::transport::frame::Class;
use crate::transport::memory::message_sender::{MessageSender, Watched};
use crate::transport::waiters::Awaited;
use crate::util::backoff::{Backoff, core_is_shared};
use crate::util::status::{Error, Result, Status};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a thread sleeps at most until there is room for its message. Many other threads can
/// post meanwhile.
const LONGEST: Duration = Duration::from_millis(50);

impl Context {
    /// What a poll sees where the last messages came. In a callback never Look::Nothing: the long
    /// path reports the error.
    #[inline(always)]
    pub fn am_look(&self) -> Look {
        match self.routes.gate().is_open() {
            true => self.dispatcher.look(self.routes.fabric().has_silent_wire()),
            false => Look::Further,
        }
    }

    /// Whether a poll finds no message in any place where messages arrive, and has nothing else to
    /// do. It is false in a callback, too, and where am_poll() polls a wire.
    #[inline(always)]
    pub fn am_poll_finds_nothing_anywhere(&self) -> bool {
        self.routes.gate().is_open()
            && !self.routes.fabric().has_silent_wire()
            && self.dispatcher.finds_nothing_anywhere()
    }

    /// am_poll() for a thread that has got Look::Come. None: no handler has run, and the caller
    /// must call am_poll().
    #[inline(always)]
    pub fn am_poll_one(&self, most: usize) -> Option<usize> {
        let handled = self.dispatcher.poll_one(most, true, &|| false);
        if handled.is_some() {
            self.dispatcher.notify_sleepers();
        }
        handled
    }

    /// Handles up to `most` messages; returns how many. Without a message where the last ones came
    /// it polls a wire that wakes no thread: the calling thread and the wire's polling thread would
    /// otherwise need each other's core for each message. After a poll of the wire that has found
    /// something, the end of a send included, the thread's next polls ask it, too, unless the core
    /// is shared; else one of eight does.
    #[inline(never)]
    pub fn am_poll(&self, most: usize) -> Result<usize> {
        self.may_block()?;
        let silent = self.routes.fabric().has_silent_wire();
        let polled = silent && !self.dispatcher.next_has_come();
        let ask = || {
            let (found, worked) = self.lane.help_and_tell();
            // On a shared core a poll of the wire would delay the thread for which this one waits.
            self.dispatcher.note_network_poll(found && !core_is_shared());
            found || worked
        };
        if polled {
            ask();
        }
        let mut handled = self.dispatcher.poll_and_note(most);
        if handled == 0 && silent && !polled && ask() {
            handled = self.dispatcher.poll_and_note(most);
        }
        if handled > 0 {
            self.dispatcher.notify_sleepers();
        }
        Ok(handled)
    }

    /// Waits until handlers have run since the calling thread's last wait or poll, for `timeout` at
    /// most; None: without limit.
    pub fn am_wait(&self, timeout: Option<Duration>) -> Result<()> {
        self.wait_any(&[], true, timeout).map(drop)
    }

    /// Tries until the message is accepted, running handlers meanwhile.
    pub fn am_until_accepted(&self, send: &Send) -> Result<()> {
        self.may_block_to_post()?;
        let mut backoff = Backoff::new(self.blocking().spin);
        loop {
            match self.am_try(send) {
                Err(error)
                    if error.status == Status::RETRY_NO_CREDIT && self.lane_is_full(send, None) => {
                }
                Err(error)
                    if error.status == Status::RETRY_NO_CREDIT
                        && self.await_room_at_wire(send, &mut backoff, LONGEST) => {}
                Err(error)
                    if error.status == Status::RETRY_NO_CREDIT
                        && self.may_sleep_for_credit(send) =>
                {
                    if let Some(end) = self.await_credit(send) {
                        return end;
                    }
                }
                Err(error) if error.status == Status::RETRY_NO_CREDIT => {
                    // The thread may not sleep here, so it runs handlers between two attempts.
                    let refused = (self.routes.contacts(), Err(error));
                    return self.blocking().until_accepted_after(refused, || self.am_try(send));
                }
                Err(error) if error.status.is_retry() => {
                    // If the next attempt lacks credit, the loop above waits for the credit.
                    let attempt = || match self.am_try(send) {
                        Err(error) if error.status == Status::RETRY_NO_CREDIT => Ok(false),
                        end => end.map(|()| true),
                    };
                    if self.blocking().until_accepted(attempt)? {
                        return Ok(());
                    }
                }
                end => return end,
            }
        }
    }

    /// Whether the lane sends this message.
    fn lane_sends(&self, send: &Send) -> bool {
        send.flags & FLAG_DEFER != 0 || self.lane.execution() == Execution::Offload
    }

    /// If the lane would send this message, or write its payload, and already holds as many
    /// messages to the peer as it may: waits until it holds fewer. False: the message was refused
    /// for another reason, or the deadline has passed.
    fn lane_is_full(&self, send: &Send, deadline: Option<Instant>) -> bool {
        let for_lane = send.kind == LONG || self.lane_sends(send);
        let message_sender = self.routes.fabric().known_sender(send.peer);
        let Some(deferred) =
            message_sender.filter(|_| for_lane).map(|message_sender| &message_sender.deferred)
        else {
            return false;
        };
        let full = || deferred.load(Ordering::Relaxed) >= MOST;
        full()
            && self.blocking().until_or(Awaited::private(deferred.as_ptr()), deadline, || !full())
    }

    /// Waits until there may be room for a message to a peer behind a wire, or for a limited time.
    /// False: there is no time left, or nobody would wake this thread.
    fn await_room_at_wire(&self, send: &Send, backoff: &mut Backoff, longest: Duration) -> bool {
        let fabric = self.routes.fabric();
        let Some(to) = fabric.known_sender(send.peer) else { return false };
        let asks = || fabric.ask_wake(to, Class::Requests, send.bytes(), Sleeper::Program);
        // The lane had no place for its message, and may have one now.
        let sleeps = !longest.is_zero() && !self.lane_sends(send);
        if !sleeps || fabric.frees_wake(send.peer) || !asks() {
            return false;
        }
        if self.blocking().help_others() {
            backoff.renew();
        } else if !backoff.pause() {
            self.post.counts.credit_sleeps.up();
            // Another thread may have taken the room of the question above.
            let enough = || !asks() || fabric.has_credit(to, Class::Requests, send.bytes());
            self.blocking().sleep(fabric.room_at_wire(), Some(longest), enough);
        }
        true
    }

    /// Whether a thread may sleep until the peer has free slots: another thread must run this
    /// rank's handlers meanwhile, and a freed slot must wake the sleeper, which slots for large
    /// payloads do not.
    fn may_sleep_for_credit(&self, send: &Send) -> bool {
        let medium = self.routes.fabric().known_sender(send.peer).map_or(0, MessageSender::medium);
        !self.dispatcher.is_polled()
            && !self.routes.fabric().must_poll_here()
            && self.routes.fabric().frees_wake(send.peer)
            && (send.kind != MEDIUM || send.payload_size <= medium)
    }

    /// Waits until the peer has free slots, or for a limited time. Some: the message was accepted,
    /// or has failed.
    fn await_credit(&self, send: &Send) -> Option<Result<()>> {
        /// How long a thread sleeps at most while another thread of this process waits for the same
        /// peer's slots. A posting thread wakes the next one when it has used its share; but
        /// perhaps no thread posts any more.
        const IN_LINE: Duration = Duration::from_millis(5);
        let message_sender = self.routes.fabric().known_sender(send.peer)?;
        if message_sender.room.wait_for_turn() || self.blocking().help_others() {
            return None;
        }
        let attempt = || accepted(self.poster.am_submit(send));
        let before_sleep = || {
            self.post.counts.credit_sleeps.up();
            self.dispatcher.wake_napping_threads();
        };
        match message_sender.watch(LONGEST, attempt, before_sleep) {
            Watched::Accepted(end) => Some(end),
            Watched::Over => None,
            Watched::ByAnother => message_sender.room.wait_asleep(IN_LINE, attempt),
        }
    }

    /// Like `am_and_wait`, but not for longer than `timeout`; None: for ever.
    pub fn am_within(&self, send: &Send, timeout: Option<Duration>) -> Result<()> {
        self.may_block_to_post()?;
        must_be_nothing([&send.on_local, &send.on_complete])?;
        check_flags(send.flags, FLAG_DEFER | FLAG_PARK)?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let blocking = self.blocking();
        let call = Call::new(send.reply_capacity, self.routes.fabric().own_medium())?;
        let send = Send(Parameters { flags: send.flags & FLAG_DEFER, ..**send });
        let own = call.in_place_of(&send);
        let mut backoff = Backoff::new(blocking.spin);
        let left = || match deadline {
            Some(deadline) => LONGEST.min(deadline.saturating_duration_since(Instant::now())),
            None => LONGEST,
        };
        loop {
            match self.am_try(&own) {
                Err(error)
                    if error.status == Status::RETRY_NO_CREDIT
                        && (self.lane_is_full(&own, deadline)
                            || self.await_room_at_wire(&own, &mut backoff, left())) => {}
                Err(error) if error.status.is_retry() => {
                    if !blocking.pause_or(&mut backoff, deadline) {
                        // SAFETY: made above, and no attempt was accepted.
                        unsafe { Call::refused(&own) };
                        return Err(Error::bare(Status::ERR_TIMEOUT));
                    }
                }
                Err(error) => {
                    // SAFETY: as above.
                    unsafe { Call::refused(&own) };
                    return Err(error);
                }
                Ok(_) => break,
            }
        }
        // Acquire: pairs with the Release in Call::ended().
        let done = || call.end.load(Ordering::Acquire) != 0;
        match blocking.until_or(Awaited::private(call.end.as_ptr().cast()), deadline, done) {
            // SAFETY: the call has ended, and the caller's places are valid.
            true => unsafe { call.give(&send) },
            false => Err(Error::bare(Status::ERR_TIMEOUT)),
        }
    }

    /// Sends the message and waits for its end.
    pub fn am_and_wait(&self, send: &Send) -> Result<()> {
        self.until_ended([&send.on_local, &send.on_complete], |ended| {
            let send = Send(Parameters { on_complete: ended, ..**send });
            let accepted = self.am_until_accepted(&send);
            accepted.map(|()| Accepted::Fires)
        })
    }
}
