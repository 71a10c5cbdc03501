//! How a thread waits for the lane: awake at first, working for it meanwhile; then asleep.

use crate::engine::command::{Command, Op};
use crate::engine::completion::Completion;
use crate::engine::lane::Lane;
use crate::engine::routes::Routes;
use crate::util::patience::Patience;
use crate::util::status::{Result, Status};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a thread needs that waits for the library's own words.
#[derive(Clone, Copy)]
pub(super) struct Rest<'a> {
    pub(super) lane: &'a Lane,
    pub(super) routes: &'a Routes,
    pub(super) spin: Duration,
}

/// How long a thread sleeps between two tries of something that nobody announces.
const NAP: Duration = Duration::from_micros(100);

impl Rest<'_> {
    /// Waits for a completion word, which is set in any case.
    pub(super) fn until_set(self, word: &AtomicU64) {
        // Acquire: pairs with the Release of the completion.
        let done = || word.load(Ordering::Acquire) != 0;
        let mut patience = Patience::new(self.spin);
        while !self.lane.attend(done) {
            if !patience.pause() && self.routes.waiters().sleep(None, None, done) {
                patience.renew();
            }
        }
    }

    /// Tries until the answer is not "try again", working for the lane meanwhile.
    pub(super) fn until_accepted<T>(self, attempt: impl Fn() -> Result<T>) -> Result<T> {
        let mut patience = Patience::new(self.spin);
        loop {
            match attempt() {
                Err(error) if error.status == Status::RETRY_QUEUE_FULL => {
                    let room = self.lane.room();
                    if self.lane.drain() {
                        room.take_turns();
                    } else if let Some(end) = room.wait(|| accepted(attempt())) {
                        return end;
                    }
                }
                Err(error) if error.status.is_retry() => {
                    if self.lane.lend() {
                        patience.renew();
                    } else if !patience.pause() {
                        std::thread::sleep(NAP);
                    }
                }
                end => return end,
            }
        }
    }

    /// Waits until everything accepted before, for one peer or for ALL_PEERS, has ended.
    pub(super) fn flush(self, peer: u32) -> Result<()> {
        let ended = AtomicU64::new(0);
        let mut flush = Command::new(Op::FLUSH, peer);
        flush.on_complete = Completion::store_on(&ended);
        let asleep = self.until_accepted(|| self.lane.put(&flush, &[]))?;
        self.lane.nudge(asleep);
        self.until_set(&ended);
        Ok(())
    }
}

/// None: try again.
fn accepted<T>(end: Result<T>) -> Option<Result<T>> {
    match end {
        Err(error) if error.status.is_retry() => None,
        end => Some(end),
    }
}
