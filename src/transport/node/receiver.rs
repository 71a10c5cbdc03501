//! The receiving end: this rank's inbox and reply board.

use crate::transport::node::inbox::Taken;
use crate::transport::node::segment::Segment;
use crate::transport::{Receiver, Sink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Requests handled in one round, so that answers and the own queue get their turn.
const BATCH: usize = 64;
/// How long a ticket may stay unclaimed before it is passed over. Its sender is between two
/// instructions: preempted, or dead.
const UNCLAIMED: Duration = Duration::from_millis(2);

/// What the holder of the role knows of its inbox. It writes here in every round, so nothing that
/// other threads read may lie in the same lines.
#[repr(align(128))]
pub struct NodeReceiver {
    own: Arc<Segment>,
    dead: Arc<[AtomicBool]>,
    /// The ticket to be taken next.
    next: u64,
    /// Since when that ticket has been unfinished.
    unfinished: Option<Instant>,
}

impl NodeReceiver {
    pub(super) fn new(own: Arc<Segment>, dead: Arc<[AtomicBool]>) -> NodeReceiver {
        NodeReceiver { own, dead, next: 0, unfinished: None }
    }
}

impl Receiver for NodeReceiver {
    fn poll(&mut self, sink: &mut dyn Sink) -> usize {
        let control = self.own.control();
        let mut count = control.replies().take(|reply| sink.reply(reply));
        let dead = |rank: u32| {
            self.dead.get(rank as usize).is_none_or(|dead| dead.load(Ordering::Acquire))
        };
        for _ in 0..BATCH {
            let skip = self.unfinished.is_some_and(|since| since.elapsed() > UNCLAIMED);
            match control.inbox().take(&mut self.next, dead, skip) {
                Taken::Message(message) => {
                    self.unfinished = None;
                    sink.request(&message);
                    count += 1;
                }
                Taken::Nothing => {
                    self.unfinished = None;
                    break;
                }
                Taken::Unfinished => {
                    self.unfinished.get_or_insert_with(Instant::now);
                    break;
                }
            }
        }
        count
    }

    fn arm(&mut self) -> bool {
        let control = self.own.control();
        control.inbox().arm(self.next) && control.replies().arm()
    }

    fn disarm(&mut self) {
        self.own.control().inbox().disarm();
        self.own.control().replies().disarm();
    }
}
