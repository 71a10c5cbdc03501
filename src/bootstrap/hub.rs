//! The hub of a world: one socket to each rank, and the `rules` between
//! them. It lives in `llcl-run`, or in a thread of a process whose threads are ranks.
//!
//! The hub never waits for a rank: what a rank does not read stays queued here.
//!
//! Where the ranks run on several machines, each machine has a hub (`several`).

mod several;

use crate::bootstrap::log::Log;
use crate::bootstrap::protocol::{MAX_RANKS, PACKET, Reply, Request};
use crate::bootstrap::rules::{Outgoing, Rules, Verdict};
use crate::fail;
use crate::util::epoll::{Epoll, Ready};
use crate::util::socket::{self, Room};
use crate::util::status::{Result, Status};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// What the owner of the hub should know.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A rank wants the whole job to end with this code, and to end by itself; the others have so
    /// many milliseconds.
    Abort { rank: u32, code: i32, grace_ms: u32 },
    /// A rank sent what no rank of this release sends; it counts as dead from now on, and is
    /// killed.
    Nonsense { rank: u32, what: &'static str },
    /// A rank that has not left has closed its connection, and its process has not ended yet.
    /// Mostly it is just ending. It counts as dead when it has: at the latest after [`Hub::evict`].
    Closed { rank: u32 },
}

/// A rank that reads nothing while this many packets wait for it is not read from either.
const BACKLOG: usize = 256;

/// Marks an epoll key as "the process of this rank" and not "the socket of this rank".
const PROCESS: u64 = 1 << 32;

struct Packet {
    bytes: Vec<u8>,
    /// The descriptor of a card, and whose card it is.
    fd: Option<(Arc<OwnedFd>, u32)>,
}

struct Connection {
    socket: OwnedFd,
    queue: VecDeque<Packet>,
    /// What epoll waits for at present.
    interest: i32,
}

/// See the head of the module.
pub struct Hub {
    epoll: Epoll,
    rules: Rules,
    /// `None` once the rank has closed its end or is dead.
    connections: Vec<Option<Connection>>,
    /// The processes that joined, until they leave or end: an end is noticed though somebody else
    /// still holds the rank's socket, and the rank counts as dead when nothing of it runs any more.
    processes: Vec<Option<OwnedFd>>,
    buffer: Vec<u8>,
    /// What joins it to the hubs of other machines, where there are some.
    log: Option<Log>,
    /// Ranks of this machine that have left or have died, as the log may not say yet.
    departed: Vec<bool>,
}

impl Hub {
    /// A hub, and the ends of its sockets that the ranks 0, 1, ... are to be given.
    pub fn new(size: u32) -> Result<(Hub, Vec<OwnedFd>)> {
        if !(1..=MAX_RANKS).contains(&size) {
            fail!(ERR_INVALID, "size is {size}, expected 1 to {MAX_RANKS}");
        }
        let pairs = (0..size).map(|_| socket::pair()).collect::<Result<Vec<_>>>()?;
        let (ours, theirs) = pairs.into_iter().unzip();
        Ok((Hub::of(ours)?, theirs))
    }

    /// A hub whose sockets lead to the ranks 0, 1, ...
    pub fn of(sockets: Vec<OwnedFd>) -> Result<Hub> {
        Hub::with(sockets.into_iter().map(Some).collect(), None)
    }

    /// A hub whose sockets lead to the ranks 0, 1, ... as far as they are on this machine; the log
    /// leads to the others.
    pub(super) fn with(sockets: Vec<Option<OwnedFd>>, log: Option<Log>) -> Result<Hub> {
        let size = sockets.len() as u32;
        let is_near = |rank| log.as_ref().is_none_or(|log| log.is_near(rank));
        let mut hub = Hub {
            epoll: Epoll::new()?,
            rules: Rules::of_machine(size, is_near),
            connections: Vec::with_capacity(size as usize),
            processes: (0..size).map(|_| None).collect(),
            buffer: vec![0; PACKET],
            log,
            departed: vec![false; size as usize],
        };
        for (rank, socket) in (0..).zip(sockets) {
            let interest = libc::EPOLLIN;
            if let Some(socket) = &socket {
                hub.epoll.add(socket.as_fd(), interest, rank)?;
            }
            let connection = |socket| Connection { socket, queue: VecDeque::new(), interest };
            hub.connections.push(socket.map(connection));
        }
        Ok(hub)
    }

