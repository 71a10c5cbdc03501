//! Layer 1: a rank's number, the number of ranks, exchange of bytes, fence. It knows no transport.
//!
//! A hub serves all ranks of a world, or the ranks of one machine where there are several. It runs
//! in `llcl-run` where that has started the ranks. It is a thread where ranks are threads
//! ([`World`]) or were started by another launcher ([`Handed`]). Each rank has one end of an
//! unnamed packet socket, so no other process can take its place, and no name stays in a file
//! system.

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

pub use external::{Abort, Carry, Handed, Relay};
pub use protocol::{MAX_BLOB, MAX_RANKS};
pub use world::World;

use crate::fail;
use crate::util::once::Once;
use crate::util::status::{Error, Result};
use alone::Alone;
pub use client::OnCards;
use client::{Client, lock};
use external::{HubRequests, HubThread, LEAVE_GRACE};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use world::TakenRank;

/// The card that a rank has published: bytes, and a descriptor that belongs to the receiver.
#[derive(Debug)]
pub struct Card {
    /// At most [`MAX_BLOB`] bytes.
    pub blob: Vec<u8>,
    /// The receiver's own, close-on-exec. None: the rank runs on another machine.
    pub fd: Option<OwnedFd>,
}

/// One rank's place in its world. Every function may be called by any thread at any time.
///
/// For the other ranks this rank dies when the object is dropped without
/// [`leave`](Bootstrap::leave), or when the process ends.
pub struct Bootstrap {
    rank: u32,
    size: u32,
    link: Link,
    /// A place in a world of this process, until this rank has left it.
    taken_rank: Mutex<Option<TakenRank>>,
    /// In a world of another launcher: the thread of the hub, at the lowest rank of a machine.
    host: Mutex<Option<HubThread>>,
    hub_requests: Option<Arc<HubRequests>>,
    /// Where the ranks run on several machines: for each rank, the rank whose process has its hub.
    hubs: Option<Arc<[u32]>>,
    published: Mutex<Vec<u8>>,
    /// The bootstrap that passes deaths on to this one.
    first: Once<Arc<Bootstrap>>,
    abort: Option<Abort>,
    processes: bool,
    foreign: i64,
    // Declared last, hence dropped last.
    _keep: Option<Box<dyn Send + Sync>>,
}

/// Whether a program may hand over this number among so many ranks.
fn is_place(rank: u32, size: u32) -> bool {
    (1..=MAX_RANKS).contains(&size) && rank < size
}

enum Link {
    Alone(Alone),
    Hub(Client),
}

impl Bootstrap {
    /// The place that the launcher has set in `LLCL_RANK`, `LLCL_SIZE` and `LLCL_HUB_FD`; where
    /// none of them is set, a world of one rank. See also [`environment::other_launcher`].
    ///
    /// `ERR_INVALID`: they are incomplete or malformed, or the descriptor is not the hub's socket.
    /// `ERR_STATE`: this process, or another program with this rank, has joined the world before.
    pub fn from_environment() -> Result<Bootstrap> {
        let Some(place) = environment::take()? else {
            return Ok(Bootstrap::of(0, 1, Link::Alone(Alone::default())));
        };
        let client = Client::join(place.hub, place.rank, place.size, true)?;
        Ok(Bootstrap::of(place.rank, place.size, Link::Hub(client)))
    }

    /// The place among ranks that another launcher has started. Collective over them; where one
    /// cannot join, none does. `ready` answers whether this rank can join; its argument says
    /// whether the ranks run on several machines. exchange_cards() must follow.
    pub fn from_program(
        handed: &mut Handed<'_>,
        ready: &dyn Fn(bool) -> Result<()>,
    ) -> Result<Bootstrap> {
        let (rank, size) = (handed.rank, handed.size);
        if !is_place(rank, size) {
            fail!(
                ERR_INVALID,
                "bootstrap.rank is {rank} and bootstrap.size is {size}, expected a rank below a size of 1 to {MAX_RANKS}"
            );
        }
        let external::Place { end, host, hub_requests, hubs } = external::join(handed, ready)?;
        let client = Client::join(end, rank, size, handed.processes);
        if client.is_err() {
            // The other ranks wait for this one in the round of exchange_cards().
            match hubs.is_some() {
                true => external::gather_cards(handed, &[], &client).map(drop)?,
                false => external::all_have(handed, &client)?,
            }
        }
        let client = match client {
            Ok(client) => client,
            // If the hub in this process could not begin, it knows the reason.
            Err(error) => return Err(host.and_then(HubThread::failure).unwrap_or(error)),
        };
        let joined = Bootstrap::of(rank, size, Link::Hub(client));
        let (abort, processes) = (handed.abort.take(), handed.processes);
        let (foreign, _keep, host) = (handed.foreign, handed.keep.take(), Mutex::new(host));
        Ok(Bootstrap { host, hub_requests, hubs, abort, processes, foreign, _keep, ..joined })
    }

