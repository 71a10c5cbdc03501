//! Answers and replies that find no slot: those that were not asked for have taken all of them.

use super::*;
use crate::transport::frame::Class;
use crate::util::counters::Counters;

/// Rank 1 fills the slots for answers of rank 0.
fn fill_answers(ranks: &[Rank; 2]) {
    let routes = &ranks[1].routes;
    let port = routes.port(0).unwrap();
    // The index of a tag that names no operation.
    let nobody = Reply { tag: u64::MAX, status: Status::OK, result: 0 };
    assert!((0..100_000).any(|_| !routes.transport(port).reply(port, nobody, &[])), "no end");
}

/// The owner keeps the answer, does the operation once, and does not sleep until it is answered.
#[test]
fn an_answer_that_finds_no_slot_is_sent_later() {
    let (_world, mut ranks) = two_ranks(8);
    let (mut theirs, ended) = (vec![0u64; 1], AtomicU64::new(0));
    let key = ranks[1].register(&mut theirs);
    fill_answers(&ranks);
    for _ in 0..3 {
        ranks[0].start(increment(1, key, &ended), Stage::Word);
    }
    while ranks[1].round() > 0 {}
    let Rank { work, routes, .. } = &mut ranks[1];
    assert!(!work.arm(routes, 1), "three answers are kept");
    work.disarm();
    assert_eq!((theirs[0], value(&ended)), (3, 0));
    settle(&mut ranks);
    ranks[1].round();
    settle(&mut ranks);
    assert_eq!((theirs[0], value(&ended)), (3, 3));
    let Rank { work, routes, .. } = &mut ranks[1];
    assert!(work.arm(routes, 1) && work.is_idle());
    work.disarm();
}

/// Nobody waits for the answer of a dead rank's request.
#[test]
fn an_answer_to_a_dead_rank_is_not_kept() {
    let (_world, mut ranks) = two_ranks(8);
    let (mut theirs, ended) = (vec![0u64; 1], AtomicU64::new(0));
    let key = ranks[1].register(&mut theirs);
    fill_answers(&ranks);
    ranks[0].start(increment(1, key, &ended), Stage::Word);
    while ranks[1].round() > 0 {}
    let Rank { work, routes, .. } = &mut ranks[1];
    routes.mark_dead(0);
    while work.round(routes) > 0 {}
    assert!(work.arm(routes, 1));
    work.disarm();
}

#[test]
fn a_reply_that_finds_no_slot_is_sent_later() {
    let (_world, ranks) = two_ranks(8);
    let counts = Arc::new(Counters::default());
    let mut receiver = ranks[0].routes.fabric().message_receiver(counts, Class::Replies);
    let post = &ranks[1].work.post;
    let mut sent = 0;
    while !post.has_unsent_replies() {
        post.reply(0, sent, Status::OK, &[1; 8]);
        sent += 1;
        assert!(sent < 100_000, "no end");
    }
    post.send_unsent_replies();
    assert!(post.has_unsent_replies(), "rank 0 has given no slot back");
    let mut come = 0;
    let mut take = || {
        while let Some(reply) = receiver.peek() {
            assert_eq!(reply.tag(), come);
            come += 1;
            receiver.done();
        }
        come
    };
    take();
    post.send_unsent_replies();
    assert!(!post.has_unsent_replies());
    assert_eq!(take(), sent);
}
