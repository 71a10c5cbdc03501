use super::*;

mod faults;

/// The events of a lane, in order.
#[derive(Default)]
struct Polled {
    frames: Vec<(u32, u32, Vec<u8>)>,
    done: Vec<u64>,
    others: Vec<(u32, u32)>,
}

fn poll(lane: &mut dyn WireLane, polled: &mut Polled) {
    let mut events = [Event::NONE; 5];
    let count = lane.poll(&mut events);
    for event in &events[..count] {
        match event.event {
            Event::DONE => polled.done.push(event.tag),
            Event::FRAME => {
                // SAFETY: the lane keeps the bytes valid until give_back().
                let bytes = unsafe { std::slice::from_raw_parts(event.bytes, event.size as usize) };
                polled.frames.push((event.peer, event.class, bytes.into()));
                lane.give_back(event.frame);
            }
            other => polled.others.push((other, event.peer)),
        }
    }
}

/// Frames of one byte. They live on, since a network may read them until their commands have ended.
static ONES: [[u8; 1]; 20] = [[1]; 20];

fn post<F: AsRef<[u8]>>(
    lane: &mut dyn WireLane,
    peer: u32,
    class: u32,
    frames: &[F],
) -> (usize, Status) {
    let piece = |frame: &F| {
        let frame = frame.as_ref();
        super::super::Piece { address: frame.as_ptr(), size: frame.len() as u64, local: 0 }
    };
    let pieces: Vec<_> = frames.iter().map(piece).collect();
    let commands: Vec<_> =
        pieces.iter().zip(0..).map(|(piece, tag)| Command::frame(tag, piece)).collect();
    // SAFETY: the frames live until their commands have ended, or nobody polls any more.
    unsafe { lane.post(peer, class, &commands) }
}

fn pair(nature: Nature) -> [Box<dyn WireLane>; 2] {
    let wires = [0, 1].map(|me| Simulated::new(me, nature).unwrap());
    let mut lanes = [0, 1].map(|me: usize| wires[me].lane().unwrap());
    lanes[0].connect(1, &wires[1].card().unwrap()).unwrap();
    lanes
}

/// Twelve seeds, and each combination of abilities.
fn natures() -> impl Iterator<Item = Nature> {
    let all = Nature::combinations().map(|name| Nature::named(&name).unwrap());
    (1..=12).map(Nature::of).chain(all)
}

#[test]
fn seeds_cover_what_differs_between_networks() {
    // The ten seeds of `make check-all`.
    let all: Vec<Nature> = (1..=10).map(Nature::of).collect();
    type Has = fn(&Nature) -> bool;
    let abilities: [Has; 10] = [
        |it| it.has_fd,
        |it| it.can_fence,
        |it| it.late,
        |it| it.caps.remote,
        |it| it.caps.atomics != 0,
        |it| it.caps.inline_most > 0,
        |it| it.caps.needs_local_key,
        |it| it.caps.notice_bits > 0,
        |it| it.caps.has_signals(),
        |it| it.caps.shared_queue,
    ];
    for (has, ability) in abilities.iter().enumerate() {
        let with = all.iter().filter(|nature| ability(nature)).count();
        assert!((1..10).contains(&with), "ability {has}: {with} of ten seeds");
    }
    assert!([512, 4096, 1 << 20].iter().all(|size| all.iter().any(|n| n.caps.frame_most == *size)));
}

#[test]
fn nothing_of_the_dead_comes_after_the_fence() {
    for nature in natures() {
        let [mut here, mut there] = pair(nature);
        let mut sent = 0;
        let (mut polled, mut own) = (Polled::default(), Polled::default());
        while sent < 20 {
            sent += post(&mut *here, 1, 2, &ONES[sent..]).0;
            // With a shared queue the lane takes further frames only when these have come.
            poll(&mut *there, &mut polled);
            poll(&mut *here, &mut own);
        }
        here.close(Duration::ZERO).unwrap();
        there.fence(0);
        while polled.others.is_empty() {
            poll(&mut *there, &mut polled);
        }
        assert_eq!(polled.frames.len(), 20);
        let event = if nature.can_fence { Event::FENCED } else { Event::UNFENCEABLE };
        assert_eq!(polled.others, [(event, 0)]);
    }
}

/// Each frame for a rank that is given up completes once, before the fence's event: also one that
/// no receive takes, since the rank does not poll.
#[test]
fn each_frame_ends_before_the_fence() {
    for nature in natures() {
        let ([mut here, there], mut polled) = (pair(nature), Polled::default());
        let mut taken = 0;
        while taken < 5 {
            taken += post(&mut *here, 1, 4, &ONES[taken..5]).0;
        }
        here.fence(1);
        while !polled.others.iter().any(|(event, _)| *event != Event::CONNECTED) {
            poll(&mut *here, &mut polled);
        }
        assert_eq!(polled.done.len(), 5, "seed {}", nature.seed);
        drop(there);
        (0..100).for_each(|_| poll(&mut *here, &mut polled));
        assert_eq!(polled.done.len(), 5, "seed {}: one has ended twice", nature.seed);
    }
}

