//! Copies of few bytes. A call of the C library's function costs as much as the copy itself, and
//! makes its caller save registers.

/// Copies bytes without a call, for some tens of bytes at most. Pieces of one copy may overlap.
///
/// # Safety
/// `to` is valid for writing as many, and they do not overlap `from`.
#[inline(always)]
pub unsafe fn copy_few(from: &[u8], to: *mut u8) {
    let (size, from) = (from.len(), from.as_ptr());
    /// Copies one piece, at `at` bytes.
    #[inline(always)]
    unsafe fn piece<T: Copy>(from: *const u8, to: *mut u8, at: usize) {
        // SAFETY: as the caller of copy_few() promises; the piece lies inside of the bytes.
        unsafe {
            let bytes = from.add(at).cast::<T>().read_unaligned();
            to.add(at).cast::<T>().write_unaligned(bytes);
        }
    }
    // SAFETY: as above.
    unsafe {
        if size >= 16 {
            let mut at = 0;
            while at + 16 < size {
                piece::<u128>(from, to, at);
                at += 16;
            }
            piece::<u128>(from, to, size - 16);
        } else if size >= 8 {
            piece::<u64>(from, to, 0);
            piece::<u64>(from, to, size - 8);
        } else if size >= 4 {
            piece::<u32>(from, to, 0);
            piece::<u32>(from, to, size - 4);
        } else if size > 0 {
            piece::<u8>(from, to, 0);
            piece::<u8>(from, to, size / 2);
            piece::<u8>(from, to, size - 1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn as_many_bytes_are_copied_as_there_are() {
        let from: [u8; 100] = std::array::from_fn(|at| at as u8 + 1);
        for size in 0..=from.len() {
            let mut to = [0; 102];
            // SAFETY: `to` is longer.
            unsafe { copy_few(&from[..size], to[1..].as_mut_ptr()) };
            assert_eq!(to[1..=size], from[..size]);
            assert!(to[0] == 0 && to[size + 1..].iter().all(|byte| *byte == 0));
        }
    }
}
