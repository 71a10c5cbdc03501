//! Tests of the bytes of plans of very large teams, which are computed without making the plans.
//! c_tests/coll_memory.c compares the bytes of small teams with those that were allocated.

use super::*;
use crate::coll::algorithms::{Algorithm, all};
use crate::coll::nodes::Nodes;
use crate::coll::problem::{Operation, Problem};
use crate::coll::runner::members::known;
use crate::coll::runner::posted::posted;
use crate::coll::runner::record::compile;
use crate::coll::schedule::QUEUES;
use crate::coll::select::{choose, rows_first};
use std::sync::Arc;

const RANKS: usize = 1000;

fn problem(operation: Operation, count: u64) -> Problem {
    let (ranks, width, segment) = (RANKS, 8, 64 << 10);
    let (root, in_place, varied, queues, nodes) = (0, false, None, QUEUES, None);
    Problem { operation, ranks, root, count, width, segment, in_place, varied, queues, nodes }
}

/// Bytes of the block and of private memory of a plan at a rank, and its number of steps.
fn bytes(program: &Program, rank: usize, ranks: usize) -> (u64, u64, u64) {
    let steps = compile(program).len();
    let layout = Layout::new(program, ranks, steps, [0; 2]);
    let known = known(program, rank, ranks);
    let private = private(program, &known, ranks, layout.words.len(), &Parts::default());
    (layout.total, private, steps as u64)
}

fn scratch(program: &Program) -> u64 {
    program.scratch.next_multiple_of(64) * u64::from(program.turns)
}

/// How many ranks a program signals, and of how many it awaits signals.
fn neighbours(program: &Program) -> (u64, u64) {
    let steps = || program.queues.iter().flatten();
    let out = steps().filter_map(|step| step.signal).map(|signal| signal.rank);
    let back = steps().filter_map(|step| step.wait).map(|wait| wait.from);
    let count = |ranks: BTreeSet<usize>| ranks.len() as u64;
    (count(out.collect()), count(back.collect()))
}

fn operations() -> BTreeSet<Operation> {
    all().map(|algorithm| algorithm.operation).collect()
}

fn chosen(operation: Operation, count: u64) -> (Problem, &'static Algorithm) {
    let problem = problem(operation, count);
    let algorithm = choose(&[], &problem, None, false).unwrap().0;
    (problem, algorithm)
}

#[test]
fn a_plan_grows_with_its_schedule_and_not_with_the_team() {
    for operation in operations() {
        for count in [1, 1 << 14] {
            let (problem, algorithm) = chosen(operation, count);
            for rank in [0, 1, 333, 998, 999] {
                let program = (algorithm.program)(&problem, rank);
                let scratch = scratch(&program);
                let (shared, private, steps) = bytes(&program, rank, RANKS);
                let (out, back) = neighbours(&program);
                let (queues, edges) = (program.queues.len() as u64, out + back);
                let what = format!(
                    "{operation:?} {} {count} at {rank}: {shared} + {private} bytes, {steps} steps, {out} \
                     edges out, {back} in",
                    algorithm.name
                );
                assert!(
                    shared <= 512 + queues * (128 + 16 * edges) + 64 * steps + scratch,
                    "{what}"
                );
                assert!(private <= 1024 + 800 * (edges + 2) + 250 * steps, "{what}");
            }
        }
    }
}

#[test]
fn a_thousand_plans_of_a_thousand_ranks_fit() {
    let operations =
        [Operation::Barrier, Operation::Broadcast, Operation::Allreduce, Operation::Reduce];
    for rank in [1, 333, 998, 999] {
        let plans = (0..1000).map(|plan| {
            let (problem, algorithm) = chosen(operations[plan % operations.len()], 1);
            let (shared, private, _) = bytes(&(algorithm.program)(&problem, rank), rank, RANKS);
            shared + private
        });
        let all = plans.sum::<u64>();
        assert!(all < 16 << 20, "rank {rank}: {all} bytes");
    }
}

/// The memory for a rank's peers must grow with its schedule and not with the team. Nodes have one
/// rank or eight ranks.
#[test]
fn a_plan_over_nodes_grows_with_its_schedule_and_not_with_the_team() {
    for (ranks, each) in [(RANKS, 1), (10_000, 1), (RANKS, 8), (10_000, 8)] {
        let nodes = Arc::new(Nodes::new((0..ranks).map(|rank| rank / each)));
        for operation in operations() {
            let problem = Problem { ranks, nodes: Some(nodes.clone()), ..problem(operation, 1) };
            let rows = rows_first(false, Some(&*nodes));
            let algorithm = choose(rows, &problem, None, false).unwrap().0;
            for rank in [0, 1, ranks / 3, ranks - 1] {
                let program = (algorithm.program)(&problem, rank);
                let program = posted(program, rank, |peer| !nodes.share(peer, rank)).unwrap();
                let (shared, private, steps) = bytes(&program, rank, ranks);
                let (out, back) = neighbours(&program);
                let (all, queues) = (shared + private, program.queues.len() as u64);
                let per_edge = 1100 + 16 * queues;
                let most = 4096 + 64 * steps + per_edge * (out + back) + scratch(&program);
                let name = algorithm.name;
                assert!(
                    all <= most,
                    "{operation:?} {name} at {rank} of {ranks}: {all} bytes, {steps} steps, {out} edges \
                     out, {back} in, expected at most {most}"
                );
            }
        }
    }
}
