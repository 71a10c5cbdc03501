//! The hub's rules, played through without sockets.

use super::*;

fn joined(size: u32) -> Rules {
    let mut rules = Rules::new(size);
    for rank in 0..size {
        assert_eq!(rules.handle(rank, 1, Request::Join { rank, size }, None), Verdict::Fine);
    }
    assert!(rules.take_outgoing().iter().all(|o| status(o) == Some(0)));
    rules
}

fn status(out: &Outgoing) -> Option<i32> {
    match &out.reply {
        Reply::Answer { status, .. } | Reply::Card { status, .. } => Some(*status),
        Reply::FarCard { .. } => Some(0),
        Reply::Gone { .. } => None,
    }
}

fn text(out: &Outgoing) -> String {
    match &out.reply {
        Reply::Answer { bytes, .. } | Reply::Card { bytes, .. } | Reply::FarCard { bytes, .. } => {
            String::from_utf8(bytes.clone()).unwrap()
        }
        Reply::Gone { ranks } => {
            let each = ranks.iter().map(|gone| format!("gone {} {}", gone.rank, gone.left));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

fn exchange(rules: &mut Rules, rank: u32, bytes: &[u8]) {
    let (total, bytes) = (bytes.len() as u64, bytes.to_vec());
    let request = Request::Exchange { total, offset: 0, bytes };
    assert_eq!(rules.handle(rank, 7, request, None), Verdict::Fine);
}

/// Everything that went out since the last call: (to, status, text).
fn drain(rules: &mut Rules) -> Vec<(u32, Option<i32>, String)> {
    let out = rules.take_outgoing();
    out.iter().map(|o| (o.to, status(o), text(o))).collect()
}

#[test]
fn an_exchange_ends_when_the_last_one_has_come() {
    let mut rules = joined(3);
    exchange(&mut rules, 2, b"c");
    exchange(&mut rules, 0, b"a");
    assert!(rules.take_outgoing().is_empty());
    exchange(&mut rules, 1, b"b");
    let expected: Vec<_> = (0..3).map(|r| (r, Some(0), "abc".to_owned())).collect();
    assert_eq!(drain(&mut rules), expected);
}

#[test]
fn different_sizes_fail_everywhere_and_the_next_round_works() {
    let mut rules = joined(2);
    exchange(&mut rules, 0, b"aa");
    exchange(&mut rules, 1, b"b");
    let out = drain(&mut rules);
    assert_eq!(out.len(), 2);
    for (_, status, text) in out {
        assert_eq!(status, Some(Status::ERR_INVALID.0));
        assert!(text.contains("size is 2 in rank 0 and 1 in rank 1"), "{text}");
    }
    exchange(&mut rules, 1, b"");
    exchange(&mut rules, 0, b"");
    assert_eq!(drain(&mut rules), [(0, Some(0), String::new()), (1, Some(0), String::new())]);
}

#[test]
fn a_death_is_told_first_and_then_fails_those_who_wait() {
    let dead = Some(Status::ERR_PEER_DEAD.0);
    let mut rules = joined(3);
    exchange(&mut rules, 0, b"a");
    assert_eq!(rules.handle(1, 9, Request::Lookup { peers: vec![2] }, None), Verdict::Fine);
    rules.gone(2, false);
    rules.gone(2, true);
    let out = drain(&mut rules);
    let expected = [
        (0, None, "gone 2 false".to_owned()),
        (1, None, "gone 2 false".to_owned()),
        (1, dead, "rank 2 has died".to_owned()),
        (0, dead, "rank 2 has died".to_owned()),
    ];
    assert_eq!(out, expected);
    exchange(&mut rules, 1, b"b");
    assert_eq!(drain(&mut rules), [(1, dead, "rank 2 has died".to_owned())]);
}

#[test]
fn the_fence_counts_the_dead_and_the_left_as_arrived() {
    let mut rules = joined(4);
    for rank in 0..2 {
        assert_eq!(rules.handle(rank, 5, Request::Fence, None), Verdict::Fine);
    }
    rules.gone(2, false);
    drain(&mut rules);
    assert_eq!(rules.handle(3, 1, Request::Leave, None), Verdict::Fine);
    let answers: Vec<_> = drain(&mut rules).into_iter().filter(|o| o.1.is_some()).collect();
    assert_eq!(answers, [(0, Some(0), String::new()), (1, Some(0), String::new())]);
}

#[test]
fn a_rank_that_dies_in_the_fence_counts_once() {
    let mut rules = joined(3);
    assert_eq!(rules.handle(0, 9, Request::Fence, None), Verdict::Fine);
    rules.gone(0, false);
    assert_eq!(rules.handle(1, 9, Request::Fence, None), Verdict::Fine);
    let news = |to| (to, None, "gone 0 false".to_owned());
    assert_eq!(drain(&mut rules), [news(1), news(2)], "rank 2 has not come");
    assert_eq!(rules.handle(2, 9, Request::Fence, None), Verdict::Fine);
    assert_eq!(drain(&mut rules), [1, 2].map(|to| (to, Some(0), String::new())));
}

#[test]
fn an_exchange_with_a_rank_that_finalizes_is_refused() {
    let mut rules = joined(3);
    exchange(&mut rules, 0, b"a");
    assert_eq!(rules.handle(1, 5, Request::Fence, None), Verdict::Fine);
    let out = drain(&mut rules);
    assert_eq!((out[0].0, out[0].1), (0, Some(Status::ERR_INVALID.0)));
    assert!(out[0].2.contains("rank 1 is finalizing"), "{}", out[0].2);
    // The fence still waits for the others.
    rules.handle(0, 8, Request::Fence, None);
    assert!(drain(&mut rules).is_empty());
    rules.handle(2, 8, Request::Fence, None);
    assert_eq!(drain(&mut rules).len(), 3);
}

#[test]
fn joins_are_checked() {
    let mut rules = Rules::new(2);
    rules.handle(0, 1, Request::Join { rank: 1, size: 2 }, None);
    rules.handle(0, 1, Request::Join { rank: 0, size: 3 }, None);
    assert!(drain(&mut rules).iter().all(|o| o.1 == Some(Status::ERR_INVALID.0)));
    assert_eq!(
        rules.handle(0, 1, Request::Fence, None),
        Verdict::ProtocolError("a request out of turn")
    );
    rules.handle(0, 1, Request::Join { rank: 0, size: 2 }, None);
    assert_eq!(drain(&mut rules), [(0, Some(0), String::new())]);
    let again = Request::Join { rank: 0, size: 2 };
    let what = "a second process that joins in its place";
    assert_eq!(rules.handle(0, 1, again, None), Verdict::ProtocolError(what));
    rules.handle(0, 1, Request::Leave, None);
    rules.handle(0, 1, Request::Join { rank: 0, size: 2 }, None);
    assert_eq!(drain(&mut rules)[0].1, Some(Status::ERR_STATE.0));
    // A rank that comes late learns of those that have gone.
    rules.handle(1, 1, Request::Join { rank: 1, size: 2 }, None);
    assert_eq!(drain(&mut rules)[0], (1, None, "gone 0 true".to_owned()));
}

#[test]
fn a_card_reaches_those_who_asked_before_and_after() {
    use std::os::fd::AsFd;
    let fd = || crate::util::socket::Wake::new().unwrap().as_fd().try_clone_to_owned().unwrap();
    let mut rules = joined(2);
    rules.handle(1, 3, Request::Lookup { peers: vec![0, 2] }, None);
    assert_eq!(drain(&mut rules)[0].1, Some(Status::ERR_RANGE.0));
    rules.handle(0, 2, Request::Publish { blob: b"zero".to_vec() }, Some(fd()));
    rules.handle(0, 3, Request::Lookup { peers: vec![0] }, None);
    let out = rules.take_outgoing();
    assert_eq!(out.iter().filter(|o| o.fd.is_some()).count(), 2);
    let blobs: Vec<_> = out.iter().map(|o| (o.to, text(o))).collect();
    assert_eq!(blobs, [(0, String::new()), (1, "zero".into()), (0, "zero".into())]);

    rules.handle(0, 5, Request::Publish { blob: Vec::new() }, Some(fd()));
    rules.handle(1, 5, Request::Publish { blob: vec![0; MAX_BLOB + 1] }, Some(fd()));
    rules.handle(1, 6, Request::Publish { blob: Vec::new() }, None);
    let refusals: Vec<_> = drain(&mut rules).into_iter().map(|o| o.1.unwrap()).collect();
    let expected = [Status::ERR_STATE.0, Status::ERR_INVALID.0, Status::ERR_NO_MEMORY.0];
    assert_eq!(refusals, expected);
}

#[test]
fn several_departures_are_told_at_once_also_to_those_who_come_late() {
    let mut rules = joined(5);
    rules.gone(3, false);
    rules.gone(1, true);
    let news = "gone 3 false, gone 1 true".to_owned();
    let expected = [0, 2, 4].map(|to| (to, None, news.clone()));
    assert_eq!(drain(&mut rules), expected);
    assert_eq!(drain(&mut rules), []);
    let mut rules = Rules::new(3);
    rules.gone(0, false);
    rules.gone(2, false);
    assert_eq!(drain(&mut rules), []);
    assert_eq!(rules.handle(1, 1, Request::Join { rank: 1, size: 3 }, None), Verdict::Fine);
    let news = (1, None, "gone 0 false, gone 2 false".to_owned());
    assert_eq!(drain(&mut rules), [news, (1, Some(0), String::new())]);
}

#[test]
fn a_rank_behind_the_fence_gets_no_departure() {
    let mut rules = joined(3);
    rules.gone(1, false);
    drain(&mut rules);
    for rank in [0, 2] {
        assert_eq!(rules.handle(rank, 5, Request::Fence, None), Verdict::Fine);
    }
    assert_eq!(drain(&mut rules), [0, 2].map(|to| (to, Some(0), String::new())));
    assert_eq!(rules.handle(2, 0, Request::Leave, None), Verdict::Fine);
    assert_eq!(drain(&mut rules), []);
}

#[test]
fn a_card_of_another_machine_reaches_those_who_asked_before_and_after() {
    let mut rules = Rules::of_machine(2, |rank| rank == 0);
    rules.handle(0, 1, Request::Join { rank: 0, size: 2 }, None);
    drain(&mut rules);
    let lookup = |rules: &mut Rules| rules.handle(0, 2, Request::Lookup { peers: vec![1] }, None);
    lookup(&mut rules);
    assert_eq!(drain(&mut rules), []);
    rules.far_cards(&[b"own".to_vec(), b"far".to_vec()]);
    let card = [(0, Some(0), "far".to_owned())];
    assert_eq!(drain(&mut rules), card);
    lookup(&mut rules);
    assert_eq!(drain(&mut rules), card);
}
