//! The receiving side of active messages: which thread runs the handler of a message.
//!
//! The dispatcher has two roles besides the lane's, so a long handler delays neither requests to
//! the owner nor replies to this rank's own messages. The holder of the role of requests runs
//! handlers. The holder of the role of replies ends the messages that waited for them. A thread
//! that waits in the library takes both for short times (`help_until`). When no thread waits, two
//! threads of the library do the work, and sleep when there is none: `llcl-handlers`
//! (`core::handler_thread`) runs handlers, and the progress thread takes replies.
//!
//! A library thread arms the wake flag of its share before it sleeps, which costs a `membarrier`;
//! each sender loads the flag. A waiting thread that stops helping does not arm the flag, since
//! that would cost too much each time. Instead, a library thread that finds that other threads have
//! helped since it last looked (`others_helped`) naps without arming the flag. Before a waiting
//! thread sleeps itself, it wakes the napping threads (`wake_napping_threads`).
//!
//! With polled handlers (`HandlerMode::Polled`) only threads of the program run handlers. The file
//! `poll` has their polls, and `sleep` has their sleep until a message comes.

use crate::engine::completion::{Callbacks, in_callback};
use crate::engine::messages::Handler;
use crate::engine::messages::sender::AmSender;
use crate::engine::role::{Held, Role};
use crate::transport::frame::{Arrived, Class, IDS};
use crate::transport::memory::arrival_hint::ArrivalHint;
use crate::transport::memory::message_receiver::MessageReceiver;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

mod handle;
mod handlers;
mod poll;
mod serve;
mod sleep;
mod wake;

pub use poll::Look;

/// Looks without a message after which a waiting thread ends its burst of work on messages.
const LOOKS: usize = 48;
/// Messages after which a waiting thread ends its burst of work on messages.
const MOST: usize = 1024;
/// Messages after which a thread gives the role up and takes it again.
const BATCH: usize = 64;
/// How long a thread of the library naps while other threads help.
pub const NAP: Duration = Duration::from_micros(200);

/// Which threads run handlers, and how many at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerMode {
    /// One at a time, on a thread that waits or on a thread of the library.
    Serial,
    /// Several at a time, on such threads.
    Parallel,
    /// One at a time, only on threads of the program that poll or wait.
    Polled,
}

/// An entry of the table of handlers. Its size is a power of two, so that a message finds it by a
/// shift.
#[derive(Clone, Copy)]
struct Entry {
    handler: Option<Handler>,
    data: *mut c_void,
}

impl Entry {
    const NONE: Entry = Entry { handler: None, data: std::ptr::null_mut() };
}

/// The value of the role of requests.
struct Requests {
    /// The receiver of the share of requests.
    message_receiver: MessageReceiver,
    /// The receiver of the share of responses, which has slots of its own. They are emptied even if
    /// no request may be handled, so responses find credit as long as their requester runs
    /// handlers.
    responses: MessageReceiver,
    table: Box<[Cell<Entry>; IDS]>,
    /// The number of replacements of each entry.
    versions: Box<[Cell<u32>; IDS]>,
    /// When sleeping threads were last woken because handlers have run.
    notified: wake::Notified,
}

// SAFETY: only the holder of the role uses the table; by the contract of llcl_am_register any
// thread may use a handler's data.
unsafe impl Send for Requests {}

