//! Loom models of the command queue: the interleavings of a few steps with at most PREEMPTIONS
//! preemptions, under the C11 memory model. `make check-loom` runs all models.

use super::*;
use loom::thread;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

impl Entry for u32 {
    const NOTHING: u32 = u32::MAX;
}

/// Loom explores every schedule with at most this many preemptions.
const PREEMPTIONS: usize = 3;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

fn ring_at(start: u64) -> (CommandQueue<u32>, Consumer<u32>) {
    CommandQueue::starting_at(start, 8, Box::new(|| panic!("nobody waits"))).unwrap()
}

fn post(ring: &CommandQueue<u32>, values: &[u32]) -> bool {
    let Some(mut run) = ring.reserve(values.len()) else { return false };
    for (index, value) in values.iter().enumerate() {
        run.write(index, *value);
    }
    assert!(!run.commit());
    true
}

/// Takes `count` entries; yields while there are none.
fn take(consumer: &mut Consumer<u32>, count: usize) -> Vec<u32> {
    let mut values = Vec::new();
    while values.len() < count {
        match consumer.peek(0) {
            Some(value) => {
                values.push(*value);
                consumer.release(1);
            }
            None => thread::yield_now(),
        }
    }
    values
}

#[test]
fn loom_two_producers_one_consumer() {
    check(|| {
        let (ring, mut consumer) = ring_at(0);
        let other = ring.clone();
        let a = thread::spawn(move || {
            assert!(other.reserve(1).is_some_and(|mut slot| {
                slot.write(0, 10);
                !slot.commit()
            }))
        });
        let other = ring.clone();
        let b = thread::spawn(move || assert!(post(&other, &[20]) && post(&other, &[21])));
        let values = take(&mut consumer, 3);
        let of_b: Vec<u32> = values.iter().copied().filter(|value| *value >= 20).collect();
        assert_eq!(of_b, [20, 21]);
        assert!(values.contains(&10) && consumer.peek(0).is_none());
        a.join().unwrap();
        b.join().unwrap();
        assert!(consumer.is_empty());
    });
}

/// A consumer that sees the first slot of a reservation sees all of them.
#[test]
fn loom_a_run_arrives_whole() {
    check(|| {
        let (ring, mut consumer) = ring_at(0_u64.wrapping_sub(2));
        let other = ring.clone();
        let a = thread::spawn(move || assert!(post(&other, &[1, 2, 3])));
        let b = thread::spawn(move || assert!(post(&ring, &[4])));
        let mut left = 2;
        while left > 0 {
            match consumer.peek(0) {
                Some(1) => {
                    assert_eq!((consumer.peek(1), consumer.peek(2)), (Some(&2), Some(&3)));
                    consumer.release(3);
                    left -= 1;
                }
                Some(value) => {
                    assert_eq!(*value, 4);
                    consumer.release(1);
                    left -= 1;
                }
                None => thread::yield_now(),
            }
        }
        a.join().unwrap();
        b.join().unwrap();
    });
}

/// A full queue: a producer writes to a slot again only after the consumer has read it, even if it
/// knows the consumer's head only from the copy that the other producer has stored.
#[test]
fn loom_full_and_reused() {
    check(|| {
        let (ring, mut consumer) = ring_at(0);
        assert!(post(&ring, &[0, 1, 2, 3, 4, 5, 6, 7]));
        assert!(!post(&ring, &[8]));
        let producers = [8, 9].map(|value| {
            let ring = ring.clone();
            thread::spawn(move || u32::from(post(&ring, &[value])))
        });
        for value in 0..2 {
            assert_eq!(consumer.peek(0), Some(&value));
            consumer.release(1);
        }
        let posted: u32 = producers.map(|producer| producer.join().unwrap()).iter().sum();
        for value in 2..8 {
            assert_eq!(consumer.peek(0), Some(&value));
            consumer.release(1);
        }
        for _ in 0..posted {
            assert!(consumer.peek(0).is_some_and(|value| *value == 8 || *value == 9));
            consumer.release(1);
        }
        assert!(consumer.peek(0).is_none() && consumer.is_empty());
    });
}

#[test]
fn loom_a_drop_discards() {
    check(|| {
        let (ring, mut consumer) = ring_at(0);
        let other = ring.clone();
        let a = thread::spawn(move || {
            let mut run = other.reserve(2).unwrap();
            run.write(0, 5);
        });
        let b = thread::spawn(move || assert!(post(&ring, &[6])));
        let mut values = take(&mut consumer, 3);
        values.sort_unstable();
        assert_eq!(values, [6, u32::NOTHING, u32::NOTHING]);
        a.join().unwrap();
        b.join().unwrap();
        assert!(consumer.is_empty());
    });
}

/// Two producers post to an armed consumer: exactly one of them rings, by its commit or its drop.
#[test]
fn loom_exactly_one_rings() {
    check(|| {
        let rung = std::sync::Arc::new(AtomicUsize::new(0));
        let count = rung.clone();
        let (ring, mut consumer) = CommandQueue::starting_at(
            0,
            8,
            Box::new(move || {
                count.fetch_add(1, Relaxed);
            }),
        )
        .unwrap();
        assert!(consumer.try_wait());
        let other = ring.clone();
        let a = thread::spawn(move || drop(other.reserve(1).unwrap()));
        let mut slot = ring.reserve(1).unwrap();
        slot.write(0, 1);
        let mine = slot.commit();
        a.join().unwrap();
        assert_eq!(rung.load(Relaxed) + usize::from(mine), 1);
        assert!(!consumer.cancel_wait());
        assert_eq!(take(&mut consumer, 2).len(), 2);
    });
}

/// The flush that needs no role (`Lane::has_ended`, `LaneState::count_under_way`). A thread that
/// finds its own post released and nothing under way sees what the operation has written, even if
/// the operation ended after the release.
#[test]
fn loom_a_flush_without_the_role_sees_the_end() {
    check(|| {
        let word = || loom::sync::atomic::AtomicUsize::new(0);
        let words = std::sync::Arc::new([word(), word()]);
        let (ring, mut consumer) = ring_at(0_u64.wrapping_sub(2));
        let theirs = words.clone();
        let executor = thread::spawn(move || {
            let [under_way, brought] = &*theirs;
            assert_eq!(take_first(&mut consumer), 1);
            // As for a request to an owner: the count goes up before the release. The operation
            // ends later, and then the count goes down.
            under_way.store(1, Release);
            consumer.release(1);
            brought.store(1, Relaxed);
            under_way.store(0, Release);
        });
        assert!(post(&ring, &[1]));
        let [under_way, brought] = &*words;
        if ring.is_drained() && under_way.load(Acquire) == 0 {
            assert_eq!(brought.load(Relaxed), 1);
        }
        executor.join().unwrap();
        assert!(ring.is_drained());
    });
}

fn take_first(consumer: &mut Consumer<u32>) -> u32 {
    loop {
        match consumer.peek(0) {
            Some(value) => return *value,
            None => thread::yield_now(),
        }
    }
}
