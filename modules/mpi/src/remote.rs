//! Reads and writes of peers' memory, which MPI's messages carry: a request brings up to 64 of them
//! and the bytes of small writes, its answers bring the bytes of small reads and how each went. The
//! bytes of large ones go from memory to memory, each in a message with a tag of its own, which
//! both sides know by the number of the operation at the rank that asks.
//!
//! Whoever polls the lane of the owner serves a request; no other thread of it takes part. At most
//! `WINDOW` requests to a peer wait for their answer, so what is posted meanwhile travels together.
//! A rank that serves as many large ones as it may lets further requests lie.

use crate::lane::Lane;
use crate::requests::{ANSWERS, MESSAGE_MOST, REQUESTS, Single};
use crate::table::{Command, Event, Key, Status};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Most bytes that travel in a request or an answer.
pub(crate) const INLINE: u64 = 1024;
/// Most bytes of an operation; larger ones are cut by libllcl.
pub const LARGEST: u64 = 4 << 20;
/// Requests to a peer that wait for their answer.
const WINDOW: u32 = 2;
/// Operations under way, and large ones of them.
pub(crate) const OPERATIONS: usize = 512;
const TRANSFERS: usize = 32;
/// Large ones of peers that are served at a time.
pub(crate) const SERVED: usize = 64;
/// The tag of the first large one; two for each number.
const FIRST_TAG: u32 = 16;
/// How long what is under way to a dead rank may need.
const LATE: Duration = Duration::from_secs(1);
/// In the head of an answer: it is the last one to a request.
pub(crate) const LAST: u64 = 1;
/// Bytes of a message's head, of an entry of a request, and of one of an answer.
pub(crate) const HEAD: usize = 8;
const ENTRY: usize = 32;
pub(crate) const TOLD: usize = 16;

pub(crate) fn tag_of(number: u32, write: bool) -> u32 {
    FIRST_TAG + 2 * number + u32::from(write)
}

/// An operation of this rank's that is under way.
struct Operation {
    peer: u32,
    tag: u64,
    local: *mut u8,
    size: u64,
    write: bool,
    /// Its bytes travel in a message of their own, which MPI has not ended.
    transfers: bool,
    /// How it went, if the peer has said so.
    status: Option<i32>,
}

/// Memory that peers may reach.
pub(crate) struct Region {
    start: u64,
    end: u64,
    /// Large ones under way in it.
    pub(crate) busy: usize,
    /// It was deregistered, and waits for them.
    over: bool,
}

/// Both sides of one rank.
#[derive(Default)]
pub struct Remote {
    regions: BTreeMap<u64, Region>,
    registered: u64,
    operations: Vec<Option<Operation>>,
    free: Vec<u32>,
    transfers: usize,
    /// Requests that wait for their answer, by peer.
    open: HashMap<u32, u32>,
    pub(crate) served: usize,
    /// Requests that lie: where, of whom, and how many bytes.
    pub(crate) lying: VecDeque<(usize, u32, usize)>,
    /// The dead of whom something is under way, and how long that is waited for.
    fences: Vec<(u32, Instant)>,
}

/// A message that is being put together.
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// Nothing but its head.
    pub(crate) fn new() -> Message {
        Message(vec![0; HEAD])
    }

    pub(crate) fn has_room(&self, size: usize) -> bool {
        self.0.len() + size.next_multiple_of(8) <= MESSAGE_MOST
    }

    pub(crate) fn put(&mut self, words: &[u64]) {
        words.iter().for_each(|word| self.0.extend(word.to_ne_bytes()));
    }

    /// # Safety
    /// The bytes are valid.
    pub(crate) unsafe fn put_bytes(&mut self, from: *const u8, size: u64) {
        if size == 8 && from.cast::<u64>().is_aligned() {
            // SAFETY: as the caller promises; aligned. A word that others write is read as one.
            let word = unsafe { &*from.cast::<AtomicU64>() }.load(Ordering::Acquire);
            return self.put(&[word]);
        }
        // SAFETY: as the caller promises.
        self.0.extend(unsafe { std::slice::from_raw_parts(from, size as usize) });
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }

    pub(crate) fn end(mut self, head: u64) -> Box<[u8]> {
        self.0[..HEAD].copy_from_slice(&head.to_ne_bytes());
        self.0.into()
    }
}

