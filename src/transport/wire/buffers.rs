//! Memory for frames, which is kept for later ones, and the numbers of packets.

/// Most buffers that are kept, up to JOINED bytes long.
const BUFFERS: usize = 8;
/// Most short buffers that are kept, for knocks and messages that leave alone. Frames with several
/// packets have longer ones: a frame that began in a short one would be copied each time that it
/// grows.
const SHORTS: usize = 32;
/// Most bytes of a short buffer: a message of 4 KiB and its record fit.
const SHORT: usize = 4224;
/// Most bytes of a frame with several packets: four messages of 8 KiB fit, or one of 32 KiB.
pub const JOINED: usize = 33_280;

/// See the head of the file.
pub struct Buffers {
    /// Most bytes of a frame of the wire.
    pub frame_most: usize,
    /// Number of packets that were ever encoded; numbers the next one.
    packets: u64,
    /// Longer buffers of frames that have ended, empty.
    longs: Vec<Vec<u8>>,
    /// Short buffers, empty.
    shorts: Vec<Vec<u8>>,
}

impl Buffers {
    /// Without memory.
    pub fn new(frame_most: usize) -> Buffers {
        Buffers { frame_most, packets: 0, longs: Vec::new(), shorts: Vec::new() }
    }

    /// Most bytes of a frame with several packets.
    pub fn joined_most(&self) -> usize {
        self.frame_most.min(JOINED)
    }

    /// The number of the next packet.
    pub fn number(&mut self) -> u64 {
        self.packets += 1;
        self.packets
    }

    /// Kept memory for a frame, or a new one. A short frame leaves the buffers to longer ones.
    pub fn memory(&mut self, is_short: bool) -> Vec<u8> {
        let long = if is_short { None } else { self.longs.pop() };
        long.or_else(|| self.shorts.pop()).unwrap_or_default()
    }

    /// Keeps memory for later frames.
    pub fn keep(&mut self, mut memory: Vec<u8>) {
        let (kept, most) = match memory.capacity() {
            0 => return,
            size if size <= SHORT => (&mut self.shorts, SHORTS),
            size if size <= JOINED => (&mut self.longs, BUFFERS),
            _ => return,
        };
        if kept.len() < most {
            memory.clear();
            kept.push(memory);
        }
    }
}

/// Makes room for so many bytes more in a frame that is to have at most `most` bytes: its memory
/// doubles.
#[inline]
pub fn grow(frame: &mut Vec<u8>, size: usize, most: usize) {
    let len = frame.len();
    if frame.capacity() - len < size {
        frame.reserve_exact((2 * len).min(most).max(len + size) - len);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A frame that began in a short buffer was copied each time that it grew.
    #[test]
    fn a_short_frame_takes_no_long_buffer() {
        let mut buffers = Buffers::new(8000);
        buffers.keep(Vec::with_capacity(8000));
        assert_eq!(buffers.memory(true).capacity(), 0, "a long one");
        (0..2 * SHORTS).for_each(|_| buffers.keep(Vec::with_capacity(SHORT)));
        (0..2 * BUFFERS).for_each(|_| buffers.keep(Vec::with_capacity(JOINED)));
        buffers.keep(Vec::with_capacity(JOINED + 1));
        assert_eq!((buffers.shorts.len(), buffers.longs.len()), (SHORTS, BUFFERS));
        let [short, long] = [true, false].map(|is_short| buffers.memory(is_short).capacity());
        assert!(short >= SHORT && long > short);
    }

    #[test]
    fn a_frame_that_grows_is_copied_seldom() {
        let (mut frame, mut moves) = (Vec::new(), 0);
        for _ in 0..80 {
            let before = frame.as_ptr();
            grow(&mut frame, 100, 8000);
            frame.extend_from_slice(&[1; 100]);
            moves += usize::from(frame.as_ptr() != before);
        }
        assert!(moves <= 8 && frame.capacity() == 8000);
    }
}
