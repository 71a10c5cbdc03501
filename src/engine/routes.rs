//! Which transport leads to which peer, and the ports to those that were talked to.
//!
//! # First contact
//!
//! No thread waits for a contact in here: `port` answers RETRY_CONNECTING, and the
//! watcher thread of the bootstrap, which hears the hub's answer, makes the port. So a try function
//! never blocks, the lane's role is never held for a contact, and what cannot be answered yet is
//! kept where it is served (`engine::lane_state`). After each contact `contacts` counts, the bell
//! rings, and sleeping threads look again (`core::blocking`).

use crate::bootstrap::{Bootstrap, Card};
use crate::engine::completion::in_callback;
use crate::engine::notices::Notices;
use crate::engine::unreported::Unreported;
use crate::fail;
use crate::transport::address::Address;
use crate::transport::fabric::Fabric;
use crate::transport::memory::segment::Segment;
use crate::transport::port::Port;
use crate::transport::sleepers::Sleepers;
use crate::transport::waiters::{Awaited, Waiters};
use crate::transport::{Access, Receiver, Transport};
use crate::util::bell::Bell;
use crate::util::counters::Counters;
use crate::util::fork::Gate;
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};
use once_cell::race::OnceBox;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The ranks of the world as this one reaches them. A peer that was never talked to costs one
/// pointer here.
pub struct Routes {
    // Declared first, hence dropped first: ports point into what the transports keep.
    ports: Box<[OnceBox<Port>]>,
    me: u32,
    fabric: Fabric,
    gate: Gate,
    bootstrap: Arc<Bootstrap>,
    segment: Arc<Segment>,
    sleepers: Sleepers,
    /// How many contacts have ended, well or not.
    contacts: AtomicU64,
    /// Contacts that failed, and how many.
    failures: Mutex<HashMap<u32, Failure>>,
    failed: AtomicUsize,
    unreported: Unreported,
    notices: Notices,
    deaths: AtomicU32,
}

/// How the last contact with a peer failed.
struct Failure {
    /// Why, until a user was told.
    why: Option<Error>,
    at: Instant,
}

/// How long the library itself leaves a peer alone with which the contact has failed. A user may
/// try again at once.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a thread sleeps at most on a word that a network may change.
const SILENT: Duration = Duration::from_millis(1);

impl Routes {
    /// Routes to all ranks, which can contact this one from now on; none is contacted yet.
    pub fn new(
        segment: Arc<Segment>,
        bootstrap: Arc<Bootstrap>,
        kernel_copies: bool,
    ) -> Result<Arc<Routes>> {
        let me = bootstrap.rank();
        let fabric = Fabric::join(segment.clone(), &bootstrap, kernel_copies, in_callback)?;
        let ports: Box<[OnceBox<Port>]> = (0..bootstrap.size()).map(|_| OnceBox::new()).collect();
        // The port to oneself is there from the beginning.
        ports[me as usize].get_or_try_init(|| fabric.own_port().map(Box::new))?;
        let routes = Arc::new(Routes {
            ports,
            me,
            fabric,
            gate: Gate::new()?,
            bootstrap,
            segment,
            sleepers: Sleepers::default(),
            unreported: Unreported::default(),
            notices: Notices::default(),
            contacts: AtomicU64::new(0),
            failures: Mutex::default(),
            failed: AtomicUsize::new(0),
            deaths: AtomicU32::new(0),
        });
        let retired = Arc::downgrade(&routes);
        routes.bootstrap.on_cards(Arc::new(move |cards| {
            if let Some(routes) = retired.upgrade() {
                cards.into_iter().for_each(|(peer, card)| routes.contacted(peer, card));
                routes.notify_contacts();
            }
        }));
        // What the hubs of several machines tell each other goes by the wire.
        let bootstrap = &routes.bootstrap;
        bootstrap.other_hubs().into_iter().for_each(|peer| bootstrap.ask_card(peer));
        let retired = Arc::downgrade(&routes);
        routes.fabric.on_unreachable(Box::new(move |peer| {
            if let Some(routes) = retired.upgrade() {
                // The launcher had time to tell of a death. To this rank it makes no difference:
                // what the network has lost on the way nobody knows, so nothing goes on.
                routes.mark_dead(peer);
            }
        }));
        Ok(routes)
    }

    /// The receiving ends of all transports; to be taken once.
    pub fn receivers(&self, counts: Arc<Counters>) -> Vec<Box<dyn Receiver>> {
        self.fabric.receivers(counts)
    }

    /// Whether this rank may be used.
    #[inline(always)]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The calling thread will be there as long as the rank.
    pub fn set_resident(&self) {
        self.segment.control().set_resident();
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.ports.len() as u32
    }

    /// The port to this rank itself, in which the local sides of all operations are found.
    #[inline(always)]
    pub fn own(&self) -> &Port {
        match self.ports[self.me as usize].get() {
            Some(port) => port,
            None => unreachable!("new() has made it"),
        }
    }

