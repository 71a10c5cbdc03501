//! What waits for peers that cannot take it now: one line for each peer, in the order in which it
//! came, and the peers in turn. What is refused keeps its place, and a peer that takes nothing
//! stops no other.

use std::collections::{HashMap, VecDeque};

/// What waits for one peer.
pub trait PeerLine: Default {
    /// Whether nothing waits.
    fn is_empty(&self) -> bool;
}

impl<T> PeerLine for VecDeque<T> {
    fn is_empty(&self) -> bool {
        VecDeque::is_empty(self)
    }
}

/// See the head of the file. Allocates only while there are more peers or more waits than ever
/// before.
pub struct PeerTurns<L> {
    lines: HashMap<u32, L>,
    /// Peers for which something waits; the first one is served first.
    turns: VecDeque<u32>,
}

impl<L> Default for PeerTurns<L> {
    fn default() -> Self {
        PeerTurns { lines: HashMap::new(), turns: VecDeque::new() }
    }
}

impl<L: PeerLine> PeerTurns<L> {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// What waits for a peer, if anything ever did.
    pub fn line(&self, peer: u32) -> Option<&L> {
        self.lines.get(&peer)
    }

    /// The peers for which something waits, each with its line.
    pub fn waiting(&self) -> impl Iterator<Item = (u32, &L)> {
        self.turns.iter().filter_map(|peer| Some((*peer, self.lines.get(peer)?)))
    }

    /// Has `place` put something into the line of a peer.
    pub fn put(&mut self, peer: u32, place: impl FnOnce(&mut L)) {
        let line = self.lines.entry(peer).or_default();
        if line.is_empty() {
            self.turns.push_back(peer);
        }
        place(line);
    }

    /// Sends what can be sent, one of each peer at a time: a peer that has been served goes to the
    /// end. `send_one` takes the oldest from a line that can be sent; false: there is none. Returns
    /// how many were taken.
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
            let peer = self.turns.remove(refused);
            self.turns.extend(peer.filter(|_| left));
        }
        served
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_is_refused_keeps_its_place_and_stops_no_other() {
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
}
