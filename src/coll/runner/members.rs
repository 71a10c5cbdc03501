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
    /// The user's: looked up at every use, because the user may free it.
    User(Address, u64),
    /// The user's, at a place that its owner names anew with each round; as many bytes.
    Bound(*const Binding, u64),
    /// The plan's own, at this address, as many bytes.
    Plan(*mut u8, u64),
    /// Some of the plan's own, one behind the other in whole lines, of so many bytes each, and how
    /// many: used in turn round by round.
    Turns(*mut u8, u64, u32),
    /// That of a rank of another node, which looks for the place itself. The length is that of any.
    Far(u64),
}

/// The word of a rank's completion, of kind STORE or ADD.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// Which of the two.
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
    /// Where its session lies, as its threads name it when they sleep.
    pub address: Address,
    /// Its Send, Receive and Scratch.
    pub memory: [Memory; 3],
    /// Any rank may run its steps.
    pub shared: bool,
    /// Its progress thread is to be rung for when a round ends.
    pub notified: bool,
    /// The word of its completion, where all ranks map it: the rank that runs the last step of a
    /// round changes it.
    pub word: Option<Word>,
}

impl Member {
    /// Whether it is of another node.
    pub fn is_far(&self) -> bool {
        matches!(self.memory[0], Memory::Far(_))
    }
}

/// In teams of up to so many ranks each knows all others, and may run steps of any of them: where
/// ranks share cores, a round need not wait until each of them gets one. The price is a contact for
/// each pair of ranks when the plan is made, a number that grows with the square of the ranks.
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

/// Those that are known, by rank.
pub struct Members {
    /// Each at its remainder by their number; at places that would be empty a copy of one that is
    /// elsewhere. There is at least one.
    places: Box<[Member]>,
}

impl Members {
    /// How many places there are for these ranks of a team of so many.
    fn places(known: &BTreeSet<usize>, ranks: usize) -> usize {
        if known.len() == ranks { ranks } else { modulus(known, ranks) }
    }

    /// What they take of this process's memory.
    pub fn bytes(known: &BTreeSet<usize>, ranks: usize) -> usize {
        Members::places(known, ranks) * size_of::<Member>()
    }

    /// Some ranks of a team of `ranks`; `own` is one of them.
    pub fn new(members: &[Member], own: Member, ranks: usize) -> Members {
        let known = members.iter().map(|member| member.rank).collect();
        let mut places = vec![own; Members::places(&known, ranks).max(1)].into_boxed_slice();
        for member in members {
            places[slot(member.rank, places.len())] = *member;
        }
        Members { places }
    }

    /// All that are known.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        let count = self.places.len();
        let is_here = move |(place, member): &(usize, &Member)| slot(member.rank, count) == *place;
        self.places.iter().enumerate().filter(is_here).map(|(_, member)| member)
    }

    /// All but one, beginning behind it.
    pub fn others(&self, than: usize) -> impl Iterator<Item = &Member> {
        let behind = self.iter().skip_while(move |member| member.rank != than).skip(1);
        behind.chain(self.iter().take_while(move |member| member.rank != than))
    }
}

/// A rank that this one knows. Any other number, as somebody may have scribbled it, gives some rank
/// that it knows.
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
