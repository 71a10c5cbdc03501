//! A team's calls that do not wait: llcl_X_async.
//!
//! A call whose plan is kept and has no round under way is started by its caller, at once. Any
//! other has to agree with the other ranks first, which takes as long as the last of them: it goes
//! to a list, and a thread of its own works through the list in the order of the calls. That thread
//! has the cache for so long, and every further call goes to the list behind the others, so all
//! ranks use boards and plans in one order. The thread ends when the list is empty.

use super::{Cache, Call, Kept};
use crate::coll::plan::asked::{Asked, Form, REBIND};
use crate::coll::plan::compare::{Alike, alike};
use crate::coll::plan::make::make;
use crate::coll::plan::{EACH_START, Plan};
use crate::coll::runner::shared::Reduction;
use crate::coll::team::Team;
use crate::core::services::Services;
use crate::engine::completion::{self, Completion, has_room};
use crate::fail;
use crate::transport::address::Address;
use crate::util::status::{Error, Result, Status};
use crate::util::thread::Thread;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many calls may wait for the thread.
const MOST: usize = 64;
/// Between two looks at something that nobody announces.
const NAP: Duration = Duration::from_micros(50);

/// See the head of the file.
#[derive(Default)]
pub struct Asynchronous(Mutex<State>);

#[derive(Default)]
struct State {
    cache: Cache,
    /// In the order of the calls. The first one is being made ready.
    waiting: VecDeque<Request>,
    /// The thread has the cache.
    working: bool,
    /// Callers that start a plan of the cache.
    starting: u32,
    thread: Option<Thread>,
}

#[derive(Clone)]
struct Request {
    asked: Asked,
    alike: Alike,
    call: Option<Call>,
    completion: Completion,
}

// SAFETY: what a request names, its user keeps valid until the completion, on whatever thread.
unsafe impl Send for Request {}

/// What differs from call to call of one kind.
#[derive(Clone, Copy)]
pub struct Start {
    /// Input and output.
    pub places: [Address; 2],
    /// Fires at the end.
    pub completion: Completion,
    /// For LLCL_OP_USER.
    pub function: Option<(Reduction, *mut c_void)>,
}

