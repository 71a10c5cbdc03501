//! A rank's end of the connection to the hub. Any thread sends requests; one thread, the watcher,
//! receives.

mod gathering;
mod listen;

use crate::bootstrap::client::gathering::Gathering;
use crate::bootstrap::protocol::Request;
use crate::bootstrap::wanted::Wanted;
use crate::bootstrap::{Bootstrap, Card};
use crate::fail;
use crate::util::once::Once;
use crate::util::rendezvous::{OtherEnd, process_of};
use crate::util::socket::{self, Room, Wake};
use crate::util::status::{Error, Result, Status};
use crate::util::thread::{Thread, spawn_quiet};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// How long a waiting thread sleeps between two calls of the function of while_waiting().
const NAP: Duration = Duration::from_micros(100);

/// The stack of the watcher thread. Only the pages that the death callback touches take memory.
const STACK: usize = 256 << 10;

type OnDeath = Box<dyn Fn(u32) + Send + Sync>;
/// See `Bootstrap::while_waiting`.
pub(super) type Meanwhile = Box<dyn Fn() + Send + Sync>;
/// A function that gets the cards of some ranks, or for each the reason why there is none.
pub type OnCards = Arc<dyn Fn(Vec<(u32, Result<Card>)>) + Send + Sync>;

/// Takes a lock, even if a callback has panicked while holding it: every state here is valid at
/// each step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reason why no further answer will arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    HubGone,
    Left,
}

const HUB_GONE: &str = "the launcher has gone";

impl Over {
    fn error(self) -> Error {
        let (status, text) = match self {
            Over::HubGone => (Status::ERR_SYSTEM, HUB_GONE),
            Over::Left => (Status::ERR_STATE, "this rank has left the world"),
        };
        Error::new(status, text.to_owned())
    }
}

struct Answer {
    status: i32,
    bytes: Vec<u8>,
}

/// Requests under way, by token.
struct Pending {
    next_token: u32,
    answers: HashMap<u32, Option<Answer>>,
    over: Option<Over>,
}

struct Deaths {
    call: Option<OnDeath>,
    reported: Vec<bool>,
}

/// The ranks whose processes have ended without leaving, and the other bootstraps of the same
/// processes that learn it from this one.
#[derive(Default)]
struct Killed {
    ranks: Vec<u32>,
    duplicates: Vec<Weak<Bootstrap>>,
}

struct Shared {
    rank: u32,
    /// `close` takes it out. A request under way has a reference of its own, so the descriptor's
    /// number is not reused meanwhile.
    socket: Mutex<Option<Arc<OwnedFd>>>,
    /// Becomes readable when the hub's process has ended, even if a child of it holds the socket.
    hub: Option<OwnedFd>,
    pending: Mutex<Pending>,
    arrived: Condvar,
    gone: Box<[AtomicBool]>,
    deaths: Mutex<Deaths>,
    killed: Mutex<Killed>,
    /// The ranks whose cards are asked for. The watcher thread sends the requests; `on_cards` gets
    /// the cards.
    wanted: Wanted,
    /// Whether the watcher thread is to end.
    stopped: AtomicBool,
    /// Wakes the watcher thread after a change of `wanted` or `stopped`. It has one descriptor for
    /// both, because poll() takes no more descriptors than the process may open.
    changed: Wake,
    on_cards: Mutex<Option<OnCards>>,
}

/// One rank's connection.
pub(super) struct Client {
    shared: Arc<Shared>,
    /// The exchange that has timed out, if there is one. A collective call holds the lock, because
    /// the hub serves one per rank at a time.
    collective: Mutex<Option<Gathering>>,
    /// The function of while_waiting().
    meanwhile: Once<Meanwhile>,
    watcher: Mutex<Option<Thread>>,
}

