use super::super::tests::{Around, BoxedLane, Wrapped};
use super::super::*;
use crate::bootstrap::Relay;
use crate::transport::wire::simulated::{Nature, Simulated};
use std::sync::mpsc::{Receiver, channel};

const MEDIUM: usize = 4096;

/// Two endpoints that are not connected. The receiver gets what the first one relays to the second.
fn apart(seed: u64) -> (Endpoint, Endpoint, Receiver<(u32, Vec<u8>)>) {
    let [wire, other] = [0, 1].map(|me| Simulated::new(me, Nature::of(seed)).unwrap());
    let (relayed, hears) = channel();
    let relayed = Box::new(move |from, packet| relayed.send((from, packet)).unwrap());
    let news = News { relayed, ..no_news() };
    let end = Endpoint::join((0, 2), Arc::new(wire), MEDIUM, no_slot(), no_news()).unwrap();
    let hub = Endpoint::join((1, 2), Arc::new(other), MEDIUM, no_slot(), news).unwrap();
    (end, hub, hears)
}

/// As apart(), connected.
fn relaying(seed: u64) -> (Endpoint, Endpoint, Receiver<(u32, Vec<u8>)>) {
    let (end, hub, hears) = apart(seed);
    end.connect(1, hub.card()).unwrap();
    (end, hub, hears)
}

/// Packets for a hub are sent although the rank in whose process it runs is dead.
#[test]
fn what_a_hub_says_goes_to_a_process_whose_rank_has_died() {
    let (end, _hub, hears) = relaying(1);
    let relay = end.relay(&[1]);
    end.mark_dead(1);
    relay(1, Relay::Packet(vec![7; 8]));
    assert_eq!(hears.recv_timeout(Duration::from_secs(10)), Ok((0, vec![7; 8])));
}

/// The process of a hub may close the wire behind the hub's last packet.
#[test]
fn what_a_hub_says_last_is_sent_before_the_wire_is_closed() {
    const PACKETS: u8 = 100;
    for seed in 1..=10 {
        let (end, _hub, hears) = relaying(seed);
        let relay = end.relay(&[1]);
        (0..PACKETS).for_each(|number| relay(1, Relay::Packet(vec![number; 4000])));
        drop(end);
        let hear = |_| hears.recv_timeout(Duration::from_secs(10)).map(|(_, packet)| packet[0]);
        let mut heard: Vec<u8> = (0..PACKETS).map_while(|number| hear(number).ok()).collect();
        heard.sort_unstable();
        assert!(heard.into_iter().eq(0..PACKETS), "seed {seed}: not each packet once");
    }
}

/// Packets that wait for the lane when the rank leaves are sent, too: without one packet the hub
/// that gets the others applies none of them.
#[test]
fn what_a_hub_has_said_outlives_the_rank_of_the_other() {
    let (end, hub, hears) = apart(1);
    let relay = end.relay(&[1]);
    relay(1, Relay::Packet(vec![1; 8]));
    assert_eq!(end.shared.lock().outgoing.waiting(), 1, "it is not connected");
    end.mark_dead(1);
    relay(1, Relay::Packet(vec![2; 8]));
    end.connect(1, hub.card()).unwrap();
    for byte in [1, 2] {
        assert_eq!(hears.recv_timeout(Duration::from_secs(10)), Ok((0, vec![byte; 8])));
    }
}

/// A process that is stopped takes nothing, for hours perhaps.
#[test]
fn one_pulse_at_a_time_waits_for_a_process_and_its_hub_hears_none() {
    let (end, hub, hears) = apart(1);
    let relay = end.relay(&[1]);
    (0..3).for_each(|_| relay(1, Relay::Pulse));
    assert_eq!(end.shared.lock().outgoing.waiting(), 1, "it is not connected");
    end.connect(1, hub.card()).unwrap();
    relay(1, Relay::Packet(vec![1; 8]));
    assert_eq!(hears.recv_timeout(Duration::from_secs(10)), Ok((0, vec![1; 8])));
}

/// Notes the fences.
struct Fences {
    lane: BoxedLane,
    of: Arc<Mutex<Vec<u32>>>,
}

impl Around for Fences {
    fn inner(&mut self) -> &mut dyn WireLane {
        &mut *self.lane
    }

    fn fence(&mut self, peer: u32) {
        self.of.lock().unwrap().push(peer);
        self.lane.fence(peer);
    }
}

