//! Active messages: sending (`sender`, `deferred`, `parked`), messages that wait for a reply or a
//! completion (`requests`), and handling (`message`, `dispatch`).

pub mod deferred;
pub mod dispatch;
pub mod message;
pub mod parked;
pub mod requests;
pub mod sender;

use crate::engine::messages::message::Message;
use crate::transport::carrier::Bytes;
use crate::transport::frame::ALONG;
pub use crate::transport::frame::HEADER;
use std::ffi::c_void;

/// The C function that handles a message.
pub type Handler = unsafe extern "C-unwind" fn(message: *mut Message, data: *mut c_void);

/// The payload travels in the slot.
pub const MEDIUM: u32 = ALONG as u32;
/// The payload has been written to the receiver's memory; the slot has its address.
pub const LONG: u32 = 1;
/// The payload is in the sender's memory; the slot has its address.
pub const BULK: u32 = 2;

/// Bytes of a payload's address in a slot: offset, key, size.
pub const PLACE: usize = 24;

/// The number of bytes of a message's header and of its payload, as a slot has them.
pub fn bytes_in_slot(kind: u32, header: usize, payload: usize) -> Bytes {
    (header, if kind == MEDIUM { payload } else { PLACE })
}
