use super::*;
use crate::core::context::Place;
use crate::engine::messages::message::Message;
use crate::transport::address::Address;
use crate::util::config::Config;
use std::sync::atomic::{AtomicU64, Ordering};

const ASK: u32 = 0;
const ANSWER: u32 = 1;

unsafe extern "C-unwind" fn ask(message: *mut Message, _: *mut c_void) {
    let frame = Frame {
        id: ANSWER as u16,
        kind: MEDIUM as u8,
        tag: 0,
        header: &[],
        payload: &[],
        label: 0,
        absent: true,
    };
    // SAFETY: the library's own message.
    unsafe { &*message }.respond(&frame).expect("a response");
}

unsafe extern "C-unwind" fn answer(_: *mut Message, count: *mut c_void) {
    // SAFETY: the test's word.
    unsafe { &*count.cast::<AtomicU64>() }.fetch_add(1, Ordering::Relaxed);
}

/// A wait for a word relies on this: it fails only after all messages of dead ranks were handled.
#[test]
fn a_response_that_has_come_and_not_been_handled_counts_as_such() {
    let mut config = Config::from_environment().expect("a configuration");
    config.am_handlers = 2;
    let context = Context::create(config, Place::Environment).expect("a world of one");
    let answered = AtomicU64::new(0);
    // SAFETY: the word exists until the context has ended.
    unsafe {
        context.am_register(ASK, Some(ask), std::ptr::null_mut()).expect("a handler");
        context.am_register(ANSWER, Some(answer), answered.as_ptr().cast()).expect("a handler");
    }
    let none = Address { key: 0, offset: 0 };
    let request = Send(Parameters {
        peer: 0,
        flags: 0,
        id: ASK,
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
    });
    context.am_try(&request).expect("credit");
    assert!(!context.dispatcher.has_handled_all(), "the request waits");
    assert_eq!(context.am_poll(1).expect("a poll"), 1);
    assert!(!context.dispatcher.has_handled_all(), "the response waits");
    assert_eq!(context.am_poll(1).expect("a poll"), 1);
    assert!(context.dispatcher.has_handled_all());
    assert_eq!(answered.load(Ordering::Relaxed), 1);
    context.finalize(None).status.expect("the end");
}
