//! The choice of an algorithm: the first row of a table that fits the problem. To tune the choice,
//! change or add rows. An environment variable for each operation overrides it.

use crate::coll::algorithms::{Algorithm, all};
use crate::coll::nodes::Nodes;
use crate::coll::problem::{Operation, Problem};
use crate::fail;
use crate::util::config::{self, Config};
use crate::util::status::Result;

/// One row of a table.
pub struct Row {
    /// The operation.
    pub operation: Operation,
    /// Most ranks for which the row applies.
    pub ranks: usize,
    /// Most bytes, of the vector or of the largest block.
    pub bytes: u64,
    /// The name of the algorithm.
    pub algorithm: &'static str,
    /// Why, as llcl_coll_query() reports it.
    pub reason: &'static str,
}

const fn row(
    operation: Operation,
    ranks: usize,
    bytes: u64,
    algorithm: &'static str,
    reason: &'static str,
) -> Row {
    Row { operation, ranks, bytes, algorithm, reason }
}

const MANY: usize = usize::MAX;
const LARGE: u64 = u64::MAX;
/// The most ranks for which one rank can serve all others one after the other.
const FEW: usize = 16;
const FEW_TURNS: &str =
    "ranks that share cores: one serves all others, so each needs its core once";
const AHEAD: &str = "some KiB: who sends runs ahead of who receives";
const FEW_SIGNALS: &str = "many ranks and few bytes: signals to some ranks instead of all";
const ONE_SIGNAL: &str = "few ranks and bytes: all data comes with the first signal";
const ONCE: &str = "memory is shared, so each byte is copied once";
/// The most bytes that the eager forms send of buffers that peers do not map. The slots of these
/// forms take twice as much memory.
const TWICE: u64 = 2 << 20;
const COPIED_TWICE: &str = "peers do not map the buffers: two copies of each byte instead of three";
const COMBINED_ONCE: &str = "memory is shared, so everybody's vectors are combined where they lie";

/// The rows for ranks that share memory.
pub const TABLE: &[Row] = &[
    row(
        Operation::Barrier,
        4,
        LARGE,
        "dissemination",
        "up to 4 ranks two exchanges tell everybody",
    ),
    row(Operation::Barrier, MANY, LARGE, "tree", "a tree has the fewest signals"),
    row(Operation::Broadcast, 4, 2 << 10, "eager", AHEAD),
    row(Operation::Broadcast, 8, 16 << 10, "eager", AHEAD),
    row(
        Operation::Broadcast,
        MANY,
        2 << 10,
        "eager",
        "up to 2 KiB the root need not wait until the others are ready",
    ),
    row(Operation::Broadcast, MANY, LARGE, "direct", ONCE),
    row(Operation::Reduce, FEW, 4 << 10, "eager", AHEAD),
    row(Operation::Reduce, 256, 1 << 10, "eager", AHEAD),
    row(Operation::Reduce, MANY, LARGE, "direct", COMBINED_ONCE),
    row(Operation::Allreduce, 2, 512, "eager", ONE_SIGNAL),
    row(
        Operation::Allreduce,
        4,
        2 << 10,
        "recursive_doubling",
        "up to 4 ranks and 2 KiB few exchanges count more than few bytes",
    ),
    row(Operation::Allreduce, 64, 2 << 10, "direct", FEW_TURNS),
    row(
        Operation::Allreduce,
        MANY,
        2 << 10,
        "recursive_doubling",
        "many ranks and up to 2 KiB: few exchanges count more than few bytes",
    ),
    row(Operation::Allreduce, MANY, LARGE, "direct", COMBINED_ONCE),
    row(Operation::Gather, FEW, 8 << 10, "eager", AHEAD),
    row(Operation::Gather, 256, 1 << 10, "eager", AHEAD),
    row(Operation::Gather, MANY, LARGE, "direct", ONCE),
    row(Operation::Scatter, FEW, 8 << 10, "eager", AHEAD),
    row(Operation::Scatter, 256, 1 << 10, "eager", AHEAD),
    row(Operation::Scatter, MANY, LARGE, "direct", ONCE),
    row(Operation::Allgather, 4, 1 << 10, "eager", ONE_SIGNAL),
    row(Operation::Allgather, 8, 4 << 10, "bruck", FEW_SIGNALS),
    row(Operation::Allgather, 64, 1 << 10, "recursive_doubling", FEW_SIGNALS),
    row(Operation::Allgather, MANY, 1 << 10, "bruck", FEW_SIGNALS),
    row(Operation::Allgather, MANY, LARGE, "direct", ONCE),
    row(Operation::Alltoall, 4, 1 << 10, "eager", ONE_SIGNAL),
    row(Operation::Alltoall, 8, 1 << 10, "bruck", FEW_SIGNALS),
    row(Operation::Alltoall, FEW, 1 << 10, "eager", ONE_SIGNAL),
    row(Operation::Alltoall, MANY, LARGE, "direct", ONCE),
    row(Operation::ReduceScatter, 2, 2 << 10, "eager", ONE_SIGNAL),
    row(Operation::ReduceScatter, MANY, LARGE, "direct", COMBINED_ONCE),
    row(Operation::Scan, FEW, 8 << 10, "eager", AHEAD),
    row(Operation::Scan, 64, LARGE, "direct", COMBINED_ONCE),
    row(Operation::Scan, MANY, 64 << 10, "recursive_doubling", FEW_SIGNALS),
    row(Operation::Scan, MANY, LARGE, "direct", COMBINED_ONCE),
    row(Operation::Exscan, FEW, 8 << 10, "eager", AHEAD),
    row(Operation::Exscan, 64, LARGE, "direct", COMBINED_ONCE),
    row(Operation::Exscan, MANY, 64 << 10, "recursive_doubling", FEW_SIGNALS),
    row(Operation::Exscan, MANY, LARGE, "direct", COMBINED_ONCE),
];

