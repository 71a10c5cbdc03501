//! The receiver of puts from ranks of other nodes. The holder of the lane's role stores the bytes
//! of a control message at once. It stores the signal where this rank's steps look for it: in a
//! session that this rank keeps for the sender (`Shadow`), or in a cell. Control messages may
//! overtake each other. So the receiver stores the signals of one edge in the order in which they
//! were sent, each after all bytes that were put before it. Then it checks, as any deliverer does,
//! which thread runs the queue. If there is none, it calls the progress thread and does not run the
//! steps itself, since a step may call a function of the user, which must not run while the role is
//! held. A thread that polls the network in a wait for the plan's round runs them soon
//! ([`while_waiting`]), and calls nobody.

use crate::coll::runner::in_arc;
use crate::coll::runner::members::{Member, Memory};
use crate::coll::runner::put_sender::{PlanMessage, Put, Signal};
use crate::coll::runner::queue::{NO_TAIL, full_fence, signal};
use crate::coll::runner::session::{self, Session};
use crate::coll::runner::shared::Stage;
use crate::coll::schedule::QUEUES;
use crate::core::background::Background;
use crate::engine::by_caller::copy;
use crate::engine::control_messages::{ControlReceiver, Words};
use crate::transport::address::Address;
use crate::util::pin::pin;
use crate::util::status::Status;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Private memory for the session of a rank of another node. It has only that rank's signal words
/// for this rank, one for each queue.
pub struct Shadow(Box<[Line]>);

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line(#[allow(dead_code, reason = "used by address")] [u64; 8]);

impl Shadow {
    /// For a rank that signals at most `queues` queues.
    pub fn new(queues: usize) -> Shadow {
        Shadow(vec![Line::default(); Shadow::bytes(queues).div_ceil(64)].into())
    }

    /// Bytes of such a memory.
    pub fn bytes(queues: usize) -> usize {
        session::size(&vec![1; queues], 0)
    }

    /// The member for the far rank with the number `rank` in the team and `peer` in the world.
    /// `memory`: the rank's memories.
    pub fn member(
        &mut self,
        (rank, peer): (usize, u32),
        queues: usize,
        memory: [Memory; 3],
    ) -> Member {
        let base = self.0.as_mut_ptr().cast();
        // SAFETY: zeroed lines, as many as new() has asked for; the plan keeps them.
        let session = unsafe { Session::create(base, &vec![1; queues], &vec![0; queues], NO_TAIL) };
        let address = Address { offset: 0, key: 0 };
        Member { rank, peer, session, address, memory, shared: false, notified: false, word: None }
    }
}

thread_local! {
    /// The stage of the plan for whose round the thread waits; see while_waiting().
    static WAITS_FOR: Cell<*const Stage> = const { Cell::new(std::ptr::null()) };
}

/// Calls `wait`, in which the calling thread waits for a round of the plan on this stage. `wait`
/// looks for steps that are ready after each poll of the network, before it sleeps, and before it
/// gives up.
pub fn while_waiting<T>(stage: &Stage, wait: impl FnOnce() -> T) -> T {
    let before = WAITS_FOR.replace(stage);
    let end = wait();
    WAITS_FOR.set(before);
    end
}

/// The plan into which the receiver stores.
pub trait Owner: Send + Sync {
    /// The stage on which its steps run.
    fn stage(&self) -> &Stage;
}

/// A far rank, as a sender of control messages.
struct Sender {
    /// Its number in the world.
    peer: u32,
    /// Its number in the team.
    rank: u32,
    /// By queue of the sender: the number of the next control message.
    next: [u32; QUEUES],
}

struct State {
    owner: Option<Weak<dyn Owner>>,
    /// Control messages that came before there was an owner.
    early: Vec<(u32, Words, Box<[u8]>)>,
    /// The far ranks, by number in the world.
    senders: Box<[Sender]>,
    /// Puts that have overtaken others, by the sender's number in the team, queue and number.
    ahead: BTreeMap<(u32, u8, u32), Put>,
    /// The round after whose end the plan fails, and the status.
    fails: Option<(u32, Status)>,
    /// The status with which the plan fails at once.
    failed: Option<Status>,
    /// fail() has taken a status from `failed`.
    has_failed: bool,
    closed: bool,
}

impl State {
    fn new(senders: Box<[Sender]>) -> State {
        let (early, ahead) = (Vec::new(), BTreeMap::new());
        let (fails, failed, has_failed, closed) = (None, None, false, false);
        State { owner: None, early, senders, ahead, fails, failed, has_failed, closed }
    }

    /// The status with which the caller must fail the plan now.
    fn take_failure(&mut self) -> Option<Status> {
        let failed = self.failed.take();
        self.has_failed |= failed.is_some();
        failed
    }

    /// A control message was handled. The first failure stays until fail() reports it: several
    /// messages may be handled before.
    fn handled(&mut self, end: Result<(), Status>) {
        self.failed = self.failed.or(end.err());
    }

    /// The plan fails after a round, unless it already fails after an earlier one.
    fn fail_after(&mut self, round: u32, status: Status) {
        if self.fails.is_none_or(|(known, _)| (round.wrapping_sub(known) as i32) < 0) {
            self.fails = Some((round, status));
        }
    }
}

/// See the head of the file.
pub struct PutReceiver {
    background: Arc<Background>,
    state: Mutex<State>,
}

impl PutReceiver {
    /// For a plan that is being made. `far`: the numbers of the far ranks in the world and in the
    /// team.
    pub fn new(background: Arc<Background>, far: impl Iterator<Item = (u32, u32)>) -> PutReceiver {
        let sender = |(peer, rank)| Sender { peer, rank, next: [0; QUEUES] };
        let mut senders = far.map(sender).collect::<Box<_>>();
        senders.sort_unstable_by_key(|sender| sender.peer);
        PutReceiver { background, state: Mutex::new(State::new(senders)) }
    }

    /// Bytes in this process's memory for so many far ranks, without control messages that came
    /// early or have overtaken others.
    pub fn bytes(far: usize) -> usize {
        in_arc::<PutReceiver>() + far * size_of::<Sender>()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called when the plan is made: stores the control messages that came early, and from now on
    /// each one that comes.
    pub fn open(&self, owner: Weak<dyn Owner>) {
        let mut state = self.state();
        let early = std::mem::take(&mut state.early);
        state.owner = Some(owner);
        for (source, words, bytes) in early {
            self.take(&mut state, source, words, &bytes);
        }
        fail(state);
    }

    /// Nothing is stored from now on. Returns whether a thread that has received a failure may
    /// still be failing the plan, which writes to the sessions of this node.
    pub fn close(&self) -> bool {
        let mut state = self.state();
        state.closed = true;
        state.has_failed
    }

    /// The status with which the plan fails for a rank that has ended `ended` rounds, if a peer has
    /// sent one.
    pub fn failed_after(&self, ended: u32) -> Option<Status> {
        let (round, status) = self.state().fails?;
        (ended.wrapping_sub(round) as i32 >= 0).then_some(status)
    }

    /// Handles a control message. The caller passes the state to fail() afterwards.
    fn take(&self, state: &mut State, source: u32, words: Words, bytes: &[u8]) {
        let owner = state.owner.as_ref().and_then(Weak::upgrade);
        let found = state.senders.binary_search_by_key(&source, |sender| sender.peer);
        let (Some(owner), Ok(at)) = (owner, found) else { return };
        let stage = owner.stage();
        match PlanMessage::decode(words) {
            Some(PlanMessage::Failed(status, None)) => state.handled(Err(status)),
            Some(PlanMessage::Failed(status, Some(round))) => {
                state.fail_after(round, status);
                stage.routes.waiters().touched_anything();
                self.background.call(true);
            }
            Some(PlanMessage::Put(put)) => {
                let stored = store(stage, put, bytes);
                let end = stored.and_then(|()| self.signal((&mut *state, at), stage, put));
                state.handled(end);
            }
            None => state.handled(Err(Status::ERR_INTERNAL)),
        }
    }

    /// Stores the signals of an edge in their order, up to the first control message that is
    /// missing. `at`: the place of the sender.
    fn signal(
        &self,
        (state, at): (&mut State, usize),
        stage: &Stage,
        put: Put,
    ) -> Result<(), Status> {
        let sender = &mut state.senders[at];
        let (rank, queue) = (sender.rank, put.queue);
        let next = sender.next.get_mut(usize::from(queue)).ok_or(Status::ERR_INTERNAL)?;
        // Most control messages come in order, and need no place in `ahead`.
        let mut turn = Some(put);
        if put.sequence != *next {
            state.ahead.insert((rank, queue, put.sequence), put);
            turn = None;
        }
        let mut signalled = 0_u32;
        while let Some(put) = turn {
            *next = next.wrapping_add(1);
            let to = store_signal(stage, rank as usize, put)?;
            signalled |= to.map_or(0, |to| 1 << to);
            turn = state.ahead.remove(&(rank, queue, *next));
        }
        if signalled == 0 {
            return Ok(());
        }
        full_fence();
        let session = &stage.members[stage.me].session;
        let alone = |queue| signalled >> queue & 1 == 1 && session.queue(queue).needs_runner();
        let looks = std::ptr::eq(WAITS_FOR.get(), stage);
        if !looks && (0..session.queues()).any(alone) {
            self.background.call(true);
        }
        Ok(())
    }
}

/// Fails the plan if a control message says so. Without the lock, since this thread may then
/// receive further control messages.
fn fail(mut state: MutexGuard<'_, State>) {
    let owner = state.owner.as_ref().and_then(Weak::upgrade);
    let failed = state.take_failure();
    drop(state);
    if let (Some(owner), Some(status)) = (owner, failed) {
        owner.stage().fail(status);
    }
}

/// Stores the bytes of a put.
fn store(stage: &Stage, put: Put, bytes: &[u8]) -> Result<(), Status> {
    if bytes.is_empty() {
        return Ok(());
    }
    let _pinned = pin();
    let place = (stage.me as u16, put.space, put.offset);
    let to = stage.find(place, bytes.len() as u64, put.round)?;
    // SAFETY: found in memory of this rank that stays while this thread is pinned, and the schedule
    // lets no other step touch it now.
    unsafe { copy(bytes.as_ptr(), to, bytes.len()) };
    Ok(())
}

/// Stores the signal of a put. Returns the queue that was signalled, if any.
fn store_signal(stage: &Stage, rank: usize, put: Put) -> Result<Option<usize>, Status> {
    let queues = stage.members[stage.me].session.queues();
    let (to, known) = match put.signal {
        Signal::Nothing => return Ok(None),
        Signal::Word(to, _) | Signal::Cell(to, _) => (usize::from(to), usize::from(to) < queues),
    };
    let member = &stage.members[rank];
    if !known || !member.is_far() || member.rank != rank || to >= member.session.queues() {
        return Err(Status::ERR_INTERNAL);
    }
    match put.signal {
        Signal::Cell(_, number) => match stage.cell(stage.me, number, put.round) {
            Some(word) => signal(word, put.round.wrapping_add(1)),
            None => return Err(Status::ERR_INTERNAL),
        },
        Signal::Word(_, value) => member.session.queue(to).send(stage.me, value),
        Signal::Nothing => {}
    }
    Ok(Some(to))
}

impl ControlReceiver for PutReceiver {
    fn received(&self, source: u32, words: Words, bytes: &[u8]) {
        let mut state = self.state();
        match &state.owner {
            _ if state.closed => {}
            None => state.early.push((source, words, bytes.into())),
            Some(_) => {
                self.take(&mut state, source, words, bytes);
                fail(state);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn state() -> State {
        State::new(Box::default())
    }

    #[test]
    fn a_put_does_not_hide_the_failure_before_it() {
        let mut state = state();
        for end in [Err(Status::ERR_KEY), Ok(()), Err(Status::ERR_RANGE)] {
            state.handled(end);
        }
        assert_eq!(state.failed, Some(Status::ERR_KEY));
    }

    /// The thread that fails the plan does so without the lock, and may be late.
    #[test]
    fn a_closed_receiver_says_that_it_may_still_fail_the_plan() {
        let mut state = state();
        assert_eq!((state.take_failure(), state.has_failed), (None, false));
        state.handled(Err(Status::ERR_KEY));
        assert_eq!((state.take_failure(), state.has_failed), (Some(Status::ERR_KEY), true));
        assert_eq!((state.take_failure(), state.has_failed), (None, true));
    }

    #[test]
    fn of_two_rounds_after_which_a_plan_fails_the_earlier_counts() {
        let mut state = state();
        for round in [3, 1, 2, u32::MAX, 0] {
            state.fail_after(round, Status(-(round as i32 & 7)));
        }
        assert_eq!(state.fails, Some((u32::MAX, Status(-7))));
    }
}
