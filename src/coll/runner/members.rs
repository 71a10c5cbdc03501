//! The ranks of a plan that this process reaches.

use crate::coll::runner::binding::Binding;
use crate::coll::runner::queue::slot;
use crate::coll::runner::session::{Session, modulus};
use crate::coll::schedule::Program;
use crate::transport::address::Address;
use std::collections::BTreeSet;
use std::ops::Index;

/// One of the three memories of a rank, as this process reaches it.
#[derive(Clone, Copy, Debug)]
pub enum Memory {
    /// A buffer of the user, with its length. Each use looks it up, because the user may free it.
    User(Address, u64),
    /// A buffer of the user whose place may change between rounds (see binding), with its length.
    Bound(*const Binding, u64),
    /// Memory of the plan at this address, with its length.
    Plan(*mut u8, u64),
    /// Scratch memory that exists several times, one copy after the other in whole lines: address,
    /// length of one copy, number of copies. Rounds use the copies in turn.
    Turns(*mut u8, u64, u32),
    /// Memory of a rank of another node, which finds the place itself. The length is no limit.
    Far(u64),
    /// Memory of a rank of another node at this address, like Turns: a network may write there.
    Remote(Address, u64, u32),
}

/// Where the turn of a round begins in scratch memory with so many turns of `length` bytes, each in
/// lines of its own.
#[inline(always)]
pub fn turn_of(round: u32, length: u64, turns: u32) -> u64 {
    u64::from(round & (turns - 1)) * length.next_multiple_of(64)
}

/// The word of a rank's STORE or ADD completion.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The kind of completion: STORE or ADD.
    pub kind: u32,
    /// Where it lies.
    pub place: Address,
}

/// A rank of the plan, as this process reaches it.
#[derive(Clone, Copy)]
pub struct Member {
    /// Its number in the team.
    pub rank: usize,
    /// Its number in the world.
    pub peer: u32,
    /// Its session.
    pub session: Session,
    /// The address of its session, by which a thread of that rank sleeps on it (see Waiters).
    pub address: Address,
    /// Its memories, by Space: input, output and scratch.
    pub memory: [Memory; 3],
    /// Whether a thread of any rank may run its steps.
    pub shared: bool,
    /// Whether its progress thread is rung when a queue finishes a round.
    pub notified: bool,
    /// The word of its completion, if all ranks map it: the thread that runs the last step of a
    /// round changes it, whatever its rank.
    pub word: Option<Word>,
}

impl Member {
    /// Whether it is a rank of another node.
    pub fn is_far(&self) -> bool {
        matches!(self.memory[0], Memory::Far(_) | Memory::Remote(..))
    }
}

/// The largest team in which each rank knows all others and may run their steps. If ranks share
/// cores, a round then need not wait until each of them gets a core. It takes one contact for each
/// pair of ranks when the plan is made.
pub const EVERYBODY: usize = 64;

/// The ranks that rank `me` has to know: all of a small team, else those that its program names.
pub fn known(program: &Program, me: usize, ranks: usize) -> BTreeSet<usize> {
    if ranks <= EVERYBODY {
        return (0..ranks).collect();
    }
    let mut known = BTreeSet::from([me]);
    for step in program.queues.iter().flatten() {
        known.extend(step.wait.map(|wait| wait.from));
        known.extend(step.signal.map(|signal| signal.rank));
        known.extend(step.action.places().map(|place| place.rank));
    }
    known
}

/// A table of the known ranks, by rank.
pub struct Members {
    /// Each member is at slot() of its rank. Places without a member hold a copy of another one, so
    /// every index gives a valid member. The table has at least one place.
    places: Box<[Member]>,
}

impl Members {
    /// The number of places in a table of these ranks.
    fn places(known: &BTreeSet<usize>, ranks: usize) -> usize {
        if known.len() == ranks { ranks } else { modulus(known, ranks) }
    }

    /// Bytes of the table in this process's memory.
    pub fn bytes(known: &BTreeSet<usize>, ranks: usize) -> usize {
        Members::places(known, ranks) * size_of::<Member>()
    }

    /// A table of `members`, ranks of a team of `ranks`; `own` is one of them and fills the empty
    /// places.
    pub fn new(members: &[Member], own: Member, ranks: usize) -> Members {
        let known = members.iter().map(|member| member.rank).collect();
        let mut places = vec![own; Members::places(&known, ranks).max(1)].into_boxed_slice();
        for member in members {
            places[slot(member.rank, places.len())] = *member;
        }
        Members { places }
    }

    /// All known ranks.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        let count = self.places.len();
        let is_here = move |(place, member): &(usize, &Member)| slot(member.rank, count) == *place;
        self.places.iter().enumerate().filter(is_here).map(|(_, member)| member)
    }

    /// All known ranks but `than`, beginning with the next one.
    pub fn others(&self, than: usize) -> impl Iterator<Item = &Member> {
        let behind = self.iter().skip_while(move |member| member.rank != than).skip(1);
        behind.chain(self.iter().take_while(move |member| member.rank != than))
    }
}

/// The member of a known rank. For an unknown number, which only a faulty peer can have written, it
/// is any member.
impl Index<usize> for Members {
    type Output = Member;

    #[inline(always)]
    fn index(&self, rank: usize) -> &Member {
        // SAFETY: a remainder is less than the number of places, which is not 0.
        unsafe { self.places.get_unchecked(slot(rank, self.places.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::runner::queue::Head;

    fn member(rank: usize) -> Member {
        let (session, address) = (Session::nowhere(), Address { offset: 0, key: 0 });
        let memory = [Memory::Plan(std::ptr::null_mut(), 0); 3];
        Member { rank, peer: 0, session, address, memory, shared: true, notified: true, word: None }
    }

    #[test]
    fn each_known_rank_is_found_and_no_number_leads_out() {
        assert!(size_of::<Head>() <= 64);
        for known in [vec![0, 1, 2], vec![7], vec![3, 999, 500, 4, 5, 1, 35, 67]] {
            let ranks = if known.len() == 3 { 3 } else { 1000 };
            let all = known.iter().map(|rank| member(*rank)).collect::<Vec<_>>();
            let members = Members::new(&all, all[0], ranks);
            assert!(known.iter().all(|rank| members[*rank].rank == *rank));
            assert!((0..70_000).all(|rank| known.contains(&members[rank].rank)));
            assert_eq!(members.iter().count(), known.len());
            let others =
                members.others(known[0]).map(|member| member.rank).collect::<BTreeSet<_>>();
            assert_eq!(others, known[1..].iter().copied().collect());
        }
    }
}
