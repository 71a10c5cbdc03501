//! What this rank asks of peers behind a wire, of whose memory it sees nothing: what a key leads
//! to. A thread that meets an unknown key leaves the question in the fabric and is answered
//! RETRY_CONNECTING; the holder of the role sends it, as an operation of the library's own, and its
//! answer counts as a contact (`engine::routes`), so whoever waits for it looks again.

use crate::engine::by_owner::{InFlight, Stage};
use crate::engine::command::{Command, Op};
use crate::engine::lane_state::LaneState;
use crate::engine::routes::Routes;
use crate::util::status::Status;

impl LaneState {
    /// Takes in the questions that have come up, and sends them.
    pub(super) fn take_questions(&mut self, routes: &Routes) {
        self.questions.extend(routes.fabric().take_questions());
        self.send_questions(routes);
    }

    /// Sends questions that found no room: to be called where an operation has been answered.
    pub(in crate::engine) fn ask_again(&mut self, routes: &Routes) {
        if !self.questions.is_empty() {
            self.send_questions(routes);
        }
    }

    /// None of them is sent any more.
    pub(super) fn cancel_questions(&mut self, routes: &Routes) {
        for (peer, key) in self.questions.drain(..) {
            routes.fabric().not_learned(peer, key, Status::ERR_CANCELED);
        }
    }

    fn send_questions(&mut self, routes: &Routes) {
        while let Some((peer, key)) = self.questions.last().copied() {
            let mut command = Command::new(Op::IMPORT, peer);
            command.remote.key = key;
            if !self.start(routes, command, Stage::Word, false) {
                return;
            }
            self.questions.pop();
        }
    }
}

/// A question has ended; what an answer has brought was learned before.
pub(super) fn imported(routes: &Routes, command: &Command, status: Status) {
    if status != Status::OK {
        routes.fabric().not_learned(command.peer, command.remote.key, status);
    }
    routes.notify_contacts();
}

/// The owner has refused a key that was known here: the region has ended.
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
