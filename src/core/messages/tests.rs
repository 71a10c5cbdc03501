use super::*;
use crate::core::context::Place;
use crate::core::deadline::Deadline;
use crate::engine::messages::message::Message;
use crate::transport::address::Address;
use crate::util::admission::{REFUSALS, SHARE};
use crate::util::backoff::{Backoff, share_core};
use crate::util::config::Config;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[cfg(feature = "simulated")]
mod waits;

const ASK: u32 = 0;
const ANSWER: u32 = 1;

const EMPTY: Frame = Frame {
    id: ANSWER as u16,
    kind: MEDIUM as u8,
    tag: 0,
    header: &[],
    payload: &[],
    label: 0,
    absent: true,
};

unsafe extern "C-unwind" fn ask(message: *mut Message, _: *mut c_void) {
    // SAFETY: the library's own message.
    unsafe { &*message }.respond(&EMPTY).expect("a response");
}

unsafe extern "C-unwind" fn answer(_: *mut Message, count: *mut c_void) {
    // SAFETY: the test's word.
    unsafe { &*count.cast::<AtomicU64>() }.fetch_add(1, Ordering::Relaxed);
}

/// A message to this rank without header and payload.
fn to_self(id: u32) -> Send {
    let none = Address { key: 0, offset: 0 };
    Send(Parameters {
        peer: 0,
        flags: 0,
        id,
        kind: MEDIUM,
        label: 0,
        header: std::ptr::null(),
        header_size: 0,
        payload: std::ptr::null(),
        payload_size: 0,
        source: none,
        destination: none,
        reply: std::ptr::null_mut(),
        reply_capacity: 0,
        reply_size: std::ptr::null_mut(),
        on_local: Completion::NOTHING,
        on_complete: Completion::NOTHING,
    })
}

/// A world of one rank. If handlers are polled, only this thread runs them.
fn world_of_one(polled: bool) -> Context {
    let mut config = Config::from_environment().expect("a configuration");
    config.am_handlers = if polled { 2 } else { config.am_handlers };
    Context::create(Ok(config), Place::Environment).expect("a world of one")
}

/// A wait for a word relies on this: it fails only after all messages of dead ranks were handled.
#[test]
fn a_response_that_has_come_and_not_been_handled_counts_as_such() {
    let context = world_of_one(true);
    let answered = AtomicU64::new(0);
    // SAFETY: the word exists until the context has ended.
    unsafe {
        context.am_register(ASK, Some(ask), std::ptr::null_mut()).expect("a handler");
        context.am_register(ANSWER, Some(answer), answered.as_ptr().cast()).expect("a handler");
    }
    let request = to_self(ASK);
    context.am_try(&request).expect("credit");
    assert!(!context.dispatcher.has_handled_all(), "the request waits");
    assert_eq!(context.am_poll(1).expect("a poll"), 1);
    assert!(!context.dispatcher.has_handled_all(), "the response waits");
    assert_eq!(context.am_poll(1).expect("a poll"), 1);
    assert!(context.dispatcher.has_handled_all());
    assert_eq!(answered.load(Ordering::Relaxed), 1);
    context.finalize(None).status.expect("the end");
}

/// A call that sends tries several ways. A thread whose share is used up gets a new one after
/// REFUSALS calls, however many ways a call has tried. A call that finds no slot, or whose payload
/// cannot be written, takes nothing of the share.
#[test]
fn a_call_counts_one_refusal_or_one_message_that_is_sent() {
    let (context, count, end) = (world_of_one(true), AtomicU64::new(0), AtomicU64::new(0));
    // SAFETY: the word exists until the context has ended.
    unsafe { context.am_register(ANSWER, Some(answer), count.as_ptr().cast()) }.expect("a handler");
    context.am_try(&to_self(ANSWER)).expect("a contact");
    let room = &context.routes.fabric().known_sender(0).expect("a contact").room;
    let call = || context.am_quickly(0, &EMPTY) || context.am_try(&to_self(ANSWER)).is_ok();
    let payload = AtomicU64::new(0);
    let fails = || {
        let (message, key) = (to_self(ANSWER), ANY.0);
        let source = Address { key, offset: payload.as_ptr() as u64 };
        let long = Parameters { kind: LONG, payload_size: 8, source, ..*message };
        context.am_try(&Send(long)).is_err_and(|error| error.status == Status::ERR_KEY)
    };
    let sends = || {
        let sent = call();
        context.am_poll(2).expect("a poll");
        sent
    };
    let ended = || (end.load(Ordering::Relaxed) != 0).then_some(());
    std::thread::scope(|scope| {
        scope.spawn(|| room.wait_asleep(Duration::from_secs(60), ended));
        while !room.is_wanted() {
            std::thread::yield_now();
        }
        // A thread of its own has a share of its own.
        let sender = scope.spawn(|| {
            assert!((0..2 * SHARE).all(|_| fails()), "there is no region to write to");
            let sent = (0..SHARE).filter(|_| call()).count() as i32;
            while context.am_poll(64).expect("a poll") > 0 {}
            assert!((0..SHARE - sent).all(|_| sends()));
            assert!((0..REFUSALS).all(|_| !sends()));
            assert!(sends(), "a new share");
        });
        let end_of_sender = sender.join();
        end.store(1, Ordering::Relaxed);
        room.announce();
        end_of_sender.expect("one refusal for each call");
    });
    context.finalize(None).status.expect("the end");
}

