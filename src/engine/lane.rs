//! The lane: a command queue, and the role whose holder works on the queue and on
//! `engine::lane_state`. Three kinds of threads take the role: a requester, a thread that waits in
//! the library, and the progress thread. All of them give it up by the rules of `engine::handover`,
//! so no work stays undone while every thread sleeps.
//!
//! A thread inside a callback never takes the role: the callbacks that it fires would have to wait
//! until its own callback has returned. It rings the bell instead.

use crate::engine::by_owner;
use crate::engine::command::Command;
use crate::engine::command_queue::CommandQueue;
use crate::engine::completion::in_callback;
use crate::engine::handover::{Around, Handover, ROUNDS, Turn, Work};
use crate::engine::lane_state::LaneState;
use crate::engine::messages::sender::AmSender;
use crate::engine::queue_entry::{QueueEntry, SLOT_BYTES, slots_for};
use crate::engine::role::Held;
use crate::engine::routes::Routes;
use crate::transport::carrier::Polled;
use crate::transport::fabric::Fabric;
use crate::util::admission::{Admission, Refusal};
use crate::util::backoff::looks;
use crate::util::status::{Error, Result, Status};
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

mod posting;

/// The number of slots that join_in() leaves at the queue's end; in a small queue, a quarter of all
/// slots. Producers are writing to lines close to the end, and a thread that executed those slots
/// would take the lines away from them.
const LEFT: usize = 32;
/// How long the progress thread sleeps after a burst of STRETCH rounds with work, if requesters
/// wait for room: they execute commands meanwhile.
const ASIDE: Duration = Duration::from_micros(50);

/// Which thread executes what a requester puts into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// The requester, if the role is free; else the thread that holds it. The progress thread does
    /// what these leave in the queue.
    Auto,
    /// The progress thread. A requester takes the role, if it is free, only when the queue is full
    /// or when another requester posts at the same moment.
    Offload,
    /// The requester only. Nothing is queued; if the role is taken, the post fails with RETRY_BUSY.
    Direct,
}

/// The state that a post has met: whether the consumer sleeps, and whether another requester posts
/// at the same moment.
#[derive(Clone, Copy)]
#[must_use = "the progress thread may have to be woken"]
pub struct Posted {
    asleep: bool,
    contended: bool,
}

/// See the head of the file.
pub struct Lane {
    queue: CommandQueue<QueueEntry>,
    handover: Handover<LaneState>,
    room: Arc<Admission>,
    under_way: Arc<CachePadded<AtomicUsize>>,
    routes: Arc<Routes>,
    execution: Execution,
}

impl Lane {
    /// A lane with an empty queue.
    pub fn new(
        routes: Arc<Routes>,
        post: Arc<AmSender>,
        execution: Execution,
        queue_entries: usize,
        in_flight: usize,
    ) -> Result<Lane> {
        let bell = routes.clone();
        let (queue, consumer) = CommandQueue::new(queue_entries, move || bell.bell().ring())?;
        let room = Arc::new(Admission::default());
        let to_tell = (room.clone(), queue_entries / 2);
        by_owner::serve_signals(&routes);
        let receivers = routes.receivers(post.counts.clone());
        let work = LaneState::new(consumer, to_tell, receivers, post, in_flight);
        let under_way = work.under_way();
        Ok(Lane { queue, handover: Handover::new(work), room, under_way, routes, execution })
    }

    /// The routes to the peers.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// The execution in force.
    pub fn execution(&self) -> Execution {
        self.execution
    }

    /// Puts a command into the queue, with the bytes that it carries. If the command's local side
    /// is in a region, the caller is pinned until this returns. Then it calls `wake_executor` with
    /// the result.
    ///
    /// # Safety
    /// Both completions are valid, and their user keeps what they name until they have fired, and
    /// the memory at `local` until the operation has ended. If `local` is a box (see [`Op`]), only
    /// this command has it, and after success it belongs to the lane. After an error nothing has
    /// happened.
    ///
    /// [`Op`]: crate::engine::command::Op
    #[inline]
    pub unsafe fn put(&self, command: &Command, bytes: &[u8]) -> Result<bool> {
        let extra = slots_for(bytes.len());
        let Some(mut reservation) = self.queue.reserve(1 + extra) else {
            return Err(Error::bare(Status::RETRY_QUEUE_FULL));
        };
        reservation.slot_mut(0).put(command, extra);
        for (i, piece) in bytes.chunks(SLOT_BYTES).enumerate() {
            reservation.slot_mut(1 + i).put_bytes(piece);
        }
        Ok(reservation.commit())
    }

