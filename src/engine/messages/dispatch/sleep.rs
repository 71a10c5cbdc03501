//! How threads sleep that look after messages: the two of the library, and, with polled handlers,
//! those of the program.

use super::{Dispatcher, HandlerMode, NAP, Requests};
use crate::transport::waiters::Awaited;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// With parallel handlers: how long a thread of the program sleeps at most. The library's own
/// thread may be in a handler that waits for what the next message brings, and nobody rings for
/// that one.
const PARALLEL: Duration = Duration::from_millis(10);
/// With polled handlers: how long a thread sleeps at most while another one holds the role of
/// requests. That one may be in a long handler, or may leave without a look at what has come.
const BUSY: Duration = Duration::from_millis(1);

impl Requests {
    /// See MessageReceiver::arm().
    fn arm(&mut self, longest: Duration) -> Option<Duration> {
        self.message_receiver.arm(longest, Some(&mut self.responses))
    }
}

impl Dispatcher {
    /// Whether another thread has helped since `seen`, which is brought up to date.
    fn has_visitors(&self, seen: &mut u64) -> bool {
        let now = self.visits.load(Ordering::Relaxed);
        std::mem::replace(seen, now) != now
    }

    /// Whether the thread that runs handlers should nap because others have helped since `seen`.
    pub fn nap_for_visitors(&self, seen: &mut u64) -> bool {
        let visitors = self.has_visitors(seen);
        if visitors {
            self.naps[0].store(true, Ordering::SeqCst);
        }
        visitors
    }

    /// Prepares the sleep of the thread that runs handlers, of at most `longest`; the ticket of its
    /// bell was read before. How long it may sleep.
    pub fn park_handling(&self, seen: &mut u64, longest: Duration) -> Duration {
        if self.has_visitors(seen) {
            self.naps[0].store(true, Ordering::SeqCst);
            return NAP;
        }
        let Some(mut requests) = self.requests.take_unfenced() else { return NAP };
        // Under the role: a handler that has just run may have left a response behind.
        let all_ring = self.post.wish_for_slots();
        // What has come already is not slept over; what is just coming may be long in coming.
        let Some(longest) = requests.arm(longest) else {
            return if requests.has_come_anywhere() { Duration::ZERO } else { NAP };
        };
        drop(requests);
        self.time_without(longest, all_ring)
    }

    /// How long a thread may sleep that has wished for slots and executed the fence of arm(), where
    /// `all_ring` that it asked.
    fn time_without(&self, longest: Duration, all_ring: bool) -> Duration {
        match () {
            () if self.post.send_parked() > 0 => Duration::ZERO,
            () if all_ring || !self.post.parked.any() => longest,
            () => NAP.min(longest),
        }
    }

    /// It is awake again.
    pub fn unpark_handling(&self) {
        self.naps[0].store(false, Ordering::Relaxed);
        self.post.routes.fabric().own_words().requests.open();
    }

    /// Like `park_handling`, for the progress thread, which takes replies in.
    pub fn park_progress(&self, seen: &mut u64, longest: Duration) -> Duration {
        if self.post.owes() {
            self.post.pay();
        }
        let longest = if self.post.owes() { NAP.min(longest) } else { longest };
        if !self.post.pending.is_used() {
            return longest;
        }
        if self.has_visitors(seen) {
            self.naps[1].store(true, Ordering::SeqCst);
            return NAP;
        }
        let armed = self
            .replies
            .take_unfenced()
            .and_then(|mut message_receiver| message_receiver.arm(longest, None));
        armed.unwrap_or(NAP)
    }

    /// It is awake again.
    pub fn unpark_progress(&self) {
        if self.post.pending.is_used() {
            self.naps[1].store(false, Ordering::Relaxed);
            self.post.routes.fabric().own_words().replies.open();
        }
    }

    /// A thread that has helped falls asleep: threads that nap because of it look again.
    pub fn hand_over(&self) {
        if self.naps[0].load(Ordering::Relaxed) {
            self.post.routes.fabric().own_words().requests.bell().ring();
        }
        if self.naps[1].load(Ordering::Relaxed) {
            self.post.routes.bell().ring();
        }
    }
}

/// What a thread of the program may do that has nothing to wait for but messages.
enum Parked {
    /// Sleep: the door is closed, a sender rings.
    Yes(Duration),
    /// Nap: somebody else takes messages, or holds the role.
    Nap(Duration),
    /// Look again.
    No,
}

impl Dispatcher {
    /// Sleeps until `enough`, until the awaited word may have changed, or, with polled handlers,
    /// until a message has come. True: look again at once.
    pub fn sleep(
        &self,
        awaited: &[Awaited],
        limit: Option<Duration>,
        enough: impl Fn() -> bool,
    ) -> bool {
        self.hand_over();
        let routes = &self.post.routes;
        let within = |longest: Duration| Some(limit.map_or(longest, |limit| limit.min(longest)));
        match self.mode {
            _ if !self.has_handlers.load(Ordering::Relaxed) => {
                return routes.sleep(awaited, limit, enough);
            }
            HandlerMode::Serial => return routes.sleep(awaited, limit, enough),
            HandlerMode::Parallel => return routes.sleep(awaited, within(PARALLEL), enough),
            HandlerMode::Polled => {}
        }
        match self.park_polling() {
            Parked::No => true,
            Parked::Nap(longest) => routes.sleep(awaited, within(longest), enough),
            Parked::Yes(longest) => {
                // The sleeper is known to the waiters before this look, and a sender that knocks
                // before it has opened the door; one that knocks later rings, and `llcl-handlers`
                // wakes all sleepers.
                let door = &routes.fabric().own_words().requests;
                // Nor is a ring lost that came before.
                let sent = || self.post.send_parked() > 0;
                let woken = routes
                    .sleep(awaited, within(longest), || enough() || !door.is_closed() || sent());
                self.unpark_polling();
                woken
            }
        }
    }

    /// Closes the door of requests for the calling thread, if that can be done.
    fn park_polling(&self) -> Parked {
        /// Longer than any sleep of the waiters.
        const LONGEST: Duration = Duration::from_secs(1);
        if self.others_handle() {
            return Parked::Nap(NAP);
        }
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut requests) = self.requests.take_unfenced() else { return Parked::Nap(BUSY) };
        // Under the role: a handler that has just run on another thread may have left a response
        // behind, whose ring came before this thread is known to sleep.
        let all_ring = self.post.wish_for_slots();
        let armed = requests.arm(LONGEST);
        let come = armed.is_none() && requests.has_come_anywhere();
        drop(requests);
        match armed {
            Some(longest) => {
                *parked += 1;
                Parked::Yes(self.time_without(longest, all_ring))
            }
            None => {
                // arm() has opened the door again, on which others may rely.
                let others = *parked > 0;
                drop(parked);
                if others {
                    self.post.routes.waiters().touched_anything();
                }
                // What is begun and not there may be long in coming.
                if come { Parked::No } else { Parked::Nap(NAP) }
            }
        }
    }

    /// The calling thread, which park_polling() let sleep, is awake. The last one opens the door.
    fn unpark_polling(&self) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        *parked -= 1;
        if *parked == 0 {
            self.post.routes.fabric().own_words().requests.open();
        }
    }
}
