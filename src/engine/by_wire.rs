//! Operations that a network executes in the memory of a peer. The holder of the lane's role
//! gathers them for each peer and posts them in batches, so the network adapter's doorbell is
//! written once for each batch. They are entries of the in-flight table in the stages
//! [`Stage::Posted`] and [`Stage::Device`], and the network reports their completions by tag.
//!
//! If the network cannot do an operation, for instance because this rank's memory is not
//! registered, the operation goes on as a request to the owner. An operation that was posted ends
//! only when the network reports its completion, even if the peer has died: until then the network
//! may use this rank's memory.
//!
//! If the network can bring a signal with a write (`Fabric::has_signals`), the last bytes of a
//! write with signal bring it. The owner changes the word when the bytes are there, and answers. If
//! the network's completion contains the answer ([`ANSWERED`]), the completion ends the write.
//! Otherwise the write ends when both the completion and the owner's answer have come, in any
//! order. When only the answer is missing, its stage is [`Stage::Word`], as if the signal had been
//! a request. A control message behind a write ([`Op::WRITE_CONTROL`]) travels in the same way. An
//! atomic, too, if the network can bring it (`Fabric::has_atomics`): as a write of no bytes, whose
//! completion always contains the answer, with the old value of the word.

use crate::engine::atomic;
use crate::engine::by_device;
use crate::engine::by_owner::{InFlight, Stage};
use crate::engine::command::{Command, Op};
use crate::engine::control_messages::PostedControl;
use crate::engine::in_flight::Tag;
use crate::engine::lane_state::LaneState;
use crate::engine::post_line::PostLine;
use crate::engine::routes::Routes;
use crate::transport::address::Address;
use crate::transport::fabric::Fabric;
use crate::transport::fabric::far::Resolver;
use crate::transport::frame::Class;
use crate::transport::remote::{ANSWERED, NO_ATOMIC, Posting, Signal, Stopped, What};
use crate::transport::{MESSAGE_WORDS, Reply};
use crate::util::status::Status;

/// Most work requests of one batch.
const BATCH: usize = 64;

/// The abilities of the network.
#[derive(Clone, Copy)]
struct Able {
    /// Most bytes of a read or write.
    most: u64,
    /// See `Fabric::device_atomics`.
    atomics: u64,
    /// See `Fabric::has_signals`.
    signals: bool,
}

impl Able {
    /// The abilities for operations on a peer's memory.
    fn of(fabric: &Fabric, peer: u32) -> Able {
        let (most, atomics) = (fabric.remote_most(), fabric.device_atomics());
        Able { most, atomics, signals: fabric.has_signals(peer) }
    }
}

/// The next step of an operation after a completion of the network.
enum Next {
    /// It has ended.
    End(Status),
    /// The lane must post or send its new stage.
    Post,
    /// The owner's answer to its signal is missing.
    Wait,
}

impl InFlight {
    /// Whether a network executes the present stage. `sent` says whether it was posted yet.
    pub fn is_posted(&self) -> bool {
        matches!(self.stage, Stage::Posted { .. } | Stage::Device { .. })
    }

    /// The first stage of a read or write that a network can do. `most`: the network's largest
    /// transfer.
    pub fn first_posted(size: u64, most: u64) -> Stage {
        Stage::Posted { done: 0, size: size.min(most) }
    }

    /// Whether a network executes the present stage, and the stage is the last one of a write with
    /// signal, or before a control message. If the network's writes bring signals, the owner
    /// answers this one.
    pub fn is_posted_with_signal(&self) -> bool {
        let Stage::Posted { done, size } = self.stage else { return false };
        let Command { op, size: all, .. } = self.command;
        op.is_announced() && done + size == all
    }

    /// The work request for the present stage. None: the remote key is not known any more.
    fn posting(&self, resolver: &Resolver, able: Able, tag: Tag) -> Option<Posting> {
        let command = &self.command;
        let (remote, key) = resolver.resolve(command.remote)?;
        let (what, done, size) = match self.stage {
            Stage::Posted { .. } if command.op == Op::ATOMIC => {
                return Some(atomic_posting(command, tag, remote, key));
            }
            Stage::Posted { done, size } => {
                let announces = able.signals && self.is_posted_with_signal();
                // SAFETY: the operation has not ended.
                (unsafe { what_of(command, announces) }, done, size)
            }
            Stage::Device { guess } => {
                (by_device::posting(command, able.atomics, guess), 0, by_device::WIDTH)
            }
            _ => return None,
        };
        let local = command.local.wrapping_add(done as usize);
        Some(Posting { tag: tag.0, what, local, size, remote: remote + done, key })
    }

