//! A hub and the ends of its sockets.

use super::*;
use crate::bootstrap::protocol::Departure;

fn say(end: &OwnedFd, token: u32, request: &Request) {
    socket::send(end.as_fd(), &request.encode(token), None, Room::Now).unwrap();
}

fn receive(end: &OwnedFd) -> Option<(u32, Reply)> {
    let mut buffer = vec![0; PACKET];
    let (size, _) = socket::receive(end.as_fd(), &mut buffer).ok()?;
    Reply::decode(&buffer[..size])
}

fn gone(rank: u32, left: bool) -> Reply {
    Reply::Gone { ranks: vec![Departure { rank, left }] }
}

#[test]
fn nonsense_is_a_death_of_its_sender_and_of_nobody_else() {
    let (mut hub, ends) = Hub::new(2).unwrap();
    for (rank, end) in (0..).zip(&ends) {
        say(end, 1, &Request::Join { rank, size: 2 });
    }
    assert_eq!(hub.turn().unwrap(), []);
    let ok = Reply::Answer { status: 0, bytes: Vec::new() };
    assert_eq!(receive(&ends[0]), Some((1, ok)));
    socket::send(ends[1].as_fd(), b"what?", None, Room::Now).unwrap();
    assert!(matches!(hub.turn().unwrap()[..], [Event::ProtocolError { rank: 1, .. }]));
    assert_eq!(receive(&ends[0]), Some((0, gone(1, false))));
    // Also a packet that would make an answer larger than a packet may be.
    let bytes = vec![0; crate::bootstrap::protocol::PAYLOAD];
    say(&ends[0], 2, &Request::Exchange { total: 1, offset: 0, bytes });
    assert!(matches!(hub.turn().unwrap()[..], [Event::ProtocolError { rank: 0, .. }]));
}

#[test]
fn a_rank_that_closes_is_dead_when_its_process_has_ended() {
    // First, so that it holds nothing of the sockets, not even for a moment.
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let (mut hub, mut ends) = Hub::new(2).unwrap();
    let process = socket::process(child.id()).unwrap();
    say(&ends[0], 1, &Request::Join { rank: 0, size: 2 });
    let join = Request::Join { rank: 1, size: 2 }.encode(1);
    socket::send(ends[1].as_fd(), &join, Some(process.as_fd()), Room::Now).unwrap();
    hub.turn().unwrap();
    receive(&ends[0]).unwrap();
    drop(ends.remove(1));
    assert_eq!(hub.turn().unwrap(), [Event::Closed { rank: 1 }]);
    assert_eq!((receive(&ends[0]), child.try_wait().unwrap()), (None, None));
    assert!(!hub.died_in_world(1));
    assert!(hub.kill_closed(1) && !hub.kill_closed(0));
    child.wait().unwrap();
    assert_eq!(hub.turn().unwrap(), []);
    assert_eq!(receive(&ends[0]), Some((0, gone(1, false))));
    assert!(hub.died_in_world(1) && !hub.kill_closed(1));
}

#[test]
fn a_departure_is_heard_though_the_rank_left_answers_unread() {
    let (mut hub, mut ends) = Hub::new(2).unwrap();
    for (rank, end) in (0..).zip(&ends) {
        say(end, 1, &Request::Join { rank, size: 2 });
    }
    hub.turn().unwrap();
    say(&ends[0], 0, &Request::Abort { code: 3, grace_ms: 5 });
    say(&ends[0], 0, &Request::Leave);
    drop(ends.remove(0));
    // As the launcher does when it learns of the end first.
    assert_eq!(hub.process_ended(0), [Event::Abort { rank: 0, code: 3, grace_ms: 5 }]);
    receive(&ends[0]).unwrap();
    assert_eq!(receive(&ends[0]), Some((0, gone(0, true))));
    hub.process_ended(0);
    assert_eq!(hub.turn().unwrap(), []);
    assert_eq!(receive(&ends[0]), None);
}

#[test]
fn a_rank_that_does_not_read_blocks_nobody_and_loses_nothing() {
    let (mut hub, ends) = Hub::new(2).unwrap();
    for (rank, end) in (0..).zip(&ends) {
        say(end, 1, &Request::Join { rank, size: 2 });
    }
    hub.turn().unwrap();
    // Far more answers than the socket holds and than the hub is willing to queue.
    let (mut sent, mut refused) = (0, 0);
    let mut buffer = vec![0; PACKET];
    for token in 0..50_000 {
        let packet = Request::Lookup { peers: vec![9] }.encode(token);
        match socket::send(ends[0].as_fd(), &packet, None, Room::Now) {
            Ok(_) => sent += 1,
            Err(_) if refused == 100 => break,
            Err(_) => refused += 1,
        }
        hub.turn().unwrap();
    }
    assert!(sent > BACKLOG && refused == 100, "{sent} requests are read, {refused} refused");
    say(&ends[1], 5, &Request::Lookup { peers: vec![9] });
    hub.turn().unwrap();
    receive(&ends[1]).unwrap();
    assert!(matches!(receive(&ends[1]), Some((0, Reply::Card { rank: 9, .. }))));
    let (mut heard, mut idle) = (0, 0);
    while idle < 3 {
        if socket::receive(ends[0].as_fd(), &mut buffer).is_ok() {
            (heard, idle) = (heard + 1, 0);
        } else {
            hub.turn().unwrap();
            idle += 1;
        }
    }
    // The answer to the join, too.
    assert_eq!(heard, sent + 1);
}

