//! The identity of this machine.

use crate::fail;
use crate::util::status::Result;

/// The variable that replaces the machine's identity. It is a number for the rank that has it in
/// its environment, or a list with a number for each rank. Mostly tests use it.
pub const NODE_ID: &str = "LLCL_NODE_ID";

/// The kernel's boot id; empty if there is none.
pub fn boot_id() -> Vec<u8> {
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// The number that the variable gives to a rank of `size` ranks. None: the variable is not set.
pub fn chosen_node(rank: u32, size: u32) -> Result<Option<u32>> {
    let Some(text) = std::env::var_os(NODE_ID).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let text = text.into_string().unwrap_or_else(|_| "no text".to_owned());
    chosen(&text, rank, size).map(Some)
}

fn chosen(text: &str, rank: u32, size: u32) -> Result<u32> {
    let numbers: Option<Vec<u32>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some([number]) => Ok(*number),
        Some(numbers) if numbers.len() >= size as usize => Ok(numbers[rank as usize]),
        _ => fail!(
            ERR_INVALID,
            "{NODE_ID} is \"{text}\", expected a number, or a list like 0,0,1,1 with a number for \
             each of {size} ranks"
        ),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_one_number_or_one_for_each_rank() {
        assert_eq!(chosen("7", 3, 4).unwrap(), 7);
        assert_eq!((0..4).map(|rank| chosen("0, 0,1,1", rank, 4).unwrap()).sum::<u32>(), 2);
        assert_eq!(chosen("0,1,5,9", 1, 2).unwrap(), 1);
        for wrong in ["0,1", "a", "-1", "0,,1", "4294967296"] {
            let error = chosen(wrong, 0, 3).unwrap_err();
            assert!(error.message().contains("each of 3 ranks"), "{wrong}: {error}");
        }
    }
}
