//! Questions. A question asks a peer behind a wire for the address of a region and for the
//! network's key of it; this rank knows only the region's remote key. A thread that uses an unknown
//! key puts a question into the fabric and gets RETRY_CONNECTING. The holder of the role sends it
//! as an operation [`Op::IMPORT`]. The answer counts as a contact (`engine::routes`), so the
//! threads that wait for it try again.

use crate::engine::by_owner::{InFlight, Stage};
use crate::engine::command::{Command, Op};
use crate::engine::lane_state::LaneState;
use crate::engine::routes::Routes;
use crate::util::status::Status;

impl LaneState {
    /// Takes the new questions from the fabric and sends them.
    pub(super) fn take_questions(&mut self, routes: &Routes) {
        self.questions.extend(routes.fabric().take_questions());
        self.send_questions(routes);
    }

    /// Sends the questions that found the table full. To be called when an operation has ended.
    pub(in crate::engine) fn ask_again(&mut self, routes: &Routes) {
        if !self.questions.is_empty() {
            self.send_questions(routes);
        }
    }

    /// Ends the questions that were not sent.
    pub(super) fn cancel_questions(&mut self, routes: &Routes) {
        for (peer, key) in self.questions.drain(..) {
            routes.fabric().not_learned(peer, key, Status::ERR_CANCELED);
        }
    }

    fn send_questions(&mut self, routes: &Routes) {
        while let Some((peer, key)) = self.questions.last().copied() {
            let mut command = Command::new(Op::IMPORT, peer);
            command.remote.key = key;
            // SAFETY: the question has neither completions nor local memory.
            if !unsafe { self.start(routes, command, Stage::Word, false) } {
                return;
            }
            self.questions.pop();
        }
    }
}

/// A question has ended. Sink::reply() has passed the answer's bytes to the fabric before.
pub(super) fn imported(routes: &Routes, command: &Command, status: Status) {
    if status != Status::OK {
        routes.fabric().not_learned(command.peer, command.remote.key, status);
    }
    routes.notify_contacts();
}

/// The owner has refused a key of an operation: its region has been freed, so the fabric forgets
/// the key.
pub(super) fn refused(routes: &Routes, operation: &InFlight) {
    let command = &operation.command;
    for key in doubtful(command, &operation.stage).into_iter().flatten() {
        routes.fabric().forget(command.peer, key);
    }
}

/// The keys of an operation that the owner may have refused at this stage. One answer tells of the
/// bytes and of the signal that they bring.
fn doubtful(command: &Command, stage: &Stage) -> [Option<u64>; 2] {
    match (command.op, stage) {
        (Op::IMPORT, _) => [None, None],
        (Op::WRITE_SIGNAL, Stage::Word) => [Some(command.signal.key), None],
        (Op::WRITE_SIGNAL, Stage::Data { .. } | Stage::Posted { .. }) => {
            [Some(command.signal.key), Some(command.remote.key)]
        }
        _ => [Some(command.remote.key), None],
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_refused_write_with_a_signal_may_have_a_stale_key_of_either() {
        let mut command = Command::new(Op::WRITE_SIGNAL, 1);
        (command.remote.key, command.signal.key) = (7, 9);
        for stage in [Stage::Data { done: 0 }, Stage::Posted { done: 0, size: 8 }] {
            assert_eq!(doubtful(&command, &stage), [Some(9), Some(7)], "{stage:?}");
        }
        assert_eq!(doubtful(&command, &Stage::Word), [Some(9), None]);
    }
}
