//! When the answer of a knock goes alone, and when the clock is read for it.

use super::*;
use crate::util::backoff::looks;

/// A thread that looks at a silent wire several times in a row reads the clock for the late answer
/// of a knock at the last of these looks; any other one at each look.
#[test]
fn one_of_several_looks_in_a_row_reads_the_clock() {
    let most = looks();
    assert!(most > 1, "this thread has not yielded");
    let late = || {
        let (mut end, _) = knocked(0, Duration::from_nanos(1));
        end.due = Some(Instant::now());
        end
    };
    let mut end = late();
    assert!((1..most).all(|_| end.has_served_all(true)), "the clock was read");
    assert!(!end.has_served_all(true), "the answer is late, and no look has seen it");
    assert!(!late().has_served_all(false));
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
