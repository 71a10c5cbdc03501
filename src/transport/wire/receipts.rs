//! Whether what a rank has sent lies in slots of its receivers: asked for where it matters, at the
//! end, so that frames need no acknowledgement of their own. A sender that has sent a peer all that
//! was taken for it asks; the peer tells when nothing of what it has granted or taken is missing.
//! So neither counts frames, and what is kept is one bit for each rank. It concerns frames that
//! need
//! a grant. Of answers the rank knows that waits for them.

use super::grants::{Grants, Out, Packet};
use std::collections::BTreeSet;

/// Most questions that are under way.
const QUESTIONS: usize = 64;

/// See the head of the file.
pub struct Receipts {
    /// A bit for each rank: it was sent something after it was asked last.
    sent: Box<[u64]>,
    asked: BTreeSet<u32>,
    /// Who wants to be told.
    wanting: BTreeSet<u32>,
}

impl Receipts {
    /// Of so many ranks.
    pub fn new(size: u32) -> Receipts {
        let sent = (0..size.div_ceil(64)).map(|_| 0).collect();
        Receipts { sent, asked: BTreeSet::new(), wanting: BTreeSet::new() }
    }

    /// A frame for a living peer was taken.
    pub fn sent(&mut self, to: u32) {
        self.sent[to as usize / 64] |= 1 << (to % 64);
    }

    /// Whether all that was sent to the living lies in slots; asks those who have not told.
    pub fn all_delivered(&mut self, grants: &Grants, out: &mut Out) -> bool {
        for (word, first) in self.sent.iter_mut().zip((0..).step_by(64)) {
            let mut left = *word;
            while left != 0 {
                let peer = first + left.trailing_zeros();
                left &= left - 1;
                let may = self.asked.len() < QUESTIONS && grants.has_sent_all(peer);
                if may && self.asked.insert(peer) {
                    *word &= !(1 << (peer - first));
                    out.push((peer, Packet::Asked));
                }
            }
        }
        self.asked.is_empty() && self.sent.iter().all(|word| *word == 0)
    }

    /// A peer asks.
    pub fn asked(&mut self, from: u32) {
        self.wanting.insert(from);
    }

    /// A peer tells.
    pub fn told(&mut self, from: u32) {
        self.asked.remove(&from);
    }

    /// Tells those who have asked, if nothing of them is missing.
    pub fn tell(&mut self, grants: &Grants, out: &mut Out) {
        self.wanting.retain(|peer| {
            let told = grants.has_delivered_all(*peer);
            if told {
                out.push((*peer, Packet::Told));
            }
            !told
        });
    }

    /// A peer has died: nobody waits for it any more.
    pub fn mark_dead(&mut self, peer: u32) {
        self.sent[peer as usize / 64] &= !(1 << (peer % 64));
        self.asked.remove(&peer);
        self.wanting.remove(&peer);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
