use super::*;
use crate::transport::frame::{Class, Frame};
use crate::transport::wire::bundle::tests::unpacked;
use crate::transport::wire::grants::Packet;
use crate::transport::wire::packet::OwnedFrame;

fn frame(size: usize) -> OwnedFrame {
    let payload = vec![1; size];
    let frame =
        Frame { id: 1, kind: 0, tag: 0, header: &[], payload: &payload, label: 0, absent: false };
    OwnedFrame::of(Class::Requests, &frame)
}

/// Delivers the packets `out` of rank `from` to the other rank, in order, and returns the other
/// rank's packets.
fn hand_over(out: &mut Out, from: u32, to: &mut Grants) -> Out {
    let mut back = Out::new();
    for (_, packet) in unpacked(std::mem::take(out)) {
        to.take(from, packet, 0, &mut back).unwrap();
    }
    to.serve(|_, _| false, &mut back, &mut vec![]);
    back
}

#[test]
fn one_question_is_under_way_and_answered_when_all_is_delivered() {
    let (mut here, mut there) = (Grants::default(), Grants::default());
    let (mut sender, mut receiver) = (Receipts::new(2), Receipts::new(2));
    let (mut out, mut questions) = (Out::new(), Out::new());
    assert!(sender.all_delivered(&here, &mut out));
    assert!(here.send_one(1, 0, &frame(1000), &mut out));
    sender.sent(1);
    assert!(!sender.all_delivered(&here, &mut questions));
    assert!(questions.is_empty(), "what waits here cannot lie there");
    let mut grants = hand_over(&mut out, 0, &mut there);
    assert!(!there.has_delivered_all(0), "it has not sent what was granted");
    let mut frames = hand_over(&mut grants, 1, &mut here);
    assert!(!sender.all_delivered(&here, &mut questions));
    assert!(matches!(questions[..], [(1, Packet::Asked)]));
    assert!(!sender.all_delivered(&here, &mut questions) && questions.len() == 1);
    // The question overtakes the frames.
    receiver.asked(0);
    receiver.confirm(&there, &mut out);
    assert!(out.is_empty(), "nothing has come");
    hand_over(&mut frames, 0, &mut there);
    receiver.confirm(&there, &mut out);
    assert!(out.is_empty(), "nothing lies in a slot");
    there.serve(|_, _| true, &mut Out::new(), &mut vec![]);
    receiver.confirm(&there, &mut out);
    assert!(matches!(out[..], [(0, Packet::Delivered)]));
    receiver.confirm(&there, &mut out);
    assert_eq!(out.len(), 1, "it was confirmed");
    sender.sent(1);
    sender.confirmed(1);
    assert!(!sender.all_delivered(&here, &mut questions), "one was sent after the question");
    sender.confirmed(1);
    assert!(sender.all_delivered(&here, &mut questions) && questions.len() == 2);
}

#[test]
fn few_questions_are_under_way() {
    let (grants, mut sender, mut out) = (Grants::default(), Receipts::new(1000), Out::new());
    (0..1000).for_each(|peer| sender.sent(peer));
    let mut confirmed = 0;
    while !sender.all_delivered(&grants, &mut out) {
        assert!(out.len() - confirmed <= QUESTIONS, "{} questions", out.len() - confirmed);
        sender.confirmed(out[confirmed].0);
        confirmed += 1;
    }
    assert!(confirmed == 1000 && out.iter().map(|(peer, _)| *peer).eq(0..1000));
}

#[test]
fn nobody_waits_for_the_dead() {
    let (grants, mut sender, mut out) = (Grants::default(), Receipts::new(70), vec![]);
    sender.sent(1);
    sender.sent(69);
    sender.mark_dead(69);
    assert!(!sender.all_delivered(&grants, &mut out) && out.len() == 1);
    sender.mark_dead(1);
    assert!(sender.all_delivered(&grants, &mut out) && out.len() == 1);
}
