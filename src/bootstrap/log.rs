//! The log by which the hubs of several machines agree on the state of their world: all of them
//! apply the same requests in the same order. The hub of rank 0 decides on the order. A hub sends a
//! request of its ranks there. The deciding hub sends it to all hubs, in order with the requests of
//! other ranks, and each hub then applies it. A hub answers its own ranks only. So no hub asks
//! another for anything, and neither [`Rules`] nor a rank distinguishes one machine from several.
//!
//! When all ranks of a hub have left, this hub waits until their departures come back. The deciding
//! hub sends it nothing behind them, and ends last. So no packet arrives where nobody receives.
//!
//! Frames of a wire may overtake each other, so the packets between two hubs have numbers.
//!
//! [`Rules`]: crate::bootstrap::rules::Rules

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A packet with so many bytes gets no further entry.
const FULL: usize = 16 << 10;
/// Bytes before the entries of a packet: its number.
const HEAD: usize = 8;
/// Bytes before an entry's own.
const ENTRY: usize = 8;

/// A request of a rank, as its hub has received it. Without bytes: the rank has died or, if it had
/// left before and its hub decides on the order, that hub has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub rank: u32,
    pub packet: Vec<u8>,
}

/// The traffic between this hub and another.
#[derive(Default)]
struct Link {
    /// Encoded entries that take_outgoing() has not taken yet.
    pending: VecDeque<Vec<u8>>,
    /// How many packets were sent, and how many have arrived in order.
    sent: u64,
    came: u64,
    /// Packets that have overtaken others.
    early: BTreeMap<u64, Vec<u8>>,
}

impl Link {
    /// Takes the pending entries, as packets.
    fn take_packets(&mut self) -> impl Iterator<Item = Vec<u8>> {
        std::iter::from_fn(|| {
            let mut packet = self.sent.to_le_bytes().to_vec();
            while packet.len() < FULL
                && let Some(entry) = self.pending.pop_front()
            {
                packet.extend(entry);
            }
            let any = packet.len() > HEAD;
            self.sent += u64::from(any);
            any.then_some(packet)
        })
    }
}

/// See the head of the file. A hub is named by the rank in whose process it runs.
pub struct Log {
    me: u32,
    /// The hub of each rank.
    hubs: Arc<[u32]>,
    links: BTreeMap<u32, Link>,
    /// The last packets for hubs that have no link any more, until take_outgoing() has taken them.
    last: Vec<(u32, Vec<u8>)>,
    /// Hubs that have ended, until take_ended() has taken them.
    ended: Vec<u32>,
    /// The deciding hub has ended: no entry comes any more.
    cut_off: bool,
}

impl Log {
    /// That of hub `me`.
    pub fn new(me: u32, hubs: Arc<[u32]>) -> Log {
        let links = peers_of(me, &hubs).into_iter().map(|hub| (hub, Link::default())).collect();
        Log { me, hubs, links, last: Vec::new(), ended: Vec::new(), cut_off: false }
    }

    /// Whether a rank is one of this hub's.
    pub fn is_near(&self, rank: u32) -> bool {
        self.hubs.get(rank as usize) == Some(&self.me)
    }

    /// The ranks whose hub runs in the process of `hub`.
    pub fn ranks_of(&self, hub: u32) -> Vec<u32> {
        (0..).zip(&*self.hubs).filter(|it| *it.1 == hub).map(|it| it.0).collect()
    }

    /// The rank in whose process this hub runs.
    pub fn me(&self) -> u32 {
        self.me
    }

    /// The hubs with which this one exchanges packets.
    pub fn others(&self) -> Vec<u32> {
        self.links.keys().copied().collect()
    }

