//! Loom models of senders that sleep for credit, leave, or were killed, and the receiver that wakes
//! them.

use super::*;
use crate::util::sync::Arc;
use loom::thread::{self, JoinHandle};

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Two senders sleep for credit; a third one was killed in its sleep and is still counted. The
/// receiver wakes one sender at a time while the count is not 0. So a sender that sleeps must be
/// counted, or it would sleep for ever.
#[test]
fn loom_whoever_sleeps_for_credit_is_counted_and_woken() {
    check(2, || {
        let words =
            Arc::new((Credit::with_a_dead_sleeper(), AtomicU64::new(0), WakeFlag::default()));
        let senders: Vec<_> = (1..3).map(|rank| sleeper(&words, rank)).collect();
        receive(&words);
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

/// A sender is counted, and finds credit before it sleeps. The receiver tries to wake a sleeper,
/// finds none, and begins a new epoch. A second sender is counted and sleeps. Then the first one
/// leaves: it must not decrement the count of the second. (The receiver is a thread of its own, so
/// that few preemptions suffice for this order.)
#[test]
fn loom_who_leaves_in_a_later_epoch_takes_nobodys_count_away() {
    check(2, || {
        let words = Arc::new((Credit::default(), AtomicU64::new(0), WakeFlag::default()));
        let leaver = {
            let words = words.clone();
            thread::spawn(move || words.0.wait(1, std::time::Duration::ZERO, false, || true))
        };
        let sleeper = sleeper(&words, 2);
        let receiver = thread::spawn(move || receive(&words));
        let _ = [receiver, sleeper, leaver].map(|thread| thread.join().unwrap());
    });
}

fn receive(words: &(Credit, AtomicU64, WakeFlag)) {
    let (credit, room, flag) = words;
    // The receiver wakes a sender while others are about to sleep: it may begin an epoch.
    credit.idle(true);
    room.store(1, Ordering::Release);
    // The fence of a receiver that goes to sleep.
    flag.arm();
    // Each call wakes a sleeper, begins a new epoch, or fails since a sender arrives or leaves.
    while credit.is_wanted() {
        credit.idle(true);
        thread::yield_now();
    }
}

fn sleeper(words: &Arc<(Credit, AtomicU64, WakeFlag)>, rank: u32) -> JoinHandle<()> {
    let words = words.clone();
    thread::spawn(move || {
        let (credit, room, _) = &*words;
        let has_room = || room.load(Ordering::Acquire) != 0;
        while !has_room() {
            credit.wait(rank, std::time::Duration::ZERO, false, has_room);
        }
    })
}

/// A rank that finds no slot asks to be woken, executes its fence, tries once more and sleeps; the
/// receiver gives a slot back and then checks for requests. Another rank asks in the same
/// word. The receiver rings the rank, or the rank sees the slot; it does not sleep for ever.
#[test]
fn loom_a_rank_that_asks_to_be_woken_is_rung_or_finds_a_slot() {
    check(3, || {
        let words = Arc::new((WakeRequests::default(), AtomicU64::new(0), Bell::new()));
        let waiter = {
            let words = words.clone();
            thread::spawn(move || {
                let (requests, free, bell) = &*words;
                // Acquire: pairs with the Release of the slot.
                while free.load(Ordering::Acquire) == 0 {
                    let ticket = bell.ticket();
                    requests.add(0);
                    heavy_fence();
                    if free.load(Ordering::Acquire) == 0 {
                        bell.wait(ticket, None);
                    }
                }
            })
        };
        let other = {
            let words = words.clone();
            thread::spawn(move || words.0.add(1))
        };
        let (requests, free, bell) = &*words;
        free.store(1, Ordering::Release);
        requests.ring_all(|rank| {
            if rank != 1 {
                bell.ring();
            }
        });
        let _ = [waiter, other].map(|thread| thread.join().unwrap());
    });
}
