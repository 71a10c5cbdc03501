//! The doorbell: a word to sleep on, and the order of steps by which no wake-up is lost.
//!
//! A [`Bell`] counts how often it was rung. A sleeper reads the count (its *ticket*), makes sure
//! that there is no work and that a thread that brings work will ring, and then sleeps as long as
//! the count equals the ticket. The word may lie in memory shared by processes.
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
//! A source is a word that both sides change by read-modify-writes only, so all its changes have
//! one order. An example is `tail` of `engine::command_queue` with its bit WAITING. For each piece
//! of work there are three cases:
//!
//! - The producer's change (a) precedes the arming (2): the arming reads the newest value, sees the
//!   work and refuses.
//! - Change (a) follows the arming and clears the mark: the producer rings (b). The sleeper has
//!   read its ticket before that ring: otherwise the Acquire in (1) would have synchronised with
//!   the ring's Release, and (a) would precede (2). So (3) finds a changed count, or the sleeper is
//!   already queued in the kernel and is woken: the kernel compares and queues as one step.
//! - Change (a) follows another producer's change that cleared the mark: that producer rings, and
//!   the sleeper finds both pieces of work.
//!
//! So N posts to a sleeper cost one ring, which is one system call, and posts to a consumer that is
//! awake cost none. A sleeper may wake without work, by a ring for an arming that it has cancelled
//! since; it then begins again at step 1.
//!
//! # If the sleeper does not keep the role
//!
//! A sleeper may give the lane's role up after step 2 and sleep without it. Then:
//!
//! - A producer whose commit has answered that it must ring may instead take the role and do the
//!   work itself. It arms again before it gives the role up, and rings if a source refuses. The
//!   sleeper's ticket is older than every such ring, so the sleeper wakes.
//! - A thread that wants to sleep and finds the role taken has armed nothing, so it must not sleep:
//!   it yields and tries again. The holder is awake, so this ends soon. It may sleep only if every
//!   holder looks for sleepers when it gives the role up, as by the rules of `engine::handover`.
//!
//! # What the models do not show
//!
//! Loom runs each thread in program order and lets loads return old values; it does not delay a
//! load beyond a later store. The Acquire of the ticket and the Release of the count forbid just
//! that, so they rest on the argument above and not on a model. Every other memory order of queue
//! and bell makes a model fail when it is weakened.

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
    /// The producers pause now and then, so that it sleeps often.
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
