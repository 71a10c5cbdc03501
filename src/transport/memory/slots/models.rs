//! Loom models of a share: several senders, some of which die or are slow, and the receiver. Loom
//! reports concurrent accesses to a slot's body even if no value is wrong.

use super::*;
use crate::transport::memory::message_area::WakeFlag;
use crate::util::sync::Arc;
use loom::thread::{self, JoinHandle};

mod asides;
mod near;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// The shared memory, one process of senders, and the deaths that the receiver knows.
struct Area {
    send: AtomicU64,
    recv: AtomicU64,
    asides: AtomicU64,
    claims: Vec<AtomicU64>,
    slots: Vec<Slot>,
    /// The only near place: if a message has it, word 1 of its slot is 1.
    near: UnsafeCell<u64>,
    /// What the senders' process has seen of RecvCNT.
    cached: AtomicU64,
    /// Ranks that are dead, one bit each.
    dead: AtomicU64,
    flag: WakeFlag,
}

struct Silent;

impl Tally for Silent {
    fn read_credit(&self) {}
    fn lost(&self) {}
}

fn area(slots: usize) -> Arc<Area> {
    let area = Area {
        send: AtomicU64::new(0),
        recv: AtomicU64::new(0),
        asides: AtomicU64::new(0),
        claims: (0..slots).map(|_| AtomicU64::new(0)).collect(),
        slots: (0..slots).map(|_| Slot::fresh()).collect(),
        near: UnsafeCell::new(0),
        cached: AtomicU64::new(FIRST),
        dead: AtomicU64::new(0),
        flag: WakeFlag::default(),
    };
    area.share().reset();
    Arc::new(area)
}

/// The words of a rank's message, first and last.
fn words(rank: u32) -> (u64, u64) {
    (u64::from(rank), u64::from(rank) * 100)
}

impl Area {
    fn share(&self) -> SlotShare<'_> {
        let Area { send, recv, asides, claims, slots, .. } = self;
        SlotShare { send, recv, asides, claims, slots }
    }

    /// Sends if there is credit; tries take_at_once() first, as senders do.
    fn try_send(&self, rank: u32) -> bool {
        let share = self.share();
        let at_once =
            share.take_at_once(rank, &self.cached).map(|(ticket, _)| Taken::Ticket(ticket));
        let taken = at_once.unwrap_or_else(|| share.take(rank, &self.cached, &Silent));
        let Taken::Ticket(ticket) = taken else { return false };
        self.write(ticket, rank);
        self.share().publish(ticket);
        true
    }

    fn send(&self, rank: u32) {
        while !self.try_send(rank) {
            thread::yield_now();
        }
    }

    fn mark_dead(&self, rank: u32) {
        self.dead.fetch_or(1 << rank, Ordering::Release);
    }

    fn is_dead(&self, rank: u32) -> bool {
        self.dead.load(Ordering::Acquire) >> rank & 1 == 1
    }

    /// Takes the message of ticket `next` if it is published; returns its sender.
    fn read(&self, next: u64) -> Option<u32> {
        let share = self.share();
        share.is_ready(next).then(|| {
            share.slot(next).body().with(|body| {
                // SAFETY: published and not given back; loom reports a concurrent write.
                let body = unsafe { &*body };
                let rank = body[0] as u32;
                assert_eq!((body[0], body[BODY_WORDS - 1]), words(rank), "a message in pieces");
                self.check_near(body[1] != 0, rank);
                rank
            })
        })
    }

    /// Passes over a ticket by the rules of MessageReceiver.
    fn pass_over(&self, next: u64, unclaimed_too: bool) -> bool {
        let share = self.share();
        share.is_begun(next) && share.pass_over(next, |rank| self.is_dead(rank), unclaimed_too)
    }

    /// Takes one message, and passes over tickets that it may pass over; returns the sender.
    fn receive(&self, next: &mut u64, unclaimed_too: bool) -> u32 {
        loop {
            let came = self.read(*next);
            if came.is_none() && !self.pass_over(*next, unclaimed_too) {
                thread::yield_now();
                continue;
            }
            *next = next.wrapping_add(1);
            self.share().give_back(*next);
            if let Some(rank) = came {
                return rank;
            }
        }
    }

    fn receive_sorted(&self, next: &mut u64, unclaimed_too: bool, count: usize) -> Vec<u32> {
        let mut ranks: Vec<u32> = (0..count).map(|_| self.receive(next, unclaimed_too)).collect();
        ranks.sort_unstable();
        ranks
    }

    /// Asserts that no message waits, and that only dead senders have begun one.
    fn is_empty(&self, mut next: u64) -> bool {
        while self.pass_over(next, true) {
            next = next.wrapping_add(1);
        }
        let share = self.share();
        !share.is_ready(next) && !share.is_begun(next) && share.sent() == next
    }
}

