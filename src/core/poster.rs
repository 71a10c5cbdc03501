//! The poster posts requests. It also keeps requests with LLCL_FLAG_PARK that found no room, up to
//! a limit, and control messages that must not be lost. The progress thread and waiting threads
//! post them later.
//!
//! An entry stays in the queue until its request was posted or has failed, so a flush finds it. One
//! thread at a time posts. It does not hold the queue's lock meanwhile: a request may end at once
//! and run a callback, which may park another request.

use crate::core::background::{Background, Task};
use crate::engine::command::ALL_PEERS;
use crate::engine::completion::{Completion, in_callback};
use crate::engine::lane::Lane;
use crate::engine::messages::sender::AmSender;
use crate::engine::peer_turns::first_of_each;
use crate::engine::routes::Routes;
use crate::transport::carrier::{Bytes, Peer, Sleeper};
use crate::transport::frame::Class;
use crate::util::fence::heavy_fence;
use crate::util::status::{Error, Result, Status};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A request that was accepted and is to be posted later.
pub trait Later: Send + Sync {
    /// The peer's rank.
    fn peer(&self) -> u32;
    /// Posts the request. If this returns a "try again" status, nothing has changed.
    fn post(&self, poster: &Poster) -> Result<()>;
    /// The completions that fire if it fails: `on_local` and `on_complete`.
    fn completions(&self) -> [Completion; 2];
    /// The peer for whose credit it waits, if it waits for nothing else, and the
    /// message's bytes.
    fn waits_for_slots<'a>(&self, _: &'a Poster) -> Option<(&'a Peer, Bytes)> {
        None
    }
}

/// See the head of the file.
pub struct Poster {
    pub(super) routes: Arc<Routes>,
    pub(super) lane: Arc<Lane>,
    pub(super) post: Arc<AmSender>,
    background: Arc<Background>,
    most: u64,
    /// How many requests are parked. Changed under the lock of `queue`.
    count: AtomicU64,
    queue: Mutex<Queue>,
    /// Held by the thread that posts.
    turn: Mutex<()>,
    /// Whether the context ends. Then parked requests are cancelled, not posted.
    over: AtomicBool,
    /// The numbers of the parked requests for which their peers will ring, each the first one of
    /// its peer; see begin_sleep().
    ringing: Mutex<Vec<u64>>,
}

#[derive(Default)]
struct Queue {
    /// The parked requests with their numbers, in rising order.
    entries: VecDeque<(u64, Arc<dyn Later>)>,
    /// The number of the last request that was parked.
    last: u64,
}

impl Poster {
    /// An empty poster, which parks at most `most` requests at one time.
    pub fn new(
        routes: Arc<Routes>,
        lane: Arc<Lane>,
        post: Arc<AmSender>,
        background: Arc<Background>,
        most: u64,
    ) -> Arc<Poster> {
        let poster = Arc::new(Poster {
            routes,
            lane,
            post,
            background,
            most,
            count: AtomicU64::new(0),
            queue: Mutex::default(),
            turn: Mutex::default(),
            over: AtomicBool::new(false),
            ringing: Mutex::default(),
        });
        poster.background.add(Arc::new(PostParked(Arc::downgrade(&poster))));
        poster
    }

