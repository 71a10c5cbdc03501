//! Streams, in which granted frames carry the knocks.

use super::*;

/// How many packets of each kind were posted.
#[derive(Debug, Default, PartialEq)]
pub struct Posted {
    frames: usize,
    knocks: usize,
    grants: usize,
    confirmations: usize,
}

impl Posted {
    pub fn count(&mut self, packet: &Packet) {
        let count = match packet {
            Packet::Frame(..) | Packet::More(..) => &mut self.frames,
            Packet::Knock(..) => &mut self.knocks,
            Packet::Grants(..) => &mut self.grants,
            Packet::Taken => &mut self.confirmations,
            _ => unreachable!("{packet:?}"),
        };
        *count += 1;
    }
}

/// A stream of frames that no knock brings begins with a knock. Then it is only frames, and grants
/// for several of them at a time.
#[test]
fn a_stream_is_frames_and_grants() {
    const COUNT: usize = 60;
    let (mut ranks, mut sent, mut came) = (Ranks::new(2, 1), 0, 0);
    while came < COUNT as u32 {
        while sent < COUNT && ranks.send(1, 0, LINES / 2, 0, 1000) {
            sent += 1;
        }
        assert!(ranks.step(|_, _, _| count(&mut came, true)));
    }
    let Posted { frames, knocks, grants, confirmations } = ranks.posted;
    assert_eq!((frames, knocks, confirmations), (COUNT, 1, 0));
    assert!((COUNT / 8..COUNT / 4).contains(&grants), "{grants} messages of grants");
}

/// The first of the granted frames brings the next knock, so that it is answered while the others
/// are under way.
#[test]
fn the_first_of_the_granted_frames_brings_the_next_knock() {
    let (mut end, mut out, line) = (Grants::default(), Out::new(), LINES / 2);
    let payload = &[0; 1000];
    let frame = Frame { id: 1, kind: 0, tag: 0, header: &[], payload, label: 0, absent: false };
    for _ in 0..6 {
        assert!(end.has_room(1, line));
        end.send_one(1, line, &OwnedFrame::of(Class::Requests, &frame), &mut out);
    }
    let [(1, Packet::Knock(_, Knock { number, .. }))] = out[..] else { panic!("{out:?}") };
    out.clear();
    end.granted(1, line, (number, 4), &mut out);
    let out = unpacked(out);
    let [(1, Packet::More(_, knock)), others @ ..] = &out[..] else { panic!("{out:?}") };
    assert_eq!((knock.demand, others.len()), (2, 3));
    assert!(others.iter().all(|(_, it)| matches!(it, Packet::Frame(..))));
}

/// Frames that come together make their buffers free before the knock among them is answered.
#[test]
fn a_knock_behind_frames_gets_their_buffers() {
    let (mut ranks, line, all) = (Ranks::new(2, 1), LINES / 2, buffers_of(LINES / 2));
    let (mut frames, mut sent, mut came) = (0, 0, 0);
    while frames < all {
        while ranks.send(1, 0, line, 0, 1000) {
            sent += 1;
        }
        assert!(ranks.step(|_, _, _| count(&mut came, true)));
        frames = ranks.wire.iter().filter(|(_, to, _)| *to == 0).count();
    }
    for (from, _, packet) in std::mem::take(&mut ranks.wire) {
        assert_eq!(ranks.ends[0].take(from, packet, 0, &mut Out::new()), Ok(Taken::Copied));
    }
    ranks.serve(0, |_, _| true);
    let [(0, 1, Packet::Grants(_, granted, false))] = &ranks.wire[..] else {
        panic!("one message of grants, not {:?}", ranks.wire)
    };
    let waiting = u64::from(sent - came) - frames as u64;
    assert_eq!(granted[line], waiting.min(all as u64), "of {waiting} that wait");
}