    /// Whether no rank of this machine is in the world any more, nor will be, and none of another
    /// machine needs this hub.
    pub fn is_over(&self) -> bool {
        match &self.log {
            None => self.rules.all_gone(),
            Some(log) if log.decides() => self.rules.all_gone() && log.is_told(),
            Some(log) => log.is_told() && self.near_ones_are_gone(log),
        }
    }

    /// Sends a signal to every process that has joined and has neither left nor ended, but those of
    /// `spared`. False: there is none.
    pub fn signal_all_but(&self, spared: &[u32], signal: i32) -> bool {
        let others = self.processes.iter().zip(0..).filter(|(_, rank)| !spared.contains(rank));
        let processes = others.filter_map(|(process, _)| process.as_ref());
        processes.map(|process| socket::signal(process.as_fd(), signal)).count() > 0
    }

    /// Serves what is ready, without waiting. Call it when [`Hub::as_fd`] is readable.
    pub fn turn(&mut self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for Ready { key, events: what } in self.epoll.wait(0)? {
            let rank = (key & !PROCESS) as u32;
            if key & PROCESS != 0 {
                self.ended(rank, &mut events);
            } else {
                if what & (libc::EPOLLIN | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0 {
                    self.read(rank, 16, &mut events);
                }
                self.send(rank);
            }
        }
        self.dispatch();
        Ok(events)
    }

    /// The process of this rank has ended: serves what it still said, then counts it as dead
    /// unless it had left.
    pub fn process_ended(&mut self, rank: u32) -> Vec<Event> {
        let mut events = Vec::new();
        self.ended(rank, &mut events);
        self.dispatch();
        events
    }

    /// A rank that has closed its connection must end now. False: it has ended, or has left.
    pub fn evict(&mut self, rank: u32) -> bool {
        match &self.processes[rank as usize] {
            Some(process) if self.connections[rank as usize].is_none() => {
                // Its end is noticed by turn().
                socket::kill(process.as_fd());
                true
            }
            _ => false,
        }
    }

    /// Has the rank joined and ended without leaving?
    pub fn has_deserted(&self, rank: u32) -> bool {
        self.rules.has_deserted(rank)
    }

    fn ended(&mut self, rank: u32, events: &mut Vec<Event>) {
        self.read(rank, usize::MAX, events);
        if self.is_gone(rank) {
            // It left in order. Another program may still hold the socket and try to join; it is
            // to be told why it may not, so the connection stays.
            self.forget_process(rank);
        } else {
            self.disconnect(rank);
        }
    }

    /// Reads and serves at most `limit` packets of a rank.
    fn read(&mut self, rank: u32, limit: usize, events: &mut Vec<Event>) {
        for _ in 0..limit {
            let Some(connection) = &self.connections[rank as usize] else { return };
            let (size, fd) = match socket::receive(connection.socket.as_fd(), &mut self.buffer) {
                Ok((0, _)) => return self.closed(rank, events),
                Ok(received) => received,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.closed(rank, events),
            };
            match self.serve(rank, size, fd, events) {
                Verdict::Fine => {}
                Verdict::Abort { code, grace_ms } => {
                    events.push(Event::Abort { rank, code, grace_ms });
                }
                Verdict::Nonsense(what) => {
                    events.push(Event::Nonsense { rank, what });
                    return self.disconnect(rank);
                }
            }
        }
    }

    fn serve(
        &mut self,
        rank: u32,
        size: usize,
        mut fd: Option<OwnedFd>,
        events: &mut Vec<Event>,
    ) -> Verdict {
        let Some((token, request)) = Request::decode(&self.buffer[..size]) else {
            return Verdict::Nonsense("a packet that is not understood: of another release?");
        };
        if self.log.is_some() && several::concerns_all(&request) {
            return self.submit(rank, request, size, events);
        }
        let was_gone = self.rules.is_gone(rank);
        if matches!(request, Request::Join { .. }) && !was_gone && !self.rules.is_joined(rank) {
            self.remember_process(rank, fd.take());
        }
        let verdict = self.rules.handle(rank, token, request, fd);
        if !was_gone && self.rules.is_gone(rank) {
            self.forget_process(rank);
        }
        verdict
    }

    /// Whether a rank has left or has died.
    fn is_gone(&self, rank: u32) -> bool {
        self.departed[rank as usize] || self.rules.is_gone(rank)
    }

    fn remember_process(&mut self, rank: u32, process: Option<OwnedFd>) {
        let Some(process) = process else { return };
        let key = u64::from(rank) | PROCESS;
        // What cannot be watched is no process; the end of the connection is noticed all the same.
        let watched = self.epoll.add(process.as_fd(), libc::EPOLLIN, key).is_ok();
        self.processes[rank as usize] = watched.then_some(process);
    }

    fn forget_process(&mut self, rank: u32) {
        if let Some(process) = self.processes[rank as usize].take() {
            // Explicitly, because the rank may hold the same open file: closing ours is not enough.
            self.epoll.remove(process.as_fd());
        }
    }

    /// The rank has closed its end. Others pass over what a dead rank has half sent, so it counts
    /// as dead only when its process, where that is known, has ended.
    fn closed(&mut self, rank: u32, events: &mut Vec<Event>) {
        if self.is_gone(rank) || self.processes[rank as usize].is_none() {
            return self.disconnect(rank);
        }
        self.hang_up(rank);
        events.push(Event::Closed { rank });
    }

    fn hang_up(&mut self, rank: u32) {
        if let Some(connection) = self.connections[rank as usize].take() {
            self.epoll.remove(connection.socket.as_fd());
        }
    }

    /// The rank is dead from now on, unless it had left.
    fn disconnect(&mut self, rank: u32) {
        if let (Some(process), false) = (&self.processes[rank as usize], self.is_gone(rank)) {
            // Nothing of it may run on; see closed().
            socket::kill(process.as_fd());
        }
        self.forget_process(rank);
        self.hang_up(rank);
        match self.log {
            None => self.rules.gone(rank, false),
            Some(_) => self.submit_death(rank),
        }
    }

    /// Queues and sends what the rules have decided.
    fn dispatch(&mut self) {
        let mut ranks = Vec::new();
        for Outgoing { to, token, reply, fd } in self.rules.take_outgoing() {
            if let Some(connection) = &mut self.connections[to as usize] {
                let fd = fd.zip(reply.whose_card());
                connection.queue.push_back(Packet { bytes: reply.encode(token), fd });
                ranks.push(to);
            }
        }
        ranks.sort_unstable();
        ranks.dedup();
        for rank in ranks {
            self.send(rank);
        }
    }

    fn send(&mut self, rank: u32) {
        let Some(connection) = &mut self.connections[rank as usize] else { return };
        while let Some(packet) = connection.queue.front_mut() {
            let fd = packet.fd.as_ref().map(|(fd, _)| fd.as_fd());
            match socket::send(connection.socket.as_fd(), &packet.bytes, fd, Room::Now) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e)
                    if is_about_descriptors(&e)
                        && let Some((_, rank)) = packet.fd =>
                {
                    *packet = refusal(rank, &e);
                    continue;
                }
                // The rank has closed its end. That is noticed by reading, in the order in which
                // it said things.
                Err(_) => {
                    connection.queue.clear();
                    break;
                }
            }
            connection.queue.pop_front();
        }
        let mut interest = 0;
        if !connection.queue.is_empty() {
            interest |= libc::EPOLLOUT;
        }
        if connection.queue.len() < BACKLOG {
            interest |= libc::EPOLLIN;
        }
        if interest != connection.interest {
            connection.interest = interest;
            // It cannot fail: the socket is in the set.
            let _ = self.epoll.change(connection.socket.as_fd(), interest, rank.into());
        }
    }
}

impl AsFd for Hub {
    /// Readable when [`Hub::turn`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn is_about_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ETOOMANYREFS | libc::EMFILE | libc::ENFILE))
}

fn refusal(rank: u32, error: &io::Error) -> Packet {
    let text = format!("peer is {rank}: its descriptor cannot be sent: {error}");
    let reply = Reply::Card { rank, status: Status::ERR_NO_MEMORY.0, bytes: text.into_bytes() };
    Packet { bytes: reply.encode(0), fd: None }
}

#[cfg(test)]
mod tests;
