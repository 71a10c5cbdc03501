//! 10. Waiting: for operations, words and messages.

use crate::api::guard::{give, given, guard, timeout};
use crate::api::life::{live, llcl_context_t};
use crate::api::status::llcl_status_t;
use crate::core::watch::{Changer, Watched};
use crate::fail;
use crate::util::status::Result;
use std::sync::atomic::AtomicU64;

/// Waits until the operations of this context towards one peer that were accepted before have
/// ended.
///
/// `context`: a live context. `peer`: a rank below llcl_size.
/// LLCL_OK: their effects can be seen at the peer, except the effects of operations that failed and
/// whose completions reported that;
/// LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_INVALID: NULL, or no such rank;
/// LLCL_ERR_STATE: inside a callback, or the context is being finalized.
/// Any other status is that of an operation which was accepted without a completion and has failed
/// since the last flush with this peer: the first such operation. llcl_last_error() says which
/// operation that was, and how many failed after it. All operations have ended in this case, too,
/// and the next flush does not report the failure again. Any thread may call it; it waits for the
/// operations of all threads. Helps with progress meanwhile, and sleeps if it takes long.
/// From: MPI_Win_flush, and ucp_ep_flush of UCX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_flush(context: *mut llcl_context_t, peer: u32) -> llcl_status_t {
    // SAFETY: the caller gives a live context.
    guard(|| unsafe { live(context)? }.flush(Some(peer)))
}

/// Waits until the operations of this context that were accepted before have ended, whatever the
/// peer.
///
/// `context`: a live context.
/// LLCL_OK: all have ended; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: inside a callback, or the
/// context is being finalized. Any other status, LLCL_ERR_PEER_DEAD included, is that of the first
/// operation without a completion that has failed, whatever the peer, as with llcl_flush.
/// Any thread may call it; it waits for the operations of all threads. Helps with progress
/// meanwhile, and sleeps if it takes long.
/// From: MPI_Win_flush_all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_flush_all(context: *mut llcl_context_t) -> llcl_status_t {
    // SAFETY: the caller gives a live context.
    guard(|| unsafe { live(context)? }.flush(None))
}

/// Waits until a word has reached a value. The thread helps with progress for LLCL_SPIN_US, over a
/// network that wakes no thread, such as MPI, for at least 1 ms, and then sleeps.
///
/// Every change of the word by this library wakes the sleeping thread: by a completion, a callback,
/// a handler, or an operation of a peer. Two changes do not. After a store through a pointer the
/// program must call llcl_wake. And a read or a fetch into the word does not wake; wait for its
/// completion instead. When the word was changed by an atomic, a signal, a value or a write of 8
/// aligned bytes, the caller also sees what the requester did before. If the word is part of a
/// larger write, the wait ends when the word's own bytes have changed; other bytes of that write
/// may come later.
/// `context`: a live context. `word`: any uint64_t of this process, aligned to 8 bytes. While the
/// call waits the word may be changed by atomic stores only. `at_least`: the value to be reached,
/// compared unsigned; so a STORE or ADD word that reports a failure ends every wait. `timeout_ns`:
/// nanoseconds; negative: for ever; 0: only looks, and runs up to 64 handlers. If a handler runs
/// in the call when the time is over, the call returns after the handler, or up to 10 ms later if
/// others follow. Completions that are due fire before, up to 64 at a time.
/// LLCL_OK: reached, and the caller sees what was done before the word was changed;
/// LLCL_ERR_TIMEOUT: not reached in time; LLCL_ERR_PEER_DEAD: not reached, and after a death no
/// rank is left that could change the word. That is so when all other ranks are dead, or all ranks
/// that have ever used the region of the word; when the messages that they had sent are handled;
/// and when this rank's own operations have ended. (A living rank that has not used the region yet
/// does not count: name it by llcl_wait_word_from. An operation with a slow living peer delays this
/// answer, because its completion may change the word. So does a nonblocking collective: until its
/// plan is made, and then by 0.2 s at most.)
/// LLCL_ERR_INVALID: NULL or misaligned; LLCL_ERR_STATE: the value has not been reached, and the
/// call is made inside a callback or the context is being finalized.
/// Any number of threads may wait, for one word or for several. After its first second a sleeping
/// thread does not run until the thread that stores to the word wakes it. Stores to other words
/// cost as much as without a sleeping thread. Threads of a rank can sleep on up to 255 words in
/// this way; every store into the rank's memory wakes the threads that sleep on further words. A
/// word that lies in several regions is read every millisecond.
/// From: shmem_wait_until of OpenSHMEM, and the futex of Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_wait_word(
    context: *mut llcl_context_t,
    word: *const u64,
    at_least: u64,
    timeout_ns: i64,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    guard(|| unsafe { wait_word(context, word, at_least, timeout_ns, Changer::Anybody) })
}

