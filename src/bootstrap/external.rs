//! A world whose ranks were started and numbered by another launcher: MPI, PMI, or the program
//! itself. The ranks find each other by an allgather of that launcher. From then on the ranks of
//! each machine have a hub as under `llcl-run`; it is a thread in the process of the lowest rank
//! there.
//!
//! | round of the allgather | what the ranks learn |
//! |---|---|
//! | 1 | each rank's machine and user, and where it listens |
//! | 2 | which hub each rank has reached |
//! | 3, one machine | whether each rank has made its context |
//! | 3, several machines | whether a wire can join them |
//! | 4, several machines | the context, and each rank's card, which the hubs keep for their ranks |
//!
//! Ranks are on one machine if they can pass a descriptor to each other. Ranks with the same boot
//! id (or the same number in `LLCL_NODE_ID`) try to reach the lowest of them, then the next. A rank
//! in a network namespace of its own reaches none, and so counts as a machine of its own.

mod host;

use crate::fail;
use crate::util::machine::{boot_id, chosen_node};
use crate::util::rendezvous::{Secret, connect, listen, secret, user};
use crate::util::socket::{self, Room, Wake};
use crate::util::status::{Error, Result, Status};
pub use host::{Carry, Relay};
pub(super) use host::{Host as HubThread, HubRequests, LEAVE_GRACE};
use host::{Host, hello};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// The program's allgather: fills the second argument with the first argument of every rank, in the
/// order of ranks. 0: done. Only the thread that joins calls it.
pub type Allgather<'a> = &'a dyn Fn(&[u8], &mut [u8]) -> i32;

/// The place that the program gives to the library.
pub struct Handed<'a> {
    /// This process's number.
    pub rank: u32,
    /// How many ranks there are.
    pub size: u32,
    /// The program's allgather.
    pub allgather: Allgather<'a>,
    /// Ends the whole job; may be absent.
    pub abort: Option<Abort>,
    /// Each rank is a process of its own.
    pub processes: bool,
    /// A number of the launcher's for the wire; 0: none.
    pub foreign: i64,
    /// Dropped last, when this rank has left the world.
    pub keep: Option<Box<dyn Send + Sync>>,
}

/// Ends the whole job with a code, as Bootstrap::abort() does.
pub type Abort = Box<dyn Fn(i32, u32) + Send + Sync>;

/// Bytes of a machine's name: the length of the kernel's boot id.
const MACHINE: usize = 36;

/// The data that each rank sends in the first round.
#[derive(Clone, Copy)]
struct Card {
    status: i32,
    rank: u32,
    size: u32,
    user: u32,
    machine: [u8; MACHINE],
    /// The name under which the rank listens, and the secret that a connection must send.
    name: Secret,
    secret: Secret,
}

const CARD: usize = 4 * 4 + MACHINE + 2 * size_of::<Secret>();

