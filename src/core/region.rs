//! The regions of this rank.

use crate::core::blocking::Blocking;
use crate::core::deadline::Deadline;
use crate::core::poster::Poster;
use crate::core::recall::Recall;
use crate::core::region::aliases::Alias;
use crate::engine::command::ALL_PEERS;
use crate::engine::completion::in_callback;
use crate::engine::lane::Lane;
use crate::engine::messages::dispatch::Dispatcher;
use crate::engine::routes::Routes;
use crate::fail;
use crate::transport::address::{Address, DEVICE, Key};
use crate::transport::memory::segment::{Holders, Place, Refusal, Segment};
use crate::transport::waiters::Awaited;
use crate::util::backoff::Backoff;
use crate::util::config::Config;
use crate::util::memory::Mapping;
use crate::util::random::random;
use crate::util::status::{Error, Result, Status};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod aliases;
mod ends;

/// How long free() waits for transfers that a network has begun.
const TRANSFERS: Duration = Duration::from_secs(10);
/// How long free() waits for them inside a callback, where it delays other completions.
const BRIEF: Duration = Duration::from_millis(1);

/// A live region in the table. An index of the table is used by several regions in turn. Each use
/// is a *life*, whose number is part of the key.
#[derive(Clone, Copy, Debug)]
struct Live {
    place: Place,
    address: usize,
    size: usize,
}

#[derive(Default)]
struct Table {
    /// For each index, the number of its present or next life, and the live region if there is one.
    entries: Vec<(u32, Option<Live>)>,
    /// Free indices, the oldest first, so that a key is used again as late as possible.
    vacant: VecDeque<usize>,
    /// Mappings of freed regions that older operations may still use.
    retired: Vec<Mapping>,
    /// The requests to peers to unmap freed regions.
    recall: Recall,
    /// Further mappings of live regions.
    aliases: Vec<Alias>,
}

/// The table of a context's regions.
pub struct Regions {
    segment: Arc<Segment>,
    routes: Arc<Routes>,
    lane: Arc<Lane>,
    dispatcher: Arc<Dispatcher>,
    poster: Arc<Poster>,
    capacity: usize,
    spin: Duration,
    /// The number of the first life, which differs from context to context.
    first_life: u32,
    table: Mutex<Table>,
}

/// The memory and the use of a new region.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Its memory.
    pub memory: Memory,
    /// Whether atomics on its words are executed by network adapters and never by processors.
    pub device: bool,
}

impl Wanted {
    /// Fresh memory, mapped anywhere, on whose words processors execute atomics.
    pub const FRESH: Wanted = Wanted { memory: Memory::Fresh(std::ptr::null_mut()), device: false };
}

/// The memory that a region gets.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// Fresh zeroed memory that peers of the node map. Here it is mapped at this address, where
    /// nothing may be mapped yet; null: anywhere.
    Fresh(*mut u8),
    /// The caller's memory, from this address on.
    Own(*mut u8),
}

/// A new region, for the caller.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Its key.
    pub key: Key,
    /// Its first byte, here.
    pub address: *mut u8,
}

impl Table {
    /// The live region of a key.
    fn live(&self, key: Key, rank: u32) -> Result<Live> {
        let entry = self.entries.get(key.index());
        let entry = entry.filter(|(life, _)| Key::new(key.index(), rank, *life) == key);
        match entry.and_then(|(_, live)| *live) {
            Some(live) => Ok(live),
            None => fail!(ERR_STATE, "the region has been freed before"),
        }
    }
}

/// The bits of a life's number without DEVICE; also the number of the last life.
const LIVES: u32 = DEVICE - 1;

/// How long an allocation waits for peers to unmap freed regions.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the allocation sleeps between two looks: the death of a peer or the end of a contact
/// also ends the wait, and does not wake the thread.
const NAP: Duration = Duration::from_millis(1);

