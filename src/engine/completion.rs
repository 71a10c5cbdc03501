//! Completions: the end of an operation calls a function, changes a word, or does neither.

use crate::engine::user_function;
use crate::fail;
use crate::transport::waiters::Waiters;
use crate::util::fork::call_in_child;
use crate::util::narrow::narrow;
use crate::util::own_word::own_word;
use crate::util::status::{Result, Status};
use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

mod in_child;
mod of_thread;

pub use of_thread::{
    Callbacks, Polls, count_empty_poll, count_empty_poll_if, is_library_thread, note_network_poll,
    serving, set_library_thread,
};

/// The C function that a completion calls.
pub type Callback = unsafe extern "C-unwind" fn(data: *mut c_void, status: Status);

/// Nothing happens.
pub const NONE: u32 = 0;
/// The library calls a function.
pub const CALL: u32 = 1;
/// The library stores 1, or a failure's status, to a word.
pub const STORE: u32 = 2;
/// The library adds 1 to a word, and sets WORD_FAILED after a failure.
pub const ADD: u32 = 3;

/// The bit of a STORE or ADD word that is set if an operation failed.
pub const WORD_FAILED: u64 = 1 << 63;

/// A completion as plain data. The user keeps the function, its argument and the word valid until
/// the completion has fired.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Completion {
    /// One of the kinds above.
    pub kind: u32,
    /// Zero.
    pub reserved: u32,
    /// For CALL: the function; kept as an address so that a command is plain bytes.
    pub call: *const c_void,
    /// For CALL its first argument; for STORE and ADD the word.
    pub target: *mut c_void,
}

impl Completion {
    /// The completion that does nothing.
    pub const NOTHING: Completion = Completion {
        kind: NONE,
        reserved: 0,
        call: std::ptr::null(),
        target: std::ptr::null_mut(),
    };

    /// A completion that stores to `word`.
    pub fn store_on(word: &AtomicU64) -> Completion {
        Completion { kind: STORE, target: word.as_ptr().cast(), ..Completion::NOTHING }
    }

    /// A copy by loads of single fields, see `util::narrow`.
    #[inline(always)]
    pub fn narrow(&self) -> Completion {
        Completion {
            kind: narrow(&self.kind),
            reserved: narrow(&self.reserved),
            call: narrow(&self.call),
            target: narrow(&self.target),
        }
    }

    /// Whether it is well formed.
    #[inline(always)]
    pub fn is_valid(&self) -> bool {
        let word = !self.target.is_null() && (self.target as usize).is_multiple_of(8);
        self.reserved == 0
            && match self.kind {
                NONE => true,
                CALL => !self.call.is_null(),
                STORE | ADD => word,
                _ => false,
            }
    }

    /// Whether it is well formed and does nothing.
    #[inline(always)]
    pub fn is_nothing(&self) -> bool {
        self.head() == 0
    }

    /// Whether its kind is one of those above. Does not check its function or word.
    #[inline(always)]
    pub fn has_kind(&self) -> bool {
        self.head() <= ADD.into()
    }

    /// `kind` and `reserved` as one number, as they lie in memory, so that one load and one
    /// comparison check both.
    #[inline(always)]
    pub fn head(&self) -> u64 {
        u64::from(self.kind) | u64::from(self.reserved) << 32
    }

