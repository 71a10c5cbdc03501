//! What is asked of a collective, as the algorithms see it: numbers, no addresses.

use crate::coll::nodes::Nodes;
use crate::coll::schedule::{Place, receive, send};
use std::sync::Arc;

/// The collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// Nobody leaves before everybody has come.
    Barrier = 0,
    /// The root's bytes for everybody.
    Broadcast = 1,
    /// Everybody's vectors combined, at the root.
    Reduce = 2,
    /// Everybody's vectors combined, for everybody.
    Allreduce = 3,
    /// A block of everybody at the root, in the order of ranks.
    Gather = 4,
    /// A block of the root's for each.
    Scatter = 5,
    /// A block of everybody for everybody.
    Allgather = 6,
    /// A block of everybody's for each.
    Alltoall = 7,
    /// Everybody's vectors combined, a block of the result for each.
    ReduceScatter = 8,
    /// For each the combination of the vectors of the ranks up to it.
    Scan = 9,
    /// For each but the first the combination of the vectors of the ranks before it.
    Exscan = 10,
}

/// A range of bytes in a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Bytes from the buffer's beginning.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// The blocks of a rank's input or output, by peer.
#[derive(Clone, Debug)]
pub enum Row {
    /// One for each peer.
    Each(Vec<Block>),
    /// One for all peers. Of another rank: the only one that is known, that which the program of
    /// the rank that knows it may name.
    One(Block),
}

impl Row {
    /// The block for a peer, or from it.
    pub fn at(&self, peer: usize) -> Block {
        match self {
            Row::Each(blocks) => blocks[peer],
            Row::One(block) => *block,
        }
    }

    /// From elements of so many bytes. Empty blocks begin at 0.
    pub fn in_bytes(self, width: u64) -> Row {
        let bytes = |Block { offset, size }| match size {
            0 => Block::default(),
            _ => Block { offset: offset.wrapping_mul(width), size: size.wrapping_mul(width) },
        };
        match self {
            Row::Each(blocks) => Row::Each(blocks.into_iter().map(bytes).collect()),
            Row::One(block) => Row::One(bytes(block)),
        }
    }
}

/// The blocks of the forms with a count for each rank, by rank, as far as one rank knows them: its
/// own, and of the others those that its program names (`coll::tables`).
#[derive(Clone, Debug, Default)]
pub struct Varied {
    /// `send[r]` at p: what rank r's input holds for rank p.
    pub send: Vec<Row>,
    /// `receive[r]` at p: where rank r's output takes what comes from rank p.
    pub receive: Vec<Row>,
    /// Bytes of the largest block of any rank, alike at all.
    pub largest: u64,
}

/// See the head of the file.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What is to be done.
    pub operation: Operation,
    /// Ranks of the team.
    pub ranks: usize,
    /// The root, where there is one; else 0.
    pub root: usize,
    /// Elements: of the whole vector for broadcast, reduce, allreduce and scan; of one rank's block
    /// for the others.
    pub count: u64,
    /// Bytes of an element.
    pub width: u64,
    /// Bytes that one step should move at most; at least `width`.
    pub segment: u64,
    /// The input lies in the output buffer: at every rank; or, where there is a root, at the root.
    pub in_place: bool,
    /// How many queues a program may have at most: 1 where no two steps of a rank may combine at
    /// the same time, since only the holder of a queue's claim runs its steps.
    pub queues: usize,
    /// For the forms with a count for each rank.
    pub varied: Option<Varied>,
    /// Where the ranks run; None: all share memory.
    pub nodes: Option<Arc<Nodes>>,
}

impl Problem {
    /// Bytes of the vector, or of one rank's block where blocks are alike.
    pub fn bytes(&self) -> u64 {
        self.count * self.width
    }

    /// Bytes of the vector, or of the largest block of any rank.
    pub fn largest(&self) -> u64 {
        self.varied.as_ref().map_or(self.bytes(), |varied| varied.largest)
    }

