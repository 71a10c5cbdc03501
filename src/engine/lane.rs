//! The lane: a command queue, the role that works on it, and the three ways in which a thread comes
//! to hold the role: as the requester itself, as one that waits, as the progress thread.
//! `engine::handover` has the rules by which none of them leaves work lying.
//!
//! A thread inside a callback never works for the lane: the callbacks of others would have to wait
//! for the one it is in. It rings instead.

use crate::engine::by_caller::Local;
use crate::engine::command::Command;
use crate::engine::command_queue::CommandQueue;
use crate::engine::completion::in_callback;
use crate::engine::handover::{Around, Handover, ROUNDS, Turn, Work};
use crate::engine::lane_state::LaneState;
use crate::engine::messages::sender::MessagePost;
use crate::engine::queue_entry::{QueueEntry, SLOT_BYTES, slots_for};
use crate::engine::role::Held;
use crate::engine::routes::Routes;
use crate::util::admission::Admission;
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How many commands a requester that joins in leaves, or a quarter of a small queue: the lines
/// behind them are just being written on another core.
const LEFT: usize = 32;
/// How long the progress thread steps aside while requesters wait for room.
const ASIDE: Duration = Duration::from_micros(50);

/// Which thread executes what a requester puts into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// The requester, if the role is free; else its holder; behind both the progress thread.
    Auto,
    /// The progress thread; a requester only where nobody else is at it and the queue is full, or
    /// another requester posts at the same moment.
    Offload,
    /// The requester only: nothing is queued, a role that is taken means "try again".
    Direct,
}

/// What a post has found: the consumer asleep, another requester at the same place.
#[derive(Clone, Copy)]
#[must_use = "somebody may have to be woken"]
pub struct Posted {
    asleep: bool,
    contended: bool,
}

/// See the head of the file.
pub struct Lane {
    ring: CommandQueue<QueueEntry>,
    turns: Handover<LaneState>,
    room: Arc<Admission>,
    under_way: Arc<CachePadded<AtomicUsize>>,
    routes: Arc<Routes>,
    execution: Execution,
}

impl Lane {
    /// A lane with an empty queue.
    pub fn new(
        routes: Arc<Routes>,
        post: Arc<MessagePost>,
        execution: Execution,
        queue_entries: usize,
        in_flight: usize,
    ) -> Result<Lane> {
        let bell = routes.clone();
        let (ring, consumer) = CommandQueue::new(queue_entries, move || bell.bell().ring())?;
        let room = Arc::new(Admission::default());
        let to_tell = (room.clone(), queue_entries / 2);
        let receivers = routes.receivers(post.counts.clone());
        let work = LaneState::new(consumer, to_tell, receivers, post, in_flight);
        let under_way = work.under_way();
        Ok(Lane { ring, turns: Handover::new(work), room, under_way, routes, execution })
    }

    /// The paths to the peers.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// The execution in force.
    pub fn execution(&self) -> Execution {
        self.execution
    }

    /// Puts a command into the queue, with the bytes that it carries. The caller is pinned until
    /// this returns where the command's local side is a region; it then calls `wake_executor`.
    #[inline]
    pub fn put(&self, command: &Command, bytes: &[u8]) -> Result<bool> {
        let extra = slots_for(bytes.len());
        let Some(mut reservation) = self.ring.reserve(1 + extra) else {
            return Err(Error::bare(Status::RETRY_QUEUE_FULL));
        };
        reservation.slot_mut(0).put(command, extra);
        for (i, piece) in bytes.chunks(SLOT_BYTES).enumerate() {
            reservation.slot_mut(1 + i).put_bytes(piece);
        }
        Ok(reservation.commit())
    }

    /// Sees to it that what was put is executed. `asleep` is what put() answered.
    #[inline]
    pub fn wake_executor(&self, asleep: bool) {
        if self.execution == Execution::Offload || in_callback() {
            self.leave_to_others(asleep);
        } else {
            self.help();
        }
    }

