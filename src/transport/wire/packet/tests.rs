use super::*;

const MEDIUM: usize = 4096;

fn owned(class: Class, header: usize, payload: usize) -> OwnedFrame {
    let (header, payload) = (vec![3; header], vec![7; payload]);
    let frame = Frame {
        id: 0x102,
        kind: 9,
        tag: 0x1_0000_0005,
        header: &header,
        payload: &payload,
        label: 0x304,
        absent: payload.is_empty(),
    };
    OwnedFrame::of(class, &frame)
}

fn with_answer(packet: &Packet, answered: Option<Answered>) -> Vec<u8> {
    encode(packet, answered, |packet| {
        let mut bytes = vec![];
        packet.put(0..packet.size(), &mut bytes);
        assert_eq!(bytes.len(), packet.size());
        bytes
    })
}

fn knock(demand: usize, first: OwnedFrame) -> Knock {
    Knock { number: 77, demand, first: Some(first) }
}

fn same(left: &Packet, right: &Packet) -> bool {
    format!("{left:?}") == format!("{right:?}")
}

#[test]
fn packets_come_as_they_were_sent() {
    let packets = [
        Packet::Frame(Some(0), owned(Class::Requests, 0, 0)),
        Packet::Frame(Some(3), owned(Class::Requests, 64, LARGEST)),
        Packet::Frame(Some(1), owned(Class::Responses, 5, 9)),
        Packet::Frame(Some(2), owned(Class::Lib, 40, CHUNK)),
        Packet::Frame(None, owned(Class::Replies, 0, MEDIUM)),
        Packet::Frame(None, owned(Class::Answers, 8, CHUNK)),
        Packet::Queued(1, owned(Class::Responses, 8, 8)),
        Packet::Knock(5, Knock { number: 1 << 60, demand: 16, first: None }),
        Packet::Knock(1, knock(0, owned(Class::Responses, 8, 8))),
        Packet::Grants([1, 2, 3, 4, 5, 1 << 40], [7; LINES], false),
        Packet::Grants([1; LINES], [0; LINES], true),
        Packet::Taken,
        Packet::More(3, knock(7, owned(Class::Requests, 64, LARGEST))),
        Packet::Asked,
        Packet::Delivered,
        Packet::Use(5, Use::Offer(Place { start: 1 << 47, key: [1, 2, 3, u64::MAX] })),
        Packet::Use(1 << 40, Use::Accepted),
        Packet::Use(7, Use::Revoked),
        Packet::Use(7, Use::Released(1 << 50)),
        Packet::Use(7, Use::Closed),
    ];
    for packet in &packets {
        let bytes = bytes_of(packet);
        assert!(bytes.len() <= MOST);
        assert!(same(&packet_of(&bytes, MEDIUM).unwrap(), packet), "{packet:?}");
    }
    for (packet, line) in packets.iter().zip((0..LINES).cycle()) {
        let bytes = with_answer(packet, Some((line, 1 << 50)));
        let (answered, came) = answer_and_packet_of(&bytes, MEDIUM).unwrap();
        assert!(bytes.len() <= MOST && same(&came, packet), "{packet:?}");
        assert_eq!(answered, Some((line, 1 << 50)));
        let plain = answer_and_packet_of(&with_answer(packet, None), MEDIUM).unwrap();
        assert!(plain.0.is_none() && same(&plain.1, packet));
    }
    let sent = owned(Class::Requests, 5, 9);
    let Frame { id, kind, tag, header, payload, label, absent } = sent.frame();
    assert_eq!((id, kind, tag, label, absent), (0x102, 9, 0x1_0000_0005, 0x304, false));
    assert_eq!((header, payload, sent.size()), (&[3; 5][..], &[7; 9][..], 14));
}

#[test]
fn what_is_too_large_for_its_place_is_refused() {
    let refused = |line, class, header, payload, why: &str| {
        let bytes = bytes_of(&Packet::Frame(line, owned(class, header, payload)));
        let said = packet_of(&bytes, MEDIUM).unwrap_err();
        assert!(said.contains(why), "{said}");
    };
    refused(None, Class::Replies, 0, MEDIUM + 1, "4097 bytes, expected at most 4096");
    refused(None, Class::Answers, 8, CHUNK + 1, "expected at most 32768");
    refused(None, Class::Answers, 16, 0, "a header of 16 bytes, expected 8..=8");
    refused(Some(2), Class::Lib, 48, 0, "a header of 48 bytes, expected 40..=40");
    refused(Some(0), Class::Requests, 65, 0, "a header of 65 bytes");
    refused(Some(0), Class::Requests, 0, LARGEST + 1, "expected at most 65536");
    refused(None, Class::Requests, 0, 0, "packet 1, class 0, line 255");
    refused(Some(0), Class::Answers, 8, 0, "packet 1, class 4, line 0");
}