/// The rows that come before TABLE if peers do not map the buffers of some rank.
pub const UNMAPPED: &[Row] = &[
    row(Operation::Broadcast, 2, TWICE, "eager", COPIED_TWICE),
    row(Operation::Reduce, 2, TWICE, "eager", COPIED_TWICE),
    row(Operation::Gather, 2, TWICE, "eager", COPIED_TWICE),
    row(Operation::Scatter, 2, TWICE, "eager", COPIED_TWICE),
    row(Operation::Allgather, 2, TWICE, "eager", COPIED_TWICE),
    row(Operation::Alltoall, 2, TWICE, "eager", COPIED_TWICE),
    row(Operation::ReduceScatter, 2, TWICE, "eager", COPIED_TWICE),
    row(Operation::Scan, 2, TWICE, "eager", COPIED_TWICE),
    row(Operation::Exscan, 2, TWICE, "eager", COPIED_TWICE),
];

const TRIPS: &str = "several nodes and few bytes: few messages one after the other";
const PER_LINK: &str = "several nodes: as few bytes as possible leave each rank";

/// The rows that come before TABLE if some ranks share no memory.
pub const POSTED: &[Row] = &[
    row(Operation::Barrier, MANY, LARGE, "dissemination", TRIPS),
    row(Operation::Broadcast, FEW, 64 << 10, "eager", AHEAD),
    row(Operation::Broadcast, MANY, 128 << 10, "binomial", TRIPS),
    row(Operation::Broadcast, MANY, LARGE, "scatter_allgather", PER_LINK),
    row(Operation::Reduce, FEW, 8 << 10, "eager", AHEAD),
    row(Operation::Reduce, MANY, LARGE, "binomial", TRIPS),
    row(Operation::Allreduce, MANY, 16 << 10, "recursive_doubling", TRIPS),
    row(Operation::Allreduce, MANY, LARGE, "rabenseifner", PER_LINK),
    row(Operation::Gather, FEW, 8 << 10, "eager", AHEAD),
    row(Operation::Gather, MANY, 8 << 10, "binomial", TRIPS),
    row(Operation::Gather, MANY, LARGE, "direct", PER_LINK),
    row(Operation::Scatter, FEW, 8 << 10, "eager", AHEAD),
    row(Operation::Scatter, MANY, 8 << 10, "binomial", TRIPS),
    row(Operation::Scatter, MANY, LARGE, "push", PER_LINK),
    row(Operation::Allgather, MANY, 8 << 10, "bruck", TRIPS),
    row(Operation::Allgather, MANY, LARGE, "ring", PER_LINK),
    row(Operation::Alltoall, MANY, 512, "bruck", TRIPS),
    row(Operation::Alltoall, MANY, LARGE, "pairwise", PER_LINK),
    row(Operation::ReduceScatter, FEW, 8 << 10, "eager", TRIPS),
    row(Operation::ReduceScatter, MANY, LARGE, "ring", PER_LINK),
    row(Operation::Scan, MANY, LARGE, "recursive_doubling", TRIPS),
    row(Operation::Exscan, MANY, LARGE, "recursive_doubling", TRIPS),
];

