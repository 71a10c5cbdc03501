//! Waits over a wire that wakes no thread.

use super::*;
use crate::engine::command::{Command, Op};
use crate::transport::fabric::{simulate, simulate_two};
use crate::util::backoff::Backoff;

/// A world of one rank with a wire that wakes no thread.
fn beside_a_silent_wire(polled: bool) -> Context {
    simulate_two(["2:fd=0"; 2]);
    let context = world_of_one(polled);
    simulate(None);
    while !context.routes.fabric().has_silent_wire() {
        std::thread::yield_now();
    }
    context
}

/// A thread that waits helps in single rounds. Without this note `llcl-handlers` slept behind an
/// armed flag meanwhile, so each message cost a wake-up. On a node alone a message must wake it,
/// since the thread that has helped may compute.
#[test]
fn a_round_of_help_is_noted_over_a_silent_wire() {
    for (context, notes) in [(beside_a_silent_wire(false), true), (world_of_one(false), false)] {
        let mut seen = 0;
        context.dispatcher.nap_while_others_help(&mut seen);
        for _ in 0..2 {
            assert!(!context.dispatcher.nap_while_others_help(&mut seen));
            context.blocking().help_others();
            assert_eq!(context.dispatcher.nap_while_others_help(&mut seen), notes);
        }
    }
}

/// A handler has done what the thread waits for: then the thread does not poll the wire or the lane
/// any more, as it does here for a command that nobody else knows of.
#[test]
fn a_wait_that_a_handler_ends_leaves_the_lane_alone() {
    /// The progress thread may look at the queue by chance.
    const TRIES: u64 = 100;
    let context = beside_a_silent_wire(true);
    let (answered, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    // SAFETY: the word exists until the context has ended.
    unsafe {
        context.am_register(ANSWER, Some(answer), answered.as_ptr().cast()).expect("a handler");
    }
    let (request, mut flush) = (to_self(ANSWER), Command::new(Op::FLUSH, 0));
    flush.on_complete = Completion::store_on(&ended);
    let leaves_it = (1..=TRIES).any(|count| {
        context.am_try(&request).expect("credit");
        ended.store(0, Ordering::Relaxed);
        // SAFETY: the word exists until the flush has ended, see below.
        unsafe { context.lane.put(&flush, &[]) }.expect("room");
        let mut backoff = Backoff::new(Duration::ZERO);
        let done = || answered.load(Ordering::Relaxed) == count;
        while !context.blocking().help_until(&mut backoff, &Deadline::new(None), done) {}
        let left = ended.load(Ordering::Relaxed) == 0;
        while ended.load(Ordering::Relaxed) == 0 {
            context.blocking().help_others();
        }
        left
    });
    assert!(leaves_it);
    context.finalize(None).status.expect("the end");
}

/// How many of so many polls look further, as llcl_am_poll does.
fn further(context: &Context, polls: usize) -> usize {
    let looks_further = |_: &usize| {
        let further = context.am_look() == Look::Further;
        if further {
            context.am_poll(1).expect("a poll");
        }
        further
    };
    (0..polls).filter(looks_further).count()
}

/// One of eight empty polls asks the wire. After one that has found something, eight polls ask it;
/// those of a context without such a wire do not.
#[test]
fn empty_polls_ask_a_wire_that_has_brought_something() {
    let (silent, plain) = (beside_a_silent_wire(true), world_of_one(true));
    // The wire may have had events at its start.
    further(&silent, 400);
    assert_eq!(further(&silent, 80), 10);
    silent.dispatcher.note_network_poll(true);
    assert_eq!(further(&plain, 80), 10);
    assert_eq!(further(&silent, 8), 8);
    assert_eq!(further(&silent, 80), 10);
}
