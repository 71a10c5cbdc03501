//! The end of a whole job.

use super::{Carry, HubRequests, speak};
use crate::bootstrap::hub::{Event, Hub};
use crate::util::socket::{self, interest};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Ends the processes of all ranks of this machine, `me` last, unless that rank `has_left` the
/// world. The rank that called for the end ends by itself; it has the same time as the others.
/// `others`: by which the hub speaks to those of other machines, and hears from them.
pub(super) fn end_all(
    hub: &mut Hub,
    others: (Option<&Carry>, &HubRequests),
    (me, has_left): (u32, bool),
    (rank, code, grace_ms): (u32, i32, u32),
) {
    let (carry, requests) = others;
    let grace = |ms: u32| Instant::now() + Duration::from_millis(ms.into());
    let mut until = grace(grace_ms);
    speak(hub, carry);
    hub.signal_all_but(&[me, rank], libc::SIGTERM);
    // As long as this process must live, also if no other one does: see below.
    let lives = |hub: &Hub| hub.signal_all_but(&[me], 0) || rank == me && !has_left;
    while Instant::now() < until && lives(hub) {
        let left = until.saturating_duration_since(Instant::now()).as_millis() as i32;
        let mut waits =
            [interest(hub.as_fd(), libc::POLLIN), interest(requests.wake.as_fd(), libc::POLLIN)];
        let _ = socket::poll(&mut waits, left.saturating_add(1));
        // The hub notices their ends. A second call, of any machine, can only shorten the time;
        // other requests have no effect any more.
        let mut events = hub.turn().unwrap_or_default();
        for (from, packet) in requests.take(|pending| std::mem::take(&mut pending.relayed)) {
            events.extend(hub.relayed(from, &packet));
        }
        speak(hub, carry);
        for event in events {
            if let Event::Abort { grace_ms, .. } = event {
                until = until.min(grace(grace_ms));
            }
        }
    }
    hub.signal_all_but(&[me], libc::SIGKILL);
    if has_left {
        // The other requests have not been taken.
        return requests.wake.wake();
    }
    // SAFETY: ends the process without running anything of the program.
    unsafe { libc::_exit(code) }
}
