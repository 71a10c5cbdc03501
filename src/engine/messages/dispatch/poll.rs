//! Polls: how threads of the program run handlers.
//!
//! An empty poll reads the marks of the slots that the receivers read next. It takes no role and
//! writes to no shared memory. So it costs some nanoseconds, and a thread that is preempted in it
//! delays no other thread. A poll that asks a network takes longer: see Context::am_poll(). A
//! thread that is preempted in a handler holds the role; other threads that see a message and find
//! the role taken yield their cores, so that the holder runs again.

use super::{BATCH, Dispatcher, Held, LOOKS, MOST, Requests};
use crate::engine::completion::{
    Callbacks, Polls, count_empty_poll, count_empty_poll_if, in_callback, is_library_thread,
    note_network_poll,
};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// One of so many empty polls looks at all shares. The others look only at the shares of the last
/// messages.
const ALL_SHARES: u32 = 8;
/// Polls of a network without an event after which a thread asks it in one of ALL_SHARES polls
/// only. A round trip over an MPI's shared memory takes some five polls. If more polls asked, a
/// thread on the same core would wait longer.
const NETWORK_POLLS: u32 = 8;
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

thread_local! {
    /// The states of the contexts that the thread polled before the present one, the latest first.
    static EARLIER: RefCell<Vec<Polls>> = const { RefCell::new(Vec::new()) };
}

/// What a poll sees without a role, at the shares of the last messages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// No message has come, and nothing else is due.
    Nothing,
    /// A message has come.
    Come,
    /// The poll must look at all shares, and ask the network if that wakes no thread.
    Further,
}

/// A number that no other dispatcher of the process has or had.
pub(super) fn new_name() -> u64 {
    static NAMES: AtomicU64 = AtomicU64::new(1);
    NAMES.fetch_add(1, Ordering::Relaxed)
}

/// Calls `change` with the calling thread's Polls of a dispatcher.
#[inline(always)]
fn polls_of<T>(
    dispatcher: &Dispatcher,
    callbacks: Callbacks<'_>,
    change: impl FnOnce(&mut Polls) -> T,
) -> T {
    let present = callbacks.polls();
    if present.get().of != dispatcher.name {
        make_present(present, dispatcher.name);
    }
    let mut state = present.get();
    let end = change(&mut state);
    present.set(state);
    end
}

/// Makes the Polls of another dispatcher the present ones. A thread that is ending keeps no others.
#[cold]
fn make_present(present: &Cell<Polls>, of: u64) {
    let fresh = Polls { of, ..Polls::default() };
    let found = EARLIER.try_with(|all| {
        let mut all = all.borrow_mut();
        let found = all.iter().position(|polls| polls.of == of).map(|at| all.remove(at));
        all.truncate(CONTEXTS - 2);
        all.insert(0, present.get());
        found
    });
    present.set(found.ok().flatten().unwrap_or(fresh));
}

impl Dispatcher {
    /// The shortest poll. `silent`: there is a network that wakes no thread. Come: the caller must
    /// call poll_one(), or poll(). Further: it must call finds_nothing_anywhere().
    #[inline(always)]
    pub fn look(&self, silent: bool) -> Look {
        if self.next_has_come() {
            return Look::Come;
        }
        match count_empty_poll_if(|number, asks| {
            !(silent && asks || number.is_multiple_of(ALL_SHARES))
        }) {
            true => Look::Nothing,
            false => Look::Further,
        }
    }

    /// Notes whether the calling thread's poll of a network has found something: then its next
    /// polls ask the network, too.
    pub fn note_network_poll(&self, found: bool) {
        note_network_poll(found.then_some(NETWORK_POLLS));
    }

    /// True: no message has come to any share, and nothing else is due. False: the caller must call
    /// poll().
    #[inline(always)]
    pub fn finds_nothing_anywhere(&self) -> bool {
        !self.something_has_come() && count_empty_poll_if(|number, _| !number.is_multiple_of(EMPTY))
    }

    /// Runs up to `most` handlers until `done`, if the role is free; returns their number. Must not
    /// be called inside a callback. The caller calls notify_sleepers() next.
    #[inline]
    pub fn poll(&self, most: usize, done: &impl Fn() -> bool) -> usize {
        self.poll_until_done(most, false, done)
    }

    /// Like `poll`, without `done`. It also notes the number of handlers that have run, for
    /// noted_handled().
    #[inline(always)]
    pub fn poll_and_note(&self, most: usize) -> usize {
        self.poll_until_done(most, true, &|| false)
    }

    #[inline(always)]
    fn poll_until_done(&self, most: usize, note: bool, done: &impl Fn() -> bool) -> usize {
        let one = if self.next_has_come() { self.poll_one(most, note, done) } else { None };
        one.unwrap_or_else(|| self.poll_any(most, note, done))
    }

    /// The beginning of a poll, for a thread that has seen a message. Most likely the
    /// message is by itself, and its sender may wait for the answer, so this does nothing else
    /// before it runs the handler. None: no handler has run, since the thread is inside a callback
    /// or since something else is due.
    #[inline(always)]
    pub fn poll_one(&self, most: usize, note: bool, done: &impl Fn() -> bool) -> Option<usize> {
        let callbacks = Callbacks::of_thread_outside()?;
        let mut requests = self.free_requests()?;
        if !self.serve_one(callbacks, &mut requests) {
            return None;
        }
        callbacks.reset_empty_polls();
        if most > 1 && requests.is_ready() {
            return Some(self.poll_further(callbacks, requests, (most, note), done));
        }
        let total = self.handled();
        drop(requests);
        self.count_ran(callbacks, 1, note.then_some(total));
        Some(1)
    }

