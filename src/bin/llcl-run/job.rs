//! The job: start the ranks, serve them, notice their ends, clean up.

use crate::child::{self, Rank, Setup};
use crate::guard::Guard;
use crate::relay::{Relay, Running};
use crate::signals::{self, Signals};
use crate::{Options, report};
use llcl::bootstrap::hub::{Event, Hub};
use llcl::util::epoll::{Epoll, Ready};
use llcl::util::socket::{self, interest};
use llcl::util::status::Result;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// How long a rank may go on after it has closed its connection: enough to print its reason and to
/// end by itself.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// The epoll key of the signals. Processes of ranks have the numbers of their ranks as keys.
const SIGNALS: u64 = 1 << 32;
const HUB: u64 = SIGNALS + 1;
const CHILDREN: u64 = SIGNALS + 2;

struct Job<'a> {
    options: &'a Options,
    hub: Hub,
    signals: Signals,
    ranks: Vec<Rank>,
    /// The exit code that the first failure has decided.
    verdict: Option<u8>,
    /// Set when the job is being ended: when the ranks that are still there are killed.
    kill_at: Option<Instant>,
    timeout_at: Option<Instant>,
    timed_out: bool,
    /// Ranks that have closed their connections, and how long they may go on.
    closed: VecDeque<(Instant, u32)>,
}

/// Runs the job from start to end; answers the exit code.
pub fn run(options: &Options) -> Result<u8> {
    let signals = Signals::take()?;
    // The guard first, so that it inherits no descriptor that is opened below.
    let guard = Guard::start()?;
    let setup = Setup::new(options, signals.original, guard.descriptor())?;
    let (hub, ends) = Hub::new(options.ranks)?;
    let timeout_at = options.timeout.map(|t| Instant::now() + t);
    let ranks = Vec::with_capacity(ends.len());
    let mut job = Job {
        options,
        hub,
        signals,
        ranks,
        verdict: None,
        kill_at: None,
        timeout_at,
        timed_out: false,
        closed: VecDeque::new(),
    };
    let mut relay = Relay::default();
    job.start(ends, &setup, &mut relay);
    let relay = relay.start();
    let served = job.serve();
    job.clean_up(guard);
    if let Ok(Some(running)) = &relay {
        job.drain(running)?;
    }
    served?;
    relay?;
    Ok(job.verdict.unwrap_or(0))
}

