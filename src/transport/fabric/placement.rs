//! On which node a rank runs. Ranks of one node share memory; a wire leads to all others. Where the
//! environment asks for a wire and names no nodes, the wire leads to all ranks: each is a node.
//!
//! A node is what the kernel was started for once: its boot id says which, and the bootstrap
//! whether a descriptor passes between two ranks of it. `LLCL_NODE_ID` overrides
//! the boot id, for tests above all: one number for the rank whose environment it is, or a list
//! with a number for each rank, by which ranks that are threads of one process form nodes.

use crate::bootstrap::Bootstrap;
use crate::fail;
use crate::util::machine::{boot_id, chosen_node};
use crate::util::status::Result;

/// Bytes of a placement in a card.
pub const BYTES: usize = 12;

/// See the head of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Two ranks with the same share memory.
    identity: u64,
    /// What users are told of it: the variable's number; else 0 where no wire leads anywhere, so
    /// that there is one node only, and a part of the identity where one does.
    pub number: u32,
}

/// The boot id, or the variable's number, as one number whose halves both differ.
fn scramble(bytes: &[u8]) -> u64 {
    // FNV-1a, and a last mixing.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Placement {
    /// Where this rank runs. `networked`: a wire leads to other nodes; `forced`: the environment
    /// asks for it.
    pub fn own(bootstrap: &Bootstrap, networked: bool, forced: bool) -> Result<Placement> {
        if let Some(number) = chosen_node(bootstrap.rank(), bootstrap.size())? {
            return Ok(Placement { identity: scramble(&number.to_le_bytes()), number });
        }
        // One boot id may have several nodes: see bootstrap::external.
        let first = if forced { bootstrap.rank() } else { bootstrap.leader() };
        let identity = scramble(&[&boot_id()[..], &first.to_le_bytes()].concat());
        Ok(Placement { identity, number: if networked { identity as u32 } else { 0 } })
    }

    /// As it stands at the beginning of a card.
    pub fn encode(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.identity.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.number.to_ne_bytes());
        bytes
    }

    /// Takes the placement from the beginning of a peer's card.
    pub fn take(card: &mut Vec<u8>, peer: u32) -> Result<Placement> {
        let Some((bytes, rest)) = card.split_first_chunk::<BYTES>() else {
            fail!(ERR_SYSTEM, "card of rank {peer} has {} bytes, expected more", card.len());
        };
        let (identity, number) = bytes.split_at(8);
        let placement = Placement {
            identity: identity.try_into().map_or(0, u64::from_ne_bytes),
            number: number.try_into().map_or(0, u32::from_ne_bytes),
        };
        *card = rest.to_vec();
        Ok(placement)
    }

    /// A number that only ranks of this node have.
    pub fn identity(self) -> u64 {
        self.identity
    }

    /// Whether ranks at these two places share memory.
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
