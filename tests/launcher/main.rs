//! `llcl-run` as a user sees it: ranks, streams, exit codes, signals, and processes left behind.

mod ends;
mod info;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn launcher(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_llcl-run"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// The command `llcl-run` with these options; each rank is a shell that runs the script.
fn shell(options: &[&str], script: &str) -> Command {
    let mut command = launcher(options);
    command.args(["--", "/bin/sh", "-c", script]);
    // Tests in the background or under nohup inherit ignored signals, and a shell cannot trap a
    // signal that it finds ignored. SAFETY: signal() may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            libc::signal(libc::SIGQUIT, libc::SIG_DFL);
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            Ok(())
        });
    }
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn lines(output: &Output) -> BTreeSet<String> {
    text(&output.stdout).lines().map(str::to_owned).collect()
}

fn set(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().map(|l| (*l).to_owned()).collect()
}

/// Whether the process runs; a zombie does not count.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn assert_dies(pid: &str) {
    let start = Instant::now();
    while is_alive(pid) {
        assert!(start.elapsed() < Duration::from_secs(20), "process {pid} still lives");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts the command and reads its first `count` lines.
fn started(command: &mut Command, count: usize) -> (Child, BufReader<ChildStdout>, Vec<String>) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = Vec::new();
    for _ in 0..count {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        first.push(line.trim().to_owned());
    }
    (child, out, first)
}

fn kill(pid: u32, signal: i32) {
    // SAFETY: kill takes integers only; the process is a child of this test that it has not reaped.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

#[test]
fn every_rank_gets_its_place_and_rank_0_the_input() {
    let script = "echo \"$LLCL_RANK of $LLCL_SIZE read '$(cat)'\"";
    let mut command = shell(&["-n", "3"], script);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"some input\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let expected = set(&["0 of 3 read 'some input'", "1 of 3 read ''", "2 of 3 read ''"]);
    assert_eq!(lines(&output), expected);
}

#[test]
fn a_rank_inherits_its_own_socket_and_nothing_else_of_the_launcher() {
    let script = "readlink /proc/$$/fd/*; echo /proc/$$/fd/$LLCL_HUB_FD";
    // Sockets, and the names of epoll, pidfd, signalfd and eventfd descriptors.
    let of_interest = |lines: &[&str]| {
        lines.iter().filter(|l| l.starts_with("socket:") || l.starts_with("anon_inode:")).count()
    };
    let output = Command::new("/bin/sh").args(["-c", script]).stdin(Stdio::null()).output();
    let base = of_interest(&text(&output.unwrap().stdout).lines().collect::<Vec<_>>());
    let output = shell(&["-n", "4", "--tag-output"], script).output().unwrap();
    let out = text(&output.stdout);
    for rank in 0..4 {
        let tag = format!("[{rank}] ");
        let mine: Vec<_> = out.lines().filter_map(|l| l.strip_prefix(&tag)).collect();
        assert_eq!(of_interest(&mine), base + 1, "{mine:?}");
    }
}

#[test]
fn a_rank_has_the_limit_of_open_files_of_the_launcher() {
    let limits = "ulimit -Sn; ulimit -Hn";
    let mut command = shell(&["-n", "1"], limits);
    // SAFETY: the limit is valid for the read of this call, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: 100, rlim_max: 200 };
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            Ok(())
        });
    }
    assert_eq!(text(&command.output().unwrap().stdout), "100\n200\n");
}

#[test]
fn the_exit_code_is_that_of_the_first_failure() {
    let code = |options: &[&str], script: &str| {
        let output = shell(options, script).output().unwrap();
        (output.status.code().unwrap(), text(&output.stderr))
    };
    assert_eq!(code(&["-n", "5"], "exit 0"), (0, String::new()));
    let (number, said) = code(&["-n", "3"], "test $LLCL_RANK = 1 && exit 7; sleep 60");
    assert_eq!(number, 7);
    assert!(said.starts_with("llcl-run: rank 1 (pid "), "{said}");
    let end = ") ended with exit code 7; ending the 2 ranks that are left\n";
    assert!(said.ends_with(end), "{said}");
    let (number, said) = code(&["-n", "3"], "test $LLCL_RANK = 2 && kill -9 $$; sleep 60");
    assert_eq!(number, 137);
    assert!(said.contains("rank 2 (pid ") && said.contains("was killed by signal 9 (SIGKILL)"));
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_launcher_whose_caller_ignores_the_ends_of_children_sees_them() {
    let mut command = shell(&["-n", "2", "--timeout", "20"], "exit 3");
    // SAFETY: signal() is async-signal-safe and installs no handler.
    let ignore = || unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        Ok(())
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(ignore) };
    assert_eq!(command.output().unwrap().status.code(), Some(3));
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let output = launcher(&["-n", "2", "/nonexistent/program"]).output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stderr).contains("/nonexistent/program: No such file"));
    let output = launcher(&["-n", "2", "/etc/passwd"]).output().unwrap();
    assert_eq!(output.status.code(), Some(126));
    assert!(text(&output.stderr).contains("/etc/passwd: Permission denied"));
}

