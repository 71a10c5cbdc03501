use super::*;
use crate::bootstrap::Relay;
use crate::transport::CHUNK;
use crate::transport::frame::LARGEST;
use crate::transport::remote::{Posting, Stopped, What};
use crate::transport::wire::simulated::{Nature, Simulated};
use crate::transport::wire::{Caps, Command, Key, Piece};
use std::sync::mpsc::{Receiver, Sender, channel};

const MEDIUM: usize = 4096;

type Came = (u32, Class, u64, Vec<u8>);

/// A receiver on which every third attempt to deliver a frame finds no slot.
fn slots(to: Sender<Came>) -> Deliver {
    let attempts = AtomicU32::new(1);
    Box::new(move |from, class, frame| {
        let room = !attempts.fetch_add(1, Ordering::Relaxed).is_multiple_of(3);
        if room {
            to.send((from, class, frame.tag, frame.payload.into())).unwrap();
        }
        room
    })
}

pub(super) fn pair(nature: Nature) -> ([Endpoint; 2], [Receiver<Came>; 2]) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..2).map(|_| channel()).unzip();
    let mut senders = senders.into_iter();
    let ends = [0, 1].map(|me| {
        let wire = Simulated::new(me, nature).unwrap();
        Endpoint::join((me, 2), Arc::new(wire), MEDIUM, slots(senders.next().unwrap()), no_news())
            .unwrap()
    });
    ends[0].connect(1, ends[1].card()).unwrap();
    ends[1].connect(0, ends[0].card()).unwrap();
    (ends, receivers.try_into().unwrap())
}

pub(super) fn put(end: &Endpoint, to: u32, class: Class, tag: u64, size: usize) -> bool {
    let header: &[u8] = match class {
        Class::Lib => &[1; 40],
        Class::Answers => &[1; 8],
        _ => &[1; 3],
    };
    let payload: Vec<u8> = (0..size).map(|at| (at * 7 + tag as usize) as u8).collect();
    let frame = Frame { id: 1, kind: 2, tag, header, payload: &payload, label: 0, absent: false };
    end.put(to, class, &frame, MEDIUM)
}

/// Calls `attempt` until it succeeds, for at most 10 s.
pub(super) fn until(what: &str, mut attempt: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(10);
    while !attempt() {
        assert!(Instant::now() < limit, "{what}");
        std::thread::yield_now();
    }
}

/// Over networks of every kind each frame of each class and size arrives once and complete, and the
/// sender learns that all have arrived.
#[test]
fn every_frame_comes_once_and_whole_over_any_wire() {
    use Class::*;
    for nature in (1..=8).map(Nature::of) {
        let ([here, there], [_, came]) = pair(nature);
        let mut expected = 0;
        for (class, sizes) in [
            (Requests, &[0, 1, 400, 500, MEDIUM, MEDIUM + 1, LARGEST][..]),
            (Responses, &[0, 1, 490, MEDIUM, LARGEST]),
            (Replies, &[0, 456, 457, MEDIUM]),
            (Lib, &[0, 48, 49, CHUNK]),
            (Answers, &[0, 80, CHUNK]),
        ] {
            for round in 0..4 {
                for size in sizes {
                    let tag = round << 32 | *size as u64;
                    until("no room", || put(&here, 1, class, tag, *size));
                    expected += 1;
                }
            }
        }
        let mut seen = std::collections::HashSet::new();
        for _ in 0..expected {
            let (from, class, tag, payload) = came.recv_timeout(Duration::from_secs(10)).unwrap();
            let size = tag as u32 as usize;
            let whole = (0..size).map(|at| (at * 7 + tag as usize) as u8);
            assert!(from == 0 && payload.iter().copied().eq(whole), "{class:?}, {size} bytes");
            assert!(seen.insert((class as u8, tag)), "{class:?} {tag:#x} came twice");
        }
        until("not all were reported", || here.has_delivered_all());
        assert!(there.has_delivered_all() && came.try_recv().is_err());
    }
}

