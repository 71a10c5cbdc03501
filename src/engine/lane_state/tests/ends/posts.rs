//! How many operations a batch posts, and how many posts and requests a write with signal takes.

use super::*;
use crate::engine::by_caller::{self, Local, Outcome};
use crate::engine::control_messages::{self, ControlMessage, ControlReceiver, Ended, Words, Write};
use crate::transport::Access;
use crate::transport::fabric::{simulate, simulate_two};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The BATCH of `engine::by_wire`.
const BATCH: usize = 64;

pub(super) fn until(ranks: &mut [Rank], what: &str, done: impl Fn(&[Rank]) -> bool) {
    let limit = Instant::now() + Duration::from_secs(10);
    while !done(ranks) {
        for rank in ranks.iter_mut() {
            rank.round();
        }
        assert!(Instant::now() < limit, "{what}");
    }
}

pub(super) fn transfer(op: Op, key: u64, words: &mut [u64], ended: &AtomicU64) -> Command {
    let mut command = Command::new(op, 1);
    command.remote = Address { offset: 0, key };
    (command.local, command.size) = (words.as_mut_ptr().cast(), size_of_val(words) as u64);
    command.on_complete = add_to(ended);
    command
}

/// 640 operations take about ten posts. The wire's lane accepts some batches in parts.
#[test]
fn operations_of_a_round_are_posted_under_one_doorbell() {
    // A wire that reads and writes memory and accepts any part of a batch.
    simulate(Some(7));
    let (_world, mut ranks) = two_ranks(BATCH);
    simulate(None);
    let (mut theirs, mut ours, ended) = (vec![5u64; 64], vec![0u64; BATCH], AtomicU64::new(0));
    let key = ranks[1].register(&mut theirs);
    ranks[0].register(&mut ours);
    let address = Address { offset: 0, key };
    until(&mut ranks, "the key is not known", |ranks| {
        let routes = &ranks[0].routes;
        let port = routes.port(1).unwrap();
        matches!(routes.locate(port, address, 8), Ok(Access::Posted(_)))
    });
    let most = ranks[0].routes.fabric().remote_most();
    for round in 1..=10 {
        for word in ours.chunks_mut(1) {
            let read = transfer(Op::READ, key, word, &ended);
            ranks[0].start(read, InFlight::first_posted(8, most));
        }
        until(&mut ranks, "an operation has not ended", |_| value(&ended) == round * BATCH as u64);
    }
    let posts = ranks[0].routes.fabric().posts();
    println!("{} operations, {posts} posts", 10 * BATCH);
    assert!((10..BATCH).contains(&posts), "{posts} posts");
    assert_eq!(ours, vec![5; BATCH]);
}

/// A line that the network has refused three times leaves four tries out. A completion ends that.
#[test]
fn a_refused_line_is_not_tried_before_its_pause_is_over() {
    simulate(Some(7));
    let (_world, mut ranks) = two_ranks(BATCH);
    simulate(None);
    let (mut theirs, mut ours, ended) = (vec![5u64; 64], vec![0u64; BATCH], AtomicU64::new(0));
    let key = ranks[1].register(&mut theirs);
    let address = Address { offset: 0, key };
    until(&mut ranks, "the key is not known", |ranks| {
        let routes = &ranks[0].routes;
        matches!(routes.locate(routes.port(1).unwrap(), address, 8), Ok(Access::Posted(_)))
    });
    let most = ranks[0].routes.fabric().remote_most();
    for word in ours.chunks_mut(1) {
        let read = transfer(Op::READ, key, word, &ended);
        ranks[0].start(read, InFlight::first_posted(8, most));
    }
    let Rank { work, routes, .. } = &mut ranks[0];
    let completions = work.completions;
    let refuse = |work: &mut LaneState| {
        work.posts.put(1, |line| [(); 3].iter().for_each(|()| line.refused(completions)));
    };
    refuse(work);
    assert_eq!([(); 4].map(|()| work.post_gathered(routes)), [0; 4], "the line pauses");
    refuse(work);
    work.completions += 1;
    assert!((0..2).any(|_| work.post_gathered(routes) > 0), "a completion has made room");
    until(&mut ranks, "an operation has not ended", |_| value(&ended) == BATCH as u64);
    assert_eq!(ours, vec![5; BATCH]);
}