/// A thread that waits on a shared core yields after each help. Without this note `llcl-handlers`
/// did not nap meanwhile: the two took the role from each other, and each message that
/// `llcl-handlers` handled woke the waiting thread.
#[test]
fn a_wait_on_a_shared_core_is_noted() {
    let context = world_of_one(false);
    let mut seen = 0;
    context.dispatcher.nap_while_others_help(&mut seen);
    assert!(!context.dispatcher.nap_while_others_help(&mut seen));
    share_core(true);
    context
        .blocking()
        .help_until(&mut Backoff::new(Duration::ZERO), &Deadline::new(None), || false);
    share_core(false);
    assert!(context.dispatcher.nap_while_others_help(&mut seen));
    context.finalize(None).status.expect("the end");
}

/// A sender on the same core has filled its slots before it has given the core to this thread. When
/// the thread handled one batch for each yield, the two threads sent 4 M/s in place of 25.
#[test]
fn a_wait_on_a_shared_core_handles_all_messages_before_it_yields() {
    /// Several batches, and fewer than there are slots.
    const ALL: u64 = 300;
    let (context, count) = (world_of_one(true), AtomicU64::new(0));
    // SAFETY: the word exists until the context has ended.
    unsafe { context.am_register(ANSWER, Some(answer), count.as_ptr().cast()) }.expect("a handler");
    let ended_at = |most: u64| {
        count.store(0, Ordering::Relaxed);
        (0..ALL).for_each(|_| context.am_try(&to_self(ANSWER)).expect("credit"));
        share_core(true);
        let done = || count.load(Ordering::Relaxed) >= most;
        context.blocking().help_until(
            &mut Backoff::new(Duration::ZERO),
            &Deadline::new(None),
            done,
        );
        share_core(false);
        let end = count.load(Ordering::Relaxed);
        while context.am_poll(64).expect("a poll") > 0 {}
        end
    };
    assert_eq!(ended_at(u64::MAX), ALL);
    assert!(ended_at(1) < ALL, "the wait has ended");
    context.finalize(None).status.expect("the end");
}

/// The last yield of a wait may have been long on a shared core. When the thread slept without a
/// look after it, `llcl-handlers` took its place, and one core took 5 GB/s of messages of 4 KiB in
/// place of 29.
#[test]
fn a_wait_on_a_shared_core_handles_what_came_during_its_last_yield() {
    let (context, count) = (world_of_one(true), AtomicU64::new(0));
    // SAFETY: the word exists until the context has ended.
    unsafe { context.am_register(ANSWER, Some(answer), count.as_ptr().cast()) }.expect("a handler");
    let handles = |shared| {
        context.am_try(&to_self(ANSWER)).expect("credit");
        share_core(shared);
        let handles = context.blocking().handles_late(&Deadline::new(None), || false);
        share_core(false);
        while context.am_poll(64).expect("a poll") > 0 {}
        handles
    };
    assert!(handles(true) && !handles(false));
    assert_eq!(count.load(Ordering::Relaxed), 2);
    context.finalize(None).status.expect("the end");
}

/// A poll that takes one message does not look for replies. Every so many such polls the turn of
/// the messages ends, and a poll looks.
#[test]
fn a_reply_waits_for_few_polls_that_take_one_message() {
    /// Turns of 32 requests and of 32 responses.
    const MOST: u32 = 64;
    let context = world_of_one(true);
    // It would take a reply while the kernel runs this thread late.
    assert!(context.progress.stop(Instant::now() + Duration::from_secs(60)), "it ends");
    let (answered, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    // SAFETY: the words exist until the context has ended.
    unsafe {
        context.am_register(ASK, Some(ask), std::ptr::null_mut()).expect("a handler");
        context.am_register(ANSWER, Some(answer), answered.as_ptr().cast()).expect("a handler");
    }
    let polls_one = || assert_eq!(context.am_poll(1).expect("a poll"), 1);
    // Requests alone, then requests and responses in turn.
    for (id, each) in [(ANSWER, 1), (ASK, 2)] {
        ended.store(0, Ordering::Relaxed);
        let on_complete = Completion::store_on(&ended);
        let request = Send(Parameters { on_complete, ..*to_self(ANSWER) });
        context.am_try(&request).expect("credit");
        polls_one();
        let mut polls = 0;
        while ended.load(Ordering::Relaxed) == 0 {
            assert!(polls < MOST, "the reply was not taken");
            context.am_try(&to_self(id)).expect("credit");
            (0..each).for_each(|_| polls_one());
            polls += each;
        }
        assert!(polls > 1, "these polls look for replies");
    }
    context.finalize(None).status.expect("the end");
}
