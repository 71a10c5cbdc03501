//! All transports of one rank, and which of them leads to which peer: oneself by [`Loopback`],
//! ranks of the same node by [`Node`], others by a wire. Which it is follows from the cards
//! ([`placement`]), and is decided once, when a peer is contacted. There is a wire where
//! `LLCL_TRANSPORT` asks for one, and where the ranks run on several machines. Asked for, it leads
//! to all peers; else, and where `LLCL_NODE_ID` says which ranks share a node, to those of other
//! nodes.
//!
//! What lies above this folder knows this module and the contracts beside it, and no transport.
//!
//! # Messages
//!
//! Every rank has its message slots in its own memory (`memory::message_area`), separate ones for
//! each [`Class`], and whatever carries messages puts them there. So there is one receiving side,
//! whoever the senders are. What a carrier must do is [`Carrier`].

use crate::bootstrap::{Bootstrap, Card};
use crate::fail;
use crate::transport::address::Address;
use crate::transport::carrier::{Carrier, Peer};
use crate::transport::frame::{Class, Frame};
use crate::transport::loopback::Loopback;
use crate::transport::memory::message_area::MessageHead;
use crate::transport::memory::message_receiver::MessageReceiver;
use crate::transport::memory::segment::Segment;
use crate::transport::node::{self, Node};
use crate::transport::port::{Port, Reach};
use crate::transport::wire::endpoint::Endpoint;
use crate::transport::{Access, Receiver, Transport};
use crate::util::counters::Counters;
use crate::util::status::Result;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr};

mod by_wire;
#[cfg(all(test, feature = "simulated"))]
pub use by_wire::simulate;
pub use by_wire::{Launch, modules};
pub mod far;
pub mod placement;

use placement::Placement;

/// See the head of the file.
pub struct Fabric {
    wire: Option<Endpoint>,
    far: far::FarPeers,
    /// There is something for the holder of the lane's role: a death, or a question to be sent.
    pub news: AtomicBool,
    /// Whether the calling thread runs a callback, perhaps as the holder of the lane's role.
    in_callback: fn() -> bool,
    me: u32,
    placement: Placement,
    loopback: Loopback,
    node: Node,
    own: Arc<Segment>,
}

impl Fabric {
    /// The transports of the rank whose memory is `own`, which peers can contact from now on.
    pub fn join(
        own: Arc<Segment>,
        bootstrap: &Arc<Bootstrap>,
        kernel_copies: bool,
        in_callback: fn() -> bool,
    ) -> Result<Fabric> {
        if kernel_copies {
            // Before peers hear of this process, which try at once.
            node::permit_kernel_copies();
        }
        let (me, size) = (bootstrap.rank(), bootstrap.size());
        let card = node::card(&own).to_vec();
        let (wire, card) = by_wire::join(&own, bootstrap, card)?;
        let placement = Placement::own(bootstrap, wire.is_some(), by_wire::is_forced())?;
        let card = [&far::numbers(&own.control().message_sizes())[..], &card].concat();
        let card = [&placement.encode()[..], &card].concat();
        bootstrap.publish(&card, own.descriptor().as_fd())?;
        // SAFETY: the segment is kept below, longer than the transport; ports go before both.
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

    /// Whether a wire leads anywhere.
    pub fn is_networked(&self) -> bool {
        self.wire.is_some()
    }

    /// A number that those ranks have in common that share memory. None: all ranks do.
    pub fn node(&self) -> Option<u64> {
        self.wire.as_ref().map(|_| self.placement.identity())
    }

    /// The receiving ends of all transports; to be taken once.
    pub fn receivers(&self, counts: Arc<Counters>) -> Vec<Box<dyn Receiver>> {
        let mut all: Vec<Box<dyn Receiver>> =
            vec![Box::new(self.node.receiver(counts)), Box::new(self.loopback.receiver())];
        if let Some(wire) = self.remote() {
            all.push(Box::new(wire.receiver()));
        }
        all
    }

    /// The path to oneself.
    pub fn own_port(&self) -> Result<Port> {
        let port = self.loopback.connect(self.me)?;
        Ok(port.by(Reach::Own, self.placement.number))
    }

    /// The path to a peer that has shown its card. Called once at a time.
    pub fn connect(&self, peer: u32, mut card: Card) -> Result<Port> {
        let placement = Placement::take(&mut card.blob, peer)?;
        let near = card.fd.is_some() && placement.shares_memory_with(self.placement);
        let reach = self.reach(peer, placement, near)?;
        let sizes = far::take_numbers(&mut card.blob, peer)?;
        let card = self.connect_wire(peer, card, reach)?;
        let port = match reach {
            Reach::Wire => {
                let process = Fabric::process_of(&card);
                // First: nothing takes the peer for a neighbour.
                self.node.set_far(peer);
                self.far.connect(self.me, peer, process, sizes)?
            }
            _ => self.node.connect(peer, card)?,
        };
        Ok(port.by(reach, placement.number))
    }

    /// What leads to a peer at this place.
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
            "rank {peer} runs on another node (number {there}, this rank's is {here}), and no wire \
             leads there"
        );
    }

    /// The transport that leads to a peer.
    pub fn transport(&self, port: &Port) -> &dyn Transport {
        if port.reach == Reach::Wire {
            return self;
        }
        self.shared(port)
    }

    /// Maps a peer's memory, for callers that touch it themselves or not at all: collectives.
    /// ERR_UNSUPPORTED where a wire leads to the peer.
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

    /// The transport by which the memory of a neighbour is reached, or one's own.
    fn shared(&self, port: &Port) -> &dyn Transport {
        if port.peer == self.me { &self.loopback } else { &self.node }
    }

    /// Whether mark_dead() was called for a peer.
    #[inline(always)]
    pub fn is_dead(&self, peer: u32) -> bool {
        self.node.is_dead(peer)
    }

    /// The peer is dead: what it has half sent may be passed over. True the first time.
    pub fn mark_dead(&self, peer: u32) -> bool {
        if let Some(wire) = &self.wire {
            // Frames of a peer come whether or not it was contacted.
            wire.mark_dead(peer);
        }
        self.node.mark_dead(peer)
    }

    /// Wakes a peer's progress thread; nothing where the peer has not been talked to.
    pub fn ring(&self, peer: u32) {
        match peer == self.me {
            true => self.own.control().bell().ring(),
            false => self.node.ring(peer),
        }
    }

    /// Lets peers find a place in this rank's memory by a name; see Names.
    pub fn announce(&self, name: u64, place: Address) -> bool {
        self.own.control().names().announce(name, place)
    }

    /// Tells peers that a name will have no place; see Names.
    pub fn refuse(&self, name: u64) -> bool {
        self.own.control().names().refuse(name)
    }

    /// How many peers have heard that.
    pub fn heard(&self, name: u64) -> u64 {
        self.own.control().names().heard(name)
    }

    /// Ends announce() and refuse().
    pub fn withdraw(&self, name: u64) {
        self.own.control().names().withdraw(name);
    }

    /// Whether a peer that was connected to refuses a name. Asked until it does, once.
    pub fn hear_refusal(&self, peer: u32, name: u64) -> bool {
        self.node.hear_refusal(peer, name)
    }

    /// The place of this name at a peer that was connected to.
    pub fn announced(&self, peer: u32, name: u64) -> Option<Address> {
        self.node.announced(peer, name)
    }
}

