//! How a rank gets memory back that peers have looked up.
//!
//! A peer that has looked a region up may be in the middle of a store into it, also long afterwards
//! if the kernel does not schedule the peer. So the region's range of the memory file is not used
//! again at once when the region has ended (`transport::memory::segment`). The owner uses it again
//! when each peer that has looked it up has died, or has answered a request (`Op::UNMAP`) that was
//! sent after the region's end: the peer has then unmapped the memory of all ended regions
//! (`transport::port`).
//!
//! Requests are sent in numbered waves, one request to a peer at a time. A range that waits notes
//! the number of the next wave, and an answer to that wave or a later one covers the range. So a
//! stopped peer delays only the ranges that it has looked up.
//!
//! No thread waits for an answer as long as the file can get longer. That costs no memory, since
//! ranges that wait have no pages. Requests are sent when half of the file waits, and when the file
//! may not get longer. Only in the second case the caller waits (`core::region`).

use crate::engine::command::{Command, Op};
use crate::engine::completion::{Completion, WORD_FAILED};
use crate::engine::lane::Lane;
use crate::engine::routes::Routes;
use crate::transport::memory::directory::Users;
use crate::transport::memory::segment::Holders;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests that are under way at one time: less than the smallest table of operations in flight.
const AT_ONCE: usize = 32;

/// The requests to a peer, and its answers.
#[derive(Default)]
struct Asked {
    /// The last wave that the peer has answered.
    answered: u64,
    /// The wave of the request that is under way; 0: there is none.
    wave: u64,
    /// The completion of that request.
    ended: AtomicU64,
}

/// The waves and answers of a context. The lock of the table of regions protects it.
#[derive(Default)]
pub struct Recall {
    /// The last wave.
    wave: u64,
    // A completion points at the word in an entry, so each stays where it is until the context
    // ends.
    asked: HashMap<u32, Box<Asked>>,
    /// How many deaths there were when news() last looked.
    deaths: u32,
}

/// The other living ranks that a bit of a region's users stands for.
fn living(routes: &Routes, bit: u32) -> impl Iterator<Item = u32> {
    let (me, peers) = (routes.own().peer, bit..routes.size());
    let peers = peers.step_by(Users::BITS as usize);
    peers.filter(move |peer| *peer != me && !routes.is_dead(*peer))
}

impl Recall {
    /// The wave that covers a region which ends now.
    pub fn next(&self) -> u64 {
        self.wave + 1
    }

    /// Takes the answers that have arrived. True: there is a new answer, or a peer has died.
    pub fn news(&mut self, routes: &Routes) -> bool {
        let deaths = routes.deaths();
        let mut news = std::mem::replace(&mut self.deaths, deaths) != deaths;
        for asked in self.asked.values_mut().filter(|asked| asked.wave != 0) {
            // Acquire: pairs with the Release of the completion.
            let end = asked.ended.load(Ordering::Acquire);
            if end == 0 {
                continue;
            }
            if end & WORD_FAILED == 0 {
                asked.answered = asked.wave;
                news = true;
            }
            // If the request has failed, the peer is asked again.
            asked.wave = 0;
        }
        news
    }

    /// Whether news() would find an answer.
    pub fn has_answers(&self) -> bool {
        // Acquire: pairs with the Release of the completion.
        self.asked.values().any(|asked| asked.wave != 0 && asked.ended.load(Ordering::Acquire) != 0)
    }

    /// Whether a living peer may still store into a range with these holders.
    pub fn is_held(&self, routes: &Routes, held: Holders) -> bool {
        held.users.bits().any(|bit| living(routes, bit).any(|peer| self.holds(peer, held.since)))
    }

    fn holds(&self, peer: u32, since: u64) -> bool {
        self.asked.get(&peer).is_none_or(|asked| asked.answered < since)
    }

    /// A peer that has not answered its request.
    pub fn silent(&self) -> Option<u32> {
        self.asked.iter().find(|(_, asked)| asked.wave != 0).map(|(peer, _)| *peer)
    }

    /// Sends requests to all peers that hold a range and have no request under way, as far as the
    /// queue has room. The progress thread sends them; the call never waits.
    pub fn ask(&mut self, routes: &Routes, lane: &Lane, held: &[Holders]) {
        let wave = self.next();
        let mut under_way = self.asked.values().filter(|asked| asked.wave != 0).count();
        for held in held {
            for peer in held.users.bits().flat_map(|bit| living(routes, bit)) {
                if under_way == AT_ONCE {
                    return;
                }
                if self.holds(peer, held.since) {
                    under_way += usize::from(self.ask_one(routes, lane, peer, wave));
                }
            }
        }
    }

    /// Sends a request. False: an earlier one to the peer is under way, the peer is not contacted
    /// yet, or the queue is full.
    fn ask_one(&mut self, routes: &Routes, lane: &Lane, peer: u32, wave: u64) -> bool {
        let asked = self.asked.entry(peer).or_default();
        if asked.wave != 0 || routes.port_to_answer(peer).is_err() {
            return false;
        }
        asked.ended.store(0, Ordering::Relaxed);
        let mut command = Command::new(Op::UNMAP, peer);
        command.on_complete = Completion::store_on(&asked.ended);
        // SAFETY: the word stays where it is until the context ends, which waits for the lane.
        let Ok(asleep) = (unsafe { lane.put(&command, &[]) }) else { return false };
        asked.wave = wave;
        self.wave = wave;
        lane.leave_to_others(asleep);
        true
    }
}
