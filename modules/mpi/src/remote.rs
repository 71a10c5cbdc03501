//! Reads and writes of peers' memory over two-sided messages; this file has the requester's side,
//! `serving` the owner's.
//!
//! The requester packs operations into a request (see `message`), with the bytes of small writes.
//! The owner's answers bring the status of each operation, and the bytes of small reads. An answer
//! to writes with signal may travel in a request of the owner (`unsent`). The bytes of an operation
//! larger than `INLINE` travel in a message of their own, directly from memory to memory. Both
//! sides derive that message's tag from the operation's number at the requester.
//!
//! The thread that polls the owner's lane serves the requests. While a request to a peer is
//! unanswered, further operations wait, and travel together in the next request: over TCP a message
//! takes the time of hundreds of small operations. Two kinds of requests leave at once: a *long*
//! one, so that the bytes of one request travel while the owner serves another, and one with a
//! notice, for which the peer may wait before it answers. A requester has at most `WINDOW` requests
//! to a peer unanswered, or `LONG_WINDOW` if the next one is long. An owner that serves many large
//! operations defers further requests for such. All peers share the places for operations, at the
//! requester and at the owner (`places`).

use crate::lane::MpiLane;
use crate::message::{
    KIND_BITS, NOTICE, WITH_NOTICE, WRITE, ended_and_answer, head_of, outcome, store, take,
    take_bytes,
};
use crate::places::Places;
use crate::requests::{Came, REQUESTS, Single};
use crate::table::{Command, Event, Key, Status};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Most bytes of an operation that travel inside a request or an answer. An operation of more bytes
/// is *large* in this module.
pub(crate) const INLINE: u64 = 4096;
/// Most bytes of an operation: libllcl cuts longer ones (`message_most`).
pub const LARGEST: u64 = 4 << 20;
/// Most requests to one peer that have no answer yet, unless the next one is long.
const WINDOW: u32 = 2;
/// Most such requests if the next one is long: while MPI copies the bytes of two, the others come.
pub(crate) const LONG_WINDOW: u32 = 4;
/// A request whose operations have so many bytes, with their entries, is long.
const LONG: u64 = 2048;
/// Most operations of this rank under way; half of them to one peer.
pub(crate) const OPERATIONS: usize = 1024;
/// Most large operations of this rank under way; half of them to one peer, and one to each at
/// least.
const TRANSFERS: usize = 64;
/// Large operations of peers that this rank serves at a time; half of them of one peer, and one
/// request of each at least. It defers further requests for such.
pub(crate) const SERVED: usize = 64;
/// The tag of the first large operation; the tags below are classes. An operation's number has two
/// tags, one for a read and one for a write.
const FIRST_TAG: u32 = 16;
/// How long MPI may need to end the transfers with a dead rank.
pub(crate) const LATE: Duration = Duration::from_secs(1);
/// Bytes of an operation in a request: number and kind, size, address, region. A notice and bytes
/// may follow.
const ENTRY: usize = 32;

/// The tag of the message that carries the bytes of a large operation.
pub(crate) fn tag_of(number: u32, write: bool) -> u32 {
    FIRST_TAG + 2 * number + u32::from(write)
}

/// An operation that this rank has asked a peer for.
pub(crate) struct Operation {
    pub(crate) peer: u32,
    /// libllcl's tag, which the event DONE returns.
    tag: u64,
    local: *mut u8,
    size: u64,
    write: bool,
    /// The value of the answer of the peer's libllcl; 0: it does not answer.
    fetched: u64,
    /// The operation is large, and MPI has not ended the message with its bytes.
    pub(crate) transfers: bool,
    /// The status that the peer has answered.
    pub(crate) status: Option<i32>,
}

impl Operation {
    /// The local memory.
    pub(crate) fn memory(&self) -> Range<u64> {
        let start = self.local as u64;
        start..start + self.size
    }
}

/// Registered memory of this rank.
pub(crate) struct Region {
    start: u64,
    end: u64,
    /// Large operations under way in the region.
    pub(crate) busy: usize,
    /// deregister() was called, and waits until `busy` is 0.
    over: bool,
}

