//! What the network does to frames and accesses: they come late, they overtake each other, and a
//! lane takes posts in part or not at all. The tests see each of these over each network, and that
//! a notice comes behind the bytes of its write nevertheless.

use super::*;
use crate::transport::wire::Piece;

/// The faults that the test has seen.
#[derive(Debug, Default)]
struct Seen {
    late: bool,
    overtaken: bool,
    part: bool,
    none: bool,
}

impl Seen {
    fn post(&mut self, taken: usize, of: usize, why: Status) {
        assert_eq!(taken == of, why == Status::OK);
        self.part |= taken > 0 && taken < of;
        self.none |= taken == 0;
    }

    fn has_all(&self) -> bool {
        self.late && self.overtaken && self.part && self.none
    }
}

/// Sends 100 frames; each comes once, and each command ends once.
fn send_frames(here: &mut dyn WireLane, there: &mut dyn WireLane, seen: &mut Seen) {
    let frames: Vec<Vec<u8>> = (0..100).map(|number| vec![number; 9]).collect();
    let (mut at_here, mut at_there, mut sent) = (Polled::default(), Polled::default(), 0);
    while at_there.frames.len() < 100 || at_here.done.len() < 100 {
        if sent < 100 {
            let end = (sent + 7).min(100);
            let (taken, why) = post(here, 1, 2, &frames[sent..end]);
            seen.post(taken, end - sent, why);
            sent += taken;
        }
        poll(here, &mut at_here);
        let before = at_there.frames.len();
        poll(there, &mut at_there);
        seen.late |= at_there.frames.len() == before && before < sent;
    }
    let right = |(peer, class, frame): &(u32, u32, Vec<u8>)| (*peer, *class, frame.len());
    assert!(at_there.frames.iter().all(|frame| right(frame) == (0, 2, 9)));
    let mut came: Vec<u8> = at_there.frames.iter().map(|frame| frame.2[0]).collect();
    seen.overtaken |= !came.is_sorted();
    came.sort_unstable();
    assert!(came.iter().copied().eq(0..100), "each frame comes once");
}

/// Over each network each frame arrives once, and each command completes once, though frames come
/// late and out of order, and the lane takes some posts in part and some not at all. A rank can
/// answer a frame without connect().
#[test]
fn frames_overtake_each_other_and_posts_are_taken_in_part() {
    for nature in natures() {
        let ([mut here, mut there], mut seen) = (pair(nature), Seen::default());
        assert_eq!(post(&mut *there, 0, 1, &ONES[..1]), (0, Status::RETRY_CONNECTING));
        let limit = Instant::now() + Duration::from_secs(20);
        while !seen.has_all() {
            assert!(Instant::now() < limit, "{nature:?}: {seen:?}");
            send_frames(&mut *here, &mut *there, &mut seen);
        }
        while post(&mut *there, 0, 0, &ONES[..1]).0 == 0 {}
        let (mut polled, mut own) = (Polled::default(), Polled::default());
        while polled.frames.is_empty() {
            assert!(Instant::now() < limit, "{nature:?}: the answer does not come");
            poll(&mut *there, &mut own);
            poll(&mut *here, &mut polled);
        }
        assert_eq!(polled.frames, [(1, 0, vec![1])]);
    }
}

/// Polls both ranks of a pair until the command with this tag has ended.
fn until_end(both: &mut Both, tag: u64) {
    let limit = Instant::now() + Duration::from_secs(10);
    let (mut here, mut there) = (Polled::default(), Polled::default());
    while !here.done.contains(&tag) {
        assert!(Instant::now() < limit, "command {tag} does not end");
        poll(&mut *both.lane, &mut here);
        poll(&mut *both.there, &mut there);
    }
}

/// Sends a frame and changes its byte before the command's end, and again behind it. Returns the
/// byte that comes.
fn changed_frame(nature: Nature) -> u8 {
    let (mut both, mut bytes) = (both(nature), Box::new([[1_u8]]));
    let byte = bytes.as_mut_ptr().cast::<u8>();
    while post(&mut *both.lane, 1, 2, &*bytes).0 == 0 {}
    // SAFETY: the network reads the byte when a lane is polled, on this thread.
    let change = |to| unsafe { byte.write_volatile(to) };
    change(2);
    let (mut here, mut there) = (Polled::default(), Polled::default());
    let limit = Instant::now() + Duration::from_secs(10);
    while there.frames.is_empty() {
        assert!(Instant::now() < limit, "the frame does not come");
        poll(&mut *both.lane, &mut here);
        if !here.done.is_empty() {
            change(3);
        }
        poll(&mut *both.there, &mut there);
    }
    there.frames[0].2[0]
}

/// Writes a word, and changes it before the command's end. Returns the word that lies there then.
fn changed_write(nature: Nature) -> u64 {
    let (mut both, theirs, ours) = (both(nature), Box::new([0_u64]), Box::new([1_u64]));
    let at = [&theirs, &ours].map(|words| words.as_ptr().cast_mut());
    let keys = [1, 0].map(|rank: usize| both.wires[rank].register(at[1 - rank].cast(), 8).unwrap());
    let piece = Piece { address: at[1].cast(), size: 8, local: keys[1].local };
    post_one(&mut *both.lane, 1, command(Command::WRITE, 5, 8), piece, (at[0] as u64, &keys[0]));
    // SAFETY: as in changed_frame().
    unsafe { at[1].write_volatile(2) };
    until_end(&mut both, 5);
    // SAFETY: as in changed_frame().
    unsafe { at[0].read_volatile() }
}

