//! Which ranges of a piece are free.

use std::collections::BTreeMap;

/// Blocks begin and end at multiples of this. It is two cache lines, since a core fetches lines in
/// pairs.
pub const GRAIN: u64 = 128;

/// The free ranges of a piece, by offset; adjacent ones are joined.
pub struct Room {
    size: u64,
    free: BTreeMap<u64, u64>,
}

impl Room {
    /// For a piece of `size` bytes that is free.
    pub fn new(size: u64) -> Room {
        Room { size, free: BTreeMap::from([(0, size)]) }
    }

    /// Bytes of the piece.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes the first free range of at least `bytes`, a multiple of GRAIN. Returns its offset.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let (at, length) =
            self.free.iter().map(|(at, length)| (*at, *length)).find(|r| r.1 >= bytes)?;
        self.free.remove(&at);
        if length > bytes {
            self.free.insert(at + bytes, length - bytes);
        }
        Some(at)
    }

    /// Frees a range that was taken.
    pub fn give_back(&mut self, at: u64, bytes: u64) {
        let (mut at, mut bytes) = (at, bytes);
        if let Some((before, length)) = self.free.range(..at).next_back().map(|r| (*r.0, *r.1))
            && before + length == at
        {
            self.free.remove(&before);
            (at, bytes) = (before, bytes + length);
        }
        if let Some(behind) = self.free.remove(&(at + bytes)) {
            bytes += behind;
        }
        self.free.insert(at, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::random::random;

    #[test]
    fn blocks_never_overlap_and_all_room_comes_back_in_any_order() {
        let mut room = Room::new(64 * GRAIN);
        let mut live: Vec<(u64, u64)> = Vec::new();
        for _ in 0..2000 {
            let number = random();
            if !number.is_multiple_of(3) {
                let bytes = (number / 3 % 9 + 1) * GRAIN;
                if let Some(at) = room.take(bytes) {
                    let apart =
                        |other: &(u64, u64)| at + bytes <= other.0 || other.0 + other.1 <= at;
                    assert!(live.iter().all(apart) && at + bytes <= room.size(), "{at} {bytes}");
                    live.push((at, bytes));
                }
            } else if !live.is_empty() {
                let (at, bytes) = live.swap_remove(number as usize / 3 % live.len());
                room.give_back(at, bytes);
            }
        }
        live.into_iter().for_each(|(at, bytes)| room.give_back(at, bytes));
        assert_eq!(room.take(64 * GRAIN), Some(0));
        assert_eq!(room.take(GRAIN), None);
    }
}
