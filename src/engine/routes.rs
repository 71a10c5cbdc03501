//! Which transport leads to which peer, and the ports to those that were talked to.

use crate::bootstrap::Bootstrap;
use crate::fail;
use crate::transport::address::Address;
use crate::transport::loopback::Loopback;
use crate::transport::node::Node;
use crate::transport::node::segment::Segment;
use crate::transport::port::Port;
use crate::transport::sleepers::Sleepers;
use crate::transport::waiters::{Awaited, Waiters};
use crate::transport::{Access, Receiver, Transport};
use crate::util::bell::Bell;
use crate::util::pin::pin;
use crate::util::status::Result;
use once_cell::race::OnceBox;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// The ranks of the world as this one reaches them. A peer that was never talked to costs one
/// pointer here.
pub struct Routes {
    // Declared first, hence dropped first: ports point into what the transports keep.
    ports: Box<[OnceBox<Port>]>,
    me: u32,
    loopback: Loopback,
    node: Node,
    bootstrap: Arc<Bootstrap>,
    segment: Arc<Segment>,
    sleepers: Sleepers,
    /// A peer has died, and what is pending on it has not been ended.
    deaths_pending: AtomicBool,
    deaths: AtomicU32,
}

impl Routes {
    /// Routes to everybody; nobody is contacted yet.
    pub fn new(
        segment: Arc<Segment>,
        bootstrap: Arc<Bootstrap>,
        kernel_copies: bool,
    ) -> Result<Routes> {
        let me = bootstrap.rank();
        // SAFETY: the segment is kept below, longer than the transport and the ports.
        let loopback = unsafe { Loopback::new(segment.control().waiters()) };
        let node = Node::new(segment.clone(), bootstrap.clone(), kernel_copies);
        let ports: Box<[OnceBox<Port>]> = (0..bootstrap.size()).map(|_| OnceBox::new()).collect();
        // The port to oneself is there from the beginning.
        ports[me as usize].get_or_try_init(|| loopback.connect(me).map(Box::new))?;
        Ok(Routes {
            ports,
            me,
            loopback,
            node,
            bootstrap,
            segment,
            sleepers: Sleepers::default(),
            deaths_pending: AtomicBool::new(false),
            deaths: AtomicU32::new(0),
        })
    }

    /// The receiving ends of all transports; to be taken once.
    pub fn receivers(&self) -> Vec<Box<dyn Receiver>> {
        vec![Box::new(self.node.receiver()), Box::new(self.loopback.receiver())]
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

    /// Sleeps until the word may have changed; see Sleepers::sleep().
    pub fn sleep(
        &self,
        awaited: Awaited,
        limit: Option<Duration>,
        enough: impl Fn() -> bool,
    ) -> bool {
        self.sleepers.sleep(self.waiters(), awaited, limit, enough)
    }

    /// The port to a peer that was talked to; None for any other number.
    #[inline(always)]
    pub fn known(&self, peer: u32) -> Option<&Port> {
        self.ports.get(peer as usize)?.get()
    }

    /// The port to a peer, made at first use. Blocks until the peer has come up.
    pub fn port(&self, peer: u32) -> Result<&Port> {
        if let Some(port) = self.known(peer) {
            return Ok(port);
        }
        let Some(place) = self.ports.get(peer as usize) else {
            fail!(ERR_INVALID, "peer is {peer}, expected a rank below {}", self.ports.len());
        };
        let port = place.get_or_try_init(|| self.node.connect(peer).map(Box::new))?;
        if self.bootstrap.is_dead(peer) {
            self.mark_dead(peer);
        }
        Ok(port)
    }

    /// The transport that carries active messages, to whomever.
    #[inline(always)]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The transport that leads to a peer.
    pub fn transport(&self, port: &Port) -> &dyn Transport {
        if port.peer == self.me { &self.loopback } else { &self.node }
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

    /// Lets peers find a place in this rank's memory by a name that all of them can work out.
    pub fn announce(&self, name: u64, place: Address) -> Result<()> {
        if !self.node.announce(name, place) {
            fail!(ERR_NO_MEMORY, "this rank is in too many teams, expected some hundreds at most");
        }
        Ok(())
    }

    /// The name means nothing any more.
    pub fn withdraw(&self, name: u64) {
        self.node.withdraw(name);
    }

    /// The place of this name at a connected peer; None: the peer has announced none, or not yet.
    pub fn announced(&self, peer: u32, name: u64) -> Option<Address> {
        self.node.announced(peer, name)
    }

    /// This rank's own staging chunk `number`.
    pub fn own_staging(&self, number: usize) -> Option<*mut u8> {
        self.segment.control().chunk(number)
    }

    /// What this rank's progress thread sleeps on.
    pub fn bell(&self) -> &Bell {
        self.segment.control().bell()
    }

    /// Wakes a rank's progress thread.
    pub fn ring(&self, peer: u32) {
        match peer == self.me {
            true => self.bell().ring(),
            false => self.node.ring(peer),
        }
    }

    /// How many peers have died or left so far: who finds another number than before looks which.
    #[inline(always)]
    pub fn deaths(&self) -> u32 {
        // Acquire: pairs with bury(); who sees the number sees who is dead.
        self.deaths.load(Ordering::Acquire)
    }

    /// Whether a peer has died or left.
    pub fn is_dead(&self, peer: u32) -> bool {
        self.node.is_dead(peer) || self.bootstrap.is_dead(peer)
    }

    /// The peer is dead: nothing of it is found from now on, and what is pending on it ends in the
    /// next round of the lane, which this brings about. The caller is not pinned.
    pub fn mark_dead(&self, peer: u32) {
        let news = peer != self.me && self.node.mark_dead(peer);
        if let (true, Some(port)) = (peer != self.me, self.known(peer)) {
            port.close();
        }
        if news {
            // Release: the peer is known to be dead before; pairs with take_deaths().
            self.deaths_pending.store(true, Ordering::Release);
            self.deaths.fetch_add(1, Ordering::Release);
            self.bell().ring();
            // It may have died on its way to wake who runs handlers, and then nobody else would.
            self.segment.control().mail().head.requests.bell().ring();
            // Who waits for what only this peer would have done.
            self.waiters().touched_anything();
        }
    }

    /// Whether a peer has died since take_deaths().
    pub fn has_deaths(&self) -> bool {
        self.deaths_pending.load(Ordering::Relaxed)
    }

    /// The same, and from now on it is the caller's to end what is pending on the dead.
    #[inline]
    pub fn take_deaths(&self) -> bool {
        // Acquire: pairs with bury().
        self.has_deaths() && self.deaths_pending.swap(false, Ordering::Acquire)
    }
}
