//! Algorithms of two levels. A rank's program is a list of parts, one after the other: each is the
//! program that an algorithm makes for some of the ranks, those of one node, or one of each node.
//! Parts of a node may read its ranks' memory, those between nodes only put.
//!
//! In a part ranks are numbered by their places in its list. Its steps stand in the only queue,
//! so a rank begins a part when it has ended the one before. What a rank waits for is counted on
//! from part to part; so two ranks may signal each other in several parts, if none of these uses
//! cells or late waits between them.

use super::alone::ALONE;
use crate::coll::nodes::Nodes;
use crate::coll::problem::Problem;
use crate::coll::schedule::{Action, CELL, Place, Program, Signal, Space, Step, Wait};
use std::borrow::Cow;
use std::collections::HashMap;

/// What one rank does of an algorithm for some of the ranks.
pub struct Part<'a> {
    ranks: Vec<usize>,
    program: Program,
    /// Where the part's Send and Receive lie.
    place: Box<dyn Fn(Place) -> Place + 'a>,
}

impl<'a> Part<'a> {
    /// What `rank` does of `algorithm` for these ranks; nothing if it is none of them. Of the
    /// problem the numbers of ranks, queues and nodes are those of the part.
    pub fn new(
        rank: usize,
        ranks: &[usize],
        problem: Problem,
        algorithm: impl Fn(&Problem, usize) -> Program,
    ) -> Part<'a> {
        let index = ranks.iter().position(|other| *other == rank);
        let problem = Problem { ranks: ranks.len(), queues: 1, nodes: None, ..problem };
        let program = match (index, ranks.len()) {
            (None, _) => Program::new(1),
            (Some(index), 1) => (ALONE.program)(&problem, index),
            (Some(index), _) => algorithm(&problem, index),
        };
        Part { ranks: ranks.to_vec(), program, place: Box::new(|place| place) }
    }

    /// With its inputs and outputs where `place` says, given where they would lie, by ranks of the
    /// team.
    pub fn at(self, place: impl Fn(Place) -> Place + 'a) -> Part<'a> {
        Part { place: Box::new(place), ..self }
    }
}

/// All parts of a rank, as many at each.
pub struct Parts<'a> {
    /// Bytes at the beginning of the rank's scratch memory that the parts name as their inputs and
    /// outputs.
    pub kept: u64,
    /// In their order.
    pub parts: Vec<Part<'a>>,
}

impl Parts<'_> {
    /// Where in the rank's scratch memory that of each part begins, and where the last one ends.
    fn bases(&self) -> Vec<u64> {
        let mut bases = vec![self.kept.next_multiple_of(CELL)];
        for part in &self.parts {
            let end = bases[bases.len() - 1] + part.program.scratch;
            bases.push(end.next_multiple_of(CELL));
        }
        bases
    }
}

/// The program of `rank`, whose parts `of` makes, as those of every rank.
pub fn in_turn<'a>(rank: usize, of: impl Fn(usize) -> Parts<'a>) -> Program {
    let own = of(rank);
    let mut bases = HashMap::from([(rank, own.bases())]);
    let scratch = bases[&rank][own.parts.len()];
    let mut program = Program { scratch, ..Program::new(1) };
    // By rank how many of its signals the parts so far have waited for.
    let mut waited: HashMap<usize, u32> = HashMap::new();
    for (number, part) in own.parts.iter().enumerate() {
        debug_assert!(part.program.queues.len() == 1, "a part has one queue");
        let mut base = |rank: usize| bases.entry(rank).or_insert_with(|| of(rank).bases())[number];
        let before = waited.clone();
        for step in part.program.queues.iter().flatten() {
            let step = part.step(step, (rank, &before), &mut base);
            if let Some(wait) = step.wait.filter(|wait| wait.late == 0) {
                let most = waited.entry(wait.from).or_default();
                *most = wait.count.max(*most);
            }
            program.queues[0].push(step);
        }
        program.turns = program.turns.max(part.program.turns);
    }
    program
}

impl Part<'_> {
    /// A step of the part as one of `rank`, which has waited for so many signals before. `base`:
    /// where the part's scratch memory begins at a rank.
    fn step(
        &self,
        step: &Step,
        (rank, before): (usize, &HashMap<usize, u32>),
        base: &mut impl FnMut(usize) -> u64,
    ) -> Step {
        let mut cell = |rank: usize, cell: u32| (base(rank) / CELL) as u32 + cell;
        let wait = step.wait.map(|wait| {
            let from = self.ranks[wait.from];
            let earlier = if wait.late == 0 { before.get(&from).copied() } else { None };
            let count = wait.count + earlier.unwrap_or(0);
            Wait { from, count, cell: wait.cell.map(|number| cell(rank, number)), ..wait }
        });
        let signal = step.signal.map(|signal| {
            let rank = self.ranks[signal.rank];
            Signal { rank, cell: signal.cell.map(|number| cell(rank, number)), ..signal }
        });
        let mut place = |place: Place| {
            let rank = self.ranks[place.rank];
            match place.space {
                Space::Scratch => Place { rank, ..place }.plus(base(rank)),
                Space::Send | Space::Receive => (self.place)(Place { rank, ..place }),
            }
        };
        let action = match step.action {
            Action::Nothing => Action::Nothing,
            Action::Copy { from, to, size } => {
                Action::Copy { from: place(from), to: place(to), size }
            }
            Action::Combine { left, right, to, size } => {
                Action::Combine { left: place(left), right: place(right), to: place(to), size }
            }
        };
        Step { wait, action, signal }
    }
}

/// The nodes of a problem's ranks: one where all share memory.
pub fn nodes(problem: &Problem) -> Cow<'_, Nodes> {
    match problem.nodes.as_deref() {
        Some(nodes) => Cow::Borrowed(nodes),
        None => Cow::Owned(Nodes::one(problem.ranks)),
    }
}
