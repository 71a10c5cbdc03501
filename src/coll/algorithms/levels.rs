//! Algorithms of two levels. A rank's program is a list of parts, one after the other: each is the
//! program that an algorithm makes for some of the ranks, those of one node, or one of each node.
//! Parts of a node may read its ranks' memory, those between nodes only put.
//!
//! In a part ranks are numbered by their places in its list. Its steps stand in the only queue,
//! so a rank begins a part when it has ended the one before. What a rank waits for is counted on
//! from part to part; so two ranks may signal each other in several parts, if none of these uses
//! cells or late waits between them.

use super::alone::ALONE;
use super::blocks::others;
use super::vectors::dissemination;
use crate::coll::nodes::Nodes;
use crate::coll::problem::Problem;
use crate::coll::schedule::{Action, Appender, CELL, Place, Program, Signal, Space, Step, Wait};
use std::borrow::Cow;
use std::collections::HashMap;

/// What one rank does of an algorithm for some of the ranks.
pub struct Part<'a> {
    ranks: Vec<usize>,
    program: Program,
    /// Where the part's Send and Receive lie.
    place: Box<dyn Fn(Place) -> Place + 'a>,
    /// Its scratch memory is what the rank keeps for all parts.
    keeps: bool,
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
        Part { ranks: ranks.to_vec(), program, place: Box::new(|place| place), keeps: false }
    }

    /// Steps of `rank` as one of these ranks, which `fill` appends, given its place among them.
    /// Their scratch memory is what [`Parts::kept`] says.
    pub fn steps(
        rank: usize,
        ranks: &[usize],
        fill: impl FnOnce(&mut Appender, usize),
    ) -> Part<'a> {
        let mut program = Program::new(1);
        if let Some(index) = ranks.iter().position(|other| *other == rank) {
            fill(&mut program.queue(0), index);
        }
        let place = Box::new(|place| place);
        Part { ranks: ranks.to_vec(), program, place, keeps: true }
    }

    /// With so many scratch memories in turn.
    pub fn in_turns(mut self, turns: u32) -> Part<'a> {
        self.program.turns = turns;
        self
    }

    /// With its inputs and outputs where `place` says, given where they would lie, by ranks of the
    /// team.
    pub fn at(self, place: impl Fn(Place) -> Place + 'a) -> Part<'a> {
        Part { place: Box::new(place), ..self }
    }
}

/// All parts of a rank, as many at each.
pub struct Parts<'a> {
    /// Bytes at the beginning of the rank's scratch memory that parts name as their inputs and
    /// outputs, and that steps of [`Part::steps`] name as scratch memory.
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
        let mut base = |rank: usize| match part.keeps {
            true => 0,
            false => bases.entry(rank).or_insert_with(|| of(rank).bases())[number],
        };
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

/// The beginning of a part in which the first `owners` ranks of a node work for all: behind it an
/// owner knows that all have come.
pub fn come(queue: &mut Appender, ranks: usize, rank: usize, owners: usize) {
    match owners {
        1 if rank > 0 => _ = queue.signal(0, 0),
        1 => (1..ranks).for_each(|peer| _ = queue.wait(peer, 1)),
        _ => dissemination(queue, ranks, rank, 0, 1),
    }
}

/// A part in which the owners `give` something to each other rank of their node, of which they know
/// that it has come.
pub fn hand_out(
    queue: &mut Appender,
    (ranks, rank, owners): (usize, usize, usize),
    give: impl Fn(&mut Appender, usize),
) {
    for peer in others(rank, ranks).filter(|_| rank < owners) {
        give(queue, peer);
        if owners == 1 {
            queue.signal(peer, 0);
        }
    }
    match owners {
        1 if rank > 0 => _ = queue.wait(0, 1),
        1 => {}
        _ => dissemination(queue, ranks, rank, 0, 1),
    }
}

/// Neighbouring ranks among those in order: the first of each run, and how many there are.
pub fn runs(ranks: &[usize]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == rank => *count += 1,
            _ => runs.push((rank, 1)),
        }
    }
    runs
}

/// Whether so many bytes are short, which are at most `most` and a segment: so problems with short
/// segments are done in all ways.
pub fn is_short(problem: &Problem, bytes: u64, most: u64) -> bool {
    bytes <= most.min(problem.segment)
}