/// The state of reads and writes, of this rank as a requester and as an owner.
#[derive(Default)]
pub struct Remote {
    /// Registered memory by its key. Keys are not 0, and never used again.
    regions: BTreeMap<u64, Region>,
    /// The last key.
    registered: u64,
    /// Operations by their number.
    operations: Vec<Option<Operation>>,
    /// Numbers without an operation.
    free: Vec<u32>,
    /// The operations under way.
    under_way: Places,
    /// Large operations of this rank whose message MPI has not ended.
    pub(crate) transfers: Places,
    /// Unanswered requests, by each peer that this rank has sent one.
    pub(crate) open: BTreeMap<u32, u32>,
    /// Large operations of peers whose message MPI has not ended.
    pub(crate) served: Places,
    /// Requests for large operations that wait until `served` has room for their peers.
    pub(crate) deferred: VecDeque<Came>,
    /// Dead peers whose fence is not answered yet, and when it is answered at the latest.
    pub(crate) fences: Vec<(u32, Instant)>,
    /// Dead peers: their requests are not served.
    pub(crate) dead: BTreeSet<u32>,
}

impl Remote {
    /// Makes memory a region that peers with its key may read and write.
    pub fn register(&mut self, start: u64, size: u64) -> Key {
        self.registered += 1;
        let region = Region { start, end: start.saturating_add(size), busy: 0, over: false };
        self.regions.insert(self.registered, region);
        Key { local: 0, wire: [self.registered, 0, 0, 0] }
    }

    /// The memory of a region.
    pub fn memory_of(&self, region: u64) -> Range<u64> {
        self.regions.get(&region).map_or(0..0, |it| it.start..it.end)
    }

    /// Refuses further operations in a region. False: MPI still has transfers under way in it.
    pub fn forget(&mut self, region: u64) -> bool {
        let Some(found) = self.regions.get_mut(&region) else { return true };
        found.over = true;
        let idle = found.busy == 0;
        if idle {
            self.regions.remove(&region);
        }
        idle
    }

    /// The region with the key, if it contains the bytes that a peer asks for.
    pub(crate) fn find(&mut self, region: u64, start: u64, size: u64) -> Option<&mut Region> {
        let end = start.checked_add(size)?;
        let fits = |it: &&mut Region| !it.over && it.start <= start && end <= it.end;
        self.regions.get_mut(&region).filter(fits)
    }

    /// Counts a large operation of a peer as ended. None: it is not counted in a region.
    pub(crate) fn release(&mut self, peer: u32, region: Option<u64>) {
        self.served.free(peer);
        self.leave(region);
    }

    /// Counts a large operation in a region as ended.
    pub(crate) fn leave(&mut self, region: Option<u64>) {
        if let Some(found) = region.and_then(|region| self.regions.get_mut(&region)) {
            found.busy -= 1;
        }
    }

    /// Adds an operation, and returns its number.
    fn add(&mut self, operation: Operation) -> u32 {
        self.under_way.take(operation.peer);
        if operation.transfers {
            self.transfers.take(operation.peer);
        }
        match self.free.pop() {
            Some(number) => {
                self.operations[number as usize] = Some(operation);
                number
            }
            None => {
                self.operations.push(Some(operation));
                self.operations.len() as u32 - 1
            }
        }
    }

    pub(crate) fn get(&mut self, number: u32) -> Option<&mut Operation> {
        self.operations.get_mut(number as usize)?.as_mut()
    }

    #[inline(always)]
    fn has_room(&mut self, peer: u32, command: &Command) -> bool {
        let transfers = command.size <= INLINE || self.transfers.has_room(peer, TRANSFERS);
        let has_number = !self.free.is_empty() || self.operations.len() < OPERATIONS;
        transfers && has_number && self.under_way.has_room(peer, OPERATIONS)
    }

    /// Counts a request with these operations as unanswered. False: it may not leave before the
    /// peer answers another one.
    #[inline(always)]
    fn admit(&mut self, peer: u32, commands: &[Command]) -> bool {
        let is_long = || commands.iter().map(|it| ENTRY as u64 + it.size).sum::<u64>() >= LONG;
        let notices = || commands.iter().any(|it| it.flags & Command::NOTICE != 0);
        let open = match self.open.get_mut(&peer) {
            Some(open) => open,
            None => self.open.entry(peer).or_default(),
        };
        let may = *open == 0 || *open < WINDOW && notices() || *open < LONG_WINDOW && is_long();
        *open += u32::from(may);
        may
    }

    /// Counts as many requests as answered, or as not sent.
    fn count_answered(&mut self, peer: u32, requests: u64) {
        if let Some(open) = self.open.get_mut(&peer) {
            *open = open.saturating_sub(requests as u32);
        }
    }