    /// The problem as if all blocks of a v form were as large as the largest, and all at one place:
    /// for questions about programs of other ranks, whose blocks this rank does not know. They
    /// touch no buffer that these leave alone.
    pub fn with_equal_blocks(&self) -> Problem {
        let largest = self.largest();
        let row = || vec![Row::One(Block { offset: 0, size: largest }); self.ranks];
        let varied = self.varied.as_ref();
        let varied = varied.map(|_| Varied { send: row(), receive: row(), largest });
        Problem { varied, ..self.clone() }
    }

    /// The block that rank `rank`'s input holds for `peer` (gather, allgather: its only block).
    pub fn send_block(&self, rank: usize, peer: usize) -> Block {
        let size = self.bytes();
        match (&self.varied, self.operation) {
            (Some(varied), _) => varied.send[rank].at(peer),
            (None, Operation::Scatter | Operation::Alltoall | Operation::ReduceScatter) => {
                Block { offset: peer as u64 * size, size }
            }
            (None, _) => Block { offset: 0, size },
        }
    }

    /// Where rank `rank`'s output takes what comes from `peer` (scatter, reduce-scatter: its only
    /// block).
    pub fn receive_block(&self, rank: usize, peer: usize) -> Block {
        let size = self.bytes();
        match (&self.varied, self.operation) {
            (Some(varied), _) => varied.receive[rank].at(peer),
            (None, Operation::Gather | Operation::Allgather | Operation::Alltoall) => {
                Block { offset: peer as u64 * size, size }
            }
            (None, _) => Block { offset: 0, size },
        }
    }

    /// Whether rank `rank`'s own contribution already lies where the collective runs in place.
    pub fn is_in_place(&self, rank: usize) -> bool {
        let rooted =
            matches!(self.operation, Operation::Reduce | Operation::Gather | Operation::Scatter);
        self.in_place && (!rooted || rank == self.root)
    }

    /// The place of byte `offset` of what rank `rank` contributes for `peer`: in the input buffer,
    /// or in the output buffer where it runs in place. For broadcast the root's data lies in the
    /// output buffer, as at everybody else.
    pub fn source(&self, rank: usize, peer: usize, offset: u64) -> Place {
        let block = self.send_block(rank, peer);
        match self.operation {
            Operation::Broadcast => receive(rank, offset),
            Operation::Gather | Operation::Allgather if self.is_in_place(rank) => {
                receive(rank, self.receive_block(rank, rank).offset + offset)
            }
            // The root of a scatter in place keeps its own block in the input buffer.
            Operation::Scatter => send(rank, block.offset + offset),
            _ if self.is_in_place(rank) => receive(rank, block.offset + offset),
            _ => send(rank, block.offset + offset),
        }
    }

    /// The place of byte `offset` of what comes to rank `rank` from `peer`.
    pub fn target(&self, rank: usize, peer: usize, offset: u64) -> Place {
        if self.operation == Operation::Scatter && self.is_in_place(rank) {
            return self.source(rank, rank, offset);
        }
        receive(rank, self.receive_block(rank, peer).offset + offset)
    }

    /// The pieces of at most a segment into which `size` bytes fall: offset and length of each,
    /// whole elements.
    pub fn segments(&self, size: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let step = (self.segment / self.width * self.width).max(self.width);
        (0..size.div_ceil(step)).map(move |i| (i * step, step.min(size - i * step)))
    }

    /// Part `part` of `parts` of `elements` elements, as even as possible: offset and length in
    /// bytes.
    pub fn part(&self, elements: u64, part: usize, parts: usize) -> Block {
        let (part, parts) = (part as u64, parts as u64);
        let begin = |part: u64| part * (elements / parts) + part.min(elements % parts);
        let (first, end) = (begin(part), begin(part + 1));
        Block { offset: first * self.width, size: (end - first) * self.width }
    }
}
