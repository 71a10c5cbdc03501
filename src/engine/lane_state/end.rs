//! How the operations of the lane end.

use crate::engine::by_owner::InFlight;
use crate::engine::command::{ALL_PEERS, Command, Op, PIECE};
use crate::engine::control_messages;
use crate::engine::in_flight::Tag;
use crate::engine::lane_state::LaneState;
use crate::engine::lane_state::questions::{imported, refused};
use crate::engine::messages::deferred::take_deferred;
use crate::engine::queue_entry::QueueEntry;
use crate::engine::routes::Routes;
use crate::util::status::{Error, Status};

impl LaneState {
    /// Ends an operation: releases its entry and large slot and fires its completion.
    pub(in crate::engine) fn end(&mut self, routes: &Routes, tag: Tag, status: Status) {
        let Some(mut operation) = self.slots.remove(tag) else { return };
        if status == Status::ERR_CANCELED && operation.is_posted() {
            // The network may still read the copied bytes.
            operation.take_copy().into_iter().for_each(|bytes| routes.fabric().keep(bytes));
        }
        if operation.has_place {
            self.give_place_back(operation.command.peer);
        }
        self.own -= usize::from(operation.command.op.is_own());
        if !operation.sent {
            self.unsent -= 1;
        }
        let command = &operation.command;
        // SAFETY: the promise of InFlight::new(), and the operation has left the table, so it ends
        // once.
        unsafe {
            match command.op {
                Op::MESSAGE => self.payload_written(command, status),
                Op::READ_MANY | Op::WRITE_MANY => self.end_pieces(routes, &operation, status),
                Op::READ | Op::WRITE if command.code == PIECE => {
                    self.end_pieces(routes, &operation, status);
                }
                Op::IMPORT => imported(routes, command, status),
                op if op.is_control() => control_messages::end(command, status),
                _ => fire(routes, command, status),
            }
        }
        if status == Status::ERR_KEY {
            refused(routes, &operation);
        }
        self.count_under_way();
        self.end_flushes(routes);
    }

    /// Ends the flushes whose older operations have all ended.
    pub(in crate::engine) fn end_flushes(&mut self, routes: &Routes) {
        let mut at = 0;
        while let Some((flush, order)) = self.flushes.get(at) {
            let fits = |peer: u32| flush.peer == ALL_PEERS || flush.peer == peer;
            let before = |it: &InFlight| {
                it.order < *order && fits(it.command.peer) && !it.command.op.is_own()
            };
            let busy = self.slots.iter().any(|(_, it)| before(it))
                || self.deferred.has_before(*order, fits);
            if busy {
                at += 1;
            } else {
                let (flush, _) = self.flushes.remove(at);
                // SAFETY: the promise of start_flush(); it has left the list, so it ends once.
                unsafe { fire(routes, &flush, Status::OK) };
            }
        }
    }

    /// Ends all operations in the table for which `fits`; returns their number.
    fn end_if(
        &mut self,
        routes: &Routes,
        status: Status,
        fits: impl Fn(&InFlight) -> bool,
    ) -> usize {
        let tags: Vec<Tag> =
            self.slots.iter().filter(|(_, it)| fits(it)).map(|(tag, _)| tag).collect();
        for tag in &tags {
            self.end(routes, *tag, status);
        }
        tags.len()
    }

    /// Ends the operations and messages that are pending on dead peers.
    pub(super) fn mark_dead(&mut self, routes: &Routes) -> usize {
        let ended = self.post.end_all(Status::ERR_PEER_DEAD, |peer| routes.is_dead(peer));
        ended
            + self.end_if(routes, Status::ERR_PEER_DEAD, |operation| {
                // The network may use this rank's memory until it reports the completion.
                routes.is_dead(operation.command.peer) && !(operation.is_posted() && operation.sent)
            })
    }

    /// Cancels all operations in the queue and in flight; returns their number.
    pub(in crate::engine) fn cancel(&mut self, routes: &Routes) -> usize {
        let mut count = 0;
        while let Some((command, extra)) = self.consumer.peek(0).map(QueueEntry::take) {
            // The producer has set the marks of the carried bytes before the command's, so all of
            // these slots are filled and are released together.
            let shown = (0..=extra).take_while(|at| self.consumer.peek(*at).is_some()).count();
            let silent = matches!(command.op, Op::NOTHING | Op::FLUSH) || command.op.is_control();
            count += usize::from(!silent);
            // SAFETY: the promise of Lane::put(); the command ends here, and its slot is released
            // below. Pieces that are in flight end behind the loop.
            unsafe {
                match command.op {
                    Op::NOTHING => {}
                    Op::FLUSH => self.start_flush(routes, command),
                    Op::MESSAGE => {
                        take_deferred(command.local).end(&self.post, Status::ERR_CANCELED);
                    }
                    Op::PIECES => {
                        let failure = Error::bare(Status::ERR_CANCELED);
                        self.end_piece(routes, command.local.cast(), Some(failure), 0);
                    }
                    op if op.is_control() => {
                        control_messages::end(&command, Status::ERR_CANCELED);
                    }
                    _ => fire(routes, &command, Status::ERR_CANCELED),
                }
            }
            self.consumer.release(shown);
        }
        self.cancel_questions(routes);
        count += self.end_if(routes, Status::ERR_CANCELED, |_| true);
        count += self.deferred.cancel(&self.post);
        self.count_under_way();
        self.end_flushes(routes);
        count
    }
}

/// Fires the completions of a command that has ended; see fire_failure() for a failed one.
///
/// # Safety
/// As for Command::fire().
pub(in crate::engine) unsafe fn fire(routes: &Routes, command: &Command, status: Status) {
    if status != Status::OK {
        // SAFETY: as the caller promises.
        return unsafe { fire_failure(routes, command, &Error::bare(status)) };
    }
    // SAFETY: as the caller promises.
    unsafe { command.fire(status, routes.waiters()) };
}

/// Fires the completions of a command that has failed. If it has none, the next flush reports it.
///
/// # Safety
/// As for Command::fire().
pub(in crate::engine) unsafe fn fire_failure(routes: &Routes, command: &Command, error: &Error) {
    if command.on_local.is_nothing() && command.on_complete.is_nothing() {
        return routes.unreported().note_command(command, error);
    }
    // SAFETY: as the caller promises.
    unsafe { command.fire(error.status, routes.waiters()) };
}
