//! The receiving side: which thread handles what has come.
//!
//! Two roles, apart from the lane's, so that a handler that takes long stops neither the requests
//! of other ranks to the lane nor the replies to our own: that of requests, whose holder runs the
//! handlers, and that of replies, whose holder ends what waited for them. A thread that waits takes
//! both for a moment (`help_until`). Behind it stand two threads that sleep when there is nothing
//! to do: the one that runs handlers (`core::handler_thread`), and the progress thread, for the
//! replies.
//!
//! Arming these sources costs senders a look at a word and the sleeper a `membarrier`, which is too
//! much to be done each time that a thread leaves after having waited. So a thread that leaves arms
//! nothing; the sleepers, which find at their next wake-up that a thread helps, only nap until
//! that has ended (`has_visitors`). Before a waiting thread itself falls asleep, it ends their naps
//! (`hand_over`).
//!
//! With polled handlers (`HandlerMode::Polled`) no thread of the library runs any: `poll` has what
//! the threads of the program do, `sleep` how they sleep until a message comes.

use crate::engine::completion::{in_callback, set_serving};
use crate::engine::messages::Handler;
use crate::engine::messages::sender::MessagePost;
use crate::engine::role::{Held, Role};
use crate::transport::frame::{Arrived, Class, IDS};
use crate::transport::memory::lookout::Lookout;
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

/// Looks of a waiting thread before it gives the roles up for a moment.
const LOOKS: usize = 48;
/// Messages after which a waiting thread looks at its deadline.
const MOST: usize = 1024;
/// Messages handled before the role is given up for a moment.
const BATCH: usize = 64;
/// How long a sleeper naps while others help.
pub const NAP: Duration = Duration::from_micros(200);

/// Which threads run handlers, and how many at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerMode {
    /// One at a time, on a thread that waits or on one of the library's.
    Serial,
    /// Several at a time, on such threads.
    Parallel,
    /// One at a time, on threads of the program that poll or wait, and on no other.
    Polled,
}

/// A handler as the table has it.
#[derive(Clone, Copy)]
struct Entry {
    handler: Option<Handler>,
    data: *mut c_void,
    /// Counts replacements.
    version: u32,
}

impl Entry {
    const NONE: Entry = Entry { handler: None, data: std::ptr::null_mut(), version: 0 };
}

/// What belongs to the holder of the role of requests.
struct Requests {
    message_receiver: MessageReceiver,
    /// What answers this rank's own messages. It has slots of its own, which are emptied whatever
    /// holds up the requests: so nobody waits for credit for a response whose requester runs
    /// handlers.
    responses: MessageReceiver,
    table: Box<[Cell<Entry>; IDS]>,
    /// When sleeping threads were last told that handlers have run.
    notified: wake::Notified,
}

// SAFETY: only the holder of the role reaches the table; the user lets any thread have the
// data.
unsafe impl Send for Requests {}

/// See the head of the file.
pub struct Dispatcher {
    /// By which threads remember it, see `poll`.
    name: u64,
    /// Ranks of the world.
    size: u32,
    post: Arc<MessagePost>,
    requests: Role<Requests>,
    replies: Role<MessageReceiver>,
    mode: HandlerMode,
    /// Completions are for the progress thread.
    offload: bool,
    /// By which threads see that requests, replies and responses have come, before they take a
    /// role.
    lookouts: [Arc<Lookout>; 3],
    /// For each number the calls under way, of versions with even and odd numbers.
    calls: Box<[[AtomicU32; 2]]>,
    /// Threads that want to change the table: nobody begins to serve before they had the role.
    registering: AtomicU32,
    /// There are handlers, or were, or messages come whether or not there are.
    has_handlers: AtomicBool,
    visits: AtomicU64,
    /// Handlers have run, and threads that sleep for words that they may have changed have not been
    /// told.
    owes: AtomicBool,
    /// A sleeper naps because of visitors: handlers' thread, progress thread.
    naps: [AtomicBool; 2],
    /// Polled handlers: threads of the program that sleep behind a closed door.
    parked: Mutex<u32>,
}

/// While it lives this thread serves under the role, whose table it has at hand.
struct Serving;

impl Serving {
    #[inline(always)]
    fn begin(requests: &Requests) -> Serving {
        set_serving(std::ptr::from_ref(requests).cast());
        Serving
    }
}

impl Drop for Serving {
    #[inline(always)]
    fn drop(&mut self) {
        set_serving(std::ptr::null());
    }
}

thread_local! {
    /// The agent and the number of the handler that this thread runs without the role.
    static RUNNING: Cell<(*const Dispatcher, usize)> = const { Cell::new((std::ptr::null(), 0)) };
}

/// While it lives this thread runs such a handler.
struct Running;

impl Running {
    fn begin(dispatcher: &Dispatcher, id: usize) -> Running {
        RUNNING.with(|running| running.set((dispatcher, id)));
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.with(|running| running.set((std::ptr::null(), 0)));
    }
}

impl Requests {
    /// Whether there is something to take, for a thread that looks again and again.
    #[inline]
    fn has_come(&mut self) -> bool {
        self.message_receiver.has_come() || self.responses.has_come()
    }

    /// Whether there is something to take, wherever it has come. If so one of the receivers has it
    /// before it.
    #[inline]
    fn has_come_anywhere(&mut self) -> bool {
        let responses = self.responses.has_come_anywhere();
        self.message_receiver.has_come_anywhere() || responses
    }

    /// Whether a response is to be handled before a request. Whether any have come to another share
    /// than their last one is looked at between turns of requests.
    #[inline(always)]
    fn response_is_next(&mut self) -> bool {
        let turn = self.message_receiver.has_had_its_turn();
        self.responses.is_ready() || turn && self.responses.has_come_anywhere()
    }

