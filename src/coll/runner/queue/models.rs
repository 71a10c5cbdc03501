//! Loom models of a queue: every interleaving of a few ranks that deliver, start, poll and help,
//! run by the loops of `coll::runner::stepping` in the order of `coll::runner::owning`, by which
//! `coll::plan` starts, waits and sleeps.
//!
//! The data of a step are in cells that loom watches. So two threads that run steps at the same
//! time, or a read that is not ordered after its write, are an error even if no value is wrong. All
//! threads of a model end, since a rank that computes never looks again. A step that is ready then
//! was lost.
//!
//! Faults that were planted, one at a time, and how many models failed. (There were fifteen models
//! at that time. Two for the light start, two for POLLED_ON and two for tails were added later.)
//!
//! | fault | models |
//! |---|---|
//! | send: Relaxed; has_sent: Relaxed | 10 each |
//! | full_fence: none at all, or not after a signal; no look after a signal | 14 each |
//! | release: no fence after it | 10 |
//! | give_back: Relaxed | 3 |
//! | give_back: the next step not stored | those with two steps: assert_ran() |
//! | finish: Relaxed | 3 |
//! | finish: "active" stays | 14 |
//! | finish: `at` stays | 1, the next round |
//! | claim: also a claimed queue | 14 |
//! | activate: Relaxed | 1, sees the round |
//! | control: Relaxed | 3 |
//! | end_polling: does nothing | 5 |
//! | end_polling: no fence after it | 2 |
//! | a start, a holder or a release: POLLED not taken back; no look after the release | 3, 4 |
//! | a start, or a look at another thread's: no fence before the look | 3, 1 |
//! | a run of a queue: no look after the release | 8 |
//! | the opening of a round: POLLED of the last one not taken back | 1, polling does not outlive |
//! | is_polled_on: no fence before it (see below) | 2, those of POLLED_ON |
//! | POLLED_ON is not taken back | 2, those of POLLED_ON |
//! | a light start: no look after it has given its claims back | 1, the light start |
//! | leave_tail: does nothing; no fence in it; no look after it | 2 each, those of tails |
//!
//! Not found, and why: a claim without its fence or Relaxed (the holder releases it with a fence
//! and looks); the heavy fence of an owner that changes POLLED_ON (loom has a full fence on each
//! side in its place, and another one follows); a release that polls late or not at all, and a
//! take_tail that does nothing (the deliverer then runs the steps); an owner that finds its queue
//! claimed and does not look itself (the claimer does).

mod ranks;

use super::*;
use crate::util::sync::Arc;
use loom::thread;
use ranks::{Plan, Step, Then, after, plan, plan_with_tails};

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn spawn(plan: &Arc<Plan>, run: impl FnOnce(&Plan) + 'static) -> thread::JoinHandle<()> {
    let plan = plan.clone();
    thread::spawn(move || run(&plan))
}

