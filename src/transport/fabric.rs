//! All transports of one rank, and the choice between them: [`Loopback`] leads to the rank itself,
//! [`Node`] to ranks of the same node, a wire to all others. The fabric chooses once, when it
//! connects to a peer, by the peer's card ([`placement`]).
//!
//! The fabric opens a wire if `LLCL_TRANSPORT` names one, or if the ranks run on several machines.
//! A wire that `LLCL_TRANSPORT` names leads to all peers, unless `LLCL_NODE_ID` says which ranks
//! share a node; in all other cases the wire leads to the ranks of other nodes.
//!
//! The layers above use this module and the contracts beside it, and name no transport.
//!
//! # Messages
//!
//! Every rank has its message slots in its own memory (`memory::message_area`), separate ones for
//! each [`Class`]. Senders on the node, and the rank's endpoint for frames from a wire, write the
//! slots. So the receiving side is one for all senders. [`Carrier`] is the contract of the sending
//! sides.

use crate::bootstrap::{Bootstrap, Card};
use crate::fail;
use crate::transport::address::Address;
use crate::transport::carrier::{Bytes, Carrier, Peer, Polled, Sleeper};
use crate::transport::frame::{Class, Frame};
use crate::transport::loopback::Loopback;
use crate::transport::memory::message_area::MessageHead;
use crate::transport::memory::message_receiver::MessageReceiver;
use crate::transport::memory::segment::Segment;
use crate::transport::node::{self, Node};
use crate::transport::port::{Port, Reach};
use crate::transport::waiters::Awaited;
use crate::transport::wire::endpoint::Endpoint;
use crate::transport::{Access, Receiver, Transport};
use crate::util::counters::Counters;
use crate::util::fence::heavy_fence;
use crate::util::status::Result;
use crate::util::sync::{AtomicBool, AtomicPtr};
use std::os::fd::AsFd;
use std::sync::Arc;

mod by_wire;
#[cfg(all(test, feature = "simulated"))]
pub use by_wire::made::{MakeWire, simulate, simulate_two, use_wire};
pub use by_wire::{Launch, TRANSPORT, modules};
pub mod far;
pub mod placement;

use placement::Placement;

/// The transports of one rank.
pub struct Fabric {
    wire: Option<Endpoint>,
    far: far::FarPeers,
    /// The holder of the lane's role must look: a peer has died, or a question to the owner of a
    /// key is to be sent.
    pub news: AtomicBool,
    /// Whether the calling thread runs a callback (it may hold the lane's role).
    in_callback: fn() -> bool,
    me: u32,
    placement: Placement,
    loopback: Loopback,
    node: Node,
    own: Arc<Segment>,
}

impl Fabric {
    /// Opens the transports of the rank whose memory is `own`, and publishes its card: from now on
    /// peers can connect.
    pub fn join(
        own: Arc<Segment>,
        bootstrap: &Arc<Bootstrap>,
        kernel_copies: bool,
        in_callback: fn() -> bool,
    ) -> Result<Fabric> {
        if kernel_copies {
            // Before the card is published, since peers try kernel copies when they connect.
            node::permit_kernel_copies();
        }
        let (me, size) = (bootstrap.rank(), bootstrap.size());
        let card = node::card(&own).to_vec();
        let (wire, card) = by_wire::join(&own, bootstrap, card)?;
        let placement = Placement::own(bootstrap, wire.is_some(), by_wire::is_forced())?;
        let card = [&far::numbers(&own.control().message_sizes())[..], &card].concat();
        let card = [&placement.encode()[..], &card].concat();
        bootstrap.publish(&card, own.descriptor().as_fd())?;
        // SAFETY: the fabric keeps the segment longer than the transport; ports are dropped before
        // the fabric.
        let loopback = unsafe { Loopback::new(own.control().waiters()) };
        let node = Node::new(own.clone(), bootstrap.clone(), kernel_copies);
        let fabric = Fabric {
            wire,
            far: far::FarPeers::new(size)?,
            news: AtomicBool::new(false),
            in_callback,
            me,
            placement,
            loopback,
            node,
            own,
        };
        fabric.connect_own()?;
        Ok(fabric)
    }

