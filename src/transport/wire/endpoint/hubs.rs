//! The hubs of other machines, with which a hub in this process exchanges packets.
//!
//! A hub goes on for some time after the rank in whose process it runs has left, and after a fence
//! the wire carries nothing more from that process. So the fence waits until that hub has ended.

use super::{Endpoint, Packet, State};
use crate::bootstrap::{Carry, Relay};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the end of a hub waits until the wire has sent what this process has said to it.
const LAST: Duration = Duration::from_secs(1);

/// See the head of the file.
#[derive(Default)]
pub(super) struct Hubs {
    /// The ranks in whose processes they run, until they end. True: mark_dead() was called.
    heard: Vec<(u32, bool)>,
    /// Those whose processes the wire has lost before they have ended.
    lost: Vec<u32>,
    /// Hubs that have ended, or will when they have got the last packet, and since when. The wire
    /// has not yet sent all frames for their processes, which a fence might drop.
    pub ending: Vec<(u32, Instant)>,
    /// The hub in this process has sent a packet.
    pub has_sent: bool,
}

impl Hubs {
    /// Whether a hub runs in a peer's process that has not ended.
    pub fn are_heard_from(&self, peer: u32) -> bool {
        self.heard.iter().any(|(hub, _)| *hub == peer)
    }

    /// The wire has lost a peer: nobody hears the hub in its process any more. Returns whether the
    /// peer is dead.
    fn lose(&mut self, peer: u32) -> bool {
        if self.are_heard_from(peer) {
            self.lost.push(peer);
        }
        self.over(peer)
    }

    /// Whether the wire has lost the process of a hub that has not ended. The hub in this process
    /// must hear of it, also if the rank there has left: no other hub speaks for the ranks that it
    /// leaves behind.
    pub fn was_lost(&self, peer: u32) -> bool {
        self.lost.contains(&peer)
    }

    /// Notes a dead peer. True: a hub in its process may have more to say.
    fn defers(&mut self, peer: u32) -> bool {
        let hub = self.heard.iter_mut().find(|(hub, _)| *hub == peer);
        hub.map(|(_, dead)| *dead = true).is_some()
    }

    /// The hub in a peer's process has ended. Returns whether the peer is dead.
    fn over(&mut self, peer: u32) -> bool {
        let at = self.heard.iter().position(|(hub, _)| *hub == peer);
        at.is_some_and(|at| self.heard.swap_remove(at).1)
    }
}

impl State {
    /// Whether a packet goes to a peer. A lost peer still gets the packets about the use of its
    /// slots. A dead peer still gets the packets of the hub in this process to the hub there.
    pub(super) fn may_send(&self, to: u32, packet: &Packet) -> bool {
        match packet {
            Packet::Relayed(_) => !self.is_lost(to),
            Packet::Use(..) => !self.grants.is_dead(to),
            _ => !self.is_lost(to) && !self.grants.is_dead(to),
        }
    }

    /// Discards the frames for a dead peer, and asks the wire for a fence. If a hub in the peer's
    /// process is heard, the packets for it stay, and the fence waits for its end.
    pub(super) fn cut(&mut self, peer: u32) {
        if self.hubs.defers(peer) {
            return self.outgoing.discard_but_answers(peer);
        }
        self.outgoing.discard(peer);
        self.lane.fence(peer);
    }

    /// The wire has lost a peer.
    pub(super) fn lose_hub(&mut self, peer: u32) {
        if self.hubs.lose(peer) {
            self.cut(peer);
        }
    }

    /// Ends the hubs in `ending` for which no frame is under way, or has been for too long.
    pub(super) fn end_hubs(&mut self) {
        for (peer, since) in std::mem::take(&mut self.hubs.ending) {
            if !self.outgoing.is_clear(peer) && since.elapsed() < LAST {
                self.hubs.ending.push((peer, since));
            } else if self.hubs.over(peer) {
                self.cut(peer);
            }
        }
    }
}

impl Endpoint {
    /// A function by which the hub in this process speaks to the hub in a rank's process. It does
    /// nothing when the endpoint is gone. `hubs`: the ranks in whose processes those hubs run.
    pub fn relay(&self, hubs: &[u32]) -> Carry {
        self.shared.lock().hubs.heard = hubs.iter().map(|hub| (*hub, false)).collect();
        let end = Arc::downgrade(&self.shared);
        Box::new(move |hub, relay| {
            let Some(shared) = end.upgrade() else { return };
            let mut state = shared.lock();
            match relay {
                Relay::Packet(packet) => {
                    state.hubs.has_sent = true;
                    shared.send_and_wake(state, vec![(hub, Packet::Relayed(packet))]);
                }
                Relay::Pulse => {
                    // The frame under way will be refused as well, or it finds a living process.
                    if state.outgoing.is_clear(hub) {
                        shared.send_and_wake(state, vec![(hub, Packet::Relayed(Vec::new()))]);
                    }
                }
                Relay::Over => {
                    if !state.closed {
                        state.hubs.ending.push((hub, Instant::now()));
                        state.end_hubs();
                        drop(state);
                        shared.wake.wake();
                    }
                }
            }
        })
    }
}

#[cfg(all(test, feature = "simulated", not(loom)))]
mod tests;
