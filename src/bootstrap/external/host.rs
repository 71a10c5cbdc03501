//! The hub of a world that somebody else has started: a thread of rank 0. It lets in processes that
//! know the secret, until every rank has come, and then serves them until all have left.

use crate::bootstrap::hub::{Event, Hub};
use crate::util::rendezvous::{Secret, accept};
use crate::util::socket::{self, Wake, interest};
use crate::util::status::Result;
use crate::util::thread::{Thread, spawn_quiet};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The hub's buffers are on the heap.
const STACK: usize = 128 << 10;
/// How long rank 0, when it has left, serves those that are about to leave.
const FAREWELL: Duration = Duration::from_secs(2);
/// How long a process may run on that has closed its connection; as under `llcl-run`.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long it waits before it lets somebody in again where that has failed, in milliseconds.
const PAUSE_MS: i32 = 10;
/// Most connections at one time over which no rank has sent its hello.
const STRANGERS: usize = 64;

/// Dropped when rank 0 has left.
pub struct Host {
    leaving: Arc<Wake>,
    thread: Option<Thread>,
}

/// The first packet of a rank.
pub(super) fn hello(secret: &Secret, rank: u32) -> Vec<u8> {
    secret.iter().copied().chain(rank.to_ne_bytes()).collect()
}

const HELLO: usize = size_of::<Secret>() + 4;

impl Host {
    /// Starts the thread; answers rank 0's end.
    pub(super) fn start(listener: OwnedFd, secret: Secret, size: u32) -> Result<(OwnedFd, Host)> {
        let (ours, theirs) = socket::pair()?;
        let leaving = Arc::new(Wake::new()?);
        let mut seats: Vec<Option<OwnedFd>> = (0..size).map(|_| None).collect();
        seats[0] = Some(ours);
        let door = Door { listener, secret, seats, strangers: Vec::new() };
        let left = leaving.clone();
        let thread = spawn_quiet("llcl-hub", STACK, move || {
            if let Some(Ok(hub)) = door.all_seated(&left).map(Hub::of) {
                serve(hub, &left);
            }
        })?;
        Ok((theirs, Host { leaving, thread: Some(thread) }))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.leaving.wake();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

struct Door {
    listener: OwnedFd,
    secret: Secret,
    seats: Vec<Option<OwnedFd>>,
    /// Connections over which no rank has sent its hello yet.
    strangers: Vec<OwnedFd>,
}

impl Door {
    /// Lets all ranks in. None: rank 0 leaves before.
    fn all_seated(mut self, leaving: &Wake) -> Option<Vec<OwnedFd>> {
        // Nobody could be let in, as where this process has no descriptor left.
        let mut refused = false;
        while self.seats.iter().any(Option::is_none) {
            let mut waits = vec![interest(leaving.as_fd(), libc::POLLIN)];
            let room = self.strangers.len() < STRANGERS && !refused;
            let patience = if refused { PAUSE_MS } else { -1 };
            waits.push(interest(self.listener.as_fd(), if room { libc::POLLIN } else { 0 }));
            waits.extend(self.strangers.iter().map(|it| interest(it.as_fd(), libc::POLLIN)));
            if socket::poll(&mut waits, patience).is_err() || waits[0].revents != 0 {
                return None;
            }
            refused = false;
            for at in (0..self.strangers.len()).rev().filter(|at| waits[at + 2].revents != 0) {
                let stranger = self.strangers.swap_remove(at);
                self.seat(stranger);
            }
            if waits[1].revents != 0 {
                match accept(self.listener.as_fd()) {
                    Ok(stranger) => self.strangers.push(stranger),
                    Err(_) => refused = true,
                }
            }
        }
        self.seats.into_iter().collect()
    }

    /// Gives a rank its seat. The connection of anybody else is closed.
    fn seat(&mut self, stranger: OwnedFd) {
        let mut buffer = [0; HELLO + 1];
        let said = socket::receive(stranger.as_fd(), &mut buffer).map_or(0, |(size, _)| size);
        let Some((_, rank)) = buffer[..said].split_last_chunk() else { return };
        let rank = u32::from_ne_bytes(*rank);
        if let Some(seat @ None) = self.seats.get_mut(rank as usize)
            && buffer[..said] == hello(&self.secret, rank)[..]
        {
            *seat = Some(stranger);
        }
    }
}

fn serve(mut hub: Hub, leaving: &Wake) {
    let mut until = None;
    // Ranks that have closed their connections, and until when their processes may run on.
    let mut closed: VecDeque<(Instant, u32)> = VecDeque::new();
    while !hub.is_over() {
        let now = Instant::now();
        while closed.front().is_some_and(|(at, _)| *at <= now) {
            closed.pop_front().map(|(_, rank)| hub.evict(rank));
        }
        if until.is_some_and(|until| until <= now) {
            return;
        }
        let next = until.into_iter().chain(closed.front().map(|(at, _)| *at)).min();
        let wait = next.map_or(-1, |at| at.duration_since(now).as_millis() as i32 + 1);
        let wanted = if until.is_none() { libc::POLLIN } else { 0 };
        let mut waits = [interest(hub.as_fd(), libc::POLLIN), interest(leaving.as_fd(), wanted)];
        if socket::poll(&mut waits, wait).is_err() {
            return;
        }
        if waits[1].revents != 0 {
            until = Some(Instant::now() + FAREWELL);
        }
        let Ok(events) = hub.turn() else { return };
        for event in events {
            match event {
                Event::Abort { rank, code, grace_ms } => end_all(&mut hub, rank, code, grace_ms),
                Event::Closed { rank } => closed.push_back((Instant::now() + LAST_WORDS, rank)),
                // The hub has killed it.
                Event::Nonsense { .. } => {}
            }
        }
    }
}

/// Ends the processes of all ranks, this one last. The rank that wants it ends by itself, for as
/// long as the others may take.
fn end_all(hub: &mut Hub, rank: u32, code: i32, grace_ms: u32) -> ! {
    let until = Instant::now() + Duration::from_millis(grace_ms.into());
    hub.signal_all_but(&[0, rank], libc::SIGTERM);
    while Instant::now() < until && hub.signal_all_but(&[0], 0) {
        let left = until.saturating_duration_since(Instant::now()).as_millis() as i32;
        let _ = socket::poll(&mut [interest(hub.as_fd(), libc::POLLIN)], left + 1);
        // It notices their ends; what else they say changes nothing any more.
        let _ = hub.turn();
    }
    hub.signal_all_but(&[0], libc::SIGKILL);
    if rank == 0 {
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }
    // SAFETY: ends the process without running anything of the program.
    unsafe { libc::_exit(code) }
}
