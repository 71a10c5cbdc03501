//! Operations that end by the death of a peer or by cancellation.

use super::*;
use crate::engine::control_messages::{self, ControlMessage, Ended, Write};
use crate::util::status::Status;

/// A question that finds the table full is sent when a death has made room, and dropped when all
/// operations are cancelled.
#[test]
fn questions_outlive_a_full_table_and_not_the_lane() {
    for dies in [true, false] {
        let (_world, mut ranks) = two_ranks(3);
        let (mut own, mut theirs, ended) = (vec![0u64; 1], vec![0u64; 1], AtomicU64::new(0));
        let keys = [ranks[0].register(&mut own), ranks[1].register(&mut theirs)];
        for _ in 0..3 {
            ranks[0].start(increment(1, keys[1], &ended), Stage::Word);
        }
        ranks[0].work.questions.push((0, keys[0]));
        let Rank { work, routes, .. } = &mut ranks[0];
        work.take_questions(routes);
        assert_eq!(work.questions.len(), 1, "the table is full");
        if dies {
            routes.mark_dead(1);
            while work.round(routes) > 0 {}
        } else {
            work.cancel(routes);
        }
        assert_eq!((value(&ended), work.questions.len()), (3 | WORD_FAILED, 0), "dies: {dies}");
        assert!(work.is_idle());
    }
}

#[cfg(feature = "simulated")]
mod at_once;
#[cfg(feature = "simulated")]
mod kills;
#[cfg(feature = "simulated")]
mod posts;

/// Without bytes there need not be a source.
#[test]
fn a_write_of_no_bytes_signals() {
    let (_world, mut ranks) = two_ranks(8);
    let mut theirs = [0u64; 1];
    let key = ranks[1].register(&mut theirs);
    let ended = AtomicU64::new(0);
    for carried in [false, true] {
        let mut write = Command::new(Op::WRITE_SIGNAL, 1);
        (write.remote, write.signal) = (Address { offset: 0, key }, Address { offset: 0, key });
        (write.local, write.size) = (std::ptr::null_mut(), 0);
        (write.code, write.operand) = (op::ADD, 5);
        write.on_complete = add_to(&ended);
        let Rank { work, routes, .. } = &mut ranks[0];
        // SAFETY: as in Rank::start().
        assert!(unsafe { work.start(routes, write, Stage::Data { done: 0 }, carried) });
        settle(&mut ranks);
    }
    assert_eq!((theirs[0], value(&ended)), (10, 2));
}

/// How many control messages have ended well.
struct EndedWell(AtomicU64);

impl Ended for EndedWell {
    fn ended(&self, _: u32, _: usize, status: Status) {
        assert_eq!(status, Status::OK);
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Each attempt would copy the bytes again, and the owner may have changed them since.
#[test]
fn a_write_before_a_control_message_waits_for_room_in_the_table() {
    let (_world, mut ranks) = two_ranks(2);
    let (mut theirs, mut mine, mut ours) = ([0u64; 1], [0u64; 1], [5u64; 1]);
    let key = ranks[1].register(&mut theirs);
    let to = Address { offset: 0, key: ranks[0].register(&mut mine) };
    let place = mine.as_ptr();
    let (ended, ends) = (AtomicU64::new(0), Arc::new(EndedWell(AtomicU64::new(0))));
    for _ in 0..2 {
        ranks[0].start(increment(1, key, &ended), Stage::Word);
    }
    let message = ControlMessage { peer: 0, name: 77, words: [0, 1, 2], keep: false, bytes: &[] };
    let write = Write { to, from: ours.as_mut_ptr().cast(), size: 8, copied: false };
    // SAFETY: the bytes and the places outlive the ranks, and the command is executed once.
    unsafe {
        let command = control_messages::write(&message, write, &(ends.clone() as Arc<_>)).unwrap();
        let Rank { work, routes, .. } = &mut ranks[0];
        assert!(!work.execute_one(routes, command, false), "the table is full");
        assert_eq!(place.read_volatile(), 0, "the bytes have not been written");
        settle(&mut ranks);
        let Rank { work, routes, .. } = &mut ranks[0];
        assert!(work.execute_one(routes, command, false));
        assert_eq!(place.read_volatile(), 5);
    }
    settle(&mut ranks);
    assert_eq!((value(&ended), value(&ends.0)), (2, 1));
}
