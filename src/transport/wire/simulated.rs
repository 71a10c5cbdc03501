//! A simulated network for tests: ranks that are threads of one process exchange frames and, if the
//! seed says so, execute reads, writes and atomics in each other's memory.
//!
//! A seed (`LLCL_WIRE_SEED`) decides how late each frame, access and completion arrives, so they
//! overtake each other; none is lost. It also decides how many of the posted commands a lane takes:
//! all, some, or none. The abilities in which real networks differ follow from the seed, too
//! ([`Nature`]); switches after the seed override them: `7:remote=1`.
//!
//! When an access is due, the thread that polls the poster's lane executes it; no thread of the
//! memory's owner takes part (`memory`). If a rank closes its lane while a write is not due yet,
//! the write still arrives at its peer, as data of a dead rank may on a real network. A fence waits
//! for these writes.
//!
//! Some networks read the bytes of a frame or a write at the post, others later ([`Nature::late`]):
//! those of a frame when it leaves, those of a write when it is executed, so a test sees when the
//! library changes or frees bytes too early. After the end of a command, and after close(), the
//! network reads none of its bytes.

use super::{Armed, CLASSES, Caps, Command, Event, Key, Wire, WireLane};
use crate::fail;
use crate::util::socket::Wake;
use crate::util::status::{Result, Status};
use accesses::{Answers, Begun};
use frames::Leaving;
use memory::{Access, Notice, Registered};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

mod accesses;
mod fences;
mod frames;
mod memory;
mod nature;
mod traffic;
pub use nature::Nature;
use traffic::Traffic;

/// Most commands of a lane that are not completed.
const DEPTH: usize = 64;
/// Receives of each class. While all hold frames, further frames stay in the network.
const RECEIVES: usize = 32;
/// A fence waits at least so long, since a dead rank's thread may still be inside a post.
const DYING: Duration = Duration::from_micros(100);

/// Something that will arrive at one rank.
enum Comes {
    Frame {
        from: u32,
        answer_to: Arc<Card>,
        class: u32,
        bytes: Box<[u8]>,
        crossings: u64,
        /// The number of the sender's command, if it ends when a receive takes the frame.
        waits: Option<u64>,
    },
    /// The access with this number, which the rank itself has posted, is to be executed.
    Due(u64),
    /// The frame with this number, which the rank itself has posted, leaves.
    Leaves(u64),
    /// A write of a rank that has closed its lane since.
    Late { from: u32, access: Access, bytes: Box<[u8]> },
    /// A peer has written bytes here, with a notice. `answers`: its command ends when this rank
    /// has answered.
    Notice { from: u32, notice: Notice, crossings: u64, answers: Option<Answers> },
    /// A peer has answered the write with this number.
    Answered { number: u64, peer: u32, status: Status, fetched: u64, crossings: u64 },
    /// The completion of a command that the rank itself has posted.
    Done { tag: u64, peer: u32, status: Status, fetched: u64, crossings: u64 },
    /// A receive of the peer has taken the frame of the command with this number, or the peer has
    /// ended.
    Taken { number: u64, peer: u32, crossings: u64 },
}

/// The time of an arrival, and a number that makes keys unique.
type Due = (Instant, u64);

#[derive(Default)]
struct Arrivals {
    /// A queue for the frames of each class, and one for everything else.
    coming: [BTreeMap<Due, Comes>; CLASSES + 1],
    /// The rank has closed its lane: nothing arrives any more.
    over: bool,
}

impl Comes {
    /// The index of its queue in [`Arrivals::coming`].
    fn queue(&self) -> usize {
        match self {
            Comes::Frame { class, .. } => (*class as usize).min(CLASSES - 1),
            _ => CLASSES,
        }
    }
}

/// The network adapter of one rank.
struct Card {
    arrivals: Mutex<Arrivals>,
    /// The lane's descriptor, if the network has one.
    news: Option<Wake>,
    registered: Mutex<Registered>,
    traffic: Traffic,
}

/// The adapters of the process, by number.
static CARDS: Mutex<BTreeMap<u64, Weak<Card>>> = Mutex::new(BTreeMap::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The network as one rank uses it.
pub struct Simulated {
    me: u32,
    nature: Nature,
    number: u64,
    card: Arc<Card>,
}

impl Simulated {
    /// The network of rank `me`.
    pub fn new(me: u32, nature: Nature) -> Result<Simulated> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let card = Arc::new(Card {
            arrivals: Mutex::default(),
            registered: Mutex::default(),
            traffic: Traffic::default(),
            news: if nature.has_fd { Some(Wake::new()?) } else { None },
        });
        lock(&CARDS).insert(number, Arc::downgrade(&card));
        Ok(Simulated { me, nature, number, card })
    }
}

