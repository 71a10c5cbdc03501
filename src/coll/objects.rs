//! The handles of teams and plans that users hold. A handle is an object with an address of its
//! own, which outlives its team or plan and the context. So the library recognises a freed handle
//! and does not access freed memory.

use crate::coll::cache::{Asynchronous, Cache, Call, Start};
use crate::coll::plan::asked::{Asked, Form, REBIND};
use crate::coll::plan::make::make;
use crate::coll::plan::{About, Plan};
use crate::coll::problem::Operation;
use crate::coll::rounds::Rounds;
use crate::coll::team::Team;
use crate::fail;
use crate::transport::address::Address;
use crate::util::once::Once;
use crate::util::quarantine::Quarantine;
use crate::util::status::{Error, Result, Status};
use std::collections::VecDeque;
use std::ffi::CString;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The number of freed handles that are not used again, so that a second free of one is refused.
const NOT_REUSED: usize = 256;

/// The object of a handle, until the handle is freed.
struct Slot<T> {
    /// From Box::into_raw; null after the free.
    live: AtomicPtr<T>,
}

impl<T> Slot<T> {
    #[inline(always)]
    fn get(&self, what: &str) -> Result<&T> {
        // SAFETY: null, or a box of put(). By contract no other thread frees the handle at the same
        // time. Acquire: pairs with put().
        let live = unsafe { self.live.load(Ordering::Acquire).as_ref() };
        live.ok_or_else(|| freed_before(what))
    }

    fn put(&self, live: T) {
        self.live.store(Box::into_raw(Box::new(live)), Ordering::Release);
    }

    fn take(&self) -> Option<T> {
        let live = self.live.swap(std::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: put() has boxed it, and the swap gives it to one thread only.
        (!live.is_null()).then(|| *unsafe { Box::from_raw(live) })
    }
}

#[cold]
fn freed_before(what: &str) -> Error {
    let text = format!("the {what} has been freed before, or its context has ended");
    Error::new(Status::ERR_STATE, text)
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// A team, as its user holds it.
pub struct TeamHandle {
    team: Slot<LiveTeam>,
    home: Weak<Handles>,
    at: usize,
}

struct LiveTeam {
    team: Arc<Team>,
    /// Whether it is the team of all ranks, which is never freed.
    world: bool,
    barrier: Once<Arc<Plan>>,
    cache: Mutex<Cache>,
    calls: Arc<Asynchronous>,
}

/// A plan, as its user holds it.
pub struct PlanHandle {
    plan: Slot<Rounds>,
    home: Weak<Handles>,
    at: usize,
}

/// Handles of contexts that have ended.
static TEAMS: Quarantine<TeamHandle> = Quarantine::new();
static PLANS: Quarantine<PlanHandle> = Quarantine::new();

/// The handles of a context.
#[derive(Default)]
pub struct Handles {
    teams: Mutex<Table<TeamHandle>>,
    plans: Mutex<Table<PlanHandle>>,
}

#[allow(clippy::vec_box, reason = "users hold the addresses")]
struct Table<T> {
    all: Vec<Box<T>>,
    freed: VecDeque<usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { all: Vec::new(), freed: VecDeque::new() }
    }
}

impl<T> Table<T> {
    /// An unused handle: a freed one, one of `ended`, or a new one.
    fn place(&mut self, ended: &Quarantine<T>, make: impl FnOnce(usize) -> T) -> &T {
        let again = if self.freed.len() > NOT_REUSED { self.freed.pop_front() } else { None };
        let at = again.unwrap_or_else(|| {
            self.all.push(ended.place(make(self.all.len())));
            self.all.len() - 1
        });
        &self.all[at]
    }
}

fn open<T>(table: &Mutex<Table<T>>) -> std::sync::MutexGuard<'_, Table<T>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn empty<T>() -> Slot<T> {
    Slot { live: AtomicPtr::default() }
}

impl Handles {
    /// Makes a handle of a team. `world`: freeing it has no effect.
    pub fn keep_team(self: &Arc<Handles>, team: Team, world: bool) -> *mut TeamHandle {
        let mut table = open(&self.teams);
        let home = Arc::downgrade(self);
        let handle = table.place(&TEAMS, |at| TeamHandle { team: empty(), home, at });
        let (team, barrier, cache) = (Arc::new(team), Once::new(), Mutex::default());
        handle.team.put(LiveTeam { team, world, barrier, cache, calls: Arc::default() });
        (&raw const *handle).cast_mut()
    }

    /// Calls `visit` for the asynchronous calls of each team, until it returns false.
    pub fn all_calls(&self, mut visit: impl FnMut(&Asynchronous) -> bool) -> bool {
        let teams = open(&self.teams);
        teams.all.iter().filter_map(|it| it.team.get("team").ok()).all(|it| visit(&it.calls))
    }

    fn keep_plan(self: &Arc<Handles>, plan: Rounds) -> *mut PlanHandle {
        let mut table = open(&self.plans);
        let home = Arc::downgrade(self);
        let handle = table.place(&PLANS, |at| PlanHandle { plan: empty(), home, at });
        handle.plan.put(plan);
        (&raw const *handle).cast_mut()
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        let teams = self.teams.get_mut().unwrap_or_else(PoisonError::into_inner);
        teams.all.iter().for_each(|handle| drop(handle.team.take()));
        TEAMS.keep(teams.all.drain(..));
        let plans = self.plans.get_mut().unwrap_or_else(PoisonError::into_inner);
        plans.all.iter().for_each(|handle| drop(handle.plan.take()));
        PLANS.keep(plans.all.drain(..));
    }
}

