//! The definitions of the operations: lengths of buffers, inputs, and results computed directly.

use crate::coll::problem::{Block, Operation, Problem};
use crate::coll::schedule::Space;

/// A random generator with a seed (splitmix64).
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

fn extent(blocks: impl Iterator<Item = Block>) -> u64 {
    blocks.map(|block| block.offset + block.size).max().unwrap_or(0)
}

/// Bytes of a rank's input buffer.
pub fn send_length(problem: &Problem, rank: usize) -> u64 {
    use Operation::*;
    let all = || extent((0..problem.ranks).map(|peer| problem.send_block(rank, peer)));
    match problem.operation {
        Barrier | Broadcast => 0,
        Scatter if rank == problem.root => all(),
        Scatter => 0,
        _ if problem.is_in_place(rank) => 0,
        Reduce | Allreduce | Scan | Exscan => problem.bytes(),
        Gather | Allgather => extent([problem.send_block(rank, problem.root)].into_iter()),
        Alltoall | ReduceScatter => all(),
    }
}

/// Bytes of a rank's output buffer.
pub fn receive_length(problem: &Problem, rank: usize) -> u64 {
    use Operation::*;
    let in_place = problem.is_in_place(rank);
    let all = || extent((0..problem.ranks).map(|peer| problem.receive_block(rank, peer)));
    let sent = || extent((0..problem.ranks).map(|peer| problem.send_block(rank, peer)));
    let own = || extent([problem.receive_block(rank, problem.root)].into_iter());
    match problem.operation {
        Barrier => 0,
        Reduce | Gather if rank != problem.root => 0,
        Broadcast | Reduce | Allreduce | Scan | Exscan => problem.bytes(),
        Scatter if in_place => 0,
        Scatter => own(),
        Alltoall if in_place => all().max(sent()),
        Gather | Allgather | Alltoall => all(),
        ReduceScatter if in_place => own().max(sent()),
        ReduceScatter => own(),
    }
}

/// The buffers of a rank at the beginning of a round.
pub struct Input {
    /// The input buffer.
    pub send: Vec<u8>,
    /// The output buffer: in place it holds the input, else random bytes.
    pub receive: Vec<u8>,
}

/// The inputs and results of a round.
pub struct Round {
    /// The inputs, by rank.
    pub inputs: Vec<Input>,
    /// The expected output buffers, by rank.
    results: Vec<Vec<u8>>,
}

impl Round {
    /// Random inputs and the results that follow from them.
    pub fn new(problem: &Problem, ordered: bool, random: &mut Random) -> Round {
        let inputs: Vec<Input> = (0..problem.ranks)
            .map(|rank| Input {
                send: elements(problem.width, send_length(problem, rank), random),
                receive: elements(problem.width, receive_length(problem, rank), random),
            })
            .collect();
        let results = results(problem, ordered, &inputs);
        Round { inputs, results }
    }

    /// Compares the buffers of a rank at the end of the round with the expected ones.
    pub fn compare(
        &self,
        problem: &Problem,
        rank: usize,
        send: &[u8],
        receive: &[u8],
    ) -> Result<(), String> {
        if send != self.inputs[rank].send {
            return Err("the input is no longer what it was".into());
        }
        // In place only the beginning of the buffer has a defined content afterwards.
        let known = match problem.operation {
            Operation::ReduceScatter => problem.receive_block(rank, 0).size as usize,
            _ => receive.len(),
        };
        let wrong = (0..known).find(|&i| receive[i] != self.results[rank][i]);
        wrong.map_or(Ok(()), |i| Err(format!("byte {i} of the result is wrong")))
    }
}

/// The bytes that a rank contributes for a peer.
fn contribution<'a>(problem: &Problem, inputs: &'a [Input], rank: usize, peer: usize) -> &'a [u8] {
    let size = match problem.operation {
        Operation::Gather | Operation::Allgather if problem.is_in_place(rank) => {
            problem.receive_block(rank, rank).size
        }
        _ => problem.send_block(rank, peer).size,
    };
    let place = problem.source(rank, peer, 0);
    let buffer = match place.space {
        Space::Send => &inputs[rank].send,
        _ => &inputs[rank].receive,
    };
    &buffer[place.offset as usize..(place.offset + size) as usize]
}