impl Wire for Simulated {
    fn caps(&self) -> Caps {
        self.nature.caps
    }

    fn card(&self) -> Result<Vec<u8>> {
        Ok(self.number.to_ne_bytes().into())
    }

    fn register(&self, address: *mut u8, size: u64) -> Result<Key> {
        Ok(lock(&self.card.registered).add(address as u64, size))
    }

    fn deregister(&self, key: &Key, _: Duration) -> Result<()> {
        lock(&self.card.registered).remove(key);
        Ok(())
    }

    fn lane(&self) -> Result<Box<dyn WireLane>> {
        let Simulated { me, nature, number, .. } = *self;
        let random =
            (nature.seed << 20 | u64::from(me) << 1 | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Ok(Box::new(SimulatedLane {
            me,
            nature,
            number,
            card: self.card.clone(),
            peers: HashMap::new(),
            connected: Vec::new(),
            fences: Vec::new(),
            given: HashMap::new(),
            held: [0; CLASSES],
            accesses: HashMap::new(),
            leaving: HashMap::new(),
            words: Vec::new(),
            unanswered: HashMap::new(),
            under_way: 0,
            waiting: BTreeMap::new(),
            random,
            serial: 0,
        }))
    }
}

struct SimulatedLane {
    me: u32,
    nature: Nature,
    number: u64,
    card: Arc<Card>,
    peers: HashMap<u32, Arc<Card>>,
    /// Peers whose CONNECTED event was not polled yet.
    connected: Vec<u32>,
    /// Dead ranks for which a fence is pending, and the time after which they post nothing.
    fences: Vec<(u32, Instant)>,
    /// Frames that were polled and not given back, with their class.
    given: HashMap<u64, (usize, Box<[u8]>)>,
    /// Number of frames in `given`, by class.
    held: [usize; CLASSES],
    accesses: HashMap<u64, Begun>,
    /// Frames whose bytes the network has not read.
    leaving: HashMap<u64, Leaving>,
    /// The words of the notices that the last poll() has returned.
    words: Vec<Box<[u64]>>,
    /// By number, the notices that are not answered.
    unanswered: HashMap<u64, Answers>,
    /// Number of commands whose completion was not polled, but for those in `waiting`.
    under_way: usize,
    /// Frames that wait for a receive, by the numbers of their commands: peer and class, and tag.
    waiting: BTreeMap<u64, ((u32, u32), u64)>,
    random: u64,
    serial: u64,
}

impl SimulatedLane {
    /// Marsaglia's xorshift generator.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// A random time of arrival: mostly within 4 us, a quarter within 65 us, one in 64 within 1 ms.
    fn due(&mut self) -> Instant {
        let now = self.random();
        Instant::now()
            + Duration::from_nanos(match now % 64 {
                0 => now >> 8 & 0xf_ffff,
                1..16 => now >> 8 & 0xffff,
                _ => now >> 8 & 0xfff,
            })
    }

    /// How many of `count` commands the lane takes: mostly as many as there is `room` for.
    fn taken(&mut self, count: usize, room: usize) -> usize {
        let now = self.random();
        let taken = match now % 16 {
            0 => 0,
            1..4 => (now >> 8) as usize % (count + 1),
            _ => count,
        };
        taken.min(room)
    }

    /// False: the rank has closed its lane.
    fn put(&mut self, to: &Card, comes: Comes) -> bool {
        self.serial += 1;
        let key = (self.due(), self.serial << 12 | u64::from(self.me));
        let mut arrivals = lock(&to.arrivals);
        if arrivals.over {
            return false;
        }
        arrivals.coming[comes.queue()].insert(key, comes);
        drop(arrivals);
        if let Some(news) = &to.news {
            news.wake();
        }
        true
    }

    fn put_own(&mut self, comes: Comes) {
        let own = self.card.clone();
        self.put(&own, comes);
    }

    /// The next arrival for which there is a receive: its time and its queue.
    fn next(&self, arrivals: &Arrivals) -> Option<(Instant, usize)> {
        let may = |queue: &usize| *queue == CLASSES || self.held[*queue] < RECEIVES;
        let first = |queue: usize| Some((arrivals.coming[queue].first_key_value()?.0.0, queue));
        (0..=CLASSES).filter(may).filter_map(first).min()
    }