const ONE_MESSAGE: &str = "nodes of several ranks: one message for each pair of nodes";
const ONCE_PER_NODE: &str = "nodes of several ranks: each byte comes to a node once";

/// The rows that come before POSTED if some ranks share memory and others do not. docs/figures.md
/// compares them with a run of bench_c/tune over two nodes.
pub const LEVELS: &[Row] = &[
    row(Operation::Barrier, MANY, LARGE, "two_level", "nodes of several ranks: few messages"),
    row(Operation::Broadcast, MANY, LARGE, "two_level", ONCE_PER_NODE),
    row(Operation::Reduce, MANY, LARGE, "two_level", ONCE_PER_NODE),
    row(Operation::Allreduce, MANY, LARGE, "two_level", ONCE_PER_NODE),
    row(Operation::Allgather, MANY, LARGE, "two_level", ONCE_PER_NODE),
    row(Operation::Alltoall, FEW, 16 << 10, "two_level", ONE_MESSAGE),
    row(Operation::Alltoall, 256, 512, "two_level", ONE_MESSAGE),
    row(Operation::ReduceScatter, FEW, 1 << 20, "two_level", ONCE_PER_NODE),
    row(Operation::ReduceScatter, MANY, 8 << 10, "two_level", ONCE_PER_NODE),
];

/// The rows that come before TABLE. `unmapped`: peers do not map the buffers of some rank. `nodes`:
/// the nodes of the problem.
pub fn rows_first<'a>(
    unmapped: bool,
    nodes: Option<&Nodes>,
) -> impl Iterator<Item = &'a Row> + use<'a> {
    let rows: [&[Row]; 2] = match nodes {
        Some(nodes) if nodes.are_single() => [&[], POSTED],
        Some(_) => [LEVELS, POSTED],
        None => [&[], if unmapped { UNMAPPED } else { &[] }],
    };
    rows.into_iter().flatten()
}

/// The operations, their names, and the values of their variables.
pub const OPERATIONS: &[(Operation, &str, &[&str])] = &[
    (Operation::Barrier, "barrier", config::BARRIERS),
    (Operation::Broadcast, "broadcast", config::BROADCASTS),
    (Operation::Reduce, "reduce", config::REDUCES),
    (Operation::Allreduce, "allreduce", config::ALLREDUCES),
    (Operation::Gather, "gather", config::GATHERS),
    (Operation::Scatter, "scatter", config::SCATTERS),
    (Operation::Allgather, "allgather", config::ALLGATHERS),
    (Operation::Alltoall, "alltoall", config::ALLTOALLS),
    (Operation::ReduceScatter, "reduce_scatter", config::REDUCE_SCATTERS),
    (Operation::Scan, "scan", config::SCANS),
    (Operation::Exscan, "exscan", config::EXSCANS),
];

/// The name of an operation, as in the names of variables and C functions.
pub fn name(operation: Operation) -> &'static str {
    name_of(operation as u64)
}

/// The name of the operation of this number, which another rank may have sent.
pub fn name_of(number: u64) -> &'static str {
    OPERATIONS.get(number as usize).map_or("an unknown one", |row| row.1)
}

/// The algorithm that the configuration names; None if it leaves the choice to the tables.
pub fn forced(config: &Config, operation: Operation) -> Option<&'static str> {
    let word = match operation {
        Operation::Barrier => config.coll_barrier,
        Operation::Broadcast => config.coll_broadcast,
        Operation::Reduce => config.coll_reduce,
        Operation::Allreduce => config.coll_allreduce,
        Operation::Gather => config.coll_gather,
        Operation::Scatter => config.coll_scatter,
        Operation::Allgather => config.coll_allgather,
        Operation::Alltoall => config.coll_alltoall,
        Operation::ReduceScatter => config.coll_reduce_scatter,
        Operation::Scan => config.coll_scan,
        Operation::Exscan => config.coll_exscan,
    };
    (word > 0).then(|| OPERATIONS[operation as usize].2[word as usize])
}