/// See the head of the file.
pub struct Dispatcher {
    /// The number by which a thread finds the state of its polls of this dispatcher, see `poll`.
    name: u64,
    /// The number of ranks.
    size: u32,
    post: Arc<AmSender>,
    requests: Role<Requests>,
    replies: Role<MessageReceiver>,
    mode: HandlerMode,
    /// Offload mode: only the progress thread fires completions.
    offload: bool,
    /// Hints for requests, replies and responses, by which threads see without a role whether a
    /// message has come.
    hints: [Arc<ArrivalHint>; 3],
    /// For each handler number: the number of calls under way without the role, of even and of odd
    /// versions.
    calls: Box<[[AtomicU32; 2]]>,
    /// The number of threads that want to change the table. While it is not 0, no thread takes the
    /// role to serve messages.
    registering: AtomicU32,
    /// A handler was registered, or expect_messages() was called.
    has_handlers: AtomicBool,
    /// The number of calls of help_until() and note_waiting(), and of help() over a silent wire,
    /// see others_helped().
    help_calls: AtomicU64,
    /// Handlers have run, and no thread has woken the sleeping threads since.
    unnotified: AtomicBool,
    /// Whether `llcl-handlers`, and the progress thread, nap because other threads help.
    naps: [AtomicBool; 2],
    /// Polled handlers: the number of threads of the program that sleep behind an armed flag.
    parked: Mutex<u32>,
}

/// A guard: while it lives, this thread runs handlers under the role of `requests`, so register()
/// inside a handler may change the table.
struct Serving<'a>(Callbacks<'a>);

impl<'a> Serving<'a> {
    #[inline(always)]
    fn begin(callbacks: Callbacks<'a>, requests: &Requests) -> Self {
        callbacks.set_serving(std::ptr::from_ref(requests).cast());
        Serving(callbacks)
    }
}

impl Drop for Serving<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.set_serving(std::ptr::null());
    }
}

impl Requests {
    /// Whether a message has come. Most calls look only at the shares of the last messages, so this
    /// is for a thread that calls it repeatedly.
    #[inline]
    fn has_come(&mut self) -> bool {
        self.message_receiver.has_come() || self.responses.has_come()
    }

    /// Whether a message has come to one of the shares of the last messages.
    #[inline(always)]
    fn is_ready(&self) -> bool {
        self.message_receiver.is_ready() || self.responses.is_ready()
    }

    /// Whether a message has come to any share. If so, a receiver then returns it next.
    #[inline]
    fn has_come_anywhere(&mut self) -> bool {
        let responses = self.responses.has_come_anywhere();
        self.message_receiver.has_come_anywhere() || responses
    }

    /// Whether the next message to be handled is a response. Looks at the share of the last
    /// response; at the others only after a turn of requests.
    #[inline(always)]
    fn response_is_next(&mut self) -> bool {
        let turn = self.message_receiver.has_had_its_turn();
        self.responses.is_ready() || turn && self.responses.has_come_anywhere()
    }

    /// Frees the slot of the message that was handled.
    #[inline(always)]
    fn done(&mut self, response: bool) {
        if response { self.responses.done() } else { self.message_receiver.done() }
    }

    /// The handler of a message; NONE for a number outside of the table, which a peer may send.
    #[inline]
    fn entry(&self, arrived: &Arrived) -> Entry {
        self.table.get(usize::from(arrived.id())).map_or(Entry::NONE, Cell::get)
    }
}

impl Dispatcher {
    /// A dispatcher without handlers. `offload`: threads of the program take no replies.
    pub fn new(post: Arc<AmSender>, mode: HandlerMode, offload: bool) -> Dispatcher {
        let message_receiver =
            |class| post.routes.fabric().message_receiver(post.counts.clone(), class);
        let (message_receiver, replies, responses) = (
            message_receiver(Class::Requests),
            message_receiver(Class::Replies),
            message_receiver(Class::Responses),
        );
        let table = Box::new([const { Cell::new(Entry::NONE) }; IDS]);
        let versions = Box::new([const { Cell::new(0) }; IDS]);
        Dispatcher {
            name: poll::new_name(),
            size: post.routes.size(),
            hints: [
                message_receiver.arrival_hint(),
                replies.arrival_hint(),
                responses.arrival_hint(),
            ],
            requests: Role::new(Requests {
                message_receiver,
                responses,
                table,
                versions,
                notified: wake::Notified::now(),
            }),
            replies: Role::new(replies),
            post,
            mode,
            offload,
            calls: (0..IDS).map(|_| Default::default()).collect(),
            registering: AtomicU32::new(0),
            has_handlers: AtomicBool::new(false),
            help_calls: AtomicU64::new(0),
            unnotified: AtomicBool::new(false),
            naps: Default::default(),
            parked: Mutex::default(),
        }
    }

