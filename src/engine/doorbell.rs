//! The doorbell: a word to sleep on, and the order of steps by which no wake-up is lost.
//!
//! A [`Bell`] counts how often it was rung. A sleeper reads the count (its *ticket*), makes sure
//! that there is nothing to do and that a thread that brings work will ring, and then sleeps as
//! long as the count is the ticket. The word may lie in memory shared by processes.
//!
//! # The protocol
//!
//! ```text
//! sleeper                                   thread that brings work
//! 1  ticket = bell.ticket()                 a  publish the work, and with the same step clear the
//! 2  arm every source; one that has work       source's mark "waiting"; learn whether it was set
//!    refuses: do the work, begin again      b  if it was: bell.ring()
//! 3  bell.wait(ticket, limit)
//! 4  begin again
//! ```
//!
//! A source is a word that both sides change with read-modify-writes only, so that all changes have
//! one order: `tail` of `engine::command_queue` with its bit WAITING. For each piece of work:
//!
//! - Its change (a) comes before the arming (2): arming reads the newest value, sees work, refuses.
//! - It comes after: it clears the mark, hence rings (b). Had the ticket been read after that ring,
//!   the Acquire of (1) would have seen its Release, so (a) would have come before (2). So the
//!   ticket is older than the ring, and (3) either finds another count or sleeps already when the
//!   kernel is told to wake: the kernel compares and queues as one step.
//! - It comes after another piece of work that cleared the mark: that one rings, and the sleeper
//!   meets both.
//!
//! So N posts to a sleeper cost one ring, that is, one system call, and posts to a consumer that is
//! awake cost none. A sleeper may wake for nothing (a ring that belonged to an arming it took
//! back); it begins again, which is always allowed.
//!
//! # Where the role is given away
//!
//! A sleeper may give the executor's role away after step 2 and sleep without it. Then:
//!
//! - A thread that borrows the role because its commit told it to ring (and takes the ringing over
//!   by doing the work itself) arms again before it leaves, and rings where the arming is refused.
//!   The sleeper's ticket is older than every ring that follows, which is all it needs.
//! - A thread that wants to sleep and finds the role taken has armed nothing, so it must not sleep:
//!   it yields and tries again. The holder is awake, so this ends soon. It may sleep only where the
//!   holder has promised to look for sleepers when it leaves, as the rules of `engine::handover`
//!   have it.
//!
//! # What the models do not show
//!
//! Loom runs each thread in program order and lets loads be old; it moves no load behind a later
//! store. So the Acquire of the ticket and the Release of the count, which forbid just that, rest
//! on the argument above and not on a model; every other order of ring and bell, weakened, makes a
//! model fail.

pub use crate::util::bell::{Bell, Ticket};

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::engine::command_queue::{CommandQueue, Entry};
    use crate::util::sync::Ordering;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    impl Entry for u64 {
        const NOTHING: u64 = u64::MAX;
    }

    #[test]
    fn a_ring_after_the_ticket_forbids_the_sleep() {
        let bell = Bell::new();
        let ticket = bell.ticket();
        bell.ring_one();
        assert!(bell.wait(ticket, None));
        assert_ne!(bell.ticket(), ticket);
    }

    #[test]
    fn without_a_ring_the_time_limit_ends_the_sleep() {
        let bell = Bell::new();
        let ticket = bell.ticket();
        while bell.wait(ticket, Some(Duration::from_millis(1))) {}
        assert_eq!(bell.ticket(), ticket);
    }

    #[test]
    fn one_ring_wakes_all() {
        let bell = Bell::new();
        std::thread::scope(|s| {
            for _ in 0..3 {
                let ticket = bell.ticket();
                let bell = &bell;
                s.spawn(move || while bell.ticket() == ticket && bell.wait(ticket, None) {});
            }
            std::thread::sleep(Duration::from_millis(2));
            bell.ring();
        });
    }

    /// A consumer that sleeps whenever it can, without time limit: a lost wake-up hangs the test.
    /// The producers make pauses, so that it sleeps often.
    #[test]
    fn a_sleeping_consumer_misses_nothing_and_is_rung_once_per_sleep() {
        const EACH: u64 = 2_000;
        let bell = Arc::new(Bell::new());
        let for_drops = bell.clone();
        let (ring, mut consumer) = CommandQueue::new(8, move || for_drops.ring()).unwrap();
        let rings = AtomicU64::new(0);
        let mut sleeps = 0;
        std::thread::scope(|s| {
            for producer in 0..2 {
                let (ring, bell, rings) = (ring.clone(), &bell, &rings);
                s.spawn(move || post_with_pauses(&ring, bell, rings, producer, EACH));
            }
            let (mut sum, mut got) = (0, 0);
            while got < 2 * EACH {
                let ticket = bell.ticket();
                if let Some(value) = consumer.peek(0) {
                    sum += value;
                    got += 1;
                    consumer.release(1);
                } else if consumer.try_wait() {
                    sleeps += 1;
                    bell.wait(ticket, None);
                } else {
                    std::thread::yield_now();
                }
            }
            assert_eq!(sum, 2 * (EACH * (EACH - 1) / 2));
        });
        let rings = rings.into_inner();
        assert!(rings > 0, "nobody ever slept");
        assert!(rings <= sleeps, "{rings} rings for {sleeps} sleeps");
    }

    fn post_with_pauses(
        ring: &CommandQueue<u64>,
        bell: &Bell,
        rings: &AtomicU64,
        first: u64,
        each: u64,
    ) {
        for value in 0..each {
            let mut slot = loop {
                match ring.reserve(1) {
                    Some(slot) => break slot,
                    None => std::thread::yield_now(),
                }
            };
            slot.write(0, value);
            if slot.commit() {
                rings.fetch_add(1, Ordering::Relaxed);
                bell.ring();
            }
            if (value + first).is_multiple_of(16) {
                std::thread::sleep(Duration::from_micros(20));
            }
        }
    }
}