/// Two ranks deliver and the owner starts. The last of the three must run the remaining steps.
#[test]
fn loom_every_step_is_run_once() {
    check(3, || {
        let plan = plan(&[&[after(1), after(2)]]);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        plan.start(0, 0);
        one.join().unwrap();
        two.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// A holder finds no ready step and releases the claim while the signal comes.
#[test]
fn loom_a_release_meets_a_signal() {
    check(5, || {
        let plan = plan(&[&[after(1)]]);
        plan.open(0, 0);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        plan.run(0, 0);
        deliverer.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// Like `loom_a_release_meets_a_signal`, with a helper that looks before it claims, and a first
/// step that needs no signal.
#[test]
fn loom_a_helper_disturbs_no_other_thread() {
    check(3, || {
        let free = Step { wait: None, signal: None };
        let plan = plan(&[&[free, after(1)]]);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let helper = spawn(&plan, |plan| plan.look(2, 0));
        plan.start(0, 0);
        deliverer.join().unwrap();
        helper.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// The owner polls and stops polling. A deliverer that saw it poll relies on its last look.
#[test]
fn loom_a_thread_that_polled_looks_once_more() {
    check(5, || {
        let plan = plan(&[&[after(1)]]);
        plan.open(0, 0);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        plan.wait_in_vain(0);
        deliverer.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// Two threads of the owner: one waits and polls; the other one, the progress thread, ends the
/// polling and looks.
#[test]
fn loom_another_thread_ends_the_polling() {
    check(2, || {
        let plan = plan(&[&[after(1)]]);
        plan.open(0, 0);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let progress = spawn(&plan, |plan| {
            plan.0[0].queue().end_polling();
            plan.look(0, 0);
        });
        plan.wait_in_vain(0);
        deliverer.join().unwrap();
        progress.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// The owner starts and holds the claim, releases it polled, claims again and finally releases; a
/// deliverer that has seen any of these states relies on it.
#[test]
fn loom_a_holder_looks_once_more() {
    check(4, || {
        let plan = plan(&[&[after(1), after(2)]]);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        plan.start_plain(0, 0, Then::Polls);
        plan.hold_in_vain(0);
        one.join().unwrap();
        two.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// Like `loom_a_holder_looks_once_more` with POLLED_ON, so that deliverers have no fence.
#[test]
fn loom_an_owner_that_polled_on_looks_once_more() {
    check(4, || {
        let plan = plan(&[&[after(1), after(2)]]);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        plan.start_plain(0, 0, Then::PollsOn);
        plan.hold_in_vain(0);
        one.join().unwrap();
        two.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// POLLED_ON lasts through rounds, also through rounds that are over with their start, until the
/// owner computes.
#[test]
fn loom_polled_on_is_taken_back() {
    check(4, || {
        let plan = plan(&[&[after(1)]]);
        let deliverer = spawn(&plan, |plan| {
            plan.deliver(1, 0, 0);
            plan.deliver(1, 0, 1);
        });
        plan.start_plain(0, 0, Then::PollsOn);
        while plan.finished(0) == 0 {
            plan.look(0, 0);
            thread::yield_now();
        }
        plan.start_plain(0, 1, Then::Computes);
        deliverer.join().unwrap();
        plan.assert_over(0, 2);
    });
}

/// A start whose user is not about to wait releases the claim and looks once more.
#[test]
fn loom_a_start_looks_once_more() {
    check(4, || {
        let plan = plan(&[&[after(1), after(2)]]);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        plan.start_plain(0, 0, Then::Computes);
        one.join().unwrap();
        two.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// A third rank claims a polled queue because it needs the step; the owner finds the queue claimed,
/// or the round over.
#[test]
fn loom_a_polled_queue_may_be_taken() {
    check(4, || {
        let plan = plan(&[&[after(1)]]);
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let helper = spawn(&plan, |plan| plan.look(2, 0));
        plan.start_plain(0, 0, Then::Polls);
        plan.hold_in_vain(0);
        deliverer.join().unwrap();
        helper.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// A deliverer of the next round must not rely on the polling of a round that has ended.
#[test]
fn loom_polling_ends_before_the_next_round() {
    check(4, || {
        let plan = plan(&[&[after(1)]]);
        let deliverer = spawn(&plan, |plan| {
            plan.deliver(1, 0, 0);
            plan.deliver(1, 0, 1);
        });
        plan.start_plain(0, 0, Then::Polls);
        while plan.finished(0) == 0 {
            plan.hold_in_vain(0);
            thread::yield_now();
        }
        plan.start_plain(0, 1, Then::Computes);
        deliverer.join().unwrap();
        plan.assert_over(0, 2);
    });
}

/// Like `loom_polling_ends_before_the_next_round`, for a plan that is not plain: a round ends while
/// its owner polls, and the polled word stays; in the next round the owner computes.
#[test]
fn loom_polling_does_not_outlive_the_round() {
    check(4, || {
        let plan = plan(&[&[after(1)]]);
        let deliverer = spawn(&plan, |plan| {
            plan.deliver(1, 0, 0);
            plan.deliver(1, 0, 1);
        });
        plan.start(0, 0);
        plan.0[0].queue().begin_polling();
        while plan.finished(0) == 0 {
            plan.look(0, 0);
            thread::yield_now();
        }
        plan.start(0, 1);
        deliverer.join().unwrap();
        plan.assert_over(0, 2);
    });
}

/// Deliverers leave the last step to the owner until the owner is about to sleep.
#[test]
fn loom_an_owner_that_sleeps_has_left_its_tail() {
    check(4, || {
        let plan = plan_with_tails(&[&[after(1), after(2)]], 1);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        plan.start_plain(0, 0, Then::Computes);
        plan.sleep(0, || {
            one.join().unwrap();
            two.join().unwrap();
        });
        plan.assert_over(0, 1);
    });
}

/// The owner wakes, takes its tail back and sleeps in the next round, while a rank that is ahead
/// delivers for both rounds.
#[test]
fn loom_a_tail_is_taken_and_left_again() {
    check(4, || {
        let plan = plan_with_tails(&[&[after(1)]], 0);
        let deliverer = spawn(&plan, |plan| {
            plan.deliver(1, 0, 0);
            plan.deliver(1, 0, 1);
        });
        plan.start_plain(0, 0, Then::Computes);
        plan.sleep(0, || {
            while plan.finished(0) == 0 {
                plan.look(0, 0);
                thread::yield_now();
            }
        });
        plan.start_plain(0, 1, Then::Computes);
        plan.sleep(0, || deliverer.join().unwrap());
        plan.assert_over(0, 2);
    });
}

/// A start that claims its queue, which is still polled from the round before.
#[test]
fn loom_a_light_start_looks_once_more() {
    check(4, || {
        let plan = plan(&[&[after(1), after(2)]]);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        plan.0[0].queue().begin_polling();
        plan.start_light(0, 0);
        one.join().unwrap();
        two.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// One thread opens a queue, and another thread of the same rank looks at it.
#[test]
fn loom_a_thread_that_sees_the_round_sees_what_came_before() {
    check(5, || {
        let (plan, rounds) = (plan(&[&[after(1)]]), Arc::new(AtomicU32::new(0)));
        let deliverer = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let (other, word) = (plan.clone(), rounds.clone());
        let progress = thread::spawn(move || {
            while word.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            full_fence();
            other.look(0, 0);
        });
        plan.open(0, 0);
        rounds.store(1, Ordering::Release);
        deliverer.join().unwrap();
        progress.join().unwrap();
        plan.assert_over(0, 1);
    });
}

/// A rank is a round ahead: its next signal comes during the end of this round and the start of the
/// next.
#[test]
fn loom_a_signal_of_the_next_round_is_kept() {
    check(3, || {
        let plan = plan(&[&[after(1)]]);
        plan.open(0, 0);
        let ahead = spawn(&plan, |plan| {
            plan.deliver(1, 0, 0);
            plan.deliver(1, 0, 1);
        });
        while plan.finished(0) == 0 {
            plan.look(0, 0);
            thread::yield_now();
        }
        plan.start(0, 1);
        ahead.join().unwrap();
        plan.assert_over(0, 2);
    });
}

/// The owner sees the count and starts the next round while the thread that ended this one is still
/// in its loop, and while another rank delivers for the next one.
#[test]
fn loom_the_next_round_begins_as_this_one_ends() {
    check(3, || {
        let plan = plan(&[&[after(1), after(2)]]);
        plan.open(0, 0);
        // Runs the first step and releases the claim, so that `at` has to be reset at the end.
        plan.deliver(1, 0, 0);
        let one = spawn(&plan, |plan| {
            plan.deliver(2, 0, 0);
            plan.deliver(2, 0, 1);
        });
        let two = spawn(&plan, |plan| plan.look(1, 0));
        while plan.finished(0) == 0 {
            plan.look(0, 0);
            thread::yield_now();
        }
        plan.start(0, 1);
        plan.deliver(1, 0, 1);
        one.join().unwrap();
        two.join().unwrap();
        plan.assert_over(0, 2);
    });
}

/// Different ranks run the steps: a thread that sees the count sees the effects of all of them, and
/// may use the buffers.
#[test]
fn loom_the_count_shows_what_the_round_did() {
    check(3, || {
        let plan = plan(&[&[after(1), after(2)]]);
        plan.open(0, 0);
        let one = spawn(&plan, |plan| plan.deliver(1, 0, 0));
        let two = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        if plan.finished(0) == 1 {
            plan.0[0].assert_ran(1);
            // SAFETY: nobody reads it after the round, or loom reports it.
            plan.0[0].ready.with_mut(|ready| unsafe { *ready = 0 });
        }
        one.join().unwrap();
        two.join().unwrap();
        assert_eq!(plan.finished(0), 1);
    });
}

/// Steps that only the owner may run: its progress thread stores that it sleeps, looks, and sleeps;
/// the deliverer rings if it sleeps. `asleep` stands for the word of `coll::runner::session`, with
/// its fences.
#[test]
fn loom_an_owner_that_sleeps_is_rung_for() {
    check(5, || {
        let (plan, asleep) = (plan(&[&[after(1)]]), Arc::new(AtomicU32::new(0)));
        plan.open(0, 0);
        let (other, word) = (plan.clone(), asleep.clone());
        let deliverer = thread::spawn(move || {
            let rings = other.signal(1, 0, 0) && {
                fence(Ordering::SeqCst);
                word.load(Ordering::Relaxed) != 0
            };
            rings.then_some(())
        });
        asleep.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        plan.look(0, 0);
        if deliverer.join().unwrap().is_some() {
            plan.look(0, 0);
        }
        plan.assert_over(0, 1);
    });
}

/// Queues that release each other: rank 2 signals queue 0, whose step signals queue 1, whose step
/// signals queue 0.
#[test]
fn loom_a_chain_of_queues_comes_to_its_end() {
    check(3, || {
        let to = |from, signal| Step { wait: Some(from), signal: Some(signal) };
        let plan = plan(&[&[to(2, 1), after(1)], &[to(0, 0)]]);
        let first = spawn(&plan, |plan| plan.deliver(2, 0, 0));
        let second = spawn(&plan, |plan| plan.start(1, 0));
        plan.start(0, 0);
        first.join().unwrap();
        second.join().unwrap();
        plan.assert_over(0, 1);
        plan.assert_over(1, 1);
    });
}
