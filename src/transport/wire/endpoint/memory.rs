//! A test: the memory that an endpoint allocates does not grow with the number of ranks.

use super::*;
use crate::transport::wire::simulated::{Nature, Simulated};
use crate::transport::wire::tickets::BYTES;
use crate::transport::wire::{Caps, Command, Key};
use crate::util::counted::{bytes_of, counted, most_of};
use std::cell::{Cell, RefCell};

/// Accounts of allocated bytes: the endpoint of rank 0, those of all others, the network.
const RANK_0: usize = 1;
const OTHERS: usize = 2;
const WIRE: usize = 3;

/// A lane whose allocations go to the account of the network.
struct Apart(Box<dyn WireLane>);

impl WireLane for Apart {
    fn connect(&mut self, peer: u32, card: &[u8]) -> Result<()> {
        counted(WIRE, || self.0.connect(peer, card))
    }

    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status) {
        // SAFETY: the caller keeps the contract of post().
        counted(WIRE, || unsafe { self.0.post(peer, class, commands) })
    }

    fn poll(&mut self, events: &mut [Event]) -> usize {
        counted(WIRE, || self.0.poll(events))
    }

    fn give_back(&mut self, frame: u64) {
        counted(WIRE, || self.0.give_back(frame));
    }

    fn answer(&mut self, notice: u64, status: Status, value: u64) {
        counted(WIRE, || self.0.answer(notice, status, value));
    }

    fn arm(&mut self) -> Armed {
        counted(WIRE, || self.0.arm())
    }

    fn disarm(&mut self) {
        self.0.disarm();
    }

    fn fence(&mut self, peer: u32) {
        counted(WIRE, || self.0.fence(peer));
    }

    fn close(&mut self, drain: Duration) -> Result<()> {
        self.0.close(drain)
    }
}

struct Counted(Simulated);

impl Wire for Counted {
    fn caps(&self) -> Caps {
        self.0.caps()
    }

    fn card(&self) -> Result<Vec<u8>> {
        self.0.card()
    }

    fn register(&self, address: *mut u8, size: u64) -> Result<Key> {
        counted(WIRE, || self.0.register(address, size))
    }

    fn deregister(&self, key: &Key, patience: Duration) -> Result<()> {
        self.0.deregister(key, patience)
    }

    fn lane(&self) -> Result<Box<dyn WireLane>> {
        Ok(Box::new(Apart(counted(WIRE, || self.0.lane())?)))
    }
}

/// Raises the limit of open descriptors, since each endpoint opens one.
fn permit_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls use a struct of this function.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max.min(4096).max(limit.rlim_cur);
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
}

fn part_of(rank: usize) -> usize {
    if rank == 0 { RANK_0 } else { OTHERS }
}

/// Endpoints without polling threads, each connected with the first.
fn star(count: u32, nature: Nature) -> (Vec<Endpoint>, Vec<Arc<Counted>>) {
    let wires: Vec<Arc<Counted>> = counted(WIRE, || {
        (0..count).map(|me| Arc::new(Counted(Simulated::new(me, nature).unwrap()))).collect()
    });
    let end = |me: usize| {
        let rank = (me as u32, count);
        counted(part_of(me), || {
            Endpoint::without_thread(rank, wires[me].clone(), 4096, no_slot(), no_news()).unwrap()
        })
    };
    let ends: Vec<Endpoint> = (0..wires.len()).map(end).collect();
    for (other, me) in ends[1..].iter().zip(1..) {
        other.connect(0, ends[0].card()).unwrap();
        ends[0].connect(me, other.card()).unwrap();
    }
    (ends, wires)
}

/// The messages between the first rank and each other: class and size.
const MESSAGES: [(Class, usize); 5] = [
    (Class::Requests, 8),
    (Class::Requests, 1000),
    (Class::Lib, 8),
    (Class::Responses, 200),
    (Class::Requests, 8),
];

fn put(from: &Endpoint, to: u32, index: usize) -> bool {
    let (class, size) = MESSAGES[index];
    let (header, payload): (&[u8], _) = match class {
        Class::Lib => (&[1; 40], vec![1; size]),
        _ => (&[1; 3], vec![1; size]),
    };
    let (id, tag) = (1, index as u64);
    let frame = Frame { id, kind: 2, tag, header, payload: &payload, label: 0, absent: false };
    from.put(to, class, &frame, 4096)
}

/// The result for one number of ranks.
#[derive(Debug)]
struct Measured {
    /// Most bytes that the first rank had allocated at any time, and bytes at the end.
    most: usize,
    left: usize,
    /// Frames in the network for the first rank after each sender's first messages, and their
    /// bytes.
    queued: (usize, usize),
}

