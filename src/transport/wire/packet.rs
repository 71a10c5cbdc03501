//! What travels over the simulated network.

use crate::transport::frame::{Class, Frame};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts a frame as under way until it is dropped.
#[derive(Debug)]
pub struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    /// One more of those that `count` counts.
    pub fn begin(count: &Arc<AtomicUsize>) -> UnderWay {
        count.fetch_add(1, Ordering::AcqRel);
        UnderWay(count.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A copy of a frame.
#[derive(Debug)]
pub struct Copied {
    /// What it is.
    pub class: Class,
    id: u16,
    kind: u8,
    tag: u64,
    header: Box<[u8]>,
    payload: Box<[u8]>,
    label: u16,
    absent: bool,
    _under_way: UnderWay,
}

impl Copied {
    /// A copy, counted until it has been delivered.
    pub fn of(class: Class, frame: &Frame, count: &Arc<AtomicUsize>) -> Copied {
        let Frame { id, kind, tag, label, absent, .. } = *frame;
        let (header, payload) = (frame.header.into(), frame.payload.into());
        let _under_way = UnderWay::begin(count);
        Copied { class, id, kind, tag, header, payload, label, absent, _under_way }
    }

    /// As it was to be sent.
    pub fn frame(&self) -> Frame<'_> {
        let Copied { id, kind, tag, label, absent, .. } = *self;
        Frame { id, kind, tag, header: &self.header, payload: &self.payload, label, absent }
    }

    /// Bytes of header and payload.
    pub fn bytes(&self) -> usize {
        self.header.len() + self.payload.len()
    }
}
