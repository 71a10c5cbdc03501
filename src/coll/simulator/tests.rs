//! The simulator catches what it should: programs that are nearly right.

use super::{run, sweep};
use crate::coll::algorithms::all;
use crate::coll::problem::{Operation, Problem};
use crate::coll::schedule::{Program, receive, scratch};

/// A broadcast of 16 bytes from rank 0 to one other.
fn problem() -> Problem {
    Problem {
        operation: Operation::Broadcast,
        ranks: 2,
        root: 0,
        count: 4,
        width: 4,
        segment: 64,
        in_place: false,
        varied: None,
    }
}

/// Rank 1 is ready; rank 0 pushes and tells; rank 1 has it.
fn right() -> Vec<Program> {
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[1].queue(0).signal(0, 0).wait(0, 1);
    programs[0].queue(0).wait(1, 1).copy(receive(0, 0), receive(1, 0), 16).signal(1, 0);
    programs
}

/// The error must be there for each of some seeds, and say this.
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
    // Seen as a touch after the end or, where rank 1 looks early, as a wrong result.
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
    // Rank 0 pushes early and again and again, though rank 1 may not have read the former round's bytes.
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

#[test]
fn an_algorithm_that_leaves_before_all_have_come_is_caught() {
    // Not a barrier: rank 0 tells rank 1 that it is there, and goes.
    let problem = Problem { operation: Operation::Barrier, count: 0, ..problem() };
    let mut programs = vec![Program::new(1), Program::new(1)];
    programs[0].queue(0).signal(1, 0);
    programs[1].queue(0).wait(0, 1);
    let what = run(&problem, &programs, true, 1).expect_err("must be found");
    assert!(what.contains("before rank 1 has begun"), "{what}");
}

/// Runs all algorithms of an operation on all problems.
fn sweep_all(operation: Operation) {
    let rows = || all().filter(|row| row.operation == operation);
    sweep(rows());
    assert!(rows().next().is_some(), "nothing to test");
}

#[test]
fn every_barrier() {
    sweep_all(Operation::Barrier);
}

#[test]
fn every_broadcast() {
    sweep_all(Operation::Broadcast);
}
