//! Layer 1 with processes as ranks, started by `llcl-run`. Each test starts this program again as
//! its ranks; the first half of its body runs in a rank.

mod common;

use common::lookup;
use llcl::bootstrap::Bootstrap;
use llcl::util::status::Status;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, exit};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SIZES: [&str; 5] = ["1", "2", "3", "5", "8"];

/// Whether this process is a rank of the test's job.
fn is_rank() -> bool {
    std::env::var_os("LLCL_TEST_RANK").is_some()
}

/// The command that runs the test `name` as a rank.
fn again(name: &str) -> Vec<String> {
    let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    [&program, "--exact", name, "--nocapture", "--test-threads=1"].map(str::to_owned).into()
}

fn launch(options: &[&str], program: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_llcl-run"))
        .args(options)
        .arg("--")
        .args(program)
        .env("LLCL_TEST_RANK", "yes")
        .output()
        .unwrap()
}

/// Runs the test `name` as the ranks of a job, which must end with `code`.
fn ranks(name: &str, options: &[&str], code: i32) -> String {
    let output = launch(&[&["--timeout", "60"], options].concat(), &again(name));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

fn kill_myself() -> ! {
    // SAFETY: ends this process; nothing follows.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    unreachable!("killed");
}

#[test]
fn processes_exchange_bytes_and_descriptors() {
    if is_rank() {
        let me = Bootstrap::from_environment().unwrap();
        let (rank, size) = (me.rank(), me.size());
        let (reader, mut writer) = UnixStream::pair().unwrap();
        writer.write_all(&vec![rank as u8; size as usize]).unwrap();
        me.publish(&[rank as u8], reader.as_fd()).unwrap();
        for peer in 0..size {
            let card = lookup(&me, peer).unwrap();
            let mut byte = [0xff];
            File::from(card.fd.unwrap()).read_exact(&mut byte).unwrap();
            assert_eq!((card.blob[0], byte[0]), (peer as u8, peer as u8));
        }
        let mine = vec![rank as u8; 100_000];
        let mut all = vec![0; mine.len() * size as usize];
        me.exchange(&mine, &mut all).unwrap();
        for (peer, part) in all.chunks(mine.len()).enumerate() {
            assert!(part.iter().all(|b| usize::from(*b) == peer));
        }
        me.fence_survivors().unwrap();
        me.leave();
        return;
    }
    for size in SIZES {
        ranks("processes_exchange_bytes_and_descriptors", &["-n", size], 0);
    }
}

#[test]
fn a_process_takes_its_place_once() {
    if is_rank() {
        let fd: i32 = std::env::var("LLCL_HUB_FD").unwrap().parse().unwrap();
        // SAFETY: F_GETFD touches no memory.
        let close_on_exec = || unsafe { libc::fcntl(fd, libc::F_GETFD) } & libc::FD_CLOEXEC;
        assert_eq!(close_on_exec(), 0);
        let me = Bootstrap::from_environment().unwrap();
        assert_eq!(close_on_exec(), libc::FD_CLOEXEC);
        let refused = || Bootstrap::from_environment().err().unwrap().status;
        assert_eq!(refused(), Status::ERR_STATE);
        me.fence_survivors().unwrap();
        me.leave();
        assert_eq!(refused(), Status::ERR_STATE);
        return;
    }
    ranks("a_process_takes_its_place_once", &["-n", "2"], 0);
}

#[test]
fn survivors_hear_of_a_killed_rank() {
    if is_rank() {
        let me = Bootstrap::from_environment().unwrap();
        let (sender, receiver) = mpsc::channel();
        me.on_death(Box::new(move |rank| sender.send(rank).unwrap()));
        me.exchange(&[], &mut []).unwrap();
        if me.rank() == 1 {
            kill_myself();
        }
        let error = me.exchange(&[], &mut []).unwrap_err();
        assert_eq!((error.status, error.message()), (Status::ERR_PEER_DEAD, "rank 1 has died"));
        assert_eq!(receiver.recv_timeout(Duration::from_secs(1)), Ok(1));
        assert!(me.is_dead(1));
        me.fence_survivors().unwrap();
        me.leave();
        return;
    }
    for size in ["2", "5"] {
        let said = ranks("survivors_hear_of_a_killed_rank", &["-n", size, "--keep-going"], 137);
        assert_eq!(said.matches("llcl-run: ").count(), 1, "{said}");
        assert!(said.contains("rank 1 (pid ") && said.contains("signal 9 (SIGKILL)"), "{said}");
    }
}

#[test]
fn an_exit_without_leave_is_a_death() {
    if is_rank() {
        let me = Bootstrap::from_environment().unwrap();
        me.exchange(&[], &mut []).unwrap();
        if me.rank() == 0 {
            exit(0);
        }
        let error = lookup(&me, 0).unwrap_err();
        assert_eq!((error.status, error.message()), (Status::ERR_PEER_DEAD, "rank 0 has died"));
        me.fence_survivors().unwrap();
        me.leave();
        return;
    }
    let said = ranks("an_exit_without_leave_is_a_death", &["-n", "3", "--keep-going"], 1);
    assert!(said.contains(") ended with exit code 0, without llcl_finalize\n"), "{said}");
}

#[test]
fn an_exit_without_leave_ends_the_job() {
    if is_rank() {
        let me = Bootstrap::from_environment().unwrap();
        me.exchange(&[], &mut []).unwrap();
        if me.rank() == 0 {
            exit(0);
        }
        std::thread::sleep(Duration::from_secs(60));
        exit(0);
    }
    let said = ranks("an_exit_without_leave_ends_the_job", &["-n", "2"], 1);
    let end = "without llcl_finalize; ending the 1 rank that is left\n";
    assert!(said.ends_with(end), "{said}");
}

#[test]
fn a_rank_that_closes_its_connection_may_say_why() {
    if is_rank() {
        let me = Bootstrap::from_environment().unwrap();
        me.exchange(&[], &mut []).unwrap();
        if me.rank() == 1 {
            drop(me);
            std::thread::sleep(Duration::from_millis(200));
            eprintln!("this is why");
            if std::env::var_os("RUNS_ON").is_some() {
                std::thread::sleep(Duration::from_secs(60));
            }
            exit(3);
        }
        let error = me.exchange(&[], &mut []).unwrap_err();
        assert_eq!(error.status, Status::ERR_PEER_DEAD);
        me.leave();
        return;
    }
    let run = |variable: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_llcl-run"))
            .args(["-n", "2", "--timeout", "20", "--keep-going", "--"])
            .args(again("a_rank_that_closes_its_connection_may_say_why"))
            .env("LLCL_TEST_RANK", "yes")
            .env(variable, "yes")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run("ENDS_ITSELF");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("this is why\n") && !said.contains("is killed"), "{said}");
    let (code, said) = run("RUNS_ON");
    assert_eq!(code, Some(137), "{said}");
    let why = "llcl-run: rank 1 is killed: it has closed its connection (by exec, ";
    assert!(said.contains("this is why\n") && said.contains(why), "{said}");
}

