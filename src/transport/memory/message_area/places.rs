//! The places of payloads that do not fit into their slots.

use super::{LARGE, LARGE_RESPONSES, MessageArea};
use crate::transport::frame::{Envelope, LARGEST};
use crate::transport::memory::slots::SlotShare;
use crate::util::prefetch::prefetch_to_write;

/// Most bytes of a payload at a near place.
const NEAR_MOST: usize = 2048;
/// Most bytes of a payload after which a sender fetches the next near place.
const FETCHED: usize = 1024;

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
        let short = envelope.payload_size() <= NEAR_MOST;
        if short && share.is_near(ticket, self.sizes.near_of(number)) {
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

    /// The place of the payload of a ticket's slot. The places lie in descending order: a core that
    /// reads one fetches lines behind it ahead, and these must not be those that the sender of the
    /// next message writes.
    #[inline(always)]
    fn place(&self, number: usize, share: &SlotShare, ticket: u64, envelope: &Envelope) -> *mut u8 {
        let place = self.sizes.payload_at(number, share.slots.len() - 1 - share.index(ticket));
        let within = match number {
            LARGE | LARGE_RESPONSES => within_large(share.round(ticket), envelope.payload_size()),
            _ => 0,
        };
        self.payloads.wrapping_add(place + within)
    }

    /// After a message whose payload is at `place`: if that is a near place, fetches the lines of
    /// the one behind it, which the receiver's core holds. Most likely the next message goes there
    /// and is as long. With longer payloads it does not pay, since the receiver is still reading
    /// this one.
    #[inline(always)]
    pub fn fetch_behind(&self, place: *mut u8, envelope: &Envelope) {
        let size = envelope.payload_size();
        if envelope.is_near() && size <= FETCHED {
            let (mut line, end) = (self.sizes.medium, self.sizes.medium + size);
            while line < end {
                prefetch_to_write(place.wrapping_add(line));
                line += 64;
            }
        }
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
    use crate::transport::memory::control::Control;
    use crate::transport::memory::slots::FIRST;
    use crate::util::config::Config;
    use crate::util::memory::MemoryFile;

    /// The envelope of a message with a payload of `size` bytes.
    fn sized(size: usize) -> Envelope {
        Envelope([0, size as u64, 0])
    }

    #[test]
    fn short_payloads_lie_near_and_each_longer_one_lies_below_the_one_before() {
        let file = MemoryFile::create().unwrap();
        let own = Control::create(&file, &Config::from_environment().unwrap(), 2).unwrap();
        let area = own.own_message_area();
        let share = area.share(0, area.head);
        for (size, near) in [(NEAR_MOST, true), (NEAR_MOST + 1, false)] {
            let places: [*mut u8; 3] = std::array::from_fn(|at| {
                let (ticket, mut envelope) = (FIRST.wrapping_add(at as u64), sized(size));
                let place = area.place_to_write(0, &share, ticket, &mut envelope);
                assert_eq!(envelope.is_near(), near);
                assert_eq!(area.place_to_read(0, &share, ticket, &envelope), place.cast_const());
                place
            });
            assert_eq!(places.is_sorted_by(|a, b| a > b), !near, "{places:?}");
        }
    }

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
