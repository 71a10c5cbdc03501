//! Receipts: a rank learns at its end (`llcl_finalize`) that the frames that it has sent lie in
//! slots of their receivers. So frames need no acknowledgement of their own.
//!
//! A sender asks a peer when it has sent all frames for it. The peer answers when every frame that
//! it has granted to the sender has arrived and every frame that has arrived lies in a slot. Since
//! grants count, neither side counts frames; the sender keeps one bit for each rank. Frames without
//! a grant need no receipt: the rank that waits for an answer notices its arrival.

use super::grants::{Grants, Out, Packet};
use std::collections::BTreeSet;

/// Most peers that a rank asks at the same time.
const QUESTIONS: usize = 64;

/// See the head of the file.
pub struct Receipts {
    /// A bit for each rank: this rank has sent it a frame since it last asked.
    sent: Box<[u64]>,
    /// Peers that this rank has asked and that have not answered.
    asked: BTreeSet<u32>,
    /// Peers that have asked this rank and have no answer yet.
    wanting: BTreeSet<u32>,
}

impl Receipts {
    /// `size`: the number of ranks.
    pub fn new(size: u32) -> Receipts {
        let sent = (0..size.div_ceil(64)).map(|_| 0).collect();
        Receipts { sent, asked: BTreeSet::new(), wanting: BTreeSet::new() }
    }

    /// Notes that this rank has accepted a frame for a living peer.
    pub fn sent(&mut self, to: u32) {
        self.sent[to as usize / 64] |= 1 << (to % 64);
    }

    /// Whether all frames for living peers lie in slots. Asks peers that have not confirmed it.
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

    /// Notes the question of a peer.
    pub fn asked(&mut self, from: u32) {
        self.wanting.insert(from);
    }

    /// Notes the answer of a peer.
    pub fn confirmed(&mut self, from: u32) {
        self.asked.remove(&from);
    }

    /// Whether a peer that has asked has no answer yet.
    pub fn are_wanted(&self) -> bool {
        !self.wanting.is_empty()
    }

    /// Answers the peers that have asked and of which no frame is missing.
    pub fn confirm(&mut self, grants: &Grants, out: &mut Out) {
        self.wanting.retain(|peer| {
            let all = grants.has_delivered_all(*peer);
            if all {
                out.push((*peer, Packet::Delivered));
            }
            !all
        });
    }

    /// Forgets a peer that has died, so that all_delivered() does not wait for it.
    pub fn mark_dead(&mut self, peer: u32) {
        self.sent[peer as usize / 64] &= !(1 << (peer % 64));
        self.asked.remove(&peer);
        self.wanting.remove(&peer);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