#[test]
fn two_processes_in_one_place_fail_the_job() {
    if is_rank() {
        let (mut joined, mut seen) = UnixStream::pair().unwrap();
        // SAFETY: the child joins and ends; it needs no lock that another thread may have held.
        let second = unsafe { libc::fork() };
        if second == 0 {
            // The first process has joined.
            seen.read_exact(&mut [0]).unwrap();
            if let Err(e) = Bootstrap::from_environment() {
                println!("{e}");
            }
            exit(0);
        }
        let me = Bootstrap::from_environment().unwrap();
        joined.write_all(&[1]).unwrap();
        // The first process stays until the second has tried. SAFETY: a child of this process.
        unsafe { libc::waitpid(second, std::ptr::null_mut(), 0) };
        me.fence_survivors().unwrap();
        exit(0);
    }
    for options in [&["-n", "2"][..], &["-n", "2", "--keep-going"]] {
        let said = ranks("two_processes_in_one_place_fail_the_job", options, 1);
        assert!(said.contains("from its connection came a second process that joins"), "{said}");
    }
}

#[test]
fn a_death_is_noticed_though_a_child_holds_the_socket() {
    if is_rank() {
        let me = Bootstrap::from_environment().unwrap();
        me.exchange(&[], &mut []).unwrap();
        if me.rank() == 0 {
            // SAFETY: the child only sleeps; it is in the rank's group and ends with the job.
            unsafe {
                if libc::fork() == 0 {
                    libc::sleep(60);
                    libc::_exit(0);
                }
            }
            // Runs under a shell, so that the launcher's own child lives on.
            kill_myself();
        }
        let error = me.exchange(&[], &mut []).unwrap_err();
        assert_eq!(error.status, Status::ERR_PEER_DEAD);
        me.leave();
        return;
    }
    let name = "a_death_is_noticed_though_a_child_holds_the_socket";
    let script = format!("'{}' || sleep 60", again(name).join("' '"));
    let program = ["/bin/sh", "-c", &script].map(str::to_owned);
    let output = launch(&["-n", "2", "--tag-output", "--timeout", "3"], &program);
    // Rank 0's shell goes on sleeping, so the time-out ends the job, after rank 1 has passed.
    assert_eq!(output.status.code(), Some(124));
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(out.contains("[1] test result: ok. 1 passed"), "{out}");
}

