//! The hub of a machine, in a world that somebody else has started: a thread of the lowest rank there.
//! It lets in processes that know the secret, until every rank of the machine has come, and then
//! serves them until all have left.

use crate::bootstrap::client::lock;
use crate::bootstrap::hub::{Event, Hub};
use crate::bootstrap::log::Log;
use crate::util::rendezvous::{Secret, accept};
use crate::util::socket::{self, Wake, interest};
use crate::util::status::Result;
use crate::util::thread::{Thread, spawn_quiet};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The hub's buffers are on the heap.
const STACK: usize = 128 << 10;
/// How long that rank, when it has left, serves those that are about to leave.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long a process may run on that has closed its connection; as under `llcl-run`.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long it waits before it lets somebody in again where that has failed, in milliseconds.
const PAUSE_MS: i32 = 10;
/// Most connections at one time over which no rank has sent its hello.
const STRANGERS: usize = 64;

/// Takes a packet to the hub in the process of that rank.
pub type Carry = Box<dyn Fn(u32, Vec<u8>) + Send + Sync>;

/// What other threads of the process have for the hub's.
#[derive(Default)]
struct Orders {
    /// The hub of each rank; None: not known yet.
    hubs: Option<Arc<[u32]>>,
    /// What the ranks of other machines have published.
    cards: Option<Vec<Vec<u8>>>,
    carry: Option<Carry>,
    /// Packets of other hubs.
    relayed: Vec<(u32, Vec<u8>)>,
    leaving: bool,
    /// Nothing leads to the other hubs any more.
    wire_failed: bool,
}

/// See [`Orders`].
pub struct HubRequests {
    wake: Wake,
    orders: Mutex<Orders>,
}

/// Dropped when the rank in whose process the hub runs has left.
pub struct Host {
    hub_requests: Arc<HubRequests>,
    thread: Option<Thread>,
}

/// The first packet of a rank. A descriptor comes with it.
pub(super) fn hello(secret: &Secret, rank: u32) -> Vec<u8> {
    secret.iter().copied().chain(rank.to_ne_bytes()).collect()
}

const HELLO: usize = size_of::<Secret>() + 4;

impl Host {
    /// Starts the thread in the process of rank `me` of `size`; answers this rank's end.
    pub(super) fn start(
        listener: OwnedFd,
        secret: Secret,
        (me, size): (u32, u32),
    ) -> Result<(OwnedFd, Host)> {
        let (ours, theirs) = socket::pair()?;
        let hub_requests = Arc::new(HubRequests { wake: Wake::new()?, orders: Mutex::default() });
        let mut seats: Vec<Option<OwnedFd>> = (0..size).map(|_| None).collect();
        seats[me as usize] = Some(ours);
        let door = Door { listener, secret, seats, strangers: Vec::new() };
        let orders = hub_requests.clone();
        let thread = spawn_quiet("llcl-hub", STACK, move || {
            if let Some((seats, hubs)) = door.all_seated(me, &orders) {
                let several = hubs.iter().any(|hub| *hub != me);
                let log = several.then(|| Log::new(me, hubs));
                if let Ok(hub) = Hub::with(seats, log) {
                    serve(hub, me, &orders);
                }
            }
        })?;
        Ok((theirs, Host { hub_requests, thread: Some(thread) }))
    }

    /// By which other threads reach the hub, until it ends.
    pub(super) fn hub_requests(&self) -> Arc<HubRequests> {
        self.hub_requests.clone()
    }
}

impl HubRequests {
    /// Tells the hub which rank's process has the hub of each rank.
    pub(super) fn set_hubs(&self, hubs: Arc<[u32]>) {
        self.give(|orders| orders.hubs = Some(hubs));
    }

    /// Tells it what the ranks of other machines have published.
    pub(in crate::bootstrap) fn set_cards(&self, cards: Vec<Vec<u8>>) {
        self.give(|orders| orders.cards = Some(cards));
    }

    /// Tells it what takes packets to other hubs.
    pub(in crate::bootstrap) fn carry_by(&self, carry: Carry) {
        self.give(|orders| orders.carry = Some(carry));
    }

    /// Tells it that nothing leads to the other hubs any more: it ends.
    pub(in crate::bootstrap) fn wire_failed(&self) {
        self.give(|orders| orders.wire_failed = true);
    }

    /// A packet of another hub.
    pub(in crate::bootstrap) fn relayed(&self, from: u32, packet: Vec<u8>) {
        self.give(|orders| orders.relayed.push((from, packet)));
    }

    fn give(&self, give: impl FnOnce(&mut Orders)) {
        give(&mut lock(&self.orders));
        self.wake.wake();
    }

