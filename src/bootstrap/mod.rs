//! Layer 1: who am I, how many are we, exchange bytes, fence. Knows no transport.
//!
//! A hub serves all ranks of a world, or those of one machine of several. It lives in `llcl-run` where
//! ranks are processes, and in a thread of a process where ranks are threads ([`World`]) or were
//! started by somebody else ([`Handed`]). Each rank has one end of a packet
//! socket without a name, so nobody else can take its place and nothing is left behind.

mod alone;
mod client;
pub mod environment;
mod external;
pub mod hub;
mod log;
mod protocol;
mod rules;
mod wanted;
mod world;

pub use external::{Abort, Carry, Handed, ROUND};
pub use protocol::{MAX_BLOB, MAX_RANKS};
pub use world::World;

use crate::fail;
use crate::util::status::Result;
use alone::Alone;
pub use client::OnCards;
use client::{Client, lock};
use external::{HubRequests, HubThread};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use world::Seat;

/// What a rank has published: bytes, and a descriptor that is now the receiver's.
#[derive(Debug)]
pub struct Card {
    /// At most [`MAX_BLOB`] bytes.
    pub blob: Vec<u8>,
    /// The receiver's own, close-on-exec. None: the rank runs on another machine.
    pub fd: Option<OwnedFd>,
}

/// One rank's place in its world. Every function may be called by any thread at any time.
///
/// Dropping it without [`leave`](Bootstrap::leave) is a death for the others, as is the end of the
/// process.
pub struct Bootstrap {
    rank: u32,
    size: u32,
    link: Link,
    /// A place in a world of this process, until this rank has left it.
    seat: Mutex<Option<Seat>>,
    /// In a world that somebody else has started: the hub, at the lowest rank of a machine, and what
    /// ends the job.
    host: Mutex<Option<HubThread>>,
    hub_requests: Option<Arc<HubRequests>>,
    /// Where it has several machines, the rank in whose process the hub of each rank runs; and what
    /// this rank has published.
    hubs: Option<Arc<[u32]>>,
    published: Mutex<Vec<u8>>,
    abort: Option<Abort>,
    processes: bool,
    foreign: i64,
    // Declared last, hence dropped last.
    _keep: Option<Box<dyn Send + Sync>>,
}

enum Link {
    Alone(Alone),
    Hub(Client),
}

impl Bootstrap {
    /// The place that the launcher has set in `LLCL_RANK`, `LLCL_SIZE` and `LLCL_HUB_FD`; where
    /// none of them is set, a world of one: see also [`environment::other_launcher`].
    ///
    /// `ERR_INVALID`: they are incomplete, malformed or lead nowhere. `ERR_STATE`: this process,
    /// or another program in this place, has been in the world before.
    pub fn from_environment() -> Result<Bootstrap> {
        let Some(place) = environment::take()? else {
            return Ok(Bootstrap::of(0, 1, Link::Alone(Alone::default())));
        };
        let client = Client::join(place.hub, place.rank, place.size, true)?;
        Ok(Bootstrap::of(place.rank, place.size, Link::Hub(client)))
    }

    /// The place that the program hands over, whose ranks somebody else has started. Collective
    /// over them; where one cannot join, nobody does. `ready`: whether this rank can join, and
    /// whether ranks of several machines. Then introduce() must follow.
    pub fn from_program(
        handed: &mut Handed<'_>,
        ready: &dyn Fn(bool) -> Result<()>,
    ) -> Result<Bootstrap> {
        let (rank, size) = (handed.rank, handed.size);
        if !(1..=MAX_RANKS).contains(&size) || rank >= size {
            fail!(
                ERR_INVALID,
                "bootstrap.rank is {rank} and bootstrap.size is {size}, expected a rank below a size of 1 to {MAX_RANKS}"
            );
        }
        let external::Place { end, host, hub_requests, hubs } = external::join(handed, ready)?;
        let client = Client::join(end, rank, size, handed.processes);
        if client.is_err() && hubs.is_some() {
            // The others wait for this rank there.
            external::gather_cards(handed, &[], &client)?;
        }
        let link = Link::Hub(client?);
        let joined = Bootstrap::of(rank, size, link);
        let (abort, processes) = (handed.abort.take(), handed.processes);
        let (foreign, _keep, host) = (handed.foreign, handed.keep.take(), Mutex::new(host));
        Ok(Bootstrap { host, hub_requests, hubs, abort, processes, foreign, _keep, ..joined })
    }

