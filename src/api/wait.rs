//! 10. Waiting

use crate::api::guard::guard;
use crate::api::life::{live, llcl_context_t};
use crate::api::status::llcl_status_t;
use crate::core::wait_word::Changer;
use crate::fail;
use crate::util::status::Result;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

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
/// reached in time; LLCL_ERR_PEER_DEAD: not reached, and a death has left nobody who could change
/// it: all other ranks are dead, or all that have ever used the region in which the word lies (a
/// living rank that has not touched the region yet does not count: name it by llcl_wait_word_from),
/// what they had sent is handled, and the operations of this rank have ended that were under way
/// (one with a living peer that is slow delays this answer, since its completion may change the
/// word); LLCL_ERR_INVALID: NULL or misaligned; LLCL_ERR_STATE: inside a callback, or the context
/// is being finalized, and the value has not been reached.
/// Any number of threads may wait, for the same word or others. A sleeping thread is looked after
/// by those who store: after its first second it runs no more until it is woken, and stores to
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
/// After GASPI's gaspi_notify_waitsome with its health vector: who waits for a peer names it.
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
    let timeout = u64::try_from(timeout_ns).ok().map(Duration::from_nanos);
    context.wait_word(word, at_least, timeout, changer)
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
