//! Rules for programs that can be checked without running them.

use super::reference;
use crate::coll::problem::{Block, Problem};
use crate::coll::schedule::{Action, CELL, CELL_WORD, Place, Program, QUEUES, Space, Step};
use crate::coll::touched::{Touched, merged, touched};

/// Bytes of a rank's memory, by the number of the space.
pub fn length(problem: &Problem, programs: &[Program], rank: usize, space: usize) -> u64 {
    match space {
        0 => reference::send_length(problem, rank),
        1 => reference::receive_length(problem, rank),
        _ => programs[rank].scratch,
    }
}

/// All steps, with their ranks and queues.
fn steps(programs: &[Program]) -> impl Iterator<Item = (usize, usize, usize, &Step)> {
    programs.iter().enumerate().flat_map(|(rank, program)| {
        program.queues.iter().enumerate().flat_map(move |(queue, steps)| {
            steps.iter().enumerate().map(move |(index, step)| (rank, queue, index, step))
        })
    })
}

/// The ranges that an action touches; the range that it writes comes last.
fn ranges(action: Action) -> (Vec<Place>, u64) {
    match action {
        Action::Nothing => (Vec::new(), 0),
        Action::Copy { from, to, size } => (vec![from, to], size),
        Action::Combine { left, right, to, size } => (vec![left, right, to], size),
    }
}

/// The greatest number that divides all places and sizes.
pub fn grain(programs: &[Program]) -> u64 {
    fn divisor(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { divisor(b, a % b) }
    }
    let all = steps(programs).fold(0, |grain, (_, _, _, step)| {
        let (places, size) = ranges(step.action);
        places.iter().fold(divisor(grain, size), |grain, place| divisor(grain, place.offset))
    });
    all.max(1)
}

/// Checks the programs. Returns the signals of a round by target rank, target queue and source
/// rank. (Each rank has an entry for as many queues as the rank with the most queues has, and one
/// more.)
pub fn verify(problem: &Problem, programs: &[Program]) -> Result<Vec<u32>, String> {
    let (ranks, lanes) =
        (problem.ranks, programs.iter().map(|p| p.queues.len()).max().unwrap_or(0) + 1);
    if lanes > QUEUES + 1 {
        return Err(format!("{} queues: at most {QUEUES}", lanes - 1));
    }
    let combines = steps(programs).any(|(.., step)| matches!(step.action, Action::Combine { .. }));
    if combines && lanes > problem.queues + 1 {
        return Err(format!("{} queues: at most {} may combine", lanes - 1, problem.queues));
    }
    // By target rank, target queue and source rank: the number of signals, the highest count that a
    // step waits for, and the queue that signals.
    let mut counters = vec![(0u32, 0u32, None); ranks * lanes * ranks];
    // By target rank, number, target queue and source rank: the cells that are signalled, and the
    // cells in which a step waits.
    let (mut cells, mut awaited) = (Vec::new(), Vec::new());
    let allowed = (0..ranks).map(|rank| touched(problem, rank)).collect::<Vec<_>>();
    for (rank, queue, index, step) in steps(programs) {
        let at = |what: &str| {
            Err(format!("rank {rank}, queue {queue}, step {index} ({step:?}): {what}"))
        };
        let verified = verify_action(problem, programs, step.action);
        if let Err(what) = verified.and_then(|()| verify_touched(&allowed, step.action)) {
            return at(&what);
        }
        if let Some(wait) = step.wait {
            if wait.from >= ranks {
                return at("waits for a rank that does not exist");
            }
            if let Some(number) = wait.cell {
                awaited.push((rank, number, queue, wait.from));
            }
            let highest = &mut counters[(rank * lanes + queue) * ranks + wait.from].1;
            *highest = (*highest).max(wait.count);
        }
        if let Some(signal) = step.signal {
            if signal.rank >= ranks || signal.queue >= programs[signal.rank].queues.len() {
                return at("signals a queue that does not exist");
            }
            let counter = &mut counters[(signal.rank * lanes + signal.queue) * ranks + rank];
            counter.0 += 1;
            if *counter.2.get_or_insert(queue) != queue {
                return at("signals a queue that another queue of this rank signals too");
            }
            if let Some(number) = signal.cell {
                cells.push((signal.rank, number, signal.queue, rank));
            }
        }
    }
    for (index, (signals, waited, _)) in counters.iter().enumerate() {
        if signals != waited {
            let (source, queue, target) =
                (index % ranks, index / ranks % lanes, index / ranks / lanes);
            return Err(format!(
                "rank {source} sends {signals} signals to rank {target}, queue {queue}, which waits \
                 for {waited}"
            ));
        }
    }
    verify_cells(programs, cells, awaited, |(rank, _, queue, from)| {
        counters[(rank * lanes + queue) * ranks + from].0
    })?;
    Ok(counters.into_iter().map(|(signals, _, _)| signals).collect())
}

