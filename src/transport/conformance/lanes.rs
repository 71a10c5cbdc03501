//! What a lane of a wire promises by itself, without the polling thread. That thread hides a lane
//! that lets it sleep too long, since it polls again after 50 ms.

use super::far::wires;
use crate::transport::wire::{
    Armed, CLASS_RMA, CLASS_USER, Command, Event, NOTICE_WORDS, Piece, Wire, WireLane,
};
use crate::util::socket::{interest, poll_for};
use crate::util::status::Status;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// How long an event may take.
const LIMIT: Duration = Duration::from_secs(5);
/// The value of the answer to a notice, less its number.
const ANSWER: u64 = 1 << 40;
/// A bit in the number of a notice that is answered by [`Status::ERR_RANGE`].
const REFUSED: u32 = 1 << 7;

/// The lanes of two ranks, connected.
struct Lanes {
    name: String,
    lanes: [Box<dyn WireLane>; 2],
    /// The kinds of the polled events of each that no test has asked for.
    seen: [Vec<u32>; 2],
    wires: [Box<dyn Wire>; 2],
}

impl Lanes {
    /// The lanes of each wire of the suite.
    fn each(mut check: impl FnMut(Lanes)) {
        for (name, make) in wires() {
            let wires = [0, 1].map(|me| make(me, 2).unwrap());
            let mut lanes = [0, 1].map(|me: usize| wires[me].lane().unwrap());
            for me in 0..2 {
                lanes[me].connect(1 - me as u32, &wires[1 - me].card().unwrap()).unwrap();
            }
            let mut all = Lanes { name, lanes, seen: Default::default(), wires };
            (0..2).for_each(|me| all.until(me, Event::CONNECTED));
            check(all);
        }
    }

    /// Posts a frame to the other rank.
    fn post(&mut self, from: usize, bytes: &[u8]) {
        let piece = Piece { address: bytes.as_ptr(), size: bytes.len() as u64, local: 0 };
        let command = Command::frame(7, &piece);
        let limit = Instant::now() + LIMIT;
        // SAFETY: the bytes are of a test, which waits for the frame's end.
        while unsafe { self.lanes[from].post(1 - from as u32, CLASS_USER, &[command]) }
            != (1, Status::OK)
        {
            assert!(Instant::now() < limit, "{}: the lane takes no frame", self.name);
            self.poll(from);
        }
    }

    /// Polls once, and hands over each event.
    fn events(&mut self, rank: usize, take: &mut dyn FnMut(&Event)) {
        let mut events = [Event::NONE; 8];
        let lane = &mut self.lanes[rank];
        let count = lane.poll(&mut events);
        for event in &events[..count] {
            take(event);
            match event.event {
                Event::FRAME => lane.give_back(event.frame),
                Event::NOTICE if event.frame != 0 => {
                    lane.answer(event.frame, status_of(event.tag), event.tag + ANSWER);
                }
                _ => {}
            }
        }
    }

    /// Polls once.
    fn poll(&mut self, rank: usize) {
        let mut kinds = Vec::new();
        self.events(rank, &mut |event| kinds.push(event.event));
        self.seen[rank].append(&mut kinds);
    }

    /// Rank 0 posts these commands. Hands over the events of both ranks, until `count` ends,
    /// frames and notices have come, and for 3 ms more: what comes twice is handed over twice.
    fn exchange(
        &mut self,
        class: u32,
        mut commands: &[Command],
        count: usize,
        take: &mut dyn FnMut(&Event),
    ) {
        let (mut came, mut end) = (0, Instant::now() + LIMIT);
        while Instant::now() < end {
            if !commands.is_empty() {
                // SAFETY: the bytes are of a test, which waits for the ends.
                let (taken, _) = unsafe { self.lanes[0].post(1, class, commands) };
                commands = &commands[taken..];
            }
            let before = came;
            for rank in 0..2 {
                self.events(rank, &mut |event| {
                    let kinds = [Event::DONE, Event::FRAME, Event::NOTICE];
                    came += usize::from(kinds.contains(&event.event));
                    take(event);
                });
            }
            if before < count && came >= count {
                end = Instant::now() + Duration::from_millis(3);
            }
        }
    }

