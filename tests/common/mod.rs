//! What the tests of layer 1 with threads and those with processes share.

use llcl::bootstrap::{Bootstrap, Card};
use llcl::util::status::Result;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The card of a rank, or the reason why there is none.
pub fn lookup(me: &Bootstrap, peer: u32) -> Result<Card> {
    let (sender, receiver) = mpsc::channel();
    me.on_cards(Arc::new(move |cards| {
        cards.into_iter().for_each(|card| sender.send(card).unwrap_or(()));
    }));
    me.ask_card(peer);
    let (rank, card) = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
    assert_eq!(rank, peer);
    card
}
