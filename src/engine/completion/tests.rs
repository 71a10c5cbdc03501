use super::*;
use std::cell::RefCell;

fn waiters() -> Box<Waiters> {
    // SAFETY: made of atomics; all zero means that nobody sleeps, see the type.
    unsafe { Box::new(std::mem::zeroed()) }
}

fn fire(completion: &Completion, status: Status, waiters: &Waiters) {
    // SAFETY: each completion of these tests is valid, and what it names outlives it.
    unsafe { completion.fire(status, waiters) };
}

/// The state that the callbacks of one test share.
struct Log {
    waiters: Box<Waiters>,
    lines: RefCell<Vec<String>>,
}

impl Log {
    fn note(&self, line: impl Into<String>) {
        self.lines.borrow_mut().push(line.into());
    }
}

/// One callback: its name, and the callbacks that it fires before it returns.
struct Step<'a> {
    log: &'a Log,
    name: String,
    fires: Vec<Step<'a>>,
}

impl Step<'_> {
    fn completion(&self) -> Completion {
        let data = (&raw const *self).cast_mut().cast();
        Completion { kind: CALL, call: note as *const c_void, target: data, ..Completion::NOTHING }
    }
}

unsafe extern "C" fn note(data: *mut c_void, status: Status) {
    // SAFETY: each completion of these tests gets a Step that outlives it.
    let step = unsafe { &*data.cast::<Step>() };
    assert!(in_callback());
    step.log.note(format!("{} {}", step.name, status.0));
    step.fires.iter().for_each(|inner| fire(&inner.completion(), Status::OK, &step.log.waiters));
    if !step.fires.is_empty() {
        step.log.note(format!("{} returns", step.name));
    }
}

fn log() -> Log {
    Log { waiters: waiters(), lines: RefCell::default() }
}

fn step<'a>(log: &'a Log, name: &str, fires: Vec<Step<'a>>) -> Step<'a> {
    Step { log, name: name.into(), fires }
}

#[test]
fn a_callback_that_fires_inside_another_runs_after_it_in_order() {
    let log = log();
    let a = step(&log, "a", vec![step(&log, "a1", vec![])]);
    let outer = step(&log, "outer", vec![a, step(&log, "b", vec![])]);
    fire(&outer.completion(), Status::ERR_KEY, &log.waiters);
    let expected = ["outer -10", "outer returns", "a 0", "a returns", "b 0", "a1 0"];
    assert_eq!(*log.lines.borrow(), expected);
    assert!(!in_callback());
}

/// Each callback posts the next one; a chain of any length needs one stack frame.
#[test]
fn the_stack_does_not_grow_with_a_chain() {
    struct Chain {
        waiters: Box<Waiters>,
        left: Cell<u32>,
        frame: Cell<usize>,
    }
    unsafe extern "C" fn next(data: *mut c_void, _: Status) {
        // SAFETY: the chain outlives its callbacks.
        let chain = unsafe { &*data.cast::<Chain>() };
        let here = 0u8;
        let (frame, first) = (&raw const here as usize, chain.frame.get());
        // The first callback may have another caller than those that wait.
        assert!(first == 0 || first.abs_diff(frame) < 4096, "the stack grows");
        if first == 0 {
            chain.frame.set(frame);
        }
        if chain.left.replace(chain.left.get() - 1) > 1 {
            fire(&completion(chain), Status::OK, &chain.waiters);
        }
    }
    fn completion(chain: &Chain) -> Completion {
        let target = (&raw const *chain).cast_mut().cast();
        Completion { kind: CALL, call: next as *const c_void, target, ..Completion::NOTHING }
    }
    let chain = Chain { waiters: waiters(), left: Cell::new(100_000), frame: Cell::new(0) };
    fire(&completion(&chain), Status::OK, &chain.waiters);
    assert_eq!(chain.left.get(), 0);
}

#[test]
fn sixty_four_callbacks_have_room_to_wait_and_no_more_are_accepted() {
    unsafe extern "C" fn fill(data: *mut c_void, _: Status) {
        // SAFETY: as in note().
        let step = unsafe { &*data.cast::<Step>() };
        assert!(has_room(WAITING) && !has_room(WAITING + 1));
        for (fired, inner) in step.fires.iter().enumerate() {
            assert!(has_room(WAITING - fired) && !has_room(WAITING - fired + 1));
            assert!(inner.completion().is_ready() == (fired + 2 <= WAITING));
            fire(&inner.completion(), Status::OK, &step.log.waiters);
        }
        assert!(has_room(0) && !has_room(1));
    }
    let log = log();
    // Twice: the array of waiting callbacks is a ring.
    for _ in 0..2 {
        let inner = (0..WAITING).map(|i| step(&log, &i.to_string(), vec![])).collect();
        let outer = step(&log, "outer", inner);
        let completion = Completion { call: fill as *const c_void, ..outer.completion() };
        fire(&completion, Status::OK, &log.waiters);
        let expected: Vec<String> = (0..WAITING).map(|i| format!("{i} 0")).collect();
        assert_eq!(log.lines.take(), expected);
        assert!(has_room(usize::MAX), "outside of callbacks nothing waits");
    }
}

