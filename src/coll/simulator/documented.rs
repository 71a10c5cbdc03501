//! Compares the examples of docs/collectives.md with the programs of their algorithms.

use super::sweep;
use crate::coll::algorithms::{Algorithm, broadcast};
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Action, Program, QUEUES, Step, receive};

/// A step in the notation of that page, with the first byte and the length of its copy.
fn shown(step: &Step) -> String {
    let mut parts = Vec::new();
    if let Some(wait) = step.wait {
        parts.push(format!("wait {}", wait.from));
    }
    if let Action::Copy { from, to, size } = step.action {
        assert_eq!(from.offset, to.offset);
        parts.push(format!("{}+{size} -> {}", from.offset, to.rank));
    }
    if let Some(signal) = step.signal {
        parts.push(format!("sig {}", signal.rank));
    }
    parts.join("; ")
}

#[test]
fn the_chain_of_four_ranks() {
    let chain = broadcast::ALGORITHMS.iter().find(|row| row.name == "chain").unwrap();
    let problem = Problem {
        operation: Operation::Broadcast,
        ranks: 4,
        root: 0,
        count: 96 << 10,
        width: 1,
        segment: 64 << 10,
        in_place: false,
        queues: QUEUES,
        varied: None,
        nodes: None,
    };
    let expected: [&[&str]; 4] = [
        &["wait 1; 0+65536 -> 1; sig 1", "65536+32768 -> 1; sig 1"],
        &["sig 0", "wait 2", "wait 0; 0+65536 -> 2; sig 2", "wait 0; 65536+32768 -> 2; sig 2"],
        &["sig 1", "wait 3", "wait 1; 0+65536 -> 3", "wait 1; 65536+32768 -> 3; sig 3"],
        &["sig 2", "wait 2"],
    ];
    for (rank, expected) in expected.iter().enumerate() {
        let program = (chain.program)(&problem, rank);
        assert_eq!(program.queues.len(), 1);
        let steps = program.queues[0].iter().map(shown).collect::<Vec<_>>();
        assert_eq!(&steps, expected, "rank {rank}");
    }
}

/// Star: the root copies the vector to one rank after the other. p - 1 copies follow each other, so
/// it is for two or three ranks.
fn star(problem: &Problem, rank: usize) -> Program {
    let (root, bytes) = (problem.root, problem.bytes());
    let mut program = Program::new(1);
    let mut queue = program.queue(0);
    if rank == root {
        for peer in (0..problem.ranks).filter(|peer| *peer != root) {
            queue.wait(peer, 1).copy(receive(root, 0), receive(peer, 0), bytes).signal(peer, 0);
        }
    } else {
        queue.signal(root, 0).wait(root, 1);
    }
    drop(queue);
    program
}

#[test]
fn the_algorithm_that_is_added() {
    sweep(&[Algorithm {
        operation: Operation::Broadcast,
        name: "star",
        program: star,
        fits: |_| true,
        ordered: true,
        single_copy: true,
        pulls: false,
    }]);
}
