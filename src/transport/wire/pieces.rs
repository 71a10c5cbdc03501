//! Segmentation and reassembly: a packet that is longer than a wire's frames travels in pieces. A
//! shorter one is one piece. A frame brings one piece or several, one behind the other. Each begins
//! with
//!
//! | at | size | |
//! |---|---|---|
//! | 0 | 4 | [`MAGIC`], which differs in other versions of the format |
//! | 4 | 4 | length of the whole packet in bytes |
//! | 8 | 8 | number of the packet; each sender numbers its packets |
//! | 16 | 4 | offset of this piece in the packet |
//! | 20 | 4 | length of this piece in bytes, without its head |
//!
//! Pieces arrive in any order. A receiver keeps incomplete packets; credits and the number of its
//! own requests limit how many there are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// "LLW5".
const MAGIC: u32 = 0x3557_4c4c;
/// Length of the head of a piece.
pub const HEAD: usize = 24;
/// A wire's frames must have room for so many bytes: a knock with its first message fits.
pub const LEAST: usize = 512;
/// Most incomplete packets of one sender: two for each buffer that may be granted, and the answers
/// to this rank's requests.
const PARTIAL: usize = 1024;

/// The head of a piece of packet `number`, which has `whole` bytes.
pub fn head(whole: usize, number: u64, piece: Range<usize>) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&MAGIC.to_le_bytes());
    head[4..8].copy_from_slice(&(whole as u32).to_le_bytes());
    head[8..16].copy_from_slice(&number.to_le_bytes());
    head[16..20].copy_from_slice(&(piece.start as u32).to_le_bytes());
    head[20..].copy_from_slice(&(piece.len() as u32).to_le_bytes());
    head
}

/// Corrects the head of a piece that is a whole packet, to which bytes were added.
pub fn stretch(piece: &mut [u8]) {
    let size = ((piece.len() - HEAD) as u32).to_le_bytes();
    piece[4..8].copy_from_slice(&size);
    piece[20..HEAD].copy_from_slice(&size);
}

/// The number of the packet of a piece.
pub fn number_of(piece: &[u8]) -> u64 {
    u64::from(word(piece, 8)) | u64::from(word(piece, 12)) << 32
}

/// The number of four bytes at `at` of a frame that has them.
fn word(frame: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&frame[at..at + 4]);
    u32::from_le_bytes(word)
}

/// The first piece of a received frame and the others behind it. Of a frame that is none, or has
/// one piece: all of it, and nothing.
pub fn split(frame: &[u8]) -> (&[u8], &[u8]) {
    if frame.len() < HEAD {
        return (frame, &[]);
    }
    frame.split_at_checked(HEAD + word(frame, 20) as usize).unwrap_or((frame, &[]))
}

/// The packet of a frame that has all of one packet and nothing else. None: split() and
/// [`Joins::take`] find what it has. `most`: most bytes of a packet.
#[inline]
pub fn only(frame: &[u8], most: usize) -> Option<&[u8]> {
    first(frame, most).filter(|(_, others)| others.is_empty()).map(|(packet, _)| packet)
}

/// The first packet of a frame that begins with all of one, and the others behind it.
#[inline]
pub fn first(frame: &[u8], most: usize) -> Option<(&[u8], &[u8])> {
    let (head, packets) = frame.split_first_chunk::<HEAD>()?;
    let [whole, begin, size] = [4, 16, 20].map(|at| word(head, at) as usize);
    let is_whole = begin == 0 && size == whole && (1..=most).contains(&whole);
    if word(head, 0) != MAGIC || !is_whole {
        return None;
    }
    packets.split_at_checked(whole)
}

/// An incomplete packet.
struct Partial {
    bytes: Vec<u8>,
    /// The pieces that have arrived.
    pieces: Vec<Range<usize>>,
    /// Number of bytes that have not arrived.
    missing: usize,
}

/// The incomplete packets, by sender and number.
#[derive(Default)]
pub struct Joins {
    partial: BTreeMap<(u32, u64), Partial>,
    /// The memory of the last packet that came in pieces.
    spare: Vec<u8>,
}

/// A decoded piece.
struct Piece<'b> {
    whole: usize,
    number: u64,
    begin: usize,
    bytes: &'b [u8],
}

fn piece(frame: &[u8], most: usize) -> Result<Piece<'_>, String> {
    let Some((head, bytes)) = frame.split_at_checked(HEAD) else {
        return Err(format!("a frame of {} bytes, expected {HEAD} or more", frame.len()));
    };
    let word = |at: usize| word(head, at);
    if word(0) != MAGIC {
        return Err(format!("a frame that begins with {:#x}, expected {MAGIC:#x}", word(0)));
    }
    let (whole, begin) = (word(4) as usize, word(16) as usize);
    let number = number_of(head);
    let (size, end) = (word(20) as usize, begin + bytes.len());
    if whole > most || bytes.is_empty() || end > whole || bytes.len() != size {
        return Err(format!(
            "bytes {begin} to {end} of {whole}, {size} of them, expected at most {most}"
        ));
    }
    Ok(Piece { whole, number, begin, bytes })
}