/// Over a network whose writes bring signals, a write with signal is one post, and the owner's lane
/// serves no request. Seed 7 has such writes, and brings the completion and the owner's answer in
/// any order. Seed 1 has none: there the owner changes the word by a request, as it does where only
/// one of the two ranks has the ability.
#[test]
fn a_signal_travels_with_its_bytes() {
    for (natures, at_once) in [
        (["7", "7"], true),
        (["1", "1"], false),
        (["7", "7:notices=1"], false),
        (["7:notices=1", "7"], false),
    ] {
        simulate_two(natures);
        let (_world, mut ranks) = two_ranks(8);
        simulate(None);
        let (mut theirs, mut ours) = (vec![0u64; 8193], vec![0u64; 8192]);
        let key = ranks[1].register(&mut theirs);
        let address = Address { offset: 0, key };
        until(&mut ranks, "the key is not known", |ranks| {
            let routes = &ranks[0].routes;
            matches!(routes.locate(routes.port(1).unwrap(), address, 8), Ok(Access::Posted(_)))
        });
        assert_eq!(ranks[0].routes.fabric().has_signals(1), at_once);
        let (ended, sizes, mut served) = (AtomicU64::new(0), [1, 125, 1000, 8192], 0);
        for round in 1..=100_u64 {
            let size = sizes[round as usize % 4];
            ours[..size].fill(round);
            let mut write = transfer(Op::WRITE_SIGNAL, key, &mut ours[..size], &ended);
            write.signal = Address { offset: 8 * 8192, key };
            (write.code, write.operand) = (op::ADD, 1);
            let posts = ranks[0].routes.fabric().posts();
            let Rank { work, routes, .. } = &mut ranks[0];
            // SAFETY: as in Rank::start().
            assert!(unsafe { work.execute_one(routes, write, false) });
            let limit = Instant::now() + Duration::from_secs(10);
            while value(&ended) < round {
                ranks[0].round();
                served += ranks[1].round();
                assert!(Instant::now() < limit, "{natures:?}, write {round}");
            }
            let posts = ranks[0].routes.fabric().posts() - posts;
            assert_eq!(posts, usize::from(at_once || size > 512), "{size} words");
            assert_eq!((theirs[8192], &theirs[..size]), (round, &ours[..size]));
        }
        assert_eq!(served == 0, at_once, "{served} requests");
    }
}

/// Over a network that answers writes with values, an atomic is one post, and the owner's lane
/// serves no request. If one of the two ranks does not have the ability, it is a request. When the
/// owner has freed the region, the atomic is refused.
#[test]
fn an_atomic_is_a_write_of_no_bytes() {
    let (able, other) = ("7:notices=3:answers=1", "7:notices=2:answers=1");
    for (natures, at_once) in [([able; 2], true), ([able, other], false), ([other, able], false)] {
        simulate_two(natures);
        let (_world, mut ranks) = two_ranks(8);
        simulate(None);
        let (mut theirs, ended) = (vec![0u64; 4], AtomicU64::new(0));
        let key = ranks[1].register(&mut theirs);
        let address = Address { offset: 12, key };
        until(&mut ranks, "the key is not known", |ranks| {
            let routes = &ranks[0].routes;
            matches!(routes.locate(routes.port(1).unwrap(), address, 4), Ok(Access::Posted(_)))
        });
        assert_eq!(ranks[0].routes.fabric().has_atomics(1), at_once);
        let (mut fetched, mut served) = (7u32, 0);
        let mut atomic = Command::new(Op::ATOMIC, 1);
        (atomic.remote, atomic.kind, atomic.on_complete) = (address, kind::U32, add_to(&ended));
        let steps = [(op::ADD, 5, 0, 0), (op::COMPARE_SWAP, 9, 5, 5), (op::COMPARE_SWAP, 1, 2, 9)];
        for (round, (code, operand, compare, old)) in (1..).zip(steps) {
            (atomic.code, atomic.operand, atomic.compare) = (code, operand, compare);
            atomic.local = (&raw mut fetched).cast();
            let posts = ranks[0].routes.fabric().posts();
            let Rank { work, routes, .. } = &mut ranks[0];
            // SAFETY: as in Rank::start().
            assert!(unsafe { work.execute_one(routes, atomic, false) });
            let limit = Instant::now() + Duration::from_secs(10);
            while value(&ended) < round {
                ranks[0].round();
                served += ranks[1].round();
                assert!(Instant::now() < limit, "{natures:?}, atomic {round}");
            }
            let posts = ranks[0].routes.fabric().posts() - posts;
            assert_eq!((posts, fetched), (usize::from(at_once), old), "{natures:?}");
        }
        assert_eq!((theirs[0], theirs[1]), (0, 9 << 32), "no other word has changed");
        assert_eq!(served == 0, at_once, "{served} requests");
        ranks[1].segment.retract(0);
        ranks[1].routes.fabric().deregister(key, Duration::ZERO).unwrap();
        let Rank { work, routes, .. } = &mut ranks[0];
        // SAFETY: as in Rank::start().
        assert!(unsafe { work.execute_one(routes, atomic, false) });
        until(&mut ranks, "the atomic has not ended", |_| value(&ended) != 3);
        assert_eq!((value(&ended), theirs[1]), (4 | WORD_FAILED, 9 << 32), "{natures:?}");
    }
}

