use super::*;
use crate::transport::frame::Frame;
use crate::transport::wire::bundle::Bundle;
use crate::transport::wire::packet::{MOST, OwnedFrame, bytes_of};
use crate::transport::wire::pieces::{Joins, split};

/// Messages of 8 KiB fill frames of any length: those of 8,000 bytes begin a message behind the
/// end of the one before, and those of 16,640 and 33,280 bytes have two and four whole ones.
#[test]
fn frames_of_a_stream_are_full() {
    let payload: Vec<u8> = (0..8192_u32).map(|at| (at / 7) as u8).collect();
    let payload = &payload[..];
    let message = Frame { id: 1, kind: 0, tag: 0, header: &[], payload, label: 0, absent: false };
    let packet = || Packet::Frame(Some(3), OwnedFrame::of(Class::Requests, &message));
    let expected = bytes_of(&packet());
    let each = [(8000, 5), (16_640, 2), (33_280, 1)];
    for ((frame_most, frames), bundled) in each.map(|it| [(it, false), (it, true)]).concat() {
        let mut outgoing = Outgoing::new(&Caps { frame_most, ..Caps::default() });
        for _ in 0..4 {
            let mut packet = packet();
            if bundled {
                let mut bundle = Bundle::new(3, Class::Requests, &mut outgoing.buffers);
                bundle.add(&message, &mut outgoing.buffers);
                packet = Packet::Granted(bundle);
            }
            outgoing.add(1, packet, None);
        }
        let [Queue { frames: queued, .. }] = &outgoing.queues[..] else { panic!("one queue") };
        assert!(queued.iter().all(|frame| frame.len() <= frame_most));
        assert_eq!((queued.len(), outgoing.waiting()), (frames, frames));
        let (mut joins, mut came) = (Joins::default(), 0);
        for frame in queued {
            let mut rest = &frame[..];
            while !rest.is_empty() {
                let (piece, others) = split(rest);
                if let Some(packet) = joins.take(0, piece, MOST).unwrap() {
                    assert_eq!(packet[..], expected[..]);
                    joins.recycle(packet);
                    came += 1;
                }
                rest = others;
            }
        }
        assert_eq!(came, 4);
    }
}

/// A frame with one short message ends as a short buffer.
#[test]
fn a_frame_gets_its_memory_again() {
    let mut outgoing = Outgoing::new(&Caps { frame_most: 8000, ..Caps::default() });
    let payload = &[1; 2048][..];
    let message = Frame { id: 1, kind: 0, tag: 0, header: &[], payload, label: 0, absent: false };
    let mut places = Vec::new();
    for _ in 0..3 {
        outgoing.add(1, Packet::Frame(Some(3), OwnedFrame::of(Class::Requests, &message)), None);
        let mut queue = outgoing.queues.pop().unwrap();
        outgoing.count = 0;
        let frame = queue.frames.pop_front().unwrap();
        places.push(frame.as_ptr());
        outgoing.buffers.keep(frame);
    }
    assert_eq!(places, [places[0]; 3]);
}
