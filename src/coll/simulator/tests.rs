//! Tests that the simulator finds the errors of programs that are nearly right.

use super::{run, sweep};
use crate::coll::algorithms::{Algorithm, all, barrier, broadcast};
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Action, CELL, Program, QUEUES, Step, receive, scratch};

/// A broadcast of 16 bytes from rank 0 to rank 1.
fn problem() -> Problem {
    broadcast_to(2)
}

/// A broadcast of 16 bytes from rank 0 over `ranks` ranks.
pub(super) fn broadcast_to(ranks: usize) -> Problem {
    Problem {
        operation: Operation::Broadcast,
        ranks,
        root: 0,
        count: 4,
        width: 4,
        segment: 64,
        in_place: false,
        queues: QUEUES,
        varied: None,
        nodes: None,
    }
}

/// Rank 1 signals that it is ready; rank 0 copies and signals; rank 1 waits for that.
fn right() -> Vec<Program> {
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[1].queue(0).signal(0, 0).wait(0, 1);
    programs[0].queue(0).wait(1, 1).copy(receive(0, 0), receive(1, 0), 16).signal(1, 0);
    programs
}

/// Every seed must find the error, with this message.
fn caught(programs: &[Program], says: &str) {
    for seed in 0..20 {
        let what = run(&problem(), programs, true, seed).expect_err("must be found");
        assert!(what.contains(says), "{what}");
    }
}

#[test]
fn a_right_program_passes() {
    (0..100).for_each(|seed| run(&problem(), &right(), true, seed).expect("is right"));
}

#[test]
fn a_missing_ready_is_caught() {
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[1].queue(0).wait(0, 1);
    programs[0].queue(0).copy(receive(0, 0), receive(1, 0), 16).signal(1, 0);
    caught(&programs, "its round");
}

#[test]
fn a_missing_last_signal_is_caught() {
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[1].queue(0).signal(0, 0);
    programs[0].queue(0).wait(1, 1).copy(receive(0, 0), receive(1, 0), 16);
    // Found as an access after the end or, if rank 1 compares early, as a wrong result.
    caught(&programs, "round");
}

#[test]
fn a_pull_that_nobody_waits_for_is_caught() {
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[0].queue(0).signal(1, 0);
    programs[1].queue(0).wait(0, 1).copy(receive(0, 0), receive(1, 0), 16);
    caught(&programs, "its round");
    programs[1].queue(0).signal(0, 0);
    programs[0].queue(0).wait(1, 1);
    run(&problem(), &programs, true, 1).expect("now it is right");
}

#[test]
fn a_deadlock_is_caught() {
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[0].queue(0).wait(1, 1).signal(1, 0);
    programs[1].queue(0).wait(0, 1).signal(0, 0);
    caught(&programs, "deadlock: round 0");
}

#[test]
fn a_signal_that_nobody_waits_for_is_caught() {
    let mut programs = right();
    programs[1].queue(0).signal(0, 0);
    caught(&programs, "sends 2 signals to rank 0, queue 0, which waits for 1");
}

#[test]
fn a_signal_that_never_comes_is_caught() {
    let mut programs = right();
    programs[1].queue(0).wait(0, 2);
    caught(&programs, "sends 1 signals to rank 1, queue 0, which waits for 2");
}

#[test]
fn signals_of_two_queues_to_one_are_caught() {
    let mut programs = right();
    programs[0].queues.push(Vec::new());
    programs[0].queue(1).signal(1, 0);
    programs[1].queue(0).wait(0, 2);
    caught(&programs, "another queue of this rank");
}

#[test]
fn a_wrong_result_is_caught() {
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[1].queue(0).signal(0, 0).wait(0, 1);
    programs[0].queue(0).wait(1, 1).copy(receive(0, 4), receive(1, 0), 12).signal(1, 0);
    caught(&programs, "of the result is wrong");
}

#[test]
fn a_range_beyond_the_buffer_is_caught() {
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[1].queue(0).signal(0, 0).wait(0, 1);
    programs[0].queue(0).wait(1, 1).copy(receive(0, 0), receive(1, 4), 16).signal(1, 0);
    caught(&programs, "beyond its 16 bytes");
}

#[test]
fn a_race_of_two_queues_is_caught() {
    let mut programs = right();
    programs[1].scratch = 16;
    programs[0].queues.push(Vec::new());
    programs[0].queue(0).copy(receive(0, 0), scratch(1, 0), 8);
    programs[0].queue(1).copy(receive(0, 8), scratch(1, 4), 8);
    caught(&programs, "in a race with rank 0, queue");
}

#[test]
fn scratch_of_a_former_round_is_caught() {
    // Rank 0 copies early in each round, though rank 1 may not have read the bytes of the round
    // before.
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[1].scratch = 16;
    programs[0].queue(0).copy(receive(0, 0), scratch(1, 0), 16).signal(1, 0);
    programs[1].queue(0).wait(0, 1).copy(scratch(1, 0), receive(1, 0), 16);
    caught(&programs, "in a race with rank");

    let mut programs = right();
    programs[1].scratch = 16;
    programs[1].queue(0).copy(scratch(1, 0), receive(1, 0), 16).copy(
        receive(1, 0),
        scratch(1, 0),
        16,
    );
    caught(&programs, "nobody wrote in this round");
}

