//! Requests to owners of memory: their data, and their slots.

use super::*;
use crate::transport::{CHUNK, CHUNKS};

#[test]
fn requests_and_answers_bring_bytes_of_every_size() {
    over_all(|pair| {
        for size in [1, 8, 47, 48, 49, 80, 81, 4096, CHUNK] {
            let sent: Vec<u8> = (0..size).map(|at| (at * 7 + size) as u8).collect();
            let End { transport, port, .. } = &pair.here;
            let post = || transport.post(port, &message(9), &sent) == Posted::Taken;
            assert!(pair.until(10_000, post), "no room for {size} bytes");
            let came = pair.events(1);
            assert_eq!((came.requests, came.bytes), (vec![message(9)], vec![sent.clone()]));
            let end = if pair.own { &pair.here } else { &pair.there };
            let reply = Reply { tag: 3, status: Status::OK, result: 5 };
            assert!(end.transport.reply(&end.port, reply, &sent));
            let came = pair.events(1);
            assert_eq!((came.replies.len(), came.bytes), (1, vec![sent]));
        }
    });
}

/// Small requests are accepted while all slots for large ones are in use.
#[test]
fn requests_of_many_bytes_have_slots_of_their_own() {
    let mut pair = shared();
    let bytes = [5; 100];
    let post = |pair: &Pair| pair.here.transport.post(&pair.here.port, &message(1), &bytes);
    assert_eq!((0..100).take_while(|_| post(&pair) == Posted::Taken).count(), CHUNKS);
    assert_eq!(pair.post(2), Posted::Taken);
    let came = pair.events(CHUNKS + 1);
    assert_eq!(came.requests.len(), CHUNKS + 1);
    assert!(came.bytes.iter().all(|came| came.is_empty() || came == &bytes));
}

/// For each request that arrives, notes whether its sender then finds a free slot.
struct Answering<'a> {
    from: &'a End,
    free: Vec<bool>,
}

impl Sink for Answering<'_> {
    fn ended(&mut self, _: Reply) {}

    fn request(&mut self, _: &Message, _: &[u8]) {
        let posted = self.from.transport.post(&self.from.port, &message(99), &[]);
        self.free.push(posted == Posted::Taken);
    }

    fn reply(&mut self, _: Reply, _: &[u8]) {}
}

/// The receiver has eight slots and gives back two at a time. It does not give back a slot while it
/// handles the request in it, so the first two requests find no free slot.
#[test]
fn the_slot_of_a_request_is_given_back_when_it_was_answered() {
    let mut pair = shared();
    (0..8).for_each(|number| assert_eq!(pair.post(number), Posted::Taken));
    assert_eq!(pair.post(8), Posted::Full);
    let mut sink = Answering { from: &pair.here, free: Vec::new() };
    pair.there.receiver.poll(&mut sink);
    assert_eq!(sink.free[..4], [false, false, true, true], "slots of requests that are answered");
}
