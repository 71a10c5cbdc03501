//! A message whose sender may stop waiting before the message has ended. So the reply goes to
//! memory of the library, which exists until the message has ended. If the sender still waits, it
//! copies the reply from there.

use super::{Parameters, Send};
use crate::core::submit::failed;
use crate::engine::completion::{CALL, Completion};
use crate::fail;
use crate::util::status::{Result, Status};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// See the head of the file. The sender has one reference, the completion another.
pub(super) struct Call {
    /// 0 until the end; then 1, or the negative status.
    pub(super) end: AtomicI64,
    /// Written by the library before `end`, read by the sender after it.
    reply: UnsafeCell<Vec<u8>>,
    size: UnsafeCell<usize>,
}

// SAFETY: only the thread that ends the message writes the cells, before it sets `end`; the sender
// reads them after it has seen `end`.
unsafe impl std::marker::Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

impl Call {
    /// With memory for a reply of `capacity` bytes, but of at most `most`, which no reply exceeds:
    /// the caller's buffer may be much larger.
    pub(super) fn new(capacity: usize, most: usize) -> Result<Arc<Call>> {
        let (mut reply, bytes) = (Vec::new(), capacity.min(most));
        if reply.try_reserve_exact(bytes).is_err() {
            fail!(ERR_NO_MEMORY, "no memory for a reply of {bytes} bytes");
        }
        reply.resize(bytes, 0);
        let (reply, size) = (UnsafeCell::new(reply), UnsafeCell::new(0));
        Ok(Arc::new(Call { end: AtomicI64::new(0), reply, size }))
    }

    /// The message with this call's memory in place of the caller's.
    pub(super) fn in_place_of(self: &Arc<Call>, send: &Send) -> Send {
        let on_complete = Completion {
            kind: CALL,
            call: ended as *const c_void,
            target: Arc::into_raw(self.clone()).cast_mut().cast(),
            ..Completion::NOTHING
        };
        let (reply, reply_capacity) = match send.reply.is_null() {
            true => (std::ptr::null_mut(), send.reply_capacity),
            false => {
                // SAFETY: nobody else uses the place before the message is sent.
                let place = unsafe { &mut *self.reply.get() };
                (place.as_mut_ptr(), place.len())
            }
        };
        let reply_size = self.size.get();
        Send(Parameters { reply, reply_capacity, reply_size, on_complete, ..**send })
    }

    /// The message was not accepted: drops the completion's reference.
    ///
    /// # Safety
    /// in_place_of() has made the message, whose completion does not fire.
    pub(super) unsafe fn refused(send: &Send) {
        // SAFETY: as the caller promises.
        drop(unsafe { Arc::from_raw(send.on_complete.target.cast_const().cast::<Call>()) });
    }

    /// Copies the reply to the caller's memory; an error if the message has failed.
    ///
    /// # Safety
    /// The end has come; the caller's places are null or valid.
    pub(super) unsafe fn give(&self, send: &Send) -> Result<()> {
        let end = self.end.load(Ordering::Relaxed);
        if end < 0 {
            let status = Status(end as i32);
            // SAFETY: as the caller promises.
            if let (Status::ERR_RANGE, Some(place)) = (status, unsafe { send.reply_size.as_mut() })
            {
                // SAFETY: as below: the size that did not fit.
                *place = unsafe { *self.size.get() };
            }
            return Err(failed(status));
        }
        // SAFETY: as the caller promises.
        unsafe {
            let (size, reply) = (*self.size.get(), &*self.reply.get());
            if !send.reply.is_null() {
                let bytes = &reply[..size.min(reply.len())];
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), send.reply, bytes.len());
            }
            if let Some(place) = send.reply_size.as_mut() {
                *place = size;
            }
        }
        Ok(())
    }
}

/// The completion.
unsafe extern "C-unwind" fn ended(call: *mut c_void, status: Status) {
    // SAFETY: in_place_of() has given this reference to the completion, which fires once.
    let call = unsafe { Arc::from_raw(call.cast_const().cast::<Call>()) };
    let end = if status == Status::OK { 1 } else { i64::from(status.0) };
    // Release: publishes the reply.
    call.end.store(end, Ordering::Release);
}
