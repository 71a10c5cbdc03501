use super::*;
use crate::transport::frame::HEADER;
use crate::transport::memory::control::Control;
use crate::util::config::Config;
use crate::util::memory::MemoryFile;
use std::sync::atomic::Ordering;

/// Words of a slot's body that a message with so many bytes has.
fn words(header: usize, payload: usize) -> usize {
    ENVELOPE_WORDS + header.div_ceil(8) + payload.div_ceil(8)
}

#[test]
fn a_small_message_lies_in_its_slot_as_a_message_of_any_size_does() {
    let config = Config::from_environment().unwrap();
    let files = [(); 2].map(|()| MemoryFile::create().unwrap());
    let controls = files.each_ref().map(|file| Control::create(file, &config, 2).unwrap());
    let [small, any] = controls.each_ref().map(|own| {
        own.own_message_area().head.set_handler(9, true);
        MessageSender::new(own.own_message_area(), (3, 1), 0, own.bell())
    });
    let (bytes, counts) = (std::array::from_fn::<u8, 200, _>(|at| !at as u8), Counters::default());
    let mut fitting = 0;
    for header in [0, 1, 5, 8, 13, HEADER] {
        for payload in 0..=INLINE_BYTES {
            let (header, payload) = (&bytes[..header], &bytes[100..100 + payload]);
            let (id, absent) = (9, payload.is_empty());
            let frame = Frame { id, kind: 0, tag: 0, header, payload, label: 77, absent };
            // There is no receiver, so the senders give the slots back.
            for sender in [&small, &any] {
                let next = sender.message_area.head.hosted[0].0.load(Ordering::Relaxed);
                let taken = &sender.message_area.head.received[0].count;
                taken.store(next, Ordering::Relaxed);
                sender.first_cached.store(next, Ordering::Relaxed);
            }
            let ticket = small.first.sent();
            let fits = header.len().next_multiple_of(8) + payload.len() <= INLINE_BYTES;
            let sent = Small::of(&frame, &counts)
                .is_some_and(|message| !matches!(small.send_short(&message, 0), Short::Refused));
            assert_eq!(sent, fits, "{} {}", header.len(), payload.len());
            if fits {
                assert!(any.send(&frame, |_| unreachable!(), &counts));
                fitting += 1;
                let body = |sender: &MessageSender| {
                    // SAFETY: no other thread uses the slot.
                    sender.first.slot(ticket).body().with(|body| unsafe { *body })
                };
                let count = words(header.len(), payload.len());
                let last = if payload.len() % 8 == 0 { 0 } else { 64 - 8 * (payload.len() % 8) };
                let (left, right) = (body(&small), body(&any));
                assert_eq!(left[..count - 1], right[..count - 1]);
                assert_eq!(left[count - 1] << last, right[count - 1] << last);
                assert!(small.first.is_ready(ticket));
            }
        }
    }
    assert!(fitting > 300);
}