impl Client {
    /// Joins the world at the other end of `socket` as `rank` of `size`. `process`: the rank is a
    /// process. Then it and the hub notice each other's end even if a child holds the socket.
    pub(super) fn join(socket: OwnedFd, rank: u32, size: u32, process: bool) -> Result<Client> {
        let socket = Arc::new(socket);
        let gone = || {
            let text = format!(
                "joining as rank {rank} of {size}: {HUB_GONE}, this rank has ended before, or \
                 another process has joined in its place"
            );
            Error::new(Status::ERR_SYSTEM, text)
        };
        let hub = match process.then(|| process_of(socket.as_fd())) {
            Some(OtherEnd::Process(process)) => Some(process),
            // A child of it may hold the connection, and would never answer.
            Some(OtherEnd::Ended) => return Err(gone()),
            Some(OtherEnd::Unwatched) | None => None,
        };
        let shared = Arc::new(Shared {
            rank,
            socket: Mutex::new(Some(socket.clone())),
            hub,
            pending: Mutex::new(Pending { next_token: 1, answers: HashMap::new(), over: None }),
            arrived: Condvar::new(),
            gone: (0..size).map(|_| AtomicBool::new(false)).collect(),
            deaths: Mutex::new(Deaths { call: None, reported: vec![false; size as usize] }),
            killed: Mutex::default(),
            wanted: Wanted::new(size),
            stopped: AtomicBool::new(false),
            changed: Wake::new()?,
            on_cards: Mutex::new(None),
        });
        let listener = shared.clone();
        let watcher = spawn_quiet("llcl-watch", STACK, move || listener.watch(&socket))?;
        let client = Client {
            shared,
            collective: Mutex::default(),
            meanwhile: Once::new(),
            watcher: Mutex::new(Some(watcher)),
        };
        // Without pidfds the hub notices a death only when the socket is closed.
        let process = process.then(|| socket::process(std::process::id()).ok()).flatten();
        let joined =
            client.shared.ask(Request::Join { rank, size }, process.as_ref().map(AsFd::as_fd));
        match joined {
            Ok(_) => Ok(client),
            Err(e) if e.message() == HUB_GONE => Err(gone()),
            Err(e) => Err(e),
        }
    }

    pub(super) fn publish(&self, blob: &[u8], fd: BorrowedFd<'_>) -> Result<()> {
        self.shared.ask(Request::Publish { blob: blob.to_vec() }, Some(fd)).map(drop)
    }

    pub(super) fn ask_card(&self, peer: u32) {
        if self.shared.wanted.ask(peer) {
            self.shared.changed.wake();
        }
    }

    pub(super) fn on_cards(&self, call: OnCards) {
        *lock(&self.shared.on_cards) = Some(call);
    }

    /// See `Bootstrap::while_waiting`.
    pub(super) fn while_waiting(&self, call: Meanwhile) {
        let _ = self.meanwhile.set(call);
    }

    /// The function of while_waiting().
    pub(super) fn meanwhile(&self) -> Option<&Meanwhile> {
        self.meanwhile.get()
    }

    /// Waits for the answer to a request that needs all ranks. None: the deadline has passed; the
    /// answer may still arrive.
    fn wait_for(&self, token: u32, deadline: Option<Instant>) -> Result<Option<Answer>> {
        if let Some(meanwhile) = self.meanwhile.get() {
            let in_time = || deadline.is_none_or(|deadline| Instant::now() < deadline);
            while !self.shared.has_answer(token) && in_time() {
                meanwhile();
                self.shared.nap(token);
            }
        }
        self.shared.answer(token, deadline)
    }

    /// Marks ranks as dead that cannot be reached any more, without waiting for the hub to say so.
    pub(super) fn mark_gone(&self, peers: impl Iterator<Item = u32>) {
        peers.for_each(|peer| self.shared.mark_gone(peer));
    }

    pub(super) fn is_dead(&self, peer: u32) -> bool {
        // Acquire: pairs with the Release in `mark_gone`.
        self.shared.gone.get(peer as usize).is_some_and(|gone| gone.load(Ordering::Acquire))
    }

