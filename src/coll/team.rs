//! Teams: which ranks take part in collectives, and in what order. To make a Team contacts no other
//! rank; the first exchange does.

use crate::coll::agreement::{Board, Failure, Gathered, Group};
use crate::coll::arena::Arena;
use crate::coll::choices::Choices;
use crate::coll::runner::queue::RANKS;
use crate::core::services::Services;
use crate::fail;
use crate::util::status::{Result, Status};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An ordered list of ranks of the world.
pub struct Team {
    /// The services of the context.
    pub services: Arc<Services>,
    /// The arena of the context.
    pub arena: Arc<Arena>,
    /// The user's choices of algorithms.
    pub choices: Arc<Choices>,
    /// World ranks, by team rank.
    pub peers: Arc<[u32]>,
    /// This rank's number in the team.
    pub me: usize,
    board: Mutex<Board>,
}

/// How a team or plan was made, which is a part of its name.
#[derive(Clone, Copy)]
enum Origin {
    World,
    Split,
    Create,
    Plan,
}

impl Team {
    /// The team of all ranks.
    pub fn world(
        services: Arc<Services>,
        arena: Arc<Arena>,
        choices: Arc<Choices>,
    ) -> Result<Team> {
        let size = services.routes.size();
        if size as usize > RANKS {
            fail!(ERR_UNSUPPORTED, "the world has {size} ranks, a team at most {RANKS}");
        }
        let me = services.rank() as usize;
        let group = Group::new((0..size).collect(), me, name(Origin::World, &[]));
        let board = Board::new(&services, &arena, group)?;
        Ok(Team::with(services, arena, choices, board))
    }

    fn with(
        services: Arc<Services>,
        arena: Arc<Arena>,
        choices: Arc<Choices>,
        board: Board,
    ) -> Team {
        let (peers, me) = (board.group().peers.clone(), board.group().me);
        Team { services, arena, choices, peers, me, board: Mutex::new(board) }
    }

    /// Makes a team of `ranks`, world ranks in this order. Collective over them; other ranks take
    /// no part. `number`: how many teams were made of this list before.
    pub fn create(
        services: Arc<Services>,
        arena: Arc<Arena>,
        choices: Arc<Choices>,
        ranks: &[u32],
        number: u64,
    ) -> Result<Team> {
        let me = check_list(&services, ranks)?;
        let words = std::iter::once(number).chain(ranks.iter().map(|rank| u64::from(*rank)));
        let name = name(Origin::Create, &words.collect::<Vec<_>>());
        let group = || Group::new(ranks.into(), me, name);
        let mut board = match Board::new(&services, &arena, group()) {
            Ok(board) => board,
            Err(error) => {
                Board::refuse(&services, &group(), error.status)?;
                return Err(error);
            }
        };
        match board.exchange(&services, Status::OK, &[]) {
            Ok(_) => Ok(Team::with(services, arena, choices, board)),
            Err(failure) => {
                // Other ranks may still write on the board or read it.
                board.leave(&services, &arena);
                Err(failure.error)
            }
        }
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.peers.len()
    }

