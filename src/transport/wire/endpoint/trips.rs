//! How often a message and what it waits for cross the network, counted by the network itself.

use super::tests::{put, until};
use super::*;
use crate::transport::address::Address;
use crate::transport::remote::{ANSWERED, NO_ATOMIC, Posting, Signal, What};
use crate::transport::wire::simulated::{Nature, Simulated};
use std::cell::{Cell, RefCell};

/// What was counted, for one message of many.
#[derive(Debug)]
struct Trips {
    /// From the call to the slot, in round trips: the least, the mean, and the most.
    least: f64,
    mean: f64,
    most: f64,
    /// Frames, and reads, writes and atomics, of both ranks.
    frames: f64,
    accesses: f64,
}

/// Two ranks' networks and endpoints, which no thread polls.
fn connected(nature: Nature) -> ([Arc<Simulated>; 2], [Endpoint; 2]) {
    let wires = [0, 1].map(|me| Arc::new(Simulated::new(me, nature).unwrap()));
    let ends = [0, 1].map(|me: usize| {
        let rank = (me as u32, 2);
        Endpoint::without_thread(rank, wires[me].clone(), 4096, no_slot(), no_news()).unwrap()
    });
    ends[0].connect(1, ends[1].card()).unwrap();
    ends[1].connect(0, ends[0].card()).unwrap();
    (wires, ends)
}

/// A request to an owner and its answer, in turn: the answer also answers the knock. So are a
/// message and its response, of which the next message answers the knock, and so are two messages.
#[test]
fn a_request_and_its_answer_are_two_frames() {
    frames_in_turn(Class::Lib, Class::Answers);
    frames_in_turn(Class::Requests, Class::Responses);
    frames_in_turn(Class::Requests, Class::Requests);
}

/// A round that notes that its caller must make the engine's lane ready.
fn round(
    end: &Endpoint,
    is_ready: &Cell<bool>,
    deliver: &dyn Fn(u32, Class, &Frame) -> bool,
) -> Polled {
    end.shared.round_after(1, end.shared.lock(), &mut || is_ready.set(true), deliver)
}

/// A thread looks several times under one lock while there is no event, but not while another one
/// wants to post.
#[test]
fn a_thread_looks_several_times_unless_another_one_waits() {
    let kind = "fd=0:remote=1:atomics=0:notices=0:message=0:shared=0";
    let (_wires, ends) = connected(Nature::named(&format!("2:frame=8192:{kind}")).unwrap());
    let look = |most| {
        let lock = ends[1].shared.lock();
        ends[1].shared.round_after(most, lock, &mut || (), &|_, _, _| true)
    };
    let step = || ends[0].shared.round(ends[0].shared.lock(), &|_, _, _| true);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            put(&ends[0], 1, Class::Requests, 0, 8);
            while !is_over.load(Ordering::Relaxed) {
                step();
            }
        });
        assert!(look(u32::MAX).is_any());
        is_over.store(true, Ordering::Relaxed);
    });
    until("nothing comes any more", || look(1) == Polled::Nothing);
    ends[1].shared.wanted.store(1, Ordering::Relaxed);
    assert_eq!(look(u32::MAX), Polled::Nothing);
}

