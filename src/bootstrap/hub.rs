//! The hub of a world: it has a socket to each rank, and applies the `rules` to their requests. It
//! runs in `llcl-run`, or in a thread of a process whose threads are ranks.
//!
//! The hub never waits for a rank: packets that a rank does not read stay queued here.
//!
//! Where the ranks run on several machines, each machine has a hub (`several`).

mod several;

use crate::bootstrap::log::Log;
use crate::bootstrap::protocol::{MAX_RANKS, PACKET, Reply, Request};
use crate::bootstrap::rules::{Outgoing, Rules, Verdict};
use crate::fail;
use crate::util::epoll::{Epoll, Ready};
use crate::util::socket::{self, Room, Timer};
use crate::util::status::{Result, Status};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// An event for the owner of the hub.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A rank ends the whole job with this code. It ends by itself; the others have `grace_ms`
    /// milliseconds to end.
    Abort { rank: u32, code: i32, grace_ms: u32 },
    /// A rank sent a packet that no rank of this release sends. From now on it counts as dead, and
    /// the hub kills it.
    ProtocolError { rank: u32, what: &'static str },
    /// A rank that has not left has closed its connection, and its process has not ended yet. In
    /// most cases it is ending. The rank counts as dead when its process has ended; the owner of
    /// the hub calls [`Hub::kill_closed`] to bring that about.
    Closed { rank: u32 },
}

/// While so many packets wait for a rank that does not read, the hub does not read from that rank.
const BACKLOG: usize = 256;

/// Marks an epoll key as "the process of this rank" and not "the socket of this rank".
const PROCESS: u64 = 1 << 32;
/// The epoll key of the timer.
const TIMER: u64 = 1 << 33;

struct Packet {
    bytes: Vec<u8>,
    /// The descriptor of a card, and whose card it is.
    fd: Option<(Arc<OwnedFd>, u32)>,
}

struct Connection {
    socket: OwnedFd,
    queue: VecDeque<Packet>,
    /// The first packet carries a descriptor that may not be in flight yet. It is tried again by a
    /// timer, until this time.
    held: Option<Instant>,
    /// The events for which epoll waits at present.
    interest: i32,
}

/// See the head of the module.
pub struct Hub {
    epoll: Epoll,
    /// Wakes the hub while a connection is held.
    timer: Timer,
    rules: Rules,
    /// `None` once the rank has closed its end or is dead.
    connections: Vec<Option<Connection>>,
    /// The processes that joined, until they leave or end. By its pidfd the hub notices the end of
    /// a process even if another process holds the rank's socket; the rank counts as dead only
    /// then.
    processes: Vec<Option<OwnedFd>>,
    buffer: Vec<u8>,
    /// The connection to the hubs of other machines, if there are any.
    log: Option<Log>,
    /// Ranks of this machine that have left or died; the log may have the news later.
    departed: Vec<bool>,
}

impl Hub {
    /// A hub, and the other ends of its sockets, for the ranks 0, 1, ...
    pub fn new(size: u32) -> Result<(Hub, Vec<OwnedFd>)> {
        if !(1..=MAX_RANKS).contains(&size) {
            fail!(ERR_INVALID, "size is {size}, expected 1 to {MAX_RANKS}");
        }
        let pairs = (0..size).map(|_| socket::pair()).collect::<Result<Vec<_>>>()?;
        let (ours, theirs) = pairs.into_iter().unzip();
        Ok((Hub::of(ours)?, theirs))
    }

    /// A hub with these sockets to the ranks 0, 1, ...
    pub fn of(sockets: Vec<OwnedFd>) -> Result<Hub> {
        Hub::with(sockets.into_iter().map(Some).collect(), None)
    }

    /// A hub with sockets to the ranks of this machine (None for the others), and the log to the
    /// other hubs.
    pub(super) fn with(sockets: Vec<Option<OwnedFd>>, log: Option<Log>) -> Result<Hub> {
        let size = sockets.len() as u32;
        let is_near = |rank| log.as_ref().is_none_or(|log| log.is_near(rank));
        let mut hub = Hub {
            epoll: Epoll::new()?,
            timer: Timer::new()?,
            rules: Rules::of_machine(size, is_near),
            connections: Vec::with_capacity(size as usize),
            processes: (0..size).map(|_| None).collect(),
            buffer: vec![0; PACKET],
            log,
            departed: vec![false; size as usize],
        };
        hub.epoll.add(hub.timer.as_fd(), libc::EPOLLIN, TIMER)?;
        for (rank, socket) in (0..).zip(sockets) {
            let interest = libc::EPOLLIN;
            if let Some(socket) = &socket {
                hub.epoll.add(socket.as_fd(), interest, rank)?;
            }
            let queue = VecDeque::new();
            let connection = |socket| Connection { socket, queue, held: None, interest };
            hub.connections.push(socket.map(connection));
        }
        Ok(hub)
    }

    /// Whether the hub may end: all ranks of this machine have left or died, and no rank of another
    /// machine needs this hub. The hub that decides on the order of the log has then sent its last
    /// packet here, since the departures have come back from it. If it has ended, this one must
    /// end, too.
    pub fn is_over(&self) -> bool {
        match &self.log {
            None => self.rules.all_gone(),
            Some(log) if log.is_cut_off() => true,
            Some(log) if log.decides() => self.rules.all_gone() && log.is_told(),
            Some(log) => log.is_told() && self.near_ones_are_gone(log),
        }
    }

