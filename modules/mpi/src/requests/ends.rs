//! Asks MPI which requests have ended.

use super::{Came, Ended, MESSAGES, RECEIVES, Receive, Requests, Single};
use crate::asked::{self, End};
use crate::calls::{is_cancelled, size_of};
use crate::mpi::Failure;

/// How many of the oldest receives test_all() usually asks about.
const HEADS: usize = 4;
/// Once in so many calls test() asks about the oldest HEADS receives, even if there are no singles
/// and no overtaken receives.
const OTHERS: u32 = 8;
/// Once in so many calls it asks about all receives, since the oldest HEADS may all be matched with
/// messages that end late. It is seldom, since MPICH makes progress several times in such a call.
const ALL: u32 = 64;

impl Requests {
    /// Adds the requests that have ended to `ended`, and the ends of frames to `events`. Returns
    /// the message of the oldest receive if that has ended, which is to be handled before `ended`.
    /// MPI progresses inside this call.
    #[inline(always)]
    pub fn test(&mut self) -> Result<Option<Came>, Failure> {
        self.fill()?;
        self.turns = self.turns.wrapping_add(1);
        let every = self.turns.is_multiple_of(OTHERS);
        // The caller handles a message before it asks again: each question takes as long as the
        // rest of the message's way.
        let front = self.test_front()?;
        if front.is_some() && !every {
            return Ok(front);
        }
        self.test_unasked()?;
        if every || !self.handles.is_empty() || !self.overtaken.is_empty() {
            let most = if self.turns.is_multiple_of(ALL) { RECEIVES } else { HEADS };
            self.test_all(most.min(self.receives.len()))?;
        }
        Ok(front)
    }

    /// Asks for the receive that MPI matches next, and returns its message. Unlike MPI_Testsome,
    /// MPI_Test looks again after it has made progress in Open MPI.
    #[inline(always)]
    fn test_front(&mut self) -> Result<Option<Came>, Failure> {
        let Some(front) = self.receives.front_mut() else { return Ok(None) };
        let Some(end) = asked::test(&mut front.handle, &mut self.failures)? else {
            return Ok(None);
        };
        Ok(self.receives.pop_front().and_then(|receive| self.came(receive, &end)))
    }

    /// Asks for each single that was added since the last call. MPI has usually ended a short send
    /// by now, so MPI_Testsome is not asked about it. send() does not ask: MPICH makes progress in
    /// each MPI_Test, for which the thread that posts would wait.
    fn test_unasked(&mut self) -> Result<(), Failure> {
        // Backwards, since remove() moves the last entry to the place of the removed one.
        for at in (self.unasked..self.singles.len()).rev() {
            let end = asked::test(&mut self.handles[at], &mut self.failures)?;
            if let Some(end) = end {
                self.single_ended(at, &end);
            }
        }
        self.unasked = self.singles.len();
        Ok(())
    }

    /// Removes a single that MPI has ended, and reports it to libllcl or to the caller of test(),
    /// or keeps the memory of a request or an answer.
    fn single_ended(&mut self, at: usize, end: &End) {
        let single = self.remove(at);
        let cancelled = match end {
            End::Well(status) => single.receives() && is_cancelled(status),
            End::Dead => true,
        };
        match single {
            Single::Message(bytes) if self.messages.len() < MESSAGES => self.messages.push(bytes),
            Single::Message(_) => {}
            single => self.has_ended(single, cancelled),
        }
    }

    /// Asks for the first `heads` receives, the overtaken ones and the singles.
    fn test_all(&mut self, heads: usize) -> Result<(), Failure> {
        let own = heads + self.overtaken.len();
        let asked = &mut self.asked.handles;
        asked.clear();
        asked.extend(self.receives.iter().take(heads).map(|it| it.handle));
        asked.extend(self.overtaken.iter().map(|it| it.handle));
        asked.extend(&self.handles);
        let ends = self.asked.ask(&mut self.failures);
        // Also after a failure: MPI has freed the requests that have ended.
        let asked = &self.asked.handles;
        for (receive, handle) in self.receives.iter_mut().zip(&asked[..heads]) {
            receive.handle = *handle;
        }
        for (receive, handle) in self.overtaken.iter_mut().zip(&asked[heads..own]) {
            receive.handle = *handle;
        }
        self.handles.copy_from_slice(&asked[own..]);
        let ends = ends?;
        let (first, others) = ends.split_at(ends.partition_point(|(index, _)| *index < heads));
        for (removed, (index, end)) in first.iter().enumerate() {
            // The receives removed before this one were in front of it.
            if let Some(receive) = self.receives.remove(index - removed) {
                let came = self.came(receive, end);
                self.ended.extend(came.map(Ended::Came));
            }
        }
        if let Some((last, _)) = first.last() {
            self.overtaken.extend(self.receives.drain(..last + 1 - first.len()));
        }
        // Backwards, since swap_remove() moves the last entry to the place of the removed one.
        for (index, end) in others.iter().rev() {
            if *index < own {
                let receive = self.overtaken.swap_remove(index - heads);
                let came = self.came(receive, end);
                self.ended.extend(came.map(Ended::Came));
            } else {
                self.single_ended(index - own, end);
            }
        }
        self.unasked = self.singles.len();
        Ok(())
    }

    /// The message of a receive that MPI has ended, unless the rank that was sending it has died.
    #[inline]
    fn came(&mut self, Receive { bytes, .. }: Receive, end: &End) -> Option<Came> {
        let End::Well(status) = end else {
            self.recycle(bytes);
            return None;
        };
        let (class, peer) = (status.MPI_TAG as u32, status.MPI_SOURCE as u32);
        Some(Came { bytes, size: size_of(status), class, peer })
    }
}
