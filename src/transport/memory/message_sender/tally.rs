//! Counters of what senders do in order to get a ticket.

use crate::transport::memory::slots::Tally;
use crate::util::counters::Counters;

/// Counts for active messages, and for one share.
pub(super) struct Counted<'c>(pub &'c Counters, pub usize);

impl Tally for Counted<'_> {
    #[cold]
    fn read_credit(&self) {
        self.0.credit_reads.up();
    }
    #[cold]
    fn lost(&self) {
        self.0.update_lost(self.1);
    }
}

/// Counts nothing: for requests to owners and their answers.
pub(super) struct Uncounted;

impl Tally for Uncounted {
    fn read_credit(&self) {}
    fn lost(&self) {}
}
