//! The variables by which a launcher gives a process its place: `LLCL_RANK`, `LLCL_SIZE`,
//! `LLCL_HUB_FD`.

use crate::bootstrap::protocol::MAX_RANKS;
use crate::fail;
use crate::util::socket;
use crate::util::status::{Error, Result, Status};
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// This process's number.
pub const RANK: &str = "LLCL_RANK";
/// How many ranks there are.
pub const SIZE: &str = "LLCL_SIZE";
/// The inherited descriptor of the socket to the hub.
pub const HUB: &str = "LLCL_HUB_FD";

/// Variables by which other launchers tell a process that it is one of several ranks, each with the
/// least value that means so.
const FOREIGN: [(&str, u64); 5] = [
    ("PMI_SIZE", 2),
    ("OMPI_COMM_WORLD_SIZE", 2),
    ("MV2_COMM_WORLD_SIZE", 2),
    // srun sets it for a step. A batch script has the variables of its job, not this one.
    ("SLURM_STEP_NUM_TASKS", 2),
    // No variable with the number of ranks comes with it.
    ("PMIX_RANK", 1),
];

/// Another launcher that has started several ranks. Each of them must not become a world of one.
pub struct OtherLauncher {
    variable: &'static str,
    value: u64,
    /// How many ranks there are at least.
    pub least: u32,
}

/// The launcher that started this process; None: it was `llcl-run`, or no launcher of several
/// ranks.
pub fn other_launcher() -> Option<OtherLauncher> {
    let get = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if [RANK, SIZE, HUB].iter().any(|name| get(name).is_some()) {
        return None;
    }
    let (variable, value) = foreign(get)?;
    let has_size = variable != "PMIX_RANK";
    let least = if has_size { u32::try_from(value).unwrap_or(u32::MAX) } else { 2 };
    Some(OtherLauncher { variable, value, least })
}

impl OtherLauncher {
    /// The error that these ranks cannot be a world; `why` says the reason.
    pub fn refuse(&self, why: &str) -> Error {
        let OtherLauncher { variable, value, .. } = self;
        let text = format!(
            "{variable} is {value}: another launcher has started this program as several ranks, each of which would be \
             alone: {why}. Start it by llcl-run, or hand those ranks over by llcl_config_t.bootstrap or llcl_init_mpi \
             (examples/beside_mpi.c), or set LLCL_ALONE=1 if each is to be alone"
        );
        Error::new(Status::ERR_INVALID, text)
    }
}

fn foreign(get: impl Fn(&str) -> Option<OsString>) -> Option<(&'static str, u64)> {
    FOREIGN.iter().find_map(|(name, least)| {
        let value = get(name)?.to_str()?.parse().ok()?;
        (value >= *least).then_some((*name, value))
    })
}

/// A place in a world that was started by a launcher.
#[derive(Debug)]
pub struct Place {
    pub rank: u32,
    pub size: u32,
    pub hub: OwnedFd,
}

#[derive(Debug, PartialEq, Eq)]
struct Named {
    rank: u32,
    size: u32,
    fd: RawFd,
}

/// Whether this process has taken its place. The descriptor belongs to one world only, which cannot
/// be joined again.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes this process's place, once. None: no launcher has set one.
pub fn take() -> Result<Option<Place>> {
    let Some(named) = parse(|name| std::env::var_os(name))? else { return Ok(None) };
    // This comes before the check of the descriptor, which is closed after the first world, or is
    // another file. Relaxed: the flag publishes nothing, it only lets one caller through.
    if TAKEN.load(Ordering::Relaxed) {
        return already_taken();
    }
    let raw = named.fd;
    // SAFETY: F_GETFD changes nothing, also if the descriptor is not open.
    let is_open = unsafe { libc::fcntl(raw, libc::F_GETFD) } != -1;
    // SAFETY: open, as was just checked; the launcher handed it to this process for this purpose.
    if !is_open || !socket::is_local_seqpacket(unsafe { BorrowedFd::borrow_raw(raw) }) {
        let what = if is_open { "something else" } else { "closed" };
        fail!(
            ERR_INVALID,
            "{HUB} is {raw}, which is {what}, expected the inherited packet socket of the launcher"
        );
    }
    // Relaxed: see above.
    if TAKEN.swap(true, Ordering::Relaxed) {
        return already_taken();
    }
    // SAFETY: the swap lets one caller through, so the descriptor gets one owner; the launcher made
    // it for the library and names it to nobody else.
    let hub = unsafe { OwnedFd::from_raw_fd(raw) };
    if let Err(e) = socket::set_close_on_exec(hub.as_fd(), true) {
        fail!(ERR_SYSTEM, "{HUB} is {}: fcntl: {e}", hub.as_raw_fd());
    }
    Ok(Some(Place { rank: named.rank, size: named.size, hub }))
}

fn already_taken() -> Result<Option<Place>> {
    fail!(
        ERR_STATE,
        "{HUB}: this process has already taken its place in the launcher's world, expected one \
         context at most (more of them: llcl_context_duplicate; more ranks in one process: llcl_world_create)"
    );
}

