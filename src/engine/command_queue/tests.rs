//! Tests of the command queue by one thread, and a stress test with several.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A value in two cache lines, so that a torn hand-over would show.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Item {
    producer: u64,
    number: u64,
    copies: [u64; 13],
}

impl Entry for Item {
    const NOTHING: Item = Item { producer: u64::MAX, number: 0, copies: [0; 13] };
}

impl Item {
    fn new(producer: u64, number: u64) -> Item {
        Item { producer, number, copies: [producer << 32 | number; 13] }
    }
}

fn ring_at(start: u64) -> (CommandQueue<Item>, Consumer<Item>) {
    CommandQueue::starting_at(start, 8, Box::new(|| panic!("nobody waits"))).unwrap()
}

/// Start positions: 0, some other, two at which the positions wrap during the test, and one at
/// which only the marks wrap.
const STARTS: [u64; 5] = [0, 64, 0_u64.wrapping_sub(8), 0_u64.wrapping_sub(2), (1 << 32) - 8];

fn post(ring: &CommandQueue<Item>, numbers: &[u64]) -> bool {
    let Some(mut run) = ring.reserve(numbers.len()) else { return false };
    for (index, number) in numbers.iter().enumerate() {
        run.write(index, Item::new(0, *number));
    }
    assert!(!run.commit());
    true
}

fn take(consumer: &mut Consumer<Item>, limit: usize) -> Vec<u64> {
    let numbers: Vec<u64> =
        (0..limit).map_while(|index| consumer.peek(index)).map(|item| item.number).collect();
    consumer.release(numbers.len());
    numbers
}

#[test]
fn empty_then_full_then_empty_again_at_every_start() {
    for start in STARTS {
        let (ring, mut consumer) = ring_at(start);
        for round in 0..5 {
            assert!(ring.is_empty() && consumer.is_empty() && consumer.peek(0).is_none());
            for number in 0..8 {
                assert!(post(&ring, &[round * 10 + number]));
            }
            assert!(!post(&ring, &[99]), "eight slots hold eight entries");
            assert!(!ring.is_empty() && !consumer.is_empty() && consumer.peek(8).is_none());
            assert_eq!(take(&mut consumer, 3), [0, 1, 2].map(|n| round * 10 + n));
            assert!(!post(&ring, &[1; 4]), "three are free, four were wanted: nothing is kept");
            assert!(post(&ring, &[70, 71, 72]));
            assert_eq!(take(&mut consumer, 8).len(), 8);
        }
    }
}

/// A producer that is preempted between its loads of the tail and of the copy of head may find the
/// consumer past its tail. The queue must not say "full": the exchange fails, and the producer
/// loads the new tail.
#[test]
fn an_outdated_tail_is_not_taken_for_full() {
    for start in STARTS {
        let (ring, mut consumer) = ring_at(start);
        assert!(post(&ring, &[1; 8]));
        assert_eq!(take(&mut consumer, 8).len(), 8);
        assert!(post(&ring, &[2]), "this renews the copy of head");
        assert!(ring.shared.has_room(start, 8));
        assert!(ring.shared.has_room(start.wrapping_add(8 * STEP), 8));
        assert!(!ring.shared.has_room(start.wrapping_add(9 * STEP), 8));
    }
}

#[test]
fn runs_cross_the_end_of_the_ring_and_stay_together() {
    for start in STARTS {
        let (ring, mut consumer) = ring_at(start);
        let mut number = 0;
        for round in 0..100 {
            let run: Vec<u64> = (0..1 + round % 8).map(|index| number + index).collect();
            assert!(post(&ring, &run));
            assert_eq!(take(&mut consumer, 8), run);
            number += run.len() as u64;
        }
    }
}

#[test]
fn a_reservation_hides_what_was_committed_behind_it() {
    let (ring, mut consumer) = ring_at(0);
    let mut early = ring.reserve(2).unwrap();
    assert!(post(&ring, &[3]));
    assert!(consumer.peek(0).is_none() && !consumer.is_empty());
    assert!(!consumer.try_wait(), "a reservation under way forbids the sleep");
    early.write(1, Item::new(0, 2));
    *early.slot_mut(0) = Item::new(0, 1);
    assert_eq!(early.count(), 2);
    assert!(!early.commit());
    assert_eq!(take(&mut consumer, 8), [1, 2, 3]);
}

