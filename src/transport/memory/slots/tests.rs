//! Tests of a share with one thread and with several.

use super::*;
use std::cell::Cell;

/// The memory of a share.
struct Area {
    send: AtomicU64,
    recv: AtomicU64,
    asides: AtomicU64,
    claims: Vec<AtomicU64>,
    slots: Vec<Slot>,
}

// SAFETY: threads access bodies only by the protocol of a share, which these tests check.
unsafe impl Sync for Area {}

impl Area {
    fn new(slots: usize) -> Area {
        let area = Area {
            send: AtomicU64::new(0),
            recv: AtomicU64::new(0),
            asides: AtomicU64::new(0),
            claims: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            slots: (0..slots).map(|_| Slot::fresh()).collect(),
        };
        area.share().reset();
        area
    }

    fn share(&self) -> SlotShare<'_> {
        let Area { send, recv, asides, claims, slots } = self;
        SlotShare { send, recv, asides, claims, slots }
    }
}

#[derive(Default)]
struct Counted {
    reads: Cell<u32>,
    lost: Cell<u32>,
}

impl Tally for Counted {
    fn read_credit(&self) {
        self.reads.set(self.reads.get() + 1);
    }

    fn lost(&self) {
        self.lost.set(self.lost.get() + 1);
    }
}

#[test]
fn a_full_share_refuses_until_slots_are_given_back() {
    let (area, cached, tally) = (Area::new(2), AtomicU64::new(FIRST), Counted::default());
    let share = area.share();
    assert_eq!(share.take(1, &cached, &tally), Taken::Ticket(FIRST));
    assert_eq!(share.take(1, &cached, &tally), Taken::Ticket(FIRST + 1));
    assert_eq!(tally.reads.get(), 0, "the cached credit was enough");
    assert_eq!(share.take(1, &cached, &tally), Taken::Full);
    share.give_back(FIRST + 1);
    assert_eq!(share.take(1, &cached, &tally), Taken::Ticket(FIRST + 2));
    assert_eq!((tally.reads.get(), tally.lost.get()), (2, 0));
}

#[test]
fn a_near_place_belongs_to_one_ticket_at_a_time() {
    let area = Area::new(4);
    let share = area.share();
    let near = |ahead: u64| share.is_near(FIRST.wrapping_add(ahead), 2);
    assert_eq!([0, 1, 2, 3].map(near), [true, true, false, false]);
    share.give_back(FIRST.wrapping_add(1));
    assert_eq!([0, 1, 2, 3].map(near), [false, true, true, false]);
    share.set_asides(1);
    assert_eq!([0, 1, 2, 3].map(near), [false; 4], "the one set aside may use any place");
    assert!(!share.is_near(FIRST.wrapping_add(1), 4), "as many places as slots");
}

/// A share whose counters begin elsewhere.
fn moved_to(slots: usize, first: u64) -> Area {
    let area = Area::new(slots);
    area.send.store(first, Ordering::Relaxed);
    area.recv.store(first, Ordering::Relaxed);
    for back in 1..=slots as u64 {
        let ticket = first.wrapping_sub(back);
        area.share().claim_of(ticket).store(claim(ticket, PASSED), Ordering::Relaxed);
    }
    area
}

fn write(share: &SlotShare, ticket: u64, value: u64) {
    // SAFETY: the caller has the slot's ticket.
    share.slot(ticket).body().with_mut(|body| unsafe { (*body)[BODY_WORDS - 1] = value });
    share.publish(ticket);
}

fn read(share: &SlotShare, next: u64) -> Option<u64> {
    share.is_ready(next).then(|| {
        // SAFETY: the slot is published and not given back.
        share.slot(next).body().with(|body| unsafe { (*body)[BODY_WORDS - 1] })
    })
}

/// Tickets just before 2^64 and 2^32, and just before the shifted tickets in claims and marks wrap.
#[test]
fn messages_pass_the_edges_of_all_counters_in_order() {
    for slots in [1, 2, 8] {
        for edge in [0, 1 << 32, 1 << 40, 1 << 63] {
            let first = u64::wrapping_sub(edge, 5);
            let (area, cached) = (moved_to(slots, first), AtomicU64::new(first));
            let (share, tally) = (area.share(), Counted::default());
            let (mut next, mut sent) = (first, 0);
            for _ in 0..12 {
                while let Taken::Ticket(ticket) = share.take(1, &cached, &tally) {
                    assert!(!share.is_ready(ticket), "what an earlier round left is not this");
                    write(&share, ticket, sent);
                    sent += 1;
                }
                for _ in 0..slots {
                    assert!(share.sent() != next && share.is_begun(next));
                    assert_eq!(read(&share, next), Some(next.wrapping_sub(first)));
                    next = next.wrapping_add(1);
                    share.give_back(next);
                }
                assert!(share.sent() == next && !share.is_begun(next));
            }
            assert_eq!((sent, tally.lost.get()), (12 * slots as u64, 0));
        }
    }
}

