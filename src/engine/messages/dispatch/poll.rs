//! Polls: how threads of the program run handlers.
//!
//! A poll that finds nothing reads the marks at which the receiver stands, writes nothing that
//! threads share and takes no role. So it costs some nanoseconds, and a thread that is preempted in
//! it stops nobody. A thread that is preempted while it runs a handler holds the role; others that
//! see a message and find the role taken offer their cores, so that it runs again soon.

use super::{BATCH, Dispatcher, LOOKS, MOST};
use crate::engine::completion::{
    in_callback, is_librarys, polled_in_vain, polled_in_vain_again, polled_with_result,
};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of so many empty polls one looks at all shares; the others look at those of the last messages.
const ASKEW: u32 = 8;
/// Polls without result after which a thread does, under the roles, what is due when nothing comes:
/// it skips what dead senders have begun, and wakes senders that sleep for credit.
const EMPTY: u32 = 128;
/// Looks under the role that it then takes: enough to notice that nothing comes.
const UNDER_ROLE: usize = 33;
/// Polls without result after which it offers its core: another thread may have what this one waits
/// for.
const YIELD: u32 = 8 * EMPTY;
/// Polls that found the role taken, and a message waiting, after which it offers its core.
const TAKEN: u32 = 16;

/// Of how many contexts a thread remembers its polls. Of one that it has forgotten it takes all
/// handlers for new.
const CONTEXTS: usize = 16;

/// What a thread knows of its polls of one context.
#[derive(Clone, Copy, Default)]
pub(super) struct Polls {
    /// Names the dispatcher.
    of: u64,
    /// Polls that found the role taken since the last one that offered its core for it.
    taken: u32,
    /// Handlers that this thread has run.
    ran: u64,
    /// When others_handle() was asked last: handlers that had run, and those of this thread.
    seen: (u64, u64),
    /// How many handlers had run when knows_handled() was called last.
    known: u64,
}

thread_local! {
    /// The one that was used last comes first.
    static POLLS: RefCell<Vec<Polls>> = const { RefCell::new(Vec::new()) };
}

/// A name that no other dispatcher of the process has or had.
pub(super) fn new_name() -> u64 {
    static NAMES: AtomicU64 = AtomicU64::new(1);
    NAMES.fetch_add(1, Ordering::Relaxed)
}

impl Polls {
    /// Has `change` work on what the calling thread knows of a dispatcher; a thread that is ending
    /// knows nothing.
    fn of<T>(dispatcher: &Dispatcher, change: impl Fn(&mut Polls) -> T) -> T {
        let found = POLLS.try_with(|all| {
            let mut all = all.borrow_mut();
            if all.first().is_none_or(|polls| polls.of != dispatcher.name) {
                Polls::bring_to_front(&mut all, dispatcher.name);
            }
            all.first_mut().map(&change)
        });
        found.ok().flatten().unwrap_or_else(|| change(&mut Polls::default()))
    }

    #[cold]
    fn bring_to_front(all: &mut Vec<Polls>, of: u64) {
        let found = all.iter().position(|polls| polls.of == of).map(|at| all.remove(at));
        all.truncate(CONTEXTS - 1);
        all.insert(0, found.unwrap_or(Polls { of, ..Polls::default() }));
    }
}

impl Dispatcher {
    /// A poll without result: nothing has come to where the last messages came from, and nothing
    /// else is due. False: finds_nothing_anywhere() must be called.
    #[inline(always)]
    pub fn finds_nothing(&self) -> bool {
        !self.next_has_come() && polled_in_vain_again(|number| !number.is_multiple_of(ASKEW))
    }

    /// Likewise, wherever something may have come. False: poll() must be called.
    #[inline(always)]
    pub fn finds_nothing_anywhere(&self) -> bool {
        !self.something_has_come() && polled_in_vain_again(|number| !number.is_multiple_of(EMPTY))
    }

    /// Runs up to `most` handlers of what has come, if nobody else does; returns how many messages
    /// were taken. Not to be called in a callback. The caller calls notify_sleepers() before it
    /// turns to anything else.
    #[inline]
    pub fn poll(&self, most: usize) -> usize {
        self.poll_and_know(most, false)
    }