    /// The hubs that have ended since the last call: all of their ranks are gone.
    pub fn take_ended(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.ended)
    }

    /// Whether this hub decides on the order.
    pub fn decides(&self) -> bool {
        self.is_deciding(self.me)
    }

    /// Whether the hub in the process of a rank decides on the order.
    pub fn is_deciding(&self, rank: u32) -> bool {
        self.hubs.first() == Some(&rank)
    }

    /// Enters a request of a rank of this hub. Returns the entries to apply now.
    pub fn submit(&mut self, entry: Entry) -> Vec<Entry> {
        self.links.values_mut().for_each(|link| link.pending.push_back(encode(&entry)));
        if self.decides() { vec![entry] } else { Vec::new() }
    }

    /// The deciding hub has ended.
    pub fn cut_off(&mut self) {
        self.cut_off = true;
    }

    /// Whether the deciding hub has ended before this one.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Receives a packet of another hub. Returns the entries to apply now, in this order. A
    /// malformed packet is dropped.
    pub fn take(&mut self, from: u32, packet: &[u8]) -> Vec<Entry> {
        let Some(link) = self.links.get_mut(&from) else { return Vec::new() };
        let Some((number, entries)) = packet.split_first_chunk::<HEAD>() else { return Vec::new() };
        let number = u64::from_le_bytes(*number);
        if number >= link.came {
            link.early.insert(number, entries.to_vec());
        }
        let mut taken = Vec::new();
        while let Some(entries) = link.early.remove(&link.came) {
            link.came += 1;
            decode(&entries, &mut taken);
        }
        let decides = self.decides();
        taken.retain(|entry| match self.hubs.get(entry.rank as usize) {
            Some(hub) => !decides || *hub == from,
            None => false,
        });
        if decides {
            for entry in &taken {
                self.links.values_mut().for_each(|link| link.pending.push_back(encode(entry)));
            }
        }
        taken
    }

    /// Packets to be sent, with the hubs that they are for.
    pub fn take_outgoing(&mut self) -> Vec<(u32, Vec<u8>)> {
        let mut packets = std::mem::take(&mut self.last);
        for (hub, link) in &mut self.links {
            packets.extend(link.take_packets().map(|packet| (*hub, packet)));
        }
        packets
    }

    /// Whether take_outgoing() has taken all entries.
    pub fn is_told(&self) -> bool {
        self.last.is_empty() && self.links.values().all(|link| link.pending.is_empty())
    }

    /// Stops sending to hubs all of whose ranks are gone, as `is_gone` says. What has been entered
    /// before is still sent: such a hub waits until its ranks' departures come back.
    pub fn retire(&mut self, is_gone: impl Fn(u32) -> bool) {
        let hubs = self.hubs.clone();
        let lives = |hub: u32| (0..).zip(&*hubs).any(|(rank, of)| *of == hub && !is_gone(rank));
        for hub in self.others().into_iter().filter(|hub| !lives(*hub)) {
            let mut link = self.links.remove(&hub).unwrap_or_default();
            self.last.extend(link.take_packets().map(|packet| (hub, packet)));
            self.ended.push(hub);
        }
    }

    /// The process of a hub has ended: nothing more is sent there.
    pub fn forget(&mut self, hub: u32) {
        self.ended.extend(self.links.remove(&hub).map(|_| hub));
    }
}

/// The hubs with which hub `me` exchanges packets: the hub of rank 0; for that hub, all others.
pub fn peers_of(me: u32, hubs: &[u32]) -> Vec<u32> {
    let deciding = hubs.first().copied().unwrap_or(me);
    let mut peers = if me == deciding { hubs.to_vec() } else { vec![deciding] };
    peers.retain(|hub| *hub != me);
    peers.sort_unstable();
    peers.dedup();
    peers
}

fn encode(entry: &Entry) -> Vec<u8> {
    let mut bytes = entry.rank.to_le_bytes().to_vec();
    bytes.extend((entry.packet.len() as u32).to_le_bytes());
    bytes.extend(&entry.packet);
    bytes
}

