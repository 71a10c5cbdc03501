use super::*;
use crate::core::context::Place;
use crate::engine::control_messages::ControlReceiver;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

/// The name of the messages.
pub(crate) const NAME: u64 = 77;

/// Counts the control messages with these words.
struct Seen(Words, AtomicUsize);

impl ControlReceiver for Seen {
    fn received(&self, _: u32, words: Words, _: &[u8]) {
        self.1.fetch_add(usize::from(words == self.0), Ordering::Relaxed);
    }
}

/// Fills the command queue when it is told of its end, in which no command can be executed, and
/// then sends a message.
struct Filler<F> {
    services: OnceLock<Arc<Services>>,
    filled: AtomicUsize,
    send: F,
}

impl<F: Fn(&Arc<Services>) + Send + Sync> Ended for Filler<F> {
    fn ended(&self, peer: u32, _: usize, _: Status) {
        let Some(services) = self.services.get() else { return };
        let message = ControlMessage { peer, name: NAME, words: [0; 3], keep: false, bytes: &[] };
        let ends: Arc<dyn Ended> = Arc::new(Nobody);
        while services.send_control(&message, &ends).is_ok() {
            self.filled.fetch_add(1, Ordering::Relaxed);
        }
        (self.send)(services);
    }
}

/// `send` sends `last` to rank 0, by the name NAME, while the command queue is full. It must come.
pub(crate) fn comes_from_a_full_queue(
    last: Words,
    send: impl Fn(&Arc<Services>) + Send + Sync + 'static,
) {
    let config = Config::from_environment().expect("a configuration");
    let context = Context::create(Ok(config), Place::Environment).expect("a world of one");
    let services = Arc::new(context.services());
    let seen = Arc::new(Seen(last, AtomicUsize::new(0)));
    services.routes.control_messages().register(NAME, seen.clone());
    let (services_of, filled) = (OnceLock::new(), AtomicUsize::new(0));
    let filler = Arc::new(Filler { services: services_of, filled, send });
    filler.services.set(services.clone()).ok().expect("set once");
    let message = ControlMessage { peer: 0, name: NAME, words: [0; 3], keep: false, bytes: &[] };
    services.send_control(&message, &(filler.clone() as _)).expect("room");
    let until = Instant::now() + Duration::from_secs(20);
    while seen.1.load(Ordering::Relaxed) == 0 && Instant::now() < until {
        services.help_others();
    }
    assert_eq!(seen.1.load(Ordering::Relaxed), 1);
    let filled = filler.filled.load(Ordering::Relaxed);
    assert!(filled > 1, "the queue took {filled} commands");
    services.routes.control_messages().withdraw(NAME);
    drop((services, filler));
    context.finalize(None).status.expect("the end");
}

/// The failure of a plan is told to other nodes by such a message, which no rank may miss.
#[test]
fn a_control_message_that_must_not_be_lost_waits_for_room_in_the_command_queue() {
    let last = [9, 8, 7];
    comes_from_a_full_queue(last, move |services| services.send_control_or_park(0, NAME, last));
}
