//! Rows of pieces: pieces of one size, each some bytes behind the one before, on both sides. For
//! usual sizes the compiler knows the size, as in a loop that is written by hand.

use crate::engine::by_caller::{copy, copy_word};

/// A row.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Bytes of a piece.
    pub size: u64,
    /// How many pieces there are.
    pub count: u64,
    /// Bytes from one piece to the next, locally.
    pub near: u64,
    /// Bytes from one piece to the next at the peer.
    pub far: u64,
}

impl Row {
    /// Bytes from the first to behind the last, locally and at the peer, of a row that is to be
    /// copied. None: there is nothing to copy, the spans are no numbers, or pieces overlap where
    /// they are written.
    #[inline(always)]
    pub(super) fn spans(&self, is_read: bool) -> Option<[u64; 2]> {
        let gaps = self.count.checked_sub(1)?;
        let span = |stride| gaps.checked_mul(stride)?.checked_add(self.size);
        let written = if is_read { self.near } else { self.far };
        if self.size == 0 || gaps > 0 && written < self.size {
            return None;
        }
        Some([span(self.near)?, span(self.far)?])
    }

    /// The row as one piece, if its pieces lie one behind the other on both sides. It has spans().
    #[inline(always)]
    pub(super) fn merged(self) -> Row {
        let Row { size, count, near, far } = self;
        match count == 1 || near == size && far == size {
            true => Row { size: size * count, count: 1, near: 0, far: 0 },
            false => self,
        }
    }

    /// Copies all pieces.
    ///
    /// # Safety
    /// All pieces are valid on both sides.
    #[inline(always)]
    pub(super) unsafe fn copy(self, ours: *mut u8, theirs: *mut u8, is_read: bool) {
        // SAFETY: passed on to the caller.
        unsafe {
            match is_read {
                true => copy_row((theirs, self.far), (ours, self.near), self.size, self.count),
                false => copy_row((ours, self.near), (theirs, self.far), self.size, self.count),
            }
        }
    }
}

/// # Safety
/// All pieces are valid on both sides.
unsafe fn copy_row(
    (from, from_stride): (*const u8, u64),
    (to, to_stride): (*mut u8, u64),
    size: u64,
    count: u64,
) {
    let places = from as u64 | to as u64 | from_stride | to_stride;
    let way = Way { from, to, strides: [from_stride, to_stride], count };
    // SAFETY: passed on to the caller; words are aligned where that is asked for.
    unsafe {
        match size {
            8 if places.is_multiple_of(8) => way.each(|from, to| copy_word(from, to)),
            4 => way.fixed::<4>(),
            8 => way.fixed::<8>(),
            16 => way.fixed::<16>(),
            24 => way.fixed::<24>(),
            32 => way.fixed::<32>(),
            48 => way.fixed::<48>(),
            64 => way.fixed::<64>(),
            _ => way.each(|from, to| copy(from, to, size as usize)),
        }
    }
}

/// From where to where.
struct Way {
    from: *const u8,
    to: *mut u8,
    strides: [u64; 2],
    count: u64,
}

impl Way {
    /// # Safety
    /// `copy` may be called with each piece.
    #[inline(always)]
    unsafe fn each(self, copy: impl Fn(*const u8, *mut u8)) {
        let (mut from, mut to) = (self.from, self.to);
        for _ in 0..self.count {
            copy(from, to);
            // The last addition may leave the box, and is not used.
            from = from.wrapping_add(self.strides[0] as usize);
            to = to.wrapping_add(self.strides[1] as usize);
        }
    }

    /// # Safety
    /// Pieces of `SIZE` bytes are valid on both sides.
    #[inline(always)]
    unsafe fn fixed<const SIZE: usize>(self) {
        // SAFETY: as the caller promises. All of a piece is read before it is written.
        unsafe {
            self.each(|from, to| {
                to.cast::<[u8; SIZE]>().write(from.cast::<[u8; SIZE]>().read());
            });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_cannot_be_copied_has_no_spans() {
        let spans = |size, count, near, far, is_read| Row { size, count, near, far }.spans(is_read);
        assert_eq!(spans(8, 4, 16, 8, false), Some([56, 32]));
        assert_eq!(spans(8, 1, 0, 0, false), Some([8, 8]));
        // A source may overlap.
        assert_eq!(spans(8, 4, 0, 8, false), Some([8, 32]));
        assert_eq!(spans(8, 4, 0, 8, true), None);
        assert_eq!(spans(8, 4, 8, 7, false), None);
        assert_eq!(spans(0, 4, 8, 8, false), None);
        assert_eq!(spans(8, 0, 8, 8, false), None);
        assert_eq!(spans(8, 1 << 62, 8, 8, false), None);
        assert_eq!(spans(8, 3, u64::MAX, 8, false), None);
    }

    #[test]
    fn contiguous_pieces_are_one() {
        let merged = |size, count, near, far| {
            let Row { size, count, near, far } = Row { size, count, near, far }.merged();
            (size, count, near, far)
        };
        assert_eq!(merged(1, 1000, 1, 1), (1000, 1, 0, 0));
        assert_eq!(merged(4, 2, 4, 4), (8, 1, 0, 0));
        assert_eq!(merged(8, 1, 12, 4), (8, 1, 0, 0), "a stride that nobody uses");
        assert_eq!(merged(8, 3, 8, 16), (8, 3, 8, 16));
        assert_eq!(merged(8, 3, 16, 8), (8, 3, 16, 8));
    }
}