    /// Shows what each rank has published to those of other machines. Collective over the ranks that
    /// somebody else has started. `made`: whether all that this rank needs was made; where it was
    /// not, at one of them, nobody has a world.
    pub fn introduce<T>(&self, handed: &Handed<'_>, made: &Result<T>) -> Result<()> {
        if self.hubs.is_some() {
            let own = lock(&self.published).clone();
            let cards = external::gather_cards(handed, &own, made)?;
            if let Some(hub_requests) = &self.hub_requests {
                hub_requests.set_cards(cards);
            }
        }
        Ok(())
    }

    /// Where the ranks run on several machines: the rank in whose process the hub of this machine
    /// runs; else 0.
    pub fn leader(&self) -> u32 {
        self.hubs.as_ref().map_or(0, |hubs| hubs[self.rank as usize])
    }

    /// What the wire to other machines is told of the ranks; 0: nothing.
    pub fn foreign(&self) -> i64 {
        self.foreign
    }

    /// The wire leads to nobody any more: the ranks behind it count as dead, and a hub in this
    /// process, which cannot reach the others, ends.
    pub fn wire_failed(&self) {
        let Link::Hub(client) = &self.link else { return };
        let hub_of = |rank: u32| self.hubs.as_ref().map(|hubs| hubs[rank as usize]);
        let behind = |rank: u32| hub_of(rank).is_none() || hub_of(rank) != hub_of(self.rank);
        client.mark_gone((0..self.size).filter(|rank| *rank != self.rank && behind(*rank)));
        if let Some(hub_requests) = self.hub_requests.as_ref().filter(|_| self.hubs.is_some()) {
            hub_requests.wire_failed();
        }
    }

    /// Whether the ranks run on several machines.
    pub fn has_several_machines(&self) -> bool {
        self.hubs.is_some()
    }

    /// Ranks in whose processes the hubs run that the hub in this process sends packets to.
    pub fn other_hubs(&self) -> Vec<u32> {
        match &self.hubs {
            Some(hubs) if self.leader() == self.rank => log::peers_of(self.rank, hubs),
            _ => Vec::new(),
        }
    }

    /// From now on the hub in this process, if there is one, gives its packets to `carry`, whose
    /// other end calls relayed().
    pub fn carry_by(&self, carry: Carry) {
        if let Some(hub_requests) = &self.hub_requests {
            hub_requests.carry_by(carry);
        }
    }

    /// A packet of the hub in the process of rank `from` has come for the one in this process.
    pub fn relayed(&self, from: u32, packet: Vec<u8>) {
        if let Some(hub_requests) = &self.hub_requests {
            hub_requests.relayed(from, packet);
        }
    }

    fn of(rank: u32, size: u32, link: Link) -> Bootstrap {
        Bootstrap {
            rank,
            size,
            link,
            seat: Mutex::new(None),
            host: Mutex::new(None),
            hub_requests: None,
            hubs: None,
            published: Mutex::default(),
            abort: None,
            processes: true,
            foreign: 0,
            _keep: None,
        }
    }

    /// The place of `rank` in a world of this process. `ERR_STATE` the second time, `ERR_RANGE`
    /// where there is no such rank.
    pub fn from_world(world: &World, rank: u32) -> Result<Bootstrap> {
        let (end, seat) = world.take(rank)?;
        let link = Link::Hub(Client::join(end, rank, world.size(), false)?);
        let joined = Bootstrap::of(rank, world.size(), link);
        Ok(Bootstrap { seat: Mutex::new(Some(seat)), processes: false, ..joined })
    }

    /// This rank's number.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many ranks there are, dead ones included.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Each rank is a process of its own.
    pub fn is_of_processes(&self) -> bool {
        self.processes
    }

    /// Lets everybody [`ask_card`](Bootstrap::ask_card) for these bytes (at most [`MAX_BLOB`]) and
    /// a duplicate of `fd`. Once per rank.
    pub fn publish(&self, blob: &[u8], fd: BorrowedFd<'_>) -> Result<()> {
        if blob.len() > MAX_BLOB {
            fail!(ERR_INVALID, "blob: {} bytes, expected at most {MAX_BLOB}", blob.len());
        }
        if self.hubs.is_some() {
            *lock(&self.published) = blob.to_vec();
        }
        match &self.link {
            Link::Alone(alone) => alone.publish(),
            Link::Hub(client) => client.publish(blob, fd),
        }
    }

