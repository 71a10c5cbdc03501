//! The lane: a command queue, the role that works on it, and the three ways in which a thread comes
//! to hold the role: as the requester itself, as one that waits, as the progress thread.
//!
//! # Who sees to it that nothing is left lying
//!
//! Work comes from three sources: the queue, the inbox, the reply board. Each can be *armed*: its
//! next producer then learns that it must ring the bell (`engine::doorbell`). The rules:
//!
//! 1. The progress thread counts `parked` up before it sleeps and when it is awake again: odd means
//!    that it sleeps. It sleeps only if it could arm all sources, or if somebody else holds the role.
//! 2. Whoever gives the role up while `parked` is odd arms all sources before; if one of them has
//!    work, it rings the bell instead.
//! 3. After giving the role up, the holder, be it the progress thread that parks, looks once more: a
//!    requester that found the role taken, and a progress thread that parked because of that, rely
//!    on it. Between "give up" and "look", and on the other side between "publish" and "try to
//!    take", lies a full fence (`engine::role`). What was armed counts only if `parked` is the
//!    same as before: else the progress thread was woken meanwhile by what came, found the role
//!    taken, and sleeps again.
//! 4. A death cannot be armed for. Whoever looks for the last time looks for deaths, too.
//!
//! `engine::role` has models of these rules.

use crate::engine::command::{Command, Op};
use crate::engine::completion::in_callback;
use crate::engine::direct::Local;
use crate::engine::queued::{Queued, SLOT_BYTES, slots_for};
use crate::engine::ring::Ring;
use crate::engine::role::{Held, Role};
use crate::engine::routes::Routes;
use crate::engine::work::{Work, fire};
use crate::util::pin::pin;
use crate::util::status::{Error, Result, Status};
use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rounds that a thread works for others before it hands over to the progress thread.
const ROUNDS: usize = 16;
/// Looks without result after which a waiting thread gives the role up for a moment.
const LOOKS: usize = 32;

/// Who executes what a requester puts into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// The requester, if the role is free; else its holder; behind both the progress thread.
    Auto,
    /// The progress thread only.
    Offload,
    /// The requester only: nothing is queued, a role that is taken means "try again".
    Direct,
}

/// What one turn of the progress thread came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There was work.
    Worked,
    /// There was none, or somebody else does it.
    Idle,
}

/// See the head of the file.
pub struct Lane {
    ring: Ring<Queued>,
    /// On a line of its own, as `parked`: the progress thread writes them all the time, and every
    /// requester reads what stands beside them.
    role: CachePadded<Role<Work>>,
    routes: Arc<Routes>,
    parked: CachePadded<AtomicU64>,
    /// A peer has died since the last round.
    deaths: AtomicBool,
    execution: Execution,
}

impl Lane {
    /// A lane with an empty queue.
    pub fn new(
        routes: Arc<Routes>,
        execution: Execution,
        queue_entries: usize,
        in_flight: usize,
    ) -> Lane {
        let bell = routes.clone();
        let (ring, consumer) = Ring::new(queue_entries, move || bell.bell().ring());
        let work = Work::new(consumer, routes.receivers(), in_flight);
        let role = CachePadded::new(Role::new(work));
        let (parked, deaths) = (CachePadded::default(), AtomicBool::new(false));
        Lane { ring, role, routes, parked, deaths, execution }
    }

    /// The execution in force.
    pub fn execution(&self) -> Execution {
        self.execution
    }

    /// Puts a command into the queue, with the bytes that it carries. The caller is pinned until
    /// this returns where the command's local side is a region; it then calls `nudge`.
    #[inline]
    pub fn put(&self, command: &Command, bytes: &[u8]) -> Result<bool> {
        let extra = slots_for(bytes.len());
        let Some(mut reservation) = self.ring.reserve(1 + extra) else {
            return Err(Error::bare(Status::RETRY_QUEUE_FULL));
        };
        reservation.slot_mut(0).put(command, extra);
        for (i, piece) in bytes.chunks(SLOT_BYTES).enumerate() {
            reservation.slot_mut(1 + i).put_bytes(piece);
        }
        Ok(reservation.commit())
    }