    /// Like `poll`; with `know` the calling thread then knows of all handlers that have run, see
    /// known_handled().
    #[inline]
    pub fn poll_and_know(&self, most: usize, know: bool) -> usize {
        let most = most.min(BATCH);
        let found = match self.something_has_come() {
            true => self.take_up_to(most, know),
            false => 0,
        };
        if found > 0 {
            polled_with_result();
            return found;
        }
        match polled_in_vain() {
            empty if empty.is_multiple_of(EMPTY) => self.look_around(empty, most),
            _ => 0,
        }
    }

    /// Whether a poll has something to do, as far as a look tells at the shares from which the
    /// last messages were taken.
    #[inline(always)]
    fn next_has_come(&self) -> bool {
        let [requests, replies, responses] = &self.lookouts;
        requests.next_has_come()
            || responses.next_has_come()
            || !self.offload && replies.next_has_come()
            || self.post.parked.any()
    }

    /// Whether a poll has something to do, as far as a look tells.
    #[inline(always)]
    fn something_has_come(&self) -> bool {
        let [requests, replies, responses] = &self.lookouts;
        requests.next_has_come()
            || requests.has_come()
            || responses.has_come()
            || !self.offload && replies.has_come()
            || self.post.parked.any()
    }

    #[inline(never)]
    fn take_up_to(&self, most: usize, know: bool) -> usize {
        self.end_messages();
        // Another thread may be in a handler for long.
        self.post.send_parked();
        let handled = &self.post.counts.handled;
        match self.requests_to_serve() {
            Some(requests) => {
                let before = handled.get();
                let count = self.serve(requests, most, &|| false);
                let ran = handled.get().wrapping_sub(before).min(count as u64);
                let total = self.handled();
                Polls::of(self, |polls| {
                    polls.ran = polls.ran.wrapping_add(ran);
                    if know {
                        polls.known = total;
                    }
                });
                count
            }
            None => {
                let again = Polls::of(self, |polls| {
                    polls.taken = (polls.taken + 1) % TAKEN;
                    polls.taken == 0
                });
                if again {
                    std::thread::yield_now();
                }
                0
            }
        }
    }

    /// Takes replies in, where that is for threads of the program.
    fn end_messages(&self) {
        if !self.offload {
            self.poll_replies();
        }
    }

    /// See EMPTY and YIELD.
    #[cold]
    fn look_around(&self, empty: u32, most: usize) -> usize {
        if empty.is_multiple_of(YIELD) {
            std::thread::yield_now();
        }
        self.end_messages();
        let Some(mut requests) = self.requests_to_serve() else { return 0 };
        if (0..UNDER_ROLE).any(|_| requests.has_come()) {
            return self.serve(requests, most, &|| false);
        }
        0
    }

    /// Polls until `done`, for a burst of looks without result; returns how many messages it has
    /// handled.
    pub(super) fn poll_until(&self, done: impl Fn() -> bool) -> usize {
        let (mut looks, mut handled) = (0, 0);
        while looks < LOOKS && handled < MOST && !done() {
            match self.poll(BATCH) {
                0 => {
                    looks += 1;
                    std::hint::spin_loop();
                }
                found => (looks, handled) = (0, handled + found),
            }
        }
        self.notify_sleepers();
        handled
    }

    /// Whether other threads have run handlers since the calling one asked last.
    pub(super) fn others_handle(&self) -> bool {
        let total = self.post.counts.handled.get();
        Polls::of(self, |polls| {
            let (before, own) = std::mem::replace(&mut polls.seen, (total, polls.ran));
            total.wrapping_sub(before) > polls.ran.wrapping_sub(own)
        })
    }

    /// How many handlers had run when the calling thread was told last, by knows_handled(): 0 where
    /// it was not.
    pub fn known_handled(&self) -> u64 {
        Polls::of(self, |polls| polls.known)
    }

    /// How many handlers have run, of which the calling thread now knows.
    pub fn knows_handled(&self) -> u64 {
        let count = self.handled();
        Polls::of(self, |polls| polls.known = count);
        count
    }

    /// How many handlers have run; what they have done is seen by the caller.
    #[inline]
    pub fn handled(&self) -> u64 {
        self.post.counts.handled.get_done()
    }

    /// Whether the calling thread may run handlers now.
    pub fn may_poll(&self) -> bool {
        self.has_handlers.load(Ordering::Relaxed) && !in_callback() && !is_librarys()
    }
}
