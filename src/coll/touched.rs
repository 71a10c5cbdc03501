//! Which bytes of a rank's buffers a collective reads and writes. It leaves all others alone: the
//! user may use the gaps between the blocks of a v form meanwhile.

use crate::coll::problem::{Block, Operation, Problem};

/// Ranges of one rank's buffers, in order; none is empty, and no two touch each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// What is read in the input buffer.
    pub send: Vec<Block>,
    /// What the output buffer holds at the beginning and the collective reads: the data of a
    /// broadcast's root, and the contribution of a rank that runs in place.
    pub held: Vec<Block>,
    /// What is written in the output buffer.
    pub written: Vec<Block>,
}

/// What the collective touches of rank `rank`'s buffers. Only this rank's rows of `problem.varied`
/// are used, and the unit is that of the problem: bytes, or elements if `width` is 1.
pub fn touched(problem: &Problem, rank: usize) -> Touched {
    use Operation::*;
    let (in_place, root) = (problem.is_in_place(rank), problem.root);
    // In place a rank's block for itself lies where it belongs.
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

/// Where the last of some ranges in order ends.
pub fn extent(blocks: &[Block]) -> u64 {
    blocks.last().map_or(0, |last| last.offset.saturating_add(last.size))
}

/// Whether two lists of ranges in order have a byte in common; the second begins `shift` further
/// on.
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

/// The ranges in order; empty ones left out, and those that touch each other put together. An end
/// that no number can hold becomes the largest number.
pub fn merged(mut blocks: Vec<Block>) -> Vec<Block> {
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
    all
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
        assert_eq!(all, [block(0, 5), block(8, 5), block(40, 4)]);
        assert_eq!(extent(&all), 44);
        assert_eq!(extent(&merged(vec![block(u64::MAX - 1, 9)])), u64::MAX);
        assert_eq!((merged(vec![block(3, 0)]), extent(&[])), (Vec::new(), 0));
    }

    #[test]
    fn ranges_in_each_others_gaps_do_not_overlap() {
        let (one, other) = ([block(0, 4), block(8, 4)], [block(0, 4)]);
        let shifts = (-6..14).filter(|shift| !overlap(&one, &other, *shift));
        assert_eq!(shifts.collect::<Vec<_>>(), [-6, -5, -4, 4, 12, 13]);
        assert!(!overlap(&one, &[], 0) && !overlap(&[], &one, 0));
    }
}
