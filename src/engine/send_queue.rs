//! The send queue: operations in flight whose request has not been sent, because all request slots
//! of the peer are in use, or because no large slot is free for its bytes. Each peer has a line in
//! order of age, and the peers are served round robin (`engine::peer_turns`).
//!
//! A refused operation keeps its place in the line, so no younger one of its kind overtakes it, and
//! a peer that accepts nothing delays no other.

use crate::engine::in_flight::Tag;
use crate::engine::peer_turns::{PeerLine, PeerTurns};
use std::collections::VecDeque;

/// The result of an attempt to send an operation's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The request has been sent, or the operation has ended.
    Done,
    /// No large slot is free for its bytes.
    NoPlace,
    /// All request slots of the peer are in use.
    Full,
}

/// The operations that wait for one peer, each with its age (a command number; smaller is older).
#[derive(Default)]
struct Line {
    /// Operations that need one of the few large slots: writes of many bytes, and reads of many
    /// bytes for whose answers no large slot is reserved yet. They may wait for operations in
    /// `words` that hold large slots. Operations in `words` never wait for those in `bytes`.
    bytes: VecDeque<(u64, Tag)>,
    /// Operations that need a request slot only.
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
    /// Sends the older one of the two first operations, or else the other. False: neither can be
    /// sent.
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
                // Tries no other operation. A read of many bytes would find no request slot,
                // either, and a younger write of many bytes waits for its turn.
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

    /// The operations that are sent next, with their peers.
    pub fn next(&self) -> impl Iterator<Item = (u32, Tag)> {
        self.0.waiting().flat_map(|(peer, line)| {
            let first = [line.bytes.front(), line.words.front()];
            first.into_iter().flatten().map(move |(_, tag)| (peer, *tag))
        })
    }

    /// Sends the operations that can be sent, see PeerTurns::serve(). Returns how many have left
    /// the queue.
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
    fn younger_operations_overtake_no_older_one() {
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
