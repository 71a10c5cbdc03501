//! 12. Teams: which ranks take part in a collective, and in what order.

use crate::api::guard::{give, given, guard};
use crate::api::life::llcl_context_t;
use crate::api::status::llcl_status_t;
use crate::coll::objects::TeamHandle;

/// Some ranks of the world, numbered from 0 on. Ends by llcl_team_free or with its context.
pub struct llcl_team_t(pub(super) TeamHandle);

/// The colour of ranks that go into no team.
pub const LLCL_TEAM_NONE: u32 = 0xffff_ffff;

/// The team of all ranks, numbered as in the world.
///
/// The first call of a context is collective: it waits until every rank has made it (as
/// llcl_exchange, with which it must not change places at one of the ranks). Later ones answer at once.
/// `context`: a live context. `team`: where the team goes; it belongs to the context, and freeing it is
/// allowed and does nothing.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_PEER_DEAD: a rank has died or has left; LLCL_ERR_NO_MEMORY:
/// no room for the team's board (8 KiB), or no region left; LLCL_ERR_STATE: inside a callback, or the context
/// is being finalized. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_world(
    context: *mut llcl_context_t,
    team: *mut *mut llcl_team_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context and a place for a pointer.
        let context = unsafe {
            given(team, "team")?;
            given(context, "context")?
        };
        // SAFETY: checked above; a handle is all that a llcl_team_t holds.
        unsafe { give(team, "team", context.1.world(&context.0)?.cast()) }
    })
}

/// Splits a team: ranks that give the same colour make a new one. Collective over `team`.
///
/// `team`: a live team. `colour`: any number, or LLCL_TEAM_NONE. `key`: the new ranks follow the keys in
/// rising order; among equal keys the ranks in `team`. `new_team`: where the new team goes; NULL is
/// stored for the colour LLCL_TEAM_NONE.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: `team` was freed, inside a callback, or the context is
/// being finalized; LLCL_ERR_PEER_DEAD: a rank of `team` has died or has left; LLCL_ERR_NO_MEMORY: as
/// llcl_team_world. Threads of one rank must not call collective functions of one team at the same
/// time unless they do not care which call meets which.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_split(
    team: *mut llcl_team_t,
    colour: u32,
    key: u32,
    new_team: *mut *mut llcl_team_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live team and a place for a pointer.
        let old = unsafe {
            given(new_team, "new_team")?;
            &given(team, "team")?.0
        };
        let colour = (colour != LLCL_TEAM_NONE).then_some(colour);
        // SAFETY: checked above; a handle is all that a llcl_team_t holds.
        unsafe { give(new_team, "new_team", old.split(colour, key)?.cast()) }
    })
}

/// Ends a team. Plans that were made with it live on. Local: the other ranks need not call it now.
///
/// `team`: ended by this call. The team of all ranks is not ended, its memory goes with the context.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: it was freed before (told as long as the handle has not been
/// given out again). No other thread may use the team at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_free(team: *mut llcl_team_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(team, "team")? }.0.free())
}

/// The calling rank's number in a team.
///
/// `team`: a live team; for NULL and for one that was freed the answer is 0xffffffff. Any thread may
/// call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_rank(team: *const llcl_team_t) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.and_then(|team| team.0.rank()).unwrap_or(u32::MAX)
}

/// How many ranks a team has.
///
/// `team`: a live team; for NULL and for one that was freed the answer is 0. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_size(team: *const llcl_team_t) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.map_or(0, |team| team.0.size())
}

/// The number in the world of a team's rank: the `peer` of all other operations.
///
/// `team`: a live team. `rank`: a number below llcl_team_size. For NULL, a team that was freed and any
/// other number the answer is 0xffffffff. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_peer(team: *const llcl_team_t, rank: u32) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.and_then(|team| team.0.peer(rank)).unwrap_or(u32::MAX)
}