impl Regions {
    pub(super) fn new(
        segment: Arc<Segment>,
        routes: Arc<Routes>,
        lane: Arc<Lane>,
        dispatcher: Arc<Dispatcher>,
        poster: Arc<Poster>,
        config: &Config,
    ) -> Regions {
        let (capacity, spin) = (config.regions as usize, Duration::from_micros(config.spin_us));
        let first_life = random() as u32 % LIVES + 1;
        Regions {
            segment,
            routes,
            lane,
            dispatcher,
            poster,
            capacity,
            spin,
            first_life,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A region of `size` bytes.
    pub fn make(&self, wanted: Wanted, size: usize) -> Result<Made> {
        let Wanted { memory, device } = wanted;
        if device && self.routes.fabric().device_atomics() == 0 {
            fail!(
                ERR_UNSUPPORTED,
                "flags has LLCL_REGION_DEVICE_ATOMICS, and no network of this job has a \
                 compare-and-swap of 8 bytes in memory that it reaches; expected 0"
            );
        }
        match memory {
            Memory::Fresh(at) => self.allocate(size, at, device),
            Memory::Own(address) => self.register(address, size, device),
        }
    }

    /// A region of fresh memory. If the memory file may not get longer, it waits until peers have
    /// unmapped freed regions; inside a callback it returns RETRY_BUSY instead.
    fn allocate(&self, size: usize, at: *mut u8, device: bool) -> Result<Made> {
        let limit = Instant::now() + PATIENCE;
        loop {
            let Refusal { error, aside } = match self.allocate_now(size, at, device) {
                Ok(made) => return Ok(made),
                Err(refusal) => refusal,
            };
            if !aside {
                return Err(error);
            }
            if in_callback() {
                return Err(Error::bare(Status::RETRY_BUSY));
            }
            self.routes.gate().must_be_open()?;
            if Instant::now() > limit {
                return Err(self.too_late(&error));
            }
            self.wait_for_answers();
        }
    }

    fn allocate_now(
        &self,
        size: usize,
        at: *mut u8,
        device: bool,
    ) -> std::result::Result<Made, Refusal> {
        let mut table = self.table();
        let index = self.vacant(&mut table, device)?;
        if table.recall.news(&self.routes) {
            self.segment.reclaim(|held| table.recall.is_held(&self.routes, held));
        }
        let made = self.segment.allocate(size, at).and_then(|(place, mapping)| {
            let address = mapping.base();
            let made = self.begin(&mut table, index, place, size, address, Some(mapping));
            // No rank knows its key yet.
            let unused = |_: &Error| self.segment.give_back(place, size, Holders::default(), false);
            Ok(made.inspect_err(unused)?)
        });
        if self.segment.is_mostly_aside() || made.as_ref().is_err_and(|refusal| refusal.aside) {
            table.recall.ask(&self.routes, &self.lane, &self.segment.holders());
        }
        self.or_vacate(table, index, made)
    }

    /// Waits until a peer has answered, or for a limited time.
    fn wait_for_answers(&self) {
        let blocking = self.blocking();
        let mut backoff = Backoff::new(self.spin);
        let answered = || self.table().recall.has_answers();
        while !blocking.help_until(&mut backoff, &Deadline::new(None), answered) {
            if !backoff.pause() {
                blocking.sleep(Awaited::ANYTHING, Some(NAP), answered);
                return;
            }
        }
    }

    /// The error for a wait in which peers have not unmapped freed regions in time.
    fn too_late(&self, error: &Error) -> Error {
        let who = self.table().recall.silent();
        let who = who.map_or("its users".to_owned(), |peer| format!("rank {peer}"));
        let (time, why) = (PATIENCE.as_millis(), error.message());
        let text = format!(
            "{why}; freed memory cannot be used again, since {who} may still store there and has not \
             answered for {time} ms, expected it to run"
        );
        Error::new(Status::ERR_TIMEOUT, text)
    }

    /// Bytes that may still be allocated, as far as the kernel says.
    pub(super) fn memory_left(&self) -> u64 {
        self.segment.room()
    }

    /// A region of memory that the caller owns and keeps until the region is freed.
    fn register(&self, address: *mut u8, size: usize, device: bool) -> Result<Made> {
        if (address as usize).checked_add(size).is_none() {
            fail!(ERR_RANGE, "size is {size}, which from {address:?} leaves the address space");
        }
        let mut table = self.table();
        let index = self.vacant(&mut table, device)?;
        let made = self.begin(&mut table, index, Place::Own(address as u64), size, address, None);
        self.or_vacate(table, index, made)
    }

    /// Takes an index without a region. The number of its next life says whether the region is one
    /// for device atomics.
    fn vacant(&self, table: &mut Table, device: bool) -> Result<usize> {
        let index = match table.vacant.pop_front() {
            Some(index) => index,
            None => self.further(table)?,
        };
        let life = &mut table.entries[index].0;
        *life = *life & LIVES | if device { DEVICE } else { 0 };
        Ok(index)
    }

    fn further(&self, table: &mut Table) -> Result<usize> {
        if table.entries.len() == self.capacity {
            fail!(
                ERR_NO_MEMORY,
                "all {} regions of this context exist; see LLCL_REGIONS",
                self.capacity
            );
        }
        if table.entries.try_reserve(1).is_err() {
            fail!(ERR_NO_MEMORY, "no memory for more than {} regions", table.entries.len());
        }
        table.entries.push((self.first_life, None));
        Ok(table.entries.len() - 1)
    }

    fn or_vacate<E>(
        &self,
        mut table: MutexGuard<'_, Table>,
        index: usize,
        made: std::result::Result<Made, E>,
    ) -> std::result::Result<Made, E> {
        if made.is_err() {
            table.vacant.push_front(index);
        }
        made
    }

    fn begin(
        &self,
        table: &mut Table,
        index: usize,
        place: Place,
        size: usize,
        address: *mut u8,
        mapping: Option<Mapping>,
    ) -> Result<Made> {
        let (life, live) = &mut table.entries[index];
        let key = Key::new(index, self.routes.own().peer, *life);
        // These steps can fail, so they come before publish(): peers never find a region that does
        // not begin.
        self.routes.fabric().register(key.0, address, size)?;
        let word = self.segment.live(index);
        let make = || Ok((mapping, address, size as u64));
        // SAFETY: the segment outlives the ports. The bytes are those of the mapping, or the user
        // keeps them until the region is freed.
        let learned = unsafe { self.routes.own().learn(key, word, make) };
        if let Err(error) = learned {
            // No rank knows its key yet.
            let _ = self.routes.fabric().deregister(key.0, Duration::ZERO);
            return Err(error);
        }
        self.segment.publish(index, key.0, place, size as u64);
        *live = Some(Live { place, address: address as usize, size });
        Ok(Made { key, address })
    }

    fn blocking(&self) -> Blocking<'_> {
        let Regions { lane, dispatcher, poster, spin, .. } = self;
        Blocking { lane, dispatcher, poster, spin: *spin }
    }

    /// Whether a live region is memory that the caller registered.
    pub(super) fn is_registered(&self, key: Key) -> bool {
        let table = self.table();
        let live = table.entries.get(key.index()).and_then(|(_, live)| *live);
        matches!(live, Some(Live { place: Place::Own(_), .. }))
    }

    /// An error in a forked child, which must not take the lock of the table: another thread may
    /// have held it at the fork.
    pub fn must_be_own(&self) -> Result<()> {
        self.routes.gate().must_be_own()
    }

    /// Ends the region. From now on its key is refused, here and at every peer. It waits for the
    /// operations that use the region as their local side. Inside a callback, where waiting is not
    /// possible, it returns RETRY_BUSY if any operation is under way. Calls `on_end` if it has
    /// ended the region, also if a later step has failed. Callbacks that run before that still find
    /// the region's memory.
    pub fn free(&self, key: Key, on_end: impl FnOnce()) -> Result<()> {
        let waiting_allowed = !in_callback();
        let idle = || {
            !self.poster.has_parked()
                && self.dispatcher.is_idle()
                && self.lane.is_idle() == Some(true)
        };
        if !waiting_allowed && !idle() {
            return Err(Error::bare(Status::RETRY_BUSY));
        }
        let blocking = self.blocking();
        if waiting_allowed {
            // Parked requests look the region up when they are posted, so they are posted before it
            // ends.
            blocking.until_posted(ALL_PEERS);
        }
        let (index, place, size) = self.end_life(key)?;
        // After this no thread finds the region and none is in the middle of an access.
        let mapping = self.routes.own().forget(index);
        let mappings = mapping.into_iter().chain(self.take_aliases(key)).collect::<Vec<_>>();
        // A thread that posts directly uses the local memory that it has looked up while it has the
        // role, so the flush waits for the role.
        let end = if waiting_allowed { blocking.flush_with_role(ALL_PEERS) } else { Ok(()) };
        // From here on the network refuses operations of peers. If deregister() fails, they may
        // still arrive.
        let patience = if waiting_allowed { TRANSFERS } else { BRIEF };
        let end = end.and(self.routes.fabric().deregister(key.0, patience));
        // If a step above has failed, an operation may still store there, so the memory stays
        // mapped, also when the context has ended, and the range is not used again.
        if end.is_err() {
            std::mem::forget(mappings);
        } else if waiting_allowed {
            drop(mappings);
            self.table().retired.clear();
        } else {
            self.table().retired.extend(mappings);
        }
        self.segment.empty(place, size);
        if end.is_ok() {
            let (users, table) = (self.segment.users(index), self.table());
            let held = Holders { users, since: table.recall.next() };
            let is_held = table.recall.is_held(&self.routes, held);
            self.segment.give_back(place, size, held, is_held);
        }
        self.table().vacant.push_back(index);
        on_end();
        end
    }

    fn end_life(&self, key: Key) -> Result<(usize, Place, usize)> {
        let (index, mut table) = (key.index(), self.table());
        let Some((life, live)) = table.entries.get_mut(index) else {
            fail!(ERR_KEY, "key {:#x} names no region of this context", key.0);
        };
        let current = Key::new(index, self.routes.own().peer, *life) == key;
        let Some(ended) = live.take_if(|_| current) else {
            fail!(ERR_STATE, "the region has been freed before");
        };
        *life = (*life & LIVES) % LIVES + 1;
        self.segment.retract(index);
        Ok((index, ended.place, ended.size))
    }

    /// Whether a peer has looked the region up. The directory does not distinguish ranks that are a
    /// multiple of 256 apart.
    pub(super) fn is_used_by(&self, key: Key, peer: u32) -> bool {
        self.segment.is_used_by(key.index(), peer)
    }

    /// The address by which peers name a word of this process. Err: the word lies in several
    /// regions, so it has several addresses.
    pub(super) fn name_of(&self, word: usize) -> std::result::Result<Option<Address>, ()> {
        let table = self.table();
        let regions = table.entries.iter().enumerate().filter_map(|(index, (life, live))| {
            let live = (*live)?;
            let offset = word.checked_sub(live.address)?;
            let key = Key::new(index, self.routes.own().peer, *life).0;
            (offset < live.size).then_some(Address { offset: offset as u64, key })
        });
        let mut names = regions.chain(table.aliases.iter().filter_map(|alias| alias.name_of(word)));
        match (names.next(), names.next()) {
            (_, Some(_)) => Err(()),
            (name, None) => Ok(name),
        }
    }
}
