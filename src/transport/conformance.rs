//! Tests of the contract that every transport keeps, run over each: loopback with both ends in one
//! rank, and shared memory between two ranks of this process. To test a new transport, add a
//! function that makes a pair of ends to [`over_all`].

use crate::bootstrap::{Bootstrap, World};
use crate::transport::address::{Address, Key};
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
use std::time::Duration;

mod requests;

/// One end; its port leads to the other. The fields are in the order in which they are dropped.
struct End {
    port: Port,
    receiver: Box<dyn Receiver>,
    transport: Box<dyn Transport>,
}

/// Two ends; `here` accesses the memory of `there`.
struct Pair {
    name: &'static str,
    here: End,
    there: End,
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
    config.inbox_entries(8).unwrap();
    Arc::new(Segment::create(&config, 2).unwrap())
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
        let (sender, cards) = mpsc::channel();
        bootstrap.on_cards(Arc::new(move |cards| {
            cards.into_iter().for_each(|(_, card)| sender.send(card).unwrap());
        }));
        bootstrap.ask_card(peer);
        let port = node.connect(peer, cards.recv().unwrap().unwrap()).unwrap();
        let receiver = Box::new(node.receiver(Arc::default()));
        End { port, receiver, transport: Box::new(node) }
    });
    let [_, memory] = segments;
    Pair { name: "node", here, there, memory, own: false, _world: world }
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
    let here = End { port, receiver: mine, transport: Box::new(first) };
    let there = End { port: back, receiver: its, transport: Box::new(second) };
    let world = World::create(1).unwrap();
    Pair { name: "loopback", here, there, memory, own: true, _world: world }
}

fn over_all(check: impl Fn(&mut Pair)) {
    for make in [loopback, shared] {
        let mut pair = make();
        eprintln!("over {}:", pair.name);
        check(&mut pair);
    }
}

fn message(number: u64) -> Message {
    let words = std::array::from_fn(|i| number << 8 | i as u64);
    Message { kind: 3, source: 0, tag: number << 32, words }
}

impl Pair {
    fn post(&self, number: u64) -> Posted {
        self.here.transport.post(&self.here.port, &message(number), &[])
    }

    /// Sends an answer from the other rank to `here`; over loopback both are one transport.
    fn answer(&self, reply: Reply) {
        let end = if self.own { &self.here } else { &self.there };
        end.transport.reply(&end.port, reply, &[]);
    }

    /// Polls both ends until nothing arrives.
    fn events(&mut self) -> Events {
        let mut events = Events::default();
        while self.there.receiver.poll(&mut events) + self.here.receiver.poll(&mut events) > 0 {}
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
            self.here.port.learn(key, live, make).unwrap();
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
            for number in round * 5..round * 5 + 5 {
                assert_eq!(pair.post(number), Posted::Taken);
            }
            assert_eq!(pair.events().requests, sent);
        }
    });
}

#[test]
fn a_full_receiver_says_so_and_loses_nothing() {
    over_all(|pair| {
        let room = (0..1000).take_while(|number| pair.post(*number) == Posted::Taken).count();
        assert!((8..1000).contains(&room), "{room} messages found room");
        assert_eq!(pair.post(5000), Posted::Full);
        let sent: Vec<Message> = (0..room as u64).map(message).collect();
        assert_eq!(pair.events().requests, sent);
        assert_eq!(pair.post(6000), Posted::Taken);
        assert_eq!(pair.events().requests, [message(6000)]);
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
        let mut seen = pair.events().replies;
        seen.sort_by_key(|reply| reply.tag);
        assert_eq!(seen, answers);
        assert!(pair.events().replies.is_empty(), "an answer came twice");
    });
}

