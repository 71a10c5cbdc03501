//! Tests of the contract that every transport keeps, run over each: loopback with both ends in one
//! rank, shared memory between two ranks of this process, and wires between two such ranks (`far`).
//! To test a new transport, add a function that makes a pair of ends to [`over_all`].

use crate::bootstrap::{Bootstrap, Card, World};
use crate::transport::address::{Address, Key};
use crate::transport::fabric::Fabric;
use crate::transport::loopback::Loopback;
use crate::transport::memory::segment::{Holders, Place, Segment};
use crate::transport::node::{self, Node};
use crate::transport::port::Port;
use crate::transport::sleepers::Sleepers;
use crate::transport::waiters::Awaited;
use crate::transport::{self, Access, Message, Posted, Receiver, Reply, Sink, Transport};
use crate::util::config::Config;
use crate::util::status::Status;
use std::cell::Cell;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

#[cfg(feature = "simulated")]
mod far;
#[cfg(feature = "simulated")]
mod lanes;
mod mapped;
mod requests;

/// One end; its port leads to the other. The fields are in the order in which they are dropped.
struct End {
    port: Port,
    receiver: Box<dyn Receiver>,
    transport: Arc<dyn Transport>,
}

/// Two ends; `here` accesses the memory of `there`.
struct Pair {
    name: String,
    here: End,
    there: End,
    /// The fabrics of both, if a wire joins them: what is sent comes later, and in any order.
    fabrics: Option<[Arc<Fabric>; 2]>,
    memory: Arc<Segment>,
    /// Both ends are one rank.
    own: bool,
    _world: World,
}

#[derive(Default)]
struct Events {
    requests: Vec<Message>,
    replies: Vec<Reply>,
    /// Completions of operations that were posted to a network.
    ends: Vec<Reply>,
    /// The data of each request and reply.
    bytes: Vec<Vec<u8>>,
}

impl Sink for Events {
    fn request(&mut self, message: &Message, bytes: &[u8]) {
        self.requests.push(*message);
        self.bytes.push(bytes.into());
    }

    fn reply(&mut self, reply: Reply, bytes: &[u8]) {
        self.replies.push(reply);
        self.bytes.push(bytes.into());
    }

    fn ended(&mut self, end: Reply) {
        self.ends.push(end);
    }
}

fn segment() -> Arc<Segment> {
    let mut config = Config::from_environment().unwrap();
    config.request_slots(8).unwrap();
    Arc::new(Segment::create(&config, 2).unwrap())
}

/// Asks for the card of a peer.
fn card_of(bootstrap: &Bootstrap, peer: u32) -> Card {
    let (sender, cards) = mpsc::channel();
    bootstrap.on_cards(Arc::new(move |cards| {
        cards.into_iter().for_each(|(_, card)| sender.send(card).unwrap());
    }));
    bootstrap.ask_card(peer);
    cards.recv().unwrap().unwrap()
}

fn shared() -> Pair {
    let world = World::create(2).unwrap();
    let segments = [segment(), segment()];
    let ranks = [0, 1].map(|rank| {
        let bootstrap = Arc::new(Bootstrap::from_world(&world, rank).unwrap());
        let own = &segments[rank as usize];
        bootstrap.publish(&node::card(own), own.descriptor()).unwrap();
        (Node::new(own.clone(), bootstrap.clone(), true), bootstrap)
    });
    let mut peer = 2;
    let [here, there] = ranks.map(|(node, bootstrap)| {
        peer -= 1;
        let port = node.connect(peer, card_of(&bootstrap, peer)).unwrap();
        let receiver = Box::new(node.receiver(Arc::default()));
        End { port, receiver, transport: Arc::new(node) }
    });
    let [_, memory] = segments;
    let fabrics = None;
    Pair { name: "node".into(), here, there, fabrics, memory, own: false, _world: world }
}