    /// Whether only threads of the program run handlers.
    #[inline]
    pub fn is_polled(&self) -> bool {
        self.mode == HandlerMode::Polled
    }

    /// Whether a message has come. False also if another thread holds the role.
    pub fn has_message(&self) -> bool {
        self.requests.take_unfenced().is_some_and(|mut requests| requests.has_come_anywhere())
    }

    /// Whether no message has come. False also if another thread holds the role.
    fn has_no_message(&self) -> bool {
        self.requests.take_unfenced().is_some_and(|mut requests| !requests.has_come_anywhere())
    }

    /// Notes that messages may come although no handler is registered; each is then refused with
    /// ERR_NO_HANDLER.
    pub fn expect_messages(&self) {
        self.has_handlers.store(true, Ordering::Relaxed);
    }

    /// Whether a waiting thread should look for messages or replies.
    #[inline]
    pub fn is_in_use(&self) -> bool {
        self.has_handlers.load(Ordering::Relaxed) || self.post.pending.is_used()
    }

    /// Whether none of this rank's messages waits for its end.
    pub fn is_idle(&self) -> bool {
        self.post.pending.is_empty()
    }

    /// Whether all received messages were handled and their responses sent. False also if another
    /// thread holds the role.
    pub fn has_handled_all(&self) -> bool {
        !self.has_handlers.load(Ordering::Relaxed)
            || self.has_no_message() && !self.post.parked.any()
    }

    /// Whether a message of this rank ever waited for its end.
    #[inline]
    pub fn awaits_ends(&self) -> bool {
        self.post.pending.is_used()
    }

    /// The tags of the messages that wait for their end, of those to peers that `fits`.
    pub fn waiting(&self, fits: impl Fn(u32) -> bool) -> Vec<u64> {
        if self.awaits_ends() { self.post.pending.tags(fits) } else { Vec::new() }
    }

    /// Whether the message of such a tag still waits.
    pub fn waits(&self, tag: u64) -> bool {
        self.post.pending.waits(tag)
    }

    /// Takes replies and runs handlers in one burst: until LOOKS looks found no message, MOST
    /// messages were handled, `done`, or, behind a handler, `late`. Returns the number of messages.
    pub fn help_until(&self, done: &impl Fn() -> bool, late: &impl Fn() -> bool) -> usize {
        if self.is_polled() {
            return self.poll_until(done, late);
        }
        let stop = || done() || late();
        self.note_help();
        let (mut looks, mut handled) = (0, 0);
        while looks < LOOKS && handled < MOST && !done() {
            // Both roles are kept over several looks: to take a role and give it up costs as much
            // as some looks.
            let mut replies = self.replies.take_unfenced();
            let mut requests = self.requests_to_serve();
            let replied = loop {
                if replies.as_mut().is_some_and(|message_receiver| message_receiver.has_come()) {
                    break true;
                }
                looks += 1;
                let wanted = requests.as_mut().is_some_and(|it| it.has_come());
                if wanted || looks >= LOOKS || done() {
                    break false;
                }
                std::hint::spin_loop();
            };
            // This thread gives the other role up before it runs code of the user under this one.
            if replied {
                drop(requests);
                handled += replies
                    .as_mut()
                    .map_or(0, |message_receiver| self.take_replies(message_receiver));
            } else if let Some(requests) = requests {
                drop(replies);
                handled += self.serve(Callbacks::of_thread(), requests, BATCH, &stop);
                if late() {
                    break;
                }
            }
        }
        self.notify_sleepers();
        handled
    }

