//! A message before it is sent: its parameters, and the promise that its pointers are valid.

use crate::engine::completion::Completion;
use crate::engine::messages::bytes_in_slot;
use crate::transport::address::Address;
use crate::transport::carrier::Bytes;
use std::ops::Deref;

/// The parameters of a message, as in the interface.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub struct Parameters {
    pub peer: u32,
    pub flags: u32,
    pub id: u32,
    pub kind: u32,
    pub label: u16,
    pub header: *const u8,
    pub header_size: usize,
    pub payload: *const u8,
    pub payload_size: usize,
    pub source: Address,
    pub destination: Address,
    pub reply: *mut u8,
    pub reply_capacity: usize,
    pub reply_size: *mut usize,
    pub on_local: Completion,
    pub on_complete: Completion,
}

/// A message to be sent.
#[derive(Clone, Copy)]
pub struct Send(pub(super) Parameters);

impl Send {
    /// Makes a message of these parameters.
    ///
    /// # Safety
    /// For each call that gets the message: the header is valid for reading until the call has
    /// returned. The payload, and the source if it is in no region, are valid until the user may
    /// reuse them by the rules of llcl_am_params_t. The places of the reply and of its size are
    /// null or valid for writing, and the user keeps what the completions name, until the message
    /// has ended.
    #[inline(always)]
    pub unsafe fn new(parameters: Parameters) -> Send {
        Send(parameters)
    }

    pub(super) fn bytes(&self) -> Bytes {
        bytes_in_slot(self.kind, self.header_size, self.payload_size)
    }
}

impl Deref for Send {
    type Target = Parameters;

    #[inline(always)]
    fn deref(&self) -> &Parameters {
        &self.0
    }
}
