//! How a job ends whose ranks, or whose reader, do not do their part.

use super::*;
use std::os::fd::{AsRawFd, FromRawFd};

/// The processes that this one has started and not yet reaped.
fn children(pid: u32) -> Vec<String> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    std::fs::read_to_string(path).unwrap().split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_stopped_rank_ends_by_a_signal_to_the_launcher() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        let script = "echo ready; kill -STOP $$; exec sleep 60";
        let (mut child, _out, _) = started(&mut shell(&["-n", "2"], script), 2);
        kill(child.id(), signal);
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(20), "signal {signal} is not handled");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal));
    }
}

/// A terminal: the end of a program that shows it, and the end of the programs that run in it.
fn terminal() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let (name, settings, size) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null());
    // SAFETY: both ends are valid for the writes of this call; the rest is not asked for.
    let done = unsafe { libc::openpty(&mut ours, &mut theirs, name, settings, size) };
    assert_eq!(done, 0);
    // SAFETY: the kernel has just made both and nothing else owns them.
    unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

#[test]
fn a_rank_that_the_terminal_stops_is_named() {
    let (_ours, theirs) = terminal();
    let mut command =
        shell(&["-n", "2", "--timeout", "60"], "test $LLCL_RANK = 0 || read x </dev/tty; sleep 90");
    let end = theirs.as_raw_fd();
    // SAFETY: both calls may be made between fork and exec, and take integers only.
    unsafe {
        command.pre_exec(move || {
            libc::setsid();
            libc::ioctl(end, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    // If nothing were said, this would end with the time limit.
    stderr.read_line(&mut said).unwrap();
    assert!(said.starts_with("llcl-run: rank 1 (pid "), "{said}");
    assert!(said.contains("is stopped by signal 21 (SIGTTIN)"), "{said}");
    kill(child.id(), libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(128 + libc::SIGTERM));
}

#[test]
fn the_guard_ends_before_the_numbers_of_the_ranks_are_free() {
    // The pipe of the rank has room for its output, but with its tags the output is larger than the
    // pipe to this test.
    let script = "echo $$; yes | head -c 60000";
    let (mut child, mut out, first) = started(&mut shell(&["-n", "1", "--tag-output"], script), 1);
    let rank = first[0].split_once(' ').unwrap().1.to_owned();
    let start = Instant::now();
    while std::path::Path::new(&format!("/proc/{rank}")).exists() {
        assert!(start.elapsed() < Duration::from_secs(20), "the rank is not reaped");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(children(child.id()), [""; 0], "the guard lives");
    assert!(child.try_wait().unwrap().is_none(), "the output is passed on already");
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
