//! How a thread waits for one of several words: at first it is awake and executes commands of this
//! context, then it sleeps. And when nobody is left who could change a word.

use crate::core::background::Background;
use crate::core::blocking::Blocking;
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

/// How long a thread sleeps at most whose word has several names, of which peers may use any.
const AMBIGUOUS: Duration = Duration::from_millis(1);

/// After the death of those who could have changed the word: how long a thread sleeps between two
/// looks whether what they have left behind, messages above all, has been handled, and this rank's
/// own operations have ended.
const LAST_LOOKS: Duration = Duration::from_millis(1);
/// When those operations have ended: how long a thread waits for what others may have begun since.
const PATIENCE: Duration = Duration::from_millis(200);

/// Which ranks may change a word that a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Changer {
    /// One rank.
    Peer(u32),
    /// Any living rank.
    Anybody,
}

/// A word that is waited for.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// The word.
    pub word: &'a AtomicU64,
    /// The value that it is to reach.
    pub at_least: u64,
    /// Who may change it.
    pub changer: Changer,
}

impl Watched<'_> {
    /// Whether it has its value. What was done before the word was changed is seen.
    #[inline]
    pub fn is_reached(&self) -> bool {
        // Acquire: as above says.
        self.word.load(Ordering::Acquire) >= self.at_least
    }
}

/// The parts of a context that it takes to wait for words.
#[derive(Clone, Copy)]
pub(super) struct Watch<'a> {
    pub(super) blocking: Blocking<'a>,
    pub(super) routes: &'a Routes,
    pub(super) regions: &'a Regions,
    pub(super) background: &'a Background,
}

/// What a waiting thread knows of deaths.
#[derive(Default)]
pub(super) struct Loss {
    /// How many there were at the last look that found somebody left.
    deaths: u32,
    /// What was under way when there was nobody left.
    own: Option<OwnWork>,
}

/// Operations of this rank that were under way at a moment; the end of any may change a word of
/// this rank.
#[derive(Default)]
struct OwnWork {
    /// Becomes non-zero when the lane has ended what it had. None: the queue had no room for the
    /// question yet.
    lane: Option<Arc<AtomicU64>>,
    /// Messages whose end was waited for when the lane had ended the rest: it may have sent some of
    /// them.
    messages: Option<Vec<u64>>,
    /// When all had ended.
    ended: Option<Instant>,
}

impl OwnWork {
    /// When all had ended, if they have.
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
        !messages.iter().any(|tag| dispatcher.waits(*tag))
    }
}

impl Loss {
    /// When to look again whether what the dead have left behind is over.
    pub(super) fn next_look(&self) -> Option<Duration> {
        self.own.as_ref().map(|_| LAST_LOOKS)
    }
}

fn nobody_left(changer: Changer) -> Error {
    let who = match changer {
        Changer::Peer(peer) => format!("rank {peer} has died or has left"),
        Changer::Anybody => "every other rank that has used the word's region has died".to_owned(),
    };
    Error::new(Status::ERR_PEER_DEAD, format!("{who}: nobody is left to change the word"))
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
        // Without a sentence of its own: a thread that waits for a short time may do
        // so often.
        let over = || if done() { Ok(()) } else { Err(Error::bare(Status::ERR_TIMEOUT)) };
        if timeout == Some(Duration::ZERO) {
            self.blocking.help_others();
            // An event loop looks like this, by a descriptor that a death has made readable.
            let lost = self.unchangeable(words).filter(|_| self.is_quiet());
            return lost.filter(|_| !done()).map_or_else(over, |changer| Err(nobody_left(changer)));
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut backoff = Backoff::new(self.blocking.spin);
        let mut loss = Loss::default();
        while !self.blocking.help_until(&mut backoff, done) {
            if let Some(changer) = self.lost(&mut loss, words) {
                // What the dead have done last came before their death was known.
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
            if !backoff.pause() && self.sleep(words, left, sleep) {
                backoff.renew();
            }
        }
        Ok(())
    }

    /// A death since the last look rings no bell of a thread that was not asleep then.
    pub(super) fn has_news_of_deaths(self, loss: &Loss) -> bool {
        loss.own.is_none() && self.routes.deaths() != loss.deaths
    }

    /// The first word that nobody is left to change: nothing of what the dead have left behind is
    /// to come, and no operation of this rank's own that was under way.
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

    /// Who could have changed the first word that no living rank can change any more.
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

    /// Whether all that has come is handled, and nothing of this rank's own is under way.
    fn is_quiet(self) -> bool {
        let Blocking { lane, dispatcher, .. } = self.blocking;
        dispatcher.is_idle()
            && dispatcher.has_handled_all()
            && !self.background.is_active()
            && lane.is_idle() == Some(true)
    }

    /// Whether the other ranks are dead, or at least those that have used the region in which the
    /// word lies, and there were some.
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

    /// Calls `sleep` with the words as those who store name them, and for how long at most. True:
    /// something was stored into one of them.
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