    /// Sends a signal to every process that has joined and has neither left nor ended, except those
    /// of `spared`. False: there is no such process.
    pub fn signal_all_but(&self, spared: &[u32], signal: i32) -> bool {
        let others = self.processes.iter().zip(0..).filter(|(_, rank)| !spared.contains(rank));
        let processes = others.filter_map(|(process, _)| process.as_ref());
        processes.map(|process| socket::signal(process.as_fd(), signal)).count() > 0
    }

    /// Serves the sockets that are ready, without waiting. Call it when [`Hub::as_fd`] is readable.
    pub fn turn(&mut self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for Ready { key, events: what } in self.epoll.wait(0)? {
            let rank = (key & !PROCESS) as u32;
            if key == TIMER {
                self.send_held();
            } else if key & PROCESS != 0 {
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

    /// The process of this rank has ended: serves the requests that it had sent, then marks it as
    /// dead unless it had left.
    pub fn process_ended(&mut self, rank: u32) -> Vec<Event> {
        let mut events = Vec::new();
        self.ended(rank, &mut events);
        self.dispatch();
        events
    }

    /// Kills a rank that has closed its connection. False: it has ended, or has left.
    pub fn kill_closed(&mut self, rank: u32) -> bool {
        match &self.processes[rank as usize] {
            Some(process) if self.connections[rank as usize].is_none() => {
                // Its end is noticed by turn().
                socket::kill(process.as_fd());
                true
            }
            _ => false,
        }
    }

    /// Whether the rank has joined and then died.
    pub fn died_in_world(&self, rank: u32) -> bool {
        self.rules.died_in_world(rank)
    }

    fn ended(&mut self, rank: u32, events: &mut Vec<Event>) {
        self.read(rank, usize::MAX, events);
        if self.is_gone(rank) {
            // It left in order. Another program may still hold the socket and try to join. The
            // connection stays, so that the hub can tell that program why it may not.
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
                Verdict::ProtocolError(what) => {
                    events.push(Event::ProtocolError { rank, what });
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
            return Verdict::ProtocolError("a packet that is not understood: of another release?");
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
    pub fn is_gone(&self, rank: u32) -> bool {
        self.departed[rank as usize] || self.rules.is_gone(rank)
    }

    fn remember_process(&mut self, rank: u32, process: Option<OwnedFd>) {
        let Some(process) = process else { return };
        let key = u64::from(rank) | PROCESS;
        // If epoll cannot watch it, it is no pidfd. The hub notices the end of the connection in
        // any case.
        let watched = self.epoll.add(process.as_fd(), libc::EPOLLIN, key).is_ok();
        self.processes[rank as usize] = watched.then_some(process);
    }

    fn forget_process(&mut self, rank: u32) {
        if let Some(process) = self.processes[rank as usize].take() {
            // Explicitly, because the rank may hold the same open file: closing ours is not enough.
            self.epoll.remove(process.as_fd());
        }
    }

    /// The rank has closed its end. Other ranks skip messages that a dead rank has half written, so
    /// the rank counts as dead only when its process has ended, if that is known.
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
            // No thread of it may go on; see closed().
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

    /// Tries again what may not have been in flight.
    fn send_held(&mut self) {
        self.timer.clear();
        for rank in 0..self.connections.len() {
            if self.connections[rank].as_ref().is_some_and(|it| it.held.is_some()) {
                self.send(rank as u32);
            }
        }
    }

    fn send(&mut self, rank: u32) {
        let Some(connection) = &mut self.connections[rank as usize] else { return };
        let mut in_flight = false;
        while let Some(packet) = connection.queue.front_mut() {
            let fd = packet.fd.as_ref().map(|(fd, _)| fd.as_fd());
            match socket::send(connection.socket.as_fd(), &packet.bytes, fd, Room::Now) {
                Ok(()) if fd.is_some() => connection.held = None,
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e)
                    if socket::is_in_flight(&e)
                        && let Some((_, rank)) = packet.fd =>
                {
                    let (now, patience) = (Instant::now(), socket::IN_FLIGHT_PATIENCE);
                    let until = connection.held.get_or_insert(now + patience);
                    // The time is over for all cards that wait, but not for one that comes later.
                    if now > *until + patience {
                        *until = now + patience;
                    }
                    if now < *until {
                        self.timer.set(socket::IN_FLIGHT_PAUSE);
                        in_flight = true;
                        break;
                    }
                    *packet = refusal(rank, &e);
                    continue;
                }
                // The rank has closed its end. read() finds that after the rank's last request.
                Err(_) => {
                    connection.queue.clear();
                    break;
                }
            }
            connection.queue.pop_front();
        }
        let mut interest = 0;
        // This socket has room then; the timer tells when to send.
        if !connection.queue.is_empty() && !in_flight {
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

fn refusal(rank: u32, error: &io::Error) -> Packet {
    let text = format!("peer is {rank}: its descriptor cannot be sent: {error}");
    let reply = Reply::Card { rank, status: Status::ERR_NO_MEMORY.0, bytes: text.into_bytes() };
    Packet { bytes: reply.encode(0), fd: None }
}

#[cfg(test)]
mod tests;
