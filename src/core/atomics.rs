//! Remote atomics.

use crate::core::context::Context;
use crate::core::rma::Quick;
use crate::core::submit::Request;
use crate::engine::atomic::{self, kind, op};
use crate::engine::by_caller::{Local, check_word};
use crate::engine::by_device;
use crate::engine::command::{Command, Op};
use crate::engine::completion::{Completion, in_callback};
use crate::fail;
use crate::transport::Access;
use crate::transport::address::{Address, Key};
use crate::transport::port::Port;
use crate::util::pin::pin_if_known;
use crate::util::status::{Result, Status};
use std::sync::atomic::{AtomicU64, Ordering};

/// An atomic operation as the user describes it.
#[derive(Clone, Copy)]
pub struct Atomic {
    /// The owner of the word.
    pub peer: u32,
    /// The caller's flags.
    pub flags: u32,
    /// The address of the word.
    pub target: Address,
    /// The operation, as in the C interface.
    pub op: u32,
    /// The word's type, as in the C interface.
    pub kind: u32,
    /// The number that the operation applies to the word; for a compare-and-swap the new value.
    pub operand: u64,
    /// The value with which a compare-and-swap compares the word.
    pub compare: u64,
    /// Where the fetched value goes; may be null.
    pub result: *mut u8,
    /// Fires at the end.
    pub on_complete: Completion,
}

impl Atomic {
    /// Makes the request, if the operation exists and the type has it.
    ///
    /// # Safety
    /// As of Request::new(), for the place of the result and the completion.
    pub unsafe fn request(&self) -> Result<Request> {
        let (op, kind) = checked(self.op, self.kind)?;
        let width = atomic::width(kind).unwrap_or(8);
        if op == op::LOAD && self.result.is_null() {
            fail!(ERR_INVALID, "result is NULL, expected a place for what LLCL_OP_LOAD fetches");
        }
        if !(self.result as usize).is_multiple_of(width) {
            fail!(ERR_INVALID, "result is {:?}, expected {width}-byte alignment", self.result);
        }
        let mut command = Command::new(Op::ATOMIC, self.peer);
        command.code = op;
        command.kind = kind;
        command.remote = self.target;
        command.operand = self.operand;
        command.compare = self.compare;
        command.on_complete = self.on_complete;
        let local = Local::Pointer(self.result);
        // SAFETY: as the caller promises.
        Ok(unsafe { Request::new(command, local, false, self.flags) })
    }
}

/// Checks the numbers of the C interface and returns the engine's. An error: there is no such
/// number, or the type does not have the operation.
fn checked(op: u32, kind: u32) -> Result<(u8, u8)> {
    let small = |number: u32| u8::try_from(number).unwrap_or(0);
    let (op_, kind_) = (small(op), small(kind));
    if !(op::LOAD..=op::PROD).contains(&op_) {
        let op = atomic::op_name(op.into());
        fail!(ERR_INVALID, "op is {op}, expected one of LLCL_OP_LOAD to LLCL_OP_PROD");
    }
    if atomic::width(kind_).is_none() {
        let kind = atomic::type_name(kind.into());
        fail!(
            ERR_INVALID,
            "type is {kind}, expected one of integers, LLCL_TYPE_F32 or LLCL_TYPE_F64"
        );
    }
    if !atomic::supported(op_, kind_) {
        let (op, kind) = (atomic::op_name(op.into()), atomic::type_name(kind.into()));
        fail!(ERR_UNSUPPORTED, "op is {op}, type is {kind}, which does not have it");
    }
    Ok((op_, kind_))
}

