//! A plan: a collective that all ranks of a team make once, and then start and wait for any number
//! of times.
//!
//! Four counters of rounds describe the state of a plan at one rank. Each of them reaches a number
//! after the one before: `rounds` (started), `opened` (the queues are active), `closed` (a thread
//! has taken the round in order to end it) and `ended`. The session has the last two, see
//! `runner::round_end`. A plan without a completion has a fifth counter, `settled` (the user has
//! waited). Between start and end, threads of all ranks work for the round, see `work`.

pub mod asked;
mod attach;
mod bound;
mod bytes;
pub mod compare;
mod failing;
pub mod make;
mod policy;
mod quiet;
mod start;
#[cfg(all(test, not(loom)))]
mod tests;
mod wait;
mod work;

use crate::coll::arena::{self, Arena};
use crate::coll::plan::attach::SESSION;
use crate::coll::plan::bound::Bound;
use crate::coll::plan::failing::{Beside, failed};
use crate::coll::plan::policy::{Facts, Habits, Policy};
use crate::coll::plan::quiet::Parked;
use crate::coll::problem;
use crate::coll::runner::put_receiver::{Owner, PutReceiver, Shadow};
use crate::coll::runner::queue::full_fence;
use crate::coll::runner::record::Record;
use crate::coll::runner::round_end::RoundEnd;
use crate::coll::runner::session::Session;
use crate::coll::runner::shared::{Stage, Worklist};
use crate::core::background::Task;
use crate::core::services::Services;
use crate::engine::completion::{self, Completion};
use crate::fail;
use crate::transport::address::Address;
use crate::util::status::{Error, Result, Status};
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Which threads run the steps of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The threads that deliver signals, of any rank.
    Offload = 0,
    /// The rank's progress thread only.
    Thread = 1,
}

/// The properties of a plan, for llcl_coll_query().
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// Which threads run the steps.
    pub engine: Engine,
    /// Whether threads of other ranks may run this rank's steps.
    pub shared: bool,
    /// Queues of this rank.
    pub queues: u32,
    /// Steps of this rank.
    pub steps: u32,
    /// Bytes that the plan takes at this rank, in the arena and in private memory.
    pub memory: u64,
    /// Of these, bytes in private memory.
    pub private: u64,
}

/// A part of a buffer that peers do not map, and its copy in the session.
#[derive(Clone, Copy, Debug)]
pub struct Bounce {
    user: Address,
    plan: *mut u8,
    bytes: u64,
}

impl Bounce {
    /// A block of a buffer that begins at `user`, with the copy of that buffer at `plan`.
    fn of(user: Address, plan: *mut u8, block: &problem::Block) -> Bounce {
        Bounce {
            user: Address { offset: user.offset + block.offset, ..user },
            plan: plan.wrapping_add(block.offset as usize),
            bytes: block.size,
        }
    }
}

/// The parts of a plan for ranks of other nodes.
pub struct Far {
    /// The name of the plan, equal at all ranks.
    name: u64,
    put_receiver: Arc<PutReceiver>,
    _shadows: Box<[Shadow]>,
}

/// How often a testing thread yields its core while another thread ends the round.
const TURNS_TO_END: u32 = 64;

/// A bit of Plan::counted. By this bit round 0, to which the counter may wrap around, differs from
/// "none".
const COUNTED: u64 = 1 << 32;

/// A plan at one rank; see the head of the file.
pub struct Plan {
    services: Arc<Services>,
    arena: Arc<Arena>,
    stage: Stage,
    block: arena::Block,
    about: About,
    texts: [CString; 2],
    inputs: Box<[Bounce]>,
    outputs: Box<[Bounce]>,
    /// The buffers' places, if each start may set them anew.
    bound: Option<Bound>,
    /// Connections to ranks of other nodes, if the program names any.
    far: Option<Far>,
    on_complete: Completion,
    /// The completion of the present round, where `on_complete` is EACH_START.
    round_completion: Mutex<Completion>,
    policy: Policy,
    habits: Habits,
    /// How many rounds were started. The low half is the number of the last one, which may wrap
    /// around, as may all other numbers of rounds.
    rounds: AtomicU64,
    opening: AtomicU32,
    opened: AtomicU32,
    settled: AtomicU32,
    /// The status of the last round that has ended.
    outcome: AtomicI32,
    /// A failed round that is not reported yet, because other threads may still access this rank's
    /// buffers.
    parked: Parked,
    beside: Beside,
    /// The round for which the progress thread was asked to look, plus COUNTED; 0: none.
    counted: AtomicU64,
    /// Whether steps of any rank are ready and were left to the progress thread.
    left: AtomicBool,
    /// Whether a thread is awake in a wait for the round: the progress thread need not work for it.
    waiting: AtomicBool,
    deaths: AtomicU32,
    made: Instant,
    /// The number of rounds started when the progress thread last called is_worth_staying().
    watched: AtomicU32,
    /// Whether the progress thread sleeps, as the session says.
    asleep: AtomicBool,
}

