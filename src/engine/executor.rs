//! The executor: takes commands from the queue, does what it can itself and asks agents for the
//! rest. Stops, leaving the queue as it is, where the table of operations in flight has no room.

use crate::engine::command::{Command, INLINE, Op, SLOT_BYTES, slots_for, unpack};
use crate::engine::direct::{self, Local, Outcome};
use crate::engine::fallback::Stage;
use crate::engine::routes::Routes;
use crate::engine::work::{Work, fire};
use crate::util::status::Status;

/// Commands taken in one round, so that answers get their turn.
const BATCH: usize = 64;
/// A command of more bytes gives its slot back at once: the next one may be long in coming.
const LARGE: u64 = 4096;

impl Work {
    /// Executes up to a batch of commands; returns how many slots of the queue it emptied.
    pub(super) fn execute(&mut self, routes: &Routes) -> usize {
        let (mut slots, mut released) = (0, 0);
        while slots < BATCH {
            let Some(mut command) = self.consumer.peek(slots - released).copied() else { break };
            let mut bytes = [0u8; INLINE];
            if command.extra > 0 {
                self.gather(&command, slots - released, &mut bytes);
                command.local = bytes.as_mut_ptr();
            }
            let large = command.size > LARGE;
            if !self.execute_one(routes, command) {
                break;
            }
            slots += 1 + usize::from(command.extra);
            if large || slots - released >= BATCH / 4 {
                self.consumer.release(slots - released);
                released = slots;
            }
        }
        self.consumer.release(slots - released);
        slots
    }

    /// Executes a command as far as this rank can, and takes it in where an agent must do the rest.
    /// False: there is no room for that now, and it counts as not begun.
    pub(super) fn execute_one(&mut self, routes: &Routes, command: Command) -> bool {
        match command.op {
            Op::NOTHING => return true,
            Op::FLUSH => {
                let room = self.has_room(&command, Stage::Word);
                if room {
                    self.start(routes, command, Stage::Word);
                }
                return room;
            }
            _ => {}
        }
        let stage = match direct::attempt(routes, &command, Local::Pointer(command.local)) {
            Ok(Outcome::Done) => {
                fire(routes, &command, Status::OK);
                return true;
            }
            Err(error) => {
                fire(routes, &command, error.status);
                return true;
            }
            Ok(Outcome::SignalNeedsAgent) => Stage::Word,
            Ok(Outcome::NeedsAgent) if command.op == Op::ATOMIC => Stage::Word,
            Ok(Outcome::NeedsAgent) => Stage::Data { done: 0 },
        };
        let room = self.has_room(&command, stage);
        if room {
            self.start(routes, command, stage);
        }
        room
    }

    /// Collects the bytes behind a command.
    fn gather(&self, command: &Command, at: usize, bytes: &mut [u8; INLINE]) {
        for i in 0..usize::from(command.extra).min(slots_for(INLINE)) {
            if let Some(slot) = self.consumer.peek(at + 1 + i) {
                bytes[i * SLOT_BYTES..(i + 1) * SLOT_BYTES].copy_from_slice(unpack(slot));
            }
        }
    }
}
