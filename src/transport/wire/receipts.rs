//! Whether what a rank has sent lies in slots of its receivers: asked for where it matters, at the
//! end, so that frames need no acknowledgement of their own. A sender asks a receiver about as many
//! frames as it has sent; the receiver tells it when so many have been delivered. Numbers are totals
//! since the beginning, so they may overtake each other, and one question of a pair is under way.

use super::grants::{Out, Packet};
use std::collections::HashMap;

/// What is known of the frames between this rank and one peer.
#[derive(Default)]
struct Account {
    sent: u64,
    asked: u64,
    told: u64,
    delivered: u64,
    /// The peer wants to be told when so many are delivered; 0: nothing.
    wanted: u64,
    dead: bool,
}

/// See the head of the file.
#[derive(Default)]
pub struct Receipts(HashMap<u32, Account>);

impl Receipts {
    /// A frame for a peer was taken.
    pub fn sent(&mut self, to: u32) {
        self.0.entry(to).or_default().sent += 1;
    }

    /// A frame of a peer lies in its slot.
    pub fn delivered(&mut self, from: u32) {
        self.0.entry(from).or_default().delivered += 1;
    }

    /// Whether all that was sent to the living lies in slots; asks those who have not told.
    pub fn all_delivered(&mut self, out: &mut Out) -> bool {
        let mut all = true;
        for (peer, account) in &mut self.0 {
            if account.dead || account.told >= account.sent {
                continue;
            }
            all = false;
            if account.told >= account.asked {
                account.asked = account.sent;
                out.push((*peer, Packet::Asked(account.sent)));
            }
        }
        all
    }

    /// A peer asks.
    pub fn asked(&mut self, from: u32, sent: u64) {
        self.0.entry(from).or_default().wanted = sent;
    }

    /// A peer tells.
    pub fn told(&mut self, from: u32, delivered: u64) {
        let account = self.0.entry(from).or_default();
        account.told = account.told.max(delivered);
    }

    /// Tells those who have asked what they want to hear.
    pub fn tell(&mut self, out: &mut Out) {
        for (peer, account) in &mut self.0 {
            if account.wanted > 0 && account.delivered >= account.wanted {
                account.wanted = 0;
                out.push((*peer, Packet::Told(account.delivered)));
            }
        }
    }

    /// A peer has died: nobody waits for it any more.
    pub fn bury(&mut self, peer: u32) {
        self.0.entry(peer).or_default().dead = true;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// What is asked or told, as (peer, number).
    fn numbers(out: &mut Out) -> Vec<(u32, u64)> {
        let number = |packet| match packet {
            Packet::Asked(number) | Packet::Told(number) => number,
            other => panic!("{other:?}"),
        };
        out.drain(..).map(|(peer, packet)| (peer, number(packet))).collect()
    }

    #[test]
    fn one_question_is_under_way_and_answered_when_all_is_delivered() {
        let (mut sender, mut receiver, mut out) =
            (Receipts::default(), Receipts::default(), vec![]);
        assert!(sender.all_delivered(&mut out));
        sender.sent(1);
        sender.sent(1);
        assert!(!sender.all_delivered(&mut out));
        assert_eq!(numbers(&mut out), [(1, 2)]);
        sender.sent(1);
        assert!(!sender.all_delivered(&mut out) && out.is_empty(), "one question at a time");
        receiver.asked(0, 2);
        receiver.delivered(0);
        receiver.tell(&mut out);
        assert!(out.is_empty(), "one of two is not all");
        receiver.delivered(0);
        receiver.delivered(0);
        receiver.tell(&mut out);
        assert_eq!(numbers(&mut out), [(0, 3)]);
        receiver.tell(&mut out);
        assert!(out.is_empty(), "it was told");
        sender.told(1, 3);
        sender.told(1, 1);
        assert!(sender.all_delivered(&mut out) && out.is_empty());
    }

    #[test]
    fn nobody_waits_for_the_dead() {
        let (mut sender, mut out) = (Receipts::default(), vec![]);
        sender.sent(1);
        sender.bury(1);
        assert!(sender.all_delivered(&mut out) && out.is_empty());
    }
}
