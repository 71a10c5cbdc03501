//! Loom models of the inbox: senders in any number, some of which die or are slow between two
//! steps, against the one receiver.

use super::*;
use crate::util::bell::Bell;
use crate::util::sync::Arc;
use loom::thread::{self, JoinHandle};

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// What lies in a receiver's control area, and the receiver's own number.
struct Area {
    counters: Counters,
    slots: Vec<Slot>,
    bell: Bell,
    /// Ranks that the receiver knows to be dead, one bit each.
    dead: AtomicU64,
}

fn word() -> AtomicU64 {
    AtomicU64::new(0)
}

fn area(slots: usize, first: u64) -> Arc<Area> {
    let slot =
        || Slot { mark: word(), head: word(), tag: word(), words: std::array::from_fn(|_| word()) };
    let area = Area {
        counters: Counters { tail: word() },
        slots: (0..slots).map(|_| slot()).collect(),
        bell: Bell::new(),
        dead: word(),
    };
    area.inbox().reset(first);
    Arc::new(area)
}

/// The message of a rank; every word of it tells whose it is.
fn letter(source: u32) -> Message {
    let words = std::array::from_fn(|i| u64::from(source) * 100 + i as u64);
    Message { kind: source + 1, source, tag: u64::from(source) << 40, words }
}

impl Area {
    fn inbox(&self) -> Inbox<'_> {
        Inbox { counters: &self.counters, slots: &self.slots }
    }

    /// Sends as a transport does, until there is room; rings where that is the sender's duty.
    /// Returns how often it rang.
    fn send(&self, source: u32) -> usize {
        let mut rings = 0;
        loop {
            let (posted, ring) = self.inbox().send(&letter(source));
            if ring {
                rings += 1;
                self.bell.ring();
            }
            if posted == Posted::Taken {
                return rings;
            }
            thread::yield_now();
        }
    }

    /// What a sender has done that dies right after it took its ticket. None: it found no room.
    fn take_ticket(&self) -> Option<u64> {
        let tail = self.counters.tail.load(Ordering::Relaxed);
        let ticket = tail >> 1;
        let free = self.inbox().slot(ticket).mark.load(Ordering::Relaxed) == mark(FREE, 0, ticket);
        let next = tail + 2;
        let took = free
            && self
                .counters
                .tail
                .compare_exchange(tail, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok();
        took.then_some(ticket)
    }

    /// What a sender has done that dies while it writes; then its death becomes known.
    fn die_writing(&self, rank: u32) {
        if let Some(ticket) = self.take_ticket() {
            let inbox = self.inbox();
            let slot = inbox.slot(ticket);
            let (free, claimed) = (mark(FREE, 0, ticket), mark(CLAIMED, rank, ticket));
            let claim =
                slot.mark.compare_exchange(free, claimed, Ordering::Acquire, Ordering::Relaxed);
            assert!(claim.is_ok(), "nobody passes unclaimed tickets over in this model");
            slot.head.store(u64::MAX, Ordering::Relaxed);
            slot.words[0].store(u64::MAX, Ordering::Relaxed);
        }
        self.dead.fetch_or(1 << rank, Ordering::Release);
    }

    fn take(&self, next: &mut u64, skip: bool) -> Taken {
        let dead = |rank| self.dead.load(Ordering::Acquire) >> rank & 1 == 1;
        self.inbox().take(next, dead, skip)
    }

    /// Takes `count` messages, awake all the time; returns who sent them, sorted.
    fn receive(&self, next: &mut u64, skip: bool, count: usize) -> Vec<u32> {
        let mut sources = Vec::new();
        while sources.len() < count {
            match self.take(next, skip) {
                Taken::Message(message) => sources.push(source_of(&message)),
                _ => thread::yield_now(),
            }
        }
        sources.sort_unstable();
        sources
    }
}

fn source_of(message: &Message) -> u32 {
    assert_eq!(*message, letter(message.source), "a message in pieces");
    message.source
}

fn spawn<T: 'static>(area: &Arc<Area>, f: impl FnOnce(&Area) -> T + 'static) -> JoinHandle<T> {
    let area = area.clone();
    thread::spawn(move || f(&area))
}

#[test]
fn loom_messages_of_two_senders_come_whole_and_once() {
    check(3, || {
        let (area, mut next) = (area(2, 5), 5);
        let senders = [1, 2].map(|rank| spawn(&area, move |area| area.send(rank)));
        assert_eq!(area.receive(&mut next, false, 2), [1, 2]);
        assert!(senders.map(|sender| sender.join().unwrap()) == [0, 0]);
        assert_eq!(area.take(&mut next, true), Taken::Nothing);
    });
}