    fn close(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.close(Duration::ZERO).unwrap());
    }

    /// Whether there was one more event of this kind.
    fn saw(&mut self, rank: usize, kind: u32) -> bool {
        let at = self.seen[rank].iter().position(|seen| *seen == kind);
        at.map(|at| self.seen[rank].swap_remove(at)).is_some()
    }

    fn until(&mut self, rank: usize, kind: u32) {
        let limit = Instant::now() + LIMIT;
        while !self.saw(rank, kind) {
            assert!(Instant::now() < limit, "{}: no event {kind}", self.name);
            (0..2).for_each(|rank| self.poll(rank));
        }
    }

    /// Sleeps until the descriptor is readable, for `time` at most. The other rank polls meanwhile:
    /// some networks send a frame only then.
    fn sleep(&mut self, rank: usize, fd: BorrowedFd<'_>, time: Duration) {
        let until = Instant::now() + time.min(LIMIT);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let slice = left.min(Duration::from_millis(1));
            let ready = poll_for(&mut [interest(fd, libc::POLLIN)], slice).unwrap() > 0;
            if ready || left.is_zero() {
                return;
            }
            self.poll(1 - rank);
        }
    }

    /// Sleeps as arm() permits, then polls, until there is an event of this kind. `armed` runs
    /// after the first arm().
    fn sleep_until(&mut self, rank: usize, kind: u32, armed: impl FnOnce(&mut Lanes)) {
        let (limit, mut armed) = (Instant::now() + LIMIT, Some(armed));
        while !self.saw(rank, kind) {
            assert!(Instant::now() < limit, "{}: it slept over event {kind}", self.name);
            let how = self.lanes[rank].arm();
            armed.take().into_iter().for_each(|armed| armed(self));
            match how {
                Armed::PollNow => {}
                Armed::PollAfter(time) => {
                    std::thread::sleep(time.clamp(Duration::from_micros(20), LIMIT));
                }
                Armed::Fd(fd, time) => {
                    // SAFETY: the lane keeps its descriptor open until disarm().
                    self.sleep(rank, unsafe { BorrowedFd::borrow_raw(fd) }, time);
                }
            }
            if how != Armed::PollNow {
                self.lanes[rank].disarm();
            }
            self.poll(1 - rank);
            if Instant::now() < limit {
                self.poll(rank);
            }
        }
    }
}

/// A lane that is armed when something has come, or to which something comes afterwards, does not
/// let its thread sleep over it.
#[test]
fn a_lane_does_not_sleep_over_an_event() {
    let bytes = [7; 100];
    Lanes::each(|mut lanes| {
        for _ in 0..20 {
            lanes.post(0, &bytes);
            lanes.sleep_until(1, Event::FRAME, |_| {});
            lanes.until(0, Event::DONE);
            lanes.sleep_until(1, Event::FRAME, |lanes| lanes.post(0, &bytes));
            lanes.sleep_until(0, Event::DONE, |_| {});
            // The end of a command that is posted while the lane is armed.
            lanes.sleep_until(0, Event::DONE, |lanes| lanes.post(0, &bytes));
            lanes.until(1, Event::FRAME);
        }
        lanes.close();
    });
}

/// The status with which the tests answer a notice.
fn status_of(notice: u64) -> Status {
    if notice & u64::from(REFUSED) == 0 { Status::OK } else { Status::ERR_RANGE }
}

/// Commands of each test below.
const COUNT: usize = 40;

#[test]
fn each_frame_comes_once_and_ends_once() {
    let sent: [Vec<u8>; COUNT] = std::array::from_fn(|number| vec![number as u8; number + 1]);
    let piece = |it: &Vec<u8>| Piece { address: it.as_ptr(), size: it.len() as u64, local: 0 };
    let pieces = sent.each_ref().map(piece);
    let commands: [Command; COUNT] =
        std::array::from_fn(|number| Command::frame(number as u64, &pieces[number]));
    Lanes::each(|mut lanes| {
        let (mut frames, mut ends) = ([0; COUNT], [0; COUNT]);
        lanes.exchange(CLASS_USER, &commands, 2 * COUNT, &mut |event| match event.event {
            Event::DONE => ends[event.tag as usize] += 1,
            Event::FRAME => {
                // SAFETY: the bytes of a frame are valid until give_back().
                let bytes = unsafe { std::slice::from_raw_parts(event.bytes, event.size as usize) };
                assert_eq!(bytes, sent[bytes.len() - 1]);
                frames[bytes.len() - 1] += 1;
            }
            _ => {}
        });
        assert_eq!((frames, ends), ([1; COUNT], [1; COUNT]), "{}: frames, ends", lanes.name);
        lanes.close();
    });
}