// SAFETY: the pointers of bounces point into the plan's block, and the user keeps the memory that
// the completion names valid.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Plan {
    fn new(
        (services, arena): (Arc<Services>, Arc<Arena>),
        stage: Stage,
        (block, about, reason): (arena::Block, About, String),
        (inputs, outputs, bound, far): (Vec<Bounce>, Vec<Bounce>, Option<Bound>, Option<Far>),
        (records, size): (&[Record], u64),
        (on_complete, crowded, fenced): (Completion, bool, bool),
    ) -> Plan {
        let has_completion = on_complete.kind != completion::NONE;
        let policy = Policy::of(&Facts {
            cost: records.iter().map(|record| record.size.max(64)).sum(),
            size,
            copied: inputs.iter().map(|bounce| bounce.bytes).sum(),
            queues: about.queues,
            steps: about.steps,
            shared: about.shared,
            has_completion,
            engine: about.engine,
            crowded,
            fenced,
        });
        let text = |text: &str| CString::new(text).unwrap_or_default();
        let texts = [text(about.algorithm), text(&reason)];
        // This differs from the current count, so the first start looks for ranks that died since
        // the last exchange.
        let deaths = services.routes.deaths().wrapping_sub(1);
        Plan {
            services,
            arena,
            stage,
            block,
            about,
            texts,
            inputs: inputs.into(),
            outputs: outputs.into(),
            bound,
            far,
            on_complete,
            round_completion: Mutex::new(Completion::NOTHING),
            policy,
            habits: Habits::new(has_completion),
            rounds: AtomicU64::new(0),
            opening: AtomicU32::new(0),
            opened: AtomicU32::new(0),
            settled: AtomicU32::new(0),
            outcome: AtomicI32::new(0),
            parked: Parked::default(),
            beside: Beside::default(),
            counted: AtomicU64::new(0),
            left: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            deaths: AtomicU32::new(deaths),
            made: Instant::now(),
            watched: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
        }
    }

    /// The properties, the names of algorithm and reason as C strings, and the number of starts.
    pub fn about(&self) -> (About, &[CString; 2], u64) {
        let copies = self.bound.as_ref().map_or(0, Bound::copied);
        let about = About { memory: self.about.memory + copies, ..self.about };
        (about, &self.texts, self.rounds.load(Ordering::Relaxed))
    }

    /// Whether the next round may be started: the round before has ended, and its end was reported
    /// to the user.
    pub fn may_start(&self) -> bool {
        self.is_settled(self.round())
    }

    /// Starts the next round with these buffers and this completion. Only for a plan that was made
    /// with EACH_START as its completion.
    pub fn start_for(&self, places: [Address; 2], completion: Completion) -> Result<()> {
        if !self.may_start() {
            return Err(Error::bare(Status::RETRY_BUSY));
        }
        *self.round_completion() = completion;
        self.start_with(places)
    }

    fn round_completion(&self) -> std::sync::MutexGuard<'_, Completion> {
        self.round_completion.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The completion of the present round. Read it before the round ends, since the next round may
    /// then begin with another one.
    fn completion(&self) -> Completion {
        match self.on_complete.target == EACH_START.target {
            true => *self.round_completion(),
            false => self.on_complete,
        }
    }

    /// Nanoseconds since the plan was made, the clock of `habits`.
    fn clock(&self) -> u64 {
        self.made.elapsed().as_nanos() as u64
    }

    /// If the worklist has left steps undone, of any rank, leaves them to the progress thread.
    fn note_left(&self, worklist: &Worklist) {
        if worklist.left {
            self.leave_to_progress_thread();
        }
    }

    fn leave_to_progress_thread(&self) {
        if !self.left.swap(true, Ordering::AcqRel) {
            self.services.background.add_work();
            self.services.background.call(false);
        }
    }

    /// Works for the round once, and then returns whether it has ended.
    pub fn test(&self) -> Result<()> {
        // A forked child must not run steps of its parent.
        self.services.routes.gate().must_be_own()?;
        let Some(round) = self.under_way()? else { return Ok(()) };
        if self.is_ending(round) {
            return self.settle(round);
        }
        if self.about.engine == Engine::Offload {
            let opened = self.open(round, u64::MAX);
            if self.policy.plain {
                self.habits.note_test();
                self.set_polling(false);
            }
            full_fence();
            self.helps_lane();
            self.work(opened, true);
        }
        self.close(round);
        if !self.has_ended(round) {
            self.end_if_in_trouble(round);
        }
        match self.has_ended(round) {
            true => self.settle(round),
            false => Err(Error::bare(Status::RETRY_BUSY)),
        }
    }

    /// The number of the last round that was started.
    #[inline(always)]
    fn round(&self) -> u32 {
        // Acquire: pairs with start(), for threads other than the one that starts and waits.
        self.rounds.load(Ordering::Acquire) as u32
    }

    /// The present round. None: it has ended and its completion has fired.
    fn under_way(&self) -> Result<Option<u32>> {
        let rounds = self.rounds.load(Ordering::Relaxed);
        let round = rounds as u32;
        if !self.is_settled(round) || !self.has_ended(round) {
            return Ok(Some(round));
        }
        let outcome = Status(self.outcome.load(Ordering::Relaxed));
        match outcome {
            Status::OK if rounds > 0 && self.on_complete.kind != completion::NONE => Ok(None),
            Status::OK => fail!(ERR_STATE, "the plan has not been started"),
            status => Err(failed(status)),
        }
    }

    /// The words that end this rank's rounds.
    #[inline(always)]
    pub(crate) fn round_end(&self) -> &RoundEnd {
        self.stage.members[self.stage.me].session.round_end()
    }

    /// Whether the next round may be started after this one: the user has waited for it, or its
    /// completion may have reported it to the user.
    #[inline(always)]
    fn is_settled(&self, round: u32) -> bool {
        // Acquire: the caller sees what a completion has stored before.
        self.settled.load(Ordering::Acquire) == round || self.completion_has_fired(round)
    }

    #[inline(never)]
    fn completion_has_fired(&self, round: u32) -> bool {
        match self.on_complete.kind {
            completion::NONE => false,
            completion::CALL => self.round_end().has_ended(round),
            // `closed` and not `ended`: the thread that has changed the word may not have stored
            // `ended` yet.
            _ => self.round_end().is_closed(round) && !self.parked.any(),
        }
    }

    /// Whether the round has ended. A user who has seen the completion may have started further
    /// rounds since.
    fn has_ended(&self, round: u32) -> bool {
        self.round_end().has_ended(round)
    }

    /// Part of test(). If a thread, perhaps of another rank, has taken the round, it may have
    /// changed the user's word already. It then needs only some instructions to store that the
    /// round has ended, so this waits for a moment. True: the round has ended.
    fn is_ending(&self, round: u32) -> bool {
        let ended = || {
            std::thread::yield_now();
            self.has_ended(round)
        };
        self.on_complete.kind != completion::NONE
            && self.round_end().is_closed(round)
            && (self.has_ended(round) || (0..TURNS_TO_END).any(|_| ended()))
    }

    /// Notes that the user has waited for the round, and returns the round's status.
    fn settle(&self, round: u32) -> Result<()> {
        if self.on_complete.kind == completion::NONE {
            self.settled.store(round, Ordering::Relaxed);
        }
        match Status(self.outcome.load(Ordering::Relaxed)) {
            Status::OK if self.on_complete.kind == completion::NONE => {
                self.copy_out().inspect_err(|error| self.fail_ended(error.status))
            }
            Status::OK => Ok(()),
            status => Err(failed(status)),
        }
    }

    /// Refuses to free a plan during a round. Else waits until the thread that has reported the end
    /// of the last round does nothing more for the plan.
    pub fn must_have_ended(&self) -> Result<()> {
        self.services.may_block()?;
        let round = self.round();
        match self.is_settled(round) {
            true if self.has_ended(round) => Ok(()),
            true => self.wait_slowly(round, None),
            false => fail!(ERR_STATE, "a round of the plan has not been waited for"),
        }
    }

    /// Frees the plan at this rank. The thread that holds the last reference drops it.
    pub fn free(plan: &Arc<Plan>) -> Result<()> {
        plan.must_have_ended()?;
        let task = plan.clone() as Arc<dyn Task>;
        plan.services.background.remove(&task);
        if plan.left.swap(false, Ordering::AcqRel) {
            plan.services.background.remove_work();
        }
        // Where a thread of another rank has ended the last round, or is about to count it out.
        if plan.counted.swap(0, Ordering::Relaxed) != 0 {
            plan.services.background.remove_work();
        }
        let may_fail = plan.far.as_ref().is_some_and(|far| {
            plan.services.routes.control_messages().withdraw(far.name);
            far.put_receiver.close()
        });
        let (me, members) = (plan.stage.me, &plan.stage.members);
        if !may_fail {
            members.others(me).for_each(|other| other.session.leave());
        }
        plan.discard_copies();
        // No rank opens a session after the plan was made, so users() does not change any more.
        let failed = plan.outcome.load(Ordering::Relaxed) != Status::OK.0
            || members[me].session.failed().is_some();
        // After a failure a rank of another node may still have a write to the block under way, and
        // a late failure would be one of the next plan there. So the block stays until the context
        // ends.
        if plan.far.is_none() || !(failed || may_fail) {
            plan.arena.retire(plan.block, SESSION + Session::LEFT, members[me].session.users());
        }
        Ok(())
    }
}

/// The completion of plans of which each start has its own completion; see Plan::start_for().
pub const EACH_START: Completion = Completion {
    kind: completion::CALL,
    reserved: 0,
    call: never as *const c_void,
    target: (&raw const OF_EACH_START).cast_mut().cast(),
};

/// EACH_START is recognised by this address. The address of never() is not fit for that: a compiler
/// may give one function several addresses, or two functions one address.
static OF_EACH_START: u8 = 0;

/// The function in EACH_START, which is never called.
unsafe extern "C-unwind" fn never(_: *mut c_void, _: Status) {}

impl Owner for Plan {
    fn stage(&self) -> &Stage {
        &self.stage
    }
}
