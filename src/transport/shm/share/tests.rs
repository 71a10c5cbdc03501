//! Tests of a share with one thread and with real ones.

use super::*;
use std::cell::Cell;

/// The memory of a share.
struct Area {
    send: AtomicU64,
    recv: AtomicU64,
    claims: Vec<AtomicU64>,
    slots: Vec<Slot>,
}

impl Area {
    fn new(slots: usize) -> Area {
        let area = Area {
            send: AtomicU64::new(0),
            recv: AtomicU64::new(0),
            claims: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            slots: (0..slots).map(|_| Slot::fresh()).collect(),
        };
        area.share().reset();
        area
    }

    fn share(&self) -> Share<'_> {
        let Area { send, recv, claims, slots } = self;
        Share { send, recv, claims, slots }
    }
}

#[derive(Default)]
struct Counted {
    reads: Cell<u32>,
    lost: Cell<u32>,
}

impl Tally for Counted {
    fn read_credit(&self) {
        self.reads.set(self.reads.get() + 1);
    }

    fn lost(&self) {
        self.lost.set(self.lost.get() + 1);
    }
}

#[test]
fn a_full_share_refuses_until_slots_are_given_back() {
    let (area, cached, tally) = (Area::new(2), AtomicU64::new(FIRST), Counted::default());
    let share = area.share();
    assert_eq!(share.take(1, &cached, &tally), Taken::Ticket(FIRST));
    assert_eq!(share.take(1, &cached, &tally), Taken::Ticket(FIRST + 1));
    assert_eq!(tally.reads.get(), 0, "the cached credit was enough");
    assert_eq!(share.take(1, &cached, &tally), Taken::Full);
    share.give_back(FIRST + 1);
    assert_eq!(share.take(1, &cached, &tally), Taken::Ticket(FIRST + 2));
    assert_eq!((tally.reads.get(), tally.lost.get()), (2, 0));
}