/// On a network with a shared queue a command ends when a receive has taken its frame: few frames
/// wait for a peer and class, and they delay none of another class. Those that wait end when the
/// peer has gone; what has ended comes, though its sender has gone.
#[test]
fn with_a_shared_queue_a_frame_ends_in_a_receive() {
    let [mut here, mut there] = pair(Nature::named("1:shared=1").unwrap());
    let (mut events, mut kept, mut done) = ([Event::NONE; 5], 0, Polled::default());
    let (mut sent, mut refused) = (0, 0);
    // The peer gives nothing of class 4 back.
    while refused < 1000 {
        let (taken, _) = post(&mut *here, 1, 4, &ONES[..1]);
        sent += taken;
        refused = if taken > 0 { 0 } else { refused + 1 };
        kept += there.poll(&mut events);
        poll(&mut *here, &mut done);
        std::thread::sleep(Duration::from_micros(1));
    }
    assert_eq!((kept, done.done.len()), (RECEIVES, RECEIVES));
    assert!(sent > RECEIVES && sent < RECEIVES + 20, "{sent} were taken");
    while post(&mut *here, 1, 5, &ONES[..1]).0 == 0 {}
    let limit = Instant::now() + Duration::from_secs(10);
    while done.done.len() == RECEIVES {
        assert!(Instant::now() < limit, "another class is delayed");
        there.poll(&mut events);
        poll(&mut *here, &mut done);
    }
    there.close(Duration::ZERO).unwrap();
    while done.done.len() < sent + 1 {
        assert!(Instant::now() < limit, "a frame for a peer that is gone does not end");
        poll(&mut *here, &mut done);
    }
}

#[test]
fn what_is_coming_is_slept_for() {
    for nature in natures() {
        let [mut here, mut there] = pair(nature);
        let idle = there.arm();
        assert_eq!(matches!(idle, Armed::Fd(_, Duration::MAX)), nature.has_fd);
        there.disarm();
        while post(&mut *here, 1, 2, &ONES[..1]).0 == 0 {}
        let limit = Instant::now() + Duration::from_secs(10);
        let mut leave = |what: &str| {
            assert!(Instant::now() < limit, "{nature:?}: {what}");
            poll(&mut *here, &mut Polled::default());
        };
        if let Armed::Fd(fd, _) = idle {
            // SAFETY: the lane lives.
            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
            let mut waits = [crate::util::socket::interest(fd, libc::POLLIN)];
            while crate::util::socket::poll(&mut waits, 1).unwrap() == 0 {
                leave("the descriptor is silent");
            }
        }
        while there.arm() == idle {
            leave("something is coming");
        }
    }
}

#[test]
fn a_closed_lane_is_found_by_nobody() {
    let wires = [0, 1].map(|me| Simulated::new(me, Nature::of(1)).unwrap());
    let [mut here, mut there] = [0, 1].map(|me: usize| wires[me].lane().unwrap());
    there.close(Duration::ZERO).unwrap();
    let error = here.connect(1, &wires[1].card().unwrap()).unwrap_err();
    assert!(error.message().contains("rank 1 is not on the simulated network"), "{error}");
}

/// A receiver that gives no frame of a class back stops this class only, and loses no frame.
#[test]
fn a_class_whose_frames_are_kept_stops_no_other() {
    for nature in natures() {
        let ([mut here, mut there], mut sent) = (pair(nature), [0; 2]);
        let (mut kept, mut others) = (Vec::new(), 0);
        let frames: Vec<Vec<u8>> = (0..100).map(|number| vec![number; 9]).collect();
        let mut events = [Event::NONE; 5];
        let limit = Instant::now() + Duration::from_secs(10);
        while others < 100 || kept.len() < RECEIVES || there.arm() == Armed::PollNow {
            assert!(Instant::now() < limit, "{others} others, {} kept", kept.len());
            there.disarm();
            for (class, sent) in [4, 1].into_iter().zip(&mut sent) {
                *sent += post(&mut *here, 1, class, &frames[*sent..]).0;
            }
            here.poll(&mut events);
            let count = there.poll(&mut events);
            for event in &events[..count] {
                match event.class {
                    4 => kept.push(event.frame),
                    _ => there.give_back(event.frame),
                }
                others += usize::from(event.class == 1);
            }
        }
        assert_eq!(kept.len(), RECEIVES);
        there.give_back(kept[0]);
        while there.poll(&mut events) == 0 {
            assert!(Instant::now() < limit, "what was given back takes the next frame");
            poll(&mut *here, &mut Polled::default());
        }
        assert_eq!(events[0].class, 4);
    }
}