impl Joins {
    /// Adds a received piece. Some: the packet that is complete now. Err: what is wrong with the
    /// piece. `most`: most bytes of a packet.
    pub fn take<'f>(
        &mut self,
        from: u32,
        frame: &'f [u8],
        most: usize,
    ) -> Result<Option<Cow<'f, [u8]>>, String> {
        let Piece { whole, number, begin, bytes } = piece(frame, most)?;
        if bytes.len() == whole {
            return Ok(Some(bytes.into()));
        }
        let (key, all) = ((from, number), (from, 0)..=(from, u64::MAX));
        if !self.partial.contains_key(&key) && self.partial.range(all).count() >= PARTIAL {
            return Err(format!("more than {PARTIAL} packets that are not whole"));
        }
        let spare = &mut self.spare;
        let partial = self.partial.entry(key).or_insert_with(|| {
            // Its bytes are there already if the last packet had as many. A short packet does not
            // take the memory of a long one with it.
            let mut bytes = match spare.capacity() <= 4 * whole {
                true => std::mem::take(spare),
                false => Vec::new(),
            };
            bytes.resize(whole, 0);
            Partial { bytes, pieces: Vec::new(), missing: whole }
        });
        let known = partial.bytes.len();
        let piece = begin..begin + bytes.len();
        // No byte comes twice, so the packet is complete when as many have come as it has.
        let came = |it: &Range<usize>| it.start < piece.end && piece.start < it.end;
        if known != whole || partial.pieces.iter().any(came) {
            return Err(format!("bytes at {begin} of {whole}, of a packet of {known}, came twice"));
        }
        partial.bytes[piece.clone()].copy_from_slice(bytes);
        partial.pieces.push(piece);
        partial.missing -= bytes.len();
        if partial.missing > 0 {
            return Ok(None);
        }
        Ok(self.partial.remove(&key).map(|partial| partial.bytes.into()))
    }

    /// Keeps the memory of a packet of take() for the next one.
    pub fn recycle(&mut self, packet: Cow<'_, [u8]>) {
        if let Cow::Owned(bytes) = packet {
            self.spare = bytes;
        }
    }

    /// Number of incomplete packets.
    #[cfg(all(test, feature = "simulated", not(loom)))]
    pub fn incomplete(&self) -> usize {
        self.partial.len()
    }

    /// Drops the incomplete packets of a sender from which nothing arrives any more.
    pub fn forget(&mut self, from: u32) {
        self.partial.retain(|(sender, _), _| *sender != from);
    }
}

