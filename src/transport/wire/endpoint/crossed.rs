//! Each fault of a network, crossed with its abilities: access to memory, atomics, inline writes, a
//! descriptor to sleep on, each with and without. In each cell the fault happens, and what the
//! endpoint promises holds.

use super::tests::{Around, BoxedLane};
use super::uses::{MANY, Ranks};
use super::*;
use crate::transport::remote::{Posting, What};
use crate::transport::wire::simulated::Nature;
use crate::transport::wire::{Caps, Command};

/// The test of a fault, for the network of this name.
type Check = fn(&str);

/// The faults, each with its test.
const FAULTS: [(&str, Check); 7] = [
    ("delay", |name| carries(name, |seen| &seen.late)),
    ("order lost inside a pair", |name| carries(name, |seen| &seen.overtaken)),
    ("posts taken in part", |name| carries(name, |seen| &seen.part)),
    ("full anywhere", |name| {
        carries(name, |seen| &seen.none);
        is_full(name);
    }),
    ("late writes of the dead", late_writes_of_the_dead),
    ("death between fetch-and-add and write", |name| dies_with_credit(name, true)),
    ("no fence", |name| dies_with_credit(name, false)),
];

#[test]
fn each_fault_meets_each_ability() {
    for name in Nature::combinations() {
        for (fault, check) in FAULTS {
            eprintln!("{fault}, over {name}:");
            check(&name);
        }
    }
    assert_eq!(Nature::combinations().count(), 2 + 8, "without access to memory, and with it");
}

/// What the lanes of all ranks have seen.
#[derive(Debug, Default)]
struct Seen {
    late: AtomicBool,
    overtaken: AtomicBool,
    part: AtomicBool,
    none: AtomicBool,
    /// The answer to a fence.
    fenced: AtomicBool,
    /// That the second rank is fenced.
    gone: AtomicBool,
    /// The frames that are under way: sender, receiver, bytes.
    frames: Mutex<Vec<(u32, u32, Vec<u8>)>>,
}

/// The lane of a rank that notes what it sees.
struct Watch(u32, BoxedLane, Arc<Seen>);

impl Around for Watch {
    fn inner(&mut self) -> &mut dyn WireLane {
        &mut *self.1
    }

    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status) {
        // SAFETY: passed on to the caller.
        let (count, why) = unsafe { self.1.post(peer, class, commands) };
        let Watch(me, _, seen) = self;
        seen.part.fetch_or(count > 0 && count < commands.len(), Ordering::Relaxed);
        seen.none.fetch_or(count == 0, Ordering::Relaxed);
        let frames = commands[..count].iter().filter(|command| command.op == Command::FRAME);
        let bytes = |command: &Command| {
            // SAFETY: the caller has passed one valid piece.
            let piece = unsafe { &*command.piece };
            // SAFETY: its bytes are valid until the end of the command.
            unsafe { std::slice::from_raw_parts(piece.address, piece.size as usize) }.to_vec()
        };
        seen.frames.lock().unwrap().extend(frames.map(|it| (*me, peer, bytes(it))));
        (count, why)
    }

    fn poll(&mut self, events: &mut [Event]) -> usize {
        let count = self.1.poll(events);
        let Watch(me, _, seen) = self;
        let mut frames = seen.frames.lock().unwrap();
        let waits = frames.iter().any(|(_, to, _)| to == me);
        seen.late.fetch_or(count == 0 && waits, Ordering::Relaxed);
        for event in &events[..count] {
            let answers = [Event::FENCED, Event::UNFENCEABLE].contains(&event.event);
            seen.fenced.fetch_or(answers, Ordering::Relaxed);
            let of_the_gone = event.peer == 1 && seen.gone.load(Ordering::Relaxed);
            assert!(event.event != Event::FRAME || !of_the_gone, "a frame after the fence");
            seen.gone.fetch_or(event.event == Event::FENCED, Ordering::Relaxed);
            if event.event != Event::FRAME || event.size == 0 {
                continue;
            }
            // SAFETY: the lane keeps the bytes valid until give_back().
            let bytes = unsafe { std::slice::from_raw_parts(event.bytes, event.size as usize) };
            let pair = |(from, to, _): &(u32, u32, Vec<u8>)| (*from, *to) == (event.peer, *me);
            let at = frames.iter().position(|it| pair(it) && it.2 == bytes).unwrap();
            seen.overtaken.fetch_or(frames[..at].iter().any(pair), Ordering::Relaxed);
            frames.remove(at);
        }
        count
    }
}

/// Ranks of this network; words of the first and of the second, which are registered.
struct Cell {
    ranks: Ranks,
    seen: Arc<Seen>,
    caps: Caps,
    theirs: [Vec<u64>; 2],
    ours: Vec<u64>,
}

