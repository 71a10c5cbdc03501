//! The cards of ranks: who has published one, and who asks for it.

use super::Rules;
use crate::bootstrap::protocol::{MAX_BLOB, Reply};
use crate::util::status::Status;
use std::os::fd::OwnedFd;
use std::sync::Arc;

impl Rules {
    pub(super) fn publish(&mut self, rank: u32, token: u32, blob: Vec<u8>, fd: Option<OwnedFd>) {
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

    pub(super) fn lookup(&mut self, rank: u32, peer: u32) {
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

    pub(super) fn refuse_card(&mut self, to: u32, rank: u32, status: Status, text: String) {
        let bytes = text.into_bytes();
        self.send(to, 0, Reply::Card { rank, status: status.0, bytes }, None);
    }
}
