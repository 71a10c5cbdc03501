//! Messages to peers that are being contacted.

use super::*;
use std::sync::OnceLock;

/// A thread that answers a peer may use the sender before the peer has a port. A message that was
/// accepted then ended with ERR_PEER_DEAD, if it was LONG: the lane found no port for its payload.
#[test]
fn no_message_is_accepted_before_the_peer_has_a_port() {
    let (_world, [near, far]) = strangers::<2>(8, |_, _| ());
    let (routes, ports) = (Arc::downgrade(&near.routes), Arc::new(OnceLock::new()));
    let kept = ports.clone();
    // As in a contact, but the port stays here, where the lane does not find it.
    near.bootstrap.on_cards(Arc::new(move |cards| {
        for (peer, card) in cards {
            // The last one is an error: the peer leaves at the end of the test.
            if let Some(routes) = routes.upgrade() {
                let port = card.and_then(|card| routes.fabric().connect(peer, card));
                kept.get_or_init(|| port.expect("a port"));
            }
        }
    }));
    let peer = far.routes.own().peer;
    near.bootstrap.ask_card(peer);
    while ports.get().is_none() {
        std::thread::yield_now();
    }
    near.routes.fabric().message_sender(peer).expect("a sender");
    let refused = near.post.message_sender(peer).err().map(|error| error.status);
    assert_eq!(refused, Some(Status::RETRY_CONNECTING));
}
