//! Makes a region at every rank and exchanges the addresses, in one collective call.

use crate::core::context::Context;
use crate::core::region::Wanted;
use crate::core::region_handle::{RegionHandle, free_region};
use crate::transport::address::Address;
use crate::util::status::{Error, Result, Status};

/// The data that a rank sends: its status, and the address of its region.
type Card = [u64; 3];

impl Context {
    /// Allocates `size` bytes, unless `allowed` is an error, and gathers the addresses of all
    /// ranks. If one rank fails, all fail.
    pub fn make_shared_region(
        &self,
        size: usize,
        allowed: Result<()>,
    ) -> Result<(*mut RegionHandle, Vec<Address>)> {
        self.may_block()?;
        let made = allowed.and_then(|()| {
            // SAFETY: fresh memory is the library's own.
            unsafe { self.make_region(Wanted::FRESH, size) }
        });
        let card: Card = match &made {
            Ok(region) => {
                // SAFETY: made just now, and no other code has it.
                let Address { offset, key } = unsafe { &**region }.at(0);
                [Status::OK.0 as u64, offset, key]
            }
            Err(error) => [error.status.0 as u64, 0, 0],
        };
        let all = self.exchange_cards(&card).and_then(|all| succeeded(&all).map(|()| all));
        match (made, all) {
            // This rank's own error says more than that some rank has failed.
            (Err(error), _) => Err(error),
            (Ok(region), Ok(all)) => {
                let address = |card: &Card| Address { offset: card[1], key: card[2] };
                Ok((region, all.iter().map(address).collect()))
            }
            (Ok(region), Err(error)) => {
                // SAFETY: as above. Nobody has used it.
                let _ = free_region(unsafe { &*region });
                Err(error)
            }
        }
    }

    fn exchange_cards(&self, card: &Card) -> Result<Vec<Card>> {
        let mine: Vec<u8> = card.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut all = vec![0; mine.len() * self.size() as usize];
        self.exchange(&mine, &mut all)?;
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        let words: Vec<u64> = all.chunks_exact(size_of::<u64>()).map(word).collect();
        Ok(words.chunks_exact(3).map(|card| [card[0], card[1], card[2]]).collect())
    }
}

/// An error if any rank was refused.
fn succeeded(all: &[Card]) -> Result<()> {
    let Some(rank) = all.iter().position(|card| card[0] != Status::OK.0 as u64) else {
        return Ok(());
    };
    let status = Status(all[rank][0] as i32);
    let why = status.text().trim_end_matches('\0');
    Err(Error::new(status, format!("rank {rank} was refused, and so are all: {why}")))
}