impl Asynchronous {
    fn open(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the operation, or takes it on. `call`: what is asked for, if the same may have been
    /// asked for before, and how many rounds of it may be under way.
    pub fn begin(
        self: &Arc<Asynchronous>,
        team: &Arc<Team>,
        start: Start,
        call: Option<(Call, usize)>,
        asked: impl FnOnce() -> Asked,
    ) -> Result<()> {
        let services = &team.services;
        services.must_be_open()?;
        if services.must_stay().is_err() {
            fail!(ERR_STATE, "the context is being finalized");
        }
        services.check_completion(&start.completion, "on_complete")?;
        if start.completion.kind == completion::NONE {
            fail!(ERR_INVALID, "on_complete does nothing, expected one that tells of the end");
        }
        // Of the plan, and of what it ends meanwhile.
        if !has_room(2) {
            return Err(Error::bare(Status::RETRY_QUEUE_FULL));
        }
        let same = |kept: &Kept| {
            call.is_some_and(|(call, depth)| kept.call == Some(call) && kept.depth == depth)
        };
        if let Some(started) = self.start_kept(services, start, same) {
            return started;
        }
        let mut asked = asked();
        asked.check_own(services)?;
        (asked.on_complete, asked.flags) = (EACH_START, asked.flags | REBIND);
        let alike = alike(team, &asked, asked.wanted(&services.config));
        let (even, keeps) = (asked.form == Form::Even, Cache::keeps(services));
        if let Some(started) =
            self.start_kept(services, start, |kept| even && keeps && kept.alike == alike)
        {
            return started;
        }
        let (call, completion) = (call.map(|(call, _)| call).filter(|_| keeps), start.completion);
        self.take_on(team, Request { asked, alike, call, completion })
    }

    /// Starts a plan that is kept; None: there is none, or its turn has not come.
    fn start_kept(
        &self,
        services: &Services,
        start: Start,
        same: impl Fn(&Kept) -> bool,
    ) -> Option<Result<()>> {
        let (at, plan) = {
            let mut state = self.open();
            if state.working {
                return None;
            }
            let State { cache, starting, .. } = &mut *state;
            let at = cache.kept.iter().position(same)?;
            let kept = &mut cache.kept[at];
            let plan = kept.plans.get(kept.rounds % kept.depth)?.clone();
            if !plan.may_start() {
                return Some(Err(Error::bare(Status::RETRY_BUSY)));
            }
            cache.calls += 1;
            kept.used = cache.calls;
            kept.rounds += 1;
            *starting += 1;
            (at, plan)
        };
        services.counts.plans_found.up();
        // Not under the lock: what ends at once calls functions of the user.
        let started = start_plan(&plan, &start);
        let mut state = self.open();
        state.starting -= 1;
        if started.is_err() {
            // As long as a caller starts one of its plans nothing leaves the cache.
            state.cache.kept[at].rounds -= 1;
        }
        Some(started)
    }

    /// Leaves the operation to the thread.
    fn take_on(self: &Arc<Asynchronous>, team: &Arc<Team>, request: Request) -> Result<()> {
        let mut state = self.open();
        let alike = state.waiting.iter().filter(|other| other.alike == request.alike).count();
        if alike >= request.asked.depth() || state.waiting.len() >= MOST {
            return Err(Error::bare(Status::RETRY_BUSY));
        }
        state.waiting.push_back(request);
        if !state.working {
            // It has given everything back, so this does not take long.
            state.thread.take().into_iter().for_each(Thread::join);
            let (own, its_team) = (self.clone(), team.clone());
            let thread = team.services.spawn("llcl-coll", move || own.serve(&its_team));
            match thread {
                Ok(thread) => (state.thread, state.working) = (Some(thread), true),
                Err(error) => {
                    state.waiting.pop_back();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The life of the thread.
    fn serve(&self, team: &Team) {
        let mut cache = loop {
            let mut state = self.open();
            if state.starting == 0 {
                break std::mem::take(&mut state.cache);
            }
            drop(state);
            std::thread::sleep(NAP);
        };
        loop {
            let request = {
                let mut state = self.open();
                let Some(request) = state.waiting.front() else {
                    (state.cache, state.working) = (cache, false);
                    return;
                };
                request.clone()
            };
            let ready = cache.make_ready(team, &request);
            // Before the start: what is told of the end may post the next.
            self.open().waiting.pop_front();
            let started = ready.and_then(|plan| {
                let Request { asked, completion, .. } = &request;
                let function = asked.function.map(|function| (function, asked.function_data));
                let places = [asked.send, asked.receive];
                let start = Start { places, completion: *completion, function };
                // The others have begun, or will; the plan's failure tells them.
                start_plan(&plan, &start).inspect_err(|error| plan.refuse(error.status))
            });
            if let Err(error) = started {
                let leaving = team.services.must_stay().is_err();
                let status = if leaving { Status::ERR_CANCELED } else { error.status };
                team.services.fire(&request.completion, status);
            }
        }
    }

    /// Whether no call waits for the thread.
    pub fn is_idle(&self) -> bool {
        let state = self.open();
        !state.working && state.starting == 0
    }

    /// Waits until that is so.
    pub fn wait(&self, services: &Services) {
        while !self.is_idle() {
            if !services.help_others() {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Waits for the end of the thread, which has been told to end or has nothing to do. False: it
    /// has not ended by `limit`.
    pub fn join(&self, limit: Instant) -> bool {
        let thread = self.open().thread.take();
        thread.is_none_or(|thread| thread.join_until(limit))
    }

    /// Ends all plans at this rank; no call waits for the thread.
    pub fn free(&self) -> Result<()> {
        self.open().thread.take().into_iter().for_each(Thread::join);
        let mut cache = std::mem::take(&mut self.open().cache);
        cache.free()
    }
}

fn start_plan(plan: &Plan, start: &Start) -> Result<()> {
    if let Some((function, data)) = start.function {
        plan.use_function(function, data);
    }
    plan.start_for(start.places, start.completion)
}

impl Cache {
    /// The plan for a call, with no round under way. Collective.
    fn make_ready(&mut self, team: &Team, request: &Request) -> Result<Arc<Plan>> {
        team.services.must_stay()?;
        let at = self.obtain(team, &request.asked)?;
        let kept = &mut self.kept[at];
        let turn = kept.rounds % kept.depth;
        if turn == kept.plans.len() {
            kept.plans.push(make(team, &request.asked)?);
        }
        kept.call = request.call;
        kept.rounds += 1;
        let plan = kept.plans[turn].clone();
        plan.wait_until_idle()?;
        Ok(plan)
    }
}
