//! Which bytes of a rank's buffers a collective reads and writes. It accesses no others, so that
//! the user may use the gaps between the blocks of a v form during a round.

use crate::coll::problem::{Block, Operation, Problem};

/// Ranges of one rank's buffers, in order; none is empty, and no two are adjacent or overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The ranges of the input buffer that are read.
    pub send: Box<[Block]>,
    /// The ranges of the output buffer that are read at the beginning: the vector of a broadcast's
    /// root, or the contribution of a rank in place.
    pub held: Box<[Block]>,
    /// The ranges of the output buffer that are written.
    pub written: Box<[Block]>,
}

/// The ranges of `rank`'s buffers. Of `problem.varied` only the rows of this rank are used. The
/// unit is that of the problem: bytes, or elements if its `width` is 1.
pub fn touched(problem: &Problem, rank: usize) -> Touched {
    use Operation::*;
    let (in_place, root) = (problem.is_in_place(rank), problem.root);
    // In place a rank's block for itself is not copied.
    let peers = || (0..problem.ranks).filter(|peer| !in_place || *peer != rank);
    let whole = || vec![Block { offset: 0, size: problem.bytes() }];
    let sends = || peers().map(|peer| problem.send_block(rank, peer)).collect();
    let all = || (0..problem.ranks).map(|peer| problem.send_block(rank, peer)).collect();
    let receives = || peers().map(|peer| problem.receive_block(rank, peer)).collect();
    let at_root = |blocks: &dyn Fn() -> Vec<Block>| match rank == root {
        true => blocks(),
        false => Vec::new(),
    };
    let (input, written) = match problem.operation {
        Barrier => (Vec::new(), Vec::new()),
        Broadcast if rank == root => (whole(), Vec::new()),
        Broadcast => (Vec::new(), whole()),
        Reduce => (whole(), at_root(&whole)),
        Allreduce | Scan => (whole(), whole()),
        Exscan => (whole(), if rank > 0 { whole() } else { Vec::new() }),
        Gather | Allgather => {
            let own = match in_place {
                true => problem.receive_block(rank, rank),
                false => problem.send_block(rank, root),
            };
            let written = if problem.operation == Gather { at_root(&receives) } else { receives() };
            (vec![own], written)
        }
        Scatter if in_place => (sends(), Vec::new()),
        Scatter => (at_root(&sends), vec![problem.receive_block(rank, root)]),
        Alltoall => (all(), receives()),
        ReduceScatter => (all(), vec![problem.receive_block(rank, root)]),
    };
    let in_output = in_place && problem.operation != Scatter || problem.operation == Broadcast;
    let (send, held) = if in_output { (Vec::new(), input) } else { (input, Vec::new()) };
    Touched { send: merged(send), held: merged(held), written: merged(written) }
}

/// The end of the last of some ranges in order.
pub fn extent(blocks: &[Block]) -> u64 {
    blocks.last().map_or(0, |last| last.offset.saturating_add(last.size))
}

/// Whether two lists of ranges, each in order, have a common byte. The buffer of the second list
/// begins `shift` bytes after that of the first.
pub fn overlap(one: &[Block], other: &[Block], shift: i128) -> bool {
    let begin = |block: &Block, shift: i128| i128::from(block.offset) + shift;
    let end = |block: &Block, shift: i128| begin(block, shift) + i128::from(block.size);
    let (mut at, mut beside) = (0, 0);
    while let (Some(left), Some(right)) = (one.get(at), other.get(beside)) {
        if end(left, 0) <= begin(right, shift) {
            at += 1;
        } else if end(right, shift) <= begin(left, 0) {
            beside += 1;
        } else {
            return true;
        }
    }
    false
}

/// Sorts the ranges, drops empty ones and joins those that are adjacent or overlap. An end beyond
/// the largest number becomes that number.
pub fn merged(mut blocks: Vec<Block>) -> Box<[Block]> {
    blocks.retain(|block| block.size > 0);
    blocks.sort_unstable_by_key(|block| block.offset);
    let mut all: Vec<Block> = Vec::new();
    for block in blocks {
        match all.last_mut() {
            Some(last) if block.offset <= last.offset.saturating_add(last.size) => {
                let end = block.offset.saturating_add(block.size);
                last.size = last.size.max(end - last.offset);
            }
            _ => all.push(block),
        }
    }
    all.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offset: u64, size: u64) -> Block {
        Block { offset, size }
    }

    #[test]
    fn neighbours_are_put_together_and_empty_blocks_have_no_place() {
        let blocks = [(8, 4), (0, 2), (u64::MAX, 0), (12, 1), (9, 1), (2, 3), (40, 4)];
        let all = merged(blocks.map(|(offset, size)| block(offset, size)).to_vec());
        assert_eq!(*all, [block(0, 5), block(8, 5), block(40, 4)]);
        assert_eq!(extent(&all), 44);
        assert_eq!(extent(&merged(vec![block(u64::MAX - 1, 9)])), u64::MAX);
        assert_eq!((merged(vec![block(3, 0)]).len(), extent(&[])), (0, 0));
    }

    #[test]
    fn ranges_in_each_others_gaps_do_not_overlap() {
        let (one, other) = ([block(0, 4), block(8, 4)], [block(0, 4)]);
        let shifts = (-6..14).filter(|shift| !overlap(&one, &other, *shift));
        assert_eq!(shifts.collect::<Vec<_>>(), [-6, -5, -4, 4, 12, 13]);
        assert!(!overlap(&one, &[], 0) && !overlap(&[], &one, 0));
    }
}
