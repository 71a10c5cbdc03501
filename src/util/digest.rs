//! A digest of bytes, which ranks compare instead of the bytes.

/// FNV-1a, 128 bits.
pub fn digest(bytes: impl IntoIterator<Item = u8>) -> u128 {
    bytes.into_iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |sum, byte| {
        (sum ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_function() {
        assert_eq!(digest([]), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(digest(*b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
