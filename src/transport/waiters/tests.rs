use super::*;

const WORD: Address = Address { offset: 64, key: 7 };

fn waiters() -> Box<Waiters> {
    // SAFETY: made of atomics; all zero means that nobody sleeps, see the type.
    unsafe { Box::new(std::mem::zeroed()) }
}

/// Whether `act`, done while a thread is about to sleep on the word, rings its bell.
fn rings(act: impl Fn(&Waiters)) -> bool {
    let waiters = waiters();
    let rung = std::cell::Cell::new(false);
    waiters.sleep(Some(WORD), Some(Duration::ZERO), || {
        let ticket = waiters.places[0].bell.ticket();
        act(&waiters);
        rung.set(waiters.places[0].bell.ticket() != ticket);
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
        (0, u64::MAX, true),
    ] {
        let touched = rings(|waiters| waiters.touched(Address { offset, ..WORD }, size));
        assert_eq!(touched, expected, "offset {offset} size {size}");
    }
    assert!(!rings(|waiters| waiters.touched(Address { key: 8, ..WORD }, 8)), "another region");
    assert!(rings(Waiters::touched_privately));
}

#[test]
fn a_thread_that_finds_no_place_naps_and_takes_none() {
    let waiters = waiters();
    for place in &waiters.places {
        place.taken.store(2, Ordering::Relaxed);
    }
    waiters.sleep(Some(WORD), Some(Duration::ZERO), || panic!("it has no place to be woken at"));
    assert!(!waiters.any());
}
