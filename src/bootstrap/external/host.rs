//! The hub of a machine in a world of another launcher: a thread in the process of the lowest rank
//! there. It accepts processes that know the secret, until every rank of the machine has connected.
//! Then it serves the ranks until all have left, also after the rank in whose process it runs. It
//! has everything that it uses to itself, so it may go on when that rank's context is gone. But
//! where there are several machines it reaches the other hubs by that context only, and so ends
//! soon after it.

use crate::bootstrap::client::{Meanwhile, lock};
use crate::bootstrap::hub::{Event, Hub};
use crate::bootstrap::log::Log;
use crate::fail;
use crate::util::rendezvous::{Secret, accept};
use crate::util::socket::{self, Wake, interest};
use crate::util::status::{Error, Result};
use crate::util::thread::{Thread, spawn_quiet};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

mod end;
use end::end_all;

/// The hub's buffers are on the heap.
const STACK: usize = 128 << 10;
/// How long its rank waits for the others to leave, and where there are several machines, how long
/// the hub goes on after its own rank has left.
pub(in crate::bootstrap) const LEAVE_GRACE: Duration = Duration::from_secs(2);
/// How long a process may go on after it has closed its connection; as under `llcl-run`.
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// How long leave() sleeps between two calls of the function that polls meanwhile.
const NAP: Duration = Duration::from_micros(100);
/// How often the hub of rank 0 and each other hub send each other a pulse. If the network refuses
/// it, they learn of the death of a process with a hub, of which nobody else may tell.
const PULSE: Duration = Duration::from_secs(1);
/// Most connections at one time over which no rank has sent its hello.
const MOST_UNKNOWN: usize = 64;

/// What the hub in this process tells the wire about the hub in the process of another rank.
pub enum Relay {
    /// It gets this packet.
    Packet(Vec<u8>),
    /// It gets a frame that says nothing, unless another one is under way to its process.
    Pulse,
    /// Nothing more is expected of it: it has ended, or the hub in this process ends.
    Over,
}

/// A function that tells the wire about the hub in the process of that rank.
pub type Carry = Box<dyn Fn(u32, Relay) + Send + Sync>;

/// Requests of other threads of the process to the hub's thread.
#[derive(Default)]
struct Pending {
    /// The hub of each rank; None: not known yet.
    hubs: Option<Arc<[u32]>>,
    /// The cards of the ranks of other machines.
    cards: Option<Vec<Vec<u8>>>,
    carry: Option<Carry>,
    /// Packets of other hubs.
    relayed: Vec<(u32, Vec<u8>)>,
    /// Ranks whose processes have ended, or which the wire cannot reach any more.
    lost: Vec<u32>,
    leaving: bool,
    /// The wire has failed: the other hubs cannot be reached any more.
    wire_failed: bool,
    /// The hub has ended, for this reason, before it served a rank.
    failure: Option<Error>,
}

/// See [`Pending`].
pub struct HubRequests {
    wake: Wake,
    pending: Mutex<Pending>,
}

/// The hub's thread, for the rank in whose process it runs. If it is dropped without leave(), the
/// thread goes on as after leave().
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
        let hub_requests = Arc::new(HubRequests { wake: Wake::new()?, pending: Mutex::default() });
        let mut connections: Vec<Option<OwnedFd>> = (0..size).map(|_| None).collect();
        connections[me as usize] = Some(ours);
        let acceptor = Acceptor { listener, secret, connections, unknown: Vec::new() };
        let requests = hub_requests.clone();
        let thread = spawn_quiet("llcl-hub", STACK, move || {
            // If this fails, all connections are closed, so every rank of this machine notices it.
            if let Err(error) = run(acceptor, me, &requests) {
                lock(&requests.pending).failure = Some(error);
            }
        })?;
        Ok((theirs, Host { hub_requests, thread: Some(thread) }))
    }

    /// The object through which other threads reach the hub, until it ends.
    pub(super) fn hub_requests(&self) -> Arc<HubRequests> {
        self.hub_requests.clone()
    }

    /// Ends the hub, which does not answer its own rank. Returns the reason if the hub could not
    /// begin.
    pub(in crate::bootstrap) fn failure(self) -> Option<Error> {
        let requests = self.hub_requests();
        self.leave(Some(Instant::now() + LEAVE_GRACE), None);
        lock(&requests.pending).failure.take()
    }

    /// The rank in whose process the hub runs has left. Waits for the end of the hub until `limit`
    /// at most: if the process ends before the hub, the other ranks of this machine count as dead.
    /// None: waits until the hub has ended, which it does soon where there are several machines,
    /// and calls `meanwhile` again and again: perhaps no other thread may poll the wire that brings
    /// the hub its packets.
    pub(in crate::bootstrap) fn leave(
        mut self,
        limit: Option<Instant>,
        meanwhile: Option<&Meanwhile>,
    ) {
        self.hub_requests.give(|pending| pending.leaving = true);
        let Some(thread) = self.thread.take() else { return };
        match (limit, meanwhile) {
            // If it goes on, it is detached.
            (Some(limit), _) => drop(thread.join_until(limit)),
            (None, Some(meanwhile)) => {
                while !thread.has_ended() {
                    meanwhile();
                    std::thread::sleep(NAP);
                }
                thread.join();
            }
            (None, None) => thread.join(),
        }
    }
}

