//! The calls of a team that do not wait: llcl_X_async.
//!
//! If the cache has the plan, and no round of it is under way, the caller starts it. Any other call
//! must first exchange data with the other ranks, for which it must wait. So it is put on a list,
//! and a thread of the team executes the list in the order of the calls. While the thread works it
//! owns the cache, and every further call is put on the list. So all ranks use boards and plans in
//! one order. The thread ends when the list is empty.

use super::{Cache, Call, Entry, with_room};
use crate::coll::plan::asked::{Asked, Form, REBIND};
use crate::coll::plan::compare::{Alike, alike};
use crate::coll::plan::make::make;
use crate::coll::plan::{EACH_START, Plan};
use crate::coll::runner::shared::Reduction;
use crate::coll::team::Team;
use crate::core::services::Services;
use crate::engine::completion::{self, Completion};
use crate::fail;
use crate::transport::address::Address;
use crate::util::status::{Error, Result, Status};
use crate::util::thread::Thread;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most calls that may wait for the thread.
const MOST: usize = 64;
/// Pause between two looks at a condition that no thread announces.
const NAP: Duration = Duration::from_micros(50);

/// The state of these calls of one team; see the head of the file.
#[derive(Default)]
pub struct Asynchronous(Mutex<State>);

#[derive(Default)]
struct State {
    cache: Cache,
    /// The calls on the list, in their order. The thread works on the first one.
    waiting: VecDeque<Request>,
    /// Whether the thread works, and owns the cache.
    working: bool,
    /// How many callers are starting a plan of the cache.
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

// SAFETY: the user keeps the memory that a request names valid until the completion, and any thread
// may use it.
unsafe impl Send for Request {}

/// What may differ between calls that use the same plan.
#[derive(Clone, Copy)]
pub struct Start {
    /// Input and output.
    pub places: [Address; 2],
    /// Fires at the end of the round.
    pub completion: Completion,
    /// The function and its last argument, for LLCL_OP_USER.
    pub function: Option<(Reduction, *mut c_void)>,
}

impl Asynchronous {
    fn open(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the operation, or puts it on the list. `call`: the parameters, if they may repeat
    /// those of an earlier call, and how many rounds of it may be under way.
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
            fail!(
                ERR_INVALID,
                "on_complete.kind is LLCL_COMPLETE_NONE, expected another LLCL_COMPLETE_*"
            );
        }
        let same = |entry: &Entry| {
            call.is_some_and(|(call, depth)| entry.call == Some(call) && entry.depth == depth)
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
            self.start_kept(services, start, |entry| even && keeps && entry.alike == alike)
        {
            return started;
        }
        let (call, completion) = (call.map(|(call, _)| call).filter(|_| keeps), start.completion);
        self.enqueue(team, Request { asked, alike, call, completion })
    }

    /// Starts a plan of the cache. None: the cache has no such entry, the entry's plan for this
    /// round is not made yet, or the thread works.
    fn start_kept(
        &self,
        services: &Services,
        start: Start,
        same: impl Fn(&Entry) -> bool,
    ) -> Option<Result<()>> {
        let (at, plan, before) = {
            let mut state = self.open();
            if state.working {
                return None;
            }
            let State { cache, starting, .. } = &mut *state;
            let at = cache.entries.iter().position(same)?;
            let entry = &mut cache.entries[at];
            let plan = entry.plans.get(entry.rounds % entry.depth)?.clone();
            if !plan.may_start() {
                return Some(Err(Error::bare(Status::RETRY_BUSY)));
            }
            // The completion of a call whose plan has failed fires here. Inside a callback without
            // room for one more, it fires on the thread `llcl-coll`.
            let is_call = start.completion.kind == completion::CALL;
            if is_call && !completion::has_room(1) && plan.trouble().is_some() {
                return None;
            }
            let before = (cache.calls, entry.used);
            cache.calls += 1;
            entry.used = cache.calls;
            entry.rounds += 1;
            *starting += 1;
            (at, plan, before)
        };
        services.counts.plans_found.up();
        // The lock is not held here, since a round that ends at once calls functions of the user.
        let started =
            with_room(|| start_plan(&plan, &start), || self.open().cache.discard_copies());
        let failed = started.as_ref().err().and_then(|_| plan.trouble());
        let mut state = self.open();
        state.starting -= 1;
        if started.is_err() && failed.is_none() {
            // The call has not happened, so the order of the calls and the turns of the plans are
            // as before it. No other call has come meanwhile: no round has begun whose completion
            // could have made one. `at` is still right, since no entry leaves the cache while
            // `starting` is not 0.
            let cache = &mut state.cache;
            cache.entries[at].rounds -= 1;
            (cache.calls, cache.entries[at].used) = before;
        }
        drop(state);
        Some(failed.map_or(started, |status| {
            // A rank that did not know yet that the plan has failed has begun this round. So the
            // call counts here too, and its completion tells of the failure.
            // SAFETY: the caller keeps the target of the completion until it fires.
            unsafe { services.fire(&start.completion, status) };
            Ok(())
        }))
    }

    /// Puts the operation on the list, and starts the thread if it does not run.
    fn enqueue(self: &Arc<Asynchronous>, team: &Arc<Team>, request: Request) -> Result<()> {
        let mut state = self.open();
        let alike = state.waiting.iter().filter(|other| other.alike == request.alike).count();
        if alike >= request.asked.depth() || state.waiting.len() >= MOST {
            return Err(Error::bare(Status::RETRY_BUSY));
        }
        state.waiting.push_back(request);
        if !state.working {
            // An earlier thread has given the cache back and is about to end, so join() does not
            // take long.
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
        // Before the thread can take the call: it needs the lock.
        team.services.background.promise();
        Ok(())
    }

    /// The main function of the thread.
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
            // This comes before the start, since the completion may make the next call.
            self.open().waiting.pop_front();
            let started = ready.and_then(|plan| {
                let Request { asked, completion, .. } = &request;
                let function = asked.function.map(|function| (function, asked.function_data));
                let places = [asked.send, asked.receive];
                let start = Start { places, completion: *completion, function };
                // Other ranks have begun this round, or will begin it. The failure of the plan
                // informs them.
                with_room(|| start_plan(&plan, &start), || cache.discard_copies())
                    .inspect_err(|error| plan.refuse(error.status))
            });
            if let Err(error) = started {
                let leaving = team.services.must_stay().is_err();
                let status = if leaving { Status::ERR_CANCELED } else { error.status };
                // SAFETY: the call was accepted, so it is valid and its user keeps it.
                unsafe { team.services.fire(&request.completion, status) };
            }
            team.services.background.keep_promise();
        }
    }

    /// Whether no call waits for the thread or is being started.
    pub fn is_idle(&self) -> bool {
        let state = self.open();
        !state.working && state.starting == 0
    }

    /// Waits until is_idle().
    pub fn wait(&self, services: &Services) {
        while !self.is_idle() {
            if !services.help_others() {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Waits for the end of the thread, whose list is empty or whose calls are cancelled. False:
    /// the thread has not ended by `limit`.
    pub fn join(&self, limit: Instant) -> bool {
        let thread = self.open().thread.take();
        thread.is_none_or(|thread| thread.join_until(limit))
    }

    /// Frees all plans at this rank. No call may wait for the thread.
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
        let entry = &mut self.entries[at];
        let turn = entry.rounds % entry.depth;
        if turn == entry.plans.len() {
            entry.plans.push(make(team, &request.asked)?);
        }
        entry.call = request.call;
        entry.rounds += 1;
        let plan = entry.plans[turn].clone();
        plan.wait_until_idle()?;
        Ok(plan)
    }
}
