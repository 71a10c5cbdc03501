//! How the executor executes reads and writes of many pieces (`engine::pieces`).

use crate::engine::by_caller::{self, Local, Outcome};
use crate::engine::by_owner::{InFlight, Stage};
use crate::engine::command::{Command, Op};
use crate::engine::lane_state::{LaneState, fire, fire_failure};
use crate::engine::pieces::{Piece, Pieces, end_one};
use crate::engine::routes::Routes;
use crate::transport::Access;
use crate::util::status::{Error, Status};

impl LaneState {
    /// Begins the pieces that were not begun. False: the in-flight table is full, or a piece must
    /// be tried again. The caller calls this again later.
    ///
    /// # Safety
    /// As for execute_one().
    pub(super) unsafe fn start_pieces(&mut self, routes: &Routes, command: &Command) -> bool {
        let place = command.local.cast::<Pieces>();
        loop {
            // SAFETY: the Pieces lives while `open` is not 0. This thread holds the role, and takes
            // the last 1 from `open` only by end_piece() below. No borrow lasts over start(), which
            // may end pieces.
            let pieces = unsafe { &mut *place };
            let (is_read, rest) = pieces.rest();
            // SAFETY: the local sides were looked up when the pieces were accepted, and the user
            // keeps them valid until the completion has fired.
            match unsafe { by_caller::attempt_pieces(routes, command.peer, is_read, rest) } {
                Ok(0) => {}
                Ok(done) => {
                    pieces.next += done;
                    continue;
                }
                Err(error) => pieces.fail(error),
            }
            let Some(piece) = pieces.peek(place) else { break };
            // SAFETY: as above.
            let end =
                unsafe { by_caller::attempt_accepted(routes, &piece, Local::Pointer(piece.local)) };
            match end {
                Ok(Outcome::Done) => pieces.next += 1,
                Err(error) if error.status.is_retry() => return false,
                Err(error) => pieces.fail(error),
                Ok(_) if self.slots.is_full() => return false,
                Ok(Outcome::NeedsPost) => {
                    pieces.next += 1;
                    pieces.open += 1;
                    let most = routes.fabric().remote_most();
                    let stage = InFlight::first_posted(piece.size, most);
                    // SAFETY: `open` counts the entry; else as the caller promises.
                    let begun = unsafe { self.start(routes, piece, stage, false) };
                    debug_assert!(begun, "there was room");
                }
                Ok(_) => {
                    let by_message = |piece: &Piece| is_by_message(routes, command.peer, piece);
                    let many = pieces.peek_many(place, by_message);
                    let (begin, count) = many.unwrap_or((piece, 1));
                    pieces.next += count;
                    pieces.open += 1;
                    // SAFETY: as above.
                    let begun =
                        unsafe { self.start(routes, begin, Stage::Data { done: 0 }, false) };
                    debug_assert!(begun, "there was room");
                }
            }
        }
        // SAFETY: as above.
        if unsafe { &*place }.has_signal() && self.slots.is_full() {
            return false;
        }
        self.order += 1;
        // SAFETY: as above.
        unsafe { self.end_piece(routes, place, None, self.order) };
        true
    }

    /// Handles the end of an operation that stands for one or more pieces.
    ///
    /// # Safety
    /// start_pieces() has begun it, and this is its only end.
    pub(super) unsafe fn end_pieces(
        &mut self,
        routes: &Routes,
        operation: &InFlight,
        status: Status,
    ) {
        let failure = (status != Status::OK).then(|| Error::bare(status));
        let place = operation.command.operand as *mut Pieces;
        // SAFETY: as the caller promises, `open` counts it.
        unsafe { self.end_piece(routes, place, failure, operation.order) };
    }

    /// Counts an end by end_one(). The last one changes the signal word, if there is one, or fires
    /// the completion. The signal's operation gets the number `order` of the piece that has ended
    /// last, so a flush that waits for the piece waits for the signal, too. The table has a free
    /// slot for it.
    ///
    /// # Safety
    /// As for end_one().
    pub(super) unsafe fn end_piece(
        &mut self,
        routes: &Routes,
        place: *mut Pieces,
        failure: Option<Error>,
        order: u64,
    ) {
        // SAFETY: as the caller promises.
        let Some((whole, failure)) = (unsafe { end_one(place, failure) }) else { return };
        match failure {
            // SAFETY: `whole` was accepted, and its last piece has ended: it ends once.
            Some(error) => return unsafe { fire_failure(routes, &whole, &error) },
            None if whole.op != Op::WRITE_SIGNAL => {
                // SAFETY: as above.
                return unsafe { fire(routes, &whole, Status::OK) };
            }
            None => {}
        }
        let signal = whole.signal_alone();
        let nowhere = Local::Pointer(std::ptr::null_mut());
        // SAFETY: the signal has no result, so its place may be null.
        match unsafe { by_caller::attempt_accepted(routes, &signal, nowhere) } {
            // SAFETY: as above.
            Ok(Outcome::Done) => unsafe { fire(routes, &signal, Status::OK) },
            Err(error) if !error.status.is_retry() => {
                // SAFETY: as above.
                unsafe { fire_failure(routes, &signal, &error) };
            }
            _ => {
                // SAFETY: as above.
                let operation = unsafe { InFlight::new(signal, Stage::Word, order, false) };
                let begun = self.ask(routes, operation);
                debug_assert!(begun, "a slot was left");
            }
        }
    }
}

/// Whether only the owner can touch a piece.
fn is_by_message(routes: &Routes, peer: u32, piece: &Piece) -> bool {
    let access = routes.known(peer).map(|port| routes.locate(port, piece.remote, piece.size));
    matches!(access, Some(Ok(Access::Message(_))))
}
