//! The tables of the v forms: the counts and offsets that each rank sends to all others. A rank
//! keeps all of its own tables, and of another rank's tables only the blocks that its own program
//! may name. So the memory of a plan grows with the number of ranks, not with its square.

use crate::coll::problem::{Block, Operation, Problem, Row, Varied};
use crate::fail;
use crate::util::status::Result;

/// The tables that a rank gives for a v form, in elements.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The rank's own count, if the operation uses one.
    pub count: u64,
    /// The blocks of its input, by peer; empty if it gives none.
    pub send: &'a [Block],
    /// The blocks of its output, by peer; empty if it gives none.
    pub receive: &'a [Block],
}

/// Whether the operation needs the tables of inputs, and those of outputs, which is equal at all
/// ranks. All operations but alltoall need one of the two.
fn used(problem: &Problem) -> [bool; 2] {
    match problem.operation {
        Operation::Scatter => [true, false],
        Operation::Alltoall => [!problem.in_place, true],
        _ => [false, true],
    }
}

/// The words that a rank sends, equally many at all ranks: its count, then offset and size of each
/// block of the tables that are used.
pub fn encode(problem: &Problem, given: Given) -> Vec<u64> {
    let mut words = vec![given.count];
    for (blocks, used) in [given.send, given.receive].into_iter().zip(used(problem)) {
        let block = |at: usize| blocks.get(at).copied().unwrap_or_default();
        let count = if used { problem.ranks } else { 0 };
        (0..count).for_each(|at| words.extend([block(at).offset, block(at).size]));
    }
    words
}

/// The rows of the problem for one rank: the blocks of its input and of its output. An empty block
/// begins at 0, whatever offset the user has given.
pub fn rows(problem: &Problem, rank: usize, given: Given) -> (Row, Row) {
    let Problem { root, in_place, .. } = *problem;
    let placed = |block: &Block| match block.size {
        0 => Block::default(),
        _ => *block,
    };
    let each = |blocks: &[Block]| Row::Each(blocks.iter().map(placed).collect());
    let whole = Row::One(Block { offset: 0, size: given.count });
    let at_root = |blocks: &[Block]| match rank == root {
        true => each(blocks),
        false => Row::One(Block::default()),
    };
    let (send, receive) = (given.send, given.receive);
    match problem.operation {
        Operation::Gather => (whole, at_root(receive)),
        Operation::Scatter => (at_root(send), whole),
        Operation::Allgather if in_place => (Row::One(placed(&receive[rank])), each(receive)),
        Operation::Allgather => (whole, each(receive)),
        Operation::ReduceScatter => {
            let mut end = 0u64;
            let mut next = |block: &Block| {
                let offset = end;
                end = end.saturating_add(block.size);
                Block { offset, size: block.size }
            };
            let input = receive.iter().map(&mut next).collect::<Vec<_>>();
            let own = Block { offset: 0, size: receive[rank].size };
            (each(&input), Row::One(own))
        }
        _ if in_place => (each(receive), each(receive)),
        _ => (each(send), each(receive)),
    }
}

/// A contradiction between two tables: the rank that sends, the rank that receives, the number of
/// elements that the first one sends, and the number that the second one expects.
pub type Clash = [u64; 4];

/// No contradiction.
const NONE: Clash = [0; 4];

/// The data that a rank keeps of the tables of all ranks, while it takes their words one after the
/// other.
pub struct Received<'a> {
    problem: &'a Problem,
    me: usize,
    counts: Vec<u64>,
    /// One block of the input and of the output of each rank: the block for this rank. In an
    /// allgather it is the block of that rank for itself, which is its contribution in place.
    one: [Vec<Block>; 2],
    /// The output blocks of the right neighbour, where the ring of an allgather writes.
    right: Vec<Block>,
    largest: u64,
    clash: Clash,
}