/// A word of rank 0 and a word of rank 1 for each command, and the commands that copy them.
struct Words {
    ours: Vec<u64>,
    theirs: Vec<u64>,
    pieces: Vec<Piece>,
    commands: Vec<Command>,
}

impl Words {
    /// The memory is registered until the lanes close.
    fn new(lanes: &Lanes, op: u8) -> Words {
        let numbers = (1..=COUNT as u64).collect();
        let (mut ours, mut theirs) = match op {
            Command::WRITE => (numbers, vec![0; COUNT]),
            _ => (vec![0; COUNT], numbers),
        };
        let size = 8 * COUNT as u64;
        let local = lanes.wires[0].register(ours.as_mut_ptr().cast(), size).unwrap().local;
        let wire = lanes.wires[1].register(theirs.as_mut_ptr().cast(), size).unwrap().wire;
        let address = ours.as_ptr();
        let piece = |at: usize| Piece { address: address.wrapping_add(at).cast(), size: 8, local };
        let mut words = Words { ours, theirs, pieces: Vec::new(), commands: Vec::new() };
        words.pieces.extend((0..COUNT).map(piece));
        words.commands.extend(words.pieces.iter().enumerate().map(|(at, piece)| {
            let mut command = Command::frame(at as u64, piece);
            (command.op, command.wire) = (op, wire);
            command.remote = words.theirs.as_ptr().wrapping_add(at) as u64;
            command
        }));
        words
    }

    /// Whether the command with this number has copied its word.
    fn is_copied(&self, at: u64) -> bool {
        let word = |words: &[u64]| {
            // SAFETY: the word is valid; the wire may write it.
            unsafe { words.as_ptr().wrapping_add(at as usize).read_volatile() }
        };
        word(&self.ours) == at + 1 && word(&self.theirs) == at + 1
    }
}

/// The words of a notice.
fn words_of(event: &Event) -> [u64; NOTICE_WORDS] {
    assert_eq!(event.size, size_of::<[u64; NOTICE_WORDS]>() as u64);
    // SAFETY: the words of a notice are valid until the next poll().
    unsafe { event.bytes.cast::<[u64; NOTICE_WORDS]>().read_unaligned() }
}

/// The end of a read or a write, and the notice of a write, come once, and behind the bytes.
#[test]
fn each_access_ends_once_behind_its_bytes() {
    Lanes::each(|mut lanes| {
        let caps = lanes.wires[1].caps();
        if !caps.remote {
            return;
        }
        let kinds = [(Command::READ, false), (Command::WRITE, false), (Command::WRITE, true)];
        for (op, notices) in kinds {
            if notices && caps.notice_bits < 8 {
                continue;
            }
            let mut words = Words::new(&lanes, op);
            for (at, command) in words.commands.iter_mut().enumerate().filter(|_| notices) {
                command.flags = Command::NOTICE;
                command.notice = at as u32;
                if caps.has_signals() {
                    command.flags |= Command::WORDS;
                    command.words = [at as u64 + 7; NOTICE_WORDS];
                }
            }
            let (mut seen, mut ends) = ([0; COUNT], [0; COUNT]);
            let answered = notices && caps.has_signals() && caps.answers;
            let count = if notices { 2 * COUNT } else { COUNT };
            lanes.exchange(CLASS_RMA, &words.commands, count, &mut |event| {
                let counts = match event.event {
                    Event::DONE => &mut ends,
                    Event::NOTICE => &mut seen,
                    _ => return,
                };
                assert_eq!(event.status, Status::OK.0);
                if event.event == Event::DONE {
                    let value = if answered { event.tag + ANSWER } else { 0 };
                    assert_eq!(event.fetched, value);
                }
                assert!(words.is_copied(event.tag), "event {} before its bytes", event.event);
                if event.event == Event::NOTICE && caps.has_signals() {
                    assert_eq!(words_of(event), [event.tag + 7; NOTICE_WORDS]);
                }
                counts[event.tag as usize] += 1;
            });
            let expected = ([1; COUNT], [u32::from(notices); COUNT]);
            assert_eq!((ends, seen), expected, "{}: ends, notices of op {op}", lanes.name);
        }
        lanes.close();
    });
}

