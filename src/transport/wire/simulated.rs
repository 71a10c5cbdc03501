//! A network of threads, for tests: ranks of one process that reach each other by packets only.
//!
//! Packets come late and in any order, as a seed says (`LLCL_WIRE_SEED`); none is lost. Nobody
//! changes a word of another rank: credits are granted by messages ([`super::grants`]). Each rank
//! has a thread that takes in its packets and puts frames into the rank's own slots, as the card
//! and the agent of a real network do.

use super::grants::{Grants, Line, Out, Packet, line_of};
use super::packet::Copied;
use crate::fail;
use crate::transport::frame::{Class, Frame};
use crate::util::status::Result;
use crate::util::thread::{Thread, spawn_quiet};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long the thread waits before it tries again to put what has come into full slots.
const AGAIN: Duration = Duration::from_micros(100);
/// How long it sleeps otherwise, at most.
const SLEEP: Duration = Duration::from_millis(50);
const STACK: usize = 256 << 10;

/// Puts a frame of a rank into this rank's slots. False: there is none for it now.
pub type Deliver = Box<dyn Fn(u32, Class, &Frame) -> bool + Send>;

/// What has been sent to one rank and has not come.
#[derive(Default)]
struct Inbox {
    /// By the time when it comes; the second number makes keys differ.
    packets: BTreeMap<(Instant, u64), Sent>,
    /// Who has died, and the time after which nothing of it can come.
    dead: HashMap<u32, Option<Instant>>,
    over: bool,
}

/// A packet with its sender, which may not have been contacted from here.
struct Sent {
    from: u32,
    answer_to: Arc<Endpoint>,
    packet: Packet,
}

/// Where packets for one rank go.
struct Endpoint {
    inbox: Mutex<Inbox>,
    news: Condvar,
}

