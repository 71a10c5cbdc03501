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
/// Local: the call contacts no other rank and waits for none. At the first use of the team each
/// rank contacts log2 n others.
/// `context`: a live context. `team`: where the team goes; each call gives the same handle. The
/// team belongs to the context; llcl_team_free of it is allowed and does nothing.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_UNSUPPORTED: the world has more than 4,095 ranks;
/// LLCL_ERR_NO_MEMORY: no memory for the region through which the ranks agree on plans (16 KiB;
/// with more than 512 ranks 32 bytes for each), or as many regions exist as the configuration
/// allows; LLCL_ERR_STATE: the first call is made inside a callback, or the context is being
/// finalized. Any thread may call it.
/// From: MPI_COMM_WORLD.
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
/// `team`: a live team. `colour`: any number, or LLCL_TEAM_NONE. `key`: any number. The ranks of
/// the new team are in rising order of the keys, and for equal keys in the order of `team`.
/// `new_team`: where the new team goes; NULL is stored for the colour LLCL_TEAM_NONE.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: `team` was freed, inside a callback, or the
/// context is being finalized; LLCL_ERR_PEER_DEAD: a rank of `team` has died or has left, so every
/// collective function of `team` fails from now on: go on with llcl_team_create;
/// LLCL_ERR_NO_MEMORY: as llcl_team_world, at this rank or at another one. Threads of one rank must
/// not call collective functions of one team at the same time, because their calls would be matched
/// with those of other ranks in arbitrary order.
/// From: MPI_Comm_split.
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

/// Makes a team from a list of ranks. Collective over the ranks on the list only. So the living
/// ranks go on after a death, after which all collective functions of teams with the dead rank
/// fail, and llcl_allgather_bytes as well.
///
/// All ranks on the list must call it with the same list in the same order. A list may be used
/// several times; the n-th call with it at one rank is matched with the n-th call at the others.
/// After a death, remove the dead ranks (llcl_peer_alive) from the list and call this. Ranks may
/// hear of a death at different times. If a rank on the list is dead, the answer is
/// LLCL_ERR_PEER_DEAD; try again with a shorter list, until all living ranks use the same list. In
/// place of llcl_allgather_bytes use llcl_allgather over the new team.
/// `context`: a live context. `ranks`: `n` numbers of ranks of the world, each once, the caller's
/// among them; the ranks of the new team are in this order. Read during the call only. `n`: 1 to
/// the number of ranks, at most 4,095. `team`: where the new team goes; it ends by llcl_team_free
/// or with its context.
/// LLCL_OK; LLCL_ERR_INVALID: NULL, n is 0 or more than there are ranks, a rank stands on the list
/// twice, or the caller is not on it;
/// LLCL_ERR_RANGE: no such rank; LLCL_ERR_UNSUPPORTED: n is too large; LLCL_ERR_PEER_DEAD: a rank
/// on the list has died or has left; LLCL_ERR_NO_MEMORY: as llcl_team_world, at this rank or at
/// another one; LLCL_ERR_STATE: inside a callback, or the context is being finalized. Any thread
/// may call it; calls with the same list by several threads of a rank are matched with those of
/// other ranks in arbitrary order.
/// From: MPI's ULFM (shrink), but here the caller gives the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_create(
    context: *mut llcl_context_t,
    ranks: *const u32,
    n: u32,
    team: *mut *mut llcl_team_t,
) -> llcl_status_t {
    guard(|| {
        // SAFETY: the caller gives a live context, a place for a pointer, and numbers.
        let (context, ranks) = unsafe {
            given(team, "team")?;
            given(ranks, "ranks")?;
            (given(context, "context")?, ranks)
        };
        let live = context.live()?;
        let size = live.size();
        if n == 0 || n > size {
            fail!(ERR_INVALID, "n is {n}, expected 1 to {size}, the number of ranks");
        }
        // SAFETY: the caller gives `n` numbers.
        let ranks = unsafe { std::slice::from_raw_parts(ranks, n as usize) };
        let made = context.collectives.create(live, ranks)?;
        // SAFETY: checked above; a handle is all that a llcl_team_t holds.
        unsafe { give(team, "team", made.cast()) }
    })
}

/// Ends a team. Its plans stay valid. The call waits until the calls llcl_X_async of the team have
/// ended at this rank. They may need that other ranks make theirs, so a rank that must not wait for
/// others awaits the completions first. The call waits for nothing else of other ranks.
///
/// `team`: ended by this call, except the team of all ranks, which ends with the context and for
/// which the call does not wait.
/// LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: it was freed before (see the conventions on
/// handles), or the call is made inside a callback. No other thread may use the team at the same
/// time.
/// From: MPI_Comm_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_free(team: *mut llcl_team_t) -> llcl_status_t {
    // SAFETY: the caller gives a handle of a live context.
    guard(|| unsafe { given(team, "team")? }.0.free())
}

/// The calling rank's number in a team.
///
/// `team`: a live team; for NULL and for one that was freed the answer is 0xffffffff. Any thread
/// may call it.
/// From: MPI_Comm_rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_rank(team: *const llcl_team_t) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.and_then(|team| team.0.rank()).unwrap_or(u32::MAX)
}

/// How many ranks a team has.
///
/// `team`: a live team; for NULL and for one that was freed the answer is 0. Any thread may call
/// it.
/// From: MPI_Comm_size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_size(team: *const llcl_team_t) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.map_or(0, |team| team.0.size())
}

/// The number in the world of a team's rank, which is the `peer` in all other operations.
///
/// `team`: a live team. `rank`: a number below llcl_team_size. For NULL, a team that was freed and
/// any other number the answer is 0xffffffff. Any thread may call it.
/// From: gex_TM_TranslateRankToJobrank of GASNet-EX, and MPI_Group_translate_ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_peer(team: *const llcl_team_t, rank: u32) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.and_then(|team| team.0.peer(rank)).unwrap_or(u32::MAX)
}

/// The number in a team of a rank of the world: the reverse of llcl_team_peer.
///
/// `team`: a live team. `world_rank`: a number below llcl_size. For NULL, a team that was freed and
/// a rank that is not in the team the answer is 0xffffffff. Any thread may call it; its time grows
/// with the size of the team.
/// From: gex_TM_TranslateJobrankToRank of GASNet-EX, and MPI_Group_translate_ranks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn llcl_team_find(team: *const llcl_team_t, world_rank: u32) -> u32 {
    // SAFETY: the caller gives NULL or a handle of a live context.
    unsafe { team.as_ref() }.and_then(|team| team.0.find(world_rank)).unwrap_or(u32::MAX)
}
