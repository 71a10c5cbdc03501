//! The collectives of a context: its teams, plans and their memory.

use crate::coll::arena::Arena;
use crate::coll::cache::Asynchronous;
use crate::coll::choices::Choices;
use crate::coll::objects::{Handles, TeamHandle};
use crate::coll::team::Team;
use crate::core::context::Context;
use crate::core::services::Services;
use crate::util::once::Once;
use crate::util::status::Result;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two looks whether calls still wait.
const NAP: Duration = Duration::from_micros(100);
/// How long leave() waits for a thread that is in a function of the user.
const STUCK: Duration = Duration::from_secs(1);

/// Teams and plans of a context; made at first use.
pub struct Collectives {
    inner: Once<Inner>,
    choices: Arc<Choices>,
}

struct Inner {
    services: Arc<Services>,
    arena: Arc<Arena>,
    handles: Arc<Handles>,
    world: Once<WorldTeam>,
    /// The number of teams that were made of each list of ranks. Calls with equal lists are matched
    /// in their order.
    lists: Mutex<HashMap<Box<[u32]>, u64>>,
}

struct WorldTeam(*mut TeamHandle);

// SAFETY: any thread may use a handle, and the context keeps it.
unsafe impl Send for WorldTeam {}
// SAFETY: as above.
unsafe impl Sync for WorldTeam {}

impl Collectives {
    /// The collectives of a new context; `choices`: the table of the user.
    pub fn new(choices: Choices) -> Collectives {
        Collectives { inner: Once::new(), choices: Arc::new(choices) }
    }

    /// The collectives of another context that uses the table of this one.
    pub fn alike(&self) -> Collectives {
        Collectives { inner: Once::new(), choices: self.choices.clone() }
    }

    fn inner(&self, context: &Context) -> Result<&Inner> {
        let inner = self.inner.get_or_init(|| {
            let services = Arc::new(context.services());
            let arena = Arc::new(Arena::new(services.clone()));
            let (handles, world, lists) = (Arc::default(), Once::new(), Mutex::default());
            Inner { services, arena, handles, world, lists }
        });
        inner.services.must_be_open()?;
        Ok(inner)
    }

    /// Ends the threads of teams. Until `limit` they execute the calls on their lists, then the
    /// remaining calls end with ERR_CANCELED. False: a thread is in a function of the user.
    pub fn leave(&self, limit: Instant) -> bool {
        let Some(inner) = self.inner.get() else { return true };
        let idle = || inner.handles.all_calls(Asynchronous::is_idle);
        while !idle() && Instant::now() < limit {
            if !inner.services.help_others() {
                std::thread::sleep(NAP);
            }
        }
        inner.services.leave();
        inner.handles.all_calls(|calls| calls.join(limit + STUCK))
    }

    /// The team of all ranks.
    pub fn world(&self, context: &Context) -> Result<*mut TeamHandle> {
        let inner = self.inner(context)?;
        let world = inner.world.get_or_try_init(|| {
            inner.services.may_block()?;
            let team =
                Team::world(inner.services.clone(), inner.arena.clone(), self.choices.clone())?;
            Ok::<_, crate::util::status::Error>(WorldTeam(inner.handles.keep_team(team, true)))
        })?;
        Ok(world.0)
    }

    /// Makes a team of these ranks. Collective over them.
    pub fn create(&self, context: &Context, ranks: &[u32]) -> Result<*mut TeamHandle> {
        let inner = self.inner(context)?;
        inner.services.may_block()?;
        let number = {
            let mut lists = inner.lists.lock().unwrap_or_else(PoisonError::into_inner);
            let count = lists.entry(ranks.into()).or_default();
            *count += 1;
            *count - 1
        };
        let team = Team::create(
            inner.services.clone(),
            inner.arena.clone(),
            self.choices.clone(),
            ranks,
            number,
        )?;
        Ok(inner.handles.keep_team(team, false))
    }
}