impl Context {
    /// Executes an operation on a mapped u64, if the operation has a short path.
    ///
    /// # Safety
    /// The result's place is null or valid for writing 8 bytes.
    #[inline(always)]
    pub unsafe fn do_on_word(&self, peer: u64, atomic: &Atomic) -> Quick<'_> {
        let (target, result) = (atomic.target, atomic.result.cast());
        if atomic.kind != kind::U64.into() {
            return Quick::No;
        }
        // SAFETY: as the caller promises.
        unsafe {
            if atomic.op == op::ADD.into() {
                self.fetch_add_word(peer, target, atomic.operand, result)
            } else if atomic.op == op::COMPARE_SWAP.into() {
                let numbers = (atomic.compare, atomic.operand);
                self.compare_swap_word(peer, target, numbers, result)
            } else {
                Quick::No
            }
        }
    }

    /// Executes a fetch-add on a mapped u64.
    ///
    /// # Safety
    /// `result` is null or valid for writing 8 bytes.
    #[inline(always)]
    pub unsafe fn fetch_add_word(
        &self,
        peer: u64,
        target: Address,
        operand: u64,
        result: *mut u64,
    ) -> Quick<'_> {
        let change = |word: &AtomicU64| word.fetch_add(operand, Ordering::AcqRel);
        // SAFETY: as the caller promises.
        unsafe { self.change_word(peer, target, result, change) }
    }

    /// Executes a compare-and-swap on a mapped u64.
    ///
    /// # Safety
    /// `result` is null or valid for writing 8 bytes.
    #[inline(always)]
    pub unsafe fn compare_swap_word(
        &self,
        peer: u64,
        target: Address,
        (compare, desired): (u64, u64),
        result: *mut u64,
    ) -> Quick<'_> {
        let change = |word: &AtomicU64| {
            let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
            word.compare_exchange(compare, desired, success, failure).unwrap_or_else(|old| old)
        };
        // SAFETY: as the caller promises.
        unsafe { self.change_word(peer, target, result, change) }
    }

    #[inline(always)]
    unsafe fn change_word(
        &self,
        peer: u64,
        target: Address,
        result: *mut u64,
        change: impl FnOnce(&AtomicU64) -> u64,
    ) -> Quick<'_> {
        let Some(port) = self.quick.port(peer) else { return Quick::No };
        {
            let Some(_pinned) = pin_if_known() else { return Quick::No };
            let Some(place) = port.find_word(target) else { return Quick::No };
            if !(result as usize).is_multiple_of(8) {
                return Quick::No;
            }
            // SAFETY: found, aligned, and mapped while we are pinned; result as the caller
            // promises.
            unsafe {
                let old = change(AtomicU64::from_ptr(place.cast()));
                if !result.is_null() {
                    result.write(old);
                }
            }
        }
        if port.waiters().any_at(target) { Quick::Wake(port) } else { Quick::Done }
    }

    /// How an atomic operation on this word would be executed. None: the type does not have the
    /// operation.
    pub fn atomic_execution(
        &self,
        peer: u32,
        target: Address,
        op: u32,
        kind: u32,
    ) -> Result<Option<AtomicExecution>> {
        let port = self.port(peer)?;
        let (width, one) = match checked(op, kind) {
            Ok((op, kind)) => {
                (atomic::width(kind).unwrap_or(8), atomic::is_one_instruction(op, kind))
            }
            Err(error) if error.status == Status::ERR_UNSUPPORTED => return Ok(None),
            Err(error) => return Err(error),
        };
        if Key(target.key).is_device() {
            return self.device_execution(port, target, op, kind);
        }
        let look = || check_word(&self.routes, port, target, width as u64);
        let native = self.known_by(look)? == Access::Mapped;
        let domain = match peer == self.rank() {
            true if self.regions.is_registered(Key(target.key)) => Domain::Owner,
            false if !native => Domain::Owner,
            _ => Domain::Processor,
        };
        let cost = match native {
            true if one => Cost::Instruction,
            true => Cost::Loop,
            false => Cost::Messages,
        };
        Ok(Some(AtomicExecution { cost, domain }))
    }

    /// Repeats a look-up until the peer has answered. Inside a callback, where waiting is not
    /// possible, it looks up once.
    fn known_by<T>(&self, look: impl Fn() -> Result<T>) -> Result<T> {
        if in_callback() { look() } else { self.blocking().until_accepted(look) }
    }

    /// Like atomic_execution(), for a word that an adapter changes.
    fn device_execution(
        &self,
        port: &Port,
        target: Address,
        op: u32,
        kind: u32,
    ) -> Result<Option<AtomicExecution>> {
        let (op, kind) = checked(op, kind)?;
        match self.known_by(|| by_device::check(&self.routes, port, target, kind)) {
            Err(error) if error.status == Status::ERR_UNSUPPORTED => return Ok(None),
            checked => checked?,
        }
        let atomics = self.routes.fabric().device_atomics();
        let cost = match by_device::in_one(atomics, op, kind, 0) {
            Some(_) => Cost::Network,
            None => Cost::NetworkLoop,
        };
        Ok(Some(AtomicExecution { cost, domain: Domain::Device }))
    }
}

/// The cost of an atomic operation, numbered as in the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// One atomic instruction.
    Instruction = 1,
    /// A loop around one.
    Loop = 2,
    /// A request to the owner and its answer.
    Messages = 3,
    /// One command of a network.
    Network = 4,
    /// A loop around one.
    NetworkLoop = 5,
}

/// Which processors or devices change a word by atomics, numbered as in the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Any processor of the machine.
    Processor = 1,
    /// The owner's process, because the word is in registered memory.
    Owner = 2,
    /// The owner's network adapter.
    Device = 3,
}

/// How an atomic operation is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicExecution {
    pub cost: Cost,
    /// Which processor or adapter changes the word.
    pub domain: Domain,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        assert_eq!(checked(op::ADD.into(), kind::F64.into()).unwrap(), (op::ADD, kind::F64));
        let status = |op: u32, kind: u32| checked(op, kind).unwrap_err().status;
        assert_eq!(status(0, 1), Status::ERR_INVALID);
        assert_eq!(status(256 + 5, 1), Status::ERR_INVALID);
        assert_eq!(status(5, 0), Status::ERR_INVALID);
        assert_eq!(status(5, 11), Status::ERR_INVALID);
        assert_eq!(status(op::AND.into(), kind::F32.into()), Status::ERR_UNSUPPORTED);
    }
}