#[test]
fn a_dropped_reservation_leaves_nothing_entries() {
    let (ring, mut consumer) = ring_at(0);
    let mut run = ring.reserve(3).unwrap();
    run.write(0, Item::new(0, 1));
    drop(run);
    assert!(post(&ring, &[7]));
    for index in 0..3 {
        assert_eq!(consumer.peek(index), Some(&Item::NOTHING));
    }
    assert_eq!(consumer.peek(3), Some(&Item::new(0, 7)));
    consumer.release(4);
    assert!(consumer.is_empty());
}

#[test]
fn waiting_is_seen_by_exactly_one_reservation() {
    for start in STARTS {
        let (ring, mut consumer) = ring_at(start);
        assert!(consumer.try_wait());
        assert!(consumer.try_wait(), "arming twice is arming");
        assert!(ring.is_empty() && consumer.is_empty(), "the bit is no entry");
        let first = ring.reserve(1).unwrap();
        let second = ring.reserve(1).unwrap();
        assert!(!consumer.try_wait());
        assert!(!second.commit());
        assert!(first.commit());
        assert!(consumer.peek(1).is_some());
        consumer.release(2);
        assert!(consumer.try_wait() && consumer.cancel_wait());
        assert!(!consumer.cancel_wait(), "there is nothing to take back");
        assert!(!ring.reserve(1).unwrap().commit(), "nobody waits any more");
    }
}

#[test]
fn a_reservation_refused_as_full_leaves_waiting_alone() {
    let (ring, mut consumer) = ring_at(0);
    assert!(post(&ring, &[1, 2, 3]));
    consumer.peek(2).unwrap();
    consumer.release(3);
    assert!(consumer.try_wait());
    let all = ring.reserve(8).unwrap();
    assert!(ring.reserve(1).is_none());
    assert!(all.commit(), "the duty stayed with the reservation that got it");
}

#[test]
fn dropping_the_reservation_that_cleared_waiting_rings() {
    let rung = Arc::new(AtomicUsize::new(0));
    let count = rung.clone();
    let (ring, mut consumer) = CommandQueue::<Item>::new(8, move || {
        count.fetch_add(1, Relaxed);
    })
    .unwrap();
    assert!(consumer.try_wait());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _owes = ring.reserve(1).unwrap();
        panic!("between reserve and commit");
    }));
    assert!(panicked.is_err());
    assert_eq!(rung.load(Relaxed), 1);
    drop(ring.reserve(1).unwrap());
    assert_eq!(rung.load(Relaxed), 1, "nobody waited for this one");
    assert_eq!(consumer.peek(1), Some(&Item::NOTHING));
}

#[test]
fn misuse_is_refused() {
    let refused = |f: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(f)).is_err();
    let (ring, mut consumer) = ring_at(0);
    assert!(refused(&mut || drop(ring.reserve(0))));
    assert!(refused(&mut || drop(ring.reserve(MAX_RUN + 1))));
    assert!(ring.is_empty(), "a refused reservation takes no position");
    assert!(refused(&mut || consumer.release(1)));
    assert!(post(&ring, &[1]));
    assert!(refused(&mut || consumer.release(1)), "what was not looked at is not released");
    for capacity in [0, 4, 7, 12] {
        assert!(
            refused(&mut || drop(CommandQueue::<Item>::new(capacity, || ()).unwrap())),
            "{capacity}"
        );
    }
    let mut run = ring.reserve(2).unwrap();
    assert!(refused(&mut || run.write(2, Item::NOTHING)));
}

/// Several producers with reservations of every length against one consumer: all items of each
/// producer arrive once, whole and in order; also where positions wrap.
#[test]
fn stress_keeps_each_producers_order_and_loses_nothing() {
    for producers in [1, 2, 4, 8] {
        for start in [0, 0_u64.wrapping_sub(5_000)] {
            stress(producers, 4_000, start);
        }
    }
}

