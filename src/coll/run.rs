//! Running steps: of one's own queues, and of other ranks' where memory is shared. The CPU that delivers
//! a signal plays the network card for a rank that is computing.

use crate::coll::combine::Kernel;
use crate::coll::queue::Control;
use crate::coll::record::{NOBODY, Record, act};
use crate::coll::session::Session;
use crate::engine::direct::copy;
use crate::engine::routes::Routes;
use crate::transport::address::Address;
use crate::util::pin::pin;
use crate::util::status::Status;
use std::ffi::c_void;
use std::sync::Arc;

/// A reduction of the user's: left, right, result, elements, data.
pub type Reduction =
    unsafe extern "C" fn(*const c_void, *const c_void, *mut c_void, u64, *mut c_void);

/// How elements are combined.
#[derive(Clone, Copy)]
pub enum Combiner {
    /// By one of the library's loops.
    Kernel(Kernel),
    /// By the user's function, with its data.
    User(Reduction, *mut c_void),
}

impl Combiner {
    /// # Safety
    /// As Kernel says; the user's function is what its type says.
    unsafe fn apply(&self, left: *const u8, right: *const u8, to: *mut u8, elements: u64) {
        // SAFETY: as the caller promises.
        unsafe {
            match self {
                Combiner::Kernel(kernel) => kernel(left, right, to, elements as usize),
                Combiner::User(function, data) => {
                    function(left.cast(), right.cast(), to.cast(), elements, *data);
                }
            }
        }
    }
}

/// One of the three memories of a rank, as this process reaches it.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// The user's: looked up at every use, because the user may free it.
    User(Address, u64),
    /// The plan's own, at this address, as many bytes.
    Plan(*mut u8, u64),
    /// Two of the plan's own, one behind the other in whole lines, of so many bytes each: used in turn
    /// round by round.
    Turns(*mut u8, u64),
}

/// A rank of the plan, as this process reaches it.
pub struct Member {
    /// Its number in the world.
    pub peer: u32,
    /// Its session.
    pub session: Session,
    /// Where its session lies, as its threads name it when they sleep.
    pub address: Address,
    /// Its Send, Receive and Scratch.
    pub memory: [Memory; 3],
    /// Any rank may run its steps.
    pub shared: bool,
    /// Its progress thread is to be told when a round ends.
    pub told: bool,
}

/// All that running needs. One for each plan and process.
pub struct Stage {
    /// This rank's number in the team.
    pub me: usize,
    /// The ranks of the team.
    pub members: Vec<Member>,
    /// How elements are combined.
    pub combiner: Option<Combiner>,
    /// Bytes of an element.
    pub width: u64,
    /// The paths to the peers.
    pub routes: Arc<Routes>,
}

// SAFETY: the pointers lead into memory that the plan keeps and all ranks share by the schedule's rules.
unsafe impl Send for Stage {}
// SAFETY: as above.
unsafe impl Sync for Stage {}

/// Queues that may have become ready, and how much may still be done.
pub struct Errand {
    /// Bytes, a step without any counting as a line.
    budget: u64,
    /// The caller is the owner's progress thread, or a thread that may stand in for it.
    owner: bool,
    /// The first step may exceed the budget, so that none is too large for anybody.
    first: bool,
    waiting: [(u16, u8); Errand::ROOM],
    count: usize,
    /// Something that was ready has been left to others.
    pub left: bool,
}

impl Errand {
    const ROOM: usize = 32;

    /// An errand of at most `budget` bytes. `owner`: steps of the own rank may be run even where no other rank
    /// may.
    pub fn new(budget: u64, owner: bool) -> Errand {
        Errand {
            budget,
            owner,
            first: true,
            waiting: [(0, 0); Errand::ROOM],
            count: 0,
            left: false,
        }
    }

    /// An errand that keeps to its budget in any case.
    pub fn small(budget: u64) -> Errand {
        Errand { first: false, ..Errand::new(budget, true) }
    }

    fn take(&mut self, size: u64) -> bool {
        let cost = size.max(64);
        let enough = self.first || self.budget >= cost;
        if enough {
            self.budget = self.budget.saturating_sub(cost);
            self.first = false;
        }
        self.left |= !enough;
        enough
    }

    fn push(&mut self, rank: usize, queue: usize) {
        if self.count < Errand::ROOM {
            self.waiting[self.count] = (rank as u16, queue as u8);
            self.count += 1;
        } else {
            self.left = true;
        }
    }
}

impl Stage {
    /// Whether the next step of a queue could be run: a hint, for who looks before claiming.
    #[inline]
    pub fn is_ready(&self, rank: usize, queue: usize) -> bool {
        let session = &self.members[rank].session;
        let line = session.queue(queue);
        let control = line.control();
        if !control.is_active() || control.claimer().is_some() {
            return false;
        }
        let records = session.records(queue);
        let at = records.start + line.at();
        at >= records.end || has_arrived(session, queue, &session.record(at), control)
    }

    /// Runs what is ready in a queue, and what that makes ready elsewhere. True: something was done.
    pub fn run(&self, rank: usize, queue: usize, errand: &mut Errand) -> bool {
        let mut worked = false;
        let mut next = Some((rank, queue));
        while let Some((rank, queue)) = next {
            if rank == self.me && errand.owner || self.members[rank].shared {
                worked |= self.run_queue(rank, queue, errand);
            }
            next = errand.count.checked_sub(1).map(|last| {
                errand.count = last;
                let (rank, queue) = errand.waiting[last];
                (rank.into(), queue.into())
            });
        }
        worked
    }