impl<'a> Received<'a> {
    /// For rank `me` and this problem.
    pub fn new(problem: &'a Problem, me: usize) -> Received<'a> {
        let ranks = problem.ranks;
        let row = |wanted: bool| vec![Block::default(); if wanted { ranks } else { 0 }];
        let right = row(problem.operation == Operation::Allgather);
        let one = [row(true), row(true)];
        let (counts, largest, clash) = (Vec::new(), 0, NONE);
        Received { problem, me, counts, one, right, largest, clash }
    }

    /// Takes word `at` of every rank, in the order of ranks. The words must come in their order.
    pub fn take(&mut self, at: usize, words: &[u64]) {
        let ranks = self.problem.ranks;
        let Some(at) = at.checked_sub(1) else {
            self.counts = words.to_vec();
            if self.uses_counts() {
                let used = words.iter().enumerate().filter(|(rank, _)| self.uses_count_of(*rank));
                self.largest = used.map(|(_, word)| *word).max().unwrap_or(0);
            }
            return;
        };
        let mut tables = (0..2).filter(|table| used(self.problem)[*table]);
        let Some(table) = tables.nth(at / (2 * ranks)) else { return };
        let (peer, is_size) = (at % (2 * ranks) / 2, at % 2 == 1);
        for (rank, word) in words.iter().enumerate() {
            if !self.has_table(rank) {
                continue;
            }
            if is_size {
                self.largest = self.largest.max(*word);
                self.compare(peer, rank, words);
            }
            let part = |block: &mut Block| match is_size {
                true => block.size = *word,
                false => block.offset = *word,
            };
            let kept = if self.right.is_empty() { self.me } else { rank };
            if peer == kept {
                part(&mut self.one[table][rank]);
            }
            if rank == (self.me + 1) % ranks {
                self.right.get_mut(peer).into_iter().for_each(part);
            }
        }
    }

    fn uses_counts(&self) -> bool {
        let Problem { operation, in_place, .. } = *self.problem;
        match operation {
            Operation::Gather | Operation::Scatter => true,
            Operation::Allgather => !in_place,
            _ => false,
        }
    }

    /// Whether this rank's count is that of a block: in place the root gives no block of its own
    /// for the operations with a root.
    fn uses_count_of(&self, rank: usize) -> bool {
        !self.problem.is_in_place(rank) || self.problem.root != rank
    }

    /// Whether the operation uses the table of this rank.
    fn has_table(&self, rank: usize) -> bool {
        let rooted = matches!(self.problem.operation, Operation::Gather | Operation::Scatter);
        !rooted || rank == self.problem.root
    }

    /// Compares the size of `rank`'s block for or from `peer` with the size that `peer` has sent.
    /// Every rank can do so for all pairs, except in an alltoall; see compare_own().
    fn compare(&mut self, peer: usize, rank: usize, words: &[u64]) {
        let size = words[rank];
        let concerns = self.uses_count_of(peer);
        let (from, to, sent, expected) = match self.problem.operation {
            Operation::Gather if concerns => (peer, rank, self.counts[peer], size),
            Operation::Scatter if concerns => (rank, peer, size, self.counts[peer]),
            Operation::Allgather if self.problem.in_place => (peer, rank, words[peer], size),
            Operation::Allgather => (peer, rank, self.counts[peer], size),
            Operation::ReduceScatter => (rank, peer, size, words[0]),
            _ => return,
        };
        self.note([from as u64, to as u64, sent, expected]);
    }

    /// Notes a contradiction, if none was noted before.
    pub fn note(&mut self, clash: Clash) {
        if self.clash == NONE && clash[2] != clash[3] {
            self.clash = clash;
        }
    }

    /// Called for an alltoall after the last word: compares the sizes that the others send to this
    /// rank with those that it expects by its own tables, `given`. Only this rank knows both, so
    /// the caller must send the result to all ranks, which note() it.
    pub fn compare_own(&mut self, given: Given) -> Clash {
        let table = if self.problem.in_place { 1 } else { 0 };
        for from in 0..self.problem.ranks {
            let (sent, expected) = (self.one[table][from].size, given.receive[from].size);
            self.note([from as u64, self.me as u64, sent, expected]);
        }
        self.clash
    }

    /// The blocks that the problem needs, in bytes. Called after the last word and the last note().
    /// `given`: this rank's own tables. A contradiction is an error.
    pub fn blocks(mut self, given: Given) -> Result<Varied> {
        let [from, to, sent, expected] = self.clash;
        if self.clash != NONE {
            fail!(
                ERR_INVALID,
                "rank {from} of the team gives {sent} elements for rank {to}, expected {expected}"
            );
        }
        let Problem { ranks, width, .. } = *self.problem;
        let own = rows(self.problem, self.me, given);
        let mine = own.0.at(self.me);
        let mut own = Some(own);
        let (mut send, mut receive) = (Vec::with_capacity(ranks), Vec::with_capacity(ranks));
        for rank in 0..ranks {
            let own = if rank == self.me { own.take() } else { None };
            let (input, output) = own.unwrap_or_else(|| self.rows_of(rank, mine));
            send.push(input.in_bytes(width));
            receive.push(output.in_bytes(width));
        }
        Ok(Varied { send, receive, largest: self.largest.wrapping_mul(width) })
    }

    /// The blocks of another rank's rows that this rank knows. `mine`: the block for itself in its
    /// own input.
    fn rows_of(&mut self, rank: usize, mine: Block) -> (Row, Row) {
        let Problem { operation, ranks, in_place, .. } = *self.problem;
        let [send, receive] = [0, 1].map(|table| Row::One(self.one[table][rank]));
        let count = Row::One(Block { offset: 0, size: self.counts[rank] });
        match operation {
            Operation::Gather => (count, receive),
            Operation::Scatter => (send, count),
            Operation::Allgather => {
                let output = match rank == (self.me + 1) % ranks {
                    true => Row::Each(std::mem::take(&mut self.right)),
                    false => receive.clone(),
                };
                (if in_place { receive } else { count }, output)
            }
            // All inputs have equal blocks.
            Operation::ReduceScatter => (Row::One(mine), Row::One(Block::default())),
            _ if in_place => (receive.clone(), receive),
            _ => (send, receive),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
