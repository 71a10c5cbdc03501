//! Programs over several nodes. The owner runs each step itself. A step may put bytes and a signal
//! to a rank of another node, and reads memory of its own node only. One put carries bytes and a
//! signal to one rank, so a step that does more is cut into several steps. Copies that follow each
//! other, as algorithms append them segment by segment, become one put: a queue waits until a long
//! put has ended, which takes a round trip.

use crate::coll::schedule::{Action, Place, Program, Step, scratch};
use std::collections::BTreeSet;

/// Cuts the steps of `rank`'s program so that each step that names a far rank, by is_far(),
/// is one put. None: a step reads the memory of a far rank.
pub fn posted(
    mut program: Program,
    rank: usize,
    is_far: impl Fn(usize) -> bool,
) -> Option<Program> {
    let steps = program.queues.iter().flatten();
    let named = steps.clone().flat_map(|step| {
        let places = step.action.places().map(|place| place.rank);
        let signals = step.signal.map(|signal| signal.rank);
        places.chain(signals).chain(step.wait.map(|wait| wait.from))
    });
    let far = named.filter(|named| is_far(*named)).collect::<BTreeSet<_>>();
    if far.is_empty() {
        return Some(program);
    }
    if steps.clone().any(|step| inputs(step).any(|place| far.contains(&place.rank))) {
        return None;
    }
    // Results of combinations that belong to a far rank are stored here first; each queue has its
    // own place.
    let mut end = program.scratch;
    for queue in &mut program.queues {
        let results = queue.iter().filter_map(|step| result_there(step, &far));
        let most = results.map(|(_, size)| size).max().unwrap_or(0);
        let room = scratch(rank, end.next_multiple_of(64));
        if most > 0 {
            end = room.offset + most;
        }
        *queue = queue.iter().flat_map(|step| cut(*step, &far, room)).collect();
        queue.dedup_by(|next, last| joins(last, next, &far));
    }
    Some(Program { scratch: end, far, ..program })
}

/// The places that a step reads.
fn inputs(step: &Step) -> impl Iterator<Item = Place> + use<> {
    let inputs = match step.action {
        Action::Nothing => [None; 2],
        Action::Copy { from, .. } => [Some(from), None],
        Action::Combine { left, right, .. } => [Some(left), Some(right)],
    };
    inputs.into_iter().flatten()
}

/// The result of a combination and its length, if the result belongs to a far rank.
fn result_there(step: &Step, far: &BTreeSet<usize>) -> Option<(Place, u64)> {
    match step.action {
        Action::Combine { to, size, .. } if far.contains(&to.rank) => Some((to, size)),
        _ => None,
    }
}

/// The steps that replace `step`.
fn cut(step: Step, far: &BTreeSet<usize>, room: Place) -> Vec<Step> {
    let Step { wait, action, signal } = step;
    if let Some((to, size)) = result_there(&step, far)
        && let Action::Combine { left, right, .. } = action
    {
        let combine = Action::Combine { left, right, to: room, size };
        let put = Action::Copy { from: room, to, size };
        let rest = cut(Step { wait: None, action: put, signal }, far, room);
        return [Step { wait, action: combine, signal: None }].into_iter().chain(rest).collect();
    }
    let to = match action {
        Action::Copy { to, .. } => Some(to.rank).filter(|to| far.contains(to)),
        _ => None,
    };
    let signalled = signal.map(|signal| signal.rank);
    let apart = match (to, signalled) {
        (Some(to), Some(signalled)) => to != signalled,
        (None, Some(signalled)) => far.contains(&signalled) && action != Action::Nothing,
        (_, None) => false,
    };
    match apart {
        false => vec![step],
        true => vec![
            Step { wait, action, signal: None },
            Step { wait: None, action: Action::Nothing, signal },
        ],
    }
}