fn stress(producers: u64, each: u64, start: u64) {
    let (ring, mut consumer) = ring_at(start);
    std::thread::scope(|s| {
        for producer in 0..producers {
            let ring = ring.clone();
            s.spawn(move || produce(&ring, producer, each));
        }
        let mut next = vec![0; producers as usize];
        let mut left = producers * each;
        while left > 0 {
            let mut taken = 0;
            while let Some(item) = consumer.peek(taken) {
                taken += 1;
                if *item == Item::NOTHING {
                    continue;
                }
                assert_eq!(*item, Item::new(item.producer, next[item.producer as usize]));
                next[item.producer as usize] += 1;
                left -= 1;
            }
            consumer.release(taken);
            if taken == 0 {
                std::thread::yield_now();
            }
        }
    });
    while consumer.peek(0).is_some() {
        assert_eq!(consumer.peek(0), Some(&Item::NOTHING), "an item arrived twice");
        consumer.release(1);
    }
    assert!(consumer.is_empty());
}

fn produce(ring: &CommandQueue<Item>, producer: u64, each: u64) {
    let mut number = 0;
    while number < each {
        let count = (1 + number % 8).min(each - number);
        let Some(mut run) = ring.reserve(count as usize) else {
            std::thread::yield_now();
            continue;
        };
        if number % 16 == 3 {
            drop(run);
            run = match ring.reserve(count as usize) {
                Some(run) => run,
                None => continue,
            };
        }
        for index in 0..count {
            run.write(index as usize, Item::new(producer, number + index));
        }
        assert!(!run.commit(), "nobody ever waits here");
        number += count;
    }
}

/// Large enough for producers to fetch lines ahead.
fn large_ring_at(start: u64) -> (CommandQueue<Item>, Consumer<Item>) {
    CommandQueue::starting_at(start, 64, Box::new(|| panic!("nobody waits"))).unwrap()
}

#[test]
fn lines_are_fetched_ahead_only_where_slots_are_free() {
    for start in STARTS {
        let (ring, mut consumer) = large_ring_at(start);
        for lot in [1, 7, 8, 33, 64, 64, 5, 64] {
            assert!((0..lot).all(|number| post(&ring, &[number])));
            assert_eq!(ring.reserve(1).is_none(), lot == 64, "a slot is free but for a full ring");
            let taken = take(&mut consumer, 64);
            // The dropped reservation has left an entry that the consumer skips.
            let posted: Vec<u64> = (0..lot).chain((lot < 64).then_some(0)).collect();
            assert_eq!(taken, posted, "as posted, whatever was fetched meanwhile");
        }
    }
}

#[test]
fn an_entry_behind_a_hole_is_not_shown() {
    for start in STARTS {
        let (ring, mut consumer) = large_ring_at(start);
        assert!(post(&ring, &[1]));
        let hole = ring.reserve(1).unwrap();
        assert!(post(&ring, &[3]));
        assert!(consumer.peek(0).is_some());
        assert!(consumer.peek(1).is_none() && consumer.peek(2).is_none());
        drop(hole);
        assert_eq!(take(&mut consumer, 3), [1, 0, 3]);
    }
}

#[test]
fn a_consumer_that_lies_down_and_gets_up_is_no_contention() {
    const POSTS: u64 = 20_000;
    let (ring, mut consumer) = CommandQueue::<Item>::starting_at(0, 64, Box::new(|| ())).unwrap();
    std::thread::scope(|scope| {
        let producer = scope.spawn(move || {
            let mut posted = 0;
            while posted < POSTS {
                match ring.reserve(1) {
                    Some(reservation) => {
                        assert!(!reservation.is_contended(), "nobody else posts");
                        let _nobody_sleeps = reservation.commit();
                        posted += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
        let mut taken = 0;
        while taken < POSTS as usize {
            consumer.try_wait();
            consumer.cancel_wait();
            taken += take(&mut consumer, 8).len();
        }
        producer.join().unwrap();
    });
}
