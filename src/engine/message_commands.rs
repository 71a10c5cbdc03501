//! What the executor does with active messages: those of offload mode, and those that need an agent.

use crate::engine::active::late::{Late, take_late};
use crate::engine::command::{Command, Op};
use crate::engine::direct::{self, Local, Outcome};
use crate::engine::fallback::Stage;
use crate::engine::routes::Routes;
use crate::engine::work::Work;
use crate::util::status::Status;

/// Messages that wait for credit at one time; with more the queue waits, and fills.
const MOST: usize = 256;

impl Work {
    /// Takes a message in; false: there is no room, and nothing has happened.
    pub(super) fn start_message(&mut self, routes: &Routes, command: &Command) -> bool {
        if self.late.len() >= MOST || self.slots.is_full() {
            return false;
        }
        let mut late = take_late(command.local);
        self.order += 1;
        late.order = self.order;
        if late.needs_data {
            let mut write = late.write();
            match direct::attempt(routes, &write, Local::Pointer(write.local)) {
                Ok(Outcome::Done) => late.needs_data = false,
                Err(error) => late.end(&self.post, error.status),
                Ok(_) => {
                    write.op = Op::MESSAGE;
                    write.operand = Box::into_raw(late) as u64;
                    self.start(routes, write, Stage::Data { done: 0 }, false);
                    return true;
                }
            }
            if late.needs_data {
                return true;
            }
        }
        self.send_or_keep(late);
        true
    }

    /// The agent has written the payload of a LONG message, or has failed.
    pub(super) fn payload_written(&mut self, write: &Command, status: Status) {
        let mut late = take_late(write.operand as *mut u8);
        if status != Status::OK {
            return late.end(&self.post, status);
        }
        late.needs_data = false;
        self.send_or_keep(late);
    }

    fn send_or_keep(&mut self, late: Box<Late>) {
        // Behind what waits already: for the same peer it would find no credit, either.
        match self.late.is_empty().then(|| late.send(&self.post)) {
            Some(Ok(true)) => late.end(&self.post, Status::OK),
            Some(Err(error)) => late.end(&self.post, error.status),
            Some(Ok(false)) | None => {
                self.late.push_back(late);
                self.count_under_way();
            }
        }
    }

    /// Sends what has credit, up to the first that has none, which goes to the end: what waits for one
    /// peer stops nothing that goes to another for long. Returns how much was sent.
    pub(super) fn send_late(&mut self, routes: &Routes) -> usize {
        let before = self.late.len();
        for _ in 0..before {
            let Some(late) = self.late.pop_front() else { break };
            match late.send(&self.post) {
                Ok(true) => late.end(&self.post, Status::OK),
                Ok(false) => {
                    self.late.push_back(late);
                    break;
                }
                Err(error) => late.end(&self.post, error.status),
            }
        }
        let sent = before - self.late.len();
        if sent > 0 {
            self.count_under_way();
            self.end_flushes(routes);
        }
        sent
    }
}
