//! How a job ends whose ranks, or whose reader, do not do their part.

use super::*;

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

#[test]
fn the_guard_ends_before_the_numbers_of_the_ranks_are_free() {
    // The pipe of the rank has room for its output, but with its tags the output is larger than the
    // pipe to this test.
    let script = "echo $$; yes | head -c 100000";
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
