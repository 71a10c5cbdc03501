use super::*;
use crate::transport::wire::grants::{Out, Packet};
use crate::transport::wire::packet::{answer_and_packet_of, packet_of};
use crate::transport::wire::pieces::number_of;

/// The packets as their receiver decodes them.
pub fn unpacked(out: Out) -> Out {
    let unpack = |(to, packet)| match packet {
        Packet::Granted(bundle) => {
            let packets = packets(&bundle.bytes);
            packets.iter().map(|packet| (to, packet_of(packet, 0).unwrap())).collect()
        }
        packet => vec![(to, packet)],
    };
    out.into_iter().flat_map(unpack).collect()
}

/// The packets of a frame.
fn packets(mut frame: &[u8]) -> Vec<&[u8]> {
    let mut packets = Vec::new();
    while !frame.is_empty() {
        let (piece, others) = split(frame);
        assert_eq!(
            piece[..HEAD],
            head(piece.len() - HEAD, number_of(piece), 0..piece.len() - HEAD)
        );
        packets.push(&piece[HEAD..]);
        frame = others;
    }
    packets
}

fn message(tag: u64, payload: &[u8]) -> Frame<'_> {
    Frame { id: 1, kind: 0, tag, header: &[3; 8], payload, label: 0, absent: false }
}

fn bundle_of(count: u64) -> Bundle {
    let mut frames = Buffers::new(4000);
    let mut bundle = Bundle::new(3, Class::Requests, &mut frames);
    for tag in 0..count {
        assert!(bundle.takes(&message(tag, &[7; 100]), 20, &frames));
        bundle.add(&message(tag, &[7; 100]), &mut frames);
    }
    bundle
}

/// Every message comes as it went, also out of a bundle that was split. A knock and an answer come
/// with the last message, whether it was split off or not.
#[test]
fn messages_come_out_of_the_frame_in_which_they_waited() {
    for (split_at, takes_first) in [(0, false), (3, false), (3, true), (1, true), (1, false)] {
        let (mut bundle, mut came) = (bundle_of(6), 0);
        if takes_first {
            assert_eq!(bundle.first_size(), 108);
            assert_eq!(
                bundle.take_first(),
                OwnedFrame::of(Class::Requests, &message(0, &[7; 100]))
            );
            came = 1;
        }
        let rest = (split_at > 0).then(|| bundle.split_off(split_at));
        for mut bundle in [Some(bundle), rest].into_iter().flatten() {
            bundle.carry_knock(1 << 50, 9);
            bundle.carry_answer((1, 1 << 60));
            let count = bundle.count();
            let bytes = bundle.into_frame();
            let packets = packets(&bytes);
            assert_eq!(packets.len(), count);
            for (at, packet) in packets.iter().enumerate() {
                let (answered, packet) = answer_and_packet_of(packet, 0).unwrap();
                let (owned, last) = match packet {
                    Packet::Frame(Some(3), owned) => (owned, false),
                    Packet::More(3, knock) => {
                        assert_eq!((knock.number, knock.demand), (1 << 50, 9));
                        (knock.first.unwrap(), true)
                    }
                    packet => panic!("{packet:?}"),
                };
                assert_eq!((last, answered), (at + 1 == count, last.then_some((1, 1 << 60))));
                assert_eq!(owned, OwnedFrame::of(Class::Requests, &message(came, &[7; 100])));
                came += 1;
            }
        }
        assert_eq!(came, 6);
    }
}

/// A bundle has no more messages than may be granted at a time, and fits into a frame with all that
/// its last message may bring. A knock that has asked for its messages closes it.
#[test]
fn a_bundle_is_full_or_closed() {
    let (mut bundle, frames) = (bundle_of(19), Buffers::new(4000));
    let takes = |bundle: &Bundle, size| bundle.takes(&message(0, &vec![0; size]), 20, &frames);
    assert!(takes(&bundle, 100) && !bundle.takes(&message(0, &[]), 19, &frames));
    let most = 4000 - bundle.bytes.len() - HEAD - FRAME_BEFORE - 8 - PLACES;
    assert!(takes(&bundle, most) && !takes(&bundle, most + 1));
    bundle.close();
    assert!(!takes(&bundle, 0));
}
