//! The receiver's side: the table of the peers that use the slots, the frames that have come, and
//! the free slots.

use super::area::Area;
use super::{Place, SLOTS, SMALL, Use};
use crate::transport::wire::grants::{Line, Out, PATIENCE, Packet};
use crate::transport::wire::packet::{OwnedFrame, packet_of};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Most peers that may use the slots at a time.
const USERS: usize = 64;
/// How long a peer that has refused an offer gets no other.
const REFUSED: Duration = Duration::from_millis(100);

/// The state of a ticket that has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// Its frame has not come.
    Empty,
    /// Its frame waits for room.
    Full,
    /// Its frame was taken; tickets before it were not.
    Free,
}

/// The slots of one line.
struct Share {
    /// RecvCNT: the first ticket whose slot is in use.
    next: u64,
    /// Of the tickets from `next` on, by their slots.
    slots: [Slot; SLOTS as usize],
    /// How many of them are not empty.
    used: usize,
    /// Received frames: sender, ticket, frame.
    come: VecDeque<(u32, u64, OwnedFrame)>,
}

impl Default for Share {
    fn default() -> Share {
        Share { next: 0, slots: [Slot::Empty; SLOTS as usize], used: 0, come: VecDeque::new() }
    }
}

impl Share {
    fn slot(&mut self, ticket: u64) -> &mut Slot {
        &mut self.slots[(ticket % SLOTS) as usize]
    }

    /// The ticket that has this slot.
    fn ticket(&self, slot: u64) -> u64 {
        self.next + (slot + SLOTS - self.next % SLOTS) % SLOTS
    }

    /// Frees the slots of all that was taken in turn; whether there were any.
    fn free(&mut self) -> bool {
        let before = self.next;
        while *self.slot(self.next) == Slot::Free {
            *self.slot(self.next) = Slot::Empty;
            self.used -= 1;
            self.next += 1;
        }
        self.next > before
    }
}

/// The record of a peer that may use the slots.
struct User {
    number: u64,
    accepted: bool,
    /// The receiver has sent it Revoked.
    revoked: bool,
    dead: bool,
    /// Frames that have come, and those of them that wait for room.
    come: u64,
    waiting: u64,
    /// What it has said: so many frames in all.
    released: Option<u64>,
}

/// See the head of the file.
#[derive(Default)]
pub struct Giver {
    lines: [Share; SMALL],
    users: BTreeMap<u32, User>,
    offers: u64,
    /// Peers that have refused an offer, and since when; `USERS` at most.
    refused: BTreeMap<u32, Instant>,
    /// A user has released its use.
    leaves: bool,
    /// All users are to release their use.
    closing: bool,
    /// The line and ticket whose frame others wait for, and since when.
    blocked: Option<(Line, u64, Instant)>,
}

impl Giver {
    /// Offers the slots to a peer, if they are in use and not all users are there.
    pub fn offer(&mut self, to: u32, place: Place, out: &mut Out) {
        if self.closing || self.users.len() >= USERS || self.users.contains_key(&to) {
            return;
        }
        self.refused.retain(|_, since| since.elapsed() < REFUSED);
        if self.refused.contains_key(&to) {
            return;
        }
        self.offers += 1;
        let user = User {
            number: self.offers,
            accepted: false,
            revoked: false,
            dead: false,
            come: 0,
            waiting: 0,
            released: None,
        };
        self.users.insert(to, user);
        out.push((to, Packet::Use(self.offers, Use::Offer(place))));
    }

    fn user(&mut self, from: u32, number: u64) -> Option<&mut User> {
        self.users.get_mut(&from).filter(|user| user.number == number)
    }

    /// A peer has accepted.
    pub fn accepted(&mut self, from: u32, number: u64) {
        if let Some(user) = self.user(from, number) {
            user.accepted = true;
        }
    }

    /// A peer has released its use; so many frames come in all.
    pub fn released(&mut self, from: u32, number: u64, count: u64) {
        let Some(user) = self.user(from, number) else { return };
        user.released = Some(count);
        let refuses = !user.accepted;
        self.leaves = true;
        if refuses && self.refused.len() < USERS {
            self.refused.insert(from, Instant::now());
        }
    }

    /// A write with notice has come; what is wrong with it.
    pub fn notice(
        &mut self,
        area: &Area,
        from: u32,
        notice: u64,
        medium: usize,
    ) -> Result<(), String> {
        let (line, slot) = ((notice / SLOTS) as usize, notice % SLOTS);
        let user = self.users.get_mut(&from).ok_or("a notice, but no slots were offered")?;
        let share = self.lines.get_mut(line).ok_or_else(|| format!("notice {notice}"))?;
        let ticket = share.ticket(slot);
        let came = area.slot(notice as usize).filter(|(mark, _)| *mark == ticket);
        let (_, bytes) = came.ok_or_else(|| format!("slot {notice} without ticket {ticket}"))?;
        if *share.slot(ticket) != Slot::Empty {
            return Err(format!("slot {notice} was written twice"));
        }
        user.come += 1;
        share.used += 1;
        // If it is no frame, nobody waits for it.
        *share.slot(ticket) = Slot::Free;
        match packet_of(&bytes, medium)? {
            Packet::Frame(Some(of), frame) if of == line => {
                *share.slot(ticket) = Slot::Full;
                user.waiting += 1;
                share.come.push_back((from, ticket, frame));
                Ok(())
            }
            _ => Err(format!("no frame of line {line} in slot {notice}")),
        }
    }

