//! The executor takes commands from the queue. It executes those that this process can execute, and
//! posts the others: to the owner of the memory as a request, or to a network. When the in-flight
//! table is full, the executor stops and leaves the next command in the queue.

use crate::engine::by_caller::{self, Local, Outcome};
use crate::engine::by_owner::{InFlight, Stage};
use crate::engine::command::{Command, Op};
use crate::engine::control_messages;
use crate::engine::lane_state::{LaneState, fire, fire_failure};
use crate::engine::queue_entry::{INLINE, SLOT_BYTES};
use crate::engine::routes::Routes;
use crate::transport::address::Key;
use crate::util::status::Status;

/// Most slots of the queue that one round executes. Between two rounds the completer handles
/// answers.
const BATCH: usize = 64;
/// Before a command of more bytes the executor releases the slots that it has executed: the copy
/// takes long, and producers may wait for these slots.
const LARGE: u64 = 4096;
/// If the network's writes bring no signals, a write with signal of at most so many bytes goes to
/// the owner as one request: a copy by the owner takes less time than a second message, which would
/// bring the signal after the network's write.
const WITH_SIGNAL: u64 = 4096;
/// Most slots, and most bytes, that a requester executes in Lane::join_in(). Larger than BATCH: the
/// cache lines of the lane's state and of the completion words move to the requester's core, and
/// only many commands make up for that.
const JOINED: usize = 128;
const JOINED_BYTES: u64 = 64 << 10;

/// Whether a request to the owner executes this command in less time than the network, which can
/// execute it, too.
fn goes_to_owner(routes: &Routes, command: &Command) -> bool {
    command.op == Op::WRITE_SIGNAL
        && command.size <= WITH_SIGNAL
        && !routes.fabric().has_signals(command.peer)
}

impl LaneState {
    /// Executes up to a batch of commands; returns how many slots of the queue it emptied.
    #[inline]
    pub(super) fn execute(&mut self, routes: &Routes) -> usize {
        self.execute_if(routes, (BATCH, 0), |_| true)
    }

    /// Like `execute`, for a requester that executes commands of other threads too: stops at a
    /// message, at a command of many bytes, and before the `left` slots filled last. Of those slots
    /// it reads only the marks.
    pub(super) fn execute_small(&mut self, routes: &Routes, left: usize) -> usize {
        let mut bytes = 0;
        self.execute_if(routes, (JOINED, left), |command| {
            bytes += command.size.min(JOINED_BYTES);
            command.op != Op::MESSAGE && command.size <= LARGE && bytes <= JOINED_BYTES
        })
    }

