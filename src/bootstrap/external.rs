//! A world whose ranks somebody else has started and numbered: MPI, PMI, or a start of the
//! program's own. An allgather of theirs brings them together, twice; from then on they have a hub
//! as under `llcl-run`, a thread of rank 0.

mod host;

use crate::fail;
use crate::util::machine::boot_id;
use crate::util::rendezvous::{Secret, connect, listen, secret, user};
use crate::util::socket::{self, Room};
use crate::util::status::{Error, Result, Status};
use host::Host;
pub(super) use host::Host as HubThread;
use std::os::fd::{AsFd, OwnedFd};

/// What the program hands over. `allgather` is called by the thread that joins only.
pub struct Handed<'a> {
    /// This process's number.
    pub rank: u32,
    /// How many ranks there are.
    pub size: u32,
    /// Fills the second argument with the first of every rank, in their order. 0: done.
    pub allgather: &'a dyn Fn(&[u8], &mut [u8]) -> i32,
    /// Ends the whole job; may be absent.
    pub abort: Option<Abort>,
    /// Each rank is a process of its own.
    pub processes: bool,
}

/// Ends the whole job with a code, as Bootstrap::abort() does.
pub type Abort = Box<dyn Fn(i32, u32) + Send + Sync>;

/// Bytes of the longer of the two rounds.
pub const ROUND: usize = CARD;

/// Bytes of the kernel's name for the time since this machine was started.
const MACHINE: usize = 36;

/// What each rank tells all others at first.
#[derive(Clone, Copy)]
struct Card {
    status: i32,
    rank: u32,
    size: u32,
    user: u32,
    machine: [u8; MACHINE],
    /// Where rank 0 listens, and what it wants to hear there.
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

/// A place in the world: the socket that leads to its hub, and at rank 0 the hub.
pub(super) fn join(handed: &Handed<'_>) -> Result<(OwnedFd, Option<Host>)> {
    let Handed { rank, size, .. } = *handed;
    let prepared = prepare(rank, size);
    let own = prepared.as_ref().map_or_else(|error| refused(error, rank, size), |it| it.1.encode());
    let cards = meet(handed, &own);
    // A rank's own reason says more than that it has one.
    let (listener, card) = prepared?;
    let first = compatible(&card, &cards?)?;
    let joined = match listener {
        Some(listener) => {
            Host::start(listener, first.secret, size).map(|(end, it)| (end, Some(it)))
        }
        None => enter(&first, rank).map(|end| (end, None)),
    };
    let status = joined.as_ref().map_or_else(|error| error.status, |_| Status::OK);
    let told = gather(handed, &status.0.to_ne_bytes())?;
    let joined = joined?;
    if let Some(at) = told.chunks_exact(4).position(|status| status != 0i32.to_ne_bytes()) {
        fail!(ERR_SYSTEM, "rank {at} has not reached rank 0, and says why; so nobody has a world");
    }
    Ok(joined)
}

/// Where rank 0 listens, and what this rank tells the others.
fn prepare(rank: u32, size: u32) -> Result<(Option<OwnedFd>, Card)> {
    let mut card = Card {
        status: Status::OK.0,
        rank,
        size,
        user: user(),
        machine: [0; MACHINE],
        name: secret()?,
        secret: secret()?,
    };
    // Where there is none, whether rank 0 can be reached tells enough.
    card.machine.iter_mut().zip(boot_id()).for_each(|(place, byte)| *place = byte);
    let listener = if rank == 0 { Some(listen(&card.name, size)?) } else { None };
    Ok((listener, card))
}

fn refused(error: &Error, rank: u32, size: u32) -> Vec<u8> {
    let (status, user) = (error.status.0, user());
    let (machine, name, secret) = ([0; MACHINE], Secret::default(), Secret::default());
    Card { status, rank, size, user, machine, name, secret }.encode()
}

/// The program's allgather.
fn gather(handed: &Handed<'_>, mine: &[u8]) -> Result<Vec<u8>> {
    let mut all = vec![0; mine.len() * handed.size as usize];
    match (handed.allgather)(mine, &mut all) {
        0 => Ok(all),
        code => fail!(ERR_SYSTEM, "bootstrap.allgather answered {code}, expected 0"),
    }
}

fn meet(handed: &Handed<'_>, card: &[u8]) -> Result<Vec<Card>> {
    Ok(gather(handed, card)?.chunks_exact(CARD).filter_map(Card::decode).collect())
}

/// The card of rank 0, if all ranks can be one world. All come to the same answer, but for its
/// words.
fn compatible(own: &Card, cards: &[Card]) -> Result<Card> {
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
            fail!(ERR_SYSTEM, "rank {at} cannot join, and so nobody can: {why}");
        }
        if card.machine != cards[0].machine {
            fail!(
                ERR_UNSUPPORTED,
                "ranks 0 and {at} are on different machines; this version connects those of one"
            );
        }
        if card.user != cards[0].user {
            let (user, first) = (card.user, cards[0].user);
            fail!(ERR_INVALID, "rank {at} runs as user {user}, expected {first} as rank 0 does");
        }
    }
    match cards.first() {
        Some(first) => Ok(*first),
        None => fail!(ERR_INVALID, "bootstrap.size is 0, expected at least 1"),
    }
}

/// Connects to the hub of rank 0, and names this rank.
fn enter(first: &Card, rank: u32) -> Result<OwnedFd> {
    let end = connect(&first.name).map_err(|error| {
        let text = format!("rank 0 cannot be reached, as in a container of its own: {error}");
        Error::new(error.status, text)
    })?;
    match socket::send(end.as_fd(), &host::hello(&first.secret, rank), None, Room::Wait) {
        Ok(()) => Ok(end),
        Err(error) => fail!(ERR_SYSTEM, "sending to rank 0: {error}"),
    }
}