    /// Gives received frames to `deliver`, frees slots, and ends the use where it must end.
    pub fn serve(
        &mut self,
        area: &Area,
        mut deliver: impl FnMut(u32, &OwnedFrame) -> bool,
        out: &mut Out,
    ) {
        for (share, line) in self.lines.iter_mut().zip(0..) {
            while let Some((from, ticket, frame)) = share.come.front()
                && deliver(*from, frame)
            {
                let (from, ticket) = (*from, *ticket);
                share.come.pop_front();
                *share.slot(ticket) = Slot::Free;
                if let Some(user) = self.users.get_mut(&from) {
                    user.waiting -= 1;
                }
            }
            if share.free() {
                area.set_freed(line, share.next);
            }
        }
        if self.users.is_empty() && !self.closing {
            return;
        }
        self.watch(area);
        self.close(area, out);
    }

    /// Ends the use where a frame does not come, though frames behind it have, or want its slot.
    fn watch(&mut self, area: &Area) {
        let missing = |(share, line): (&mut Share, Line)| {
            let others = share.used > 0 || area.taken(line) >= share.next + SLOTS;
            (*share.slot(share.next) == Slot::Empty && others).then_some((line, share.next))
        };
        let missing = self.lines.iter_mut().zip(0..).find_map(missing);
        self.blocked = missing.map(|(line, ticket)| match self.blocked {
            Some(blocked @ (of, before, _)) if (of, before) == (line, ticket) => blocked,
            _ => (line, ticket, Instant::now()),
        });
        self.closing |= self.blocked.is_some_and(|(.., since)| since.elapsed() > PATIENCE);
    }

    /// Tells users that they must release, those who have that it is over, and begins again behind
    /// the last of them.
    fn close(&mut self, area: &Area, out: &mut Out) {
        let closing = self.closing;
        if !closing && !self.leaves {
            return;
        }
        self.users.retain(|peer, user| {
            if closing && user.accepted && !user.dead && !user.revoked {
                user.revoked = true;
                out.push((*peer, Packet::Use(user.number, Use::Revoked)));
            }
            let over = user.waiting == 0 && user.released.is_some_and(|all| user.come >= all);
            if over && !user.dead {
                out.push((*peer, Packet::Use(user.number, Use::Closed)));
            }
            !over || user.dead
        });
        self.leaves = self.users.values().any(|user| user.released.is_some());
        let empty = self.lines.iter().all(|share| share.come.is_empty());
        if !closing || !empty || !self.users.is_empty() {
            return;
        }
        // No rank holds a ticket, and nothing is on its way here.
        for (share, line) in self.lines.iter_mut().zip(0..) {
            *share = Share { next: area.taken(line), ..Share::default() };
            area.set_freed(line, share.next);
        }
        (self.closing, self.blocked) = (false, None);
    }

    /// A peer has died: tickets of its may be missing.
    pub fn mark_dead(&mut self, peer: u32) {
        if let Some(user) = self.users.get_mut(&peer) {
            user.dead = true;
            self.closing = true;
        }
    }

    /// Nothing of a dead peer comes any more.
    pub fn fenced(&mut self, peer: u32) {
        if self.users.get(&peer).is_some_and(|user| user.dead) {
            self.users.remove(&peer);
        }
    }

    /// Peers that may use the slots.
    #[cfg(all(test, feature = "simulated"))]
    pub fn users(&self) -> usize {
        self.users.len()
    }

    /// Slots that nobody uses, since a dead user that is not fenced may still write there.
    pub fn slots_retired(&self) -> usize {
        if self.users.values().any(|user| user.dead) { SMALL * SLOTS as usize } else { 0 }
    }

    /// Whether a later round may do something though nothing comes.
    pub fn is_stuck(&self) -> bool {
        self.blocked.is_some() && !self.closing
            || self.lines.iter().any(|share| !share.come.is_empty())
    }
}

#[cfg(all(test, feature = "simulated", not(loom)))]
mod tests {
    use super::*;
    use crate::transport::wire::simulated::{Nature, Simulated};
    use std::sync::Arc;

    #[test]
    fn a_rank_that_has_refused_an_offer_gets_none_for_a_while() {
        let wire = Arc::new(Simulated::new(0, Nature::of(1)).unwrap());
        let (area, mut giver, mut out) = (Area::new(wire).unwrap(), Giver::default(), Out::new());
        giver.offer(5, area.place(), &mut out);
        giver.released(5, 1, 0);
        giver.serve(&area, |_, _| true, &mut out);
        assert!(giver.users.is_empty() && out.len() == 2, "offered and closed: {out:?}");
        assert!(giver.refused.contains_key(&5), "the refusal is noted");
        // A thread that pauses here would find the time over.
        giver.refused.insert(5, Instant::now() + Duration::from_secs(60));
        giver.offer(5, area.place(), &mut out);
        assert_eq!(out.len(), 2, "it was offered again: {out:?}");
        giver.offer(6, area.place(), &mut out);
        assert_eq!(out.len(), 3, "another gets an offer");
        giver.refused.insert(5, Instant::now());
        std::thread::sleep(REFUSED);
        giver.offer(5, area.place(), &mut out);
        assert_eq!(out.len(), 4, "it gets none any more");
    }
}
