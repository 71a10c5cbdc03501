//! Contexts among ranks that another launcher has started.

use crate::bootstrap::environment::OtherLauncher;
use crate::bootstrap::{Bootstrap, Handed};
use crate::core::context::Context;
use crate::transport::fabric::Fabric;
use crate::util::config::Config;
use crate::util::status::Result;
use std::sync::Arc;
use std::time::Duration;

impl Context {
    /// Makes the context among ranks of another launcher. Collective: if one rank fails, all fail.
    pub(super) fn create_among(config: Result<Config>, handed: &mut Handed<'_>) -> Result<Context> {
        let config = config.inspect_err(|error| Bootstrap::refuse(handed, error))?;
        let bootstrap = Arc::new(Bootstrap::from_program(handed, &Fabric::can_join)?);
        let created = Context::build(config, &bootstrap);
        match (bootstrap.exchange_cards(handed, &created), created) {
            (Ok(()), Ok(context)) => Ok(context),
            (Err(error), Ok(context)) => {
                context.finalize(Some(Duration::ZERO));
                Err(error)
            }
            (_, Err(error)) => {
                bootstrap.leave();
                Err(error)
            }
        }
    }

    /// Takes the place among the ranks of another launcher that the wire's module knows.
    pub(super) fn create_launched(
        config: Result<Config>,
        launcher: &OtherLauncher,
    ) -> Result<Context> {
        let launched = Fabric::launch().map_err(|error| launcher.refuse(error.message()));
        let launched = launched.and_then(|launch| match launch.place().1 {
            size if size < launcher.least => Err(launcher.refuse(&format!(
                "to the module's MPI the size of the job is {size}, as if another MPI had started it"
            ))),
            _ => Ok(launch),
        });
        let launch = match launched {
            Ok(launch) => launch,
            // An error of the configuration comes first.
            Err(error) => return Err(config.err().unwrap_or(error)),
        };
        let (rank, size) = launch.place();
        let gather = launch.clone();
        let allgather = move |mine: &[u8], all: &mut [u8]| gather.allgather(mine, all);
        let ends = launch.clone();
        let mut handed = Handed {
            rank,
            size,
            allgather: &allgather,
            abort: Some(Box::new(move |code, _| ends.abort(code))),
            processes: true,
            foreign: 0,
            keep: Some(Box::new(launch)),
        };
        Context::create_among(config, &mut handed)
    }
}