#[test]
fn an_abort_ends_the_job_with_its_code() {
    if is_rank() {
        let me = Bootstrap::from_environment().unwrap();
        me.exchange(&[], &mut []).unwrap();
        if me.rank() == 1 {
            let code = std::env::var("ABORT_CODE").unwrap().parse().unwrap();
            if std::env::var_os("FAILS_BEFORE").is_some() {
                me.exchange(&[], &mut []).unwrap_err();
                std::thread::sleep(Duration::from_secs(1)); // until the launcher knows it, too
            }
            me.abort(code, 2000);
            // It ends by itself: no signal reaches it.
            std::thread::sleep(Duration::from_millis(200));
            println!("as it likes");
            exit(code);
        } else if me.rank() == 0 && std::env::var_os("FAILS_BEFORE").is_some() {
            exit(5);
        }
        std::thread::sleep(Duration::from_secs(60));
        exit(0);
    }
    let run = |code: &str, before: Option<&str>| {
        let output = Command::new(env!("CARGO_BIN_EXE_llcl-run"))
            .args(["-n", "3", "--keep-going", "--"])
            .args(again("an_abort_ends_the_job_with_its_code"))
            .env("LLCL_TEST_RANK", "yes")
            .env("ABORT_CODE", code)
            .envs(before.map(|before| (before, "yes")))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("as it likes\n"), "{said}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let sentence = format!("rank 1 ends the job with code {code}");
        assert_eq!(said.contains(&sentence), code != "0", "{said}");
        output.status.code().unwrap()
    };
    assert_eq!(run("42", None), 42);
    assert_eq!(run("0", None), 0);
    assert_eq!(run("256", None), 1);
    assert_eq!(run("-1", None), 255);
    // A failure that did not end the job decides the code.
    assert_eq!(run("42", Some("FAILS_BEFORE")), 5);
}