    /// Changes the stage to a request to the owner for the bytes that are left.
    fn leave_to_owner(&mut self) {
        self.stage = match self.stage {
            Stage::Posted { .. } if self.command.op == Op::ATOMIC => Stage::Word,
            Stage::Posted { done, .. } => Stage::Data { done },
            stage => stage,
        };
    }

    /// Handles the completion of the present stage, and sets the next one.
    fn ended(&mut self, end: Reply, able: Able) -> Next {
        if end.status != Status::OK {
            return Next::End(end.status);
        }
        let (done, size) = match self.stage {
            Stage::Posted { done, size } => (done, size),
            Stage::Device { guess } => return self.changed(guess, end.result, able.atomics),
            _ => return Next::Wait,
        };
        let (done, all) = (done + size, self.command.size);
        self.stage = match self.command.op {
            _ if done < all => Stage::Posted { done, size: (all - done).min(able.most) },
            Op::ATOMIC => return Next::End(self.fetched(end.result)),
            op if op.is_announced() && end.result == ANSWERED => return Next::End(Status::OK),
            op if op.is_announced() && able.signals => {
                self.stage = Stage::Word;
                return self.answer.map_or(Next::Wait, Next::End);
            }
            // The owner changes the signal word, since it must wake the threads that sleep on it.
            // The owner sees the data by now.
            op if op.is_announced() => Stage::Word,
            _ => return Next::End(Status::OK),
        };
        self.sent = false;
        Next::Post
    }

    /// The adapter has returned the old value of the word.
    fn changed(&mut self, guess: u64, fetched: u64, atomics: u64) -> Next {
        let command = &self.command;
        if let Some(guess) = by_device::again(command, atomics, guess, fetched) {
            (self.stage, self.sent) = (Stage::Device { guess }, false);
            return Next::Post;
        }
        Next::End(self.fetched(fetched))
    }

    /// Delivers the old value of the word of an atomic.
    fn fetched(&self, old: u64) -> Status {
        // SAFETY: the user vouches for the result's place until the completion fires.
        unsafe { atomic::deliver(self.command.local, self.command.kind, old) };
        Status::OK
    }
}

/// What the network does for a command. `announces`: this is the last transfer of a write, and it
/// brings the owner a signal or a control message.
///
/// # Safety
/// The command is in the in-flight table and has not ended.
#[inline(always)]
unsafe fn what_of(command: &Command, announces: bool) -> What {
    let Command { code: op, signal: word, operand: value, .. } = *command;
    match command.op {
        Op::READ => What::Read,
        Op::WRITE_CONTROL if announces => {
            // SAFETY: the promise of InFlight::new(), which holds until the operation has ended.
            What::WriteSignal(unsafe { PostedControl::of(command) }.notice())
        }
        // core::submit has translated the signal's code into that of an atomic operation.
        _ if announces => {
            What::WriteSignal(Signal { op, kind: NO_ATOMIC, word, value, compare: 0 })
        }
        _ => What::Write,
    }
}

/// The work request for an atomic that the owner's processor executes.
#[inline(always)]
fn atomic_posting(command: &Command, tag: Tag, remote: u64, key: [u64; 4]) -> Posting {
    let Command { code: op, kind, remote: word, operand: value, compare, .. } = *command;
    let what = What::WriteSignal(Signal { op, kind, word, value, compare });
    // The network uses no byte of it. The place of the result may be null.
    let local = std::ptr::dangling_mut();
    Posting { tag: tag.0, what, local, size: 0, remote, key }
}

impl LaneState {
    /// Puts an operation behind those that wait to be posted for the same peer.
    pub(super) fn gather(&mut self, tag: Tag) {
        if let Some(operation) = self.slots.get_mut(tag) {
            self.posts.put(operation.command.peer, |line| line.tags.push_back(tag));
        }
    }

