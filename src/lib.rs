//! libllcl: a low-level communication layer. The C interface lives in `api`; `docs/architecture.md`
//! explains the layers, which import strictly downward.

pub mod api;
pub mod bootstrap;
pub mod coll;
pub mod core;
pub mod engine;
pub mod transport;
pub mod util;

/// Where the system gives no memory the library lives on its reserve, and refuses what would need
/// more.
#[global_allocator]
static ALLOCATOR: util::reserve::Reserve = util::reserve::Reserve;
