//! What the holder of the lane's role works on: the executor's and the completer's state.

use crate::engine::by_owner::{InFlight, Stage};
use crate::engine::command::{ALL_PEERS, Command, Op, PIECE};
use crate::engine::command_queue::Consumer;
use crate::engine::in_flight::{InFlightTable, Tag};
use crate::engine::messages::deferred::{DeferredQueue, take_deferred};
use crate::engine::messages::sender::MessagePost;
use crate::engine::notices;
use crate::engine::peer_turns::PeerTurns;
use crate::engine::queue_entry::QueueEntry;
use crate::engine::routes::Routes;
use crate::engine::send_queue::{SendQueue, Sent};
use crate::transport::remote::Posting;
use crate::transport::{CHUNKS, Message, Posted, Receiver, Reply, SMALL_REQUEST};
use crate::util::admission::Admission;
use crate::util::status::{Error, Status};
use crossbeam_utils::CachePadded;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests of peers that this rank can not serve yet, as of those that it has not contacted.
#[derive(Default)]
pub(super) struct Unserved {
    pub(super) messages: Vec<(Message, Box<[u8]>)>,
    /// Routes::contacts() before the last look.
    pub(super) contacts: u64,
    /// Nothing announces when one of them can be served; see Served::Later.
    pub(super) unannounced: bool,
}

impl Unserved {
    /// Whether another look may find that one of them can be answered.
    pub(super) fn may_go_on(&self, routes: &Routes) -> bool {
        self.unannounced || self.contacts != routes.contacts()
    }
}

/// Belongs to the holder of the role alone.
pub struct LaneState {
    pub(super) consumer: Consumer<QueueEntry>,
    pub(super) post: Arc<MessagePost>,
    pub(super) unserved: Unserved,
    /// Active messages without credit.
    pub(super) deferred: DeferredQueue,
    /// Wakes the threads that wait for room, when the queue is half empty again.
    room: Arc<Admission>,
    half: usize,
    /// Slots that are given back at a time: one by one each costs producers a look, and many would
    /// keep them waiting while user code runs.
    pub(super) lot: usize,
    /// The queue was not half empty at the last look.
    full: bool,
    /// Sources may be armed.
    armed: bool,
    pub(super) receivers: Vec<Box<dyn Receiver>>,
    pub(super) slots: InFlightTable<InFlight>,
    /// How many operations in the table are the library's own (Op::is_own). Neither flushes
    /// wait for them nor threads that wait for the end of what was accepted.
    own: usize,
    /// How much has been taken from the queue and has not ended, but for the library's own; for
    /// those who do not hold the role.
    under_way: Arc<CachePadded<AtomicUsize>>,
    /// For each place for an answer of many bytes the peer that it is set aside for. There are
    /// twice as many slots, since the dead may leave behind answers that are begun.
    places: [Option<u32>; CHUNKS / 2],
    /// Questions for keys that found no room in the table.
    questions: Vec<(u32, u64)>,
    /// Operations in the table whose message has not been sent, and their number.
    pub(super) waiting: SendQueue,
    /// Of these those that a network is to be given: for each peer in the order of their age.
    pub(super) posts: PeerTurns<VecDeque<Tag>>,
    /// One of these batches; kept for its memory.
    pub(super) batch: Vec<Posting>,
    pub(super) unsent: usize,
    /// Flushes that wait for what came before them, each with its number in the order of commands.
    flushes: Vec<(Command, u64)>,
    pub(super) order: u64,
    /// Answers of one round; kept for its memory.
    pub(super) replies: Vec<Reply>,
    /// As those, ends of what was posted.
    pub(super) ends: Vec<Reply>,
}

impl LaneState {
    pub(super) fn new(
        consumer: Consumer<QueueEntry>,
        (room, half): (Arc<Admission>, usize),
        receivers: Vec<Box<dyn Receiver>>,
        post: Arc<MessagePost>,
        in_flight: usize,
    ) -> LaneState {
        LaneState {
            consumer,
            post,
            unserved: Unserved::default(),
            deferred: DeferredQueue::default(),
            room,
            half,
            lot: (half / 8).clamp(1, 4),
            full: false,
            armed: false,
            receivers,
            slots: InFlightTable::new(in_flight),
            own: 0,
            under_way: Arc::default(),
            places: [None; CHUNKS / 2],
            questions: Vec::new(),
            waiting: SendQueue::default(),
            posts: PeerTurns::default(),
            batch: Vec::new(),
            unsent: 0,
            flushes: Vec::new(),
            order: 0,
            replies: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Where it says how much is under way.
    pub(super) fn under_way(&self) -> Arc<CachePadded<AtomicUsize>> {
        self.under_way.clone()
    }

    /// How much has been taken from the queue and has not ended, but for the library's own.
    fn accepted(&self) -> usize {
        self.slots.len() - self.own + self.deferred.len()
    }

    /// To be called where something was taken in, before its slot of the queue is released; and
    /// where something has ended, when its user has been told.
    pub(super) fn count_under_way(&self) {
        // Release: a thread that reads 0 sees what the ends have brought; pairs with
        // Lane::has_ended().
        self.under_way.store(self.accepted(), Ordering::Release);
    }

    /// Whether that was called wherever it must be; to be asked by a thread that gives the role up.
    pub(super) fn check_count(&self) {
        debug_assert_eq!(
            self.under_way.load(Ordering::Relaxed),
            self.accepted(),
            "count_under_way() was forgotten"
        );
    }

    /// One round: own commands, then peers; returns how much was done.
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
            count += self.send_late(routes);
        }
        if routes.take_news() {
            count += self.mark_dead(routes);
            self.take_questions(routes);
        }
        count
    }

