use super::*;
use crate::bootstrap::log::Entry;
use crate::bootstrap::protocol::Request;
use crate::util::rendezvous::{listen, secret};
use crate::util::socket::Room;
use std::sync::atomic::{AtomicU32, Ordering};

/// A hub may hear of the others' departures by the wire alone, which perhaps only the thread that
/// waits for the hub may poll.
#[test]
fn who_waits_for_the_end_of_the_hub_polls() {
    let (name, key) = (secret().unwrap(), secret().unwrap());
    let (end, host) = Host::start(listen(&name, 2).unwrap(), key, (0, 2)).unwrap();
    let hubs: Arc<[u32]> = [0, 1].into();
    let requests = host.hub_requests();
    requests.set_hubs(hubs.clone());
    let say = |request: Request| {
        socket::send(end.as_fd(), &request.encode(1), None, Room::Now).unwrap();
    };
    say(Request::Join { rank: 0, size: 2 });
    // Before the hub serves its ranks it would end at once.
    socket::poll(&mut [interest(end.as_fd(), libc::POLLIN)], -1).unwrap();
    say(Request::Leave);
    let mut other = Log::new(1, hubs);
    other.submit(Entry { rank: 1, packet: Request::Leave.encode(0) });
    let packet = other.take_outgoing().remove(0).1;
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let poll: Meanwhile = Box::new(move || {
        if counted.fetch_add(1, Ordering::Relaxed) == 1 {
            requests.relayed(1, packet.clone());
        }
    });
    host.leave(None, Some(&poll));
    assert!(calls.load(Ordering::Relaxed) > 1);
}
