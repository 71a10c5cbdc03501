use super::*;
use crate::transport::frame::{Class, Frame};
use crate::transport::wire::buffers::Buffers;
use crate::transport::wire::bundle::tests::unpacked;
use std::time::{Duration, Instant};

impl Grants {
    /// send() for an encoded frame.
    pub fn send_one(&mut self, to: u32, line: Line, it: &OwnedFrame, out: &mut Out) -> bool {
        let mut frames = Buffers::new(8000);
        self.send((to, line), (it.class, &it.frame()), &mut frames, out)
    }

    /// The answer of a knock without further frames waits for a packet that carries it.
    #[cfg(feature = "simulated")]
    pub fn never_answer_alone(&mut self) {
        self.ride = Duration::MAX;
    }

    /// Whether no received frame has waited for a slot.
    #[cfg(feature = "simulated")]
    pub fn has_kept_none(&self) -> bool {
        self.come.iter().all(|come| come.capacity() == 0)
    }

    /// Grants that a peer has, or will have, and has not used.
    #[cfg(feature = "simulated")]
    pub fn granted_to(&self, peer: u32) -> usize {
        self.receiving.get(peer).map_or(0, |peer| peer.out.iter().sum())
    }
}

/// Ranks without a network between them: what one sends is handed over where the test says.
struct Ranks {
    ends: Vec<Grants>,
    /// Sender, receiver, packet.
    wire: Vec<(u32, u32, Packet)>,
    posted: streams::Posted,
    random: u64,
}

impl Ranks {
    fn new(count: usize, seed: u64) -> Ranks {
        let ends =
            (0..count).map(|_| Grants { ride: Duration::ZERO, ..Grants::default() }).collect();
        Ranks { ends, wire: Vec::new(), posted: Default::default(), random: seed }
    }

    fn post(&mut self, from: u32, out: Out) {
        let out = unpacked(out);
        out.iter().for_each(|(_, packet)| self.posted.count(packet));
        self.wire.extend(out.into_iter().map(|(to, packet)| (from, to, packet)));
    }

    fn send(&mut self, from: u32, to: u32, line: Line, tag: u64, size: usize) -> bool {
        let payload = vec![7; size];
        let frame =
            Frame { id: 1, kind: 0, tag, header: &[], payload: &payload, label: 0, absent: false };
        let copy = OwnedFrame::of(Class::Requests, &frame);
        let (end, mut out) = (&mut self.ends[from as usize], Out::new());
        // The short way, of every other frame.
        if tag % 2 == 1
            && !end.knocks(to, line)
            && let Some(number) = end.begin_alone(to, line, copy.size())
        {
            let knock = Knock { number, demand: 0, first: Some(copy) };
            self.post(from, vec![(to, Packet::Knock(line, knock))]);
            return true;
        }
        if !end.has_room(to, line) {
            return false;
        }
        end.send_one(to, line, &copy, &mut out);
        self.post(from, out);
        true
    }

    /// Hands over any of the packets under way; false: there is none.
    fn step(&mut self, mut deliver: impl FnMut(u32, u32, u64) -> bool) -> bool {
        self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(99);
        if self.wire.is_empty() {
            return false;
        }
        let at = (self.random >> 33) as usize % self.wire.len();
        let (from, to, packet) = self.wire.swap_remove(at);
        let mut out = Out::new();
        let end = &mut self.ends[to as usize];
        // The short way, where it is free.
        match &packet {
            Packet::Knock(line, Knock { number, demand: 0, first: Some(it) })
                if end.may_pass(from, *line) && deliver(to, from, it.frame().tag) =>
            {
                end.passed(from, *line, *number);
            }
            Packet::Frame(Some(line), it)
                if end.may_pass_granted(from, *line, false) > 0
                    && deliver(to, from, it.frame().tag) =>
            {
                end.passed_granted(from, *line, 1, None);
            }
            Packet::More(line, Knock { number, demand, first: Some(it) })
                if end.may_pass_granted(from, *line, true) > 0
                    && deliver(to, from, it.frame().tag) =>
            {
                end.passed_granted(from, *line, 1, Some((*number, *demand)));
            }
            _ => {
                let taken = end.take(from, packet, 0, &mut out);
                assert!(!matches!(taken, Ok(Taken::Aside(_)) | Err(_)));
            }
        }
        end.serve(|from, it| deliver(to, from, it.frame().tag), &mut out, &mut vec![]);
        self.post(to, out);
        true
    }

