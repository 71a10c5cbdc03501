//! Peers behind the simulated network: messages travel over it, and a peer's memory is touched
//! by its owner only. The directory of regions, the names and the list of handlers are read in the
//! peer's memory, as on a node.

use super::Fabric;
use crate::bootstrap::Card;
use crate::fail;
use crate::transport::address::Address;
use crate::transport::carrier::{Carrier, Peer};
use crate::transport::frame::{Class, Frame};
use crate::transport::memory::control::Control;
use crate::transport::memory::message_sender::MessageSender;
use crate::transport::memory::segment::Segment;
use crate::transport::port::{Port, Reach};
use crate::transport::requests::{frame_of, frame_of_reply};
use crate::transport::wire::endpoint::Endpoint;
use crate::transport::wire::simulated::{Nature, Simulated};
use crate::transport::{Access, Message, Posted, Reply, Transport};
use crate::util::counters::Counters;
use crate::util::status::{Error, Result, Status};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the node's part of a card.
const NODE: usize = 16;

/// Whether the environment asks for the simulated network.
fn is_wanted() -> Result<bool> {
    match std::env::var("LLCL_TRANSPORT") {
        Err(_) => Ok(false),
        Ok(name) if name == "simulated" => Ok(true),
        Ok(name) => fail!(ERR_INVALID, "LLCL_TRANSPORT is {name}, expected simulated"),
    }
}

/// This rank's end, if the environment asks for it, and its card behind the node's.
pub(super) fn join(
    own: &Arc<Segment>,
    me: u32,
    mut card: Vec<u8>,
) -> Result<(Option<Endpoint>, Vec<u8>)> {
    if !is_wanted()? {
        return Ok((None, card));
    }
    let medium = own.control().message_sizes().medium;
    let (senders, own, counts) = (Mutex::new(HashMap::new()), own.clone(), Counters::default());
    let deliver = move |source: u32, class: Class, frame: &Frame| {
        let mut senders = senders.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = senders.entry(source).or_insert_with(|| {
            // SAFETY: the closure keeps the segment, and the map goes before it.
            let control: &'static Control = unsafe { &*std::ptr::from_ref(own.control()) };
            MessageSender::new(control.own_message_area(), (me, me), 0, control.bell())
                .on_behalf_of(source)
        });
        let host = |share| match share {
            0 => Ok(sender.head()),
            _ => Err(Error::bare(Status::ERR_PEER_DEAD)),
        };
        sender.put(class, frame, &host, &counts)
    };
    let network = Simulated::new(me, Nature::from_environment())?;
    let wire = Endpoint::join(me, &network, medium, Box::new(deliver))?;
    card.extend(wire.card());
    Ok((Some(wire), card))
}

impl Fabric {
    pub(super) fn wire_to(&self, peer: u32) -> Option<&Endpoint> {
        let behind = self.behind_wire.get(peer as usize)?;
        // Acquire: pairs with connect_wire().
        self.wire.as_ref().filter(|_| behind.load(Ordering::Acquire))
    }

    /// Shows the wire its part of a card, if it leads to the peer; answers the node's.
    pub(super) fn connect_wire(&self, peer: u32, mut card: Card, reach: Reach) -> Result<Card> {
        if let Some(wire) = &self.wire {
            let rest = card.blob.split_off(NODE.min(card.blob.len()));
            if reach == Reach::Wire {
                wire.connect(peer, &rest)?;
                // Release: a thread that sees it finds the wire's end of the peer.
                self.behind_wire[peer as usize].store(true, Ordering::Release);
            }
        }
        Ok(card)
    }

    fn put_by_wire(&self, port: &Port, class: Class, frame: &Frame) -> bool {
        self.wire_to(port.peer).is_some_and(|wire| wire.put(port.peer, class, frame, 0))
    }
}

impl Carrier for Endpoint {
    fn has_credit(&self, to: &Peer, class: Class) -> bool {
        Endpoint::has_credit(self, to.peer(), class)
    }

    fn put(&self, to: &Peer, class: Class, frame: &Frame, counts: &Counters) -> bool {
        let taken = Endpoint::put(self, to.peer(), class, frame, to.medium());
        match class {
            Class::Requests if taken => counts.message_sent(0),
            Class::Responses | Class::Replies if taken => counts.replies.up(),
            _ => {}
        }
        taken
    }
}

/// To a peer behind the wire.
impl Transport for Fabric {
    fn locate(&self, port: &Port, address: Address, size: u64) -> Result<Access> {
        self.node.place(port, address, size).map(Access::Message)
    }

    fn registered_access(&self, _: &Port) -> Access {
        Access::Message(0)
    }

    fn kernel_refusals(&self, _: &Port) -> (i32, i32) {
        (0, 0)
    }

    unsafe fn kernel_read(&self, _: &Port, _: u64, _: *mut u8, _: usize) -> Result<()> {
        Err(Error::bare(Status::ERR_UNSUPPORTED))
    }

    unsafe fn kernel_write(&self, _: &Port, _: *const u8, _: u64, _: usize) -> Result<()> {
        Err(Error::bare(Status::ERR_UNSUPPORTED))
    }

    fn post(&self, port: &Port, message: &Message, bytes: &[u8]) -> Posted {
        match self.put_by_wire(port, Class::Lib, &frame_of(message, bytes)) {
            true => Posted::Taken,
            false => Posted::Full,
        }
    }

    fn reply(&self, port: &Port, reply: Reply, bytes: &[u8]) {
        self.put_by_wire(port, Class::Answers, &frame_of_reply(&reply, bytes));
    }

    fn mark_dead(&self, peer: u32) -> bool {
        Fabric::mark_dead(self, peer)
    }
}
