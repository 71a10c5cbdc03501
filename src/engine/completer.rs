//! The completer: takes in what has come from peers, answers their requests, and moves the
//! operations in flight on.

use crate::engine::by_owner::{self, InFlight, Served};
use crate::engine::command::Op;
use crate::engine::in_flight::{InFlightTable, Tag};
use crate::engine::lane_state::{LaneState, Unserved};
use crate::engine::routes::Routes;
use crate::transport::{Message, Reply, Sink};
use crate::util::status::Status;

/// Answers waiting to be taken in; a round polls no more than fit.
struct Inflow<'a> {
    routes: &'a Routes,
    slots: &'a mut InFlightTable<InFlight>,
    replies: Vec<Reply>,
    ends: Vec<Reply>,
    unserved: Unserved,
}

impl Inflow<'_> {
    /// Whether it was served; if not, it must be kept.
    fn serve(&mut self, message: &Message, bytes: &[u8]) -> bool {
        let served = by_owner::serve(self.routes, message, bytes);
        self.unserved.unannounced |= served == Served::Later;
        served == Served::Done
    }

    /// Tries again to serve requests that wait for a contact, where one has ended.
    fn serve_again(&mut self) {
        if self.unserved.messages.is_empty() || !self.unserved.may_go_on(self.routes) {
            return;
        }
        // Before the look at the ports: a contact that ends meanwhile is looked at next time.
        self.unserved.contacts = self.routes.contacts();
        self.unserved.unannounced = false;
        let mut messages = std::mem::take(&mut self.unserved.messages);
        messages.retain(|(message, bytes)| !self.serve(message, bytes));
        self.unserved.messages = messages;
    }
}

impl Sink for Inflow<'_> {
    fn request(&mut self, message: &Message, bytes: &[u8]) {
        if !self.serve(message, bytes) {
            self.unserved.messages.push((*message, bytes.into()));
        }
    }

    fn reply(&mut self, mut reply: Reply, bytes: &[u8]) {
        // An answer to an operation that was ended meanwhile finds nothing, nor does a second one.
        // What a network has is not the peer's to end.
        let operation = self.slots.get_mut(Tag(reply.tag));
        let operation = operation.filter(|operation| operation.sent && !operation.is_posted());
        let Some(operation) = operation else { return };
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
    /// Polls once; returns how many events there were.
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
        // What one answer of a round ends, another cannot end again.
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