/// A write of no bytes, as an atomic is, brings its words once. It ends with the status and value
/// of the answer, whether or not its flags say that the writer waits for the value.
#[test]
fn a_write_of_no_bytes_ends_with_its_answer() {
    let mut answering = 0;
    Lanes::each(|mut lanes| {
        let caps = lanes.wires[1].caps();
        if !caps.has_signals() {
            return;
        }
        answering += u32::from(caps.answers);
        let none = Piece { address: std::ptr::dangling(), size: 0, local: 0 };
        let mut words = Words::new(&lanes, Command::WRITE);
        for (at, command) in words.commands.iter_mut().enumerate() {
            let fetch = if at % 2 == 0 { Command::FETCH } else { 0 };
            command.flags = Command::INLINE | Command::NOTICE | Command::WORDS | fetch;
            let refused = if at % 4 < 2 { REFUSED } else { 0 };
            let high = if caps.notice_bits < 16 { 0 } else { 0xa << 8 };
            command.notice = at as u32 | refused | high;
            command.words = [at as u64, 1, 2, u64::MAX];
            (command.piece, command.size) = (&none, 0);
        }
        // It has no notice: its key does not reach the place behind the registered memory.
        let behind = words.theirs.as_ptr_range().end as u64 + 8;
        words.commands[COUNT - 1].remote = behind;
        let (mut seen, mut ends) = ([0; COUNT], [0; COUNT]);
        lanes.exchange(CLASS_RMA, &words.commands, 2 * COUNT - 1, &mut |event| {
            if event.event == Event::NOTICE {
                let [at, rest @ ..] = words_of(event);
                assert_eq!(event.tag, words.commands[at as usize].notice.into());
                assert_eq!((event.frame != 0, rest), (caps.answers, [1, 2, u64::MAX]));
                seen[at as usize] += 1;
            }
            if event.event == Event::DONE {
                let notice = u64::from(words.commands[event.tag as usize].notice);
                let (status, value) = match event.tag as usize + 1 == COUNT {
                    true => (Status::ERR_KEY, 0),
                    false if caps.answers => (status_of(notice), notice + ANSWER),
                    false => (Status::OK, 0),
                };
                assert_eq!((event.status, event.fetched), (status.0, value));
                ends[event.tag as usize] += 1;
            }
        });
        let mut told = [1; COUNT];
        told[COUNT - 1] = 0;
        assert_eq!((ends, seen), ([1; COUNT], told), "{}: ends, notices", lanes.name);
        assert!(words.theirs.iter().all(|word| *word == 0), "{}: it wrote", lanes.name);
        lanes.close();
    });
    assert!(answering >= 3, "{answering} wires that answer");
}

/// Each command that a lane has taken for a rank that is gone ends before the answer to its fence;
/// where the answer is UNFENCEABLE, a frame may end later.
#[test]
fn what_is_posted_to_a_dead_rank_ends_before_the_fence() {
    Lanes::each(|mut lanes| {
        let words = lanes.wires[0].caps().remote.then(|| Words::new(&lanes, Command::WRITE));
        let bytes = [5; 64];
        let piece = Piece { address: bytes.as_ptr(), size: 64, local: 0 };
        let frames: Vec<_> =
            (0..COUNT).map(|at| Command::frame((COUNT + at) as u64, &piece)).collect();
        lanes.lanes[1].close(Duration::ZERO).unwrap();
        let writes = words.as_ref().map_or(&[][..], |words| &words.commands);
        let mut open = Vec::new();
        for (class, commands) in [(CLASS_RMA, writes), (CLASS_USER, &frames)] {
            // SAFETY: the bytes and words live longer than the lane is open.
            let (taken, _) = unsafe { lanes.lanes[0].post(1, class, commands) };
            open.extend(commands[..taken].iter().map(|command| command.tag));
        }
        lanes.lanes[0].fence(1);
        let (limit, mut answer) = (Instant::now() + LIMIT, None);
        while answer.is_none() && Instant::now() < limit {
            lanes.events(0, &mut |event| match event.event {
                Event::DONE => {
                    let at = open.iter().position(|tag| *tag == event.tag);
                    open.swap_remove(at.expect("it was posted and has not ended"));
                }
                Event::FENCED | Event::UNFENCEABLE => {
                    let frames = event.event == Event::UNFENCEABLE;
                    open.retain(|tag| !frames || *tag < COUNT as u64);
                    answer = Some(open.clone());
                }
                _ => {}
            });
        }
        assert_eq!(answer.as_deref(), Some(&[][..]), "{}: open at the answer", lanes.name);
        lanes.lanes[0].close(Duration::ZERO).unwrap();
    });
}
