//! Marks objects that a forked child must not use: a word of the object is 0 in the child.
//!
//! fork() copies the memory of a context but none of its threads, and the child shares its parent's
//! sockets and memory files. Each word that decides whether an object may be used is registered
//! here, and is set to 0 in the child before fork() returns there. So no call needs an additional
//! check.
//!
//! The child may make contexts of its own, for which it uses what the process has once for all
//! contexts: the statics of the library. Another thread of the parent may have been in the middle
//! of changing such an object, and does not exist in the child. So no call waits for the lock of
//! such an object, and what other threads hold of it the child gives up by a function of
//! call_in_child().
//!
//! After vfork(), posix_spawn(), system() and popen() the child does not run these handlers. That
//! is right: such a child runs in its parent's memory until exec.

use crate::fail;
use crate::util::growing_list::GrowingList;
use crate::util::status::{Error, Result, Status};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// A word, or null: the entry is free, and is used again.
type Entry = AtomicPtr<AtomicU32>;

static WORDS: GrowingList<Entry> = GrowingList::new();
/// See call_in_child().
static CALLS: GrowingList<fn()> = GrowingList::new();
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// As long as this exists, the word is 0 in each forked child.
pub struct ZeroInChild(&'static Entry);

impl ZeroInChild {
    /// Registers a word.
    ///
    /// # Safety
    /// The word stays where it is, and valid, until the answer is dropped.
    pub unsafe fn new(word: *const AtomicU32) -> Result<ZeroInChild> {
        install()?;
        let word = word.cast_mut();
        for entry in WORDS.iter() {
            let (null, relaxed) = (ptr::null_mut(), Ordering::Relaxed);
            // Relaxed: in_child() runs in the child of a thread, and sees all stores that this
            // thread had seen.
            if entry.compare_exchange(null, word, relaxed, relaxed).is_ok() {
                return Ok(ZeroInChild(entry));
            }
        }
        Ok(ZeroInChild(WORDS.push(Entry::new(word))))
    }
}

impl Drop for ZeroInChild {
    fn drop(&mut self) {
        self.0.store(ptr::null_mut(), Ordering::Release);
    }
}

/// From now on each forked child calls `function` before fork() returns there, once or several
/// times, if a word was registered before the fork. The function must be async-signal-safe.
pub fn call_in_child(function: fn()) {
    if !CALLS.iter().any(|known| ptr::fn_addr_eq(*known, function)) {
        CALLS.push(function);
    }
}

/// Installs in_child(), unless that was done before. Threads that do it at the same moment all
/// install it; the child then runs it several times, which changes nothing.
fn install() -> Result<()> {
    // Relaxed: a child sees what its parent's thread has seen.
    if INSTALLED.load(Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: the function is async-signal-safe and stays, as the library is never unloaded.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => INSTALLED.store(true, Ordering::Relaxed),
        error => {
            let error = std::io::Error::from_raw_os_error(error);
            return Err(Error::new(Status::ERR_NO_MEMORY, format!("pthread_atfork: {error}")));
        }
    }
    Ok(())
}

/// Runs in the child's only thread, before fork() returns.
extern "C" fn in_child() {
    for entry in WORDS.iter() {
        // SAFETY: a word that is named is valid, as new() demands: the child has a copy.
        if let Some(word) = unsafe { entry.load(Ordering::Acquire).as_ref() } {
            word.store(0, Ordering::Relaxed);
        }
    }
    CALLS.iter().for_each(|function| function());
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