/// One slot for three messages: it is written again only after it was read, and a sender that
/// finds no room has sent nothing.
#[test]
fn loom_a_full_inbox_loses_and_doubles_nothing() {
    check(2, || {
        let (area, mut next) = (area(1, 0), 0);
        assert_eq!(area.inbox().send(&letter(3)).0, Posted::Taken);
        assert_eq!(area.inbox().send(&letter(4)), (Posted::Full, false));
        let senders = [1, 2].map(|rank| {
            spawn(&area, move |area| (area.inbox().send(&letter(rank)).0 == Posted::Taken, rank))
        });
        let mut got = area.receive(&mut next, false, 1);
        let sent = senders.map(|sender| sender.join().unwrap());
        let expected: Vec<u32> =
            sent.iter().filter(|(taken, _)| *taken).map(|(_, rank)| *rank).chain([3]).collect();
        got.extend(area.receive(&mut next, false, expected.len() - 1));
        got.sort_unstable();
        assert_eq!(got, expected);
        assert_eq!(area.take(&mut next, true), Taken::Nothing);
    });
}

/// The receiver passes every ticket that is not claimed yet: a living sender then takes another.
#[test]
fn loom_a_slow_sender_that_is_passed_over_sends_again() {
    check(2, || {
        let (area, mut next) = (area(2, 0), 0);
        let senders = [1, 2].map(|rank| spawn(&area, move |area| area.send(rank)));
        assert_eq!(area.receive(&mut next, true, 2), [1, 2]);
        let _ = senders.map(|sender| sender.join().unwrap());
        // A message that came twice would lie here.
        assert_eq!(area.take(&mut next, true), Taken::Nothing);
    });
}

#[test]
fn loom_a_ticket_without_a_sender_stops_nobody() {
    check(3, || {
        let (area, mut next) = (area(2, 0), 0);
        let dying = spawn(&area, |area| {
            area.take_ticket();
        });
        let sender = spawn(&area, |area| area.send(2));
        assert_eq!(area.receive(&mut next, true, 1), [2]);
        dying.join().unwrap();
        sender.join().unwrap();
        assert_eq!(area.take(&mut next, true), Taken::Nothing);
        assert!(area.inbox().arm(next), "nothing is left of the ticket");
    });
}

/// The slot that a dead rank has begun to write is used again, for the second message from here.
#[test]
fn loom_a_slot_claimed_by_a_dead_rank_is_free_again() {
    check(3, || {
        let (area, mut next) = (area(2, 0), 0);
        let dying = spawn(&area, |area| area.die_writing(1));
        let sender = spawn(&area, |area| area.send(2));
        assert_eq!(area.receive(&mut next, false, 1), [2]);
        dying.join().unwrap();
        sender.join().unwrap();
        for source in [3, 4] {
            assert_eq!(area.send(source), 0);
            assert_eq!(area.receive(&mut next, false, 1), [source]);
        }
        assert_eq!(area.take(&mut next, false), Taken::Nothing);
    });
}

#[test]
fn loom_one_of_two_senders_rings_for_a_sleeper() {
    check(3, || {
        let (area, mut next) = (area(2, 0), 0);
        assert!(area.inbox().arm(next));
        assert!(area.inbox().arm(next), "arming twice is arming");
        let senders = [1, 2].map(|rank| spawn(&area, move |area| area.send(rank)));
        assert_eq!(senders.map(|sender| sender.join().unwrap()).iter().sum::<usize>(), 1);
        assert!(!area.inbox().arm(next));
        assert_eq!(area.receive(&mut next, false, 2), [1, 2]);
    });
}

/// Either the receiver sees that something was sent, or the sender sees that it must ring.
#[test]
fn loom_arming_and_sending_meet() {
    check(4, || {
        let (area, next) = (area(2, 0), 0);
        let sender = spawn(&area, |area| area.send(1));
        let armed = area.inbox().arm(next);
        assert_eq!(armed, sender.join().unwrap() == 1);
        area.inbox().disarm();
        assert_eq!(area.counters.tail.load(Ordering::Relaxed), 2);
    });
}

/// The receiver sleeps whenever it may; a lost wake-up is a deadlock, which loom reports. It passes
/// unclaimed tickets, so that the duty to ring must also survive a sender's second attempt.
#[test]
fn loom_no_message_finds_the_receiver_asleep_for_ever() {
    check(2, || {
        let (area, mut next) = (area(2, 0), 0);
        let senders = [1, 2].map(|rank| spawn(&area, move |area| area.send(rank)));
        let mut got = 0;
        while got < 2 {
            let ticket = area.bell.ticket();
            area.inbox().disarm();
            match area.take(&mut next, true) {
                Taken::Message(message) => got += source_of(&message).min(1),
                Taken::Nothing if area.inbox().arm(next) => {
                    area.bell.wait(ticket, None);
                }
                _ => thread::yield_now(),
            }
        }
        let _ = senders.map(|sender| sender.join().unwrap());
        area.inbox().disarm();
        assert_eq!(area.take(&mut next, true), Taken::Nothing);
    });
}