    /// Whether it is well formed, and this thread can fire it and the operation's other one now.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        self.is_nothing() || self.can_call() || self.can_set() || self.could_fire()
    }

    /// Whether it is a well-formed CALL that the calling thread may execute directly: `known` has
    /// the thread's TRAMPOLINE, and the thread is inside no callback.
    #[inline(always)]
    pub fn can_call(&self) -> bool {
        if self.head() != CALL.into() || self.call.is_null() {
            return false;
        }
        // SAFETY: as in mine().
        unsafe { known::get().as_ref() }.is_some_and(|it| !it.is_running())
    }

    /// Whether it is a well-formed STORE or ADD.
    #[inline(always)]
    pub fn can_set(&self) -> bool {
        let word = self.head() == STORE.into() || self.head() == ADD.into();
        word && !self.target.is_null() && (self.target as usize).is_multiple_of(8)
    }

    #[inline(never)]
    fn could_fire(&self) -> bool {
        self.is_valid() && (self.kind != CALL || has_room(2))
    }

    /// Fires: calls the function or changes the word, and wakes the threads that sleep on it.
    ///
    /// # Safety
    /// It is_valid(), its user still keeps what it names, and it fires once for each operation.
    #[inline(always)]
    pub unsafe fn fire(&self, status: Status, waiters: &Waiters) {
        if self.kind != NONE {
            // SAFETY: as the caller promises.
            unsafe { self.fire_something(status, waiters) };
        }
    }

    /// Calls the function with LLCL_OK, without the checks of fire().
    ///
    /// # Safety
    /// can_call() has returned true to this thread, which has called no function of the user since.
    #[inline(always)]
    pub unsafe fn call_now(&self, waiters: &Waiters) {
        let (function, data) = (self.call, self.target);
        // SAFETY: the user gave a function of this type, see the type's doc; null was refused.
        let call = unsafe { std::mem::transmute::<*const c_void, Callback>(function) };
        // SAFETY: not null, as the caller promises; else as in mine().
        let trampoline = unsafe { &*known::get() };
        // SAFETY: function and argument are the user's, see Completion.
        trampoline.outermost(function, || unsafe { call(data, Status::OK) });
        waiters.touched_anything();
    }

    /// fire() for a kind other than NONE, with the contract of fire().
    #[inline(never)]
    unsafe fn fire_something(&self, status: Status, waiters: &Waiters) {
        if self.kind == CALL {
            // SAFETY: as the caller promises, the address of such a function.
            let call = unsafe { std::mem::transmute::<*const c_void, Callback>(self.call) };
            run(Call { call, data: self.target, status }, waiters);
            return;
        }
        // SAFETY: as the caller promises; the kind is STORE or ADD.
        unsafe { self.change_word(status) };
        waiters.touched_word(self.target as u64);
    }

    /// Changes the word of a STORE or ADD. The caller wakes the threads that sleep on it.
    ///
    /// # Safety
    /// As for fire(); the kind is STORE or ADD.
    pub unsafe fn change_word(&self, status: Status) {
        // SAFETY: as the caller promises, an aligned word.
        let word = unsafe { AtomicU64::from_ptr(self.target.cast()) };
        // Release, always: a thread that sees the word sees what the operation has written.
        match (self.kind, status) {
            (STORE, Status::OK) => word.store(1, Ordering::Release),
            (STORE, _) => word.store(i64::from(status.0) as u64, Ordering::Release),
            (_, Status::OK) => {
                word.fetch_add(1, Ordering::Release);
            }
            (_, _) => {
                // Count and failure in one step: a thread that sees the count must see the failure,
                // and a thread that sees the failure may free the word.
                let failed = |count: u64| Some(count.wrapping_add(1) | WORD_FAILED);
                let _ = word.fetch_update(Ordering::Release, Ordering::Relaxed, failed);
            }
        }
    }
}

/// A call of a user's function by a completion.
#[derive(Clone, Copy)]
struct Call {
    call: Callback,
    data: *mut c_void,
    status: Status,
}

/// Most callbacks of a thread that wait until the running one has returned.
const WAITING: usize = 64;

type Waiting = [Cell<MaybeUninit<Call>>; WAITING];

