//! A second context of the same ranks.

use crate::bootstrap::Handed;
use crate::core::context::{Context, Place};
use crate::util::config::Config;
use crate::util::status::Result;
use std::cell::RefCell;

impl Context {
    /// Makes another context of the same ranks, which exchange their cards through this one.
    /// Collective. `config`: the configuration of the new context. If it is an error at one rank,
    /// no rank gets a context.
    pub fn duplicate(&self, config: Result<Config>) -> Result<Context> {
        self.may_block()?;
        let failure = RefCell::new(None);
        let allgather = |mine: &[u8], all: &mut [u8]| match self.exchange(mine, all) {
            Ok(()) => 0,
            Err(error) => {
                *failure.borrow_mut() = Some(error);
                1
            }
        };
        let first = self.bootstrap().clone();
        let (processes, foreign) = (first.is_of_processes(), first.foreign());
        let handed = Handed {
            rank: self.rank(),
            size: self.size(),
            allgather: &allgather,
            abort: Some(Box::new(move |code, grace_ms| first.abort(code, grace_ms))),
            processes,
            foreign,
            keep: None,
        };
        let made = Context::create(config, Place::Handed(handed));
        // If the exchange has failed, the bootstrap has failed because of it, and its error says
        // less.
        let made = made.map_err(|error| failure.take().unwrap_or(error))?;
        self.bootstrap().pass_deaths_to(made.bootstrap());
        Ok(made)
    }
}