/// Waits until a word has reached a value, or the rank that is to change it has died.
///
/// It differs from llcl_wait_word in deaths only: only the death of `peer` ends the wait, whether
/// or not other ranks live. Prefer it where one peer changes the word: the wait then ends at its
/// death, in a world of any size.
/// `context`, `word`, `at_least`, `timeout_ns`: as of llcl_wait_word. `peer`: a rank below
/// llcl_size; for the caller's own rank no death ends the wait.
/// LLCL_OK, also if the peer died after it had changed the word; LLCL_ERR_PEER_DEAD: not reached,
/// the peer has died or has left, and this rank's own operations have ended, as there;
/// LLCL_ERR_TIMEOUT, LLCL_ERR_STATE: as of llcl_wait_word; LLCL_ERR_INVALID: NULL, misaligned, or
/// no such rank.
/// Any number of threads may wait, as for llcl_wait_word.
/// From: GASPI's gaspi_notify_waitsome and its health vector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_wait_word_from(
    context: *mut llcl_context_t,
    word: *const u64,
    at_least: u64,
    timeout_ns: i64,
    peer: u32,
) -> llcl_status_t {
    // SAFETY: as the caller promises.
    guard(|| unsafe { wait_word(context, word, at_least, timeout_ns, Changer::Peer(peer)) })
}

/// For llcl_flush_within: every peer.
pub const LLCL_ALL_PEERS: u32 = 4_294_967_295;

/// Waits until the operations of this context that were accepted before have ended, but not for
/// longer than a time.
///
/// `context`: a live context. `peer`: a rank below llcl_size, or LLCL_ALL_PEERS. `timeout_ns`:
/// nanoseconds, as of llcl_wait_word; negative: for ever; 0: only looks.
/// LLCL_OK, and every other status: as of llcl_flush and llcl_flush_all; LLCL_ERR_TIMEOUT: not all
/// have ended in time. The operations go on, and their completions fire as without this call. Any
/// thread may call it. Helps with progress meanwhile, and sleeps if it takes long.
/// From: gaspi_wait of GASPI, which takes a time-out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_flush_within(
    context: *mut llcl_context_t,
    peer: u32,
    timeout_ns: i64,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context.
        let context = unsafe { live(context)? };
        context.flush_within((peer != LLCL_ALL_PEERS).then_some(peer), timeout(timeout_ns))
    })
}

/// A bit of llcl_awaited_t::flags: only `peer` can change the word.
pub const LLCL_WAIT_FROM_PEER: u32 = 1;

/// A flag of llcl_wait_any and llcl_wait_fd: the wait also ends when handlers have run.
pub const LLCL_WAIT_MESSAGES: u32 = 1;

/// One of several words that a thread waits for.
#[repr(C)]
pub struct llcl_awaited_t {
    /// Any uint64_t of this process, aligned to 8 bytes; changed by atomic stores only.
    pub word: *const u64,
    /// The value to be reached, compared unsigned.
    pub at_least: u64,
    /// With LLCL_WAIT_FROM_PEER: the rank that is to change the word. Else ignored.
    pub peer: u32,
    /// 0 or LLCL_WAIT_FROM_PEER.
    pub flags: u32,
}