    /// The places of the ports, for look-ups that bypass everything else.
    pub fn places(&self) -> &[OnceBox<Port>] {
        &self.ports
    }

    /// This rank's sleeping threads.
    #[inline(always)]
    pub fn waiters(&self) -> &Waiters {
        self.segment.control().waiters()
    }

    /// Sleeps until the word may have changed; see Sleepers::sleep(). Where a network writes to
    /// this rank's memory and tells nobody, a word that peers can name is looked at every
    /// millisecond.
    pub fn sleep(
        &self,
        awaited: &[Awaited],
        limit: Option<Duration>,
        enough: impl Fn() -> bool,
    ) -> bool {
        let named = || awaited.iter().any(|awaited| awaited.name.is_some());
        let limit = match limit {
            limit if !self.fabric.has_silent_writes() || !named() => limit,
            limit => Some(limit.unwrap_or(SILENT).min(SILENT)),
        };
        self.sleepers.sleep(self.waiters(), awaited, limit, enough)
    }

    /// The port to a peer that was talked to; None for any other number.
    #[inline(always)]
    pub fn known(&self, peer: u32) -> Option<&Port> {
        self.ports.get(peer as usize)?.get()
    }

    /// The port to a peer. At first use RETRY_CONNECTING: the contact goes on behind this call.
    /// Where it fails, one call answers why, and the next begins another. Never waits.
    #[inline]
    pub fn port(&self, peer: u32) -> Result<&Port> {
        match self.known(peer) {
            Some(port) => Ok(port),
            None => Err(self.begin_contact(peer)),
        }
    }

    #[cold]
    fn begin_contact(&self, peer: u32) -> Error {
        if peer >= self.size() {
            let text = format!("peer is {peer}, expected a rank below {}", self.size());
            return Error::new(Status::ERR_INVALID, text);
        }
        if let Some(error) = self.take_failure(peer) {
            return error;
        }
        if self.is_dead(peer) {
            return Error::new(Status::ERR_PEER_DEAD, format!("rank {peer} has died or has left"));
        }
        self.bootstrap.ask_card(peer);
        Error::bare(Status::RETRY_CONNECTING)
    }

    /// Why the last contact with a peer failed, once. Where another thread looks at the same
    /// moment, later.
    fn take_failure(&self, peer: u32) -> Option<Error> {
        // Acquire: pairs with contacted().
        if self.failed.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.failures.try_lock().ok()?.get_mut(&peer)?.why.take()
    }

    /// The port to a peer that waits for an answer of the library's own. Why a contact fails is
    /// left to the users, and the next one begins a while after that: until then ERR_SYSTEM.
    pub fn port_to_answer(&self, peer: u32) -> Result<&Port> {
        match self.known(peer) {
            None if self.failed_lately(peer) => Err(Error::bare(Status::ERR_SYSTEM)),
            None if peer < self.size() && !self.is_dead(peer) => {
                self.bootstrap.ask_card(peer);
                Err(Error::bare(Status::RETRY_CONNECTING))
            }
            _ => self.port(peer),
        }
    }

    fn failed_lately(&self, peer: u32) -> bool {
        // Acquire: pairs with contacted().
        self.failed.load(Ordering::Acquire) > 0
            && self.failures.try_lock().map_or(true, |failures| {
                failures.get(&peer).is_some_and(|failure| failure.at.elapsed() < PAUSE)
            })
    }

    /// A peer's card has come, or the reason why it does not come. On the watcher thread, which
    /// calls notify_contacts().
    fn contacted(&self, peer: u32, card: Result<Card>) {
        if self.known(peer).is_none() {
            match card.and_then(|card| self.fabric.connect(peer, card)) {
                // Only this thread sets ports but the own one.
                Ok(port) => {
                    drop(self.ports[peer as usize].set(Box::new(port)));
                    self.set_failure(peer, None);
                }
                Err(error) if error.status == Status::ERR_PEER_DEAD => self.mark_dead(peer),
                Err(error) => {
                    let failure = Failure { why: Some(error), at: Instant::now() };
                    self.set_failure(peer, Some(failure));
                }
            }
        }
        if self.bootstrap.is_dead(peer) {
            self.mark_dead(peer);
        }
    }

    fn set_failure(&self, peer: u32, failure: Option<Failure>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match failure {
            Some(failure) => drop(failures.insert(peer, failure)),
            None => drop(failures.remove(&peer)),
        }
        // Release: pairs with take_failure() and failed_lately().
        self.failed.store(failures.len(), Ordering::Release);
    }

    /// Threads that wait for a contact look again, and the progress thread at what it keeps for
    /// one.
    pub fn notify_contacts(&self) {
        // Release: a thread that sees another number sees the port, the failure or the death; pairs
        // with contacts().
        self.contacts.fetch_add(1, Ordering::Release);
        self.bell().ring();
        self.waiters().touched_word(self.contacts.as_ptr() as u64);
    }

