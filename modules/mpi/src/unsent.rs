//! Answers that wait for another message to their peer. libllcl answers a write with signal after
//! poll() has returned the signal. In most programs this rank writes to the same peer soon after,
//! so the answer travels in that request. Otherwise it leaves in the next poll(). The peer waits
//! for the answer to a write with LLCL_WF_FETCH, an atomic: it leaves when libllcl has answered all
//! signals that poll() has returned.

use crate::lane::MpiLane;
use crate::message::{ANSWER_ENTRY, Message, SHORT, head_of, outcome};
use crate::requests::ANSWERS;

/// An answer that may get further entries.
pub(crate) struct Answer {
    pub(crate) message: Message,
    /// The number of requests to which it is the last answer.
    pub(crate) ended: u64,
}

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Unsent {
    /// By peer, the newest last. There are few: each poll() that makes progress sends them all.
    answers: Vec<(u32, Answer)>,
    /// The writes of the notices that libllcl has not answered.
    notices: Vec<Option<Write>>,
    free: Vec<usize>,
    /// How many of them poll() has returned.
    pub(crate) open: usize,
    /// The peers to which an answer leaves when `open` is 0.
    hurry: Vec<u32>,
}

/// A peer's write.
#[derive(Clone, Copy)]
pub(crate) struct Write {
    pub(crate) peer: u32,
    /// Its number at the peer.
    pub(crate) number: u32,
    /// The peer waits for the value of the answer.
    pub(crate) fetches: bool,
}

impl Unsent {
    /// Takes the newest answer that waits for a message to the peer.
    fn take(&mut self, peer: u32) -> Option<Answer> {
        let at = self.answers.iter().rposition(|(to, _)| *to == peer);
        at.map(|at| self.answers.remove(at).1)
    }

    /// Keeps an answer for the next message to the peer.
    pub(crate) fn keep(&mut self, peer: u32, answer: Answer) {
        if answer.ended > 0 || answer.message.size() > 0 {
            self.answers.push((peer, answer));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Drops the answers to a dead peer.
    pub(crate) fn forget(&mut self, peer: u32) {
        self.answers.retain(|(to, _)| *to != peer);
    }

    /// The number by which libllcl answers a peer's write.
    pub(crate) fn number(&mut self, write: Write) -> u64 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.notices.push(None);
            self.notices.len() - 1
        });
        self.notices[at] = Some(write);
        at as u64 + 1
    }

    /// The write with this number, which is answered now.
    fn answered(&mut self, number: u64) -> Option<Write> {
        let at = (number as usize).checked_sub(1)?;
        let write = self.notices.get_mut(at)?.take()?;
        self.free.push(at);
        self.open = self.open.saturating_sub(1);
        Some(write)
    }
}

impl MpiLane {
    #[inline(always)]
    pub(crate) fn new_answer(&mut self) -> Answer {
        Answer { message: Message::new(self.requests.spare_message()), ended: 0 }
    }

    /// Takes the newest answer that waits for a message to the peer; an empty one if none does.
    pub(crate) fn take_answer_for(&mut self, peer: u32) -> Answer {
        self.unsent.take(peer).unwrap_or_else(|| self.new_answer())
    }

    /// libllcl's answer to the write of a notice. Any thread may call it.
    pub fn answer(&mut self, number: u64, status: i32, value: u64) {
        let Some(Write { peer, number, fetches }) = self.unsent.answered(number) else { return };
        if !self.is_over() && !self.remote.dead.contains(&peer) {
            let mut answer = self.take_answer_for(peer);
            if !answer.message.has_room(ANSWER_ENTRY + size_of_val(&value)) {
                let next = self.new_answer();
                self.unsent.keep(peer, std::mem::replace(&mut answer, next));
            }
            answer.message.put([outcome(number, status), size_of_val(&value) as u64, value]);
            self.unsent.keep(peer, answer);
            if fetches && !self.unsent.hurry.contains(&peer) {
                self.unsent.hurry.push(peer);
            }
        }
        if self.unsent.open == 0 {
            self.send_in_hurry();
        }
    }

    /// Sends the answers that peers wait for, if the calling thread may call MPI. Else its next
    /// poll() does.
    fn send_in_hurry(&mut self) {
        if self.is_over() || !self.requests.may_call() {
            return;
        }
        while let Some(peer) = self.unsent.hurry.pop() {
            while let Some(answer) = self.unsent.take(peer) {
                self.send_answer(peer, answer);
            }
        }
    }

    /// Sends the answers that no request has taken with it.
    pub(crate) fn send_answers(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        self.unsent.hurry.clear();
        let mut answers = std::mem::take(&mut self.unsent.answers);
        answers.drain(..).for_each(|(peer, answer)| self.send_answer(peer, answer));
        // Keeps the list's memory.
        self.unsent.answers = answers;
    }

    pub(crate) fn send_answer(&mut self, peer: u32, Answer { message, ended }: Answer) {
        let sent = self.requests.send_message((peer, ANSWERS), message.end(head_of(ended, 0)));
        self.went_well(sent);
    }

    /// Begins a request with the answer that waits for a message to the peer, if it is short.
    #[inline(always)]
    pub(crate) fn begin_request(&mut self, peer: u32) -> Answer {
        match self.unsent.is_empty() {
            true => self.new_answer(),
            false => self.begin_behind_answer(peer),
        }
    }

    #[inline(never)]
    fn begin_behind_answer(&mut self, peer: u32) -> Answer {
        let answer = self.take_answer_for(peer);
        if answer.message.size() <= SHORT {
            return answer;
        }
        self.send_answer(peer, answer);
        self.new_answer()
    }
}
