//! A network of threads, for tests: ranks of one process that reach each other by frames only.
//!
//! A seed (`LLCL_WIRE_SEED`) says how late each frame comes, so frames overtake each other; none is
//! lost. A lane takes all of what is posted, or a part, or nothing. What differs between real
//! networks follows from the seed too ([`Nature`]): the size of frames, a descriptor to sleep on,
//! and whether a dead rank can be fenced.

use super::{Armed, CLASSES, Caps, Command, Event, Wire, WireLane};
use crate::fail;
use crate::util::socket::Wake;
use crate::util::status::{Result, Status};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Commands that a lane takes before it has sent the first of them.
const DEPTH: usize = 64;
/// Receives of each class; further frames stay with the network until one was given back.
const RECEIVES: usize = 32;
/// A rank that has died may be in the middle of a post for so long.
const DYING: Duration = Duration::from_micros(100);

/// What kind of network it is.
#[derive(Clone, Copy, Debug)]
pub struct Nature {
    /// What delays follow from.
    pub seed: u64,
    /// Most bytes of a frame.
    pub frame_most: usize,
    /// A thread can sleep on a descriptor.
    pub has_fd: bool,
    /// It can be said when nothing of a dead rank comes any more.
    pub can_fence: bool,
}

impl Nature {
    /// What a seed means.
    pub fn of(seed: u64) -> Nature {
        let frame_most = [512, 4096, 1 << 20][seed as usize % 3];
        Nature { seed, frame_most, has_fd: seed % 2 == 1, can_fence: !seed.is_multiple_of(4) }
    }

    /// As the environment has it.
    pub fn from_environment() -> Nature {
        let seed = std::env::var("LLCL_WIRE_SEED").ok().and_then(|seed| seed.parse().ok());
        Nature::of(seed.unwrap_or(1))
    }
}

/// What is on its way to one rank.
enum Comes {
    Frame {
        from: u32,
        answer_to: Arc<Card>,
        class: u32,
        bytes: Box<[u8]>,
    },
    /// The end of a command of its own.
    Done {
        tag: u64,
        peer: u32,
    },
}

/// When it comes; the second number makes keys differ.
type Due = (Instant, u64);

#[derive(Default)]
struct Inbox {
    /// Frames of each class, and behind them the ends of commands.
    coming: [BTreeMap<Due, Comes>; CLASSES + 1],
    over: bool,
}

impl Comes {
    /// In which of the queues it comes.
    fn queue(&self) -> usize {
        match self {
            Comes::Frame { class, .. } => (*class as usize).min(CLASSES - 1),
            Comes::Done { .. } => CLASSES,
        }
    }
}

/// The network card of one rank.
struct Card {
    inbox: Mutex<Inbox>,
    /// Where a thread can sleep on a descriptor.
    news: Option<Wake>,
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
            inbox: Mutex::default(),
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
        let inbox = lock(&self.card.inbox);
        let size = |comes: &Comes| match comes {
            Comes::Frame { bytes, .. } => Some(bytes.len()),
            Comes::Done { .. } => None,
        };
        let all = inbox.coming.iter().flat_map(BTreeMap::values).filter_map(size);
        all.fold((0, 0), |(count, sum), size| (count + 1, sum + size))
    }
}

impl Wire for Simulated {
    fn caps(&self) -> Caps {
        Caps { frame_most: self.nature.frame_most, can_fence: self.nature.can_fence }
    }

    fn card(&self) -> Result<Vec<u8>> {
        Ok(self.number.to_ne_bytes().into())
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
        let mut inbox = lock(&to.inbox);
        if !inbox.over {
            inbox.coming[comes.queue()].insert(key, comes);
            drop(inbox);
            if let Some(news) = &to.news {
                news.wake();
            }
        }
    }

    /// The first of the dead of whom nothing is on its way.
    fn fenced(&mut self) -> Option<Event> {
        let (inbox, now) = (lock(&self.card.inbox), Instant::now());
        let comes = |rank: u32| {
            let of = |comes: &Comes| matches!(comes, Comes::Frame { from, .. } if *from == rank);
            inbox.coming.iter().flat_map(BTreeMap::values).any(of)
        };
        let over = |(rank, until): &(u32, Instant)| now > *until && !comes(*rank);
        let (rank, _) = self.fences.remove(self.fences.iter().position(over)?);
        let event = if self.nature.can_fence { Event::FENCED } else { Event::UNFENCEABLE };
        Some(Event::about(event, rank))
    }

    /// The queue of what comes next and has a receive, and when it comes.
    fn next(&self, inbox: &Inbox) -> Option<(Instant, usize)> {
        let may = |queue: &usize| *queue == CLASSES || self.held[*queue] < RECEIVES;
        let first = |queue: usize| Some((inbox.coming[queue].first_key_value()?.0.0, queue));
        (0..=CLASSES).filter(may).filter_map(first).min()
    }

    fn event_of(&mut self, comes: Comes) -> Event {
        match comes {
            Comes::Done { tag, peer } => {
                self.under_way -= 1;
                Event { tag, ..Event::about(Event::DONE, peer) }
            }
            Comes::Frame { from, answer_to, class, bytes } => {
                self.peers.entry(from).or_insert(answer_to);
                self.serial += 1;
                let (frame, size) = (self.serial, bytes.len() as u64);
                let of = (class as usize).min(CLASSES - 1);
                self.held[of] += 1;
                let bytes = self.given.entry(frame).or_insert((of, bytes)).1.as_ptr();
                Event { frame, bytes, size, class, ..Event::about(Event::FRAME, from) }
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
            // SAFETY: as the caller promises: one piece, valid until its end is told.
            let bytes = unsafe {
                let piece = &*command.piece;
                std::slice::from_raw_parts(piece.address, piece.size as usize)
            };
            let (from, answer_to) = (self.me, self.card.clone());
            self.put(&to, Comes::Frame { from, answer_to, class, bytes: bytes.into() });
            self.under_way += 1;
            let own = self.card.clone();
            self.put(&own, Comes::Done { tag: command.tag, peer });
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
            let mut inbox = lock(&self.card.inbox);
            let due = self.next(&inbox).filter(|(due, _)| *due <= Instant::now());
            let comes = due.and_then(|(_, queue)| inbox.coming[queue].pop_first());
            drop(inbox);
            let comes = comes.map(|(_, comes)| comes);
            match comes.map(|comes| self.event_of(comes)).or_else(|| self.fenced()) {
                Some(event) if tell(event) => return count,
                Some(_) => {}
                None => return count,
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
        let (inbox, now) = (lock(&self.card.inbox), Instant::now());
        let next = self.next(&inbox).map(|(due, _)| due);
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
        // What was taken was copied.
        let mut inbox = lock(&self.card.inbox);
        inbox.over = true;
        inbox.coming = Default::default();
        lock(&CARDS).remove(&self.number);
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
