//! When the answer of a knock goes alone, and when the clock is read for it.

use super::*;

/// A rank that has put messages of knocks from these peers into slots at once.
fn passed(from: &[u32]) -> Grants {
    let mut end = Grants { ride: Duration::ZERO, ..Grants::default() };
    from.iter().for_each(|peer| end.passed(*peer, 0, 7));
    end
}

/// The time for which an answer waits begins at the next look without events, so no clock is read
/// for an answer that a packet takes along before.
#[test]
fn the_time_of_an_answer_begins_at_the_next_look_without_events() {
    let mut end = passed(&[3]);
    assert!(end.has_served_all() && !end.is_late(true) && end.due.is_none(), "a clock was read");
    assert!(end.is_late(false) && end.due.is_some(), "the answer must go, and no look has seen it");
    assert!((1..SELDOM).all(|_| !end.is_late(false)), "each look reads the clock");
    assert!(end.is_late(false));
    end.has_slept();
    assert!(end.is_late(false), "a look after a sleep does not read the clock");
    let mut end = passed(&[3]);
    assert_eq!(end.ride_by(3, Carrying::Frame(None)), Some((0, 7)));
    assert!(!end.is_late(false) && end.due.is_none(), "an answer that is gone is late");
    assert_eq!(end.receiving.len(), 0);
}

/// If each look finds events, answers go all the same.
#[test]
fn the_answer_of_a_busy_rank_goes() {
    let mut end = passed(&[3]);
    let looks = (1..1000).find(|_| end.is_late(true));
    assert_eq!(looks, Some(usize::from(SELDOM)));
    let mut out = Out::new();
    end.serve(|_, _| true, &mut out, &mut Vec::new());
    assert!(matches!(&out[..], [(3, Packet::Grants(..))]), "{out:?}");
}

/// If answers of several peers wait, the time of each begins when that of the next one comes.
#[test]
fn the_times_of_several_answers_begin() {
    let mut end = passed(&[3, 4, 5]);
    let waits = |end: &Grants, from| end.receiving.get(from).unwrap().is_fresh();
    assert_eq!([3, 4, 5].map(|from| waits(&end, from)), [false, false, true]);
    assert!(end.is_late(false) && !waits(&end, 5));
    let mut out = Out::new();
    end.serve(|_, _| true, &mut out, &mut Vec::new());
    assert!(matches!(&out[..], [(3, Packet::Grants(..)), (4, _), (5, _)]), "{out:?}");
    assert!(!end.is_late(false));
}

/// The answer of a knock behind which no frame waits goes at once if frames waited behind the one
/// before, and then waits for a packet again.
#[test]
fn the_first_knock_behind_a_stream_is_answered_at_once() {
    let mut ranks = Ranks::new(2, 1);
    let send = |ranks: &mut Ranks, count| {
        assert!((0..count).all(|_| ranks.send(0, 1, 0, 0, 8)));
        while ranks.step(|_, _, _| true) {}
        ranks.ends[0].has_sent_all(1)
    };
    ranks.ends[1].ride = Duration::ZERO;
    assert!(send(&mut ranks, 5), "a knock, and four frames, of which one knocks with three");
    ranks.ends[1].ride = Duration::MAX;
    assert!(send(&mut ranks, 1), "the answer waits");
    assert!(!send(&mut ranks, 1), "nothing says that more will come");
}
