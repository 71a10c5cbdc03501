//! A second context of the same ranks.

use crate::bootstrap::{Handed, ROUND};
use crate::core::context::{Context, Place};
use crate::util::config::Config;
use crate::util::status::Result;
use std::cell::RefCell;

impl Context {
    /// Another context of this one's ranks, which meet by it. Collective. `config`: its values, or
    /// why this rank cannot take part: then nobody can.
    pub fn duplicate(&self, config: Result<Config>) -> Result<Context> {
        self.may_block()?;
        let config = match config {
            Ok(config) => config,
            Err(error) => {
                self.exchange_refused(ROUND)?;
                return Err(error);
            }
        };
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
        // What has kept the ranks from meeting says more than that they have not met.
        made.map_err(|error| failure.take().unwrap_or(error))
    }
}
