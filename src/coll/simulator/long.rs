//! Reductions of vectors so long that their algorithms use all their queues.

use super::check;
use crate::coll::algorithms::all;
use crate::coll::problem::Operation::*;
use crate::coll::problem::Problem;
use crate::coll::schedule::QUEUES;

#[test]
fn long_vectors_in_all_their_queues() {
    for algorithm in all() {
        if !matches!(algorithm.operation, Reduce | Allreduce | ReduceScatter | Scan | Exscan) {
            continue;
        }
        let mut most = 0;
        for ranks in 2..=9 {
            for (turn, count) in [160, 333, 401].into_iter().enumerate() {
                let problem = Problem {
                    operation: algorithm.operation,
                    ranks,
                    root: if algorithm.operation == Reduce { turn % ranks } else { 0 },
                    count,
                    width: 4,
                    segment: 12,
                    in_place: (ranks + turn).is_multiple_of(2),
                    queues: if turn == 1 { 1 } else { QUEUES },
                    varied: None,
                    nodes: None,
                };
                most = most.max((algorithm.program)(&problem, ranks - 1).queues.len());
                check(algorithm, &problem, None);
            }
        }
        let one = [(ReduceScatter, "ring"), (ReduceScatter, "pairwise"), (Reduce, "binomial")];
        let one = ["recursive_doubling", "eager", "two_level"].contains(&algorithm.name)
            || one.contains(&(algorithm.operation, algorithm.name));
        assert_eq!(most, if one { 1 } else { 4 }, "{}", algorithm.name);
    }
}
