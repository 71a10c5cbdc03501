//! What a context has of collectives: its teams and plans.

use crate::coll::arena::Arena;
use crate::coll::objects::{Handles, TeamHandle};
use crate::coll::team::Team;
use crate::core::context::Context;
use crate::core::services::Services;
use crate::util::status::Result;
use once_cell::sync::OnceCell;
use std::sync::Arc;

/// See the head of the file. Made at first use.
#[derive(Default)]
pub struct Collectives {
    inner: OnceCell<Inner>,
}

struct Inner {
    services: Arc<Services>,
    arena: Arc<Arena>,
    handles: Arc<Handles>,
    world: OnceCell<WorldTeam>,
}

struct WorldTeam(*mut TeamHandle);

// SAFETY: a handle may be used by any thread, and the context keeps it.
unsafe impl Send for WorldTeam {}
// SAFETY: as above.
unsafe impl Sync for WorldTeam {}

impl Collectives {
    /// The team of all ranks. The first call is collective over the world.
    pub fn world(&self, context: &Context) -> Result<*mut TeamHandle> {
        let inner = self.inner.get_or_init(|| {
            let services = Arc::new(context.ground());
            let arena = Arc::new(Arena::new(services.clone()));
            Inner { services, arena, handles: Arc::default(), world: OnceCell::new() }
        });
        inner.services.must_be_open()?;
        let world = inner.world.get_or_try_init(|| {
            inner.services.may_block("the first llcl_team_world")?;
            let team = Team::world(inner.services.clone(), inner.arena.clone())?;
            Ok::<_, crate::util::status::Error>(WorldTeam(inner.handles.keep_team(team, true)))
        })?;
        Ok(world.0)
    }
}
