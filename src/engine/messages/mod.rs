//! Active messages: what is sent, what waits for its end, what has come, and which thread handles
//! it.

pub mod deferred;
pub mod dispatch;
pub mod message;
pub mod parked;
pub mod requests;
pub mod sender;

use crate::engine::messages::message::Message;
use crate::transport::frame::ALONG;
pub use crate::transport::frame::HEADER;
use std::ffi::c_void;

/// The C function that handles a message.
pub type Handler = unsafe extern "C-unwind" fn(message: *mut Message, data: *mut c_void);

/// The payload travels in the slot.
pub const MEDIUM: u32 = ALONG as u32;
/// The payload has been written; the slot says where.
pub const LONG: u32 = 1;
/// The payload is still with its sender; the slot says where.
pub const BULK: u32 = 2;

/// Bytes by which a slot says where a payload is: offset, key, size.
pub const PLACE: usize = 24;
