use super::super::area::SHARED;
use super::*;
use crate::transport::frame::{Class, Frame};
use crate::transport::wire::Armed;
use crate::transport::wire::simulated::{Nature, Simulated};
use crate::util::status::{Result, Status};
use std::sync::Arc;

/// A lane that takes everything and ends nothing; the number of reads.
struct Takes(usize);

impl WireLane for Takes {
    fn connect(&mut self, _: u32, _: &[u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn post(&mut self, _: u32, _: u32, commands: &[Command]) -> (usize, Status) {
        self.0 += commands.iter().filter(|command| command.op == Command::READ).count();
        (commands.len(), Status::OK)
    }

    fn poll(&mut self, _: &mut [Event]) -> usize {
        0
    }

    fn give_back(&mut self, _: u64) {}

    fn answer(&mut self, _: u64, _: Status, _: u64) {}

    fn arm(&mut self) -> Armed {
        Armed::PollNow
    }

    fn disarm(&mut self) {}

    fn fence(&mut self, _: u32) {}

    fn close(&mut self, _: Duration) -> Result<()> {
        Ok(())
    }
}

/// However many commands to other peers do not end, each peer has a place for one of its own.
#[test]
fn each_peer_has_a_place_of_its_own() {
    let wire = Arc::new(Simulated::new(0, Nature::of(1)).unwrap());
    let (mut area, mut taker) = (Area::new(wire).unwrap(), Taker::default());
    let mut lane = Takes(0);
    for peer in 0..PEERS as u32 {
        assert!(taker.accept(peer, 1, area.place()));
        for line in 0..SMALL {
            taker.send(peer, line, frame());
        }
        assert!(taker.pump(&mut area, &mut lane).is_empty());
    }
    assert_eq!(lane.0, PEERS + SHARED, "a read for each peer, and one for each other place");
    taker.discard(&mut area, 0);
    assert!(!taker.accept(1, 1, area.place()), "its offer was not closed");
}

fn frame() -> OwnedFrame {
    let (header, payload) = (&[][..], &[][..]);
    let frame = Frame { id: 1, kind: 0, tag: 0, header, payload, label: 0, absent: false };
    OwnedFrame::of(Class::Requests, &frame)
}

#[test]
fn a_peer_that_is_given_up_keeps_no_thread_awake() {
    let wire = Arc::new(Simulated::new(0, Nature::of(1)).unwrap());
    let (mut area, mut taker) = (Area::new(wire).unwrap(), Taker::default());
    assert!(taker.accept(5, 1, area.place()));
    taker.send(5, 0, frame());
    assert!(taker.is_stuck());
    taker.discard(&mut area, 5);
    assert!(!taker.is_stuck());
}

/// Where places are scarce, since the lane ends few commands at a time, each line gets its part.
#[test]
fn lines_take_turns_at_places() {
    let wire = Arc::new(Simulated::new(0, Nature::of(1)).unwrap());
    let (mut area, mut taker) = (Area::new(wire).unwrap(), Taker::default());
    let (mut lane, mut out) = (Takes(0), Out::new());
    assert!(taker.accept(5, 1, area.place()));
    let (mut taken, mut written) = ([0; SMALL], [0; SMALL]);
    while written.iter().sum::<u64>() < 3000 {
        for line in 0..SMALL {
            while taker.has_room(5, line) {
                taker.send(5, line, frame());
            }
        }
        assert!(taker.pump(&mut area, &mut lane).is_empty());
        let oldest: Vec<u64> = taker.begun.keys().copied().take(2).collect();
        for tag in oldest {
            let Begun { line, what, place, .. } = taker.begun[&tag];
            let mut event = Event { tag, ..Event::about(Event::DONE, 5) };
            match what {
                What::Take(count) => {
                    event.fetched = taken[line];
                    taken[line] += count;
                }
                // The receiver has taken all that was written.
                What::Look => drop(area.fill(place.unwrap().at, written[line], &[])),
                What::Write(_) => written[line] += 1,
            }
            assert!(taker.done(&mut area, &event, &mut out).is_empty());
        }
    }
    assert!(written.iter().all(|count| *count >= 700), "{written:?} of 3,000");
}
