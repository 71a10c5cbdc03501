//! The problems with which each algorithm is tested: numbers of ranks up to 17, all roots, counts
//! around the multiples of a segment, in place and not, equal and varied blocks. If `LLCL_RANKS` is
//! "all", these are all numbers of ranks up to 33, which takes many times as long.

use super::tests::broadcast_to;
use super::{Random, Table, posted, run, tables};
use crate::coll::algorithms::Algorithm;
use crate::coll::nodes::Nodes;
use crate::coll::problem::{Block, Operation, Problem};
use crate::coll::schedule::{Program, QUEUES};
use std::mem::take;
use std::sync::Arc;

/// Bytes of an element and of a segment.
const SHAPES: [(u64, u64); 6] = [(4, 32), (8, 30), (1, 16), (16, 40), (24, 24), (3, 20)];

/// Runs the algorithm on a problem. `tables`: the tables of the ranks for a v form; each rank's
/// program is then made from the blocks that this rank keeps of them. Panics with all data that are
/// needed to repeat the error. False: the algorithm does not fit the problem.
pub fn check(algorithm: &Algorithm, problem: &Problem, tables: Option<&[Table]>) -> bool {
    let known = match tables {
        Some(tables) => tables::received(problem, tables),
        None => vec![problem.clone(); problem.ranks],
    };
    if !(algorithm.fits)(&known[0]) {
        return false;
    }
    assert_eq!(algorithm.operation, problem.operation, "{}", algorithm.name);
    let program = |(rank, problem)| (algorithm.program)(problem, rank);
    let programs = known.iter().enumerate().map(program).collect::<Vec<Program>>();
    let programs = posted::programs(programs, problem.nodes.as_deref());
    let Some(programs) = programs else {
        panic!("{:?}/{} reads memory of another node", algorithm.operation, algorithm.name);
    };
    let whole = tables.map(|tables| tables::whole(problem, tables));
    let problem = whole.as_ref().unwrap_or(problem);
    let seed = problem.ranks as u64 * 1_000_003 + problem.root as u64 * 1009 + problem.count;
    if let Err(what) = run(problem, &programs, algorithm.ordered, seed) {
        let Problem { operation, ranks, root, count, width, segment, in_place, nodes, .. } =
            problem;
        panic!(
            "{operation:?}/{}, {ranks} ranks on nodes {nodes:?}, root {root}, count {count} of {width} \
             bytes, segment {segment}, in place {in_place}, varied {:?}, seed {seed}: {what}",
            algorithm.name, problem.varied
        );
    }
    true
}

/// All small numbers of ranks, and some around powers of two.
fn some_ranks() -> impl Iterator<Item = usize> {
    let all = std::env::var("LLCL_RANKS").is_ok_and(|which| which == "all");
    (2..=33).filter(move |ranks| all || matches!(ranks, 2..=9 | 12 | 16 | 17))
}

/// Runs the algorithms on all problems.
pub fn sweep<'a>(algorithms: impl IntoIterator<Item = &'a Algorithm>) {
    for algorithm in algorithms {
        let (mut turn, mut solved) = (0, 0);
        for ranks in some_ranks() {
            problems(algorithm.operation, ranks, &mut turn, &mut |problem, tables| {
                solved += u32::from(check(algorithm, problem, tables))
            });
        }
        assert!(solved > 0, "{:?}/{} fits no problem", algorithm.operation, algorithm.name);
    }
}

/// Runs the algorithms on many problems with the ranks on several nodes: each rank alone, in two
/// halves, one rank alone and the others together, in turn on three nodes, all on one node, and at
/// random.
pub fn sweep_posted<'a>(algorithms: impl IntoIterator<Item = &'a Algorithm>) {
    for algorithm in algorithms {
        let (mut turn, mut solved, mut seen, mut random) = (0, 0, 0, Random::new(1));
        for ranks in some_ranks() {
            // Many ranks take long, since there is a problem for each root.
            let one_of = if ranks > 9 { 18 } else { 3 };
            let mut is_first = true;
            problems(algorithm.operation, ranks, &mut turn, &mut |problem, tables| {
                seen += 1;
                if random.below(one_of) != 0 && !take(&mut is_first) {
                    return;
                }
                let most = 1 + random.below(ranks as u64);
                let mut node = |rank: usize| match seen % 7 {
                    0 => rank,
                    1 => usize::from(rank >= ranks / 2),
                    2 => usize::from(rank > 0),
                    3 => rank % 3,
                    4 => 0,
                    _ => random.below(most) as usize,
                };
                let nodes = Some(Arc::new(Nodes::new((0..ranks).map(&mut node))));
                let problem = Problem { nodes, ..problem.clone() };
                solved += u32::from(check(algorithm, &problem, tables));
            });
        }
        assert!(solved > 0, "{:?}/{} fits no problem", algorithm.operation, algorithm.name);
    }
}

