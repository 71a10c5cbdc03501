//! The plans behind a team's blocking calls. A call whose parameters were seen before runs the plan
//! that was made then, with the buffers of this call.
//!
//! Whether a plan is there is decided by each rank alone, and all come to the same answer: plans
//! are found by what all ranks must say alike, and which one goes depends on the order of the calls
//! only, which is the same at all ranks. Nothing in which ranks may differ counts: neither the
//! buffers nor the memory they lie in, nor the engine, nor whether a plan has failed. So a plan
//! that has failed stays, and answers why, until others have displaced it.

use crate::coll::plan::Plan;
use crate::coll::plan::asked::{Asked, Form, REBIND};
use crate::coll::plan::compare::{Alike, alike};
use crate::coll::plan::make::make;
use crate::coll::team::Team;
use crate::core::services::Services;
use crate::transport::address::Address;
use crate::util::status::Result;
use std::sync::Arc;

/// See the head of the file.
#[derive(Default)]
pub struct Cache {
    kept: Vec<Kept>,
    /// Calls so far.
    calls: u64,
}

/// All that counts in a call but its buffers, as the caller gave it; see Cache::repeat().
pub type Call = [u64; 6];

struct Kept {
    alike: Alike,
    /// The last call.
    call: Option<Call>,
    plan: Arc<Plan>,
    /// The number of the call that used it last.
    used: u64,
}

impl Cache {
    /// Whether the plan of such a call is kept. What the others have in a v form a rank does not
    /// know, and a user's function may be another one at each call.
    pub fn keeps(services: &Services, asked: &Asked) -> bool {
        asked.form == Form::Even && !asked.is_users_function() && services.config.coll_cache > 0
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
        let services = &team.services;
        let alike = alike(team, &asked, asked.wanted(&services.config));
        self.calls += 1;
        let found = self.kept.iter().position(|kept| kept.alike == alike);
        let at = match found {
            Some(at) => at,
            None => self.make(team, &asked, alike)?,
        };
        let counts = &services.counts;
        if found.is_some() { &counts.plans_found } else { &counts.plans_made }.up();
        let kept = &mut self.kept[at];
        kept.used = self.calls;
        asked.check_own(services).inspect_err(|error| kept.plan.refuse(error.status))?;
        kept.call = call;
        kept.run([asked.send, asked.receive])
    }

    /// Makes a plan. Only if that succeeds, which it does at all ranks or at none, another one
    /// goes.
    fn make(&mut self, team: &Team, asked: &Asked, alike: Alike) -> Result<usize> {
        let plan = make(team, asked)?;
        if self.kept.len() as u64 >= team.services.config.coll_cache {
            let oldest = (0..self.kept.len()).min_by_key(|at| self.kept[*at].used).unwrap_or(0);
            Plan::free(&self.kept.swap_remove(oldest).plan)?;
        }
        self.kept.push(Kept { alike, call: None, plan, used: 0 });
        Ok(self.kept.len() - 1)
    }

    /// Ends all plans at this rank.
    pub fn free(&mut self) -> Result<()> {
        self.kept.drain(..).try_for_each(|kept| Plan::free(&kept.plan))
    }
}

impl Kept {
    #[inline]
    fn run(&self, places: [Address; 2]) -> Result<()> {
        let started = self.plan.start_with(places);
        // The others have begun, or will; the plan's failure tells them.
        started.inspect_err(|error| self.plan.refuse(error.status))?;
        self.plan.wait(None)
    }
}
