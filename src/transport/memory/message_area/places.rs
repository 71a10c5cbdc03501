//! The places of payloads that do not fit into their slots.

use super::{LARGE, LARGE_RESPONSES, MessageArea};
use crate::transport::frame::{Envelope, LARGEST};
use crate::transport::memory::slots::SlotShare;

impl MessageArea<'_> {
    /// Where the sender of a ticket writes a payload that does not fit into the slot. Notes in the
    /// envelope whether this is a near place.
    #[inline(always)]
    pub fn place_to_write(
        &self,
        number: usize,
        share: &SlotShare,
        ticket: u64,
        envelope: &mut Envelope,
    ) -> *mut u8 {
        if share.is_near(ticket, self.sizes.near_of(number)) {
            envelope.set_near();
            return self.near_place(number, ticket);
        }
        self.place(number, share, ticket, envelope)
    }

    /// Where the receiver reads such a payload. The envelope may have any content.
    #[inline(always)]
    pub fn place_to_read(
        &self,
        number: usize,
        share: &SlotShare,
        ticket: u64,
        envelope: &Envelope,
    ) -> *const u8 {
        match envelope.is_near() && self.sizes.near_of(number) > 0 {
            true => self.near_place(number, ticket),
            false => self.place(number, share, ticket, envelope),
        }
    }

    /// The place of the payload of a ticket's slot.
    #[inline(always)]
    fn place(&self, number: usize, share: &SlotShare, ticket: u64, envelope: &Envelope) -> *mut u8 {
        let place = self.sizes.payload_at(number, share.index(ticket));
        let within = match number {
            LARGE | LARGE_RESPONSES => within_large(share.round(ticket), envelope.payload_size()),
            _ => 0,
        };
        self.payloads.wrapping_add(place + within)
    }

    /// The near place of a ticket, see [`SlotShare::is_near`].
    #[inline(always)]
    pub fn near_place(&self, share: usize, ticket: u64) -> *mut u8 {
        self.payloads.wrapping_add(self.sizes.near_at(share, ticket))
    }
}

/// The offset of a payload of `size` bytes in a place of LARGEST bytes. It moves from round to
/// round of the slots, so that messages use all bytes of the places before they use bytes again.
/// The lines that a sender writes are then, most likely, in the cache that all cores share and not
/// in the receiver core's own, from where they come more slowly (docs/flow-control.md, Memory). Any
/// size is allowed, since a peer may have written it; if it is at most LARGEST, the payload fits.
fn within_large(round: u64, size: usize) -> usize {
    (round as usize).wrapping_mul(size.next_power_of_two()) & (LARGEST - 1)
}

/// A place has whole parts of any power of two.
const _: () = assert!(LARGEST.is_power_of_two());

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_large_payload_moves_within_its_place() {
        for size in [0, 1, 4097, 8192, 20000, 32768, 32769, LARGEST, u32::MAX as usize] {
            let parts: Vec<usize> = (0..8).map(|round| within_large(round, size)).collect();
            let fits = |part: &usize| *part < LARGEST && (size > LARGEST || part + size <= LARGEST);
            assert!(parts.iter().all(fits), "{size}: {parts:?}");
            let many = (LARGEST / size.next_power_of_two()).clamp(1, 8);
            assert!((1..many).all(|at| !parts[..at].contains(&parts[at])), "{size}: {parts:?}");
            // A receiver knows 63 bits of a ticket.
            assert_eq!(within_large(u64::MAX >> 4, size), within_large(u64::MAX >> 5, size));
        }
    }
}