    fn serve(&mut self, to: u32, mut deliver: impl FnMut(u32, u64) -> bool) {
        let mut out = Out::new();
        self.ends[to as usize].serve(
            |from, it| deliver(from, it.frame().tag),
            &mut out,
            &mut vec![],
        );
        self.post(to, out);
    }
}

/// In any order of packets each frame is delivered once, buffers never exceed their number, lent
/// ones included, and at the end all of them are free and none is lent.
#[test]
fn every_frame_comes_once_in_any_order_of_packets() {
    for seed in 0..20 {
        let mut ranks = Ranks::new(4, seed);
        let lends = seed % 2;
        ranks.ends[0].patience = if lends == 1 { Duration::ZERO } else { Duration::MAX };
        let mut seen = vec![0; 3 * 300];
        let mut next = [0; 3];
        loop {
            for from in 1..4_u32 {
                let at = &mut next[from as usize - 1];
                let tag = (from as usize - 1) * 300 + *at;
                let size = if tag.is_multiple_of(3) { 1000 } else { 8 };
                if *at < 300 && ranks.send(from, 0, tag % 2, tag as u64, size) {
                    *at += 1;
                }
            }
            let mut full = 0;
            let more = ranks.step(|_, _, tag| {
                full += 1;
                // Slots are full at times.
                let room = full % 5 != 0;
                seen[tag as usize] += usize::from(room);
                room
            });
            if !more {
                ranks.serve(0, |_, tag| {
                    seen[tag as usize] += 1;
                    true
                });
            }
            if ranks.wire.is_empty() && next == [300; 3] && !ranks.ends[0].is_stuck() {
                break;
            }
        }
        ranks.serve(0, |_, _| unreachable!("all have come"));
        assert!(seen.iter().all(|seen| *seen == 1), "seed {seed}: {seen:?}");
        let end = &ranks.ends[0];
        let most = |line| buffers_of(line) * (1 + lends as usize);
        assert!((0..LINES).all(|line| end.most[line] <= most(line)), "seed {seed}");
        assert!((0..LINES).all(|line| end.free[line] == buffers_of(line)), "seed {seed}");
        for end in &ranks.ends {
            assert!(end.receiving.is_empty() && end.sending.is_empty(), "seed {seed}: records");
            assert_eq!((end.waiting, end.slots_retired()), ([0; LINES], 0), "seed {seed}");
        }
    }
}

/// Rule 5, and rule 1 for the lines of one peer.
#[test]
fn a_peer_that_takes_nothing_stops_its_own_line_only() {
    let mut ranks = Ranks::new(3, 1);
    let (mut sent, mut came) = (0, 0);
    for _ in 0..1000 {
        // Rank 1 takes no requests.
        sent += usize::from(ranks.send(0, 1, 0, 0, 8));
        while ranks.step(|to, _, tag| to != 1 || tag != 0) {}
    }
    assert!((DEPTH..=DEPTH + buffers_of(0) + 2).contains(&sent), "{sent}");
    for tag in 1..500 {
        assert!(ranks.send(0, 1, 2, tag, 8) && ranks.send(0, 2, 0, tag, 8));
        while ranks.step(|to, _, tag| {
            came += usize::from(tag > 0);
            to != 1 || tag != 0
        }) {}
    }
    assert_eq!(came, 2 * 499);
}