    /// To be called by a thread that waits, before each help(): `llcl-handlers` then naps, as while
    /// a thread is in help_until(). The two would otherwise take the role from each other, and each
    /// message that `llcl-handlers` handles would wake the waiting thread.
    pub fn note_waiting(&self) {
        if !self.is_polled() {
            self.note_help();
        }
    }

    /// For others_helped().
    fn note_help(&self) {
        // Relaxed, and no addition in one step: others_helped() needs no more than a change.
        let calls = self.help_calls.load(Ordering::Relaxed);
        self.help_calls.store(calls.wrapping_add(1), Ordering::Relaxed);
    }

    /// Takes the role of requests, if it is free and no thread wants to change the table. If not,
    /// sends the parked responses: the holder of the role may be in a long handler.
    #[inline]
    fn requests_to_serve(&self) -> Option<Held<'_, Requests, false>> {
        let requests = self.free_requests();
        if requests.is_none() {
            self.post.send_parked();
        }
        requests
    }

    /// Takes the role of requests, if it is free and no thread wants to change the table.
    #[inline(always)]
    fn free_requests(&self) -> Option<Held<'_, Requests, false>> {
        match self.registering.load(Ordering::Relaxed) {
            0 => self.requests.take_unfenced(),
            _ => None,
        }
    }

    /// Sends the replies that could not be sent before, as far as that is possible now, and takes
    /// replies, if the role is free; returns the number of those taken. For the progress thread.
    pub fn poll_all_replies(&self) -> usize {
        if self.post.has_unsent_replies() {
            self.post.send_unsent_replies();
        }
        self.poll_replies()
    }

    /// Takes replies, if the role is free; returns their number.
    pub fn poll_replies(&self) -> usize {
        if !self.post.pending.is_used() || in_callback() {
            return 0;
        }
        self.replies
            .take_unfenced()
            .map_or(0, |mut message_receiver| self.take_replies(&mut message_receiver))
    }

    #[inline]
    fn take_replies(&self, message_receiver: &mut MessageReceiver) -> usize {
        let mut count = 0;
        while let Some(reply) = message_receiver.peek() {
            // SAFETY: done() frees the slot, and `consumed` alone calls it.
            unsafe { self.post.answered(&reply, || message_receiver.done()) };
            count += 1;
            if count == BATCH {
                break;
            }
        }
        self.post.pending.consumed(message_receiver.next_ticket());
        count
    }

    /// Takes replies and runs handlers once, up to BATCH or until `done`; returns the number of
    /// messages. Does nothing inside a callback.
    pub fn help(&self, done: &impl Fn() -> bool) -> usize {
        let handled = match self.is_polled() {
            true if self.may_poll() => self.poll(BATCH, done),
            true => 0,
            false => {
                // A thread that waits for a silent wire calls this again and again. Elsewhere a
                // thread may call it once and compute, and a message must wake the sleepers.
                if self.post.routes.fabric().has_silent_wire() {
                    self.note_help();
                }
                self.poll_replies() + self.poll_requests_until(done)
            }
        };
        self.notify_sleepers();
        handled
    }

    /// Like `help`, again and again as long as whole batches come, until MOST messages were
    /// handled, `done` or `late`.
    pub fn help_on(&self, done: &impl Fn() -> bool, late: &impl Fn() -> bool) -> usize {
        let stop = || done() || late();
        let mut handled = 0;
        loop {
            let round = self.help(&stop);
            handled += round;
            if round < BATCH || handled >= MOST || stop() {
                return handled;
            }
        }
    }

    /// Runs handlers, if the role is free; returns the number of messages. The caller calls
    /// notify_sleepers() next.
    pub fn poll_requests(&self) -> usize {
        self.poll_requests_until(&|| false)
    }

    fn poll_requests_until(&self, done: &impl Fn() -> bool) -> usize {
        if !self.has_handlers.load(Ordering::Relaxed) || in_callback() {
            return 0;
        }
        self.requests_to_serve()
            .map_or(0, |requests| self.serve(Callbacks::of_thread(), requests, BATCH, done))
    }
}