/// Of the `count` ranks, `peers` send to the first (`back`: the first sends to them). The first
/// rank polls for the first time when every rank has sent what it can. Senders then ask for
/// receipts until every message is delivered.
fn measure(count: u32, peers: usize, seed: &str, back: bool) -> Measured {
    let nature = Nature::named(seed).unwrap();
    let (ends, wires) = star(count, nature);
    let (mut queued, mut next) = ((0, 0), vec![0; peers + 1]);
    let (came, turn) = (RefCell::new(vec![[0; MESSAGES.len()]; peers + 1]), Cell::new(false));
    let limit = Instant::now() + Duration::from_secs(60);
    let round = |me: usize, end: &Endpoint| {
        let deliver = |from: u32, _: Class, frame: &Frame| {
            // Every second attempt finds no slot.
            if turn.replace(!turn.get()) {
                return false;
            }
            let other = if back { me } else { from as usize };
            came.borrow_mut()[other][frame.tag as usize] += 1;
            true
        };
        counted(part_of(me), || end.shared.round(end.shared.lock(), &deliver));
    };
    let mut left = true;
    while left {
        assert!(Instant::now() < limit, "seed {seed}, {count} ranks: not all has come");
        for (other, next) in (1..).zip(&mut next[1..]) {
            let (from, to) = if back { (0, other) } else { (other, 0) };
            let put = |index: usize| put(&ends[from as usize], to, index);
            while *next < MESSAGES.len() && counted(part_of(from as usize), || put(*next)) {
                *next += 1;
            }
        }
        if queued.0 == 0 {
            queued = wires[0].0.coming();
        }
        left = next[1..].iter().any(|next| *next < MESSAGES.len());
        for (me, end) in ends.iter().enumerate() {
            round(me, end);
            left |= (me == 0) == back && !counted(part_of(me), || end.has_delivered_all());
        }
    }
    // Records of peers whose last answers are under way are freed when these have come.
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(1));
        ends.iter().enumerate().for_each(|(me, end)| round(me, end));
    }
    assert!(came.borrow()[1..].iter().all(|came| *came == [1; MESSAGES.len()]), "all came once");
    Measured { most: most_of(RANK_0), left: bytes_of(RANK_0), queued }
}

/// Settings of the network, and whether the first rank sends.
const ALL: [(&str, bool); 5] =
    [("2:fd=0", false), ("3:fd=0", true), (TICKETS, true), (SHARED, false), (SHARED, true)];
const TICKETS: &str = "2:fd=0:remote=1:atomics=1:notices=1:message=0";
const SHARED: &str = "2:fd=0:shared=1";

const CHANCE: usize = 4096;

/// Measures, and prints the result.
fn print(count: u32, peers: usize, seed: &str, back: bool) -> Measured {
    most_of(RANK_0);
    let measured = measure(count, peers, seed, back);
    let what = if back { "sends to" } else { "is sent to by" };
    let Measured { most, left, queued: (frames, bytes) } = measured;
    println!(
        "seed {seed}, {count:4} ranks, one {what} {peers:3} others: {most:7} bytes at most, {left:5} \
         at the end; the network queues {frames:4} frames, {bytes:7} bytes"
    );
    assert_eq!(bytes_of(RANK_0), 0, "all is freed");
    most_of(RANK_0);
    measured
}

/// A rank in a world of 1,000 allocates what it allocates in a world of 2, and one bit for each
/// further rank, if it has messages with as many peers. Up to `CHANCE` bytes more are of frames
/// that wait in one run and not in another.
fn is_constant(seed: &str, back: bool) {
    let [two, some, many] = [2, 250, 1000].map(|count| print(count, 1, seed, back));
    for (more, count) in [(some, 250), (many, 1000)] {
        let most = two.most + count / 8 + CHANCE;
        assert!(more.most <= most, "{count} ranks: {more:?} beside {two:?}");
    }
}

/// A rank to which 1,000 ranks send at the same time allocates at most 25 % more than one to which
/// 250 send, and frames that wait in one run and not in another; so does a rank that sends to all.
/// After delivery it keeps one bit for each rank, and a bounded number of buffers. Knocks beyond
/// the receives stay in the network; the test prints how many.
fn is_bounded(seed: &str, back: bool) {
    let [many, most] = [250, 1000].map(|count| print(count, count as usize - 1, seed, back));
    assert!(most.most < many.most * 5 / 4 + 4 * CHANCE, "{most:?} beside {many:?}");
    // Kept buffers; the slots, and the records of those that offer theirs.
    let kept = (64 << 10) + if seed == TICKETS { BYTES + (64 << 10) } else { 0 };
    assert!(most.most < 1 << 20 && most.left < kept, "{most:?}");
}

#[test]
fn memory_is_the_same_for_1000_ranks() {
    permit_descriptors();
    for (seed, back) in ALL {
        is_constant(seed, back);
        is_bounded(seed, back);
    }
}
