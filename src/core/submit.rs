//! From a request to its execution. After checks that all operations share, a request takes one of
//! three paths: the caller executes it at once, puts it into the queue, or posts it while the
//! caller holds the role.

use crate::core::context::Context;
use crate::core::poster::{Later, Poster};
use crate::engine::by_caller::{self, Local, Outcome};
use crate::engine::command::{ALL_PEERS, Command};
use crate::engine::completion::{self, Completion, WORD_FAILED};
use crate::engine::lane::Execution;
use crate::engine::queue_entry::INLINE;
use crate::fail;
use crate::transport::Access;
use crate::transport::address::Key;
use crate::transport::port::Port;
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

mod parked;

use parked::Parked;

/// The request goes through the queue in every execution mode; the completion never fires inside
/// the call.
pub const FLAG_DEFER: u32 = 1;
/// If there is no room, the request is parked: accepted now, and posted later.
pub const FLAG_PARK: u32 = 2;

/// If the request ends before the call returns, the call returns DONE, and its completions do not
/// fire.
pub const FLAG_DONE: u32 = 4;
/// Each flag by its name in the interface.
const FLAGS: [(u32, &str); 3] =
    [(FLAG_DEFER, "LLCL_FLAG_DEFER"), (FLAG_PARK, "LLCL_FLAG_PARK"), (FLAG_DONE, "LLCL_FLAG_DONE")];
/// The flags of reads, writes and atomics.
pub(super) const RMA_FLAGS: u32 = FLAG_DEFER | FLAG_PARK | FLAG_DONE;

/// The outcome of an accepted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Its completions fire, or have fired.
    Fires,
    /// It carries FLAG_DONE and has ended: its completions do not fire.
    Done,
}

impl From<Accepted> for Status {
    fn from(accepted: Accepted) -> Status {
        match accepted {
            Accepted::Fires => Status::OK,
            Accepted::Done => Status::DONE,
        }
    }
}

/// Bytes of a word.
const WORD: u64 = 8;

/// A request: the command, and data that is not yet in it.
#[derive(Clone, Copy)]
pub struct Request {
    /// The command.
    pub(super) command: Command,
    /// The local side.
    pub(super) local: Local,
    /// Whether the bytes of the source must be copied into the command, since they are valid only
    /// during the call.
    pub(super) carry: bool,
    /// The caller's flags.
    pub(super) flags: u32,
}

impl Request {
    /// Makes a request. `carry`: the source bytes at `local` are copied into the command.
    ///
    /// # Safety
    /// From each submission of the request until its end, the memory at `local` that is in no
    /// region is valid for the operation, and the user keeps what the completions name. With
    /// `carry`, `local` need be valid only until the call that submits the request has returned.
    pub unsafe fn new(command: Command, local: Local, carry: bool, flags: u32) -> Request {
        Request { command, local, carry, flags }
    }
}

impl Context {
    /// Whether the context is in offload mode.
    #[inline(always)]
    pub fn offloads(&self) -> bool {
        self.lane.execution() == Execution::Offload
    }

    /// The short path to a wire, for the other modes; see Lane::post_to_wire(). The caller has
    /// checked the completions. False: nothing has happened, and the request must take the long
    /// path, which also reports errors.
    ///
    /// What it calls is inlined, up to the network's post: in the system call by which a network
    /// sends, the processor forgets to where a caller returns, so each call around it takes 5 to 7
    /// ns (docs/decisions/0033).
    #[inline(never)]
    pub fn post_quickly(&self, request: &Request) -> bool {
        let Request { command, local, carry, flags } = request;
        let fits = !*carry || command.size <= INLINE as u64;
        if !fits || *flags & !(FLAG_DONE | FLAG_PARK) != 0 || !self.routes.gate().is_open() {
            return false;
        }
        // SAFETY: the completions are valid, as the caller has checked; their user keeps them and
        // the local memory.
        unsafe { self.lane.post_to_wire(command, *local) }
    }

