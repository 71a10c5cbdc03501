//! The tests let a lane fail frames, or say less than it must.

use super::tests::{Around, BoxedLane, until};
use super::uses::{self, MANY, Ranks};
use super::*;
use crate::transport::wire::grants::{Knock, LINES};
use crate::transport::wire::simulated::{Nature, Simulated};
use crate::transport::wire::{CLASS_ANSWER, CLASS_KNOCKS, Command, Piece};

fn natures() -> impl Iterator<Item = String> {
    [1, 2, 4, 7].into_iter().map(|seed| format!("{seed}:fd=0:fence=1"))
}

/// A frame whose command has ended with an error is lost, so its peer is lost; others go on.
#[test]
fn a_frame_that_fails_has_lost_the_peer() {
    for name in natures() {
        let mut ranks = Ranks::new(3, &name);
        ranks.stream(1, MANY, &[0, 1, 2]);
        ranks.faults[1].fails_frames.store(true, Ordering::Relaxed);
        ranks.until("the peer is not lost", |it| {
            it.put(1, it.sent[1] + 1);
            it.round(&[0, 1, 2]);
            it.ends[1].as_ref().unwrap().shared.lock().is_lost(0)
        });
        assert!(!ranks.ends[0].as_ref().unwrap().shared.lock().is_lost(1), "{name}");
        ranks.stream(2, MANY, &[0, 1, 2]);
    }
}

/// A lane may read the bytes of a frame until it has reported the frame's end, also behind a
/// fence. The endpoint reports one that reports a fence earlier.
#[test]
fn the_bytes_of_a_frame_stay_until_its_end() {
    for (name, hides) in natures().flat_map(|name| [(name.clone(), true), (name, false)]) {
        let mut ranks = Ranks::new(2, &name);
        ranks.faults[1].hides_frames.store(hides, Ordering::Relaxed);
        ranks.put(1, 20);
        (0..10).for_each(|_| ranks.round(&[0, 1]));
        ranks.ends[0] = None;
        let end = ranks.ends[1].take().unwrap();
        let taken = || end.shared.lock().outgoing.taken(0);
        assert!(!hides || taken() > 0, "{name}: the lane has taken no frame");
        end.mark_dead(0);
        let limit = Instant::now() + Duration::from_secs(20);
        let reported = || end.shared.lock().reported > 0;
        while !reported() && (hides || taken() > 0) {
            assert!(Instant::now() < limit, "{name}: {} frames are taken", taken());
            end.shared.round(end.shared.lock(), &|_, _, _| false);
        }
        assert_eq!((reported(), taken() > 0), (hides, hides), "{name}");
    }
}

/// A lane that has reported a fence has ended all operations before. The endpoint ends those that
/// the lane has forgotten, whether or not the lane can fence.
#[test]
fn an_operation_that_the_lane_forgets_ends_with_the_fence() {
    for name in [0, 1].into_iter().flat_map(uses::natures) {
        let mut ranks = Ranks::new(2, &name);
        ranks.ends[0] = None;
        let end = ranks.ends[1].take().unwrap();
        // The lane has no such operation, as if it had forgotten it.
        end.shared.lock().posted.insert(70, 0);
        end.mark_dead(0);
        let (limit, mut ended) = (Instant::now() + Duration::from_secs(20), Vec::new());
        while ended.is_empty() {
            assert!(Instant::now() < limit, "{name}: the operation has not ended");
            end.shared.round(end.shared.lock(), &|_, _, _| false);
            end.shared.ended.take(&mut ended);
        }
        let expected = End { tag: 70, status: Status::ERR_PEER_DEAD, fetched: 0 };
        assert_eq!(ended, [expected], "{name}");
    }
}

/// A knock keeps its frame until it is answered, so nothing may stand behind it. A frame of another
/// class brings several packets.
#[test]
fn a_frame_in_a_class_of_knocks_brings_one_packet() {
    let ranks = Ranks::new(2, "1:fd=0");
    let mut state = ranks.ends[0].as_ref().unwrap().shared.lock();
    let packets = [packet::bytes_of(&Packet::Asked), packet::bytes_of(&Packet::Asked)];
    let frame =
        packets.iter().zip(0..).flat_map(|(packet, number)| pieces::frames_of(packet, number, 512));
    let frame = frame.collect::<Vec<_>>().concat();
    let mut take = |class| {
        let event = Event { class, ..Event::about(Event::FRAME, 1) };
        state.take_frame(&event, &frame, 4096, &|_, _, _| true, &mut Results::default()).map(|_| ())
    };
    assert_eq!(take(CLASS_ANSWER), Ok(()));
    for class in CLASS_KNOCKS {
        assert_eq!(take(class), Err(format!("several packets in a frame of class {class}")));
    }
}

/// A lane that does not end may still use the frames that it has taken, so neither is dropped.
#[test]
fn a_lane_that_does_not_end_stays() {
    for fails in [false, true] {
        let mut ranks = Ranks::new(1, "1:fd=0");
        ranks.faults[0].fails_close.store(fails, Ordering::Relaxed);
        let users = || Arc::strong_count(&ranks.faults[0]);
        let before = users();
        drop(ranks.ends[0].take());
        assert_eq!(users() == before, fails, "the lane uses its faults");
    }
}