/// Waits until one of several words has reached its value, or until handlers have run. The thread
/// helps with progress as in llcl_wait_word, and then sleeps.
///
/// The changes that wake the thread are those of llcl_wait_word, for each of the words.
/// `context`: a live context. `words`: `count` words, read during the call only; NULL if `count` is
/// 0. `count`: how many. If all threads of the rank together wait for more than some 250 words,
/// every store into the rank's memory wakes the thread. `flags`: 0 or LLCL_WAIT_MESSAGES; with it
/// the wait also ends when handlers have run, on any thread, since the calling thread's last
/// llcl_am_wait, llcl_wait_any with this flag, or llcl_am_poll that took a message. `timeout_ns`:
/// nanoseconds; negative: for ever; 0: only looks. `which`: where the number goes, from 0 on, of
/// the first word in the list that has its value; `count` if no word has its value and handlers
/// have run. May be NULL.
/// LLCL_OK: handlers have run, or a word has reached its value: the caller then sees what was done
/// before the word was changed; LLCL_ERR_TIMEOUT: neither in time; LLCL_ERR_PEER_DEAD: no word has
/// its value, and no rank is left that could change one of them, as of llcl_wait_word and, with
/// LLCL_WAIT_FROM_PEER, llcl_wait_word_from; leave that word out to wait for the others;
/// LLCL_ERR_INVALID: NULL, a misaligned word, unknown flags, no such rank, or neither words nor
/// LLCL_WAIT_MESSAGES; LLCL_ERR_STATE: the call would have to wait inside a callback, or the
/// context is being finalized. Any number of threads may wait.
/// From: MPI_Waitany and GASPI's gaspi_notify_waitsome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_wait_any(
    context: *mut llcl_context_t,
    words: *const llcl_awaited_t,
    count: u32,
    flags: u32,
    timeout_ns: i64,
    which: *mut u32,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context and a list of words that live during the call.
        let (context, words) = unsafe { (live(context)?, watched(words, count)?) };
        let messages = check_flags(flags)?;
        if words.is_empty() && !messages {
            fail!(ERR_INVALID, "count is 0 without LLCL_WAIT_MESSAGES, expected words");
        }
        let reached = context.wait_any(&words, messages, timeout(timeout_ns))?;
        // SAFETY: the caller gives NULL or a place for a number.
        if let Some(which) = unsafe { which.as_mut() } {
            *which = reached as u32;
        }
        Ok(())
    })
}

/// Arms a descriptor for an event loop, which waits by epoll, poll or select. The descriptor
/// becomes readable when llcl_wait_any with these parameters would return.
///
/// An arming reports one event. Arm the descriptor again before each wait of the event loop; that
/// also makes it unreadable. If the event has happened before the call, the descriptor becomes
/// readable at once, so no event is missed between a look and the arming. Use it so: arm; wait in
/// the event loop; when it is readable, call llcl_wait_any with the same words and the time 0, and
/// act; begin again. Where handlers run only in polls (LLCL_AM_HANDLERS_POLLED), LLCL_WAIT_MESSAGES
/// makes it readable when a message waits: llcl_am_poll then runs its handler. It also becomes
/// readable after a death because of which a word can never have its value. The first call makes
/// the descriptor, an eventfd, and starts a thread that sleeps on the words; so an event costs a
/// wake-up more than in llcl_wait_any.
/// `context`: a live context. `words`: as of llcl_wait_any, but each `word` in the list must stay
/// valid until the descriptor has become readable or the next arming has returned. `count`,
/// `flags`: as there; `count` 0 and `flags` 0: disarms. `descriptor`: where its number goes; each
/// call stores the number of one and the same descriptor. It belongs to the library, ends with the
/// context, and must be neither written to nor closed.
/// LLCL_OK; LLCL_ERR_INVALID: as of llcl_wait_any; LLCL_ERR_STATE: inside a callback, or the
/// context is being finalized; LLCL_ERR_SYSTEM, LLCL_ERR_NO_MEMORY: the machine refuses a
/// descriptor or a thread. Any thread may call it; a call replaces the arming of the call before.
/// From: ibv_req_notify_cq of verbs and ucp_worker_arm of UCX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_wait_fd(
    context: *mut llcl_context_t,
    words: *const llcl_awaited_t,
    count: u32,
    flags: u32,
    descriptor: *mut i32,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context and a list of words that live as the doc says.
        let (context, words) = unsafe { (live(context)?, watched(words, count)?) };
        let messages = check_flags(flags)?;
        if descriptor.is_null() {
            fail!(ERR_INVALID, "descriptor is NULL");
        }
        // SAFETY: the words live as the doc says.
        let number = unsafe { context.wait_fd(&words, messages)? };
        // SAFETY: the caller gives a place for a number.
        unsafe { give(descriptor, "descriptor", number) }
    })
}

