//! Gathering the bytes of all ranks, packet by packet. If the deadline passes, the next call goes
//! on with the same exchange: the hub has this rank's bytes and waits for the other ranks.

use super::{Client, lock};
use crate::bootstrap::protocol::{PAYLOAD, Request};
use crate::fail;
use crate::util::status::Result;
use std::sync::MutexGuard;
use std::time::Instant;

/// An exchange that has begun.
pub(super) struct Gathering {
    /// Bytes of each rank.
    size: usize,
    /// How many of them are complete.
    done: usize,
    /// The token of the packet that is under way.
    token: Option<u32>,
    /// The bytes of all ranks.
    all: Vec<u8>,
}

impl Client {
    /// See `Bootstrap::exchange_by`. The caller has checked the length of `all`, which is written
    /// on success only. After ERR_TIMEOUT a call with as many bytes goes on; the bytes that it
    /// sends are those of the first call.
    pub(in crate::bootstrap) fn exchange(
        &self,
        mine: &[u8],
        all: &mut [u8],
        deadline: Option<Instant>,
    ) -> Result<()> {
        let mut kept = lock(&self.collective);
        let mut it = match kept.take() {
            Some(it) if it.size != mine.len() => {
                let size = it.size;
                *kept = Some(it);
                fail!(
                    ERR_STATE,
                    "size is {}, expected {size}: the call that has timed out goes on first",
                    mine.len()
                );
            }
            Some(it) => it,
            None => self.begin_gathering(mine.len(), all.len())?,
        };
        while self.gather(&mut it, mine, deadline)? {
            if it.token.is_some() {
                *kept = Some(it);
                fail!(ERR_TIMEOUT, "some rank has not made this call yet; call again to go on");
            }
        }
        all.copy_from_slice(&it.all);
        Ok(())
    }

    fn begin_gathering(&self, size: usize, total: usize) -> Result<Gathering> {
        let mut all = Vec::new();
        if all.try_reserve_exact(total).is_err() {
            // So the other ranks fail too, and do not wait for this one.
            self.refuse(size)?;
            fail!(ERR_NO_MEMORY, "no memory for {total} bytes of all ranks");
        }
        all.resize(total, 0);
        Ok(Gathering { size, done: 0, token: None, all })
    }

    /// Gathers the next packet of each rank. False: all bytes have been gathered. If the deadline
    /// passes, `it` keeps the token.
    fn gather(&self, it: &mut Gathering, mine: &[u8], deadline: Option<Instant>) -> Result<bool> {
        let ranks = self.shared.gone.len();
        let end = it.size.min(it.done + PAYLOAD / ranks);
        let (chunk, offset) = (&mine[it.done..end], it.done);
        let token = match it.token {
            Some(token) => token,
            None => self.shared.begin(packet(chunk, offset, it.size), None)?,
        };
        it.token = Some(token);
        let Some(answer) = self.wait_for(token, deadline)? else { return Ok(true) };
        it.token = None;
        let (bytes, expected) = (answer.bytes, chunk.len() * ranks);
        if bytes.len() != expected {
            fail!(ERR_INTERNAL, "{} bytes of all ranks came, expected {expected}", bytes.len());
        }
        for (rank, part) in bytes.chunks_exact(chunk.len().max(1)).enumerate() {
            let at = rank * it.size + offset;
            it.all[at..at + part.len()].copy_from_slice(part);
        }
        it.done = end;
        Ok(end < it.size)
    }

    /// See `Bootstrap::exchange_refused`.
    pub(in crate::bootstrap) fn exchange_refused(&self, size: usize) -> Result<()> {
        let _turn = self.no_gathering()?;
        self.refuse(size)
    }

    fn refuse(&self, size: usize) -> Result<()> {
        let token = self.shared.begin(packet(&[], usize::MAX, size), None)?;
        self.wait_for(token, None).map(drop)
    }

    /// See `Bootstrap::fence_survivors_by`.
    pub(in crate::bootstrap) fn fence_survivors(&self, deadline: Option<Instant>) -> Result<()> {
        let _turn = self.no_gathering()?;
        let token = self.shared.begin(Request::Fence, None)?;
        match self.wait_for(token, deadline)? {
            Some(_) => Ok(()),
            None => {
                self.shared.forget(token);
                fail!(
                    ERR_TIMEOUT,
                    "other ranks have not made this call in time; this rank has left"
                )
            }
        }
    }

    /// The lock for a collective request; an error if an exchange that has timed out must go on
    /// first.
    fn no_gathering(&self) -> Result<MutexGuard<'_, Option<Gathering>>> {
        let turn = lock(&self.collective);
        match &*turn {
            None => Ok(turn),
            Some(_) => fail!(
                ERR_TIMEOUT,
                "an exchange has timed out and was not repeated, expected its end first"
            ),
        }
    }
}

/// The request with a rank's bytes from `offset` on, of `size` in all.
fn packet(chunk: &[u8], offset: usize, size: usize) -> Request {
    Request::Exchange { total: size as u64, offset: offset as u64, bytes: chunk.to_vec() }
}
