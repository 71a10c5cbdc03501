//! Loom models of the handover. Role, rules, command queue and bell are the library's own types.
//! `Pieces` stands for the lane's state: one word stands for a receiver, and a round takes all work
//! from the queue and from that word. If work stays undone while every thread sleeps, the model
//! deadlocks, which loom reports.

use super::*;
use crate::engine::command_queue::{CommandQueue, Consumer};
use crate::util::bell::Bell;
use crate::util::sync::AtomicU32;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

/// Bit 0 of a source: no thread polls. The other bits count the pieces of work that have come.
const WAITING: u32 = 1;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

struct Pieces {
    consumer: Consumer<u32>,
    armed_for: u64,
    /// Pieces of work that have been done.
    done: u32,
    /// The receiver's word; shared with the peers.
    source: Arc<AtomicU32>,
}

struct ModelLane {
    queue: CommandQueue<u32>,
    handover: Handover<Pieces>,
    source: Arc<AtomicU32>,
    deaths: AtomicU32,
    bell: std::sync::Arc<Bell>,
    /// Set when all expected work is done; the progress thread then ends.
    stop: AtomicU32,
    /// How many pieces of work the model brings in all.
    expected: u32,
}

fn lane(expected: u32) -> Arc<ModelLane> {
    let bell = std::sync::Arc::new(Bell::new());
    let for_drops = bell.clone();
    let (queue, consumer) = CommandQueue::new(8, move || for_drops.ring()).unwrap();
    let word = || AtomicU32::new(0);
    let source = Arc::new(word());
    let work = Pieces { consumer, armed_for: 0, done: 0, source: source.clone() };
    let handover = Handover::new(work);
    Arc::new(ModelLane { queue, handover, source, deaths: word(), bell, stop: word(), expected })
}

impl Work for Pieces {
    type Around = ModelLane;

    fn round(&mut self, lane: &ModelLane) -> usize {
        let mut count = 0;
        while self.consumer.peek(0).is_some() {
            self.consumer.release(1);
            count += 1;
        }
        // As a receiver does: a relaxed load, then a read-modify-write.
        if self.source.load(Ordering::Relaxed) & !WAITING != 0 {
            let taken = self.source.fetch_and(WAITING, Ordering::AcqRel);
            count += taken >> 1;
        }
        if lane.deaths.load(Ordering::Relaxed) != 0 {
            count += lane.deaths.swap(0, Ordering::Acquire);
        }
        self.done += count;
        if count > 0 && self.done == lane.expected {
            lane.stop.store(1, Ordering::Release);
            lane.bell.ring();
        }
        count as usize
    }

    fn arm(&mut self, lane: &ModelLane, sleep: u64) -> bool {
        self.armed_for = sleep;
        lane.deaths.load(Ordering::Relaxed) == 0 && self.consumer.try_wait() && {
            let (expected, new, order) = (0, WAITING, Ordering::AcqRel);
            let armed = self.source.compare_exchange(expected, new, order, Ordering::Acquire);
            matches!(armed, Ok(_) | Err(WAITING))
        }
    }

    fn disarm(&mut self) {
        if std::mem::take(&mut self.armed_for) != 0 {
            self.consumer.cancel_wait();
            self.source.fetch_and(!WAITING, Ordering::AcqRel);
        }
    }

    fn armed_for(&self) -> u64 {
        self.armed_for
    }
}

impl Around for ModelLane {
    fn ring(&self) {
        self.bell.ring();
    }

    fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    fn may_work(&self) -> bool {
        true
    }
}

impl ModelLane {
    fn put(&self) -> bool {
        let mut slot = self.queue.reserve(1).unwrap();
        slot.write(0, 1);
        slot.commit()
    }

    /// A requester in auto mode.
    fn request(&self) {
        let _takes_the_ringing_over = self.put();
        self.handover.help(self);
    }

    /// A requester in offload mode or inside a callback.
    fn leave_to_others(&self) {
        if self.put() {
            self.bell.ring();
        }
    }

    /// A peer: brings a piece of work, and rings if no thread polls.
    fn deliver(&self) {
        let before = self.source.fetch_add(2, Ordering::AcqRel);
        if before & WAITING != 0 && self.source.fetch_and(!WAITING, Ordering::AcqRel) & WAITING != 0
        {
            self.bell.ring();
        }
    }

    /// The thread that learns of a death.
    fn mark_dead(&self) {
        self.deaths.store(1, Ordering::Release);
        self.bell.ring();
    }

    /// A thread that takes the role and does no work, as in Lane::is_idle().
    fn is_idle(&self) {
        if let Some(work) = self.handover.take() {
            self.handover.finish(work, self);
        }
    }

    /// A requester that posts to a network, as in Lane::post_directly() and post_to_wire().
    fn post(&self) {
        if let Some(work) = self.handover.take_armed() {
            self.handover.finish(work, self);
        }
    }

