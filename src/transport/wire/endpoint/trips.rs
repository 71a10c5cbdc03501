//! How often a message and what it waits for cross the network, counted by the network itself.

use super::*;
use crate::transport::wire::simulated::{Nature, Simulated};
use std::cell::RefCell;

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

/// Sends `count` messages of `size` bytes, each as early as it is accepted.
fn count(name: &str, count: u64, size: usize) -> Trips {
    let nature = Nature::named(name).unwrap();
    let wires = [0, 1].map(|me| Arc::new(Simulated::new(me, nature).unwrap()));
    let ends = [0, 1].map(|me: usize| {
        let rank = (me as u32, 2);
        Endpoint::without_thread(rank, wires[me].clone(), 4096, no_slot(), no_news()).unwrap()
    });
    ends[0].connect(1, ends[1].card()).unwrap();
    ends[1].connect(0, ends[0].card()).unwrap();
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
    while ends.iter().any(|end| end.shared.round(end.shared.lock(), &|_, _, _| true))
        || ends.iter().any(|end| end.shared.lock().outgoing.waiting() > 0)
        || wires.iter().any(|wire| wire.coming().0 > 0)
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
/// paper's takes two and a half. In a stream grants are for many, and so are tickets. In a shared
/// queue each short message takes half a trip and one frame.
#[test]
fn a_message_takes_so_many_trips() {
    for (seed, tickets) in [(2, 0), (3, 0), (2, 1), (4, 1)] {
        let kind = format!("remote=1:atomics={tickets}:notices={tickets}:message=0:shared=0");
        let name = format!("{seed}:frame=1048576:fd=0:{kind}");
        let small = count(&name, 1, 8);
        assert_eq!([small.mean, small.frames], [0.5, 3.0], "a knock, grants, thanks");
        let larger = count(&name, 1, 1000);
        assert_eq!([larger.mean, larger.frames - 2.0 * f64::from(tickets)], [1.5, 4.0], "{name}");
        let stream = count(&name, 2000, 1000);
        assert!(stream.frames < 2.0 && stream.mean < 6.0, "{stream:?}");
        let stream = count(&name, 2000, 8);
        assert!(stream.frames < 2.0 && stream.mean < 6.0, "{stream:?}");
        assert!((stream.accesses > 0.5) == (tickets == 1), "{stream:?}");
        assert!(stream.frames + stream.accesses < 3.0, "{stream:?}");
    }
    for seed in [2, 5] {
        let name = format!("{seed}:frame=1048576:fd=0:shared=1");
        for (size, trips, frames) in [(8, 0.5, 1.0), (400, 0.5, 1.0), (1000, 1.5, 4.0)] {
            let one = count(&name, 1, size);
            assert_eq!([one.mean, one.frames, one.accesses], [trips, frames, 0.0], "{name}");
        }
        // The receiver's clock goes on with other frames while one is late.
        let stream = count(&name, 2000, 8);
        assert_eq!([stream.least, stream.frames], [0.5, 1.0], "{stream:?}");
    }
}