/// The algorithm for a problem, and the reason. If `forced` is not "auto", it is the algorithm of
/// that name. Otherwise it is that of the first row that fits, in `rows` and then in TABLE. Without
/// such a row it is the first algorithm that fits. `ordered`: vectors must be combined in the order
/// of ranks.
pub fn choose<'a>(
    rows: impl IntoIterator<Item = &'a Row>,
    problem: &Problem,
    forced: Option<&str>,
    ordered: bool,
) -> Result<(&'static Algorithm, &'static str)> {
    let posted = problem.nodes.is_some();
    let suits = |row: &Algorithm| {
        (row.ordered || !ordered) && !(row.pulls && posted) && (row.fits)(problem)
    };
    let (operation, bytes) = (problem.operation, problem.largest());
    if let Some(called) = forced.filter(|called| *called != "auto") {
        let found = named(operation, called)?;
        if !suits(found) {
            let (what, names) = (describe(problem, ordered), names(operation, suits));
            fail!(ERR_UNSUPPORTED, "{called} cannot do this {what}, expected {names}");
        }
        return Ok((found, "it was asked for by name"));
    }
    let rows = rows.into_iter().chain(TABLE).filter(|row| row.operation == operation);
    for row in rows.filter(|row| problem.ranks <= row.ranks && bytes <= row.bytes) {
        if let Some(found) = find(operation, row.algorithm).filter(|found| suits(found)) {
            return Ok((found, row.reason));
        }
    }
    match all().find(|row| row.operation == operation && suits(row)) {
        Some(found) => Ok((found, "the table's choice cannot do this, but this algorithm can")),
        None => fail!(ERR_UNSUPPORTED, "no algorithm can do this {}", describe(problem, ordered)),
    }
}

/// The algorithm of this name, whether it fits a problem or not.
pub fn named(operation: Operation, called: &str) -> Result<&'static Algorithm> {
    match find(operation, called) {
        Some(found) => Ok(found),
        None => {
            let (names, name) = (names(operation, |_| true), name(operation));
            fail!(ERR_INVALID, "{name} has no algorithm \"{called}\", expected {names}")
        }
    }
}

fn find(operation: Operation, called: &str) -> Option<&'static Algorithm> {
    all().find(|row| row.operation == operation && row.name == called)
}

/// "one of" and the names of those algorithms of an operation for which `wanted` is true.
fn names(operation: Operation, wanted: impl Fn(&Algorithm) -> bool) -> String {
    let rows = all().filter(|row| row.operation == operation && wanted(row));
    let names: Vec<_> = ["auto"].into_iter().chain(rows.map(|row| row.name)).collect();
    format!("one of {}", names.join(", "))
}