fn loopback() -> Pair {
    let memory = segment();
    // SAFETY: the pair keeps the segment longer than its ends.
    let first = unsafe { Loopback::new(memory.control().waiters()) };
    let (receivers, port) = ([first.receiver(), first.receiver()], first.connect(1).unwrap());
    // SAFETY: as above.
    let second = unsafe { Loopback::new(memory.control().waiters()) };
    let back = second.connect(1).unwrap();
    let [mine, its] = receivers.map(|receiver| Box::new(receiver) as Box<dyn Receiver>);
    let here = End { port, receiver: mine, transport: Arc::new(first) };
    let there = End { port: back, receiver: its, transport: Arc::new(second) };
    let world = World::create(1).unwrap();
    let fabrics = None;
    Pair { name: "loopback".into(), here, there, fabrics, memory, own: true, _world: world }
}

fn run(mut pair: Pair, check: &impl Fn(&mut Pair)) {
    eprintln!("over {}:", pair.name);
    check(&mut pair);
}

/// Over the transports that map the memory of peers.
fn over_mapped(check: impl Fn(&mut Pair)) {
    [loopback, shared].into_iter().for_each(|make| run(make(), &check));
}

fn over_all(check: impl Fn(&mut Pair)) {
    over_mapped(&check);
    #[cfg(feature = "simulated")]
    far::each(|pair| run(pair, &check));
}

fn message(number: u64) -> Message {
    let words = std::array::from_fn(|i| number << 8 | i as u64);
    Message { kind: 3, source: 0, tag: number << 32, words }
}

impl Pair {
    fn post(&self, number: u64) -> Posted {
        self.here.transport.post(&self.here.port, &message(number), &[])
    }

