//! A world of one rank, without a hub and without a thread.

use crate::bootstrap::client::lock;
use crate::fail;
use crate::util::status::Result;
use std::sync::Mutex;

#[derive(Default)]
struct State {
    published: bool,
    left: bool,
}

#[derive(Default)]
pub(super) struct Alone {
    state: Mutex<State>,
}

impl Alone {
    /// Checks only: no other rank asks for the card.
    pub(super) fn publish(&self) -> Result<()> {
        let mut state = lock(&self.state);
        state.check()?;
        if std::mem::replace(&mut state.published, true) {
            fail!(ERR_STATE, "publish: rank 0 has published already, expected one call");
        }
        Ok(())
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
        lock(&self.state).left = true;
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