    /// A thread that polls a network, which has no event, as in Lane::help_polling().
    fn poll_in_vain(&self) {
        if let Some(work) = self.handover.take_armed() {
            self.handover.finish_after_poll(work, self, Polled::Nothing);
        }
    }

    /// The progress thread, as in `core::progress_thread`. A nap is a yield: the model has no
    /// clock.
    fn progress(&self) {
        loop {
            let ticket = self.bell.ticket();
            if self.stop.load(Ordering::Acquire) != 0 {
                return;
            }
            if self.handover.turn(self) != Turn::Idle {
                continue;
            }
            if self.handover.park(self) {
                self.bell.wait(ticket, None);
            } else {
                thread::yield_now();
            }
            self.handover.unpark();
        }
    }

    fn done(&self) -> u32 {
        self.handover.take().unwrap().done
    }
}

fn spawn(lane: &Arc<ModelLane>, f: impl FnOnce(&ModelLane) + 'static) -> JoinHandle<()> {
    let lane = lane.clone();
    thread::spawn(move || f(&lane))
}

/// The progress thread and two others, which bring `pieces` pieces of work in all.
fn against_progress(
    preemptions: usize,
    pieces: u32,
    first: impl Fn(&ModelLane) + Copy + Send + Sync + 'static,
    second: impl Fn(&ModelLane) + Copy + Send + Sync + 'static,
) {
    check(preemptions, move || {
        let lane = lane(pieces);
        let others = [spawn(&lane, first), spawn(&lane, second)];
        lane.progress();
        let _ = others.map(|other| other.join().unwrap());
        assert_eq!(lane.done(), pieces);
    });
}

/// At most one thread holds the role: loom's cell reports two threads that access the value
/// unordered.
#[test]
fn loom_the_role_has_one_holder() {
    check(3, || {
        let role = Arc::new(Role::new(0));
        let other = {
            let role = role.clone();
            thread::spawn(move || role.take().map(|mut value| *value += 1).is_some())
        };
        let mine = role.take().map(|mut value| *value += 1).is_some();
        let theirs = other.join().unwrap();
        assert!(mine || theirs, "the role was free and nobody got it");
        assert_eq!(*role.take().unwrap(), u32::from(mine) + u32::from(theirs));
    });
}

#[test]
fn loom_requesters_beside_a_parking_progress_thread() {
    against_progress(2, 2, ModelLane::request, ModelLane::request);
}

#[test]
fn loom_a_peer_and_a_requester() {
    against_progress(2, 2, ModelLane::request, ModelLane::deliver);
}

/// The holder does no work, so the peer's work is done only if the holder leaves by the rules.
#[test]
fn loom_a_peer_and_a_holder_that_only_looks() {
    against_progress(3, 1, ModelLane::is_idle, ModelLane::deliver);
}

#[test]
fn loom_a_request_from_a_callback_and_a_holder_that_only_looks() {
    against_progress(3, 1, ModelLane::is_idle, ModelLane::leave_to_others);
}

#[test]
fn loom_a_request_from_a_callback_and_a_peer() {
    against_progress(2, 2, ModelLane::leave_to_others, ModelLane::deliver);
}

/// A death cannot be armed: the thread that learns of it always rings, and may do so while the
/// progress thread is awake and the role taken.
#[test]
fn loom_a_death_beside_a_holder_that_only_looks() {
    against_progress(3, 1, ModelLane::is_idle, ModelLane::mark_dead);
}

#[test]
fn loom_a_death_and_a_requester() {
    against_progress(2, 2, ModelLane::request, ModelLane::mark_dead);
}

#[test]
fn loom_a_peer_and_a_holder_that_leaves_the_sources_armed() {
    against_progress(3, 1, ModelLane::post, ModelLane::deliver);
}

#[test]
fn loom_a_request_from_a_callback_and_a_holder_that_leaves_the_sources_armed() {
    against_progress(3, 1, ModelLane::post, ModelLane::leave_to_others);
}

#[test]
fn loom_a_death_beside_a_holder_that_leaves_the_sources_armed() {
    against_progress(3, 1, ModelLane::post, ModelLane::mark_dead);
}

#[test]
fn loom_a_requester_beside_a_holder_that_leaves_the_sources_armed() {
    against_progress(2, 1, ModelLane::post, ModelLane::request);
}

#[test]
fn loom_a_peer_and_a_poll_without_events() {
    against_progress(2, 1, ModelLane::poll_in_vain, ModelLane::deliver);
}

#[test]
fn loom_a_request_from_a_callback_and_a_poll_without_events() {
    against_progress(2, 1, ModelLane::poll_in_vain, ModelLane::leave_to_others);
}

#[test]
fn loom_a_death_beside_a_poll_without_events() {
    against_progress(2, 1, ModelLane::poll_in_vain, ModelLane::mark_dead);
}
