//! A world of one: no hub, no thread, everything stays in this process.

use crate::bootstrap::Card;
use crate::bootstrap::client::lock;
use crate::bootstrap::protocol::MAX_BLOB;
use crate::fail;
use crate::util::status::{Error, Result, Status};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, PoisonError};

#[derive(Default)]
struct State {
    card: Option<(Vec<u8>, OwnedFd)>,
    left: bool,
}

#[derive(Default)]
pub(super) struct Alone {
    state: Mutex<State>,
    changed: Condvar,
}

impl Alone {
    pub(super) fn publish(&self, blob: &[u8], fd: BorrowedFd<'_>) -> Result<()> {
        let mut state = lock(&self.state);
        state.check()?;
        if blob.len() > MAX_BLOB {
            fail!(ERR_INVALID, "blob: {} bytes, expected at most {MAX_BLOB}", blob.len());
        }
        if state.card.is_some() {
            fail!(ERR_STATE, "publish: rank 0 has published already, expected one call");
        }
        state.card = Some((blob.to_vec(), duplicate(fd)?));
        self.changed.notify_all();
        Ok(())
    }

    pub(super) fn lookup(&self) -> Result<Card> {
        let mut state = lock(&self.state);
        loop {
            state.check()?;
            if let Some((blob, fd)) = &state.card {
                let fd = duplicate(fd.as_fd())?;
                return Ok(Card { blob: blob.clone(), fd });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn exchange(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        lock(&self.state).check()?;
        all.copy_from_slice(mine);
        Ok(())
    }

    pub(super) fn fence(&self) -> Result<()> {
        lock(&self.state).check()
    }

    pub(super) fn leave(&self) {
        *lock(&self.state) = State { card: None, left: true };
        self.changed.notify_all();
    }
}

impl State {
    fn check(&self) -> Result<()> {
        if self.left {
            fail!(ERR_STATE, "this rank has left the world");
        }
        Ok(())
    }
}

fn duplicate(fd: BorrowedFd<'_>) -> Result<OwnedFd> {
    fd.try_clone_to_owned().map_err(|e| {
        Error::new(Status::ERR_NO_MEMORY, format!("duplicating a published descriptor: {e}"))
    })
}