impl Job<'_> {
    fn start(&mut self, ends: Vec<OwnedFd>, setup: &Setup, relay: &mut Relay) {
        for (rank, end) in (0..).zip(ends) {
            match setup.start(self.options, rank, &end, relay) {
                Ok(started) => self.ranks.push(started),
                Err(e) => {
                    let program = self.options.program[0].to_string_lossy();
                    report(&format!("cannot start rank {rank}: {program}: {e}"));
                    self.verdict = Some(start_failure(&e));
                    // These ranks have only begun, so they are killed without delay.
                    self.kill_at = Some(Instant::now());
                    return;
                }
            }
        }
    }

    /// Serves the ranks until all have ended.
    fn serve(&mut self) -> Result<()> {
        let epoll = Epoll::new()?;
        epoll.add(self.signals.as_fd(), libc::EPOLLIN, SIGNALS)?;
        epoll.add(self.hub.as_fd(), libc::EPOLLIN, HUB)?;
        epoll.add(self.signals.of_children(), libc::EPOLLIN, CHILDREN)?;
        for (at, rank) in (0..).zip(&self.ranks) {
            epoll.add(rank.as_fd(), libc::EPOLLIN, at)?;
        }
        let mut running = self.ranks.len();
        while running > 0 {
            let closed = self.closed.front().map(|(at, _)| *at);
            let next = [self.kill_at, self.timeout_at, closed].into_iter().flatten().min();
            for Ready { key, .. } in epoll.wait(next.map_or(-1, milliseconds_until))? {
                match key {
                    SIGNALS => self.forward_signals(),
                    CHILDREN => self.report_stops(),
                    HUB => {
                        let events = self.hub.turn()?;
                        self.note(events);
                    }
                    rank => {
                        if self.rank_ended(rank as usize) {
                            epoll.remove(self.ranks[rank as usize].as_fd());
                            running -= 1;
                        }
                    }
                }
            }
            self.look_at_the_clock();
        }
        Ok(())
    }

    fn forward_signals(&mut self) {
        while let Some(signal) = self.signals.next() {
            for rank in self.ranks.iter().filter(|rank| !rank.ended) {
                child::signal(rank, signal);
                if signals::ENDING.contains(&signal) {
                    child::resume(rank);
                }
            }
        }
    }

    /// Says which ranks wait for the terminal. Their groups are in its background, where the kernel
    /// stops them without a word.
    fn report_stops(&mut self) {
        for (pid, signal) in self.signals.stopped() {
            let why = match signal {
                libc::SIGTTIN => "reads the terminal, whose input only rank 0 gets, as its stdin",
                libc::SIGTTOU => "writes to the terminal, which `stty tostop` forbids, or sets it",
                // Somebody has stopped it on purpose.
                _ => continue,
            };
            if let Some(rank) = self.ranks.iter().position(|rank| rank.pid == pid) {
                let name = signals::describe(signal);
                report(&format!("rank {rank} (pid {pid}) is stopped by signal {name}: it {why}"));
            }
        }
    }

    fn note(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Abort { rank, code, grace_ms } => {
                    self.called_off(rank, code, Duration::from_millis(grace_ms.into()));
                }
                Event::ProtocolError { rank, what } => {
                    let text = format!("rank {rank} is killed: from its connection came {what}");
                    self.failed(text, 1);
                }
                Event::Closed { rank } => {
                    self.closed.push_back((Instant::now() + CLOSE_GRACE, rank));
                }
            }
        }
    }

    /// A rank ends the job. The first such call decides the exit code; later ones can only shorten
    /// the time that the ranks have.
    fn called_off(&mut self, rank: u32, code: i32, grace: Duration) {
        if self.kill_at.is_some() {
            return self.kill_within(grace);
        }
        // Code 0 is how a job of several threads ends without an error.
        if code != 0 {
            report(&format!("rank {rank} ends the job with code {code}"));
        }
        // An error whose low bits are 0 is no success.
        self.verdict.get_or_insert(if code == 0 { 0 } else { (code as u8).max(1) });
        self.end_all_but(Some(rank), grace);
    }

    /// Handles the end of a rank. False: it has not ended yet.
    fn rank_ended(&mut self, at: usize) -> bool {
        // Its requests, such as Leave or Abort, are handled before its end.
        let events = self.hub.process_ended(at as u32);
        self.note(events);
        let rank = &mut self.ranks[at];
        let Some((code, what)) = child::outcome(rank.pid) else { return false };
        rank.ended = true;
        let text = format!("rank {at} (pid {}) {what}", rank.pid);
        match (code, self.hub.died_in_world(at as u32)) {
            (0, false) => {}
            (0, true) => self.failed(format!("{text}, without llcl_finalize"), 1),
            (code, _) => self.failed(text, code),
        }
        true
    }

    /// A rank has failed: decides the exit code, and ends the job unless the options say that it
    /// goes on.
    fn failed(&mut self, text: String, code: u8) {
        // Ranks that end because the job is being ended are not reported.
        if self.kill_at.is_some() {
            return;
        }
        self.verdict.get_or_insert(code);
        let others = self.ranks.iter().filter(|rank| !rank.ended).count();
        if self.options.keep_going || others == 0 {
            return report(&text);
        }
        let ranks = if others == 1 { "rank that is" } else { "ranks that are" };
        report(&format!("{text}; ending the {others} {ranks} left"));
        self.end_all();
    }

    /// Kills a rank that has closed its connection: the other ranks will learn that it is dead,
    /// so it must not go on.
    fn kill_closed(&mut self, rank: u32) {
        if self.hub.kill_closed(rank) {
            report(&format!(
                "rank {rank} is killed: it has closed its connection (by exec, or by closing all \
                 descriptors?) and runs on without llcl_finalize"
            ));
        }
    }

    fn end_all(&mut self) {
        self.end_all_but(None, GRACE);
    }

    /// Sends SIGTERM to all ranks except `spared`, which ends by itself; after `grace` all are
    /// killed.
    fn end_all_but(&mut self, spared: Option<u32>, grace: Duration) {
        self.kill_within(grace);
        for (at, rank) in (0..).zip(&self.ranks) {
            if rank.ended || spared == Some(at) {
                continue;
            }
            child::signal(rank, libc::SIGTERM);
            child::resume(rank);
        }
    }

    /// Kills the ranks after this time, or earlier if that was decided before.
    fn kill_within(&mut self, grace: Duration) {
        let at = Instant::now() + grace;
        self.kill_at = Some(self.kill_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        while self.closed.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, rank)) = self.closed.pop_front() {
                self.kill_closed(rank);
            }
        }
        if self.timeout_at.is_some_and(|at| at <= now) {
            self.timeout_at = None;
            let time = self.options.timeout.unwrap_or_default().as_secs_f64();
            report(&format!("the time of {time} s is over, ending all ranks"));
            self.verdict = Some(124);
            self.timed_out = true;
            self.end_all();
        }
        if self.kill_at.is_some_and(|at| at <= now) {
            self.ranks.iter().for_each(|r| child::signal(r, libc::SIGKILL));
            // If a rank does not end at once (it may hang in the kernel), it is killed again after
            // GRACE, not in a loop.
            self.kill_at = Some(now + GRACE);
        }
    }

    /// Kills the processes that the ranks have left in their groups, then frees the ranks' numbers.
    /// The guard ends before: it must not kill other processes that get these numbers.
    fn clean_up(&mut self, guard: Guard) {
        self.ranks.iter().for_each(|r| child::signal(r, libc::SIGKILL));
        guard.dismiss();
        self.ranks.iter().for_each(child::reap);
    }

    /// Waits until all output is passed on. If the reader does not read, a signal to llcl-run or
    /// the time limit ends the wait.
    fn drain(&mut self, relay: &Running) -> Result<()> {
        relay.finish.wake();
        let limit = self.timed_out.then(|| Instant::now() + GRACE);
        loop {
            let mut waits = [
                interest(relay.done.as_fd(), libc::POLLIN),
                interest(self.signals.as_fd(), libc::POLLIN),
            ];
            let until = [limit, self.timeout_at].into_iter().flatten().min();
            socket::poll(&mut waits, until.map_or(-1, milliseconds_until))?;
            let late = until.is_some_and(|at| at <= Instant::now());
            if waits[0].revents != 0 {
                if let Some(error) = relay.lost.get() {
                    report(&format!("--tag-output cannot pass on all output: {error}"));
                    self.verdict.get_or_insert(1);
                }
                return Ok(());
            }
            if late {
                self.verdict.get_or_insert(124);
                return Ok(());
            }
            if let Some(signal) = self.signals.next() {
                self.verdict.get_or_insert(128 + signal as u8);
                return Ok(());
            }
        }
    }
}

fn milliseconds_until(at: Instant) -> i32 {
    let left = at.saturating_duration_since(Instant::now());
    // Rounded up: after an early wake-up it would only sleep again.
    i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
}

/// The exit code for a program that could not be started, as in shells: 127 not found, 126 not
/// executable; 1 for other errors.
fn start_failure(error: &io::Error) -> u8 {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => 127,
        Some(libc::EACCES | libc::ENOEXEC | libc::EISDIR) => 126,
        _ => 1,
    }
}
