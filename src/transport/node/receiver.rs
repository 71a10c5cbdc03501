//! The receiver of the lane: requests to this rank's progress thread, and the answers to its own
//! requests.
//!
//! Both have slots of their own (`message_area` LIB and ANSWERS, and for many bytes LARGE_LIB and
//! LARGE_ANSWERS). The holder of the lane's role empties them, whatever the handlers of active
//! messages do. A rank has two slots for answers for each operation that may wait for one, so an
//! answer finds room unless messages that were set aside have taken these slots.

use crate::transport::frame::{Arrived, Class};
use crate::transport::memory::message_area::MessageArea;
use crate::transport::memory::message_receiver::{MessageReceiver, Peers};
use crate::transport::memory::segment::Segment;
use crate::transport::requests::{message_of, payload, reply_of};
use crate::transport::{Receiver, Sink};
use crate::util::counters::Counters;
use crate::util::sync::AtomicBool;
use std::sync::Arc;

/// The most requests, and the most answers, that one round handles, so that requests, answers and
/// this rank's own queue take turns.
const BATCH: usize = 64;

/// The receiver's state. The holder of the role writes it in every round, so data that other
/// threads read must not share its cache lines.
#[repr(align(128))]
pub struct NodeReceiver {
    own: Arc<Segment>,
    requests: MessageReceiver,
    answers: MessageReceiver,
}

impl NodeReceiver {
    pub(super) fn new(
        own: Arc<Segment>,
        (dead, peers): (Arc<[AtomicBool]>, Arc<dyn Peers>),
        counts: Arc<Counters>,
    ) -> NodeReceiver {
        let ranks = || (dead.clone(), peers.clone());
        let take = |class| MessageReceiver::new(own.clone(), ranks(), counts.clone(), class);
        NodeReceiver { requests: take(Class::Lib), answers: take(Class::Answers), own }
    }

    fn area(&self) -> MessageArea<'_> {
        self.own.control().own_message_area()
    }
}

impl Receiver for NodeReceiver {
    fn poll(&mut self, sink: &mut dyn Sink) -> usize {
        let answers =
            take(&mut self.answers, |answer| sink.reply(reply_of(answer), payload(answer)));
        // done() comes after the request was handled, so its slot bounds the work in progress.
        answers
            + take(&mut self.requests, |request| {
                sink.request(&message_of(request), payload(request))
            })
    }

    fn arm(&mut self) -> bool {
        self.area().head.lane.arm_fenced();
        let quiet = self.requests.is_quiet() && self.answers.is_quiet();
        if !quiet {
            self.area().head.lane.disarm();
        }
        quiet
    }

    fn disarm(&mut self) {
        self.area().head.lane.disarm();
    }
}

/// Passes up to BATCH messages that have arrived to `to`; returns how many.
#[inline]
fn take(from: &mut MessageReceiver, mut to: impl FnMut(&Arrived)) -> usize {
    if !from.has_come() {
        return 0;
    }
    for count in 0..BATCH {
        let Some(arrived) = from.peek() else { return count };
        to(&arrived);
        from.done();
    }
    BATCH
}
