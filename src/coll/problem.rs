//! A problem: a collective operation as the algorithms need it, numbers without addresses.

use crate::coll::nodes::Nodes;
use crate::coll::schedule::{Place, receive, send};
use std::sync::Arc;

/// The collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Operation {
    /// No rank leaves before all ranks have come.
    Barrier = 0,
    /// All ranks get the root's vector.
    Broadcast = 1,
    /// The root gets the combination of all ranks' vectors.
    Reduce = 2,
    /// All ranks get the combination of all ranks' vectors.
    Allreduce = 3,
    /// The root gets a block of each rank, in the order of ranks.
    Gather = 4,
    /// Each rank gets a block of the root.
    Scatter = 5,
    /// All ranks get a block of each rank.
    Allgather = 6,
    /// Each rank gets a block of each rank, meant for it.
    Alltoall = 7,
    /// All ranks' vectors are combined, and each rank gets a block of the result.
    ReduceScatter = 8,
    /// Each rank gets the combination of the vectors of the ranks up to itself.
    Scan = 9,
    /// Each rank but the first gets the combination of the vectors of the ranks before it.
    Exscan = 10,
}

/// A range of bytes in a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Bytes from the beginning of the buffer.
    pub offset: u64,
    /// Length in bytes.
    pub size: u64,
}

/// The blocks of a rank's input or output, by peer.
#[derive(Clone, Debug)]
pub enum Row {
    /// One for each peer.
    Each(Vec<Block>),
    /// One block for all peers. In another rank's row: the only block of that row that this rank
    /// knows, since its program names no other.
    One(Block),
}

impl Row {
    /// The block for a peer, or from a peer.
    pub fn at(&self, peer: usize) -> Block {
        match self {
            Row::Each(blocks) => blocks[peer],
            Row::One(block) => *block,
        }
    }

    /// Converts from elements of `width` bytes. Empty blocks then begin at 0.
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

/// The blocks of a v form that one rank knows: all of its own, and of each other rank those that
/// its program names (`coll::tables`).
#[derive(Clone, Debug, Default)]
pub struct Varied {
    /// `send[r]` at p: the block of rank r's input for rank p.
    pub send: Vec<Row>,
    /// `receive[r]` at p: the block of rank r's output for the data of rank p.
    pub receive: Vec<Row>,
    /// Bytes of the largest block of any rank; equal at all ranks.
    pub largest: u64,
}

/// The most segments of all blocks together. Of more, each one would be longer. Each takes steps,
/// which are made before it is known whether there is memory for the plan.
pub const MOST_SEGMENTS: u64 = 1 << 16;

/// The numbers of a collective operation.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The operation.
    pub operation: Operation,
    /// Ranks of the team.
    pub ranks: usize,
    /// The root, if the operation has one; else 0.
    pub root: usize,
    /// Number of elements: of the whole vector for broadcast, reduce, allreduce and scans; of one
    /// rank's block for the others.
    pub count: u64,
    /// Bytes of an element.
    pub width: u64,
    /// Most bytes that one step should move; at least `width`.
    pub segment: u64,
    /// Whether the input lies in the output buffer: at the root if there is one, else at every
    /// rank.
    pub in_place: bool,
    /// The most queues of a program. It is 1 if two combinations of a rank must not run at the same
    /// time, since only the holder of a queue's claim runs its steps.
    pub queues: usize,
    /// The blocks of a v form.
    pub varied: Option<Varied>,
    /// The nodes of the ranks; None: all ranks share memory.
    pub nodes: Option<Arc<Nodes>>,
}

impl Problem {
    /// Bytes of the vector, or of a block where all blocks have one length. Without a meaning in a
    /// v form that ignores its count, which may be any number then.
    pub fn bytes(&self) -> u64 {
        self.count.wrapping_mul(self.width)
    }

    /// Bytes of the vector, or of the largest block of any rank.
    pub fn largest(&self) -> u64 {
        self.varied.as_ref().map_or(self.bytes(), |varied| varied.largest)
    }

    /// The problem with blocks of the largest length at offset 0 in place of a v form's blocks.
    /// From it this rank makes programs of other ranks, whose blocks it does not know. Such a
    /// program accesses at least the buffers that the true one accesses.
    pub fn with_equal_blocks(&self) -> Problem {
        let largest = self.largest();
        let row = || vec![Row::One(Block { offset: 0, size: largest }); self.ranks];
        let varied = self.varied.as_ref();
        let varied = varied.map(|_| Varied { send: row(), receive: row(), largest });
        Problem { varied, ..self.clone() }
    }

    /// The block of `rank`'s input for `peer`; for gather and allgather its only block.
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

    /// The block of `rank`'s output for the data of `peer`; for scatter and reduce-scatter its only
    /// block.
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

    /// Whether the contribution of `rank` lies in its output buffer.
    pub fn is_in_place(&self, rank: usize) -> bool {
        let rooted =
            matches!(self.operation, Operation::Reduce | Operation::Gather | Operation::Scatter);
        self.in_place && (!rooted || rank == self.root)
    }

    /// The place of byte `offset` of what `rank` contributes for `peer`: in the input buffer, or in
    /// the output buffer in place. A broadcast has its data in the output buffer at all ranks, the
    /// root included.
    pub fn source(&self, rank: usize, peer: usize, offset: u64) -> Place {
        let block = self.send_block(rank, peer);
        match self.operation {
            Operation::Broadcast => receive(rank, offset),
            Operation::Gather | Operation::Allgather if self.is_in_place(rank) => {
                receive(rank, self.receive_block(rank, rank).offset + offset)
            }
            // The root of a scatter in place has its own block in the input buffer.
            Operation::Scatter => send(rank, block.offset + offset),
            _ if self.is_in_place(rank) => receive(rank, block.offset + offset),
            _ => send(rank, block.offset + offset),
        }
    }

    /// The place of byte `offset` of what `rank` receives from `peer`.
    pub fn target(&self, rank: usize, peer: usize, offset: u64) -> Place {
        if self.operation == Operation::Scatter && self.is_in_place(rank) {
            return self.source(rank, rank, offset);
        }
        receive(rank, self.receive_block(rank, peer).offset + offset)
    }

    /// Cuts `size` bytes into pieces of whole elements, of at most a segment each: offset and
    /// length of each piece.
    pub fn segments(&self, size: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let step = (self.segment / self.width * self.width).max(self.width);
        (0..size.div_ceil(step)).map(move |i| (i * step, step.min(size - i * step)))
    }

    /// Offset and length in bytes of part `part`, if `elements` elements are cut into `parts` parts
    /// as even as possible.
    pub fn part(&self, elements: u64, part: usize, parts: usize) -> Block {
        let (part, parts) = (part as u64, parts as u64);
        let begin = |part: u64| part * (elements / parts) + part.min(elements % parts);
        let (first, end) = (begin(part), begin(part + 1));
        Block { offset: first * self.width, size: (end - first) * self.width }
    }
}