    fn take<T>(&self, take: impl FnOnce(&mut Orders) -> T) -> T {
        self.wake.clear();
        take(&mut lock(&self.orders))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.hub_requests.give(|orders| orders.leaving = true);
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

struct Door {
    listener: OwnedFd,
    secret: Secret,
    seats: Vec<Option<OwnedFd>>,
    /// Connections over which no rank has sent its hello yet.
    strangers: Vec<OwnedFd>,
}

/// Sockets to the ranks of this machine, and the hub of each rank.
type Seated = (Vec<Option<OwnedFd>>, Arc<[u32]>);

impl Door {
    /// Lets all ranks of this machine in. None: rank `me` leaves before.
    fn all_seated(mut self, me: u32, hub_requests: &HubRequests) -> Option<Seated> {
        // Nobody could be let in, as where this process has no descriptor left.
        let mut refused = false;
        loop {
            let (hubs, leaving) = hub_requests.take(|orders| (orders.hubs.clone(), orders.leaving));
            if leaving {
                return None;
            }
            let all_here = |hubs: &Arc<[u32]>| {
                hubs.iter().zip(&self.seats).all(|(hub, seat)| *hub != me || seat.is_some())
            };
            if let Some(hubs) = hubs.filter(all_here) {
                return Some((self.seats, hubs));
            }
            let mut waits = vec![interest(hub_requests.wake.as_fd(), libc::POLLIN)];
            let room = self.strangers.len() < STRANGERS && !refused;
            let patience = if refused { PAUSE_MS } else { -1 };
            waits.push(interest(self.listener.as_fd(), if room { libc::POLLIN } else { 0 }));
            waits.extend(self.strangers.iter().map(|it| interest(it.as_fd(), libc::POLLIN)));
            socket::poll(&mut waits, patience).ok()?;
            refused = false;
            for at in (0..self.strangers.len()).rev().filter(|at| waits[at + 2].revents != 0) {
                let stranger = self.strangers.swap_remove(at);
                self.seat(stranger);
            }
            if waits[1].revents != 0 {
                match accept(self.listener.as_fd()) {
                    Ok(stranger) => self.strangers.push(stranger),
                    Err(_) => refused = true,
                }
            }
        }
    }

    /// Gives a rank its seat. The connection of anybody else is closed.
    fn seat(&mut self, stranger: OwnedFd) {
        let mut buffer = [0; HELLO + 1];
        let said = socket::receive(stranger.as_fd(), &mut buffer);
        // Without its descriptor a rank could not reach this one's memory.
        let Ok((said, Some(_))) = said else { return };
        let Some((_, rank)) = buffer[..said].split_last_chunk() else { return };
        let rank = u32::from_ne_bytes(*rank);
        if let Some(seat @ None) = self.seats.get_mut(rank as usize)
            && buffer[..said] == hello(&self.secret, rank)[..]
        {
            *seat = Some(stranger);
        }
    }
}

fn serve(mut hub: Hub, me: u32, hub_requests: &HubRequests) {
    let (mut until, mut carry): (Option<Instant>, Option<Carry>) = (None, None);
    // Ranks that have closed their connections, and until when their processes may run on.
    let mut closed: VecDeque<(Instant, u32)> = VecDeque::new();
    loop {
        if let Some(carry) = &carry {
            hub.take_relays().into_iter().for_each(|(to, packet)| carry(to, packet));
        }
        if hub.is_over() {
            return;
        }
        let now = Instant::now();
        while closed.front().is_some_and(|(at, _)| *at <= now) {
            closed.pop_front().map(|(_, rank)| hub.evict(rank));
        }
        if until.is_some_and(|until| until <= now) {
            return;
        }
        let next = until.into_iter().chain(closed.front().map(|(at, _)| *at)).min();
        let wait = next.map_or(-1, |at| at.duration_since(now).as_millis() as i32 + 1);
        let mut waits = [
            interest(hub.as_fd(), libc::POLLIN),
            interest(hub_requests.wake.as_fd(), libc::POLLIN),
        ];
        if socket::poll(&mut waits, wait).is_err() {
            return;
        }
        let Ok(mut events) = hub.turn() else { return };
        if waits[1].revents != 0 {
            let orders =
                hub_requests.take(|orders| Orders { hubs: None, ..std::mem::take(orders) });
            if orders.wire_failed {
                return;
            }
            if orders.leaving {
                until.get_or_insert(Instant::now() + FAREWELL);
            }
            carry = orders.carry.or(carry);
            if let Some(cards) = &orders.cards {
                hub.far_cards(cards);
            }
            for (from, packet) in &orders.relayed {
                events.extend(hub.relayed(*from, packet));
            }
        }
        for event in events {
            match event {
                Event::Abort { rank, code, grace_ms } => {
                    if let Some(carry) = &carry {
                        hub.take_relays().into_iter().for_each(|(to, packet)| carry(to, packet));
                    }
                    end_all(&mut hub, me, (rank, code, grace_ms))
                }
                Event::Closed { rank } => closed.push_back((Instant::now() + LAST_WORDS, rank)),
                // The hub has killed it.
                Event::Nonsense { .. } => {}
            }
        }
    }
}

/// Ends the processes of all ranks of this machine, this one last. The rank that wants it ends by
/// itself, for as long as the others may take.
fn end_all(hub: &mut Hub, me: u32, (rank, code, grace_ms): (u32, i32, u32)) -> ! {
    let until = Instant::now() + Duration::from_millis(grace_ms.into());
    hub.signal_all_but(&[me, rank], libc::SIGTERM);
    while Instant::now() < until && hub.signal_all_but(&[me], 0) {
        let left = until.saturating_duration_since(Instant::now()).as_millis() as i32;
        let _ = socket::poll(&mut [interest(hub.as_fd(), libc::POLLIN)], left + 1);
        // It notices their ends; what else they say changes nothing any more.
        let _ = hub.turn();
    }
    hub.signal_all_but(&[me], libc::SIGKILL);
    if rank == me {
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }
    // SAFETY: ends the process without running anything of the program.
    unsafe { libc::_exit(code) }
}
