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

/// The owner has refused the key of an operation: its region has been freed, so the fabric forgets
/// the key.
pub(super) fn refused(routes: &Routes, operation: &InFlight) {
    let InFlight { command, stage, .. } = operation;
    let forget = |key: u64| routes.fabric().forget(command.peer, key);
    match (command.op, stage) {
        (Op::IMPORT, _) => {}
        (Op::WRITE_SIGNAL, Stage::Word) => forget(command.signal.key),
        (Op::WRITE_SIGNAL, Stage::Data { .. }) => {
            forget(command.signal.key);
            forget(command.remote.key);
        }
        _ => forget(command.remote.key),
    }
}
