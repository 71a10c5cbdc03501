//! The plans behind a team's calls that name none: those of blocking calls, and, in a cache of
//! their own, those of llcl_X_async (`asynchronous`). A call whose parameters were seen before runs
//! the plan that was made then, with the buffers of this call.
//!
//! Whether a plan is there is decided by each rank alone, and all come to the same answer: plans
//! are found by what all ranks must say alike, and which one goes depends on the order of the calls
//! only, which is the same at all ranks. Nothing in which ranks may differ counts: neither the
//! buffers nor the memory they lie in, nor the engine, nor whether a plan has failed. So a plan
//! that has failed stays, and answers why, until others have displaced it.
//!
//! In a v form a rank does not know the counts and offsets of the others. So all ranks vote: each
//! says which of the kept plans fit its own call (an allreduce of some bits, by a plan that is kept
//! as well), and the first one that fits everywhere is run.
//!
//! A call of which several rounds may be under way (`depth`) has as many plans of one kind, which
//! its rounds use in turn; each is made when its turn comes first. Whose turn it is follows from
//! the number of such calls, which is the same at all ranks.

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

/// See the head of the file.
#[derive(Default)]
pub struct Cache {
    kept: Vec<Kept>,
    /// By which ranks vote; made at the first vote.
    ballot: Option<Arc<Plan>>,
    /// Calls so far.
    calls: u64,
}

/// All that counts in a call but its buffers, as the caller gave it; see Cache::repeat().
pub type Call = [u64; 6];

/// This rank's own count, and the counts and offsets of a v form.
type Tables = (u64, Vec<Block>, Vec<Block>);

struct Kept {
    alike: Alike,
    /// The last call.
    call: Option<Call>,
    /// What this rank asked for in a v form.
    tables: Option<Tables>,
    /// Its rounds use them in turn.
    plans: Vec<Arc<Plan>>,
    /// How many there may be.
    depth: usize,
    /// How many rounds were started.
    rounds: usize,
    /// The number of the call that used it last.
    used: u64,
}

impl Cache {
    /// Whether plans are kept.
    pub fn keeps(services: &Services) -> bool {
        services.config.coll_cache > 0
    }

    /// Runs a call that differs in its buffers only from an earlier one; None: there was none such.
    /// What run() does takes about as long as a small round, and comes to the same plan.
    #[inline]
    pub fn repeat(&mut self, team: &Team, call: &Call, places: [Address; 2]) -> Option<Result<()>> {
        let kept = self.kept.iter_mut().find(|kept| kept.call.as_ref() == Some(call))?;
        self.calls += 1;
        kept.used = self.calls;
        team.services.counts.plans_found.up();
        Some(kept.run(places))
    }

    /// Runs the operation. Collective over the team. `call`: what was asked for, if further calls
    /// may repeat it.
    pub fn run(&mut self, team: &Team, mut asked: Asked, call: Option<Call>) -> Result<()> {
        asked.flags |= REBIND;
        asked.depth = 1;
        let at = self.obtain(team, &asked)?;
        let kept = &mut self.kept[at];
        let plan = &kept.plans[0];
        asked.check_own(&team.services).inspect_err(|error| plan.refuse(error.status))?;
        kept.call = call;
        if let Some(function) = asked.function {
            plan.use_function(function, asked.function_data);
        }
        kept.run([asked.send, asked.receive])
    }

    /// The number of the kept plans for this, which are made if there are none. Collective.
    fn obtain(&mut self, team: &Team, asked: &Asked) -> Result<usize> {
        let services = &team.services;
        let alike = alike(team, asked, asked.wanted(&services.config));
        self.calls += 1;
        let found = match asked.form {
            _ if !Cache::keeps(services) => None,
            Form::Even => self.kept.iter().position(|kept| kept.alike == alike),
            Form::Varied => self.vote(team, asked, &alike)?,
        };
        let at = match found {
            Some(at) => at,
            None => self.make(team, asked, alike)?,
        };
        let counts = &services.counts;
        if found.is_some() { &counts.plans_found } else { &counts.plans_made }.up();
        self.kept[at].used = self.calls;
        Ok(at)
    }