/// Counts the frames of both ranks for requests and answers of these classes, in turn.
fn frames_in_turn(requests: Class, answers: Class) {
    const COUNT: u64 = 50;
    for seed in [2, 3] {
        let kind = "fd=0:remote=1:atomics=0:notices=0:message=0:shared=0";
        let nature = Nature::named(&format!("{seed}:frame=1048576:{kind}")).unwrap();
        let (wires, ends) = connected(nature);
        ends.iter().for_each(|end| end.shared.lock().grants.never_answer_alone());
        let limit = Instant::now() + Duration::from_secs(60);
        let mut for_handlers = 0;
        for tag in 0..COUNT {
            let message = |header: &'static [u8]| Frame {
                id: 1,
                kind: 2,
                tag,
                header,
                payload: &[],
                label: 0,
                absent: true,
            };
            assert!(ends[0].put(1, requests, &message(&[0; 40]), 4096));
            let answered = RefCell::new(false);
            while !*answered.borrow() {
                assert!(Instant::now() < limit, "request {tag} has no answer");
                let (came, is_ready) = (RefCell::new(false), Cell::new(false));
                let request = |_: u32, _: Class, _: &Frame| {
                    assert!(requests != Class::Lib || is_ready.get(), "the lane's sources ring");
                    !came.replace(true)
                };
                let polled = round(&ends[1], &is_ready, &request);
                assert!(polled != Polled::Messages || !is_ready.get(), "for handlers alone");
                if *came.borrow() {
                    // A request to an owner is work for the lane of the engine.
                    assert!(requests != Class::Lib || polled == Polled::Others);
                    for_handlers += u64::from(polled == Polled::Messages);
                    ends[1].put(0, answers, &message(&[0; 8]), 4096);
                }
                is_ready.set(false);
                let answer = |_: u32, class: Class, frame: &Frame| {
                    assert_eq!((class, frame.tag), (answers, tag));
                    assert!(class != Class::Answers || is_ready.get(), "the lane's sources ring");
                    !answered.replace(true)
                };
                round(&ends[0], &is_ready, &answer);
            }
        }
        let frames = wires.iter().map(|wire| wire.counts()[0]).sum::<u64>();
        assert_eq!(frames, 2 * COUNT);
        assert!(requests == Class::Lib || for_handlers > COUNT / 2, "{for_handlers}");
        for end in &ends {
            let state = end.shared.lock();
            assert!(state.grants.most.iter().all(|most| *most == 0), "a message took a buffer");
            assert!(state.outgoing.alone > 0, "all messages went through the queue");
        }
    }
}

/// Messages that are too long for a knock go from the frames of the network into free slots, though
/// they need grants, and several share a frame. A long reply waits for nothing at its sender.
#[test]
fn long_messages_take_the_short_way() {
    const COUNT: u64 = 50;
    let kind = "fd=0:remote=1:atomics=0:notices=0:message=0:shared=0";
    let (wires, ends) = connected(Nature::named(&format!("2:frame=8192:{kind}")).unwrap());
    let (mut sent, came) = (0, RefCell::new(vec![0; COUNT as usize]));
    until("not all messages have come", || {
        while sent < COUNT && put(&ends[0], 1, Class::Requests, sent, 1000) {
            sent += 1;
        }
        ends[0].shared.round(ends[0].shared.lock(), &|_, _, _| true);
        let request = |_: u32, _: Class, frame: &Frame| {
            came.borrow_mut()[frame.tag as usize] += 1;
            true
        };
        ends[1].shared.round(ends[1].shared.lock(), &request);
        came.borrow().iter().all(|came| *came == 1)
    });
    let frames = wires[0].counts()[0];
    assert!(frames < COUNT / 2, "{frames} frames: messages do not share them");
    assert!(ends[1].shared.lock().grants.has_kept_none(), "a message was copied");
    let kept = ends[0].shared.lock().outgoing.buffers.memory(false);
    assert!(kept.capacity() > 1000, "messages that wait do not use the memory of frames");
    assert!((0..COUNT).all(|tag| put(&ends[1], 0, Class::Replies, tag, 1000)));
    assert!(ends[1].shared.lock().outgoing.alone > 0, "all replies went through the queue");
}

/// The late answer of a knock goes, too, where threads look several times in a row.
#[test]
fn a_late_answer_goes_over_a_silent_wire() {
    let name = "2:frame=1048576:fd=0:remote=1:atomics=0:notices=0:message=0:shared=0";
    let (wires, ends) = connected(Nature::named(name).unwrap());
    ends[1].shared.naps.store(true, Ordering::Relaxed);
    assert!(put(&ends[0], 1, Class::Requests, 0, 8));
    until("the knock has no answer", || {
        ends.iter().for_each(|end| {
            end.shared.round(end.shared.lock(), &|_, _, _| true);
        });
        wires[1].counts()[0] > 0
    });
}

