//! Waiting for a word: awake at first, working for the lane meanwhile; then asleep.

use crate::core::context::Context;
use crate::fail;
use crate::transport::waiters::Awaited;
use crate::util::backoff::Backoff;
use crate::util::status::{Error, Result, Status};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a thread sleeps at most whose word has several names, of which peers may use any.
const AMBIGUOUS: Duration = Duration::from_millis(1);

impl Context {
    /// Waits until `word` is at least `at_least`; None: for ever.
    pub fn wait_word(
        &self,
        word: &AtomicU64,
        at_least: u64,
        timeout: Option<Duration>,
    ) -> Result<()> {
        // Acquire: what was done before the word was changed is seen.
        let done = || word.load(Ordering::Acquire) >= at_least;
        if done() {
            return Ok(());
        }
        self.may_block("llcl_wait_word")?;
        if timeout == Some(Duration::ZERO) {
            self.rest().help_others();
            return if done() { Ok(()) } else { Err(Error::bare(Status::ERR_TIMEOUT)) };
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut backoff = Backoff::new(Duration::from_micros(self.config().spin_us));
        let rest = self.rest();
        while !rest.attend(&mut backoff, done) {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                fail!(ERR_TIMEOUT, "the word did not reach {at_least} within {timeout:?}");
            }
            if !backoff.pause() && self.sleep(word, left, done) {
                backoff.renew();
            }
        }
        Ok(())
    }

    /// Has the threads of a rank that sleep look again at what they wait for. A peer that was never
    /// talked to has got nothing of ours.
    pub fn wake(&self, peer: u32) -> Result<()> {
        self.must_be_open()?;
        if peer >= self.size() {
            fail!(ERR_INVALID, "peer is {peer}, expected a rank below {}", self.size());
        }
        // What the caller has stored comes before; a peer's sleeper has had the kernel run the fence.
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
