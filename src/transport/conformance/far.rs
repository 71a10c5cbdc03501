//! Pairs of ranks that a wire joins: simulated ones with each policy of credits, with and without
//! access to memory and atomics, and the module `tests/modules/trivial.c`. Tests of what differs
//! over a wire: a key is asked for at its first use, and memory is reached by posted operations.

use super::*;
use crate::transport::fabric::{MakeWire, use_wire};
use crate::transport::remote::{Posting, Stopped, What};
use crate::transport::wire::module::{Module, tests::built};
use crate::transport::wire::simulated::{Nature, Simulated};
use std::rc::Rc;

/// Ten seeds. Then: without access to memory; with it, and without inline writes; with atomics and
/// tickets; with a shared queue, with and without access to memory and atomics.
const NATURES: [&str; 16] = [
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
    "10",
    "1:remote=0:shared=0",
    "2:remote=1:atomics=0:notices=0:inline=0:shared=0",
    "1:remote=1:atomics=1:notices=1:message=0:shared=0",
    "4:remote=1:atomics=2:notices=1:message=0:shared=0",
    "5:remote=0:shared=1",
    "7:remote=1:atomics=2:notices=1:shared=1",
];

/// The receivers of one fabric.
struct Receivers(Vec<Box<dyn Receiver>>);

impl Receiver for Receivers {
    fn poll(&mut self, sink: &mut dyn Sink) -> usize {
        self.0.iter_mut().map(|receiver| receiver.poll(sink)).sum()
    }

    fn arm(&mut self) -> bool {
        // All of them, since disarm() comes after this.
        let armed: Vec<bool> = self.0.iter_mut().map(|receiver| receiver.arm()).collect();
        !armed.contains(&false)
    }

    fn disarm(&mut self) {
        self.0.iter_mut().for_each(|receiver| receiver.disarm());
    }
}

fn pair(name: String, make: MakeWire) -> Pair {
    let world = World::create(2).unwrap();
    let segments = [segment(), segment()];
    use_wire(Some(make));
    let ranks = [0, 1].map(|rank| {
        let bootstrap = Arc::new(Bootstrap::from_world(&world, rank).unwrap());
        let own = segments[rank as usize].clone();
        (Arc::new(Fabric::join(own, &bootstrap, false, || false).unwrap()), bootstrap)
    });
    use_wire(None);
    let fabrics = [&ranks[0].0, &ranks[1].0].map(Arc::clone);
    let mut peer = 2;
    let [here, there] = ranks.map(|(fabric, bootstrap)| {
        peer -= 1;
        let port = fabric.connect(peer, card_of(&bootstrap, peer)).unwrap();
        let receiver = Box::new(Receivers(fabric.receivers(Arc::default())));
        End { port, receiver, transport: fabric }
    });
    let [_, memory] = segments;
    Pair { name, here, there, fabrics: Some(fabrics), memory, own: false, _world: world }
}

/// Each wire of the suite, with its name.
pub fn wires() -> Vec<(String, MakeWire)> {
    let simulated = NATURES.iter().map(|name| {
        let nature = Nature::named(name).unwrap();
        let make: MakeWire = Rc::new(move |me, _| Ok(Box::new(Simulated::new(me, nature)?)));
        (format!("the simulated wire {name}"), make)
    });
    let modules = [&[][..], &["-DREMOTE"]].map(|options| {
        let module = Module::load(&built("trivial", options)).unwrap();
        let make: MakeWire = Rc::new(move |me, size| Ok(Box::new(module.open(me, size, 0)?)));
        (format!("the module trivial {options:?}"), make)
    });
    simulated.chain(modules).collect()
}

/// Makes each pair, and hands it over.
pub fn each(mut check: impl FnMut(Pair)) {
    wires().into_iter().for_each(|(name, make)| check(pair(name, make)));
}

impl Pair {
    /// Answers the questions of `here` for keys, as the engine does.
    fn answer_questions(&self) {
        let [here, there] = self.fabrics.as_ref().unwrap();
        for (peer, key) in here.take_questions() {
            match there.describe(key, 0) {
                Ok(bytes) => assert!(here.learn(peer, key, &bytes)),
                Err(error) => here.not_learned(peer, key, error.status),
            }
        }
    }

    /// The result of locate() when the owner has been asked.
    fn asked(&self, key: u64, offset: u64, size: u64) -> Result<Access, Status> {
        assert_eq!(self.locate(key, offset, size), Err(Status::RETRY_CONNECTING));
        self.answer_questions();
        self.locate(key, offset, size)
    }

    /// Executes an operation, and waits for its end.
    fn execute(&mut self, key: Key, what: What, local: &mut [u8]) -> Reply {
        let (remote, wire) = {
            let here = &self.fabrics.as_ref().unwrap()[0];
            here.resolver(1).resolve(Address { offset: 8, key: key.0 }).unwrap()
        };
        let (tag, size) = (77, local.len() as u64);
        let posting = Posting { tag, what, local: local.as_mut_ptr(), size, remote, key: wire };
        let here = self.fabrics.as_ref().unwrap()[0].clone();
        // SAFETY: the bytes live until the end, for which this function waits.
        let post = || unsafe { here.post_remote(1, &[posting]) } == (1, Stopped::No);
        assert!(self.until(10_000, post), "the wire takes nothing");
        let ends = self.events(1).ends;
        assert_eq!(ends.len(), 1);
        ends[0]
    }
}

