//! Gathering the bytes of all ranks, packet by packet. If the deadline passes, the next call goes
//! on with the same exchange: the hub has this rank's bytes and waits for the other ranks.

use super::{Client, lock};
use crate::bootstrap::protocol::{PAYLOAD, Request};
use crate::fail;
use crate::util::status::{Error, Result, Status};
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
    /// Why this rank cannot take part, which it has told the others by a packet that fits no
    /// other.
    refused: Option<Error>,
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
        let it = match kept.take() {
            Some(it) if it.size != mine.len() => return Err(comes_first(&mut kept, it)),
            Some(it) => it,
            None => Gathering::of(mine.len(), all.len()),
        };
        all.copy_from_slice(&self.go_on(&mut kept, it, mine, deadline)?);
        Ok(())
    }

    /// See `Bootstrap::exchange_refused`.
    pub(in crate::bootstrap) fn exchange_refused(
        &self,
        size: usize,
        why: Error,
        deadline: Option<Instant>,
    ) -> Error {
        let mut kept = lock(&self.collective);
        let it = match kept.take() {
            Some(it) if it.size != size || it.refused.is_none() => {
                return comes_first(&mut kept, it);
            }
            Some(it) => it,
            None => Gathering::refused(size, why),
        };
        // A refused exchange never succeeds.
        let ended = self.go_on(&mut kept, it, &[], deadline).err();
        ended.unwrap_or(Error::bare(Status::ERR_INTERNAL))
    }

    /// Gathers packet by packet, and answers the bytes of all ranks. If the deadline passes, the
    /// exchange goes to `kept`.
    fn go_on(
        &self,
        kept: &mut Option<Gathering>,
        mut it: Gathering,
        mine: &[u8],
        deadline: Option<Instant>,
    ) -> Result<Vec<u8>> {
        let failed = loop {
            match self.gather(&mut it, mine, deadline) {
                Ok(true) if it.token.is_some() => {
                    *kept = Some(it);
                    fail!(ERR_TIMEOUT, "some rank has not made this call yet; call again to go on");
                }
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(error),
            }
        };
        match (failed, it.refused) {
            (None, None) => Ok(it.all),
            (None, Some(why)) => Err(why),
            // The refusal is the reason that the packets differ.
            (Some(error), Some(why)) if error.status == Status::ERR_INVALID => Err(why),
            (Some(error), _) => Err(error),
        }
    }

    /// Gathers the next packet of each rank. False: all bytes have been gathered. If the deadline
    /// passes, `it` keeps the token.
    fn gather(&self, it: &mut Gathering, mine: &[u8], deadline: Option<Instant>) -> Result<bool> {
        let ranks = self.shared.gone.len();
        let end = it.size.min(it.done + PAYLOAD / ranks);
        let (chunk, offset) = match it.refused {
            None => (&mine[it.done..end], it.done),
            Some(_) => (&mine[..0], usize::MAX),
        };
        let token = match it.token {
            Some(token) => token,
            None => self.shared.begin(packet(chunk, offset, it.size), None)?,
        };
        it.token = Some(token);
        let Some(answer) = self.wait_for(token, deadline)? else { return Ok(true) };
        it.token = None;
        if it.refused.is_some() {
            return Ok(false);
        }
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

impl Gathering {
    fn of(size: usize, total: usize) -> Gathering {
        let mut all = Vec::new();
        if all.try_reserve_exact(total).is_err() {
            // The other ranks fail too, and do not wait for this one.
            let text = format!("no memory for {total} bytes of all ranks");
            return Gathering::refused(size, Error::new(Status::ERR_NO_MEMORY, text));
        }
        all.resize(total, 0);
        Gathering { size, done: 0, token: None, all, refused: None }
    }

    fn refused(size: usize, why: Error) -> Gathering {
        Gathering { size, done: 0, token: None, all: Vec::new(), refused: Some(why) }
    }
}

/// Keeps an exchange that has timed out. The error says that it goes on before another one.
fn comes_first(kept: &mut Option<Gathering>, it: Gathering) -> Error {
    let text = format!(
        "an exchange of {} bytes of each rank has timed out, expected the same call again before another one",
        it.size
    );
    *kept = Some(it);
    Error::new(Status::ERR_STATE, text)
}

/// The request with a rank's bytes from `offset` on, of `size` in all.
fn packet(chunk: &[u8], offset: usize, size: usize) -> Request {
    Request::Exchange { total: size as u64, offset: offset as u64, bytes: chunk.to_vec() }
}