/// A thread's callbacks. If a callback posts an operation that ends at once, the new callback waits
/// until the running one has returned, so the stack does not grow with the chain.
struct Trampoline {
    /// From PLACE; null before the first callback waits. It is on the heap, since a library that is
    /// loaded at run time has little thread-local storage, and longjmp may leave its stack frames.
    waiting: Cell<*const Waiting>,
    /// The function that runs, or that was left by longjmp. Null: none.
    running: Cell<*const c_void>,
    first: Cell<usize>,
    count: Cell<usize>,
    /// The thread runs the handler of a response.
    responding: Cell<bool>,
    /// See set_serving() and set_library_thread().
    serving: Cell<*const c_void>,
    library_thread: Cell<bool>,
    /// Polls that found no message since the last one that did; see count_empty_poll() and polls().
    empty_polls: Cell<u32>,
    /// How many next polls of this thread ask a network; see note_network_poll().
    network_polls: Cell<u32>,
    polls: Cell<Polls>,
}

thread_local! {
    static TRAMPOLINE: Trampoline = const { Trampoline {
        waiting: Cell::new(std::ptr::null()),
        running: Cell::new(std::ptr::null()),
        first: Cell::new(0),
        count: Cell::new(0),
        responding: Cell::new(false),
        serving: Cell::new(std::ptr::null()),
        library_thread: Cell::new(false),
        empty_polls: Cell::new(0),
        network_polls: Cell::new(0),
        polls: Cell::new(Polls::NONE),
    } };
}

own_word! {
    /// This thread's TRAMPOLINE; null before its first use.
    known, "rs_llcl_trampoline", super::Trampoline
}

/// This thread's callbacks. The caller must not pass the reference to another thread.
#[inline(always)]
fn mine<'a>() -> &'a Trampoline {
    // SAFETY: null, or a thread-local variable without destructor, which is there as long as its
    // thread.
    match unsafe { known::get().as_ref() } {
        Some(trampoline) => trampoline,
        None => first_use(),
    }
}

#[cold]
#[inline(never)]
fn first_use<'a>() -> &'a Trampoline {
    call_in_child(in_child::forbid_return);
    TRAMPOLINE.with(|trampoline| known::set(trampoline));
    // SAFETY: as in mine(), and not null.
    unsafe { &*known::get() }
}

/// The array in which a thread's callbacks wait; null before the first one waits. Freed when the
/// thread ends.
struct Place(Cell<*mut Waiting>);

thread_local! {
    /// Apart from TRAMPOLINE, whose access is cheaper because it has no destructor.
    static PLACE: Place = const { Place(Cell::new(std::ptr::null_mut())) };
}

impl Place {
    /// Allocates it. Null: there is no memory, or the thread is ending.
    #[cold]
    fn make() -> *const Waiting {
        let make = |place: &Place| {
            // SAFETY: the layout is not empty.
            place.0.set(unsafe { alloc(Layout::new::<Waiting>()) }.cast());
            place.0.get().cast_const()
        };
        PLACE.try_with(make).unwrap_or(std::ptr::null())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        mine().waiting.set(std::ptr::null());
        mine().count.set(0);
        if !self.0.get().is_null() {
            // SAFETY: make() has allocated it with this layout, and no pointer to it is left.
            unsafe { dealloc(self.0.get().cast(), Layout::new::<Waiting>()) };
        }
    }
}

/// Whether this thread is inside a callback.
#[inline(always)]
pub fn in_callback() -> bool {
    // SAFETY: as in mine(). Null: the thread has run no callback.
    unsafe { known::get().as_ref() }.is_some_and(Trampoline::is_running)
}

/// Whether this thread runs the handler of a response, which must not send. The thread's number is
/// hidden meanwhile, see shown_number().
#[inline(always)]
pub fn in_response() -> bool {
    // SAFETY: as in mine(). Null: the thread has run no callback.
    unsafe { known::get().as_ref() }.is_some_and(|trampoline| trampoline.responding.get())
}

/// Like enter(), for the handler of a response.
#[inline(never)]
pub fn enter_response(function: *const c_void, call: impl FnOnce()) {
    Callbacks::of_thread().enter_response(function, call);
}

