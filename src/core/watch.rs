//! How a thread waits for one of several words. At first the thread stays awake and helps with
//! progress, then it sleeps. The wait fails when no rank is left that could change a word.

use crate::core::background::Background;
use crate::core::blocking::Blocking;
use crate::core::deadline::Deadline;
use crate::core::region::Regions;
use crate::engine::command::ALL_PEERS;
use crate::engine::routes::Routes;
use crate::transport::address::Key;
use crate::transport::waiters::Awaited;
use crate::util::backoff::Backoff;
use crate::util::status::{Error, Result, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a thread sleeps at most if its word has several addresses. Peers may use any of these,
/// and wake only threads that sleep on it.
const AMBIGUOUS: Duration = Duration::from_millis(1);

/// How long a thread sleeps between two looks after the ranks that could change its word have died.
/// It waits until their messages are handled and this rank's own operations have ended.
const LAST_LOOKS: Duration = Duration::from_millis(1);
/// How long a thread still waits, after these operations have ended, for operations that other
/// threads may have begun since.
const PATIENCE: Duration = Duration::from_millis(200);

/// Which ranks may change a word that a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Changer {
    /// One rank.
    Peer(u32),
    /// Any living rank.
    Anybody,
}

/// A word that a thread waits for.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// The word.
    pub word: &'a AtomicU64,
    /// The value that ends the wait.
    pub at_least: u64,
    /// The ranks that may change it.
    pub changer: Changer,
}

impl Watched<'_> {
    /// Whether the word has reached its value. If so, the caller sees the stores that the thread
    /// which changed the word made before.
    #[inline]
    pub fn is_reached(&self) -> bool {
        // Acquire: pairs with the Release of the thread that changed the word.
        self.word.load(Ordering::Acquire) >= self.at_least
    }
}

/// The parts of a context that a wait for words uses.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    pub(super) blocking: Blocking<'a>,
    pub(super) routes: &'a Routes,
    pub(super) regions: &'a Regions,
    pub(super) background: &'a Background,
}

/// The deaths that a waiting thread knows of.
#[derive(Default)]
pub(super) struct Loss {
    /// The number of deaths at the last look that found a living rank for each word.
    deaths: u32,
    /// This rank's operations that were under way when no living rank was left for a word.
    own: Option<OwnWork>,
}

/// Operations of this rank that were under way at one moment. The end of each of them may change a
/// word of this rank.
#[derive(Default)]
struct OwnWork {
    /// Becomes non-zero when the lane's operations have ended. None: the queue had no room for the
    /// flush yet.
    lane: Option<Arc<AtomicU64>>,
    /// Messages that had not ended when the lane's operations had: the lane may have sent some of
    /// them.
    messages: Option<Vec<u64>>,
    /// The time when all operations had ended.
    ended: Option<Instant>,
}

impl OwnWork {
    /// The time when all operations had ended. None: some are under way.
    fn ended(&mut self, watch: Watch<'_>) -> Option<Instant> {
        if self.ended.is_none() && self.has_ended(watch) {
            self.ended = Some(Instant::now());
        }
        self.ended
    }

    fn has_ended(&mut self, watch: Watch<'_>) -> bool {
        let dispatcher = watch.blocking.dispatcher;
        if self.lane.is_none() {
            self.lane = watch.blocking.begin_flush(ALL_PEERS);
        }
        // Acquire: pairs with the Release in flush_has_ended().
        if self.lane.as_ref().is_none_or(|word| word.load(Ordering::Acquire) == 0) {
            return false;
        }
        let messages = self.messages.get_or_insert_with(|| dispatcher.waiting(|_| true));
        !messages.iter().any(|tag| dispatcher.waits(*tag)) && watch.background.has_kept_promises()
    }
}

impl Loss {
    /// The time until the next look, if no living rank is left for a word.
    pub(super) fn next_look(&self) -> Option<Duration> {
        self.own.as_ref().map(|_| LAST_LOOKS)
    }
}

fn nobody_left(changer: Changer) -> Error {
    let who = match changer {
        Changer::Peer(peer) => format!("rank {peer} has died or has left"),
        Changer::Anybody => "every other rank that has used the word's region has died".to_owned(),
    };
    Error::new(Status::ERR_PEER_DEAD, format!("{who}: no rank is left that could change the word"))
}

