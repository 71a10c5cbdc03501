//! libllcl: a low-level communication layer. The C interface lives in `api`; `docs/architecture.md`
//! explains the layers, which import strictly downward.

pub mod api;
pub mod bootstrap;
pub mod coll;
pub mod core;
pub mod engine;
pub mod transport;
pub mod util;