/// After mark_dead() nobody waits for the dead rank, and frames for it are accepted and dropped.
#[test]
fn the_dead_hold_up_nobody() {
    for nature in (1..=8).map(Nature::of) {
        let ([here, there], [back, came]) = pair(nature);
        (0..10).for_each(|tag| assert!(put(&here, 1, Class::Requests, tag, 2000)));
        came.recv_timeout(Duration::from_secs(10)).unwrap();
        drop(there);
        let _ = put(&here, 1, Class::Requests, 99, 2000);
        here.mark_dead(1);
        until("waits for the dead", || here.has_delivered_all());
        assert!(put(&here, 1, Class::Requests, 100, 8), "goes nowhere");
        assert!(here.has_delivered_all() && back.try_recv().is_err());
    }
}

pub(super) type BoxedLane = Box<dyn WireLane>;

/// A lane of a test around another one, which does what the test does not replace.
pub(super) trait Around: Send {
    fn inner(&mut self) -> &mut dyn WireLane;

    /// # Safety
    /// As of WireLane::post().
    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status) {
        // SAFETY: passed on to the caller.
        unsafe { self.inner().post(peer, class, commands) }
    }

    fn poll(&mut self, events: &mut [Event]) -> usize {
        self.inner().poll(events)
    }

    fn fence(&mut self, peer: u32) {
        self.inner().fence(peer);
    }

    fn close(&mut self, drain: Duration) -> Result<()> {
        self.inner().close(drain)
    }
}

impl<L: Around> WireLane for L {
    fn connect(&mut self, peer: u32, card: &[u8]) -> Result<()> {
        self.inner().connect(peer, card)
    }

    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status) {
        // SAFETY: passed on to the caller.
        unsafe { Around::post(self, peer, class, commands) }
    }

    fn poll(&mut self, events: &mut [Event]) -> usize {
        Around::poll(self, events)
    }

    fn give_back(&mut self, frame: u64) {
        self.inner().give_back(frame);
    }

    fn answer(&mut self, notice: u64, status: Status, value: u64) {
        self.inner().answer(notice, status, value);
    }

    fn arm(&mut self) -> Armed {
        self.inner().arm()
    }

    fn disarm(&mut self) {
        self.inner().disarm();
    }

    fn fence(&mut self, peer: u32) {
        Around::fence(self, peer);
    }

    fn close(&mut self, drain: Duration) -> Result<()> {
        Around::close(self, drain)
    }
}

/// A simulated wire whose lane the test puts into one of its own.
pub(super) struct Wrapped {
    pub wire: Simulated,
    pub wrap: Box<dyn Fn(BoxedLane) -> BoxedLane + Send + Sync>,
}

impl Wire for Wrapped {
    fn caps(&self) -> Caps {
        self.wire.caps()
    }

    fn card(&self) -> Result<Vec<u8>> {
        self.wire.card()
    }

    fn register(&self, address: *mut u8, size: u64) -> Result<Key> {
        self.wire.register(address, size)
    }

    fn deregister(&self, key: &Key, patience: Duration) -> Result<()> {
        self.wire.deregister(key, patience)
    }

    fn lane(&self) -> Result<BoxedLane> {
        Ok((self.wrap)(self.wire.lane()?))
    }
}

#[derive(Default)]
struct Flags {
    loses: AtomicBool,
    refuses: AtomicBool,
    fails: AtomicBool,
}

/// A lane that reports its peer as lost, refuses posts with an error, or ends frames with an error,
/// when the test sets a flag, counts posts after the first two, and panics when it is used after
/// close().
struct FragileLane {
    lane: BoxedLane,
    flags: Arc<Flags>,
    lost: bool,
    given: Arc<AtomicU32>,
    closed: bool,
}

