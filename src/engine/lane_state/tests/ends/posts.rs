//! How many operations are posted with one doorbell.

use super::*;
use crate::transport::Access;
use crate::transport::fabric::simulate;
use std::time::{Duration, Instant};

/// The BATCH of `engine::by_wire`.
const BATCH: usize = 64;

fn until(ranks: &mut [Rank], what: &str, done: impl Fn(&[Rank]) -> bool) {
    let limit = Instant::now() + Duration::from_secs(10);
    while !done(ranks) {
        for rank in ranks.iter_mut() {
            rank.round();
        }
        assert!(Instant::now() < limit, "{what}");
    }
}

fn transfer(op: Op, key: u64, words: &mut [u64], ended: &AtomicU64) -> Command {
    let mut command = Command::new(op, 1);
    command.remote = Address { offset: 0, key };
    (command.local, command.size) = (words.as_mut_ptr().cast(), size_of_val(words) as u64);
    command.on_complete = add_to(ended);
    command
}

/// 640 operations take about ten posts. The wire's lane accepts some batches in parts.
#[test]
fn operations_of_a_round_are_posted_under_one_doorbell() {
    // A wire that reads and writes memory and accepts any part of a batch.
    simulate(Some(7));
    let (_world, mut ranks) = two_ranks(BATCH);
    simulate(None);
    let (mut theirs, mut ours, ended) = (vec![5u64; 64], vec![0u64; BATCH], AtomicU64::new(0));
    let key = ranks[1].register(&mut theirs);
    ranks[0].register(&mut ours);
    let address = Address { offset: 0, key };
    until(&mut ranks, "the key is not known", |ranks| {
        let routes = &ranks[0].routes;
        let port = routes.port(1).unwrap();
        matches!(routes.locate(port, address, 8), Ok(Access::Posted(_)))
    });
    let most = ranks[0].routes.fabric().remote_most();
    for round in 1..=10 {
        for word in ours.chunks_mut(1) {
            let read = transfer(Op::READ, key, word, &ended);
            ranks[0].start(read, InFlight::first_posted(8, most));
        }
        until(&mut ranks, "an operation has not ended", |_| value(&ended) == round * BATCH as u64);
    }
    let posts = ranks[0].routes.fabric().posts();
    println!("{} operations, {posts} posts", 10 * BATCH);
    assert!((10..BATCH).contains(&posts), "{posts} posts");
    assert_eq!(ours, vec![5; BATCH]);
}
