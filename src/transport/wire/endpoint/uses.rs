//! The tests send frames by tickets: in streams, beside ranks that die, are stopped, or cannot be
//! fenced.

use super::tests::{Around, BoxedLane, Wrapped};
use super::*;
use crate::transport::wire::Command;
use crate::transport::wire::simulated::{Nature, Simulated};
use std::cell::RefCell;

/// What the test does to a lane.
#[derive(Default)]
pub(super) struct Faults {
    /// It takes no write: its rank has tickets and does not use them.
    holds: AtomicBool,
    /// Its writes end with an error, and their bytes go nowhere.
    fails: AtomicBool,
    /// Its frames end with an error.
    pub fails_frames: AtomicBool,
    /// It reports the end of no frame.
    pub hides_frames: AtomicBool,
    /// It does not end.
    pub fails_close: AtomicBool,
}

/// A lane with faults, and the writes that have failed, with their peers.
struct Held(Box<dyn WireLane>, Arc<Faults>, Vec<(u32, u64)>);

/// Whether a tag is of a frame, and neither of tickets nor of the engine.
fn is_of_frame(tag: u64) -> bool {
    tag >> 62 == 0
}

impl Around for Held {
    fn inner(&mut self) -> &mut dyn WireLane {
        &mut *self.0
    }

    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status) {
        let [holds, fails] = [&self.1.holds, &self.1.fails].map(|it| it.load(Ordering::Relaxed));
        let is_write = |command: &&Command| command.op == Command::WRITE;
        let failed = commands.iter().take_while(|it| fails && is_write(it)).count();
        self.2.extend(commands[..failed].iter().map(|command| (peer, command.tag)));
        if failed > 0 {
            let all = failed == commands.len();
            return (failed, if all { Status::OK } else { Status::RETRY_QUEUE_FULL });
        }
        let may = |command: &&Command| !(holds || fails) || !is_write(command);
        let first = commands.iter().take_while(may).count();
        // SAFETY: passed on to the caller.
        let (count, why) = unsafe { self.0.post(peer, class, &commands[..first]) };
        let stopped = why == Status::OK && first < commands.len();
        (count, if stopped { Status::RETRY_QUEUE_FULL } else { why })
    }

    fn poll(&mut self, events: &mut [Event]) -> usize {
        if let Some((peer, tag)) = self.2.pop() {
            let status = Status::ERR_SYSTEM.0;
            events[0] = Event { tag, status, ..Event::about(Event::DONE, peer) };
            return 1;
        }
        let count = self.0.poll(events);
        for event in &mut events[..count] {
            if event.event == Event::DONE && is_of_frame(event.tag) {
                if self.1.fails_frames.load(Ordering::Relaxed) {
                    event.status = Status::ERR_SYSTEM.0;
                }
                if self.1.hides_frames.load(Ordering::Relaxed) {
                    *event = Event::about(Event::SERVED, event.peer);
                }
            }
        }
        count
    }

    fn close(&mut self, drain: Duration) -> Result<()> {
        match self.1.fails_close.load(Ordering::Relaxed) {
            true => fail!(ERR_SYSTEM, "the lane does not end"),
            false => self.0.close(drain),
        }
    }
}

/// Ranks without threads: the first is sent to by the others.
pub(super) struct Ranks {
    pub ends: Vec<Option<Endpoint>>,
    pub wires: Vec<Arc<Wrapped>>,
    pub faults: Vec<Arc<Faults>>,
    /// What the first has got, by sender, in any order.
    pub came: RefCell<Vec<Vec<u64>>>,
    pub sent: Vec<u64>,
    looks: std::cell::Cell<u32>,
}

/// Frames that a rank sends to begin with.
pub(super) const MANY: u64 = 300;

/// The payload of a frame, which differs from that of its neighbours at each place.
fn payload(tag: u64) -> Vec<u8> {
    // Some do not fit into a slot of tickets.
    let size = if tag % 17 == 5 { 900 } else { tag * 7 % 400 };
    (tag..tag + size).map(|byte| byte as u8).collect()
}

impl Ranks {
    pub fn new(count: u32, name: &str) -> Ranks {
        Ranks::watched(count, name, |_, lane| lane)
    }

    /// Ranks whose lanes the test puts into its own.
    pub fn watched(
        count: u32,
        name: &str,
        watch: impl Fn(u32, BoxedLane) -> BoxedLane + Clone + Send + Sync + 'static,
    ) -> Ranks {
        let nature = Nature::named(name).unwrap();
        let faults: Vec<Arc<Faults>> = (0..count).map(|_| Arc::default()).collect();
        let wire = |me: u32| {
            let (wire, faults) = (Simulated::new(me, nature).unwrap(), faults[me as usize].clone());
            let held = move |lane| Box::new(Held(lane, faults.clone(), Vec::new()));
            let watch = watch.clone();
            let wrap = Box::new(move |lane| watch(me, held(lane)));
            Arc::new(Wrapped { wire, wrap })
        };
        let wires: Vec<_> = (0..count).map(wire).collect();
        let end = |me: u32| {
            let wire = wires[me as usize].clone();
            Endpoint::without_thread((me, count), wire, 4096, no_slot(), no_news()).unwrap()
        };
        let ends: Vec<_> = (0..count).map(end).collect();
        for (me, end) in (1..count).zip(&ends[1..]) {
            end.connect(0, ends[0].card()).unwrap();
            ends[0].connect(me, end.card()).unwrap();
        }
        Ranks {
            ends: ends.into_iter().map(Some).collect(),
            wires,
            faults,
            came: RefCell::new(vec![Vec::new(); count as usize]),
            sent: vec![0; count as usize],
            looks: std::cell::Cell::new(0),
        }
    }