    fn parked(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any request is parked.
    #[inline(always)]
    pub fn has_parked(&self) -> bool {
        // Acquire: pairs with remove().
        self.count.load(Ordering::Acquire) > 0
    }

    /// The word that changes when a parked request was posted, for threads that sleep until then.
    pub(super) fn parked_word(&self) -> *const u64 {
        self.count.as_ptr()
    }

    /// Parks a request that found no room. If the queue is full, it returns `refusal`, the error of
    /// the attempt.
    #[cold]
    pub fn park(&self, request: impl Later + 'static, refusal: Error) -> Result<()> {
        let mut queue = self.parked();
        let count = queue.entries.len() as u64;
        if count >= self.most || queue.entries.try_reserve(1).is_err() {
            return Err(refusal);
        }
        self.post.counts.parked.up();
        self.post.counts.parked_high_water.raise(count + 1);
        self.keep(queue, Arc::new(request));
        Ok(())
    }

    /// Parks a request of the library, even beyond the limit.
    #[cold]
    pub(super) fn park_always(&self, request: impl Later + 'static) {
        self.keep(self.parked(), Arc::new(request));
    }

    fn keep(&self, mut queue: MutexGuard<'_, Queue>, request: Arc<dyn Later>) {
        queue.last += 1;
        let number = queue.last;
        // This comes before another thread can post the request and call remove_work().
        self.background.add_work();
        queue.entries.push_back((number, request));
        self.count.store(queue.entries.len() as u64, Ordering::Relaxed);
        drop(queue);
        self.background.call(true);
    }

    /// The number of the last request that was parked.
    pub(super) fn last_parked(&self) -> u64 {
        self.parked().last
    }

    /// Whether a request to `peer` (ALL_PEERS: to any peer) with a number up to `number` is parked.
    pub(super) fn has_parked_before(&self, peer: u32, number: u64) -> bool {
        let fits = |it: &dyn Later| peer == ALL_PEERS || peer == it.peer();
        self.parked().entries.iter().any(|(its, later)| *its <= number && fits(&**later))
    }

    /// The first entry with a larger number.
    fn next(&self, number: u64) -> Option<(u64, Arc<dyn Later>)> {
        let queue = self.parked();
        let at = queue.entries.partition_point(|(its, _)| *its <= number);
        queue.entries.get(at).cloned()
    }

    fn remove(&self, number: u64) {
        let mut queue = self.parked();
        if let Ok(at) = queue.entries.binary_search_by_key(&number, |(its, _)| *its) {
            queue.entries.remove(at);
            // Release: a thread that sees the count finds the posted request in the lane's queue,
            // or ended; pairs with has_parked().
            self.count.store(queue.entries.len() as u64, Ordering::Release);
        }
        drop(queue);
        self.background.remove_work();
        self.routes.waiters().touched_word(self.count.as_ptr() as u64);
    }

    /// Posts the parked requests that find room now, for each peer in the order in which they were
    /// parked. Returns how many left the queue. It does nothing inside a callback, or while another
    /// thread posts.
    #[cold]
    pub fn post_parked(&self) -> usize {
        let Some(_turn) = self.turn.try_lock().ok().filter(|_| !in_callback()) else { return 0 };
        let (mut number, mut served, mut refused) = (0, 0, Vec::new());
        // Requests that callbacks park meanwhile wait for the next call; else a chain of them would
        // never end.
        let last = self.last_parked();
        while let Some((its, later)) = self.next(number).filter(|(its, _)| *its <= last) {
            number = its;
            if refused.contains(&later.peer()) {
                continue;
            }
            let end = match self.over.load(Ordering::Relaxed) {
                true => Err(Error::bare(Status::ERR_CANCELED)),
                false => later.post(self),
            };
            match end {
                Err(error) if error.status == Status::RETRY_QUEUE_FULL => break,
                Err(error) if error.status.is_retry() => {
                    refused.push(later.peer());
                    continue;
                }
                Err(error) => self.fail(&*later, &error),
                Ok(()) => {}
            }
            self.remove(number);
            served += 1;
        }
        served
    }

    /// Called before the progress thread sleeps. Asks for a ring when there is credit for the first
    /// message of each peer; those behind it wait for it. True: a request has found room meanwhile.
    #[cold]
    fn begin_sleep(&self) -> bool {
        self.ringing().clear();
        let parked = self.parked().entries.clone();
        let fabric = self.routes.fabric();
        let mut firsts = first_of_each(parked.iter(), |(_, it)| it.peer());
        firsts.retain(|(_, it)| {
            it.waits_for_slots(self).is_some_and(|(to, bytes)| {
                !fabric.has_credit(to, Class::Requests, bytes)
                    && fabric.ask_wake(to, Class::Requests, bytes, Sleeper::Progress)
            })
        });
        // After the fence either the thread that makes room sees that it must ring, or this
        // thread sees the room; see Carrier::ask_wake().
        if firsts.is_empty() || !heavy_fence() {
            return false;
        }
        if self.post_parked() > 0 {
            return true;
        }
        firsts.retain(|(_, it)| {
            let waits = it.waits_for_slots(self);
            waits.is_some_and(|(to, bytes)| !fabric.has_credit(to, Class::Requests, bytes))
        });
        self.ringing().extend(firsts.iter().map(|(number, _)| number));
        false
    }

    fn ringing(&self) -> MutexGuard<'_, Vec<u64>> {
        self.ringing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many parked requests wait until a peer rings. Counted now, since another thread may have
    /// posted the first one of a peer after begin_sleep(). Nobody has asked for a ring for those
    /// behind it, so they do not count.
    fn rung(&self) -> u32 {
        let (ringing, queue) = (self.ringing(), self.parked());
        let firsts = first_of_each(queue.entries.iter(), |(_, it)| it.peer());
        let rings =
            |peer| firsts.iter().any(|(number, it)| it.peer() == peer && ringing.contains(number));
        queue.entries.iter().filter(|(_, it)| rings(it.peer())).count() as u32
    }

    /// Cancels all parked requests; from now on none is posted. True: none is left.
    pub(super) fn cancel_parked(&self) -> bool {
        self.over.store(true, Ordering::Relaxed);
        self.post_parked();
        !self.has_parked()
    }

    fn fail(&self, later: &dyn Later, error: &Error) {
        let completions = later.completions();
        if completions.iter().all(Completion::is_nothing) {
            return self.routes.unreported().note(later.peer(), "a parked request", error);
        }
        for completion in completions {
            // SAFETY: the request was accepted, so it is valid and its user keeps it.
            unsafe { completion.fire(error.status, self.routes.waiters()) };
        }
    }
}

/// The progress thread's task: posts the parked requests of a context.
struct PostParked(Weak<Poster>);

impl PostParked {
    fn asks(&self, answer: impl FnOnce(&Poster) -> bool) -> bool {
        self.0.upgrade().is_some_and(|poster| answer(&poster))
    }
}

impl Task for PostParked {
    fn advance(&self) -> bool {
        self.asks(|poster| poster.has_parked() && poster.post_parked() > 0)
    }

    fn begin_sleep(&self) -> bool {
        self.asks(|poster| poster.has_parked() && poster.begin_sleep())
    }

    fn rung(&self) -> u32 {
        self.0.upgrade().map_or(0, |poster| poster.rung())
    }

    fn is_idle(&self) -> bool {
        !self.asks(Poster::has_parked)
    }

    fn is_crowded(&self) -> bool {
        false
    }

    fn is_worth_staying(&self) -> bool {
        false
    }

    fn cancel(&self, _: Status) {
        self.asks(Poster::cancel_parked);
    }
}