fn spawn<T: 'static>(area: &Arc<Area>, f: impl FnOnce(&Area) -> T + 'static) -> JoinHandle<T> {
    let area = area.clone();
    thread::spawn(move || f(&area))
}

#[test]
fn loom_two_senders_of_one_process_share_two_slots_and_what_they_know_of_credit() {
    check(2, || {
        let (area, mut next) = (area(2), FIRST);
        let senders = [1, 2].map(|rank| spawn(&area, move |area| area.send(rank)));
        assert_eq!(area.receive_sorted(&mut next, false, 2), [1, 2]);
        let _ = senders.map(|sender| sender.join().unwrap());
        assert!(area.is_empty(next));
    });
}

/// A sender writes the second message into the slot from which the receiver has read the first.
#[test]
fn loom_two_messages_follow_each_other_in_one_slot() {
    check(3, || {
        let (area, mut next) = (area(1), FIRST);
        let sender = spawn(&area, |area| {
            area.send(1);
            area.send(2);
        });
        assert_eq!([(); 2].map(|()| area.receive(&mut next, false)), [1, 2]);
        sender.join().unwrap();
        assert!(area.is_empty(next));
    });
}

/// One thread reads RecvCNT, another uses only the cached value.
#[test]
fn loom_credit_that_another_thread_has_read_hands_over_the_slot() {
    check(3, || {
        let (area, mut next) = (area(1), FIRST);
        area.send(1);
        let looker = spawn(&area, |area| {
            let seen = area.share().recv.load(Ordering::Acquire);
            area.cached.store(seen, Ordering::Release);
        });
        let user = spawn(&area, |area| {
            // Only with the value that the other thread has cached.
            area.cached.load(Ordering::Relaxed) != FIRST && area.try_send(2)
        });
        assert_eq!(area.receive(&mut next, false), 1);
        looker.join().unwrap();
        if user.join().unwrap() {
            assert_eq!(area.receive(&mut next, false), 2);
        }
        assert!(area.is_empty(next));
    });
}

/// A sender that finds no credit changes nothing.
#[test]
fn loom_a_full_share_loses_and_doubles_nothing() {
    check(3, || {
        let (area, mut next) = (area(1), FIRST);
        area.send(3);
        let senders = [1, 2].map(|rank| spawn(&area, move |area| area.try_send(rank)));
        assert_eq!(area.receive(&mut next, false), 3);
        let sent = senders.map(|sender| sender.join().unwrap());
        assert!(!(sent[0] && sent[1]), "one slot");
        for (sent, rank) in sent.iter().zip([1, 2]) {
            assert!(!sent || area.receive(&mut next, false) == rank);
        }
        assert!(area.is_empty(next));
    });
}

