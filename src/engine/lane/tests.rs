//! Posts over a simulated wire.

use super::{Execution, Lane};
use crate::bootstrap::{Bootstrap, World};
use crate::engine::atomic::{kind, op};
use crate::engine::by_caller::Local;
use crate::engine::command::{Command, Op};
use crate::engine::completion::{ADD, CALL, Completion};
use crate::engine::messages::sender::AmSender;
use crate::engine::routes::Routes;
use crate::transport::Access;
use crate::transport::address::{Address, Key};
use crate::transport::fabric::simulate;
use crate::transport::memory::segment::{Place, Segment};
use crate::util::config::Config;
use crate::util::status::Status;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Operations that may be under way.
const IN_FLIGHT: usize = 64;
const LIMIT: Duration = Duration::from_secs(20);

/// Two ranks in this process. Rank 0 posts in a mode, to a region of rank 1.
struct Pair {
    lanes: [Arc<Lane>; 2],
    key: u64,
    _segments: [Arc<Segment>; 2],
    _world: World,
}

impl Pair {
    /// `theirs` stays where it is as long as the pair. None: the simulated wire of this number only
    /// sends messages.
    fn new(seed: u64, execution: Execution, theirs: &mut [u64]) -> Option<Pair> {
        let world = World::create(2).unwrap();
        simulate(Some(seed));
        let ranks = [0, 1].map(|rank| {
            let config = Config::from_environment().unwrap();
            let bootstrap = Arc::new(Bootstrap::from_world(&world, rank).unwrap());
            let segment = Arc::new(Segment::create(&config, 1).unwrap());
            let routes = Routes::new(segment.clone(), bootstrap, false).unwrap();
            let post = Arc::new(AmSender::new(routes.clone(), Arc::default(), 64, 1));
            (Arc::new(Lane::new(routes, post, execution, 16, IN_FLIGHT).unwrap()), segment)
        });
        simulate(None);
        let [(near, segment), (far, theirs_segment)] = ranks;
        let (base, size) = (theirs.as_mut_ptr().cast::<u8>(), size_of_val(theirs) as u64);
        let key = Key::new(0, 1, 1);
        theirs_segment.publish(0, key.0, Place::Own(base as u64), size);
        let live = theirs_segment.live(0);
        // SAFETY: the memory stays as long as the pair, and the segment has `live`.
        unsafe { far.routes.own().learn(key, live, || Ok((None, base, size))).unwrap() };
        far.routes.fabric().register(key.0, base, size as usize).unwrap();
        let (lanes, _segments) = ([near, far], [segment, theirs_segment]);
        let pair = Pair { lanes, key: key.0, _segments, _world: world };
        let address = Address { offset: 0, key: key.0 };
        let routes = pair.lanes[0].routes();
        let mut access = None;
        pair.until("the key is not known", || {
            let port = routes.port(1).ok();
            access = port.and_then(|port| routes.locate(port, address, 8).ok());
            access.is_some()
        });
        matches!(access, Some(Access::Posted(_))).then_some(pair)
    }

    fn near(&self) -> &Lane {
        &self.lanes[0]
    }

    /// Lets both progress threads work until `done`.
    fn until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let limit = Instant::now() + LIMIT;
        while !done() {
            for lane in &self.lanes {
                let _ = lane.turn();
            }
            assert!(Instant::now() < limit, "{what}");
        }
    }

    /// A read or a write of the words at `local`.
    fn command(&self, op: Op, local: &mut [u64], ended: &AtomicU64) -> (Command, Local) {
        let mut command = Command::new(op, 1);
        (command.remote, command.size) =
            (Address { offset: 0, key: self.key }, size_of_val(local) as u64);
        command.on_complete = Completion { kind: ADD, ..Completion::store_on(ended) };
        (command, Local::Pointer(local.as_mut_ptr().cast()))
    }
}

/// A post that a callback tries, and its result.
struct Tried<'a> {
    pair: &'a Pair,
    post: (Command, Local),
    posted: AtomicBool,
}