/// Networks that read and write memory: six seeds, and each combination of the other abilities.
fn remote() -> impl Iterator<Item = Nature> {
    let seeds = (1..=6).map(|seed| format!("{seed}:remote=1:atomics=2"));
    let all = seeds.chain(Nature::combinations()).map(|name| Nature::named(&name).unwrap());
    all.filter(|nature| nature.caps.remote)
}

/// Posts a command with one piece until the lane takes it.
fn post_one(
    lane: &mut dyn WireLane,
    peer: u32,
    mut command: Command,
    piece: super::super::Piece,
    (remote, key): (u64, &Key),
) {
    (command.remote, command.wire, command.piece) = (remote, key.wire, &raw const piece);
    // SAFETY: the tests keep the bytes until completion.
    while unsafe { lane.post(peer, super::super::CLASS_RMA, &[command]) }.0 == 0 {
        std::thread::yield_now();
    }
}

fn command(op: u8, tag: u64, size: u64) -> Command {
    let nothing = super::super::Piece { address: std::ptr::null(), size: 0, local: 0 };
    Command { op, size, ..Command::frame(tag, &nothing) }
}

/// Polls until the command with this tag has completed.
fn end_of(lane: &mut dyn WireLane, tag: u64) -> Event {
    loop {
        let mut events = [Event::NONE; 1];
        if lane.poll(&mut events) == 1 && events[0].event == Event::DONE {
            assert_eq!(events[0].tag, tag);
            return events[0];
        }
    }
}

struct Both {
    wires: [Simulated; 2],
    lane: Box<dyn WireLane>,
    there: Box<dyn WireLane>,
}

fn both(nature: Nature) -> Both {
    let wires = [0, 1].map(|me| Simulated::new(me, nature).unwrap());
    let [mut lane, there] = [0, 1].map(|me: usize| wires[me].lane().unwrap());
    lane.connect(1, &wires[1].card().unwrap()).unwrap();
    Both { wires, lane, there }
}

impl Both {
    /// Registers `local`, executes a command on it, and returns its completion.
    fn access(&mut self, command: Command, local: &mut [u64], remote: (u64, &Key)) -> Event {
        let (address, size) = (local.as_mut_ptr().cast::<u8>(), command.size);
        let own = self.wires[0].register(address, size_of_val(local) as u64).unwrap();
        let piece = super::super::Piece { address, size, local: own.local };
        post_one(&mut *self.lane, 1, command, piece, remote);
        let end = end_of(&mut *self.lane, command.tag);
        self.wires[0].deregister(&own, Duration::ZERO).unwrap();
        end
    }
}

/// Reads, writes and atomics complete while nobody polls at the memory's owner. An access with a
/// wrong key, or beyond the registered memory, changes nothing.
#[test]
fn memory_is_reached_without_its_owner() {
    for nature in remote() {
        let (mut both, mut theirs) = (both(nature), [1_u64, 2, 3, 4]);
        let base = theirs.as_mut_ptr();
        let key = both.wires[1].register(base.cast(), 24).unwrap();
        let at = |index: u64| (base as u64 + 8 * index, &key);
        let mut ours = [70_u64, 80];
        let write = command(Command::WRITE, 1, 16);
        assert_eq!(both.access(write, &mut ours, at(1)).status, 0);
        // SAFETY: nobody writes there now.
        assert_eq!(unsafe { base.cast::<[u64; 4]>().read() }, [1, 70, 80, 4]);
        let read = command(Command::READ, 2, 16);
        assert_eq!(both.access(read, &mut ours, at(0)).status, 0);
        assert_eq!(ours, [1, 70]);
        let add = Command { atomic: 5, operand: 5, pieces: 0, ..command(Command::ATOMIC, 3, 8) };
        assert_eq!(both.access(add, &mut [0], at(0)).fetched, 1);
        let swap = Command { atomic: 4, compare: 6, operand: 9, ..add };
        assert_eq!(both.access(swap, &mut [0], at(0)).fetched, 6);
        let set = Command { atomic: 3, operand: 9, ..add };
        assert_eq!(both.access(set, &mut [0], at(0)).fetched, 9);
        let invalid = both.access(add, &mut [0], (base as u64 + 4, &key));
        assert_eq!(Status(invalid.status), Status::ERR_INVALID);
        let other = Key { wire: [77, 0, 0, 0], ..key };
        for (place, key) in [(at(2).0, &key), (at(0).0 - 8, &key), (at(0).0, &other)] {
            let end = both.access(command(Command::WRITE, 4, 16), &mut ours, (place, key));
            assert_eq!(Status(end.status), Status::ERR_KEY);
        }
        // SAFETY: as above.
        assert_eq!(unsafe { base.cast::<[u64; 4]>().read() }, [9, 70, 80, 4]);
    }
}

