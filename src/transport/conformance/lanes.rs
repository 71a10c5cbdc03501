//! What a lane of a wire promises by itself, without the polling thread. That thread hides a lane
//! that lets it sleep too long, since it polls again after 50 ms.

use super::far::wires;
use crate::transport::wire::{Armed, CLASS_USER, Command, Event, Piece, Wire, WireLane};
use crate::util::socket::{interest, poll_for};
use crate::util::status::Status;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// How long an event may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The lanes of two ranks, connected.
struct Lanes {
    name: String,
    lanes: [Box<dyn WireLane>; 2],
    /// The kinds of the polled events of each that no test has asked for.
    seen: [Vec<u32>; 2],
    _wires: [Box<dyn Wire>; 2],
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
            let mut all = Lanes { name, lanes, seen: Default::default(), _wires: wires };
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

    /// Polls once.
    fn poll(&mut self, rank: usize) {
        let mut events = [Event::NONE; 8];
        let count = self.lanes[rank].poll(&mut events);
        let frames = events[..count].iter().filter(|event| event.event == Event::FRAME);
        frames.for_each(|event| self.lanes[rank].give_back(event.frame));
        self.seen[rank].extend(events[..count].iter().map(|event| event.event));
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
            lanes.until(0, Event::DONE);
            // The end of a command that is posted while the lane is armed.
            lanes.sleep_until(0, Event::DONE, |lanes| lanes.post(0, &bytes));
            lanes.until(1, Event::FRAME);
        }
        lanes.lanes.iter_mut().for_each(|lane| lane.close(Duration::ZERO).unwrap());
    });
}