/// The receiver passes over the next ticket although nobody has claimed it, as it does after a
/// wrong value of SendCNT: a living sender takes another ticket.
#[test]
fn loom_a_slow_sender_that_is_passed_over_takes_another_ticket() {
    // At most two threads of a model retry: loom would run two retrying threads in turns for ever
    // while the third one is between two steps.
    for senders in [1, 2] {
        check(2, move || {
            let (area, mut next) = (area(senders), FIRST);
            let all: Vec<u32> = (1..=senders as u32).collect();
            let threads: Vec<_> =
                all.iter().copied().map(|rank| spawn(&area, move |area| area.send(rank))).collect();
            if area.share().pass_over(next, |_| false, true) {
                next = next.wrapping_add(1);
                area.share().give_back(next);
            }
            assert_eq!(area.receive_sorted(&mut next, true, senders), all);
            threads.into_iter().for_each(|sender| sender.join().unwrap());
            assert!(area.is_empty(next));
        });
    }
}

/// The step after which a sender dies.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// It has not stored SendCNT.
    Claimed,
    Counted,
    Writing,
    Published,
}

impl Area {
    /// Sends up to a step, and then announces the sender's death. Returns whether the message is
    /// published.
    fn die(&self, rank: u32, end: End) -> bool {
        let share = self.share();
        let ticket = share.send.load(Ordering::Relaxed);
        let claimed = share.has_slot(ticket, FIRST) && share.claim(ticket, rank) == Claim::Done;
        if claimed && end != End::Claimed {
            share.send.store(ticket.wrapping_add(1), Ordering::Relaxed);
        }
        if claimed && matches!(end, End::Writing | End::Published) {
            // Half of a message, with the mark of rank 9, which sends none.
            self.write(ticket, if end == End::Writing { 9 } else { rank });
        }
        if claimed && end == End::Published {
            share.publish(ticket);
        }
        self.mark_dead(rank);
        claimed && end == End::Published
    }
}

/// A sender dies at a step while another sends, into another slot or the same one. Afterwards all
/// slots can be used.
fn a_death(end: End) {
    a_death_among(2, end);
    a_death_among(1, end);
}

fn a_death_among(slots: usize, end: End) {
    check(2, move || {
        let (area, mut next) = (area(slots), FIRST);
        // With one slot the other sender would retry without end, so the death comes first.
        let dying = match slots {
            1 => Err(area.die(1, end)),
            _ => Ok(spawn(&area, move |area| area.die(1, end))),
        };
        let sender = spawn(&area, |area| area.send(2));
        let mut got = vec![area.receive(&mut next, false)];
        if slots == 1 && end == End::Published {
            got.push(area.receive(&mut next, false));
        }
        let complete = dying.map_or_else(|complete| complete, |dying| dying.join().unwrap());
        sender.join().unwrap();
        if complete && got.len() == 1 {
            got.push(area.receive(&mut next, false));
        }
        got.sort_unstable();
        assert_eq!(got, if complete { vec![1, 2] } else { vec![2] });
        for rank in [3, 4] {
            // Frees a slot: the search for a message passes over the dead sender's ticket.
            while !area.try_send(rank) {
                assert!(area.pass_over(next, true));
                next = next.wrapping_add(1);
                area.share().give_back(next);
            }
            assert_eq!(area.receive(&mut next, true), rank);
        }
        assert!(area.is_empty(next));
    });
}

#[test]
fn loom_a_sender_that_dies_with_a_ticket_that_was_told_stops_nobody() {
    a_death(End::Counted);
}

#[test]
fn loom_a_sender_that_dies_with_a_claim_stops_nobody() {
    a_death(End::Claimed);
}

#[test]
fn loom_a_sender_that_dies_while_it_writes_stops_nobody() {
    a_death(End::Writing);
}

#[test]
fn loom_a_message_whose_sender_died_after_it_still_comes() {
    a_death(End::Published);
}

