//! Teams: which ranks take part, in what order, and how they agree on something.

use crate::coll::agreement::Board;
use crate::coll::arena::Arena;
use crate::coll::runner::queue::RANKS;
use crate::core::services::Services;
use crate::fail;
use crate::transport::address::Address;
use crate::util::status::{Error, Result, Status};
use std::sync::{Arc, Mutex, PoisonError};

/// Some ranks of the world.
pub struct Team {
    /// What it stands on.
    pub services: Arc<Services>,
    /// Where its memory comes from.
    pub arena: Arc<Arena>,
    /// The ranks by their numbers in the world.
    pub peers: Vec<u32>,
    /// This rank's number in the team.
    pub me: usize,
    board: Mutex<Board>,
}

impl Team {
    /// The team of all ranks. Collective over the world.
    pub fn world(services: Arc<Services>, arena: Arc<Arena>) -> Result<Team> {
        let size = services.routes.size();
        if size as usize > RANKS {
            fail!(ERR_UNSUPPORTED, "the world has {size} ranks, a team at most {RANKS}");
        }
        let made = Board::new(&arena);
        let mut all = vec![0; PLACE * size as usize];
        let told = services.exchange(&card_of(made.as_ref().ok()), &mut all);
        let made = match (made, told) {
            (Ok(board), Err(error)) => {
                board.discard(&arena);
                return Err(error);
            }
            (made, told) => told.and(made)?,
        };
        let boards = (0..size).zip(all.chunks_exact(PLACE).map(place)).collect::<Vec<_>>();
        let me = services.rank() as usize;
        Team::with(services, arena, made, boards, me)
    }

    fn with(
        services: Arc<Services>,
        arena: Arc<Arena>,
        mut board: Board,
        boards: Vec<(u32, Address)>,
        me: usize,
    ) -> Result<Team> {
        let connected = match boards.iter().find(|(_, board)| board.key == 0) {
            Some((peer, _)) => {
                let text = format!("rank {peer} has no memory for the team's board");
                Err(Error::new(Status::ERR_NO_MEMORY, text))
            }
            None => board.connect(&services, &boards),
        };
        // Others may have connected to the board: after an error it stays until the context ends.
        connected?;
        let peers = boards.iter().map(|(peer, _)| *peer).collect();
        Ok(Team { services, arena, peers, me, board: Mutex::new(board) })
    }

    /// How many ranks it has.
    pub fn size(&self) -> usize {
        self.peers.len()
    }

    /// Gathers `mine` of every rank, in the order of ranks. Collective.
    pub fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.services.may_block("what is collective")?;
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        board.exchange(&self.services, mine)
    }

    /// A team of the ranks that give the same colour, in the order of their keys. Collective.
    pub fn split(&self, colour: Option<u32>, key: u32) -> Result<Option<Team>> {
        let made = colour.map(|_| Board::new(&self.arena));
        let mut card = [0; 16 + PLACE];
        card[..4].copy_from_slice(&u32::from(colour.is_some()).to_ne_bytes());
        card[4..8].copy_from_slice(&colour.unwrap_or(0).to_ne_bytes());
        card[8..16].copy_from_slice(&u64::from(key).to_ne_bytes());
        card[16..].copy_from_slice(&card_of(made.as_ref().and_then(|made| made.as_ref().ok())));
        let cards = match self.exchange(&card) {
            Ok(cards) => cards,
            Err(error) => {
                if let Some(Ok(board)) = made {
                    board.discard(&self.arena);
                }
                return Err(error);
            }
        };
        let Some(made) = made else { return Ok(None) };
        let alike = cards.iter().enumerate().filter(|(_, other)| other[..8] == card[..8]);
        let mut group = alike
            .map(|(rank, other)| (number(&other[8..16]), rank, place(&other[16..])))
            .collect::<Vec<_>>();
        group.sort_unstable_by_key(|(key, rank, _)| (*key, *rank));
        let me = group.iter().position(|(_, rank, _)| *rank == self.me).unwrap_or(0);
        let boards = group.iter().map(|(_, rank, board)| (self.peers[*rank], *board)).collect();
        Team::with(self.services.clone(), self.arena.clone(), made?, boards, me).map(Some)
    }

    /// The team is given up by this rank.
    pub fn leave(self) {
        let board = self.board.into_inner().unwrap_or_else(PoisonError::into_inner);
        board.leave(&self.services, &self.arena);
    }

    /// Every rank says whether it could do its part. An error of one is an error for all. Collective.
    pub fn agree(&self, mine: Result<()>) -> Result<()> {
        let status = mine.as_ref().err().map_or(Status::OK, |error| error.status);
        let all = self.exchange(&status.0.to_ne_bytes())?;
        mine?;
        for (rank, other) in all.iter().enumerate() {
            let status = Status(i32::from_ne_bytes(other[..4].try_into().unwrap_or_default()));
            refused_by(rank, status)?;
        }
        Ok(())
    }
}

/// The error of a rank whose answer is `status`, as the others tell it.
pub fn refused_by(rank: usize, status: Status) -> Result<()> {
    if status == Status::OK {
        return Ok(());
    }
    let text = status.text().trim_end_matches('\0');
    Err(Error::new(status, format!("refused by rank {rank} of the team: {text}")))
}

/// Bytes that say where a board lies.
const PLACE: usize = 16;

/// Where a board lies, for others; zeros where there is none.
fn card_of(board: Option<&Board>) -> [u8; PLACE] {
    let place = board.map_or(Address { offset: 0, key: 0 }, Board::place);
    let mut card = [0; PLACE];
    card[..8].copy_from_slice(&place.offset.to_ne_bytes());
    card[8..].copy_from_slice(&place.key.to_ne_bytes());
    card
}

/// What card_of() has said.
fn place(card: &[u8]) -> Address {
    Address { offset: number(&card[..8]), key: number(&card[8..PLACE]) }
}

/// Eight bytes as a number.
fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_ne_bytes)
}
