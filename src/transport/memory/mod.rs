//! A rank's memory for all transports: one memory file with the control area and the allocated
//! regions. The control area contains the directory of regions, the table of names, and the message
//! slots: [`message_sender`] writes slots, [`message_receiver`] empties them.
//!
//! Ranks of the node map the file, and write the slots themselves. For a sender behind a wire, the
//! receiver's own endpoint writes the slots.

pub mod arrival_hint;
pub mod control;
pub mod directory;
pub mod message_area;
pub mod message_receiver;
pub mod message_sender;
pub mod names;
pub mod segment;
pub mod slots;
