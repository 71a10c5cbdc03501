//! The executor: takes commands from the queue, does what it can itself and asks agents for the
//! rest. Stops, leaving the queue as it is, where the table of operations in flight has no room.

use crate::engine::by_caller::{self, Local, Outcome};
use crate::engine::by_owner::{InFlight, Stage};
use crate::engine::command::{Command, Op};
use crate::engine::lane_state::{LaneState, fire, fire_failure};
use crate::engine::queue_entry::{INLINE, SLOT_BYTES};
use crate::engine::routes::Routes;
use crate::util::status::Status;

/// Commands taken in one round, so that answers get their turn.
const BATCH: usize = 64;
/// A command of more bytes takes so long that producers should not wait for it.
const LARGE: u64 = 4096;
/// Most bytes that go to the owner with their signal where a network could write them itself: a
/// copy by the owner takes less than the trip by which the signal would come later.
const WITH_SIGNAL: u64 = 4096;
/// What a requester that joins in executes and copies at most. Each change of the executor brings
/// its lines, and those that completions change, to another core; so it is more than in a round.
const JOINED: usize = 128;
const JOINED_BYTES: u64 = 64 << 10;

impl LaneState {
    /// Executes up to a batch of commands; returns how many slots of the queue it emptied.
    #[inline]
    pub(super) fn execute(&mut self, routes: &Routes) -> usize {
        self.execute_if(routes, (BATCH, 0), |_| true)
    }

    /// Like `execute`, for a requester that does it for others: few bytes, no message, and not the
    /// `left` commands posted last, whose lines it only fetches.
    pub(super) fn execute_small(&mut self, routes: &Routes, left: usize) -> usize {
        let mut bytes = 0;
        self.execute_if(routes, (JOINED, left), |command| {
            bytes += command.size.min(JOINED_BYTES);
            command.op != Op::MESSAGE && command.size <= LARGE && bytes <= JOINED_BYTES
        })
    }

    /// Up to `most` slots, up to the first command that does not suit, and while `ahead` more are
    /// filled. To look ahead lets the lines come from other cores while commands before them are
    /// executed.
    #[inline(always)]
    fn execute_if(
        &mut self,
        routes: &Routes,
        (most, ahead): (usize, usize),
        mut suits: impl FnMut(&Command) -> bool,
    ) -> usize {
        let (mut slots, mut released) = (0, 0);
        while slots < most && (ahead == 0 || self.consumer.peek(slots - released + ahead).is_some())
        {
            let Some(queued) = self.consumer.peek(slots - released) else { break };
            let (command, extra) = queued.take();
            if !suits(&command) {
                break;
            }
            // A large copy takes long: what is done by now is given back before.
            if slots > released && (command.size > LARGE || slots - released >= self.lot) {
                self.consumer.release(slots - released);
                released = slots;
            }
            let done = match extra {
                0 => self.execute_one(routes, command, false),
                _ => self.execute_carried(routes, command, (slots - released, extra)),
            };
            if !done {
                break;
            }
            slots += 1 + extra;
        }
        if slots > released {
            self.consumer.release(slots - released);
        }
        slots
    }

    /// Executes a command as far as this rank can, and takes it in where an agent must do the rest.
    /// False: the table of operations in flight is full, and nothing has happened but what a
    /// command of many pieces notes itself. `carried`: the command's bytes are there only during
    /// this call.
    pub(super) fn execute_one(&mut self, routes: &Routes, command: Command, carried: bool) -> bool {
        match command.op {
            Op::NOTHING => return true,
            Op::FLUSH => {
                self.start_flush(routes, command);
                return true;
            }
            Op::MESSAGE => return self.start_message(routes, &command),
            Op::PIECES => return self.start_pieces(routes, &command),
            Op::LET_GO => return self.start(routes, command, Stage::Word, false),
            Op::NOTICE => return self.start(routes, command, Stage::Data { done: 0 }, false),
            // Its data must not move before there is room for what follows.
            Op::WRITE_SIGNAL
                if self.slots.is_full()
                    && by_caller::signal_needs_agent(routes, &command).unwrap_or(false) =>
            {
                return false;
            }
            _ => {}
        }
        let stage =
            match by_caller::attempt_accepted(routes, &command, Local::Pointer(command.local)) {
                Ok(Outcome::Done) => {
                    fire(routes, &command, Status::OK);
                    return true;
                }
                // As in a signal handler, see Port::learn().
                Err(error) if error.status.is_retry() => return false,
                Err(error) => {
                    fire_failure(routes, &command, &error);
                    return true;
                }
                Ok(Outcome::SignalNeedsAgent) => Stage::Word,
                Ok(Outcome::NeedsAgent) if command.op == Op::ATOMIC => Stage::Word,
                Ok(Outcome::NeedsAgent) => Stage::Data { done: 0 },
                Ok(Outcome::NeedsPost) if command.op == Op::ATOMIC => Stage::Device { guess: 0 },
                // The owner changes the signal in any case: one request brings the bytes, too.
                Ok(Outcome::NeedsPost)
                    if command.op == Op::WRITE_SIGNAL && command.size <= WITH_SIGNAL =>
                {
                    Stage::Data { done: 0 }
                }
                Ok(Outcome::NeedsPost) => {
                    InFlight::first_posted(command.size, routes.fabric().remote_most())
                }
            };
        self.start(routes, command, stage, carried)
    }

    /// Like `execute_one`, for the command at `at`, whose bytes lie in the `extra` slots behind it.
    #[inline(never)]
    fn execute_carried(
        &mut self,
        routes: &Routes,
        mut command: Command,
        (at, extra): (usize, usize),
    ) -> bool {
        let mut bytes = [0u8; INLINE];
        for (i, piece) in bytes.chunks_mut(SLOT_BYTES).take(extra).enumerate() {
            if let Some(slot) = self.consumer.peek(at + 1 + i) {
                slot.take_bytes(piece);
            }
        }
        command.local = bytes.as_mut_ptr();
        self.execute_one(routes, command, true)
    }
}