/// The thread that posts a write with signal finds out with its first look-ups who does the write,
/// and that is what an attempt finds: the holder of the role then attempts nothing.
#[test]
fn who_does_a_write_with_signal_is_known_before_an_attempt() {
    use Outcome::{NeedsOwner, NeedsPost};
    for (nature, nothing, others) in [
        ("7", NeedsPost, NeedsPost),
        ("1", NeedsOwner, NeedsPost),
        ("1:remote=0", NeedsOwner, NeedsOwner),
    ] {
        simulate_two([nature, nature]);
        let (_world, mut ranks) = two_ranks(8);
        simulate(None);
        let (mut theirs, mut ours, ended) = (vec![0u64; 1025], vec![0u64; 1024], AtomicU64::new(0));
        let key = ranks[1].register(&mut theirs);
        until(&mut ranks, "the key is not known", |ranks| {
            let routes = &ranks[0].routes;
            routes.locate(routes.port(1).unwrap(), Address { offset: 0, key }, 8).is_ok()
        });
        for size in [0, 1, 1024] {
            let mut write = transfer(Op::WRITE_SIGNAL, key, &mut ours[..size], &ended);
            write.signal = Address { offset: 8 * 1024, key };
            (write.code, write.operand) = (op::ADD, 1);
            let routes = &ranks[0].routes;
            let known = by_caller::outcome_if_owner_signals(routes, &write).unwrap();
            // SAFETY: the words outlive the attempt.
            let attempted =
                unsafe { by_caller::attempt(routes, &write, Local::Pointer(write.local)) }.unwrap();
            // A network whose writes bring no signals would do nothing.
            let expected = if size == 0 { nothing } else { others };
            assert_eq!((known, attempted), (Some(expected), expected), "{nature}, {size} words");
        }
    }
}

/// Ends and arrivals of control messages.
#[derive(Default)]
struct Seen {
    came: Mutex<Vec<(u32, Words, usize)>>,
    ended: Mutex<Vec<(u32, Status)>>,
}

impl ControlReceiver for Seen {
    fn received(&self, source: u32, words: Words, bytes: &[u8]) {
        self.came.lock().unwrap().push((source, words, bytes.len()));
    }
}

impl Ended for Seen {
    fn ended(&self, peer: u32, _: usize, status: Status) {
        self.ended.lock().unwrap().push((peer, status));
    }
}

/// A control message behind a write of 64 KiB is one post, like a signal, if the network's writes
/// bring signals. Else it is a request behind the write. Its bytes are there before it comes.
#[test]
fn a_control_message_travels_with_the_bytes_of_its_write() {
    for (nature, at_once) in [("7", true), ("1", false), ("1:remote=0", false)] {
        simulate_two([nature, nature]);
        let (_world, mut ranks) = two_ranks(8);
        simulate(None);
        let (mut theirs, mut ours) = (vec![0u64; 8192], vec![0u64; 8192]);
        let to = Address { offset: 0, key: ranks[1].register(&mut theirs) };
        until(&mut ranks, "the key is not known", |ranks| {
            let routes = &ranks[0].routes;
            let found = routes.locate(routes.port(1).unwrap(), to, 8);
            matches!(found, Ok(Access::Posted(_) | Access::Message(_)))
        });
        let seen = Arc::new(Seen::default());
        ranks[1].routes.control_messages().register(77, seen.clone());
        let mut served = 0;
        for (round, copied) in [(1_u64, false), (2, true)] {
            ours.fill(round);
            let words = [0, round, u64::MAX - round];
            let message = ControlMessage { peer: 1, name: 77, words, keep: false, bytes: &[] };
            let write = Write { to, from: ours.as_mut_ptr().cast(), size: 65536, copied };
            let ends = seen.clone() as Arc<dyn Ended>;
            // SAFETY: the bytes outlive the write.
            let command = unsafe { control_messages::write(&message, write, &ends) }.unwrap();
            if copied {
                ours.fill(0);
            }
            let posts = ranks[0].routes.fabric().posts();
            let Rank { work, routes, .. } = &mut ranks[0];
            // SAFETY: as in Rank::start().
            assert!(unsafe { work.execute_one(routes, command, false) });
            let limit = Instant::now() + Duration::from_secs(10);
            while seen.ended.lock().unwrap().len() < round as usize {
                ranks[0].round();
                served += ranks[1].round();
                assert!(Instant::now() < limit, "{nature}, write {round}");
            }
            assert_eq!(theirs, vec![round; 8192], "{nature}");
            assert_eq!(seen.came.lock().unwrap().last(), Some(&(0, words, 0)), "{nature}");
            assert_eq!(seen.ended.lock().unwrap().last(), Some(&(1, Status::OK)), "{nature}");
            let posts = ranks[0].routes.fabric().posts() - posts;
            assert_eq!(posts, usize::from(nature != "1:remote=0"), "{nature}");
        }
        assert_eq!(served == 0, at_once, "{nature}: {served} requests");
    }
}

