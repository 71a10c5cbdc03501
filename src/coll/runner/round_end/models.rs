//! Loom models of the end of a round: ranks finish queues, and an owner looks, starts the next
//! round as soon as it sees its word, or finds that a rank has died.
//!
//! Faults that were planted, one at a time, and the models that failed:
//!
//! | fault | models |
//! |---|---|
//! | end_if_last: no fence before the look | two ranks |
//! | end_if_last: the first that looks ends the round | the next round |
//! | take: a store instead of the exchange | two ranks |
//! | end: a plain store | the next round |
//! | end: before the word is changed | the word |
//! | take_over: also what has ended, or is another's | the dead |
//!
//! Not found: take() Relaxed, because a thread that starts the next round after it has read only
//! `closed` has seen the user's word, which also publishes the effects of the round.

use super::*;
use crate::coll::runner::queue::{Head, NO_TAIL, Queue};
use crate::util::sync::{Arc, AtomicU8, UnsafeCell};
use loom::thread;

/// A rank with two queues of one step each, and its user's word.
struct Owner {
    end: RoundEnd,
    queues: [(Head, AtomicU8, [AtomicU32; 1]); 2],
    /// The data that the steps write, and that the user reads after the end of the round.
    data: [UnsafeCell<u32>; 2],
    word: AtomicU64,
}

/// The ranks of the model.
const OWNER: usize = 0;

impl Owner {
    fn new() -> Arc<Owner> {
        let queue = || (Head::default(), AtomicU8::new(0), [AtomicU32::new(0)]);
        Arc::new(Owner {
            end: RoundEnd::default(),
            queues: [queue(), queue()],
            data: [UnsafeCell::new(0), UnsafeCell::new(0)],
            word: AtomicU64::new(0),
        })
    }

    fn queue(&self, at: usize) -> Queue<'_> {
        let (head, polled, sent) = &self.queues[at];
        Queue { head, polled, tail: NO_TAIL, sent }
    }

    fn counts(&self) -> impl Iterator<Item = u32> {
        (0..2).map(|at| self.queue(at).control().finished())
    }

    /// The owner starts round `round`, counted from 1.
    fn start(&self, round: u32) {
        (0..2).for_each(|at| self.queue(at).activate(round - 1));
    }

    /// Rank `me` runs the step of a queue as in Stage::run_claimed(), and ends the round if it was
    /// the last one.
    fn run(&self, me: usize, at: usize, round: u32) {
        let Some(mine) = self.queue(at).claim(me) else { return };
        // SAFETY: no other thread touches it before the end of the round, or loom reports it.
        self.data[at].with_mut(|data| unsafe { *data = round });
        self.queue(at).finish(mine);
        self.end.end_if_last((round, me), self.counts(), || self.report());
    }

    fn report(&self) {
        self.word.fetch_add(1, Ordering::Release);
    }

    /// The owner looks as in Plan::close() and Plan::end().
    fn close(&self, round: u32) {
        if self.counts().all(|finished| finished == round) && self.end.take(round, OWNER) {
            self.report();
            self.end.end(round);
        }
    }

    fn assert_data(&self, round: u32) {
        // SAFETY: the steps of the round are over, or loom reports it.
        self.data.iter().for_each(|data| data.with(|data| assert_eq!(unsafe { *data }, round)));
    }
}

fn spawn(owner: &Arc<Owner>, run: impl FnOnce(&Owner) + 'static) -> thread::JoinHandle<()> {
    let owner = owner.clone();
    thread::spawn(move || run(&owner))
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Two ranks finish a queue each while the owner computes: the word is changed once, although no
/// other thread looks.
#[test]
fn loom_round_end_the_last_of_two_ranks_tells() {
    check(|| {
        let owner = Owner::new();
        owner.start(1);
        let one = spawn(&owner, |owner| owner.run(1, 0, 1));
        let two = spawn(&owner, |owner| owner.run(2, 1, 1));
        one.join().unwrap();
        two.join().unwrap();
        assert_eq!(owner.word.load(Ordering::Relaxed), 1);
        assert!(owner.end.has_ended(1));
        owner.assert_data(1);
    });
}

/// Like `loom_round_end_the_last_of_two_ranks_tells`, while a thread of the owner looks.
#[test]
fn loom_round_end_the_owner_and_a_rank_tell_once() {
    check(|| {
        let owner = Owner::new();
        owner.start(1);
        let one = spawn(&owner, |owner| (0..2).for_each(|at| owner.run(1, at, 1)));
        owner.close(1);
        if owner.end.has_ended(1) {
            assert_eq!(owner.word.load(Ordering::Relaxed), 1);
            owner.assert_data(1);
        }
        one.join().unwrap();
        assert_eq!(owner.word.load(Ordering::Relaxed), 1);
        assert!(owner.end.has_ended(1));
    });
}

/// A thread that has seen that a round has ended may set the word back. No late store must follow.
#[test]
fn loom_round_end_the_word_is_changed_before_the_round_has_ended() {
    check(|| {
        let owner = Owner::new();
        owner.start(1);
        let one = spawn(&owner, |owner| (0..2).for_each(|at| owner.run(1, at, 1)));
        while !owner.end.has_ended(1) {
            thread::yield_now();
        }
        owner.word.store(0, Ordering::Relaxed);
        one.join().unwrap();
        assert_eq!(owner.word.load(Ordering::Relaxed), 0);
    });
}

/// The owner sees its word and starts the next round, which another rank ends while the rank that
/// ended the first round is still in end_if_last().
#[test]
fn loom_round_end_the_next_round_overtakes() {
    check(|| {
        let owner = Owner::new();
        owner.start(1);
        let one = spawn(&owner, |owner| (0..2).for_each(|at| owner.run(1, at, 1)));
        while owner.word.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        assert!(owner.end.is_closed(1));
        owner.assert_data(1);
        owner.start(2);
        (0..2).for_each(|at| owner.run(2, at, 2));
        one.join().unwrap();
        assert_eq!(owner.word.load(Ordering::Relaxed), 2);
        assert!(owner.end.has_ended(2));
        owner.assert_data(2);
    });
}

/// A rank dies after it has taken the round; two threads of the owner learn of it.
#[test]
fn loom_round_end_a_round_of_a_dead_rank_is_taken_over_once() {
    check(|| {
        let owner = Owner::new();
        owner.start(1);
        let mine = [0, 1].map(|at| owner.queue(at).claim(1).unwrap());
        (0..2).for_each(|at| owner.queue(at).finish(mine[at]));
        assert!(owner.end.take(1, 1));
        let take_over = |owner: &Owner| {
            owner.close(1);
            let dead = owner.end.closer(1).filter(|closer| *closer == 1);
            if dead.is_some_and(|dead| owner.end.take_over(1, dead, OWNER)) {
                owner.report();
                owner.end.end(1);
            }
        };
        let progress = spawn(&owner, take_over);
        take_over(&owner);
        progress.join().unwrap();
        assert_eq!(owner.word.load(Ordering::Relaxed), 1);
        assert!(owner.end.has_ended(1));
        // A rank that dies after it has ended its round has left nothing to be taken over.
        assert!(owner.end.take(2, 1));
        owner.end.end(2);
        assert!(!owner.end.take_over(2, 1, OWNER));
    });
}
