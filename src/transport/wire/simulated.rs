//! A network of threads, for tests: ranks of one process that reach each other by frames, and, as
//! the seed says, by reads, writes and atomics in each other's memory.
//!
//! A seed (`LLCL_WIRE_SEED`) says how late each frame, access and end comes, so they overtake each
//! other; none is lost. A lane takes all of what is posted, or a part, or nothing. What differs
//! between real networks follows from the seed too ([`Nature`]), or is said behind it:
//! `7:remote=1`.
//!
//! An access is executed at its time by whoever polls the lane that it was posted to; no thread of
//! the memory's owner takes part ([`memory`]). Writes of a rank that goes before their time are on
//! their way still: they come late, until the fence.

use super::{Armed, CLASSES, Caps, Command, Event, Key, Wire, WireLane};
use crate::fail;
use crate::util::socket::Wake;
use crate::util::status::{Result, Status};
use accesses::Begun;
use memory::{Access, Registered};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

mod accesses;
mod memory;
mod nature;
pub use nature::Nature;

/// Commands that a lane takes before it has sent the first of them.
const DEPTH: usize = 64;
/// Receives of each class; further frames stay with the network until one was given back.
const RECEIVES: usize = 32;
/// A rank that has died may be in the middle of a post for so long.
const DYING: Duration = Duration::from_micros(100);

/// What is on its way to one rank.
enum Comes {
    Frame {
        from: u32,
        answer_to: Arc<Card>,
        class: u32,
        bytes: Box<[u8]>,
    },
    /// The time of an access of its own.
    Due(u64),
    /// A write of a rank that has gone since.
    Late {
        from: u32,
        access: Access,
        bytes: Box<[u8]>,
    },
    /// The end of a command of its own: tag, peer, and what an atomic fetched.
    Done {
        tag: u64,
        peer: u32,
        status: Status,
        fetched: u64,
    },
}

/// When it comes; the second number makes keys differ.
type Due = (Instant, u64);

#[derive(Default)]
struct Arrivals {
    /// Frames of each class, and behind them the ends of commands.
    coming: [BTreeMap<Due, Comes>; CLASSES + 1],
    over: bool,
}

impl Comes {
    /// In which of the queues it comes.
    fn queue(&self) -> usize {
        match self {
            Comes::Frame { class, .. } => (*class as usize).min(CLASSES - 1),
            _ => CLASSES,
        }
    }
}

/// The network card of one rank.
struct Card {
    arrivals: Mutex<Arrivals>,
    /// Where a thread can sleep on a descriptor.
    news: Option<Wake>,
    registered: Mutex<Registered>,
}

/// The cards of the process, by number.
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
            news: if nature.has_fd { Some(Wake::new()?) } else { None },
        });
        lock(&CARDS).insert(number, Arc::downgrade(&card));
        Ok(Simulated { me, nature, number, card })
    }
}