    /// Whether there is a wire.
    pub fn is_networked(&self) -> bool {
        self.wire.is_some()
    }

    /// The identity of this rank's node: ranks with equal numbers share memory. None: all ranks
    /// share memory.
    pub fn node(&self) -> Option<u64> {
        self.wire.as_ref().map(|_| self.placement.identity())
    }

    /// The receiving sides of all transports. Called once.
    pub fn receivers(&self, counts: Arc<Counters>) -> Vec<Box<dyn Receiver>> {
        let mut all: Vec<Box<dyn Receiver>> =
            vec![Box::new(self.node.receiver(counts)), Box::new(self.loopback.receiver())];
        if let Some(wire) = self.remote() {
            all.push(Box::new(wire.receiver()));
        }
        all
    }

    /// Makes the port to this rank itself.
    pub fn own_port(&self) -> Result<Port> {
        let port = self.loopback.connect(self.me)?;
        Ok(port.by(Reach::Own, self.placement.number))
    }

    /// Makes the port to the peer that has this card. One thread at a time calls it.
    pub fn connect(&self, peer: u32, mut card: Card) -> Result<Port> {
        let placement = Placement::take(&mut card.blob, peer)?;
        let near = card.fd.is_some() && placement.shares_memory_with(self.placement);
        let reach = self.reach(peer, placement, near)?;
        let sizes = far::take_numbers(&mut card.blob, peer)?;
        let card = self.connect_wire(peer, card, reach)?;
        let port = match reach {
            Reach::Wire => {
                let process = Fabric::process_of(&card);
                // Before anything else knows the peer, so that no thread looks for it on the node.
                self.node.set_far(peer);
                self.far.connect(self.me, peer, process, sizes)?
            }
            _ => self.node.connect(peer, card)?,
        };
        Ok(port.by(reach, placement.number))
    }

    /// Chooses the transport to a peer. `near`: the peer shares memory with this rank.
    fn reach(&self, peer: u32, placement: Placement, near: bool) -> Result<Reach> {
        if near {
            return Ok(Reach::Node);
        }
        if self.wire.is_some() {
            return Ok(Reach::Wire);
        }
        let (there, here) = (placement.number, self.placement.number);
        fail!(
            ERR_UNSUPPORTED,
            "rank {peer} runs on another node (number {there}, this rank's is {here}), and this \
             rank has no wire"
        );
    }

    /// The transport that leads to a peer.
    pub fn transport(&self, port: &Port) -> &dyn Transport {
        if port.reach == Reach::Wire {
            return self;
        }
        self.shared(port)
    }

    /// Maps a peer's memory for collectives, which access it by loads and stores only.
    /// ERR_UNSUPPORTED if a wire leads to the peer.
    pub fn map(&self, port: &Port, address: Address, size: u64) -> Result<Access> {
        if port.reach == Reach::Wire {
            fail!(
                ERR_UNSUPPORTED,
                "rank {} runs on another node: its memory is not mapped",
                port.peer
            );
        }
        self.shared(port).locate(port, address, size)
    }

    /// The transport to a rank of this node, or to this rank.
    fn shared(&self, port: &Port) -> &dyn Transport {
        if port.peer == self.me { &self.loopback } else { &self.node }
    }

    /// Whether mark_dead() was called for a peer.
    #[inline(always)]
    pub fn is_dead(&self, peer: u32) -> bool {
        self.node.is_dead(peer)
    }

    /// Marks a peer as dead, see [`Transport::mark_dead`]. True the first time.
    pub fn mark_dead(&self, peer: u32) -> bool {
        if let Some(wire) = &self.wire {
            // Even if this rank has not connected to the peer: the peer may have sent frames.
            wire.mark_dead(peer);
        }
        self.node.mark_dead(peer)
    }

