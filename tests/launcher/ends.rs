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

/// Waits until the process is in this state, by its letter in `/proc`.
fn until_state(pid: &str, state: char) {
    let start = Instant::now();
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    while !stat().rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(state)) {
        assert!(start.elapsed() < Duration::from_secs(20), "the state of {pid} is not {state}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stopped_rank_is_asked_to_end_when_another_one_fails() {
    // Rank 0 fails when it has a line.
    let script = "test $LLCL_RANK = 0 && { read line; exit 3; }; \
                  trap 'echo asked; exit 0' TERM; echo $$; kill -STOP $$; sleep 60 & wait";
    let mut command = shell(&["-n", "2"], script);
    let (mut child, mut out, pids) = started(command.stdin(Stdio::piped()), 1);
    until_state(&pids[0], 'T');
    child.stdin.take().unwrap().write_all(b"now\n").unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.as_str(), child.wait().unwrap().code()), ("asked\n", Some(3)));
}

/// Somebody may kill the guard along with the launcher, as `pkill -f` does.
#[test]
fn the_ranks_do_not_survive_the_launcher_and_its_guard() {
    let (mut child, _out, pids) = started(&mut shell(&["-n", "2"], "echo $$; exec sleep 60"), 2);
    let name = |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
    let start = Instant::now();
    let guard: u32 = loop {
        // It takes its name when it first runs.
        let guard = children(child.id()).into_iter().find(|pid| name(pid) == "llcl-guard\n");
        if let Some(pid) = guard {
            break pid.parse().unwrap();
        }
        assert!(start.elapsed() < Duration::from_secs(20), "no guard");
        std::thread::sleep(Duration::from_millis(5));
    };
    kill(guard, libc::SIGKILL);
    // The launcher does not miss it, and so it stays a zombie.
    until_state(&guard.to_string(), 'Z');
    kill(child.id(), libc::SIGKILL);
    child.wait().unwrap();
    pids.iter().for_each(|pid| assert_dies(pid));
}

#[test]
fn ranks_that_have_begun_are_killed_at_once_if_another_one_cannot_start() {
    let mut command = shell(&["-n", "8", "--tag-output"], "trap '' TERM; sleep 60");
    // Room for the sockets of all ranks, but not for all their pipes. What this test has inherited
    // takes no room.
    // SAFETY: the limit is valid for the read of this call; both calls are async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32);
            let limit = libc::rlimit { rlim_cur: 32, rlim_max: 32 };
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            Ok(())
        });
    }
    let start = Instant::now();
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("cannot start rank ") && !said.contains("rank 0:"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(start.elapsed() < Duration::from_secs(20));
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

fn until_reaped(pid: &str) {
    let start = Instant::now();
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        assert!(start.elapsed() < Duration::from_secs(20), "the rank is not reaped");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_guard_ends_before_the_numbers_of_the_ranks_are_free() {
    // The pipe of the rank has room for its output, but with its tags the output is larger than the
    // pipe to this test.
    let script = "echo $$; yes | head -c 60000";
    let (mut child, mut out, first) = started(&mut shell(&["-n", "1", "--tag-output"], script), 1);
    until_reaped(first[0].split_once(' ').unwrap().1);
    assert_eq!(children(child.id()), [""; 0], "the guard lives");
    assert!(child.try_wait().unwrap().is_none(), "the output is passed on already");
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Some programs make the pipes larger to which they write.
#[test]
fn tagged_output_is_whole_though_much_of_it_waits_when_the_ranks_end() {
    const SIZE: i32 = 1 << 20;
    let script = "echo $$; read go; yes | head -c 600000";
    let mut command = shell(&["-n", "1", "--tag-output"], script);
    let (mut child, mut out, first) = started(command.stdin(Stdio::piped()), 1);
    let rank = first[0].split_once(' ').unwrap().1;
    let pipe = File::options().write(true).open(format!("/proc/{rank}/fd/1")).unwrap();
    // SAFETY: the call takes integers only.
    let size = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, SIZE) };
    assert_eq!(size, SIZE);
    drop(pipe);
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    until_reaped(rank);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((rest.lines().count(), child.wait().unwrap().code()), (300_000, Some(0)));
}

#[test]
fn a_reader_who_does_not_read_holds_no_job_that_is_to_end() {
    // With its tags the output is larger than the pipe to this test.
    let script = "echo $$; yes | head -c 60000";
    for (limit, signal, code) in [("60", Some(libc::SIGINT), 130), ("5", None, 124)] {
        let mut command = shell(&["-n", "1", "--tag-output", "--timeout", limit], script);
        let (mut child, _out, first) = started(&mut command, 1);
        until_reaped(first[0].split_once(' ').unwrap().1);
        if let Some(signal) = signal {
            kill(child.id(), signal);
        }
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(20), "it waits for the reader");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}