    /// Repeats a step until it succeeds, over a wire for at most so many milliseconds.
    fn until(&self, most: u64, mut step: impl FnMut() -> bool) -> bool {
        let limit = Instant::now() + Duration::from_millis(most);
        while !step() {
            if self.fabrics.is_none() || Instant::now() > limit {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// Posts a message for which there must be room.
    fn must_post(&self, number: u64) {
        assert!(self.until(10_000, || self.post(number) == Posted::Taken), "no room");
    }

    /// Tries to post a message until it is certain that there is no room.
    fn finds_room(&self, number: u64) -> bool {
        self.until(200, || self.post(number) == Posted::Taken)
    }

    /// Waits until a message has come to an end, which therefore refuses to sleep.
    fn cannot_arm(&mut self, end: impl Fn(&mut Pair) -> &mut End) {
        let limit = Instant::now() + Duration::from_secs(10);
        while end(self).receiver.arm() {
            end(self).receiver.disarm();
            assert!(self.fabrics.is_some() && Instant::now() < limit, "it sleeps");
        }
        end(self).receiver.disarm();
    }

    /// Sends an answer from the other rank to `here`; over loopback both are one transport.
    fn answer(&self, reply: Reply) {
        let end = if self.own { &self.here } else { &self.there };
        assert!(end.transport.reply(&end.port, reply, &[]));
    }

    /// Polls both ends until nothing arrives, and at least this many events have come, over a wire.
    /// Sorts the events by tag, since a wire may deliver them in any order.
    fn events(&mut self, count: usize) -> Events {
        let (mut events, limit) = (Events::default(), Instant::now() + Duration::from_secs(10));
        let all = |it: &Events| it.requests.len() + it.replies.len() + it.ends.len();
        while self.there.receiver.poll(&mut events) + self.here.receiver.poll(&mut events) > 0
            || self.fabrics.is_some() && all(&events) < count && Instant::now() < limit
        {
            std::thread::yield_now();
        }
        if self.fabrics.is_some() {
            events.requests.sort_by_key(|message| message.tag);
        }
        events
    }

    /// Makes and publishes a region of the other end; over loopback the port learns it, too.
    fn region(&self, index: usize, life: u32, size: usize) -> (Key, *mut u8, Kept) {
        let key = Key::new(index, 1, life);
        let (place, mapping) = self.memory.allocate(size, std::ptr::null_mut()).unwrap();
        self.memory.publish(index, key.0, place, size as u64);
        let (base, mut kept) = (mapping.base(), Some(mapping));
        if self.own {
            let live = self.memory.live(index);
            let make = || Ok((kept.take(), base, size as u64));
            // SAFETY: this end has the memory with `live`; the bytes are those of the mapping.
            unsafe { self.here.port.learn(key, live, make).unwrap() };
        }
        (key, base, kept)
    }

    fn locate(&self, key: u64, offset: u64, size: u64) -> Result<Access, Status> {
        let address = Address { offset, key };
        self.here.transport.locate(&self.here.port, address, size).map_err(|error| error.status)
    }

    fn find(&self, key: Key, offset: u64, size: u64) -> Option<*mut u8> {
        self.here.port.find(Address { offset, key: key.0 }, size)
    }
}

/// The owner's mapping of a region, unless a port keeps it.
type Kept = Option<crate::util::memory::Mapping>;

#[test]
fn messages_of_one_sender_come_whole_and_in_order() {
    over_all(|pair| {
        for round in 0..10 {
            let sent: Vec<Message> = (round * 5..round * 5 + 5).map(message).collect();
            (round * 5..round * 5 + 5).for_each(|number| pair.must_post(number));
            assert_eq!(pair.events(5).requests, sent);
        }
    });
}

#[test]
fn a_full_receiver_says_so_and_loses_nothing() {
    over_all(|pair| {
        let room = (0..1000).take_while(|number| pair.finds_room(*number)).count();
        assert!((8..1000).contains(&room), "{room} messages found room");
        // Over a wire a thread that was late may make room after all.
        assert!(pair.fabrics.is_some() || !pair.finds_room(5000));
        let sent: Vec<Message> = (0..room as u64).map(message).collect();
        assert_eq!(pair.events(room).requests, sent);
        pair.must_post(6000);
        assert_eq!(pair.events(1).requests, [message(6000)]);
    });
}

#[test]
fn answers_carry_their_tag_status_and_result() {
    over_all(|pair| {
        let status = |i: u64| if i == 63 { Status::ERR_KEY } else { Status::OK };
        let answers = [0, 63, 64, 200].map(|i| Reply {
            tag: 7 << 32 | i,
            status: status(i),
            result: u64::MAX - i,
        });
        answers.iter().rev().for_each(|reply| pair.answer(*reply));
        let mut seen = pair.events(4).replies;
        seen.sort_by_key(|reply| reply.tag);
        assert_eq!(seen, answers);
        // Over a wire a second one may come up to 1 ms later.
        for _ in 0..20 {
            assert!(pair.events(0).replies.is_empty(), "an answer came twice");
            std::thread::sleep(Duration::from_micros(100));
        }
    });
}

#[test]
fn arming_is_refused_while_something_has_come() {
    over_all(|pair| {
        assert!(pair.there.receiver.arm());
        pair.there.receiver.disarm();
        pair.must_post(1);
        pair.cannot_arm(|pair| &mut pair.there);
        assert_eq!(pair.events(1).requests.len(), 1);
        pair.answer(Reply { tag: 5, status: Status::OK, result: 0 });
        pair.cannot_arm(|pair| &mut pair.here);
        assert_eq!(pair.events(1).replies.len(), 1);
        assert!(pair.here.receiver.arm() && pair.there.receiver.arm());
    });
}

/// Only for shared memory: a thread that posts over loopback holds the role, so it wakes no thread.
#[test]
fn one_message_rings_for_an_armed_receiver_of_another_rank() {
    let mut pair = shared();
    let bell = pair.memory.clone();
    let ticket = || bell.control().bell().ticket();
    let before = ticket();
    assert_eq!(pair.post(1), Posted::Taken);
    assert_eq!(ticket(), before, "nobody sleeps");
    assert_eq!(pair.events(1).requests.len(), 1);
    assert!(pair.there.receiver.arm());
    assert_eq!(pair.post(2), Posted::Taken);
    let rung = ticket();
    assert_ne!(rung, before);
    assert_eq!(pair.post(3), Posted::Taken);
    assert_eq!(ticket(), rung, "one ring is enough");
}