/// Makes `last` one step for both, if they copy adjacent bytes to one far rank and nothing is
/// between them.
fn joins(last: &mut Step, next: &Step, far: &BTreeSet<usize>) -> bool {
    let (Action::Copy { from, to, size }, Action::Copy { from: then, to: there, size: more }) =
        (last.action, next.action)
    else {
        return false;
    };
    let adjacent = then == from.plus(size) && there == to.plus(size);
    let joins = adjacent && far.contains(&to.rank) && last.signal.is_none() && next.wait.is_none();
    if joins {
        (last.action, last.signal) = (Action::Copy { from, to, size: size + more }, next.signal);
    }
    joins
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::schedule::{receive, send};

    #[test]
    fn each_step_puts_to_one_rank_and_carries_its_signal() {
        let mut program = Program { scratch: 100, ..Program::new(1) };
        let mut queue = program.queue(0);
        queue.copy(send(0, 0), receive(2, 0), 8).signal(2, 0);
        queue.copy(send(0, 0), receive(2, 0), 8).signal(1, 0);
        queue.wait(1, 1).combine(send(0, 0), receive(0, 0), receive(2, 8), 8).signal(2, 0);
        queue.copy(send(0, 0), receive(1, 0), 8).signal(2, 0);
        queue.wait(2, 1).signal(2, 0);
        drop(queue);
        let posted = posted(program, 0, |rank| rank == 2).unwrap();
        assert_eq!((posted.scratch, &posted.far), (128 + 8, &BTreeSet::from([2])));
        let about = |step: &Step| {
            let to = step.action.places().last().map(|place| place.rank);
            (step.wait.map(|wait| wait.from), to, step.signal.map(|signal| signal.rank))
        };
        let steps = posted.queues[0].iter().map(about).collect::<Vec<_>>();
        let expected = [
            (None, Some(2), Some(2)),
            (None, Some(2), None),
            (None, None, Some(1)),
            (Some(1), Some(0), None),
            (None, Some(2), Some(2)),
            (None, Some(1), None),
            (None, None, Some(2)),
            (Some(2), None, Some(2)),
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn a_put_and_its_signal_to_two_far_ranks_are_two_puts() {
        let mut program = Program::new(1);
        program.queue(0).wait(2, 1).copy(send(0, 0), receive(2, 0), 8).signal(3, 0);
        let posted = posted(program, 0, |rank| rank > 1).unwrap();
        let about = |step: &Step| {
            let to = step.action.places().last().map(|place| place.rank);
            (step.wait.is_some(), to, step.signal.map(|signal| signal.rank))
        };
        let steps = posted.queues[0].iter().map(about).collect::<Vec<_>>();
        assert_eq!(steps, [(true, Some(2), None), (false, None, Some(3))]);
    }

    #[test]
    fn adjacent_copies_to_a_far_rank_are_one_put() {
        let mut program = Program::new(1);
        let mut queue = program.queue(0);
        for rank in [2, 1] {
            // Segments, then bytes elsewhere, then bytes behind a wait.
            queue.copy(send(0, 0), receive(rank, 8), 8).copy(send(0, 8), receive(rank, 16), 8);
            queue.copy(send(0, 16), receive(rank, 24), 4).signal(rank, 0);
            queue.copy(send(0, 20), receive(rank, 28), 4).copy(send(0, 24), receive(rank, 40), 8);
            queue.wait(rank, 1).copy(send(0, 32), receive(rank, 48), 8);
        }
        drop(queue);
        let posted = posted(program, 0, |rank| rank == 2).unwrap();
        let sizes = posted.queues[0].iter().map(|step| match step.action {
            Action::Copy { size, .. } => (size, step.signal.is_some()),
            _ => (0, false),
        });
        let (far, near) =
            ([(20, true), (4, false), (8, false), (8, false)], [(8, false), (8, false), (4, true)]);
        let rest = [(4, false), (8, false), (8, false)];
        assert!(sizes.eq(far.into_iter().chain(near).chain(rest)));
    }

    #[test]
    fn a_program_that_reads_another_nodes_memory_is_refused() {
        let mut program = Program::new(1);
        program.queue(0).wait(1, 1).copy(receive(1, 0), receive(0, 0), 8).signal(1, 0);
        assert!(posted(program.clone(), 0, |_| false).is_some());
        assert!(posted(program, 0, |rank| rank == 1).is_none());
    }
}
