//! Algorithms of two levels. A rank's program is a list of parts, run one after the other. A part
//! is the program that some algorithm makes for a list of ranks: the ranks of one node, or one rank
//! of each node. Parts inside a node may read the memory of its ranks; parts between nodes only
//! put.
//!
//! In a part, ranks are numbered by their places in its list. All parts of a rank are in one queue,
//! so the rank begins a part when it has ended the one before. The counts of signals that a rank
//! waits for continue from part to part. So two ranks may signal each other in several parts,
//! unless these parts use cells or late waits between the two.

use super::alone::ALONE;
use super::blocks::others;
use super::vectors::dissemination;
use crate::coll::nodes::Nodes;
use crate::coll::problem::Problem;
use crate::coll::schedule::{Action, Appender, CELL, Place, Program, Signal, Space, Step, Wait};
use std::borrow::Cow;
use std::collections::HashMap;

/// The part of one rank in an algorithm for a list of ranks.
pub struct Part<'a> {
    ranks: Vec<usize>,
    program: Program,
    /// Maps places in the part's inputs and outputs to their true places.
    place: Box<dyn Fn(Place) -> Place + 'a>,
    /// Whether its scratch memory is the memory that the rank keeps for all parts
    /// ([`Parts::kept`]).
    keeps: bool,
}

impl<'a> Part<'a> {
    /// The program of `rank` in `algorithm` over `ranks`; empty if `rank` is not among them. The
    /// function replaces the numbers of ranks, queues and nodes in `problem` by those of the part.
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

    /// A part whose steps `fill` appends, given the index of `rank` in `ranks`. Their scratch
    /// memory is that of [`Parts::kept`].
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

    /// Gives the part `turns` copies of the scratch memory, which rounds use in turn.
    pub fn in_turns(mut self, turns: u32) -> Part<'a> {
        self.program.turns = turns;
        self
    }

    /// Puts the part's inputs and outputs elsewhere: `place` maps each place in Send or Receive,
    /// with the rank in the team, to the true one.
    pub fn at(self, place: impl Fn(Place) -> Place + 'a) -> Part<'a> {
        Part { place: Box::new(place), ..self }
    }
}

/// All parts of a rank; every rank has the same number of parts.
pub struct Parts<'a> {
    /// Bytes at the beginning of the rank's scratch memory that outlive a part: [`Part::at`] may
    /// put inputs and outputs there, and the steps of [`Part::steps`] use them as scratch memory.
    pub kept: u64,
    /// The parts, in their order.
    pub parts: Vec<Part<'a>>,
}

impl Parts<'_> {
    /// The offset in the rank's scratch memory at which the memory of each part begins, and last
    /// the end.
    fn bases(&self) -> Vec<u64> {
        let mut bases = vec![self.kept.next_multiple_of(CELL)];
        for part in &self.parts {
            let end = bases[bases.len() - 1] + part.program.scratch;
            bases.push(end.next_multiple_of(CELL));
        }
        bases
    }
}

/// The program of `rank`. `of` makes the parts of any rank.
pub fn in_turn<'a>(rank: usize, of: impl Fn(usize) -> Parts<'a>) -> Program {
    let own = of(rank);
    let mut bases = HashMap::from([(rank, own.bases())]);
    let scratch = bases[&rank][own.parts.len()];
    let mut program = Program { scratch, ..Program::new(1) };
    // The number of signals of each rank that the parts so far have waited for.
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
    /// Translates a step of the part to the ranks of the team. `before`: how many signals of each
    /// rank the parts before have waited for. `base`: where the part's scratch memory begins at a
    /// rank.
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

/// The nodes of a problem's ranks; a single one if all share memory.
pub fn nodes(problem: &Problem) -> Cow<'_, Nodes> {
    match problem.nodes.as_deref() {
        Some(nodes) => Cow::Borrowed(nodes),
        None => Cow::Owned(Nodes::one(problem.ranks)),
    }
}

/// Begins a part in which the first `owners` ranks of a node work for all. After these steps each
/// owner knows that all ranks of the node have begun the part.
pub fn all_have_come(queue: &mut Appender, ranks: usize, rank: usize, owners: usize) {
    match owners {
        1 if rank > 0 => _ = queue.signal(0, 0),
        1 => (1..ranks).for_each(|peer| _ = queue.wait(peer, 1)),
        _ => dissemination(queue, ranks, rank, 0, 1),
    }
}

/// A part in which the owners write data to each other rank of their node, by the steps that `give`
/// appends. The owners know that these ranks are ready.
pub fn distribute(
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

/// The runs of consecutive ranks in a sorted list: the first rank and the length of each.
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

/// Whether a vector of `bytes` bytes is short: at most `most`, and at most a segment. (Tests set
/// short segments, so that they run both the short and the long form.)
pub fn is_short(problem: &Problem, bytes: u64, most: u64) -> bool {
    bytes <= most.min(problem.segment)
}