/// Rule 8.
#[test]
fn one_message_of_grants_that_asks_is_under_way_per_pair() {
    let mut ranks = Ranks::new(3, 5);
    let mut tag = 0;
    for _ in 0..3000 {
        for (from, line) in [(1, 0), (1, 1), (1, 2), (2, 0), (1, 3)] {
            tag += u64::from(ranks.send(from, 0, line, tag, 8));
        }
        ranks.step(|_, _, _| true);
        for to in 1..3 {
            // One that asks for a confirmation does not go before the last one has come.
            let asks = |it: &&(u32, u32, Packet)| match it.2 {
                Packet::Grants(.., asks) => it.1 == to && asks,
                Packet::Taken => it.0 == to,
                _ => false,
            };
            assert!(ranks.wire.iter().filter(asks).count() <= 1);
        }
    }
}

/// What a dead rank was granted is free again, whatever it has used of it.
#[test]
fn grants_of_the_dead_come_back() {
    let mut ranks = Ranks::new(3, 9);
    for tag in 0..12 {
        assert!(ranks.send(1, 0, 0, tag, 1000));
    }
    // The knock comes; the grants are under way when the rank dies.
    while ranks.ends[0].free[0] == buffers_of(0) {
        assert!(ranks.step(|_, _, _| true));
    }
    ranks.wire.retain(|(from, to, _)| (*from, *to) != (0, 1) && (*from, *to) != (1, 0));
    ranks.ends[0].mark_dead(1);
    assert_ne!(ranks.ends[0].free[0], buffers_of(0));
    assert_eq!(ranks.ends[0].slots_retired(), 1);
    ranks.ends[0].fenced(1);
    assert_eq!(ranks.ends[0].free[0], buffers_of(0));
    assert_eq!(ranks.ends[0].slots_retired(), 0);
    ranks.ends[0].fenced(1);
    assert_eq!(ranks.ends[0].free[0], buffers_of(0));
    assert!(ranks.send(0, 1, 0, 0, 8), "what is sent to the dead goes nowhere");
}

/// Stopped ranks hold all buffers of a line. Frames of others come after a while, and in the end
/// the buffers are as many as before.
#[test]
fn a_line_is_lent_buffers_for_those_that_stopped_ranks_hold() {
    let (line, all) = (LINES / 2, buffers_of(LINES / 2));
    let last = all as u32 + 1;
    let mut ranks = Ranks::new(all + 2, 3);
    ranks.ends[0].patience = Duration::from_millis(1);
    let mut stopped = Vec::new();
    for from in 1..last {
        assert!((0..5).all(|tag| ranks.send(from, 0, line, tag, 1000)));
        // The rank does not take its grants in.
        while ranks.wire.iter().any(|(_, to, _)| *to == 0) {
            ranks.step(|_, _, _| true);
            stopped.extend(ranks.wire.extract_if(.., |(_, to, _)| *to != 0));
        }
    }
    let (mut came, mut sent, limit) = (0, 0, Instant::now() + Duration::from_secs(10));
    while came < 20 {
        assert!(Instant::now() < limit, "{came} of 20 frames have come");
        sent += u64::from(sent < 20 && ranks.send(last, 0, line, sent, 1000));
        while ranks.step(|_, from, _| count(&mut came, from == last)) {
            stopped.extend(ranks.wire.extract_if(.., |(_, to, _)| (1..last).contains(to)));
        }
        ranks.serve(0, |from, _| count(&mut came, from == last));
        stopped.extend(ranks.wire.extract_if(.., |(_, to, _)| (1..last).contains(to)));
    }
    assert!(ranks.ends[0].loans[line].buffers > 0);
    ranks.wire.append(&mut stopped);
    while ranks.step(|_, _, _| true) || !ranks.ends[0].receiving.is_empty() {
        assert!(Instant::now() < limit, "the frames of the stopped do not come");
        ranks.serve(0, |_, _| true);
    }
    ranks.serve(0, |_, _| true);
    assert_eq!((ranks.ends[0].free[line], ranks.ends[0].loans[line].buffers), (all, 0));
    assert!(ranks.ends[0].most[line] <= 2 * all);
}

