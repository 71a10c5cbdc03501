//! What this rank keeps of peers that a wire leads to. Nothing of them is mapped: what the layers
//! above read of a neighbour in its memory stands here as far as a card has told it, or is asked
//! for.
//!
//! | of a neighbour, read in its memory | of a peer behind a wire |
//! |---|---|
//! | how it takes messages | on its card |
//! | its regions | asked for at the first use of a key (`wire::imports`) |
//! | whether a number has a handler | the end of the message tells |
//! | its sleeping threads | woken by their own rank, which executes what is stored there |
//! | its names, by which teams meet | not at all: `coll::agreement::far_sheets` sends what stands
//! there |

use super::Fabric;
use crate::bootstrap::Card;
use crate::fail;
use crate::transport::Access;
use crate::transport::address::{Address, Key};
use crate::transport::imports::ImportTable;
use crate::transport::memory::message_area::{MessageHead, Sizes};
use crate::transport::memory::message_sender::MessageSender;
use crate::transport::port::Port;
use crate::transport::waiters::Waiters;
use crate::transport::wire::endpoint::Endpoint;
use crate::transport::wire::imports::{Found, Import, Imports};
use crate::transport::wire::remote::Memory;
use crate::util::memory::Mapping;
use crate::util::status::{Error, Result, Status};
use once_cell::race::OnceBox;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a card by which peers know how its rank takes messages: policy, slots, `medium`.
pub(super) const NUMBERS: usize = 12;
/// Bytes of an answer that describes a region: where it begins, its length, whether the wire
/// reaches it, and the wire's key.
pub const IMPORT: usize = 56;

/// Those numbers of this rank.
pub(super) fn numbers(own: &Sizes) -> [u8; NUMBERS] {
    let mut bytes = [0; NUMBERS];
    let numbers = [own.policy as u32, own.slots as u32, own.medium as u32];
    for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

/// Takes them from the beginning of a card.
pub(super) fn take_numbers(card: &mut Vec<u8>, peer: u32) -> Result<Sizes> {
    let sizes = card.split_first_chunk::<NUMBERS>().and_then(|(bytes, _)| {
        let number = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
        Sizes::of_far(number(0), number(4), number(8))
    });
    let Some(sizes) = sizes else {
        fail!(ERR_SYSTEM, "card of rank {peer} says nothing that makes sense of its messages");
    };
    card.drain(..NUMBERS);
    Ok(sizes)
}

/// Bytes of a word.
const WORD: u64 = 8;

/// What stands for the words of all these peers in this rank's memory: nobody sleeps there, nobody
/// waits for credit, and every number has a handler (the end of a message tells if not).
#[repr(C)]
struct Blank {
    waiters: Waiters,
    head: MessageHead,
}

/// See the head of the file.
pub(super) struct FarPeers {
    // Declared before what they point into.
    peers: Box<[OnceBox<MessageSender<'static>>]>,
    /// Their regions; of neighbours those whose words adapters change.
    imports: Box<[OnceBox<Mutex<Imports>>]>,
    blank: Mapping,
    /// Questions that nobody has sent yet: of whom, and for which key.
    questions: Mutex<Vec<(u32, u64)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FarPeers {
    pub(super) fn new(size: u32) -> Result<FarPeers> {
        let peers = (0..size).map(|_| OnceBox::new()).collect();
        let imports = (0..size).map(|_| OnceBox::new()).collect();
        let blank = Mapping::anonymous(size_of::<Blank>())?;
        let far = FarPeers { peers, imports, blank, questions: Mutex::default() };
        far.blank().head.set_all_handlers();
        Ok(far)
    }

    fn blank(&self) -> &'static Blank {
        // SAFETY: the mapping has so many bytes, is aligned to pages, and zeroes are valid; it is
        // kept longer than what points into it: the peers here, and ports (see Routes).
        unsafe { &*self.blank.base().cast::<Blank>() }
    }

    /// What is known of a peer's regions, if it was ever asked.
    fn imports(&self, peer: u32) -> Option<MutexGuard<'_, Imports>> {
        self.imports.get(peer as usize)?.get().map(lock)
    }

    pub(super) fn sender(&self, peer: u32) -> Option<&MessageSender<'static>> {
        self.peers.get(peer as usize)?.get()
    }

    /// The path to a peer whose card the wire has been shown. Called once at a time.
    pub(super) fn connect(&self, me: u32, peer: u32, process: u32, sizes: Sizes) -> Result<Port> {
        let Blank { waiters, head } = self.blank();
        let sender = MessageSender::over_wire(head, sizes, (me, peer));
        let imports = ImportTable::new()?;
        self.peers[peer as usize].get_or_init(|| Box::new(sender));
        // SAFETY: the routes drop their ports before the fabric, which has this.
        Ok(unsafe { Port::new(peer, process, waiters, imports) })
    }
}

/// See Fabric::resolver(). Not kept across what looks a region up.
pub struct Resolver<'a> {
    own: Option<&'a Memory>,
    imports: Option<MutexGuard<'a, Imports>>,
}

impl Resolver<'_> {
    /// The peer's side of an operation as the wire needs it, after locate() has answered Posted;
    /// None: it is not known any more, or only its owner reaches it.
    pub fn resolve(&self, address: Address) -> Option<(u64, [u64; 4])> {
        if let Some(own) = self.own {
            let (base, key) = own.wire_key(address.key)?;
            return Some((base + address.offset, key));
        }
        let import = self.imports.as_ref()?.known(address.key)?;
        Some((import.base + address.offset, import.wire?))
    }
}

