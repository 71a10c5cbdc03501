//! 10. Waiting

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
/// LLCL_OK: their effects can be seen at the peer, except of those whose completions have told a
/// failure;
/// LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_INVALID: NULL, or no such rank;
/// LLCL_ERR_STATE: inside a callback, or the context is being finalized.
/// Any other status is that of the first operation with this peer that was accepted without a
/// completion, has failed since the last flush, and of which nobody was told; llcl_last_error()
/// says which operation that was, and how many failed after it. Everything has ended then, too, and
/// the next flush does not tell it again. Any thread may call it; it covers what any thread has
/// posted before. Helps with progress meanwhile, and sleeps if it takes long.
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
/// Any thread may call it; it covers what any thread has posted before. Helps with progress
/// meanwhile, and sleeps if it takes long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_flush_all(context: *mut llcl_context_t) -> llcl_status_t {
    // SAFETY: the caller gives a live context.
    guard(|| unsafe { live(context)? }.flush(None))
}

/// Waits until a word has reached a value: helping with progress for LLCL_SPIN_US, then asleep.
///
/// Whatever changes the word through this library wakes the sleeper: a completion, a callback, a
/// handler, any operation of a peer. Two things do not: a store through a pointer, after which
/// llcl_wake is to be called; and what a read or a fetch brings, whose completion is to be waited
/// for instead. Atomics, signals, values and writes of 8 aligned bytes also tell that what was done
/// before is there; a word inside a larger write ends the wait when its own bytes are there; the
/// bytes around it may come later.
/// `context`: a live context. `word`: any uint64_t of this process, aligned to 8 bytes; changed by
/// atomic stores only while this waits. `at_least`: the value to be reached, compared unsigned (so
/// a STORE or ADD word that reports a failure ends any wait). `timeout_ns`: nanoseconds; negative:
/// for ever; 0: only looks.
/// LLCL_OK: reached, and what was done before the word was changed is seen; LLCL_ERR_TIMEOUT: not
/// reached in time; LLCL_ERR_PEER_DEAD: not reached, and a death has left no rank that could change
/// it: all other ranks are dead, or all that have ever used the region in which the word lies (a
/// living rank that has not touched the region yet does not count: name it by llcl_wait_word_from),
/// what they had sent is handled, and the operations of this rank have ended that were under way
/// (one with a living peer that is slow delays this answer, since its completion may change the
/// word); LLCL_ERR_INVALID: NULL or misaligned; LLCL_ERR_STATE: inside a callback, or the context
/// is being finalized, and the value has not been reached.
/// Any number of threads may wait, for the same word or others. A sleeping thread is looked after
/// by storing threads: after its first second it runs no more until it is woken, and stores to
/// other words cost what they cost without it. Up to 255 words of a rank can be slept on in this
/// way; the threads of further ones are woken by every store into the rank's memory. A word that
/// lies in several regions is looked at each millisecond.
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

/// Waits until a word has reached a value, but not longer than the one rank lives that is to change
/// it.
///
/// As llcl_wait_word in everything but deaths: only that of `peer` counts, and it counts whether or
/// not others live. Prefer it where one peer is waited for: a word whose writer dies is told of, in
/// a world of any size.
/// `context`, `word`, `at_least`, `timeout_ns`: as of llcl_wait_word. `peer`: a rank below
/// llcl_size; one's own never dies.
/// LLCL_OK, also where the peer has died after it has brought the value; LLCL_ERR_PEER_DEAD: not
/// reached, the peer has died or has left, and this rank's operations have ended as there;
/// LLCL_ERR_TIMEOUT, LLCL_ERR_STATE: as of llcl_wait_word; LLCL_ERR_INVALID: NULL, misaligned, or
/// no such rank.
/// Any number of threads may wait, as for llcl_wait_word.
/// After GASPI's gaspi_notify_waitsome with its health vector: a thread that waits for a peer names
/// it.
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

/// Of llcl_flush_within: every peer.
pub const LLCL_ALL_PEERS: u32 = 4_294_967_295;

/// Waits until the operations of this context that were accepted before have ended, but not for
/// longer than a time.
///
/// `context`: a live context. `peer`: a rank below llcl_size, or LLCL_ALL_PEERS. `timeout_ns`:
/// nanoseconds; negative: for ever; 0: only looks.
/// LLCL_OK, and every other status: as of llcl_flush and llcl_flush_all; LLCL_ERR_TIMEOUT: not all
/// have ended in time. Nothing has changed then: they go on, and their completions fire as ever.
/// Any thread may call it. Helps with progress meanwhile, and sleeps if it takes long.
/// After gaspi_wait of GASPI, each of whose calls takes a time.
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

/// Of llcl_awaited_t::flags: only `peer` can change the word.
pub const LLCL_WAIT_FROM_PEER: u32 = 1;

/// Of llcl_wait_any and llcl_wait_fd: handlers that have run end the wait as well.
pub const LLCL_WAIT_MESSAGES: u32 = 1;