fn fragile(wire: Simulated, flags: Arc<Flags>, given: Arc<AtomicU32>) -> Arc<Wrapped> {
    let wrap = Box::new(move |lane| {
        let (flags, given) = (flags.clone(), given.clone());
        Box::new(FragileLane { lane, flags, lost: false, given, closed: false }) as _
    });
    Arc::new(Wrapped { wire, wrap })
}

impl Around for FragileLane {
    fn inner(&mut self) -> &mut dyn WireLane {
        assert!(!self.closed, "the lane is closed");
        &mut *self.lane
    }

    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status) {
        if self.lost {
            self.given.fetch_add(1, Ordering::Relaxed);
        }
        if self.flags.refuses.load(Ordering::Relaxed) {
            self.lost = true;
            return (0, Status::ERR_STATE);
        }
        // SAFETY: the caller keeps the contract of post().
        unsafe { self.inner().post(peer, class, commands) }
    }

    fn poll(&mut self, events: &mut [Event]) -> usize {
        if self.flags.loses.load(Ordering::Relaxed) && !std::mem::replace(&mut self.lost, true) {
            events[0] = Event { status: -5, ..Event::about(Event::LOST, 1) };
            return 1;
        }
        let count = self.inner().poll(events);
        if self.flags.fails.load(Ordering::Relaxed) {
            let ends = events[..count].iter_mut().filter(|event| event.event == Event::DONE);
            ends.for_each(|event| event.status = -5);
        }
        count
    }

    fn close(&mut self, drain: Duration) -> Result<()> {
        self.closed = true;
        self.lane.close(drain)
    }
}

/// The endpoint reports a peer that its lane has lost, or for which the lane refuses a post with an
/// error, once, after `PATIENCE`; it does not report one that was marked dead in that time.
#[test]
fn a_peer_that_the_wire_has_lost_is_reported_after_the_patience() {
    let ways = [(false, false), (true, false), (false, true)];
    // Without atomics there are no tickets, so the polling thread has nothing else to do.
    let natures = ["1", "1:atomics=0"].map(|name| Nature::named(name).unwrap());
    for (nature, (heard, refused)) in natures.iter().flat_map(|it| ways.map(|way| (it, way))) {
        let [wire, other] = [0, 1].map(|me| Simulated::new(me, *nature).unwrap());
        let (to, _came) = channel();
        let (flags, given) = (Arc::<Flags>::default(), Arc::<AtomicU32>::default());
        let fragile = fragile(wire, flags.clone(), given.clone());
        let end = Endpoint::join((0, 2), fragile, MEDIUM, slots(to), no_news()).unwrap();
        let (sender, reports) = channel();
        end.on_unreachable(Box::new(move |peer| sender.send((peer, Instant::now())).unwrap()));
        end.connect(1, &other.card().unwrap()).unwrap();
        assert!(put(&end, 1, Class::Requests, 1, 8));
        let begin = Instant::now();
        let read = || {
            let (local, key) = (std::ptr::null_mut(), [0; 4]);
            let read = Posting { tag: 1, what: What::Read, local, size: 0, remote: 0, key };
            // SAFETY: it has no bytes.
            assert_eq!(unsafe { end.post(1, &[read]) }, (0, Stopped::Later));
        };
        if refused {
            flags.refuses.store(true, Ordering::Relaxed);
            read();
        } else {
            flags.loses.store(true, Ordering::Relaxed);
            end.shared.wake.wake();
            until("was not lost", || !end.shared.lock().lost.is_empty());
        }
        // From now on the endpoint posts nothing to the peer, though the lane would take it.
        let nothing_is_sent = || {
            put(&end, 1, Class::Lib, 2, 8);
            put(&end, 1, Class::Answers, 3, 8);
            end.relay(&[1])(1, Relay::Packet(vec![1; 8]));
            read();
            assert_eq!(given.load(Ordering::Relaxed), 0);
        };
        nothing_is_sent();
        if heard {
            end.mark_dead(1);
            assert!(reports.recv_timeout(PATIENCE * 2).is_err(), "it is dead");
            continue;
        }
        let (peer, when) = reports.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(peer == 1 && when >= begin + PATIENCE, "after {:?}", when - begin);
        nothing_is_sent();
        end.mark_dead(1);
        assert!(reports.try_recv().is_err());
        nothing_is_sent();
        assert!(end.has_delivered_all(), "nobody waits for it");
    }
}