/// Adds one, if `it`; there is room always.
fn count(all: &mut u32, it: bool) -> bool {
    *all += u32::from(it);
    true
}

/// Rank 1 has knocked at rank 0 for a line, and rank 0 has served it. Returns rank 0, and the
/// number of the knock.
fn knocked(line: Line, ride: Duration) -> (Grants, u64) {
    let mut ranks = Ranks::new(2, 1);
    ranks.ends[0].ride = ride;
    assert!(ranks.send(1, 0, line, 0, 8) && ranks.step(|_, _, _| true));
    (ranks.ends.swap_remove(0), 1)
}

/// The answer of a knock behind which nothing waits goes once: with the first packet that may carry
/// it, or alone.
#[test]
fn the_answer_of_a_knock_rides_on_another_packet_or_goes_alone() {
    let owned = |class| {
        let frame =
            Frame { id: 1, kind: 0, tag: 0, header: &[0; 8], payload: &[], label: 0, absent: true };
        OwnedFrame::of(class, &frame)
    };
    let knock = |line| Packet::Knock(line, Knock { number: 9, demand: 0, first: None });
    let reply = || Packet::Frame(None, owned(Class::Answers));
    let never = Duration::MAX;
    for line in 0..LINES {
        let (mut end, number) = knocked(line, never);
        let others = [
            Packet::Asked,
            knock(if line % 3 == 2 { 0 } else { 2 }),
            knock(5),
            Packet::Frame(Some(3), owned(Class::Requests)),
        ];
        assert!(others.iter().all(|it| end.ride(1, it).is_none() && end.ride(0, it).is_none()));
        for response in [knock(1), Packet::Frame(Some(4), owned(Class::Responses))] {
            let expected = (line % 3 == 0).then_some((line, number));
            let (mut end, _) = knocked(line, never);
            assert_eq!(end.ride(1, &response), expected);
        }
        assert!(end.is_stuck() && !end.receiving.is_empty());
        assert_eq!(end.ride(1, &reply()), Some((line, number)));
        assert!(!end.is_stuck() && end.receiving.is_empty());
        assert_eq!(end.ride(1, &reply()), None);

        let (mut end, _) = knocked(line, Duration::from_millis(1));
        let (mut out, limit) = (Out::new(), Instant::now() + Duration::from_secs(10));
        while out.is_empty() {
            assert!(Instant::now() < limit, "the answer does not go");
            end.serve(|_, _| true, &mut out, &mut vec![]);
        }
        assert!(matches!(out[..], [(1, Packet::Grants(answered, ..))] if answered[line] == number));
        assert!(!end.is_stuck() && end.ride(1, &reply()).is_none());

        let (mut end, _) = knocked(line, never);
        end.mark_dead(1);
        assert!(!end.is_stuck() && end.ride(1, &reply()).is_none());
    }
}

/// A knock for requests carries the answer of a knock for requests or responses. If it is answered,
/// this answer does not go again; if the peer leaves it to the network, it goes in a message of
/// grants.
#[test]
fn the_answer_of_a_message_goes_along_with_the_next_request() {
    for line in [0, 1, 3, 4] {
        let rank = |ride| {
            let (mut end, number) = knocked(line, ride);
            let mut out = Out::new();
            let frame =
                Frame { id: 1, kind: 0, tag: 0, header: &[], payload: &[], label: 0, absent: true };
            assert!(end.send_one(1, 0, &OwnedFrame::of(Class::Requests, &frame), &mut out));
            let [(1, knock)] = &out[..] else { panic!("one knock, not {out:?}") };
            assert_eq!(end.ride(1, knock), Some((line, number)));
            assert_eq!(end.ride(1, knock), None, "it goes along once");
            (end, number)
        };
        let own = 1;
        let (mut end, _) = rank(Duration::MAX);
        assert!(end.is_stuck());
        end.answered(1, (0, own), &mut Out::new());
        assert!(!end.is_stuck() && end.receiving.is_empty());

        let (mut end, number) = rank(Duration::from_millis(1));
        let (mut out, begin) = (Out::new(), Instant::now());
        while out.is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(10), "the answer does not go");
            end.serve(|_, _| true, &mut out, &mut vec![]);
        }
        assert!(begin.elapsed() >= Duration::from_millis(4), "the knock may still be answered");
        assert!(matches!(out[..], [(1, Packet::Grants(answered, ..))] if answered[line] == number));
        end.answered(1, (0, own), &mut Out::new());
        assert!(!end.is_stuck());
    }
}