    /// How many contacts have ended so far: a thread that waits for one reads this before it asks
    /// for the port, and looks again when the number is another.
    #[inline]
    pub fn contacts(&self) -> u64 {
        // Acquire: pairs with notify_contacts().
        self.contacts.load(Ordering::Acquire)
    }

    /// What a thread that waits for a contact sleeps on.
    pub fn next_contact(&self) -> Awaited {
        Awaited::private(self.contacts.as_ptr())
    }

    /// Failures of what has no completion.
    pub fn unreported(&self) -> &Unreported {
        &self.unreported
    }

    /// Who is told what other ranks tell the layers above.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// What carries messages, to whomever.
    #[inline(always)]
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The transport that leads to a peer.
    pub fn transport(&self, port: &Port) -> &dyn Transport {
        self.fabric.transport(port)
    }

    /// How a peer's memory is reached; once this says Mapped, the port finds it.
    pub fn locate(&self, port: &Port, address: Address, size: u64) -> Result<Access> {
        let found = {
            let _pinned = pin();
            port.find(address, size).is_some()
        };
        match found {
            true => Ok(Access::Mapped),
            false => self.transport(port).locate(port, address, size),
        }
    }

    /// Like `locate`, for those who touch the memory themselves or not at all. ERR_UNSUPPORTED
    /// where it cannot be mapped.
    pub fn map(&self, port: &Port, address: Address, size: u64) -> Result<Access> {
        let found = {
            let _pinned = pin();
            port.find(address, size).is_some()
        };
        match found {
            true => Ok(Access::Mapped),
            false => self.fabric.map(port, address, size),
        }
    }

    /// Lets peers find a place in this rank's memory by a name that all of them can work out.
    pub fn announce(&self, name: u64, place: Address) -> Result<()> {
        if !self.fabric.announce(name, place) {
            fail!(ERR_NO_MEMORY, "this rank is in too many teams, expected some hundreds at most");
        }
        Ok(())
    }

    /// Tells peers that a name will have no place. False: too many others are being refused now.
    pub fn refuse(&self, name: u64) -> bool {
        self.fabric.refuse(name)
    }

    /// How many peers have been told by hear_refusal().
    pub fn heard(&self, name: u64) -> u64 {
        self.fabric.heard(name)
    }

    /// Whether a connected peer refuses a name. A look for its place is repeated until it does,
    /// once.
    pub fn hear_refusal(&self, peer: u32, name: u64) -> bool {
        self.fabric.hear_refusal(peer, name)
    }

    /// The name means nothing any more.
    pub fn withdraw(&self, name: u64) {
        self.fabric.withdraw(name);
    }

    /// The place of this name at a connected peer; None: the peer has announced none, or not yet.
    pub fn announced(&self, peer: u32, name: u64) -> Option<Address> {
        self.fabric.announced(peer, name)
    }

    /// What this rank's progress thread sleeps on.
    pub fn bell(&self) -> &Bell {
        self.segment.control().bell()
    }

    /// Wakes a rank's progress thread.
    pub fn ring(&self, peer: u32) {
        self.fabric.ring(peer);
    }

    /// How many peers have died or left so far: a thread that finds another number than before
    /// looks which.
    #[inline(always)]
    pub fn deaths(&self) -> u32 {
        // Acquire: pairs with mark_dead(); a thread that sees the number sees which peers are dead.
        self.deaths.load(Ordering::Acquire)
    }

    /// Whether a peer has died or left.
    pub fn is_dead(&self, peer: u32) -> bool {
        self.fabric.is_dead(peer) || self.bootstrap.is_dead(peer)
    }

    /// The peer is dead: nothing of it is found from now on, and what is pending on it ends in the
    /// next round of the lane, which this brings about. The caller is not pinned.
    pub fn mark_dead(&self, peer: u32) {
        let news = peer != self.me && self.fabric.mark_dead(peer);
        if let (true, Some(port)) = (peer != self.me, self.known(peer)) {
            port.close();
        }
        if news {
            self.notices.forget(peer);
            // Release: the peer is known to be dead before; pairs with take_news().
            self.fabric.news.store(true, Ordering::Release);
            self.deaths.fetch_add(1, Ordering::Release);
            // Threads that wait for a contact with it wait in vain.
            self.notify_contacts();
            // It may have died on its way to wake the thread that runs handlers, and then nobody
            // else would.
            self.segment.control().message_head().requests.bell().ring();
            // Wakes threads that wait for what only this peer would have done.
            self.waiters().touched_anything();
        }
    }

    /// Whether there is something for the holder of the lane's role since take_news().
    pub fn has_news(&self) -> bool {
        self.fabric.news.load(Ordering::Relaxed)
    }

    /// Whether a peer has died, or a question is to be sent, since the last call: the caller must
    /// end what is pending on the dead, and ask.
    #[inline]
    pub fn take_news(&self) -> bool {
        // Acquire: pairs with mark_dead() and Fabric::locate_far().
        self.has_news() && self.fabric.news.swap(false, Ordering::Acquire)
    }
}