/// Messages.
impl Fabric {
    /// The receiver of messages of one class; each to be made once.
    pub fn message_receiver(&self, counts: Arc<Counters>, class: Class) -> MessageReceiver {
        self.node.message_receiver(counts, class)
    }

    /// What is known of a peer that was sent to before.
    #[inline(always)]
    pub fn known_sender(&self, peer: u32) -> Option<&Peer> {
        self.node.known_sender(peer).or_else(|| self.far.sender(peer))
    }

    /// By which senders short messages go, by rank: null where they take the long way. They stay as
    /// long as this, and whoever sends by them asks nothing else of the peer.
    pub fn short_ways(&self) -> &[AtomicPtr<Peer>] {
        self.node.short_ways()
    }

    /// The way of messages to oneself or to a peer that was contacted, made at first use.
    pub fn message_sender(&self, peer: u32) -> Result<&Peer> {
        if let Some(far) = self.far.sender(peer) {
            return Ok(far);
        }
        self.node.message_sender(peer)
    }

    /// Which rank is to be contacted as well before one sends to a peer: it keeps a counter of the
    /// peer's. None: no other, or the peer was not contacted.
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
    pub fn has_credit(&self, to: &Peer, class: Class) -> bool {
        if let Some(wire) = self.wire_to(to.peer()) {
            return Carrier::has_credit(wire, to, class);
        }
        Carrier::has_credit(&self.node, to, class)
    }

    /// Whether a peer that frees a slot wakes the senders that sleep for it.
    pub fn frees_wake(&self, peer: u32) -> bool {
        self.wire_to(peer).is_none()
    }

    /// Whether all that this rank has sent lies in slots of its receivers.
    pub fn has_delivered_all(&self) -> bool {
        self.wire.as_ref().is_none_or(Endpoint::has_delivered_all)
    }

    /// This rank's own words of messages.
    #[inline(always)]
    pub fn own_words(&self) -> &MessageHead {
        self.own.control().message_head()
    }

    /// Most bytes of a reply that this rank takes.
    pub fn own_medium(&self) -> usize {
        self.own.control().message_sizes().medium
    }

    /// The next ticket for a reply to this rank.
    pub fn replies_sent(&self) -> u64 {
        self.own.control().replies_sent()
    }

    /// Bytes that the slots of active messages take at most.
    pub fn message_bytes(&self) -> u64 {
        self.own.control().message_bytes()
    }

    /// Into how many shares this rank's slots are split.
    pub fn message_shares(&self) -> u32 {
        self.own.control().message_sizes().shares as u32
    }
}