/// Rank 0 runs ahead by cells. There are `turns` copies of the cell, but rank 0 runs as far ahead
/// as if there were `ahead` copies.
fn ahead(turns: u32, ahead: u32) -> Vec<Program> {
    let cells = || Program { scratch: CELL, turns, ..Program::new(1) };
    let mut programs = vec![cells(), cells()];
    let root = &mut programs[0];
    root.queue(0)
        .wait_read(1, ahead, 4)
        .copy(receive(0, 0), scratch(1, 0), 16)
        .signal_cell(1, 0, 0);
    let other = &mut programs[1];
    other.queue(0).wait_cell(0, 0).copy(scratch(1, 0), receive(1, 0), 16).signal_every(0, 0, 4);
    programs
}

#[test]
fn a_rank_that_is_too_far_ahead_is_caught() {
    (0..20).for_each(|seed| run(&problem(), &ahead(16, 16), true, seed).expect("is right"));
    caught(&ahead(16, 20), "in a race with rank");
}

#[test]
fn a_reader_must_signal_in_time() {
    let mut programs = ahead(16, 16);
    let signal = programs[1].queues[0][0].signal.as_mut().expect("says what it has read");
    signal.every = 8;
    // The root waits in round 16 for a signal that the other rank now sends only in round 15. The
    // root may run later than without the change, but not too early.
    run(&problem(), &programs, true, 1).expect("is right, though late");
    programs[1].queues[0][0].signal.as_mut().expect("as above").every = 32;
    caught(&programs, "deadlock");
}

#[test]
fn a_cell_has_one_sender_and_a_word() {
    let mut programs = ahead(16, 16);
    programs[1].queues[0][0].wait.as_mut().expect("waits").cell = None;
    caught(&programs, "cells that are signalled");
    let mut programs = ahead(16, 16);
    programs[1].scratch = 60;
    caught(&programs, "has no cell 0 in its 60 bytes");
    let mut programs = ahead(16, 16);
    programs[1].queue(0).copy(scratch(1, 48), receive(1, 0), 16);
    caught(&programs, "touches the word of cell 0");
}

#[test]
fn an_algorithm_that_leaves_before_all_have_come_is_caught() {
    // Not a barrier: rank 0 signals rank 1 that it has come, and leaves.
    let problem = Problem { operation: Operation::Barrier, count: 0, ..problem() };
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[0].queue(0).signal(1, 0);
    programs[1].queue(0).wait(0, 1);
    let what = run(&problem, &programs, true, 1).expect_err("must be found");
    assert!(what.contains("before rank 1 has begun"), "{what}");
}

/// Moves each wait, one at a time, to the end of its queue. The numbers of signals still match, but
/// a step runs too early, or no step can run at all. So the simulator finds each missing wait, and
/// the algorithms have no needless waits.
fn every_wait_is_needed(algorithm: &Algorithm, problem: &Problem) {
    let programs = |rank| (algorithm.program)(problem, rank);
    let right: Vec<Program> = (0..problem.ranks).map(programs).collect();
    run(problem, &right, true, 1).expect("is right");
    for (rank, queue) in (0..problem.ranks).flat_map(|rank| (0..QUEUES).map(move |q| (rank, q))) {
        let steps = right[rank].queues.get(queue).map_or(0, Vec::len);
        for index in 0..steps {
            let mut wrong = right.clone();
            let steps = &mut wrong[rank].queues[queue];
            let Some(wait) = steps[index].wait.take() else { continue };
            // Only waits follow; their order does not matter.
            if steps[index..].iter().all(|step| *step == Step { wait: step.wait, ..NOTHING }) {
                continue;
            }
            steps.push(Step { wait: Some(wait), ..NOTHING });
            let what = run(problem, &wrong, true, 1);
            assert!(what.is_err(), "{}: rank {rank}, queue {queue}, step {index}", algorithm.name);
        }
    }
}

const NOTHING: Step = Step { wait: None, action: Action::Nothing, signal: None };

#[test]
fn a_wait_that_is_put_off_is_caught() {
    let problem =
        |operation, ranks, root, count| Problem { operation, ranks, root, count, ..problem() };
    for row in broadcast::ALGORITHMS {
        for (ranks, root, count) in [(2, 1, 30), (5, 3, 90), (12, 0, 301), (13, 7, 200)] {
            every_wait_is_needed(row, &problem(row.operation, ranks, root, count));
        }
    }
    // With other numbers of ranks dissemination has more signals than it needs. The tree is run
    // with two.
    for row in barrier::ALGORITHMS {
        for ranks in [4, 8, 16] {
            every_wait_is_needed(row, &problem(row.operation, ranks, 0, 0));
        }
    }
}

/// Runs all algorithms of an operation on all problems.
fn sweep_all(operation: Operation) {
    let rows = || all().filter(|row| row.operation == operation);
    assert!(rows().next().is_some(), "nothing to test");
    sweep(rows());
}

#[test]
fn every_barrier() {
    sweep_all(Operation::Barrier);
}

#[test]
fn every_broadcast() {
    sweep_all(Operation::Broadcast);
}

#[test]
fn every_reduce() {
    sweep_all(Operation::Reduce);
}

#[test]
fn every_allreduce() {
    sweep_all(Operation::Allreduce);
}

#[test]
fn every_gather() {
    sweep_all(Operation::Gather);
}

#[test]
fn every_scatter() {
    sweep_all(Operation::Scatter);
}

#[test]
fn every_allgather() {
    sweep_all(Operation::Allgather);
}

#[test]
fn every_alltoall() {
    sweep_all(Operation::Alltoall);
}

#[test]
fn every_reduce_scatter() {
    sweep_all(Operation::ReduceScatter);
}

#[test]
fn every_scan() {
    sweep_all(Operation::Scan);
}

#[test]
fn every_exscan() {
    sweep_all(Operation::Exscan);
}