/// A sender dies after it has taken the only free ticket, before it stores SendCNT.
#[test]
fn a_dead_ticket_of_a_share_with_one_slot_is_found_by_its_claim() {
    let (area, cached, tally) = (Area::new(1), AtomicU64::new(FIRST), Counted::default());
    let share = area.share();
    assert!(share.claim(FIRST, 5) == Claim::Done && share.has_room());
    assert_eq!(share.take(2, &cached, &tally), Taken::Full);
    assert!(!share.has_room(), "who has found none leaves no other hope");
    assert!(share.is_begun(FIRST) && share.sent() == FIRST + 1);
    assert!(!share.pass_over(FIRST, |rank| rank != 5, true), "it lives");
    assert!(share.pass_over(FIRST, |rank| rank == 5, false));
    share.give_back(FIRST.wrapping_add(1));
    assert_eq!(share.take(2, &cached, &tally), Taken::Ticket(FIRST.wrapping_add(1)));
}

/// Senders find tickets whatever value SendCNT has: an old one, or one that a faulty peer has
/// written.
#[test]
fn a_sendcnt_that_is_wrong_costs_looks_and_nothing_else() {
    for wrong in [FIRST, FIRST + 2, FIRST + 900, FIRST - 5, 5 + (1 << 40), FIRST ^ 1 << 63] {
        let (area, cached, tally) = (Area::new(4), AtomicU64::new(FIRST), Counted::default());
        let share = area.share();
        let sent = |count: u64| FIRST.wrapping_add(count);
        for number in 0..6 {
            assert_eq!(share.take(1, &cached, &tally), Taken::Ticket(sent(number)));
            write(&share, sent(number), number);
            share.give_back(sent(number + 1));
        }
        share.send.store(wrong, Ordering::Relaxed);
        assert_eq!(share.sent(), sent(6));
        for number in 6..10 {
            assert_eq!(share.take(1, &cached, &tally), Taken::Ticket(sent(number)), "{wrong:#x}");
            share.send.store(wrong, Ordering::Relaxed);
        }
        assert_eq!(share.take(1, &cached, &tally), Taken::Full, "{wrong:#x}");
        assert!(!share.has_room() && tally.lost.get() == 0);
    }
}

/// A sender sleeps before it claims a ticket; meanwhile the receiver passes the ticket over, and
/// the slot is used for two more rounds. The sender then takes another ticket.
#[test]
fn a_sender_that_slept_for_rounds_claims_nothing() {
    let (area, cached, tally) = (Area::new(2), AtomicU64::new(FIRST), Counted::default());
    let share = area.share();
    let slept = FIRST;
    let mut next = FIRST;
    assert!(share.pass_over(next, |_| false, true));
    for _ in 0..4 {
        next = next.wrapping_add(1);
        share.give_back(next);
        let ticket = next;
        assert_eq!(share.take(1, &cached, &tally), Taken::Ticket(ticket));
        assert!(share.claim(slept, 2) == Claim::Anothers);
        write(&share, ticket, 7);
        assert!(share.claim(slept, 2) == Claim::Anothers);
        assert_eq!(read(&share, next), Some(7));
    }
}

#[test]
fn what_a_dead_sender_has_published_is_not_passed_over_and_the_rest_is() {
    let (area, cached, tally) = (Area::new(2), AtomicU64::new(FIRST), Counted::default());
    let share = area.share();
    let (first, second) = (FIRST, FIRST + 1);
    assert_eq!(share.take(5, &cached, &tally), Taken::Ticket(first));
    assert_eq!(share.take(5, &cached, &tally), Taken::Ticket(second));
    write(&share, first, 1);
    assert!(!share.pass_over(first, |rank| rank == 5, true));
    assert!(!share.pass_over(second, |rank| rank != 5, true), "it lives and is at work");
    assert!(share.pass_over(second, |rank| rank == 5, false));
}

/// More sending threads than slots, with two caches of RecvCNT as in two processes, while the
/// counters wrap around.
#[test]
fn threads_lose_and_double_nothing() {
    const EACH: u64 = 2000;
    for slots in [1, 4] {
        let area = Area::new(slots);
        let cached = [AtomicU64::new(FIRST), AtomicU64::new(FIRST)];
        let mut last = [0; 4];
        std::thread::scope(|scope| {
            for rank in 0..4_u32 {
                let (area, cached) = (&area, &cached[rank as usize % 2]);
                scope.spawn(move || {
                    let (share, tally) = (area.share(), Counted::default());
                    for number in 1..=EACH {
                        let ticket = loop {
                            match share.take(rank, cached, &tally) {
                                Taken::Ticket(ticket) => break ticket,
                                Taken::Full => std::thread::yield_now(),
                            }
                        };
                        write(&share, ticket, u64::from(rank) << 32 | number);
                    }
                });
            }
            let share = area.share();
            let (mut next, mut got) = (FIRST, 0);
            while got < 4 * EACH {
                let Some(word) = read(&share, next) else {
                    // Sets SendCNT back, as late senders do.
                    let passed = got % 8 == 0 && share.pass_over(next, |_| false, true);
                    next = next.wrapping_add(u64::from(passed));
                    share.give_back(next);
                    std::thread::yield_now();
                    continue;
                };
                let (rank, number) = ((word >> 32) as usize, word & 0xffff_ffff);
                assert_eq!(number, last[rank] + 1, "of rank {rank}");
                last[rank] = number;
                got += 1;
                next = next.wrapping_add(1);
                share.give_back(next);
            }
        });
        assert_eq!(last, [EACH; 4]);
    }
}