    /// Wakes the progress thread of this rank, or of a connected peer of this node.
    pub fn ring(&self, peer: u32) {
        match peer == self.me {
            true => self.own.control().bell().ring(),
            false => self.node.ring(peer),
        }
    }

    /// Publishes a place in this rank's memory under a name; see `memory::names`.
    pub fn announce(&self, name: u64, place: Address) -> bool {
        self.own.control().names().announce(name, place)
    }

    /// Publishes that this rank will have no place for a name; see `memory::names`.
    pub fn refuse(&self, name: u64) -> bool {
        self.own.control().names().refuse(name)
    }

    /// Number of peers that have seen the refusal.
    pub fn refusals_seen(&self, name: u64) -> u64 {
        self.own.control().names().refusals_seen(name)
    }

    /// Ends announce() and refuse().
    pub fn withdraw(&self, name: u64) {
        self.own.control().names().withdraw(name);
    }

    /// Whether a connected peer of this node refuses a name. A true answer counts as seen, so a
    /// caller does not ask again after it.
    pub fn see_refusal(&self, peer: u32, name: u64) -> bool {
        self.node.see_refusal(peer, name)
    }

    /// The place that a connected peer of this node has published under a name.
    pub fn announced(&self, peer: u32, name: u64) -> Option<Address> {
        self.node.announced(peer, name)
    }

    /// Polls a wire without a descriptor, for a thread that waits; see Endpoint::help().
    #[inline]
    pub fn help_wire(&self, looks: u32, before: &mut dyn FnMut()) -> Polled {
        self.wire.as_ref().map_or(Polled::Nothing, |wire| wire.help(looks, before))
    }

    /// Like `help_wire`, for the progress thread; see Endpoint::help_aside().
    pub fn help_wire_aside(&self, looks: u32, before: &mut dyn FnMut()) -> Polled {
        self.wire.as_ref().map_or(Polled::Nothing, |wire| wire.help_aside(looks, before))
    }

    /// See Endpoint::leave().
    pub fn leave_wire(&self) {
        self.wire.iter().for_each(Endpoint::leave);
    }

    /// Whether threads that wait should call help_wire().
    #[inline]
    pub fn has_silent_wire(&self) -> bool {
        self.wire.as_ref().is_some_and(Endpoint::wakes_nobody)
    }

    /// Whether only the thread that has made the context makes the wire progress.
    pub fn opener_polls(&self) -> bool {
        self.wire.as_ref().is_some_and(Endpoint::opener_polls)
    }

    /// Whether the calling thread is the one of opener_polls(). It must not sleep for long, since
    /// nobody would poll.
    pub fn must_poll_here(&self) -> bool {
        self.wire.as_ref().is_some_and(Endpoint::must_poll_here)
    }
}

/// Messages.
impl Fabric {
    /// The receiver of messages of one class. Called once for each class.
    pub fn message_receiver(&self, counts: Arc<Counters>, class: Class) -> MessageReceiver {
        self.node.message_receiver(counts, class)
    }

    /// The sending state towards a peer, if message_sender() has made it.
    #[inline(always)]
    pub fn known_sender(&self, peer: u32) -> Option<&Peer> {
        self.node.known_sender(peer).or_else(|| self.far.sender(peer))
    }

    /// The senders for short messages, by rank; null: short messages to this rank use put(). The
    /// senders live as long as the fabric, and need no look-up and no check of the peer.
    pub fn short_senders(&self) -> &[AtomicPtr<Peer>] {
        self.node.short_senders()
    }

    /// The sending state towards this rank itself or a connected peer; made at the first use.
    pub fn message_sender(&self, peer: u32) -> Result<&Peer> {
        if let Some(far) = self.far.sender(peer) {
            return Ok(far);
        }
        self.node.message_sender(peer)
    }

