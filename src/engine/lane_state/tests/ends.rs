//! Operations that end by the death of a peer or by cancellation.

use super::*;

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