    /// Makes a plan. Only if that succeeds, which it does at all ranks or at none, another one
    /// goes.
    fn make(&mut self, team: &Team, asked: &Asked, alike: Alike) -> Result<usize> {
        let plans = vec![make(team, asked)?];
        if self.kept.len() as u64 >= team.services.config.coll_cache.max(1) {
            let oldest = (0..self.kept.len()).min_by_key(|at| self.kept[*at].used).unwrap_or(0);
            self.kept.swap_remove(oldest).free()?;
        }
        let tables = (asked.form == Form::Varied).then(|| tables(asked));
        let (depth, rounds) = (asked.depth(), 0);
        self.kept.push(Kept { alike, call: None, tables, plans, depth, rounds, used: 0 });
        Ok(self.kept.len() - 1)
    }

    /// The number of a kept plan that fits what each rank asks for; None: there is none such.
    /// Collective.
    fn vote(&mut self, team: &Team, asked: &Asked, alike: &Alike) -> Result<Option<usize>> {
        let words = team.services.config.coll_cache.div_ceil(WORD) as usize;
        let (mine, right) = (Some(tables(asked)), asked.check_own(&team.services).is_ok());
        let mut votes = vec![0u64; 2 * words];
        for (at, kept) in self.kept.iter().enumerate() {
            let fits = right && kept.alike == *alike && kept.tables == mine;
            votes[at / WORD as usize] |= u64::from(fits) << (at % WORD as usize);
        }
        // The plan reads the first half and writes the second one, by addresses. From here on all
        // uses of the vector go by the pointer that the addresses were made of.
        let base = votes.as_mut_ptr();
        let place = |at: usize| {
            let word = base.wrapping_add(at).expose_provenance();
            Address { key: ANY.0, offset: word as u64 }
        };
        let places = [place(0), place(words)];
        let ballot = match &self.ballot {
            Some(ballot) => ballot,
            None => self.ballot.insert(make(team, &by_vote(words, places))?),
        };
        let ended = ballot.start_with(places).and_then(|()| ballot.wait_or_leave());
        if let Err(Error { status: Status::ERR_CANCELED, .. }) = ended {
            // The round goes on until the context has ended.
            std::mem::forget(votes);
        }
        ended?;
        // SAFETY: the vector has as many words, and is not used otherwise until it is dropped at
        // the end of this function. Volatile: the plan has written there.
        let fits = |at: &usize| unsafe {
            let word = base.add(words + at / WORD as usize).read_volatile();
            word >> (at % WORD as usize) & 1 != 0
        };
        Ok((0..self.kept.len()).find(fits))
    }

    /// Ends all plans at this rank.
    pub fn free(&mut self) -> Result<()> {
        self.ballot.take().map_or(Ok(()), |ballot| Plan::free(&ballot))?;
        self.kept.drain(..).try_for_each(|kept| kept.free())
    }
}

mod asynchronous;

pub use asynchronous::{Asynchronous, Start};

/// Bits of a word of votes.
const WORD: u64 = u64::BITS as u64;

fn tables(asked: &Asked) -> Tables {
    (asked.count, asked.send_blocks.clone(), asked.receive_blocks.clone())
}

/// The bits that are set at all ranks, in so many words.
fn by_vote(words: usize, [send, receive]: [Address; 2]) -> Asked {
    Asked {
        send,
        receive,
        count: words as u64,
        kind: Type::U64 as u32,
        op: Op::And as u32,
        flags: REBIND,
        // Whatever the user wants allreduces to be done by.
        algorithm: Some("auto".to_string()),
        ..Asked::nothing(Operation::Allreduce, Form::Even)
    }
}

impl Kept {
    #[inline]
    fn run(&self, places: [Address; 2]) -> Result<()> {
        let plan = &self.plans[0];
        let started = plan.start_with(places);
        // The others have begun, or will; the plan's failure tells them.
        started.inspect_err(|error| plan.refuse(error.status))?;
        plan.wait(None)
    }

    fn free(self) -> Result<()> {
        self.plans.iter().try_for_each(|plan| {
            plan.wait_until_idle()?;
            Plan::free(plan)
        })
    }
}
