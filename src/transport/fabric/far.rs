//! This rank's knowledge of peers behind a wire. This rank does not map their control areas, from
//! which the layers above read when a peer is on the same node, so it gets the contents otherwise:
//!
//! | in the control area of a peer on the node | of a peer behind a wire |
//! |---|---|
//! | policy, number and size of its message slots | its card says them |
//! | its directory of regions | asked for at the first use of a key (`wire::imports`) |
//! | which numbers have handlers | unknown; the end of a message reports that there was none |
//! | its sleeping threads | the owner wakes them: it executes what is stored there |
//! | its names, by which the ranks of a team find each other's boards | `coll::agreement::far_sheets` sends their contents |

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
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Size of the part of a card that describes a rank's message slots: policy, number of slots,
/// `medium`.
pub(super) const NUMBERS: usize = 12;
/// Size of an answer that describes a region: base, length, abilities, and its remote key.
pub const IMPORT: usize = 56;
/// The abilities in such an answer: the wire reaches the region; the owner takes signals that come
/// with writes; it takes atomics, too. An owner whose wire has not got them does not set
/// the last two.
const REACHED: u64 = 1;
const SIGNALS: u64 = 2;
const ATOMICS: u64 = 4;

/// Encodes this part of this rank's card.
pub(super) fn numbers(own: &Sizes) -> [u8; NUMBERS] {
    let mut bytes = [0; NUMBERS];
    let numbers = [own.policy as u32, own.slots as u32, own.medium as u32];
    for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

/// Takes this part off the beginning of a peer's card.
pub(super) fn take_numbers(card: &mut Vec<u8>, peer: u32) -> Result<Sizes> {
    let sizes = card.split_first_chunk::<NUMBERS>().and_then(|(bytes, _)| {
        let number = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
        Sizes::of_far(number(0), number(4), number(8))
    });
    let Some(sizes) = sizes else {
        fail!(
            ERR_SYSTEM,
            "the card of rank {peer} has no valid numbers of message slots (policy, slots, size)"
        );
    };
    card.drain(..NUMBERS);
    Ok(sizes)
}

/// Size of a word in bytes.
const WORD: u64 = 8;

/// Stands for the control area of all these peers: no thread sleeps there, no sender waits for
/// credit, and every number has a handler (a message to a missing one ends with an error).
#[repr(C)]
struct Blank {
    waiters: Waiters,
    head: MessageHead,
}

/// The peers behind the wire, by rank.
pub(super) struct FarPeers {
    // Declared before `blank`, into which they point, so that they are dropped first.
    peers: Box<[OnceBox<MessageSender<'static>>]>,
    /// Known regions; for ranks of this node only those with LLCL_REGION_DEVICE_ATOMICS.
    imports: Box<[OnceBox<Mutex<Imports>>]>,
    /// How often a region was added to `imports` or removed.
    changes: AtomicU64,
    /// What each peer takes with writes, as its answers say: SIGNALS, ATOMICS.
    takes: Box<[AtomicU8]>,
    blank: Mapping,
    /// Questions for keys that the holder of the lane's role has not sent yet: peer and key.
    questions: Mutex<Vec<(u32, u64)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FarPeers {
    pub(super) fn new(size: u32) -> Result<FarPeers> {
        let peers = (0..size).map(|_| OnceBox::new()).collect();
        let imports = (0..size).map(|_| OnceBox::new()).collect();
        let takes = (0..size).map(|_| AtomicU8::new(0)).collect();
        let blank = Mapping::anonymous(size_of::<Blank>())?;
        let (changes, questions) = (AtomicU64::new(0), Mutex::default());
        let far = FarPeers { peers, imports, changes, takes, blank, questions };
        far.blank().head.set_all_handlers();
        Ok(far)
    }

    fn blank(&self) -> &'static Blank {
        // SAFETY: the mapping is large enough and aligned to pages, and zeros are a valid Blank. It
        // outlives all pointers to it: the peers here, and the ports (see Routes).
        unsafe { &*self.blank.base().cast::<Blank>() }
    }

    /// The known regions of a peer, if this rank has ever used one.
    fn imports(&self, peer: u32) -> Option<MutexGuard<'_, Imports>> {
        self.imports.get(peer as usize)?.get().map(lock)
    }

    /// Changes the known regions of a peer.
    fn change(&self, peer: u32, change: impl FnOnce(&mut Imports)) {
        if let Some(mut imports) = self.imports(peer) {
            change(&mut imports);
            // Release: pairs with find_far().
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether a peer has said that it takes signals with writes.
    pub(super) fn takes_signals(&self, peer: u32) -> bool {
        self.takes(peer, SIGNALS)
    }

    /// Whether a peer has said that it takes atomics with writes.
    pub(super) fn takes_atomics(&self, peer: u32) -> bool {
        self.takes(peer, ATOMICS)
    }

    fn takes(&self, peer: u32, what: u64) -> bool {
        // Relaxed: nothing else depends on it.
        let takes = self.takes.get(peer as usize).map(|takes| takes.load(Ordering::Relaxed));
        u64::from(takes.unwrap_or_default()) & what != 0
    }

    pub(super) fn sender(&self, peer: u32) -> Option<&MessageSender<'static>> {
        self.peers.get(peer as usize)?.get()
    }

    /// Makes the port to a peer to which the wire connects. One thread at a time calls it.
    pub(super) fn connect(&self, me: u32, peer: u32, process: u32, sizes: Sizes) -> Result<Port> {
        let Blank { waiters, head } = self.blank();
        let sender = MessageSender::over_wire(head, sizes, (me, peer));
        let imports = ImportTable::new()?;
        self.peers[peer as usize].get_or_init(|| Box::new(sender));
        // SAFETY: Routes drops its ports before the fabric, which owns `blank`.
        Ok(unsafe { Port::new(peer, process, waiters, imports) })
    }
}

/// The last result of [`Fabric::find_far`], so that posts to one region need no lock.
#[derive(Default)]
pub struct LastRegion {
    /// Peer, key, and `FarPeers::changes` before the look-up.
    at: (u32, u64, u64),
    import: Option<Import>,
}

/// Looks up remote addresses for posts, see [`Fabric::resolver`]. It holds the lock of the peer's
/// regions, so the caller must drop it before it calls locate().
pub struct Resolver<'a> {
    own: Option<&'a Memory>,
    imports: Option<MutexGuard<'a, Imports>>,
}

impl Resolver<'_> {
    /// The remote address and key of an operation for the wire, after locate() has answered Posted.
    /// None: this rank does not know the region any more, or the wire does not reach it.
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
    /// The number of the peer's process, from the node's part of its card.
    pub(super) fn process_of(card: &Card) -> u32 {
        let bytes = card.blob.first_chunk::<8>().copied();
        bytes.map_or(0, |bytes| u64::from_ne_bytes(bytes) as u32)
    }

    /// Transport::locate() for a peer behind the wire. RETRY_CONNECTING at the first use of a key:
    /// the holder of the lane's role then asks the owner for the region.
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
                // Release: publishes the question; pairs with take_news().
                self.news.store(true, Ordering::Release);
                self.own.control().bell().ring();
                Err(Error::bare(Status::RETRY_CONNECTING))
            }
            Found::Asked => Err(Error::bare(Status::RETRY_CONNECTING)),
        }
    }

    /// The address of a word in a region with LLCL_REGION_DEVICE_ATOMICS, in its owner's process.
    /// The owner may be any rank, also one of this node or this rank.
    pub fn locate_device(&self, port: &Port, word: Address) -> Result<u64> {
        if port.peer == self.me {
            self.shared(port).locate(port, word, WORD)?;
            return Ok(self.resolver(self.me).resolve(word).map_or(0, |(place, _)| place));
        }
        match self.locate_far(port, word, WORD) {
            Ok(Access::Posted(place)) => Ok(place),
            Ok(_) => fail!(
                ERR_UNSUPPORTED,
                "key {:#x} names a region with LLCL_REGION_DEVICE_ATOMICS, and this rank's network \
                 does not reach it",
                word.key
            ),
            // As in Transport::locate(), except that the owner's threads cannot execute it instead.
            Err(error) if error.status == Status::RETRY_CONNECTING && (self.in_callback)() => {
                fail!(
                    ERR_STATE,
                    "the first atomic on key {:#x}, of a region with LLCL_REGION_DEVICE_ATOMICS, \
                     comes from a callback; expected an earlier one outside of callbacks",
                    word.key
                )
            }
            Err(error) => Err(error),
        }
    }

    /// The remote address and key for the wire of bytes of a peer behind it. None: this rank does
    /// not know the region, or the wire does not reach it, or the bytes leave it. `last`: the
    /// caller's last look-up of this kind.
    #[inline(always)]
    pub fn find_far(
        &self,
        last: &mut LastRegion,
        (peer, address, size): (u32, Address, u64),
    ) -> Option<(u64, [u64; 4])> {
        // Acquire: pairs with change(). A region that changes meanwhile is refused by its owner.
        let now = (peer, address.key, self.far.changes.load(Ordering::Acquire));
        if last.at != now {
            let import = *self.far.imports(peer)?.known(address.key)?;
            *last = LastRegion { at: now, import: Some(import) };
        }
        let Import { base, length, wire } = last.import?;
        let fits = address.offset <= length && size <= length - address.offset;
        let key = wire.filter(|_| fits)?;
        Some((base + address.offset, key))
    }

    /// A look-up of the regions of a peer, or of this rank, for the operations of a batch.
    pub fn resolver(&self, peer: u32) -> Resolver<'_> {
        let own = self.remote().map(Endpoint::memory).filter(|_| peer == self.me);
        Resolver { own, imports: self.far.imports(peer) }
    }

    /// Takes the questions for keys that the caller, the holder of the lane's role, must send.
    pub fn take_questions(&self) -> Vec<(u32, u64)> {
        std::mem::take(&mut lock(&self.far.questions))
    }

    /// Whether a write that is posted to the wire may bring a signal to a peer of which a region is
    /// known: both ranks have the ability.
    pub fn has_signals(&self, peer: u32) -> bool {
        self.own_signals() && self.far.takes_signals(peer)
    }

    /// Whether this rank's wire has signals.
    pub(super) fn own_signals(&self) -> bool {
        self.remote().is_some_and(|wire| wire.memory().caps().has_signals())
    }

    /// Like has_signals(), for atomics, as writes of no bytes.
    pub fn has_atomics(&self, peer: u32) -> bool {
        self.own_atomics() && self.far.takes_atomics(peer)
    }

    /// Whether this rank's wire has such atomics.
    pub(super) fn own_atomics(&self) -> bool {
        self.remote().is_some_and(|wire| wire.memory().caps().has_atomics())
    }

    /// Answers a peer's question for a key: the bytes describe the region. ERR_KEY: no living
    /// region has the key.
    pub fn describe(&self, key: u64, asker: u32) -> Result<[u8; IMPORT]> {
        let entry = self.own.control().directory(Key(key).index());
        let found = entry.and_then(|entry| Some((entry, entry.snapshot(key)?)));
        let Some((entry, (_, base, length))) = found else {
            return Err(Error::bare(Status::ERR_KEY));
        };
        entry.add_user(asker);
        let wire = self.wire.as_ref().and_then(|wire| wire.memory().wire_key(key));
        // For a wire the base is the region's address in this process; else it is the base in the
        // directory, which this rank's lane understands.
        let (base, [a, b, c, d]) = wire.unwrap_or((base, [0; 4]));
        let abilities = [
            (wire.is_some(), REACHED),
            (self.own_signals(), SIGNALS),
            (self.own_atomics(), ATOMICS),
        ];
        let abilities = abilities.iter().filter(|(has, _)| *has).map(|(_, bit)| bit).sum();
        let words = [base, length, abilities, a, b, c, d];
        let mut bytes = [0; IMPORT];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(bytes)
    }

    /// Notes a peer's answer to the question for a key. False: the answer has a wrong size.
    pub fn learn(&self, peer: u32, key: u64, bytes: &[u8]) -> bool {
        let Ok::<[u8; IMPORT], _>(bytes) = bytes.try_into() else { return false };
        let word = |at: usize| bytes[8 * at..][..8].try_into().map_or(0, u64::from_ne_bytes);
        let wire = (word(2) & REACHED != 0).then(|| std::array::from_fn(|at| word(3 + at)));
        if let Some(takes) = self.far.takes.get(peer as usize) {
            takes.store(word(2) as u8, Ordering::Relaxed);
        }
        let import = Import { base: word(0), length: word(1), wire };
        self.far.change(peer, |imports| imports.answered(key, Some(import)));
        true
    }

    /// Notes that the question for a key has ended with an error.
    pub fn not_learned(&self, peer: u32, key: u64, status: Status) {
        self.far.change(peer, |imports| match status {
            Status::ERR_KEY => imports.answered(key, None),
            _ => imports.unanswered(key),
        });
    }

    /// Notes that a peer has refused an operation because of this key.
    pub fn forget(&self, peer: u32, key: u64) {
        self.far.change(peer, |imports| imports.forget(key));
    }
}
