//! The memory that teams and plans of a context take from this rank: few large pieces, each a
//! region that a peer maps once, cut into blocks. So a plan costs neither a region nor a mapping of
//! its own.
//!
//! A rank that ends a plan does not wait for the others. It says in its session that it has left;
//! its block is used again when all others have said so too, which is looked for whenever memory is
//! asked for. Pieces stay until the context ends. Free memory reads as zero.

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

/// Bytes of the first piece, and what the size of each is a multiple of.
const PIECE: u64 = 256 << 10;
/// A piece is as large as all before it together, up to this. What nobody has touched costs address
/// space only.
const LARGE_PIECE: u64 = 64 << 20;

/// See the head of the file.
pub struct Arena {
    services: Arc<Services>,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
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

// SAFETY: a region's address; what is done there is synchronised by the users of its blocks.
unsafe impl Send for Piece {}

/// Some of this rank's memory.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// As peers name it.
    pub place: Address,
    /// Its first byte, here.
    pub address: *mut u8,
    /// How many there are.
    pub bytes: u64,
    /// Private memory of its user that counts with it.
    private: u64,
}

// SAFETY: as above.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// A block that other ranks may still touch.
struct Retired {
    block: Block,
    /// Where in it the others count that they have left.
    left: u64,
    /// How many there are.
    others: u32,
}

impl Retired {
    fn is_left(&self) -> bool {
        // SAFETY: a word in the block, aligned and atomic wherever it is used.
        let word =
            unsafe { AtomicU32::from_ptr(self.block.address.add(self.left as usize).cast()) };
        // Acquire: pairs with count_left().
        word.load(Ordering::Acquire) >= self.others
    }
}

/// The caller touches the block with this word no more.
pub fn count_left(word: &AtomicU32) {
    // Release: what the caller did before happens before the block is used again.
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
    /// Nothing is taken yet.
    pub fn new(services: Arc<Services>) -> Arena {
        Arena { services, books: Mutex::default() }
    }

    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a block of so many bytes takes.
    pub fn rounded(bytes: u64) -> u64 {
        bytes.next_multiple_of(room::GRAIN)
    }

    /// A block of zeroed memory, within the limit of the configuration, where `private` bytes that
    /// the caller takes elsewhere for the same purpose count as well.
    pub fn allocate(&self, bytes: u64, private: u64) -> Result<Block> {
        reserve::must_be_left()?;
        self.collect();
        let limit = self.services.config.coll_memory << 20;
        let mut books = self.books();
        let used = books.used;
        let bytes = Arena::rounded(bytes);
        let all = bytes.saturating_add(private);
        if all > limit.saturating_sub(used) {
            fail!(
                ERR_NO_MEMORY,
                "{all} bytes are needed and {used} of {limit} are in use; see LLCL_COLL_MEMORY"
            );
        }
        let found = books.pieces.iter_mut().find_map(|piece| piece.take(bytes));
        let block = match found {
            Some(block) => block,
            None => self.grow(&mut books, bytes)?,
        };
        books.used += all;
        Ok(Block { private, ..block })
    }

    /// A block of a new piece.
    fn grow(&self, books: &mut Books, bytes: u64) -> Result<Block> {
        let all = books.pieces.iter().map(|piece| piece.room.size()).sum::<u64>();
        let size = bytes.next_multiple_of(PIECE).max(all.clamp(PIECE, LARGE_PIECE));
        let made = self.services.allocate(size as usize)?;
        let mut piece = Piece { key: made.key, base: made.address, room: Room::new(size) };
        let block = piece.take(bytes);
        books.pieces.push(piece);
        match block {
            Some(block) => Ok(block),
            None => fail!(ERR_INTERNAL, "a piece of {size} bytes has no room for {bytes}"),
        }
    }

    /// Gives memory back that no other rank touches.
    pub fn discard(&self, block: Block) {
        // SAFETY: the block's own bytes, which nobody else touches.
        unsafe { clear(block.address, block.bytes as usize) };
        let mut books = self.books();
        let owner = books.pieces.iter_mut().find(|piece| piece.key.0 == block.place.key);
        if let Some(piece) = owner {
            piece.room.give_back(block.place.offset, block.bytes);
        }
        books.used -= block.bytes + block.private;
    }

    /// Gives memory back when so many other ranks have left it: each counts itself in the word at
    /// `left`, see count_left(). A rank that died may not have done so; then the block stays until
    /// the context ends.
    pub fn retire(&self, block: Block, left: u64, others: u32) {
        self.books().retired.push(Retired { block, left, others });
        self.collect();
    }

    /// Gives back what nobody can touch any more.
    fn collect(&self) {
        let gone = {
            let mut books = self.books();
            let retired = std::mem::take(&mut books.retired);
            let (gone, kept) = retired.into_iter().partition::<Vec<_>, _>(Retired::is_left);
            books.retired = kept;
            gone
        };
        gone.into_iter().for_each(|retired| self.discard(retired.block));
    }
}
