//! Tables that agree and tables that do not, and the memory that 1,000 of them take at one rank.

use super::*;
use crate::coll::algorithms::all;
use crate::coll::runner::record::compile;
use crate::coll::schedule::QUEUES;
use crate::util::counted::peak;

const ROOT: usize = 1;

fn problem(operation: Operation, ranks: usize, in_place: bool) -> Problem {
    let (root, count, width, segment) = (ROOT, 0, 8, 64 << 10);
    Problem {
        operation,
        ranks,
        root,
        count,
        width,
        segment,
        in_place,
        queues: QUEUES,
        varied: None,
        nodes: None,
    }
}

/// The elements that rank `from` gives rank `to`; all tables follow from this function.
fn size(problem: &Problem, from: usize, to: usize) -> u64 {
    match problem.operation {
        Operation::Gather | Operation::Allgather => from as u64 % 4,
        Operation::Scatter | Operation::ReduceScatter => to as u64 % 4,
        _ => (from + to) as u64 % 4,
    }
}

/// The tables of a rank; all blocks lie four elements apart.
fn words(problem: &Problem, rank: usize) -> (Vec<Block>, Vec<Block>, u64) {
    let ranks = 0..problem.ranks;
    let block = |peer: usize, size: u64| Block { offset: 4 * peer as u64, size };
    let send = ranks.clone().map(|peer| block(peer, size(problem, rank, peer))).collect();
    let from = |peer| match problem.operation {
        Operation::ReduceScatter => size(problem, rank, peer),
        _ => size(problem, peer, rank),
    };
    let receive = ranks.map(|peer| block(peer, from(peer))).collect();
    (send, receive, rank as u64 % 4)
}

/// The blocks that a rank keeps of all tables, or the first contradiction that a rank has found.
fn receive_all(
    problem: &Problem,
    me: usize,
    sent: &[Vec<u64>],
    clashes: &[Clash],
) -> Result<Varied> {
    let mut received = take_all(problem, me, sent);
    clashes.iter().for_each(|clash| received.note(*clash));
    let (send, receive, count) = words(problem, me);
    received.blocks(Given { count, send: &send, receive: &receive })
}

fn take_all<'a>(problem: &'a Problem, me: usize, sent: &[Vec<u64>]) -> Received<'a> {
    let mut received = Received::new(problem, me);
    let mut row = vec![0; problem.ranks];
    for at in 0..sent[0].len() {
        row.iter_mut().zip(sent).for_each(|(to, words)| *to = words[at]);
        received.take(at, &row);
    }
    received
}

fn clashes(problem: &Problem, sent: &[Vec<u64>]) -> Vec<Clash> {
    let alltoall = problem.operation == Operation::Alltoall;
    let clash = |me| {
        let (send, receive, count) = words(problem, me);
        let given = Given { count, send: &send, receive: &receive };
        take_all(problem, me, sent).compare_own(given)
    };
    (0..if alltoall { problem.ranks } else { 0 }).map(clash).collect()
}

fn all_words(problem: &Problem) -> Vec<Vec<u64>> {
    let of_rank = |rank| {
        let (send, receive, count) = words(problem, rank);
        encode(problem, Given { count, send: &send, receive: &receive })
    };
    (0..problem.ranks).map(of_rank).collect()
}

const OPERATIONS: [(Operation, bool); 7] = [
    (Operation::Gather, false),
    (Operation::Scatter, true),
    (Operation::Allgather, false),
    (Operation::Allgather, true),
    (Operation::Alltoall, false),
    (Operation::Alltoall, true),
    (Operation::ReduceScatter, false),
];

/// A rank that kept all tables would need 16 to 64 MB.
#[test]
fn a_v_form_of_a_thousand_ranks_takes_memory_for_a_thousand_blocks() {
    const RANKS: usize = 1000;
    for (operation, in_place) in OPERATIONS {
        let problem = problem(operation, RANKS, in_place);
        let sent = all_words(&problem);
        for me in [0, ROOT, 999] {
            let (varied, most) = peak(|| receive_all(&problem, me, &sent, &[]).unwrap());
            assert!(most < 300 * RANKS, "{operation:?}, rank {me}: {most} bytes to receive");
            let problem = Problem { varied: Some(varied), ..problem.clone() };
            let fits = all().filter(|row| row.operation == operation && (row.fits)(&problem));
            for algorithm in fits {
                let made = || compile(&(algorithm.program)(&problem, me)).len();
                let (steps, most) = peak(made);
                let what = format!("{operation:?} {} at {me}, {steps} steps", algorithm.name);
                assert!(most < 1500 * RANKS, "{what}: {most} bytes to make");
            }
        }
    }
}

/// One number of one rank is changed: all ranks must return the same message.
#[test]
fn a_size_that_does_not_fit_is_reported_with_both_ranks() {
    for (operation, in_place) in OPERATIONS {
        let problem = problem(operation, 5, in_place);
        let rooted = matches!(operation, Operation::Gather | Operation::Scatter);
        let (wrong, peer) = (if rooted { ROOT } else { 3 }, 2);
        let mut sent = all_words(&problem);
        let refusals = |sent: &[Vec<u64>]| {
            let clashes = clashes(&problem, sent);
            let received = |me| receive_all(&problem, me, sent, &clashes).err();
            let refusal = |me| received(me).map(|error| error.message().into());
            (0..5).filter_map(refusal).collect::<Vec<String>>()
        };
        assert!(refusals(&sent).is_empty(), "{operation:?}");
        sent[wrong][2 + 2 * peer] += 1;
        let refused = refusals(&sent);
        assert_eq!(refused.len(), 5, "{operation:?} {in_place}: {refused:?}");
        assert!(refused.iter().all(|what| *what == refused[0]), "{refused:?}");
        assert!(refused[0].starts_with("rank ") && refused[0].contains(" elements for rank "));
    }
}

#[test]
fn all_ranks_learn_the_largest_block() {
    for (operation, in_place) in OPERATIONS {
        let problem = problem(operation, 7, in_place);
        let mut sent = all_words(&problem);
        if in_place && matches!(operation, Operation::Gather | Operation::Scatter) {
            // The root gives no block of its own.
            sent[ROOT][0] = u64::MAX;
        }
        for me in 0..7 {
            assert_eq!(
                receive_all(&problem, me, &sent, &[]).unwrap().largest,
                3 * 8,
                "{operation:?} at {me}"
            );
        }
    }
}
