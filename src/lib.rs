//! libllcl: a low-level communication layer. The C interface lives in `api`; `docs/architecture.md`
//! explains the layers, which import strictly downward.

pub mod bootstrap;
pub mod engine;
pub mod util;