    /// The message that was handled has been consumed.
    #[inline(always)]
    fn done(&mut self, response: bool) {
        if response { self.responses.done() } else { self.message_receiver.done() }
    }

    /// The handler of a message; what comes from outside names none if there is none.
    #[inline]
    fn entry(&self, arrived: &Arrived) -> Entry {
        self.table.get(usize::from(arrived.id())).map_or(Entry::NONE, Cell::get)
    }
}

impl Dispatcher {
    /// The dispatcher of a context without handlers. `offload`: threads of the program end no
    /// messages.
    pub fn new(post: Arc<MessagePost>, mode: HandlerMode, offload: bool) -> Dispatcher {
        let message_receiver =
            |class| post.routes.fabric().message_receiver(post.counts.clone(), class);
        let (message_receiver, replies, responses) = (
            message_receiver(Class::Requests),
            message_receiver(Class::Replies),
            message_receiver(Class::Responses),
        );
        let table = Box::new([const { Cell::new(Entry::NONE) }; IDS]);
        Dispatcher {
            name: poll::new_name(),
            size: post.routes.size(),
            lookouts: [message_receiver.lookout(), replies.lookout(), responses.lookout()],
            requests: Role::new(Requests {
                message_receiver,
                responses,
                table,
                notified: wake::Notified::now(),
            }),
            replies: Role::new(replies),
            post,
            mode,
            offload,
            calls: (0..IDS).map(|_| Default::default()).collect(),
            registering: AtomicU32::new(0),
            has_handlers: AtomicBool::new(false),
            visits: AtomicU64::new(0),
            owes: AtomicBool::new(false),
            naps: Default::default(),
            parked: Mutex::default(),
        }
    }

    /// Whether only threads of the program run handlers.
    #[inline]
    pub fn is_polled(&self) -> bool {
        self.mode == HandlerMode::Polled
    }

    /// Whether a message has come that no thread handles now.
    pub fn has_message(&self) -> bool {
        self.requests.take_unfenced().is_some_and(|mut requests| requests.has_come_anywhere())
    }

    /// Whether none has come. False also where a thread handles messages now.
    fn has_no_message(&self) -> bool {
        self.requests.take_unfenced().is_some_and(|mut requests| !requests.has_come_anywhere())
    }

    /// Messages may come though there is no handler: each is taken, and told so.
    pub fn expect_messages(&self) {
        self.has_handlers.store(true, Ordering::Relaxed);
    }

    /// Whether there is anything that a waiting thread could look after.
    #[inline]
    pub fn is_in_use(&self) -> bool {
        self.has_handlers.load(Ordering::Relaxed) || self.post.pending.is_used()
    }

    /// Whether nobody waits for the end of a message.
    pub fn is_idle(&self) -> bool {
        self.post.pending.is_empty()
    }

    /// Whether all messages that have come have been handled, and their responses sent. False also
    /// where somebody is at it.
    pub fn has_handled_all(&self) -> bool {
        !self.has_handlers.load(Ordering::Relaxed)
            || self.has_no_message() && !self.post.parked.any()
    }

    /// Whether there ever was a message whose end is waited for.
    #[inline]
    pub fn awaits_ends(&self) -> bool {
        self.post.pending.is_used()
    }

    /// The messages to peers that fit whose end is waited for.
    pub fn waiting(&self, fits: impl Fn(u32) -> bool) -> Vec<u64> {
        if self.awaits_ends() { self.post.pending.tags(fits) } else { Vec::new() }
    }

    /// Whether one of them is waited for still.
    pub fn waits(&self, tag: u64) -> bool {
        self.post.pending.waits(tag)
    }

    /// Handles what comes until `done`, for a burst of looks without result; returns how much
    /// it has handled.
    pub fn help_until(&self, done: impl Fn() -> bool) -> usize {
        if self.is_polled() {
            return self.poll_until(done);
        }
        self.visits.store(self.visits.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        let (mut looks, mut handled) = (0, 0);
        while looks < LOOKS && handled < MOST && !done() {
            // Kept over several looks: to take and to give a role up costs as much as some of them.
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
            // Neither role is held while code of the user runs under the other.
            if replied {
                drop(requests);
                handled += replies
                    .as_mut()
                    .map_or(0, |message_receiver| self.take_replies(message_receiver));
            } else if let Some(requests) = requests {
                drop(replies);
                handled += self.serve(requests, BATCH, &done);
            }
        }
        self.notify_sleepers();
        handled
    }

    /// The role of requests, if it is free and nobody waits to change the table.
    #[inline]
    fn requests_to_serve(&self) -> Option<Held<'_, Requests, false>> {
        match self.registering.load(Ordering::Relaxed) {
            0 => self.requests.take_unfenced(),
            _ => None,
        }
    }

    /// Takes replies in, if the role is free; returns how many.
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
            self.post.answered(&reply, || message_receiver.done());
            count += 1;
            if count == BATCH {
                break;
            }
        }
        self.post.pending.consumed(message_receiver.next_ticket());
        count
    }

    /// Works for a moment for whatever there is to do; returns how much was done. Nothing in a
    /// callback.
    pub fn help(&self) -> usize {
        let handled = match self.is_polled() {
            true if self.may_poll() => self.poll(BATCH),
            true => 0,
            false => self.poll_replies() + self.poll_requests(),
        };
        self.notify_sleepers();
        handled
    }

    /// Runs handlers, if the role is free; returns how many messages were handled. The caller calls
    /// notify_sleepers() before it turns to anything else.
    pub fn poll_requests(&self) -> usize {
        if !self.has_handlers.load(Ordering::Relaxed) || in_callback() {
            return 0;
        }
        self.requests_to_serve().map_or(0, |requests| self.serve(requests, BATCH, &|| false))
    }
}