/// The other pieces of a packet never come, since the sender has died.
#[test]
fn pieces_of_the_dead_are_dropped_also_if_the_lane_cannot_fence() {
    for fence in 0..2 {
        let nature = Nature::named(&format!("1:fence={fence}")).unwrap();
        let [gone, wire] = [0, 1].map(|me| Simulated::new(me, nature).unwrap());
        let end = Endpoint::without_thread((1, 2), Arc::new(wire), 4096, no_slot(), no_news());
        let (end, mut lane) = (end.unwrap(), gone.lane().unwrap());
        lane.connect(1, end.card()).unwrap();
        let frame = &pieces::frames_of(&[1; 100], 1, 64)[0];
        let piece = Piece { address: frame.as_ptr(), size: frame.len() as u64, local: 0 };
        // SAFETY: the frame lives until the lane is gone.
        assert_eq!(unsafe { lane.post(1, 0, &[Command::frame(1, &piece)]) }.0, 1);
        let mut incomplete = || {
            lane.poll(&mut [Event::NONE; 4]);
            end.shared.round(end.shared.lock(), &|_, _, _| false);
            end.shared.lock().joins.incomplete()
        };
        until("the piece has not come", || incomplete() == 1);
        end.mark_dead(0);
        until("the piece is kept", || incomplete() == 0);
    }
}

/// A peer that was lost, and reported, does not slow the messages between others.
#[test]
fn messages_take_the_short_way_when_another_peer_was_lost() {
    let nature = Nature::named("1:atomics=0").unwrap();
    let [wire, other] = [0, 1].map(|me| Simulated::new(me, nature).unwrap());
    let end = Endpoint::without_thread((0, 4), Arc::new(wire), 4096, no_slot(), no_news());
    let end = end.unwrap();
    end.connect(1, &other.card().unwrap()).unwrap();
    let frame =
        Frame { id: 1, kind: 2, tag: 3, header: &[1; 8], payload: &[], label: 0, absent: false };
    let posts = |to| end.shared.lock().post_single(0, (to, None), Class::Answers, &frame);
    for (peer, reported) in [(2, true), (3, false)] {
        end.shared.lock().mark_lost(0, peer, "gone", &mut Out::new());
        assert!(!end.shared.lock().is_settled(), "its report is due");
        if reported {
            let past = Instant::now();
            end.shared.lock().reports.iter_mut().for_each(|(_, until)| *until = past);
        } else {
            end.mark_dead(peer);
        }
        end.shared.round(end.shared.lock(), &|_, _, _| false);
        assert!(end.shared.lock().is_settled(), "each poll serves all");
        assert!(!posts(peer) && posts(1), "rank {peer} is lost");
        until("the frame has not ended", || {
            end.shared.round(end.shared.lock(), &|_, _, _| false);
            end.shared.lock().outgoing.taken(1) == 0
        });
    }
}

/// Counts the commands that the first rank posts.
struct Posts(BoxedLane, Option<Arc<AtomicU32>>);

impl Around for Posts {
    fn inner(&mut self) -> &mut dyn WireLane {
        &mut *self.0
    }

    unsafe fn post(&mut self, peer: u32, class: u32, commands: &[Command]) -> (usize, Status) {
        self.1.iter().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
        // SAFETY: passed on to the caller.
        unsafe { self.0.post(peer, class, commands) }
    }
}

/// The process of a rank that has left may have closed the wire, and one that has stopped takes no
/// frames, which would then wait before those to others. So nothing goes to a dead rank, also if
/// packets of it come late. Nor does this rank look again and again for frames of it that never
/// come.
#[test]
fn nothing_goes_to_the_dead() {
    let shared = ["1:shared=1:fd=0".to_owned()];
    for name in natures().chain(uses::natures(0)).chain(shared) {
        let posts = Arc::<AtomicU32>::default();
        let counts = posts.clone();
        let watch =
            move |me, lane| Box::new(Posts(lane, (me == 0).then(|| counts.clone()))) as BoxedLane;
        let ranks = Ranks::watched(2, &name, watch);
        let end = ranks.ends[0].as_ref().unwrap();
        let take = |packet: &Packet| {
            let bytes = packet::bytes_of(packet);
            let event = Event { class: class_of(packet), ..Event::about(Event::FRAME, 1) };
            let (mut state, mut results) = (end.shared.lock(), Results::default());
            let frame = pieces::frames_of(&bytes, 1, 512).concat();
            state.take_frame(&event, &frame, 4096, &|_, _, _| true, &mut results).unwrap();
            end.shared.send(&mut state, results.out);
        };
        // It has grants that it will not use.
        take(&Packet::Knock(3, Knock { number: 1, demand: 3, first: None }));
        ranks.round(&[0]);
        assert!(end.shared.lock().grants.granted_to(1) > 0, "{name}");
        let users = || end.shared.lock().tickets.as_ref().map_or(0, |it| it.giver.users());
        let offered = users();
        end.mark_dead(1);
        let before = posts.load(Ordering::Relaxed);
        for class in [Class::Answers, Class::Replies, Class::Requests] {
            let (header, payload) = (&[1; 8], &[1; 1000]);
            let frame = Frame { id: 1, kind: 2, tag: 3, header, payload, label: 0, absent: false };
            assert!(end.put(1, class, &frame, 4096), "{name}");
        }
        take(&Packet::Grants([1; LINES], [0; LINES], true));
        take(&Packet::Asked);
        (0..10).for_each(|_| ranks.round(&[0]));
        let state = end.shared.lock();
        assert_eq!(
            (posts.load(Ordering::Relaxed), state.outgoing.waiting()),
            (before, 0),
            "{name}"
        );
        assert!(!state.receipts.are_wanted(), "{name}");
        drop(state);
        assert!(users() <= offered, "{name}: slots were offered to the dead");
    }
}
