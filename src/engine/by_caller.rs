//! Operations that the calling thread can do itself: on mapped memory by loads, stores and atomic
//! instructions, on registered memory by system calls that copy. Requesters and the executor use
//! these functions. The completer uses some of them to serve the requests of peers.

use crate::engine::atomic;
use crate::engine::by_device;
use crate::engine::command::{Command, Op};
use crate::engine::pieces::Piece;
use crate::engine::routes::Routes;
use crate::fail;
use crate::transport::address::{Address, Key};
use crate::transport::port::{Port, Reach};
use crate::transport::{Access, PAIRS, Pair};
use crate::util::pin::pin;
use crate::util::status::{Result, Status};
use std::sync::atomic::{AtomicU64, Ordering, fence};

mod local;

pub use local::Local;

/// Most tries of an operation. A try fails if another thread unmaps the region between the look-up
/// and the access.
const LOOKS: usize = 4;

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operation is done.
    Done,
    /// The owner must do it.
    NeedsOwner,
    /// A network must do it.
    NeedsPost,
    /// The data is written; the owner must change the signal word, or get the control message.
    SignalNeedsOwner,
}

/// Copies `size` bytes; the ranges may overlap. 8 bytes that are aligned on both sides are copied
/// by one load and one release store, so a thread may wait for such a word.
///
/// # Safety
/// Both ranges are valid for `size` bytes.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        if size == 8 && (from as usize | to as usize).is_multiple_of(8) {
            copy_word(from, to);
        } else {
            std::ptr::copy(from, to, size);
        }
    }
}

/// Copies an aligned word.
///
/// # Safety
/// Both addresses are aligned and valid for 8 bytes.
#[inline(always)]
pub unsafe fn copy_word(from: *const u8, to: *mut u8) {
    // SAFETY: as the caller promises; other threads and processes use such words atomically.
    let (from, to) =
        unsafe { (AtomicU64::from_ptr(from.cast_mut().cast()), AtomicU64::from_ptr(to.cast())) };
    // Acquire and Release: programs signal by such words that other memory is ready.
    to.store(from.load(Ordering::Acquire), Ordering::Release);
}

/// Executes a command as far as this thread can. After an error that is no retry status a part of
/// the bytes may have been copied. A read by the kernel checks the key after the copy, and a write
/// with signal copies the data before it changes the word.
///
/// # Safety
/// Memory that `local` names by a pointer or by the key ANY is valid for the bytes of the command;
/// a null pointer is valid for the result of an atomic operation.
pub unsafe fn attempt(routes: &Routes, command: &Command, local: Local) -> Result<Outcome> {
    let port = routes.port(command.peer)?;
    // SAFETY: as the caller promises.
    let transfer = |direction| unsafe { transfer(routes, port, command, local, direction) };
    match command.op {
        Op::READ => transfer(Direction::FromPeer),
        Op::WRITE => transfer(Direction::ToPeer),
        Op::WRITE_CONTROL => Ok(match transfer(Direction::ToPeer)? {
            Outcome::Done => Outcome::SignalNeedsOwner,
            other => other,
        }),
        Op::WRITE_SIGNAL => {
            // An invalid signal is refused before any data is copied.
            check_signal(routes, port, command.signal)?;
            match transfer(Direction::ToPeer)? {
                Outcome::Done => signal(routes, port, command),
                other => Ok(other),
            }
        }
        // SAFETY: as the caller promises.
        Op::ATOMIC => unsafe { atomic_operation(routes, port, command, local) },
        _ => fail!(ERR_INTERNAL, "a command of kind {:?} has no direct form", command.op),
    }
}