impl HubRequests {
    /// Tells the hub, for each rank, the rank in whose process its hub runs.
    pub(super) fn set_hubs(&self, hubs: Arc<[u32]>) {
        self.give(|pending| pending.hubs = Some(hubs));
    }

    /// Gives it the cards of the ranks of other machines.
    pub(in crate::bootstrap) fn set_cards(&self, cards: Vec<Vec<u8>>) {
        self.give(|pending| pending.cards = Some(cards));
    }

    /// Gives it the function that sends packets to other hubs.
    pub(in crate::bootstrap) fn carry_by(&self, carry: Carry) {
        self.give(|pending| pending.carry = Some(carry));
    }

    /// Tells it that the wire has failed: it ends.
    pub(in crate::bootstrap) fn wire_failed(&self) {
        self.give(|pending| pending.wire_failed = true);
    }

    /// Tells it that the process of a rank has ended, or that the wire cannot reach it any more.
    pub(in crate::bootstrap) fn lost(&self, rank: u32) {
        self.give(|pending| pending.lost.push(rank));
    }

    /// A packet of another hub.
    pub(in crate::bootstrap) fn relayed(&self, from: u32, packet: Vec<u8>) {
        self.give(|pending| pending.relayed.push((from, packet)));
    }

    fn give(&self, give: impl FnOnce(&mut Pending)) {
        give(&mut lock(&self.pending));
        self.wake.wake();
    }

    fn take<T>(&self, take: impl FnOnce(&mut Pending) -> T) -> T {
        self.wake.clear();
        take(&mut lock(&self.pending))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.hub_requests.give(|pending| pending.leaving = true);
    }
}

struct Acceptor {
    listener: OwnedFd,
    secret: Secret,
    connections: Vec<Option<OwnedFd>>,
    /// Connections over which no rank has sent its hello yet.
    unknown: Vec<OwnedFd>,
}

/// Sockets to the ranks of this machine, and the hub of each rank.
type Connected = (Vec<Option<OwnedFd>>, Arc<[u32]>);

impl Acceptor {
    /// Accepts all ranks of this machine. None: rank `me` has left before. An error: this process
    /// has no descriptor or no memory left.
    fn accept_all(mut self, me: u32, hub_requests: &HubRequests) -> Result<Option<Connected>> {
        let mut failure = None;
        loop {
            let (hubs, leaving) =
                hub_requests.take(|pending| (pending.hubs.clone(), pending.leaving));
            // Before all ranks have met, the end of the listener would make this machine look as
            // if it were several.
            if let Some(error) = failure.take_if(|_| hubs.is_some() || leaving) {
                return Err(error);
            }
            if leaving {
                return Ok(None);
            }
            let all_here = |hubs: &Arc<[u32]>| {
                hubs.iter().zip(&self.connections).all(|(hub, place)| *hub != me || place.is_some())
            };
            if let Some(hubs) = hubs.filter(all_here) {
                return Ok(Some((self.connections, hubs)));
            }
            let mut waits = vec![interest(hub_requests.wake.as_fd(), libc::POLLIN)];
            if failure.is_none() {
                let room = self.unknown.len() < MOST_UNKNOWN;
                waits.push(interest(self.listener.as_fd(), if room { libc::POLLIN } else { 0 }));
                waits.extend(self.unknown.iter().map(|it| interest(it.as_fd(), libc::POLLIN)));
            }
            socket::poll(&mut waits, -1)?;
            failure = failure.or_else(|| self.admit(&waits[1..]).err());
        }
    }

    /// Takes what has come: hellos, and a connection. `waits`: the listener, and behind it the
    /// unknown connections.
    fn admit(&mut self, waits: &[libc::pollfd]) -> Result<()> {
        for at in (0..self.unknown.len()).rev().filter(|at| waits[at + 1].revents != 0) {
            let connection = self.unknown.swap_remove(at);
            self.identify(connection)?;
        }
        if waits[0].revents != 0 {
            match accept(self.listener.as_fd()) {
                Ok(connection) => self.unknown.push(connection),
                // Nobody could connect any more, and all would wait.
                Err(e) if is_shortage(&e) => {
                    fail!(ERR_NO_MEMORY, "accepting the ranks of this machine: {e}")
                }
                Err(e) if is_passing(&e) => {}
                Err(e) => fail!(ERR_SYSTEM, "accepting the ranks of this machine: {e}"),
            }
        }
        Ok(())
    }