#[test]
fn a_long_grace_is_shortened_by_an_abort_and_by_the_time_limit() {
    if is_rank() {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        let me = Bootstrap::from_environment().unwrap();
        me.exchange(&[], &mut []).unwrap();
        if me.rank() == 0 {
            me.abort(0, 60_000);
        } else if std::env::var_os("ABORT").is_some() {
            std::thread::sleep(Duration::from_secs(1));
            me.abort(3, 100);
            exit(3);
        }
        std::thread::sleep(Duration::from_secs(60));
        exit(0);
    }
    let run = |abort: Option<&str>, limit: &str| {
        let start = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_llcl-run"))
            .args(["-n", "2", "--timeout", limit, "--"])
            .args(again("a_long_grace_is_shortened_by_an_abort_and_by_the_time_limit"))
            .env("LLCL_TEST_RANK", "yes")
            .envs(abort.map(|abort| ("ABORT", abort)))
            .output()
            .unwrap();
        assert!(start.elapsed() < Duration::from_secs(30), "the ranks had {:?}", start.elapsed());
        output.status.code().unwrap()
    };
    // The first call decides the code.
    assert_eq!(run(Some("yes"), "40"), 0);
    assert_eq!(run(None, "1"), 124);
}

#[test]
fn a_second_program_in_a_rank_that_has_left_is_refused() {
    if is_rank() {
        match Bootstrap::from_environment() {
            Ok(me) => {
                me.fence_survivors().unwrap();
                me.leave();
                exit(0);
            }
            Err(e) => {
                assert_eq!(e.status, Status::ERR_STATE);
                assert!(e.message().contains("has left this world"), "{e}");
                exit(9);
            }
        }
    }
    let program = again("a_second_program_in_a_rank_that_has_left_is_refused").join("' '");
    let script = format!("'{program}' && '{program}'");
    let output = launch(&["-n", "1"], &["/bin/sh", "-c", &script].map(str::to_owned));
    assert_eq!(output.status.code(), Some(9));
}

#[test]
fn a_wrong_environment_is_refused_with_its_reason() {
    if is_rank() {
        match Bootstrap::from_environment() {
            Ok(me) => println!("rank {} of {}", me.rank(), me.size()),
            Err(e) => println!("{:?}: {e}", e.status),
        }
        return;
    }
    let program = again("a_wrong_environment_is_refused_with_its_reason").join("' '");
    let run = |setting: &str, streams: &str| {
        let script = format!("{setting} '{program}' {streams}");
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script]).env("LLCL_TEST_RANK", "yes");
        for name in ["LLCL_RANK", "LLCL_SIZE", "LLCL_HUB_FD"] {
            command.env_remove(name);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let cases = [
        ("", "", "rank 0 of 1"),
        ("LLCL_RANK=0", "", "LLCL_SIZE is not set while LLCL_RANK is \"0\""),
        ("LLCL_SIZE=2", "", "LLCL_RANK is not set while LLCL_SIZE is \"2\""),
        ("LLCL_HUB_FD=9", "", "LLCL_RANK is not set while LLCL_HUB_FD is \"9\""),
        ("LLCL_RANK=2 LLCL_SIZE=2 LLCL_HUB_FD=9", "", "LLCL_RANK is \"2\", expected a number"),
        ("LLCL_RANK=0 LLCL_SIZE=2 LLCL_HUB_FD=9", "9<&-", "LLCL_HUB_FD is 9, which is closed"),
        ("LLCL_RANK=0 LLCL_SIZE=2 LLCL_HUB_FD=9", "9</dev/null", "9, which is something else"),
    ];
    for (setting, streams, expected) in cases {
        let said = run(setting, streams);
        assert!(said.contains(expected), "{setting} {streams}: {said}");
        assert_eq!(said.contains("ERR_INVALID(-1): "), !setting.is_empty(), "{said}");
    }
    // Another rank's place than that of this descriptor.
    let script = format!("LLCL_RANK=$((1 - LLCL_RANK)) '{program}'");
    let output = launch(&["-n", "2"], &["/bin/sh", "-c", &script].map(str::to_owned));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("LLCL_RANK is 1 and LLCL_SIZE is 2, expected 0 and 2"), "{said}");
    assert!(said.contains("LLCL_RANK is 0 and LLCL_SIZE is 2, expected 1 and 2"), "{said}");
}
