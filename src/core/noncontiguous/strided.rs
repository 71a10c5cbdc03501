//! Boxes with strides on both sides, checked, and with contiguous dimensions merged.

use super::row::Row;
use crate::fail;
use crate::transport::address::Address;
use crate::util::status::Result;
use std::ops::{Deref, DerefMut};

/// Most dimensions of a box.
pub const DIMENSIONS: usize = 8;

/// The dimensions of a box: the first `count` of `all`. Each has an extent, and the strides locally
/// and at the peer.
#[derive(Clone, Debug)]
pub(super) struct Dimensions {
    all: [[u64; 3]; DIMENSIONS],
    count: usize,
}

impl Dimensions {
    fn none() -> Dimensions {
        Dimensions { all: [[0; 3]; DIMENSIONS], count: 0 }
    }

    fn push(&mut self, dimension: [u64; 3]) {
        self.all[self.count] = dimension;
        self.count += 1;
    }
}

impl Deref for Dimensions {
    type Target = [[u64; 3]];

    fn deref(&self) -> &[[u64; 3]] {
        &self.all[..self.count]
    }
}

impl DerefMut for Dimensions {
    fn deref_mut(&mut self) -> &mut [[u64; 3]] {
        &mut self.all[..self.count]
    }
}

/// A box, as [`Strided::new`] has checked and simplified it.
#[derive(Clone, Debug)]
pub struct Strided {
    pub(super) local: Address,
    pub(super) remote: Address,
    /// Bytes of a contiguous piece; 0: there is none.
    pub(super) size: u64,
    /// The dimensions, the innermost first.
    pub(super) dimensions: Dimensions,
    /// Bytes from the first piece to the end of the last one, locally and at the peer.
    pub(super) spans: [u64; 2],
    pub(super) total: u64,
}

/// Bytes from the first piece of a box to the end of the last one. None: more than 64 bits hold.
fn span(size: u64, dimensions: &[[u64; 3]], side: usize) -> Option<u64> {
    dimensions.iter().try_fold(size, |span, dimension| {
        span.checked_add((dimension[0] - 1).checked_mul(dimension[side])?)
    })
}

impl Strided {
    /// Checks and simplifies a box. `given`: for each dimension, the innermost first, its extent,
    /// and its strides locally and at the peer. `to`: the side that is written, 1 the local one and
    /// 2 the peer's.
    pub fn new(
        (local, remote): (Address, Address),
        size: u64,
        given: &[[u64; 3]],
        to: usize,
    ) -> Result<Strided> {
        if size == 0 || given.iter().any(|dimension| dimension[0] == 0) {
            let (dimensions, spans) = (Dimensions::none(), [0; 2]);
            return Ok(Strided { local, remote, size: 0, dimensions, spans, total: 0 });
        }
        let all = given.iter().try_fold(size, |all, dimension| all.checked_mul(dimension[0]));
        let (Some(total), Some(ours), Some(theirs)) =
            (all, span(size, given, 1), span(size, given, 2))
        else {
            fail!(ERR_RANGE, "extents and strides reach further than 2 to the 64th bytes");
        };
        let spans = [ours, theirs];
        if total > spans[to - 1] {
            let there = spans[to - 1];
            fail!(
                ERR_INVALID,
                "{total} bytes are to be written into {there} bytes, expected pieces that do not overlap there"
            );
        }
        // Even if a longer stride makes the box long enough, neighbours in a dimension overlap.
        if let Some(short) = given.iter().find(|it| it[0] > 1 && it[to] < size) {
            fail!(
                ERR_INVALID,
                "a stride is {}, expected at least the size {size}: pieces must not overlap where they are written",
                short[to]
            );
        }
        let (mut piece, mut dimensions) = (size, Dimensions::none());
        for [extent, ours, theirs] in given.iter().copied().filter(|it| it[0] > 1) {
            match dimensions.last_mut() {
                None if ours == piece && theirs == piece => piece *= extent,
                // The product of the extents cannot overflow, since it is at most the total.
                Some([inner, a, b])
                    if a.checked_mul(*inner) == Some(ours)
                        && b.checked_mul(*inner) == Some(theirs) =>
                {
                    *inner *= extent;
                }
                _ => dimensions.push([extent, ours, theirs]),
            }
        }
        Ok(Strided { local, remote, size: piece, dimensions, spans, total })
    }

