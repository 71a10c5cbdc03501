//! Tests with two ranks in this process. One thread does the rounds of both lanes, so the test
//! decides the order of all steps.

use super::*;
use crate::bootstrap::{Bootstrap, World};
use crate::engine::atomic::{kind, op};
use crate::engine::by_owner;
use crate::engine::command::{ALL_PEERS, Op};
use crate::engine::command_queue::CommandQueue;
use crate::engine::completion::{ADD, Completion, STORE, WORD_FAILED};
use crate::engine::messages::deferred::{Admitted, MOST};
use crate::engine::messages::sender::AmSender;
use crate::transport::CHUNK;
use crate::transport::address::{Address, Key};
use crate::transport::memory::segment::{Place, Segment};
use crate::util::admission::Admission;
use crate::util::config::Config;
use ranks::{Rank, some_ranks, strangers, two_ranks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

mod contacts;
mod ends;
mod ranks;
mod unsent;

fn add_to(word: &AtomicU64) -> Completion {
    Completion { kind: ADD, ..Completion::store_on(word) }
}

/// Adds 1 to the first word of the peer's region.
fn increment(peer: u32, key: u64, ended: &AtomicU64) -> Command {
    let mut command = Command::new(Op::ATOMIC, peer);
    (command.code, command.kind, command.operand) = (op::ADD, kind::U64, 1);
    command.remote = Address { offset: 0, key };
    command.on_complete = add_to(ended);
    command
}

fn value(word: &AtomicU64) -> u64 {
    word.load(Ordering::Relaxed)
}

fn settle(ranks: &mut [Rank; 2]) {
    while ranks.iter_mut().map(Rank::round).sum::<usize>() > 0 {}
}

/// More than two chunks, so three fragments, and a signal that must come last.
#[test]
fn a_large_write_with_a_signal_arrives_in_fragments_and_signals_once() {
    let words = (2 * CHUNK + 4096) / 8;
    let (_world, mut ranks) = two_ranks(8);
    let mut theirs = vec![0u64; words + 1];
    let key = ranks[1].register(&mut theirs);
    let mut ours: Vec<u64> = (0..words as u64).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let ended = AtomicU64::new(0);

    let mut write = Command::new(Op::WRITE_SIGNAL, 1);
    write.remote = Address { offset: 0, key };
    (write.local, write.size) = (ours.as_mut_ptr().cast(), words as u64 * 8);
    write.signal = Address { offset: words as u64 * 8, key };
    (write.code, write.operand) = (op::ADD, 5);
    write.on_complete = add_to(&ended);
    ranks[0].start(write, Stage::Data { done: 0 });
    for fragment in 0..3 {
        assert_eq!(theirs[words], 0, "the signal has changed before fragment {fragment} came");
        assert_eq!(value(&ended), 0);
        assert_eq!((ranks[1].round(), ranks[0].round()), (1, 1), "fragment {fragment}");
    }
    // The last fragment has brought the signal.
    assert_eq!((theirs[words], value(&ended)), (5, 1));
    settle(&mut ranks);
    assert_eq!((theirs[words], value(&ended)), (5, 1));
    assert!(theirs[..words] == ours, "the bytes differ");

    let mut back = vec![0u64; words];
    let mut read = Command::new(Op::READ, 1);
    read.remote = write.remote;
    (read.local, read.size) = (back.as_mut_ptr().cast(), write.size);
    read.on_complete = write.on_complete;
    ranks[0].start(read, Stage::Data { done: 0 });
    settle(&mut ranks);
    assert_eq!(value(&ended), 2);
    assert!(back == ours, "the bytes differ");
    assert_eq!(ranks[0].work.unsent, 0);
    assert!(ranks[0].work.is_idle() && ranks[0].work.places.iter().all(Option::is_none));
}

/// The peer has eight slots for requests, so most of these commands wait in the send queue.
#[test]
fn a_command_that_carried_its_bytes_keeps_them_until_it_is_sent() {
    let (_world, mut ranks) = two_ranks(64);
    let mut theirs = vec![0u64; 64];
    let key = ranks[1].register(&mut theirs);
    let ended = AtomicU64::new(0);
    for i in 0..32 {
        let mut bytes = [0xab00 + i];
        let mut write = Command::new(Op::WRITE, 1);
        write.remote = Address { offset: i * 8, key };
        (write.local, write.size) = (bytes.as_mut_ptr().cast(), 8);
        write.on_complete = add_to(&ended);
        let Rank { work, routes, .. } = &mut ranks[0];
        // SAFETY: as in Rank::start().
        assert!(unsafe { work.start(routes, write, Stage::Data { done: 0 }, true) });
        bytes[0] = u64::MAX;
        std::hint::black_box(&bytes);
    }
    assert_eq!(ranks[0].work.unsent, 24);
    settle(&mut ranks);
    assert_eq!(value(&ended), 32);
    for (i, word) in theirs.iter().take(32).enumerate() {
        assert_eq!(*word, 0xab00 + i as u64);
    }
}

/// Reads of many bytes wait for large slots, of which one peer gets no more than half; an atomic
/// overtakes them.
#[test]
fn answers_of_many_bytes_have_places_set_aside_before_they_are_asked_for() {
    let (_world, mut ranks) = two_ranks(64);
    let mut theirs: Vec<u64> = (0..1024).collect();
    let key = ranks[1].register(&mut theirs);
    let (ended, words) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut back = vec![vec![0u64; 1024]; 20];
    for place in &mut back {
        let mut read = Command::new(Op::READ, 1);
        read.remote = Address { offset: 0, key };
        (read.local, read.size) = (place.as_mut_ptr().cast(), 8192);
        read.on_complete = add_to(&ended);
        ranks[0].start(read, Stage::Data { done: 0 });
    }
    let used = ranks[0].work.places.iter().flatten().count();
    assert_eq!(used, CHUNKS / 4, "one peer has {used} places");
    let mut last = increment(1, key, &words);
    last.remote.offset = 8;
    ranks[0].start(last, Stage::Word);
    ranks[0].round();
    ranks[1].round();
    ranks[0].round();
    assert_eq!((value(&words), value(&ended)), (1, CHUNKS as u64 / 4));
    settle(&mut ranks);
    assert_eq!(value(&ended), 20);
    assert!(back.iter().all(|place| place[2..] == theirs[2..]), "the bytes differ");
    assert!(ranks[0].work.places.iter().all(Option::is_none));
}

/// Reads of three fragments, most of which wait for large slots. The first one gets its large slot
/// when the peer has no request slot left. Reads that hold large slots must be sent before those
/// that wait for them.
#[test]
fn reads_that_hold_places_go_on_though_others_wait_for_places() {
    const READS: usize = 16;
    for ended_by in ["answers", "death", "cancel"] {
        let (_world, mut ranks) = two_ranks(64);
        let mut theirs: Vec<u64> = (0..3 * CHUNK as u64 / 8).collect();
        let key = ranks[1].register(&mut theirs);
        let (words, ended) = (AtomicU64::new(0), AtomicU64::new(0));
        (0..8).for_each(|_| ranks[0].start(increment(1, key, &words), Stage::Word));
        let mut back = vec![vec![0u64; theirs.len()]; READS];
        for place in &mut back {
            let mut read = Command::new(Op::READ, 1);
            read.remote = Address { offset: 0, key };
            (read.local, read.size) = (place.as_mut_ptr().cast(), 3 * CHUNK as u64);
            read.on_complete = add_to(&ended);
            ranks[0].start(read, Stage::Data { done: 0 });
        }
        let places = |rank: &Rank| rank.work.places.iter().flatten().count();
        assert_eq!((places(&ranks[0]), ranks[0].work.unsent), (1, READS));
        // Increments, and first fragments.
        for _ in 0..2 {
            ranks[1].round();
            ranks[0].round();
        }
        assert_eq!((value(&words), value(&ended)), (8, 0));
        assert!(places(&ranks[0]) > 0 && ranks[0].work.unsent > 0);
        match ended_by {
            "answers" => {
                settle(&mut ranks);
                assert_eq!(value(&ended), READS as u64);
                assert!(back.iter().all(|place| *place == theirs), "the bytes differ");
            }
            "death" => {
                ranks[0].routes.mark_dead(1);
                while ranks[0].round() > 0 {}
                assert_eq!(value(&ended), READS as u64 | WORD_FAILED);
            }
            _ => {
                let Rank { work, routes, .. } = &mut ranks[0];
                assert_eq!(work.cancel(routes), READS);
                assert_eq!(value(&ended), READS as u64 | WORD_FAILED);
                // Answers that are under way find nothing.
                settle(&mut ranks);
                assert_eq!(value(&ended), READS as u64 | WORD_FAILED);
            }
        }
        assert_eq!((places(&ranks[0]), ranks[0].work.unsent), (0, 0), "{ended_by}");
        assert!(ranks[0].work.is_idle(), "{ended_by}");
    }
}

#[test]
fn what_the_owner_refuses_ends_with_its_reason_and_gives_everything_back() {
    let (_world, mut ranks) = two_ranks(8);
    let mut theirs = vec![0u64; 8];
    let key = ranks[1].register(&mut theirs);
    let (mut bytes, ended) = ([7u64; 2], AtomicU64::new(0));
    let mut write = Command::new(Op::WRITE, 1);
    write.remote = Address { offset: 56, key };
    (write.local, write.size) = (bytes.as_mut_ptr().cast(), 16);
    write.on_complete = Completion { kind: STORE, ..Completion::store_on(&ended) };
    ranks[0].start(write, Stage::Data { done: 0 });
    settle(&mut ranks);
    assert_eq!(Status(value(&ended) as i64 as i32), Status::ERR_KEY);
    assert_eq!(theirs, [0; 8]);
    assert_eq!(ranks[0].work.unsent, 0);
    assert!(ranks[0].work.is_idle() && ranks[0].work.places.iter().all(Option::is_none));
}

/// The peer has eight slots for requests.
#[test]
fn what_finds_a_full_peer_or_table_goes_later_and_nothing_is_lost() {
    let (_world, mut ranks) = two_ranks(12);
    let mut theirs = vec![0u64; 1];
    let key = ranks[1].register(&mut theirs);
    let ended = AtomicU64::new(0);
    for _ in 0..12 {
        ranks[0].start(increment(1, key, &ended), Stage::Word);
    }
    assert_eq!(ranks[0].work.unsent, 4);
    let Rank { work, routes, .. } = &mut ranks[0];
    assert!(
        // SAFETY: as in Rank::start().
        !unsafe { work.start(routes, increment(1, key, &ended), Stage::Word, false) },
        "the table is full"
    );
    assert!(work.arm(routes, 1), "the owner rings when it has room for the unsent ones");
    work.disarm();
    settle(&mut ranks);
    assert_eq!((theirs[0], value(&ended)), (12, 12));
    let Rank { work, routes, .. } = &mut ranks[0];
    assert!(work.arm(routes, 1) && work.is_idle());
}

#[test]
fn a_flush_waits_for_what_came_before_it_at_its_peer_and_for_nothing_else() {
    let (_world, mut ranks) = two_ranks(8);
    let (mut own, mut theirs) = (vec![0u64; 1], vec![0u64; 1]);
    let keys = [ranks[0].register(&mut own), ranks[1].register(&mut theirs)];
    let [empty, own_flush, early, all, deferred] = [const { AtomicU64::new(0) }; 5];
    let [first, second] = [const { AtomicU64::new(0) }; 2];

    ranks[0].flush(ALL_PEERS, &empty);
    assert_eq!(value(&empty), 1, "nothing was under way");
    ranks[0].start(increment(1, keys[1], &first), Stage::Word);
    ranks[0].flush(0, &own_flush);
    assert_eq!(value(&own_flush), 1, "the other rank's affairs");
    ranks[0].flush(1, &early);
    ranks[0].flush(ALL_PEERS, &all);
    assert_eq!(ranks[1].round(), 1);
    // Posted after the flushes, and answered after the operations for which they wait.
    ranks[0].start(increment(1, keys[1], &second), Stage::Word);
    ranks[0].flush(1, &deferred);
    assert_eq!([&first, &early, &all].map(value), [0; 3]);
    ranks[0].round();
    assert_eq!([&first, &early, &all].map(value), [1; 3]);
    assert_eq!([&second, &deferred].map(value), [0; 2]);
    assert!(!ranks[0].work.is_idle());
    settle(&mut ranks);
    assert_eq!([&second, &deferred].map(value), [1; 2]);
    assert!(ranks[0].work.is_idle());
}

#[test]
fn nobody_waits_for_what_the_library_asks_of_its_own_accord() {
    let (_world, mut ranks) = two_ranks(8);
    let [asked, flushed] = [const { AtomicU64::new(0) }; 2];
    let mut question = Command::new(Op::UNMAP, 1);
    question.on_complete = Completion::store_on(&asked);
    let Rank { work, routes, .. } = &mut ranks[0];
    // SAFETY: as in Rank::start().
    assert!(unsafe { work.execute_one(routes, question, false) });
    ranks[0].flush(ALL_PEERS, &flushed);
    assert_eq!((value(&asked), value(&flushed)), (0, 1));
    assert!(ranks[0].work.is_idle() && value_of_under_way(&ranks[0].work) == 0);
    settle(&mut ranks);
    assert_eq!(value(&asked), 1);
    // An operation of the library's own that was not answered ends by cancel(), too.
    let Rank { work, routes, .. } = &mut ranks[0];
    // SAFETY: as in Rank::start().
    assert!(unsafe { work.execute_one(routes, question, false) });
    assert_eq!(work.cancel(routes), 1);
    assert_ne!(value(&asked) & WORD_FAILED, 0);
    assert!(work.is_idle() && work.own == 0);
}

fn value_of_under_way(work: &LaneState) -> usize {
    work.under_way.load(Ordering::Relaxed)
}

#[test]
fn cancel_ends_everything_once_and_late_answers_find_nothing() {
    let (_world, mut ranks) = two_ranks(10);
    let mut theirs = vec![0u64; 1];
    let key = ranks[1].register(&mut theirs);
    let (ended, flushed) = (AtomicU64::new(0), AtomicU64::new(0));
    for _ in 0..10 {
        ranks[0].start(increment(1, key, &ended), Stage::Word);
    }
    ranks[0].flush(1, &flushed);
    ranks[1].round();
    // In the queue: a command that carries bytes in two slots, a dropped reservation, a plain one.
    let mut run = ranks[0].ring.reserve(3).unwrap();
    run.slot_mut(0).put(&Command { size: 200, ..increment(1, key, &ended) }, 2);
    run.slot_mut(1).put_bytes(&[1; 120]);
    run.slot_mut(2).put_bytes(&[1; 80]);
    assert!(!run.commit());
    drop(ranks[0].ring.reserve(1).unwrap());
    let mut last = ranks[0].ring.reserve(1).unwrap();
    last.slot_mut(0).put(&increment(1, key, &ended), 0);
    assert!(!last.commit());

    let Rank { work, routes, .. } = &mut ranks[0];
    assert_eq!(work.cancel(routes), 12);
    assert_eq!(value(&ended), 12 | WORD_FAILED);
    assert_eq!(value(&flushed), 1);
    assert!(work.is_idle() && work.unsent == 0);
    assert_eq!(work.cancel(routes), 0);
    settle(&mut ranks);
    assert_eq!((value(&ended), value(&flushed)), (12 | WORD_FAILED, 1), "something ended twice");
}

#[test]
fn the_death_of_a_peer_ends_what_is_pending_on_it_and_nothing_else() {
    let (_world, mut ranks) = two_ranks(12);
    let (mut own, mut theirs) = (vec![0u64; 1], vec![0u64; 1]);
    let keys = [ranks[0].register(&mut own), ranks[1].register(&mut theirs)];
    let [lost, kept, flushed] = [const { AtomicU64::new(0) }; 3];
    for _ in 0..9 {
        ranks[0].start(increment(1, keys[1], &lost), Stage::Word);
    }
    ranks[0].start(increment(0, keys[0], &kept), Stage::Word);
    ranks[0].flush(ALL_PEERS, &flushed);
    ranks[0].routes.mark_dead(1);
    let Rank { work, routes, .. } = &mut ranks[0];
    assert!(!work.arm(routes, 1), "nobody may sleep over a death");
    work.disarm();
    while ranks[0].round() > 0 {}
    assert_eq!(value(&lost), 9 | WORD_FAILED);
    assert_eq!((value(&kept), own[0], value(&flushed)), (1, 1, 1));
    ranks[0].start(increment(1, keys[1], &lost), Stage::Word);
    assert_eq!(value(&lost), 10 | WORD_FAILED, "a dead peer is asked for nothing");
    assert_eq!(ranks[0].work.unsent, 0);
}

/// A message with a reply buffer was accepted and then fails: its local completion, the only one,
/// reports the failure, and no flush does.
#[test]
fn what_on_local_has_reported_is_not_reported_by_a_flush() {
    use crate::engine::messages::deferred::{Admitted, Deferred};
    use crate::engine::messages::requests::Waiting;
    use crate::engine::messages::{HEADER, MEDIUM};
    let (_world, [zero, _one]) = two_ranks(64);
    let post = zero.work.post.clone();
    let message_sender = post.message_sender(1).unwrap();
    let (reported, mut reply, mut reply_size) = (AtomicU64::new(0), [0u8; 8], 0);
    let (reply, capacity, reply_size) = (reply.as_mut_ptr(), reply.len(), &raw mut reply_size);
    for (on_local, unreported) in [(Completion::store_on(&reported), 0), (Completion::NOTHING, 1)] {
        let (on_complete, place) = (Completion::NOTHING, Address { key: 0, offset: 0 });
        post.pending.begin_use();
        let waiting =
            Waiting { peer: 1, reply, capacity, reply_size, on_local: on_complete, on_complete };
        // SAFETY: the places are variables of this test.
        let (tag, _) = unsafe { post.pending.insert(waiting) }.unwrap();
        // SAFETY: `reported` outlives the message, which has no payload.
        let admitted = unsafe { Admitted::begin(&post, message_sender, 1) };
        let (header, payload) = ([0; HEADER], std::ptr::null());
        #[rustfmt::skip]
        let deferred = Deferred {
            _admitted: admitted.unwrap(), peer: 1, id: 1, kind: MEDIUM, header, header_size: 0, payload,
            payload_size: 0, place, needs_data: false, label: 0, tag, on_local, order: 0,
        };
        deferred.end(&post, Status::ERR_NO_HANDLER);
        assert_eq!(zero.routes.unreported().take(None).is_some(), unreported == 1);
    }
    assert_eq!(reported.load(Ordering::Relaxed) as i64, Status::ERR_NO_HANDLER.0.into());
}

/// The drop of a right wakes the threads that sleep because of MOST messages, if it finds MOST. A
/// sender that is refused must not make it find more.
#[test]
fn a_refused_message_never_counts() {
    let (_world, ranks) = two_ranks(8);
    let post = ranks[0].work.post.clone();
    let sender = post.message_sender(1).unwrap();
    // SAFETY: no message follows.
    let begin = || unsafe { Admitted::begin(&post, sender, 1) };
    let all: Vec<_> = (0..MOST).map(|_| begin().unwrap()).collect();
    let (refused, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                refused.fetch_add(u64::from(begin().is_none()), Ordering::Relaxed);
            }
        });
        let mut above = false;
        while refused.load(Ordering::Relaxed) < 1_000_000 {
            above |= sender.deferred.load(Ordering::Relaxed) > MOST;
        }
        over.store(true, Ordering::Relaxed);
        assert!(!above, "a refused message counts");
    });
    drop(all);
    assert_eq!(sender.deferred.load(Ordering::Relaxed), 0);
}