/// Like attempt(), for a command that was accepted. If the fabric has forgotten the remote key
/// since, the owner of the memory must execute the command, since the owner checks each key itself.
///
/// # Safety
/// As for attempt().
pub unsafe fn attempt_accepted(
    routes: &Routes,
    command: &Command,
    local: Local,
) -> Result<Outcome> {
    // SAFETY: as the caller promises.
    match unsafe { attempt(routes, command, local) } {
        // The owner does not execute device atomics. So a device atomic keeps its error, and the
        // executor retries it until the question for the key has been answered.
        Err(error)
            if error.status == Status::RETRY_CONNECTING
                && !(command.op == Op::ATOMIC && Key(command.remote.key).is_device()) =>
        {
            Ok(Outcome::NeedsOwner)
        }
        end => end,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    FromPeer,
    ToPeer,
}

/// A read or a write.
///
/// # Safety
/// As for attempt().
unsafe fn transfer(
    routes: &Routes,
    port: &Port,
    command: &Command,
    local: Local,
    direction: Direction,
) -> Result<Outcome> {
    let (remote, size) = (command.remote, command.size);
    for _ in 0..LOOKS {
        {
            let _pinned = pin();
            if let Some(theirs) = port.find(remote, size) {
                let ours = local.resolve(routes, size)?;
                // SAFETY: find() vouches for `size` bytes while we are pinned, and so does
                // resolve() for a region; the caller does for other local memory.
                unsafe {
                    match direction {
                        Direction::FromPeer => copy(theirs, ours, size as usize),
                        Direction::ToPeer => copy(ours, theirs, size as usize),
                    }
                }
                if direction == Direction::ToPeer {
                    port.waiters().touched(remote, size);
                }
                return Ok(Outcome::Done);
            }
        }
        match routes.transport(port).locate(port, remote, size)? {
            Access::Mapped => {}
            access @ (Access::Message(_) | Access::Posted(_)) => {
                // A wrong local address is an error of this call, not of the later request.
                let _pinned = pin();
                local.resolve(routes, size)?;
                return Ok(left_to_others(routes, access, command));
            }
            Access::Kernel(address) => {
                // SAFETY: as the caller promises.
                let copied =
                    unsafe { kernel_copy(routes, port, command, local, direction, address) };
                if matches!(&copied, Err(error) if error.status == Status::ERR_PEER_DEAD) {
                    // The kernel reports the death before the launcher does. All threads of this
                    // rank treat the peer as dead from now on.
                    routes.mark_dead(port.peer);
                }
                return copied;
            }
        }
    }
    vanished(port, remote)
}

/// The outcome of a read or a write whose memory this rank reaches so, if it copies nothing itself.
fn left_to_others(routes: &Routes, access: Access, command: &Command) -> Outcome {
    // A write of no bytes may bring a signal or a control message.
    let brings = match command.op {
        _ if command.size > 0 => true,
        Op::WRITE_SIGNAL => routes.fabric().has_signals(command.peer),
        op => op == Op::WRITE_CONTROL,
    };
    match access {
        Access::Posted(_) if brings => Outcome::NeedsPost,
        _ => Outcome::NeedsOwner,
    }
}

/// A read or a write by a system call. `theirs` is the address of the memory in the peer's process.
///
/// # Safety
/// As for attempt().
unsafe fn kernel_copy(
    routes: &Routes,
    port: &Port,
    command: &Command,
    local: Local,
    direction: Direction,
    theirs: u64,
) -> Result<Outcome> {
    let (transport, size) = (routes.transport(port), command.size as usize);
    let copied = {
        let _pinned = pin();
        let ours = local.resolve(routes, command.size)?;
        // SAFETY: resolve() vouches for a region's bytes while we are pinned; the caller does for
        // other local memory.
        unsafe {
            match direction {
                Direction::FromPeer => transport.kernel_read(port, &[Pair { ours, theirs, size }]),
                Direction::ToPeer => transport.kernel_write(port, &[Pair { ours, theirs, size }]),
            }
        }
    };
    match copied {
        // For instance, a sandbox refuses the system call of this direction only.
        Err(error) if error.status == Status::ERR_UNSUPPORTED => return Ok(Outcome::NeedsOwner),
        copied => copied?,
    }
    match direction {
        // The owner may have freed the region during the copy and reused its memory. If the key is
        // still valid after the copy, all bytes were the region's. The fence orders this check
        // after the copy.
        Direction::FromPeer => {
            fence(Ordering::SeqCst);
            transport.locate(port, command.remote, command.size)?;
        }
        // A write is not checked: the owner may see the last byte and free the region at once, and
        // the check would fail although all bytes were written.
        Direction::ToPeer => port.waiters().touched(command.remote, command.size),
    }
    Ok(Outcome::Done)
}

/// Copies the first pieces of the list by one system call: as many as the kernel can copy, at most
/// PAIRS. Returns their number. 0: the kernel cannot copy two or more, so the caller tries the
/// first piece alone.
///
/// # Safety
/// The local side of each piece is valid for its bytes.
pub unsafe fn attempt_pieces(
    routes: &Routes,
    peer: u32,
    is_read: bool,
    list: &[Piece],
) -> Result<usize> {
    let Some(port) = routes.known(peer) else { return Ok(0) };
    let transport = routes.transport(port);
    if list.len() < 2 || !matches!(transport.registered_access(port), Access::Kernel(_)) {
        return Ok(0);
    }
    let by_kernel = |piece: &Piece| match transport.locate(port, piece.remote, piece.size) {
        Ok(Access::Kernel(theirs)) => {
            Some(Pair { ours: piece.local, theirs, size: piece.size as usize })
        }
        _ => None,
    };
    let pairs = list.iter().take(PAIRS).map_while(by_kernel).collect::<Vec<_>>();
    if pairs.len() < 2 {
        return Ok(0);
    }
    // SAFETY: as the caller promises.
    let copied = unsafe {
        match is_read {
            true => transport.kernel_read(port, &pairs),
            false => transport.kernel_write(port, &pairs),
        }
    };
    match copied {
        Err(error) if error.status == Status::ERR_UNSUPPORTED => return Ok(0),
        Err(ref error) if error.status == Status::ERR_PEER_DEAD => routes.mark_dead(peer),
        _ => {}
    }
    copied?;
    let done = &list[..pairs.len()];
    if is_read {
        // As in kernel_copy(): a key that is still valid shows that all bytes were the region's.
        fence(Ordering::SeqCst);
        done.iter().try_for_each(|it| transport.locate(port, it.remote, it.size).map(drop))?;
    } else {
        done.iter().for_each(|it| port.waiters().touched(it.remote, it.size));
    }
    Ok(done.len())
}

fn vanished<T>(port: &Port, remote: Address) -> Result<T> {
    fail!(ERR_KEY, "key {:#x} names no live region of rank {}", remote.key, port.peer)
}

/// Changes the word of a signal, after the data.
fn signal(routes: &Routes, port: &Port, command: &Command) -> Result<Outcome> {
    // core::submit has translated the signal's code into that of an atomic operation.
    let word = Word { address: command.signal, op: command.code, kind: atomic::kind::U64 };
    let done = change(routes, port, word, command.operand, 0)?;
    Ok(done.map_or(Outcome::SignalNeedsOwner, |_| Outcome::Done))
}

/// An atomic operation.
///
/// # Safety
/// As for attempt().
unsafe fn atomic_operation(
    routes: &Routes,
    port: &Port,
    command: &Command,
    local: Local,
) -> Result<Outcome> {
    if Key(command.remote.key).is_device() {
        by_device::check(routes, port, command.remote, command.kind)?;
        let _pinned = pin();
        return local.resolve(routes, 0).map(|_| Outcome::NeedsPost);
    }
    let word = Word { address: command.remote, op: command.code, kind: command.kind };
    let Some(old) = change(routes, port, word, command.operand, command.compare)? else {
        let posted = port.reach == Reach::Wire && routes.fabric().has_atomics(port.peer);
        return Ok(if posted { Outcome::NeedsPost } else { Outcome::NeedsOwner });
    };
    let place = local.resolve(routes, 0)?;
    // SAFETY: as the caller promises.
    unsafe { atomic::deliver(place, command.kind, old) };
    Ok(Outcome::Done)
}

/// A word and the atomic operation on it.
#[derive(Clone, Copy)]
pub struct Word {
    /// Where it is.
    pub address: Address,
    /// The operation.
    pub op: u8,
    /// The word's type.
    pub kind: u8,
}

/// Refuses words of regions with device atomics, which processors must not change.
fn must_be_processors(address: Address) -> Result<()> {
    if Key(address.key).is_device() {
        fail!(
            ERR_UNSUPPORTED,
            "key {:#x} names a region with LLCL_REGION_DEVICE_ATOMICS, expected another region for \
             a signal",
            address.key
        );
    }
    Ok(())
}

/// Changes a word if it is mapped, and returns its old value. None: the owner must change it.
pub fn change(
    routes: &Routes,
    port: &Port,
    word: Word,
    operand: u64,
    compare: u64,
) -> Result<Option<u64>> {
    let width = atomic::width(word.kind).unwrap_or(8) as u64;
    must_be_processors(word.address)?;
    for _ in 0..LOOKS {
        {
            let _pinned = pin();
            if let Some(place) = port.find(word.address, width)
                && (place as u64 | word.address.offset).is_multiple_of(width)
            {
                // SAFETY: found, aligned, and mapped while we are pinned.
                let old = unsafe { atomic::apply(place, word.op, word.kind, operand, compare) };
                port.waiters().touched(word.address, width);
                return Ok(Some(old));
            }
        }
        if check_word(routes, port, word.address, width)? != Access::Mapped {
            return Ok(None);
        }
    }
    vanished(port, word.address)
}

/// The outcome that attempt() would have for a write with signal whose word only its owner can
/// change. Then only the holder of the lane's role may copy the data, and only if the in-flight
/// table has room for the signal's request. Without room the command is tried again later, which
/// would copy the data a second time. None: the command is another one, or has a word that this
/// rank can change.
pub fn outcome_if_owner_signals(routes: &Routes, command: &Command) -> Result<Option<Outcome>> {
    if command.op != Op::WRITE_SIGNAL {
        return Ok(None);
    }
    let port = routes.port(command.peer)?;
    let data = routes.locate(port, command.remote, command.size)?;
    Ok(match check_signal(routes, port, command.signal)? {
        Access::Mapped => None,
        _ => Some(left_to_others(routes, data, command)),
    })
}

/// check_word() for the word of a signal. The error says so, since the bytes have an address too.
pub fn check_signal(routes: &Routes, port: &Port, signal: Address) -> Result<Access> {
    check_word(routes, port, signal, 8).map_err(|error| error.of("signal:"))
}

/// How this rank accesses a word. Fails if there is none at the address, or if it is not aligned.
pub fn check_word(routes: &Routes, port: &Port, address: Address, width: u64) -> Result<Access> {
    must_be_processors(address)?;
    let access = routes.locate(port, address, width)?;
    let place = match access {
        Access::Kernel(place) | Access::Message(place) | Access::Posted(place) => place,
        Access::Mapped => {
            let _pinned = pin();
            port.find(address, width).map_or(0, |place| place as u64)
        }
    };
    if place % width != 0 || !address.offset.is_multiple_of(width) {
        let offset = address.offset;
        fail!(ERR_INVALID, "offset is {offset}, expected that of a word aligned to {width} bytes");
    }
    Ok(access)
}

/// Fails with the error with which attempt() would refuse a command. To be called before a command
/// is left to another thread.
pub fn check(routes: &Routes, command: &Command) -> Result<()> {
    let port = routes.port(command.peer)?;
    match command.op {
        Op::ATOMIC if Key(command.remote.key).is_device() => {
            by_device::check(routes, port, command.remote, command.kind)?;
        }
        Op::ATOMIC => {
            let width = atomic::width(command.kind).unwrap_or(8) as u64;
            check_word(routes, port, command.remote, width)?;
        }
        Op::READ | Op::WRITE | Op::WRITE_SIGNAL => {
            routes.locate(port, command.remote, command.size)?;
            if command.op == Op::WRITE_SIGNAL {
                check_signal(routes, port, command.signal)?;
            }
        }
        _ => {}
    }
    Ok(())
}