    /// Sends frames, of each class in turn, until so many were sent in all or one is refused.
    pub fn put(&mut self, from: usize, all: u64) {
        let Some(end) = &self.ends[from] else { return };
        while self.sent[from] < all {
            let tag = self.sent[from];
            let (class, header) = match tag % 3 {
                0 => (Class::Requests, &[1; 3][..]),
                1 => (Class::Responses, &[1; 3][..]),
                _ => (Class::Lib, &[1; 40][..]),
            };
            let payload = payload(tag);
            let frame =
                Frame { id: 1, kind: 2, tag, header, payload: &payload, label: 0, absent: false };
            if !end.put(0, class, &frame, 4096) {
                return;
            }
            self.sent[from] += 1;
        }
    }

    /// One round of these ranks. The first finds room two times of three.
    pub fn round(&self, ranks: &[usize]) {
        let deliver = |from: u32, _: Class, frame: &Frame| {
            assert_eq!(frame.payload, payload(frame.tag), "of frame {}", frame.tag);
            self.looks.set(self.looks.get() + 1);
            let room = !self.looks.get().is_multiple_of(3);
            if room {
                self.came.borrow_mut()[from as usize].push(frame.tag);
            }
            room
        };
        for end in ranks.iter().filter_map(|rank| self.ends[*rank].as_ref()) {
            end.shared.round(end.shared.lock(), &deliver);
        }
    }

    pub fn has_got(&self, from: usize, all: u64) -> bool {
        let mut came = self.came.borrow()[from].clone();
        came.sort_unstable();
        assert!(came.is_sorted_by(|one, next| one < next), "a frame came twice");
        came.len() as u64 == all
    }

    pub fn until(&mut self, what: &str, mut step: impl FnMut(&mut Ranks) -> bool) {
        let limit = Instant::now() + Duration::from_secs(20);
        while !step(self) {
            assert!(Instant::now() < limit, "{what}");
        }
    }

    /// Sends frames of one rank, up to so many in all, until they have come, and that is known.
    pub fn stream(&mut self, from: usize, all: u64, ranks: &[usize]) {
        self.until("a frame has not come", |it| {
            it.put(from, all);
            it.round(ranks);
            it.has_got(from, all)
        });
        self.until("nobody confirms that all has come", |it| {
            it.round(ranks);
            it.ends[from].as_ref().is_some_and(Endpoint::has_delivered_all)
        });
    }

    pub fn accesses(&self, rank: usize) -> u64 {
        self.wires[rank].wire.counts()[1]
    }

    fn hold(&self, rank: usize, holds: bool) {
        self.faults[rank].holds.store(holds, Ordering::Relaxed);
    }

    /// Makes a rank take tickets that it does not use.
    pub fn take_tickets(&mut self, rank: usize) {
        self.stream(rank, MANY, &[0, 1, 2]);
        assert!(self.accesses(rank) > 0, "it has used tickets");
        self.hold(rank, true);
        let held = |it: &Ranks| {
            let state = it.ends[rank].as_ref().unwrap().shared.lock();
            state.tickets.as_ref().unwrap().taker.holds_writes()
        };
        self.until("it takes none", |it| {
            it.put(rank, it.sent[rank] + 16);
            it.round(&[0, rank]);
            held(it)
        });
    }
}

pub(super) fn natures(fence: u32) -> impl Iterator<Item = String> {
    [1, 2, 4, 7].into_iter().map(move |seed| {
        format!("{seed}:remote=1:atomics=1:notices=1:message=0:fd=0:fence={fence}:shared=0")
    })
}

/// The frames behind a knock take tickets; all come once, of all lines, and their sender learns it.
#[test]
fn frames_of_a_stream_take_tickets() {
    for name in natures(1) {
        let mut ranks = Ranks::new(3, &name);
        for turn in 1..=3 {
            ranks.stream(1, turn * MANY, &[0, 1, 2]);
            ranks.stream(2, turn * MANY, &[0, 1, 2]);
        }
        assert!(ranks.accesses(1) > 50 && ranks.accesses(2) > 50, "tickets were used");
    }
}