    pub(super) fn on_death(&self, call: OnDeath) {
        let mut deaths = lock(&self.shared.deaths);
        for (peer, gone) in self.shared.gone.iter().enumerate() {
            // Acquire: pairs with the Release in `mark_gone`. If a death is marked after this load,
            // the watcher reports it, which waits for this lock.
            if gone.load(Ordering::Acquire) {
                deaths.reported[peer] = true;
                call(peer as u32);
            }
        }
        deaths.call = Some(call);
    }

    /// Passes the deaths on, also those that are known already. See `Bootstrap::pass_deaths_to`.
    pub(super) fn pass_deaths_to(&self, duplicate: &Arc<Bootstrap>) {
        let mut killed = lock(&self.shared.killed);
        killed.ranks.iter().for_each(|rank| duplicate.killed(*rank));
        killed.duplicates.push(Arc::downgrade(duplicate));
    }

    /// Passes no more deaths on. When it returns, none is being passed on.
    pub(super) fn pass_no_deaths_to(&self, duplicate: *const Bootstrap) {
        lock(&self.shared.killed).duplicates.retain(|it| it.as_ptr() != duplicate);
    }

    pub(super) fn abort(&self, code: i32, grace_ms: u32) {
        // The caller ends in any case.
        let _ = self.shared.say(&Request::Abort { code, grace_ms }, 0, None);
    }

    /// Ends the connection, once. With `leave` this rank has left the world, without it has died.
    pub(super) fn close(&self, leave: bool) {
        let Some(socket) = self.shared.take_socket() else { return };
        if leave {
            // An error means that the hub has gone, which needs no message.
            let _ = send(&socket, &Request::Leave, 0, None);
        }
        // Release: pairs with the Acquire in watch().
        self.shared.stopped.store(true, Ordering::Release);
        self.shared.changed.wake();
        if let Some(watcher) = lock(&self.watcher).take() {
            // If a death callback closes, it runs on the watcher itself, which must not join
            // itself.
            if !watcher.is_current() {
                watcher.join();
            }
        }
        self.shared.end(Over::Left);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close(false);
    }
}

impl Pending {
    /// Whether a thread must not wait for this answer any longer: it is there, or will not come.
    fn is_over(&self, token: u32) -> bool {
        self.over.is_some() || self.answers.get(&token).is_none_or(Option::is_some)
    }
}

impl Shared {
    /// Sends a request and waits for its answer.
    fn ask(&self, request: Request, fd: Option<BorrowedFd<'_>>) -> Result<Answer> {
        let token = self.begin(request, fd)?;
        self.answer(token, None)?.ok_or(Error::bare(Status::ERR_INTERNAL))
    }

    /// Sends a request; the token names its answer.
    fn begin(&self, request: Request, fd: Option<BorrowedFd<'_>>) -> Result<u32> {
        let token = {
            let mut pending = lock(&self.pending);
            if let Some(over) = pending.over {
                return Err(over.error());
            }
            let token = pending.next_token;
            pending.next_token = token.wrapping_add(1);
            pending.answers.insert(token, None);
            token
        };
        if let Err(e) = self.say(&request, token, fd) {
            lock(&self.pending).answers.remove(&token);
            return Err(e);
        }
        Ok(token)
    }

    /// Whether answer() would return at once.
    fn has_answer(&self, token: u32) -> bool {
        lock(&self.pending).is_over(token)
    }

    /// Sleeps for a moment, or until there is an answer.
    fn nap(&self, token: u32) {
        let pending = lock(&self.pending);
        if !pending.is_over(token) {
            drop(self.arrived.wait_timeout(pending, NAP));
        }
    }

    /// Drops the request: its answer is ignored when it arrives.
    fn forget(&self, token: u32) {
        lock(&self.pending).answers.remove(&token);
    }

