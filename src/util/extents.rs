//! The free ranges of a file. Adjacent ranges are merged.

use crate::util::status::{Error, Result, Status};

/// The free ranges below the end of the last range that is taken.
#[derive(Debug, Default)]
pub struct Extents {
    /// First byte and length of each, in the order of first bytes. No two are adjacent.
    free: Vec<(u64, u64)>,
    end: u64,
}

impl Extents {
    /// A file of which the first `end` bytes are taken.
    pub fn from(end: u64) -> Extents {
        Extents { free: Vec::new(), end }
    }

    /// The end of the last range that is taken. All free ranges lie below.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Takes `length` bytes from the first free range that is long enough, else at the end. Returns
    /// the first byte.
    pub fn take(&mut self, length: u64) -> Result<u64> {
        if let Some(at) = self.free.iter().position(|range| range.1 >= length) {
            let (offset, all) = self.free[at];
            match all == length {
                true => drop(self.free.remove(at)),
                false => self.free[at] = (offset + length, all - length),
            }
            return Ok(offset);
        }
        // give() needs an entry if it must note this range later, and loses the range without
        // memory. So take(), which can fail, makes room for one more entry.
        self.free.try_reserve(1).map_err(|_| Error::bare(Status::ERR_NO_MEMORY))?;
        let offset = self.end;
        self.end += length;
        Ok(offset)
    }

    /// Frees a range. If there is no memory to note it, the range is lost.
    pub fn give(&mut self, offset: u64, length: u64) {
        let at = self.free.partition_point(|range| range.0 < offset);
        let before = at.checked_sub(1).filter(|at| {
            let range = self.free[*at];
            range.0 + range.1 == offset
        });
        let after = self.free.get(at).copied().filter(|range| offset + length == range.0);
        match (before, after) {
            (Some(before), Some(after)) => {
                self.free[before].1 += length + after.1;
                self.free.remove(at);
            }
            (Some(before), None) => self.free[before].1 += length,
            (None, Some(after)) => self.free[at] = (offset, length + after.1),
            (None, None) => {
                if self.free.try_reserve(1).is_ok() {
                    self.free.insert(at, (offset, length));
                }
            }
        }
        // The free range at the end is removed: `end` moves down to its first byte.
        if let Some((offset, _)) = self.free.pop_if(|range| range.0 + range.1 == self.end) {
            self.end = offset;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::util::random::random;

    #[test]
    fn what_is_given_back_is_taken_again_and_neighbours_become_one() {
        let mut extents = Extents::from(100);
        let mut take = |length| extents.take(length).unwrap();
        assert_eq!([take(10), take(10), take(10), take(10)], [100, 110, 120, 130]);
        extents.give(100, 10);
        extents.give(120, 10);
        assert_eq!(extents.free, [(100, 10), (120, 10)]);
        extents.give(110, 10);
        assert_eq!(extents.free, [(100, 30)]);
        assert_eq!(extents.take(25).unwrap(), 100);
        assert_eq!(extents.take(8).unwrap(), 140);
        assert_eq!(extents.take(5).unwrap(), 125);
        extents.give(140, 8);
        extents.give(130, 10);
        assert_eq!(
            (extents.end, &extents.free[..]),
            (130, &[][..]),
            "what is last is behind the end"
        );
    }

    #[test]
    fn no_two_owners_share_a_byte_and_churn_does_not_grow_the_file() {
        let mut extents = Extents::from(4096);
        let (mut held, mut most) = (Vec::<(u64, u64)>::new(), 0);
        for _ in 0..20_000 {
            if held.len() == 8 {
                let (offset, length) = held.swap_remove(random() as usize % 8);
                extents.give(offset, length);
            }
            let length = random() % 16 + 1;
            let offset = extents.take(length).unwrap();
            let apart =
                |other: &(u64, u64)| offset >= other.0 + other.1 || other.0 >= offset + length;
            assert!(offset >= 4096 && held.iter().all(apart));
            held.push((offset, length));
            most = most.max(extents.end);
        }
        assert!(most < 4096 + 8 * 16 * 4, "{most}");
        held.iter().for_each(|(offset, length)| extents.give(*offset, *length));
        assert_eq!((extents.end, extents.free.len()), (4096, 0));
    }
}
