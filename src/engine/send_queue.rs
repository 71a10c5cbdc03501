//! Operations in flight whose message has not been sent, because all slots of the peer hold
//! requests or because there is no place for many bytes: for each peer in the order of their age,
//! and the peers in turn.
//!
//! An operation that is refused keeps its place. So it is sent after those that were older, however
//! many are posted behind it, and a peer that takes nothing stops no other.

use crate::engine::in_flight::Tag;
use crate::engine::peer_turns::{PeerLine, PeerTurns};
use std::collections::VecDeque;

/// What became of an attempt to send an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Its message has been sent, or it has ended.
    Done,
    /// There is no place for its bytes.
    NoPlace,
    /// All slots of the peer hold requests.
    Full,
}

/// The operations that wait for one peer, each with its number in the order of commands.
#[derive(Default)]
struct Line {
    /// Those that need one of few places: writes of many bytes, and reads of as many for whose
    /// answers no place is set aside yet. Such a place is given back by operations that wait among
    /// `words`, so nothing there may wait for what is here.
    bytes: VecDeque<(u64, Tag)>,
    /// Those that need one of many slots only.
    words: VecDeque<(u64, Tag)>,
}

/// See the head of the file.
#[derive(Default)]
pub struct SendQueue(PeerTurns<Line>);

impl PeerLine for Line {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.words.is_empty()
    }
}

impl Line {
    /// Sends the oldest operation that can be sent. False: none can.
    fn send_one(&mut self, send: &mut impl FnMut(Tag) -> Sent) -> bool {
        let oldest = |line: &VecDeque<(u64, Tag)>| line.front().map_or(u64::MAX, |(age, _)| *age);
        let bytes_first = oldest(&self.bytes) < oldest(&self.words);
        for bytes in [bytes_first, !bytes_first] {
            let line = if bytes { &mut self.bytes } else { &mut self.words };
            let Some((_, tag)) = line.front() else { continue };
            match send(*tag) {
                Sent::Done => {
                    line.pop_front();
                    return true;
                }
                Sent::NoPlace => {}
                // What is younger finds no slot, either.
                Sent::Full => return false,
            }
        }
        false
    }
}

impl SendQueue {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts an operation behind those that wait for the same peer.
    pub fn push(&mut self, peer: u32, age: u64, tag: Tag, is_large: bool) {
        let place = |line: &mut Line| {
            if is_large { &mut line.bytes } else { &mut line.words }.push_back((age, tag));
        };
        self.0.put(peer, place);
    }

    /// Sends what can be sent, see PeerTurns::serve(). Returns how many operations have left the
    /// queue.
    pub fn serve(&mut self, mut send: impl FnMut(Tag) -> Sent) -> usize {
        self.0.serve(|line| line.send_one(&mut send))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Peers 1 and 2 have operations of bytes; each has its age as its tag.
    fn queue(waiting: &[(u32, u64)]) -> SendQueue {
        let mut queue = SendQueue::default();
        waiting.iter().for_each(|(peer, age)| queue.push(*peer, *age, Tag(*age), true));
        queue
    }

    fn serve(queue: &mut SendQueue, mut chunks: usize) -> Vec<u64> {
        let mut sent = Vec::new();
        queue.serve(|tag| {
            if chunks == 0 {
                return Sent::NoPlace;
            }
            chunks -= 1;
            sent.push(tag.0);
            Sent::Done
        });
        sent
    }

    #[test]
    fn the_oldest_of_each_peer_comes_first_and_the_peers_in_turn() {
        let mut waiting = queue(&[(1, 1), (1, 2), (1, 3), (2, 4), (2, 5)]);
        assert_eq!(serve(&mut waiting, 1), [1]);
        assert_eq!(serve(&mut waiting, 1), [4], "peer 2 was refused, so it is the first now");
        assert_eq!(serve(&mut waiting, 2), [2, 5]);
        assert!(!waiting.is_empty());
        assert_eq!(serve(&mut waiting, 9), [3]);
        assert!(waiting.is_empty());
    }

    #[test]
    fn who_is_posted_again_and_again_overtakes_nobody() {
        let mut waiting = queue(&[(1, 1), (1, 2), (1, 3)]);
        let mut order = Vec::new();
        for age in 4..10 {
            order.extend(serve(&mut waiting, 1));
            waiting.push(1, age, Tag(age), true);
        }
        assert_eq!(order, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn words_pass_bytes_that_have_no_place_and_nothing_passes_where_the_peer_is_full() {
        let mut waiting = queue(&[(1, 1)]);
        waiting.push(1, 2, Tag(2), false);
        waiting.push(1, 3, Tag(3), false);
        let mut sent = Vec::new();
        let no_place = |tag: Tag| match tag.0 {
            1 => Sent::NoPlace,
            _ => Sent::Done,
        };
        waiting.serve(|tag| {
            let end = no_place(tag);
            sent.extend((end == Sent::Done).then_some(tag.0));
            end
        });
        assert_eq!(sent, [2, 3]);
        waiting.push(1, 4, Tag(4), false);
        let mut asked = Vec::new();
        assert_eq!(
            waiting.serve(|tag| {
                asked.push(tag.0);
                Sent::Full
            }),
            0
        );
        assert_eq!(asked, [1]);
    }

    #[test]
    fn a_peer_that_takes_nothing_stops_no_other() {
        let mut waiting = queue(&[(1, 1), (2, 2), (2, 3)]);
        let mut sent = Vec::new();
        let count = waiting.serve(|tag| {
            if tag.0 == 1 {
                return Sent::Full;
            }
            sent.push(tag.0);
            Sent::Done
        });
        assert_eq!((count, sent), (2, vec![2, 3]));
    }
}