/// A peer knocks again when it knows the answer of its last knock: then what this rank kept of that
/// answer is out of date.
#[test]
fn the_answer_of_a_knock_never_goes_with_the_grants_of_the_next() {
    let mut ranks = Ranks::new(2, 1);
    ranks.ends[0].ride = Duration::MAX;
    let end = &mut ranks.ends[0];
    for (number, demand) in [(1, 0), (2, 3)] {
        let knock = Packet::Knock(1, Knock { number, demand, first: None });
        assert_eq!(end.take(1, knock, 0, &mut Out::new()), Ok(Taken::Held));
        end.serve(|_, _| true, &mut Out::new(), &mut vec![]);
    }
    let reply = Frame { id: 1, kind: 0, tag: 0, header: &[], payload: &[], label: 0, absent: true };
    let reply = Packet::Frame(None, OwnedFrame::of(Class::Replies, &reply));
    assert_eq!(end.ride(1, &reply), None);
}

/// A sender takes the answer that rides as that of its knock, once, and no other number.
#[test]
fn an_answer_that_rides_lets_the_sender_knock_again() {
    let mut ranks = Ranks::new(2, 1);
    assert!((0..3).all(|tag| ranks.send(1, 0, 2, tag, 8)), "one knock, and two frames wait");
    let (mut out, end) = (Out::new(), &mut ranks.ends[1]);
    end.answered(0, (2, 7), &mut out);
    end.answered(0, (1, 1), &mut out);
    assert!(out.is_empty() && !end.has_sent_all(0));
    end.answered(0, (2, 1), &mut out);
    end.answered(0, (2, 1), &mut out);
    assert!(matches!(
        &out[..],
        [(0, Packet::Knock(2, Knock { number: 2, demand: 1, first: Some(_) }))]
    ));
}

/// The frames that wait at a sender are bounded, whatever the number of peers. Each peer with a
/// record has a place of its own, so as many silent peers as have records leave a way to one more.
#[test]
fn frames_of_all_peers_share_the_room_to_wait() {
    let (mut ranks, mut took) = (Ranks::new(1, 1), [0; 2]);
    for to in 1..1000 {
        ranks.ends.push(Grants::default());
        for (took, (line, most)) in took.iter_mut().zip([(0, SENDING[0]), (3, SENDING[1])]) {
            let taken = (0..20).filter(|tag| ranks.send(0, to, line, *tag, 1000)).count();
            assert_eq!(
                taken > 0,
                to as usize <= most,
                "{taken} frames of line {line} to peer {to}"
            );
            *took += taken;
        }
        let used = ranks.ends[0].waiting;
        assert!(used[0] <= SHARED[0] && used[3] <= SHARED[1], "{used:?} wait for {to} peers");
    }
    assert_eq!(took, [128 + 128, 16 + 32], "each has a place, and half of what is free beside");
    for number in 1..1000 {
        ranks.ends[0].mark_dead(number);
    }
    assert_eq!((ranks.ends[0].waiting, ranks.ends[0].open), ([0; LINES], [0; LINES]));
}

mod looks;
mod records;
mod streams;
