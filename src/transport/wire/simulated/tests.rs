use super::*;

/// What a lane has told, in order.
#[derive(Default)]
struct Told {
    frames: Vec<(u32, u32, Vec<u8>)>,
    done: Vec<u64>,
    others: Vec<(u32, u32)>,
}

fn poll(lane: &mut dyn WireLane, told: &mut Told) {
    let mut events = [Event::NONE; 5];
    let count = lane.poll(&mut events);
    for event in &events[..count] {
        match event.event {
            Event::DONE => told.done.push(event.tag),
            Event::FRAME => {
                // SAFETY: the lane keeps them until they are given back.
                let bytes = unsafe { std::slice::from_raw_parts(event.bytes, event.size as usize) };
                told.frames.push((event.peer, event.class, bytes.into()));
                lane.give_back(event.frame);
            }
            other => told.others.push((other, event.peer)),
        }
    }
}

fn post(lane: &mut dyn WireLane, peer: u32, class: u32, frames: &[Vec<u8>]) -> (usize, Status) {
    let piece = |frame: &Vec<u8>| super::super::Piece {
        address: frame.as_ptr(),
        size: frame.len() as u64,
        local: 0,
    };
    let pieces: Vec<_> = frames.iter().map(piece).collect();
    let commands: Vec<_> =
        pieces.iter().zip(0..).map(|(piece, tag)| Command::frame(tag, piece)).collect();
    // SAFETY: the frames live until the end of the test.
    unsafe { lane.post(peer, class, &commands) }
}

fn pair(nature: Nature) -> [Box<dyn WireLane>; 2] {
    let wires = [0, 1].map(|me| Simulated::new(me, nature).unwrap());
    let mut lanes = [0, 1].map(|me: usize| wires[me].lane().unwrap());
    lanes[0].connect(1, &wires[1].card().unwrap()).unwrap();
    lanes
}

fn natures() -> impl Iterator<Item = Nature> {
    (1..=12).map(Nature::of)
}

#[test]
fn seeds_cover_what_differs_between_networks() {
    let all: Vec<Nature> = natures().collect();
    for has in [true, false] {
        assert!(all.iter().any(|nature| nature.has_fd == has));
        assert!(all.iter().any(|nature| nature.caps.can_fence == has));
    }
    assert!([512, 4096, 1 << 20].iter().all(|size| all.iter().any(|n| n.caps.frame_most == *size)));
}

/// All frames come once; some out of order, some posts are taken in part, some not at all. The end
/// of each command is reported once. A rank that has got a frame can answer.
#[test]
fn frames_overtake_each_other_and_posts_are_taken_in_part() {
    let (mut overtaken, mut part, mut none) = (false, false, false);
    for nature in natures() {
        let ([mut here, mut there], mut sent) = (pair(nature), 0);
        assert_eq!(post(&mut *there, 0, 1, &[vec![]]), (0, Status::RETRY_CONNECTING));
        let frames: Vec<Vec<u8>> = (0..100).map(|number| vec![number; 9]).collect();
        let (mut at_here, mut at_there) = (Told::default(), Told::default());
        while at_there.frames.len() < 100 || at_here.done.len() < 100 {
            if sent < 100 {
                let end = (sent + 7).min(100);
                let (taken, why) = post(&mut *here, 1, 2, &frames[sent..end]);
                assert_eq!(taken == end - sent, why == Status::OK);
                part |= taken > 0 && sent + taken < end;
                none |= taken == 0;
                sent += taken;
            }
            poll(&mut *here, &mut at_here);
            poll(&mut *there, &mut at_there);
        }
        let mut came: Vec<u8> = at_there.frames.iter().map(|frame| frame.2[0]).collect();
        assert!(
            at_there
                .frames
                .iter()
                .all(|(peer, class, frame)| { (*peer, *class, frame.len()) == (0, 2, 9) })
        );
        overtaken |= !came.is_sorted();
        came.sort_unstable();
        assert!(came.iter().copied().eq(0..100), "seed {}", nature.seed);
        assert_eq!(at_here.others, [(Event::CONNECTED, 1)]);
        while post(&mut *there, 0, 0, &[vec![5]]).0 == 0 {}
        while at_here.frames.is_empty() {
            poll(&mut *here, &mut at_here);
        }
        assert_eq!(at_here.frames, [(1, 0, vec![5])]);
    }
    assert!(overtaken && part && none);
}

#[test]
fn nothing_of_the_dead_comes_after_the_fence() {
    for nature in natures() {
        let [mut here, mut there] = pair(nature);
        let mut sent = 0;
        while sent < 20 {
            sent += post(&mut *here, 1, 2, &vec![vec![1]; 20 - sent]).0;
        }
        drop(here);
        there.fence(0);
        let mut told = Told::default();
        while told.others.is_empty() {
            poll(&mut *there, &mut told);
        }
        assert_eq!(told.frames.len(), 20);
        let event = if nature.caps.can_fence { Event::FENCED } else { Event::UNFENCEABLE };
        assert_eq!(told.others, [(event, 0)]);
    }
}

#[test]
fn what_is_coming_is_slept_for() {
    for nature in natures() {
        let [mut here, mut there] = pair(nature);
        let idle = there.arm();
        assert_eq!(matches!(idle, Armed::Fd(_, Duration::MAX)), nature.has_fd);
        there.disarm();
        while post(&mut *here, 1, 2, &[vec![1]]).0 == 0 {}
        if let Armed::Fd(fd, _) = idle {
            // SAFETY: the lane lives.
            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
            let mut waits = [crate::util::socket::interest(fd, libc::POLLIN)];
            assert_eq!(crate::util::socket::poll(&mut waits, 10_000).unwrap(), 1);
        }
        assert_ne!(there.arm(), idle, "something is coming");
    }
}

#[test]
fn a_closed_lane_is_found_by_nobody() {
    let wires = [0, 1].map(|me| Simulated::new(me, Nature::of(1)).unwrap());
    let [mut here, mut there] = [0, 1].map(|me: usize| wires[me].lane().unwrap());
    there.close(Duration::ZERO).unwrap();
    let error = here.connect(1, &wires[1].card().unwrap()).unwrap_err();
    assert!(error.message().contains("rank 1 has no end"), "{error}");
}

/// Frames of which the receiver gives none back stop their own class only; nothing is lost.
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
        }
        assert_eq!(events[0].class, 4);
    }
}
