//! How the senders of all models write a message: to its slot, and to the near place if that is
//! allowed.

use super::*;

impl Area {
    pub(super) fn write(&self, ticket: u64, rank: u32) {
        let near = self.write_near(ticket, rank);
        self.share().slot(ticket).body().with_mut(|body| {
            // SAFETY: the caller has the slot's ticket; loom reports a concurrent access.
            let body = unsafe { &mut *body };
            (body[0], body[BODY_WORDS - 1]) = words(rank);
            body[1] = u64::from(near);
        });
    }

    /// Writes to the near place, if that is allowed.
    fn write_near(&self, ticket: u64, rank: u32) -> bool {
        let near = self.share().is_near(ticket, 1);
        if near {
            // SAFETY: is_near() says that only this thread uses it; loom reports another one.
            self.near.with_mut(|place| unsafe { *place = u64::from(rank) });
        }
        near
    }

    /// Reads the near place, if a message of `rank` has it.
    pub(super) fn check_near(&self, near: bool, rank: u32) {
        if near {
            // SAFETY: the message is published and not given back; loom reports a write.
            let seen = self.near.with(|place| unsafe { *place });
            assert_eq!(seen, u64::from(rank), "another message's payload");
        }
    }
}