    /// Asks for what `peer` has published; on_cards' function gets it as soon as it is there.
    /// Nothing where that has been asked for and has not come, and in a world of one. Never waits,
    /// takes no lock: it may be called anywhere. Of those that are asked for in a row the hub hears
    /// in one packet.
    pub fn ask_card(&self, peer: u32) {
        if let (true, Link::Hub(client)) = (peer < self.size, &self.link) {
            client.ask_card(peer);
        }
    }

    /// From now on `f` gets the cards that are asked for, each with the number of its rank, or why
    /// one does not come: `ERR_PEER_DEAD` where the rank dies or leaves instead; in one call those
    /// that have come together. On the watcher thread, under the same rules as on_death's function.
    pub fn on_cards(&self, f: OnCards) {
        if let Link::Hub(client) = &self.link {
            client.on_cards(f);
        }
    }

    /// Collective: `all` becomes the `mine` of every rank, in their order. Its length is
    /// `size * mine.len()`; with no bytes this is a fence. `all` is written on success only.
    ///
    /// `ERR_PEER_DEAD`, at once, when a rank is dead or has left or does so meanwhile;
    /// `ERR_INVALID` in every rank when the lengths differ.
    pub fn exchange(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.exchange_by(mine, all, None)
    }

    /// Like `exchange`, with a deadline: `ERR_TIMEOUT` then, and the next call must be one with as
    /// many bytes, which goes on with this one.
    pub fn exchange_by(
        &self,
        mine: &[u8],
        all: &mut [u8],
        deadline: Option<Instant>,
    ) -> Result<()> {
        let (size, given) = (mine.len(), all.len());
        if size.checked_mul(self.size as usize) != Some(given) {
            fail!(
                ERR_INVALID,
                "all: {given} bytes, expected {} times the {size} bytes of mine",
                self.size
            );
        }
        match &self.link {
            Link::Alone(alone) => alone.exchange(mine, all),
            Link::Hub(client) => client.exchange(mine, all, deadline),
        }
    }

    /// In the place of an exchange of `size` bytes that this rank cannot do: the others fail too,
    /// and do not wait for it. Where none of them can, this is a fence.
    pub fn exchange_refused(&self, size: usize) -> Result<()> {
        match &self.link {
            Link::Alone(alone) => alone.fence(),
            Link::Hub(client) => client.exchange_refused(size),
        }
    }

    /// Collective: returns when every rank that still lives has called it. Dead ranks and those
    /// that have left count as arrived, so it fails only where the hub has gone.
    pub fn fence_survivors(&self) -> Result<()> {
        self.fence_survivors_by(None)
    }

    /// Like `fence_survivors`, with a deadline: `ERR_TIMEOUT` then, and only leave() may follow.
    pub fn fence_survivors_by(&self, deadline: Option<Instant>) -> Result<()> {
        match &self.link {
            Link::Alone(alone) => alone.fence(),
            Link::Hub(client) => client.fence_survivors(deadline),
        }
    }

    /// From now on a thread that waits for other ranks in exchange() or fence_survivors() calls `f`
    /// again and again meanwhile. The first call counts.
    pub fn while_waiting(&self, f: Box<dyn Fn() + Send + Sync>) {
        if let Link::Hub(client) = &self.link {
            client.while_waiting(f);
        }
    }

    /// Has `peer` died or left, as far as this rank has heard?
    pub fn is_dead(&self, peer: u32) -> bool {
        match &self.link {
            Link::Alone(_) => false,
            Link::Hub(client) => client.is_dead(peer),
        }
    }

    /// From now on `f` is told, once each, which ranks have died or left: those known already by
    /// this call itself, the others on the watcher thread. `f` must not wait for an answer of this
    /// bootstrap, nor call this function.
    pub fn on_death(&self, f: Box<dyn Fn(u32) + Send + Sync>) {
        if let Link::Hub(client) = &self.link {
            client.on_death(f);
        }
    }

    /// Tells the launcher to end the whole job with this exit code. The caller then ends by itself,
    /// and the others are killed where they have not ended after so many milliseconds.
    pub fn abort(&self, code: i32, grace_ms: u32) {
        if let Some(abort) = &self.abort {
            return abort(code, grace_ms);
        }
        if let Link::Hub(client) = &self.link {
            client.abort(code, grace_ms);
        }
    }

    /// Leaves the world in order; later calls answer `ERR_STATE`. Calling it again does nothing.
    pub fn leave(&self) {
        match &self.link {
            Link::Alone(alone) => alone.leave(),
            Link::Hub(client) => client.close(true),
        }
        drop(lock(&self.seat).take());
        // Joined without the lock.
        let host = lock(&self.host).take();
        drop(host);
    }
}
