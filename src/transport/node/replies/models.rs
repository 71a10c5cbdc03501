//! Loom models of the reply board: two repliers and the asker.

use super::*;
use crate::util::bell::Bell;
use crate::util::sync::Arc;
use loom::thread::{self, JoinHandle};

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// What lies in an asker's control area.
struct Area {
    board: Board,
    places: Vec<Place>,
    bell: Bell,
}

fn word() -> AtomicU64 {
    AtomicU64::new(0)
}

/// Places 0 and 1 share a word of `ready`; place 64 has another.
fn area() -> Arc<Area> {
    let place = || Place { tag: word(), status: word(), result: word(), reserved: word() };
    let board = Board { summary: word(), ready: std::array::from_fn(|_| word()) };
    Arc::new(Area { board, places: (0..=GROUP).map(|_| place()).collect(), bell: Bell::new() })
}

/// The answer to the tag of place `index`; every word of it tells whose it is.
fn answer(index: u64) -> Reply {
    Reply { tag: 9 << 32 | index, status: Status(-(index as i32)), result: index + 1000 }
}

impl Area {
    fn replies(&self) -> Replies<'_> {
        Replies { board: &self.board, places: &self.places }
    }

    /// Answers as a transport does; true: it rang.
    fn put(&self, index: u64) -> bool {
        let ring = self.replies().put(answer(index));
        if ring {
            self.bell.ring();
        }
        ring
    }

    /// Takes what is there, whole answers only, and notes their places.
    fn take(&self, got: &mut Vec<u64>) -> usize {
        self.replies().take(|reply| {
            let index = reply.tag & 0xffff_ffff;
            assert_eq!(reply, answer(index), "an answer in pieces");
            got.push(index);
        })
    }

    /// Takes `count` answers, awake all the time.
    fn take_all(&self, count: usize) -> Vec<u64> {
        let mut got = Vec::new();
        while got.len() < count {
            if self.take(&mut got) == 0 {
                thread::yield_now();
            }
        }
        got.sort_unstable();
        got
    }
}

fn repliers(area: &Arc<Area>, indices: [u64; 2]) -> [JoinHandle<bool>; 2] {
    indices.map(|index| {
        let area = area.clone();
        thread::spawn(move || area.put(index))
    })
}

fn answers_come_whole_and_once(indices: [u64; 2]) {
    check(3, move || {
        let area = area();
        let repliers = repliers(&area, indices);
        assert_eq!(area.take_all(2), indices);
        let rang = repliers.map(|replier| replier.join().unwrap());
        assert_eq!(rang, [false, false], "nobody slept");
        assert_eq!(area.take(&mut Vec::new()), 0, "an answer came twice");
    });
}

/// The two meet in one word of `ready`: the bit that comes after its word was emptied must still
/// be found by the summary.
#[test]
fn loom_answers_in_one_group_come_whole_and_once() {
    answers_come_whole_and_once([0, 1]);
}

/// The two meet in the summary only.
#[test]
fn loom_answers_in_two_groups_come_whole_and_once() {
    answers_come_whole_and_once([1, 64]);
}

#[test]
fn loom_one_of_two_repliers_rings_for_a_sleeper() {
    check(3, || {
        let area = area();
        assert!(area.replies().arm());
        assert!(area.replies().arm(), "arming twice is arming");
        let rang = repliers(&area, [0, 64]).map(|replier| replier.join().unwrap());
        assert_eq!(rang.iter().filter(|rang| **rang).count(), 1);
        assert!(!area.replies().arm());
        assert_eq!(area.take_all(2), [0, 64]);
    });
}

/// Either the asker sees that an answer has come, or the replier sees that it must ring.
#[test]
fn loom_arming_and_answering_meet() {
    check(4, || {
        let area = area();
        let other = area.clone();
        let replier = thread::spawn(move || other.put(1));
        let armed = area.replies().arm();
        assert_eq!(armed, replier.join().unwrap());
        area.replies().disarm();
        assert_eq!(area.take_all(1), [1]);
        assert!(area.replies().arm(), "nothing is left on the board");
    });
}

/// The asker sleeps whenever it may; a lost wake-up is a deadlock, which loom reports.
#[test]
fn loom_no_answer_finds_the_asker_asleep_for_ever() {
    check(3, || {
        let area = area();
        let repliers = repliers(&area, [0, 64]);
        let mut got = Vec::new();
        while got.len() < 2 {
            let ticket = area.bell.ticket();
            area.replies().disarm();
            if area.take(&mut got) > 0 {
                continue;
            }
            if area.replies().arm() {
                area.bell.wait(ticket, None);
            } else {
                thread::yield_now();
            }
        }
        let _ = repliers.map(|replier| replier.join().unwrap());
        got.sort_unstable();
        assert_eq!(got, [0, 64]);
    });
}

/// The place is used for a second question: the answer to the first has been read before the
/// second is written, because the question in between travels from asker to replier.
#[test]
fn loom_a_place_is_used_again() {
    check(3, || {
        let area = area();
        let (other, asked) = (area.clone(), Arc::new(word()));
        let question = asked.clone();
        let replier = thread::spawn(move || {
            other.put(0);
            while question.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            other.replies().put(Reply { result: 7, ..answer(0) });
        });
        assert_eq!(area.take_all(1), [0]);
        asked.store(1, Ordering::Release);
        let mut second = None;
        while second.is_none() {
            area.replies().take(|reply| second = Some(reply.result));
            thread::yield_now();
        }
        assert_eq!(second, Some(7));
        replier.join().unwrap();
    });
}