/// A cell in use: its rank, its number, the queue that waits there and the rank that signals.
type Cell = (usize, u32, usize, usize);

/// A cell has one sender, which signals there once in a round and sends that queue no other
/// signals; the owner of the cell waits there. No step copies over its word.
fn verify_cells(
    programs: &[Program],
    mut cells: Vec<Cell>,
    mut awaited: Vec<Cell>,
    counters: impl Fn(Cell) -> u32,
) -> Result<(), String> {
    cells.sort_unstable();
    awaited.sort_unstable();
    if cells != awaited {
        return Err(format!("cells that are signalled {cells:?}, but waited for {awaited:?}"));
    }
    let same = |pair: &&[Cell]| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1);
    if let Some(pair) = cells.windows(2).find(same) {
        return Err(format!("cell {} of rank {} is signalled twice", pair[0].1, pair[0].0));
    }
    let scratch: Vec<(Place, u64, &Step)> = steps(programs)
        .flat_map(|(.., step)| {
            let (places, size) = ranges(step.action);
            places.into_iter().map(move |place| (place, size, step))
        })
        .filter(|(place, ..)| place.space == Space::Scratch)
        .collect();
    for cell @ (rank, number, _, from) in cells {
        let (length, end) = (programs[rank].scratch, (u64::from(number) + 1) * CELL);
        if length < end {
            return Err(format!("rank {rank} has no cell {number} in its {length} bytes"));
        }
        if counters(cell) != 1 {
            return Err(format!("rank {from} signals rank {rank} in a cell, and otherwise"));
        }
        let inside = |(place, size, _): &&(Place, u64, &Step)| {
            place.rank == rank && place.offset < end && place.offset + size > end - CELL_WORD
        };
        if let Some((.., step)) = scratch.iter().find(inside) {
            return Err(format!("{step:?} touches the word of cell {number} of rank {rank}"));
        }
    }
    Ok(())
}

fn verify_action(problem: &Problem, programs: &[Program], action: Action) -> Result<(), String> {
    let (places, size) = ranges(action);
    for place in &places {
        if place.rank >= problem.ranks {
            return Err(format!("{place:?}: no such rank"));
        }
        let length = length(problem, programs, place.rank, place.space as usize);
        if place.offset.checked_add(size).is_none_or(|end| end > length) {
            return Err(format!("{size} bytes at {place:?}: beyond its {length} bytes"));
        }
    }
    if let Some((to, inputs)) = places.split_last() {
        let same = |a: &Place| (a.rank, a.space) == (to.rank, to.space);
        for from in inputs.iter().filter(|from| same(from) && from.offset != to.offset) {
            if from.offset.abs_diff(to.offset) < size {
                return Err(format!("{size} bytes at {from:?} and {to:?} overlap"));
            }
        }
    }
    match action {
        Action::Combine { size, .. }
            if size % problem.width != 0
                || places.iter().any(|place| !is_aligned(problem, place)) =>
        {
            Err(format!("combines {size} bytes at {places:?}: not whole elements"))
        }
        Action::Combine { to: Place { space: Space::Send, .. }, .. }
        | Action::Copy { to: Place { space: Space::Send, .. }, .. } => {
            Err("writes to somebody's input".into())
        }
        _ => Ok(()),
    }
}

/// In a user's buffer elements lie at multiples of their size. In scratch memory they are aligned
/// as any type may need it.
fn is_aligned(problem: &Problem, place: &Place) -> bool {
    let alignment = 1 << problem.width.trailing_zeros().min(6);
    let unit = if place.space == Space::Scratch { alignment } else { problem.width };
    place.offset.is_multiple_of(unit)
}

/// A step reads and writes only the bytes that `touched` lists. The rest of a buffer belongs to its
/// user, and does not exist in the copy of a buffer that peers do not map.
fn verify_touched(allowed: &[Touched], action: Action) -> Result<(), String> {
    let (places, size) = ranges(action);
    for (at, place) in places.iter().enumerate() {
        let Touched { send, held, written } = &allowed[place.rank];
        let inside = |blocks: &[Block]| {
            let covers = |block: &Block| {
                block.offset <= place.offset && place.offset + size <= block.offset + block.size
            };
            blocks.iter().any(covers)
        };
        let (fits, verb) = match (place.space, at + 1 == places.len()) {
            (Space::Scratch, _) => (true, ""),
            (Space::Send, _) => (inside(send), "reads"),
            (Space::Receive, false) => {
                (inside(&merged([&held[..], &written[..]].concat())), "reads")
            }
            (Space::Receive, true) => (inside(written), "writes"),
        };
        if !fits {
            return Err(format!("{verb} {size} bytes at {place:?}, which are the user's"));
        }
    }
    Ok(())
}
