//! The bytes of a plan at a rank: a block of the arena, and private memory. They are computed from
//! the program before either is allocated, so that a plan that would exceed LLCL_COLL_MEMORY is
//! refused. They grow with the steps of the rank and with the ranks that these name.

use crate::coll::arena::Arena;
use crate::coll::plan::attach::SESSION;
use crate::coll::plan::{Bounce, Plan};
use crate::coll::problem::Block;
use crate::coll::runner::in_arc;
use crate::coll::runner::members::Members;
use crate::coll::runner::put_receiver::{PutReceiver, Shadow};
use crate::coll::runner::put_sender::PutSender;
use crate::coll::runner::record::edges;
use crate::coll::runner::session::{self, words};
use crate::coll::runner::shared::UserFunction;
use crate::coll::schedule::Program;
use std::collections::BTreeSet;

/// Bytes for the plan's places in tables of the context and of the team: the handle, the tasks of
/// the progress thread, and the name under which peers put.
const ENTRIES: usize = 128;

/// The layout of a rank's block.
pub struct Layout {
    /// Signal words of each queue.
    pub words: Vec<usize>,
    /// The offsets at which the plan's own Send, Receive and Scratch begin.
    pub starts: [u64; 3],
    /// Bytes of the block.
    pub total: u64,
}

impl Layout {
    /// For a rank of a team of `ranks`, whose program has so many steps. `sides`: bytes for Send
    /// and Receive.
    pub fn new(program: &Program, ranks: usize, steps: usize, sides: [u64; 2]) -> Layout {
        let lines = |bytes: u64| bytes.next_multiple_of(64);
        let words = words(program, ranks);
        let send = SESSION + session::size(&words, steps) as u64;
        let receive = send + lines(sides[0]);
        let scratch = receive + lines(sides[1]);
        let total = Arena::rounded(scratch + u64::from(program.turns) * lines(program.scratch));
        Layout { words, starts: [send, receive, scratch], total }
    }
}

/// What private memory depends on, apart from program and team.
#[derive(Default)]
pub struct Parts<'a> {
    /// The blocks of the user's buffers that the plan copies.
    pub bounced: Vec<&'a [Block]>,
    /// The blocks of the user's buffers whose place each start may set.
    pub bound: Vec<&'a [Block]>,
    /// Bytes of the names of algorithm and reason.
    pub texts: usize,
    /// Whether a function of the user combines elements.
    pub has_function: bool,
}

/// Bytes of private memory, without what the allocator adds. `known`: the ranks that the plan
/// knows, of a team of `ranks`.
pub fn private(
    program: &Program,
    known: &BTreeSet<usize>,
    ranks: usize,
    queues: usize,
    parts: &Parts,
) -> u64 {
    let posted = match program.far.len() {
        0 => 0,
        far => {
            let shadow = size_of::<Shadow>() + Shadow::bytes(queues);
            PutSender::bytes(edges(program).len()) + PutReceiver::bytes(far) + far * shadow
        }
    };
    let blocks = |of: &[&[Block]]| of.iter().map(|blocks| blocks.len()).sum::<usize>();
    let bytes = in_arc::<Plan>()
        + ENTRIES
        + Members::bytes(known, ranks)
        + posted
        + parts.texts
        + blocks(&parts.bounced) * size_of::<Bounce>()
        + blocks(&parts.bound) * size_of::<Block>()
        + if parts.has_function { in_arc::<UserFunction>() } else { 0 };
    bytes as u64
}

#[cfg(test)]
mod tests;
