//! Layer 3: the lane, which carries commands from requesters to transports and fires their
//! completions. Active messages belong to this layer, too.

pub mod atomic;
pub mod by_caller;
pub mod by_device;
mod by_owner;
mod by_wire;
pub mod command;
pub mod command_queue;
mod completer;
pub mod completion;
pub mod control_messages;
pub mod doorbell;
mod executor;
pub mod handover;
pub mod in_flight;
pub mod lane;
mod lane_state;
mod message_commands;
pub mod messages;
pub mod peer_turns;
mod piece_commands;
pub mod pieces;
mod post_line;
pub mod queue_entry;
mod role;
pub mod routes;
pub mod send_queue;
pub mod unreported;
pub mod user_function;