    /// Copies all pieces.
    ///
    /// # Safety
    /// Both sides are valid for their spans.
    #[inline(always)]
    pub(super) unsafe fn copy(&self, ours: *mut u8, theirs: *mut u8, is_read: bool) {
        self.for_each_row(|[a, b], [count, near, far]| {
            let row = Row { size: self.size, count, near, far };
            // SAFETY: each piece lies in the spans.
            unsafe { row.copy(ours.add(a as usize), theirs.add(b as usize), is_read) };
        });
    }

    /// Calls `each` with the offset of each piece, locally and at the peer.
    #[inline(always)]
    pub(super) fn for_each(&self, mut each: impl FnMut(u64, u64)) {
        self.for_each_row(|[mut ours, mut theirs], [count, a, b]| {
            for _ in 0..count {
                each(ours, theirs);
                // The result of the last addition may lie outside the box, and is not used.
                ours = ours.wrapping_add(a);
                theirs = theirs.wrapping_add(b);
            }
        });
    }

    /// Calls `each` with the offset of the first piece of each row, locally and at the peer, and
    /// with the row: how many pieces, and bytes from one to the next.
    #[inline(always)]
    pub(super) fn for_each_row(&self, mut each: impl FnMut([u64; 2], [u64; 3])) {
        if self.size == 0 {
            return;
        }
        let (inner, outer) = match self.dimensions.split_first() {
            Some((inner, outer)) => (*inner, outer),
            None => ([1, 0, 0], &[][..]),
        };
        let (mut at, mut row) = ([0u64; DIMENSIONS], [0u64; 2]);
        loop {
            each(row, inner);
            let mut level = 0;
            loop {
                let Some([extent, a, b]) = outer.get(level) else { return };
                at[level] += 1;
                if at[level] < *extent {
                    row = [row[0] + a, row[1] + b];
                    break;
                }
                at[level] = 0;
                row = [row[0] - a * (extent - 1), row[1] - b * (extent - 1)];
                level += 1;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const NOWHERE: Address = Address::NOWHERE;

    fn strided(size: u64, given: &[[u64; 3]]) -> Strided {
        Strided::new((NOWHERE, NOWHERE), size, given, 2).unwrap()
    }

    #[test]
    fn dimensions_without_gaps_on_both_sides_are_one() {
        let of = |size, given: &[[u64; 3]]| {
            let it = strided(size, given);
            (it.size, it.dimensions.to_vec())
        };
        assert_eq!(of(8, &[[4, 8, 8], [3, 32, 32]]), (96, vec![]));
        assert_eq!(of(8, &[[4, 8, 8], [1, 0, 7], [3, 32, 40]]), (32, vec![[3, 32, 40]]));
        assert_eq!(of(8, &[[4, 16, 24], [3, 64, 96]]), (8, vec![[12, 16, 24]]));
        assert_eq!(of(8, &[[4, 16, 24], [3, 64, 97]]).1.len(), 2);
        assert_eq!(of(0, &[[4, 16, 24]]), (0, vec![]));
    }

    /// Strides whose product with an extent exceeds 64 bits.
    #[test]
    fn strides_of_half_of_all_numbers_are_compared() {
        let half = 1 << 63;
        assert_eq!(strided(1, &[[2, half, 8], [2, 0, 16]]).dimensions.len(), 2);
        let read = Strided::new((NOWHERE, NOWHERE), 1, &[[2, 8, half], [2, 16, 0]], 1).unwrap();
        assert_eq!(read.dimensions.len(), 2);
    }

    #[test]
    fn each_piece_is_visited_once_the_innermost_first() {
        let mut seen = Vec::new();
        strided(2, &[[2, 4, 8], [3, 100, 50]]).for_each(|a, b| seen.push((a, b)));
        assert_eq!(seen, [(0, 0), (4, 8), (100, 50), (104, 58), (200, 100), (204, 108)]);
    }
}
