//! A user's plan of which several rounds may be under way. It consists of as many plans, which its
//! rounds use in turn. These plans differ only in their memory.

use crate::coll::plan::asked::Asked;
use crate::coll::plan::make::make;
use crate::coll::plan::{About, Plan};
use crate::coll::team::Team;
use crate::transport::address::Address;
use crate::util::status::{Result, Status};
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The plans of one handle. By contract one thread at a time starts, tests and waits. The counters
/// are atomic because different threads may do so one after the other.
pub struct Rounds {
    first: Arc<Plan>,
    more: Vec<Arc<Plan>>,
    started: AtomicUsize,
    /// How many rounds the user has waited for.
    waited: AtomicUsize,
}

impl Rounds {
    /// Makes the plans. Collective.
    pub fn make(team: &Team, asked: &Asked) -> Result<Rounds> {
        let first = make(team, asked)?;
        let mut rounds = Rounds {
            first,
            more: Vec::new(),
            started: Default::default(),
            waited: Default::default(),
        };
        for _ in 1..asked.depth() {
            match make(team, asked) {
                Ok(plan) => rounds.more.push(plan),
                Err(error) => {
                    rounds.free()?;
                    return Err(error);
                }
            }
        }
        if !rounds.more.is_empty() {
            Plan::fail_together(&rounds.plans().collect::<Vec<_>>());
        }
        Ok(rounds)
    }

    fn plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        [&self.first].into_iter().chain(&self.more)
    }

    fn plan(&self, round: usize) -> &Plan {
        match round % (self.more.len() + 1) {
            0 => &self.first,
            at => &self.more[at - 1],
        }
    }

    /// Starts the next round.
    #[inline(always)]
    pub fn start(&self) -> Result<()> {
        if self.more.is_empty() { self.first.start() } else { self.start_next(None) }
    }

    /// Starts the next round with these buffers.
    pub fn start_with(&self, places: [Address; 2]) -> Result<()> {
        if self.more.is_empty() {
            return self.first.start_with(places);
        }
        self.start_next(Some(places))
    }

    #[inline(never)]
    fn start_next(&self, places: Option<[Address; 2]>) -> Result<()> {
        let round = self.started.load(Ordering::Relaxed);
        // A round without buffers of its own uses those of the round before.
        let places = places.or_else(|| self.plan(round.wrapping_sub(1)).places());
        // This comes before the start, since a callback during the start may start the next round.
        self.started.store(round.wrapping_add(1), Ordering::Relaxed);
        let started = match places {
            Some(places) => self.plan(round).start_with(places),
            None => self.plan(round).start(),
        };
        if started.is_err() {
            self.started.store(round, Ordering::Relaxed);
        }
        started
    }

    /// The round that the next wait is for, and the number of started rounds. It is the oldest
    /// round that was not waited for, or else the last one.
    fn oldest(&self) -> (usize, usize) {
        let started = self.started.load(Ordering::Relaxed);
        let waited = self.waited.load(Ordering::Relaxed);
        // A user of completions need not wait, so a round whose plan was started again counts as
        // waited for.
        let first = started.saturating_sub(self.more.len() + 1).max(waited);
        (first.min(started.saturating_sub(1)), started)
    }

    /// Takes the answer of a wait or test for the round. If it reports the end of the round, well
    /// or failed, the next call is for the next round.
    fn then(&self, round: usize, started: usize, answer: Result<()>) -> Result<()> {
        let open = [Status::RETRY_BUSY, Status::ERR_TIMEOUT, Status::ERR_STATE];
        if !answer.as_ref().is_err_and(|error| open.contains(&error.status)) {
            self.waited.store((round + 1).min(started), Ordering::Relaxed);
        }
        answer
    }

    /// Whether the oldest round has ended.
    pub fn test(&self) -> Result<()> {
        if self.more.is_empty() {
            return self.first.test();
        }
        let (round, started) = self.oldest();
        self.then(round, started, self.plan(round).test())
    }

    /// Waits for the oldest round.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        if self.more.is_empty() {
            return self.first.wait(timeout);
        }
        let (round, started) = self.oldest();
        self.then(round, started, self.plan(round).wait(timeout))
    }

    /// See Plan::about(). Memory and number of rounds are sums over all plans.
    pub fn about(&self) -> (About, &[CString; 2], u64) {
        let (mut about, texts, mut rounds) = self.first.about();
        for plan in &self.more {
            let (other, _, its) = plan.about();
            about.memory += other.memory;
            about.private += other.private;
            rounds += its;
        }
        (about, texts, rounds)
    }

    /// Frees the plans at this rank, if the user has waited for all rounds.
    pub fn free(&self) -> Result<()> {
        // The thread that ends a failed round also marks the other plans, so none of them is freed
        // before all rounds have ended.
        self.plans().try_for_each(|plan| plan.must_have_ended())?;
        self.plans().try_for_each(Plan::free)
    }
}
