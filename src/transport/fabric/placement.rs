//! The node on which a rank runs. Ranks of one node share memory; a wire leads to all others.
//!
//! Ranks are on one node if their kernels have the same boot id and a hub in common, so that
//! descriptors pass between them. If `LLCL_TRANSPORT` names a wire, each rank counts as a node, so
//! the wire leads to all peers. `LLCL_NODE_ID` overrides both, above all for tests: it is one
//! number for the rank in whose environment it is, or a list with a number for each rank, by which
//! ranks that are threads of one process form several nodes.

use crate::bootstrap::Bootstrap;
use crate::fail;
use crate::util::machine::{boot_id, chosen_node};
use crate::util::status::Result;

/// Size of a placement in a card.
pub const BYTES: usize = 12;

/// The node of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Ranks with equal identities share memory.
    identity: u64,
    /// The number of the node for users: that of `LLCL_NODE_ID`; without it the lower half of the
    /// identity, or 0 if there is no wire and so only one node.
    pub number: u32,
}

/// A hash of which both halves depend on all bytes.
fn scramble(bytes: &[u8]) -> u64 {
    // FNV-1a, and a last mixing.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Placement {
    /// The node of this rank. `networked`: there is a wire; `forced`: the environment names it.
    pub fn own(bootstrap: &Bootstrap, networked: bool, forced: bool) -> Result<Placement> {
        if let Some(number) = chosen_node(bootstrap.rank(), bootstrap.size())? {
            return Ok(Placement { identity: scramble(&number.to_le_bytes()), number });
        }
        // With the hub's rank, since ranks with one boot id may have several hubs (containers): see
        // bootstrap::external.
        let first = if forced { bootstrap.rank() } else { bootstrap.leader() };
        let identity = scramble(&[&boot_id()[..], &first.to_le_bytes()].concat());
        Ok(Placement { identity, number: if networked { identity as u32 } else { 0 } })
    }

    /// Encodes the placement for a card.
    pub fn encode(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.identity.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.number.to_ne_bytes());
        bytes
    }

    /// Takes the placement off the beginning of a peer's card.
    pub fn take(card: &mut Vec<u8>, peer: u32) -> Result<Placement> {
        let Some((bytes, rest)) = card.split_first_chunk::<BYTES>() else {
            let size = card.len();
            fail!(ERR_SYSTEM, "the card of rank {peer} has {size} bytes, expected {BYTES} or more");
        };
        let (identity, number) = bytes.split_at(8);
        let placement = Placement {
            identity: identity.try_into().map_or(0, u64::from_ne_bytes),
            number: number.try_into().map_or(0, u32::from_ne_bytes),
        };
        *card = rest.to_vec();
        Ok(placement)
    }

    /// The identity of the node, which no other node has.
    pub fn identity(self) -> u64 {
        self.identity
    }

    /// Whether ranks with these two placements share memory.
    pub fn shares_memory_with(self, other: Placement) -> bool {
        self.identity == other.identity
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_placement_comes_back_out_of_a_card_and_leaves_the_rest() {
        let (here, there) = (1, 2);
        let at = |number: u32| Placement { identity: scramble(&number.to_le_bytes()), number };
        let mut card = [&at(here).encode()[..], b"rest"].concat();
        let taken = Placement::take(&mut card, 3).unwrap();
        assert!(taken == at(here) && card == b"rest" && taken.shares_memory_with(at(here)));
        assert!(!taken.shares_memory_with(at(there)));
        assert!(Placement::take(&mut card, 3).is_err());
    }
}