    /// Takes part, in place of from_program(), with an error: no rank then gets a place.
    pub fn refuse(handed: &Handed<'_>, error: &Error) {
        // Only a place that from_program() would take has other ranks that wait for this one.
        if is_place(handed.rank, handed.size) {
            external::refuse(handed, error);
        }
    }

    /// The last round of the ranks of another launcher, which is collective. `made`: an error if
    /// this rank has failed to make what it needs; then no rank has a world. Sends the card of each
    /// rank to the ranks of other machines.
    pub fn exchange_cards<T>(&self, handed: &Handed<'_>, made: &Result<T>) -> Result<()> {
        if self.hubs.is_none() {
            return external::all_have(handed, made);
        }
        let own = lock(&self.published).clone();
        let cards = external::gather_cards(handed, &own, made)?;
        if let Some(hub_requests) = &self.hub_requests {
            hub_requests.set_cards(cards);
        }
        Ok(())
    }

    /// Where the ranks run on several machines: the rank in whose process the hub of this machine
    /// runs; else 0.
    pub fn leader(&self) -> u32 {
        self.hubs.as_ref().map_or(0, |hubs| hubs[self.rank as usize])
    }

    /// A number of the launcher's for the wire to other machines; 0: none.
    pub fn foreign(&self) -> i64 {
        self.foreign
    }

    /// The wire has failed: marks the ranks of other machines as dead, and ends a hub in this
    /// process, which cannot reach the other hubs any more.
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

    /// The hubs to which the hub in this process sends packets. A hub is named by the rank whose
    /// process it runs in.
    pub fn other_hubs(&self) -> Vec<u32> {
        match &self.hubs {
            Some(hubs) if self.leader() == self.rank => log::peers_of(self.rank, hubs),
            _ => Vec::new(),
        }
    }

    /// Sets the function by which the hub in this process, if there is one, speaks to other hubs.
    /// The receiving process calls relayed().
    pub fn carry_by(&self, carry: Carry) {
        if let Some(hub_requests) = &self.hub_requests {
            hub_requests.carry_by(carry);
        }
    }