    /// Executes up to `most` slots, as long as `suits` accepts the next command and `ahead` slots
    /// behind it are filled. The look at a slot `ahead` of the present one fetches its line from
    /// the producer's core while the commands before it are executed.
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
            // Before a large copy, and after each `release_batch`: producers may wait for these
            // slots.
            if slots > released && (command.size > LARGE || slots - released >= self.release_batch)
            {
                self.consumer.release(slots - released);
                released = slots;
            }
            // SAFETY: the promise of Lane::put(). The slot is released behind an executed command,
            // so each is executed once.
            let done = unsafe {
                match extra {
                    0 => self.execute_one(routes, command, false),
                    _ => self.execute_carried(routes, command, (slots - released, extra)),
                }
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

    /// Executes a command as far as this rank can. If the owner of the memory or a network must do
    /// the rest, puts it into the in-flight table and posts it. False: the table is full, or the
    /// command must be tried again for another reason. The caller tries it again later. A command
    /// of many pieces then goes on behind the pieces that were begun. `carried`: the command's
    /// bytes are valid only during this call.
    ///
    /// # Safety
    /// As for Lane::put(); each command is executed once.
    pub(super) unsafe fn execute_one(
        &mut self,
        routes: &Routes,
        command: Command,
        carried: bool,
    ) -> bool {
        match command.op {
            Op::NOTHING => return true,
            Op::FLUSH | Op::MESSAGE | Op::PIECES | Op::UNMAP | Op::CONTROL => {
                // SAFETY: as the caller promises.
                return unsafe { self.begin_other(routes, command) };
            }
            // The data must not be written before the table has room for the request behind it: the
            // retry would write the data again. A control message always needs such a request.
            Op::WRITE_CONTROL if self.slots.is_full() => return false,
            Op::WRITE_SIGNAL
                if self.slots.is_full()
                    && by_caller::outcome_if_owner_signals(routes, &command)
                        .is_ok_and(|outcome| outcome.is_some()) =>
            {
                return false;
            }
            _ => {}
        }
        // SAFETY: as the caller promises; the bytes of a `carried` command are valid during this
        // call.
        let end =
            unsafe { by_caller::attempt_accepted(routes, &command, Local::Pointer(command.local)) };
        let stage = match end {
            Ok(Outcome::Done) => {
                // SAFETY: as the caller promises.
                unsafe { fire(routes, &command, Status::OK) };
                return true;
            }
            // The region cannot be mapped now (see Port::learn()), or the network's key for a
            // device atomic is not known yet.
            Err(error) if error.status.is_retry() => return false,
            Err(error) if command.op.is_control() => {
                // SAFETY: as the caller promises.
                unsafe { control_messages::end(&command, error.status) };
                return true;
            }
            Err(error) => {
                // SAFETY: as the caller promises.
                unsafe { fire_failure(routes, &command, &error) };
                return true;
            }
            Ok(Outcome::SignalNeedsOwner) => Stage::Word,
            Ok(Outcome::NeedsOwner) if command.op == Op::ATOMIC => Stage::Word,
            Ok(Outcome::NeedsOwner) => Stage::Data { done: 0 },
            Ok(Outcome::NeedsPost) => {
                // SAFETY: as the caller promises.
                return unsafe { self.begin_posted(routes, command, carried) };
            }
        };
        // SAFETY: as the caller promises.
        unsafe { self.start(routes, command, stage, carried) }
    }

    /// Begins a command that by_caller::attempt() leaves to a network. False: the table is full.
    ///
    /// # Safety
    /// As for execute_one().
    pub(super) unsafe fn begin_posted(
        &mut self,
        routes: &Routes,
        command: Command,
        carried: bool,
    ) -> bool {
        let stage = match command.op {
            Op::ATOMIC if Key(command.remote.key).is_device() => Stage::Device { guess: 0 },
            // It has no bytes.
            Op::ATOMIC => Stage::Posted { done: 0, size: 0 },
            // See WITH_SIGNAL.
            _ if goes_to_owner(routes, &command) => Stage::Data { done: 0 },
            _ => InFlight::first_posted(command.size, routes.fabric().remote_most()),
        };
        // SAFETY: as the caller promises.
        unsafe { self.start(routes, command, stage, carried) }
    }

    /// Begins a command that is neither a read, a write nor an atomic.
    ///
    /// # Safety
    /// As for execute_one().
    #[inline]
    unsafe fn begin_other(&mut self, routes: &Routes, command: Command) -> bool {
        // SAFETY: as the caller promises.
        unsafe {
            match command.op {
                Op::FLUSH => {
                    self.start_flush(routes, command);
                    true
                }
                Op::MESSAGE => self.start_message(routes, &command),
                Op::PIECES => self.start_pieces(routes, &command),
                Op::CONTROL => self.start(routes, command, Stage::Data { done: 0 }, false),
                _ => self.start(routes, command, Stage::Word, false),
            }
        }
    }

    /// Like `execute_one`, for the command at `at`, whose bytes lie in the `extra` slots behind it.
    ///
    /// # Safety
    /// As for execute_one().
    #[inline(never)]
    unsafe fn execute_carried(
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
        // SAFETY: as the caller promises.
        unsafe { self.execute_one(routes, command, true) }
    }
}
