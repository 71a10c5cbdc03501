//! Loom models of how the lane's role is taken, given up and left to a sleeping progress thread.
//! `Lane` and `LaneState` below follow `engine::lane` step by step, with its own role, ring and bell; an
//! inbox or reply board is the word that it comes down to, and a round takes in all there is. Work
//! left lying while everybody sleeps is a deadlock, which loom reports.

use super::*;
use crate::engine::command_queue::{CommandQueue, Consumer};
use crate::util::bell::Bell;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

/// Bit 0 of a source: nobody polls. The rest counts what has come.
const WAITING: u32 = 1;
/// As in `engine::lane`, smaller.
const ROUNDS: usize = 3;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

struct LaneState {
    consumer: Consumer<u32>,
    armed: bool,
    /// Pieces of work that have been done.
    done: u32,
}

struct Lane {
    ring: CommandQueue<u32>,
    role: Role<LaneState>,
    parked: AtomicU32,
    /// What peers bring.
    source: AtomicU32,
    deaths: AtomicU32,
    bell: std::sync::Arc<Bell>,
    /// No work is expected any more: the progress thread ends.
    stop: AtomicU32,
    /// How many pieces of work the model brings in all.
    expected: u32,
}

fn lane(expected: u32) -> Arc<Lane> {
    let bell = std::sync::Arc::new(Bell::new());
    let for_drops = bell.clone();
    let (ring, consumer) = CommandQueue::new(8, move || for_drops.ring());
    let word = || AtomicU32::new(0);
    Arc::new(Lane {
        ring,
        role: Role::new(LaneState { consumer, armed: false, done: 0 }),
        parked: word(),
        source: word(),
        deaths: word(),
        bell,
        stop: word(),
        expected,
    })
}