/// The endpoints of the process, by number.
static ENDPOINTS: Mutex<BTreeMap<u64, Weak<Endpoint>>> = Mutex::new(BTreeMap::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of one rank.
pub struct Wire {
    number: u64,
    shared: Arc<Shared>,
    thread: Option<Thread>,
}

struct Shared {
    endpoint: Arc<Endpoint>,
    grants: Mutex<Grants>,
    peers: Mutex<HashMap<u32, Arc<Endpoint>>>,
    /// Frames of this rank that have not been delivered.
    under_way: Arc<AtomicUsize>,
    random: AtomicU64,
    serial: AtomicU64,
    me: u32,
}

impl Shared {
    /// How late the next packet comes: most at once, some late, few very late.
    fn delay(&self) -> Duration {
        // A generator of Marsaglia's: what two threads do at once only changes the series.
        let mut now = self.random.load(Ordering::Relaxed);
        now ^= now << 13;
        now ^= now >> 7;
        now ^= now << 17;
        self.random.store(now, Ordering::Relaxed);
        Duration::from_nanos(match now % 64 {
            0 => now >> 8 & 0xf_ffff,
            1..16 => now >> 8 & 0xffff,
            _ => now >> 8 & 0xfff,
        })
    }

    fn post(&self, packets: Out) {
        for (to, packet) in packets {
            let Some(endpoint) = lock(&self.peers).get(&to).cloned() else { continue };
            let due = Instant::now() + self.delay();
            let serial = self.serial.fetch_add(1, Ordering::Relaxed) << 12 | u64::from(self.me);
            let mut inbox = lock(&endpoint.inbox);
            if inbox.over {
                continue;
            }
            let (from, answer_to) = (self.me, self.endpoint.clone());
            inbox.packets.insert((due, serial), Sent { from, answer_to, packet });
            drop(inbox);
            endpoint.news.notify_one();
        }
    }

    /// What is due now; waits for it, at most until `limit`.
    fn receive(&self, limit: Instant) -> Option<Vec<Sent>> {
        let mut inbox = lock(&self.endpoint.inbox);
        loop {
            let now = Instant::now();
            let later = inbox.packets.split_off(&(now, u64::MAX));
            let due = std::mem::replace(&mut inbox.packets, later);
            if inbox.over {
                return None;
            }
            if !due.is_empty() || now >= limit {
                return Some(due.into_values().collect());
            }
            let next = inbox.packets.keys().next().map_or(limit, |(due, _)| (*due).min(limit));
            let wait = next.saturating_duration_since(now).max(Duration::from_micros(1));
            inbox = self
                .endpoint
                .news
                .wait_timeout(inbox, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// The dead of whom nothing is on its way.
    fn fenced(&self) -> Vec<u32> {
        let mut inbox = lock(&self.endpoint.inbox);
        let Inbox { packets, dead, .. } = &mut *inbox;
        let comes = |rank: u32| packets.values().any(|sent| sent.from == rank);
        let now = Instant::now();
        let found: Vec<u32> = dead
            .iter()
            .filter(|(rank, until)| until.is_some_and(|until| now > until) && !comes(**rank))
            .map(|(rank, _)| *rank)
            .collect();
        for rank in &found {
            dead.insert(*rank, None);
        }
        found
    }

    fn run(&self, deliver: &Deliver) {
        let mut stuck = false;
        while let Some(packets) = self.receive(Instant::now() + if stuck { AGAIN } else { SLEEP }) {
            let mut out = Out::new();
            let mut set_aside = Vec::new();
            {
                let mut grants = lock(&self.grants);
                for Sent { from, answer_to, packet } in packets {
                    lock(&self.peers).entry(from).or_insert(answer_to);
                    set_aside.extend(grants.take(from, packet, &mut out).map(|it| (from, it)));
                }
                self.fenced().into_iter().for_each(|rank| grants.fenced(rank));
                grants.serve(|from, it| deliver(from, it.class, &it.frame()), &mut out);
                stuck = grants.is_stuck();
            }
            for (from, frame) in set_aside {
                deliver(from, frame.class, &frame.frame());
            }
            self.post(out);
        }
    }
}

/// Whether the environment asks for this network.
pub fn is_wanted() -> Result<bool> {
    match std::env::var("LLCL_TRANSPORT") {
        Err(_) => Ok(false),
        Ok(name) if name == "simulated" => Ok(true),
        Ok(name) => fail!(ERR_INVALID, "LLCL_TRANSPORT is {name}, expected simulated"),
    }
}

fn seed() -> u64 {
    std::env::var("LLCL_WIRE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

impl Wire {
    /// The end of rank `me`; frames that come are given to `deliver`.
    pub fn join(me: u32, deliver: Deliver) -> Result<Wire> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let endpoint = Arc::new(Endpoint { inbox: Mutex::default(), news: Condvar::new() });
        lock(&ENDPOINTS).insert(number, Arc::downgrade(&endpoint));
        let random = (seed() << 20 | u64::from(me) << 1 | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let shared = Arc::new(Shared {
            endpoint,
            grants: Mutex::default(),
            peers: Mutex::default(),
            under_way: Arc::default(),
            random: AtomicU64::new(random),
            serial: AtomicU64::new(0),
            me,
        });
        let runs = shared.clone();
        let thread = spawn_quiet("llcl-wire", STACK, move || runs.run(&deliver))?;
        Ok(Wire { number, shared, thread: Some(thread) })
    }

    /// What peers need to know of this end.
    pub fn card(&self) -> [u8; 8] {
        self.number.to_ne_bytes()
    }

    /// A peer has shown its card.
    pub fn connect(&self, peer: u32, card: &[u8]) -> Result<()> {
        let number = card.try_into().map_or(0, u64::from_ne_bytes);
        let Some(endpoint) = lock(&ENDPOINTS).get(&number).and_then(Weak::upgrade) else {
            fail!(ERR_SYSTEM, "rank {peer} has no end of the simulated network in this process");
        };
        lock(&self.shared.peers).insert(peer, endpoint);
        Ok(())
    }

    /// See `Carrier::has_credit`.
    pub fn has_credit(&self, to: u32, class: Class) -> bool {
        line_of(class, 0, 0).is_none_or(|line| self.has_room(to, line))
    }

    fn has_room(&self, to: u32, line: Line) -> bool {
        lock(&self.shared.grants).has_room(to, line)
    }

    /// See `Carrier::put`. `medium`: most bytes of a payload that the peer takes in a small slot.
    pub fn put(&self, to: u32, class: Class, frame: &Frame, medium: usize) -> bool {
        let copy = || Copied::of(class, frame, &self.shared.under_way);
        let mut out = Out::new();
        match line_of(class, frame.payload.len(), medium) {
            None => out.push((to, Packet::Frame(None, copy()))),
            Some(line) => {
                let mut grants = lock(&self.shared.grants);
                if !grants.has_room(to, line) {
                    return false;
                }
                grants.send(to, line, copy(), &mut out);
            }
        }
        self.shared.post(out);
        true
    }

    /// Whether all frames of this rank have been delivered.
    pub fn is_idle(&self) -> bool {
        self.shared.under_way.load(Ordering::Acquire) == 0
    }

    /// A peer has died.
    pub fn mark_dead(&self, peer: u32) {
        lock(&self.shared.grants).bury(peer);
        // What it has posted lies in the inbox already, or comes from a thread that is in the
        // middle of it.
        lock(&self.shared.endpoint.inbox).dead.entry(peer).or_insert(Some(Instant::now() + AGAIN));
        self.shared.endpoint.news.notify_one();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let mut inbox = lock(&self.shared.endpoint.inbox);
        inbox.over = true;
        inbox.packets.clear();
        drop(inbox);
        self.shared.endpoint.news.notify_one();
        if let Some(thread) = self.thread.take() {
            thread.join_until(Instant::now() + Duration::from_secs(10));
        }
        lock(&ENDPOINTS).remove(&self.number);
    }
}
