//! Aliases: further mappings of a region's memory in its owner's process, each with its own access
//! rights.

use super::{Live, Regions};
use crate::fail;
use crate::transport::address::{Address, Key};
use crate::transport::memory::segment::Place;
use crate::util::memory::{Mapping, page_size};
use crate::util::status::Result;

/// A further mapping. It ends with the region at the latest, because another region may get the
/// memory then.
pub(super) struct Alias {
    key: Key,
    /// Its beginning in the region, in bytes.
    offset: u64,
    mapping: Mapping,
}

impl Alias {
    /// The address in the region of a word of this mapping.
    pub(super) fn name_of(&self, word: usize) -> Option<Address> {
        let into = word.checked_sub(self.mapping.base() as usize)?;
        let inside = into < self.mapping.length();
        inside.then_some(Address { offset: self.offset + into as u64, key: self.key.0 })
    }
}

impl Regions {
    /// Maps `size` bytes of an allocated region from `offset` on once more, at `at` (null: the
    /// kernel chooses), with the rights `access` (PROT_*).
    pub fn alias(
        &self,
        key: Key,
        (offset, size): (u64, usize),
        at: *mut u8,
        access: i32,
    ) -> Result<*mut u8> {
        let page = page_size();
        if !offset.is_multiple_of(page as u64) || !(at as usize).is_multiple_of(page) {
            fail!(ERR_INVALID, "offset is {offset}, address {at:?}, expected multiples of {page}");
        }
        let mut table = self.table();
        let Live { place, size: length, .. } = table.live(key, self.routes.own().peer)?;
        let Place::File(begin) = place else {
            fail!(
                ERR_UNSUPPORTED,
                "the region was registered; memory of one that was allocated can be mapped again"
            );
        };
        if size == 0 {
            fail!(ERR_INVALID, "size is 0, expected at least 1 byte");
        }
        Address { offset, key: key.0 }.check(size as u64, length as u64)?;
        if table.aliases.try_reserve(1).is_err() {
            fail!(ERR_NO_MEMORY, "no memory for more than {} aliases", table.aliases.len());
        }
        let mapping = self.segment.map_again(at, access, begin + offset, size)?;
        let base = mapping.base();
        table.aliases.push(Alias { key, offset, mapping });
        Ok(base)
    }

    /// Ends the mapping of a region that begins at `at`.
    pub fn unalias(&self, key: Key, at: *mut u8) -> Result<()> {
        let mut table = self.table();
        let is_it = |alias: &Alias| alias.key == key && alias.mapping.base() == at;
        match table.aliases.iter().position(is_it) {
            Some(place) => drop(table.aliases.swap_remove(place)),
            None => fail!(ERR_INVALID, "alias is {at:?}, which begins no alias of this region"),
        }
        Ok(())
    }

    /// Takes all aliases of a region that has ended.
    pub(super) fn take_aliases(&self, key: Key) -> Vec<Mapping> {
        let all = &mut self.table().aliases;
        all.extract_if(.., |alias| alias.key == key).map(|alias| alias.mapping).collect()
    }
}
