//! Addresses in the memory of ranks, and the keys of regions in them. A key identifies one region
//! of one rank from its creation to its end. A look-up refuses the key of a freed region, of
//! another rank or of another world.

use crate::fail;
use crate::util::status::Result;

/// Most regions that a rank can have at one time: an index has 16 bits.
pub const INDICES: usize = 1 << 16;
/// Most ranks of a world: an owner has 24 bits.
pub const RANKS: u32 = 1 << 24;

const OWNER_SHIFT: u32 = 16;
const GENERATION_SHIFT: u32 = 40;

/// The bit of a generation that says that adapters execute the atomics of the region, see
/// `engine::by_device`. It is a part of the key, so that every rank that has the key knows, and
/// look-ups need no further check.
pub const DEVICE: u32 = 1 << 23;

/// The key of a region, from the lowest bit on: index in the owner's directory (16 bits), owner
/// (24), generation (24). A new region at an index gets the next generation; the first one is
/// random, so that keys of different worlds differ. The generation is never 0; its highest bit is
/// [`DEVICE`]. One comparison of the number checks all three fields; 0 is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub u64);

impl Key {
    /// Puts a key together.
    pub fn new(index: usize, owner: u32, generation: u32) -> Key {
        debug_assert!(index < INDICES && owner < RANKS);
        let generation = u64::from(generation & 0xff_ffff).max(1);
        Key(index as u64 | u64::from(owner) << OWNER_SHIFT | generation << GENERATION_SHIFT)
    }

    /// The index of the region in its owner's directory.
    #[inline(always)]
    pub fn index(self) -> usize {
        self.0 as usize & (INDICES - 1)
    }

    /// Whether adapters execute the atomics of the region.
    #[inline(always)]
    pub fn is_device(self) -> bool {
        (self.0 >> GENERATION_SHIFT) as u32 & DEVICE != 0 && self != ANY
    }

    /// The rank that owns the region.
    pub fn owner(self) -> u32 {
        (self.0 >> OWNER_SHIFT) as u32 & (RANKS - 1)
    }
}

/// The key of all memory of this process, for local buffers of operations only; the offset is the
/// address. No region has this key: its owner would be rank 2^24 - 1.
pub const ANY: Key = Key(u64::MAX);

/// A place in a rank's memory, as `llcl.h` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Address {
    /// Offset in the region in bytes.
    pub offset: u64,
    /// The region's [`Key`].
    pub key: u64,
}

impl Address {
    /// Where nothing is: an address of zeroes.
    pub const NOWHERE: Address = Address { offset: 0, key: 0 };

    /// ERR_RANGE unless `size` bytes from here lie within a region of `length` bytes.
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
