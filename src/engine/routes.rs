//! The routes to the peers. Each contacted peer has a port, which the transport that leads to the
//! peer has made.
//!
//! # First contact
//!
//! No thread waits for a contact in this file: `port` returns RETRY_CONNECTING, and the thread
//! `llcl-watch`, which receives the hub's answer, makes the port. So a try function never blocks,
//! and no thread holds the lane's role while a contact is under way. The completer keeps requests
//! of peers that it cannot answer yet (`engine::lane_state`). After each batch of contacts
//! `llcl-watch` adds 1 to `contacts`, rings the bell and wakes sleeping threads, which try again
//! (`core::blocking`).

use crate::bootstrap::{Bootstrap, Card};
use crate::engine::completion::in_callback;
use crate::engine::control_messages::ControlMessages;
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

/// The routes to all ranks of the world. A peer that was never contacted costs one pointer.
pub struct Routes {
    // Declared first, hence dropped first: ports point into memory of the transports.
    ports: Box<[OnceBox<Port>]>,
    me: u32,
    fabric: Fabric,
    gate: Gate,
    bootstrap: Arc<Bootstrap>,
    segment: Arc<Segment>,
    sleepers: Sleepers,
    /// Changes when contacts have ended, with success or failure.
    contacts: AtomicU64,
    /// The peers whose last contact has failed, and their number.
    failures: Mutex<HashMap<u32, Failure>>,
    failed: AtomicUsize,
    unreported: Unreported,
    control_messages: ControlMessages,
    deaths: AtomicU32,
}

/// How the last contact with a peer failed.
struct Failure {
    /// The error, until a user's call has returned it.
    why: Option<Error>,
    at: Instant,
}

/// How long after a failed contact with a peer the library itself begins no other one. A user's
/// call begins another contact at once.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest sleep of a thread on a word that a network may change without waking it.
const SILENT: Duration = Duration::from_millis(1);

/// The longest sleep of a thread that is the only one to poll a wire (`Caps::opener_polls`).
const NAP: Duration = Duration::from_micros(100);

impl Routes {
    /// Makes the routes of a rank: opens the transports and publishes the rank's card, so that
    /// peers can contact it. Contacts no peer.
    pub fn new(
        segment: Arc<Segment>,
        bootstrap: Arc<Bootstrap>,
        kernel_copies: bool,
    ) -> Result<Arc<Routes>> {
        let me = bootstrap.rank();
        let fabric = Fabric::join(segment.clone(), &bootstrap, kernel_copies, in_callback)?;
        let ports: Box<[OnceBox<Port>]> = (0..bootstrap.size()).map(|_| OnceBox::new()).collect();
        // The port to this rank itself exists from the beginning.
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
            control_messages: ControlMessages::default(),
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
        // The hubs of several machines exchange packets over the wire, so they need each other's
        // cards.
        let bootstrap = &routes.bootstrap;
        bootstrap.other_hubs().into_iter().for_each(|peer| bootstrap.ask_card(peer));
        let retired = Arc::downgrade(&routes);
        routes.fabric.on_unreachable(Box::new(move |peer| {
            if let Some(routes) = retired.upgrade() {
                // The peer may be alive, but this rank does not know which frames the network has
                // lost. So it treats the peer as dead.
                routes.mark_dead(peer);
                routes.bootstrap.lost(peer);
            }
        }));
        Ok(routes)
    }

    /// The receivers of all transports; to be called once.
    pub fn receivers(&self, counts: Arc<Counters>) -> Vec<Box<dyn Receiver>> {
        self.fabric.receivers(counts)
    }

    /// Checks that calls of the API may use this rank, for instance that the process is no forked
    /// child.
    #[inline(always)]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Notes that the calling thread lives as long as the rank.
    pub fn set_resident(&self) {
        self.segment.control().set_resident();
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.ports.len() as u32
    }

    /// The port to this rank itself, by which local addresses are looked up.
    #[inline(always)]
    pub fn own(&self) -> &Port {
        match self.ports[self.me as usize].get() {
            Some(port) => port,
            None => unreachable!("new() has made it"),
        }
    }

    /// All ports, for look-ups on the shortest path.
    pub fn places(&self) -> &[OnceBox<Port>] {
        &self.ports
    }

    /// This rank's sleeping threads.
    #[inline(always)]
    pub fn waiters(&self) -> &Waiters {
        self.segment.control().waiters()
    }

