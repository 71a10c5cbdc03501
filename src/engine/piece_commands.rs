//! What the executor does with reads and writes of many pieces, see `engine::pieces`.

use crate::engine::by_caller::{self, Local, Outcome};
use crate::engine::by_owner::Stage;
use crate::engine::command::Command;
use crate::engine::lane_state::{LaneState, end_piece};
use crate::engine::pieces::Pieces;
use crate::engine::routes::Routes;

impl LaneState {
    /// Begins the pieces that were not begun; false: the table is full, and the rest is to be begun
    /// later.
    pub(super) fn start_pieces(&mut self, routes: &Routes, command: &Command) -> bool {
        let place = command.local.cast::<Pieces>();
        loop {
            // SAFETY: kept while `open` is not 0, and this thread, which has the role, has not
            // ended the 1 of it. No borrow lasts over start(), which may end pieces.
            let pieces = unsafe { &mut *place };
            let Some(piece) = pieces.peek(place) else { break };
            match by_caller::attempt(routes, &piece, Local::Pointer(piece.local)) {
                Ok(Outcome::Done) => pieces.next += 1,
                Err(error) if error.status.is_retry() => return false,
                Err(error) => pieces.fail(error),
                Ok(_) if self.slots.is_full() => return false,
                Ok(_) => {
                    pieces.next += 1;
                    pieces.open += 1;
                    let begun = self.start(routes, piece, Stage::Data { done: 0 }, false);
                    debug_assert!(begun, "there was room");
                }
            }
        }
        end_piece(routes, place, None);
        true
    }
}