/// packet_of() neither panics nor reads beyond the end, whichever byte of a correct packet is
/// changed, and refuses each truncated packet.
#[test]
fn no_bytes_are_trusted() {
    let packets = [
        Packet::Frame(Some(1), owned(Class::Responses, 5, 9)),
        Packet::Knock(1, knock(3, owned(Class::Requests, 8, 8))),
        Packet::Knock(1, Knock { number: 1, demand: 3, first: None }),
        Packet::More(1, knock(3, owned(Class::Responses, 5, 9))),
        Packet::Grants([1; LINES], [7; LINES], true),
        Packet::Asked,
    ];
    for packet in &packets {
        for answered in [None, Some((5, 3))] {
            let good = with_answer(packet, answered);
            for size in 0..good.len() {
                let cut = answer_and_packet_of(&good[..size], MEDIUM);
                assert!(cut.is_err(), "{size} bytes of {packet:?}");
            }
            let longer = answer_and_packet_of(&[&good[..], &[0]].concat(), MEDIUM);
            assert!(longer.is_err(), "{packet:?} and a byte");
        }
        let good = bytes_of(packet);
        for at in 0..good.len() {
            for value in [0, 1, 7, 128, 255] {
                let mut bytes = good.clone();
                bytes[at] = value;
                let message = match answer_and_packet_of(&bytes, MEDIUM) {
                    Ok((_, Packet::Frame(_, message))) => Some(message),
                    Ok((_, Packet::Knock(_, knock) | Packet::More(_, knock))) => knock.first,
                    _ => None,
                };
                if let Some(message) = message {
                    let size = message.frame().header.len() + message.frame().payload.len();
                    assert!([14, 16].contains(&size), "{size} bytes of {packet:?}");
                }
            }
        }
    }
}

#[test]
fn a_granted_frame_brings_no_empty_knock() {
    for (number, demand) in [(0, 3), (3, 0)] {
        let first = Some(owned(Class::Requests, 8, 8));
        let bytes = bytes_of(&Packet::More(1, Knock { number, demand, first }));
        let refused = answer_and_packet_of(&bytes, MEDIUM).unwrap_err();
        let expected = format!("knock {number} of a granted frame asks for {demand} frames");
        assert_eq!(refused, expected);
    }
}

/// The short way encodes the same bytes, decodes no other packets, and trusts no bytes.
#[test]
fn a_packet_with_one_message_has_the_same_bytes_on_both_ways() {
    let singles = [
        (Single::Knock(0, 1 << 60), owned(Class::Requests, 8, 0)),
        (Single::Knock(4, 7), owned(Class::Responses, 5, 200)),
        (Single::Knock(2, 0), owned(Class::Lib, 40, 16)),
        (Single::Aside, owned(Class::Replies, 0, 9)),
        (Single::Aside, owned(Class::Answers, 8, 30)),
        (Single::Granted(1), owned(Class::Responses, 5, 9)),
        (Single::Granted(5), owned(Class::Lib, 40, 9)),
        (Single::More(3, 1 << 50, 15), owned(Class::Requests, 8, 300)),
    ];
    for ((single, message), answered) in
        singles.iter().zip([None, Some((5, 1 << 50))].into_iter().cycle())
    {
        let packet = match *single {
            Single::Knock(line, number) => {
                Packet::Knock(line, Knock { number, demand: 0, first: Some(message.clone()) })
            }
            Single::Aside => Packet::Frame(None, message.clone()),
            Single::Granted(line) => Packet::Frame(Some(line), message.clone()),
            Single::More(line, number, demand) => {
                let (demand, first) = (demand as usize, Some(message.clone()));
                Packet::More(line, Knock { number, demand, first })
            }
        };
        let (mut bytes, class) = (vec![], message.class);
        put_single(&mut bytes, *single, (class, &message.frame()), answered, |size| [size as u8]);
        assert_eq!(usize::from(bytes[0]), (bytes.len() - 1) % 256);
        let bytes = &bytes[1..];
        assert_eq!(bytes, with_answer(&packet, answered));
        let (came, was, (of, frame)) = single_of(bytes, MEDIUM).unwrap();
        assert_eq!((came, was, OwnedFrame::of(of, &frame)), (answered, *single, message.clone()));
        assert!((0..bytes.len()).all(|size| single_of(&bytes[..size], MEDIUM).is_none()));
        for at in 0..bytes.len() {
            for value in [0, 1, 7, 128, 255] {
                let mut bytes = bytes.to_vec();
                bytes[at] = value;
                let both = (single_of(&bytes, MEDIUM), answer_and_packet_of(&bytes, MEDIUM));
                assert!(both.0.is_none() || both.1.is_ok(), "{value} at {at} of {packet:?}");
            }
        }
    }
    let others = [
        Packet::Queued(1, owned(Class::Responses, 8, 8)),
        Packet::Knock(1, knock(3, owned(Class::Requests, 8, 8))),
        Packet::Knock(1, Knock { number: 1, demand: 0, first: None }),
        Packet::More(1, knock(0, owned(Class::Requests, 8, 8))),
        Packet::Asked,
    ];
    assert!(others.iter().all(|it| single_of(&bytes_of(it), MEDIUM).is_none()));
}
