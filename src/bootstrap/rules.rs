//! The rules of the hub, without sockets: requests go in, replies come out.

use crate::bootstrap::protocol::{Departure, MAX_BLOB, PAYLOAD, Reply, Request};
use crate::util::status::Status;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A reply on its way to `to`.
pub struct Outgoing {
    pub to: u32,
    pub token: u32,
    pub reply: Reply,
    pub fd: Option<Arc<OwnedFd>>,
}

/// The outcome of a request, for the owner of the hub.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    /// The rank ends the job with this code; the others have this time to end.
    Abort {
        code: i32,
        grace_ms: u32,
    },
    /// No rank of this release sends this request in this state.
    ProtocolError(&'static str),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Absent,
    Joined,
    Left,
    Died,
}

enum Collective {
    Fence,
    Exchange { total: u64, offset: u64, bytes: Vec<u8> },
}

struct Member {
    phase: Phase,
    /// It has joined the world; it may have left or died since.
    joined: bool,
    card: Option<(Vec<u8>, Option<Arc<OwnedFd>>)>,
    /// It is on another machine, whose hub answers it.
    far: bool,
    /// Ranks that wait for this one's card.
    asking: Vec<u32>,
    /// The collective call, and its token, that this rank waits in.
    waiting: Option<(u32, Collective)>,
    /// How many entries of `news` were sent to this rank.
    news_sent: usize,
    /// It has passed the last fence: it is about to leave, as all ranks are, and needs no news.
    fenced: bool,
}

impl Member {
    fn is_gone(&self) -> bool {
        matches!(self.phase, Phase::Left | Phase::Died)
    }

    fn wants_news(&self) -> bool {
        self.phase == Phase::Joined && !self.fenced
    }
}

/// The state of one world. The time of a request does not grow with the number of ranks, except for
/// the last request of a collective call, which answers all.
pub struct Rules {
    members: Vec<Member>,
    outgoing: Vec<Outgoing>,
    /// The ranks that have died or left, in this order. One packet reports several to a rank.
    news: Vec<Departure>,
    /// Some entries of `news` may not have been sent to all ranks.
    untold: bool,
    /// The lowest rank that has died or left.
    first_gone: Option<u32>,
    /// How many ranks wait in the exchange, and in the fence.
    exchanging: usize,
    fencing: usize,
}

impl Rules {
    /// A world which no rank has joined yet.
    #[cfg(test)]
    pub fn new(size: u32) -> Rules {
        Rules::of_machine(size, |_| true)
    }

    /// The world as the hub of one machine sees it: ranks that are not `near` have joined already,
    /// and other hubs answer them.
    pub fn of_machine(size: u32, near: impl Fn(u32) -> bool) -> Rules {
        let member = |rank| Member {
            phase: if near(rank) { Phase::Absent } else { Phase::Joined },
            joined: !near(rank),
            card: None,
            far: !near(rank),
            asking: Vec::new(),
            waiting: None,
            news_sent: 0,
            fenced: false,
        };
        Rules {
            members: (0..size).map(member).collect(),
            outgoing: Vec::new(),
            news: Vec::new(),
            untold: false,
            first_gone: None,
            exchanging: 0,
            fencing: 0,
        }
    }