    /// Keeps the connection if a rank has sent a valid hello; closes it otherwise. An error: the
    /// hello is valid, but this process has no room for the descriptor that came with it.
    fn identify(&mut self, connection: OwnedFd) -> Result<()> {
        let mut buffer = [0; HELLO + 1];
        let Ok((said, probe)) = socket::receive(connection.as_fd(), &mut buffer) else {
            return Ok(());
        };
        let Some((_, rank)) = buffer[..said].split_last_chunk() else { return Ok(()) };
        let rank = u32::from_ne_bytes(*rank);
        if let Some(place @ None) = self.connections.get_mut(rank as usize)
            && buffer[..said] == hello(&self.secret, rank)[..]
        {
            // Without its descriptors a rank could not reach this one's memory.
            if probe.is_none() {
                fail!(
                    ERR_NO_MEMORY,
                    "the descriptor of rank {rank} cannot be taken, expected room below the limit \
                     of open files"
                );
            }
            *place = Some(connection);
        }
        Ok(())
    }
}

fn is_shortage(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    matches!(number, Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Whether accept() failed for one connection only: it has gone already.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | Interrupted | WouldBlock)
}

/// The hub's thread, from the first connection on. An error: the hub could not begin.
fn run(acceptor: Acceptor, me: u32, hub_requests: &HubRequests) -> Result<()> {
    let Some((connections, hubs)) = acceptor.accept_all(me, hub_requests)? else { return Ok(()) };
    let several = hubs.iter().any(|hub| *hub != me);
    let log = several.then(|| Log::new(me, hubs));
    serve(Hub::with(connections, log)?, (me, several), hub_requests);
    Ok(())
}

/// Serves the ranks of this machine until the hub ends, and tells the other hubs so. `me`: the rank
/// in whose process it runs. `several`: there are other machines.
fn serve(mut hub: Hub, place: (u32, bool), hub_requests: &HubRequests) {
    let mut carry = None;
    serve_ranks(&mut hub, &mut carry, place, hub_requests);
    hub.say_end();
    speak(&mut hub, carry.as_ref());
    // If the rank of this process has left, its endpoint ends now, behind the hub's last packets,
    // which a fence might drop.
    if let Some(carry) = carry.filter(|_| !hub.is_gone(place.0)) {
        hub.others().into_iter().for_each(|other| carry(other, Relay::Over));
    }
}

/// Sends the packets for other hubs, and says which of these have ended.
fn speak(hub: &mut Hub, carry: Option<&Carry>) {
    let Some(carry) = carry else { return };
    hub.take_relays().into_iter().for_each(|(to, packet)| carry(to, Relay::Packet(packet)));
    hub.take_ended().into_iter().for_each(|other| carry(other, Relay::Over));
}

/// Sends a pulse to the hubs to which this one speaks, when it is time. Returns when the next one
/// is due.
fn beat(hub: &Hub, carry: Option<&Carry>, due: Instant, now: Instant) -> Instant {
    if due > now {
        return due;
    }
    if let Some(carry) = carry {
        hub.pulsed().into_iter().for_each(|other| carry(other, Relay::Pulse));
    }
    now + PULSE
}

/// Returns when the hub must end.
fn serve_ranks(
    hub: &mut Hub,
    carry: &mut Option<Carry>,
    (me, several): (u32, bool),
    hub_requests: &HubRequests,
) {
    let mut until: Option<Instant> = None;
    let mut pulse = Instant::now() + PULSE;
    let mut has_left = false;
    // Ranks that have closed their connections, and how long their processes may go on.
    let mut closed: VecDeque<(Instant, u32)> = VecDeque::new();
    loop {
        speak(hub, carry.as_ref());
        if hub.is_over() {
            return;
        }
        let now = Instant::now();
        while closed.front().is_some_and(|(at, _)| *at <= now) {
            closed.pop_front().map(|(_, rank)| hub.kill_closed(rank));
        }
        if until.is_some_and(|until| until <= now) {
            return;
        }
        if several {
            pulse = beat(hub, carry.as_ref(), pulse, now);
        }
        let next = until.into_iter().chain(closed.front().map(|(at, _)| *at));
        let next = next.chain(several.then_some(pulse)).min();
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
            let pending =
                hub_requests.take(|pending| Pending { hubs: None, ..std::mem::take(pending) });
            if pending.wire_failed {
                return;
            }
            has_left |= pending.leaving;
            if pending.leaving && several {
                until.get_or_insert(Instant::now() + LEAVE_GRACE);
            }
            *carry = pending.carry.or(carry.take());
            if let Some(cards) = &pending.cards {
                hub.far_cards(cards);
            }
            for (from, packet) in &pending.relayed {
                events.extend(hub.relayed(*from, packet));
            }
            pending.lost.iter().for_each(|rank| hub.lost(*rank));
        }
        // Of several calls the first decides the code, and the shortest time counts.
        let graces = events.iter().filter_map(|event| match event {
            Event::Abort { grace_ms, .. } => Some(*grace_ms),
            _ => None,
        });
        let least = graces.min().unwrap_or(0);
        for event in events {
            match event {
                Event::Abort { rank, code, .. } => {
                    let place = (me, has_left);
                    end_all(hub, (carry.as_ref(), hub_requests), place, (rank, code, least));
                }
                Event::Closed { rank } => closed.push_back((Instant::now() + CLOSE_GRACE, rank)),
                // The hub has killed it.
                Event::ProtocolError { .. } => {}
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
