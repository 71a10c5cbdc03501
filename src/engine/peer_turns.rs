//! Queues of items that wait because their peer cannot accept them now: one queue (a line) for each
//! peer, in order of arrival. Peers with items are served round robin. A refused item stays at the
//! head of its line, and a peer that accepts nothing delays no other.

use std::collections::{BTreeMap, VecDeque};

/// The items that wait for one peer.
pub trait PeerLine: Default {
    /// Whether nothing waits.
    fn is_empty(&self) -> bool;
}

impl<T> PeerLine for VecDeque<T> {
    fn is_empty(&self) -> bool {
        VecDeque::is_empty(self)
    }
}

/// Most lines that stay when nothing waits in them any more, with their memory, so items for a few
/// peers need no allocation. More would be memory that grows with the number of ranks.
const KEPT: usize = 8;

/// See the head of the file.
pub struct PeerTurns<L> {
    lines: BTreeMap<u32, L>,
    /// Peers for which something waits; the first one is served first.
    turns: VecDeque<u32>,
}

impl<L> Default for PeerTurns<L> {
    fn default() -> Self {
        PeerTurns { lines: BTreeMap::new(), turns: VecDeque::new() }
    }
}

impl<L: PeerLine> PeerTurns<L> {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The line of a peer. None, or an empty line: nothing waits for the peer.
    pub fn line(&self, peer: u32) -> Option<&L> {
        self.lines.get(&peer)
    }

    /// The peers for which something waits, each with its line.
    pub fn waiting(&self) -> impl Iterator<Item = (u32, &L)> {
        self.turns.iter().filter_map(|peer| Some((*peer, self.lines.get(peer)?)))
    }

    /// Calls `place`, which puts an item into the peer's line.
    pub fn put(&mut self, peer: u32, place: impl FnOnce(&mut L)) {
        let line = self.lines.entry(peer).or_default();
        if line.is_empty() {
            self.turns.push_back(peer);
        }
        place(line);
    }

    /// Calls `send_one` for the lines in turn, until it has refused all that are left. `send_one`
    /// sends one item and removes it from the line, or returns false. A peer whose item was sent
    /// goes to the end of the turns. Returns the number of items sent.
    pub fn serve(&mut self, mut send_one: impl FnMut(&mut L) -> bool) -> usize {
        let (mut served, mut refused) = (0, 0);
        while let Some(peer) = self.turns.get(refused) {
            let Some(line) = self.lines.get_mut(peer) else {
                unreachable!("a turn without a line")
            };
            if !send_one(line) {
                refused += 1;
                continue;
            }
            served += 1;
            let left = !line.is_empty();
            let Some(peer) = self.turns.remove(refused) else { break };
            if left {
                self.turns.push_back(peer);
            } else if self.lines.len() > KEPT {
                self.lines.remove(&peer);
            }
        }
        served
    }
}

/// The first item to each peer, of items in order of arrival.
pub fn first_of_each<T>(items: impl Iterator<Item = T>, peer: impl Fn(&T) -> u32) -> Vec<T> {
    let mut firsts: Vec<T> = Vec::new();
    for item in items {
        if firsts.iter().all(|first| peer(first) != peer(&item)) {
            firsts.push(item);
        }
    }
    firsts
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_refused_item_keeps_its_place_and_delays_no_other_peer() {
        let mut waiting = PeerTurns::<VecDeque<u32>>::default();
        [(1, 10), (1, 11), (2, 20), (1, 12), (2, 21)]
            .into_iter()
            .for_each(|(peer, number)| waiting.put(peer, |line| line.push_back(number)));
        let mut sent = Vec::new();
        let mut serve = |waiting: &mut PeerTurns<VecDeque<u32>>, refuses: u32| {
            waiting.serve(|line| {
                let refused = line.front().is_none_or(|number| number / 10 == refuses);
                sent.extend((!refused).then(|| line.pop_front()).flatten());
                !refused
            })
        };
        assert_eq!(serve(&mut waiting, 1), 2);
        assert_eq!(waiting.line(1).map(VecDeque::len), Some(3));
        assert_eq!(serve(&mut waiting, 2), 3);
        assert_eq!(sent, [20, 21, 10, 11, 12]);
        assert!(waiting.is_empty() && waiting.waiting().next().is_none());
    }
    #[test]
    fn few_lines_stay_when_nothing_waits_in_them() {
        let mut waiting = PeerTurns::<VecDeque<u32>>::default();
        for turn in 0..3 {
            let peers = (0..1000).map(|peer| peer + 500 * turn);
            peers.for_each(|peer| waiting.put(peer, |line| line.push_back(peer)));
            assert_eq!(waiting.serve(|line| line.pop_front().is_some()), 1000);
            assert!(waiting.is_empty() && waiting.lines.len() <= KEPT, "{}", waiting.lines.len());
        }
    }
}
