//! A plan: made once by all ranks of a team, started and waited for any number of times.
//!
//! The rounds of a plan at one rank are counted by four numbers that follow each other: `rounds`
//! (started), `opened` (its queues are active), `closed` (a thread has taken it, to end it),
//! `ended`. The last two lie in the session; see `runner::round_end`. Where no completion tells
//! the user there is a fifth, `settled` (he has waited). Between start and end, threads of all
//! ranks work for it; see `work`.

pub mod asked;
mod attach;
mod bound;
pub mod compare;
pub mod make;
#[cfg(test)]
mod memory;
mod policy;
mod quiet;
mod start;
mod wait;
mod work;

use crate::coll::arena::{self, Arena};
use crate::coll::plan::attach::SESSION;
use crate::coll::plan::bound::Bound;
use crate::coll::plan::policy::{Facts, Habits, Policy};
use crate::coll::plan::quiet::Parked;
use crate::coll::problem;
use crate::coll::runner::put_receiver::{Owner, PutReceiver, Shadow};
use crate::coll::runner::queue::between_word_and_look;
use crate::coll::runner::record::Record;
use crate::coll::runner::round_end::RoundEnd;
use crate::coll::runner::session::Session;
use crate::coll::runner::shared::{Stage, Worklist};
use crate::coll::schedule::Program;
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
    /// The threads that deliver signals.
    Offload = 0,
    /// The rank's progress thread, which makes them when they are needed.
    Thread = 1,
}

/// What a plan consists of.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// Which threads run the steps.
    pub engine: Engine,
    /// Other ranks may, too.
    pub shared: bool,
    /// Queues of this rank.
    pub queues: u32,
    /// Steps of this rank.
    pub steps: u32,
    /// Bytes that it takes at this rank, in the arena and in private memory.
    pub memory: u64,
}

/// A part of a buffer that peers do not map, and its place in the session.
#[derive(Clone, Copy, Debug)]
pub struct Bounce {
    user: Address,
    plan: *mut u8,
    bytes: u64,
}

impl Bounce {
    /// A block of a buffer that begins at `user`, and of its copy that begins at `plan`.
    fn of(user: Address, plan: *mut u8, block: &problem::Block) -> Bounce {
        Bounce {
            user: Address { offset: user.offset + block.offset, ..user },
            plan: plan.wrapping_add(block.offset as usize),
            bytes: block.size,
        }
    }
}

/// What a plan has that names ranks of other nodes.
pub struct Far {
    /// What all ranks call the plan.
    name: u64,
    put_receiver: Arc<PutReceiver>,
    _shadows: Vec<Shadow>,
}

/// How often a testing thread gives its core away to a thread that is about to end the round.
const TURNS_TO_END: u32 = 64;

/// See Plan::enlisted: so that round 0, which comes again, is not taken for none.
const ENLISTED: u64 = 1 << 32;

/// See the head of the file.
pub struct Plan {
    services: Arc<Services>,
    arena: Arc<Arena>,
    stage: Stage,
    block: arena::Block,
    about: About,
    texts: [CString; 2],
    inputs: Vec<Bounce>,
    outputs: Vec<Bounce>,
    /// Where the buffers lie, if each start may say so anew.
    bound: Option<Bound>,
    /// What comes from ranks of other nodes, if it names any.
    far: Option<Far>,
    /// For the engine that makes the steps in every round.
    program: Option<Program>,
    on_complete: Completion,
    /// Where `on_complete` is EACH_START: that of the round.
    of_round: Mutex<Completion>,
    policy: Policy,
    habits: Habits,
    rounds: AtomicU32,
    opening: AtomicU32,
    opened: AtomicU32,
    settled: AtomicU32,
    /// How the last round ended.
    outcome: AtomicI32,
    /// A round that has failed, until others have stopped to touch this rank's buffers.
    parked: Parked,
    /// The round, plus ENLISTED, for which the progress thread has been asked to look; 0: none.
    enlisted: AtomicU64,
    /// Steps of some rank were ready and were left to the progress thread.
    debts: AtomicBool,
    /// A thread is awake and waits for the round: the progress thread need not work for it.
    waiting: AtomicBool,
    deaths: AtomicU32,
    made: Instant,
    /// How many rounds had been started when the progress thread last asked whether it is worth
    /// staying awake.
    watched: AtomicU32,
    /// The progress thread sleeps, as the session tells the others.
    asleep: AtomicBool,
}

