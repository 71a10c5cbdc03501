//! How the ranks of a plan map each other's sessions. Each rank sends the place of its block to all
//! others. A rank maps the blocks of those ranks that it knows, and reads their heads.

use crate::coll::agreement::Failure;
use crate::coll::nodes::Nodes;
use crate::coll::plan::compare::numbers;
use crate::coll::runner::binding::BINDING;
use crate::coll::runner::members::{EVERYBODY, Member, Members, Memory, Word};
use crate::coll::runner::put_receiver::Shadow;
use crate::coll::runner::session::Session;
use crate::coll::schedule::Space;
use crate::coll::team::Team;
use crate::core::services::Services;
use crate::engine::completion;
use crate::fail;
use crate::transport::Access;
use crate::transport::address::Address;
use crate::util::cores::Cores;
use crate::util::pin::{joins_global_fence, pin};
use crate::util::status::{Error, Result, Status};
use std::collections::BTreeSet;

/// The head of a rank's block. Other ranks read it to run steps that access the rank's memory.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct BlockHead {
    /// Whether threads of any rank may run its steps.
    pub shared: u32,
    /// Whether its progress thread must be rung when a queue finishes a round.
    pub notified: u16,
    /// Whether Send and Receive are bound: their offsets are then those of bindings in the block.
    pub bound: u16,
    /// How many copies of Scratch there are, used in turn: a power of two.
    pub turns: u64,
    /// For Send, Receive and Scratch: key (0: in this block), offset and length.
    pub memory: [[u64; 3]; 3],
    /// The word of the completion: kind (0: other ranks do not change it), key and offset.
    pub word: [u64; 3],
}

/// The offset of the session in a block.
pub const SESSION: u64 = 128;
const _: () = assert!(size_of::<BlockHead>() as u64 <= SESSION);

/// The number of words that each rank sends to all others: key, offset and bytes of its block, the
/// last one with the bit UNFENCED. If there are several nodes, the words of its Places follow.
/// Then, if the machine may have a core for each rank, the set of cores on which the calling thread
/// may run.
const NUMBERS: usize = 3;
/// Where a rank's memories lie, for networks: key, offset and length of Send, Receive and Scratch,
/// and the number of copies of Scratch. Length 0: a network must not write there, but it may bring
/// a signal with a write of no bytes to Scratch.
pub type Places = [u64; 10];
/// A bit of the last number: the process does not take part in fences of all processes.
const UNFENCED: u64 = 1 << 63;

/// The result of attach().
pub struct Attached {
    /// The ranks that this one knows.
    pub members: Members,
    /// Whether this node has more ranks than cores on which they may run.
    pub crowded: bool,
    /// Whether all processes of this node take part in fences of all processes.
    pub fenced: bool,
    /// Private memory in the place of sessions of ranks of other nodes.
    pub shadows: Vec<Shadow>,
}

/// Sends the place of this rank's block, or the reason why it has none, and opens the blocks of the
/// `known` ranks. If one rank fails, all fail. `own_memory`: Send and Receive, if only this rank
/// accesses them. `nodes`: the nodes of the ranks. `queues`: the number of this rank's queues.
/// `places`: its memories. Collective.
pub fn attach(
    team: &Team,
    block: Result<(Address, u64)>,
    known: &BTreeSet<usize>,
    own_memory: [Option<Memory>; 2],
    (nodes, queues, places): (Option<&Nodes>, usize, Places),
) -> std::result::Result<Attached, Failure> {
    let (place, bytes) = block.as_ref().map_or((Address { offset: 0, key: 0 }, 0), |own| *own);
    let unfenced = if joins_global_fence() { 0 } else { UNFENCED };
    let mine = [place.key, place.offset, bytes | unfenced];
    let cores = Cores::mine();
    // With more ranks than cores the ranks need not compare their sets of cores.
    let may_suffice = team.size() <= Cores::of_the_machine();
    let cores = if may_suffice { cores.words() } else { &[] };
    let places: &[u64] = if nodes.is_some() { &places } else { &[] };
    let numbers_end = NUMBERS + places.len();
    let card = mine.iter().chain(places).chain(cores).flat_map(|number| number.to_ne_bytes());
    let all = team.exchange_with_status(block.map(drop), &card.collect::<Vec<_>>())?;
    let number = |rank: usize, at: usize| {
        let bytes = all[rank][8 * at..].first_chunk();
        bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    };
    let is_near = |rank: usize| nodes.is_none_or(|nodes| nodes.share(rank, team.me));
    let mut shadows = Vec::new();
    let open = |rank: &usize| {
        if !is_near(*rank) {
            let mut shadow = Shadow::new(queues);
            let memory = remote(std::array::from_fn(|at| number(*rank, NUMBERS + at)));
            let member = shadow.member((*rank, team.peers[*rank]), queues, memory);
            shadows.push(shadow);
            return Ok(member);
        }
        let [key, offset, bytes] = [0, 1, 2].map(|at| number(*rank, at));
        open(team, *rank, Address { offset, key }, bytes & !UNFENCED)
    };
    let contacted = team.services.connect(known.iter().map(|rank| team.peers[*rank]));
    let members = contacted.and_then(|()| known.iter().map(open).collect::<Result<Vec<_>>>());
    team.agree(members.as_ref().map(|_| ()).map_err(Error::again))?;
    let near = || (0..team.size()).filter(|rank| is_near(*rank));
    let cores = near().fold(Cores::default(), |cores, rank| {
        if may_suffice { cores.with(&numbers(&all[rank][8 * numbers_end..])) } else { cores }
    });
    let fenced = near().all(|rank| number(rank, NUMBERS - 1) & UNFENCED == 0);
    // agree() has returned the error already.
    let inner = |error| Failure { error, everywhere: false };
    let mut members = members.map_err(inner)?;
    for member in members.iter_mut().filter(|member| member.rank == team.me) {
        let sides = member.memory.iter_mut().zip(own_memory);
        sides.for_each(|(memory, own)| *memory = own.unwrap_or(*memory));
    }
    let own = members.iter().find(|member| member.rank == team.me);
    let lost = || {
        Error::new(
            Status::ERR_INTERNAL,
            "the calling rank is not among the ranks that it knows".to_string(),
        )
    };
    let own = own.ok_or_else(|| inner(lost()))?;
    let members = Members::new(&members, *own, team.size());
    Ok(Attached { members, crowded: cores.count() < near().count(), fenced, shadows })
}

