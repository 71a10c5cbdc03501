use super::*;
use crate::core::context::Place;
use crate::engine::control_messages::ControlReceiver;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

const NAME: u64 = 77;
const LAST: Words = [9, 8, 7];

/// Counts the control messages with LAST.
#[derive(Default)]
struct Seen(AtomicUsize);

impl ControlReceiver for Seen {
    fn received(&self, _: u32, words: Words, _: &[u8]) {
        self.0.fetch_add(usize::from(words == LAST), Ordering::Relaxed);
    }
}

/// Fills the command queue when it is told of its end, in which no command can be executed.
#[derive(Default)]
struct Filler {
    services: OnceLock<Arc<Services>>,
    filled: AtomicUsize,
}

impl Ended for Filler {
    fn ended(&self, peer: u32, _: usize, _: Status) {
        let Some(services) = self.services.get() else { return };
        let message = ControlMessage { peer, name: NAME, words: [0; 3], keep: false, bytes: &[] };
        let ends: Arc<dyn Ended> = Arc::new(Nobody);
        while services.send_control(&message, &ends).is_ok() {
            self.filled.fetch_add(1, Ordering::Relaxed);
        }
        services.send_control_or_park(peer, NAME, LAST);
    }
}

/// The failure of a plan is told to other nodes by such a message, which no rank may miss.
#[test]
fn a_control_message_that_must_not_be_lost_waits_for_room_in_the_command_queue() {
    let config = Config::from_environment().expect("a configuration");
    let context = Context::create(config, Place::Environment).expect("a world of one");
    let services = Arc::new(context.services());
    let seen = Arc::new(Seen::default());
    services.routes.control_messages().register(NAME, seen.clone());
    let filler = Arc::new(Filler::default());
    filler.services.set(services.clone()).ok().expect("set once");
    let message = ControlMessage { peer: 0, name: NAME, words: [0; 3], keep: false, bytes: &[] };
    services.send_control(&message, &(filler.clone() as _)).expect("room");
    let until = Instant::now() + Duration::from_secs(20);
    while seen.0.load(Ordering::Relaxed) == 0 && Instant::now() < until {
        services.help_others();
    }
    assert_eq!(seen.0.load(Ordering::Relaxed), 1);
    let filled = filler.filled.load(Ordering::Relaxed);
    assert!(filled > 1, "the queue took {filled} commands");
    services.routes.control_messages().withdraw(NAME);
    drop((services, filler));
    context.finalize(None).status.expect("the end");
}