impl LaneState {
    fn round(&mut self, lane: &Lane) -> usize {
        let mut count = 0;
        while self.consumer.peek(0).is_some() {
            self.consumer.release(1);
            count += 1;
        }
        // As an inbox and a reply board do: a relaxed look, then a read-modify-write.
        if lane.source.load(Ordering::Relaxed) & !WAITING != 0 {
            let taken = lane.source.fetch_and(WAITING, Ordering::AcqRel);
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

    fn arm(&mut self, lane: &Lane) -> bool {
        self.armed = true;
        lane.deaths.load(Ordering::Relaxed) == 0 && self.consumer.try_wait() && {
            let (expected, new, order) = (0, WAITING, Ordering::AcqRel);
            let armed = lane.source.compare_exchange(expected, new, order, Ordering::Acquire);
            matches!(armed, Ok(_) | Err(WAITING))
        }
    }

    fn disarm(&mut self, lane: &Lane) {
        if std::mem::take(&mut self.armed) {
            self.consumer.cancel_wait();
            lane.source.fetch_and(!WAITING, Ordering::AcqRel);
        }
    }
}

impl Lane {
    fn put(&self) -> bool {
        let mut slot = self.ring.reserve(1).unwrap();
        slot.write(0, 1);
        slot.commit()
    }

    /// A requester in auto mode.
    fn request(&self) {
        let _takes_the_ringing_over = self.put();
        self.help();
    }

    /// A requester in offload mode or inside a callback.
    fn leave_to_others(&self) {
        if self.put() {
            self.bell.ring();
        }
    }

    /// A peer: brings something, and rings where nobody polls.
    fn deliver(&self) {
        let before = self.source.fetch_add(2, Ordering::AcqRel);
        if before & WAITING != 0 && self.source.fetch_and(!WAITING, Ordering::AcqRel) & WAITING != 0
        {
            self.bell.ring();
        }
    }

    fn mourn(&self) {
        self.deaths.store(1, Ordering::Release);
        self.bell.ring();
    }

    fn help(&self) -> bool {
        let (mut worked, mut left) = (false, ROUNDS);
        while left > 0 {
            let Some(mut work) = self.role.take() else { return worked };
            work.disarm(self);
            while left > 0 {
                left -= 1;
                if work.round(self) == 0 {
                    break;
                }
                worked = true;
            }
            if self.leave(work) {
                return worked;
            }
        }
        self.bell.ring();
        worked
    }

    /// A holder that looks at something and does no work.
    fn is_idle(&self) {
        if let Some(mut work) = self.role.take() {
            work.disarm(self);
            self.finish(work);
        }
    }

    fn leave(&self, mut work: Held<'_, LaneState>) -> bool {
        let parked = self.parked.load(Ordering::Acquire);
        let asleep = parked & 1 == 1;
        let armed = asleep && work.arm(self);
        drop(work);
        if asleep && !armed {
            self.bell.ring();
            return true;
        }
        let now = self.parked.load(Ordering::Relaxed);
        self.ring.is_empty() && (now & 1 == 0 || (armed && now == parked))
    }

    fn finish(&self, work: Held<'_, LaneState>) {
        if !self.leave(work) {
            self.help();
        }
    }

    fn turn(&self) -> bool {
        let Some(mut work) = self.role.take() else { return false };
        work.disarm(self);
        let mut worked = false;
        while work.round(self) != 0 {
            worked = true;
        }
        self.finish(work);
        worked
    }

    fn park(&self) -> bool {
        self.count_parked();
        let Some(mut work) = self.role.take() else { return true };
        let armed = work.arm(self);
        drop(work);
        armed && self.ring.is_empty()
    }

    fn count_parked(&self) {
        self.parked.store(self.parked.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// The progress thread, as in `core::progress_thread`. A nap is a yield: the model has no clock.
    fn progress(&self) {
        loop {
            let ticket = self.bell.ticket();
            if self.stop.load(Ordering::Acquire) != 0 {
                return;
            }
            if self.turn() {
                continue;
            }
            if self.park() {
                self.bell.wait(ticket, None);
            } else {
                thread::yield_now();
            }
            self.count_parked();
        }
    }

    fn done(&self) -> u32 {
        self.role.take().unwrap().done
    }
}

fn spawn(lane: &Arc<Lane>, f: impl FnOnce(&Lane) + 'static) -> JoinHandle<()> {
    let lane = lane.clone();
    thread::spawn(move || f(&lane))
}

/// The progress thread and two others, each of which brings `pieces / 2` pieces of work.
fn against_progress(
    preemptions: usize,
    pieces: u32,
    first: impl Fn(&Lane) + Copy + Send + Sync + 'static,
    second: impl Fn(&Lane) + Copy + Send + Sync + 'static,
) {
    check(preemptions, move || {
        let lane = lane(pieces);
        let others = [spawn(&lane, first), spawn(&lane, second)];
        lane.progress();
        let _ = others.map(|other| other.join().unwrap());
        assert_eq!(lane.done(), pieces);
    });
}

/// One thread at a time: loom's cell reports two that touch the value without order.
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
    against_progress(2, 2, Lane::request, Lane::request);
}

#[test]
fn loom_a_peer_and_a_requester() {
    against_progress(2, 2, Lane::request, Lane::deliver);
}

/// The holder does no work of its own, so what the peer brings depends on how it leaves.
#[test]
fn loom_a_peer_and_a_holder_that_only_looks() {
    against_progress(3, 1, Lane::is_idle, Lane::deliver);
}

#[test]
fn loom_a_request_from_a_callback_and_a_holder_that_only_looks() {
    against_progress(3, 1, Lane::is_idle, Lane::leave_to_others);
}

#[test]
fn loom_a_request_from_a_callback_and_a_peer() {
    against_progress(2, 2, Lane::leave_to_others, Lane::deliver);
}

/// A death is no source that can be armed: it rings in any case, and may find the progress thread
/// awake and the role taken.
#[test]
fn loom_a_death_beside_a_holder_that_only_looks() {
    against_progress(3, 1, Lane::is_idle, Lane::mourn);
}

#[test]
fn loom_a_death_and_a_requester() {
    against_progress(2, 2, Lane::request, Lane::mourn);
}
