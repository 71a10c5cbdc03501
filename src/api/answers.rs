//! What is answered to questions about a context and its peers.

use crate::api::life::{
    LLCL_ACCESS_KERNEL, LLCL_ACCESS_MAPPED, LLCL_ACCESS_MESSAGE, LLCL_TRANSPORT_LOOPBACK,
    LLCL_TRANSPORT_SHM, llcl_capabilities_t, llcl_peer_info_t,
};
use crate::core::context::Context;
use crate::engine::queue_entry::INLINE;
use crate::fail;
use crate::transport::Access;
use crate::util::memory::page_size;
use crate::util::status::Result;

/// What a context can do.
pub fn capabilities_of(context: &Context) -> llcl_capabilities_t {
    let config = context.config();
    llcl_capabilities_t {
        struct_size: size_of::<llcl_capabilities_t>() as u64,
        execution: config.execution as u32 + 1,
        queue_entries: config.queue_entries as u32,
        in_flight: config.in_flight as u32,
        regions: config.regions as u32,
        small: INLINE as u64,
        page: page_size() as u64,
        am_slots: config.am_slots as u32,
        am_policy: config.am_policy as u32 + 1,
        am_medium: config.am_medium as u32,
        am_shares: context.am_shares(),
        am_requests: config.am_requests as u32,
        am_handlers: config.am_handlers as u32 + 1,
    }
}

/// How a peer is reached. Contacts it.
pub fn info_of(context: &Context, peer: u32) -> Result<llcl_peer_info_t> {
    let (routes, port) = (context.routes(), context.port(peer)?);
    let own = peer == context.rank();
    if !own && routes.is_dead(peer) {
        fail!(ERR_PEER_DEAD, "rank {peer} has died or has left");
    }
    let outbox = routes.node().outbox(peer)?;
    Ok(llcl_peer_info_t {
        struct_size: size_of::<llcl_peer_info_t>() as u64,
        transport: if own { LLCL_TRANSPORT_LOOPBACK } else { LLCL_TRANSPORT_SHM },
        registered_access: match routes.transport(port).registered_access(port) {
            Access::Mapped => LLCL_ACCESS_MAPPED,
            Access::Kernel(_) => LLCL_ACCESS_KERNEL,
            Access::Message(_) => LLCL_ACCESS_MESSAGE,
        },
        process: port.process,
        am_payload: outbox.largest() as u32,
        am_medium: outbox.medium() as u32,
        kernel_error: routes.transport(port).kernel_refusal(port),
    })
}
