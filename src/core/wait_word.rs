//! Waiting for words and messages, in a call or by a descriptor.

use crate::core::context::Context;
use crate::core::wait_fd::Parts;
use crate::core::watch::{Changer, Watch, Watched, position};
use crate::fail;
use crate::util::reserve;
use crate::util::status::Result;
use std::cell::Cell;
use std::os::fd::RawFd;
use std::time::Duration;

impl Context {
    pub(super) fn watch(&self) -> Watch<'_> {
        let Context { routes, regions, background, .. } = self;
        Watch { blocking: self.blocking(), routes, regions, background }
    }

    pub(super) fn check_watched(&self, words: &[Watched<'_>]) -> Result<()> {
        for (at, watched) in words.iter().enumerate() {
            if let Changer::Peer(peer) = watched.changer
                && peer >= self.size()
            {
                let name =
                    if words.len() > 1 { format!("words[{at}].peer") } else { "peer".into() };
                fail!(ERR_INVALID, "{name} is {peer}, expected a rank below {}", self.size());
            }
        }
        Ok(())
    }

    /// Waits until one of the words has its value, and returns the index of the word. If `messages`
    /// is set, the wait also ends when handlers have run since the calling thread's last look; it
    /// then returns the number of words. Without a timeout it waits for ever. An error: no living
    /// rank is left that may change one of the words.
    pub fn wait_any(
        &self,
        words: &[Watched<'_>],
        messages: bool,
        timeout: Option<Duration>,
    ) -> Result<usize> {
        self.check_watched(words)?;
        if let Some(reached) = position(words) {
            return Ok(reached);
        }
        self.may_block()?;
        let known = if messages { self.dispatcher.noted_handled() } else { 0 };
        let reached = Cell::new(words.len());
        let done = || match position(words) {
            Some(at) => {
                reached.set(at);
                true
            }
            None => messages && self.dispatcher.handled() != known,
        };
        self.watch().wait(words, timeout, done)?;
        if reached.get() == words.len() {
            self.dispatcher.note_handled();
        }
        Ok(reached.get())
    }

    /// Wakes the sleeping threads of a rank, so that they read their words again. A peer that was
    /// never contacted needs no wake-up, since this rank cannot have stored into its memory.
    pub fn wake(&self, peer: u32) -> Result<()> {
        self.must_be_open()?;
        if peer >= self.size() {
            fail!(ERR_INVALID, "peer is {peer}, expected a rank below {}", self.size());
        }
        // No fence is needed after the caller's stores: a thread that falls asleep makes the kernel
        // execute a fence in this thread (`transport::sleepers`).
        if let Some(port) = self.routes.known(peer) {
            port.waiters().touched_anything();
        }
        Ok(())
    }

    /// Arms the context's descriptor for the events that end wait_any(), and returns its number.
    ///
    /// # Safety
    /// The words are valid until the next call of this function has returned, or the context has
    /// ended.
    pub unsafe fn wait_fd(&self, words: &[Watched<'_>], messages: bool) -> Result<RawFd> {
        self.may_block()?;
        self.check_watched(words)?;
        reserve::must_be_left()?;
        let parts = || Parts {
            routes: self.routes.clone(),
            lane: self.lane.clone(),
            dispatcher: self.dispatcher.clone(),
            poster: self.poster.clone(),
            regions: self.regions.clone(),
            background: self.background.clone(),
            spin: self.blocking().spin,
        };
        self.notifier.arm(parts, words, messages, self.dispatcher.noted_handled())
    }
}
