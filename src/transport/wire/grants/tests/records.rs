//! The records that a receiver keeps of its peers.

use super::*;

/// A frame without a knock needs no record: it is taken though there are as many as may be, and
/// though a knock waits for one before it.
#[test]
fn a_frame_without_a_knock_needs_no_record() {
    let mut end = Grants { ride: Duration::MAX, ..Grants::default() };
    let (mut out, mut back) = (Out::new(), Vec::new());
    let frame = Frame { id: 1, kind: 0, tag: 0, header: &[], payload: &[], label: 0, absent: true };
    let owned = || OwnedFrame::of(Class::Requests, &frame);
    let knock = |number, demand| Packet::Knock(0, Knock { number, demand, first: None });
    for peer in 0..RECORDS as u32 {
        // Its answer waits for a packet.
        end.take(peer, knock(1, 0), 0, &mut out).unwrap();
        end.serve(|_, _| true, &mut out, &mut back);
    }
    assert_eq!((end.receiving.len(), back.len()), (RECORDS, RECORDS));
    end.take(900, knock(1, 1), 7, &mut out).unwrap();
    end.take(901, Packet::Queued(0, owned()), 8, &mut out).unwrap();
    let mut came = Vec::new();
    end.serve(|from, _| (came.push(from), false).1, &mut out, &mut back);
    assert!(!end.has_delivered_all(901) && !end.has_delivered_all(900));
    end.serve(|from, _| (came.push(from), true).1, &mut out, &mut back);
    assert_eq!((came, &back[RECORDS..]), (vec![901, 901], &[8][..]));
    assert!(end.has_delivered_all(901) && !end.has_delivered_all(900));
}

/// Ranks stream requests to a rank that takes hardly any, so their knocks fill its records. A rank
/// without a record gets a request to an owner through.
#[test]
fn knocks_that_frames_have_brought_leave_records_to_other_lines() {
    const SENDERS: u32 = RECORDS as u32 + 2;
    let (mut ranks, limit) = (Ranks::new(1 + SENDERS as usize, 7), Duration::from_secs(30));
    let (begin, mut turn) = (Instant::now(), 0);
    while ranks.ends[0].receiving.len() < RECORDS {
        assert!(begin.elapsed() < limit, "{} records", ranks.ends[0].receiving.len());
        for from in 1..=SENDERS {
            while ranks.send(from, 0, 0, 0, 1000) {}
        }
        turn += 1;
        let mut room = turn % 3 == 0;
        if !ranks.step(|_, _, _| std::mem::take(&mut room)) {
            ranks.serve(0, |_, _| std::mem::take(&mut room));
        }
    }
    let has_none = |rank: &u32| !ranks.ends[0].receiving.contains(*rank);
    let other = (1..=SENDERS).find(has_none).unwrap();
    assert!(ranks.send(other, 0, 2, 2, 8));
    let mut came = 0;
    while ranks.step(|_, from, tag| tag == 2 && count(&mut came, from == other)) {}
    assert_eq!(came, 1);
}

/// A rank has died whose granted frame has brought a knock: nothing answers the knock, and when the
/// line goes on, nothing is kept of the rank.
#[test]
fn a_knock_that_a_frame_of_the_dead_has_brought_is_dropped() {
    let mut ranks = Ranks::new(2, 1);
    // In the end all buffers are in use, and a knock waits.
    while ranks.ends[0].free[3] > 0 || ranks.ends[0].knocking[3].is_empty() {
        while ranks.send(1, 0, 3, 0, 1000) {}
        assert!(ranks.step(|_, _, _| false));
    }
    while ranks.step(|_, _, _| false) {}
    assert_eq!((ranks.ends[0].free[3], ranks.ends[0].knocking[3].len()), (0, 1));
    ranks.ends[0].mark_dead(1);
    ranks.ends[0].fenced(1);
    ranks.serve(0, |_, _| true);
    ranks.serve(0, |_, _| true);
    assert!(ranks.wire.is_empty() && ranks.ends[0].receiving.is_empty());
    assert_eq!(ranks.ends[0].free[3], buffers_of(3));
}

/// A faulty peer's second knock would make a record that nothing counts. The buffer of its frame is
/// not lost: the line serves others.
#[test]
fn a_peer_knocks_once_for_a_line_by_its_frames() {
    let (mut end, mut out, mut back) = (Grants::default(), Out::new(), Vec::new());
    let frame = Frame { id: 1, kind: 0, tag: 0, header: &[], payload: &[], label: 0, absent: true };
    let first = || Some(OwnedFrame::of(Class::Requests, &frame));
    let knock = |number, first| Knock { number, demand: 2, first };
    end.take(1, Packet::Knock(0, knock(1, None)), 0, &mut out).unwrap();
    end.serve(|_, _| true, &mut out, &mut back);
    assert_eq!(end.take(1, Packet::More(0, knock(2, first())), 0, &mut out), Ok(Taken::Copied));
    let second = end.take(1, Packet::More(0, knock(3, first())), 0, &mut out);
    assert_eq!(second, Err("a second knock of line 0".into()));
    // The frame in `come` has the other buffer that was granted.
    assert_eq!((end.free[0], end.receiving.get(1).unwrap().out[0]), (buffers_of(0) - 1, 0));
}

#[test]
fn a_frame_that_was_not_granted_is_refused() {
    let (mut end, mut out) = (Grants::default(), Out::new());
    let frame = Frame { id: 1, kind: 0, tag: 0, header: &[], payload: &[], label: 0, absent: true };
    let packet = Packet::Frame(Some(0), OwnedFrame::of(Class::Requests, &frame));
    let said = end.take(1, packet, 0, &mut out).unwrap_err();
    assert!(said.contains("not granted"), "{said}");
    end.mark_dead(1);
    end.fenced(1);
    assert_eq!(end.free[0], buffers_of(0));
}