#[test]
fn a_peer_is_lost_to_which_the_lane_could_not_send_a_frame() {
    let [wire, other] = [0, 1].map(|me| Simulated::new(me, Nature::of(1)).unwrap());
    let flags = Arc::<Flags>::default();
    let fragile = fragile(wire, flags.clone(), Arc::default());
    let end = Endpoint::join((0, 2), fragile, MEDIUM, no_slot(), no_news()).unwrap();
    end.connect(1, &other.card().unwrap()).unwrap();
    flags.fails.store(true, Ordering::Relaxed);
    assert!(put(&end, 1, Class::Lib, 1, 8));
    until("was not lost", || !end.shared.lock().lost.is_empty());
}

/// The polling thread's callback for an unreachable peer may drop the endpoint, and the thread then
/// continues its loop; a hub may send at that time. Neither may use the closed lane.
#[test]
fn nothing_is_asked_of_a_lane_that_is_closed() {
    let [wire, other] = [0, 1].map(|me| Simulated::new(me, Nature::of(1)).unwrap());
    let fragile = fragile(wire, Arc::default(), Arc::default());
    let end = Endpoint::without_thread((0, 2), fragile, MEDIUM, no_slot(), no_news()).unwrap();
    end.connect(1, &other.card().unwrap()).unwrap();
    let (shared, relay) = (end.shared.clone(), end.relay(&[1]));
    drop(end);
    shared.sleep(&mut SHORTEST.clone());
    relay(1, Relay::Packet(vec![1; 8]));
}

/// The endpoint drops malformed frames and handles the correct frame after them.
#[test]
fn nonsense_is_dropped() {
    let (sender, came) = channel();
    let [strange, wire] = [0, 1].map(|me| Simulated::new(me, Nature::of(1)).unwrap());
    let end = Endpoint::join((1, 2), Arc::new(wire), MEDIUM, slots(sender), no_news()).unwrap();
    let mut lane = strange.lane().unwrap();
    lane.connect(1, end.card()).unwrap();
    let frame =
        Frame { id: 1, kind: 2, tag: 5, header: &[1; 8], payload: &[], label: 0, absent: true };
    let good = packet::bytes_of(&Packet::Frame(None, OwnedFrame::of(Class::Answers, &frame)));
    let mut bad = good.clone();
    bad[2] = 77;
    let frames: Vec<Vec<u8>> = [&b"nonsense"[..], &[0; 300]]
        .map(Vec::from)
        .into_iter()
        .chain(pieces::frames_of(&bad, 1, 4096))
        .chain(pieces::frames_of(&good, 2, 4096))
        .collect();
    for (tag, frame) in frames.iter().enumerate() {
        let piece = Piece { address: frame.as_ptr(), size: frame.len() as u64, local: 0 };
        let command = [Command::frame(tag as u64, &piece)];
        // SAFETY: the frames live until the lane is gone.
        while unsafe { lane.post(1, 0, &command) }.0 == 0 {
            lane.poll(&mut [Event::NONE; 4]);
        }
    }
    until("not all were reported", || {
        // A frame leaves when its sender polls.
        lane.poll(&mut [Event::NONE; 4]);
        end.shared.lock().reported == 3
    });
    let mut good = None;
    until("the good one has not come", || {
        lane.poll(&mut [Event::NONE; 4]);
        good = came.try_recv().ok();
        good.is_some()
    });
    let good = good.unwrap();
    assert_eq!((good.0, good.2), (0, 5));
}
