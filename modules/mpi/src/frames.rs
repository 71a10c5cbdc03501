//! Received frames, until libllcl gives them back.

use crate::lane::MpiLane;
use crate::requests::Came;
use crate::table::Event;
use std::ops::RangeInclusive;

/// The classes LLCL_CLASS_KNOCK and those behind it; libllcl may keep their frames for long.
const KNOCKS: RangeInclusive<u32> = 4..=6;
/// While libllcl has so many frames or more, a knock moves to a box of its size. Usually libllcl
/// gives a knock back before the next poll, and the move would take longer than the rest.
const WHOLE: usize = 8;

/// See the head of the file.
#[derive(Default)]
pub(crate) struct Received {
    /// Frames that libllcl has not given back, by their number.
    frames: Vec<Option<Box<[u8]>>>,
    /// Numbers without a frame.
    free: Vec<usize>,
}

impl MpiLane {
    /// The event of a frame. If libllcl keeps several, a knock moves to a box of its size.
    #[inline]
    pub(crate) fn frame(&mut self, Came { mut bytes, size, class, peer }: Came) -> Event {
        let Received { frames, free } = &mut self.received;
        if frames.len() - free.len() >= WHOLE && KNOCKS.contains(&class) {
            let own = bytes[..size].into();
            self.requests.recycle(std::mem::replace(&mut bytes, own));
        }
        let start = bytes.as_ptr();
        let number = match free.pop() {
            Some(number) => {
                frames[number] = Some(bytes);
                number
            }
            None => {
                frames.push(Some(bytes));
                frames.len() - 1
            }
        };
        Event {
            class,
            frame: number as u64,
            bytes: start,
            size: size as u64,
            ..Event::about(Event::FRAME, peer)
        }
    }

    /// libllcl has read a frame's bytes.
    pub fn give_back(&mut self, frame: u64) {
        let Received { frames, free } = &mut self.received;
        let number = frame as usize;
        if let Some(bytes) = frames.get_mut(number).and_then(Option::take) {
            free.push(number);
            self.requests.recycle(bytes);
        }
    }
}