impl LiveTeam {
    /// Called before an exchange with other ranks: waits until the team's thread has executed the
    /// earlier calls.
    fn in_order(&self) -> Result<()> {
        self.team.services.may_block()?;
        self.calls.wait(&self.team.services);
        Ok(())
    }
}

impl TeamHandle {
    fn live(&self) -> Result<&LiveTeam> {
        self.team.get("team")
    }

    /// This rank's number in the team.
    pub fn rank(&self) -> Option<u32> {
        self.live().ok().map(|live| live.team.me as u32)
    }

    /// The number of ranks; 0 after the free.
    pub fn size(&self) -> u32 {
        self.live().map_or(0, |live| live.team.size() as u32)
    }

    /// The world rank of a rank of the team.
    pub fn peer(&self, rank: u32) -> Option<u32> {
        self.live().ok()?.team.peers.get(rank as usize).copied()
    }

    /// The rank in the team of a world rank.
    pub fn find(&self, peer: u32) -> Option<u32> {
        Some(self.live().ok()?.team.find(peer)? as u32)
    }

    fn home(&self) -> Result<Arc<Handles>> {
        match self.home.upgrade() {
            Some(home) => Ok(home),
            None => fail!(ERR_STATE, "the context has ended"),
        }
    }

    /// Makes a team of the ranks that give one colour. Null for a rank that gives none. Collective.
    pub fn split(&self, colour: Option<u32>, key: u32) -> Result<*mut TeamHandle> {
        let (live, home) = (self.live()?, self.home()?);
        live.in_order()?;
        let made = live.team.split(colour, key)?;
        Ok(made.map_or(std::ptr::null_mut(), |team| home.keep_team(team, false)))
    }

    /// Frees the team at this rank.
    pub fn free(&self) -> Result<()> {
        let live = self.live()?;
        live.team.services.may_block()?;
        if live.world {
            return Ok(());
        }
        live.in_order()?;
        live.calls.free()?;
        if let Some(live) = self.team.take() {
            if let Some(plan) = live.barrier.get() {
                Plan::free(plan)?;
            }
            live.cache.into_inner().unwrap_or_else(PoisonError::into_inner).free()?;
            Arc::into_inner(live.team).into_iter().for_each(Team::leave);
            open(&self.home()?.teams).freed.push_back(self.at);
        }
        Ok(())
    }

    /// Makes a plan. Collective.
    pub fn plan(&self, asked: &Asked) -> Result<*mut PlanHandle> {
        let (live, home) = (self.live()?, self.home()?);
        live.in_order()?;
        Ok(home.keep_plan(Rounds::make(&live.team, asked)?))
    }

    /// Runs an operation once and waits. The plan is kept for further calls, if the configuration
    /// allows it. `call`: the parameters and buffers, if they may repeat those of an earlier call.
    /// Collective.
    pub fn now(
        &self,
        call: Option<(Call, [Address; 2])>,
        asked: impl FnOnce() -> Asked,
    ) -> Result<()> {
        let live = self.live()?;
        let services = &live.team.services;
        services.may_block()?;
        // One call at a time: the order of the calls decides which plans the cache keeps.
        let mut cache = live.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((call, places)) = &call
            && let Some(done) = cache.repeat(&live.team, call, *places)
        {
            return done;
        }
        live.in_order()?;
        // A blocking call has one round, and names its buffers.
        let mut asked = Asked { depth: 1, ..asked() };
        if Cache::keeps(services) {
            return cache.run(&live.team, asked, call.map(|(call, _)| call));
        }
        drop(cache);
        asked.flags &= !REBIND;
        let plan = make(&live.team, &asked)?;
        let ended = plan.start().and_then(|()| plan.wait(None));
        Plan::free(&plan)?;
        ended
    }

    /// Starts an operation, or puts it on the list of the team's thread; see Asynchronous::begin().
    pub fn begin(
        &self,
        start: Start,
        call: Option<(Call, usize)>,
        asked: impl FnOnce() -> Asked,
    ) -> Result<()> {
        let live = self.live()?;
        live.calls.begin(&live.team, start, call, asked)
    }

    /// A barrier. The first one makes the plan. Collective.
    pub fn barrier(&self) -> Result<()> {
        let live = self.live()?;
        live.team.services.may_block()?;
        let plan = live.barrier.get_or_try_init(|| {
            live.in_order()?;
            make(&live.team, &Asked::nothing(Operation::Barrier, Form::Even))
        })?;
        plan.start()?;
        plan.wait(None)
    }
}

impl PlanHandle {
    #[inline(always)]
    fn live(&self) -> Result<&Rounds> {
        self.plan.get("plan")
    }

    /// See Plan::start().
    #[inline(always)]
    pub fn start(&self) -> Result<()> {
        self.live()?.start()
    }

    /// See Plan::start_with().
    pub fn start_with(&self, places: [Address; 2]) -> Result<()> {
        self.live()?.start_with(places)
    }

    /// See Plan::test().
    pub fn test(&self) -> Result<()> {
        self.live()?.test()
    }

    /// See Plan::wait().
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        self.live()?.wait(timeout)
    }

    /// See Plan::about().
    pub fn about(&self) -> Result<(About, &[CString; 2], u64)> {
        Ok(self.live()?.about())
    }

    /// Frees the plan at this rank.
    pub fn free(&self) -> Result<()> {
        self.live()?.free()?;
        drop(self.plan.take());
        if let Some(home) = self.home.upgrade() {
            open(&home.plans).freed.push_back(self.at);
        }
        Ok(())
    }
}
