//! Addresses and the keys in them. A key names one life of one region of one rank; whoever uses a
//! key of a region that is gone, of another rank or of another world finds that it fits nothing.

use crate::fail;
use crate::util::status::Result;

/// Most regions that a rank can have at one time: an index has 16 bits.
pub const INDICES: usize = 1 << 16;
/// Most ranks of a world: an owner has 24 bits.
pub const RANKS: u32 = 1 << 24;

const OWNER_SHIFT: u32 = 16;
const GENERATION_SHIFT: u32 = 40;

/// In a generation: the region's words are changed by adapters, see `engine::by_device`. It stands
/// in the key, so that whoever has a key knows, and no look-up takes longer.
pub const DEVICE: u32 = 1 << 23;

/// The name of one life of a region: index (16 bits), owner (24), generation (24, never 0, begun
/// at a random number so that worlds do not share keys; its last bit is [`DEVICE`]). As a number,
/// so that one comparison checks all three; 0 is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub u64);

impl Key {
    /// The key of the given life.
    pub fn new(index: usize, owner: u32, generation: u32) -> Key {
        debug_assert!(index < INDICES && owner < RANKS);
        let generation = u64::from(generation & 0xff_ffff).max(1);
        Key(index as u64 | u64::from(owner) << OWNER_SHIFT | generation << GENERATION_SHIFT)
    }

    /// Where the region stands in its owner's directory.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize & (INDICES - 1)
    }

    /// Whether adapters change the region's words, and processors do not.
    #[inline(always)]
    pub fn is_device(self) -> bool {
        (self.0 >> GENERATION_SHIFT) as u32 & DEVICE != 0 && self != ANY
    }

    /// The rank whose memory it is.
    pub fn owner(self) -> u32 {
        (self.0 >> OWNER_SHIFT) as u32 & (RANKS - 1)
    }
}

/// The key of all memory of the process, for our own side of operations only: the offset is then
/// the address. No region has it, because no rank has so high a number.
pub const ANY: Key = Key(u64::MAX);

/// A place in a rank's memory, as it is sent around: offset first, so that the user can add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Address {
    /// Bytes from the beginning of the region.
    pub offset: u64,
    /// The region's [`Key`].
    pub key: u64,
}

impl Address {
    /// Whether `size` bytes from here stay within a region of `length` bytes.
    pub fn check(self, size: u64, length: u64) -> Result<()> {
        let offset = self.offset;
        if offset > length || size > length - offset {
            fail!(
                ERR_RANGE,
                "offset {offset} and size {size} leave the region, which has {length} bytes"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_back_what_went_into_it_and_is_never_zero() {
        for (index, owner, generation) in [(0, 0, 0), (65535, RANKS - 1, 0xff_ffff), (7, 3, 9)] {
            let key = Key::new(index, owner, generation);
            assert_ne!(key.0, 0);
            assert_eq!((key.index(), key.owner()), (index, owner));
        }
        assert_ne!(Key::new(1, 2, 3), Key::new(1, 2, 4));
        assert!(Key::new(1, 2, 3 | DEVICE).is_device() && !Key::new(1, 2, DEVICE - 1).is_device());
        assert!(!ANY.is_device());
    }
}