    /// Like `wake_executor`, for a command that the caller must not execute itself.
    #[inline]
    pub fn leave_to_others(&self, asleep: bool) {
        if asleep {
            self.routes.bell().ring();
        }
    }

    /// Puts a command into the queue that carries nothing, for the progress thread. None: the queue
    /// is full. The caller hands the answer to `offloaded` as soon as it is not pinned any more.
    #[inline]
    pub fn offload(&self, command: &Command) -> Option<Posted> {
        if !self.room.admits() {
            return None;
        }
        let mut reservation = self.ring.reserve(1)?;
        reservation.slot_mut(0).put(command, 0);
        let contended = reservation.is_contended();
        Some(Posted { asleep: reservation.commit(), contended })
    }

    /// Does what the post has found to be done.
    #[inline]
    pub fn offloaded(&self, posted: Posted) {
        self.leave_to_others(posted.asleep);
        if posted.contended {
            self.join_in();
        }
    }

    /// Whether the queue has no room for another command; an answer of the past.
    pub fn is_full(&self) -> bool {
        self.ring.backlog() >= self.ring.capacity()
    }

    /// The queue is full: executes a batch of it, if nobody is at it. Where there are more threads
    /// than cores, the progress thread gets a core as seldom as each of those that fill the queue;
    /// this way none of them spins until it does. True: there may be room now.
    pub fn relieve(&self) -> bool {
        if in_callback() {
            return false;
        }
        let Some(mut work) = self.turns.take() else { return false };
        let worked = work.round(&self.routes) > 0;
        self.finish(work);
        worked
    }

    /// Another requester posts at this moment, on another core: executes a batch of small commands,
    /// if nobody is at it. One that posts and one that executes get more done than two that take
    /// the queue's end from each other until it is full.
    #[inline(never)]
    fn join_in(&self) {
        let left = LEFT.min(self.ring.capacity() / 4);
        if self.ring.backlog() <= left || in_callback() {
            return;
        }
        let Some(mut work) = self.turns.take() else { return };
        work.execute_small(&self.routes, left);
        work.post_gathered(&self.routes);
        self.finish(work);
    }

    /// Works on the queue until it is half empty, for a caller that would have to wait otherwise.
    pub fn drain(&self) -> bool {
        let Some(mut work) = self.turns.take() else { return false };
        for _ in 0..ROUNDS {
            if work.round(&self.routes) == 0 || work.is_half_empty() {
                break;
            }
        }
        let room = work.is_half_empty();
        self.finish(work);
        room
    }

    /// Threads that wait for room in the queue.
    pub fn room(&self) -> &Admission {
        &self.room
    }