/// The properties of a problem that decide which algorithms fit, for messages.
fn describe(problem: &Problem, ordered: bool) -> String {
    let place = if problem.in_place { " in place" } else { "" };
    let blocks = if problem.varied.is_some() { " with a count for each rank" } else { "" };
    let order = if ordered { " in the order of ranks" } else { "" };
    let nodes = if problem.nodes.is_some() { " on several nodes" } else { "" };
    format!(
        "{}{place}{blocks}{order} of {} ranks{nodes} and {} bytes",
        name(problem.operation),
        problem.ranks,
        problem.largest()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::problem::{Block, Row as Blocks, Varied};
    use crate::coll::schedule::QUEUES;
    use crate::util::status::Status;
    use std::sync::Arc;

    fn problem(operation: Operation, ranks: usize, count: u64) -> Problem {
        Problem {
            operation,
            ranks,
            root: 0,
            count,
            width: 8,
            segment: 1 << 16,
            in_place: false,
            queues: QUEUES,
            varied: None,
            nodes: None,
        }
    }

    #[test]
    fn the_words_of_the_variables_are_the_names_of_the_algorithms() {
        for (at, (operation, called, words)) in OPERATIONS.iter().enumerate() {
            assert_eq!(*operation as usize, at);
            let rows = all().filter(|row| row.operation == *operation).map(|row| row.name);
            let names: Vec<_> = ["auto"].into_iter().chain(rows).collect();
            assert_eq!(names, *words, "{called}: of the algorithms and of util/config");
            let variable = format!("LLCL_COLL_{}", called.to_uppercase());
            let row = config::TABLE.iter().find(|row| row.name == variable).expect(&variable);
            assert!(matches!(row.kind, config::Kind::Words(found) if found == *words));
            assert_eq!(forced(&Config::from_environment().unwrap(), *operation), None);
        }
    }

    #[test]
    fn every_row_names_an_algorithm_and_can_be_reached() {
        let named = |row: &Row| find(row.operation, row.algorithm).map(|found| found.operation);
        assert!(
            UNMAPPED
                .iter()
                .chain(POSTED)
                .chain(LEVELS)
                .all(|row| named(row) == Some(row.operation))
        );
        let pulls = |row: &Row| find(row.operation, row.algorithm).is_none_or(|found| found.pulls);
        assert!(!POSTED.iter().chain(LEVELS).any(pulls));
        for (at, row) in TABLE.iter().enumerate() {
            let found = find(row.operation, row.algorithm);
            assert!(found.is_some(), "{} {}", name(row.operation), row.algorithm);
            let mut earlier = TABLE[..at].iter().filter(|other| other.operation == row.operation);
            assert!(!earlier.any(|e| e.ranks >= row.ranks && e.bytes >= row.bytes), "row {at}");
        }
        for (operation, ..) in OPERATIONS {
            let last = TABLE.iter().rfind(|row| row.operation == *operation).unwrap();
            assert_eq!((last.ranks, last.bytes), (MANY, LARGE), "{}", name(*operation));
        }
    }

    #[test]
    fn the_first_row_that_fits_wins() {
        let chosen = |ranks, count| {
            choose(&[], &problem(Operation::Allreduce, ranks, count), None, false).unwrap().0.name
        };
        assert_eq!((chosen(2, 64), chosen(2, 65)), ("eager", "recursive_doubling"));
        assert_eq!((chosen(3, 256), chosen(3, 257)), ("recursive_doubling", "direct"));
        let barrier =
            |ranks| choose(&[], &problem(Operation::Barrier, ranks, 0), None, false).unwrap();
        assert_eq!((barrier(4).0.name, barrier(5).0.name), ("dissemination", "tree"));
    }

    #[test]
    fn everything_that_can_be_asked_is_solved() {
        for (operation, ..) in OPERATIONS {
            for (ranks, count) in [(2, 0), (3, 1), (8, 100), (33, 1 << 20)] {
                for turn in 0..12 {
                    let (in_place, ordered) = (turn & 1 == 1, turn & 2 == 2);
                    let node = |rank: usize| if turn < 8 { rank } else { rank % 2 };
                    let nodes = Nodes::new((0..ranks).map(node));
                    let nodes = (turn >= 4).then(|| Arc::new(nodes));
                    let problem = Problem { in_place, nodes, ..problem(*operation, ranks, count) };
                    let rows = rows_first(false, problem.nodes.as_deref());
                    let (found, reason) = choose(rows, &problem, Some("auto"), ordered).unwrap();
                    assert!((found.fits)(&problem) && (found.ordered || !ordered));
                    assert!(!found.pulls || problem.nodes.is_none());
                    let fits = |row: &Row| row.ranks >= ranks && row.bytes >= problem.bytes();
                    let levels = LEVELS.iter().any(|row| row.operation == *operation && fits(row));
                    assert!(
                        turn < 8 || ranks < 3 || !levels || ordered || found.name == "two_level"
                    );
                    assert!(turn >= 8 || found.name != "two_level");
                    assert!(!reason.is_empty());
                }
            }
        }
    }

    #[test]
    fn a_bad_name_is_told_with_the_good_ones() {
        let gather = problem(Operation::Gather, 4, 10);
        assert_eq!(choose(&[], &gather, Some("binomial"), false).unwrap().0.name, "binomial");
        let error = choose(&[], &gather, Some("ring"), false).err().unwrap();
        assert_eq!(error.status, Status::ERR_INVALID);
        assert_eq!(
            error.message(),
            "gather has no algorithm \"ring\", expected one of auto, direct, binomial, eager"
        );
        let row = vec![Blocks::One(Block::default()); 4];
        let varied = Some(Varied { send: row.clone(), receive: row, largest: 0 });
        let error =
            choose(&[], &Problem { varied, ..gather }, Some("binomial"), false).err().unwrap();
        assert_eq!(error.status, Status::ERR_UNSUPPORTED);
        assert_eq!(
            error.message(),
            "binomial cannot do this gather with a count for each rank of 4 ranks and 0 bytes, expected \
             one of auto, direct"
        );
    }

    #[test]
    fn operations_that_do_not_commute_are_combined_in_order() {
        let allreduce = problem(Operation::Allreduce, 3, 1 << 20);
        assert!(choose(&[], &allreduce, None, true).unwrap().0.ordered);
        let error = choose(&[], &allreduce, Some("ring"), true).err().unwrap();
        assert!(
            error.message().starts_with("ring cannot do this allreduce in the order of ranks of")
        );
    }
}
