//! These tests check which peer gets a scarce resource first: room for frames at a receiver,
//! and places for commands at a sender; and that a sender learns of room that it has waited for.

use super::tests::until;
use super::uses::natures;
use super::*;
use crate::transport::wire::simulated::{Nature, Simulated};
use std::cell::{Cell, RefCell};

/// Ranks without threads, each connected with all others.
pub(super) struct All(Vec<Endpoint>);

impl All {
    fn apart(count: u32, name: &str) -> All {
        let nature = Nature::named(name).unwrap();
        let end = |me: u32| {
            let wire = Arc::new(Simulated::new(me, nature).unwrap());
            Endpoint::without_thread((me, count), wire, 4096, no_slot(), no_news()).unwrap()
        };
        All((0..count).map(end).collect())
    }

    pub fn new(count: u32, name: &str) -> All {
        let all = All::apart(count, name);
        for end in &all.0 {
            (0..count).zip(&all.0).for_each(|(peer, to)| end.connect(peer, to.card()).unwrap());
        }
        all
    }

    /// Only the first is connected with the others.
    pub fn star(count: u32, name: &str) -> All {
        let all = All::apart(count, name);
        let [first, others @ ..] = &all.0[..] else { return all };
        for (peer, other) in (1..count).zip(others) {
            first.connect(peer, other.card()).unwrap();
            other.connect(0, first.card()).unwrap();
        }
        all
    }

    /// Sends a frame with so many bytes of payload.
    pub fn put(&self, from: usize, to: usize, class: Class, tag: u64, size: usize) -> bool {
        let header: &[u8] = if class == Class::Lib { &[1; 40] } else { &[1; 3] };
        let payload = &vec![7; size];
        let frame = Frame { id: 1, kind: 2, tag, header, payload, label: 0, absent: false };
        self.0[from].put(to as u32, class, &frame, 4096)
    }

    /// Sends frames of a class until this rank has refused one for many rounds; how many it took.
    pub fn fill(&self, (from, to): (usize, usize), class: Class, mut round: impl FnMut()) -> usize {
        let (mut taken, mut refused) = (0, 0);
        while refused < 200 {
            let took = self.put(from, to, class, 0, 8);
            taken += usize::from(took);
            refused = if took { 0 } else { refused + 1 };
            round();
            std::thread::sleep(Duration::from_micros(20));
        }
        taken
    }

    pub fn round(&self, rank: usize, deliver: &dyn Fn(u32, Class, &Frame) -> bool) {
        let end = &self.0[rank];
        end.shared.round(end.shared.lock(), deliver);
    }
}

/// A receiver that has room for one frame at a time takes those of a sender with tickets and those
/// of senders with grants in turn. If one kind always came first, the other would get a quarter at
/// most. While this thread waits for a core the wire's frames become due together, so on a loaded
/// machine a run may be less even: one of three must be even.
#[test]
fn frames_by_tickets_and_by_grants_take_turns() {
    let mut runs = Vec::new();
    let mut is_even = || {
        let came = by_tickets_and_by_grants();
        runs.push(came);
        came.iter().all(|came| *came >= 950)
    };
    assert!((0..3).any(|_| is_even()), "{runs:?} of 3,200");
}

/// How many frames by tickets and by grants a receiver with little room has taken, of 3,200.
fn by_tickets_and_by_grants() -> [usize; 2] {
    let mut all_came = [0; 2];
    for name in natures(1) {
        let (all, came, room) = (All::new(5, &name), RefCell::new([0; 2]), Cell::new(false));
        let deliver = |from: u32, _: Class, _: &Frame| {
            came.borrow_mut()[usize::from(from > 1)] += usize::from(room.get());
            room.replace(false)
        };
        let limit = Instant::now() + Duration::from_secs(20);
        while came.borrow().iter().sum::<usize>() < 800 {
            assert!(Instant::now() < limit, "{name}: {came:?}");
            for from in 1..5 {
                // The longer ones do not fit into a slot of tickets.
                let size = if from == 1 { 8 } else { 900 };
                while all.put(from, 0, Class::Requests, 0, size) {}
                all.round(from, &|_, _, _| false);
            }
            room.set(true);
            all.round(0, &deliver);
        }
        let came = came.into_inner();
        all_came = [all_came[0] + came[0], all_came[1] + came[1]];
    }
    all_came
}

/// A rank that sends by tickets to more peers than it has places for commands serves all of them.
#[test]
fn peers_get_places_in_turn() {
    const PEERS: usize = 40;
    for name in natures(1) {
        let (all, came) = (All::new(PEERS as u32 + 1, &name), RefCell::new([0; PEERS + 1]));
        let limit = Instant::now() + Duration::from_secs(30);
        while came.borrow().iter().sum::<usize>() < PEERS * 100 {
            assert!(Instant::now() < limit, "{name}: {came:?}");
            (1..=PEERS).for_each(|to| while all.put(0, to, Class::Requests, 0, 8) {});
            for rank in 0..=PEERS {
                all.round(rank, &|_, _, _| {
                    came.borrow_mut()[rank] += 1;
                    true
                });
            }
        }
        // The wire's delays are random: with turns a peer gets 37 to 230 frames.
        assert!(came.borrow()[1..].iter().all(|came| (20..350).contains(came)), "{name}: {came:?}");
    }
}

/// The round that makes room wakes each thread that has asked once, and no other thread. A round
/// that makes none wakes nobody. Over a silent wire the sender of a request must poll, so its
/// question is refused.
#[test]
fn room_wakes_the_threads_that_have_asked_once() {
    let grants = (1..=2).map(|seed| format!("{seed}:remote=0:shared=0"));
    let queues = (1..=2).map(|seed| format!("{seed}:shared=1"));
    for name in grants.chain(queues).chain(natures(1).take(2)) {
        let (all, rings) = (All::new(2, &name), Arc::new(Mutex::new(Vec::new())));
        let rung = rings.clone();
        all.0[0].set_ring(Box::new(move |sleeper| rung.lock().unwrap().push(sleeper)));
        let rounds = |takes| (0..2).for_each(|rank| all.round(rank, &|_, _, _| takes));
        let rings = || std::mem::take(&mut *rings.lock().unwrap());
        for class in [Class::Lib, Class::Requests, Class::Responses] {
            all.fill((0, 1), class, || rounds(false));
            rings();
            let sleepers = match class {
                Class::Lib => vec![Sleeper::Progress],
                Class::Responses => vec![Sleeper::Handlers],
                _ => vec![Sleeper::Program, Sleeper::Progress],
            };
            for sleeper in [&sleepers[..], &sleepers[..]].concat() {
                assert!(all.0[0].ask_wake((1, 4096), class, (3, 8), sleeper), "{name}");
            }
            (0..100).for_each(|_| rounds(false));
            assert_eq!(rings(), [], "{name}: without room");
            let mut rung = Vec::new();
            until("there is no room", || {
                rounds(true);
                rung.extend(rings());
                all.0[0].has_credit((1, 4096), class, (3, 8))
            });
            assert!(all.put(0, 1, class, 0, 8), "{name}: there is no room");
            (0..100).for_each(|_| rounds(true));
            rung.extend(rings());
            assert_eq!(rung, sleepers, "{name}");
        }
        all.0[0].shared.naps.store(true, Ordering::Relaxed);
        let asked = |class| all.0[0].ask_wake((1, 4096), class, (3, 8), Sleeper::Progress);
        assert_eq!([Class::Requests, Class::Responses].map(asked), [false, true], "{name}");
    }
}