// SAFETY: the pointers of bounces lead into the session, and what the completion names its user
// keeps valid.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Plan {
    fn new(
        (services, arena): (Arc<Services>, Arc<Arena>),
        stage: Stage,
        (block, about, reason): (arena::Block, About, String),
        (inputs, outputs, bound, far): (Vec<Bounce>, Vec<Bounce>, Option<Bound>, Option<Far>),
        (program, records, size): (Option<Program>, &[Record], u64),
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
        // A number that is not current: a rank may have died since the last exchange.
        let deaths = services.routes.deaths().wrapping_sub(1);
        Plan {
            services,
            arena,
            stage,
            block,
            about,
            texts,
            inputs,
            outputs,
            bound,
            far,
            program,
            on_complete,
            of_round: Mutex::new(Completion::NOTHING),
            policy,
            habits: Habits::new(has_completion),
            rounds: AtomicU32::new(0),
            opening: AtomicU32::new(0),
            opened: AtomicU32::new(0),
            settled: AtomicU32::new(0),
            outcome: AtomicI32::new(0),
            parked: Parked::default(),
            enlisted: AtomicU64::new(0),
            debts: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            deaths: AtomicU32::new(deaths),
            made: Instant::now(),
            watched: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
        }
    }

    /// What it consists of, its algorithm and the reason for C, and how often it was started.
    pub fn about(&self) -> (About, &[CString; 2], u64) {
        (self.about, &self.texts, self.rounds.load(Ordering::Relaxed).into())
    }

    /// Whether the next round may be started: the one before has ended, and the user knows.
    pub fn may_start(&self) -> bool {
        self.is_settled(self.rounds.load(Ordering::Relaxed))
    }

    /// Starts the next round with these buffers and this completion. Only for a plan that was made
    /// with EACH_START.
    pub fn start_for(&self, places: [Address; 2], completion: Completion) -> Result<()> {
        if !self.may_start() {
            return Err(Error::bare(Status::RETRY_BUSY));
        }
        *self.of_round() = completion;
        self.start_with(places)
    }

    fn of_round(&self) -> std::sync::MutexGuard<'_, Completion> {
        self.of_round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What tells the user of the end of the round that is under way. To be asked before the round
    /// ends: then the next one may begin, with another.
    fn completion(&self) -> Completion {
        match self.on_complete.target == EACH_START.target {
            true => *self.of_round(),
            false => self.on_complete,
        }
    }

    /// Nanoseconds since the plan was made.
    fn clock(&self) -> u64 {
        self.made.elapsed().as_nanos() as u64
    }

    /// What the worklist has left, of whatever rank, is the progress thread's.
    fn leave(&self, worklist: &Worklist) {
        if worklist.left {
            self.owe();
        }
    }

    fn owe(&self) {
        if !self.debts.swap(true, Ordering::AcqRel) {
            self.services.background.enlist();
            self.services.background.call(false);
        }
    }

    /// Whether the round has ended; works for it for a moment.
    pub fn test(&self) -> Result<()> {
        // A forked child would run steps in its parent's place.
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
            between_word_and_look();
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

    /// The round that is under way; None: it has ended, and its completion has told.
    fn under_way(&self) -> Result<Option<u32>> {
        let round = self.rounds.load(Ordering::Relaxed);
        if !self.is_settled(round) || !self.has_ended(round) {
            return Ok(Some(round));
        }
        let outcome = Status(self.outcome.load(Ordering::Relaxed));
        match outcome {
            Status::OK if round > 0 && self.on_complete.kind != completion::NONE => Ok(None),
            Status::OK => fail!(ERR_STATE, "the plan has not been started"),
            status => Err(failed(status)),
        }
    }

    /// How far the rounds have ended.
    #[inline(always)]
    pub(crate) fn round_end(&self) -> &RoundEnd {
        self.stage.members[self.stage.me].session.round_end()
    }

    /// Whether the next round may be started after this one: the user has waited for it, or may
    /// have been told by its completion.
    #[inline(always)]
    fn is_settled(&self, round: u32) -> bool {
        // Acquire: what a completion has stored before is seen.
        self.settled.load(Ordering::Acquire) == round || self.completion_has_fired(round)
    }

    #[inline(never)]
    fn completion_has_fired(&self, round: u32) -> bool {
        match self.on_complete.kind {
            completion::NONE => false,
            completion::CALL => self.round_end().has_ended(round),
            // The thread that has changed the word may not have stored the end of the round yet.
            _ => self.round_end().is_closed(round) && !self.parked.any(),
        }
    }

    /// Whether the round has ended and the user may know. Where a completion tells him, it may have
    /// started further rounds.
    fn has_ended(&self, round: u32) -> bool {
        self.round_end().has_ended(round)
    }

    /// For test(). A thread, perhaps of another rank, has taken the round and may have changed the
    /// user's word, and has some instructions left until it stores that the round has ended. True:
    /// the round has ended meanwhile.
    fn is_ending(&self, round: u32) -> bool {
        let ended = || {
            std::thread::yield_now();
            self.has_ended(round)
        };
        self.on_complete.kind != completion::NONE
            && self.round_end().is_closed(round)
            && (self.has_ended(round) || (0..TURNS_TO_END).any(|_| ended()))
    }

    /// Tells the user that the round has ended.
    fn settle(&self, round: u32) -> Result<()> {
        if self.on_complete.kind == completion::NONE {
            self.settled.store(round, Ordering::Relaxed);
        }
        match Status(self.outcome.load(Ordering::Relaxed)) {
            Status::OK if self.on_complete.kind == completion::NONE => self.copy_out(),
            Status::OK => Ok(()),
            status => Err(failed(status)),
        }
    }

    /// Refuses to end a plan in the midst of a round.
    pub fn must_be_settled(&self) -> Result<()> {
        self.services.may_block()?;
        match self.may_start() {
            true => Ok(()),
            false => fail!(ERR_STATE, "a round of the plan has not been waited for"),
        }
    }

    /// Ends the plan at this rank. The last user of it drops it.
    pub fn free(plan: &Arc<Plan>) -> Result<()> {
        plan.must_be_settled()?;
        let round = plan.rounds.load(Ordering::Relaxed);
        if !plan.has_ended(round) {
            plan.wait_slowly(round, None)?;
        }
        let task = plan.clone() as Arc<dyn Task>;
        plan.services.background.remove(&task);
        if plan.debts.swap(false, Ordering::AcqRel) {
            plan.services.background.discharge();
        }
        if let Some(far) = &plan.far {
            plan.services.routes.notices().withdraw(far.name);
            far.put_receiver.close();
        }
        let (me, members) = (plan.stage.me, &plan.stage.members);
        members.others(me).for_each(|other| other.session.leave());
        plan.discard_copies();
        // Nobody opens a session after the plan was made.
        plan.arena.retire(plan.block, SESSION + Session::LEFT, members[me].session.users());
        Ok(())
    }
}

/// The completion of plans whose starts name one each; see Plan::start_for().
pub const EACH_START: Completion = Completion {
    kind: completion::CALL,
    reserved: 0,
    call: never as *const c_void,
    target: (&raw const OF_EACH_START).cast_mut().cast(),
};

/// EACH_START is known by this address: a compiler may give a function several addresses, or two
/// functions one.
static OF_EACH_START: u8 = 0;

/// What EACH_START names and nobody calls.
unsafe extern "C-unwind" fn never(_: *mut c_void, _: Status) {}

impl Owner for Plan {
    fn stage(&self) -> &Stage {
        &self.stage
    }
}

fn failed(status: Status) -> Error {
    let text = status.text().trim_end_matches('\0');
    Error::new(status, format!("the plan has failed: {text}"))
}
