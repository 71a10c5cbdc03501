//! Polls: how threads of the program run handlers.
//!
//! An empty poll reads the marks of the slots that the receivers read next. It takes no role and
//! writes to no shared memory. So it costs some nanoseconds, and a thread that is preempted in it
//! delays no other thread. A thread that is preempted in a handler holds the role; other threads
//! that see a message and find the role taken yield their cores, so that the holder runs again.

use super::{BATCH, Dispatcher, LOOKS, MOST};
use crate::engine::completion::{
    count_empty_poll, count_empty_poll_if, in_callback, is_library_thread, reset_empty_polls,
};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// One of so many empty polls looks at all shares. The others look only at the shares of the last
/// messages.
const ALL_SHARES: u32 = 8;
/// Empty polls after which a thread takes the roles and does the work that is due when no message
/// comes: skips tickets of dead senders, and wakes senders that sleep for credit.
const EMPTY: u32 = 128;
/// Looks under the role after EMPTY polls: as many as the receiver needs to do that work.
const UNDER_ROLE: usize = 33;
/// Empty polls after which a thread yields its core: a thread for which it waits may need the core.
const YIELD: u32 = 8 * EMPTY;
/// Polls that found a message and the role taken, after which a thread yields its core.
const TAKEN: u32 = 16;

/// The number of contexts of whose polls a thread keeps the state. For a context whose state it has
/// dropped, it counts all handlers as run by other threads.
const CONTEXTS: usize = 16;

/// The state of a thread's polls of one context.
#[derive(Clone, Copy, Default)]
pub(super) struct Polls {
    /// The dispatcher's `name`.
    of: u64,
    /// Polls that found the role taken since the last one that yielded the core for this reason.
    taken: u32,
    /// The number of handlers that this thread has run.
    ran: u64,
    /// At the last call of others_handle(): the handlers that all threads had run, and `ran`.
    seen: (u64, u64),
    /// The handlers that all threads had run, when this thread last called note_handled().
    noted: u64,
}

thread_local! {
    /// The context used last comes first.
    static POLLS: RefCell<Vec<Polls>> = const { RefCell::new(Vec::new()) };
}

/// A number that no other dispatcher of the process has or had.
pub(super) fn new_name() -> u64 {
    static NAMES: AtomicU64 = AtomicU64::new(1);
    NAMES.fetch_add(1, Ordering::Relaxed)
}

impl Polls {
    /// Calls `change` with the calling thread's Polls of a dispatcher; with a default value if the
    /// thread is ending.
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
    /// The shortest poll. True: no message has come to the shares of the last messages, and nothing
    /// else is due. False: the caller must call finds_nothing_anywhere().
    #[inline(always)]
    pub fn finds_nothing(&self) -> bool {
        !self.next_has_come() && count_empty_poll_if(|number| !number.is_multiple_of(ALL_SHARES))
    }

    /// True: no message has come to any share, and nothing else is due. False: the caller must call
    /// poll().
    #[inline(always)]
    pub fn finds_nothing_anywhere(&self) -> bool {
        !self.something_has_come() && count_empty_poll_if(|number| !number.is_multiple_of(EMPTY))
    }

    /// Runs up to `most` handlers, if the role is free; returns the number of messages. Must not be
    /// called inside a callback. The caller calls notify_sleepers() next.
    #[inline]
    pub fn poll(&self, most: usize) -> usize {
        self.poll_and_note(most, false)
    }

    /// Like `poll`. With `note` it also notes the number of handlers that have run, for
    /// noted_handled().
    #[inline]
    pub fn poll_and_note(&self, most: usize, note: bool) -> usize {
        let most = most.min(BATCH);
        let found = match self.something_has_come() {
            true => self.take_up_to(most, note),
            false => 0,
        };
        if found > 0 {
            reset_empty_polls();
            return found;
        }
        match count_empty_poll() {
            empty if empty.is_multiple_of(EMPTY) => self.look_around(empty, most),
            _ => 0,
        }
    }

    /// Whether a message has come to a share from which the last messages were taken, or a response
    /// is parked.
    #[inline(always)]
    fn next_has_come(&self) -> bool {
        let [requests, replies, responses] = &self.hints;
        requests.next_has_come()
            || responses.next_has_come()
            || !self.offload && replies.next_has_come()
            || self.post.parked.any()
    }

    /// Whether a message has come to any share, or a response is parked.
    #[inline(always)]
    fn something_has_come(&self) -> bool {
        let [requests, replies, responses] = &self.hints;
        requests.next_has_come()
            || requests.has_come()
            || responses.has_come()
            || !self.offload && replies.has_come()
            || self.post.parked.any()
    }

    #[inline(never)]
    fn take_up_to(&self, most: usize, note: bool) -> usize {
        self.end_messages();
        // serve() does this, too. But another thread may hold the role in a long handler, so that
        // this thread does not call serve().
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
                    if note {
                        polls.noted = total;
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

    /// Takes replies, except in offload mode.
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

    /// Polls in one burst: until LOOKS polls were empty, MOST messages were handled, or `done`.
    /// Returns the number of messages.
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

    /// Whether other threads have run handlers since the calling thread last called this.
    pub(super) fn others_handle(&self) -> bool {
        let total = self.post.counts.handled.get();
        Polls::of(self, |polls| {
            let (before, own) = std::mem::replace(&mut polls.seen, (total, polls.ran));
            total.wrapping_sub(before) > polls.ran.wrapping_sub(own)
        })
    }

    /// The result of the calling thread's last note_handled(), or 0.
    pub fn noted_handled(&self) -> u64 {
        Polls::of(self, |polls| polls.noted)
    }

    /// The number of handlers that have run; notes it for noted_handled().
    pub fn note_handled(&self) -> u64 {
        let count = self.handled();
        Polls::of(self, |polls| polls.noted = count);
        count
    }

    /// The number of handlers that have run. The caller sees what they have written.
    #[inline]
    pub fn handled(&self) -> u64 {
        self.post.counts.handled.get_done()
    }

    /// Whether the calling thread may run handlers now.
    pub fn may_poll(&self) -> bool {
        self.has_handlers.load(Ordering::Relaxed) && !in_callback() && !is_library_thread()
    }
}
