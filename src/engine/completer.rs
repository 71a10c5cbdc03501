//! The completer: takes in what has come from peers, answers their requests, and moves the
//! operations in flight on.

use crate::engine::by_owner::{self, Served};
use crate::engine::in_flight::Tag;
use crate::engine::lane_state::{LaneState, Unserved};
use crate::engine::routes::Routes;
use crate::transport::{Message, Reply, Sink};

/// Answers waiting to be taken in; a round polls no more than fit.
struct Inflow<'a> {
    routes: &'a Routes,
    replies: Vec<Reply>,
    unserved: Unserved,
}

impl Inflow<'_> {
    /// Whether it was served; if not, it must be kept.
    fn serve(&mut self, message: &Message) -> bool {
        let served = by_owner::serve(self.routes, message);
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
        messages.retain(|message| !self.serve(message));
        self.unserved.messages = messages;
    }
}

impl Sink for Inflow<'_> {
    fn request(&mut self, message: &Message) {
        if !self.serve(message) {
            self.unserved.messages.push(*message);
        }
    }

    fn reply(&mut self, reply: Reply) {
        self.replies.push(reply);
    }
}

impl LaneState {
    /// Polls once; returns how many events there were.
    pub fn complete(&mut self, routes: &Routes) -> usize {
        let mut inflow = Inflow {
            routes,
            replies: std::mem::take(&mut self.replies),
            unserved: std::mem::take(&mut self.unserved),
        };
        inflow.serve_again();
        let mut count = 0;
        for receiver in &mut self.receivers {
            count += receiver.poll(&mut inflow);
        }
        self.unserved = inflow.unserved;
        let mut replies = inflow.replies;
        for reply in replies.drain(..) {
            self.answered(routes, reply);
        }
        self.replies = replies;
        if self.unsent > 0 {
            count += self.send_waiting(routes);
        }
        count
    }

    fn answered(&mut self, routes: &Routes, reply: Reply) {
        let tag = Tag(reply.tag);
        // An answer to an operation that was ended meanwhile finds nothing.
        let Some(operation) = self.slots.get_mut(tag) else { return };
        if !operation.sent {
            // Nor does a second answer to what was answered.
            return;
        }
        let staging = operation.chunk.and_then(|chunk| routes.own_staging(chunk.into()));
        match operation.answered(reply, staging) {
            Some(status) => self.end(routes, tag, status),
            None => self.send_or_wait(routes, tag),
        }
    }
}
