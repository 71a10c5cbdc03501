//! Copying a row of pieces: pieces of one size, each some bytes behind the one before, on both
//! sides. For usual sizes the compiler knows the size, as in a loop that is written by hand.

use crate::engine::by_caller::{copy, copy_word};

/// Copies `count` pieces of `size` bytes.
///
/// # Safety
/// All pieces are valid on both sides.
pub(super) unsafe fn copy_row(
    (from, from_stride): (*const u8, u64),
    (to, to_stride): (*mut u8, u64),
    size: u64,
    count: u64,
) {
    let places = from as u64 | to as u64 | from_stride | to_stride;
    let row = Row { from, to, strides: [from_stride, to_stride], count };
    // SAFETY: passed on to the caller; words are aligned where that is asked for.
    unsafe {
        match size {
            8 if places.is_multiple_of(8) => row.each(|from, to| copy_word(from, to)),
            4 => row.fixed::<4>(),
            8 => row.fixed::<8>(),
            16 => row.fixed::<16>(),
            24 => row.fixed::<24>(),
            32 => row.fixed::<32>(),
            48 => row.fixed::<48>(),
            64 => row.fixed::<64>(),
            _ => row.each(|from, to| copy(from, to, size as usize)),
        }
    }
}

struct Row {
    from: *const u8,
    to: *mut u8,
    strides: [u64; 2],
    count: u64,
}

impl Row {
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