    /// Passes a packet to the hub in this process. It comes from the hub in the process of rank
    /// `from`.
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
            taken_rank: Mutex::new(None),
            host: Mutex::new(None),
            hub_requests: None,
            hubs: None,
            published: Mutex::default(),
            first: Once::new(),
            abort: None,
            processes: true,
            foreign: 0,
            _keep: None,
        }
    }

    /// The place of `rank` in a world of this process. `ERR_STATE` the second time, `ERR_RANGE`
    /// where there is no such rank.
    pub fn from_world(world: &World, rank: u32) -> Result<Bootstrap> {
        let (end, taken_rank) = world.take(rank)?;
        let link = Link::Hub(Client::join(end, rank, world.size(), false)?);
        let joined = Bootstrap::of(rank, world.size(), link);
        Ok(Bootstrap { taken_rank: Mutex::new(Some(taken_rank)), processes: false, ..joined })
    }

    /// This rank's number.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many ranks there are, dead ones included.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether each rank is a process of its own.
    pub fn is_of_processes(&self) -> bool {
        self.processes
    }

    /// Publishes this rank's card: these bytes (at most [`MAX_BLOB`]) and a duplicate of `fd`.
    /// Other ranks get it by [`ask_card`](Bootstrap::ask_card). Once per rank.
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

    /// Asks for the card of `peer`. The function of on_cards() gets it when it arrives. The call
    /// does nothing if the card was asked for and has not arrived, and in a world of one. It never
    /// waits and takes no lock, so it may be called anywhere. Requests that follow each other
    /// closely go to the hub in one packet.
    pub fn ask_card(&self, peer: u32) {
        if let (true, Link::Hub(client)) = (peer < self.size, &self.link) {
            client.ask_card(peer);
        }
    }

    /// Sets the function that gets the cards, each with the number of its rank. In place of a card
    /// it may get an error: `ERR_PEER_DEAD` where the rank has died or left. One call gets all
    /// cards that have arrived together. It runs on the watcher thread, under the rules of
    /// on_death()'s function.
    pub fn on_cards(&self, f: OnCards) {
        if let Link::Hub(client) = &self.link {
            client.on_cards(f);
        }
    }

    /// Collective: `all` gets the `mine` of every rank, in the order of ranks. Its length is `size
    /// * mine.len()`; with no bytes this is a fence. `all` is written on success only.
    ///
    /// `ERR_PEER_DEAD` at once, when a rank is dead or has left, or does so during the call;
    /// `ERR_INVALID` at every rank when the lengths differ.
    pub fn exchange(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        self.exchange_by(mine, all, None)
    }

    /// Like `exchange`, with a deadline. After `ERR_TIMEOUT` the next call must have as many bytes;
    /// it goes on with this exchange.
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

    /// Takes part, with the error `why`, in an exchange of `size` bytes that this rank cannot do:
    /// the other ranks fail too, and do not wait for it. Answers `why` when all ranks have called
    /// it or exchange(), or another error, also `ERR_TIMEOUT` as exchange_by() does.
    pub fn exchange_refused(&self, size: usize, why: Error, deadline: Option<Instant>) -> Error {
        match &self.link {
            Link::Alone(alone) => alone.fence().err().unwrap_or(why),
            Link::Hub(client) => client.exchange_refused(size, why, deadline),
        }
    }

    /// Collective: returns when every rank that still lives has called it. Dead ranks and those
    /// that have left count as arrived, so it fails only where the hub has gone.
    pub fn fence_survivors(&self) -> Result<()> {
        self.fence_survivors_by(None)
    }

    /// Like `fence_survivors`, with a deadline. After `ERR_TIMEOUT` only leave() may follow.
    pub fn fence_survivors_by(&self, deadline: Option<Instant>) -> Result<()> {
        match &self.link {
            Link::Alone(alone) => alone.fence(),
            Link::Hub(client) => client.fence_survivors(deadline),
        }
    }

    /// Sets a function that a thread calls repeatedly while it waits for other ranks in
    /// exchange(), fence_survivors() or leave(). Only the first call of this function counts.
    pub fn while_waiting(&self, f: Box<dyn Fn() + Send + Sync>) {
        if let Link::Hub(client) = &self.link {
            client.while_waiting(f);
        }
    }

    /// Whether `peer` has died or left, as far as this rank knows.
    pub fn is_dead(&self, peer: u32) -> bool {
        match &self.link {
            Link::Alone(_) => false,
            Link::Hub(client) => client.is_dead(peer),
        }
    }

    /// Sets the function that is called once for each rank that has died or left: by this call
    /// itself for the ranks that are known already, and by the watcher thread for the others. `f`
    /// must not wait for an answer of this bootstrap, nor call this function.
    pub fn on_death(&self, f: Box<dyn Fn(u32) + Send + Sync>) {
        if let Link::Hub(client) = &self.link {
            client.on_death(f);
        }
    }

    /// From now on `duplicate`, which the same processes have made through this bootstrap, learns
    /// from it which ranks have died: the hub in a rank's process dies with the rank, and the other
    /// hubs of the duplicate do not notice that. If this bootstrap is a duplicate itself, the first
    /// one tells both. Ends with leave() of either.
    pub fn pass_deaths_to(self: &Arc<Self>, duplicate: &Arc<Bootstrap>) {
        let first = self.first.get().unwrap_or(self);
        if let (Link::Hub(client), true) = (&first.link, self.processes) {
            let _ = duplicate.first.set(first.clone());
            client.pass_deaths_to(duplicate);
        }
    }

    /// The process of `rank` has ended, says the bootstrap that passes deaths on to this one.
    fn killed(&self, rank: u32) {
        if let Link::Hub(client) = &self.link {
            client.mark_gone([rank].into_iter());
        }
        self.lost(rank);
    }

    /// A rank cannot be reached any more. If its process runs a hub, the hub in this process cannot
    /// reach that one, either.
    pub fn lost(&self, rank: u32) {
        if let Some(hub_requests) = self.hub_requests.as_ref().filter(|_| self.hubs.is_some()) {
            hub_requests.lost(rank);
        }
    }

    /// Tells the launcher to end the whole job with this exit code. The caller must then end by
    /// itself. The other ranks are killed if they have not ended after `grace_ms` milliseconds.
    pub fn abort(&self, code: i32, grace_ms: u32) {
        if let Some(abort) = &self.abort {
            return abort(code, grace_ms);
        }
        if let Link::Hub(client) = &self.link {
            client.abort(code, grace_ms);
        }
    }

    /// Leaves the world in order; later calls answer `ERR_STATE`. Calling it again does nothing.
    /// Where the hub runs in this process, waits some time for the other ranks to leave: if the
    /// process ends before, they find that the hub has gone.
    pub fn leave(&self) {
        self.leave_by(None);
    }

    /// Like leave(), but waits for other ranks until `limit` at most. Where the ranks run on
    /// several machines it may wait longer: the hub needs the wire of this rank's context.
    pub fn leave_by(&self, limit: Option<Instant>) {
        if let Some(Link::Hub(first)) = self.first.get().map(|first| &first.link) {
            first.pass_no_deaths_to(self);
        }
        match &self.link {
            Link::Alone(alone) => alone.leave(),
            Link::Hub(client) => client.close(true),
        }
        drop(lock(&self.taken_rank).take());
        // The wait for the hub's thread must not happen under the lock.
        let host = lock(&self.host).take();
        if let Some(host) = host {
            let most = Instant::now() + LEAVE_GRACE;
            let limit = limit.map_or(most, |limit| limit.min(most));
            let meanwhile = match &self.link {
                Link::Alone(_) => None,
                Link::Hub(client) => client.meanwhile(),
            };
            host.leave(Some(limit).filter(|_| self.hubs.is_none()), meanwhile);
        }
    }
}
