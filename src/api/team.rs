//! 13. Teams: which ranks take part in a collective, and in what order.

use crate::api::guard::{give, given, guard};
use crate::api::life::llcl_context_t;
use crate::api::status::llcl_status_t;
use crate::coll::objects::TeamHandle;
use crate::fail;

/// Some ranks of the world, numbered from 0 on. Ends by llcl_team_free or with its context.
pub struct llcl_team_t(pub(super) TeamHandle);

/// The colour of ranks that go into no team.
pub const LLCL_TEAM_NONE: u32 = 0xffff_ffff;

/// The team of all ranks, numbered as in the world.
///
/// Local: no other rank is contacted and nobody is waited for. Ranks meet when they first use the
/// team, each with log2 n others.
/// `context`: a live context. `team`: where the team goes, the same at each call; it belongs to the
/// context, and freeing it is allowed and does nothing.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_UNSUPPORTED: the world has more than 4,095 ranks;
/// LLCL_ERR_NO_MEMORY: no room for the team's board (16 KiB, with more than 512 ranks 32 bytes for
/// each), or no region left; LLCL_ERR_STATE: inside a callback, or the context is being finalized.
/// Any thread may call it.
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
        let world = context.live().and_then(|live| context.collectives.world(live))?;
        // SAFETY: checked above; a handle is all that a llcl_team_t holds.
        unsafe { give(team, "team", world.cast()) }
    })
}

/// Splits a team: ranks that give the same colour make a new one. Collective over `team`.
///
/// `team`: a live team. `colour`: any number, or LLCL_TEAM_NONE. `key`: the new ranks follow the
/// keys in rising order; among equal keys the ranks in `team`. `new_team`: where the new team goes;
/// NULL is stored for the colour LLCL_TEAM_NONE.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: `team` was freed, inside a callback, or the
/// context is being finalized; LLCL_ERR_PEER_DEAD: a rank of `team` has died or has left, so
/// nothing collective can be done with `team` any more: the others go on with llcl_team_create;
/// LLCL_ERR_NO_MEMORY: as llcl_team_world, at this rank or at another one. Threads of one rank must
/// not call collective functions of one team at the same time: which call of this rank would meet
/// which call of another one is then open.
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

/// Makes a team from a list of ranks. Collective over the ranks on the list, and over nobody else:
/// this is how the living go on after a death, which ends everything collective of every team with
/// the dead rank, and llcl_allgather_bytes.
///
/// All ranks on the list must call it with the same list in the same order. A list may be used
/// again; its n-th call at one rank meets the n-th call at the others.
/// After a death: take the dead (llcl_peer_alive) out of the list and call this. Ranks may hear of
/// a death at different times; where a rank on the list is dead this answers LLCL_ERR_PEER_DEAD,
/// and the caller tries again with a shorter list, until all living ranks have come to the same
/// one. Instead of llcl_allgather_bytes use llcl_allgather over the new team.
/// `context`: a live context. `ranks`: `n` numbers of ranks of the world, each once, the caller's
/// among them; the new ranks follow this order. Read during the call only. `n`: 1 to 4,095. `team`:
/// where the new team goes; it ends by llcl_team_free or with its context.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, n is 0, a rank stands on the list twice, or the caller is not
/// on it;
/// LLCL_ERR_RANGE: no such rank; LLCL_ERR_UNSUPPORTED: n is too large, or the ranks run on several
/// nodes; LLCL_ERR_PEER_DEAD: a rank on the list has died or has left; LLCL_ERR_NO_MEMORY: as
/// llcl_team_world, at this rank or at another one; LLCL_ERR_STATE: inside a callback, or the context is being finalized. Any thread
/// may call it; calls with the same list by several threads of a rank meet those of others in
/// arbitrary order. The way to a team without the dead is that of MPI's ULFM (shrink), but for the
/// list, which comes from the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_create(
    context: *mut llcl_context_t,
    ranks: *const u32,
    n: u32,
    team: *mut *mut llcl_team_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context, a place for a pointer, and `n` numbers.
        let (context, ranks) = unsafe {
            given(team, "team")?;
            given(ranks, "ranks")?;
            (given(context, "context")?, std::slice::from_raw_parts(ranks, n as usize))
        };
        if ranks.is_empty() {
            fail!(ERR_INVALID, "n is 0, expected at least 1");
        }
        let made = context.live().and_then(|live| context.collectives.create(live, ranks))?;
        // SAFETY: checked above; a handle is all that a llcl_team_t holds.
        unsafe { give(team, "team", made.cast()) }
    })
}

/// Ends a team. Plans that were made with it live on. Local: the other ranks need not call it now.
///
/// `team`: ended by this call. The team of all ranks is not ended, its memory goes with the
/// context.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: it was freed before (recognised until 256 later
/// ones of its kind have ended). No other thread may use the team at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_free(team: *mut llcl_team_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(team, "team")? }.0.free())
}

/// The calling rank's number in a team.
///
/// `team`: a live team; for NULL and for one that was freed the answer is 0xffffffff. Any thread
/// may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_rank(team: *const llcl_team_t) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.and_then(|team| team.0.rank()).unwrap_or(u32::MAX)
}

/// How many ranks a team has.
///
/// `team`: a live team; for NULL and for one that was freed the answer is 0. Any thread may call
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_size(team: *const llcl_team_t) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.map_or(0, |team| team.0.size())
}

/// The number in the world of a team's rank: the `peer` of all other operations.
///
/// `team`: a live team. `rank`: a number below llcl_team_size. For NULL, a team that was freed and
/// any other number the answer is 0xffffffff. Any thread may call it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_peer(team: *const llcl_team_t, rank: u32) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.and_then(|team| team.0.peer(rank)).unwrap_or(u32::MAX)
}

/// The number in a team of a rank of the world: the reverse of llcl_team_peer.
///
/// `team`: a live team. `world_rank`: a number below llcl_size. For NULL, a team that was freed and
/// a rank that is not in the team the answer is 0xffffffff. Any thread may call it; it takes a look
/// at each rank of the team at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_find(team: *const llcl_team_t, world_rank: u32) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.and_then(|team| team.0.find(world_rank)).unwrap_or(u32::MAX)
}