/// Sends `count` messages of `size` bytes, each as early as it is accepted.
fn count(name: &str, count: u64, size: usize) -> Trips {
    let nature = Nature::named(name).unwrap();
    let (wires, ends) = connected(nature);
    let crossings = |rank: usize| wires[rank].counts()[2];
    let (mut sent, took, payload) = (Vec::new(), RefCell::new(Vec::new()), vec![1; size]);
    let limit = Instant::now() + Duration::from_secs(60);
    while (took.borrow().len() as u64) < count {
        assert!(Instant::now() < limit, "{:?} of {count} messages have come", took.borrow().len());
        while (sent.len() as u64) < count {
            let (header, tag) = (&[1; 3][..], sent.len() as u64);
            let frame =
                Frame { id: 1, kind: 2, tag, header, payload: &payload, label: 0, absent: false };
            let before = crossings(0);
            if !ends[0].put(1, Class::Requests, &frame, 4096) {
                break;
            }
            sent.push(before);
        }
        let deliver = |_: u32, _: Class, frame: &Frame| {
            let since = sent[frame.tag as usize];
            took.borrow_mut().push(crossings(1).saturating_sub(since) as f64 / 2.0);
            true
        };
        for end in &ends {
            end.shared.round(end.shared.lock(), &deliver);
        }
    }
    // Answers that are on their way are counted, too.
    while ends.iter().any(|end| end.shared.round(end.shared.lock(), &|_, _, _| true).is_any())
        || ends.iter().any(|end| end.shared.lock().outgoing.waiting() > 0)
        || ends.iter().any(|end| end.shared.lock().grants.is_stuck())
        || wires.iter().any(|wire| wire.has_frames())
    {}
    let [frames, accesses] =
        [0, 1].map(|at| wires.iter().map(|wire| wire.counts()[at]).sum::<u64>() as f64);
    let (took, count) = (took.into_inner(), count as f64);
    let trips = Trips {
        least: took.iter().copied().fold(f64::MAX, f64::min),
        mean: took.iter().sum::<f64>() / count,
        most: took.iter().copied().fold(0.0, f64::max),
        frames: frames / count,
        accesses: accesses / count,
    };
    let Trips { least, mean, most, frames, accesses } = &trips;
    println!(
        "{count:4} messages of {size:4} bytes: {mean:.2} trips, {least:.1} to {most:.1} (the paper: 2.5); \
         {frames:.2} frames and {accesses:.2} accesses for each; {name}"
    );
    trips
}

/// A message that fits into a knock takes half a round trip, a longer one a trip and a half; the
/// paper's takes two and a half. In a stream grants are for many, whose frames are joined, and so
/// are tickets. In a shared queue each short message takes half a trip and one frame.
#[test]
fn a_message_takes_so_many_trips() {
    for (seed, tickets) in [(2, 0), (3, 0), (2, 1), (4, 1)] {
        let kind = format!("remote=1:atomics={tickets}:notices={tickets}:message=0:shared=0");
        let name = format!("{seed}:frame=1048576:fd=0:{kind}");
        let small = count(&name, 1, 8);
        assert_eq!([small.mean, small.frames], [0.5, 3.0], "a knock, grants, thanks");
        let larger = count(&name, 1, 1000);
        // Beside these an offer of slots and its answer, each of which may go along.
        let most = if tickets == 1 { 5.0 } else { 3.0 };
        assert!(larger.mean == 1.5 && (3.0..=most).contains(&larger.frames), "{larger:?}");
        let stream = count(&name, 2000, 1000);
        assert!(stream.frames < 0.8 && stream.mean < 6.0, "{stream:?}");
        let stream = count(&name, 2000, 8);
        assert!(stream.frames < 0.8 && stream.mean < 6.0, "{stream:?}");
        assert!((stream.accesses > 0.5) == (tickets == 1), "{stream:?}");
        assert!(stream.frames + stream.accesses < 3.0, "{stream:?}");
    }
    for seed in [2, 5] {
        let name = format!("{seed}:frame=1048576:fd=0:shared=1");
        for (size, trips, frames) in [(8, 0.5, 1.0), (400, 0.5, 1.0), (1000, 1.5, 3.0)] {
            let one = count(&name, 1, size);
            assert_eq!([one.mean, one.frames, one.accesses], [trips, frames, 0.0], "{name}");
        }
        // The receiver's clock goes on with other frames while one is late.
        let stream = count(&name, 2000, 8);
        assert_eq!([stream.least, stream.frames], [0.5, 1.0], "{stream:?}");
    }
}