    /// The numbers of the operations under way to a peer.
    pub(crate) fn numbers(&self, peer: u32) -> Vec<u32> {
        let of = |it: &Option<Operation>| it.as_ref().is_some_and(|it| it.peer == peer);
        (0..).zip(&self.operations).filter(|(_, it)| of(it)).map(|(number, _)| number).collect()
    }
}

/// The requester's side.
impl MpiLane {
    /// Takes reads and writes; MpiLane::post() describes parameters and results.
    ///
    /// # Safety
    /// As of MpiLane::post().
    #[inline(always)]
    pub(crate) unsafe fn post_remote(&mut self, peer: u32, commands: &[Command]) -> (u32, i32) {
        let mut left = commands;
        while !left.is_empty() {
            if !self.remote.admit(peer, left) {
                break;
            }
            // SAFETY: as the caller promises.
            let taken = unsafe { self.request(peer, left) };
            let Some(taken) = taken else {
                return ((commands.len() - left.len()) as u32, Status::ERR_SYSTEM);
            };
            if taken == 0 {
                break;
            }
            left = &left[taken..];
        }
        let why = if left.is_empty() { Status::OK } else { Status::RETRY_QUEUE_FULL };
        ((commands.len() - left.len()) as u32, why)
    }

    /// Sends one request with the first of the commands, as many as fit. Returns how many. None:
    /// MPI has failed.
    ///
    /// # Safety
    /// As of MpiLane::post().
    #[inline(always)]
    unsafe fn request(&mut self, peer: u32, commands: &[Command]) -> Option<usize> {
        let mut answer = self.begin_request(peer);
        let (answered, mut taken) = (answer.message.size(), 0);
        for command in commands {
            let message = &mut answer.message;
            let (write, size) = (command.op == Command::WRITE, command.size);
            let inline = if write && size <= INLINE { size } else { 0 };
            let notices = write && command.flags & Command::NOTICE != 0;
            let entry = if notices { ENTRY + NOTICE } else { ENTRY };
            if !self.remote.has_room(peer, command) || !message.has_room(entry + inline as usize) {
                break;
            }
            // SAFETY: the caller promises a valid piece.
            let local = unsafe { (*command.piece).address }.cast_mut().cast::<u8>();
            let (tag, transfers) = (command.tag, size > INLINE);
            let (fetched, status) = (0, None);
            let operation = Operation { peer, tag, local, size, write, fetched, transfers, status };
            let number = self.remote.add(operation);
            let kind = u64::from(write) * WRITE + u64::from(notices) * WITH_NOTICE;
            let number_and_kind = u64::from(number) << KIND_BITS | kind;
            message.put([number_and_kind, size, command.remote, command.wire[0]]);
            if notices {
                message.put_notice(command);
            }
            // SAFETY: the bytes are valid, as the caller promises.
            unsafe { message.put_bytes(local, inline) };
            taken += 1;
            // SAFETY: the caller promises that the bytes are valid, and used by MPI alone, until
            // the command ends, which is after the single.
            if transfers && !unsafe { self.begin_transfer(peer, number) } {
                return None;
            }
        }
        if taken == 0 {
            self.unsent.keep(peer, answer);
            self.remote.count_answered(peer, 1);
            return Some(0);
        }
        let head = head_of(answer.ended, answered);
        let sent = self.requests.send_message((peer, REQUESTS), answer.message.end(head));
        self.went_well(sent).then_some(taken)
    }

    /// Begins the message with the bytes of a large operation, before the request leaves, so that a
    /// receive is posted when the owner sends. False: MPI has failed.
    ///
    /// # Safety
    /// The bytes are valid, and used by MPI alone, until the single has ended.
    #[inline(never)]
    unsafe fn begin_transfer(&mut self, peer: u32, number: u32) -> bool {
        let Some(operation) = self.remote.get(number) else { return true };
        let Operation { local, size, write, .. } = *operation;
        let (to, size) = ((peer, tag_of(number, write)), size as usize);
        let read = Single::Read { number, cancelled: false };
        // SAFETY: as the caller promises.
        let begun = unsafe {
            match write {
                false => self.requests.receive(to, local, size, read),
                true => self.requests.send(to, local, size, Single::Write(number)),
            }
        };
        self.went_well(begun)
    }

    /// Handles an answer.
    pub(crate) fn answered(&mut self, Came { bytes: answer, size, peer, .. }: Came) {
        let mut left = &answer[..size];
        if let Some([head]) = take(&mut left) {
            self.take_answer(peer, ended_and_answer(head).0, left);
        }
        self.requests.recycle(answer);
    }

