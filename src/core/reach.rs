//! How a peer is reached, for llcl_query_peer.

use crate::core::context::Context;
use crate::fail;
use crate::transport::{Access, port};
use crate::util::status::Result;

/// How a peer is reached.
pub struct Reach {
    /// The kind of transport.
    pub by: port::Reach,
    /// The number of its node.
    pub node: u32,
    /// Its process.
    pub process: u32,
    /// How memory that it registered is read.
    pub registered: Access,
    /// Why the kernel does not copy from its memory, and to its memory: an errno each, or 0.
    pub refusals: (i32, i32),
    /// Most bytes of a message's payload to it.
    pub payload: usize,
    /// Most bytes of a reply to it.
    pub medium: usize,
    /// The number of its message slots, and the policy by which senders take them.
    pub slots: (usize, u32),
}

impl Context {
    /// Tells how a peer is reached. Contacts it first, if necessary.
    pub fn reach(&self, peer: u32) -> Result<Reach> {
        let (routes, port) = (self.routes(), self.port(peer)?);
        let own = peer == self.rank();
        if !own && routes.is_dead(peer) {
            fail!(ERR_PEER_DEAD, "rank {peer} has died or has left");
        }
        let (transport, sender) = (routes.transport(port), routes.fabric().message_sender(peer)?);
        Ok(Reach {
            by: port.reach,
            node: port.node,
            process: port.process,
            registered: transport.registered_access(port),
            refusals: transport.kernel_refusals(port),
            payload: sender.largest(),
            medium: sender.medium(),
            slots: (sender.slots(), sender.policy()),
        })
    }
}