    /// The short path into the queue, to be called in offload mode only. The result is as of
    /// post_quickly().
    #[inline]
    pub fn offload_quickly(&self, request: &mut Request) -> bool {
        let Request { command, local, carry, flags } = &*request;
        if *carry || *flags & !FLAG_DONE != 0 || !self.routes.gate().is_open() {
            return false;
        }
        let Some(port) = self.routes.known(command.peer) else { return false };
        // The pin keeps the region until the command is in the queue, where a flush finds it.
        let mut pinned = pin();
        let mapped = match local {
            Local::Pointer(_) => port.find_word(command.remote),
            Local::Region(_) => port.find(command.remote, command.size),
        };
        if mapped.is_none() {
            // is_registered() may map a region, and a thread that does so waits until no thread is
            // pinned.
            drop(pinned);
            if Key(command.remote.key).is_device() || !self.is_registered(port, request) {
                return false;
            }
            pinned = pin();
        }
        let place = match local {
            Local::Pointer(place) => Some(*place),
            Local::Region(ours) => self.quick.own.find(*ours, command.size),
        };
        let Some(place) = place else { return false };
        request.command.local = place;
        // SAFETY: the completions are valid, as the caller has checked; their user keeps them and
        // the local memory.
        let posted = unsafe { self.lane.offload(&request.command) };
        drop(pinned);
        match posted {
            Some(posted) => {
                self.lane.offloaded(posted);
                true
            }
            None => false,
        }
    }

    /// Whether the peer's side is valid and in registered memory.
    #[inline(never)]
    fn is_registered(&self, port: &Port, Request { command, local, .. }: &Request) -> bool {
        let (remote, size, unit) = match local {
            Local::Pointer(_) => (command.remote, WORD, WORD),
            Local::Region(_) => (command.remote, command.size, 1),
        };
        match self.routes.transport(port).locate(port, remote, size) {
            Ok(Access::Kernel(place) | Access::Message(place) | Access::Posted(place)) => {
                (place | remote.offset).is_multiple_of(unit)
            }
            _ => false,
        }
    }

    /// Executes, queues or parks the request; an error says why it was not accepted.
    pub fn submit(&self, request: &Request) -> Result<Accepted> {
        let parked = || Parked::of(&self.routes, request);
        self.accept(request.flags, parked, || self.poster.submit(request))
    }

