//! The completer receives requests and answers of peers, and completions of a network. It serves
//! the requests and advances the operations in flight.

use crate::engine::by_owner::{self, InFlight, Served};
use crate::engine::command::Op;
use crate::engine::in_flight::{InFlightTable, Tag};
use crate::engine::lane_state::{Kept, LaneState, Unserved};
use crate::engine::routes::Routes;
use crate::transport::{Message, Reply, Sink};
use crate::util::status::Status;

/// The receivers' sink for one round: serves requests at once, and collects answers and completions
/// until the receivers have been polled.
struct Inflow<'a> {
    routes: &'a Routes,
    slots: &'a mut InFlightTable<InFlight>,
    replies: Vec<Reply>,
    ends: Vec<Reply>,
    unserved: Unserved,
}

impl Inflow<'_> {
    /// Serves a request. `bytes`: those that it brings.
    fn serve(&mut self, message: &Message, bytes: impl AsRef<[u8]> + Into<Box<[u8]>>) {
        let served = by_owner::serve(self.routes, message, bytes.as_ref());
        self.unserved.unannounced |= matches!(served, Served::Later | Served::Unanswered(..));
        self.unserved.kept.push(match served {
            Served::Done => return,
            Served::Connecting | Served::Later => Kept::Request(*message, bytes.into()),
            Served::Unanswered(reply, bytes) => Kept::Answer { peer: message.source, reply, bytes },
        });
    }

    /// Serves kept requests again, and sends kept answers, if that may succeed now.
    fn serve_again(&mut self) {
        if self.unserved.kept.is_empty() || !self.unserved.may_go_on(self.routes) {
            return;
        }
        // Read before serve() looks at the ports: if a contact ends in between, the next round
        // tries again.
        self.unserved.contacts = self.routes.contacts();
        self.unserved.unannounced = false;
        for kept in std::mem::take(&mut self.unserved.kept) {
            match kept {
                Kept::Request(message, bytes) => self.serve(&message, bytes),
                Kept::Answer { peer, reply, bytes } => {
                    if !by_owner::answer_again(self.routes, peer, reply, &bytes) {
                        self.unserved.unannounced = true;
                        self.unserved.kept.push(Kept::Answer { peer, reply, bytes });
                    }
                }
            }
        }
    }
}

impl Sink for Inflow<'_> {
    fn request(&mut self, message: &Message, bytes: &[u8]) {
        self.serve(message, bytes);
    }

    fn reply(&mut self, mut reply: Reply, bytes: &[u8]) {
        // The tag finds nothing if the operation has ended, for instance by an earlier answer.
        let operation = self.slots.get_mut(Tag(reply.tag)).filter(|operation| operation.sent);
        let Some(operation) = operation else { return };
        if operation.is_posted() {
            // Only the network's completion ends an operation that was posted to the network. The
            // owner's answer to its signal is kept until then.
            if operation.is_posted_with_signal() {
                operation.answer = Some(reply.status);
            }
            return;
        }
        if operation.command.op == Op::IMPORT {
            let (peer, key) = (operation.command.peer, operation.command.remote.key);
            if reply.status == Status::OK && !self.routes.fabric().learn(peer, key, bytes) {
                reply.status = Status::ERR_INTERNAL;
            }
            return self.replies.push(reply);
        }
        if reply.status == Status::OK && !operation.take_bytes(bytes) {
            reply.status = Status::ERR_INTERNAL;
        }
        self.replies.push(reply);
    }

    fn ended(&mut self, end: Reply) {
        self.ends.push(end);
    }
}

impl LaneState {
    /// Polls each receiver once, and handles what has come. Returns the number of events.
    pub fn complete(&mut self, routes: &Routes) -> usize {
        let mut inflow = Inflow {
            routes,
            slots: &mut self.slots,
            replies: std::mem::take(&mut self.replies),
            ends: std::mem::take(&mut self.ends),
            unserved: std::mem::take(&mut self.unserved),
        };
        inflow.serve_again();
        let mut count = 0;
        for receiver in &mut self.receivers {
            count += receiver.poll(&mut inflow);
        }
        self.unserved = inflow.unserved;
        let (mut replies, mut ends) = (inflow.replies, inflow.ends);
        for reply in replies.drain(..) {
            self.answered(routes, reply);
        }
        self.replies = replies;
        for end in ends.drain(..) {
            self.wire_ended(routes, end);
        }
        self.ends = ends;
        if self.unsent > 0 {
            count += self.send_waiting(routes) + self.post_gathered(routes);
        }
        count
    }

    fn answered(&mut self, routes: &Routes, reply: Reply) {
        let tag = Tag(reply.tag);
        // Another answer of this round may have ended the operation or begun its next stage.
        let Some(operation) = self.slots.get_mut(tag) else { return };
        if !operation.sent || operation.is_posted() {
            return;
        }
        match operation.answered(reply) {
            Some(status) => {
                self.end(routes, tag, status);
                self.ask_again(routes);
            }
            None => self.send_or_wait(routes, tag),
        }
    }
}