#[test]
fn a_region_behind_a_wire_is_asked_for_once_and_located_within_its_bounds() {
    each(|pair| {
        eprintln!("over {}:", pair.name);
        let [here, there] = pair.fabrics.clone().unwrap();
        let (key, base, _kept) = pair.region(3, 9, 4096);
        there.register(key.0, base, 4096).unwrap();
        let posts = here.has_silent_writes();
        match pair.asked(key.0, 8, 100) {
            Ok(Access::Posted(place)) => assert!(posts && place == base as u64 + 8),
            access => assert!(!posts && matches!(access, Ok(Access::Message(_))), "{access:?}"),
        }
        for (offset, size) in [(0, 4096), (4095, 1), (4096, 0), (0, 0)] {
            assert!(pair.locate(key.0, offset, size).is_ok(), "offset {offset} size {size}");
            assert!(pair.find(key, offset, size).is_none(), "nothing is mapped");
        }
        for (offset, size) in [(0, 4097), (4096, 1), (4097, 0), (u64::MAX, 1), (8, u64::MAX)] {
            assert_eq!(pair.locate(key.0, offset, size), Err(Status::ERR_RANGE));
        }
        assert_eq!(pair.locate(Key::new(3, 0, 9).0, 0, 8), Err(Status::ERR_KEY), "of another rank");
        assert_eq!(pair.asked(Key::new(3, 1, 8).0, 0, 8), Err(Status::ERR_KEY), "an earlier life");
        assert!(pair.locate(key.0, 0, 8).is_ok(), "it is known still");
        // The owner ends the region, and has refused an operation.
        there.deregister(key.0, Duration::ZERO).unwrap();
        pair.memory.retract(3);
        here.forget(1, key.0);
        assert_eq!(pair.asked(key.0, 0, 8), Err(Status::ERR_KEY));
        here.mark_dead(1);
        assert_eq!(pair.locate(key.0, 0, 8), Err(Status::ERR_PEER_DEAD));
    });
}

#[test]
fn what_a_wire_writes_is_there_at_its_end_and_is_read_back() {
    let mut remote = 0;
    each(|mut pair| {
        let [here, there] = pair.fabrics.clone().unwrap();
        if !here.has_silent_writes() {
            return;
        }
        remote += 1;
        eprintln!("over {}:", pair.name);
        let (key, base, _kept) = pair.region(3, 9, 4096);
        there.register(key.0, base, 4096).unwrap();
        pair.asked(key.0, 8, 100).unwrap();
        let mut bytes: Vec<u8> = (0..100).collect();
        let ours = Key::new(0, 0, 1);
        here.register(ours.0, bytes.as_mut_ptr(), bytes.len()).unwrap();
        let ended = pair.execute(key, What::Write, &mut bytes);
        assert_eq!(ended, Reply { tag: 77, status: Status::OK, result: 0 });
        // SAFETY: the region has 4096 bytes; the write has ended.
        let there_now = unsafe { std::slice::from_raw_parts(base.add(8), 100) };
        assert!(there_now.iter().copied().eq(0..100));
        bytes.fill(0);
        assert_eq!(pair.execute(key, What::Read, &mut bytes).status, Status::OK);
        assert!(bytes.iter().copied().eq(0..100));
        there.deregister(key.0, Duration::ZERO).unwrap();
        let late = pair.execute(key, What::Write, &mut bytes);
        assert_eq!(late.status, Status::ERR_KEY, "the registration has ended");
        here.deregister(ours.0, Duration::ZERO).unwrap();
    });
    assert!(remote >= 11, "{remote} wires with access to memory");
}

/// Among the wires with access to memory, some have each further ability and some do not.
#[test]
fn wires_with_and_without_each_ability_are_tested() {
    let all: Vec<Nature> = NATURES.iter().map(|name| Nature::named(name).unwrap()).collect();
    type Has = fn(&Nature) -> bool;
    let abilities: [(&str, Has); 8] = [
        ("atomics", |it| it.caps.atomics != 0),
        ("inline writes", |it| it.caps.inline_most > 0),
        ("a descriptor", |it| it.has_fd),
        ("a fence", |it| it.can_fence),
        ("local keys", |it| it.caps.needs_local_key),
        ("notices", |it| it.caps.notice_bits > 0),
        ("signals", |it| it.caps.has_signals()),
        ("a shared queue", |it| it.caps.shared_queue),
    ];
    for (what, has) in abilities {
        let [with, without] = [true, false]
            .map(|wanted| all.iter().filter(|it| it.caps.remote && has(it) == wanted).count());
        assert!(with > 0 && without > 0, "{what}: {with} with, {without} without");
    }
    let plain = |fd: bool| all.iter().any(|it| !it.caps.remote && it.has_fd == fd);
    assert!(plain(true) && plain(false));
}
