//! Rows: pieces of one size with one stride on each side. There is a loop for each usual size, so
//! that the compiler copies a piece by a few moves.

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
    /// Bytes from the first piece to the end of the last one, locally and at the peer. None: the
    /// row is not to be copied, because it is empty, a span exceeds 64 bits, or pieces overlap
    /// where they are written.
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

    /// The row as one piece, if its pieces are contiguous on both sides. The caller has checked the
    /// row with spans().
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
        let Row { size, count, near, far } = self;
        let (from, to, here, there) =
            if is_read { (theirs, ours, far, near) } else { (ours, theirs, near, far) };
        let of_words = (from as u64 | to as u64 | here | there).is_multiple_of(8);
        let (from, here, there) = (from.cast_const(), here as usize, there as usize);
        // SAFETY: passed on to the caller; words are aligned where that is asked for.
        unsafe {
            match size {
                8 if of_words => row_of_words(from, to, here, there, count),
                4 => row_of::<4>(from, to, here, there, count),
                8 => row_of::<8>(from, to, here, there, count),
                16 => row_of::<16>(from, to, here, there, count),
                24 => row_of::<24>(from, to, here, there, count),
                32 => row_of_wide::<32>(from, to, here, there, count),
                48 => row_of_wide::<48>(from, to, here, there, count),
                64 => row_of_wide::<64>(from, to, here, there, count),
                _ => row_of_any(from, to, here, there, count, size as usize),
            }
        }
    }
}

// Each loop is a function of its own that gets its arguments in registers. So it needs few further
// registers and no stack frame.

/// # Safety
/// All pieces are valid on both sides, and aligned.
#[inline(never)]
unsafe fn row_of_words(from: *const u8, to: *mut u8, here: usize, there: usize, count: u64) {
    // SAFETY: passed on to the caller.
    each(from, to, here, there, count, |from, to| unsafe { copy_word(from, to) });
}

/// # Safety
/// All pieces are valid on both sides.
#[inline(never)]
unsafe fn row_of<const SIZE: usize>(
    from: *const u8,
    to: *mut u8,
    here: usize,
    there: usize,
    count: u64,
) {
    // SAFETY: passed on to the caller.
    each(from, to, here, there, count, |from, to| unsafe { copy_fixed::<SIZE>(from, to) });
}

/// Copies pieces of 32 bytes or more. The number of stores limits their rate, so registers of 32
/// bytes are used where the processor has them.
///
/// # Safety
/// All pieces are valid on both sides.
#[inline(always)]
unsafe fn row_of_wide<const SIZE: usize>(
    from: *const u8,
    to: *mut u8,
    here: usize,
    there: usize,
    count: u64,
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY: passed on to the caller; the processor has the registers.
        return unsafe { row_of_avx::<SIZE>(from, to, here, there, count) };
    }
    // SAFETY: passed on to the caller.
    unsafe { row_of::<SIZE>(from, to, here, there, count) }
}

/// # Safety
/// All pieces are valid on both sides, and the processor has AVX.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
#[target_feature(enable = "avx")]
unsafe fn row_of_avx<const SIZE: usize>(
    from: *const u8,
    to: *mut u8,
    here: usize,
    there: usize,
    count: u64,
) {
    // SAFETY: passed on to the caller.
    each(from, to, here, there, count, |from, to| unsafe { copy_fixed::<SIZE>(from, to) });
}

/// # Safety
/// All pieces are valid on both sides.
#[inline(never)]
unsafe fn row_of_any(
    from: *const u8,
    to: *mut u8,
    here: usize,
    there: usize,
    count: u64,
    size: usize,
) {
    // SAFETY: passed on to the caller.
    each(from, to, here, there, count, |from, to| unsafe { copy(from, to, size) });
}

/// Copies a piece of a constant size. All bytes are read before the first is written.
///
/// # Safety
/// Both are valid for `SIZE` bytes.
#[inline(always)]
unsafe fn copy_fixed<const SIZE: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: passed on to the caller.
    unsafe { to.cast::<[u8; SIZE]>().write(from.cast::<[u8; SIZE]>().read()) };
}

/// Copies a piece whose size is `SIZE`; 0: of any size.
///
/// # Safety
/// As of copy(), and `size` is `SIZE` if that is not 0.
#[inline(always)]
pub(super) unsafe fn copy_sized<const SIZE: usize>(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        match SIZE {
            0 => copy_piece(from, to, size),
            8 => copy(from, to, 8),
            _ => copy_fixed::<SIZE>(from, to),
        }
    }
}

/// Copies a piece as its first and its last bytes, one `Half` each, which may overlap. All bytes
/// are read before the first is written. A `Half` is a number, since the compiler would store an
/// array of bytes on the stack and load it from there.
///
/// # Safety
/// Both are valid for `size` bytes, and `size` is from that of a half to twice as much.
#[inline(always)]
unsafe fn copy_halves<Half: Copy>(from: *const u8, to: *mut u8, size: usize) {
    let last = size - size_of::<Half>();
    // SAFETY: passed on to the caller.
    unsafe {
        let head = from.cast::<Half>().read_unaligned();
        let tail = from.add(last).cast::<Half>().read_unaligned();
        to.cast::<Half>().write_unaligned(head);
        to.add(last).cast::<Half>().write_unaligned(tail);
    }
}

