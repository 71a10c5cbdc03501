//! The cache of plans of a team for calls that name no plan. The blocking calls have one, and the
//! calls llcl_X_async have another (`asynchronous`). A call with the parameters of an earlier one
//! runs the plan of that call with its own buffers.
//!
//! Each rank decides alone whether the cache has a plan, and all ranks decide alike. The search
//! compares only parameters that must be equal at all ranks. Which plan is evicted depends only on
//! the order of the calls, which is equal at all ranks. The search ignores all properties in which
//! ranks may differ: the buffers and their kind of memory, the engine, and whether a plan has
//! failed. So a failed plan stays and returns its error until other plans evict it.
//!
//! In a v form a rank does not know the counts and offsets of the others. So the ranks vote: each
//! sets a bit for every plan of the cache that fits its own call. An allreduce combines the bits,
//! by a plan that the cache keeps as well, and the ranks run the first plan that fits at all of
//! them.
//!
//! If several rounds of a call may be under way (`depth`), the call has as many plans, which its
//! rounds use in turn. Each plan is made when a round first needs it. The number of earlier rounds,
//! which is equal at all ranks, determines the plan.

use crate::coll::plan::Plan;
use crate::coll::plan::asked::{Asked, Form, REBIND};
use crate::coll::plan::compare::{Alike, alike};
use crate::coll::plan::make::make;
use crate::coll::problem::{Block, Operation};
use crate::coll::reduction::{Op, Type};
use crate::coll::team::Team;
use crate::core::services::Services;
use crate::transport::address::{ANY, Address};
use crate::util::status::{Error, Result, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The plans of a team; see the head of the file.
#[derive(Default)]
pub struct Cache {
    entries: Vec<Entry>,
    /// Made at the first vote.
    voting: Option<Voting>,
    /// The number of calls so far.
    calls: u64,
}

/// The parameters of a call without its buffers, in the form of the C call; see Cache::repeat().
pub type Call = [u64; 6];

/// The tables of a v form: this rank's own count, the blocks of its input and output.
type Tables = (u64, Vec<Block>, Vec<Block>);

/// The allreduce by which ranks vote.
struct Voting {
    plan: Arc<Plan>,
    /// The input and then the output of the plan, which accesses them by address.
    votes: Box<[AtomicU64]>,
}

struct Entry {
    alike: Alike,
    /// The parameters of the last call, if it may be repeated.
    call: Option<Call>,
    /// This rank's tables, in a v form.
    tables: Option<Tables>,
    /// The plans, which rounds use in turn.
    plans: Vec<Arc<Plan>>,
    /// How many plans there may be.
    depth: usize,
    /// How many rounds were started.
    rounds: usize,
    /// The number of the call that used the entry last.
    used: u64,
}

impl Cache {
    /// Whether the configuration allows to keep plans.
    pub fn keeps(services: &Services) -> bool {
        services.config.coll_cache > 0
    }

    /// Runs a call whose parameters are those of an earlier one. None: there was none. run() would
    /// find the plan too, but its search takes about as long as a small round.
    #[inline]
    pub fn repeat(&mut self, team: &Team, call: &Call, places: [Address; 2]) -> Option<Result<()>> {
        let at = self.entries.iter().position(|entry| entry.call.as_ref() == Some(call))?;
        self.calls += 1;
        self.entries[at].used = self.calls;
        team.services.counts.plans_found.up();
        Some(self.run_round(at, places))
    }

    /// Runs an operation. Collective over the team. `call`: the parameters, if later calls may
    /// repeat them.
    pub fn run(&mut self, team: &Team, mut asked: Asked, call: Option<Call>) -> Result<()> {
        asked.flags |= REBIND;
        let at = self.obtain(team, &asked)?;
        let entry = &mut self.entries[at];
        let plan = &entry.plans[0];
        asked.check_own(&team.services).inspect_err(|error| plan.refuse(error.status))?;
        entry.call = call;
        if let Some(function) = asked.function {
            plan.use_function(function, asked.function_data);
        }
        self.run_round(at, [asked.send, asked.receive])
    }

    #[inline]
    fn run_round(&self, at: usize, places: [Address; 2]) -> Result<()> {
        let plan = &self.entries[at].plans[0];
        let started = with_room(|| plan.start_with(places), || self.discard_copies());
        // Other ranks have begun this round, or will begin it. The failure of the plan informs
        // them.
        started.inspect_err(|error| plan.refuse(error.status))?;
        plan.wait(None)
    }

    /// Frees the copies of buffers that idle plans keep for their next rounds. Local: which buffers
    /// are copied differs from rank to rank.
    fn discard_copies(&self) {
        self.entries.iter().flat_map(|entry| &entry.plans).for_each(|plan| plan.discard_copies());
    }

    /// The index of the entry for these parameters, which is made if there is none. Collective.
    fn obtain(&mut self, team: &Team, asked: &Asked) -> Result<usize> {
        let services = &team.services;
        let alike = alike(team, asked, asked.wanted(&services.config));
        self.calls += 1;
        let found = match asked.form {
            _ if !Cache::keeps(services) => None,
            Form::Even => self.entries.iter().position(|entry| entry.alike == alike),
            Form::Varied => self.vote(team, asked, &alike)?,
        };
        let at = match found {
            Some(at) => at,
            None => self.make(team, asked, alike)?,
        };
        let counts = &services.counts;
        if found.is_some() { &counts.plans_found } else { &counts.plans_made }.up();
        self.entries[at].used = self.calls;
        Ok(at)
    }

    /// Makes an entry, and then evicts another one if the cache is full. make() succeeds at all
    /// ranks or at none, so the caches of all ranks stay alike.
    fn make(&mut self, team: &Team, asked: &Asked, alike: Alike) -> Result<usize> {
        let plans = vec![self.make_plan(team, asked)?];
        if self.entries.len() as u64 >= team.services.config.coll_cache.max(1) {
            let oldest =
                (0..self.entries.len()).min_by_key(|at| self.entries[*at].used).unwrap_or(0);
            self.entries.swap_remove(oldest).free()?;
        }
        let tables = (asked.form == Form::Varied).then(|| tables(asked));
        let (depth, rounds) = (asked.depth(), 0);
        self.entries.push(Entry { alike, call: None, tables, plans, depth, rounds, used: 0 });
        Ok(self.entries.len() - 1)
    }

    /// Makes a plan. make() fails at all ranks or at none, but if two ranks fail at once, each has
    /// the status of its own failure. If all say that there is no memory, all free the plans of the
    /// cache, and try once more.
    fn make_plan(&mut self, team: &Team, asked: &Asked) -> Result<Arc<Plan>> {
        match make(team, asked) {
            Err(error) if !self.entries.is_empty() => {
                let no_memory = error.status == Status::ERR_NO_MEMORY;
                let other = if no_memory { Ok(()) } else { Err(Error::bare(error.status)) };
                if team.agree(other).is_err() {
                    return Err(error);
                }
                self.entries.drain(..).try_for_each(Entry::free)?;
                make(team, asked)
            }
            made => made,
        }
    }

    /// The index of an entry that fits the call of every rank; None: there is none. Collective.
    fn vote(&mut self, team: &Team, asked: &Asked, alike: &Alike) -> Result<Option<usize>> {
        if self.voting.is_none() {
            self.voting = Some(Voting::make(team, |asked| self.make_plan(team, asked))?);
        }
        let (mine, right) = (Some(tables(asked)), asked.check_own(&team.services).is_ok());
        let fits = |entry: &Entry| right && entry.alike == *alike && entry.tables == mine;
        let fitting = self.entries.iter().map(fits);
        let Some(Voting { plan, votes }) = &self.voting else { return Ok(None) };
        let (input, output) = votes.split_at(votes.len() / 2);
        input.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        for (at, _) in fitting.enumerate().filter(|(_, fits)| *fits) {
            input[at / WORD].fetch_or(1 << (at % WORD), Ordering::Relaxed);
        }
        let ended = plan.start().and_then(|()| plan.wait_or_leave());
        if let Err(Error { status: Status::ERR_CANCELED, .. }) = ended {
            // The round continues until the context has ended, and may still write to the votes, so
            // they are leaked.
            self.voting.take().into_iter().for_each(|voting| std::mem::forget(voting.votes));
            return ended.map(|()| None);
        }
        ended?;
        let has = |at: &usize| output[at / WORD].load(Ordering::Relaxed) >> (at % WORD) & 1 != 0;
        Ok((0..self.entries.len()).find(has))
    }

    /// Frees all plans at this rank.
    pub fn free(&mut self) -> Result<()> {
        self.voting.take().map_or(Ok(()), |voting| Plan::free(&voting.plan))?;
        self.entries.drain(..).try_for_each(Entry::free)
    }
}

/// Calls `start`, which starts a round. If there is no memory for copies of its buffers, calls
/// `give_back`, which frees copies that are not in use, and tries again.
#[inline]
fn with_room(start: impl Fn() -> Result<()>, give_back: impl Fn()) -> Result<()> {
    match start() {
        Err(error) if error.status == Status::ERR_NO_MEMORY => {
            give_back();
            // A start that fails may have allocated the first of its two copies.
            start().inspect_err(|_| give_back())
        }
        started => started,
    }
}

mod asynchronous;

pub use asynchronous::{Asynchronous, Start};

/// Bits of a word of votes.
const WORD: usize = u64::BITS as usize;

fn tables(asked: &Asked) -> Tables {
    (asked.count, asked.send_blocks.clone(), asked.receive_blocks.clone())
}

impl Voting {
    /// Collective. The plan has a copy of the votes from the beginning, so no start needs memory
    /// that only this rank may lack.
    fn make(team: &Team, make_plan: impl FnOnce(&Asked) -> Result<Arc<Plan>>) -> Result<Voting> {
        let words = (team.services.config.coll_cache as usize).div_ceil(WORD);
        let votes = (0..2 * words).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>();
        let place = |at: usize| {
            let word = votes.as_ptr().wrapping_add(at).expose_provenance();
            Address { key: ANY.0, offset: word as u64 }
        };
        let asked = Asked {
            send: place(0),
            receive: place(words),
            count: words as u64,
            kind: Type::U64 as u32,
            op: Op::And as u32,
            // Independent of the algorithm that the user has configured for allreduces.
            algorithm: Some("auto".to_string()),
            ..Asked::nothing(Operation::Allreduce, Form::Even)
        };
        Ok(Voting { plan: make_plan(&asked)?, votes })
    }
}

impl Entry {
    fn free(self) -> Result<()> {
        self.plans.iter().try_for_each(|plan| {
            plan.wait_until_idle()?;
            Plan::free(plan)
        })
    }
}