/// A sender dies between fetch-and-add and write: those who have tickets behind its own are not
/// held up, and when it is fenced slots are used again.
#[test]
fn tickets_of_the_dead_are_skipped() {
    for name in natures(1) {
        let mut ranks = Ranks::new(3, &name);
        ranks.stream(2, MANY, &[0, 1, 2]);
        ranks.take_tickets(1);
        ranks.ends[1] = None;
        let first = ranks.ends[0].as_ref().unwrap();
        first.mark_dead(1);
        ranks.stream(2, 2 * MANY, &[0, 2]);
        ranks.until("slots are used again", |it| {
            let (before, all) = (it.accesses(2), it.sent[2] + 60);
            it.stream(2, all, &[0, 2]);
            it.accesses(2) > before + 20
        });
    }
}

/// Where the dead cannot be fenced their slots are not used again; others send by knocks.
#[test]
fn a_dead_rank_that_cannot_be_fenced_keeps_its_slots_and_delays_nobody() {
    for name in natures(0) {
        let mut ranks = Ranks::new(3, &name);
        ranks.take_tickets(1);
        ranks.ends[1] = None;
        ranks.ends[0].as_ref().unwrap().mark_dead(1);
        ranks.stream(2, MANY, &[0, 2]);
        let before = ranks.accesses(2);
        ranks.stream(2, 2 * MANY, &[0, 2]);
        assert_eq!(ranks.accesses(2), before);
    }
}

/// A sender that is stopped with tickets holds up others for a moment only, and what it has is
/// sent when it goes on.
#[test]
fn a_stopped_sender_holds_up_nobody() {
    for name in natures(1) {
        let mut ranks = Ranks::new(3, &name);
        ranks.take_tickets(1);
        ranks.stream(2, 3 * MANY, &[0, 2]);
        ranks.hold(1, false);
        let all = ranks.sent[1];
        ranks.stream(1, all, &[0, 1, 2]);
        ranks.stream(2, 4 * MANY, &[0, 1, 2]);
    }
}

/// Six ranks send at the same time; all that they send comes once, and all of them use tickets.
#[test]
fn many_send_by_tickets_at_the_same_time() {
    for name in natures(1) {
        let mut ranks = Ranks::new(7, &name);
        let all: Vec<usize> = (0..7).collect();
        ranks.until("a frame has not come", |it| {
            all[1..].iter().for_each(|from| it.put(*from, MANY));
            it.round(&all);
            all[1..].iter().all(|from| it.has_got(*from, MANY))
        });
        let accesses: Vec<u64> = all[1..].iter().map(|rank| ranks.accesses(*rank)).collect();
        assert!(accesses.iter().all(|accesses| *accesses > 20), "{name}: {accesses:?}");
    }
}

/// A write that has failed has lost a frame, so its peer is lost to its sender. The sender says so,
/// and the slots are used again, though a ticket will never be used and both ranks live.
#[test]
fn a_write_that_fails_has_lost_the_peer_and_leaves_the_slots_to_others() {
    for name in natures(1) {
        let mut ranks = Ranks::new(3, &name);
        ranks.stream(1, MANY, &[0, 1, 2]);
        ranks.faults[1].fails.store(true, Ordering::Relaxed);
        ranks.until("the peer is not lost", |it| {
            it.put(1, it.sent[1] + 1);
            it.round(&[0, 1]);
            it.ends[1].as_ref().unwrap().shared.lock().is_lost(0)
        });
        ranks.stream(2, MANY, &[0, 1, 2]);
        ranks.until("slots are not used again", |it| {
            let (before, all) = (it.accesses(2), it.sent[2] + 60);
            it.stream(2, all, &[0, 1, 2]);
            it.accesses(2) > before + 20
        });
        assert_eq!(ranks.ends[0].as_ref().unwrap().slots_retired(), 0);
    }
}

/// Frames of all three lines use the places of one peer, and no line is starved.
#[test]
fn each_line_gets_its_part_of_the_places() {
    for name in natures(1) {
        let mut ranks = Ranks::new(2, &name);
        let came = RefCell::new([0_usize; 3]);
        let mut tags = [0; 3];
        ranks.until("few frames come", |it| {
            let (first, sender) = (it.ends[0].as_ref().unwrap(), it.ends[1].as_ref().unwrap());
            for (line, tag) in tags.iter_mut().enumerate() {
                let (class, header) = match line {
                    0 => (Class::Requests, &[1; 3][..]),
                    1 => (Class::Responses, &[1; 3][..]),
                    _ => (Class::Lib, &[1; 40][..]),
                };
                let payload = &[][..];
                let mut frame =
                    Frame { id: 1, kind: 2, tag: 0, header, payload, label: 0, absent: false };
                frame.tag = *tag;
                while sender.put(0, class, &frame, 4096) {
                    *tag += 1;
                    frame.tag = *tag;
                }
            }
            let deliver = |_: u32, class: Class, _: &Frame| {
                let line = match class {
                    Class::Requests => 0,
                    Class::Responses => 1,
                    _ => 2,
                };
                came.borrow_mut()[line] += 1;
                true
            };
            sender.shared.round(sender.shared.lock(), &|_, _, _| false);
            first.shared.round(first.shared.lock(), &deliver);
            came.borrow().iter().sum::<usize>() >= 3000
        });
        assert!(came.borrow().iter().all(|came| *came >= 200), "{name}: {came:?}");
    }
}