    /// Posts a request, or parks it if there is no room and the flags allow it. `parked` fails if
    /// the request is wrong whatever the peer answers: nobody may look at the completions later.
    pub(super) fn accept<L: Later + 'static>(
        &self,
        flags: u32,
        parked: impl FnOnce() -> Result<L>,
        post: impl FnOnce() -> Result<Accepted>,
    ) -> Result<Accepted> {
        self.must_be_open()?;
        post().or_else(|error| self.park_if_refused(flags, parked, error))
    }

    /// The rest of accept() for a request that was not accepted.
    #[cold]
    #[inline(never)]
    fn park_if_refused<L: Later + 'static>(
        &self,
        flags: u32,
        parked: impl FnOnce() -> Result<L>,
        error: Error,
    ) -> Result<Accepted> {
        let parks = error.status.is_retry() && flags & FLAG_PARK != 0;
        self.counted(match parks {
            true => parked().and_then(|it| self.poster.park(it, error)).map(|()| Accepted::Fires),
            false => Err(error),
        })
    }

    /// Tries until the request is accepted. Between two tries it executes commands of this context.
    pub fn submit_until_accepted(&self, request: &Request) -> Result<Accepted> {
        self.may_block_to_post()?;
        let contacts = self.routes.contacts();
        match self.submit(request) {
            Err(error) if error.status.is_retry() => {
                let again = || self.submit(request);
                self.blocking().until_accepted_after((contacts, Err(error)), again)
            }
            end => end,
        }
    }

    /// Does the request and waits for its end. FLAG_DONE changes nothing.
    pub fn submit_and_wait(&self, request: &Request) -> Result<Accepted> {
        let Command { on_local, on_complete, .. } = &request.command;
        self.until_ended([on_local, on_complete], |ended| {
            let mut request = *request;
            request.command.on_complete = ended;
            request.flags |= FLAG_DONE;
            match !self.offloads() && self.post_quickly(&request) {
                true => Ok(Accepted::Fires),
                false => self.submit_until_accepted(&request),
            }
        })?;
        Ok(Accepted::Fires)
    }

    /// The blocking form of `post`: calls it with a completion of the library and waits for that.
    /// The user's own completions must do nothing.
    pub(super) fn until_ended(
        &self,
        users: [&Completion; 2],
        post: impl FnOnce(Completion) -> Result<Accepted>,
    ) -> Result<()> {
        self.may_block_to_post()?;
        must_be_nothing(users)?;
        let ended = AtomicU64::new(0);
        if post(Completion::store_on(&ended))? == Accepted::Done {
            return Ok(());
        }
        self.blocking().until_set(&ended);
        match ended.load(Ordering::Acquire) {
            word if word & WORD_FAILED == 0 => Ok(()),
            word => Err(failed(Status(word as i64 as i32))),
        }
    }

    /// Waits until all requests that were accepted before, for one peer or for all, have ended.
    /// Then returns the first failure that no completion has reported.
    pub fn flush(&self, peer: Option<u32>) -> Result<()> {
        self.flush_by(peer, |peer| self.blocking().flush(peer))
    }

    /// Like `flush`, but not for longer than `timeout`; None: for ever.
    pub fn flush_within(&self, peer: Option<u32>, timeout: Option<Duration>) -> Result<()> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.flush_by(peer, |peer| match self.blocking().flush_or(peer, deadline) {
            true => Ok(()),
            false => Err(Error::bare(Status::ERR_TIMEOUT)),
        })
    }

    fn flush_by(&self, peer: Option<u32>, wait: impl FnOnce(u32) -> Result<()>) -> Result<()> {
        self.may_block()?;
        if let Some(peer) = peer.filter(|peer| *peer >= self.size()) {
            fail!(ERR_INVALID, "peer is {peer}, expected a rank below {}", self.size());
        }
        // It also waits for operations on a dead peer, which end with an error.
        wait(peer.unwrap_or(ALL_PEERS))?;
        if let Some(error) = self.routes.unreported().take(peer) {
            return Err(error);
        }
        match peer {
            Some(peer) if self.routes.is_dead(peer) => {
                fail!(ERR_PEER_DEAD, "rank {peer} has died or has left")
            }
            _ => Ok(()),
        }
    }
}

impl Poster {
    /// Executes the request or puts it into the queue.
    fn submit(&self, request: &Request) -> Result<Accepted> {
        check(request)?;
        let Request { command, local, flags, .. } = request;
        let execution = self.lane.execution();
        if execution == Execution::Offload || flags & FLAG_DEFER != 0 {
            by_caller::check(&self.routes, command)?;
            return self.lane.put_in_turn(|| match self.queue(request) {
                Err(error)
                    if error.status == Status::RETRY_QUEUE_FULL
                        && flags & FLAG_DEFER == 0
                        && self.lane.make_room() =>
                {
                    self.queue(request)
                }
                end => end,
            });
        }
        let outcome = match by_caller::outcome_if_owner_signals(&self.routes, command)? {
            Some(outcome) => outcome,
            // SAFETY: the user keeps the local memory valid until the operation has ended.
            None => unsafe { by_caller::attempt(&self.routes, command, *local)? },
        };
        match outcome {
            Outcome::Done if flags & FLAG_DONE != 0 => Ok(Accepted::Done),
            Outcome::Done => {
                // SAFETY: check() has checked both, and the user keeps them valid.
                unsafe { command.fire(Status::OK, self.routes.waiters()) };
                Ok(Accepted::Fires)
            }
            outcome => self.post_or_queue(request, outcome),
        }
    }

    /// Posts the request at once, if the role is free and no command waits; else puts it into the
    /// queue, which mode direct does not have.
    fn post_or_queue(&self, request: &Request, outcome: Outcome) -> Result<Accepted> {
        let has_queue = self.lane.execution() != Execution::Direct;
        // SAFETY: check() has checked the completions; their user keeps them and the local memory.
        match unsafe { self.lane.post_directly(request.command, request.local, outcome) } {
            Err(error) if has_queue && error.status.is_retry() => self.queue(request),
            end => end.map(|()| Accepted::Fires),
        }
    }