fn results(problem: &Problem, ordered: bool, inputs: &[Input]) -> Vec<Vec<u8>> {
    use Operation::*;
    let Problem { operation, ranks, root, .. } = *problem;
    // The contributions of ranks 0, 0 and 1, 0 to 2, ... for a peer, combined.
    let folds = |peer: usize| {
        let first = contribution(problem, inputs, 0, peer).to_vec();
        (1..=ranks).scan(first, move |sum, rank| {
            let next = (rank < ranks).then(|| {
                let right = contribution(problem, inputs, rank, peer);
                combine(ordered, problem.width, sum, right)
            });
            Some(std::mem::replace(sum, next.unwrap_or_default()))
        })
    };
    let fold = |peer: usize| folds(peer).last().unwrap_or_default();
    let mut results: Vec<Vec<u8>> = inputs.iter().map(|input| input.receive.clone()).collect();
    let mut put = |rank: usize, peer: usize, bytes: &[u8]| {
        let begin = problem.receive_block(rank, peer).offset as usize;
        results[rank][begin..begin + bytes.len()].copy_from_slice(bytes);
    };
    match operation {
        Barrier => {}
        Broadcast => {
            (0..ranks).for_each(|rank| put(rank, root, contribution(problem, inputs, root, rank)));
        }
        Reduce => put(root, root, &fold(0)),
        Allreduce => {
            let sum = fold(0);
            (0..ranks).for_each(|rank| put(rank, root, &sum));
        }
        Exscan => (1..ranks).zip(folds(0)).for_each(|(rank, sum)| put(rank, root, &sum)),
        Scan => (0..ranks).zip(folds(0)).for_each(|(rank, sum)| put(rank, root, &sum)),
        ReduceScatter => (0..ranks).for_each(|rank| put(rank, rank, &fold(rank))),
        Scatter => {
            for rank in (0..ranks).filter(|&rank| !problem.is_in_place(rank)) {
                put(rank, root, contribution(problem, inputs, root, rank));
            }
        }
        Gather => {
            (0..ranks).for_each(|peer| put(root, peer, contribution(problem, inputs, peer, root)));
        }
        Allgather | Alltoall => {
            for (rank, peer) in (0..ranks).flat_map(|rank| (0..ranks).map(move |p| (rank, p))) {
                put(rank, peer, contribution(problem, inputs, peer, rank));
            }
        }
    }
    results
}

/// Bytes of a word. An element consists of words, which are combined independently.
fn word(width: u64) -> u64 {
    1 << width.trailing_zeros().min(3)
}

/// The greatest prime that fits into half a word.
fn prime(word: u64) -> u64 {
    match word {
        1 => 13,
        2 => 251,
        4 => 65_521,
        _ => 4_294_967_291,
    }
}

/// Random elements that are maps in the sense of [`combine`].
fn elements(width: u64, size: u64, random: &mut Random) -> Vec<u8> {
    let width = word(width);
    let mut bytes = Vec::with_capacity(size as usize + 8);
    while (bytes.len() as u64) < size {
        let (prime, number) = (prime(width), random.next());
        let element = (1 + (number >> 32) % (prime - 1)) | ((number % prime) << (width * 4));
        bytes.extend_from_slice(&element.to_le_bytes()[..width as usize]);
    }
    bytes.truncate(size as usize);
    bytes
}

/// Combines elements. `ordered`: a word is a map `x -> a * x + b` modulo a prime, and the result is
/// the left map followed by the right one, which is associative but does not commute. Otherwise the
/// result is the wrapping sum.
pub fn combine(ordered: bool, width: u64, left: &[u8], right: &[u8]) -> Vec<u8> {
    let width = word(width);
    let (prime, half) = (prime(width), width * 4);
    let read = |bytes: &[u8]| {
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(all)
    };
    let low = (1u64 << half) - 1;
    let mut result = Vec::with_capacity(left.len() + 8);
    for (left, right) in left.chunks(width as usize).zip(right.chunks(width as usize)) {
        let (left, right) = (read(left), read(right));
        let combined = match ordered {
            true => {
                // Halves of a word have at most 32 bits.
                let product = |x: u64, y: u64| x * y % prime;
                let (a, b) = (product(left & low, right & low), product(left >> half, right & low));
                a | (((b + (right >> half)) % prime) << half)
            }
            false => left.wrapping_add(right),
        };
        result.extend_from_slice(&combined.to_le_bytes()[..width as usize]);
    }
    result
}