/// A late store sets SendCNT back by more than a round: no ticket is taken twice, and none is left
/// out.
#[test]
fn loom_a_sendcnt_that_is_set_back_loses_and_doubles_nothing() {
    check(3, || {
        let (area, mut next) = (area(1), FIRST);
        let sleeper = spawn(&area, |area| {
            // The late store of a sender that has claimed the first ticket.
            area.share().send.store(FIRST.wrapping_add(1), Ordering::Relaxed);
        });
        let share = area.share();
        assert!(share.claim(FIRST, 1) == Claim::Done);
        area.write(FIRST, 1);
        share.publish(FIRST);
        assert_eq!(area.receive(&mut next, false), 1);
        for rank in [2, 3] {
            let sender = spawn(&area, move |area| area.try_send(rank));
            if sender.join().unwrap() {
                assert_eq!(area.receive(&mut next, false), rank);
            } else {
                panic!("there was room for rank {rank}");
            }
        }
        sleeper.join().unwrap();
        assert!(area.try_send(4));
        assert_eq!(area.receive(&mut next, false), 4);
        assert!(area.is_empty(next));
    });
}

/// The receiver does not pass over a ticket that a living sender has claimed.
#[test]
fn loom_a_claimed_ticket_of_a_living_sender_is_waited_for() {
    check(3, || {
        let area = area(2);
        let sender = spawn(&area, |area| area.try_send(1));
        let passed = area.share().pass_over(FIRST, |_| false, true);
        assert!(sender.join().unwrap());
        // The message has this ticket, or the next one.
        let at = if passed { FIRST.wrapping_add(1) } else { FIRST };
        assert_eq!(area.read(at), Some(1));
        assert!(!passed || area.read(FIRST).is_none());
    });
}

/// The sleep of MessageReceiver: it arms the flag, and then reads the claims. A lost wake-up is a
/// deadlock, which loom reports.
#[test]
fn loom_no_message_finds_the_receiver_asleep_for_ever() {
    check(2, || {
        let (area, mut next) = (area(2), FIRST);
        let senders = [1, 2].map(|rank| {
            spawn(&area, move |area| {
                area.send(rank);
                if area.flag.take() {
                    area.flag.bell().ring();
                }
            })
        });
        let mut got = 0;
        while got < 2 {
            let ticket = area.flag.bell().ticket();
            if area.read(next).is_some() {
                next = next.wrapping_add(1);
                area.share().give_back(next);
                got += 1;
                continue;
            }
            assert!(area.flag.arm());
            match area.share().is_begun(next) {
                true => thread::yield_now(),
                false => drop(area.flag.bell().wait(ticket, None)),
            }
            area.flag.disarm();
        }
        let _ = senders.map(|sender| sender.join().unwrap());
    });
}

/// Either the receiver sees that a sender has begun a message, or exactly one sender rings.
#[test]
fn loom_arming_and_taking_the_flag_meet() {
    check(3, || {
        let area = area(2);
        let senders = [1, 2].map(|rank| {
            spawn(&area, move |area| {
                area.send(rank);
                u32::from(area.flag.take())
            })
        });
        assert!(area.flag.arm());
        let begun = area.share().is_begun(FIRST);
        let rings: u32 = senders.map(|sender| sender.join().unwrap()).iter().sum();
        assert!(rings <= 1 && (begun || rings == 1), "begun {begun}, rings {rings}");
    });
}

/// The sleep of the lane's receiver, which calls no heavy fence, and mostly reads two words of a
/// share.
#[test]
fn loom_arming_and_taking_the_flag_of_the_lane_meet() {
    check(3, || {
        let area = area(2);
        let senders = [1, 2].map(|rank| {
            spawn(&area, move |area| {
                area.send(rank);
                u32::from(area.flag.take_fenced())
            })
        });
        area.flag.arm_fenced();
        let begun = !area.share().awaits(FIRST);
        let rings: u32 = senders.map(|sender| sender.join().unwrap()).iter().sum();
        assert!(rings <= 1 && (begun || rings == 1), "begun {begun}, rings {rings}");
    });
}
