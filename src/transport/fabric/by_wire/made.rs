//! For tests: contexts of one thread use a wire that the test makes.

use crate::transport::wire::Wire;
use crate::transport::wire::simulated::{Nature, Simulated};
use crate::util::status::Result;
use std::cell::RefCell;
use std::rc::Rc;

/// Opens the wire of a rank, one of so many.
pub type MakeWire = Rc<dyn Fn(u32, u32) -> Result<Box<dyn Wire>>>;

thread_local! {
    static MADE: RefCell<Option<MakeWire>> = const { RefCell::new(None) };
}

/// Makes contexts of this thread use this wire; None: no longer.
pub fn use_wire(make: Option<MakeWire>) {
    MADE.set(make);
}

/// What contexts of this thread use.
pub fn made() -> Option<MakeWire> {
    MADE.with_borrow(Option::clone)
}

/// Makes contexts of this thread use a simulated wire with this seed; None: no longer.
pub fn simulate(seed: Option<u64>) {
    use_wire(seed.map(|seed| -> MakeWire {
        Rc::new(move |me, _| Ok(Box::new(Simulated::new(me, Nature::of(seed))?)))
    }));
}

/// Makes contexts of this thread use a simulated wire that has abilities of its own at each of two
/// ranks.
pub fn simulate_two(natures: [&'static str; 2]) {
    use_wire(Some(Rc::new(move |me, _| {
        Ok(Box::new(Simulated::new(me, Nature::named(natures[me as usize])?)?))
    })));
}
