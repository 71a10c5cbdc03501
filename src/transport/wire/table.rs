//! The structs of `llcl_wire.h` in Rust. The header documents the fields.

use super::{Command, Event, Key};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{MaybeUninit, offset_of};

/// `LLCL_WIRE_MAJOR`.
pub const MAJOR: u32 = 3;

/// `llcl_wire_t`.
#[repr(C)]
pub struct WireHandle {
    _private: [u8; 0],
}

/// `llcl_wire_lane_t`.
#[repr(C)]
pub struct LaneHandle {
    _private: [u8; 0],
}

/// `llcl_wire_caps_t`.
#[repr(C)]
#[derive(Default)]
pub struct CapsTable {
    pub struct_size: u64,
    pub read: u32,
    pub write: u32,
    pub frame: u32,
    two_sided: u32,
    ordered: u32,
    pub notice_bits: u32,
    remote_flag_ordered: u32,
    pub threads: u32,
    pub atomics: [u64; 2],
    pub atomics_with_cpu: u32,
    pub inline_most: u32,
    pieces_most: u32,
    pub needs_local_key: u32,
    pub frame_most: u32,
    pub card_bytes: u32,
    pub message_most: u64,
    bounce_below: u64,
    depth: u32,
    lanes: u32,
    pub can_fence: u32,
    has_fd: u32,
    pub shared_queue: u32,
    pub notice_words: u32,
}

/// `llcl_wire_host_t`.
#[repr(C)]
pub struct HostTable {
    pub struct_size: u64,
    pub host: *mut c_void,
    pub log: extern "C" fn(*mut c_void, c_int, *const c_char),
    pub config: extern "C" fn(*mut c_void, *const c_char) -> *const c_char,
    pub wake: Option<extern "C" fn(*mut c_void)>,
}

/// `llcl_wire_open_t`.
#[repr(C)]
pub struct OpenTable {
    pub struct_size: u64,
    pub rank: u32,
    pub size: u32,
    pub node: u32,
    pub reserved: u32,
    pub foreign: *const c_void,
}

/// `llcl_wire_armed_t`.
#[repr(C)]
#[derive(Default)]
pub struct ArmedTable {
    pub how: u32,
    pub fd: i32,
    pub after_ns: i64,
}

type Call<F> = Option<F>;
type Opening =
    unsafe extern "C" fn(*const HostTable, *const OpenTable, *mut *mut WireHandle) -> i32;
type Registering = unsafe extern "C" fn(*mut WireHandle, *mut c_void, u64, u32, *mut Key) -> i32;
type Posting =
    unsafe extern "C" fn(*mut LaneHandle, u32, u32, *const Command, u32, *mut i32) -> u32;

/// `llcl_wire_module_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Table {
    pub major: u32,
    reserved: u32,
    pub struct_size: u64,
    pub name: *const c_char,
    pub version: *const c_char,
    pub built_for: *const c_char,
    pub probe: Call<unsafe extern "C" fn(*const HostTable, *mut c_char, usize) -> i32>,
    pub open: Call<Opening>,
    pub close: Call<unsafe extern "C" fn(*mut WireHandle, i64) -> i32>,
    pub caps: Call<unsafe extern "C" fn(*mut WireHandle, *mut CapsTable) -> i32>,
    pub card: Call<unsafe extern "C" fn(*mut WireHandle, *mut c_void, usize) -> i32>,
    pub register: Call<Registering>,
    pub deregister: Call<unsafe extern "C" fn(*mut WireHandle, *const Key, i64) -> i32>,
    pub lane: Call<unsafe extern "C" fn(*mut WireHandle, u32, *mut *mut LaneHandle) -> i32>,
    pub connect: Call<unsafe extern "C" fn(*mut LaneHandle, u32, *const c_void, usize) -> i32>,
    pub post: Call<Posting>,
    pub poll: Call<unsafe extern "C" fn(*mut LaneHandle, *mut Event, u32) -> u32>,
    pub give_back: Call<unsafe extern "C" fn(*mut LaneHandle, u64)>,
    pub arm: Call<unsafe extern "C" fn(*mut LaneHandle, *mut ArmedTable) -> i32>,
    pub disarm: Call<unsafe extern "C" fn(*mut LaneHandle)>,
    pub fence: Call<unsafe extern "C" fn(*mut LaneHandle, u32) -> i32>,
    pub describe: Call<unsafe extern "C" fn(*mut WireHandle, *mut c_char, usize) -> i32>,
    pub launch: Call<unsafe extern "C" fn(*const HostTable, *mut u32, *mut u32) -> i32>,
    pub allgather: Call<unsafe extern "C" fn(*const c_void, usize, *mut c_void) -> i32>,
    pub abort: Call<unsafe extern "C" fn(i32)>,
    pub end: Call<unsafe extern "C" fn()>,
    pub answer: Call<unsafe extern "C" fn(*mut LaneHandle, u64, i32, u64)>,
}

/// `llcl_wire_module`.
pub type Symbol = unsafe extern "C" fn(u32, u64) -> *const Table;

/// The least size of a table: all fields before `describe`.
pub const NEEDED: usize = offset_of!(Table, describe);

impl Table {
    /// Copies the fields that this library knows from a table of `size` bytes. Fields beyond `size`
    /// are null.
    ///
    /// # Safety
    /// `table` has `size` bytes, at least [`NEEDED`].
    pub unsafe fn copied(table: *const Table, size: usize) -> Table {
        let mut copy = MaybeUninit::<Table>::zeroed();
        let size = size.min(size_of::<Table>());
        // SAFETY: the caller vouches for `size` bytes. Zeros are a valid table without functions.
        unsafe {
            table.cast::<u8>().copy_to_nonoverlapping(copy.as_mut_ptr().cast(), size);
            copy.assume_init()
        }
    }

    /// The name of the first mandatory function that is missing.
    pub fn missing(&self) -> Option<&'static str> {
        let there = [
            ("probe", self.probe.is_some()),
            ("open", self.open.is_some()),
            ("close", self.close.is_some()),
            ("caps", self.caps.is_some()),
            ("card", self.card.is_some()),
            ("lane", self.lane.is_some()),
            ("connect", self.connect.is_some()),
            ("post", self.post.is_some()),
            ("poll", self.poll.is_some()),
            ("give_back", self.give_back.is_some()),
            ("arm", self.arm.is_some()),
            ("disarm", self.disarm.is_some()),
            ("fence", self.fence.is_some()),
        ];
        there.into_iter().find(|(_, is_there)| !is_there).map(|(name, _)| name)
    }
}

/// A copy of a text of a module; "?" for null.
///
/// # Safety
/// A text that is not null is terminated and valid during the call.
pub unsafe fn text(text: *const c_char) -> String {
    match text.is_null() {
        true => "?".into(),
        // SAFETY: as the caller promises.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    }
}

impl Table {
    /// The name of the module.
    pub fn name(&self) -> String {
        // SAFETY: a module's strings are terminated and never freed.
        unsafe { text(self.name) }
    }
}