const WORDS: usize = 32;
/// Their keys at their ranks.
const THEIRS: [u64; 2] = [5, 6];
const OURS: u64 = 7;

impl Cell {
    fn new(name: &str) -> Cell {
        let (seen, caps) = (Arc::<Seen>::default(), Nature::named(name).unwrap().caps);
        let watched = seen.clone();
        let ranks =
            Ranks::watched(3, name, move |me, lane| Box::new(Watch(me, lane, watched.clone())));
        let (theirs, ours) = ([vec![0; WORDS], vec![0; WORDS]], vec![7; WORDS]);
        let register = |rank: usize, key, words: &Vec<u64>| {
            let memory = ranks.ends[rank].as_ref().unwrap().memory();
            memory.register(key, words.as_ptr().cast_mut().cast(), 8 * WORDS).unwrap();
        };
        THEIRS.iter().zip(&theirs).for_each(|(key, words)| register(0, *key, words));
        register(1, OURS, &ours);
        Cell { ranks, seen, caps, theirs, ours }
    }

    /// The words of one of the first rank's regions, which the network writes.
    fn words(&self, region: usize) -> Vec<u64> {
        let word = |at| {
            // SAFETY: within the array; the network writes when a lane is polled, on this thread.
            unsafe { self.theirs[region].as_ptr().add(at).read_volatile() }
        };
        (0..WORDS).map(word).collect()
    }

    /// An operation of the second rank on the first one's words from `at` on.
    fn posting(&self, region: usize, what: What, at: usize, count: usize) -> Posting {
        let memory = self.ranks.ends[0].as_ref().unwrap().memory();
        let (base, key) = memory.wire_key(THEIRS[region]).unwrap();
        // SAFETY: within the array.
        let local = unsafe { self.ours.as_ptr().add(at) }.cast_mut().cast();
        let (size, remote) = (8 * count as u64, base + 8 * at as u64);
        Posting { tag: at as u64, what, local, size, remote, key }
    }

    /// Posts what the lane takes; how many.
    fn post(&self, wanted: &[Posting]) -> usize {
        // SAFETY: the words live as long as the ranks.
        unsafe { self.ranks.ends[1].as_ref().unwrap().post(0, wanted) }.0
    }

    /// Executes operations; their ends, by tag.
    fn execute(&mut self, wanted: &[Posting]) -> Vec<End> {
        let (mut posted, mut ends) = (0, Vec::new());
        let limit = Instant::now() + Duration::from_secs(20);
        while ends.len() < wanted.len() {
            assert!(Instant::now() < limit, "{} of {} have ended", ends.len(), wanted.len());
            posted += self.post(&wanted[posted..]);
            self.ranks.round(&[0, 1]);
            let mut more = Vec::new();
            self.ranks.ends[1].as_ref().unwrap().shared.ended.take(&mut more);
            ends.append(&mut more);
        }
        ends.sort_by_key(|end| end.tag);
        assert!(ends.iter().map(|end| end.tag).eq(wanted.iter().map(|it| it.tag)), "each once");
        assert!(ends.iter().all(|end| end.status == Status::OK), "{ends:?}");
        ends
    }

    /// Writes, reads back, and adds where the network can.
    fn access(&mut self, turn: u64) {
        // Small ones are inline where that can be; the last one is not.
        let spans = (0..8).map(|at| (at, 1)).chain([(8, WORDS - 8)]);
        let all = |cell: &Cell, what| -> Vec<Posting> {
            spans.clone().map(|(at, count)| cell.posting(0, what, at, count)).collect()
        };
        let values: Vec<u64> = (0..WORDS as u64).map(|at| turn << 32 | at).collect();
        self.ours.copy_from_slice(&values);
        self.execute(&all(self, What::Write));
        assert_eq!(self.words(0), values);
        self.ours.fill(0);
        self.execute(&all(self, What::Read));
        assert_eq!(self.ours, values);
        if self.caps.atomics == 0 {
            return;
        }
        let before = self.words(1)[0];
        let add = What::Atomic { op: 5, kind: 4, operand: 1, compare: 0 };
        let word = self.posting(1, add, 0, 1);
        let adds: Vec<Posting> = (0..20).map(|tag| Posting { tag, ..word }).collect();
        let mut fetched: Vec<u64> = self.execute(&adds).iter().map(|end| end.fetched).collect();
        fetched.sort_unstable();
        assert!(fetched.into_iter().eq(before..before + 20), "each add has found another value");
    }

    fn first(&self) -> &Endpoint {
        self.ranks.ends[0].as_ref().unwrap()
    }

    /// The second rank dies, and the first hears of it.
    fn dies(&mut self) {
        self.ranks.ends[1] = None;
        self.first().mark_dead(1);
    }

