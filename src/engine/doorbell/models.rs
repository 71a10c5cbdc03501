//! Loom models of the sleep protocol, with the real command queue and bell. A lost wake-up leaves
//! the consumer asleep for ever, which loom reports as a deadlock.

use super::*;
use crate::engine::command_queue::{CommandQueue, Consumer};
use crate::util::sync::{AtomicU32, Ordering};
use loom::sync::Mutex;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

struct World {
    bell: Arc<Bell>,
    ring: CommandQueue<u32>,
    /// How often a producer rang because its commit has asked for it.
    rings: Arc<AtomicUsize>,
}

impl World {
    fn new() -> (World, Consumer<u32>) {
        let (bell, rings) = (Arc::new(Bell::new()), Arc::new(AtomicUsize::new(0)));
        let for_drops = bell.clone();
        let (ring, consumer) = CommandQueue::new(8, move || for_drops.ring()).unwrap();
        (World { bell, ring, rings }, consumer)
    }

    fn post(&self, value: u32) {
        let mut slot = self.ring.reserve(1).unwrap();
        slot.write(0, value);
        if slot.commit() {
            self.rings.fetch_add(1, Relaxed);
            self.bell.ring();
        }
    }

    fn spawn(&self, f: impl FnOnce(World) + 'static) -> thread::JoinHandle<()> {
        let (bell, ring, rings) = (self.bell.clone(), self.ring.clone(), self.rings.clone());
        thread::spawn(move || f(World { bell, ring, rings }))
    }
}

/// Steps 1 to 4 until `count` entries have come; returns their sum and the number of sleeps.
fn consume(bell: &Bell, consumer: &mut Consumer<u32>, count: u32) -> (u32, usize) {
    let (mut got, mut sum, mut sleeps) = (0, 0, 0);
    while got < count {
        let ticket = bell.ticket();
        if let Some(value) = consumer.peek(0) {
            sum += if *value == u32::MAX { 0 } else { *value };
            got += 1;
            consumer.release(1);
        } else if consumer.try_wait() {
            sleeps += 1;
            bell.wait(ticket, None);
        } else {
            thread::yield_now();
        }
    }
    (sum, sleeps)
}

#[test]
fn loom_a_post_ends_the_sleep() {
    check(4, || {
        let (world, mut consumer) = World::new();
        let producer = world.spawn(|world| world.post(7));
        assert_eq!(consume(&world.bell, &mut consumer, 1).0, 7);
        producer.join().unwrap();
    });
}

#[test]
fn loom_two_posts_end_the_sleep_and_each_sleep_is_rung_once() {
    check(2, || {
        let (world, mut consumer) = World::new();
        let producers = [1, 2].map(|value| world.spawn(move |world| world.post(value)));
        let (sum, sleeps) = consume(&world.bell, &mut consumer, 2);
        for producer in producers {
            producer.join().unwrap();
        }
        assert_eq!(sum, 3);
        let rings = world.rings.load(Relaxed);
        assert!(rings <= sleeps, "{rings} rings for {sleeps} sleeps");
    });
}

#[test]
fn loom_two_posts_to_one_sleeper_ring_once() {
    check(3, || {
        let (world, mut consumer) = World::new();
        let ticket = world.bell.ticket();
        assert!(consumer.try_wait());
        let producers = [1, 2].map(|value| world.spawn(move |world| world.post(value)));
        world.bell.wait(ticket, None);
        for producer in producers {
            producer.join().unwrap();
        }
        assert_eq!(world.rings.load(Relaxed), 1);
        assert!(consumer.peek(1).is_some());
    });
}

#[test]
fn loom_a_discard_ends_the_sleep_too() {
    check(2, || {
        let (world, mut consumer) = World::new();
        let dropper = world.spawn(|world| drop(world.ring.reserve(1).unwrap()));
        let poster = world.spawn(|world| world.post(5));
        assert_eq!(consume(&world.bell, &mut consumer, 2).0, 5);
        dropper.join().unwrap();
        poster.join().unwrap();
    });
}

/// A second source beside the queue, as a receiver is: a word whose bit 0 means "armed" and whose
/// other bits count the work. Both sides change it by read-modify-writes.
#[test]
fn loom_two_sources_one_bell() {
    check(2, || {
        let (world, mut consumer) = World::new();
        let source = Arc::new(AtomicU32::new(0));
        let producer = world.spawn(|world| world.post(1));
        let peer = world.spawn({
            let source = source.clone();
            move |world| {
                let add = |now: u32| Some((now & !1) + 2);
                let old = source.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).unwrap();
                if old & 1 == 1 {
                    world.bell.ring();
                }
            }
        });
        let mut from_ring = false;
        loop {
            let ticket = world.bell.ticket();
            if consumer.peek(0).is_some() {
                consumer.release(1);
                from_ring = true;
            }
            let armed = consumer.try_wait();
            let work = source.fetch_or(1, Ordering::Relaxed) & !1;
            if from_ring && work == 2 {
                break;
            }
            if armed && (work == 0 || !from_ring) {
                world.bell.wait(ticket, None);
            } else {
                thread::yield_now();
            }
        }
        producer.join().unwrap();
        peer.join().unwrap();
    });
}

/// The sleeper gives the role up before it sleeps. A producer that must ring does the work itself
/// if the role is free, arms again and gives the role up.
#[test]
fn loom_a_borrower_of_the_role_arms_again() {
    check(2, || {
        let (world, consumer) = World::new();
        let role = Arc::new(Mutex::new(consumer));
        let done = Arc::new(AtomicU32::new(0));
        let borrower = world.spawn({
            let (role, done) = (role.clone(), done.clone());
            move |world| {
                let mut slot = world.ring.reserve(1).unwrap();
                slot.write(0, 1);
                if slot.commit() && !borrow(&role, &done) {
                    world.bell.ring();
                }
            }
        });
        let poster = world.spawn(|world| world.post(2));
        while sleep_giving_away(&world.bell, &role, &done) {}
        borrower.join().unwrap();
        poster.join().unwrap();
        assert_eq!(done.load(Ordering::Relaxed), 2);
    });
}

fn drain(consumer: &mut Consumer<u32>, done: &AtomicU32) {
    while consumer.peek(0).is_some() {
        consumer.release(1);
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// True: the queue is drained and armed again. False: the caller must ring, if only for the sleeper
/// to see that the last piece of work is done.
fn borrow(role: &Mutex<Consumer<u32>>, done: &AtomicU32) -> bool {
    let Ok(mut consumer) = role.try_lock() else { return false };
    drain(&mut consumer, done);
    consumer.try_wait() && done.load(Ordering::Relaxed) < 2
}

/// One round of the sleeper; false when both entries have been consumed.
fn sleep_giving_away(bell: &Bell, role: &Mutex<Consumer<u32>>, done: &AtomicU32) -> bool {
    let ticket = bell.ticket();
    let Ok(mut consumer) = role.try_lock() else {
        thread::yield_now();
        return true;
    };
    drain(&mut consumer, done);
    if done.load(Ordering::Relaxed) == 2 {
        return false;
    }
    let armed = consumer.try_wait();
    drop(consumer);
    if armed {
        bell.wait(ticket, None);
    } else {
        thread::yield_now();
    }
    true
}