#[test]
fn a_kernel_without_pidfd_open_is_named() {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    let mut steps = [
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
        step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, libc::SYS_pidfd_open as u32),
        step(BPF_RET | BPF_K, 0, 0, refused),
        step(BPF_RET | BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let mut command = launcher(&["-n", "2", "true"]);
    let refuse = move || {
        let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
        // SAFETY: the program and its steps live through the call, which only reads them.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(refuse) };
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("pidfd_open: ") && !said.contains("cannot start"), "{said}");
}

#[test]
fn wrong_options_are_refused() {
    let wrong: [&[&str]; 9] = [
        &["-n", "0", "true"],
        &["-n", "4097", "true"],
        &["-n", "two", "true"],
        &["true"],
        &["-n", "2"],
        &["-n", "2", "--timeout", "0", "true"],
        &["-n", "2", "--timeout", "soon", "true"],
        &["-n", "2", "--bind", "socket", "true"],
        &["-n", "2", "--unheard-of", "true"],
    ];
    for arguments in wrong {
        let output = launcher(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).starts_with("error: "), "{arguments:?}");
    }
    // Options after the program are the program's.
    let output = launcher(&["-n", "1", "echo", "-n", "--timeout", "x"]).output().unwrap();
    assert_eq!(text(&output.stdout), "--timeout x");
}

#[test]
fn a_failure_ends_the_others_first_politely() {
    // Rank 0 ends when the others have set their traps.
    let scratch = concat!(env!("CARGO_TARGET_TMPDIR"), "/politely");
    let _ = std::fs::remove_dir_all(scratch);
    std::fs::create_dir(scratch).unwrap();
    let polite = format!(
        "cd {scratch}; \
         test $LLCL_RANK = 0 && {{ until test -e 1 -a -e 2; do sleep 0.01; done; exit 3; }}; \
         trap 'echo asked; exit 0' TERM; touch $LLCL_RANK; sleep 60 & wait"
    );
    let start = Instant::now();
    let output = shell(&["-n", "3"], &polite).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stdout), "asked\nasked\n");
    assert!(start.elapsed() < Duration::from_secs(40));

    let deaf = format!(
        "cd {scratch}; \
         test $LLCL_RANK = 0 && {{ until test -e deaf; do sleep 0.01; done; exit 4; }}; \
         trap '' TERM; touch deaf; sleep 60"
    );
    let start = Instant::now();
    let output = shell(&["-n", "2"], &deaf).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(text(&output.stderr).lines().count(), 1, "also the kill is reported");
    assert!(start.elapsed() > Duration::from_millis(2000));
    assert!(start.elapsed() < Duration::from_secs(40));
}

#[test]
fn the_others_go_on_if_they_are_to() {
    let script = "test $LLCL_RANK = 0 && exit 5; sleep 0.3; echo done; exit $((LLCL_RANK * 2))";
    let output = shell(&["-n", "3", "--keep-going"], script).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert_eq!(text(&output.stdout), "done\ndone\n");
    assert_eq!(text(&output.stderr).lines().count(), 3);
}

#[test]
fn the_time_is_limited() {
    let start = Instant::now();
    let output = shell(&["-n", "2", "--timeout", "0.3"], "exec sleep 60").output().unwrap();
    assert_eq!(output.status.code(), Some(124));
    assert!(text(&output.stderr).contains("the time of 0.3 s is over"));
    assert!(start.elapsed() < Duration::from_secs(40));
    // The time-out does not affect a job that ends in time.
    assert!(shell(&["-n", "2", "--timeout", "30"], "true").status().unwrap().success());
}

#[test]
fn tagged_lines_are_whole_and_all_there() {
    let script = "i=0; while test $i -lt 300; do printf 'a%s' $LLCL_RANK; \
                  printf 'b%s line %s\\n' $LLCL_RANK $i; i=$((i+1)); done; \
                  printf 'error %s\\n' $LLCL_RANK >&2; printf 'no newline'";
    let output = shell(&["-n", "3", "--tag-output"], script).output().unwrap();
    assert!(output.status.success());
    let out = text(&output.stdout);
    for rank in 0..3 {
        let tag = format!("[{rank}] ");
        let mine: Vec<_> = out.lines().filter_map(|l| l.strip_prefix(&tag)).collect();
        let mut expected: Vec<_> = (0..300).map(|i| format!("a{rank}b{rank} line {i}")).collect();
        expected.push("no newline".to_owned());
        assert_eq!(mine, expected);
    }
    assert_eq!(out.lines().count(), 3 * 301);
    assert!(out.ends_with('\n'));
    let errors: BTreeSet<_> = text(&output.stderr).lines().map(str::to_owned).collect();
    assert_eq!(errors, set(&["[0] error 0", "[1] error 1", "[2] error 2"]));
}