    /// The rest of poll_one(), which has handled one message, if there are more.
    #[inline(never)]
    fn poll_further(
        &self,
        callbacks: Callbacks<'_>,
        requests: Held<'_, Requests, false>,
        (most, note): (usize, bool),
        done: &impl Fn() -> bool,
    ) -> usize {
        let count = self.serve_and_count(callbacks, requests, 1, (most.min(BATCH), note), done);
        self.take_replies_if_any();
        count
    }

    /// serve_further(), for a poll.
    #[inline(always)]
    fn serve_and_count(
        &self,
        callbacks: Callbacks<'_>,
        requests: Held<'_, Requests, false>,
        begun: usize,
        (most, note): (usize, bool),
        done: &impl Fn() -> bool,
    ) -> usize {
        let handled = &self.post.counts.handled;
        let before = handled.get().wrapping_sub(begun as u64);
        let count = self.serve_further(callbacks, requests, begun, most, done);
        let ran = handled.get().wrapping_sub(before).min(count as u64);
        self.count_ran(callbacks, ran, note.then_some(self.handled()));
        count
    }

    /// The rest of a poll.
    #[inline(never)]
    fn poll_any(&self, most: usize, note: bool, done: &impl Fn() -> bool) -> usize {
        let most = most.min(BATCH);
        let found = match self.something_has_come() {
            true => self.take_up_to(most, note, done),
            false => 0,
        };
        if found > 0 {
            Callbacks::of_thread().reset_empty_polls();
            return found;
        }
        match count_empty_poll() {
            empty if empty.is_multiple_of(EMPTY) => self.look_around(empty, most, done),
            _ => 0,
        }
    }

    /// Notes that the calling thread has run `ran` handlers, and that `total` have run.
    #[inline(always)]
    fn count_ran(&self, callbacks: Callbacks<'_>, ran: u64, total: Option<u64>) {
        polls_of(self, callbacks, |polls| {
            polls.ran = polls.ran.wrapping_add(ran);
            polls.noted = total.unwrap_or(polls.noted);
        });
    }

    /// Whether a message has come to a share from which the last messages were taken, or a response
    /// is parked.
    #[inline(always)]
    pub fn next_has_come(&self) -> bool {
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

    fn take_up_to(&self, most: usize, note: bool, done: &impl Fn() -> bool) -> usize {
        self.take_replies_if_any();
        let callbacks = Callbacks::of_thread();
        match self.requests_to_serve() {
            Some(requests) => self.serve_and_count(callbacks, requests, 0, (most, note), done),
            None => {
                let again = polls_of(self, callbacks, |polls| {
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

    /// Takes replies, if there are any, except in offload mode. Without a reply it takes no role.
    #[inline(always)]
    fn take_replies_if_any(&self) {
        // Replies have one share. The hint does not see a reply that was set aside and came later:
        // the next look without a hint finds it.
        if !self.offload && (self.hints[1].next_has_come() || self.post.pending.is_draining()) {
            self.poll_replies();
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
    fn look_around(&self, empty: u32, most: usize, done: &impl Fn() -> bool) -> usize {
        if empty.is_multiple_of(YIELD) {
            std::thread::yield_now();
        }
        self.end_messages();
        let Some(mut requests) = self.requests_to_serve() else { return 0 };
        if (0..UNDER_ROLE).any(|_| requests.has_come()) {
            return self.serve_further(Callbacks::of_thread(), requests, 0, most, done);
        }
        0
    }

    /// Polls in one burst: until LOOKS polls were empty, MOST messages were handled, `done`, or,
    /// behind a handler, `late`. Returns the number of messages.
    pub(super) fn poll_until(&self, done: &impl Fn() -> bool, late: &impl Fn() -> bool) -> usize {
        let stop = || done() || late();
        let (mut looks, mut handled) = (0, 0);
        while looks < LOOKS && handled < MOST && !done() {
            match self.poll(BATCH, &stop) {
                0 => {
                    looks += 1;
                    std::hint::spin_loop();
                }
                found => {
                    (looks, handled) = (0, handled + found);
                    if late() {
                        break;
                    }
                }
            }
        }
        self.notify_sleepers();
        handled
    }

    /// Whether other threads have run handlers since the calling thread last called this.
    pub(super) fn others_handle(&self) -> bool {
        let total = self.post.counts.handled.get();
        polls_of(self, Callbacks::of_thread(), |polls| {
            let (before, own) = std::mem::replace(&mut polls.seen, (total, polls.ran));
            total.wrapping_sub(before) > polls.ran.wrapping_sub(own)
        })
    }

    /// The result of the calling thread's last note_handled(), or 0.
    pub fn noted_handled(&self) -> u64 {
        polls_of(self, Callbacks::of_thread(), |polls| polls.noted)
    }

    /// The number of handlers that have run; notes it for noted_handled().
    pub fn note_handled(&self) -> u64 {
        let count = self.handled();
        polls_of(self, Callbacks::of_thread(), |polls| polls.noted = count);
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_the_states_of_the_contexts_that_it_polled_last() {
        let present = Cell::default();
        let ran = |of: u64| {
            make_present(&present, of);
            present.get().ran
        };
        for of in 1..=CONTEXTS as u64 {
            assert_eq!(ran(of), 0);
            present.set(Polls { ran: of, ..present.get() });
        }
        assert!((1..=CONTEXTS as u64).all(|of| ran(of) == of));
        assert_eq!(ran(CONTEXTS as u64 + 1), 0);
        assert_eq!((ran(2), ran(1)), (2, 0), "the one polled least lately was dropped");
    }
}
