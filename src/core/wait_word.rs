//! Waiting for a word: awake at first, working for the lane meanwhile; then asleep.

use crate::core::context::Context;
use crate::engine::command::{ALL_PEERS, Command, Op};
use crate::engine::completion::{CALL, Completion};
use crate::fail;
use crate::transport::address::Key;
use crate::transport::waiters::Awaited;
use crate::util::backoff::Backoff;
use crate::util::status::{Error, Result, Status};
use std::ffi::c_void;
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

/// What a waiting thread knows of deaths.
#[derive(Default)]
struct Loss {
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
    fn ended(&mut self, context: &Context) -> Option<Instant> {
        if self.ended.is_none() && self.has_ended(context) {
            self.ended = Some(Instant::now());
        }
        self.ended
    }

    fn has_ended(&mut self, context: &Context) -> bool {
        if self.lane.is_none() {
            self.lane = context.lane_ends();
        }
        // Acquire: pairs with the Release in lane_has_ended().
        if self.lane.as_ref().is_none_or(|word| word.load(Ordering::Acquire) == 0) {
            return false;
        }
        let messages = self.messages.get_or_insert_with(|| context.dispatcher.waiting(|_| true));
        !messages.iter().any(|tag| context.dispatcher.waits(*tag))
    }
}

/// The callback of the flush in lane_ends().
unsafe extern "C-unwind" fn lane_has_ended(word: *mut c_void, _: Status) {
    // SAFETY: lane_ends() has given this share of the word to the flush, which ends once.
    let word = unsafe { Arc::from_raw(word.cast_const().cast::<AtomicU64>()) };
    // Release: what the operations have done is seen by every thread that sees the word.
    word.store(1, Ordering::Release);
}

fn lost(changer: Changer) -> Error {
    let who = match changer {
        Changer::Peer(peer) => format!("rank {peer} has died or has left"),
        Changer::Anybody => "every other rank that has used the word's region has died".to_owned(),
    };
    Error::new(Status::ERR_PEER_DEAD, format!("{who}: nobody is left to change the word"))
}

impl Context {
    /// Waits until `word` is at least `at_least`; None: for ever. Not longer than `changer` lives.
    pub fn wait_word(
        &self,
        word: &AtomicU64,
        at_least: u64,
        timeout: Option<Duration>,
        changer: Changer,
    ) -> Result<()> {
        if let Changer::Peer(peer) = changer
            && peer >= self.size()
        {
            fail!(ERR_INVALID, "peer is {peer}, expected a rank below {}", self.size());
        }
        // Acquire: what was done before the word was changed is seen.
        let done = || word.load(Ordering::Acquire) >= at_least;
        if done() {
            return Ok(());
        }
        self.may_block()?;
        if timeout == Some(Duration::ZERO) {
            self.rest().help_others();
            return if done() { Ok(()) } else { Err(Error::bare(Status::ERR_TIMEOUT)) };
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut backoff = Backoff::new(Duration::from_micros(self.config().spin_us));
        let rest = self.rest();
        let mut loss = Loss::default();
        while !rest.attend(&mut backoff, done) {
            if self.is_lost(&mut loss, word, changer) {
                // What the dead have done last came before their death was known.
                return if done() { Ok(()) } else { Err(lost(changer)) };
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                // Without a sentence of its own: a thread that waits for a short time may do so
                // often.
                return Err(Error::bare(Status::ERR_TIMEOUT));
            }
            let left = left.into_iter().chain(loss.own.as_ref().map(|_| LAST_LOOKS)).min();
            // A death between the look above and the sleep rings no bell of this thread's.
            let dead = || loss.own.is_none() && self.routes.deaths() != loss.deaths;
            if !backoff.pause() && self.sleep(word, left, || done() || dead()) {
                backoff.renew();
            }
        }
        Ok(())
    }

    /// Whether nobody is left to change the word, nothing of what they have left behind, and no
    /// operation of this rank's own that was under way.
    fn is_lost(&self, loss: &mut Loss, word: &AtomicU64, changer: Changer) -> bool {
        let deaths = self.routes.deaths();
        if deaths == loss.deaths {
            return false;
        }
        let nobody = match changer {
            Changer::Peer(peer) => self.routes.is_dead(peer),
            Changer::Anybody => self.has_lost_all(word),
        };
        if !nobody {
            *loss = Loss { deaths, own: None };
            return false;
        }
        let own = loss.own.get_or_insert_with(OwnWork::default);
        let quiet = || {
            self.dispatcher.is_idle()
                && self.dispatcher.has_handled_all()
                && !self.background.is_active()
                && self.lane.is_idle() == Some(true)
        };
        quiet() || own.ended(self).is_some_and(|ended| ended.elapsed() > PATIENCE)
    }

    /// A word that becomes non-zero when all that the lane has now has ended. None: its queue is
    /// full.
    fn lane_ends(&self) -> Option<Arc<AtomicU64>> {
        let word = Arc::new(AtomicU64::new(0));
        let mut flush = Command::new(Op::FLUSH, ALL_PEERS);
        // A call and not a store: the waiting thread may leave earlier, and the word stays for the
        // flush.
        flush.on_complete = Completion {
            kind: CALL,
            call: lane_has_ended as *const c_void,
            target: Arc::into_raw(word.clone()).cast_mut().cast(),
            ..Completion::NOTHING
        };
        match self.lane.put(&flush, &[]) {
            Ok(asleep) => self.lane.wake_executor(asleep),
            Err(_) => {
                // SAFETY: the share that the flush would have had; it was not accepted.
                drop(unsafe { Arc::from_raw(flush.on_complete.target.cast::<AtomicU64>()) });
                return None;
            }
        }
        Some(word)
    }

    /// Whether the other ranks are dead, or at least those that have used the region in which the
    /// word lies, and there were some.
    fn has_lost_all(&self, word: &AtomicU64) -> bool {
        let living = |peer: u32| peer != self.rank() && !self.routes.is_dead(peer);
        if !(0..self.size()).any(living) {
            return true;
        }
        let name = self.regions.name_of(word.as_ptr() as usize);
        let Ok(Some(name)) = name else { return false };
        let used = |peer: &u32| self.regions.is_used_by(Key(name.key), *peer);
        let mut users = (0..self.size()).filter(used).peekable();
        users.peek().is_some() && !users.any(living)
    }

    /// Has the threads of a rank that sleep look again at what they wait for. A peer that was never
    /// talked to has got nothing of ours.
    pub fn wake(&self, peer: u32) -> Result<()> {
        self.must_be_open()?;
        if peer >= self.size() {
            fail!(ERR_INVALID, "peer is {peer}, expected a rank below {}", self.size());
        }
        // What the caller has stored comes before; a peer's sleeper has had the kernel run the
        // fence.
        if let Some(port) = self.routes.known(peer) {
            port.waiters().touched_anything();
        }
        Ok(())
    }

    /// True: something was stored into the word.
    fn sleep(&self, word: &AtomicU64, left: Option<Duration>, done: impl Fn() -> bool) -> bool {
        let (name, limit) = match self.regions.name_of(word.as_ptr() as usize) {
            Ok(name) => (name, left),
            Err(()) => (None, Some(left.map_or(AMBIGUOUS, |left| left.min(AMBIGUOUS)))),
        };
        let local = Some(word.as_ptr() as u64);
        self.rest().sleep(Awaited { name, local }, limit, done)
    }
}