fn decode(mut bytes: &[u8], entries: &mut Vec<Entry>) {
    while let Some((head, rest)) = bytes.split_first_chunk::<ENTRY>() {
        let number = |at: usize| head[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let Some((packet, rest)) = rest.split_at_checked(number(4) as usize) else { return };
        entries.push(Entry { rank: number(0), packet: packet.to_vec() });
        bytes = rest;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn entry(rank: u32, byte: u8, size: usize) -> Entry {
        Entry { rank, packet: vec![byte; size] }
    }

    #[test]
    fn all_hubs_apply_the_same_in_the_same_order_though_packets_overtake_each_other() {
        // Ranks 0 and 2 on one machine, 1 and 3 on the second, 4 on the third.
        let hubs: Arc<[u32]> = [0, 1, 0, 1, 4].into();
        let mut logs: BTreeMap<u32, Log> =
            [0, 1, 4].map(|me| (me, Log::new(me, hubs.clone()))).into();
        let mut applied: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
        for turn in 0..20_u8 {
            for (hub, rank) in [(4, 4), (0, 2), (1, 3), (1, 1), (0, 0)] {
                let size = if rank == 3 { 0 } else { 9000 };
                let now = logs.get_mut(&hub).unwrap().submit(entry(rank, turn, size));
                assert_eq!(now.len(), usize::from(hub == 0));
                applied.entry(hub).or_default().extend(now);
            }
            // The packets of three turns, the last one first.
            if turn % 3 == 2 || turn == 19 {
                for _ in 0..2 {
                    let mut sent = Vec::new();
                    for (from, log) in &mut logs {
                        sent.extend(log.take_outgoing().into_iter().map(|it| (*from, it)));
                        assert!(log.is_told());
                    }
                    for (from, (to, packet)) in sent.into_iter().rev() {
                        let now = logs.get_mut(&to).unwrap().take(from, &packet);
                        applied.entry(to).or_default().extend(now);
                    }
                }
            }
        }
        assert_eq!(applied[&0].len(), 100);
        assert!(applied[&1] == applied[&0] && applied[&4] == applied[&0]);
    }

    /// A hub would look such a rank up in its table of ranks.
    #[test]
    fn a_hub_applies_no_request_of_a_rank_that_the_world_does_not_have() {
        let hubs: Arc<[u32]> = [0, 1].into();
        let (mut deciding, mut other) = (Log::new(0, hubs.clone()), Log::new(1, hubs));
        deciding.submit(entry(2, 1, 4));
        deciding.submit(entry(1, 1, 4));
        let (to, packet) = deciding.take_outgoing().remove(0);
        assert_eq!((to, other.take(0, &packet)), (1, vec![entry(1, 1, 4)]));
    }

    #[test]
    fn nobody_speaks_for_ranks_of_another_machine_and_the_gone_are_told_nothing_more() {
        let hubs: Arc<[u32]> = [0, 1, 2].into();
        let (mut deciding, mut other) = (Log::new(0, hubs.clone()), Log::new(1, hubs));
        assert!(deciding.decides() && !other.decides() && other.is_near(1) && !other.is_near(0));
        other.submit(entry(2, 1, 4));
        other.submit(entry(1, 1, 4));
        let (to, packet) = other.take_outgoing().remove(0);
        assert_eq!((to, deciding.take(1, &packet)), (0, vec![entry(1, 1, 4)]));
        assert_eq!(deciding.take(1, &packet[..3]), [], "no packet");
        assert_eq!(deciding.take(7, &packet), [], "no hub");
        deciding.retire(|rank| rank == 1);
        assert!(!deciding.is_told(), "hub 1 does not know yet that its rank has left");
        deciding.submit(entry(0, 1, 4));
        let sent = deciding.take_outgoing();
        assert_eq!(other.take(0, &sent[0].1), [entry(1, 1, 4)]);
        assert!(sent.into_iter().map(|it| it.0).eq([1, 2]) && deciding.is_told());
        deciding.submit(entry(0, 1, 4));
        deciding.forget(2);
        assert_eq!((deciding.take_outgoing(), deciding.take_ended()), (vec![], vec![1, 2]));
    }
}
