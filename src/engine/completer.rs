//! The completer: takes in what has come from peers, answers their requests, and moves the
//! operations in flight on.

use crate::engine::by_owner;
use crate::engine::in_flight::Tag;
use crate::engine::lane_state::LaneState;
use crate::engine::routes::Routes;
use crate::transport::{Message, Reply, Sink};

/// Answers waiting to be taken in; a round polls no more than fit.
struct Inflow<'a> {
    routes: &'a Routes,
    replies: Vec<Reply>,
    unserved: Vec<Message>,
}

impl Sink for Inflow<'_> {
    fn request(&mut self, message: &Message) {
        if !by_owner::serve(self.routes, message) {
            self.unserved.push(*message);
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
        inflow.unserved.retain(|message| !by_owner::serve(routes, message));
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
            count += self.send_again(routes);
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
            None => {
                self.unsent += 1;
                self.send(routes, tag);
            }
        }
    }

    /// Tries again to send what found a full inbox; returns how much of it went.
    fn send_again(&mut self, routes: &Routes) -> usize {
        let before = self.unsent;
        let unsent: Vec<Tag> = self
            .slots
            .iter()
            .filter(|(_, operation)| !operation.sent)
            .map(|(tag, _)| tag)
            .collect();
        for tag in unsent {
            self.send(routes, tag);
        }
        before.saturating_sub(self.unsent)
    }
}