/// For tests: a packet in frames of at most `most` bytes.
#[cfg(all(test, not(loom)))]
pub fn frames_of(packet: &[u8], number: u64, most: usize) -> Vec<Vec<u8>> {
    let at = |begin: usize| begin..packet.len().min(begin + most - HEAD);
    let frame =
        |piece: Range<usize>| [&head(packet.len(), number, piece.clone()), &packet[piece]].concat();
    (0..packet.len()).step_by(most - HEAD).map(|begin| frame(at(begin))).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn frames(packet: &[u8], number: u64) -> Vec<Vec<u8>> {
        frames_of(packet, number, 40)
    }

    /// only() takes what take() takes as a whole packet, and nothing else.
    #[test]
    fn a_frame_with_one_whole_packet_is_known() {
        let packet = &[7; 16][..];
        let whole = frames(packet, 5).concat();
        assert_eq!(only(&whole, 16), Some(packet));
        let cut = frames(&[7; 17], 5);
        let others = [&whole[..39], &[&whole[..], &whole[..]].concat(), &cut[0], &cut[1], &[]];
        assert!(others.iter().all(|frame| only(frame, 100).is_none()));
        assert!(only(&whole, 15).is_none() && only(&frames_of(&[], 5, 40).concat(), 16).is_none());
        for at in (0..HEAD).filter(|at| !(8..16).contains(at)) {
            let mut faulty = whole.clone();
            faulty[at] ^= 1;
            assert!(only(&faulty, 100).is_none(), "byte {at} is not read");
            assert!(!matches!(Joins::default().take(7, &faulty, 100), Ok(Some(_))));
        }
    }

    #[test]
    fn several_packets_come_in_one_frame() {
        let packets = [&[1; 3][..], &[2; 17], &[3; 16], &[4; 1]];
        let pieces: Vec<Vec<u8>> = packets.iter().flat_map(|packet| frames(packet, 0)).collect();
        let (mut frame, mut joins, mut came) = (pieces.concat(), Joins::default(), Vec::new());
        let mut rest = &frame[..];
        for _ in &pieces {
            let (first, others) = split(rest);
            came.extend(joins.take(7, first, 100).unwrap().map(Cow::into_owned));
            rest = others;
        }
        assert!(rest.is_empty() && came == packets);
        // split() leaves to take() a piece that is cut off and bytes that are no frame.
        frame.truncate(HEAD + 3 + HEAD + 15);
        let (_, others) = split(&frame);
        assert_eq!(split(others), (others, &[][..]));
        assert!(joins.take(7, others, 100).unwrap_err().contains("16 of them"));
        assert_eq!(split(&frame[..HEAD - 1]), (&frame[..HEAD - 1], &[][..]));
    }

    #[test]
    fn pieces_come_in_any_order() {
        let packets = [3, 16, 17, 100].map(|size| (0..size).collect::<Vec<u8>>());
        let (mut all, mut joins, mut whole) = (Vec::new(), Joins::default(), Vec::new());
        for (number, packet) in packets.iter().enumerate() {
            all.extend(frames(packet, number as u64));
        }
        assert!(all.iter().all(|frame| frame.len() <= 40) && all.len() == 1 + 1 + 2 + 7);
        all.reverse();
        all.swap(1, 4);
        for frame in &all {
            whole.extend(joins.take(7, frame, 100).unwrap().map(Cow::into_owned));
        }
        whole.sort_by_key(Vec::len);
        assert_eq!(whole, packets);
        assert!(joins.partial.is_empty());
    }

    #[test]
    fn pieces_of_two_senders_are_not_mixed() {
        let (ours, theirs) = (frames(&[1; 20], 5), frames(&[2; 20], 5));
        let mut joins = Joins::default();
        assert_eq!(joins.take(1, &ours[0], 100), Ok(None));
        assert_eq!(joins.take(2, &theirs[1], 100), Ok(None));
        assert_eq!(joins.take(2, &theirs[0], 100), Ok(Some(vec![2; 20].into())));
        joins.forget(1);
        assert_eq!(joins.take(1, &ours[1], 100), Ok(None), "the first one is forgotten");
    }

    /// Two pieces that overlap do not complete a packet with bytes of an earlier one.
    #[test]
    fn pieces_that_overlap_are_refused() {
        let mut joins = Joins::default();
        let at =
            |piece: Range<usize>| [&head(60, 7, piece.clone())[..], &vec![2; piece.len()]].concat();
        let whole = vec![1; 60];
        for frame in frames(&whole, 6) {
            if let Some(packet) = joins.take(1, &frame, 100).unwrap() {
                joins.recycle(packet);
            }
        }
        assert_eq!(joins.spare, whole);
        assert_eq!(joins.take(1, &at(0..40), 100), Ok(None));
        assert!(joins.take(1, &at(20..40), 100).unwrap_err().contains("came twice"));
        assert!(joins.take(1, &at(39..59), 100).unwrap_err().contains("came twice"));
        assert_eq!(joins.take(1, &at(40..60), 100), Ok(Some(vec![2; 60].into())));
        // A short packet leaves the long one's memory.
        joins.recycle(vec![0; 90].into());
        assert_eq!(joins.take(1, &frames(&[1; 20], 8)[0], 100), Ok(None));
        assert_eq!(joins.spare.len(), 90);
    }

    #[test]
    fn what_is_no_piece_is_refused_with_a_sentence() {
        let good = frames(&[1; 20], 5);
        let mut joins = Joins::default();
        let mut refused = |change: &dyn Fn(&mut Vec<u8>), why: &str| {
            let mut frame = good[0].to_vec();
            change(&mut frame);
            let said = joins.take(1, &frame, 100).unwrap_err();
            assert!(said.contains(why), "{said}");
        };
        refused(&|frame| frame.truncate(23), "23 bytes, expected 24 or more");
        refused(&|frame| frame.truncate(24), "bytes 0 to 0 of 20");
        refused(&|frame| frame[0] = 0, "expected 0x35574c4c");
        refused(&|frame| frame[23] = 1, "16777232 of them");
        refused(&|frame| frame[4..8].fill(255), "of 4294967295, 16 of them, expected at most 100");
        refused(&|frame| frame[16] = 5, "bytes 5 to 21 of 20");
        refused(&|frame| frame[16..20].fill(255), "of 20, 16 of them");
        assert_eq!(joins.take(1, &good[0], 100), Ok(None));
        assert!(joins.take(1, &good[0], 100).unwrap_err().contains("came twice"));
        let other = frames(&[1; 30], 5);
        assert!(joins.take(1, &other[1], 100).unwrap_err().contains("of a packet of 20"));
        for number in 0..PARTIAL as u64 - 1 {
            assert_eq!(joins.take(1, &frames(&[1; 20], 10 + number)[0], 100), Ok(None));
        }
        let said = joins.take(1, &frames(&[1; 20], 9)[0], 100).unwrap_err();
        assert!(said.contains("more than 1024 packets"), "{said}");
    }
}