/// Takes words off a message.
pub(crate) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u64; N]> {
    let (words, rest) = bytes.split_at_checked(8 * N)?;
    *bytes = rest;
    let mut chunks = words.chunks_exact(8);
    Some(std::array::from_fn(|_| {
        let word = chunks.next().and_then(|word| word.try_into().ok());
        word.map_or(0, u64::from_ne_bytes)
    }))
}

/// Takes bytes off a message.
pub(crate) fn take_bytes<'b>(bytes: &mut &'b [u8], size: u64) -> Option<&'b [u8]> {
    let (all, rest) = bytes.split_at_checked((size as usize).next_multiple_of(8))?;
    *bytes = rest;
    all.get(..size as usize)
}

/// Stores bytes; an aligned word in one piece.
///
/// # Safety
/// `to` is valid for so many bytes.
pub(crate) unsafe fn store(bytes: &[u8], to: *mut u8) {
    match bytes.try_into().map(u64::from_ne_bytes) {
        Ok(word) if to.cast::<u64>().is_aligned() => {
            // SAFETY: as the caller promises; aligned. Release: what was stored before is seen.
            unsafe { &*to.cast::<AtomicU64>() }.store(word, Ordering::Release);
        }
        // SAFETY: as the caller promises.
        _ => unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) },
    }
}

impl Remote {
    /// Lets peers reach memory.
    pub fn register(&mut self, start: u64, size: u64) -> Key {
        self.registered += 1;
        let region = Region { start, end: start.saturating_add(size), busy: 0, over: false };
        self.regions.insert(self.registered, region);
        Key { local: 0, wire: [self.registered, 0, 0, 0] }
    }

    /// Ends that. False: something is under way there.
    pub fn forget(&mut self, region: u64) -> bool {
        let Some(found) = self.regions.get_mut(&region) else { return true };
        found.over = true;
        let idle = found.busy == 0;
        if idle {
            self.regions.remove(&region);
        }
        idle
    }

    /// The region of a place that a peer names, if it may reach it.
    pub(crate) fn find(&mut self, region: u64, start: u64, size: u64) -> Option<&mut Region> {
        let end = start.checked_add(size)?;
        let fits = |it: &&mut Region| !it.over && it.start <= start && end <= it.end;
        self.regions.get_mut(&region).filter(fits)
    }

    pub(crate) fn release(&mut self, region: Option<u64>) {
        self.served -= 1;
        if let Some(found) = region.and_then(|region| self.regions.get_mut(&region)) {
            found.busy -= 1;
        }
    }

