//! Reads and writes of many pieces of one region by one message, for memory that only its owner can
//! touch. A request begins with an entry for each piece: its offset and its size, 8 bytes each. The
//! bytes of all pieces, without gaps, follow in the request of a write, or are the answer to a
//! read.

use crate::engine::by_caller::{copy, copy_word};
use crate::engine::command::{Command, Op};
use crate::engine::pieces::{ENTRY, Piece};
use crate::engine::routes::Routes;
use crate::transport::address::Address;
use crate::transport::{CHUNK, Message};
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};

/// The pieces of a command READ_MANY or WRITE_MANY.
///
/// # Safety
/// Pieces::peek_many() has made the command, and the operation has not ended.
unsafe fn pieces(command: &Command) -> &[Piece] {
    debug_assert!(matches!(command.op, Op::READ_MANY | Op::WRITE_MANY));
    // SAFETY: as the caller promises; the list lives until the operation has ended.
    unsafe { std::slice::from_raw_parts(command.local.cast(), command.compare as usize) }
}

/// Copies a piece. If the target is an aligned word, the copy is one 8-byte store, whether or not
/// the source is aligned.
///
/// # Safety
/// `to` is valid for writing `from.len()` bytes.
unsafe fn copy_piece(from: &[u8], to: *mut u8) {
    match from.try_into().map(u64::from_ne_bytes) {
        // SAFETY: as the caller promises; aligned, as checked.
        Ok(word) if (to as usize).is_multiple_of(8) => unsafe {
            copy_word((&raw const word).cast(), to);
        },
        // SAFETY: as the caller promises.
        _ => unsafe { copy(from.as_ptr(), to, from.len()) },
    }
}

/// The bytes of the request: the entries, and those of the pieces of a write.
///
/// # Safety
/// As for pieces().
pub(super) unsafe fn bytes(command: &Command) -> Box<[u8]> {
    // SAFETY: as the caller promises.
    let (list, is_write) = (unsafe { pieces(command) }, command.op == Op::WRITE_MANY);
    let data = if is_write { command.size as usize } else { 0 };
    let mut bytes = Vec::with_capacity(list.len() * ENTRY + data);
    for piece in list {
        bytes.extend(piece.remote.offset.to_ne_bytes());
        bytes.extend(piece.size.to_ne_bytes());
    }
    for piece in list.iter().filter(|_| is_write) {
        // SAFETY: the source is valid until the completion fires.
        bytes.extend(unsafe { std::slice::from_raw_parts(piece.local, piece.size as usize) });
    }
    bytes.into()
}

/// Stores the answer to a read. False: it has the wrong size.
///
/// # Safety
/// As for pieces().
pub(super) unsafe fn take_bytes(command: &Command, mut bytes: &[u8]) -> bool {
    let fits = bytes.len() as u64 == command.size;
    // SAFETY: as the caller promises.
    for piece in unsafe { pieces(command) }.iter().filter(|_| fits) {
        let (first, rest) = bytes.split_at(piece.size as usize);
        // SAFETY: the destination is valid until the completion fires.
        unsafe { copy_piece(first, piece.local) };
        bytes = rest;
    }
    fits
}

/// A piece's address in this rank's region, and its size.
type Entry = (Address, usize);

/// The entries of a request, and the bytes behind them. Everything is checked, since a peer may
/// send anything.
fn parts<'m>(message: &Message, bytes: &'m [u8]) -> Result<(Vec<Entry>, &'m [u8])> {
    let [key, count, size, ..] = message.words;
    let invalid = || Error::bare(Status::ERR_INVALID);
    let listed = usize::try_from(count).ok().and_then(|count| count.checked_mul(ENTRY));
    let (list, data) = listed.and_then(|at| bytes.split_at_checked(at)).ok_or_else(invalid)?;
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    let mut left = usize::try_from(size).ok().filter(|size| *size <= CHUNK).ok_or_else(invalid)?;
    let mut all = Vec::with_capacity(list.len() / ENTRY);
    for entry in list.chunks_exact(ENTRY) {
        let (offset, size) = (word(&entry[..8]), word(&entry[8..]));
        let size = usize::try_from(size).ok().filter(|size| *size <= left).ok_or_else(invalid)?;
        left -= size;
        all.push((Address { offset, key }, size));
    }
    if left > 0 { Err(invalid()) } else { Ok((all, data)) }
}

/// Calls `answer` with the bytes of all pieces that a request reads, and returns what it returns.
pub(super) fn read<T>(
    routes: &Routes,
    message: &Message,
    bytes: &[u8],
    answer: impl FnOnce(&[u8]) -> T,
) -> Result<T> {
    let (list, _) = parts(message, bytes)?;
    let mut found = Vec::with_capacity(message.words[2] as usize);
    {
        let _pinned = pin();
        for (address, size) in list {
            let Some(own) = routes.own().find(address, size as u64) else {
                return Err(Error::bare(Status::ERR_KEY));
            };
            if size == 8 && (own as usize).is_multiple_of(8) {
                let mut word = [0_u64];
                // SAFETY: the region is ours while we are pinned; both are aligned words.
                unsafe { copy_word(own, word.as_mut_ptr().cast()) };
                found.extend(word[0].to_ne_bytes());
            } else {
                // SAFETY: the region has `size` bytes there and is ours while we are pinned.
                found.extend(unsafe { std::slice::from_raw_parts(own, size) });
            }
        }
    }
    Ok(answer(&found))
}

/// Stores the bytes of all pieces that a request writes.
pub(super) fn write(routes: &Routes, message: &Message, bytes: &[u8]) -> Result<()> {
    let (list, mut data) = parts(message, bytes)?;
    if data.len() as u64 != message.words[2] {
        return Err(Error::bare(Status::ERR_INVALID));
    }
    let _pinned = pin();
    for (address, size) in list {
        let Some(own) = routes.own().find(address, size as u64) else {
            return Err(Error::bare(Status::ERR_KEY));
        };
        let (first, rest) = data.split_at(size);
        // SAFETY: the region has `size` bytes there and is ours while we are pinned.
        unsafe { copy_piece(first, own) };
        routes.waiters().touched(address, size as u64);
        data = rest;
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn message(words: [u64; 3]) -> Message {
        let mut message = Message::default();
        message.words[..3].copy_from_slice(&words);
        message
    }

    #[test]
    fn a_request_that_a_stranger_has_made_up_is_refused() {
        let mut bytes = Vec::new();
        for word in [8_u64, 5, 100, 3] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(*b"12345abc");
        let parsed = |words| parts(&message(words), &bytes).map(|(list, data)| (list.len(), data));
        assert_eq!(parsed([1, 2, 8]).unwrap(), (2, &b"12345abc"[..]));
        for wrong in [[1, 2, 7], [1, 2, 9], [1, 3, 8], [1, u64::MAX / 8, 8], [1, 0, 8]] {
            assert_eq!(parsed(wrong).unwrap_err().status, Status::ERR_INVALID, "{wrong:?}");
        }
        assert!(parsed([1, 2, u64::MAX]).is_err() && parsed([1, 2, CHUNK as u64 + 1]).is_err());
    }
}
