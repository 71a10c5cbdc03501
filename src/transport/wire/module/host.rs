//! What libllcl offers to a module: its environment, and a place for its texts.

use super::super::table::{HostTable, text};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

/// The functions that a module may call, and the last text that it has logged.
pub(super) struct Host {
    /// In a box, since modules keep its address.
    pub(super) table: Box<HostTable>,
    /// The text that the module has logged last, without those of listen(). In a box, since
    /// `table` has its address.
    pub(super) said: Box<Mutex<String>>,
}

pub(super) extern "C" fn log(host: *mut c_void, _: c_int, said: *const c_char) {
    // SAFETY: the module passes a terminated text.
    let said = unsafe { text(said) };
    // SAFETY: it is null, or the place is on the stack of the listen() of this thread that
    // is calling the module.
    match unsafe { DURING_CALL.get().as_ref() } {
        Some(of_call) => of_call.set(said),
        None => {
            // SAFETY: `host` is the box `said` of Host::new(), which lives as long as the wire.
            let place = unsafe { &*host.cast::<Mutex<String>>() };
            *place.lock().unwrap_or_else(PoisonError::into_inner) = said;
        }
    }
}

thread_local! {
    /// The place of what the module logs during the call that this thread makes by listen();
    /// null: there is no such call. It has no destructor: the C library runs those of a thread's
    /// variables before the exit handlers, and such a handler may end the context.
    static DURING_CALL: Cell<*const Cell<String>> = const { Cell::new(std::ptr::null()) };
}

/// Calls a function of a module. Returns its result, and what the module has logged on this thread
/// meanwhile.
pub(super) fn listen<T>(function: impl FnOnce() -> T) -> (T, String) {
    let said = Cell::new(String::new());
    let before = DURING_CALL.replace(&said);
    let result = function();
    DURING_CALL.set(before);
    (result, said.into_inner())
}

extern "C" fn config(_: *mut c_void, name: *const c_char) -> *const c_char {
    // SAFETY: the module passes a terminated name. As everywhere in this library, the program must
    // not change the environment at the same time.
    unsafe { libc::getenv(name) }
}

impl Host {
    pub(super) fn new() -> Host {
        let said = Box::new(Mutex::new(String::new()));
        let table = Box::new(HostTable {
            struct_size: size_of::<HostTable>() as u64,
            host: (&raw const *said).cast_mut().cast(),
            log,
            config,
            wake: None,
        });
        Host { table, said }
    }
}