/// A word that is waited for, beside others.
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

/// Waits until one of several words has reached its value, or until handlers have run: helping with
/// progress for LLCL_SPIN_US, then asleep.
///
/// What wakes the sleeper is that of llcl_wait_word, for each of the words.
/// `context`: a live context. `words`: `count` words, read during the call only; NULL if `count` is
/// 0. `count`: how many; with more than some 250 in all threads' waits together every store into
/// the rank's memory wakes the thread. `flags`: 0 or LLCL_WAIT_MESSAGES: the wait ends also when
/// handlers have run since the calling thread's last llcl_am_wait or the like, on whatever thread.
/// `timeout_ns`: nanoseconds; negative: for ever; 0: only looks. `which`: where the number of the
/// word goes, the first in the list that has its value; `count` where none has and handlers have
/// run. May be NULL.
/// LLCL_OK: handlers have run, or a word has reached its value: the caller then sees what was done
/// before the word was changed; LLCL_ERR_TIMEOUT: neither in time; LLCL_ERR_PEER_DEAD: no word has
/// its value, and nobody is left to change one of them, as of llcl_wait_word and, with
/// LLCL_WAIT_FROM_PEER, llcl_wait_word_from; leave it out to wait for the others;
/// LLCL_ERR_INVALID: NULL, a misaligned word, unknown flags, no such rank, or neither words nor
/// LLCL_WAIT_MESSAGES; LLCL_ERR_STATE: inside a callback, or the context is being finalized.
/// Any number of threads may wait.
/// After MPI_Waitany and GASPI's gaspi_notify_waitsome.
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

/// Arms a descriptor, for programs whose event loop waits by epoll, poll or select: it becomes
/// readable when llcl_wait_any with these parameters would return.
///
/// It is armed for once: before each wait of the event loop arm it again, which also makes it
/// unreadable. If what it is armed for has happened before, it becomes readable at once, so nothing
/// is missed between a look and the arming. The way to use it: arm; wait in the event loop; where
/// it is readable, call llcl_wait_any with the same words and the time 0, and act; begin again.
/// Where handlers run only in polls (LLCL_AM_HANDLERS_POLLED), LLCL_WAIT_MESSAGES makes it readable
/// when a message waits: llcl_am_poll then runs its handler. A death after which a word can never
/// have its value makes it readable, too.
/// The first call makes the descriptor, an eventfd, and starts a thread that sleeps on the words;
/// so an event costs a wake-up more than in llcl_wait_any.
/// `context`: a live context. `words`: as of llcl_wait_any, but they stay valid until the
/// descriptor was readable or the next arming has returned. `count`, `flags`: as there; `count` 0
/// and `flags` 0: disarms. `descriptor`: where its number goes, the same in all calls. It is the
/// library's: wait for it to be readable, and neither write to it nor close it; it ends with the
/// context.
/// LLCL_OK; LLCL_ERR_INVALID: as of llcl_wait_any; LLCL_ERR_STATE: inside a callback, or the
/// context is being finalized; LLCL_ERR_SYSTEM, LLCL_ERR_NO_MEMORY: the machine refuses a
/// descriptor or a thread. Any thread may call it; a context has one arming, and the last call
/// counts.
/// After ibv_req_notify_cq of verbs and ucp_worker_arm of UCX.
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
        let number = context.wait_fd(&words, messages)?;
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

/// Wakes the threads of a rank that sleep in the library, so that they look again at what they wait
/// for.
///
/// To be called after a store through a pointer (one of llcl_remote_pointer, or into memory of this
/// process itself) into a word that a thread may wait for by llcl_wait_word: nothing else tells it.
/// `context`: a live context. `peer`: a rank below llcl_size, this one included: whose threads.
/// LLCL_OK: woken, or nobody sleeps, or the rank was never talked to; LLCL_ERR_INVALID: NULL, or no
/// such rank; LLCL_ERR_STATE: the context is being finalized.
/// Any thread may call it, also inside a callback or a handler. Costs two loads where nobody
/// sleeps, else a system call for each word that is slept on.
/// After FUTEX_WAKE of Linux, and gaspi_notify's sleepers, which are woken by notifications only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_wake(context: *mut llcl_context_t, peer: u32) -> llcl_status_t {
    // SAFETY: the caller gives a live context.
    guard(|| unsafe { live(context)? }.wake(peer))
}

/// Helps with progress for one round. Never needed: whatever must advance does so by itself.
///
/// `context`: a live context.
/// LLCL_OK, whether there was anything to do or not; in offload mode nothing is done;
/// LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: inside a callback, or the context is being finalized.
/// Any thread may call it; callbacks may run on it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_progress(context: *mut llcl_context_t) -> llcl_status_t {
    // SAFETY: the caller gives a live context.
    guard(|| unsafe { live(context)? }.progress_once())
}