/// A program that starts the launcher may have made its pipes non-blocking. A full pipe is then no
/// reader that has gone: the ranks live, and all lines come.
#[test]
fn tagged_lines_wait_for_room_in_pipes_that_do_not_block() {
    let script = "i=0; while test $i -lt 8000; do echo a line that is not short $i; \
                  echo an error that is not short $i >&2; i=$((i+1)); done";
    let (mut out, out_end) = std::io::pipe().unwrap();
    let (mut err, err_end) = std::io::pipe().unwrap();
    for end in [&out_end, &err_end] {
        llcl::util::socket::set_nonblocking(end.as_fd()).unwrap();
    }
    let mut child = shell(&["-n", "1", "--tag-output"], script)
        .stdout(Stdio::from(OwnedFd::from(out_end)))
        .stderr(Stdio::from(OwnedFd::from(err_end)))
        .spawn()
        .unwrap();
    // Long enough that the pipes, of 64 KiB, are full.
    std::thread::sleep(Duration::from_millis(300));
    let errors = std::thread::spawn(move || {
        let mut bytes = String::new();
        err.read_to_string(&mut bytes).map(|_| bytes)
    });
    let mut lines = String::new();
    out.read_to_string(&mut lines).unwrap();
    assert!(child.wait().unwrap().success());
    for (text, kind) in [(lines, "a line"), (errors.join().unwrap().unwrap(), "an error")] {
        let expected = (0..8000).map(|i| format!("[0] {kind} that is not short {i}\n"));
        assert!(text == expected.collect::<String>(), "{} lines", text.lines().count());
    }
}

/// The ranks have ended well when their output turns out to fit nowhere.
#[test]
fn lost_output_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = shell(&["-n", "2", "--tag-output"], "echo hi").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("--tag-output cannot pass on all output: No space left"), "{said}");
}

#[test]
fn a_reader_who_goes_does_not_keep_the_job() {
    let mut child = shell(&["-n", "2", "--tag-output"], "while echo y; do :; done")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert!(child.wait().unwrap().code().is_some_and(|c| c != 0));
}

#[test]
fn signals_reach_every_rank() {
    for (name, signal) in [
        ("INT", libc::SIGINT),
        ("TERM", libc::SIGTERM),
        ("HUP", libc::SIGHUP),
        ("QUIT", libc::SIGQUIT),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
    ] {
        let script =
            format!("trap 'echo got {name}; exit 0' {name}; echo ready; sleep 60 & wait; wait");
        let (mut child, mut out, ready) = started(&mut shell(&["-n", "2"], &script), 2);
        assert_eq!(ready, ["ready", "ready"]);
        kill(child.id(), signal);
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, format!("got {name}\ngot {name}\n"));
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let (mut child, _out, _) = started(&mut shell(&["-n", "2"], "echo; exec sleep 60"), 2);
    kill(child.id(), libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn nothing_survives_a_kill_of_the_launcher() {
    // Each rank has a child of its own, which no parent-death signal reaches.
    let script = "sleep 60 & echo $! $$; wait";
    let (mut child, _out, pids) = started(&mut shell(&["-n", "3"], script), 3);
    let pids: Vec<_> = pids.iter().flat_map(|line| line.split(' ')).collect();
    assert_eq!(pids.len(), 6);
    assert!(pids.iter().all(|pid| is_alive(pid)));
    kill(child.id(), libc::SIGKILL);
    child.wait().unwrap();
    pids.iter().for_each(|pid| assert_dies(pid));
}

#[test]
fn what_the_ranks_leave_running_is_killed_at_the_end() {
    let output = shell(&["-n", "2"], "sleep 60 >/dev/null & echo $!").output().unwrap();
    assert!(output.status.success());
    assert_eq!(lines(&output).len(), 2);
    lines(&output).iter().for_each(|pid| assert_dies(pid));
    // Also if the process holds the output that llcl-run relays.
    let start = Instant::now();
    let output = shell(&["-n", "2", "--tag-output"], "sleep 60 & echo $!").output().unwrap();
    assert!(output.status.success() && start.elapsed() < Duration::from_secs(40));
    let tagged = lines(&output);
    assert_eq!(tagged.len(), 2);
    tagged.iter().for_each(|line| assert_dies(line.split_once(' ').unwrap().1));
}

#[test]
fn ranks_are_bound_in_turn() {
    let script = "grep Cpus_allowed_list /proc/self/status";
    let allowed = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success());
        let out = text(&output.stdout);
        let values = out.lines().map(|l| l.rsplit('\t').next().unwrap().to_owned());
        values.collect::<Vec<_>>()
    };
    let base = allowed(Command::new("/bin/sh").args(["-c", script]));
    assert_eq!(allowed(&mut shell(&["-n", "2"], script)), [base[0].clone(), base[0].clone()]);
    let count = std::thread::available_parallelism().unwrap().get();
    let ranks = (2 * count).to_string();
    let mut bound = allowed(&mut shell(&["-n", &ranks, "--bind", "core"], script));
    assert_eq!(bound.len(), 2 * count);
    assert!(bound.iter().all(|cpu| cpu.parse::<u32>().is_ok()), "{bound:?}");
    bound.sort();
    bound.dedup();
    assert_eq!(bound.len(), count, "each processor has its two ranks");
}