    /// Begins a read, a write (with or without signal) or an atomic, of bytes at `local`, and posts
    /// it. If operations wait to be posted, it lines up. False: nothing has happened, for instance
    /// since the table is full, or this rank does not know the region.
    ///
    /// # Safety
    /// As for InFlight::new().
    #[inline(always)]
    pub(super) unsafe fn post_now(
        &mut self,
        routes: &Routes,
        (command, local): (&Command, *mut u8),
        carried: bool,
    ) -> bool {
        let (fabric, peer) = (routes.fabric(), command.peer);
        // If the bootstrap alone knows of a death, mark_dead() will end the operation.
        if fabric.is_dead(peer) {
            return false;
        }
        let bytes = (peer, command.remote, command.reach());
        let Some((remote, key)) = fabric.find_far(&mut self.last_region, bytes) else {
            return false;
        };
        let is_word = match command.op {
            Op::ATOMIC => (remote | command.remote.offset).is_multiple_of(command.reach()),
            Op::WRITE_SIGNAL => self.finds_word(fabric, peer, command.signal),
            _ => true,
        };
        if !is_word {
            return false;
        }
        let size = command.size.min(fabric.remote_most());
        let stage = Stage::Posted { done: 0, size };
        // SAFETY: as the caller promises.
        let operation = unsafe { InFlight::of(command, local, stage, self.order + 1) };
        let Some((tag, operation)) = self.slots.insert_and_get(operation) else { return false };
        if carried {
            // SAFETY: as the caller promises.
            unsafe { operation.carry() };
        }
        let local = operation.command.local;
        let at_once = self.posts.is_empty();
        // Until the end of this function nobody else looks at it.
        operation.sent = at_once;
        self.order += 1;
        self.count_under_way();
        let (count, stopped) = match at_once {
            true => {
                let posting = match command.op {
                    Op::ATOMIC => atomic_posting(command, tag, remote, key),
                    op => {
                        let announces = op == Op::WRITE_SIGNAL && size == command.size;
                        // SAFETY: the operation has begun.
                        let what = unsafe { what_of(command, announces) };
                        Posting { tag: tag.0, what, local, size, remote, key }
                    }
                };
                // SAFETY: as in post_first().
                unsafe { fabric.post_remote(peer, &[posting]) }
            }
            false => (0, Stopped::No),
        };
        if count == 0 {
            self.line_up(routes, tag, stopped);
        }
        true
    }

    /// Whether a signal may change a word: this rank knows its region, and it is aligned.
    #[inline(always)]
    fn finds_word(&mut self, fabric: &Fabric, peer: u32, word: Address) -> bool {
        let found = fabric.find_far(&mut self.last_word, (peer, word, 8));
        found.is_some_and(|(remote, _)| (remote | word.offset).is_multiple_of(8))
    }

    /// The rest of post_now() for an operation that was not posted. Others wait before it, or the
    /// network has refused it.
    #[inline(never)]
    fn line_up(&mut self, routes: &Routes, tag: Tag, stopped: Stopped) {
        if let Some(operation) = self.slots.get_mut(tag) {
            operation.sent = false;
        }
        self.send_or_wait(routes, tag);
        if stopped != Stopped::Later {
            self.post_gathered(routes);
        }
    }

    /// Posts gathered operations, as many as the network accepts. Returns how many have left the
    /// peers' lines.
    pub(in crate::engine) fn post_gathered(&mut self, routes: &Routes) -> usize {
        if self.posts.is_empty() {
            return 0;
        }
        let (mut posts, mut posted) = (std::mem::take(&mut self.posts), 0);
        posts.serve(|line| {
            let (count, all) = self.post_line(routes, line);
            posted += count;
            all
        });
        debug_assert!(self.posts.is_empty(), "nothing is gathered while operations are posted");
        self.posts = posts;
        posted
    }

    /// Whether the progress thread may sleep while operations are unsent. Those for the network
    /// need an operation of this rank that is posted, whose completion makes room and rings the
    /// bell. The requests need room at their owners, for which the carrier rings.
    pub(super) fn waits_for_room(&self, routes: &Routes) -> bool {
        (self.posts.is_empty() || self.slots.iter().any(|(_, it)| it.is_posted() && it.sent))
            && (self.waiting.is_empty() || self.sleeps_for_owners(routes.fabric()))
    }

    /// Asks for a ring of the progress thread when there is credit for the next requests to each
    /// owner. False: there is credit for one of them, for instance because it waits for a large
    /// slot for its answer; or nobody would ring.
    fn sleeps_for_owners(&self, fabric: &Fabric) -> bool {
        fabric.sleeps_for_credit(|| {
            self.waiting.next().map(|(peer, tag)| {
                let bytes = (8 * MESSAGE_WORDS, self.slots.get(tag)?.bytes().len());
                Some((fabric.known_sender(peer)?, Class::Lib, bytes))
            })
        })
    }