    fn until_fenced(&mut self) {
        let seen = self.seen.clone();
        self.ranks.until("no answer to the fence", |it| {
            it.round(&[0]);
            seen.fenced.load(Ordering::Relaxed)
        });
    }
}

/// Frames of all lines come once, and operations do what they promise, until the fault was seen.
fn carries(name: &str, fault: fn(&Seen) -> &AtomicBool) {
    let (mut cell, mut turn) = (Cell::new(name), 0);
    let limit = Instant::now() + Duration::from_secs(20);
    while turn == 0 || !fault(&cell.seen).load(Ordering::Relaxed) {
        assert!(Instant::now() < limit, "{name}: it was not seen");
        turn += 1;
        cell.ranks.stream(1, turn * MANY / 3, &[0, 1]);
        if cell.caps.remote {
            cell.access(turn);
        }
    }
}

/// A rank that takes nothing is sent a bounded number of frames; none of them is lost.
fn is_full(name: &str) {
    const ENDLESS: u64 = 10_000;
    let (mut cell, mut same) = (Cell::new(name), 0);
    while same < 200 {
        let before = cell.ranks.sent[1];
        cell.ranks.put(1, ENDLESS);
        same = if cell.ranks.sent[1] == before { same + 1 } else { 0 };
        for end in cell.ranks.ends.iter().flatten().take(2) {
            end.shared.round(end.shared.lock(), &|_, _, _| false);
        }
        std::thread::sleep(Duration::from_micros(10));
    }
    let sent = cell.ranks.sent[1];
    assert!(sent < ENDLESS && cell.ranks.has_got(1, 0));
    cell.ranks.stream(1, sent, &[0, 1]);
}

/// Frames and writes of a rank come though it has died, up to the fence; none comes after it, and
/// none into memory that was deregistered.
fn late_writes_of_the_dead(name: &str) {
    let mut cell = Cell::new(name);
    if cell.caps.remote {
        for region in 0..2 {
            let all: Vec<Posting> =
                (0..WORDS / 2).map(|at| cell.posting(region, What::Write, at, 1)).collect();
            let mut posted = 0;
            while posted < all.len() {
                posted += cell.post(&all[posted..]);
            }
        }
    }
    cell.ranks.put(1, 30);
    assert!(!cell.seen.frames.lock().unwrap().is_empty(), "frames are under way");
    cell.dies();
    cell.first().memory().deregister(THEIRS[1], Duration::ZERO).unwrap();
    assert_eq!([cell.words(0), cell.words(1)], [vec![0; WORDS], vec![0; WORDS]], "all are late");
    cell.until_fenced();
    let landed = if cell.caps.remote { 7 } else { 0 };
    let words = [vec![landed; WORDS / 2], vec![0; WORDS / 2]].concat();
    // Watch sees that no more frames come. Those that have come may wait for room.
    for _ in 0..200 {
        cell.ranks.round(&[0]);
    }
    assert_eq!([cell.words(0), cell.words(1)], [words, vec![0; WORDS]]);
    assert!(cell.seen.frames.lock().unwrap().is_empty(), "a frame has not come");
    let mut came = cell.ranks.came.take().remove(1);
    came.sort_unstable();
    assert_eq!(came, [0, 1, 2], "the first frame of each class came with a knock");
}

/// A rank dies between fetch-and-add and write, or, where there are no atomics, with grants that it
/// has not used: others send on. Where the dead can be fenced all is used again.
fn dies_with_credit(name: &str, can_fence: bool) {
    let mut cell = Cell::new(&format!("{name}:fence={}", u8::from(can_fence)));
    let by_tickets = cell.caps.atomics != 0;
    if by_tickets {
        cell.ranks.take_tickets(1);
    } else {
        cell.ranks.until("it gets no grants", |it| {
            it.put(1, it.sent[1] + 20);
            it.round(&[1]);
            let grants =
                |it: &Ranks| it.ends[0].as_ref().unwrap().shared.lock().grants.granted_to(1);
            let before = grants(it);
            it.round(&[0]);
            before == 0 && grants(it) > 0
        });
    }
    cell.dies();
    cell.ranks.stream(2, MANY, &[0, 2]);
    cell.until_fenced();
    cell.ranks.stream(2, 2 * MANY, &[0, 2]);
    if !can_fence {
        assert!(cell.first().slots_retired() > 0, "what it may still use is used again");
        return;
    }
    cell.ranks.until("it is not used again", |it| {
        let (before, all) = (it.accesses(2), it.sent[2] + 60);
        it.stream(2, all, &[0, 2]);
        let kept = it.ends[0].as_ref().unwrap().slots_retired();
        kept == 0 && (!by_tickets || it.accesses(2) > before + 20)
    });
}