    /// Sleeps until the word may have changed; see Sleepers::sleep(). If a network writes to this
    /// rank's memory without waking threads, the sleep on a word that peers can name ends after
    /// SILENT.
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
        let limit = match limit {
            limit if self.fabric.must_poll_here() => Some(limit.unwrap_or(NAP).min(NAP)),
            limit => limit,
        };
        self.sleepers.sleep(self.waiters(), awaited, limit, enough)
    }

    /// The port to a peer that was contacted; None for any other number.
    #[inline(always)]
    pub fn known(&self, peer: u32) -> Option<&Port> {
        self.ports.get(peer as usize)?.get()
    }

    /// The port to a peer. The first call begins a contact and returns RETRY_CONNECTING. If the
    /// contact fails, one call returns the error, and the next one begins another contact. Never
    /// waits.
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

    /// Takes the error of the last contact with a peer. None also if another thread holds the lock;
    /// a later call then gets the error.
    fn take_failure(&self, peer: u32) -> Option<Error> {
        // Acquire: pairs with contacted().
        if self.failed.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.failures.try_lock().ok()?.get_mut(&peer)?.why.take()
    }

    /// The port to a peer that the library itself wants to answer. It leaves the error of a failed
    /// contact to the users' calls. For a time PAUSE after a failed contact it returns ERR_SYSTEM;
    /// then it begins another contact.
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

    /// Makes the port from a peer's card, or notes why there is no card. The thread `llcl-watch`
    /// calls this, and then notify_contacts().
    fn contacted(&self, peer: u32, card: Result<Card>) {
        if self.known(peer).is_none() {
            match card.and_then(|card| self.fabric.connect(peer, card)) {
                // Only this thread sets ports of other ranks, so set() succeeds.
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

    /// Wakes the threads that wait for a contact, the progress thread, which serves kept requests,
    /// and the threads that run handlers, which send parked responses.
    pub fn notify_contacts(&self) {
        // Release: pairs with contacts(). A thread that sees the new number sees the port, the
        // failure or the death.
        self.contacts.fetch_add(1, Ordering::Release);
        self.bell().ring();
        self.fabric.own_words().requests.bell().ring();
        self.waiters().touched_word(self.contacts.as_ptr() as u64);
    }

    /// A number that changes when contacts have ended. A thread that waits for a contact reads it,
    /// then asks for the port, and asks again when the number has changed.
    #[inline]
    pub fn contacts(&self) -> u64 {
        // Acquire: pairs with notify_contacts().
        self.contacts.load(Ordering::Acquire)
    }

    /// The word on which a thread that waits for a contact sleeps.
    pub fn next_contact(&self) -> Awaited {
        Awaited::private(self.contacts.as_ptr())
    }

    /// Failures of operations without completions.
    pub fn unreported(&self) -> &Unreported {
        &self.unreported
    }

    /// The registered receivers of control messages.
    pub fn control_messages(&self) -> &ControlMessages {
        &self.control_messages
    }

    /// The transports, and the senders of messages to all peers.
    #[inline(always)]
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The transport that leads to a peer.
    pub fn transport(&self, port: &Port) -> &dyn Transport {
        self.fabric.transport(port)
    }

    /// How this rank accesses a peer's memory. After Mapped, Port::find() finds the address.
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

    /// Like `locate`, for callers that need mapped memory. ERR_UNSUPPORTED: it cannot be mapped.
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

    /// Announces an address in this rank's memory under a name that all peers can compute.
    pub fn announce(&self, name: u64, place: Address) -> Result<()> {
        if !self.fabric.announce(name, place) {
            fail!(ERR_NO_MEMORY, "this rank is in too many teams, expected some hundreds at most");
        }
        Ok(())
    }

    /// Notes for peers that no address will be announced under a name. False: there is no room for
    /// another refusal now.
    pub fn refuse(&self, name: u64) -> bool {
        self.fabric.refuse(name)
    }

    /// How many peers have read the refusal by see_refusal().
    pub fn refusals_seen(&self, name: u64) -> u64 {
        self.fabric.refusals_seen(name)
    }

    /// Whether a connected peer refuses a name. If so, counts this rank in the peer's
    /// refusals_seen(). The caller repeats announced() and this until one of them succeeds, and
    /// must not call this again after true.
    pub fn see_refusal(&self, peer: u32, name: u64) -> bool {
        self.fabric.see_refusal(peer, name)
    }

    /// Withdraws the name of announce() or refuse().
    pub fn withdraw(&self, name: u64) {
        self.fabric.withdraw(name);
    }

    /// The address that a connected peer has announced under a name, if it has.
    pub fn announced(&self, peer: u32, name: u64) -> Option<Address> {
        self.fabric.announced(peer, name)
    }

    /// The bell of this rank's progress thread.
    pub fn bell(&self) -> &Bell {
        self.segment.control().bell()
    }

    /// Wakes a rank's progress thread.
    pub fn ring(&self, peer: u32) {
        self.fabric.ring(peer);
    }

    /// The number of peers that have died or left. A thread that sees another number than before
    /// checks its peers.
    #[inline(always)]
    pub fn deaths(&self) -> u32 {
        // Acquire: pairs with mark_dead(); a thread that sees the number sees which peers are dead.
        self.deaths.load(Ordering::Acquire)
    }

    /// Whether a peer has died or left.
    pub fn is_dead(&self, peer: u32) -> bool {
        self.fabric.is_dead(peer) || self.bootstrap.is_dead(peer)
    }

    /// Marks a peer dead and closes its port. The operations that are pending on it end in the next
    /// round of the lane, for which this rings. The caller is not pinned.
    pub fn mark_dead(&self, peer: u32) {
        let news = peer != self.me && self.fabric.mark_dead(peer);
        if let (true, Some(port)) = (peer != self.me, self.known(peer)) {
            port.close();
        }
        if news {
            self.control_messages.forget(peer);
            // Release: the peer was marked dead above; pairs with take_news().
            self.fabric.news.store(true, Ordering::Release);
            self.deaths.fetch_add(1, Ordering::Release);
            // Threads that wait for a contact with the peer must give up.
            self.notify_contacts();
            // The peer may have died after it took the wake flag of the thread that runs handlers
            // and before it rang.
            self.segment.control().message_head().requests.bell().ring();
            // Wakes threads that wait for a store of this peer.
            self.waiters().touched_anything();
        }
    }

    /// Whether take_news() would return true.
    pub fn has_news(&self) -> bool {
        self.fabric.news.load(Ordering::Relaxed)
    }

    /// Whether a peer has died or a question was put into the fabric since the last call. The
    /// caller must end the operations pending on dead peers, and send the questions.
    #[inline]
    pub fn take_news(&self) -> bool {
        // Acquire: pairs with mark_dead() and Fabric::locate_far().
        self.has_news() && self.fabric.news.swap(false, Ordering::Acquire)
    }
}
