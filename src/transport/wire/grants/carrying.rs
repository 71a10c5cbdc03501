//! Which packets may carry the answers of knocks, and of which lines.

use super::{LINES, Line, Packet};

const REQUESTS: Line = 0;
const RESPONSES: Line = 1;
/// The kind of each line.
const KINDS: [Line; LINES] = [0, 1, 2, 0, 1, 2];

/// Some of the lines, a bit for each.
pub(super) type Lines = u8;

pub(super) const fn bit(line: Line) -> Lines {
    1 << line
}

/// The line of the small ones of a kind, and that of the large ones.
const fn both_of(kind: Line) -> Lines {
    bit(kind) | bit(kind + LINES / 2)
}

pub(super) fn first_of(lines: Lines) -> Option<Line> {
    (lines != 0).then(|| lines.trailing_zeros() as Line)
}

/// A packet that may carry the answer of a knock.
#[derive(Clone, Copy, Debug)]
pub enum Carrying {
    /// A frame, with its line if it needed a grant.
    Frame(Option<Line>),
    /// A knock with this number.
    Knock(Line, u64),
}

impl Carrying {
    /// None: the packet carries no answer.
    pub(super) fn of(packet: &Packet) -> Option<Carrying> {
        match packet {
            Packet::Frame(line, _) => Some(Carrying::Frame(*line)),
            Packet::Granted(bundle) => Some(Carrying::Frame(Some(bundle.line))),
            Packet::Knock(line, knock) => Some(Carrying::Knock(*line, knock.number)),
            _ => None,
        }
    }

    /// The lines whose answers a knock for requests may carry, though its receiver may leave the
    /// knock to the network until requests have been handled, which may wait for that answer. So
    /// the answer counts as sent only when the receiver has answered the knock.
    pub(super) fn carries_perhaps(self) -> Lines {
        match self {
            Carrying::Knock(of, _) if KINDS[of] == REQUESTS => {
                both_of(REQUESTS) | both_of(RESPONSES)
            }
            _ => 0,
        }
    }

    /// The lines whose answers the packet may carry: no rank lets the packet wait until frames of
    /// such a line find a slot.
    pub(super) fn carries(self) -> Lines {
        match self {
            Carrying::Frame(None) => Lines::MAX,
            Carrying::Frame(Some(of)) | Carrying::Knock(of, _) => {
                if KINDS[of] == RESPONSES {
                    both_of(REQUESTS)
                } else {
                    0
                }
            }
        }
    }
}
