//! This rank's memory as all transports know it: one memory file with the control area, in which
//! lie the directory of regions, the names, and the message slots into which whatever carries
//! messages puts them ([`message_sender`] writes slots, [`message_receiver`] empties them).
//!
//! Ranks of the node map it. What only a network reaches has frames put into the slots by the
//! receiver's own end of the wire.

pub mod control;
pub mod directory;
pub mod lookout;
pub mod message_area;
pub mod message_receiver;
pub mod message_sender;
pub mod names;
pub mod segment;
pub mod slots;