pub(super) fn position(words: &[Watched<'_>]) -> Option<usize> {
    words.iter().position(Watched::is_reached)
}

impl Watch<'_> {
    /// Waits until `done`; the calling thread helps with progress meanwhile.
    pub(super) fn wait(
        self,
        words: &[Watched<'_>],
        timeout: Option<Duration>,
        done: impl Fn() -> bool + Copy,
    ) -> Result<()> {
        // The error has no message of its own, because a thread may make many short waits.
        let over = || if done() { Ok(()) } else { Err(Error::bare(Status::ERR_TIMEOUT)) };
        if timeout == Some(Duration::ZERO) {
            self.blocking.help_others();
            // After a death has made its descriptor readable, an event loop polls in this way and
            // must get the error.
            let lost = self.unchangeable(words).filter(|_| self.is_quiet());
            return lost.filter(|_| !done()).map_or_else(over, |changer| Err(nobody_left(changer)));
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut backoff = Backoff::new(self.blocking.spin);
        let mut loss = Loss::default();
        let limit = Deadline::new(deadline);
        while !self.blocking.help_until(&mut backoff, &limit, done) {
            if let Some(changer) = self.lost(&mut loss, words) {
                // The last stores of a dead rank come before the news of its death, so one more
                // look finds them.
                return if done() { Ok(()) } else { Err(nobody_left(changer)) };
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return over();
            }
            let left = left.into_iter().chain(loss.next_look()).min();
            let enough = || done() || self.has_news_of_deaths(&loss);
            let sleep =
                |awaited: &[Awaited], limit| self.blocking.sleep_any(awaited, limit, enough);
            if !backoff.pause()
                && (self.blocking.handles_late(&limit, done) || self.sleep(words, left, sleep))
            {
                backoff.renew();
            }
        }
        Ok(())
    }

    /// Whether a rank has died since the last look. A thread must ask before it sleeps, since the
    /// news of a death only wakes threads that sleep.
    pub(super) fn has_news_of_deaths(self, loss: &Loss) -> bool {
        loss.own.is_none() && self.routes.deaths() != loss.deaths
    }

    /// The changer of the first word that no rank can change any more. None as long as messages of
    /// dead ranks are not handled or this rank's own operations are under way.
    pub(super) fn lost(self, loss: &mut Loss, words: &[Watched<'_>]) -> Option<Changer> {
        let deaths = self.routes.deaths();
        if deaths == loss.deaths {
            return None;
        }
        let Some(changer) = self.unchangeable(words) else {
            *loss = Loss { deaths, own: None };
            return None;
        };
        let own = loss.own.get_or_insert_with(OwnWork::default);
        let over =
            self.is_quiet() || own.ended(self).is_some_and(|ended| ended.elapsed() > PATIENCE);
        over.then_some(changer)
    }

    /// The changer of the first word that no living rank can change any more.
    fn unchangeable(self, words: &[Watched<'_>]) -> Option<Changer> {
        if self.routes.deaths() == 0 {
            return None;
        }
        let nobody = |watched: &&Watched<'_>| match watched.changer {
            Changer::Peer(peer) => self.routes.is_dead(peer),
            Changer::Anybody => self.has_lost_all(watched.word),
        };
        words.iter().find(nobody).map(|watched| watched.changer)
    }

    /// Whether all messages that have arrived are handled, and no operation of this rank is under
    /// way.
    fn is_quiet(self) -> bool {
        let Blocking { lane, dispatcher, .. } = self.blocking;
        dispatcher.is_idle()
            && dispatcher.has_handled_all()
            && self.background.has_kept_promises()
            && !self.background.is_active()
            && lane.is_idle() == Some(true)
    }

    /// Whether all other ranks are dead, or at least one rank has used the word's region and all
    /// those that have used it are dead.
    fn has_lost_all(self, word: &AtomicU64) -> bool {
        let (me, size) = (self.routes.own().peer, self.routes.size());
        let living = |peer: u32| peer != me && !self.routes.is_dead(peer);
        if !(0..size).any(living) {
            return true;
        }
        let name = self.regions.name_of(word.as_ptr() as usize);
        let Ok(Some(name)) = name else { return false };
        let used = |peer: &u32| self.regions.is_used_by(Key(name.key), *peer);
        let mut users = (0..size).filter(used).peekable();
        users.peek().is_some() && !users.any(living)
    }

    /// Calls `sleep` with the addresses by which storing ranks name the words, and the longest time
    /// to sleep. True: one of the words may have changed.
    pub(super) fn sleep(
        self,
        words: &[Watched<'_>],
        left: Option<Duration>,
        sleep: impl FnOnce(&[Awaited], Option<Duration>) -> bool,
    ) -> bool {
        let mut limit = left;
        let mut named = |watched: &Watched<'_>| {
            let local = Some(watched.word.as_ptr() as u64);
            let name = self.regions.name_of(watched.word.as_ptr() as usize);
            if name.is_err() {
                limit = Some(limit.map_or(AMBIGUOUS, |left| left.min(AMBIGUOUS)));
            }
            Awaited { name: name.ok().flatten(), local }
        };
        match words {
            [] => sleep(&[Awaited::ANYTHING], limit),
            [word] => {
                let awaited = [named(word)];
                sleep(&awaited, limit)
            }
            _ => {
                let awaited = words.iter().map(named).collect::<Vec<_>>();
                sleep(&awaited, limit)
            }
        }
    }
}
