use super::*;
use crate::transport::address::Address;

const WORD: Address = Address { offset: 64, key: 7 };
const AWAITED: Awaited = Awaited { name: Some(WORD), local: Some(0x1000) };

fn waiters() -> Box<Waiters> {
    // SAFETY: the type consists of atomics; all zero means that no thread sleeps.
    unsafe { Box::new(std::mem::zeroed()) }
}

/// Whether `act` rings the bell of a thread that is about to sleep.
fn rings(awaited: Awaited, act: impl Fn(&Waiters)) -> bool {
    let (waiters, sleepers) = (waiters(), Sleepers::default());
    let rung = std::cell::Cell::new(false);
    sleepers.sleep(&waiters, &[awaited], Some(Duration::ZERO), || {
        assert!(waiters.any());
        let ticket = waiters.bell(0).ticket();
        act(&waiters);
        rung.set(waiters.bell(0).ticket() != ticket);
        true
    });
    assert!(!waiters.any(), "the place was given back");
    rung.get()
}

#[test]
fn a_store_that_touches_the_word_rings_and_one_beside_it_does_not() {
    for (offset, size, expected) in [
        (64, 8, true),
        (0, 64, false),
        (0, 65, true),
        (71, 1, true),
        (72, 8, false),
        (60, 4, false),
        (60, 5, true),
        (64, 0, false),
        (64 + 512, 8, false),
        (0, 1 << 20, true),
        (0, u64::MAX, true),
    ] {
        let touched = rings(AWAITED, |waiters| waiters.touched(Address { offset, ..WORD }, size));
        assert_eq!(touched, expected, "offset {offset} size {size}");
    }
    let other = |key| rings(AWAITED, |waiters| waiters.touched(Address { key, ..WORD }, 8));
    assert!(!(0..1000).filter(|key| *key != WORD.key).any(other), "another region");
    assert!(!rings(AWAITED, |waiters| assert!(waiters.any_at(WORD))));
    assert!(rings(AWAITED, |waiters| waiters.wake_at(WORD, 8)));
}

#[test]
fn own_completions_wake_those_who_wait_for_their_word_or_for_anything() {
    let at = |awaited, word| rings(awaited, |waiters: &Waiters| waiters.touched_word(word));
    assert!(at(AWAITED, 0x1000) && !at(AWAITED, 0x1008) && !at(AWAITED, 0x1200));
    assert!(at(Awaited::ANYTHING, 0x1000) && at(Awaited::ANYTHING, 0x1008));
    assert!(!at(Awaited { local: None, ..AWAITED }, 0x1000));
    assert!(rings(AWAITED, Waiters::touched_anything));
    assert!(!rings(Awaited::ANYTHING, |waiters| waiters.touched(WORD, 8)));
}

/// Of 64 neighbouring words only the awaited one has its bit set in the marks.
#[test]
fn a_store_elsewhere_searches_for_no_sleeper() {
    let (waiters, sleepers) = (waiters(), Sleepers::default());
    sleepers.sleep(&waiters, &[AWAITED], Some(Duration::ZERO), || {
        let beside = (0..64).filter(|word| waiters.any_at(Address { offset: word * 8, ..WORD }));
        assert_eq!(beside.count(), 1);
        true
    });
}

#[test]
fn threads_beyond_the_last_place_share_it_and_are_woken_by_anything() {
    let (waiters, sleepers) = (waiters(), Sleepers::default());
    let at = |number: usize| Awaited {
        name: Some(Address { offset: number as u64 * 8, key: 7 }),
        local: Some(0x1000 + number as u64 * 8),
    };
    let places: Vec<usize> = (0..PLACES + 3).map(|i| sleepers.enter(&waiters, &[at(i)])).collect();
    assert_eq!(places[..PLACES - 1], (0..PLACES - 1).collect::<Vec<_>>());
    assert_eq!(places[PLACES - 1..], [PLACES - 1; 4]);
    assert_eq!(sleepers.enter(&waiters, &[at(5)]), 5, "one word, one place");
    let ticket = waiters.bell(PLACES - 1).ticket();
    let far = Address { offset: 1 << 30, key: 99 };
    assert!(waiters.any_at(far));
    waiters.touched(far, 8);
    assert_ne!(waiters.bell(PLACES - 1).ticket(), ticket);
    for place in places {
        sleepers.leave(&waiters, place, false);
    }
    assert!(waiters.any() && waiters.any_at(at(5).name.unwrap()), "one sleeps still");
    sleepers.leave(&waiters, 5, false);
    assert!(!waiters.any() && !waiters.any_at(at(5).name.unwrap()));
}