    /// The team rank of a world rank.
    pub fn find(&self, peer: u32) -> Option<usize> {
        // In the team of all ranks both numbers are equal, so the search is short.
        match self.peers.get(peer as usize) {
            Some(same) if *same == peer => Some(peer as usize),
            _ => self.peers.iter().position(|other| *other == peer),
        }
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gathers `mine` of every rank, in the order of ranks. Collective.
    pub fn exchange(&self, mine: &[u8]) -> Result<Gathered> {
        Ok(self.exchange_with_status(Ok(()), mine)?)
    }

    /// Like `exchange`, for data too large to be kept as a whole. It calls `take` for one part
    /// after the other, with the offset of the part. Collective.
    pub fn exchange_parts(&self, mine: &[u8], take: impl FnMut(usize, &Gathered)) -> Result<()> {
        self.services.may_block()?;
        Ok(self.board().exchange_parts(&self.services, Status::OK, mine, take)?)
    }

    /// Like `exchange`, and fails at all ranks if `part` is an error at one of them. Collective.
    pub fn exchange_with_status(
        &self,
        part: Result<()>,
        mine: &[u8],
    ) -> std::result::Result<Gathered, Failure> {
        let alone = |error| Failure { error, everywhere: false };
        self.services.may_block().map_err(alone)?;
        let status = part.as_ref().err().map_or(Status::OK, |error| error.status);
        let cards = self.board().exchange(&self.services, status, mine);
        match (part, cards) {
            // The error of the exchange has less information than this rank's own one.
            (Err(error), cards) => Err(Failure {
                error,
                everywhere: cards.err().is_some_and(|failure| failure.everywhere),
            }),
            (Ok(()), cards) => cards,
        }
    }

    /// The name of the plan that the ranks make now, equal at all of them. All ranks must call this
    /// after equally many exchanges.
    pub fn plan_name(&self) -> u64 {
        let board = self.board();
        name(Origin::Plan, &[board.group().name, board.sequence()])
    }

    /// Makes a team of the ranks that give one colour, in the order of their keys. Collective.
    pub fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Team>> {
        self.services.may_block()?;
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_ne_bytes);
        let mut card = [0; 12];
        card[..4].copy_from_slice(&u32::from(colour.is_some()).to_ne_bytes());
        card[4..8].copy_from_slice(&colour.unwrap_or(0).to_ne_bytes());
        card[8..].copy_from_slice(&key.to_ne_bytes());
        let mut board = self.board();
        let (parent, turn) = (board.group().name, board.sequence());
        let cards = board.exchange(&self.services, Status::OK, &card)?;
        let alike = cards.iter().enumerate().filter(|(_, other)| other[..8] == card[..8]);
        let mut group = alike.map(|(rank, other)| (number(&other[8..]), rank)).collect::<Vec<_>>();
        group.sort_unstable();
        let made = colour.map(|colour| {
            let me = group.iter().position(|(_, rank)| *rank == self.me).unwrap_or(0);
            let peers = group.iter().map(|(_, rank)| self.peers[*rank]).collect();
            let name = name(Origin::Split, &[parent, turn, colour.into()]);
            Board::new(&self.services, &self.arena, Group::new(peers, me, name))
        });
        let made = made.transpose();
        // If one rank fails, all fail, because a rank that has a board must not wait for a rank
        // that has none.
        let status = made.as_ref().err().map_or(Status::OK, |error| error.status);
        let exchanged = board.exchange(&self.services, status, &[]);
        match (made?, exchanged) {
            (Some(made), Ok(_)) => Ok(Some(Team::with(
                self.services.clone(),
                self.arena.clone(),
                self.choices.clone(),
                made,
            ))),
            (None, Ok(_)) => Ok(None),
            (made, Err(Failure { error, everywhere })) => {
                match made {
                    // No rank has the new team.
                    Some(made) if everywhere => made.discard(&self.services, &self.arena),
                    // Only this rank has failed, and others may have the new team. Its board tells
                    // them that this rank takes no part.
                    Some(made) => {
                        made.fail(&self.services, error.status);
                        made.leave(&self.services, &self.arena);
                    }
                    None => {}
                }
                Err(error)
            }
        }
    }

    /// This rank leaves the team.
    pub fn leave(self) {
        let board = self.board.into_inner().unwrap_or_else(PoisonError::into_inner);
        board.leave(&self.services, &self.arena);
    }

    /// Fails at all ranks if `mine` is an error at one of them. Collective.
    pub fn agree(&self, mine: Result<()>) -> std::result::Result<(), Failure> {
        self.exchange_with_status(mine, &[]).map(drop)
    }
}

/// Returns this rank's index in a list of ranks. An error: no team can be made of the list.
fn check_list(services: &Services, ranks: &[u32]) -> Result<usize> {
    let (size, me) = (services.routes.size(), services.rank());
    if ranks.len() > RANKS {
        fail!(ERR_UNSUPPORTED, "n is {}, expected at most {RANKS}", ranks.len());
    }
    let mut seen = HashSet::new();
    for (at, rank) in ranks.iter().enumerate() {
        if *rank >= size {
            fail!(ERR_RANGE, "ranks[{at}] is {rank}, expected less than {size}");
        }
        if !seen.insert(*rank) {
            fail!(
                ERR_INVALID,
                "ranks[{at}] is {rank}, which is in the list already, expected different ranks"
            );
        }
    }
    match ranks.iter().position(|rank| *rank == me) {
        Some(at) => Ok(at),
        None => fail!(
            ERR_INVALID,
            "ranks has {} entries, expected the calling rank {me} among them",
            ranks.len()
        ),
    }
}

/// The name of a team or plan: equal at all its ranks, and different from other names except with a
/// probability of 2^-64.
fn name(origin: Origin, words: &[u64]) -> u64 {
    let mixed = [origin as u64].iter().chain(words).fold(words.len() as u64, |sum, word| {
        // The finalizer of MurmurHash3: each bit of the input changes about half of the output.
        let mut bits = (sum.rotate_left(23) ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ bits >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        bits = (bits ^ bits >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        bits ^ bits >> 33
    });
    // 0 and 1 are not used as names.
    mixed.saturating_add(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_have_names_of_their_own() {
        let mut seen = HashSet::new();
        assert!(seen.insert(name(Origin::World, &[])));
        for turn in 0..100 {
            for colour in 0..100 {
                assert!(
                    seen.insert(name(Origin::Split, &[name(Origin::World, &[]), turn, colour]))
                );
                assert!(seen.insert(name(Origin::Create, &[turn, colour, colour + 1])));
            }
        }
    }
}