#[cfg(test)]
impl Simulated {
    /// Frames that are on their way to this rank, and their bytes.
    pub fn coming(&self) -> (usize, usize) {
        let arrivals = lock(&self.card.arrivals);
        let size = |comes: &Comes| match comes {
            Comes::Frame { bytes, .. } => Some(bytes.len()),
            _ => None,
        };
        let all = arrivals.coming.iter().flat_map(BTreeMap::values).filter_map(size);
        all.fold((0, 0), |(count, sum), size| (count + 1, sum + size))
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

    fn deregister(&self, key: &Key) -> Result<()> {
        lock(&self.card.registered).remove(key);
        Ok(())
    }

    fn lane(&self) -> Result<Box<dyn WireLane>> {
        let Simulated { me, nature, number, .. } = *self;
        let random =
            (nature.seed << 20 | u64::from(me) << 1 | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Ok(Box::new(Lane {
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
            under_way: 0,
            random,
            serial: 0,
        }))
    }
}

struct Lane {
    me: u32,
    nature: Nature,
    number: u64,
    card: Arc<Card>,
    peers: HashMap<u32, Arc<Card>>,
    /// To be told of.
    connected: Vec<u32>,
    /// The dead, and the time after which they send nothing.
    fences: Vec<(u32, Instant)>,
    /// Frames that were not given back, with their class.
    given: HashMap<u64, (usize, Box<[u8]>)>,
    /// How many they are, of each class.
    held: [usize; CLASSES],
    accesses: HashMap<u64, Begun>,
    /// Commands of which the end was not told.
    under_way: usize,
    random: u64,
    serial: u64,
}

impl Lane {
    /// A generator of Marsaglia's.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// When the next frame comes: most at once, some late, few very late.
    fn due(&mut self) -> Instant {
        let now = self.random();
        Instant::now()
            + Duration::from_nanos(match now % 64 {
                0 => now >> 8 & 0xf_ffff,
                1..16 => now >> 8 & 0xffff,
                _ => now >> 8 & 0xfff,
            })
    }

    /// How many of so many commands are taken.
    fn taken(&mut self, count: usize) -> usize {
        let now = self.random();
        let taken = match now % 16 {
            0 => 0,
            1..4 => (now >> 8) as usize % (count + 1),
            _ => count,
        };
        taken.min(DEPTH - self.under_way)
    }

    fn put(&mut self, to: &Card, comes: Comes) {
        self.serial += 1;
        let key = (self.due(), self.serial << 12 | u64::from(self.me));
        let mut arrivals = lock(&to.arrivals);
        if !arrivals.over {
            arrivals.coming[comes.queue()].insert(key, comes);
            drop(arrivals);
            if let Some(news) = &to.news {
                news.wake();
            }
        }
    }

    fn put_own(&mut self, comes: Comes) {
        let own = self.card.clone();
        self.put(&own, comes);
    }

    /// The first of the dead of whom nothing is on its way, when all that was posted to it has
    /// ended.
    fn fenced(&mut self) -> Option<Event> {
        let (arrivals, now) = (lock(&self.card.arrivals), Instant::now());
        let comes = |rank: u32| {
            let of = |comes: &Comes| match comes {
                Comes::Frame { from, .. } | Comes::Late { from, .. } => *from == rank,
                Comes::Done { peer, .. } => *peer == rank,
                Comes::Due(number) => self.accesses.get(number).is_some_and(|it| it.peer == rank),
            };
            arrivals.coming.iter().flat_map(BTreeMap::values).any(of)
        };
        let over = |(rank, until): &(u32, Instant)| now > *until && !comes(*rank);
        let at = self.fences.iter().position(over)?;
        drop(arrivals);
        let rank = self.fences[at].0;
        let left = self.accesses.iter().find(|(_, it)| it.peer == rank).map(|(number, _)| *number);
        if let Some(begun) = left.and_then(|number| self.accesses.remove(&number)) {
            self.under_way -= 1;
            let (tag, status) = (begun.tag, Status::ERR_PEER_DEAD.0);
            return Some(Event { tag, status, ..Event::about(Event::DONE, rank) });
        }
        self.fences.remove(at);
        let can_fence = self.nature.caps.can_fence;
        Some(Event::about(if can_fence { Event::FENCED } else { Event::UNFENCEABLE }, rank))
    }

    /// The queue of what comes next and has a receive, and when it comes.
    fn next(&self, arrivals: &Arrivals) -> Option<(Instant, usize)> {
        let may = |queue: &usize| *queue == CLASSES || self.held[*queue] < RECEIVES;
        let first = |queue: usize| Some((arrivals.coming[queue].first_key_value()?.0.0, queue));
        (0..=CLASSES).filter(may).filter_map(first).min()
    }

    /// What it means for the endpoint that something has come; None: nothing.
    fn event_of(&mut self, comes: Comes) -> Option<Event> {
        match comes {
            Comes::Done { tag, peer, status, fetched } => {
                self.under_way -= 1;
                let status = status.0;
                Some(Event { tag, status, fetched, ..Event::about(Event::DONE, peer) })
            }
            Comes::Due(number) => {
                self.execute(number);
                None
            }
            Comes::Late { access, mut bytes, .. } => {
                let registered = lock(&self.card.registered);
                // SAFETY: as in execute(); the bytes are here.
                unsafe { registered.execute(&access, bytes.as_mut_ptr(), bytes.len() as u64) };
                None
            }
            Comes::Frame { from, answer_to, class, bytes } => {
                self.peers.entry(from).or_insert(answer_to);
                self.serial += 1;
                let (frame, size) = (self.serial, bytes.len() as u64);
                let of = (class as usize).min(CLASSES - 1);
                self.held[of] += 1;
                let bytes = self.given.entry(frame).or_insert((of, bytes)).1.as_ptr();
                Some(Event { frame, bytes, size, class, ..Event::about(Event::FRAME, from) })
            }
        }
    }
}

impl WireLane for Lane {
    fn connect(&mut self, peer: u32, card: &[u8]) -> Result<()> {
        let number = card.try_into().map_or(0, u64::from_ne_bytes);
        let Some(card) = lock(&CARDS).get(&number).and_then(Weak::upgrade) else {
            fail!(ERR_SYSTEM, "rank {peer} has no end of the simulated network in this process");
        };
        self.peers.insert(peer, card);
        self.connected.push(peer);
        Ok(())
    }

    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status) {
        let Some(to) = self.peers.get(&peer).cloned() else {
            return (0, Status::RETRY_CONNECTING);
        };
        let taken = self.taken(commands.len());
        for command in &commands[..taken] {
            self.under_way += 1;
            if command.op != Command::FRAME {
                // SAFETY: passed on to the caller.
                unsafe { self.begin(peer, &to, command) };
                continue;
            }
            // SAFETY: as the caller promises: one piece, valid until its end is told.
            let bytes = unsafe {
                let piece = &*command.piece;
                std::slice::from_raw_parts(piece.address, piece.size as usize)
            };
            let (from, answer_to) = (self.me, self.card.clone());
            self.put(&to, Comes::Frame { from, answer_to, class, bytes: bytes.into() });
            let (tag, status) = (command.tag, Status::OK);
            self.put_own(Comes::Done { tag, peer, status, fetched: 0 });
        }
        let why = if taken == commands.len() { Status::OK } else { Status::RETRY_QUEUE_FULL };
        (taken, why)
    }

    fn poll(&mut self, events: &mut [Event]) -> usize {
        let mut count = 0;
        let mut tell = |event: Event| {
            events[count] = event;
            count += 1;
            count == events.len()
        };
        while let Some(peer) = self.connected.pop() {
            if tell(Event::about(Event::CONNECTED, peer)) {
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
            if event.is_some_and(&mut tell) {
                return count;
            }
        }
    }

    fn give_back(&mut self, frame: u64) {
        if let Some((class, _)) = self.given.remove(&frame) {
            self.held[class] -= 1;
        }
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
            // What is sent later and comes before is late.
            _ => Armed::PollAfter(time.unwrap_or_default()),
        }
    }

    fn disarm(&mut self) {}

    fn fence(&mut self, peer: u32) {
        self.fences.push((peer, Instant::now() + DYING));
    }

    fn close(&mut self, _: Duration) -> Result<()> {
        // Frames were copied when they were taken; of writes that is done now.
        let writes = std::mem::take(&mut self.accesses);
        for Begun { to, access, local, size, .. } in writes.into_values() {
            if access.is_write() {
                // SAFETY: the poster's side is valid until this call has returned.
                let bytes = unsafe { std::slice::from_raw_parts(local, size as usize) };
                self.put(&to, Comes::Late { from: self.me, access, bytes: bytes.into() });
            }
        }
        lock(&self.card.registered).over = true;
        let mut arrivals = lock(&self.card.arrivals);
        arrivals.over = true;
        arrivals.coming = Default::default();
        lock(&CARDS).remove(&self.number);
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