/// A callback without room to wait runs at once.
#[test]
fn a_callback_without_room_is_not_lost() {
    let log = log();
    let inner = (0..=WAITING).map(|i| step(&log, &i.to_string(), vec![])).collect();
    fire(&step(&log, "outer", inner).completion(), Status::OK, &log.waiters);
    let mut lines = log.lines.take();
    assert_eq!(lines.len(), WAITING + 3);
    assert_eq!(lines[1], format!("{WAITING} 0"));
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), WAITING + 3, "each runs once");
}

#[test]
fn a_word_tells_the_end_and_the_failure() {
    let (word, waiters) = (AtomicU64::new(0), waiters());
    let store = Completion::store_on(&word);
    fire(&store, Status::OK, &waiters);
    assert_eq!(word.load(Ordering::Relaxed), 1);
    fire(&store, Status::ERR_PEER_DEAD, &waiters);
    let failed = word.swap(40, Ordering::Relaxed);
    assert_ne!(failed & WORD_FAILED, 0);
    assert_eq!(Status(failed as i64 as i32), Status::ERR_PEER_DEAD);

    let add = Completion { kind: ADD, ..store };
    fire(&add, Status::OK, &waiters);
    assert_eq!(word.load(Ordering::Relaxed), 41);
    fire(&add, Status::ERR_CANCELED, &waiters);
    fire(&add, Status::ERR_CANCELED, &waiters);
    fire(&add, Status::OK, &waiters);
    assert_eq!(word.load(Ordering::Relaxed), 44 | WORD_FAILED, "the failure stays");
}

#[test]
fn what_is_malformed_is_not_valid() {
    let word = AtomicU64::new(0);
    let store = Completion::store_on(&word);
    let odd = store.target.wrapping_byte_add(4);
    let call = Completion { kind: CALL, call: note as *const c_void, ..Completion::NOTHING };
    for good in [Completion::NOTHING, store, Completion { kind: ADD, ..store }, call] {
        assert!(good.is_valid() && good.is_ready());
    }
    for bad in [
        Completion { kind: 4, ..store },
        Completion { reserved: 1, ..store },
        Completion { reserved: 1, ..Completion::NOTHING },
        Completion { target: odd, ..store },
        Completion { kind: ADD, target: std::ptr::null_mut(), ..store },
        Completion { call: std::ptr::null(), ..call },
    ] {
        assert!(!bad.is_valid() && !bad.is_ready(), "{bad:?}");
    }
}

#[test]
fn a_failed_add_is_over_when_its_waiter_is_released() {
    const ROUNDS: u64 = 20_000;
    let (word, turn) = (AtomicU64::new(0), AtomicU64::new(0));
    let wait = |what: &AtomicU64, at_least: u64| {
        while what.load(Ordering::Acquire) < at_least {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (waiters, add) =
                (waiters(), Completion { kind: ADD, ..Completion::store_on(&word) });
            for round in 0..ROUNDS {
                wait(&turn, 2 * round + 1);
                fire(&add, Status::ERR_PEER_DEAD, &waiters);
                turn.store(2 * round + 2, Ordering::Release);
            }
        });
        for round in 0..ROUNDS {
            turn.store(2 * round + 1, Ordering::Release);
            wait(&word, 1);
            // The test may use the word again.
            word.store(0, Ordering::Relaxed);
            wait(&turn, 2 * round + 2);
            assert_eq!(word.load(Ordering::Relaxed), 0, "round {round}");
        }
    });
}

/// After a poll of the network that has found something, so many polls ask it. The next find begins
/// the count anew, and each poll that finds nothing takes one off. Each thread counts its own
/// polls.
#[test]
fn polls_ask_a_network_that_has_brought_something() {
    let asks = || {
        let mut asks = None;
        count_empty_poll_if(|_, network| {
            asks = Some(network);
            true
        });
        asks.unwrap()
    };
    count_empty_poll();
    assert!(!asks());
    note_network_poll(None);
    assert!(!asks());
    note_network_poll(Some(3));
    note_network_poll(None);
    note_network_poll(Some(3));
    for poll in 0..3 {
        assert!(asks(), "poll {poll}");
        note_network_poll(None);
    }
    assert!(!asks());
    note_network_poll(Some(3));
    let other = std::thread::spawn(|| {
        count_empty_poll();
        count_empty_poll_if(|_, network| !network)
    });
    assert!(other.join().unwrap());
}