/// Whether `count` more callbacks of this thread have room to wait. Checked inside a callback
/// before an operation is accepted, so that its completions can always fire.
pub fn has_room(count: usize) -> bool {
    let fits = |t: &Trampoline| t.place().is_some() && t.count.get() + count <= WAITING;
    let t = mine();
    !t.is_running() || t.has_forked() || fits(t)
}

/// Fails inside a callback. To be called by functions that wait.
#[inline(always)]
pub fn must_not_be_in_callback() -> Result<()> {
    if in_callback() { refuse_to_wait() } else { Ok(()) }
}

#[cold]
fn refuse_to_wait() -> Result<()> {
    let running = user_function::describe(mine().running.get());
    fail!(
        ERR_STATE,
        "this function waits, which a callback must not (this thread is in {running}, or has left \
         it by longjmp)"
    );
}

/// Runs a handler of the user under the rules of callbacks: completions that fire inside it wait
/// until it has returned. The calling thread is in no callback. After this call the caller wakes
/// the threads that sleep on words. `function`: the address of the user's function, for messages.
#[inline]
pub fn enter(function: *const c_void, call: impl FnOnce()) {
    mine().outermost(function, call);
}

impl Trampoline {
    #[inline(always)]
    fn is_running(&self) -> bool {
        !self.running.get().is_null()
    }

    /// The array in which callbacks wait. None: there is no memory.
    #[inline]
    fn place(&self) -> Option<&Waiting> {
        if self.waiting.get().is_null() {
            self.waiting.set(Place::make());
        }
        // SAFETY: only this thread uses the array, which lives until the thread ends; then
        // Place::drop() sets the pointer to null. defer() writes an element before it is read.
        unsafe { self.waiting.get().as_ref() }
    }

    /// Runs the function, then the callbacks that have fired inside it, and those inside these, and
    /// so on.
    #[inline(always)]
    fn outermost(&self, function: *const c_void, call: impl FnOnce()) {
        self.call(function, call);
        if self.count.get() > 0 {
            self.run_waiting();
        }
        self.running.set(std::ptr::null());
    }

    #[inline(never)]
    fn run_waiting(&self) {
        while self.has_waiting()
            && let Some(waiting) = self.place()
        {
            let at = self.first.get();
            self.first.set((at + 1) % WAITING);
            self.count.set(self.count.get() - 1);
            // SAFETY: defer() has filled the `count` places from `first` on.
            let callback = unsafe { waiting[at].get().assume_init() };
            // SAFETY: function and argument are the user's, see Completion.
            let call = || unsafe { (callback.call)(callback.data, callback.status) };
            self.call(callback.call as *const c_void, call);
        }
    }

    #[inline(always)]
    fn call(&self, function: *const c_void, call: impl FnOnce()) {
        self.running.set(function);
        user_function::call(|| self.running.get(), call);
    }

    /// Lets the callback wait until the running one has returned. False: there is no room.
    #[inline(never)]
    fn defer(&self, callback: Call) -> bool {
        let Some(waiting) = self.place() else { return false };
        let count = self.count.get();
        if count >= WAITING {
            return false;
        }
        waiting[(self.first.get() + count) % WAITING].set(MaybeUninit::new(callback));
        self.count.set(count + 1);
        true
    }
}

/// Runs the callback, or lets it wait until the running one has returned.
#[inline(always)]
fn run(callback: Call, waiters: &Waiters) {
    // SAFETY: function and argument are the user's, see Completion.
    let call = || unsafe { (callback.call)(callback.data, callback.status) };
    let t = mine();
    match t.is_running() {
        false => t.outermost(callback.call as *const c_void, call),
        true if t.defer(callback) => return,
        // Not reached: threads check has_room() before they post or end a round inside a callback.
        // If it were, a deeper stack would be better than a lost callback.
        true => user_function::call(|| callback.call as *const c_void, call),
    }
    // The callback may have stored to any word on which a thread of this process sleeps.
    waiters.touched_anything();
}

#[cfg(all(test, not(loom)))]
mod tests;
