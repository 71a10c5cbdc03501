//! 1. Completions: what happens when an operation ends.

use crate::api::status::llcl_status_t;
use crate::engine::completion::Completion;
use std::ffi::c_void;
use std::mem::offset_of;

/// A function that a completion calls, with the data of the completion and the status with which
/// the operation ended. It may post requests by the try functions and must not block; see the
/// conventions.
pub type llcl_callback_fn = Option<unsafe extern "C" fn(data: *mut c_void, status: llcl_status_t)>;

/// Nothing happens.
pub const LLCL_COMPLETE_NONE: u32 = 0;
/// The function is called.
pub const LLCL_COMPLETE_CALL: u32 = 1;
/// The word becomes 1; or, if the operation failed, the status as a 64-bit number (bit 63 set).
pub const LLCL_COMPLETE_STORE: u32 = 2;
/// The word grows by 1; if the operation failed, bit 63 is set as well.
pub const LLCL_COMPLETE_ADD: u32 = 3;
/// The bit of a STORE or ADD word that says that an operation failed.
pub const LLCL_WORD_FAILED: u64 = 1 << 63;

/// What happens when an operation ends. The function, its data and the word belong to the caller
/// and must stay valid until the completion has fired.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct llcl_completion_t {
    /// One of LLCL_COMPLETE_*.
    pub kind: u32,
    /// 0.
    pub reserved: u32,
    /// For CALL: the function. Else ignored.
    pub call: llcl_callback_fn,
    /// For CALL: the data for the function, may be NULL. For STORE and ADD: a uint64_t, aligned to
    /// 8 bytes. Else ignored.
    pub target: *mut c_void,
}

const _: () = {
    assert!(size_of::<llcl_completion_t>() == size_of::<Completion>());
    assert!(offset_of!(llcl_completion_t, call) == offset_of!(Completion, call));
    assert!(offset_of!(llcl_completion_t, target) == offset_of!(Completion, target));
};

impl llcl_completion_t {
    /// This completion as the engine knows it.
    #[inline(always)]
    pub(super) fn as_engine(&self) -> &Completion {
        // SAFETY: both are plain data of one layout, as asserted above; a nullable function and an
        // address have the same bytes.
        unsafe { &*std::ptr::from_ref(self).cast::<Completion>() }
    }
}

const fn make(kind: u32, call: llcl_callback_fn, target: *mut c_void) -> llcl_completion_t {
    llcl_completion_t { kind, reserved: 0, call, target }
}

/// The completion that does nothing. llcl_flush waits for the end of such an operation.
///
/// Returns the struct by value. Any thread may call it.
/// This library's own.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_no_completion() -> llcl_completion_t {
    make(LLCL_COMPLETE_NONE, None, std::ptr::null_mut())
}

/// The completion that calls a function.
///
/// `call`: the function; a request with NULL here is refused. `data`: its first argument, may be
/// NULL. Returns the struct by value. Any thread may call it. The conventions say on which thread
/// the function runs.
/// From: the completion callbacks of UCX (ucp_send_nbx_callback_t).
#[unsafe(no_mangle)]
pub extern "C" fn llcl_callback(call: llcl_callback_fn, data: *mut c_void) -> llcl_completion_t {
    make(LLCL_COMPLETE_CALL, call, data)
}

/// The completion that sets a word: to 1, or to the negative status as a 64-bit number.
///
/// `word`: the caller's, aligned to 8 bytes, valid until it is set; a request with NULL here is
/// refused. Set it to 0 before, and wait with llcl_wait_word(context, word, 1, ...): failures end
/// the wait as well. Returns the struct by value. Any thread may call it.
/// From: GASPI's notifications, as plain memory.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_store_on(word: *mut u64) -> llcl_completion_t {
    make(LLCL_COMPLETE_STORE, None, word.cast())
}

/// The completion that adds 1 to a word, and sets LLCL_WORD_FAILED in it if the operation failed.
///
/// `word`: the caller's, aligned to 8 bytes, valid until all operations that name it have ended;
/// a request with NULL here is refused. Any number of operations may share it. Returns the
/// struct by value. Any thread may call it.
/// From: fi_cntr of libfabric, as plain memory.
#[unsafe(no_mangle)]
pub extern "C" fn llcl_add_on(word: *mut u64) -> llcl_completion_t {
    make(LLCL_COMPLETE_ADD, None, word.cast())
}