    fn run_queue(&self, rank: usize, queue: usize, errand: &mut Errand) -> bool {
        let session = &self.members[rank].session;
        let line = session.queue(queue);
        let records = session.records(queue);
        let Some(mut seen) = line.claim(self.me) else { return false };
        let mut worked = false;
        loop {
            let at = records.start + line.at();
            if at >= records.end {
                line.finish();
                self.tell_finished(rank, queue);
                return true;
            }
            let record = session.record(at);
            let ready = has_arrived(session, queue, &record, seen) && session.failed().is_none();
            if !ready || !errand.take(record.size) {
                match line.release(seen) {
                    Ok(()) => return worked,
                    Err(now) => seen = now,
                }
                continue;
            }
            if let Err(status) = self.perform(&record, seen.finished()) {
                self.fail(status);
                continue;
            }
            line.advance_to(at + 1 - records.start);
            worked = true;
            if record.signal_rank != NOBODY {
                self.signal(rank, &record, seen.finished(), errand);
            }
        }
    }

    /// The plan fails, for everybody.
    #[cold]
    pub fn fail(&self, status: Status) {
        self.members.iter().for_each(|member| member.session.fail(status));
    }

    /// A step of `rank` has been run in its round `round`: its signal.
    #[inline]
    fn signal(&self, rank: usize, record: &Record, round: u32, errand: &mut Errand) {
        let (to, queue) = (record.signal_rank as usize, record.signal_queue as usize);
        let Some(member) = self.members.get(to).filter(|member| queue < member.session.queues())
        else {
            return self.fail(Status::ERR_INTERNAL);
        };
        let value = round.wrapping_mul(record.signal_total).wrapping_add(record.signal_count);
        let found = member.session.queue(queue).deliver(rank, value);
        if !found.is_active() || found.claimer().is_some() || found.is_attended() {
            return;
        }
        if member.shared || to == self.me && errand.owner {
            errand.push(to, queue);
        } else if member.session.is_asleep() {
            self.routes.ring(member.peer);
        }
    }

    fn tell_finished(&self, rank: usize, queue: usize) {
        let member = &self.members[rank];
        if let Some(port) = self.routes.known(member.peer) {
            let control = member.session.offset(queue) as u64;
            port.waiters()
                .touched(Address { offset: member.address.offset + control, ..member.address }, 8);
        }
        if member.told && rank != self.me && member.session.is_asleep() {
            self.routes.ring(member.peer);
        }
    }

    /// Does what a step does with bytes, in this round.
    #[inline]
    fn perform(&self, record: &Record, round: u32) -> Result<(), Status> {
        if record.action == act::NOTHING {
            return Ok(());
        }
        let _pinned = pin();
        let to = self.find(record, 2, round)?;
        let left = self.find(record, 0, round)?;
        let size = record.size as usize;
        if record.action == act::COPY {
            // SAFETY: both ranges were found in memory that stays mapped while this is pinned, and the
            // schedule lets nobody else touch them now.
            unsafe { copy(left, to, size) };
            return Ok(());
        }
        let right = self.find(record, 1, round)?;
        let Some(combiner) = &self.combiner else { return Err(Status::ERR_INTERNAL) };
        // SAFETY: as above; operands are the result or do not overlap it, as schedules promise.
        unsafe { combiner.apply(left, right, to, record.size / self.width) };
        Ok(())
    }

    /// Where one of the places of a record lies here, in this round.
    #[inline]
    fn find(&self, record: &Record, which: usize, round: u32) -> Result<*mut u8, Status> {
        let (rank, space) = (record.ranks[which] as usize, record.spaces[which] as usize);
        let (offset, size) = (record.offsets[which], record.size);
        let Some(member) = self.members.get(rank) else { return Err(Status::ERR_INTERNAL) };
        let Some(memory) = member.memory.get(space) else { return Err(Status::ERR_INTERNAL) };
        let (Memory::User(_, length) | Memory::Plan(_, length) | Memory::Turns(_, length)) =
            *memory;
        if size > length || offset > length - size {
            return Err(Status::ERR_INTERNAL);
        }
        match *memory {
            Memory::Plan(base, _) => Ok(base.wrapping_add(offset as usize)),
            Memory::Turns(base, length) => {
                let turn = u64::from(round % 2) * length.next_multiple_of(64);
                Ok(base.wrapping_add((turn + offset) as usize))
            }
            Memory::User(address, _) => {
                let place = Address { offset: address.offset + offset, ..address };
                let found = self.routes.known(member.peer).and_then(|port| port.find(place, size));
                found.ok_or_else(|| self.why_not(member.peer))
            }
        }
    }

    #[cold]
    fn why_not(&self, peer: u32) -> Status {
        if self.routes.is_dead(peer) { Status::ERR_PEER_DEAD } else { Status::ERR_KEY }
    }
}

/// Whether what a step waits for has come; `control` says which round it is.
#[inline(always)]
fn has_arrived(session: &Session, queue: usize, record: &Record, control: Control) -> bool {
    let round = control.finished();
    record.wait_from == NOBODY || {
        let least = round.wrapping_mul(record.wait_total).wrapping_add(record.wait_count);
        let line = session.queue(queue);
        (record.wait_from as usize) < line.signals.len()
            && line.arrived(record.wait_from.into(), least)
    }
}