    /// Executes the commands in the queue, or makes sure that another thread does. `asleep` is the
    /// result of put().
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

    /// Puts a command that carries no bytes into the queue, for the progress thread. None: the
    /// queue is full, or this thread has used its share while others wait for room. The caller
    /// passes the result to `offloaded` as soon as it is not pinned any more.
    ///
    /// # Safety
    /// As for put().
    #[inline]
    pub unsafe fn offload(&self, command: &Command) -> Option<Posted> {
        if !self.room.admits(Refusal::Free) {
            return None;
        }
        let Some(mut reservation) = self.queue.reserve(1) else {
            self.room.give_back();
            return None;
        };
        reservation.slot_mut(0).put(command, 0);
        let contended = reservation.is_contended();
        Some(Posted { asleep: reservation.commit(), contended })
    }

    /// Wakes the progress thread if it sleeps, and joins in if another requester posts.
    #[inline]
    pub fn offloaded(&self, posted: Posted) {
        self.leave_to_others(posted.asleep);
        if posted.contended {
            self.join_in();
        }
    }

    /// Calls `put`, which puts a command into the queue, unless this thread has used its share
    /// while others wait for room. Not for commands of the library, nor for messages, which have
    /// shares of their own.
    pub fn put_in_turn<T>(&self, put: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.room.admits(Refusal::Renews) {
            return Err(Error::bare(Status::RETRY_QUEUE_FULL));
        }
        put().inspect_err(|_| self.room.give_back())
    }

    /// Whether the queue has no room for another command. A hint.
    pub fn is_full(&self) -> bool {
        self.queue.backlog() >= self.queue.capacity()
    }

    /// For a requester that finds the queue full: executes a batch of commands, if the role is
    /// free. If there are more threads than cores, the progress thread runs as seldom as each of
    /// the threads that fill the queue; without this call they would spin until it runs. True:
    /// there may be room now.
    pub fn make_room(&self) -> bool {
        if in_callback() {
            return false;
        }
        let Some(mut work) = self.handover.take() else { return false };
        let worked = work.round(&self.routes) > 0;
        self.finish(work);
        worked
    }

    /// For a requester that meets another one at the queue's end: executes a batch of small
    /// commands, if the role is free. One thread that posts and one that executes are faster
    /// together than two that take the tail's cache line from each other until the queue is full.
    #[inline(never)]
    fn join_in(&self) {
        let left = LEFT.min(self.queue.capacity() / 4);
        if self.queue.backlog() <= left || in_callback() {
            return;
        }
        let Some(mut work) = self.handover.take() else { return };
        work.execute_small(&self.routes, left);
        work.post_gathered(&self.routes);
        self.finish(work);
    }

    /// For a requester that would have to wait for room: works until the queue is half empty, for
    /// at most ROUNDS rounds, if the role is free. Returns whether the queue is half empty.
    pub fn drain(&self) -> bool {
        let Some(mut work) = self.handover.take() else { return false };
        for _ in 0..ROUNDS {
            if work.round(&self.routes) == 0 || work.is_half_empty() {
                break;
            }
        }
        let room = work.is_half_empty();
        self.finish(work);
        room
    }

    /// The threads that wait for room in the queue.
    pub fn room(&self) -> &Admission {
        &self.room
    }

    /// See Handover::help().
    pub fn help(&self) -> bool {
        self.handover.help(self)
    }

    /// Polls a wire that wakes no thread. Then works for the lane, except in offload mode. Returns
    /// whether there was an event or any work.
    pub fn help_others(&self) -> bool {
        let (found, worked) = self.help_and_tell();
        found || worked
    }

    /// Like `help_others`. Returns whether the wire had an event, and whether there was work.
    pub fn help_and_tell(&self) -> (bool, bool) {
        self.help_polling(Fabric::help_wire)
    }