    /// Waits for the answer to a request. None: the deadline has passed.
    fn answer(&self, token: u32, deadline: Option<Instant>) -> Result<Option<Answer>> {
        let mut pending = lock(&self.pending);
        loop {
            if let Some(Some(answer)) = pending.answers.get_mut(&token).map(Option::take) {
                pending.answers.remove(&token);
                return checked(answer).map(Some);
            }
            if let Some(over) = pending.over {
                pending.answers.remove(&token);
                return Err(over.error());
            }
            let Some(deadline) = deadline else {
                pending = self.arrived.wait(pending).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let woken = self.arrived.wait_timeout(pending, left);
            pending = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn say(&self, request: &Request, token: u32, fd: Option<BorrowedFd<'_>>) -> Result<()> {
        // The lock is held while it sends, so no request follows the return of take_socket().
        match &*lock(&self.socket) {
            Some(socket) => send(socket, request, token, fd),
            None => Err(Over::Left.error()),
        }
    }

    /// Takes the socket out, so that from now on only the caller sends to the hub: a request after
    /// a Leave would be a protocol error. None: it was called before.
    fn take_socket(&self) -> Option<Arc<OwnedFd>> {
        lock(&self.socket).take()
    }
}

fn send(socket: &OwnedFd, request: &Request, token: u32, fd: Option<BorrowedFd<'_>>) -> Result<()> {
    // It may wait for room in the socket. The hub always reads, so the wait is short unless the hub
    // is stopped.
    match socket::send(socket.as_fd(), &request.encode(token), fd, Room::Wait) {
        Ok(()) => Ok(()),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET)) => {
            Err(Over::HubGone.error())
        }
        Err(e) => fail!(ERR_SYSTEM, "sending to the launcher: {e}"),
    }
}

fn checked(answer: Answer) -> Result<Answer> {
    match answer.status {
        0 => Ok(answer),
        status => {
            let text = String::from_utf8_lossy(&answer.bytes).into_owned();
            Err(Error::new(Status(status), text))
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::bootstrap::Link;
    use crate::bootstrap::protocol::{Departure, PACKET, Reply};

    /// A rank of `size`, whose hub is the other end.
    fn joined(size: u32) -> (Client, OwnedFd) {
        let (ours, hub) = socket::pair().unwrap();
        let mut packet = vec![0; PACKET];
        let client = std::thread::scope(|scope| {
            let client = scope.spawn(|| Client::join(ours, 0, size, false));
            socket::poll(&mut [socket::interest(hub.as_fd(), libc::POLLIN)], -1).unwrap();
            let (size, _) = socket::receive(hub.as_fd(), &mut packet).unwrap();
            let (token, _) = Request::decode(&packet[..size]).unwrap();
            let joined = Reply::Answer { status: 0, bytes: Vec::new() }.encode(token);
            socket::send(hub.as_fd(), &joined, None, Room::Wait).unwrap();
            client.join().unwrap().unwrap()
        });
        (client, hub)
    }

    #[test]
    fn a_duplicate_hears_of_deaths_and_not_of_departures() {
        let ((first, hub), (second, _hub)) = (joined(3), joined(3));
        let duplicate = Arc::new(Bootstrap::of(0, 3, Link::Hub(second)));
        first.pass_deaths_to(&duplicate);
        let gone = |rank, left| Reply::Gone { ranks: vec![Departure { rank, left }] }.encode(0);
        for packet in [gone(1, true), gone(2, false)] {
            socket::send(hub.as_fd(), &packet, None, Room::Wait).unwrap();
        }
        let since = Instant::now();
        while !duplicate.is_dead(2) {
            assert!(since.elapsed() < Duration::from_secs(20), "the duplicate hears nothing");
            std::thread::sleep(NAP);
        }
        assert!(first.is_dead(1) && !duplicate.is_dead(1));
    }

    #[test]
    fn nothing_is_said_after_the_leave() {
        let (client, hub) = joined(2);
        let mut packet = vec![0; PACKET];
        let socket = client.shared.take_socket().unwrap();
        assert!(client.shared.say(&Request::Fence, 7, None).is_err());
        let mut wanted = vec![1];
        client.shared.look_up(&socket, &mut wanted);
        assert!(wanted.is_empty());
        let heard = socket::receive(hub.as_fd(), &mut packet).map(|heard| heard.0);
        assert_eq!(heard.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}
