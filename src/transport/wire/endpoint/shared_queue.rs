//! The tests send frames into shared queues: in streams, beside receivers that take nothing, and
//! from ranks that leave.

use super::turns::All;
use super::uses::{MANY, Ranks};
use super::*;
use std::cell::RefCell;

fn natures() -> impl Iterator<Item = String> {
    (1..=6).map(|seed| format!("{seed}:shared=1:fd=0"))
}

/// Frames of all lines come once, also those that are too long for a shared queue, and their sender
/// learns it.
#[test]
fn frames_of_many_come_once_by_a_shared_queue() {
    for name in natures() {
        let mut ranks = Ranks::new(3, &name);
        for turn in 1..=3 {
            ranks.stream(1, turn * MANY, &[0, 1, 2]);
            ranks.stream(2, turn * MANY, &[0, 1, 2]);
        }
    }
}

/// Of eight ranks that send as much as they may, none gets less than half of its part, and no more
/// than 16 frames of each are under way.
#[test]
fn senders_share_a_queue_evenly() {
    const SENDERS: usize = 8;
    for name in natures() {
        let all = All::star(SENDERS as u32 + 1, &name);
        let (came, mut sent) = (RefCell::new([0; SENDERS + 1]), 0);
        let (deliver, limit) = (
            |from: u32, _: Class, _: &Frame| {
                came.borrow_mut()[from as usize] += 1;
                true
            },
            Instant::now() + Duration::from_secs(20),
        );
        while came.borrow().iter().sum::<u64>() < SENDERS as u64 * MANY {
            assert!(Instant::now() < limit, "{name}: {came:?}");
            for from in 1..=SENDERS {
                while all.put(from, 0, Class::Requests, 0, 8) {
                    sent += 1;
                }
            }
            // The receiver keeps 32 in receives and 32 in buffers.
            let left = sent - came.borrow().iter().sum::<u64>();
            assert!(left <= SENDERS as u64 * 16 + 64, "{name}: {left} have not come");
            (0..=SENDERS).for_each(|rank| all.round(rank, &deliver));
        }
        assert!(came.borrow()[1..].iter().all(|came| *came >= MANY / 2), "{name}: {came:?}");
    }
}

/// Every frame whose command has ended comes, though its sender has left and no slot was free.
#[test]
fn what_a_rank_has_sent_comes_when_it_has_left() {
    for name in natures() {
        let mut ranks = Ranks::new(2, &name);
        let both = |it: &Ranks| {
            for end in it.ends.iter().flatten() {
                end.shared.round(end.shared.lock(), &|_, _, _| false);
            }
        };
        let mut sent = 0;
        // No frame that needs a grant: it would have to wait for a slot.
        ranks.until("not all have come", |it| {
            it.put(1, 5);
            sent = it.sent[1];
            both(it);
            sent == 5 && it.ends[1].as_ref().unwrap().shared.lock().outgoing.has_queued_all()
        });
        for _ in 0..1000 {
            assert!(!ranks.ends[1].as_ref().unwrap().has_delivered_all(), "none has a slot");
            both(&ranks);
        }
        ranks.ends[1] = None;
        ranks.ends[0].as_ref().unwrap().mark_dead(1);
        ranks.until("a frame is lost", |it| {
            it.round(&[0]);
            it.has_got(1, sent)
        });
    }
}

/// A rank that takes no requests of users takes their responses, and requests to owners, of the
/// rank that waits for it and of others; that rank sends requests elsewhere meanwhile.
#[test]
fn a_full_shared_queue_stops_its_own_line_only() {
    for name in natures() {
        let (all, came) = (All::new(3, &name), RefCell::new(Vec::new()));
        let deliver = |rank: usize, from: u32, class: Class, frame: &Frame| {
            let takes = rank != 1 || class != Class::Requests;
            if takes && frame.tag > 0 {
                came.borrow_mut().push((rank, from, class as u8, frame.tag));
            }
            takes
        };
        let rounds = || {
            (0..3).for_each(|rank| {
                all.round(rank, &|from, class, it| deliver(rank, from, class, it))
            });
        };
        let filled = all.fill((0, 1), Class::Requests, rounds);
        // The receives of the class, the buffers of the line, and the sender's waiting frames.
        assert!((32 + 32..=32 + 32 + 40).contains(&filled), "{name}: {filled} were taken");
        let ways = [
            (0, 1, Class::Responses),
            (0, 1, Class::Lib),
            (2, 1, Class::Responses),
            (2, 1, Class::Lib),
            (0, 2, Class::Requests),
        ];
        let (mut next, limit) = ([1; 5], Instant::now() + Duration::from_secs(20));
        while came.borrow().len() < 5 * 200 {
            assert!(Instant::now() < limit, "{name}: {next:?}");
            for (next, (from, to, class)) in next.iter_mut().zip(ways) {
                *next += u64::from(*next <= 200 && all.put(from, to, class, *next, 8));
            }
            rounds();
        }
        let mut came = came.into_inner();
        came.sort_unstable();
        assert!(came.is_sorted_by(|one, next| one < next), "each has come once");
    }
}

/// Over any wire: a rank sends to another, whatever it has sent to 100 peers that take nothing. The
/// sizes go into a shared queue or a ticket, fit into a knock, or do neither.
#[test]
fn peers_that_take_nothing_leave_a_way_to_others() {
    const SILENT: usize = 100;
    let grants = (1..=2).map(|seed| format!("{seed}:remote=0:shared=0:fd=0"));
    for name in natures().take(3).chain(super::uses::natures(1).take(2)).chain(grants) {
        let (all, came) = (All::star(SILENT as u32 + 2, &name), RefCell::new(0));
        let take = |_: u32, _: Class, _: &Frame| {
            *came.borrow_mut() += 1;
            true
        };
        let ways = [
            (Class::Requests, 8),
            (Class::Requests, 300),
            (Class::Requests, 900),
            (Class::Responses, 900),
            (Class::Lib, 8),
            (Class::Lib, 48),
        ];
        for to in 2..SILENT + 2 {
            for (class, size) in &ways {
                while all.put(0, to, *class, 0, *size) {}
                all.round(0, &take);
            }
        }
        let (mut sent, limit) = ([0; 6], Instant::now() + Duration::from_secs(20));
        while *came.borrow() < 6 * 50 {
            assert!(Instant::now() < limit, "{name}: {sent:?}");
            for (sent, (class, size)) in sent.iter_mut().zip(&ways) {
                *sent += u64::from(*sent < 50 && all.put(0, 1, *class, 0, *size));
            }
            (0..2).for_each(|rank| all.round(rank, &take));
        }
    }
}