fn parse(get: impl Fn(&str) -> Option<OsString>) -> Result<Option<Named>> {
    // An empty variable counts as unset.
    let all = [RANK, SIZE, HUB].map(|name| (name, get(name).filter(|value| !value.is_empty())));
    let Some((set, value)) = all.iter().find_map(|(name, v)| v.as_ref().map(|v| (name, v))) else {
        return Ok(None);
    };
    if let Some((unset, _)) = all.iter().find(|(_, value)| value.is_none()) {
        fail!(
            ERR_INVALID,
            "{unset} is not set while {set} is {value:?}, expected all of {RANK}, {SIZE} and \
             {HUB} (llcl-run sets them) or none of them"
        );
    }
    let number = |i: usize, low: u32, high: u32| {
        let (name, value) = &all[i];
        let text = value.as_ref().and_then(|v| v.to_str()).unwrap_or("");
        // The launcher writes no sign, no blank and no leading zero; other forms are refused.
        let plain =
            text.bytes().all(|b| b.is_ascii_digit()) && !(text.len() > 1 && text.starts_with('0'));
        match text.parse::<u32>() {
            Ok(n) if plain && (low..=high).contains(&n) => Ok(n),
            _ => {
                let shown = value.clone().unwrap_or_default();
                fail!(ERR_INVALID, "{name} is {shown:?}, expected a number from {low} to {high}")
            }
        }
    };
    let size = number(1, 1, MAX_RANKS)?;
    let rank = number(0, 0, size - 1)?;
    // 0, 1 and 2 are the program's own streams.
    let fd = number(2, 3, i32::MAX as u32)? as RawFd;
    Ok(Some(Named { rank, size, fd }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(values: [Option<&str>; 3]) -> Result<Option<Named>> {
        let names = [RANK, SIZE, HUB];
        parse(|name| {
            let at = names.iter().position(|n| *n == name).unwrap();
            values[at].map(OsString::from)
        })
    }

    #[test]
    fn all_or_none() {
        assert_eq!(given([None; 3]).unwrap(), None);
        assert_eq!(given([Some(""); 3]).unwrap(), None);
        let named = given([Some("2"), Some("3"), Some("7")]).unwrap();
        assert_eq!(named, Some(Named { rank: 2, size: 3, fd: 7 }));
        for missing in 0..3 {
            let mut values = [Some("0"), Some("1"), Some("7")];
            values[missing] = None;
            let error = given(values).unwrap_err();
            assert_eq!(error.status, Status::ERR_INVALID);
            let start = format!("{} is not set while ", [RANK, SIZE, HUB][missing]);
            assert!(error.message().starts_with(&start), "{}", error.message());
        }
        for only in 0..3 {
            let mut values = [None; 3];
            values[only] = Some("1");
            assert_eq!(given(values).unwrap_err().status, Status::ERR_INVALID);
        }
    }

    #[test]
    fn other_launchers_are_known_by_what_they_set() {
        let found = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|it| it.0 == name).map(|it| it.1.into());
            foreign(value).map(|it| it.0)
        };
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("PMI_SIZE", "1"), ("PMIX_RANK", "0"), ("PMI_RANK", "0")]), None);
        assert_eq!(found(&[("SLURM_NTASKS", "8"), ("PMI_SIZE", ""), ("PMI_SIZE", "x")]), None);
        assert_eq!(found(&[("PMI_SIZE", "2")]), Some("PMI_SIZE"));
        assert_eq!(found(&[("SLURM_STEP_NUM_TASKS", "4")]), Some("SLURM_STEP_NUM_TASKS"));
        assert_eq!(found(&[("PMIX_RANK", "3")]), Some("PMIX_RANK"));
    }

    #[test]
    fn malformed_and_out_of_range_values_are_named() {
        let bad = [
            (RANK, [Some("3"), Some("3"), Some("7")], "\"3\", expected a number from 0 to 2"),
            (RANK, [Some("-1"), Some("3"), Some("7")], "\"-1\", expected a number from 0 to 2"),
            (RANK, [Some("+1"), Some("3"), Some("7")], "\"+1\", expected a number"),
            (RANK, [Some("01"), Some("3"), Some("7")], "\"01\", expected a number"),
            (RANK, [Some("1 "), Some("3"), Some("7")], "\"1 \", expected a number"),
            (SIZE, [Some("0"), Some("0"), Some("7")], "\"0\", expected a number from 1 to 4096"),
            (SIZE, [Some("0"), Some("4097"), Some("7")], "\"4097\", expected a number"),
            (SIZE, [Some("0"), Some("99999999999"), Some("7")], "expected a number"),
            (HUB, [Some("0"), Some("1"), Some("2")], "\"2\", expected a number from 3 to"),
            (HUB, [Some("0"), Some("1"), Some("x")], "\"x\", expected a number from 3 to"),
        ];
        for (name, values, expected) in bad {
            let error = given(values).unwrap_err();
            assert_eq!(error.status, Status::ERR_INVALID);
            let text = error.message();
            assert!(text.starts_with(&format!("{name} is ")) && text.contains(expected), "{text}");
        }
    }
}
