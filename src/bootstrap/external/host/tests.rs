use super::*;
use crate::bootstrap::log::Entry;
use crate::bootstrap::protocol::Request;
use crate::util::rendezvous::{connect, listen, secret};
use crate::util::socket::Room;
use std::io::Read;
use std::process::{Command, Stdio};
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

/// If the process of the hub ended before the others have left, they would find that all are dead.
#[test]
fn the_rank_of_the_hub_leaves_after_the_others_of_its_machine() {
    let (name, key) = (secret().unwrap(), secret().unwrap());
    let (end, host) = Host::start(listen(&name, 2).unwrap(), key, (0, 2)).unwrap();
    host.hub_requests().set_hubs([0, 0].into());
    let other = connect(&name).unwrap().unwrap();
    let probe = Wake::new().unwrap();
    socket::send(other.as_fd(), &hello(&key, 1), Some(probe.as_fd()), Room::Now).unwrap();
    for (rank, end) in [(0, &end), (1, &other)] {
        let join = Request::Join { rank, size: 2 }.encode(1);
        socket::send(end.as_fd(), &join, None, Room::Now).unwrap();
        socket::poll(&mut [interest(end.as_fd(), libc::POLLIN)], -1).unwrap();
    }
    let leave = |end: &OwnedFd| {
        socket::send(end.as_fd(), &Request::Leave.encode(1), None, Room::Now).unwrap();
    };
    leave(&end);
    let start = Instant::now();
    let later = Duration::from_millis(100);
    let leaves = std::thread::spawn(move || {
        std::thread::sleep(later);
        leave(&other);
        other
    });
    host.leave(Some(start + Duration::from_secs(30)), None);
    let took = start.elapsed();
    assert!((later..Duration::from_secs(20)).contains(&took), "{took:?}");
    leaves.join().unwrap();
}

/// A process that ignores SIGTERM is killed when the time of the second call is over, also where
/// that call comes from a rank of another machine. Other machines hear of the second call of a rank
/// of this one.
#[test]
fn a_second_end_of_the_job_shortens_the_time_on_all_machines() {
    for second in [1, 2] {
        let mut deaf = Command::new("/bin/sh");
        deaf.args(["-c", "trap '' TERM; echo; exec sleep 60"]).stdout(Stdio::piped());
        let mut deaf = deaf.spawn().unwrap();
        deaf.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let hubs: Arc<[u32]> = [0, 0, 2].into();
        let ((near, _end), (other, end)) = (socket::pair().unwrap(), socket::pair().unwrap());
        let log = Some(Log::new(0, hubs.clone()));
        let mut hub = Hub::with(vec![Some(near), Some(other), None], log).unwrap();
        let process = socket::process(deaf.id()).unwrap();
        let join = Request::Join { rank: 1, size: 3 }.encode(1);
        socket::send(end.as_fd(), &join, Some(process.as_fd()), Room::Now).unwrap();
        assert_eq!(hub.turn().unwrap(), []);
        let requests = HubRequests { wake: Wake::new().unwrap(), pending: Mutex::default() };
        let abort = Request::Abort { code: 4, grace_ms: 10 }.encode(0);
        if second == 1 {
            socket::send(end.as_fd(), &abort, None, Room::Now).unwrap();
        } else {
            let mut far = Log::new(2, hubs);
            far.submit(Entry { rank: 2, packet: abort });
            requests.relayed(2, far.take_outgoing().remove(0).1);
        }
        let carried = Arc::new(AtomicU32::new(0));
        let counted = carried.clone();
        let carry: Carry = Box::new(move |to, what| {
            assert!(to == 2 && matches!(what, Relay::Packet(_)));
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let start = Instant::now();
        end_all(&mut hub, (Some(&carry), &requests), (0, true), (2, 3, 30_000));
        assert!(start.elapsed() < Duration::from_secs(15), "rank {second} shortens no time");
        assert_eq!(carried.load(Ordering::Relaxed), 1, "the other machine has not heard of it");
        assert_eq!(deaf.wait().unwrap().code(), None);
    }
}

#[test]
fn hubs_get_a_pulse_when_it_is_due() {
    let hub = Hub::with(vec![None, None, None], Some(Log::new(0, [0, 1, 2].into()))).unwrap();
    let beats = Arc::new(Mutex::new(Vec::new()));
    let heard = beats.clone();
    let carry: Carry = Box::new(move |to, what| {
        assert!(matches!(what, Relay::Pulse));
        heard.lock().unwrap().push(to);
    });
    let now = Instant::now();
    let due = now + Duration::from_millis(1);
    assert_eq!(beat(&hub, Some(&carry), due, now), due);
    assert_eq!(*beats.lock().unwrap(), [0; 0]);
    assert_eq!(beat(&hub, Some(&carry), now, now), now + PULSE);
    assert_eq!(*beats.lock().unwrap(), [1, 2]);
}

/// Such a process has called exec, and the others count its rank as dead when it has ended.
#[test]
fn a_process_that_closes_its_connection_and_goes_on_is_killed() {
    let (name, key) = (secret().unwrap(), secret().unwrap());
    let (_end, host) = Host::start(listen(&name, 2).unwrap(), key, (0, 2)).unwrap();
    host.hub_requests().set_hubs([0, 0].into());
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let process = socket::process(child.id()).unwrap();
    let end = connect(&name).unwrap().unwrap();
    socket::send(end.as_fd(), &hello(&key, 1), Some(process.as_fd()), Room::Now).unwrap();
    let join = Request::Join { rank: 1, size: 2 }.encode(1);
    socket::send(end.as_fd(), &join, Some(process.as_fd()), Room::Now).unwrap();
    socket::poll(&mut [interest(end.as_fd(), libc::POLLIN)], -1).unwrap();
    drop(end);
    let start = Instant::now();
    assert_eq!(child.wait().unwrap().code(), None);
    assert!(start.elapsed() < Duration::from_secs(30));
}
