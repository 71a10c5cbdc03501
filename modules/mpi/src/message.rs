//! The bytes of requests and answers (see `remote`): words in the machine's order, and bytes that
//! are padded to whole words.

use crate::requests::{FRAME_MOST, MESSAGE_MOST};
use crate::table::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// The head of an answer is the number of requests to which it is the last answer. A request may
/// contain an answer, between its head and the first operation. Its head is such a number, too, and
/// the bytes of that answer.
const ENDED_BITS: u32 = 8;
pub(crate) fn head_of(ended: u64, answer: usize) -> u64 {
    ended | (answer as u64) << ENDED_BITS
}
pub(crate) fn ended_and_answer(head: u64) -> (u64, usize) {
    (head & ((1 << ENDED_BITS) - 1), (head >> ENDED_BITS) as usize)
}
/// Bytes of a message's head.
pub(crate) const HEAD: usize = 8;
/// A message of at most so many bytes accepts one more operation even if that exceeds MESSAGE_MOST.
/// So an operation of `INLINE` bytes always fits into a message, also after a short answer.
pub(crate) const SHORT: usize = 1024;
/// Room for a message with some small operations. Allocators of C libraries give blocks up to this
/// size without searching.
const USUAL: usize = 1024;
/// Bytes of an operation in an answer: number and status, size of the bytes that follow.
pub(crate) const ANSWER_ENTRY: usize = 16;

/// Words that a notice brings beside its number.
pub(crate) const NOTICE_WORDS: usize = 4;
/// The notice of a write.
#[derive(Clone, Copy)]
pub(crate) struct Notice {
    pub(crate) number: u32,
    /// The writer waits for the value of the answer.
    pub(crate) fetches: bool,
    /// The words, if it brings them.
    pub(crate) words: Option<[u64; NOTICE_WORDS]>,
}
/// Bytes of a notice in a request: number, whether it fetches and whether there are words, the
/// words.
pub(crate) const NOTICE: usize = 8 * (1 + NOTICE_WORDS);
/// The kinds of operations in a request; the lowest bits of an entry's first word.
pub(crate) const WRITE: u64 = 1;
pub(crate) const WITH_NOTICE: u64 = 2;
pub(crate) const KIND_BITS: u32 = 2;

/// The first word of an answer's entry.
pub(crate) fn outcome(number: u32, status: i32) -> u64 {
    u64::from(number) << 32 | u64::from(status as u32)
}

/// A request or an answer while its entries are added.
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// A message with a head and no entries, in the memory of an earlier one if there is any.
    #[inline(always)]
    pub(crate) fn new(earlier: Option<Vec<u8>>) -> Message {
        let mut bytes = earlier.unwrap_or_else(|| Vec::with_capacity(USUAL));
        bytes.clear();
        bytes.extend([0; HEAD]);
        Message(bytes)
    }

    /// Bytes behind the head.
    pub(crate) fn size(&self) -> usize {
        self.0.len() - HEAD
    }

    pub(crate) fn has_room(&self, size: usize) -> bool {
        let after = self.0.len() + size.next_multiple_of(8);
        after <= MESSAGE_MOST || self.size() <= SHORT && after <= FRAME_MOST
    }

    pub(crate) fn put<const N: usize>(&mut self, words: [u64; N]) {
        self.0.extend_from_slice(words.map(u64::to_ne_bytes).as_flattened());
    }

    /// Adds the notice of a write.
    pub(crate) fn put_notice(&mut self, command: &Command) {
        let has = |flag| u64::from(command.flags & flag != 0);
        let flags = has(Command::FETCH) << 1 | has(Command::WORDS);
        self.put([u64::from(command.notice) << 2 | flags]);
        self.put(command.words);
    }

    /// Adds bytes, and pads them to whole words.
    ///
    /// # Safety
    /// The bytes are valid.
    pub(crate) unsafe fn put_bytes(&mut self, from: *const u8, size: u64) {
        if size == 8 && from.cast::<u64>().is_aligned() {
            // An aligned word may change at any time by a store or an atomic: one load never
            // returns halves of two values. Acquire pairs with the Release in store().
            // SAFETY: as the caller promises; aligned.
            let word = unsafe { &*from.cast::<AtomicU64>() }.load(Ordering::Acquire);
            return self.put([word]);
        }
        if size == 0 {
            return; // the address may be NULL
        }
        // SAFETY: as the caller promises.
        self.0.extend(unsafe { std::slice::from_raw_parts(from, size as usize) });
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }

    /// Writes the head, and returns the message.
    pub(crate) fn end(mut self, head: u64) -> Vec<u8> {
        self.0[..HEAD].copy_from_slice(&head.to_ne_bytes());
        self.0
    }
}

/// Takes `N` words off the front of a message. None: it is shorter.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u64; N]> {
    let (words, rest) = bytes.split_at_checked(8 * N)?;
    *bytes = rest;
    let mut chunks = words.chunks_exact(8);
    Some(std::array::from_fn(|_| {
        let word = chunks.next().and_then(|word| word.try_into().ok());
        word.map_or(0, u64::from_ne_bytes)
    }))
}

/// Takes a notice off the front of a message. None: it is shorter.
pub(crate) fn take_notice(bytes: &mut &[u8]) -> Option<Notice> {
    let [number, words @ ..] = take::<{ 1 + NOTICE_WORDS }>(bytes)?;
    let words = (number & 1 == 1).then_some(words);
    Some(Notice { number: (number >> 2) as u32, fetches: number & 2 != 0, words })
}

/// Takes `size` bytes and their padding off the front of a message. None: it is shorter.
pub(crate) fn take_bytes<'b>(bytes: &mut &'b [u8], size: u64) -> Option<&'b [u8]> {
    let (all, rest) = bytes.split_at_checked((size as usize).next_multiple_of(8))?;
    *bytes = rest;
    all.get(..size as usize)
}

/// Stores bytes in a region or a buffer; an aligned word by one atomic store, so no reader sees
/// halves of two values.
///
/// # Safety
/// `to` is valid for as many bytes.
pub(crate) unsafe fn store(bytes: &[u8], to: *mut u8) {
    match bytes.try_into().map(u64::from_ne_bytes) {
        Ok(word) if to.cast::<u64>().is_aligned() => {
            // Release: a reader that sees this word also sees the bytes stored before it.
            // SAFETY: as the caller promises; aligned.
            unsafe { &*to.cast::<AtomicU64>() }.store(word, Ordering::Release);
        }
        // SAFETY: as the caller promises.
        _ => unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) },
    }
}
