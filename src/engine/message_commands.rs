//! How the executor sends active messages: those of offload mode, those with LLCL_FLAG_DEFER, and
//! LONG ones whose payload only the owner can write.

use crate::engine::by_caller::{self, Local, Outcome};
use crate::engine::by_owner::Stage;
use crate::engine::command::{Command, Op};
use crate::engine::lane_state::LaneState;
use crate::engine::messages::deferred::{Deferred, take_deferred};
use crate::engine::routes::Routes;
use crate::util::status::Status;

impl LaneState {
    /// Sends a message or puts it into the queue of deferred messages. False: the in-flight table
    /// is full, and nothing has happened.
    ///
    /// # Safety
    /// As for execute_one().
    pub(super) unsafe fn start_message(&mut self, routes: &Routes, command: &Command) -> bool {
        // The queue of deferred messages needs no such check: `Admitted` bounds it for each peer
        // when a message is accepted. The write of a payload needs an entry in the table.
        if self.slots.is_full() {
            return false;
        }
        // SAFETY: as the caller promises, it has the box of its message, and is executed once.
        let mut deferred = unsafe { take_deferred(command.local) };
        self.order += 1;
        deferred.order = self.order;
        if deferred.needs_data {
            let mut write = deferred.write();
            // SAFETY: the message was accepted; its user keeps the payload until on_local.
            let end =
                unsafe { by_caller::attempt_accepted(routes, &write, Local::Pointer(write.local)) };
            match end {
                Ok(Outcome::Done) => deferred.needs_data = false,
                Err(error) => {
                    deferred.end(&self.post, error.status);
                    return true;
                }
                Ok(_) => {
                    write.op = Op::MESSAGE;
                    write.operand = Box::into_raw(deferred) as u64;
                    // SAFETY: the write has the message's box and no completions; the message's
                    // user keeps the payload.
                    return unsafe { self.start(routes, write, Stage::Data { done: 0 }, false) };
                }
            }
        }
        self.send_or_keep(deferred);
        true
    }

    /// The write of a LONG message's payload has ended: sends the message, or reports the failure.
    ///
    /// # Safety
    /// start_message() has made the write, and this is its only end.
    pub(super) unsafe fn payload_written(&mut self, write: &Command, status: Status) {
        // SAFETY: as the caller promises, the write has the message's box.
        let mut deferred = unsafe { take_deferred(write.operand as *mut u8) };
        if status != Status::OK {
            return deferred.end(&self.post, status);
        }
        deferred.needs_data = false;
        self.send_or_keep(deferred);
    }

    fn send_or_keep(&mut self, deferred: Box<Deferred>) {
        let behind_others = self.deferred.has(deferred.peer);
        match (!behind_others).then(|| deferred.send(&self.post)) {
            Some(Ok(true)) => deferred.end(&self.post, Status::OK),
            Some(Err(error)) if !error.status.is_retry() => deferred.end(&self.post, error.status),
            Some(_) | None => {
                self.deferred.push(deferred);
                self.count_under_way();
            }
        }
    }

    /// Sends the deferred messages that have credit now; returns how many.
    pub(super) fn send_deferred(&mut self, routes: &Routes) -> usize {
        let sent = self.deferred.send(&self.post);
        if sent > 0 {
            self.count_under_way();
            self.end_flushes(routes);
        }
        sent
    }
}