/// Registers memory at rank 1, and writes it with a signal of this kind from rank 0. Returns the
/// crossings until the signal, those until the end, the frames and the accesses of both ranks.
fn write_with_signal(name: &str, size: usize, kind: u8) -> [u64; 4] {
    /// The old value of the word.
    const OLD: u64 = 1 << 40;
    let nature = Nature::named(name).unwrap();
    let (wires, ends) = connected(nature);
    let (local, theirs) = (vec![7_u8; size], vec![0_u8; size]);
    ends[1].memory().register(5, theirs.as_ptr().cast_mut(), size).unwrap();
    let (remote, key) = ends[1].memory().wire_key(5).unwrap();
    let word = Address { key: 5, offset: 8 };
    let signal = Signal { op: 5, kind, word, value: 3, compare: u64::from(kind) << 40 };
    let (came, wire) = (Arc::new(Mutex::new(Vec::new())), wires[1].clone());
    let (noted, from) = (came.clone(), theirs.as_ptr() as usize);
    ends[1].on_signal(Box::new(move |_, signal| {
        // SAFETY: `theirs` lives until the endpoint is dropped.
        let bytes = unsafe { std::slice::from_raw_parts(from as *const u8, size) };
        assert!(bytes.iter().all(|byte| *byte == 7), "the signal came before its bytes");
        noted.lock().unwrap().push((*signal, wire.counts()[2]));
        (Status::OK, OLD)
    }));
    let what = What::WriteSignal(signal);
    let local = local.as_ptr().cast_mut();
    let posting = Posting { tag: 77, what, local, size: size as u64, remote, key };
    let (limit, mut ended, answered) =
        (Instant::now() + Duration::from_secs(10), Vec::new(), RefCell::new(Vec::new()));
    // SAFETY: the bytes live until the end of this function.
    while unsafe { ends[0].post(1, &[posting]) }.0 == 0 {
        for end in &ends {
            end.shared.round(end.shared.lock(), &|_, _, _| true);
        }
    }
    while ended.is_empty() || !nature.caps.answers && answered.borrow().is_empty() {
        assert!(Instant::now() < limit, "the write has not ended");
        for end in &ends {
            let deliver = |_: u32, class: Class, frame: &Frame| {
                answered.borrow_mut().push((class, frame.tag, frame.id));
                true
            };
            end.shared.round(end.shared.lock(), &deliver);
        }
        ends[0].shared.ended.take(&mut ended);
    }
    let answer = if signal.is_atomic() { OLD } else { ANSWERED };
    let fetched = u64::from(nature.caps.answers) * answer;
    assert_eq!(ended, [End { tag: 77, status: Status::OK, fetched }]);
    let expected = if nature.caps.answers { &[][..] } else { &[(Class::Answers, 77, 0)] };
    assert_eq!(answered.into_inner(), expected);
    let came = came.lock().unwrap();
    assert_eq!((came.len(), came[0].0), (1, signal));
    let sum = |at: usize| wires.iter().map(|wire| wire.counts()[at]).sum::<u64>();
    [came[0].1, wires[0].counts()[2], sum(0), sum(1)]
}

/// A write with signal of any size is one command and one answer, which is a frame where the wire
/// does not bring it with the completion. Its signal has crossed the network once, and its end
/// twice.
#[test]
fn a_write_with_signal_is_one_command() {
    for (seed, answers) in [2, 3, 6, 7].into_iter().flat_map(|seed| [(seed, 0), (seed, 1)]) {
        for size in [0, 16, 1000, 64 << 10] {
            let name = format!("{seed}:remote=1:notices=2:answers={answers}:keys=0:message=0:fd=0");
            let expected = [1, 2, 1 - answers, 1];
            assert_eq!(write_with_signal(&name, size, NO_ATOMIC), expected, "{name}, {size} bytes");
        }
    }
}

/// An atomic is one command and one answer, which brings the value that the word had.
#[test]
fn an_atomic_is_one_command() {
    for seed in [2, 3, 6, 7] {
        let name = format!("{seed}:remote=1:notices=3:answers=1:keys=0:message=0:fd=0");
        assert!(Nature::named(&name).unwrap().caps.has_atomics());
        for kind in [1, 4, 10] {
            assert_eq!(write_with_signal(&name, 0, kind), [1, 2, 0, 1], "{name}, type {kind}");
        }
    }
}