/// The memories of a rank of another node, without those whose end no address has.
fn remote(places: Places) -> [Memory; 3] {
    let (memories, turns) = (places.as_chunks::<3>().0, places[9]);
    std::array::from_fn(|at| {
        let [key, offset, length] = memories[at];
        let scratch = at == Space::Scratch as usize;
        let turns = if scratch { turns } else { 1 };
        let all = length.checked_next_multiple_of(64).and_then(|all| all.checked_mul(turns));
        let ends = all.is_some_and(|all| offset.checked_add(all).is_some());
        match u32::try_from(turns) {
            Ok(turns) if turns.is_power_of_two() && (length > 0 || scratch) && ends => {
                Memory::Remote(Address { key, offset }, length, turns)
            }
            _ => Memory::Far(u64::MAX),
        }
    })
}

/// Maps a rank's block, reads its head once and checks all numbers of the head.
fn open(team: &Team, rank: usize, place: Address, bytes: u64) -> Result<Member> {
    let (services, peer) = (&team.services, team.peers[rank]);
    map(services, peer, place, bytes)?;
    let found = {
        let _pinned = pin();
        services.routes.known(peer).and_then(|port| port.find(place, bytes))
    };
    let Some(base) = found.filter(|base| bytes > SESSION && (*base as usize).is_multiple_of(64))
    else {
        fail!(ERR_PEER_DEAD, "the session of rank {peer} is gone");
    };
    // SAFETY: the block begins with a head, in which any bytes are valid numbers. The peer keeps
    // the block until this rank has left.
    let card = unsafe { base.cast::<BlockHead>().read_volatile() };
    // SAFETY: the session follows, in the rest of the block.
    let session = unsafe { Session::open(base.add(SESSION as usize), (bytes - SESSION) as usize) };
    let (Some(session), Ok(turns)) = (session, u32::try_from(card.turns)) else {
        fail!(ERR_INTERNAL, "the block of rank {peer} holds no valid session");
    };
    if !turns.is_power_of_two() {
        fail!(
            ERR_INTERNAL,
            "rank {peer} has {turns} copies of its scratch memory, expected a power of two"
        );
    }
    let within = |offset: u64, length: u64, turns: u32| {
        let all = length.checked_next_multiple_of(64)?.checked_mul(turns.into())?;
        let fits = offset.checked_add(all)? <= bytes && offset.is_multiple_of(64);
        fits.then(|| base.wrapping_add(offset as usize))
    };
    let mut memory = [Memory::Plan(base, 0); 3];
    for (at, [key, offset, length]) in card.memory.into_iter().enumerate() {
        let scratch = at == Space::Scratch as usize;
        let bound = card.bound != 0 && !scratch;
        let turns = if scratch { turns } else { 1 };
        memory[at] = match (key, within(offset, if bound { BINDING } else { length }, turns)) {
            (0, Some(base)) if scratch => Memory::Turns(base, length, turns),
            (0, Some(base)) if bound => Memory::Bound(base.cast(), length),
            (0, Some(base)) => Memory::Plan(base, length),
            (0, None) => fail!(ERR_INTERNAL, "rank {peer} has memory outside its block"),
            _ => {
                let user = Address { key, offset };
                map(services, peer, user, length)?;
                Memory::User(user, length)
            }
        };
    }
    if rank != team.me {
        session.enter();
    }
    let address = Address { offset: place.offset + SESSION, ..place };
    // In larger teams a deliverer may not know a rank that the next step names.
    let (shared, notified) = (card.shared != 0 && team.size() <= EVERYBODY, card.notified != 0);
    let word = word(services, peer, card.word).filter(|_| shared);
    Ok(Member { rank, peer, session, address, memory, shared, notified, word })
}

/// The word of a rank's completion. If it cannot be mapped here, only the owner changes it.
fn word(services: &Services, peer: u32, [kind, key, offset]: [u64; 3]) -> Option<Word> {
    let kind =
        [completion::STORE, completion::ADD].into_iter().find(|known| kind == (*known).into())?;
    let place = Address { key, offset };
    map(services, peer, place, 8).ok().filter(|()| offset.is_multiple_of(8))?;
    Some(Word { kind, place })
}

fn map(services: &Services, peer: u32, place: Address, bytes: u64) -> Result<()> {
    let port = services.routes.port(peer)?;
    match services.routes.map(port, place, bytes)? {
        Access::Mapped => Ok(()),
        _ => fail!(ERR_UNSUPPORTED, "memory of rank {peer} is not mapped here"),
    }
}
