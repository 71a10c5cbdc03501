//! The state that the lane's role protects: that of the executor and of the completer.

use crate::engine::by_owner::{InFlight, Stage};
use crate::engine::command::Command;
use crate::engine::command_queue::Consumer;
use crate::engine::in_flight::{InFlightTable, Tag};
use crate::engine::messages::deferred::DeferredQueue;
use crate::engine::messages::sender::AmSender;
use crate::engine::peer_turns::PeerTurns;
use crate::engine::post_line::PostLine;
use crate::engine::queue_entry::QueueEntry;
use crate::engine::routes::Routes;
use crate::engine::send_queue::{SendQueue, Sent};
use crate::transport::fabric::far::LastRegion;
use crate::transport::remote::Posting;
use crate::transport::{CHUNKS, Message, Posted, Receiver, Reply, SMALL_REQUEST};
use crate::util::admission::Admission;
use crate::util::status::Status;
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A received request that is not done, or whose answer was not sent.
pub(super) enum Kept {
    Request(Message, Box<[u8]>),
    Answer { peer: u32, reply: Reply, bytes: Box<[u8]> },
}

/// Requests that this rank cannot serve or answer yet, for instance from a peer that it has not
/// contacted. Each belongs to an operation in a peer's in-flight table, whose capacity bounds how
/// many of that peer are kept.
#[derive(Default)]
pub(super) struct Unserved {
    pub(super) kept: Vec<Kept>,
    /// Routes::contacts() before the last try to serve them.
    pub(super) contacts: u64,
    /// One of them is Served::Later or Served::Unanswered: no contact announces when it can go on,
    /// so each round tries.
    pub(super) unannounced: bool,
}

impl Unserved {
    /// Whether one of them may be served now.
    pub(super) fn may_go_on(&self, routes: &Routes) -> bool {
        self.unannounced || self.contacts != routes.contacts()
    }
}

/// Only the holder of the lane's role uses it.
pub struct LaneState {
    pub(super) consumer: Consumer<QueueEntry>,
    pub(super) post: Arc<AmSender>,
    pub(super) unserved: Unserved,
    /// Accepted active messages that wait for credit.
    pub(super) deferred: DeferredQueue,
    /// The threads that wait for room; they are woken when at most `half` slots are in use.
    room: Arc<Admission>,
    half: usize,
    /// Slots that the executor releases at a time. Each release costs producers a load of `head`.
    /// With a larger number producers would wait for room while callbacks run.
    pub(super) release_batch: usize,
    /// More than `half` slots were in use at the last look.
    full: bool,
    /// See Work::armed_for(). If it is not 0, some sources may be armed.
    armed_for: u64,
    pub(super) receivers: Vec<Box<dyn Receiver>>,
    pub(super) slots: InFlightTable<InFlight>,
    /// The number of operations in the table for which Op::is_own(); no flush waits for them.
    own: usize,
    /// A copy of accepted() for threads that do not hold the role.
    under_way: Arc<CachePadded<AtomicUsize>>,
    /// The reservations of large slots for answers, each with the peer that answers. The share has
    /// twice as many slots, since a dead peer may leave an unfinished answer in a slot.
    places: [Option<u32>; CHUNKS / 2],
    /// Remote keys (peer, key) to ask for, whose requests found the table full.
    questions: Vec<(u32, u64)>,
    /// Operations in the table whose request has not been sent to the owner.
    pub(super) waiting: SendQueue,
    /// Operations in the table that have not been posted to the network, by peer and age.
    pub(super) posts: PeerTurns<PostLine>,
    /// The region that the last short post has looked up for the bytes or the word of an atomic.
    pub(super) last_region: LastRegion,
    /// The region that it has looked up for the word of a signal: perhaps not that of the bytes.
    pub(super) last_word: LastRegion,
    /// How many completions the network has reported.
    pub(super) completions: u64,
    /// Work requests of one batch; kept for its memory.
    pub(super) batch: Vec<Posting>,
    /// The number of operations in `waiting` and `posts`.
    pub(super) unsent: usize,
    /// Flushes that wait for older operations, each with its own number in the order of commands.
    flushes: Vec<(Command, u64)>,
    /// The number of the last command.
    pub(super) order: u64,
    /// Answers of one round; kept for its memory.
    pub(super) replies: Vec<Reply>,
    /// Completions of the network of one round; kept for its memory.
    pub(super) ends: Vec<Reply>,
}