/// A network that reads late has the bytes of a frame, and of a write, that are there before the
/// command's end, never those behind it; another network has those of the post. A lane that is
/// closed has read all that it sends on.
#[test]
fn bytes_are_read_at_the_post_or_before_the_end() {
    for nature in natures() {
        let expected = 1 + u8::from(nature.late);
        assert_eq!(changed_frame(nature), expected, "{nature:?}");
        if nature.caps.remote {
            assert_eq!(changed_write(nature), expected.into(), "{nature:?}");
        }
        let [mut here, mut there] = pair(nature);
        let mut bytes = Box::new([[1_u8]]);
        while post(&mut *here, 1, 2, &*bytes).0 == 0 {}
        here.close(Duration::ZERO).unwrap();
        bytes[0] = [9];
        let (mut polled, limit) = (Polled::default(), Instant::now() + Duration::from_secs(10));
        while polled.frames.is_empty() {
            assert!(Instant::now() < limit, "{nature:?}: the frame does not come");
            poll(&mut *there, &mut polled);
        }
        assert_eq!(polled.frames[0].2, [1], "{nature:?}");
    }
}

/// Writes with notice, each to its own slot.
struct Noticed {
    both: Both,
    slots: Vec<[u64; 3]>,
    key: Key,
    local: Box<[u64; 3]>,
    own: Key,
    /// Slots whose notice has come, in the order of the notices.
    came: Vec<u64>,
    ended: usize,
}

const SLOTS: usize = 200;

impl Noticed {
    fn new(nature: Nature) -> Noticed {
        let (both, slots, local) = (both(nature), vec![[0; 3]; SLOTS], Box::new([7, 8, 9]));
        let key = both.wires[1].register(slots.as_ptr().cast_mut().cast(), 24 * SLOTS as u64);
        let own = both.wires[0].register((&raw const *local).cast_mut().cast(), 24);
        let (key, own) = (key.unwrap(), own.unwrap());
        Noticed { both, slots, key, local, own, came: Vec::new(), ended: 0 }
    }

    /// Posts up to seven writes.
    fn post(&mut self, next: usize, seen: &mut Seen) -> usize {
        let piece =
            Piece { address: (&raw const *self.local).cast(), size: 24, local: self.own.local };
        let write = |slot: usize| Command {
            flags: Command::NOTICE,
            notice: slot as u32,
            remote: self.slots.as_ptr() as u64 + 24 * slot as u64,
            wire: self.key.wire,
            piece: &raw const piece,
            ..command(Command::WRITE, slot as u64, 24)
        };
        let writes: Vec<Command> = (next..(next + 7).min(SLOTS)).map(write).collect();
        // SAFETY: the piece lives through the call, and the bytes as long as the lanes.
        let post = unsafe { self.both.lane.post(1, super::super::super::CLASS_RMA, &writes) };
        seen.post(post.0, writes.len(), post.1);
        post.0
    }

    /// Polls at both ranks, or at the second only; looks at the bytes of each notice.
    fn poll(&mut self, is_closed: bool) {
        let mut events = [Event::NONE; 5];
        if !is_closed {
            let count = self.both.lane.poll(&mut events);
            self.ended += events[..count].iter().filter(|it| it.event == Event::DONE).count();
        }
        let count = self.both.there.poll(&mut events);
        for event in &events[..count] {
            assert_eq!((event.event, event.peer), (Event::NOTICE, 0));
            // SAFETY: the network writes only when a lane is polled, on this thread.
            let slot = unsafe { (&raw const self.slots[event.tag as usize]).read_volatile() };
            assert_eq!(slot, [7, 8, 9], "notice {} came before its bytes", event.tag);
            self.came.push(event.tag);
        }
    }
}

/// Over each network that writes memory a notice comes once, and never before the bytes of its
/// write, though writes come late and overtake each other. So does one of a rank that has closed
/// its lane while the writes were under way.
#[test]
fn a_notice_never_comes_before_its_data() {
    for nature in remote().filter(|nature| nature.caps.notice_bits > 0) {
        let limit = Instant::now() + Duration::from_secs(20);
        let (mut seen, mut late) = (Seen::default(), 0);
        while !seen.has_all() || late == 0 {
            assert!(Instant::now() < limit, "{nature:?}: {seen:?}, {late} of the dead");
            let (mut run, mut next) = (Noticed::new(nature), 0);
            while next < SLOTS {
                next += run.post(next, &mut seen);
                let before = run.came.len();
                run.poll(false);
                seen.late |= run.came.len() == before && before < next;
            }
            late += next - run.came.len();
            run.both.lane.close(Duration::ZERO).unwrap();
            while run.came.len() < SLOTS {
                assert!(Instant::now() < limit, "{nature:?}: {} notices", run.came.len());
                run.poll(true);
            }
            seen.overtaken |= !run.came.is_sorted();
            run.came.sort_unstable();
            assert!(run.came.iter().copied().eq(0..SLOTS as u64), "each notice comes once");
            assert!(run.ended <= SLOTS);
        }
    }
}