    /// Handles the answer that a peer's request brings.
    pub(crate) fn answered_by(&mut self, request: &Came) {
        let mut left = &request.bytes[..request.size];
        if let Some([head]) = take(&mut left) {
            let (ended, answer) = ended_and_answer(head);
            self.take_answer(request.peer, ended, left.get(..answer).unwrap_or_default());
        }
    }

    /// Handles the entries of an answer, which is the last one to `ended` requests.
    fn take_answer(&mut self, peer: u32, ended: u64, mut left: &[u8]) {
        if ended > 0 {
            self.remote.count_answered(peer, ended);
        }
        while let Some([outcome, size]) = take(&mut left) {
            let Some(bytes) = take_bytes(&mut left, size) else { break };
            let (number, mut status) = ((outcome >> 32) as u32, outcome as u32 as i32);
            let Some(operation) = self.remote.get(number).filter(|it| it.peer == peer) else {
                continue;
            };
            if !operation.write && operation.size <= INLINE && status == Status::OK {
                match bytes.len() as u64 == operation.size {
                    // SAFETY: the buffer of a read is valid until the operation has ended.
                    true => unsafe { store(bytes, operation.local) },
                    false => status = Status::ERR_INTERNAL,
                }
            } else if let Ok(value) = bytes.try_into() {
                operation.fetched = u64::from_ne_bytes(value);
            }
            self.set_status(number, status);
        }
    }

    /// Sets an operation's status, unless it has one. Ends the operation if MPI is not using its
    /// bytes any more.
    fn set_status(&mut self, number: u32, status: i32) {
        let Some(operation) = self.remote.get(number) else { return };
        let status = *operation.status.get_or_insert(status);
        if !operation.transfers {
            return self.end(number, status);
        }
        // The owner sends no bytes for a read that it has refused.
        if status != Status::OK && !operation.write && !self.is_over() {
            self.requests
                .cancel(|it| matches!(it, Single::Read { number: of, .. } if *of == number));
        }
    }

    /// Reports an operation as ended, and frees its number.
    pub(crate) fn end(&mut self, number: u32, status: i32) {
        let place = self.remote.operations.get_mut(number as usize);
        if let Some(Operation { tag, peer, fetched, .. }) = place.and_then(Option::take) {
            self.remote.free.push(number);
            self.remote.under_way.free(peer);
            self.requests.events.push_back(Event {
                tag,
                status,
                fetched,
                ..Event::about(Event::DONE, peer)
            });
        }
    }

    /// Handles the end of a send or receive of a single message.
    pub(crate) fn transferred(&mut self, single: Single, cancelled: bool) {
        match single {
            Single::Read { number, .. } | Single::Write(number) => {
                let Some(operation) = self.remote.get(number) else { return };
                operation.transfers = false;
                let Operation { peer, status, .. } = *operation;
                self.remote.transfers.free(peer);
                match status {
                    Some(Status::OK) if cancelled => self.end(number, Status::ERR_PEER_DEAD),
                    Some(status) => self.end(number, status),
                    // The peer's answer ends the operation.
                    None => {}
                }
            }
            Single::Served { peer, region } => {
                self.remote.release(peer, Some(region));
                self.requests.events.push_back(Event::about(Event::SERVED, peer));
            }
            Single::Stored { peer, index, region, notice, .. } => {
                let status = if region.is_some() { Status::OK } else { Status::ERR_KEY };
                self.remote.release(peer, region.map(NonZeroU64::get));
                self.requests.events.push_back(Event::about(Event::SERVED, peer));
                if !cancelled {
                    let notice = notice.filter(|_| status == Status::OK);
                    let answers = notice.is_some_and(|notice| self.notice((peer, index), *notice));
                    if !answers {
                        let mut answer = self.new_answer();
                        answer.message.put([outcome(index, status), 0]);
                        self.send_answer(peer, answer);
                    }
                }
            }
            Single::Outlasts { region, .. } => self.remote.leave(region.map(NonZeroU64::get)),
            Single::Frame { .. }
            | Single::Undelivered { .. }
            | Single::Message(_)
            | Single::Abandoned { .. } => return,
        }
        self.serve_deferred();
    }

    /// Serves the requests that wait for the end of large operations, if their peers have room.
    pub(crate) fn serve_deferred(&mut self) {
        while !self.is_over() {
            let Remote { deferred, served, .. } = &mut self.remote;
            let next = deferred.iter().position(|it| served.has_room(it.peer, SERVED));
            let Some(request) = next.and_then(|at| deferred.remove(at)) else { return };
            self.serve(request);
        }
    }
}