    /// Handles an arrival, and returns its event, if it has one.
    fn event_of(&mut self, comes: Comes) -> Option<Event> {
        match comes {
            Comes::Done { tag, peer, status, fetched, crossings } => {
                self.under_way -= 1;
                self.card.traffic.came(crossings);
                let status = status.0;
                Some(Event { tag, status, fetched, ..Event::about(Event::DONE, peer) })
            }
            Comes::Taken { number, peer, crossings } => {
                self.card.traffic.came(crossings);
                // A fence may have ended the command.
                let (_, tag) = self.waiting.remove(&number)?;
                Some(Event { tag, ..Event::about(Event::DONE, peer) })
            }
            Comes::Due(number) => {
                self.execute(number);
                None
            }
            Comes::Leaves(number) => {
                self.leave(number);
                None
            }
            Comes::Late { from, access, mut bytes } => {
                let registered = lock(&self.card.registered);
                // SAFETY: registered memory is valid until deregister(), which takes this lock;
                // the bytes are in `bytes`.
                let (status, _) =
                    unsafe { registered.execute(&access, bytes.as_mut_ptr(), bytes.len() as u64) };
                drop(registered);
                let notice = access.notice.filter(|_| status == Status::OK)?;
                Some(self.notice(from, notice, None))
            }
            Comes::Notice { from, notice, crossings, answers } => {
                self.card.traffic.came(crossings);
                Some(self.notice(from, notice, answers))
            }
            Comes::Answered { number, peer, status, fetched, crossings } => {
                self.card.traffic.came(crossings);
                self.answered(number, peer, (status, fetched))
            }
            Comes::Frame { from, answer_to, class, bytes, crossings, waits } => {
                Some(self.take((from, answer_to), (class, bytes), (crossings, waits)))
            }
        }
    }
}

impl WireLane for SimulatedLane {
    fn connect(&mut self, peer: u32, card: &[u8]) -> Result<()> {
        let number = card.try_into().map_or(0, u64::from_ne_bytes);
        let Some(card) = lock(&CARDS).get(&number).and_then(Weak::upgrade) else {
            fail!(ERR_SYSTEM, "rank {peer} is not on the simulated network of this process");
        };
        self.peers.insert(peer, card);
        self.connected.push(peer);
        Ok(())
    }

    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status) {
        let Some(to) = self.peers.get(&peer).cloned() else {
            return (0, Status::RETRY_CONNECTING);
        };
        let taken = self.taken(commands.len(), self.room(peer, class, commands));
        for command in &commands[..taken] {
            // SAFETY: the caller keeps the contract of post().
            unsafe {
                match command.op {
                    Command::FRAME => self.send(peer, class, &to, command),
                    _ => self.begin(peer, &to, command),
                }
            }
        }
        let why = if taken == commands.len() { Status::OK } else { Status::RETRY_QUEUE_FULL };
        (taken, why)
    }

    fn poll(&mut self, events: &mut [Event]) -> usize {
        let mut count = 0;
        self.words.clear();
        let mut put = |event: Event| {
            events[count] = event;
            count += 1;
            count == events.len()
        };
        while let Some(peer) = self.connected.pop() {
            if put(Event::about(Event::CONNECTED, peer)) {
                return count;
            }
        }
        loop {
            let mut arrivals = lock(&self.card.arrivals);
            let due = self.next(&arrivals).filter(|(due, _)| *due <= Instant::now());
            let comes = due.and_then(|(_, queue)| arrivals.coming[queue].pop_first());
            drop(arrivals);
            let event = match comes {
                Some((_, comes)) => self.event_of(comes),
                None => match self.fenced() {
                    None => return count,
                    event => event,
                },
            };
            if event.is_some_and(&mut put) {
                return count;
            }
        }
    }

    fn give_back(&mut self, frame: u64) {
        if let Some((class, _)) = self.given.remove(&frame) {
            self.held[class] -= 1;
        }
    }

    fn answer(&mut self, notice: u64, status: Status, value: u64) {
        self.send_answer(notice, status, value);
    }

    fn arm(&mut self) -> Armed {
        if let Some(news) = &self.card.news {
            news.clear();
        }
        let (arrivals, now) = (lock(&self.card.arrivals), Instant::now());
        let next = self.next(&arrivals).map(|(due, _)| due);
        let next = next.into_iter().chain(self.fences.iter().map(|(_, until)| *until)).min();
        let time = next.map(|due| due.saturating_duration_since(now));
        match (time, &self.card.news) {
            (Some(Duration::ZERO), _) => Armed::PollNow,
            (_, Some(news)) => Armed::Fd(news.as_fd().as_raw_fd(), time.unwrap_or(Duration::MAX)),
            // A frame that is posted after this and due earlier is polled late.
            _ => Armed::PollAfter(time.unwrap_or_default()),
        }
    }

    fn disarm(&mut self) {}

    fn fence(&mut self, peer: u32) {
        self.fences.push((peer, Instant::now() + DYING));
    }

    fn close(&mut self, _: Duration) -> Result<()> {
        // What was posted may still arrive, but its bytes are read for the last time now.
        self.leave_all();
        self.send_writes();
        lock(&self.card.registered).over = true;
        self.refuse_all();
        lock(&CARDS).remove(&self.number);
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
