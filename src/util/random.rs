//! Random numbers for names that should not collide. They are not fit for secrets.

/// A random number from the kernel; if that fails, one that differs from process to process.
pub fn random() -> u64 {
    let mut bytes = [0u8; 8];
    // SAFETY: bytes has room for eight.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match got {
        8 => u64::from_ne_bytes(bytes),
        _ => u64::from(std::process::id()) << 32 | (&raw const bytes) as u64 >> 4,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_numbers_differ() {
        assert_ne!(super::random(), super::random());
    }
}
