//! Reads and writes of many pieces with one end: what is kept of one that the caller cannot copy
//! itself. The command in the queue names a [`Pieces`]; the executor does one piece after the other
//! as it does a command, and stops where the table of operations in flight has no room. The place
//! where it stopped stays in the `Pieces`, so the next round goes on there and nothing is lost.

use crate::engine::command::{Command, Op, PIECE};
use crate::transport::address::Address;
use crate::util::status::Error;

/// Bytes that are contiguous on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The peer's side.
    pub remote: Address,
    /// Our side.
    pub local: *mut u8,
    /// How many bytes.
    pub size: u64,
}

/// An operation of many pieces. From the queue on it belongs to the holder of the lane's role.
pub struct Pieces {
    /// A read or a write, with the user's completion.
    whole: Command,
    list: Vec<Piece>,
    /// The first piece that was not begun.
    pub(super) next: usize,
    /// Pieces in the table of operations in flight, and 1 until all were begun.
    pub(super) open: usize,
    /// The first failure; the pieces behind it are not begun.
    failure: Option<Error>,
}

impl Pieces {
    /// The command for the queue; a caller that cannot queue it hands it to [`discard`].
    pub fn command(whole: Command, list: Vec<Piece>) -> Command {
        let mut command = Command::new(Op::PIECES, whole.peer);
        command.size = whole.size;
        let pieces = Pieces { whole, list, next: 0, open: 1, failure: None };
        command.local = Box::into_raw(Box::new(pieces)).cast();
        command
    }

    /// The next piece as a command.
    pub(super) fn peek(&self, place: *mut Pieces) -> Option<Command> {
        let piece = self.list.get(self.next)?;
        let mut command = Command::new(self.whole.op, self.whole.peer);
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

/// Does away with a command that was not queued; nobody is told.
pub fn discard(command: &Command) {
    // SAFETY: made by Pieces::command(), and nobody else has it.
    drop(unsafe { Box::from_raw(command.local.cast::<Pieces>()) });
}

/// One piece has ended, or all were begun. The last such end answers the whole, and what has failed
/// first.
///
/// # Safety
/// `place` was made by Pieces::command(), its last end has not come, and the caller holds the role
/// and no borrow.
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
