//! The state of a read or write of many pieces that the caller cannot copy itself. The command in
//! the queue points to a [`Pieces`]. The executor executes each piece as a command of its own, or
//! several pieces by one system call or one request to the owner. It stops when the in-flight table
//! is full. `Pieces::next` says where it stopped, so the next round goes on there. The operation
//! ends when its last piece has ended.

use crate::engine::command::{Command, Op, PIECE};
use crate::transport::CHUNK;
use crate::transport::address::Address;
use crate::util::status::Error;

/// Bytes that are contiguous on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The address in the peer's memory.
    pub remote: Address,
    /// The address in this rank's memory.
    pub local: *mut u8,
    /// The number of bytes.
    pub size: u64,
}

/// Bytes of a piece's entry in a message of many pieces: offset in the region and size.
pub const ENTRY: usize = 16;

/// An operation of many pieces. Once it is in the queue, only the holder of the lane's role uses
/// it.
pub struct Pieces {
    /// The whole operation as the user posted it: a read, a write or a write with signal.
    whole: Command,
    list: Vec<Piece>,
    /// The first piece that was not begun.
    pub(super) next: usize,
    /// The number of this operation's entries in the in-flight table, and 1 more until all pieces
    /// were begun.
    pub(super) open: usize,
    /// The first failure; the pieces that were not begun by then are skipped.
    failure: Option<Error>,
}

impl Pieces {
    /// The command for the queue. A caller that cannot queue the command calls [`discard`].
    pub fn command(whole: Command, list: Vec<Piece>) -> Command {
        let mut command = Command::new(Op::PIECES, whole.peer);
        command.size = whole.size;
        let pieces = Pieces { whole, list, next: 0, open: 1, failure: None };
        command.local = Box::into_raw(Box::new(pieces)).cast();
        command
    }

    /// Whether a word is to be changed when all pieces have ended.
    pub(super) fn has_signal(&self) -> bool {
        self.whole.op == Op::WRITE_SIGNAL
    }

    /// A command for the next pieces that fit into one message to the owner, and their number. All
    /// lie in one region, and `by_message` accepts each. If there are fewer than two, the command
    /// is that of peek() for one piece. None: all pieces were begun.
    pub(super) fn peek_many(
        &self,
        place: *mut Pieces,
        by_message: impl Fn(&Piece) -> bool,
    ) -> Option<(Command, usize)> {
        let first = self.list.get(self.next)?;
        let (mut count, mut size) = (0, 0);
        for piece in &self.list[self.next..] {
            let bytes = piece.size.saturating_add(size + ((count + 1) * ENTRY) as u64);
            let fits = piece.remote.key == first.remote.key && bytes <= CHUNK as u64;
            if !fits || !by_message(piece) {
                break;
            }
            (count, size) = (count + 1, size + piece.size);
        }
        if count < 2 {
            return self.peek(place).map(|command| (command, 1));
        }
        let op = if self.whole.op == Op::READ { Op::READ_MANY } else { Op::WRITE_MANY };
        let mut command = Command::new(op, self.whole.peer);
        command.operand = place as u64;
        (command.remote, command.size) = (first.remote, size);
        (command.local, command.compare) = ((&raw const *first).cast_mut().cast(), count as u64);
        Some((command, count))
    }

    /// Whether the operation is a read, and the pieces that were not begun.
    pub(super) fn rest(&self) -> (bool, &[Piece]) {
        (self.whole.op == Op::READ, &self.list[self.next..])
    }

    /// The next piece as a command.
    pub(super) fn peek(&self, place: *mut Pieces) -> Option<Command> {
        let piece = self.list.get(self.next)?;
        let op = if self.whole.op == Op::READ { Op::READ } else { Op::WRITE };
        let mut command = Command::new(op, self.whole.peer);
        command.code = PIECE;
        command.operand = place as u64;
        (command.remote, command.local, command.size) = (piece.remote, piece.local, piece.size);
        Some(command)
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.next = self.list.len();
        self.failure.get_or_insert(error);
    }
}

/// Frees a command that was not queued; no completion fires.
///
/// # Safety
/// Pieces::command() has made it, and it is not used again.
pub unsafe fn discard(command: &Command) {
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(command.local.cast::<Pieces>()) });
}

/// To be called when an operation that stands for some pieces has ended, and once when all pieces
/// were begun. The last call returns the whole operation and its first failure.
///
/// # Safety
/// `place` was made by Pieces::command(), the last call has not come, and the caller holds the role
/// and no borrow of the Pieces.
pub unsafe fn end_one(
    place: *mut Pieces,
    failure: Option<Error>,
) -> Option<(Command, Option<Error>)> {
    // SAFETY: as the caller promises.
    let pieces = unsafe { &mut *place };
    if let Some(error) = failure {
        pieces.fail(error);
    }
    pieces.open -= 1;
    if pieces.open > 0 {
        return None;
    }
    // SAFETY: as the caller promises; no end comes after this one.
    let pieces = unsafe { Box::from_raw(place) };
    Some((pieces.whole, pieces.failure))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_message_takes_the_pieces_of_one_region_that_fit() {
        let piece = |key, offset, size| Piece {
            remote: Address { offset, key },
            local: std::ptr::dangling_mut(),
            size,
        };
        let mut list: Vec<_> = (0..100).map(|at| piece(1, 16 * at, 8)).collect();
        list.push(piece(2, 0, 8));
        list.extend([piece(1, 0, CHUNK as u64 - 40), piece(1, 0, 8), piece(1, 0, 1)]);
        let write = Command::new(Op::WRITE, 3);
        let mut pieces = Pieces { whole: write, list, next: 0, open: 1, failure: None };
        let place = std::ptr::dangling_mut();
        let many = |pieces: &Pieces| pieces.peek_many(place, |_| true).unwrap();
        let (command, count) = many(&pieces);
        assert_eq!((command.op, command.size, count), (Op::WRITE_MANY, 800, 100));
        let some = pieces.peek_many(place, |piece| piece.remote.offset < 160).unwrap();
        assert_eq!((some.0.compare, some.1), (10, 10));
        pieces.next = 100;
        assert_eq!((many(&pieces).0.op, many(&pieces).1), (Op::WRITE, 1));
        pieces.next = 101;
        // With its entry and the next one's there are 8 bytes left.
        assert_eq!(many(&pieces).1, 2);
        pieces.next = 103;
        pieces.whole.op = Op::WRITE_SIGNAL;
        assert_eq!((many(&pieces).0.op, many(&pieces).0.code), (Op::WRITE, PIECE));
        pieces.next = 104;
        assert!(pieces.peek_many(place, |_| true).is_none());
    }
}