    fn queue(&self, request: &Request) -> Result<Accepted> {
        let mut command = request.command;
        let asleep = {
            // The pin keeps the region until the command is in the queue, where a flush finds it.
            let _pinned = pin();
            command.local = request.local.resolve(&self.routes, command.size)?;
            let bytes: &[u8] = match request.carry {
                // SAFETY: the caller's bytes, valid during the call, at most INLINE as checked.
                true => unsafe { std::slice::from_raw_parts(command.local, command.size as usize) },
                false => &[],
            };
            // SAFETY: check() has checked the completions; their user keeps them and the local
            // memory.
            unsafe { self.lane.put(&command, bytes)? }
        };
        match request.flags & FLAG_DEFER {
            0 => self.lane.wake_executor(asleep),
            _ => self.lane.leave_to_others(asleep),
        }
        Ok(Accepted::Fires)
    }
}

#[inline(always)]
fn check(request: &Request) -> Result<()> {
    let Request { command, flags, carry, .. } = request;
    check_flags(*flags, RMA_FLAGS)?;
    let mut calls = 0;
    for (completion, name) in
        [(&command.on_local, "on_local"), (&command.on_complete, "on_complete")]
    {
        check_completion(completion, name)?;
        calls += usize::from(completion.kind == completion::CALL);
    }
    if calls > 0 && !completion::has_room(calls) {
        return Err(Error::bare(Status::RETRY_QUEUE_FULL));
    }
    if *carry && command.size > INLINE as u64 {
        fail!(ERR_RANGE, "size is {}, expected at most {INLINE}", command.size);
    }
    Ok(())
}

/// Refuses flags other than `known`.
#[inline(always)]
pub(super) fn check_flags(flags: u32, known: u32) -> Result<()> {
    if flags & !known == 0 { Ok(()) } else { refuse_flags(flags, known) }
}

#[cold]
#[inline(never)]
fn refuse_flags(flags: u32, known: u32) -> Result<()> {
    let names = FLAGS.iter().filter(|(bit, _)| bit & known != 0).map(|(_, name)| *name);
    let names = names.collect::<Vec<_>>().join(", ");
    // Without the bits that are known: the blocking forms have added one of these.
    let unknown = flags & !known;
    fail!(ERR_INVALID, "flags has {unknown:#x}, expected no bits but those of {names}");
}

/// Refuses completions of a blocking call.
pub(super) fn must_be_nothing(users: [&Completion; 2]) -> Result<()> {
    if !users.iter().all(|completion| completion.is_nothing()) {
        fail!(ERR_INVALID, "a blocking call takes no completion, expected llcl_no_completion()");
    }
    Ok(())
}

/// The error of a blocking call whose operation has failed.
pub(super) fn failed(status: Status) -> Error {
    let text = status.text().trim_end_matches('\0');
    Error::new(status, format!("the operation ended: {text}"))
}

#[inline(always)]
pub(super) fn check_completion(completion: &Completion, name: &str) -> Result<()> {
    if completion.is_valid() { Ok(()) } else { refuse_completion(completion, name) }
}

#[cold]
#[inline(never)]
fn refuse_completion(completion: &Completion, name: &str) -> Result<()> {
    let Completion { kind, reserved, target, .. } = *completion;
    match kind {
        _ if reserved != 0 => fail!(ERR_INVALID, "{name}.reserved is {reserved}, expected 0"),
        completion::CALL => fail!(ERR_INVALID, "{name}.call is NULL, expected a function"),
        completion::STORE | completion::ADD => {
            fail!(ERR_INVALID, "{name}.target is {target:?}, expected an 8-byte aligned word")
        }
        _ => fail!(ERR_INVALID, "{name}.kind is {kind}, expected one of LLCL_COMPLETE_*"),
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
