//! The memory of this rank that the teams and plans of a context use. It consists of a few large
//! pieces, which are cut into blocks. A piece is a region that a peer maps once, so a plan needs
//! neither a region nor a mapping of its own.
//!
//! A rank that frees a plan does not wait for the others. It counts itself in the sessions of the
//! others as having left, and its own block is free when all others have done so; allocate() looks
//! for such blocks. Pieces stay until the context ends. Free memory is zeroed.

use crate::core::services::Services;
use crate::fail;
use crate::transport::address::{Address, Key};
use crate::util::memory::clear;
use crate::util::reserve;
use crate::util::status::Result;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

mod room;

use room::Room;

/// Bytes of the first piece; the size of each piece is a multiple of this.
const PIECE: u64 = 256 << 10;
/// Each piece is as large as all before it together, up to this limit. Memory that was never
/// touched takes address space only.
const LARGE_PIECE: u64 = 64 << 20;

/// The arena of a context; see the head of the file.
pub struct Arena {
    services: Arc<Services>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Bytes of all blocks, retired ones included.
    used: u64,
    pieces: Vec<Piece>,
    retired: Vec<Retired>,
}

struct Piece {
    key: Key,
    base: *mut u8,
    room: Room,
}

// SAFETY: the address of a region. The users of its blocks synchronise their accesses.
unsafe impl Send for Piece {}

/// A block of this rank's memory.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Its address for peers.
    pub place: Address,
    /// Its address in this process.
    pub address: *mut u8,
    /// Its length.
    pub bytes: u64,
    /// Bytes of the block's user in private memory, which count with the block.
    pub private: u64,
}

// SAFETY: as above.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// A block that is no longer used here, but that other ranks may still touch.
struct Retired {
    block: Block,
    /// The offset in the block of the word in which the other ranks count that they have left.
    left: u64,
    /// How many other ranks must leave.
    others: u32,
}

impl Retired {
    fn is_left(&self) -> bool {
        // SAFETY: an aligned word in the block, which every rank uses as an atomic.
        let word =
            unsafe { AtomicU32::from_ptr(self.block.address.add(self.left as usize).cast()) };
        // Acquire: pairs with count_left().
        word.load(Ordering::Acquire) >= self.others
    }
}

/// Counts that the calling rank no longer touches the block with this word.
pub fn count_left(word: &AtomicU32) {
    // Release: what the caller did happens before the block is used again.
    word.fetch_add(1, Ordering::Release);
}

impl Piece {
    fn take(&mut self, bytes: u64) -> Option<Block> {
        let offset = self.room.take(bytes)?;
        let place = Address { offset, key: self.key.0 };
        Some(Block { place, address: self.base.wrapping_add(offset as usize), bytes, private: 0 })
    }
}

impl Arena {
    /// An arena without pieces.
    pub fn new(services: Arc<Services>) -> Arena {
        Arena { services, state: Mutex::default() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The length of a block for so many bytes.
    pub fn rounded(bytes: u64) -> u64 {
        bytes.next_multiple_of(room::GRAIN)
    }

    /// Allocates zeroed memory within LLCL_COLL_MEMORY. `private`: bytes that the caller allocates
    /// elsewhere for the same object, which count as well.
    pub fn allocate(&self, bytes: u64, private: u64) -> Result<Block> {
        reserve::must_be_left()?;
        self.collect();
        let limit = self.services.config.coll_memory << 20;
        let mut state = self.state();
        let used = state.used;
        let bytes = Arena::rounded(bytes);
        let all = bytes.saturating_add(private);
        if all > limit.saturating_sub(used) {
            fail!(
                ERR_NO_MEMORY,
                "{all} bytes are needed and {used} of {limit} are in use; see LLCL_COLL_MEMORY"
            );
        }
        let found = state.pieces.iter_mut().find_map(|piece| piece.take(bytes));
        let block = match found {
            Some(block) => block,
            None => self.grow(&mut state, bytes)?,
        };
        state.used += all;
        Ok(Block { private, ..block })
    }

    /// Makes a new piece and takes a block of it.
    fn grow(&self, state: &mut State, bytes: u64) -> Result<Block> {
        let all = state.pieces.iter().map(|piece| piece.room.size()).sum::<u64>();
        let size = bytes.next_multiple_of(PIECE).max(all.clamp(PIECE, LARGE_PIECE));
        let made = self.services.allocate(size as usize)?;
        let mut piece = Piece { key: made.key, base: made.address, room: Room::new(size) };
        let block = piece.take(bytes);
        state.pieces.push(piece);
        match block {
            Some(block) => Ok(block),
            None => fail!(ERR_INTERNAL, "a piece of {size} bytes has no room for {bytes}"),
        }
    }

    /// Frees a block that no other rank touches.
    pub fn discard(&self, block: Block) {
        // SAFETY: the bytes of the block, which nobody else touches.
        unsafe { clear(block.address, block.bytes as usize) };
        let mut state = self.state();
        let owner = state.pieces.iter_mut().find(|piece| piece.key.0 == block.place.key);
        if let Some(piece) = owner {
            piece.room.give_back(block.place.offset, block.bytes);
        }
        state.used -= block.bytes + block.private;
    }

    /// Frees a block as soon as `others` other ranks have left it; each of them counts itself in
    /// the word at `left`, by count_left(). A rank that has died may not have done so, nor a rank
    /// that has received a failure of the plan; then the block stays until the context ends.
    pub fn retire(&self, block: Block, left: u64, others: u32) {
        self.state().retired.push(Retired { block, left, others });
        self.collect();
    }

    /// Frees the retired blocks that all other ranks have left.
    fn collect(&self) {
        let gone = {
            let mut state = self.state();
            let retired = std::mem::take(&mut state.retired);
            let (gone, kept) = retired.into_iter().partition::<Vec<_>, _>(Retired::is_left);
            state.retired = kept;
            gone
        };
        gone.into_iter().for_each(|retired| self.discard(retired.block));
    }
}