/// The owner refuses a signal whose region was freed, also where the network has brought it.
#[test]
fn a_refused_signal_is_the_status_of_its_write() {
    simulate(Some(7));
    let (_world, mut ranks) = two_ranks(8);
    simulate(None);
    let (mut theirs, mut ours, ended) = (vec![0u64; 8], [6u64; 4], AtomicU64::new(0));
    let key = ranks[1].register(&mut theirs);
    let address = Address { offset: 0, key };
    until(&mut ranks, "the key is not known", |ranks| {
        let routes = &ranks[0].routes;
        matches!(routes.locate(routes.port(1).unwrap(), address, 8), Ok(Access::Posted(_)))
    });
    let mut write = transfer(Op::WRITE_SIGNAL, key, &mut ours, &ended);
    write.signal = Address { offset: 0, key: Key::new(3, 1, 9).0 };
    (write.code, write.operand) = (op::STORE, 1);
    let most = ranks[0].routes.fabric().remote_most();
    ranks[0].start(write, InFlight::first_posted(write.size, most));
    until(&mut ranks, "the write has not ended", |_| value(&ended) != 0);
    assert_eq!(value(&ended), 1 | WORD_FAILED);
    assert_eq!(theirs[..4], [6; 4]);
}

/// The in-flight table has one slot, in use by a write with signal to a rank that has died. The
/// network's completion ends the write, though the owner's answer is missing, and makes room for a
/// question for another rank's key.
#[test]
fn a_write_to_the_dead_that_ends_leaves_room_for_a_question() {
    for _ in 0..20 {
        simulate(Some(7));
        let (_world, mut ranks) = some_ranks::<3>(1);
        simulate(None);
        let (mut theirs, mut others) = (vec![0u64; 8], vec![0u64; 8]);
        let (mut ours, ended) = ([6u64; 4], AtomicU64::new(0));
        let keys = [ranks[1].register(&mut theirs), ranks[2].register(&mut others)];
        let knows = |ranks: &[Rank], peer: u32| {
            let address = Address { offset: 0, key: keys[peer as usize - 1] };
            let routes = &ranks[0].routes;
            routes.locate(routes.port(peer).unwrap(), address, 8).is_ok()
        };
        until(&mut ranks, "the key of rank 1 is not known", |ranks| knows(ranks, 1));
        let mut write = transfer(Op::WRITE_SIGNAL, keys[0], &mut ours, &ended);
        write.signal = Address { offset: 0, key: keys[0] };
        (write.code, write.operand) = (op::STORE, 1);
        let most = ranks[0].routes.fabric().remote_most();
        ranks[0].start(write, InFlight::first_posted(write.size, most));
        while ranks[0].work.unsent > 0 {
            let Rank { work, routes, .. } = &mut ranks[0];
            work.post_gathered(routes);
        }
        ranks[0].routes.mark_dead(1);
        assert!(!knows(&ranks, 2), "this asks");
        let Rank { work, routes, .. } = &mut ranks[0];
        work.take_questions(routes);
        assert_eq!(work.questions.len(), 1, "the table is full");
        until(&mut ranks, "the question was never sent", |ranks| knows(ranks, 2));
        assert_ne!(value(&ended), 0);
    }
}