/// A store into any of several awaited words rings the bell of the first place; other stores do
/// not.
#[test]
fn a_thread_that_waits_for_several_words_has_one_bell() {
    let (waiters, sleepers) = (waiters(), Sleepers::default());
    let at = |number: u64| Address { offset: number * 8, key: 7 };
    let word = |number: u64| Awaited { name: Some(at(number)), local: Some(0x1000 + number * 8) };
    let single = sleepers.enter(&waiters, &[word(9)]);
    let several = sleepers.enter(&waiters, &[word(1), word(2), word(9)]);
    assert_eq!((single, several), (0, 1));
    let rung = |act: &dyn Fn()| {
        let before = [0, 1].map(|place| waiters.bell(place).ticket());
        act();
        [0, 1].map(|place| waiters.bell(place).ticket() != before[place])
    };
    assert_eq!(rung(&|| waiters.touched(at(1), 8)), [false, true]);
    assert_eq!(rung(&|| waiters.touched(at(2), 8)), [false, true]);
    assert_eq!(rung(&|| waiters.touched(at(9), 8)), [true, true]);
    assert_eq!(rung(&|| waiters.touched(at(3), 8)), [false, false]);
    // A thread that waits only for the first of these words shares the place and the bell.
    assert_eq!(sleepers.enter(&waiters, &[word(1)]), 1);
    assert_eq!(sleepers.enter(&waiters, &[word(2)]), 4, "a place of its own");
    sleepers.leave(&waiters, 1, true);
    assert_eq!(rung(&|| waiters.touched(at(1), 8)), [false, true], "one sleeps still");
    for place in [1, 4, 0] {
        sleepers.leave(&waiters, place, false);
    }
    assert!(!waiters.any());
    // More words than places: the last place stands for all of them.
    let many: Vec<Awaited> = (0..PLACES as u64).map(word).collect();
    assert_eq!(sleepers.enter(&waiters, &many), PLACES - 1);
    assert!(waiters.any_at(at(1 << 20)));
    sleepers.leave(&waiters, PLACES - 1, true);
    assert!(!waiters.any());
}

#[test]
fn a_time_limit_is_kept_and_told() {
    let (waiters, sleepers) = (waiters(), Sleepers::default());
    for limit in [0, 1, 5, 30] {
        let limit = Duration::from_millis(limit);
        let begin = Instant::now();
        // A signal may end a sleep early; sleep() then returns true.
        while sleepers.sleep(&waiters, &[AWAITED], Some(limit), || false) {}
        assert!(begin.elapsed() >= limit);
    }
}

/// In its first second a sleeper notices a store that rings no bell.
#[test]
fn what_changes_without_a_bell_is_seen_after_a_nap() {
    let (waiters, sleepers) = (waiters(), Sleepers::default());
    let begin = Instant::now();
    let late = || begin.elapsed() > Duration::from_millis(15);
    while !late() {
        assert!(sleepers.sleep(&waiters, &[AWAITED], None, late));
    }
}

#[test]
fn a_sleeper_without_a_word_is_woken_by_every_store() {
    let (waiters, sleepers) = (waiters(), Sleepers::default());
    let last = || waiters.bell(PLACES - 1).ticket();
    let before = last();
    let woken = sleepers.sleep(&waiters, &[], Some(Duration::ZERO), || {
        waiters.touched(WORD, 8);
        true
    });
    assert!(woken && last() != before && !waiters.any());
}