    /// Returns as help_and_tell() does.
    #[inline]
    fn help_polling(
        &self,
        poll: impl Fn(&Fabric, u32, &mut dyn FnMut()) -> Polled,
    ) -> (bool, bool) {
        let fabric = self.routes.fabric();
        if !fabric.has_silent_wire() || in_callback() {
            return (false, self.execution != Execution::Offload && self.help());
        }
        // The role first, if it is free: frames that are polled while a thread holds it wake no
        // other thread, since the sources are disarmed before.
        let work = match self.execution {
            Execution::Offload => None,
            _ => self.handover.take_armed(),
        };
        let Some(mut work) = work else { return (poll(fabric, 1, &mut || ()).is_any(), false) };
        let polled = poll(fabric, looks(), &mut || work.disarm());
        let worked = self.handover.finish_after_poll(work, self, polled);
        (polled.is_any(), worked)
    }

    /// Works for the lane in one burst, or until `done` returns true. Returns the last answer of
    /// `done`. It neither yields nor sleeps while it holds the role. In offload mode it only calls
    /// `done`.
    pub fn help_until(&self, done: impl Fn() -> bool) -> bool {
        if self.execution == Execution::Offload {
            return done();
        }
        let Some(mut work) = self.handover.take() else { return done() };
        self.handover.burst(&mut work, self, &done);
        self.finish(work);
        done()
    }

    /// See Handover::finish().
    fn finish(&self, work: Held<'_, LaneState>) {
        self.handover.finish(work, self);
    }

    /// One turn of the progress thread, see Handover::turn(). Before that it polls a wire that
    /// wakes no thread, unless application threads poll it.
    pub fn turn(&self) -> Turn {
        let silent = self.routes.fabric().has_silent_wire();
        let came = silent && self.help_polling(Fabric::help_wire_aside) != (false, false);
        let turn = match self.handover.turn(self) {
            Turn::Idle if came => Turn::Worked,
            turn => turn,
        };
        if self.room.is_wanted() {
            match turn {
                // The queue is empty, so the threads that were woken post nothing: wakes another
                // one. (If it holds commands that cannot be executed now, there may be no room.)
                Turn::Idle if self.queue.is_empty() => self.room.announce(),
                // The requesters find the queue full and execute commands themselves, on cores
                // whose caches hold them.
                Turn::Stretched => std::thread::sleep(ASIDE),
                Turn::Idle | Turn::Worked => {}
            }
        }
        turn
    }

    /// See Handover::park().
    pub fn park(&self) -> bool {
        self.handover.park(self)
    }

    /// See Handover::unpark().
    pub fn unpark(&self) {
        self.handover.unpark();
    }

    /// Ends all operations in the queue and in flight with ERR_CANCELED, and returns their number.
    /// The caller ensures that no thread posts any more. None: the role is taken.
    pub fn cancel(&self) -> Option<usize> {
        let mut work = self.handover.take()?;
        let count = work.cancel(&self.routes);
        self.finish(work);
        Some(count)
    }

    /// Whether all operations that the caller knows to be accepted have ended. Needs no role.
    #[inline]
    pub fn has_ended(&self) -> bool {
        // Acquire: pairs with LaneState::count_under_way(). The count is read after the queue: an
        // operation that has left the queue by then is counted, or has ended.
        self.queue.is_drained() && self.under_way.load(Ordering::Acquire) == 0
    }

    /// Whether no operation is in the queue or in flight. None: the role is taken.
    pub fn is_idle(&self) -> Option<bool> {
        self.handover.take().map(|work| {
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

    /// False in offload mode: a requester rings there, and does not rely on the holder of the role.
    #[inline]
    fn has_queued(&self) -> bool {
        self.execution != Execution::Offload && !self.queue.is_empty()
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

    fn arm(&mut self, lane: &Lane, sleep: u64) -> bool {
        self.arm(&lane.routes, sleep)
    }

    #[inline]
    fn disarm(&mut self) {
        self.disarm();
    }

    #[inline]
    fn armed_for(&self) -> u64 {
        self.armed_for()
    }

    fn check(&self) {
        self.check_count();
    }
}

#[cfg(all(test, not(loom), feature = "simulated"))]
mod tests;
