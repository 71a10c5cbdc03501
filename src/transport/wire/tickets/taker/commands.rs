//! The commands of a sender's tickets, and the places in registered memory that they use.

use super::super::Place;
use super::super::area::{self, Area, SHARED};
use crate::transport::wire::grants::Line;
use crate::transport::wire::{Command, Piece};

/// Fetch-and-add of LLCL_TYPE_U64, by the numbers of `llcl.h`.
const ADD: u8 = 5;
const U64: u8 = 4;

/// What a command does.
#[derive(Clone, Copy)]
pub(super) enum What {
    /// A fetch-and-add of so many tickets.
    Take(u64),
    /// A read of RecvCNT.
    Look,
    /// The ticket.
    Write(u64),
}

/// A command that has not ended.
pub(super) struct Begun {
    pub peer: u32,
    pub number: u64,
    pub line: Line,
    pub what: What,
    pub place: Option<InUse>,
}

/// A place in use.
#[derive(Clone, Copy)]
pub(super) struct InUse {
    pub at: usize,
    /// How many bytes of it.
    pub size: u64,
    /// It is the one that its peer has for itself.
    pub is_own: bool,
}

/// A place for a command: the one that the peer has for itself, or one of those for all.
pub(super) fn reserve(area: &mut Area, has_place: &mut bool, shared: &mut usize) -> Option<InUse> {
    let is_own = !*has_place;
    if !is_own && *shared >= SHARED {
        return None;
    }
    let at = area.reserve()?;
    *has_place = true;
    *shared += usize::from(!is_own);
    Some(InUse { at, size: 8, is_own })
}

impl Begun {
    /// Its bytes.
    pub fn piece(&self, area: &Area) -> Piece {
        match self.place {
            Some(place) => area.piece(place.at, place.size),
            None => Piece { address: std::ptr::null(), size: 0, local: 0 },
        }
    }

    /// The command that is posted for it.
    pub fn command(&self, tag: u64, to: &Place, piece: &Piece) -> Command {
        let mut command = Command::frame(tag, piece);
        command.wire = to.key;
        match self.what {
            What::Take(count) => {
                (command.op, command.atomic, command.kind) = (Command::ATOMIC, ADD, U64);
                (command.pieces, command.piece, command.size) = (0, std::ptr::null(), 8);
                (command.operand, command.remote) = (count, to.start + area::taken_at(self.line));
            }
            What::Look => {
                command.op = Command::READ;
                command.remote = to.start + area::freed_at(self.line);
            }
            What::Write(ticket) => {
                (command.op, command.flags) = (Command::WRITE, Command::NOTICE);
                command.notice = area::index(self.line, ticket) as u32;
                command.remote = to.start + area::slot_at(self.line, ticket);
            }
        }
        command
    }
}