    fn add(&mut self, operation: Operation) -> u32 {
        self.transfers += usize::from(operation.transfers);
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

    fn get(&mut self, number: u32) -> Option<&mut Operation> {
        self.operations.get_mut(number as usize)?.as_mut()
    }

    fn has_room(&self, command: &Command) -> bool {
        let transfers = command.size <= INLINE || self.transfers < TRANSFERS;
        transfers && (!self.free.is_empty() || self.operations.len() < OPERATIONS)
    }

    fn window(&self, peer: u32) -> u32 {
        WINDOW - self.open.get(&peer).copied().unwrap_or(0).min(WINDOW)
    }

    /// What is under way to a peer.
    fn numbers(&self, peer: u32) -> Vec<u32> {
        let of = |it: &Option<Operation>| it.as_ref().is_some_and(|it| it.peer == peer);
        (0..).zip(&self.operations).filter(|(_, it)| of(it)).map(|(number, _)| number).collect()
    }
}

/// What this rank asks for.
impl Lane {
    /// Takes reads and writes, as far as there is room; see Lane::post().
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn post_remote(&mut self, peer: u32, commands: &[Command]) -> (u32, i32) {
        let mut left = commands;
        while !left.is_empty() {
            if self.remote.window(peer) == 0 {
                break;
            }
            // SAFETY: passed on to the caller.
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

    /// Sends one request; how many commands it has. None: MPI has failed.
    unsafe fn request(&mut self, peer: u32, commands: &[Command]) -> Option<usize> {
        let (mut message, mut numbers) = (Message::new(), Vec::new());
        for command in commands {
            let (write, size) = (command.op == Command::WRITE, command.size);
            let inline = if write && size <= INLINE { size } else { 0 };
            if !self.remote.has_room(command) || !message.has_room(ENTRY + inline as usize) {
                break;
            }
            // SAFETY: a piece, as the caller promises.
            let local = unsafe { (*command.piece).address }.cast_mut().cast::<u8>();
            let (tag, transfers) = (command.tag, size > INLINE);
            let operation = Operation { peer, tag, local, size, write, transfers, status: None };
            let number = self.remote.add(operation);
            let what = u64::from(number) << 1 | u64::from(write);
            message.put(&[what, size, command.remote, command.wire[0]]);
            // SAFETY: the bytes are valid, as the caller promises.
            unsafe { message.put_bytes(local, inline) };
            numbers.push((number, local, size, write, transfers));
        }
        if numbers.is_empty() {
            return Some(0);
        }
        for (number, local, size, write, transfers) in &numbers {
            let (to, size) = ((peer, tag_of(*number, *write)), *size as usize);
            // SAFETY: the bytes are valid and MPI's until the single ends, as the caller promises.
            let begun = unsafe {
                match (transfers, write) {
                    (true, false) => self.requests.receive(to, *local, size, Single::Read(*number)),
                    (true, true) => self.requests.send(to, *local, size, Single::Write(*number)),
                    _ => Ok(()),
                }
            };
            if !self.went_well(begun) {
                return None;
            }
        }
        let sent = self.requests.send_message((peer, REQUESTS), message.end(0));
        *self.remote.open.entry(peer).or_default() += 1;
        self.went_well(sent).then_some(numbers.len())
    }

    /// An answer has come.
    pub(crate) fn answered(&mut self, at: usize, peer: u32, size: usize) {
        let message = self.requests.take_out(at);
        let mut left = &message[..size];
        if take(&mut left) == Some([LAST])
            && let Some(open) = self.remote.open.get_mut(&peer)
        {
            *open -= 1;
            if *open == 0 {
                self.remote.open.remove(&peer);
            }
        }
        while let Some([what, size]) = take(&mut left) {
            let Some(bytes) = take_bytes(&mut left, size) else { break };
            let (number, mut status) = ((what >> 32) as u32, what as u32 as i32);
            let Some(operation) = self.remote.get(number).filter(|it| it.peer == peer) else {
                continue;
            };
            if !operation.write && operation.size <= INLINE && status == Status::OK {
                match bytes.len() as u64 == operation.size {
                    // SAFETY: valid until the operation has ended.
                    true => unsafe { store(bytes, operation.local) },
                    false => status = Status::ERR_INTERNAL,
                }
            }
            self.told(number, status);
        }
        self.requests.put_back(at, message);
        self.give_back(at as u64);
    }

    /// How an operation went is known.
    fn told(&mut self, number: u32, status: i32) {
        let Some(operation) = self.remote.get(number) else { return };
        let status = *operation.status.get_or_insert(status);
        if !operation.transfers {
            return self.end(number, status);
        }
        if status != Status::OK && !operation.write {
            // Its bytes do not come.
            if !self.is_over() {
                self.requests.cancel(|it| matches!(it, Single::Read(of) if *of == number));
            }
        }
    }

    fn end(&mut self, number: u32, status: i32) {
        let place = self.remote.operations.get_mut(number as usize);
        if let Some(Operation { tag, peer, .. }) = place.and_then(Option::take) {
            self.remote.free.push(number);
            self.events.push_back(Event { tag, status, ..Event::about(Event::DONE, peer) });
        }
    }

    /// MPI has ended a large one, or a message.
    pub(crate) fn transferred(&mut self, single: Single, cancelled: bool) {
        match single {
            Single::Read(number) | Single::Write(number) => {
                self.remote.transfers -= 1;
                let Some(operation) = self.remote.get(number) else { return };
                operation.transfers = false;
                match operation.status {
                    Some(Status::OK) if cancelled => self.end(number, Status::ERR_INTERNAL),
                    Some(status) => self.end(number, status),
                    // The peer says how it went: of a write, whether it sees the bytes.
                    None => {}
                }
            }
            Single::Served { region, .. } => self.remote.release(region),
            Single::Stored { peer, index, region, refused } => {
                self.remote.release(region);
                if cancelled {
                    return;
                }
                let status = if refused.is_some() { Status::ERR_KEY } else { Status::OK };
                let mut message = Message::new();
                message.put(&[told(index, status), 0]);
                let sent = self.requests.send_message((peer, ANSWERS), message.end(0));
                self.went_well(sent);
            }
            Single::Lost => self.remote.transfers -= 1,
            Single::Frame { .. } | Single::Message(_) => return,
        }
        while self.remote.served < SERVED
            && let Some((at, peer, size)) = self.remote.lying.pop_front()
        {
            self.serve(at, peer, size);
        }
    }
}

/// The first word of what an answer tells of an operation.
pub(crate) fn told(number: u32, status: i32) -> u64 {
    u64::from(number) << 32 | u64::from(status as u32)
}

/// The dead.
impl Lane {
    /// A peer has died: ends what is under way to it. MPI does not say when nothing of it comes any
    /// more.
    pub fn fence(&mut self, peer: u32) {
        self.remote.open.remove(&peer);
        for number in self.remote.numbers(peer) {
            self.told(number, Status::ERR_PEER_DEAD);
        }
        if !self.is_over() {
            self.requests.cancel(|it| matches!(it, Single::Stored { peer: of, .. } if *of == peer));
        }
        self.remote.fences.push((peer, Instant::now() + LATE));
    }

    /// Answers fences: when all that was under way to the dead has ended, or after `LATE`. What MPI
    /// has not ended by then it may still read, and not write: what was to be received was
    /// cancelled, or its bytes come no more.
    pub(crate) fn end_fences(&mut self) {
        let now = Instant::now();
        let over = self.is_over();
        let due: Vec<u32> = (self.remote.fences.iter())
            .filter(|(peer, until)| over || *until <= now || self.remote.numbers(*peer).is_empty())
            .map(|(peer, _)| *peer)
            .collect();
        for peer in due {
            self.remote.fences.retain(|(of, _)| *of != peer);
            for number in self.remote.numbers(peer) {
                self.end(number, Status::ERR_PEER_DEAD);
                for single in self.requests.singles() {
                    if matches!(single, Single::Read(of) | Single::Write(of) if *of == number) {
                        *single = Single::Lost;
                    }
                }
            }
            self.release_served(peer);
            self.events.push_back(Event::about(Event::UNFENCEABLE, peer));
        }
    }

    /// What was being sent to the dead holds no region any more.
    fn release_served(&mut self, peer: u32) {
        let mut regions = Vec::new();
        for single in self.requests.singles() {
            if let Single::Served { peer: of, region } = single
                && *of == peer
            {
                regions.extend(region.take());
            }
        }
        for region in regions {
            if let Some(found) = self.remote.regions.get_mut(&region) {
                found.busy -= 1;
            }
        }
    }
}