    /// Sees to it that what was put is executed. `asleep` is what put() answered.
    #[inline]
    pub fn nudge(&self, asleep: bool) {
        // A thread inside a callback may be far down in somebody's stack, and holds the role often.
        if self.execution == Execution::Offload || in_callback() {
            self.leave_to_others(asleep);
        } else {
            self.help();
        }
    }

    /// The same for a command that the caller must not execute itself.
    #[inline]
    pub fn leave_to_others(&self, asleep: bool) {
        if asleep {
            self.routes.bell().ring();
        }
    }

    /// Executes a command at once, without the queue. `local` is looked up while the role is held:
    /// whoever frees the region waits for a flush, which needs the role.
    pub fn post_directly(&self, mut command: Command, local: Local) -> Result<()> {
        let Some(mut work) = self.role.take() else {
            return Err(Error::bare(Status::RETRY_BUSY));
        };
        work.disarm();
        let found = {
            let _pinned = pin();
            local.resolve(&self.routes, command.size)
        };
        let room = found.map(|place| {
            command.local = place;
            work.execute_one(&self.routes, command)
        });
        if !self.leave(work) {
            self.help();
        }
        match room {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::bare(Status::RETRY_NO_TAG)),
            Err(error) => Err(error),
        }
    }

    /// Takes the role, if it is free, and works until there is nothing to do or it is somebody
    /// else's turn. True: something was done.
    pub fn help(&self) -> bool {
        let mut worked = false;
        for _ in 0..ROUNDS {
            let Some(mut work) = self.role.take() else { return worked };
            work.disarm();
            worked |= self.rounds(&mut work);
            if self.leave(work) {
                return worked;
            }
        }
        self.routes.bell().ring();
        worked
    }

    /// Lends the calling thread to the lane for a moment, where the execution in force allows it.
    pub fn lend(&self) -> bool {
        self.execution != Execution::Offload && self.help()
    }

    /// Lends the calling thread to the lane until `done`, for a burst of looks without giving the
    /// core away. The role is not kept across the pauses in which another thread may run.
    pub fn attend(&self, done: impl Fn() -> bool) -> bool {
        if self.execution == Execution::Offload {
            return done();
        }
        let Some(mut work) = self.role.take() else { return done() };
        work.disarm();
        self.burst(&mut work, &done);
        if !self.leave(work) {
            self.help();
        }
        done()
    }

    fn rounds(&self, work: &mut Work) -> bool {
        let mut worked = false;
        for _ in 0..ROUNDS {
            if work.round(&self.routes, &self.deaths) == 0 {
                break;
            }
            worked = true;
        }
        worked
    }

    /// Gives the role up by the rules above. False: there is something to do again.
    fn leave(&self, mut work: Held<'_, Work>) -> bool {
        let parked = self.parked.load(Ordering::Relaxed);
        let asleep = is_asleep(parked);
        let armed = asleep && work.arm();
        drop(work);
        if asleep && !armed {
            self.routes.bell().ring();
            return true;
        }
        // Rules 3 and 4. The fence is in drop().
        let now = self.parked.load(Ordering::Relaxed);
        self.is_quiet() && (!is_asleep(now) || (armed && now == parked))
    }

    /// The last look after the role was given up: the sources that do not ring in any case.
    fn is_quiet(&self) -> bool {
        // In offload mode no requester relies on it.
        let queue = self.execution == Execution::Offload || self.ring.is_empty();
        queue && !self.deaths.load(Ordering::Relaxed)
    }

    /// One turn of the progress thread: a burst of looks, so that what comes within a microsecond
    /// is met by somebody who is awake and has the role.
    pub fn turn(&self) -> Turn {
        let Some(mut work) = self.role.take() else { return Turn::Idle };
        work.disarm();
        let worked = self.burst(&mut work, || false);
        if !self.leave(work) && self.execution != Execution::Offload {
            self.help();
        }
        if worked { Turn::Worked } else { Turn::Idle }
    }

    /// Looks for work until there was none for a while, or until `done`. True: there was some.
    #[inline]
    fn burst(&self, work: &mut Work, done: impl Fn() -> bool) -> bool {
        let (mut worked, mut looks) = (false, 0);
        while looks < LOOKS && !done() {
            match work.round(&self.routes, &self.deaths) {
                0 => {
                    looks += 1;
                    std::hint::spin_loop();
                }
                _ => (worked, looks) = (true, 0),
            }
        }
        worked
    }

    /// Prepares the progress thread's sleep. The ticket of the bell was read before. False: there
    /// is something to do, or to look after soon.
    pub fn park(&self) -> bool {
        self.count_parked();
        // The fence between this and the look at the role is in take().
        let Some(mut work) = self.role.take() else { return true };
        let armed = work.arm();
        drop(work);
        // Rules 3 and 4, for this holder too.
        armed && self.is_quiet()
    }

    /// The progress thread is awake again.
    pub fn unpark(&self) {
        self.count_parked();
    }

    /// Only the progress thread counts.
    fn count_parked(&self) {
        self.parked.store(self.parked.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// A peer has died: what is pending on it ends in the next round, which this brings about.
    pub fn mourn(&self) {
        // Release: the peer is known to be dead before; pairs with the swap in round().
        self.deaths.store(true, Ordering::Release);
        self.routes.bell().ring();
    }

    /// Ends whatever is still in the queue or in flight; says how much that was. Nobody puts
    /// anything in any more. None: the role is taken.
    pub fn cancel(&self) -> Option<usize> {
        let mut work = self.role.take()?;
        work.disarm();
        let count = work.cancel(&self.routes);
        if !self.leave(work) {
            self.help();
        }
        Some(count)
    }

    /// Whether nothing is in the queue or in flight; None: the role is taken.
    pub fn is_idle(&self) -> Option<bool> {
        self.role.take().map(|mut work| {
            work.disarm();
            let idle = work.is_idle();
            if !self.leave(work) {
                self.help();
            }
            idle
        })
    }
}

fn is_asleep(parked: u64) -> bool {
    parked % 2 == 1
}

impl Work {
    /// One round: own commands, then peers; returns how much was done.
    fn round(&mut self, routes: &Routes, deaths: &AtomicBool) -> usize {
        let mut count = self.execute(routes) + self.complete(routes);
        if deaths.load(Ordering::Relaxed) {
            // Acquire: pairs with the Release in mourn().
            deaths.swap(false, Ordering::Acquire);
            count += self.bury(routes);
        }
        count
    }

    /// Whether nothing is in the queue or in flight.
    fn is_idle(&self) -> bool {
        self.consumer.is_empty() && self.slots.is_empty()
    }

    /// Announces to all sources that nobody works from now on; false: one has work.
    fn arm(&mut self) -> bool {
        self.armed = true;
        self.unsent == 0
            && self.consumer.try_wait()
            && self.receivers.iter_mut().all(|receiver| receiver.arm())
    }

    /// Takes that back. It costs a write to lines that producers use, so only what was armed is.
    fn disarm(&mut self) {
        if !std::mem::take(&mut self.armed) {
            return;
        }
        self.consumer.cancel_wait();
        self.receivers.iter_mut().for_each(|receiver| receiver.disarm());
    }

    fn cancel(&mut self, routes: &Routes) -> usize {
        let mut count = self.end_if(routes, Status::ERR_CANCELED, |op| op.command.op != Op::FLUSH);
        while let Some((command, extra)) = self.consumer.peek(0).map(Queued::take) {
            // The slots of its bytes were filled before its own; they go together.
            let shown = (0..=extra).take_while(|at| self.consumer.peek(*at).is_some()).count();
            self.consumer.release(shown);
            if command.op != Op::NOTHING {
                fire(routes, &command, Status::ERR_CANCELED);
                count += 1;
            }
        }
        count + self.end_if(routes, Status::ERR_CANCELED, |_| true)
    }
}