/// Whether messages end the wait.
fn check_flags(flags: u32) -> Result<bool> {
    if flags & !LLCL_WAIT_MESSAGES != 0 {
        fail!(ERR_INVALID, "flags is {flags:#x}, expected no bit but LLCL_WAIT_MESSAGES");
    }
    Ok(flags != 0)
}

/// # Safety
/// `words` is NULL or has `count` entries, whose words live as long as the answer is used.
unsafe fn watched<'a>(words: *const llcl_awaited_t, count: u32) -> Result<Vec<Watched<'a>>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: as the caller promises.
    unsafe { given(words, "words")? };
    // SAFETY: as above.
    let words = unsafe { std::slice::from_raw_parts(words, count as usize) };
    let watched = words.iter().enumerate().map(|(at, it)| {
        if it.word.is_null() || !(it.word as usize).is_multiple_of(8) {
            let word = it.word;
            fail!(ERR_INVALID, "words[{at}].word is {word:?}, expected an 8-byte aligned uint64_t");
        }
        let changer = match it.flags {
            0 => Changer::Anybody,
            LLCL_WAIT_FROM_PEER => Changer::Peer(it.peer),
            flags => fail!(
                ERR_INVALID,
                "words[{at}].flags is {flags:#x}, expected no bit but LLCL_WAIT_FROM_PEER"
            ),
        };
        // SAFETY: a live aligned word, which others change atomically only, by contract.
        let word = unsafe { AtomicU64::from_ptr(it.word.cast_mut()) };
        Ok(Watched { word, at_least: it.at_least, changer })
    });
    watched.collect()
}

/// # Safety
/// Pointers that are not null point to a live context and a word that lives until the end.
unsafe fn wait_word(
    context: *mut llcl_context_t,
    word: *const u64,
    at_least: u64,
    timeout_ns: i64,
    changer: Changer,
) -> Result<()> {
    // SAFETY: the caller gives a live context.
    let context = unsafe { live(context)? };
    if word.is_null() || !(word as usize).is_multiple_of(8) {
        fail!(ERR_INVALID, "word is {word:?}, expected an 8-byte aligned uint64_t");
    }
    // SAFETY: a live aligned word, which others change atomically only, by contract.
    let word = unsafe { AtomicU64::from_ptr(word.cast_mut()) };
    context.wait_any(&[Watched { word, at_least, changer }], false, timeout(timeout_ns)).map(drop)
}

/// Wakes the threads of a rank that sleep in llcl_wait_word and the like, so that they read their
/// words again.
///
/// Call it after a store through a pointer (of llcl_remote_pointer, or into memory of this process)
/// into a word that a thread may wait for by llcl_wait_word: such a store wakes no thread by
/// itself. `context`: a live context. `peer`: the rank whose threads are woken, below llcl_size; it
/// may be the calling one.
/// LLCL_OK: woken, or no thread sleeps, or this rank has never used the peer; LLCL_ERR_INVALID:
/// NULL, or no such rank; LLCL_ERR_STATE: the context is being finalized. Any thread may call it,
/// also inside a callback or a handler. It costs two loads if no thread sleeps, else a system call
/// for each word that a thread sleeps on.
/// From: FUTEX_WAKE of Linux.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_wake(context: *mut llcl_context_t, peer: u32) -> llcl_status_t {
    // SAFETY: the caller gives a live context.
    guard(|| unsafe { live(context)? }.wake(peer))
}

/// Helps with progress for one round. A program need not call it: the library makes progress by its
/// own threads. Only handlers may need it, see LLCL_AM_HANDLERS_POLLED.
///
/// `context`: a live context.
/// LLCL_OK, whether there was anything to do or not. In offload mode the call leaves commands and
/// answers to the progress thread: it only posts parked requests, runs polled handlers and polls a
/// network that needs it. LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: inside a callback, or the context
/// is being finalized. Any thread may call it; callbacks may run on it. Where a network is polled,
/// MPI's for example, a call that found nothing lets other threads have the core.
/// From: ucp_worker_progress of UCX, but no operation depends on it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_progress(context: *mut llcl_context_t) -> llcl_status_t {
    // SAFETY: the caller gives a live context.
    guard(|| unsafe { live(context)? }.progress_once())
}