#[test]
fn arming_is_refused_while_something_has_come() {
    over_all(|pair| {
        assert!(pair.there.receiver.arm());
        pair.there.receiver.disarm();
        assert_eq!(pair.post(1), Posted::Taken);
        assert!(!pair.there.receiver.arm());
        pair.there.receiver.disarm();
        assert_eq!(pair.events().requests.len(), 1);
        pair.answer(Reply { tag: 5, status: Status::OK, result: 0 });
        assert!(!pair.here.receiver.arm());
        pair.here.receiver.disarm();
        assert_eq!(pair.events().replies.len(), 1);
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
    assert_eq!(pair.events().requests.len(), 1);
    assert!(pair.there.receiver.arm());
    assert_eq!(pair.post(2), Posted::Taken);
    let rung = ticket();
    assert_ne!(rung, before);
    assert_eq!(pair.post(3), Posted::Taken);
    assert_eq!(ticket(), rung, "one ring is enough");
}

#[test]
fn a_region_is_found_within_its_bounds_and_written_in_place() {
    over_all(|pair| {
        let (key, base, _kept) = pair.region(3, 9, 4096);
        assert_eq!(pair.locate(key.0, 8, 100), Ok(Access::Mapped));
        let place = pair.find(key, 8, 100).unwrap();
        // SAFETY: found for 100 bytes; base is the owner's mapping of the same region.
        unsafe {
            place.write(77);
            assert_eq!(base.add(8).read(), 77);
        }
        for (offset, size) in [(0, 4096), (4095, 1), (4096, 0), (0, 0)] {
            assert_eq!(pair.locate(key.0, offset, size), Ok(Access::Mapped));
            assert!(pair.find(key, offset, size).is_some(), "offset {offset} size {size}");
        }
        for (offset, size) in [(0, 4097), (4096, 1), (4097, 0), (u64::MAX, 1), (8, u64::MAX)] {
            assert_eq!(pair.locate(key.0, offset, size), Err(Status::ERR_RANGE));
            assert!(pair.find(key, offset, size).is_none(), "offset {offset} size {size}");
        }
        for (offset, found) in [(0, true), (4088, true), (4089, false), (u64::MAX, false)] {
            let word = Address { offset, key: key.0 };
            assert_eq!(pair.here.port.find_word(word).is_some(), found, "word at {offset}");
        }
    });
}

#[test]
fn a_key_fits_one_life_of_one_region_of_one_rank() {
    over_all(|pair| {
        let (key, _, _kept) = pair.region(0, 9, 64);
        let strange =
            [0, 1, Key::new(0, 1, 8).0, Key::new(0, 0, 9).0, Key::new(5, 1, 9).0, u64::MAX];
        for key in strange {
            assert_eq!(pair.locate(key, 0, 8), Err(Status::ERR_KEY), "{key:#x}");
            assert!(pair.find(Key(key), 0, 8).is_none(), "{key:#x}");
        }
        assert_eq!(pair.locate(key.0, 0, 8), Ok(Access::Mapped));
        pair.memory.retract(0);
        assert!(pair.find(key, 0, 8).is_none(), "found without asking, after its end");
        assert_eq!(pair.locate(key.0, 0, 8), Err(Status::ERR_KEY));
        let (again, _, _kept) = pair.region(0, 10, 128);
        assert_eq!(pair.locate(again.0, 100, 8), Ok(Access::Mapped));
        assert!(pair.find(again, 100, 8).is_some() && pair.find(key, 0, 8).is_none());
        assert_eq!(pair.locate(key.0, 0, 8), Err(Status::ERR_KEY));
    });
}

#[test]
fn what_a_living_peer_has_looked_up_is_not_used_again() {
    let pair = shared();
    let free = |place: Place, living: bool| {
        pair.memory.retract(3);
        pair.memory.empty(place, 8192);
        let held = Holders { users: pair.memory.users(3), since: 1 };
        let is_held = held.users.bits().any(|bit| bit == 0 && living);
        pair.memory.give_back(place, 8192, held, is_held);
    };
    let make = |life: u32| {
        let (place, mapping) = pair.memory.allocate(8192, std::ptr::null_mut()).unwrap();
        let (key, Place::File(offset)) = (Key::new(3, 1, life), place) else { unreachable!() };
        pair.memory.publish(3, key.0, place, 8192);
        (key, place, offset, mapping)
    };
    let (_, place, unused, _first) = make(1);
    free(place, true);
    let (key, place, used, mapping) = make(2);
    assert_eq!(used, unused, "nobody had looked it up");
    pair.locate(key.0, 0, 8).unwrap();
    let late = pair.find(key, 0, 8).unwrap();
    free(place, true);
    let (_, place, next, other) = make(3);
    assert_ne!(next, used, "rank 0 lives and may still store");
    // SAFETY: the port keeps `late` mapped; the others are mappings of the owner.
    unsafe {
        late.cast::<u64>().write_volatile(7);
        assert_eq!(mapping.base().cast::<u64>().read_volatile(), 7);
        assert_eq!(other.base().cast::<u64>().read_volatile(), 0);
    }
    free(place, true);
    assert_eq!(make(4).2, next, "rank 0 has its range still");
    pair.memory.reclaim(|held| held.users.bits().any(|bit| bit == 0));
    assert_ne!(make(5).2, used, "another rank has died");
    pair.here.port.let_go().unwrap();
    pair.memory.reclaim(|_| false);
    let (key, place, again, fresh) = make(6);
    assert_eq!(again, used, "its user has let go of it");
    // SAFETY: the port keeps `late` mapped; the other is a mapping of the owner.
    unsafe {
        late.cast::<u64>().write_volatile(8);
        assert_eq!(fresh.base().cast::<u64>().read_volatile(), 0);
    }
    pair.locate(key.0, 0, 8).unwrap();
    free(place, false);
    assert_eq!(make(7).2, used, "its user was dead when it ended");
}

#[test]
fn a_port_learns_once_forgets_and_closes() {
    over_all(|pair| {
        let (key, _, _kept) = pair.region(2, 4, 64);
        pair.locate(key.0, 0, 8).unwrap();
        let port = &pair.here.port;
        let live = pair.memory.live(2);
        port.learn(key, live, || panic!("it knows the region")).unwrap();
        assert_eq!(port.length(key), Some(64));
        assert!(port.forget(2).is_some(), "the mapping comes back");
        assert!(pair.find(key, 0, 8).is_none() && port.length(key).is_none());
        assert!(port.forget(2).is_none());

        let (key, _, _kept) = pair.region(6, 4, 64);
        pair.locate(key.0, 0, 8).unwrap();
        assert!(pair.find(key, 0, 8).is_some());
        port.close();
        assert!(pair.find(key, 0, 8).is_none());
        port.learn(key, pair.memory.live(6), || panic!("a closed port learns nothing")).unwrap();
    });
}

#[test]
fn who_stores_sees_the_threads_that_sleep_at_the_owner() {
    over_all(|pair| {
        let (waiters, seen) = (pair.memory.control().waiters(), Cell::new(false));
        let word = Address { offset: 8, key: 99 };
        assert!(!pair.here.port.waiters().any_at(word));
        let awaited = Awaited { name: Some(word), local: None };
        Sleepers::default().sleep(waiters, &[awaited], Some(Duration::ZERO), || {
            seen.set(pair.here.port.waiters().any_at(word));
            true
        });
        assert!(seen.get() && !pair.here.port.waiters().any_at(word));
    });
}

#[test]
fn the_kernel_copies_both_ways() {
    over_all(|pair| {
        let mut theirs: Vec<u8> = (0..100_000).map(|i| i as u8 ^ 0x5a).collect();
        let mut ours = vec![0u8; theirs.len()];
        let (there, size) = (theirs.as_mut_ptr() as u64, ours.len());
        let End { transport, port, .. } = &pair.here;
        // Many pairs, in descending order, and more than one system call can copy.
        let pairs = |ours: *mut u8| {
            let pair = |at: usize| transport::Pair {
                ours: ours.wrapping_add(50 * at),
                theirs: there + 50 * at as u64,
                size: 50,
            };
            (0..size / 50).rev().map(pair).collect::<Vec<_>>()
        };
        // SAFETY: both vectors have `size` bytes, and nobody else uses them.
        unsafe { transport.kernel_read(port, &pairs(ours.as_mut_ptr())) }.unwrap();
        assert_eq!(ours, theirs);
        ours.reverse();
        // SAFETY: as above.
        unsafe { transport.kernel_write(port, &pairs(ours.as_mut_ptr())) }.unwrap();
        assert_eq!(ours, theirs);
    });
}

#[test]
fn registered_memory_is_not_mapped_by_another_rank() {
    let pair = shared();
    let key = Key::new(4, 1, 2);
    pair.memory.publish(4, key.0, Place::Own(0x1000), 64);
    let expected = match pair.here.transport.registered_access(&pair.here.port) {
        Access::Kernel(_) => Access::Kernel(0x1010),
        _ => Access::Message(0x1010),
    };
    assert_eq!(pair.locate(key.0, 16, 48), Ok(expected));
    assert_eq!(pair.locate(key.0, 16, 49), Err(Status::ERR_RANGE));
    assert!(pair.find(key, 16, 8).is_none());
}

/// Only for shared memory: a rank does not survive its own death.
#[test]
fn nothing_of_a_dead_rank_is_located() {
    let pair = shared();
    let (key, _, _kept) = pair.region(1, 1, 64);
    assert_eq!(pair.locate(key.0, 0, 8), Ok(Access::Mapped));
    pair.here.transport.mark_dead(1);
    assert_eq!(pair.locate(key.0, 0, 8), Err(Status::ERR_PEER_DEAD));
}