/// Like copy_halves(), with two numbers at each end.
///
/// # Safety
/// Both are valid for `size` bytes, and `size` is from 32 to 64.
#[inline(always)]
unsafe fn copy_quarters(from: *const u8, to: *mut u8, size: usize) {
    let places = [0, 16, size - 32, size - 16];
    // SAFETY: passed on to the caller.
    unsafe {
        let [a, b, c, d] = places.map(|at| from.add(at).cast::<u128>().read_unaligned());
        to.add(places[0]).cast::<u128>().write_unaligned(a);
        to.add(places[1]).cast::<u128>().write_unaligned(b);
        to.add(places[2]).cast::<u128>().write_unaligned(c);
        to.add(places[3]).cast::<u128>().write_unaligned(d);
    }
}

/// Copies a piece of any size. From 4 to 64 bytes it calls no function.
///
/// # Safety
/// As of copy().
#[inline(always)]
pub(super) unsafe fn copy_piece(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        match size {
            8 if (from as usize | to as usize).is_multiple_of(8) => copy_word(from, to),
            4..8 => copy_halves::<u32>(from, to, size),
            8..16 => copy_halves::<u64>(from, to, size),
            16..32 => copy_halves::<u128>(from, to, size),
            32..=64 => copy_quarters(from, to, size),
            _ => std::ptr::copy(from, to, size),
        }
    }
}

/// The value, hidden from the compiler. The compiler would otherwise compute each address of a row
/// from the one before, or keep many multiples of the stride, which takes more instructions for
/// each piece and a stack frame.
macro_rules! unforeseen {
    ($value:expr) => {{
        let mut value = $value;
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        #[allow(clippy::pointers_in_nomem_asm_block, reason = "nothing is read or written")]
        // SAFETY: the assembler sees a comment.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) value, options(pure, nomem, nostack, preserves_flags));
        }
        value
    }};
}
pub(super) use unforeseen;

/// Calls `copy` with each piece, four in a round. Address modes of the processor do most of the
/// additions.
#[inline(always)]
fn each(
    mut from: *const u8,
    mut to: *mut u8,
    here: usize,
    there: usize,
    count: u64,
    copy: impl Fn(*const u8, *mut u8),
) {
    let (thrice_here, thrice_there) = (here.wrapping_mul(3), there.wrapping_mul(3));
    let (thrice_here, thrice_there) = (unforeseen!(thrice_here), unforeseen!(thrice_there));
    // The results of the last additions may lie outside the box, and are not used.
    for _ in 0..count / 4 {
        copy(from, to);
        copy(from.wrapping_add(here), to.wrapping_add(there));
        copy(from.wrapping_add(here.wrapping_mul(2)), to.wrapping_add(there.wrapping_mul(2)));
        copy(from.wrapping_add(thrice_here), to.wrapping_add(thrice_there));
        from = unforeseen!(from.wrapping_add(here.wrapping_mul(4)));
        to = unforeseen!(to.wrapping_add(there.wrapping_mul(4)));
    }
    for _ in 0..count % 4 {
        copy(from, to);
        from = from.wrapping_add(here);
        to = to.wrapping_add(there);
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

    /// 400 bytes, all different from 0.
    fn source() -> Vec<u8> {
        (0..400u32).map(|at| (at * 7) as u8 | 1).collect()
    }

    #[test]
    fn pieces_of_every_size_and_alignment_are_copied() {
        let mut from = source();
        for (size, a, b) in
            (0..130).flat_map(|size| (0..9).flat_map(move |a| (0..9).map(move |b| (size, a, b))))
        {
            let (mut to, mut expected) = (vec![0; 400], vec![0; 400]);
            expected[100 + b..][..size].copy_from_slice(&from[a..][..size]);
            // SAFETY: both ranges lie in the vectors.
            unsafe {
                copy_piece(from.as_mut_ptr().add(a), to.as_mut_ptr().add(100 + b), size);
            }
            assert!(to == expected, "size {size}, from {a} to {b}");
        }
    }

    /// Rows with and without alignment, and with each number of pieces that remains after the
    /// rounds of four.
    #[test]
    fn rows_are_copied_as_a_loop_would() {
        let mut from = source();
        for (size, count) in [1, 3, 4, 8, 16, 24, 32, 48, 64, 65]
            .into_iter()
            .flat_map(|size| (0..5).chain([300 / (size + 16)]).map(move |count| (size, count)))
        {
            let size = size as usize;
            for (near, far, at) in [(0, 0, 0), (3, 5, 0), (8, 16, 0), (8, 0, 1), (16, 8, 8)]
                .map(|(a, b, at)| (size + a, size + b, at))
            {
                let (mut to, mut expected) = (vec![0; 400], vec![0; 400]);
                for piece in 0..count as usize {
                    expected[at + piece * far..][..size]
                        .copy_from_slice(&from[at + piece * near..][..size]);
                }
                let row = Row { size: size as u64, count, near: near as u64, far: far as u64 };
                // SAFETY: all pieces lie in the vectors.
                unsafe { row.copy(from.as_mut_ptr().add(at), to.as_mut_ptr().add(at), false) };
                assert!(to == expected, "{row:?}");
                // The row is copied back.
                // SAFETY: as above.
                unsafe { row.copy(from.as_mut_ptr().add(at), to.as_mut_ptr().add(at), true) };
                assert!(from == source(), "{row:?}");
            }
        }
    }
}
