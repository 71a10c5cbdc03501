//! The watcher thread, which receives the hub's answers, the news of deaths, and the cards of other
//! ranks.

use super::{Answer, Deaths, Over, Shared, checked, lock};
use crate::bootstrap::Card;
use crate::bootstrap::protocol::{PACKET, Reply, Request};
use crate::fail;
use crate::util::socket::{self, Room, interest};
use crate::util::status::{Error, Result, Status};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Weak;
use std::sync::atomic::Ordering;

/// Most packets that are received before the cards in them are passed on, which bounds the number
/// of open descriptors.
const TOGETHER: usize = 32;

/// What has been received.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// TOGETHER packets; more may have arrived.
    Some,
    /// All packets that have arrived.
    All,
    /// The hub has closed the connection.
    End,
}

impl Shared {
    /// Runs on the watcher thread until `close` or the end of the hub.
    pub(super) fn watch(&self, socket: &OwnedFd) {
        let mut buffer = vec![0; PACKET];
        // Ranks whose cards are wanted, while the socket has no room for the request.
        let mut unsent = Vec::new();
        loop {
            let room = if unsent.is_empty() { 0 } else { libc::POLLOUT };
            let hub = self.hub.as_ref().unwrap_or(socket);
            let mut waits = [
                interest(socket.as_fd(), libc::POLLIN | room),
                interest(self.changed.as_fd(), libc::POLLIN),
                interest(hub.as_fd(), libc::POLLIN),
            ];
            if socket::poll(&mut waits, -1).is_err() {
                return self.hub_gone(socket);
            }
            if waits[1].revents != 0 {
                self.changed.clear();
                // Acquire: pairs with the Release in close().
                if self.stopped.load(Ordering::Acquire) {
                    return;
                }
                self.wanted.take(&mut unsent);
            }
            if !unsent.is_empty() {
                self.look_up(socket, &mut unsent);
            }
            let has_ended = self.hub.is_some() && waits[2].revents != 0;
            match self.listen(socket, &mut buffer) {
                Heard::Some => {}
                Heard::All if !has_ended => {}
                Heard::All | Heard::End => return self.hub_gone(socket),
            }
        }
    }

    /// Receives packets that have arrived.
    fn listen(&self, socket: &OwnedFd, buffer: &mut [u8]) -> Heard {
        let (mut cards, mut heard) = (Vec::new(), Heard::Some);
        for _ in 0..TOGETHER {
            match socket::receive(socket.as_fd(), buffer) {
                Ok((size, fd)) if size > 0 => self.dispatch(&buffer[..size], fd, &mut cards),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => heard = Heard::All,
                Ok(_) | Err(_) => heard = Heard::End,
            }
            if heard != Heard::Some {
                break;
            }
        }
        self.deliver_cards(cards);
        heard
    }

    /// Asks the hub for the cards of `peers`, which is empty afterwards unless the socket has no
    /// room.
    pub(super) fn look_up(&self, socket: &OwnedFd, peers: &mut Vec<u32>) {
        let request = Request::Lookup { peers: peers.clone() }.encode(0);
        // The lock is held while it sends, as in say().
        let open = lock(&self.socket);
        if open.is_none() {
            // end() answers the waiting threads.
            return peers.clear();
        }
        match socket::send(socket.as_fd(), &request, None, Room::Now) {
            Ok(()) => peers.clear(),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => {
                drop(open);
                let text = format!("sending to the launcher: {e}");
                let error = || Err(Error::new(Status::ERR_SYSTEM, text.clone()));
                self.deliver_cards(peers.drain(..).map(|peer| (peer, error())).collect());
            }
        }
    }

    fn deliver_cards(&self, cards: Vec<(u32, Result<Card>)>) {
        if cards.is_empty() {
            return;
        }
        cards.iter().for_each(|(peer, _)| self.wanted.answered(*peer));
        // Called without the lock: dropping the last reference may end this connection.
        let call = lock(&self.on_cards).clone();
        if let Some(call) = call {
            call(cards);
        }
    }

    fn dispatch(&self, packet: &[u8], fd: Option<OwnedFd>, cards: &mut Vec<(u32, Result<Card>)>) {
        match Reply::decode(packet) {
            Some((_, Reply::Card { rank, status, bytes })) if (rank as usize) < self.gone.len() => {
                cards.push((rank, card(rank, Answer { status, bytes }, fd)));
            }
            Some((_, Reply::FarCard { rank, bytes })) if (rank as usize) < self.gone.len() => {
                cards.push((rank, Ok(Card { blob: bytes, fd: None })));
            }
            Some((token, Reply::Answer { status, bytes })) => {
                // If the token is unknown, the thread that asked no longer waits.
                if let Some(slot) = lock(&self.pending).answers.get_mut(&token) {
                    *slot = Some(Answer { status, bytes });
                    self.arrived.notify_all();
                }
            }
            Some((_, Reply::Gone { ranks })) => {
                for gone in ranks {
                    self.mark_gone(gone.rank);
                    if !gone.left {
                        self.killed(gone.rank);
                    }
                }
            }
            // The hub checked the release when this rank joined, so this cannot be its packet.
            Some((_, Reply::Card { .. } | Reply::FarCard { .. })) | None => {}
        }
    }

    pub(super) fn mark_gone(&self, peer: u32) {
        let Some(gone) = self.gone.get(peer as usize) else { return };
        // Release: a thread that sees the mark sees the effects of the hub's earlier packets; pairs
        // with the Acquire in `is_dead` and `on_death`.
        gone.store(true, Ordering::Release);
        let mut deaths = lock(&self.deaths);
        let Deaths { call, reported } = &mut *deaths;
        if let (Some(call), false) = (call, reported[peer as usize]) {
            reported[peer as usize] = true;
            call(peer);
        }
    }

    /// Passes a death on. The lock is held meanwhile, so that a duplicate which leaves can wait.
    fn killed(&self, rank: u32) {
        let mut killed = lock(&self.killed);
        killed.ranks.push(rank);
        let duplicates = killed.duplicates.iter().filter_map(Weak::upgrade);
        duplicates.for_each(|duplicate| duplicate.killed(rank));
    }

    /// The hub has ended: ends all requests and marks all ranks as dead.
    fn hub_gone(&self, socket: &OwnedFd) {
        // A child of the hub's process may hold the other end. Sends would wait for room then.
        socket::shut_down(socket.as_fd());
        self.end(Over::HubGone);
        for peer in (0..self.gone.len() as u32).filter(|peer| *peer != self.rank) {
            self.mark_gone(peer);
        }
    }

    pub(super) fn end(&self, over: Over) {
        lock(&self.pending).over.get_or_insert(over);
        self.arrived.notify_all();
        // The cards that are asked for will not arrive either.
        let mut cards = Vec::new();
        self.wanted.pending(|peer| cards.push((peer, Err(over.error()))));
        self.deliver_cards(cards);
    }
}

/// The card in an answer of the hub.
fn card(rank: u32, answer: Answer, fd: Option<OwnedFd>) -> Result<Card> {
    let blob = checked(answer)?.bytes;
    match fd {
        Some(fd) => Ok(Card { blob, fd: Some(fd) }),
        None => fail!(
            ERR_NO_MEMORY,
            "peer is {rank}: its descriptor cannot be taken, expected room below the limit of open \
             files"
        ),
    }
}