    /// Whether so much of the queue is free that it pays to wake a thread that waits for room.
    pub(super) fn is_half_empty(&self) -> bool {
        self.consumer.backlog() <= self.half
    }

    /// Whether nothing is in the queue or in flight, but for the library's own.
    pub(super) fn is_idle(&self) -> bool {
        self.consumer.is_empty() && self.accepted() == 0 && self.flushes.is_empty()
    }

    /// Announces to all sources that nobody works from now on; false: one has work.
    pub(super) fn arm(&mut self, routes: &Routes) -> bool {
        self.armed = true;
        (self.unsent == 0 || self.waits_for_wire())
            && self.deferred.is_empty()
            && (self.unserved.messages.is_empty() || !self.unserved.may_go_on(routes))
            && !routes.has_news()
            && self.consumer.try_wait()
            && self.receivers.iter_mut().all(|receiver| receiver.arm())
    }

    /// Takes that back. It costs a write to lines that producers use, so only what was armed is.
    #[inline]
    pub(super) fn disarm(&mut self) {
        if std::mem::take(&mut self.armed) {
            self.consumer.cancel_wait();
            self.receivers.iter_mut().for_each(|receiver| receiver.disarm());
        }
    }

    /// Takes in a command and asks its agent; false: the table is full. `carried`: the bytes of the
    /// command are there only during this call.
    pub(super) fn start(
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
        self.ask(routes, InFlight::new(command, stage, self.order, carried))
    }

    /// Puts an operation into the table and asks its agent; false: the table is full.
    pub(super) fn ask(&mut self, routes: &Routes, operation: InFlight) -> bool {
        let is_own = operation.command.op.is_own();
        let Some(tag) = self.slots.insert(operation) else { return false };
        self.own += usize::from(is_own);
        self.count_under_way();
        self.send_or_wait(routes, tag);
        true
    }

    /// Sends the message of an operation's present stage; where others wait to be sent, behind
    /// them.
    pub(super) fn send_or_wait(&mut self, routes: &Routes, tag: Tag) {
        self.unsent += 1;
        if self.slots.get_mut(tag).is_some_and(|operation| operation.is_posted()) {
            return self.gather(tag);
        }
        if self.waiting.is_empty() && self.send(routes, tag) == Sent::Done {
            return;
        }
        if let Some(operation) = self.slots.get_mut(tag) {
            // A read that has its place already needs a slot only. It must not wait behind one that
            // waits for that place.
            let is_large = operation.is_large() && !operation.has_place;
            self.waiting.push(operation.command.peer, operation.order, tag, is_large);
        }
    }

    /// Sends what waits for it; returns how much of that was done.
    pub(super) fn send_waiting(&mut self, routes: &Routes) -> usize {
        let mut waiting = std::mem::take(&mut self.waiting);
        let served = waiting.serve(|tag| self.send(routes, tag));
        debug_assert!(self.waiting.is_empty(), "an end by a failure sends nothing");
        self.waiting = waiting;
        served
    }

    /// Takes in a flush, which ends at once if nothing before it is under way.
    pub(super) fn start_flush(&mut self, routes: &Routes, command: Command) {
        self.order += 1;
        self.flushes.push((command, self.order));
        self.end_flushes(routes);
    }

    /// Sets a place aside for an answer of `peer`; one that does not answer gets no more than half
    /// of them. False: there is none.
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