/// An endpoint, and the peers of which it has asked for a fence.
fn fencing() -> (Endpoint, Arc<Mutex<Vec<u32>>>) {
    let of: Arc<Mutex<Vec<u32>>> = Arc::default();
    let noted = of.clone();
    let wrap = Box::new(move |lane| Box::new(Fences { lane, of: noted.clone() }) as _);
    let wire = Arc::new(Wrapped { wire: Simulated::new(0, Nature::of(1)).unwrap(), wrap });
    (Endpoint::without_thread((0, 5), wire, MEDIUM, no_slot(), no_news()).unwrap(), of)
}

/// Behind a fence a wire may carry nothing more of the process.
#[test]
fn the_fence_of_a_process_waits_for_the_end_of_its_hub() {
    let (end, of) = fencing();
    let fences = || of.lock().unwrap().clone();
    let relay = end.relay(&[1, 2]);
    [1, 3].iter().for_each(|rank| end.mark_dead(*rank));
    assert_eq!(fences(), [3], "no hub runs at rank 3");
    relay(1, Relay::Over);
    assert_eq!(fences(), [3, 1]);
    relay(2, Relay::Over);
    assert_eq!(fences(), [3, 1], "rank 2 lives");
    end.mark_dead(2);
    relay(2, Relay::Over);
    assert_eq!(fences(), [3, 1, 2]);
}

/// The hub in a process that leaves waits for the last packet, and a fence might drop that one.
#[test]
fn the_fence_of_a_hub_that_ends_waits_until_its_last_packet_is_sent() {
    let (end, of) = fencing();
    let relay = end.relay(&[1]);
    let (_, hub, hears) = apart(1);
    end.mark_dead(1);
    relay(1, Relay::Packet(vec![1; 8]));
    relay(1, Relay::Over);
    assert_eq!(*of.lock().unwrap(), [], "it is not connected");
    end.connect(1, hub.card()).unwrap();
    let limit = Instant::now() + Duration::from_secs(10);
    while of.lock().unwrap().is_empty() {
        assert!(Instant::now() < limit, "no fence");
        end.shared.round(end.shared.lock(), &end.shared.deliver);
    }
    assert_eq!(hears.recv_timeout(Duration::from_secs(10)), Ok((0, vec![1; 8])));
}

/// Both the network and the other ranks tell of a death.
#[test]
fn a_peer_of_whose_death_two_tell_is_fenced_once() {
    let (end, of) = fencing();
    let relay = end.relay(&[1]);
    [3, 3, 1, 1].iter().for_each(|rank| end.mark_dead(*rank));
    relay(1, Relay::Over);
    [1, 3].iter().for_each(|rank| end.mark_dead(*rank));
    assert_eq!(*of.lock().unwrap(), [3, 1]);
}

/// The process of a hub may be killed after its rank has left. Operations on that rank must end.
#[test]
fn the_fence_of_a_lost_process_waits_for_nothing() {
    let (end, of) = fencing();
    let _relay = end.relay(&[1, 2]);
    let loses = |peer| {
        let (mut state, mut out) = (end.shared.lock(), Out::new());
        state.frame_failed(0, peer, Status::ERR_PEER_DEAD, &mut out);
    };
    end.mark_dead(1);
    assert_eq!(*of.lock().unwrap(), []);
    loses(1);
    assert_eq!(*of.lock().unwrap(), [1]);
    assert!(matches!(end.shared.lock().reports[..], [(1, _)]), "the hub here must hear of it");
    loses(2);
    assert_eq!(*of.lock().unwrap(), [1], "rank 2 lives");
    end.mark_dead(2);
    assert_eq!(*of.lock().unwrap(), [1, 2]);
}

/// A rank leaves, and its process is killed: the wire may say so before the rank's departure is
/// heard, which tells nothing of the ranks that its hub has left behind.
#[test]
fn a_hub_that_the_wire_has_lost_is_reported_though_its_rank_has_left() {
    let (end, _) = fencing();
    let _relay = end.relay(&[1]);
    for peer in [1, 3] {
        let mut state = end.shared.lock();
        state.frame_failed(0, peer, Status::ERR_PEER_DEAD, &mut Out::new());
        drop(state);
        end.mark_dead(peer);
    }
    let state = end.shared.lock();
    assert!(state.is_lost(1) && state.is_lost(3));
    assert!(matches!(state.reports[..], [(1, _)]), "{:?}", state.reports);
}