unsafe extern "C-unwind" fn post_inside(tried: *mut c_void, _: Status) {
    // SAFETY: the test's.
    let tried = unsafe { &*tried.cast::<Tried<'_>>() };
    // SAFETY: the test keeps what the command names until it has ended.
    let posted = unsafe { tried.pair.near().post_to_wire(&tried.post.0, tried.post.1) };
    tried.posted.store(posted, Ordering::Relaxed);
}

/// Only mode direct posts inside a callback, whose thread may have the role, and mode offload posts
/// nothing. A command that was not posted has no effect.
#[test]
fn the_mode_and_a_callback_decide_whether_a_requester_posts() {
    for (execution, outside, inside) in [
        (Execution::Auto, true, false),
        (Execution::Direct, true, true),
        (Execution::Offload, false, false),
    ] {
        let (mut theirs, mut ours) = ([5u64], [0u64; 2]);
        let ended = AtomicU64::new(0);
        let pair = Pair::new(7, execution, &mut theirs).expect("a wire that reads");
        let (first, second) = ours.split_at_mut(1);
        let (read, local) = pair.command(Op::READ, first, &ended);
        // SAFETY: what the command names lives until it has ended.
        assert_eq!(unsafe { pair.near().post_to_wire(&read, local) }, outside, "{execution:?}");
        let post = pair.command(Op::READ, second, &ended);
        let tried = Tried { pair: &pair, post, posted: AtomicBool::new(!inside) };
        let data = (&raw const tried).cast_mut().cast();
        let call = Completion {
            kind: CALL,
            reserved: 0,
            call: post_inside as *const c_void,
            target: data,
        };
        // SAFETY: a function and its argument, which outlives the call.
        unsafe { call.fire(Status::OK, pair.near().routes().waiters()) };
        assert_eq!(tried.posted.load(Ordering::Relaxed), inside, "{execution:?}");
        let posted = [outside, inside];
        let count = posted.iter().filter(|posted| **posted).count() as u64;
        pair.until("a read has not ended", || ended.load(Ordering::Acquire) == count);
        assert_eq!(pair.near().is_idle(), Some(true));
        assert_eq!(ours, posted.map(|posted| if posted { 5 } else { 0 }), "{execution:?}");
    }
}

/// A requester posts an atomic as it does a read, if the wire has atomics (that of seed 6 has). A
/// word that is not aligned takes the long path, which reports the error.
#[test]
fn a_requester_posts_an_atomic() {
    for (seed, has) in [(6, true), (7, false)] {
        let (mut theirs, mut old, ended) = ([5u64], [0u64], AtomicU64::new(0));
        let pair = Pair::new(seed, Execution::Auto, &mut theirs).expect("a wire that reads");
        let (mut atomic, local) = pair.command(Op::ATOMIC, &mut old, &ended);
        (atomic.size, atomic.code, atomic.kind, atomic.operand) = (0, op::ADD, kind::U32, 3);
        for (offset, aligned) in [(2, false), (8, false), (0, true)] {
            atomic.remote.offset = offset;
            // SAFETY: what the command names lives until it has ended.
            let posted = unsafe { pair.near().post_to_wire(&atomic, local) };
            assert_eq!(posted, has && aligned, "seed {seed}, offset {offset}");
        }
        pair.until("the atomic has not ended", || ended.load(Ordering::Acquire) == u64::from(has));
        assert_eq!((old[0], theirs[0]), if has { (5, 8) } else { (0, 5) });
    }
}

/// A requester posts a write with signal as it does a write, if the wire's writes bring signals
/// (those of seeds 7 and 10 do), whether it has no bytes, or one transfer brings all of them, or,
/// with seed 10, three. If the word is not aligned, or lies in a region that this rank does not
/// know, the write takes the long path.
#[test]
fn a_requester_posts_a_write_with_signal() {
    const WORDS: usize = 3 << 13;
    for (seed, has) in [(7, true), (10, true), (1, false)] {
        let (mut theirs, mut ours) = (vec![0u64; WORDS + 1], vec![7u64; WORDS]);
        let ended = AtomicU64::new(0);
        let pair = Pair::new(seed, Execution::Auto, &mut theirs).expect("a wire that writes");
        let most = pair.near().routes().fabric().remote_most();
        assert_eq!(most == 8 * WORDS as u64 / 3, seed == 10, "{most} bytes in one transfer");
        let mut sum = 0;
        for (words, key, offset, known) in [
            (1, pair.key, 4, false),
            (1, pair.key + (1 << 40), 0, false),
            (0, pair.key, 0, true),
            (1, pair.key, 0, true),
            (WORDS, pair.key, 0, true),
        ] {
            let (mut write, local) = pair.command(Op::WRITE_SIGNAL, &mut ours[..words], &ended);
            write.signal = Address { offset: 8 * WORDS as u64 + offset, key };
            (write.code, write.operand) = (op::ADD, 3);
            // SAFETY: what the command names lives until it has ended.
            let posted = unsafe { pair.near().post_to_wire(&write, local) };
            assert_eq!(posted, has && known, "seed {seed}, {words} words, key {key:#x}, {offset}");
            sum += if posted { 3 } else { 0 };
            pair.until("the write has not ended", || ended.load(Ordering::Acquire) == sum / 3);
            // SAFETY: `theirs` is not changed any more.
            let word = unsafe { (&raw const theirs[WORDS]).read_volatile() };
            assert_eq!((word, theirs[0]), (sum, if sum > 3 { 7 } else { 0 }), "seed {seed}");
        }
        assert_eq!(theirs[WORDS - 1], if has { 7 } else { 0 });
        assert_eq!(pair.near().is_idle(), Some(true));
    }
}

/// The progress thread sleeps, and the sources are armed. A requester whose post the network has
/// refused, as the simulated one does with one in sixteen, must see to it that the thread is woken
/// when there is room.
#[test]
fn a_refused_post_wakes_the_progress_thread() {
    const WORDS: usize = 2000;
    let (mut most, mut pairs, stop) = (0, 0, AtomicBool::new(false));
    for seed in 1..8 {
        let (mut theirs, ended) = ([0u64], AtomicU64::new(0));
        let Some(pair) = Pair::new(seed, Execution::Auto, &mut theirs) else { continue };
        pairs += 1;
        stop.store(false, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for lane in &pair.lanes {
                scope.spawn(|| sleep_and_work(lane, &stop));
            }
            let (mut posted, limit) = (0, Instant::now() + LIMIT);
            while ended.load(Ordering::Acquire) < WORDS as u64 && Instant::now() < limit {
                if posted < WORDS {
                    let mut word = [7];
                    let (write, local) = pair.command(Op::WRITE, &mut word, &ended);
                    // SAFETY: a write from a pointer copies its bytes at once.
                    posted += usize::from(unsafe { pair.near().post_to_wire(&write, local) });
                    most = most.max(posted as u64 - ended.load(Ordering::Acquire));
                } else {
                    std::thread::yield_now();
                }
            }
            stop.store(true, Ordering::Release);
            pair.lanes.iter().for_each(|lane| lane.routes().bell().ring());
            assert_eq!(ended.load(Ordering::Acquire), WORDS as u64, "seed {seed}: {posted} posted");
        });
        assert_eq!((theirs[0], pair.near().is_idle()), (7, Some(true)));
    }
    assert!(pairs > 0, "no simulated wire reads and writes");
    println!("at most {most} under way");
}

/// A progress thread that falls asleep at once, and only a ring wakes it.
fn sleep_and_work(lane: &Lane, stop: &AtomicBool) {
    // Acquire: pairs with the Release of the test.
    while !stop.load(Ordering::Acquire) {
        let ticket = lane.routes().bell().ticket();
        let _ = lane.turn();
        if lane.park() && !stop.load(Ordering::Acquire) {
            lane.routes().bell().wait(ticket, None);
        }
        lane.unpark();
    }
}
