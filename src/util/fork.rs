//! Marks objects that a forked child must not use: a word of the object is 0 in the child.
//!
//! fork() copies the memory of a context but none of its threads, and the child shares its parent's
//! sockets and memory files. Each word that decides whether an object may be used is registered
//! here, and is set to 0 in the child before fork() returns there. So no call needs an additional
//! check.
//!
//! After vfork(), posix_spawn(), system() and popen() the child does not run these handlers. That
//! is right: such a child runs in its parent's memory until exec.

use crate::fail;
use crate::util::once::Once;
use crate::util::status::{Error, Result, Status};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// One entry of a list that only grows. Free entries are used again.
struct Entry {
    /// Null: the entry is free.
    word: AtomicPtr<AtomicU32>,
    /// Set before the entry is in the list.
    next: *const Entry,
}

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());
static INSTALLED: Once<()> = Once::new();

/// As long as this exists, the word is 0 in each forked child.
pub struct ZeroInChild(&'static Entry);

// SAFETY: the entry is shared by atomics alone; `next` does not change.
unsafe impl Send for ZeroInChild {}
// SAFETY: as above.
unsafe impl Sync for ZeroInChild {}

impl ZeroInChild {
    /// Registers a word.
    ///
    /// # Safety
    /// The word stays where it is, and valid, until the answer is dropped.
    pub unsafe fn new(word: *const AtomicU32) -> Result<ZeroInChild> {
        INSTALLED.get_or_try_init(install)?;
        let word = word.cast_mut();
        let mut entry: *const Entry = FIRST.load(Ordering::Acquire);
        // SAFETY: entries live for ever.
        while let Some(at) = unsafe { entry.as_ref() } {
            let (null, relaxed) = (ptr::null_mut(), Ordering::Relaxed);
            // Relaxed: in_child() runs in the child of a thread, and sees all stores that this
            // thread had seen.
            if at.word.compare_exchange(null, word, relaxed, relaxed).is_ok() {
                return Ok(ZeroInChild(at));
            }
            entry = at.next;
        }
        Ok(ZeroInChild(push(word)))
    }
}

impl Drop for ZeroInChild {
    fn drop(&mut self) {
        self.0.word.store(ptr::null_mut(), Ordering::Release);
    }
}

fn push(word: *mut AtomicU32) -> &'static Entry {
    let mut first = FIRST.load(Ordering::Relaxed);
    let entry = Box::leak(Box::new(Entry { word: AtomicPtr::new(word), next: first }));
    loop {
        entry.next = first;
        let place = &raw mut *entry;
        // Release: a thread that finds the entry finds it complete. Only this thread has changed it
        // before.
        match FIRST.compare_exchange(first, place, Ordering::Release, Ordering::Relaxed) {
            // SAFETY: it was leaked above, and is only read from now on.
            Ok(_) => return unsafe { &*place },
            Err(other) => first = other,
        }
    }
}

fn install() -> Result<()> {
    // SAFETY: the function is async-signal-safe and stays, as the library is never unloaded.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => Ok(()),
        error => {
            let error = std::io::Error::from_raw_os_error(error);
            Err(Error::new(Status::ERR_NO_MEMORY, format!("pthread_atfork: {error}")))
        }
    }
}

/// Runs in the child's only thread, before fork() returns.
extern "C" fn in_child() {
    let mut entry: *const Entry = FIRST.load(Ordering::Acquire);
    // SAFETY: entries live for ever; a word that is named is valid, as new() demands: the child has
    // a copy.
    unsafe {
        while let Some(at) = entry.as_ref() {
            if let Some(word) = at.word.load(Ordering::Acquire).as_ref() {
                word.store(0, Ordering::Relaxed);
            }
            entry = at.next;
        }
    }
}

/// Says whether a context or a world may be used. It may not once its end has begun, and not in a
/// forked child.
pub struct Gate {
    // Declared first, hence dropped first: it refers to the word.
    _in_child: ZeroInChild,
    state: Box<AtomicU32>,
}

const OPEN: u32 = 1;
const CLOSED: u32 = 2;

impl Gate {
    /// A gate that is open.
    pub fn new() -> Result<Gate> {
        let state = Box::new(AtomicU32::new(OPEN));
        // SAFETY: the word is on the heap, and is dropped after the answer.
        let in_child = unsafe { ZeroInChild::new(&raw const *state)? };
        Ok(Gate { _in_child: in_child, state })
    }

    /// Whether requests are accepted.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.state.load(Ordering::Relaxed) == OPEN
    }

    /// From now on no request is accepted.
    pub fn close(&self) {
        self.state.store(CLOSED, Ordering::Relaxed);
    }

    /// An error once the end has begun, and in a forked child.
    #[inline(always)]
    pub fn must_be_open(&self) -> Result<()> {
        if self.is_open() { Ok(()) } else { self.refuse() }
    }

    /// An error in a forked child.
    #[inline(always)]
    pub fn must_be_own(&self) -> Result<()> {
        if self.state.load(Ordering::Relaxed) != 0 { Ok(()) } else { self.refuse() }
    }

    #[cold]
    fn refuse(&self) -> Result<()> {
        match self.state.load(Ordering::Relaxed) {
            0 => fail!(
                ERR_STATE,
                "the object belongs to the parent of this forked process, expected a call of the parent: \
                 see docs/rules.md"
            ),
            _ => fail!(ERR_STATE, "the context is being finalized"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_finds_0_and_its_parent_what_was_there() {
        let (gate, gone) = (Gate::new().unwrap(), Gate::new().unwrap());
        drop(gone);
        assert!(gate.must_be_open().is_ok());
        // SAFETY: the child only reads a word and ends.
        match unsafe { libc::fork() } {
            0 => {
                let seen = gate.state.load(Ordering::Relaxed);
                // SAFETY: ends the child, without what the test program does at its end.
                unsafe { libc::_exit(i32::from(seen != 0)) }
            }
            child => {
                let mut status = -1;
                // SAFETY: `status` is valid for the write of this call.
                assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                assert_eq!(status, 0);
            }
        }
        gate.close();
        assert!(gate.must_be_own().is_ok());
        assert_eq!(gate.must_be_open().unwrap_err().message(), "the context is being finalized");
    }
}
