//! Loom models: a sleep concurrent with stores. No time passes under loom, so a lost wake-up makes
//! a thread sleep for ever, which loom reports as a deadlock.

use super::*;
use crate::transport::address::Address;
use crate::util::sync::{Arc, AtomicU64, Ordering};
use loom::thread;

fn at(word: u64) -> Awaited {
    // Any key but 0.
    Awaited { name: Some(Address { offset: word * 8, key: 64 }), local: Some(0x1000 + word * 8) }
}

struct Rank {
    waiters: Waiters,
    sleepers: Sleepers,
    words: [AtomicU64; 2],
}

impl Rank {
    fn new() -> Arc<Rank> {
        let words = [AtomicU64::new(0), AtomicU64::new(0)];
        Arc::new(Rank { waiters: Waiters::new(), sleepers: Sleepers::default(), words })
    }

    fn await_word(&self, word: usize) {
        let done = || self.words[word].load(Ordering::Acquire) != 0;
        while !done() {
            self.sleepers.sleep(&self.waiters, &[at(word as u64)], None, done);
        }
    }

    fn await_either(&self) {
        let done = || self.words.iter().any(|word| word.load(Ordering::Acquire) != 0);
        while !done() {
            self.sleepers.sleep(&self.waiters, &[at(0), at(1)], None, done);
        }
    }

    /// A peer's write of 8 bytes.
    fn write(&self, word: usize) {
        self.words[word].store(1, Ordering::Release);
        let name = at(word as u64).name.unwrap();
        if self.waiters.any_at(name) {
            self.waiters.wake_at(name, 8);
        }
    }
}

fn model(preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(run);
}

#[test]
fn loom_a_peers_write_wakes_the_sleeper() {
    loom::model(|| {
        let rank = Rank::new();
        let peer = rank.clone();
        let peer = thread::spawn(move || peer.write(0));
        rank.await_word(0);
        peer.join().unwrap();
        assert!(!rank.waiters.any());
    });
}

#[test]
fn loom_an_own_completion_wakes_the_sleeper() {
    loom::model(|| {
        let rank = Rank::new();
        let other = rank.clone();
        let other = thread::spawn(move || {
            other.words[0].store(1, Ordering::Release);
            other.waiters.touched_word(0x1000);
        });
        rank.await_word(0);
        other.join().unwrap();
    });
}

/// A thread that stops waiting for a word does not remove the place and marks of a second thread
/// that begins to wait for it.
#[test]
fn loom_who_leaves_takes_no_marks_from_who_comes() {
    model(2, || {
        let rank = Rank::new();
        let (peer, second) = (rank.clone(), rank.clone());
        let peer = thread::spawn(move || peer.write(0));
        let second = thread::spawn(move || second.await_word(0));
        rank.await_word(0);
        second.join().unwrap();
        peer.join().unwrap();
        assert!(!rank.waiters.any());
    });
}

/// A thread waits for two words, each with its place, on one bell.
#[test]
fn loom_one_of_several_words_wakes_the_sleeper() {
    model(2, || {
        let rank = Rank::new();
        let peer = rank.clone();
        let peer = thread::spawn(move || peer.write(1));
        rank.await_either();
        peer.join().unwrap();
        assert!(!rank.waiters.any());
    });
}

/// Two threads wait for two words while one ordinary place is free, so one of them sleeps at the
/// last place.
#[test]
fn loom_words_beyond_the_last_place_are_woken_as_well() {
    model(1, || {
        let rank = Rank::new();
        rank.sleepers.enter(&rank.waiters, &[at(5)]);
        let (peer, second) = (rank.clone(), rank.clone());
        let peer = thread::spawn(move || {
            peer.write(1);
            peer.write(0);
        });
        let second = thread::spawn(move || second.await_word(1));
        rank.await_word(0);
        second.join().unwrap();
        peer.join().unwrap();
    });
}