    /// Posts the first operations of a peer's line. Returns how many have left the line, and
    /// whether the network may accept the next ones, too.
    fn post_line(&mut self, routes: &Routes, line: &mut PostLine) -> (usize, bool) {
        if line.pauses(self.completions) {
            return (0, false);
        }
        let (count, stopped) = self.post_first(routes, line.tags.iter().copied());
        line.tags.drain(..count);
        match stopped {
            Stopped::Later => {
                line.refused(self.completions);
                (count, false)
            }
            Stopped::No => (count, true),
            Stopped::NeedsOwner => {
                line.tags.pop_front().into_iter().for_each(|tag| self.give_up(routes, tag));
                (count + 1, true)
            }
        }
    }

    /// Posts the first operations of one peer. Returns how many, and why the next one was not
    /// posted. NeedsOwner: it has ended, or its peer is dead, or only the owner can execute it.
    fn post_first(
        &mut self,
        routes: &Routes,
        tags: impl Iterator<Item = Tag> + Clone,
    ) -> (usize, Stopped) {
        let peer = tags.clone().find_map(|tag| Some(self.slots.get_mut(tag)?.command.peer));
        let Some(peer) = peer.filter(|peer| !routes.is_dead(*peer)) else {
            return (0, Stopped::NeedsOwner);
        };
        let (fabric, mut batch) = (routes.fabric(), std::mem::take(&mut self.batch));
        let (resolver, able) = (fabric.resolver(peer), Able::of(fabric, peer));
        let all = tags.clone().take(BATCH).all(|tag| {
            let operation = self.slots.get_mut(tag).filter(|it| it.is_posted());
            let posting = operation.and_then(|it| it.posting(&resolver, able, tag));
            batch.extend(posting);
            posting.is_some()
        });
        drop(resolver);
        // SAFETY: the user keeps the local sides valid until the completions fire. Bytes that an
        // operation has copied live as long as the operation, or as the wire: end() passes them to
        // Fabric::keep().
        let (count, stopped) = unsafe { fabric.post_remote(peer, &batch) };
        batch.clear();
        self.batch = batch;
        for tag in tags.take(count) {
            if let Some(operation) = self.slots.get_mut(tag) {
                operation.sent = true;
                self.unsent -= 1;
            }
        }
        (count, if stopped == Stopped::No && !all { Stopped::NeedsOwner } else { stopped })
    }

    /// Ends an operation whose peer is dead, or leaves it to its owner.
    fn give_up(&mut self, routes: &Routes, tag: Tag) {
        let peer = self.slots.get_mut(tag).map(|operation| operation.command.peer);
        match peer.is_some_and(|peer| routes.is_dead(peer)) {
            true => self.end(routes, tag, Status::ERR_PEER_DEAD),
            false => self.ask_owner(routes, tag),
        }
    }

    fn ask_owner(&mut self, routes: &Routes, tag: Tag) {
        let Some(operation) = self.slots.get_mut(tag) else { return };
        if matches!(operation.stage, Stage::Device { .. }) {
            // A work request needs the network's key, which this rank has forgotten: the owner has
            // refused the remote key meanwhile, since the region was freed.
            return self.end(routes, tag, Status::ERR_KEY);
        }
        operation.leave_to_owner();
        // send_or_wait() counts the operation as unsent again.
        self.unsent -= 1;
        self.send_or_wait(routes, tag);
    }

    /// Handles a completion of the network.
    pub(in crate::engine) fn wire_ended(&mut self, routes: &Routes, end: Reply) {
        self.completions += 1;
        let tag = Tag(end.tag);
        // A tag without a posted operation: the operation has ended before, or never existed.
        let Some(operation) = self.slots.get_mut(tag).filter(|it| it.sent && it.is_posted()) else {
            return;
        };
        let peer = operation.command.peer;
        match operation.ended(end, Able::of(routes.fabric(), peer)) {
            Next::End(status) => {
                self.end(routes, tag, status);
                self.ask_again(routes);
            }
            Next::Post => self.send_or_wait(routes, tag),
            // mark_dead() has not ended the operation, since the network's completion had not come.
            Next::Wait if routes.is_dead(peer) => {
                self.end(routes, tag, Status::ERR_PEER_DEAD);
                self.ask_again(routes);
            }
            Next::Wait => {}
        }
    }
}