    /// Asks the agent of an operation whose message has not been sent, if that is possible now.
    fn send(&mut self, routes: &Routes, tag: Tag) -> Sent {
        // It may have ended while it waited.
        let Some(operation) = self.slots.get_mut(tag) else { return Sent::Done };
        let (peer, needs_place) = (operation.command.peer, operation.needs_place());
        // The thread that accepted the operation had the port.
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
            // Requests with many bytes have slots of their own.
            if bytes.len() <= SMALL_REQUEST {
                return Sent::Full;
            }
            // It waits where operations wait for a place, so it must not hold one meanwhile.
            if needs_place {
                operation.has_place = false;
                self.give_place_back(peer);
            }
            return Sent::NoPlace;
        }
        operation.sent = true;
        self.unsent -= 1;
        Sent::Done
    }

    /// Ends an operation: gives back what it held and tells the user.
    pub(super) fn end(&mut self, routes: &Routes, tag: Tag, status: Status) {
        let Some(mut operation) = self.slots.remove(tag) else { return };
        if status == Status::ERR_CANCELED && operation.is_posted() {
            // The network may still read them.
            operation.take_copy().into_iter().for_each(|bytes| routes.fabric().keep(bytes));
        }
        if operation.has_place {
            self.give_place_back(operation.command.peer);
        }
        self.own -= usize::from(operation.command.op.is_own());
        if !operation.sent {
            self.unsent -= 1;
        }
        match operation.command.op {
            Op::MESSAGE => self.payload_written(&operation.command, status),
            Op::READ_MANY | Op::WRITE_MANY => self.end_pieces(routes, &operation, status),
            Op::READ | Op::WRITE if operation.command.code == PIECE => {
                self.end_pieces(routes, &operation, status);
            }
            Op::IMPORT => imported(routes, &operation.command, status),
            Op::NOTICE => notices::end(&operation.command, status),
            _ => fire(routes, &operation.command, status),
        }
        if status == Status::ERR_KEY {
            refused(routes, &operation);
        }
        self.count_under_way();
        self.end_flushes(routes);
    }

    /// Ends the flushes before which nothing is under way any more.
    pub(super) fn end_flushes(&mut self, routes: &Routes) {
        let mut at = 0;
        while let Some((flush, order)) = self.flushes.get(at) {
            let fits = |peer: u32| flush.peer == ALL_PEERS || flush.peer == peer;
            let before = |it: &InFlight| {
                it.order < *order && fits(it.command.peer) && !it.command.op.is_own()
            };
            let busy = self.slots.iter().any(|(_, it)| before(it))
                || self.deferred.has_before(*order, fits);
            if busy {
                at += 1;
            } else {
                let (flush, _) = self.flushes.remove(at);
                fire(routes, &flush, Status::OK);
            }
        }
    }

    /// Ends everything that fits; returns how many there were.
    fn end_if(
        &mut self,
        routes: &Routes,
        status: Status,
        fits: impl Fn(&InFlight) -> bool,
    ) -> usize {
        let tags: Vec<Tag> = self
            .slots
            .iter()
            .filter(|(_, operation)| fits(operation))
            .map(|(tag, _)| tag)
            .collect();
        for tag in &tags {
            self.end(routes, *tag, status);
        }
        tags.len()
    }

    /// Ends what is pending on peers that are dead.
    fn mark_dead(&mut self, routes: &Routes) -> usize {
        let ended = self.post.end_all(Status::ERR_PEER_DEAD, |peer| routes.is_dead(peer));
        ended
            + self.end_if(routes, Status::ERR_PEER_DEAD, |operation| {
                // What a network has may still use this rank's memory; the network tells its end.
                routes.is_dead(operation.command.peer) && !(operation.is_posted() && operation.sent)
            })
    }

    /// Ends everything, in flight or still in the queue, without executing it.
    pub(super) fn cancel(&mut self, routes: &Routes) -> usize {
        let mut count = 0;
        while let Some((command, extra)) = self.consumer.peek(0).map(QueueEntry::take) {
            // The slots of its bytes were filled before its own; they go together.
            let shown = (0..=extra).take_while(|at| self.consumer.peek(*at).is_some()).count();
            match command.op {
                Op::NOTHING => {}
                Op::FLUSH => self.start_flush(routes, command),
                Op::MESSAGE => {
                    take_deferred(command.local).end(&self.post, Status::ERR_CANCELED);
                    count += 1;
                }
                Op::PIECES => {
                    // What of it is in flight still ends, below.
                    let failure = Error::bare(Status::ERR_CANCELED);
                    self.end_piece(routes, command.local.cast(), Some(failure), 0);
                    count += 1;
                }
                Op::NOTICE => notices::end(&command, Status::ERR_CANCELED),
                _ => {
                    fire(routes, &command, Status::ERR_CANCELED);
                    count += 1;
                }
            }
            self.consumer.release(shown);
        }
        self.cancel_questions(routes);
        count += self.end_if(routes, Status::ERR_CANCELED, |_| true);
        count += self.deferred.cancel(&self.post);
        self.count_under_way();
        self.end_flushes(routes);
        count
    }
}

/// Tells the user that a command has ended.
pub(super) fn fire(routes: &Routes, command: &Command, status: Status) {
    if status != Status::OK {
        return fire_failure(routes, command, &Error::bare(status));
    }
    command.on_local.fire(status, routes.waiters());
    command.on_complete.fire(status, routes.waiters());
}

/// Tells the user that a command has failed: by its completions, or else by the next flush.
pub(super) fn fire_failure(routes: &Routes, command: &Command, error: &Error) {
    if command.on_local.is_nothing() && command.on_complete.is_nothing() {
        return routes.unreported().note_command(command, error);
    }
    command.on_local.fire(error.status, routes.waiters());
    command.on_complete.fire(error.status, routes.waiters());
}

#[cfg(all(test, not(loom)))]
mod tests;

mod questions;
use questions::{imported, refused};