/// Writes that are pending when their sender closes its lane still arrive: in memory that is still
/// registered, not in memory that was deregistered before, and not after the fence.
#[test]
fn late_writes_of_the_dead_land_before_the_fence_or_nowhere() {
    let mut late = 0;
    for nature in remote() {
        let (mut both, mut theirs) = (both(nature), [0_u64; 40]);
        let base = theirs.as_mut_ptr();
        let keys = [0, 20].map(|at| {
            // SAFETY: within the array.
            both.wires[1].register(unsafe { base.add(at) }.cast(), 160).unwrap()
        });
        let mut ours = [5_u64; 1];
        let own = both.wires[0].register(ours.as_mut_ptr().cast(), 8).unwrap();
        for word in 0..40 {
            let (address, key) = (ours.as_mut_ptr().cast::<u8>(), &keys[word / 20]);
            let piece = super::super::Piece { address, size: 8, local: own.local };
            let remote = base as u64 + 8 * word as u64;
            let write = command(Command::WRITE, word as u64, 8);
            post_one(&mut *both.lane, 1, write, piece, (remote, key));
        }
        both.lane.close(Duration::ZERO).unwrap();
        both.wires[1].deregister(&keys[1], Duration::ZERO).unwrap();
        // SAFETY: the lane of the other rank writes only when it is polled, below.
        let words = || unsafe { base.cast::<[u64; 40]>().read() };
        late += words().iter().filter(|word| **word == 0).count();
        both.there.fence(0);
        let mut polled = Polled::default();
        while polled.others.is_empty() {
            poll(&mut *both.there, &mut polled);
        }
        assert_eq!(words()[..20], [5; 20]);
        assert_eq!(words()[20..], [0; 20], "seed {}", nature.seed);
    }
    assert!(late > 0);
}

/// Each command for a rank that has closed its lane completes once, before the fence's event.
#[test]
fn what_is_posted_to_the_dead_ends_before_the_fence() {
    for nature in remote() {
        let (mut both, mut theirs) = (both(nature), [0_u64; 1]);
        let key = both.wires[1].register(theirs.as_mut_ptr().cast(), 8).unwrap();
        both.there.close(Duration::ZERO).unwrap();
        let mut ours = [5_u64; 1];
        let own = both.wires[0].register(ours.as_mut_ptr().cast(), 8).unwrap();
        for tag in 0..20 {
            let address = ours.as_mut_ptr().cast::<u8>();
            let piece = super::super::Piece { address, size: 8, local: own.local };
            let read = command(Command::READ, tag, 8);
            post_one(&mut *both.lane, 1, read, piece, (theirs.as_ptr() as u64, &key));
        }
        both.lane.fence(1);
        let (mut ended, mut events) = (Vec::new(), [Event::NONE; 3]);
        let last = 'over: loop {
            let count = both.lane.poll(&mut events);
            for event in &events[..count] {
                match event.event {
                    Event::DONE => {
                        assert_eq!(Status(event.status), Status::ERR_PEER_DEAD);
                        ended.push(event.tag);
                    }
                    Event::CONNECTED => {}
                    other => break 'over other,
                }
            }
        };
        ended.sort_unstable();
        assert!(ended.iter().copied().eq(0..20) && ours == [5]);
        assert!(last == if nature.can_fence { Event::FENCED } else { Event::UNFENCEABLE });
    }
}

#[test]
fn switches_replace_what_the_seed_says() {
    let nature =
        Nature::named("3:remote=1:inline=7:keys=1:fd=0:message=9:frame=600:fence=0:answers=1")
            .unwrap();
    let caps = &nature.caps;
    assert!(caps.remote && caps.needs_local_key && !nature.has_fd && !nature.can_fence);
    assert!(nature.caps.answers);
    assert_eq!((caps.inline_most, caps.message_most, caps.frame_most), (7, 9, 600));
    assert_eq!(Nature::named("1:remote=0").unwrap().caps.atomics, 0);
    for (wrong, why) in [
        ("x", "expected a number first"),
        ("1:remote", "expected SWITCH=NUMBER"),
        ("1:colour=2", "has switch colour, expected answers, atomics, fd"),
    ] {
        let error = Nature::named(wrong).unwrap_err();
        assert!(error.message().contains(why), "{error}");
    }
}