    /// Executes a command at once, without the queue. `local` is looked up while the role is held:
    /// the thread that frees the region waits for a flush, which needs the role.
    pub fn post_directly(&self, mut command: Command, local: Local) -> Result<()> {
        let Some(mut work) = self.turns.take() else {
            return Err(Error::bare(Status::RETRY_BUSY));
        };
        let found = {
            let _pinned = pin();
            local.resolve(&self.routes, command.size)
        };
        let room = found.map(|place| {
            let carried = matches!(local, Local::Pointer(_)) && command.carries_bytes();
            command.local = place;
            let room = work.execute_one(&self.routes, command, carried);
            work.post_gathered(&self.routes);
            room
        });
        self.finish(work);
        match room {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::bare(Status::RETRY_NO_TAG)),
            Err(error) => Err(error),
        }
    }

    /// Takes the role, if it is free, and works until there is nothing to do or it is somebody
    /// else's turn. True: something was done.
    pub fn help(&self) -> bool {
        self.turns.help(self)
    }

    /// Works for the lane for a moment, where the execution in force allows it, and polls a wire
    /// that wakes nobody.
    pub fn help_others(&self) -> bool {
        let fabric = self.routes.fabric();
        if !fabric.has_silent_wire() || in_callback() {
            return self.execution != Execution::Offload && self.help();
        }
        if self.execution == Execution::Offload {
            return fabric.help_wire();
        }
        // With the role, if it is free: what comes then wakes no other thread.
        let Some(mut work) = self.turns.take() else { return fabric.help_wire() };
        let came = fabric.help_wire();
        let worked = work.round(&self.routes) > 0;
        self.finish(work);
        came || worked
    }

    /// Works for the lane until `done`, for a burst of looks without giving the
    /// core away. The role is not kept across the pauses in which another thread may run.
    pub fn help_until(&self, done: impl Fn() -> bool) -> bool {
        if self.execution == Execution::Offload {
            return done();
        }
        let Some(mut work) = self.turns.take() else { return done() };
        self.turns.burst(&mut work, self, &done);
        self.finish(work);
        done()
    }

    /// Gives the role up, and helps if there is something to do again.
    fn finish(&self, work: Held<'_, LaneState>) {
        self.turns.finish(work, self);
    }

    /// One turn of the progress thread: a burst of looks, so that what comes within a microsecond
    /// is met by somebody who is awake and has the role.
    pub fn turn(&self) -> Turn {
        let came = self.routes.fabric().has_silent_wire() && self.help_others();
        let turn = match self.turns.turn(self) {
            Turn::Idle if came => Turn::Worked,
            turn => turn,
        };
        if self.room.is_wanted() {
            match turn {
                // The thread that was let in posts nothing. (Where commands lie there that cannot
                // be executed now, there is no room.)
                Turn::Idle if self.ring.is_empty() => self.room.announce(),
                // Those who fill the queue find it full, and empty it where its contents are.
                Turn::Stretched => std::thread::sleep(ASIDE),
                Turn::Idle | Turn::Worked => {}
            }
        }
        turn
    }

    /// Prepares the progress thread's sleep. The ticket of the bell was read before. False: there
    /// is something to do, or to look after soon.
    pub fn park(&self) -> bool {
        self.turns.park(self)
    }

    /// The progress thread is awake again.
    pub fn unpark(&self) {
        self.turns.unpark();
    }

    /// Ends whatever is still in the queue or in flight; says how much that was. Nobody puts
    /// anything in any more. None: the role is taken.
    pub fn cancel(&self) -> Option<usize> {
        let mut work = self.turns.take()?;
        let count = work.cancel(&self.routes);
        self.finish(work);
        Some(count)
    }

    /// Whether everything that the caller knows to have been accepted has ended, without the role.
    #[inline]
    pub fn has_ended(&self) -> bool {
        // Acquire: pairs with LaneState::count_under_way(). Read last: what left the queue before
        // is in it.
        self.ring.is_drained() && self.under_way.load(Ordering::Acquire) == 0
    }

    /// Whether nothing is in the queue or in flight; None: the role is taken.
    pub fn is_idle(&self) -> Option<bool> {
        self.turns.take().map(|work| {
            let idle = work.is_idle();
            self.finish(work);
            idle
        })
    }
}

impl Around for Lane {
    fn ring(&self) {
        self.routes.bell().ring();
    }

    /// In offload mode a requester rings and does not rely on the holder.
    #[inline]
    fn has_queued(&self) -> bool {
        self.execution != Execution::Offload && !self.ring.is_empty()
    }

    fn may_work(&self) -> bool {
        !in_callback()
    }
}

impl Work for LaneState {
    type Around = Lane;

    #[inline]
    fn round(&mut self, lane: &Lane) -> usize {
        self.round(&lane.routes)
    }

    fn arm(&mut self, lane: &Lane) -> bool {
        self.arm(&lane.routes)
    }

    #[inline]
    fn disarm(&mut self) {
        self.disarm();
    }

    fn check(&self) {
        self.check_count();
    }
}