impl LaneState {
    pub(super) fn new(
        consumer: Consumer<QueueEntry>,
        (room, half): (Arc<Admission>, usize),
        receivers: Vec<Box<dyn Receiver>>,
        post: Arc<AmSender>,
        in_flight: usize,
    ) -> LaneState {
        LaneState {
            consumer,
            post,
            unserved: Unserved::default(),
            deferred: DeferredQueue::default(),
            room,
            half,
            release_batch: (half / 8).clamp(1, 4),
            full: false,
            armed_for: 0,
            receivers,
            slots: InFlightTable::new(in_flight),
            own: 0,
            under_way: Arc::default(),
            places: [None; CHUNKS / 2],
            questions: Vec::new(),
            waiting: SendQueue::default(),
            posts: PeerTurns::default(),
            last_region: LastRegion::default(),
            last_word: LastRegion::default(),
            completions: 0,
            batch: Vec::new(),
            unsent: 0,
            flushes: Vec::new(),
            order: 0,
            replies: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The copy of accepted() for Lane::has_ended().
    pub(super) fn under_way(&self) -> Arc<CachePadded<AtomicUsize>> {
        self.under_way.clone()
    }

    /// The number of operations and messages of users that have left the queue and have not ended.
    fn accepted(&self) -> usize {
        self.slots.len() - self.own + self.deferred.len()
    }

    /// Copies accepted() to `under_way`. To be called after each change of accepted(): for an
    /// operation that was taken from the queue, before its slot is released; for one that has
    /// ended, after its completion has fired.
    pub(super) fn count_under_way(&self) {
        // Release: a thread that reads 0 sees what the operations have written; pairs with
        // Lane::has_ended().
        self.under_way.store(self.accepted(), Ordering::Release);
    }

    /// Asserts that count_under_way() was called after the last change.
    pub(super) fn check_count(&self) {
        debug_assert_eq!(
            self.under_way.load(Ordering::Relaxed),
            self.accepted(),
            "count_under_way() was forgotten"
        );
    }

    /// One round: executes commands, then polls the receivers. Returns the number of slots and
    /// events handled.
    #[inline]
    pub(super) fn round(&mut self, routes: &Routes) -> usize {
        let executed = self.execute(routes);
        if executed > 0 && self.room.is_wanted() {
            let full = !self.is_half_empty();
            if std::mem::replace(&mut self.full, full) && !full {
                self.room.announce();
            }
        }
        let mut count = executed + self.complete(routes);
        if !self.deferred.is_empty() {
            count += self.send_deferred(routes);
        }
        if routes.take_news() {
            count += self.mark_dead(routes);
            self.take_questions(routes);
        }
        count
    }

    /// Whether enough of the queue is free to wake threads that wait for room.
    pub(super) fn is_half_empty(&self) -> bool {
        self.consumer.backlog() <= self.half
    }

    /// Whether no operation of users is in the queue or in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.consumer.is_empty() && self.accepted() == 0 && self.flushes.is_empty()
    }

    /// Arms all sources for a sleep of the progress thread. False: one of them has work.
    pub(super) fn arm(&mut self, routes: &Routes, sleep: u64) -> bool {
        self.armed_for = sleep;
        (self.unserved.kept.is_empty() || !self.unserved.may_go_on(routes))
            && !routes.has_news()
            && self.consumer.try_wait()
            && self.receivers.iter_mut().all(|receiver| receiver.arm())
            // Last, since these write to peers' cache lines.
            && (self.unsent == 0 || self.waits_for_room(routes))
            && (self.deferred.is_empty() || self.deferred.sleeps_for_credit(&self.post))
    }

    /// Disarms the sources, if arm() was called before: disarming writes to cache lines that
    /// producers use.
    #[inline]
    pub(super) fn disarm(&mut self) {
        if std::mem::take(&mut self.armed_for) != 0 {
            self.consumer.cancel_wait();
            self.receivers.iter_mut().for_each(|receiver| receiver.disarm());
        }
    }

    /// See Work::armed_for().
    #[inline]
    pub(super) fn armed_for(&self) -> u64 {
        self.armed_for
    }

    /// Puts a command into the in-flight table and posts its first stage. False: the table is full.
    /// `carried`: the command's bytes are valid only during this call.
    ///
    /// # Safety
    /// As for InFlight::new().
    pub(super) unsafe fn start(
        &mut self,
        routes: &Routes,
        command: Command,
        stage: Stage,
        carried: bool,
    ) -> bool {
        if self.slots.is_full() {
            return false;
        }
        self.order += 1;
        // SAFETY: as the caller promises.
        self.ask(routes, unsafe { InFlight::new(command, stage, self.order, carried) })
    }

    /// Puts an operation into the in-flight table and posts its stage. False: the table is full.
    pub(super) fn ask(&mut self, routes: &Routes, operation: InFlight) -> bool {
        let is_own = operation.command.op.is_own();
        let Some(tag) = self.slots.insert(operation) else { return false };
        self.own += usize::from(is_own);
        self.count_under_way();
        self.send_or_wait(routes, tag);
        true
    }

    /// Posts an operation's present stage: gathers it for the network, or sends its request, or
    /// puts it into the send queue behind those that wait.
    pub(super) fn send_or_wait(&mut self, routes: &Routes, tag: Tag) {
        self.unsent += 1;
        if self.slots.get_mut(tag).is_some_and(|operation| operation.is_posted()) {
            return self.gather(tag);
        }
        if self.waiting.is_empty() && self.send(routes, tag) == Sent::Done {
            return;
        }
        if let Some(operation) = self.slots.get_mut(tag) {
            // A read with a large slot needs a request slot only. It must not wait behind a read
            // that waits for a large slot.
            let is_large = operation.is_large() && !operation.has_place;
            self.waiting.push(operation.command.peer, operation.order, tag, is_large);
        }
    }

    /// Sends requests of the send queue; returns how many operations have left it.
    pub(super) fn send_waiting(&mut self, routes: &Routes) -> usize {
        let mut waiting = std::mem::take(&mut self.waiting);
        let served = waiting.serve(|tag| self.send(routes, tag));
        debug_assert!(self.waiting.is_empty(), "an operation that fails in send() sends nothing");
        self.waiting = waiting;
        served
    }

    /// Begins a flush, which ends at once if no older operation is under way.
    ///
    /// # Safety
    /// As for Lane::put(); each command is begun once.
    pub(super) unsafe fn start_flush(&mut self, routes: &Routes, command: Command) {
        self.order += 1;
        self.flushes.push((command, self.order));
        self.end_flushes(routes);
    }

    /// Reserves a large slot for an answer of `peer`. One peer gets at most half of the places, so
    /// a peer that does not answer leaves some for others. False: there is none for this peer.
    fn set_place_aside(&mut self, peer: u32) -> bool {
        let has = self.places.iter().filter(|user| **user == Some(peer)).count();
        let mut free = self.places.iter_mut().filter(|user| user.is_none());
        let place = free.next().filter(|_| has < CHUNKS / 4);
        place.map(|place| *place = Some(peer)).is_some()
    }

    fn give_place_back(&mut self, peer: u32) {
        if let Some(place) = self.places.iter_mut().find(|user| **user == Some(peer)) {
            *place = None;
        }
    }

    /// Tries to send an operation's request to the owner.
    fn send(&mut self, routes: &Routes, tag: Tag) -> Sent {
        // The operation may have ended while it waited.
        let Some(operation) = self.slots.get_mut(tag) else { return Sent::Done };
        let (peer, needs_place) = (operation.command.peer, operation.needs_place());
        // The port exists, since the operation was accepted.
        let port = match routes.known(peer) {
            Some(port) if !routes.is_dead(peer) => port,
            _ => {
                self.end(routes, tag, Status::ERR_PEER_DEAD);
                return Sent::Done;
            }
        };
        if needs_place && !self.set_place_aside(peer) {
            return Sent::NoPlace;
        }
        let Some(operation) = self.slots.get_mut(tag) else { return Sent::Done };
        operation.has_place |= needs_place;
        let message = operation.message(routes.own().peer, tag.0);
        let bytes = operation.bytes();
        if routes.transport(port).post(port, &message, bytes) == Posted::Full {
            // Only requests with few bytes use the request slots; those with many use large slots.
            if bytes.len() <= SMALL_REQUEST {
                return Sent::Full;
            }
            // While an operation waits for a large slot for its request, it must not hold one for
            // its answer.
            if needs_place {
                operation.has_place = false;
                self.give_place_back(peer);
            }
            return Sent::NoPlace;
        }
        operation.sent = true;
        self.unsent -= 1;
        // Only the holder of the role adds to this counter.
        self.post.counts.owner_requests.up_alone(u64::from(!operation.command.op.is_own()));
        Sent::Done
    }
}

#[cfg(all(test, not(loom)))]
mod tests;

mod end;
mod questions;

pub(super) use end::{fire, fire_failure};
