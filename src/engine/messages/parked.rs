//! Parked responses: responses that found no credit at their requester. They wait here after their
//! handlers have returned, and the slots of their requests are free. A rank with MOST parked
//! responses handles no further requests, only responses and replies. So it always accepts its
//! peers' responses, and two ranks that send each other many requests make progress.

use crate::engine::messages::HEADER;
use crate::engine::peer_turns::PeerTurns;
use crate::transport::carrier::Bytes;
use crate::transport::frame::Frame;
use crate::util::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// Most parked responses of a rank.
const MOST: usize = 256;

/// A response.
pub struct Response {
    /// The requester.
    pub peer: u32,
    /// The number of the requester's handler.
    pub id: u16,
    /// See Frame.
    pub kind: u8,
    /// See Frame.
    pub label: u16,
    /// The tag of the request, or 0 if the requester does not wait for its end.
    pub tag: u64,
    header: ([u8; HEADER], usize),
    payload: Box<[u8]>,
    absent: bool,
}

impl Response {
    /// A copy of a frame.
    pub fn of(peer: u32, frame: &Frame) -> Response {
        let mut header = ([0; HEADER], frame.header.len());
        header.0[..frame.header.len()].copy_from_slice(frame.header);
        let Frame { id, kind, label, tag, absent, .. } = *frame;
        Response { peer, id, kind, label, tag, header, payload: frame.payload.into(), absent }
    }

    /// The number of bytes of its header and of its payload.
    pub fn bytes(&self) -> Bytes {
        (self.header.1, self.payload.len())
    }

    /// The frame to be sent.
    pub fn frame(&self) -> Frame<'_> {
        let Response { id, kind, label, tag, absent, .. } = *self;
        let header = &self.header.0[..self.header.1];
        Frame { id, kind, label, tag, header, payload: &self.payload, absent }
    }
}

/// See the head of the file.
#[derive(Default)]
pub struct Parked {
    /// A line for each peer, so that an attempt looks at no more than the first response to a peer
    /// without credit.
    turns: Mutex<PeerTurns<VecDeque<Response>>>,
    /// The number of parked responses, including one that a thread tries to send.
    count: AtomicUsize,
}

impl Parked {
    /// Whether there are any.
    #[inline(always)]
    pub fn any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Whether a request may be handled: its response could be parked. Handlers that run at the
    /// same time may exceed MOST by one each.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.count.load(Ordering::Relaxed) < MOST
    }

    /// Whether a response to this peer is parked: later ones wait behind it.
    #[inline]
    pub fn has_for(&self, peer: u32) -> bool {
        self.any() && self.lock().line(peer).is_some_and(|line| !line.is_empty())
    }

    fn lock(&self) -> MutexGuard<'_, PeerTurns<VecDeque<Response>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parks a response. True: none to its peer was parked before.
    #[cold]
    pub fn park(&self, response: Response) -> bool {
        let (mut turns, mut first) = (self.lock(), false);
        turns.put(response.peer, |line| {
            first = line.is_empty();
            line.push_back(response);
        });
        self.count.fetch_add(1, Ordering::Relaxed);
        first
    }

    /// Calls `name` with the first parked response to each peer, which is the next one to be sent.
    pub fn each_first(&self, name: impl FnMut(&Response)) {
        self.lock().waiting().filter_map(|(_, line)| line.front()).for_each(name);
    }

    /// Calls `send` for parked responses, those to one peer in the order in which they were parked,
    /// and removes those for which it returns true. After a false, skips the other responses to
    /// that peer. Returns the number removed. None: another thread has the lock, and may not have
    /// seen the latest credit.
    #[cold]
    pub fn send(&self, mut send: impl FnMut(&Response) -> bool) -> Option<usize> {
        let mut turns = self.turns.try_lock().ok()?;
        let done = turns.serve(|line| {
            let sent = line.front().is_some_and(&mut send);
            if sent {
                line.pop_front();
            }
            sent
        });
        self.count.fetch_sub(done, Ordering::Relaxed);
        Some(done)
    }
}

#[cfg(test)]
fn to(peer: u32, id: u16) -> Response {
    let (header, payload) = (&b"head"[..], &b"bytes"[..]);
    let frame = Frame { id, kind: 0, label: 7, tag: 9, header, payload, absent: false };
    Response::of(peer, &frame)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_peer_without_credit_holds_up_its_own_responses_only() {
        let parked = Parked::default();
        for (peer, id) in [(1, 0), (2, 1), (1, 2), (3, 3), (2, 4)] {
            parked.park(to(peer, id));
        }
        let mut asked = Vec::new();
        let done = parked.send(|response| {
            asked.push(response.id);
            assert_eq!(
                (response.frame().header, response.frame().payload),
                (&b"head"[..], &b"bytes"[..])
            );
            response.peer != 1
        });
        assert_eq!((done, asked), (Some(3), vec![0, 1, 3, 4]));
        assert!(parked.has_for(1) && !parked.has_for(2));
        assert!(parked.any());
        assert_eq!(parked.send(|_| true), Some(2));
        assert!(!parked.any());
    }

    #[test]
    fn no_request_is_handled_while_as_many_wait_as_may() {
        let parked = Parked::default();
        (0..MOST).for_each(|at| assert_eq!(parked.park(to(1, 0)), at == 0));
        assert!(!parked.has_room());
        let mut left = 1;
        parked.send(|_| std::mem::replace(&mut left, 0) == 1);
        assert!(parked.has_room());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Two threads park a response each while a third one sends. Each response is sent once or is
    /// still parked, the count never exceeds 2, and a thread that parks the first one learns it.
    #[test]
    fn loom_what_is_parked_is_sent_once_or_waits() {
        let mut bounded = loom::model::Builder::new();
        bounded.preemption_bound = Some(3);
        bounded.check(|| {
            let parked = Arc::new(Parked::default());
            let park = |id: u16| {
                let parked = parked.clone();
                thread::spawn(move || {
                    let first = parked.park(to(1, id));
                    assert!(parked.count.load(Ordering::Relaxed) <= 2);
                    first
                })
            };
            let threads = [park(0), park(1)];
            let mut sent = Vec::new();
            let mut send = || {
                parked.send(|response| {
                    sent.push(response.id);
                    true
                })
            };
            send();
            assert!(parked.count.load(Ordering::Relaxed) <= 2);
            let firsts = threads.map(|thread| thread.join().unwrap());
            assert!(firsts.contains(&true), "nobody would wake who sends");
            send();
            sent.sort_unstable();
            assert_eq!(sent, [0, 1]);
            assert!(!parked.any());
        });
    }

    /// Credit comes while another thread tries to send. A thread that is told that nothing could be
    /// sent may sleep, so no response may be left then.
    #[test]
    fn loom_who_finds_no_credit_leaves_no_response_that_has_some() {
        loom::model(|| {
            let (parked, credit) = (Arc::new(Parked::default()), Arc::new(AtomicUsize::new(0)));
            parked.park(to(1, 0));
            let send = |parked: &Parked, credit: &AtomicUsize| {
                parked.send(|_| credit.load(Ordering::Acquire) > 0)
            };
            let other = {
                let (parked, credit) = (parked.clone(), credit.clone());
                thread::spawn(move || send(&parked, &credit))
            };
            credit.store(1, Ordering::Release);
            if send(&parked, &credit) == Some(0) {
                assert!(!parked.any(), "the other thread has sent it");
            }
            other.join().unwrap();
        });
    }
}
