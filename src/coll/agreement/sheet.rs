//! A sheet of a board: what one rank writes for another in one step of an exchange.
//!
//! One rank writes a sheet, in every second exchange, and one rank reads it. In failed exchanges
//! both may do so at the same time (see the head of `agreement`), so every word is atomic.

use crate::util::sync::{AtomicU64, Ordering};

/// Bytes of a sheet before the blocks: the number of the exchange and the verdict.
pub const HEAD: u64 = 16;

const WORD: usize = size_of::<u64>();

/// A sheet: number of the exchange, verdict, blocks in whole words.
#[derive(Clone, Copy)]
pub struct Sheet<'a>(&'a [AtomicU64]);

impl<'a> Sheet<'a> {
    /// Bytes of a sheet with so many bytes of blocks.
    pub fn bytes(blocks: usize) -> u64 {
        HEAD + blocks.next_multiple_of(WORD) as u64
    }

    /// The sheet at `place`, with so many bytes of blocks.
    ///
    /// # Safety
    /// `place` is aligned to words and has Sheet::bytes() bytes, which every thread uses only as a
    /// sheet as long as this lives.
    pub unsafe fn at(place: *mut u8, blocks: usize) -> Sheet<'a> {
        let words = Sheet::bytes(blocks) as usize / WORD;
        // SAFETY: as the caller promises; any bytes are valid words.
        Sheet(unsafe { std::slice::from_raw_parts(place.cast(), words) })
    }

    /// Writes the sheet for exchange `number`.
    pub fn write(self, number: u64, verdict: u64, blocks: &[u8]) {
        for (bytes, word) in blocks.chunks(WORD).zip(&self.0[2..]) {
            let mut whole = [0; WORD];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
        self.0[1].store(verdict, Ordering::Relaxed);
        // Release: a rank that sees the number sees the sheet; pairs with is_of().
        self.0[0].store(number, Ordering::Release);
    }

    /// Whether the sheet was written for exchange `number`.
    pub fn is_of(self, number: u64) -> bool {
        // Acquire: pairs with write().
        self.0[0].load(Ordering::Acquire) == number
    }

    /// Reads the blocks and returns the verdict; only after is_of() has returned true.
    pub fn read(self, blocks: &mut [u8]) -> u64 {
        for (bytes, word) in blocks.chunks_mut(WORD).zip(&self.0[2..]) {
            let whole = word.load(Ordering::Relaxed).to_ne_bytes();
            bytes.copy_from_slice(&whole[..bytes.len()]);
        }
        self.0[1].load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_any_length_come_out_as_they_went_in_and_leave_the_next_word_alone() {
        for size in 0..20 {
            let words = [const { AtomicU64::new(u64::MAX) }; 6];
            let bytes = (0..size).map(|at| at as u8 + 1).collect::<Vec<_>>();
            let mut seen = vec![0; size];
            // SAFETY: six words are more than 2 and 20 bytes.
            let sheet = unsafe { Sheet::at((&raw const words).cast_mut().cast(), size) };
            sheet.write(3, 4, &bytes);
            assert!(sheet.is_of(3) && !sheet.is_of(4));
            assert_eq!((sheet.read(&mut seen), &seen), (4, &bytes));
            let behind = words.iter().skip(Sheet::bytes(size) as usize / WORD);
            assert!(behind.map(|word| word.load(Ordering::Relaxed)).all(|word| word == u64::MAX));
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Two ranks exchange three times over two sheets in turn. In each exchange each rank must read
    /// what the other has written in that exchange.
    #[test]
    fn loom_two_sheets_in_turn_are_enough() {
        const EXCHANGES: u64 = 3;
        let mut bounded = loom::model::Builder::new();
        bounded.preemption_bound = Some(3);
        bounded.check(|| {
            let sheet = || [0; 3].map(AtomicU64::new);
            let board = || [sheet(), sheet()];
            let boards = Arc::new([board(), board()]);
            let rank = |me: usize| {
                let boards = boards.clone();
                move || {
                    for number in 1..=EXCHANGES {
                        let half = number as usize % 2;
                        let word_of = |rank: usize| 10 * number + rank as u64;
                        let (own, other) = (Sheet(&boards[me][half]), Sheet(&boards[1 - me][half]));
                        other.write(number, 100 + word_of(me), &word_of(me).to_ne_bytes());
                        while !own.is_of(number) {
                            thread::yield_now();
                        }
                        let mut received = [0; 8];
                        let verdict = own.read(&mut received);
                        let received = u64::from_ne_bytes(received);
                        assert_eq!((verdict, received), (100 + word_of(1 - me), word_of(1 - me)));
                    }
                }
            };
            let other = thread::spawn(rank(1));
            rank(0)();
            other.join().unwrap();
        });
    }
}
