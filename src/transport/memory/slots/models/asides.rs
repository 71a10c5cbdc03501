//! A loom model of messages that the receiver sets aside while their senders are slow.

use super::*;

impl Area {
    /// Takes a message if one waits, by the rules of `message_receiver::asides`. `aside`: the
    /// ticket that is set aside, the later ticket of its slot that the receiver has claimed, and
    /// whether the message was taken.
    fn receive_past(&self, next: &mut u64, aside: &mut Option<(u64, u64, bool)>) -> Option<u32> {
        let share = self.share();
        let slots = share.slots.len() as u64;
        if let Some((ticket, passed, over)) = aside {
            if !*over && let Some(rank) = self.read(*ticket) {
                *over = true;
                share.set_asides(0);
                return Some(rank);
            }
            if *next == *passed {
                if *over {
                    *aside = None;
                } else {
                    share.keep_aside(*passed);
                    *passed = passed.wrapping_add(slots);
                }
                *next = next.wrapping_add(1);
                share.give_back(*next);
                return None;
            }
        }
        let came = self.read(*next);
        if came.is_none() {
            if aside.is_some() || !share.waits_behind(*next) || share.set_aside(*next).is_none() {
                return None;
            }
            *aside = Some((*next, next.wrapping_add(slots), false));
            share.set_asides(1);
        }
        *next = next.wrapping_add(1);
        share.give_back(*next);
        came
    }
}

/// A sender is slow between claim and publication. The receiver sets its ticket aside if another
/// message waits behind it, goes on through the slots, and takes the late message when it is
/// published. No two senders write one slot or one near place, and no message is lost or half read.
#[test]
fn loom_a_slow_sender_holds_up_its_own_slot_only() {
    check(2, || {
        let (area, mut next) = (area(2), FIRST);
        let slow = spawn(&area, |area| area.send(1));
        let quick = spawn(&area, |area| [2, 3].map(|rank| area.send(rank)));
        let (mut ranks, mut aside) = (Vec::new(), None);
        while ranks.len() < 3 {
            ranks.extend(area.receive_past(&mut next, &mut aside));
            thread::yield_now();
        }
        ranks.sort_unstable();
        assert_eq!(ranks, [1, 2, 3]);
        slow.join().unwrap();
        quick.join().unwrap();
    });
}