pub fn has_root(operation: Operation) -> bool {
    use Operation::*;
    matches!(operation, Broadcast | Reduce | Gather | Scatter)
}

/// The counts around the multiples of a segment of `edge` elements.
fn counts(edge: u64) -> [u64; 10] {
    [0, 1, edge - 1, edge, edge + 1, 2 * edge, 3 * edge + 1, 13, 5 * edge - 1, 31]
}

/// The problems for this number of ranks: every root; all counts if there are few ranks, else some
/// of them in turn.
fn problems(
    operation: Operation,
    ranks: usize,
    turn: &mut usize,
    each: &mut dyn FnMut(&Problem, Option<&[Table]>),
) {
    let roots = if has_root(operation) { ranks } else { 1 };
    for root in 0..roots {
        let cases = match (operation, ranks, root) {
            (Operation::Barrier, _, _) => 1,
            // All pairs of shape and count; in place or not alternates.
            (_, 2..=9, 0) => 60,
            (_, 2..=5, _) => 20,
            (_, 2..=9, _) => 3,
            (_, _, 0) => 6,
            _ => 1,
        };
        for _ in 0..cases {
            *turn += 1;
            let (width, segment) = SHAPES[*turn % 6];
            let count = counts(segment / width)[*turn / 6 % 10];
            let in_place = *turn / 60 % 2 == 1;
            let queues = if *turn / 7 % 3 == 1 { 1 } else { QUEUES };
            let shape = Problem { root, count, width, segment, in_place, ..broadcast_to(ranks) };
            let problem = Problem { operation, queues, ..shape };
            each(&problem, None);
            if turn.is_multiple_of(4) && can_vary(operation) {
                let tables = tables(&problem, &mut Random::new(*turn as u64));
                each(&problem, Some(&tables));
            }
        }
    }
}

fn can_vary(operation: Operation) -> bool {
    use Operation::*;
    matches!(operation, Gather | Scatter | Allgather | Alltoall | ReduceScatter)
}

/// Blocks of these sizes in a random order, with gaps.
fn place(sizes: &[u64], random: &mut Random) -> Vec<Block> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    (1..order.len()).for_each(|i| order.swap(i, random.below(i as u64 + 1) as usize));
    let mut blocks = vec![Block::default(); sizes.len()];
    let mut end = 0;
    for i in order {
        let offset = end + random.below(3) * random.below(3);
        blocks[i] = Block { offset, size: sizes[i] };
        end = offset + sizes[i];
    }
    blocks
}

/// Random tables of all ranks, with some empty blocks. Tables that the operation does not need are
/// empty.
pub fn tables(problem: &Problem, random: &mut Random) -> Vec<Table> {
    use Operation::*;
    let Problem { operation, ranks, root, in_place, .. } = *problem;
    let mut size = || random.below(2) * random.below(problem.count + 3);
    let sizes: Vec<u64> = (0..ranks).map(|_| size()).collect();
    let mut matrix: Vec<Vec<u64>> =
        (0..ranks).map(|_| (0..ranks).map(|_| size()).collect()).collect();
    let mut tables = Vec::new();
    for rank in 0..ranks {
        let (mut send, mut receive) = (Vec::new(), Vec::new());
        match operation {
            Gather if rank != root => {}
            Scatter if rank != root => {}
            Scatter => send = place(&sizes, random),
            Alltoall if in_place => {
                (0..rank).for_each(|peer| matrix[rank][peer] = matrix[peer][rank]);
                receive = place(&matrix[rank], random);
            }
            Alltoall => {
                let column: Vec<u64> = matrix.iter().map(|row| row[rank]).collect();
                send = place(&matrix[rank], random);
                receive = place(&column, random);
            }
            _ => receive = place(&sizes, random),
        }
        tables.push(Table { count: sizes[rank], send, receive });
    }
    tables
}
