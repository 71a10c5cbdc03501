//! When the clock is read for the late answer of a knock.

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
