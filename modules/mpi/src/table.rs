//! The structs of `llcl_wire.h`, field by field, where the fields are documented; and the functions
//! of a lane.

use crate::Wire;
use crate::lane::{MpiLane, Shared};
use std::ffi::{c_char, c_int, c_void};
use std::sync::MutexGuard;

/// `LLCL_WIRE_MAJOR`.
pub const MAJOR: u32 = 3;

/// Statuses of `llcl.h`.
pub struct Status;

impl Status {
    pub const OK: i32 = 0;
    pub const RETRY_QUEUE_FULL: i32 = 1;
    pub const ERR_INVALID: i32 = -1;
    pub const ERR_PEER_DEAD: i32 = -4;
    pub const ERR_UNSUPPORTED: i32 = -6;
    pub const ERR_SYSTEM: i32 = -7;
    pub const ERR_STATE: i32 = -8;
    pub const ERR_KEY: i32 = -10;
    pub const ERR_INTERNAL: i32 = -11;
}

/// The bytes by which a rank recognises a peer as one that uses this module: a name, the version of
/// the module's protocol, the rank.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Card([u8; 8]);

impl Card {
    /// The card of a rank.
    pub fn of(rank: u32) -> Card {
        let rank = rank.to_le_bytes();
        Card([b'M', b'P', b'I', 4, rank[0], rank[1], rank[2], rank[3]])
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Piece {
    pub address: *const c_void,
    pub size: u64,
    pub local: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Command {
    pub op: u8,
    pub atomic: u8,
    pub kind: u8,
    pub pieces: u8,
    pub flags: u32,
    pub tag: u64,
    pub remote: u64,
    pub wire: [u64; 4],
    pub size: u64,
    pub operand: u64,
    pub compare: u64,
    pub notice: u32,
    pub order: u32,
    pub piece: *const Piece,
    pub words: [u64; 4],
}

impl Command {
    pub const WRITE: u8 = 2;
    pub const NOTICE: u32 = 2;
    pub const WORDS: u32 = 16;
    pub const FETCH: u32 = 32;
}

/// Memory that was registered.
#[repr(C)]
pub struct Key {
    pub local: u64,
    pub wire: [u64; 4],
}

#[repr(C)]
pub struct Event {
    pub event: u32,
    pub peer: u32,
    pub status: i32,
    pub class: u32,
    pub tag: u64,
    pub fetched: u64,
    pub frame: u64,
    pub bytes: *const u8,
    pub size: u64,
    pub reserved: u64,
}

impl Event {
    pub const DONE: u32 = 1;
    pub const FRAME: u32 = 2;
    pub const NOTICE: u32 = 3;
    pub const CONNECTED: u32 = 4;
    pub const LOST: u32 = 5;
    pub const UNFENCEABLE: u32 = 7;
    pub const DEVICE: u32 = 8;
    pub const SERVED: u32 = 9;

    /// An event about a peer, with all other fields 0.
    pub fn about(event: u32, peer: u32) -> Event {
        Event {
            event,
            peer,
            status: 0,
            class: 0,
            tag: 0,
            fetched: 0,
            frame: 0,
            bytes: std::ptr::null(),
            size: 0,
            reserved: 0,
        }
    }
}

#[repr(C)]
#[derive(Default)]
pub struct Caps {
    pub struct_size: u64,
    pub read: u32,
    pub write: u32,
    pub frame: u32,
    pub two_sided: u32,
    pub ordered: u32,
    pub notice_bits: u32,
    pub remote_flag_ordered: u32,
    pub threads: u32,
    pub atomics: [u64; 2],
    pub atomics_with_cpu: u32,
    pub inline_most: u32,
    pub pieces_most: u32,
    pub needs_local_key: u32,
    pub frame_most: u32,
    pub card_bytes: u32,
    pub message_most: u64,
    pub bounce_below: u64,
    pub depth: u32,
    pub lanes: u32,
    pub can_fence: u32,
    pub has_fd: u32,
    pub shared_queue: u32,
    pub notice_words: u32,
}

#[repr(C)]
pub struct Host {
    pub struct_size: u64,
    pub host: *mut c_void,
    pub log: unsafe extern "C" fn(*mut c_void, c_int, *const c_char),
    pub config: unsafe extern "C" fn(*mut c_void, *const c_char) -> *const c_char,
    pub wake: Option<unsafe extern "C" fn(*mut c_void)>,
}

#[repr(C)]
pub struct Open {
    pub struct_size: u64,
    pub rank: u32,
    pub size: u32,
    pub node: u32,
    pub reserved: u32,
    pub foreign: *const c_void,
}

#[repr(C)]
pub struct Armed {
    pub how: u32,
    pub fd: i32,
    pub after_ns: i64,
}

const _: () = assert!(size_of::<Command>() == 128 && size_of::<Event>() == 64);

#[repr(C)]
pub struct Table {
    pub major: u32,
    pub reserved: u32,
    pub struct_size: u64,
    pub name: *const c_char,
    pub version: *const c_char,
    pub built_for: *const c_char,
    pub probe: unsafe extern "C" fn(*const Host, *mut c_char, usize) -> i32,
    pub open: unsafe extern "C" fn(*const Host, *const Open, *mut *mut Wire) -> i32,
    pub close: unsafe extern "C" fn(*mut Wire, i64) -> i32,
    pub caps: unsafe extern "C" fn(*mut Wire, *mut Caps) -> i32,
    pub card: unsafe extern "C" fn(*mut Wire, *mut c_void, usize) -> i32,
    pub register: unsafe extern "C" fn(*mut Wire, *mut c_void, u64, u32, *mut Key) -> i32,
    pub deregister: unsafe extern "C" fn(*mut Wire, *const Key, i64) -> i32,
    pub lane: unsafe extern "C" fn(*mut Wire, u32, *mut *const Shared) -> i32,
    pub connect: unsafe extern "C" fn(*const Shared, u32, *const c_void, usize) -> i32,
    pub post: unsafe extern "C" fn(*const Shared, u32, u32, *const Command, u32, *mut i32) -> u32,
    pub poll: unsafe extern "C" fn(*const Shared, *mut Event, u32) -> u32,
    pub give_back: unsafe extern "C" fn(*const Shared, u64),
    pub arm: unsafe extern "C" fn(*const Shared, *mut Armed) -> i32,
    pub disarm: unsafe extern "C" fn(*const Shared),
    pub fence: unsafe extern "C" fn(*const Shared, u32) -> i32,
    pub describe: unsafe extern "C" fn(*mut Wire, *mut c_char, usize) -> i32,
    pub launch: unsafe extern "C" fn(*const Host, *mut u32, *mut u32) -> i32,
    pub allgather: unsafe extern "C" fn(*const c_void, usize, *mut c_void) -> i32,
    pub abort: unsafe extern "C" fn(i32),
    pub end: unsafe extern "C" fn(),
    pub answer: unsafe extern "C" fn(*const Shared, u64, i32, u64),
}

// SAFETY: a table of constant texts and functions.
unsafe impl Sync for Table {}

/// Locks the lane of a wire: see [`Shared`].
///
/// # Safety
/// The lane is open.
unsafe fn lock<'a>(lane: *const Shared) -> MutexGuard<'a, MpiLane> {
    // SAFETY: as the caller promises.
    unsafe { &*lane }.lane()
}

// SAFETY, for all functions below: libllcl passes a lane that is open, and pointers as llcl_wire.h
// describes them.

pub unsafe extern "C" fn connect(
    lane: *const Shared,
    peer: u32,
    card: *const c_void,
    size: usize,
) -> i32 {
    if size != size_of::<Card>() {
        return Status::ERR_INVALID;
    }
    // SAFETY: see above.
    unsafe { lock(lane).connect(peer, card.cast::<Card>().read_unaligned()) }
}

pub unsafe extern "C" fn post(
    lane: *const Shared,
    peer: u32,
    class: u32,
    commands: *const Command,
    count: u32,
    stopped_by: *mut i32,
) -> u32 {
    // SAFETY: see above.
    unsafe {
        let commands = std::slice::from_raw_parts(commands, count as usize);
        let (taken, why) = lock(lane).post(peer, class, commands);
        stopped_by.write(why);
        taken
    }
}

pub unsafe extern "C" fn poll(lane: *const Shared, events: *mut Event, count: u32) -> u32 {
    // SAFETY: see above; libllcl's array holds initialised events.
    unsafe { lock(lane).poll(std::slice::from_raw_parts_mut(events, count as usize)) }
}

pub unsafe extern "C" fn give_back(lane: *const Shared, frame: u64) {
    // SAFETY: see above.
    unsafe { lock(lane).give_back(frame) };
}

pub unsafe extern "C" fn answer(lane: *const Shared, number: u64, status: i32, value: u64) {
    // SAFETY: see above.
    unsafe { lock(lane).answer(number, status, value) };
}

pub unsafe extern "C" fn arm(lane: *const Shared, armed: *mut Armed) -> i32 {
    // SAFETY: see above.
    unsafe { armed.write(lock(lane).arm()) };
    Status::OK
}

pub unsafe extern "C" fn disarm(_: *const Shared) {}

pub unsafe extern "C" fn fence(lane: *const Shared, peer: u32) -> i32 {
    // SAFETY: see above.
    unsafe { lock(lane).fence(peer) };
    Status::OK
}
