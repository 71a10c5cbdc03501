//! The local side of an operation.

use crate::engine::routes::Routes;
use crate::fail;
use crate::transport::address::{ANY, Address, Key};
use crate::util::pin::pin;
use crate::util::status::Result;

/// The local side of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Local {
    /// Memory that stays valid until the operation has ended.
    Pointer(*mut u8),
    /// An address in a region of this rank, which another thread may free at any moment; or, with
    /// the key ANY, any address of this process.
    Region(Address),
}

impl Local {
    /// Fails if there is no such memory now.
    pub fn check(self, routes: &Routes, size: u64) -> Result<()> {
        let _pinned = pin();
        self.resolve(routes, size).map(drop)
    }

    /// The address in this process. The caller stays pinned while it uses the address.
    pub fn resolve(self, routes: &Routes, size: u64) -> Result<*mut u8> {
        match (self.find(routes, size), self) {
            (Some(pointer), _) | (None, Local::Pointer(pointer)) => Ok(pointer),
            (None, Local::Region(address)) => missing(routes, address, size),
        }
    }

    /// Like resolve(), without the reason why there is no such address.
    #[inline(always)]
    pub fn find(self, routes: &Routes, size: u64) -> Option<*mut u8> {
        match self {
            Local::Pointer(pointer) => Some(pointer),
            Local::Region(address) => {
                routes.own().find_near(address, size).or_else(|| nowhere(address, size))
            }
        }
    }
}

/// The place of no bytes at NULL, which lies in no region.
#[cold]
fn nowhere(address: Address, size: u64) -> Option<*mut u8> {
    (address == Address::NOWHERE && size == 0).then(std::ptr::dangling_mut)
}

/// The error for a local address that was not found.
#[cold]
fn missing(routes: &Routes, address: Address, size: u64) -> Result<*mut u8> {
    if Key(address.key) == ANY {
        let from = address.offset;
        let most = u64::MAX - from;
        fail!(ERR_RANGE, "size is {size}, expected at most {most}: the bytes begin at {from:#x}");
    }
    match routes.own().length(Key(address.key)) {
        Some(length) => address.check(size, length).map_err(|error| error.of("local"))?,
        None if Key(address.key).owner() != routes.own().peer => {
            fail!(ERR_KEY, "local key {:#x} is no key of rank {}", address.key, routes.own().peer)
        }
        None => {}
    }
    fail!(ERR_KEY, "local key {:#x} names no live region of this context", address.key)
}
