//! Tests of the memory that plans of very large teams take at a rank. They compute it without
//! making the plans.

use crate::coll::algorithms::{Algorithm, all};
use crate::coll::nodes::Nodes;
use crate::coll::plan::Plan;
use crate::coll::plan::attach::SESSION;
use crate::coll::problem::{Operation, Problem};
use crate::coll::runner::members::{Members, known};
use crate::coll::runner::posted::posted;
use crate::coll::runner::put_receiver::Shadow;
use crate::coll::runner::put_sender::PutSender;
use crate::coll::runner::record::{self, compile};
use crate::coll::runner::session::{size, words};
use crate::coll::schedule::{Program, QUEUES};
use crate::coll::select::{choose, rows_first};
use std::collections::BTreeSet;
use std::sync::Arc;

const RANKS: usize = 1000;

fn problem(operation: Operation, count: u64) -> Problem {
    let (ranks, width, segment) = (RANKS, 8, 64 << 10);
    let (root, in_place, varied, queues, nodes) = (0, false, None, QUEUES, None);
    Problem { operation, ranks, root, count, width, segment, in_place, varied, queues, nodes }
}

/// Shared and private bytes of a plan at a rank.
fn bytes(program: &Program, rank: usize) -> (u64, u64) {
    let session = size(&words(program, RANKS), compile(program).len()) as u64;
    let scratch = program.scratch.next_multiple_of(64) * u64::from(program.turns);
    let private = size_of::<Plan>() + Members::bytes(&known(program, rank, RANKS), RANKS);
    (SESSION + session + scratch, private as u64)
}

/// How many ranks a program signals, and of how many it awaits signals.
fn edges(program: &Program) -> (usize, usize) {
    let steps = || program.queues.iter().flatten();
    let out = steps().filter_map(|step| step.signal).map(|signal| signal.rank);
    let back = steps().filter_map(|step| step.wait).map(|wait| wait.from);
    (out.collect::<BTreeSet<_>>().len(), back.collect::<BTreeSet<_>>().len())
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
                let steps = compile(&program).len() as u64;
                let scratch = program.scratch.next_multiple_of(64) * u64::from(program.turns);
                let (shared, private) = bytes(&program, rank);
                let (out, back) = edges(&program);
                let (queues, edges) = (program.queues.len() as u64, (out + back) as u64);
                let what = format!(
                    "{operation:?} {} {count} at {rank}: {shared} + {private} bytes, {steps} steps, {out} \
                     edges out, {back} in",
                    algorithm.name
                );
                assert!(
                    shared <= 256 + queues * (128 + 16 * edges) + 64 * steps + scratch,
                    "{what}"
                );
                assert!(private <= 2048 + 800 * (edges + 2) + 250 * steps, "{what}");
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
            let (shared, private) = bytes(&(algorithm.program)(&problem, rank), rank);
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
                let steps = compile(&program).len() as u64;
                let (out, back) = edges(&program);
                let (queues, edges) = (program.queues.len(), (out + back) as u64);
                let session = size(&words(&program, ranks), steps as usize) as u64;
                let scratch = program.scratch.next_multiple_of(64) * u64::from(program.turns);
                let private = size_of::<Plan>()
                    + Members::bytes(&known(&program, rank, ranks), ranks)
                    + PutSender::bytes(record::edges(&program).len())
                    + program.far.len() * Shadow::bytes(queues);
                let all = SESSION + session + scratch + private as u64;
                let most = 4096 + 64 * steps + (1100 + 16 * queues as u64) * edges + scratch;
                let name = algorithm.name;
                assert!(
                    all <= most,
                    "{operation:?} {name} at {rank} of {ranks}: {all} bytes, {steps} steps, {edges} edges"
                );
            }
        }
    }
}