impl Fabric {
    /// The number of a process, from the node's part of a card, whose descriptor is closed unseen.
    pub(super) fn process_of(card: &Card) -> u32 {
        let bytes = card.blob.first_chunk::<8>().copied();
        bytes.map_or(0, |bytes| u64::from_ne_bytes(bytes) as u32)
    }

    /// As Transport::locate(), of a peer behind the wire. At the first use of a key
    /// RETRY_CONNECTING: the question is sent by whoever has the lane's role next.
    pub(super) fn locate_far(&self, port: &Port, address: Address, size: u64) -> Result<Access> {
        let (key, peer) = (Key(address.key), port.peer);
        if self.is_dead(peer) {
            fail!(ERR_PEER_DEAD, "rank {peer} has died or has left");
        }
        if address.key != 0 && key.owner() != peer {
            let owner = key.owner();
            fail!(ERR_KEY, "key {:#x} is of rank {owner}, expected one of peer {peer}", key.0);
        }
        let imports = self.far.imports.get(peer as usize).filter(|_| address.key != 0);
        let imports = imports.map(|place| place.get_or_init(Box::default));
        match imports.map_or(Found::Ended, |imports| lock(imports).look(key.0)) {
            Found::Living(import) => {
                address.check(size, import.length)?;
                let place = import.base + address.offset;
                Ok(if import.wire.is_some() {
                    Access::Posted(place)
                } else {
                    Access::Message(place)
                })
            }
            Found::Ended => fail!(ERR_KEY, "key {:#x} names no live region of rank {peer}", key.0),
            Found::Unknown => {
                lock(&self.far.questions).push((peer, key.0));
                // Release: the question stands there before; pairs with take_news().
                self.news.store(true, Ordering::Release);
                self.own.control().bell().ring();
                Err(Error::bare(Status::RETRY_CONNECTING))
            }
            Found::Asked => Err(Error::bare(Status::RETRY_CONNECTING)),
        }
    }

    /// Where a word lies, for its owner, that adapters change: of a peer behind the wire, of a
    /// neighbour, or of this rank.
    pub fn locate_device(&self, port: &Port, word: Address) -> Result<u64> {
        if port.peer == self.me {
            self.shared(port).locate(port, word, WORD)?;
            return Ok(self.resolver(self.me).resolve(word).map_or(0, |(place, _)| place));
        }
        match self.locate_far(port, word, WORD) {
            Ok(Access::Posted(place)) => Ok(place),
            Ok(_) => fail!(
                ERR_UNSUPPORTED,
                "key {:#x} names a region with LLCL_REGION_DEVICE_ATOMICS, and no network leads there",
                word.key
            ),
            // As in Transport::locate() below; only here nobody else can do it.
            Err(error) if error.status == Status::RETRY_CONNECTING && (self.in_callback)() => {
                fail!(
                    ERR_STATE,
                    "the first atomic on key {:#x}, of a region with LLCL_REGION_DEVICE_ATOMICS, comes \
                 from a callback, expected one outside before",
                    word.key
                )
            }
            Err(error) => Err(error),
        }
    }

    /// A look at the regions of a peer, or of this rank, as the wire knows them, for some
    /// operations.
    pub fn resolver(&self, peer: u32) -> Resolver<'_> {
        let own = self.remote().map(Endpoint::memory).filter(|_| peer == self.me);
        Resolver { own, imports: self.far.imports(peer) }
    }

    /// Questions that the caller, the holder of the lane's role, is to send.
    pub fn take_questions(&self) -> Vec<(u32, u64)> {
        std::mem::take(&mut lock(&self.far.questions))
    }

    /// Answers a question of a peer, in the way of an operation's bytes.
    pub fn describe(&self, key: u64, asker: u32) -> Result<[u8; IMPORT]> {
        let entry = self.own.control().directory(Key(key).index());
        let found = entry.and_then(|entry| Some((entry, entry.snapshot(key)?)));
        let Some((entry, (_, base, length))) = found else {
            return Err(Error::bare(Status::ERR_KEY));
        };
        entry.add_user(asker);
        let wire = self.wire.as_ref().and_then(|wire| wire.memory().wire_key(key));
        // What a wire reaches is named by its address here, a file's region by its place in it.
        let (base, [a, b, c, d]) = wire.unwrap_or((base, [0; 4]));
        let words = [base, length, wire.is_some().into(), a, b, c, d];
        let mut bytes = [0; IMPORT];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(bytes)
    }

    /// A peer has described a region. False: those are no such bytes.
    pub fn learn(&self, peer: u32, key: u64, bytes: &[u8]) -> bool {
        let Ok::<[u8; IMPORT], _>(bytes) = bytes.try_into() else { return false };
        let word = |at: usize| bytes[8 * at..][..8].try_into().map_or(0, u64::from_ne_bytes);
        let wire = (word(2) != 0).then(|| std::array::from_fn(|at| word(3 + at)));
        let import = Import { base: word(0), length: word(1), wire };
        if let Some(mut imports) = self.far.imports(peer) {
            imports.answered(key, Some(import));
        }
        true
    }

    /// The question for a key has ended, otherwise than by learn().
    pub fn not_learned(&self, peer: u32, key: u64, status: Status) {
        let Some(mut imports) = self.far.imports(peer) else { return };
        match status {
            Status::ERR_KEY => imports.answered(key, None),
            _ => imports.unanswered(key),
        }
    }

    /// A peer has refused an operation that named this key.
    pub fn forget(&self, peer: u32, key: u64) {
        if let Some(mut imports) = self.far.imports(peer) {
            imports.forget(key);
        }
    }
}
