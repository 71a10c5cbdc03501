//! Atomics on regions with LLCL_REGION_DEVICE_ATOMICS. The owner's network adapter executes all
//! atomics on their words, also those of ranks on the same node and of the owner; processors
//! execute none. If an adapter and a processor both changed a word, their operations would not be
//! atomic to each other. With one adapter for each word, all atomics on the word are totally
//! ordered.
//!
//! An operation that the adapter has is one work request. Any other operation on 8 bytes is a loop
//! around the adapter's compare-and-swap, which compares with the value that the round before has
//! fetched.

use crate::engine::atomic::{self, kind, op};
use crate::engine::command::Command;
use crate::engine::routes::Routes;
use crate::fail;
use crate::transport::address::Address;
use crate::transport::port::Port;
use crate::transport::remote::What;
use crate::util::status::Result;

/// Bytes of the words that adapters can change.
pub const WIDTH: u64 = 8;

/// The adapter's operation and its operand for an operation that is one work request. `atomics`:
/// bit n is set if the adapter has operation n. None: the operation needs a loop.
pub fn in_one(atomics: u64, asked: u8, kind: u8, operand: u64) -> Option<(u8, u64)> {
    let floating = kind == kind::F64;
    let (op, operand) = match asked {
        op::STORE => (op::SWAP, operand),
        op::SUB if !floating => (op::ADD, operand.wrapping_neg()),
        _ => (asked, operand),
    };
    // Adapters do arithmetic on integers only.
    let has = atomics & 1 << op != 0 && (op <= op::COMPARE_SWAP || !floating);
    has.then_some((op, operand))
}

/// Fails if adapters cannot change the word. RETRY_CONNECTING: this rank asks the peer for the
/// region, and the caller tries again later.
pub fn check(routes: &Routes, port: &Port, word: Address, kind: u8) -> Result<()> {
    if atomic::width(kind) != Some(WIDTH as usize) {
        let kind = atomic::type_name(kind.into());
        fail!(
            ERR_UNSUPPORTED,
            "type is {kind}, expected one of 8 bytes: the region has LLCL_REGION_DEVICE_ATOMICS, \
             and adapters change no other words"
        );
    }
    let place = routes.fabric().locate_device(port, word)?;
    if place % WIDTH != 0 || !word.offset.is_multiple_of(WIDTH) {
        let offset = word.offset;
        fail!(ERR_INVALID, "offset is {offset}, expected that of a word aligned to {WIDTH} bytes");
    }
    Ok(())
}

/// The new value of a word that holds `old`.
fn next(command: &Command, old: u64) -> u64 {
    let Command { code, kind, operand, compare, .. } = *command;
    let mut word = old;
    // SAFETY: a word of this frame, aligned.
    unsafe { atomic::apply((&raw mut word).cast(), code, kind, operand, compare) };
    word
}

/// The work request for an atomic. `guess`: the value that a compare-and-swap compares with.
pub fn posting(command: &Command, atomics: u64, guess: u64) -> What {
    let Command { code, kind, operand, compare, .. } = *command;
    match in_one(atomics, code, kind, operand) {
        Some((op, operand)) => What::Atomic { op, kind, operand, compare },
        None => {
            let (op, operand) = (op::COMPARE_SWAP, next(command, guess));
            What::Atomic { op, kind, operand, compare: guess }
        }
    }
}

/// The next value to compare with, after the work request with `guess` has fetched the old value.
/// None: the operation is done. That includes an operation that would not change the fetched value.
pub fn again(command: &Command, atomics: u64, guess: u64, fetched: u64) -> Option<u64> {
    let Command { code, kind, operand, .. } = *command;
    let missed = fetched != guess && next(command, fetched) != fetched;
    (missed && in_one(atomics, code, kind, operand).is_none()).then_some(fetched)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::engine::command::Op;

    /// The atomics of common adapters.
    const SUPPORTED: u64 = 1 << op::ADD | 1 << op::COMPARE_SWAP;

    /// Executes an operation by an adapter with the operations `atomics`. Between the rounds,
    /// another rank changes the word by `between`. Returns the fetched value, the final value and
    /// the number of rounds.
    fn run(
        atomics: u64,
        (code, kind): (u8, u8),
        mut word: u64,
        (operand, compare): (u64, u64),
        between: impl Fn(u64) -> u64,
    ) -> (u64, u64, u32) {
        let mut command = Command::new(Op::ATOMIC, 0);
        (command.code, command.kind) = (code, kind);
        (command.operand, command.compare) = (operand, compare);
        let (mut guess, mut rounds) = (0, 0);
        loop {
            rounds += 1;
            let What::Atomic { op, kind, operand, compare } = posting(&command, atomics, guess)
            else {
                unreachable!("an atomic")
            };
            assert!(atomics & 1 << op != 0, "operation {op} is posted, which the adapter lacks");
            let place = (&raw mut word).cast();
            // SAFETY: a word of this frame.
            let fetched = unsafe { atomic::apply(place, op, kind, operand, compare) };
            match again(&command, atomics, guess, fetched) {
                Some(next) => guess = next,
                None => return (fetched, word, rounds),
            }
            word = between(word);
        }
    }

    #[test]
    fn every_operation_of_eight_bytes_is_one_command_or_a_loop() {
        let numbers = [0, 1, 5, 1 << 63, u64::MAX, 1.5_f64.to_bits(), (-2.0_f64).to_bits()];
        for atomics in [SUPPORTED, SUPPORTED | 1 << op::SWAP, !0] {
            for (code, kind) in (op::LOAD..=op::PROD)
                .flat_map(|code| [kind::U64, kind::I64, kind::F64].map(|kind| (code, kind)))
                .filter(|(code, kind)| atomic::supported(*code, *kind))
            {
                for (word, operand) in numbers.iter().flat_map(|a| numbers.map(|b| (*a, b))) {
                    for compare in [word, 77] {
                        let mut place = word;
                        // SAFETY: a word of this frame.
                        let old = unsafe {
                            atomic::apply((&raw mut place).cast(), code, kind, operand, compare)
                        };
                        let numbers = (operand, compare);
                        let (fetched, now, rounds) =
                            run(atomics, (code, kind), word, numbers, |word| word);
                        assert_eq!((fetched, now), (old, place), "operation {code}, type {kind}");
                        assert!(rounds <= 2);
                    }
                }
            }
        }
    }

    #[test]
    fn a_loop_takes_in_what_others_do_between_its_rounds() {
        let few = |code, word, between: fn(u64) -> u64| {
            run(SUPPORTED, (code, kind::U64), word, (6, 0), between)
        };
        // The word is 3 when it is fetched, then 4, then 5; the product is that of the last.
        assert_eq!(few(op::PROD, 3, |word| if word < 5 { word + 1 } else { word }), (5, 30, 4));
        assert_eq!(few(op::MAX, 3, |_| 9), (9, 9, 2));
        assert_eq!(few(op::SUB, 3, |_| 9), (3, 3_u64.wrapping_sub(6), 1));
    }
}