    /// A second rank to which this rank must connect before it sends to a peer, since a counter of
    /// the peer's credits lies in its memory. None: there is none, or the peer is not connected.
    pub fn nearest_host(&self, peer: u32) -> Option<u32> {
        if self.wire_to(peer).is_some() {
            return None;
        }
        self.node.nearest_host(peer)
    }

    /// Sends a message of a class; see [`Carrier::put`].
    #[inline(always)]
    pub fn put(&self, to: &Peer, class: Class, frame: &Frame, counts: &Counters) -> bool {
        if let Some(wire) = self.wire_to(to.peer()) {
            return Carrier::put(wire, to, class, frame, counts);
        }
        Carrier::put(&self.node, to, class, frame, counts)
    }

    /// Whether there is a credit for a message of a class; see [`Carrier::has_credit`].
    pub fn has_credit(&self, to: &Peer, class: Class, bytes: Bytes) -> bool {
        if let Some(wire) = self.wire_to(to.peer()) {
            return Carrier::has_credit(wire, to, class, bytes);
        }
        Carrier::has_credit(&self.node, to, class, bytes)
    }

    /// Asks that a thread be woken when there is a credit; see [`Carrier::ask_wake`].
    pub fn ask_wake(&self, to: &Peer, class: Class, bytes: Bytes, sleeper: Sleeper) -> bool {
        if let Some(wire) = self.wire_to(to.peer()) {
            return Carrier::ask_wake(wire, to, class, bytes, sleeper);
        }
        Carrier::ask_wake(&self.node, to, class, bytes, sleeper)
    }

    /// For messages that wait for credit, each with its receiver: asks for a ring of the progress
    /// thread when there is credit for one of them. False: there is credit, or nobody would ring. A
    /// message without a receiver counts as one for which nobody rings.
    pub fn sleeps_for_credit<'a, I>(&self, waiting: impl Fn() -> I) -> bool
    where
        I: Iterator<Item = Option<(&'a Peer, Class, Bytes)>>,
    {
        let lacks = |it: Option<(&'a Peer, Class, Bytes)>| {
            it.filter(|(to, class, bytes)| !self.has_credit(to, *class, *bytes))
        };
        let asks = |(to, class, bytes)| self.ask_wake(to, class, bytes, Sleeper::Progress);
        // After the fence either the thread that makes room sees that it must ring, or this
        // thread sees the room; see Carrier::ask_wake().
        waiting().all(|it| lacks(it).is_some_and(asks))
            && heavy_fence()
            && waiting().all(|it| lacks(it).is_some())
    }

    /// Whether threads of the program may sleep at this peer for a credit: it shares memory with
    /// this rank. See MessageSender::watch().
    pub fn frees_wake(&self, peer: u32) -> bool {
        self.wire_to(peer).is_none()
    }

    /// What threads await that have asked for [`Sleeper::Program`].
    pub fn room_at_wire(&self) -> Awaited {
        Awaited::private(by_wire::room_of(self.own.control()))
    }

    /// Whether all messages of this rank lie in slots of their receivers; see
    /// [`Endpoint::has_delivered_all`]. On a node a message lies there when put() returns.
    pub fn has_delivered_all(&self) -> bool {
        self.wire.as_ref().is_none_or(Endpoint::has_delivered_all)
    }

    /// The head of this rank's message area.
    #[inline(always)]
    pub fn own_words(&self) -> &MessageHead {
        self.own.control().message_head()
    }

    /// Most bytes of payload of a reply to this rank.
    pub fn own_medium(&self) -> usize {
        self.own.control().message_sizes().medium
    }

    /// The ticket that the next reply to this rank gets.
    pub fn replies_sent(&self) -> u64 {
        self.own.control().replies_sent()
    }

    /// Most bytes of memory of the slots of active messages.
    pub fn message_bytes(&self) -> u64 {
        self.own.control().message_bytes()
    }

    /// Number of shares into which this rank's slots are split.
    pub fn message_shares(&self) -> u32 {
        self.own.control().message_sizes().shares as u32
    }
}
