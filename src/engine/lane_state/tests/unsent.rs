//! Answers, replies and responses that find no slot, or none that is large enough.

use super::*;
use crate::engine::messages::dispatch::{Dispatcher, HandlerMode};
use crate::transport::frame::{Class, Frame};
use crate::util::counters::Counters;
use std::time::Duration;

/// Rank 1 fills the slots for answers of rank 0 by those that were not asked for.
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

/// A rank learns at the contact how many bytes a slot of its peer has. The contact may be made
/// after a handler has replied.
#[test]
fn a_reply_that_does_not_fit_becomes_an_error() {
    let medium = |rank: usize, config: &mut Config| config.am_medium([128, 4096][rank]).unwrap();
    let (_world, ranks) = strangers::<2>(8, medium);
    let post = &ranks[1].work.post;
    let limit = post.reply_limit(0);
    ranks[1].contact(0);
    post.reply(0, 1, Status::OK, &[0xaa; 128]);
    post.reply(0, 2, Status::OK, &vec![0xbb; limit]);
    let counts = Arc::new(Counters::default());
    let mut receiver = ranks[0].routes.fabric().message_receiver(counts, Class::Replies);
    let mut next = || {
        let reply = receiver.peek().unwrap();
        let (bytes, size) = reply.payload();
        let status = -i32::from(reply.id());
        // SAFETY: the bytes lie in the reply's slot, if there are any.
        let sound = size == 0 || unsafe { std::slice::from_raw_parts(bytes, size) } == [0xaa; 128];
        let of_reply = (reply.tag(), status, size, sound);
        receiver.done();
        of_reply
    };
    assert_eq!(next(), (1, Status::OK.0, 128, true));
    assert_eq!(next(), (2, Status::ERR_RANGE.0, 0, true));
}

/// The thread that sends parked responses sleeps until a peer frees slots that it has asked to
/// ring. A response that is parked for another peer must make it ask that one, too.
#[test]
fn a_response_parked_for_another_peer_ends_the_sleep() {
    let (_world, ranks) = some_ranks::<3>(8);
    let post = &ranks[0].work.post;
    let frame = Frame { id: 0, kind: 0, tag: 0, header: &[], payload: &[], label: 0, absent: true };
    let park = |peer: u32| {
        let is_parked = || {
            let mut is = false;
            post.parked.each_first(|it| is |= it.peer == peer);
            is
        };
        while !is_parked() {
            post.respond(peer, &frame);
        }
    };
    park(1);
    let bell = ranks[0].routes.fabric().own_words().requests.bell();
    for (peer, ends) in [(1, false), (2, true)] {
        let ticket = bell.ticket();
        match ends {
            true => park(peer),
            false => post.respond(peer, &frame),
        }
        assert_eq!(bell.ticket() != ticket, ends, "a response to rank {peer}");
    }
}

/// A thread that cannot look whether there is room for parked responses, since another thread does,
/// only naps: the other one may have looked before the peer freed slots.
#[test]
fn a_thread_beside_one_that_sends_parked_responses_naps() {
    const LONGEST: Duration = Duration::from_secs(1);
    let (_world, ranks) = some_ranks::<2>(8);
    let post = &ranks[0].work.post;
    let dispatcher = Dispatcher::new(post.clone(), HandlerMode::Serial, false);
    let frame = Frame { id: 0, kind: 0, tag: 0, header: &[], payload: &[], label: 0, absent: true };
    while !post.parked.any() {
        post.respond(1, &frame);
    }
    assert_eq!(dispatcher.time_without(LONGEST, true), LONGEST, "the peer rings");
    let mut looked = 0;
    post.parked.send(|_| {
        looked += 1;
        assert!(dispatcher.time_without(LONGEST, true) < LONGEST);
        false
    });
    assert_eq!(looked, 1);
}
