//! How the threads that handle messages sleep: `llcl-handlers`, the progress thread (for replies)
//! and, with polled handlers, threads of the program.

use super::{Dispatcher, HandlerMode, NAP, Requests};
use crate::transport::waiters::Awaited;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// With parallel handlers: the longest sleep of a thread of the program. `llcl-handlers` may be in
/// a handler that waits for the next message. The wake flag is clear then, so no sender rings for
/// that message.
const PARALLEL: Duration = Duration::from_millis(10);
/// The longest sleep of a thread of the program while another one holds the role of requests. The
/// holder may be in a long handler, so that it does not send parked responses; with polled handlers
/// it may also give the role up without looking for new messages.
const BUSY: Duration = Duration::from_millis(1);

impl Requests {
    /// See MessageReceiver::arm().
    fn arm(&mut self, longest: Duration) -> Option<Duration> {
        self.message_receiver.arm(longest, Some(&mut self.responses))
    }
}

impl Dispatcher {
    /// Whether another thread has called help_until() or note_waiting(), or help() over a silent
    /// wire, since `seen`; updates `seen`.
    fn others_helped(&self, seen: &mut u64) -> bool {
        let now = self.help_calls.load(Ordering::Relaxed);
        std::mem::replace(seen, now) != now
    }

    /// Whether `llcl-handlers` should nap because other threads have helped since `seen`.
    pub fn nap_while_others_help(&self, seen: &mut u64) -> bool {
        let others_helped = self.others_helped(seen);
        if others_helped {
            self.naps[0].store(true, Ordering::SeqCst);
        }
        others_helped
    }

    /// Prepares the sleep of `llcl-handlers`, which has read the ticket of its bell before. Returns
    /// how long it may sleep, at most `longest`.
    pub fn park_handling(&self, seen: &mut u64, longest: Duration) -> Duration {
        if self.others_helped(seen) {
            self.naps[0].store(true, Ordering::SeqCst);
            return NAP;
        }
        let Some(mut requests) = self.requests.take_unfenced() else { return NAP };
        // Under the role: a handler that has just run may have parked a response.
        let all_ring = self.post.ask_wake_for_slots();
        // None: a sender has begun a message. If the message is there, this thread does not sleep.
        // If not, it naps, since the sender may take long.
        let Some(longest) = requests.arm(longest) else {
            return if requests.has_come_anywhere() { Duration::ZERO } else { NAP };
        };
        drop(requests);
        self.time_without(longest, all_ring)
    }

    /// How long a thread may sleep after ask_wake_for_slots(), which has returned `all_ring`, and
    /// after the fence of arm().
    pub(in crate::engine) fn time_without(&self, longest: Duration, all_ring: bool) -> Duration {
        match self.post.send_parked() {
            Some(0) if all_ring || !self.post.parked.any() => longest,
            // Nobody rings for a peer, or the thread that sends them may have looked before the
            // peer freed slots.
            Some(0) | None => NAP.min(longest),
            Some(_) => Duration::ZERO,
        }
    }

    /// To be called by `llcl-handlers` when it is awake again: clears the wake flag.
    pub fn unpark_handling(&self) {
        self.naps[0].store(false, Ordering::Relaxed);
        self.post.routes.fabric().own_words().requests.disarm();
    }

    /// Like `park_handling`, for the progress thread, which takes replies.
    pub fn park_progress(&self, seen: &mut u64, longest: Duration) -> Duration {
        let longest = if self.post.has_unsent_replies() { NAP.min(longest) } else { longest };
        if !self.post.pending.is_used() {
            return longest;
        }
        if self.others_helped(seen) {
            self.naps[1].store(true, Ordering::SeqCst);
            return NAP;
        }
        let Some(mut replies) = self.replies.take_unfenced() else { return NAP };
        // None: a sender has begun a reply. If the reply is there, perhaps one that was set aside,
        // this thread does not sleep. If not, it naps, since the sender may take long.
        match replies.arm(longest, None) {
            Some(longest) => longest,
            None if replies.has_come_anywhere() => Duration::ZERO,
            None => NAP,
        }
    }

    /// To be called by the progress thread when it is awake again: clears the wake flag of replies.
    pub fn unpark_progress(&self) {
        if self.post.pending.is_used() {
            self.naps[1].store(false, Ordering::Relaxed);
            self.post.routes.fabric().own_words().replies.disarm();
        }
    }