    /// The packets to send now, in this order. News go before answers, so that a caller who gets
    /// ERR_PEER_DEAD finds the peer marked as dead.
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        let mut all = Vec::new();
        if std::mem::take(&mut self.untold) {
            for (to, member) in (0..).zip(&mut self.members) {
                if !member.far && member.wants_news() && member.news_sent < self.news.len() {
                    let reply = Reply::Gone { ranks: self.news[member.news_sent..].to_vec() };
                    all.push(Outgoing { to, token: 0, reply, fd: None });
                    member.news_sent = self.news.len();
                }
            }
        }
        all.append(&mut self.outgoing);
        all
    }

    /// Whether the rank has died or left.
    pub fn is_gone(&self, rank: u32) -> bool {
        self.members[rank as usize].is_gone()
    }

    /// Whether all ranks have died or left.
    pub fn all_gone(&self) -> bool {
        self.news.len() == self.members.len()
    }

    /// Whether the rank is in the world now.
    pub fn is_joined(&self, rank: u32) -> bool {
        self.members[rank as usize].phase == Phase::Joined
    }

    /// Whether the rank has joined the world and died in it.
    pub fn died_in_world(&self, rank: u32) -> bool {
        let member = &self.members[rank as usize];
        member.joined && member.phase == Phase::Died
    }

    /// Handles one request of `rank`. The hub knows the rank by its socket, so the number is below
    /// the size.
    pub fn handle(
        &mut self,
        rank: u32,
        token: u32,
        request: Request,
        fd: Option<OwnedFd>,
    ) -> Verdict {
        match (self.members[rank as usize].phase, request) {
            (Phase::Absent, Request::Join { rank: r, size }) => self.join(rank, token, r, size),
            (Phase::Left, Request::Join { .. }) => {
                let text =
                    format!("LLCL_RANK: rank {rank} has left this world; nobody joins twice");
                self.fail(rank, token, Status::ERR_STATE, text);
            }
            (Phase::Joined, Request::Publish { blob }) => self.publish(rank, token, blob, fd),
            (Phase::Joined, Request::Lookup { peers }) => {
                peers.into_iter().for_each(|peer| self.lookup(rank, peer));
            }
            (Phase::Joined, Request::Exchange { total, offset, bytes }) => {
                return self.wait(rank, token, Collective::Exchange { total, offset, bytes });
            }
            (Phase::Joined, Request::Fence) => return self.wait(rank, token, Collective::Fence),
            (Phase::Joined, Request::Leave) => self.gone(rank, true),
            (Phase::Joined, Request::Abort { code, grace_ms }) => {
                return Verdict::Abort { code, grace_ms };
            }
            (Phase::Joined, Request::Join { .. }) => {
                return Verdict::ProtocolError("a second process that joins in its place");
            }
            _ => return Verdict::ProtocolError("a request out of turn"),
        }
        Verdict::Fine
    }

    /// The rank has left or died: ends the waits for it and reports it to all ranks, once.
    pub fn gone(&mut self, rank: u32, left: bool) {
        let member = &mut self.members[rank as usize];
        if member.is_gone() {
            return;
        }
        member.phase = if left { Phase::Left } else { Phase::Died };
        member.card = None;
        match member.waiting.take() {
            Some((_, Collective::Exchange { .. })) => self.exchanging -= 1,
            Some((_, Collective::Fence)) => self.fencing -= 1,
            None => {}
        }
        let asking = std::mem::take(&mut member.asking);
        self.news.push(Departure { rank, left });
        self.untold = true;
        self.first_gone = Some(self.first_gone.map_or(rank, |first| first.min(rank)));
        for asker in asking {
            if self.is_joined(asker) {
                self.refuse_card(asker, rank, Status::ERR_PEER_DEAD, self.how_it_ended(rank));
            }
        }
        self.settle();
    }

    fn size(&self) -> u32 {
        self.members.len() as u32
    }

    fn join(&mut self, rank: u32, token: u32, claimed: u32, size: u32) {
        if claimed != rank || size != self.size() {
            let mine = self.size();
            let text = format!(
                "LLCL_RANK is {claimed} and LLCL_SIZE is {size}, expected {rank} and {mine}, \
                 which is what the launcher has for this LLCL_HUB_FD"
            );
            return self.fail(rank, token, Status::ERR_INVALID, text);
        }
        let member = &mut self.members[rank as usize];
        (member.phase, member.joined) = (Phase::Joined, true);
        self.answer(rank, token, Vec::new());
        self.untold |= !self.news.is_empty();
    }

    fn publish(&mut self, rank: u32, token: u32, blob: Vec<u8>, fd: Option<OwnedFd>) {
        let Some(fd) = fd else {
            let text = "publish: the descriptor did not arrive; the launcher may have reached \
                        its limit of open files"
                .to_owned();
            return self.fail(rank, token, Status::ERR_NO_MEMORY, text);
        };
        let size = blob.len();
        if size > MAX_BLOB {
            let text = format!("blob: {size} bytes, expected at most {MAX_BLOB}");
            return self.fail(rank, token, Status::ERR_INVALID, text);
        }
        let member = &mut self.members[rank as usize];
        if member.card.is_some() {
            let text = format!("publish: rank {rank} has published already, expected one call");
            return self.fail(rank, token, Status::ERR_STATE, text);
        }
        let fd = Some(Arc::new(fd));
        let asking = std::mem::take(&mut member.asking);
        member.card = Some((blob.clone(), fd.clone()));
        self.answer(rank, token, Vec::new());
        for asker in asking {
            if self.is_joined(asker) {
                self.show_card(asker, rank, blob.clone(), fd.clone());
            }
        }
    }

    /// Stores the cards of the ranks of other machines, by rank.
    pub fn far_cards(&mut self, cards: &[Vec<u8>]) {
        for (rank, card) in (0..).zip(cards) {
            let Some(member) = self.members.get_mut(rank as usize).filter(|it| it.far) else {
                continue;
            };
            if member.is_gone() {
                continue;
            }
            member.card = Some((card.clone(), None));
            for asker in std::mem::take(&mut member.asking) {
                self.show_card(asker, rank, card.clone(), None);
            }
        }
    }

    fn lookup(&mut self, rank: u32, peer: u32) {
        let Some(member) = self.members.get_mut(peer as usize) else {
            let text = format!("peer is {peer}, expected less than {}", self.size());
            return self.refuse_card(rank, peer, Status::ERR_RANGE, text);
        };
        if member.is_gone() {
            return self.refuse_card(rank, peer, Status::ERR_PEER_DEAD, self.how_it_ended(peer));
        }
        match member.card.clone() {
            Some((blob, fd)) => self.show_card(rank, peer, blob, fd),
            None => member.asking.push(rank),
        }
    }

    fn show_card(&mut self, to: u32, rank: u32, bytes: Vec<u8>, fd: Option<Arc<OwnedFd>>) {
        let reply = match fd {
            Some(_) => Reply::Card { rank, status: 0, bytes },
            None => Reply::FarCard { rank, bytes },
        };
        self.send(to, 0, reply, fd);
    }

    fn refuse_card(&mut self, to: u32, rank: u32, status: Status, text: String) {
        let bytes = text.into_bytes();
        self.send(to, 0, Reply::Card { rank, status: status.0, bytes }, None);
    }

    fn wait(&mut self, rank: u32, token: u32, what: Collective) -> Verdict {
        let size = self.members.len();
        let too_long = matches!(&what, Collective::Exchange { bytes, .. }
            if bytes.len() * size > PAYLOAD);
        let waiting = &mut self.members[rank as usize].waiting;
        if waiting.is_some() || too_long {
            return Verdict::ProtocolError(
                "a second collective call at a time, or one that is too long",
            );
        }
        match what {
            Collective::Exchange { .. } => self.exchanging += 1,
            Collective::Fence => self.fencing += 1,
        }
        *waiting = Some((token, what));
        self.settle();
        Verdict::Fine
    }

    /// Ends the exchange and the fence if they are complete or must fail.
    fn settle(&mut self) {
        let size = self.members.len();
        if let Some((status, text)) = self.exchange_failure() {
            for (rank, token, _) in self.take_waiting(true) {
                self.fail(rank, token, status, text.clone());
            }
        } else if self.exchanging == size {
            let all = self.take_waiting(true);
            let bytes: Vec<u8> = all.iter().flat_map(|(_, _, bytes)| bytes).copied().collect();
            for (rank, token, _) in all {
                self.answer(rank, token, bytes.clone());
            }
        }
        if self.fencing > 0 && self.fencing + self.news.len() == size {
            for (rank, token, _) in self.take_waiting(false) {
                self.members[rank as usize].fenced = true;
                self.answer(rank, token, Vec::new());
            }
        }
    }

    /// The reason why the exchange must fail, if there is one.
    fn exchange_failure(&self) -> Option<(Status, String)> {
        if self.exchanging == 0 {
            return None;
        }
        if let Some(gone) = self.first_gone {
            return Some((Status::ERR_PEER_DEAD, self.how_it_ended(gone)));
        }
        if self.fencing > 0 {
            let fenced =
                |m: &Member| m.waiting.as_ref().is_some_and(|w| matches!(w.1, Collective::Fence));
            let other = self.members.iter().position(fenced)?;
            let text = format!("rank {other} is finalizing, expected it to take part");
            return Some((Status::ERR_INVALID, text));
        }
        if self.exchanging < self.members.len() {
            return None;
        }
        let shape = |m: &Member| match &m.waiting {
            Some((_, Collective::Exchange { total, offset, bytes })) => {
                (*total, *offset, bytes.len())
            }
            _ => (0, 0, 0),
        };
        let first = shape(&self.members[0]);
        let other = self.members.iter().position(|m| shape(m) != first)?;
        let size = shape(&self.members[other]).0;
        let text = format!(
            "size is {} in rank 0 and {size} in rank {other}, expected the same size \
             in every rank",
            first.0
        );
        Some((Status::ERR_INVALID, text))
    }

    /// Ends the wait of all ranks in the exchange (else: in the fence): rank, token, bytes.
    fn take_waiting(&mut self, in_exchange: bool) -> Vec<(u32, u32, Vec<u8>)> {
        *(if in_exchange { &mut self.exchanging } else { &mut self.fencing }) = 0;
        let mut taken = Vec::new();
        for (rank, member) in (0..).zip(&mut self.members) {
            if waits(member, in_exchange) {
                match member.waiting.take() {
                    Some((token, Collective::Exchange { bytes, .. })) => {
                        taken.push((rank, token, bytes));
                    }
                    Some((token, Collective::Fence)) => taken.push((rank, token, Vec::new())),
                    None => {}
                }
            }
        }
        taken
    }

    fn how_it_ended(&self, rank: u32) -> String {
        match self.members[rank as usize].phase {
            Phase::Left => format!("rank {rank} has left"),
            _ => format!("rank {rank} has died"),
        }
    }

    fn answer(&mut self, to: u32, token: u32, bytes: Vec<u8>) {
        self.send(to, token, Reply::Answer { status: 0, bytes }, None);
    }

    fn fail(&mut self, to: u32, token: u32, status: Status, text: String) {
        let bytes = text.into_bytes();
        self.send(to, token, Reply::Answer { status: status.0, bytes }, None);
    }

    fn send(&mut self, to: u32, token: u32, reply: Reply, fd: Option<Arc<OwnedFd>>) {
        if !self.members[to as usize].far {
            self.outgoing.push(Outgoing { to, token, reply, fd });
        }
    }
}

fn waits(member: &Member, in_exchange: bool) -> bool {
    match &member.waiting {
        Some((_, Collective::Exchange { .. })) => in_exchange,
        Some((_, Collective::Fence)) => !in_exchange,
        None => false,
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
