//! What a requester executes or posts at once, without the queue, while it holds the role.

use super::Lane;
use crate::engine::by_caller::{Local, Outcome};
use crate::engine::command::{Command, Op};
use crate::engine::completion::in_callback;
use crate::engine::lane::Execution;
use crate::engine::lane_state::LaneState;
use crate::engine::role::Held;
use crate::transport::address::Key;
use crate::transport::port::Reach;
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};

impl Lane {
    /// Whether a requester may execute a command at once: the mode permits it, and it would not
    /// pass by commands that wait in the queue.
    #[inline(always)]
    fn may_post_directly(&self) -> bool {
        match self.execution {
            Execution::Auto => self.queue.is_empty() && !in_callback(),
            Execution::Direct => true,
            Execution::Offload => false,
        }
    }

    /// The short path of a read, a write (with or without signal) or an atomic of a peer behind a
    /// wire: posts it at once, with one look-up of each side, or lines it up. False: nothing of
    /// this command has happened, and it must take the long path, which also reports errors.
    ///
    /// # Safety
    /// As for post_directly().
    #[inline(always)]
    pub unsafe fn post_to_wire(&self, command: &Command, local: Local) -> bool {
        let is_far = self.routes.known(command.peer).is_some_and(|it| it.reach == Reach::Wire);
        if !is_far || !self.may_be_posted(command) || !self.may_post_directly() {
            return false;
        }
        let Some(mut work) = self.handover.take_armed() else { return false };
        let place = {
            let _pinned = pin();
            local.find(&self.routes, command.size)
        };
        let carried = matches!(local, Local::Pointer(_)) && command.carries_bytes();
        // Without a closure, which would not be inlined.
        let posted = match place {
            // SAFETY: as the caller promises. A region stays, see post_directly().
            Some(local) => unsafe { work.post_now(&self.routes, (command, local), carried) },
            None => false,
        };
        self.finish_post(work);
        posted
    }

    /// Whether the wire executes a command, if it reaches the peer's memory.
    #[inline(always)]
    fn may_be_posted(&self, command: &Command) -> bool {
        match command.op {
            Op::READ | Op::WRITE => command.size > 0,
            Op::WRITE_SIGNAL => {
                let is_device = Key(command.signal.key).is_device();
                !is_device && self.routes.fabric().has_signals(command.peer)
            }
            Op::ATOMIC => {
                let is_device = Key(command.remote.key).is_device();
                !is_device && self.routes.fabric().has_atomics(command.peer)
            }
            _ => false,
        }
    }

    /// Gives the role up after a post that was begun with the sources armed.
    #[inline(always)]
    fn finish_post(&self, mut work: Held<'_, LaneState>) {
        if work.unsent > 0 {
            // finish() must look whether a completion announces when it can be sent.
            work.disarm();
        }
        self.finish(work);
    }

    /// Executes a command at once, if the role is free and no command waits. It looks `local` up
    /// and executes the command while it holds the role, so a region stays: a thread that frees a
    /// region first flushes with the role. `outcome`: the caller's attempt to execute it.
    ///
    /// # Safety
    /// As for put(), for the memory that `local` names. The bytes of a command that carries them
    /// are valid during this call.
    pub unsafe fn post_directly(
        &self,
        mut command: Command,
        local: Local,
        outcome: Outcome,
    ) -> Result<()> {
        let free = match outcome {
            _ if !self.may_post_directly() => None,
            Outcome::NeedsPost => self.handover.take_armed(),
            // It may become a request to this rank, which must be looked for.
            _ => self.handover.take(),
        };
        let Some(mut work) = free else { return Err(Error::bare(Status::RETRY_BUSY)) };
        let found = {
            let _pinned = pin();
            local.resolve(&self.routes, command.size)
        };
        let room = found.map(|place| {
            let carried = matches!(local, Local::Pointer(_)) && command.carries_bytes();
            command.local = place;
            // SAFETY: as the caller promises.
            let room = unsafe {
                match outcome {
                    Outcome::NeedsPost => work.begin_posted(&self.routes, command, carried),
                    _ => work.execute_one(&self.routes, command, carried),
                }
            };
            work.post_gathered(&self.routes);
            room
        });
        self.finish_post(work);
        match room? {
            true => Ok(()),
            false => Err(Error::bare(Status::RETRY_NO_TAG)),
        }
    }
}