impl Card {
    fn encode(&self) -> Vec<u8> {
        let numbers = [self.status as u32, self.rank, self.size, self.user];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        bytes.extend_from_slice(&self.machine);
        bytes.extend_from_slice(&self.name);
        bytes.extend_from_slice(&self.secret);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Card> {
        let (numbers, rest) = bytes.split_first_chunk::<16>()?;
        let number = |at: usize| numbers[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
        let (machine, rest) = rest.split_first_chunk()?;
        let (name, rest) = rest.split_first_chunk()?;
        let (secret, _) = rest.split_first_chunk()?;
        let (machine, name, secret) = (*machine, *name, *secret);
        let (rank, size, user) = (number(4), number(8), number(12));
        Some(Card { status: number(0) as i32, rank, size, user, machine, name, secret })
    }
}

/// A place in the world.
pub(super) struct Place {
    /// The socket to the hub of this machine.
    pub end: OwnedFd,
    /// The hub, at the lowest rank of a machine.
    pub host: Option<Host>,
    pub hub_requests: Option<Arc<HubRequests>>,
    /// For each rank, the rank in whose process its hub runs; None: there is one machine.
    pub hubs: Option<Arc<[u32]>>,
}

/// Takes a place in the world. `ready` answers whether this rank can join; its argument says
/// whether the ranks run on several machines.
pub(super) fn join(handed: &Handed<'_>, ready: &dyn Fn(bool) -> Result<()>) -> Result<Place> {
    let Handed { rank, size, .. } = *handed;
    let prepared = ready(false).and_then(|()| prepare(rank, size));
    let own = match &prepared {
        Ok((_, card)) => card.encode(),
        Err(error) => refused(error, rank, size),
    };
    let cards = gather(handed.allgather, size, &own)?;
    // This rank's own error comes first: it says more than that a rank has failed.
    let (listener, card) = prepared?;
    let cards: Vec<Card> = cards.chunks_exact(CARD).filter_map(Card::decode).collect();
    compatible(&card, &cards)?;
    let joined = reach_hub(&cards, rank).and_then(|reached| match reached {
        Some((hub, end)) => Ok((hub, end, None)),
        None => Host::start(listener, card.secret, (rank, size))
            .map(|(end, host)| (rank, end, Some(host))),
    });
    let hub = joined.as_ref().map_or(rank, |it| it.0);
    let hubs = agree(handed, &joined, hub)?;
    let (_, end, host) = joined?;
    let hubs: Arc<[u32]> = hubs.into();
    if let Some(host) = &host {
        host.hub_requests().set_hubs(hubs.clone());
    }
    let hub_requests = host.as_ref().map(Host::hub_requests);
    if hubs.iter().all(|hub| *hub == hubs[0]) {
        return Ok(Place { end, host, hub_requests, hubs: None });
    }
    let wired = ready(true);
    agree(handed, &wired, hub)?;
    wired.map(|()| Place { end, host, hub_requests, hubs: Some(hubs) })
}

/// Tells the other ranks whether a step succeeded here, with a number. Returns the numbers of all
/// ranks; an error if the step succeeded here and failed at another rank.
fn agree<T>(handed: &Handed<'_>, step: &Result<T>, number: u32) -> Result<Vec<u32>> {
    let status = step.as_ref().map_or_else(|error| error.status, |_| Status::OK);
    let mine = [status.0.to_ne_bytes(), number.to_ne_bytes()].concat();
    let all = gather(handed.allgather, handed.size, &mine)?;
    let word = |at: usize| all[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
    let statuses = (0..handed.size as usize).map(|rank| word(8 * rank));
    all_join(statuses, step)?;
    Ok((0..handed.size as usize).map(|rank| word(8 * rank + 4)).collect())
}

/// An error if the step succeeded here and failed at another rank.
fn all_join<T>(mut statuses: impl Iterator<Item = u32>, step: &Result<T>) -> Result<()> {
    match statuses.position(|status| status != 0).filter(|_| step.is_ok()) {
        Some(rank) => {
            fail!(
                ERR_SYSTEM,
                "rank {rank} cannot join, so no rank can; its own error has the reason"
            )
        }
        None => Ok(()),
    }
}

/// The machine's name: the number in `LLCL_NODE_ID`, else the boot id.
fn machine(rank: u32, size: u32) -> Result<[u8; MACHINE]> {
    let mut name = [0; MACHINE];
    let bytes = match chosen_node(rank, size)? {
        Some(number) => format!("node {number}").into_bytes(),
        // Without a boot id the attempts to reach each other decide.
        None => boot_id(),
    };
    name.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    Ok(name)
}

/// Makes the socket on which this rank listens, and the card with its name.
fn prepare(rank: u32, size: u32) -> Result<(OwnedFd, Card)> {
    let card = Card {
        status: Status::OK.0,
        rank,
        size,
        user: user(),
        machine: machine(rank, size)?,
        name: secret()?,
        secret: secret()?,
    };
    Ok((listen(&card.name, size)?, card))
}

/// The first round of a rank that cannot join.
pub(super) fn refuse(handed: &Handed<'_>, error: &Error) {
    let own = refused(error, handed.rank, handed.size);
    // The caller has an error to report already.
    let _ = gather(handed.allgather, handed.size, &own);
}

fn refused(error: &Error, rank: u32, size: u32) -> Vec<u8> {
    let (status, user) = (error.status.0, user());
    let (machine, name, secret) = ([0; MACHINE], Secret::default(), Secret::default());
    Card { status, rank, size, user, machine, name, secret }.encode()
}

/// The bytes of all ranks.
fn gather(allgather: Allgather<'_>, size: u32, mine: &[u8]) -> Result<Vec<u8>> {
    let mut all = vec![0; mine.len() * size as usize];
    match allgather(mine, &mut all) {
        0 => Ok(all),
        code => fail!(ERR_SYSTEM, "bootstrap.allgather answered {code}, expected 0"),
    }
}

/// Whether all ranks can be one world. All ranks find the same status; the messages may differ.
fn compatible(own: &Card, cards: &[Card]) -> Result<()> {
    for (at, card) in (0..).zip(cards) {
        if card.rank != at || card.size != own.size {
            fail!(
                ERR_INVALID,
                "bootstrap.allgather brought rank {} of {} in the place of rank {at} of {}",
                card.rank,
                card.size,
                own.size
            );
        }
        if card.status != Status::OK.0 {
            let why = Status(card.status).text().trim_end_matches('\0');
            fail!(ERR_SYSTEM, "rank {at} cannot join, so no rank can: {why}");
        }
        let neighbour = cards.iter().find(|other| other.machine == card.machine);
        if let Some(first) = neighbour.filter(|first| first.user != card.user) {
            let (user, rank, expected) = (card.user, first.rank, first.user);
            fail!(
                ERR_INVALID,
                "rank {at} runs as user {user}, expected {expected} as rank {rank} does"
            );
        }
    }
    if cards.is_empty() {
        fail!(ERR_INVALID, "bootstrap.size is 0, expected at least 1");
    }
    Ok(())
}

/// Connects to the lowest rank of this machine that can be reached, and sends it this rank's
/// number. None: this rank is the lowest.
fn reach_hub(cards: &[Card], rank: u32) -> Result<Option<(u32, OwnedFd)>> {
    let own = &cards[rank as usize];
    for card in cards[..rank as usize].iter().filter(|card| card.machine == own.machine) {
        let Some(end) = connect(&card.name)? else { continue };
        // A descriptor that passes here shows that others will pass, too.
        let probe = Wake::new()?;
        let hello = hello(&card.secret, rank);
        return match socket::send(end.as_fd(), &hello, Some(probe.as_fd()), Room::Wait) {
            Ok(()) => Ok(Some((card.rank, end))),
            Err(error) => fail!(ERR_SYSTEM, "sending to rank {}: {error}", card.rank),
        };
    }
    Ok(None)
}

/// The last round of one machine: an error if a rank has failed to make what it needs.
pub(super) fn all_have<T>(handed: &Handed<'_>, made: &Result<T>) -> Result<()> {
    agree(handed, made, 0).map(drop)
}

/// The last round of several machines: gathers the cards of all ranks, of which this rank's is
/// `own`. An error: this rank or another one cannot join.
pub(super) fn gather_cards<T>(
    handed: &Handed<'_>,
    own: &[u8],
    made: &Result<T>,
) -> Result<Vec<Vec<u8>>> {
    const BLOB: usize = super::MAX_BLOB;
    let status = made.as_ref().map_or_else(|error| error.status, |_| Status::OK);
    let mut mine = [status.0.to_ne_bytes(), (own.len() as u32).to_ne_bytes()].concat();
    mine.extend(own);
    mine.resize(8 + BLOB, 0);
    let all = gather(handed.allgather, handed.size, &mine)?;
    let word = |bytes: &[u8], at| bytes[at..at + 4].try_into().map_or(0, u32::from_ne_bytes);
    let ranks = all.chunks_exact(8 + BLOB);
    all_join(ranks.clone().map(|bytes| word(bytes, 0)), made)?;
    let card = |bytes: &[u8]| bytes[8..].iter().take(word(bytes, 4) as usize).copied().collect();
    Ok(ranks.map(card).collect())
}
