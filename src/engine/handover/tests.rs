use super::*;
use std::sync::atomic::AtomicUsize;

/// Counts its rounds, each of which executes one command.
#[derive(Default)]
struct Counting {
    rounds: usize,
    armed_for: u64,
}

#[derive(Default)]
struct Commands {
    queued: AtomicUsize,
    rings: AtomicUsize,
}

impl Work for Counting {
    type Around = Commands;

    fn round(&mut self, around: &Commands) -> usize {
        self.rounds += 1;
        let queued = around.queued.load(Ordering::Relaxed);
        around.queued.store(queued.saturating_sub(1), Ordering::Relaxed);
        queued.min(1)
    }

    fn arm(&mut self, around: &Commands, sleep: u64) -> bool {
        self.armed_for = sleep;
        !around.has_queued()
    }

    fn disarm(&mut self) {
        self.armed_for = 0;
    }

    fn armed_for(&self) -> u64 {
        self.armed_for
    }
}

impl Around for Commands {
    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::Relaxed);
    }

    fn has_queued(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0
    }

    fn may_work(&self) -> bool {
        true
    }
}

/// How many rounds a poll with this result leads to, and whether there was work, with so many
/// commands in the queue.
fn rounds_after(polled: Polled, queued: usize) -> (usize, bool) {
    let (handover, around) = (Handover::new(Counting::default()), Commands::default());
    around.queued.store(queued, Ordering::Relaxed);
    let work = handover.take().expect("the role is free");
    let worked = handover.finish_after_poll(work, &around, polled);
    assert!(!around.has_queued(), "{polled:?}: a command is left in the queue");
    (handover.take().expect("the role is free").rounds, worked)
}

/// Handlers wait for the messages that a poll has brought. So the lane does no round before them,
/// unless a command waits for one.
#[test]
fn a_poll_that_brings_messages_only_leads_to_no_round() {
    assert_eq!(rounds_after(Polled::Messages, 0), (0, false));
    for polled in [Polled::Nothing, Polled::Others] {
        assert_eq!(rounds_after(polled, 0), (1, false), "{polled:?}");
        assert_eq!(rounds_after(polled, 1), (1, true), "{polled:?}");
    }
    // The round is one of help(), which finds the command, and looks once more.
    assert_eq!(rounds_after(Polled::Messages, 1), (2, false));
}

/// A progress thread that sleeps is rung for a command that such a poll has left in the queue.
#[test]
fn a_poll_that_brings_messages_only_rings_for_a_command() {
    let (handover, around) = (Handover::new(Counting::default()), Commands::default());
    assert!(handover.park(&around));
    let work = handover.take().expect("the role is free");
    around.queued.store(1, Ordering::Relaxed);
    assert!(!handover.finish_after_poll(work, &around, Polled::Messages));
    let work = handover.take().expect("the role is free");
    assert_eq!((work.rounds, around.rings.load(Ordering::Relaxed)), (0, 1));
}

/// After a poll without an event the lane does no round while its sources are armed for the
/// progress thread's sleep, and one if that thread is awake, or has slept since.
#[test]
fn a_poll_without_events_leaves_armed_sources_armed() {
    let (handover, around) = (Handover::new(Counting::default()), Commands::default());
    let rounds_of_poll = || {
        let work = handover.take_armed().expect("the role is free");
        handover.finish_after_poll(work, &around, Polled::Nothing);
        std::mem::take(&mut handover.take_armed().expect("the role is free").rounds)
    };
    assert_eq!(rounds_of_poll(), 1, "awake");
    assert!(handover.park(&around));
    assert_eq!((rounds_of_poll(), rounds_of_poll()), (0, 0), "asleep");
    handover.unpark();
    assert_eq!(rounds_of_poll(), 1, "awake again");
    handover.count_parked();
    assert_eq!(rounds_of_poll(), 1, "nobody has armed them for this sleep");
    assert_eq!(rounds_of_poll(), 0, "the last one has");
    assert_eq!(around.rings.load(Ordering::Relaxed), 0);
}