    /// To be called by a thread that has helped, before it sleeps: wakes the threads that nap
    /// because it helped, so that they look for messages again.
    pub fn wake_napping_threads(&self) {
        self.post.routes.fabric().leave_wire();
        if self.naps[0].load(Ordering::Relaxed) {
            self.post.routes.fabric().own_words().requests.bell().ring();
        }
        if self.naps[1].load(Ordering::Relaxed) {
            self.post.routes.bell().ring();
        }
    }
}

/// How a thread of the program may wait for messages.
enum Parked {
    /// By a sleep of at most this duration: the flag is armed, and a sender rings.
    Yes(Duration),
    /// By a nap: another thread handles messages, or holds the role.
    Nap(Duration),
    /// Not at all: a message has come.
    No,
}

impl Dispatcher {
    /// Sleeps until `enough`, until an awaited word may have changed, or, with polled handlers,
    /// until a message has come. True: the caller looks again at once.
    pub fn sleep(
        &self,
        awaited: &[Awaited],
        limit: Option<Duration>,
        enough: impl Fn() -> bool,
    ) -> bool {
        self.wake_napping_threads();
        let routes = &self.post.routes;
        let within = |longest: Duration| Some(limit.map_or(longest, |limit| limit.min(longest)));
        match self.mode {
            _ if !self.has_handlers.load(Ordering::Relaxed) => {
                return routes.sleep(awaited, limit, enough);
            }
            HandlerMode::Serial if self.post.parked.any() => {
                return routes.sleep(awaited, within(BUSY), enough);
            }
            // A response that is parked meanwhile ends this sleep: see AmSender::respond().
            HandlerMode::Serial => {
                let parked = || self.post.parked.any();
                return routes.sleep(awaited, limit, || enough() || parked());
            }
            HandlerMode::Parallel => return routes.sleep(awaited, within(PARALLEL), enough),
            HandlerMode::Polled => {}
        }
        match self.park_polling() {
            Parked::No => true,
            Parked::Nap(longest) => routes.sleep(awaited, within(longest), enough),
            Parked::Yes(longest) => {
                // Sleepers::sleep() lists this thread as a sleeper before it calls the closure
                // below. A sender that came before has taken the flag, which the closure sees.
                // A sender that comes later rings, and `llcl-handlers` wakes all listed sleepers.
                let flag = &routes.fabric().own_words().requests;
                // A peer may have freed slots for parked responses and rung before this thread was
                // listed, so it tries to send them once more.
                let sent = || self.post.send_parked() != Some(0);
                let woken = routes
                    .sleep(awaited, within(longest), || enough() || !flag.is_armed() || sent());
                self.unpark_polling();
                woken
            }
        }
    }

    /// Arms the flag of requests for the calling thread, if no message has come and no other
    /// thread handles messages.
    fn park_polling(&self) -> Parked {
        /// How long the flag may stay armed: longer than any single sleep.
        const LONGEST: Duration = Duration::from_secs(1);
        if self.others_handle() {
            return Parked::Nap(NAP);
        }
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut requests) = self.requests.take_unfenced() else { return Parked::Nap(BUSY) };
        // Under the role: a handler that has just run on another thread may have parked a response,
        // and rung before this thread was listed as a sleeper.
        let all_ring = self.post.ask_wake_for_slots();
        let armed = requests.arm(LONGEST);
        let come = armed.is_none() && requests.has_come_anywhere();
        drop(requests);
        match armed {
            Some(longest) => {
                *parked += 1;
                Parked::Yes(self.time_without(longest, all_ring))
            }
            None => {
                // arm() has cleared the flag again, and other sleeping threads rely on an armed
                // one: they must look for messages.
                let others = *parked > 0;
                drop(parked);
                if others {
                    self.post.routes.waiters().touched_anything();
                }
                // A message that was begun and is not there yet may take long.
                if come { Parked::No } else { Parked::Nap(NAP) }
            }
        }
    }

    /// To be called after Parked::Yes, when the thread is awake. The last such thread clears
    /// the flag.
    fn unpark_polling(&self) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        *parked -= 1;
        if *parked == 0 {
            self.post.routes.fabric().own_words().requests.disarm();
        }
    }
}
