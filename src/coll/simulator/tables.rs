//! Problems of v forms: as each rank knows them, and with the tables of all ranks.

use crate::coll::problem::{Block, Problem, Varied};
use crate::coll::tables::{Given, Received, encode, rows};

/// The tables that one rank gives, in elements.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its own count.
    pub count: u64,
    /// The blocks of its input.
    pub send: Vec<Block>,
    /// The blocks of its output.
    pub receive: Vec<Block>,
}

impl Table {
    /// The tables in the form of the library.
    pub fn given(&self) -> Given<'_> {
        Given { count: self.count, send: &self.send, receive: &self.receive }
    }
}

/// The problem as each rank knows it.
pub fn received(problem: &Problem, tables: &[Table]) -> Vec<Problem> {
    let words = tables.iter().map(|table| encode(problem, table.given())).collect::<Vec<_>>();
    let row = |at: usize| words.iter().map(|words| words[at]).collect::<Vec<_>>();
    let rows = (0..words[0].len()).map(row).collect::<Vec<_>>();
    let by_rank = |rank: usize| {
        let mut received = Received::new(problem, rank);
        rows.iter().enumerate().for_each(|(at, row)| received.take(at, row));
        let varied = received.blocks(tables[rank].given()).expect("tables that fit together");
        Problem { varied: Some(varied), ..problem.clone() }
    };
    (0..problem.ranks).map(by_rank).collect()
}

/// The problem with all blocks of all ranks.
pub fn whole(problem: &Problem, tables: &[Table]) -> Problem {
    let row = |(rank, table): (usize, &Table)| {
        let (send, receive) = rows(problem, rank, table.given());
        (send.in_bytes(problem.width), receive.in_bytes(problem.width))
    };
    let (send, receive) = tables.iter().enumerate().map(row).unzip();
    Problem { varied: Some(Varied { send, receive, largest: 0 }), ..problem.clone() }
}