/// The hubs of two machines with two ranks each, and the ranks' ends.
struct Machines {
    hubs: [Hub; 2],
    ends: Vec<OwnedFd>,
}

impl Machines {
    fn start() -> Machines {
        let hubs_of: Arc<[u32]> = [0, 0, 2, 2].into();
        let (mut ours, ends): (Vec<_>, Vec<_>) = (0..4).map(|_| socket::pair().unwrap()).unzip();
        let hubs = [0_u32, 2].map(|me| {
            let sockets = (0..4).map(|rank| {
                let (near, other) = (hubs_of[rank] == me, socket::pair().unwrap().0);
                near.then(|| std::mem::replace(&mut ours[rank], other))
            });
            Hub::with(sockets.collect(), Some(Log::new(me, hubs_of.clone()))).unwrap()
        });
        let mut machines = Machines { hubs, ends };
        for rank in 0..4 {
            say(&machines.ends[rank as usize], 1, &Request::Join { rank, size: 4 });
        }
        machines.turn();
        for end in &machines.ends {
            assert_eq!(receive(end), Some((1, Reply::Answer { status: 0, bytes: Vec::new() })));
        }
        machines
    }

    /// Lets both hubs serve their requests, and carries packets between them until none is left.
    fn turn(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let mut sent = false;
            for at in [1, 0] {
                events.extend(self.hubs[at].turn().unwrap());
                for (to, packet) in self.hubs[at].take_relays() {
                    sent = true;
                    events.extend(self.hubs[to as usize / 2].relayed(2 * at as u32, &packet));
                }
            }
            if !sent {
                return events;
            }
        }
    }
}

#[test]
fn the_hubs_of_two_machines_are_one() {
    let mut machines = Machines::start();
    for (rank, end) in (0..).zip(&machines.ends) {
        say(end, 2, &Request::Exchange { total: 1, offset: 0, bytes: vec![rank] });
    }
    machines.turn();
    let all = || Reply::Answer { status: 0, bytes: vec![0, 1, 2, 3] };
    assert!(machines.ends.iter().all(|end| receive(end) == Some((2, all()))));
    // A rank asks for the card of a rank on the other machine before this hub has it.
    say(&machines.ends[1], 0, &Request::Lookup { peers: vec![3] });
    machines.turn();
    assert_eq!(receive(&machines.ends[1]), None);
    machines.hubs[0].far_cards(&[vec![0], vec![1], vec![2], vec![3]]);
    assert_eq!(receive(&machines.ends[1]), Some((0, Reply::FarCard { rank: 3, bytes: vec![3] })));
    // A death is reported on both machines, and fails the exchange in which a rank of the other
    // waits.
    say(&machines.ends[1], 4, &Request::Exchange { total: 0, offset: 0, bytes: Vec::new() });
    machines.turn();
    assert_eq!(receive(&machines.ends[1]), None);
    drop(machines.ends.pop());
    machines.turn();
    for end in &machines.ends {
        assert_eq!(receive(end), Some((0, gone(3, false))));
    }
    assert!(matches!(receive(&machines.ends[1]), Some((4, Reply::Answer { status: -4, .. }))));
    // The living meet at the fence, and leave; then both hubs are over.
    for end in &machines.ends {
        say(end, 5, &Request::Fence);
    }
    machines.turn();
    for end in &machines.ends {
        assert_eq!(receive(end), Some((5, Reply::Answer { status: 0, bytes: Vec::new() })));
        say(end, 0, &Request::Leave);
    }
    assert!(!machines.hubs[0].is_over() && !machines.hubs[1].is_over());
    machines.turn();
    assert!(machines.hubs[0].is_over() && machines.hubs[1].is_over());
}

#[test]
fn an_abort_reaches_the_ranks_of_all_machines_and_nonsense_kills_its_sender_only() {
    let mut machines = Machines::start();
    say(&machines.ends[2], 0, &Request::Fence);
    say(&machines.ends[2], 0, &Request::Fence);
    let what = "a second collective call at a time, or one that is too long";
    assert_eq!(machines.turn(), [Event::ProtocolError { rank: 2, what }]);
    for end in [0, 1, 3] {
        assert_eq!(receive(&machines.ends[end]), Some((0, gone(2, false))));
    }
    say(&machines.ends[3], 0, &Request::Abort { code: 7, grace_ms: 1 });
    let abort = || Event::Abort { rank: 3, code: 7, grace_ms: 1 };
    assert_eq!(machines.turn(), [abort(), abort()]);
}

