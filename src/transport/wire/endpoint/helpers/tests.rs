//! Who polls a wire without a descriptor.

use super::super::tests::{pair, put, until};
use super::super::*;
use crate::transport::wire::simulated::{Nature, Simulated};

/// On a wire without a descriptor a thread that waits polls, and the polling thread leaves the wire
/// to it; when the thread has stopped, the polling thread polls again. On a wire with a descriptor
/// only the polling thread polls.
#[test]
fn a_thread_that_waits_polls_where_the_wire_wakes_nobody() {
    let ([here, there], [_, came]) = pair(Nature { has_fd: false, ..Nature::of(2) });
    until("the naps are not seen", || there.wakes_nobody());
    until("the waiting thread has never taken anything in", || {
        until("no room", || put(&here, 1, Class::Replies, 7, 8));
        let limit = Instant::now() + Duration::from_millis(2);
        let mut helped = false;
        while !helped && Instant::now() < limit {
            helped = there.help(1, &mut || ()).is_any();
        }
        helped
    });
    until("the polling thread never received it", || {
        there.help(1, &mut || ());
        there.shared.helpers.last() == Helper::Program
    });
    let looked = || there.shared.helpers.last() == Helper::Nobody;
    until("the polling thread never looks again", looked);
    while came.try_recv().is_ok() {}
    until("no room", || put(&here, 1, Class::Replies, 8, 8));
    until("the polling thread does not poll", || came.try_recv().is_ok_and(|it| it.2 == 8));
    let ([_, there], _) = pair(Nature { has_fd: true, ..Nature::of(2) });
    until("the polling thread never sleeps", || there.shared.lock().asleep == Asleep::OnDescriptor);
    assert!(!there.help(1, &mut || ()).is_any() && !there.wakes_nobody());
}

/// A thread that has polled and falls asleep wakes the polling thread, which would else sleep for
/// the rest of its time beside that thread, and then polls.
#[test]
fn a_thread_that_falls_asleep_wakes_the_polling_thread() {
    const BESIDE: Duration = Duration::from_secs(60);
    let wire = Arc::new(Simulated::new(0, Nature::of(2)).unwrap());
    let end = Endpoint::without_thread((0, 1), wire, 4096, no_slot(), no_news()).unwrap();
    end.shared.helpers.note(Helper::Program);
    assert!(end.shared.helpers.step_aside());
    let (begin, shared) = (Instant::now(), end.shared.clone());
    let asleep = std::thread::spawn(move || shared.sleep_aside(&mut BESIDE.clone()));
    end.leave();
    asleep.join().unwrap();
    assert!(begin.elapsed() < BESIDE, "nobody has woken it");
    assert!(!end.shared.helpers.step_aside(), "it leaves the wire to nobody");
}

/// The progress thread polls if no application thread does. An application thread that polls keeps
/// it away, until the polling thread looks again.
#[test]
fn the_progress_thread_leaves_the_wire_to_threads_that_poll() {
    let ([_, there], _) = pair(Nature { has_fd: false, ..Nature::of(2) });
    until("the naps are not seen", || there.wakes_nobody());
    let last = || there.shared.helpers.last();
    until("the progress thread never polls", || {
        there.help_aside(1, &mut || ());
        last() == Helper::Progress
    });
    until("the progress thread polls beside the program", || {
        there.help(1, &mut || ());
        there.help_aside(1, &mut || ());
        last() == Helper::Program
    });
    until("the progress thread never polls again", || {
        there.help_aside(1, &mut || ());
        last() == Helper::Progress
    });
}

/// A poll may take longer than the polling thread sleeps, for instance while MPI copies a message.
/// During that poll, and right behind it, the polling thread leaves the wire alone.
#[test]
fn the_polling_thread_waits_for_a_long_poll() {
    let helpers = Helpers::default();
    helpers.note(Helper::Program);
    let inside = helpers.enter(Helper::Program);
    assert!((0..3).all(|_| helpers.step_aside()), "it polls beside a thread that polls");
    drop(inside);
    assert!(helpers.step_aside(), "the thread has polled since its last look");
    assert!(!helpers.step_aside(), "it leaves the wire to nobody");
}