#[test]
fn a_hub_whose_process_has_ended_takes_its_ranks_along() {
    let mut machines = Machines::start();
    say(&machines.ends[0], 5, &Request::Fence);
    machines.turn();
    // Rank 3 runs no hub; if it has died, its hub reports that.
    machines.hubs[0].lost(3);
    machines.hubs[0].lost(0);
    assert_eq!(receive(&machines.ends[0]), None);
    machines.hubs[0].lost(2);
    machines.hubs[0].lost(2);
    let ranks = || [2, 3].map(|rank| Departure { rank, left: false }).to_vec();
    for end in &machines.ends[..2] {
        assert_eq!(receive(end), Some((0, Reply::Gone { ranks: ranks() })));
    }
    say(&machines.ends[1], 5, &Request::Fence);
    machines.hubs[0].turn().unwrap();
    for end in &machines.ends[..2] {
        assert_eq!(receive(end), Some((5, Reply::Answer { status: 0, bytes: Vec::new() })));
        say(end, 0, &Request::Leave);
    }
    machines.hubs[0].turn().unwrap();
    assert!(machines.hubs[0].take_relays().is_empty() && machines.hubs[0].is_over());
    machines.hubs[1].lost(1);
    assert!(!machines.hubs[1].is_over());
    machines.hubs[1].lost(0);
    assert!(machines.hubs[1].is_over());
}

/// The departure of a rank is heard at once, though its hub goes on; when that hub ends, the ranks
/// that it leaves behind have left for those of other machines.
#[test]
fn a_hub_that_ends_tells_whom_it_leaves_behind() {
    let mut machines = Machines::start();
    say(&machines.ends[0], 5, &Request::Fence);
    say(&machines.ends[1], 6, &Request::Exchange { total: 0, offset: 0, bytes: Vec::new() });
    say(&machines.ends[2], 0, &Request::Leave);
    machines.turn();
    for end in [0, 1, 3] {
        assert_eq!(receive(&machines.ends[end]), Some((0, gone(2, true))));
    }
    assert!(matches!(receive(&machines.ends[1]), Some((6, Reply::Answer { status: -4, .. }))));
    assert_eq!(machines.hubs[0].take_ended(), []);
    // The hub still serves its other rank.
    say(&machines.ends[3], 7, &Request::Exchange { total: 0, offset: 0, bytes: Vec::new() });
    machines.turn();
    assert!(matches!(receive(&machines.ends[3]), Some((7, Reply::Answer { status: -4, .. }))));
    machines.hubs[1].say_end();
    machines.turn();
    for end in &machines.ends[..2] {
        assert_eq!(receive(end), Some((0, gone(3, true))));
    }
    assert_eq!(machines.hubs[0].take_ended(), [2]);
    say(&machines.ends[1], 8, &Request::Fence);
    machines.turn();
    for (rank, token) in [(0, 5), (1, 8)] {
        let answer = Reply::Answer { status: 0, bytes: Vec::new() };
        assert_eq!(receive(&machines.ends[rank]), Some((token, answer)));
    }
}

/// The hub of rank 0 speaks to a machine until it has heard that all ranks there have left. A
/// packet that arrives after the end of the other hub would stay in the network.
#[test]
fn a_hub_ends_when_nothing_more_is_sent_to_it() {
    let mut machines = Machines::start();
    machines.ends[2..].iter().for_each(|end| say(end, 0, &Request::Leave));
    let Machines { hubs: [deciding, other], ends } = &mut machines;
    other.turn().unwrap();
    assert_eq!((other.pulsed(), deciding.pulsed()), (vec![], vec![2]));
    let leave = other.take_relays();
    assert!(!leave.is_empty() && !other.is_over(), "the deciding hub has not answered");
    say(&ends[0], 0, &Request::Leave);
    deciding.turn().unwrap();
    for (_, packet) in leave {
        deciding.relayed(2, &packet);
    }
    assert_eq!(deciding.take_ended(), [2]);
    assert!(!other.is_over(), "packets are under way to it");
    for (to, packet) in deciding.take_relays() {
        assert_eq!(to, 2);
        other.relayed(0, &packet);
    }
    assert!(other.is_over());
    say(&ends[1], 0, &Request::Leave);
    deciding.turn().unwrap();
    assert!(deciding.take_relays().is_empty() && deciding.is_over());
}

#[test]
fn without_the_hub_that_decides_no_other_goes_on() {
    let mut machines = Machines::start();
    say(&machines.ends[0], 0, &Request::Leave);
    say(&machines.ends[1], 0, &Request::Leave);
    say(&machines.ends[2], 5, &Request::Fence);
    machines.turn();
    assert!(!machines.hubs[0].is_over() && !machines.hubs[1].is_over());
    machines.hubs[0].say_end();
    machines.turn();
    assert!(machines.hubs[1].is_over());
    // It says nothing to a hub that has ended.
    machines.hubs[1].say_end();
    assert!(machines.hubs[1].take_relays().is_empty());
}
