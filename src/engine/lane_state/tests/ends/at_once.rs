//! Operations that are posted at once, without a line.

use super::posts::{transfer, until};
use super::*;
use crate::transport::Access;
use crate::transport::fabric::simulate;

/// Posts an operation at once if that is possible.
fn post_now(rank: &mut Rank, command: &Command, carried: bool) -> bool {
    let Rank { work, routes, .. } = rank;
    // SAFETY: the tests keep what their commands name until all have ended.
    unsafe { work.post_now(routes, (command, command.local), carried) }
}

fn knows(rank: &Rank, key: u64) -> bool {
    let access = rank.routes.locate(rank.routes.port(1).unwrap(), Address { offset: 0, key }, 8);
    matches!(access, Ok(Access::Posted(_)))
}

/// A read uses the last look-up of its region, but not after this rank has forgotten the region,
/// and not for bytes outside of the region.
#[test]
fn a_forgotten_region_is_not_read_at_once() {
    simulate(Some(7));
    let (_world, mut ranks) = two_ranks(8);
    simulate(None);
    let (mut theirs, mut ours, ended) = (vec![5u64; 64], vec![0u64; 1], AtomicU64::new(0));
    let key = ranks[1].register(&mut theirs);
    let mut read = transfer(Op::READ, key, &mut ours, &ended);
    assert!(!post_now(&mut ranks[0], &read, false), "the region is not known yet");
    for turn in 1..=2 {
        until(&mut ranks, "the key is not known", |ranks| knows(&ranks[0], key));
        for _ in 0..2 {
            assert!(post_now(&mut ranks[0], &read, false));
        }
        until(&mut ranks, "a read has not ended", |_| value(&ended) == 2 * turn);
        ranks[0].routes.fabric().forget(1, key);
        assert!(!post_now(&mut ranks[0], &read, false), "it was forgotten");
    }
    assert_eq!((ours[0], ranks[0].work.unsent), (5, 0));
    until(&mut ranks, "the key is not known", |ranks| knows(&ranks[0], key));
    for (offset, at_once) in [(504, true), (505, false), (u64::MAX, false)] {
        read.remote.offset = offset;
        assert_eq!(post_now(&mut ranks[0], &read, false), at_once, "at {offset}");
    }
    until(&mut ranks, "a read has not ended", |_| value(&ended) == 5);
}

/// Operations that the network refuses wait in a line, and no later one passes by them. Each keeps
/// the bytes that it has carried.
#[test]
fn an_operation_that_is_refused_lines_up() {
    const COUNT: usize = 500;
    let mut lines = 0;
    for seed in 1..8 {
        simulate(Some(seed));
        let (_world, mut ranks) = two_ranks(COUNT);
        simulate(None);
        let (mut theirs, ended) = (vec![0u64; COUNT], AtomicU64::new(0));
        let key = ranks[1].register(&mut theirs);
        until(&mut ranks, "the key is not answered", |ranks| {
            let address = Address { offset: 0, key };
            ranks[0].routes.locate(ranks[0].routes.port(1).unwrap(), address, 8).is_ok()
        });
        if !knows(&ranks[0], key) {
            continue; // a wire that only sends messages
        }
        for at in 0..COUNT {
            let mut bytes = [at as u64 + 1];
            let mut write = transfer(Op::WRITE, key, &mut bytes, &ended);
            write.remote.offset = 8 * at as u64;
            assert!(post_now(&mut ranks[0], &write, true), "there is room for it");
            lines += usize::from(!ranks[0].work.posts.is_empty());
            bytes[0] = 0;
            std::hint::black_box(&bytes);
        }
        until(&mut ranks, "a write has not ended", |_| value(&ended) == COUNT as u64);
        assert!(theirs.iter().zip(1..).all(|(word, at)| *word == at), "seed {seed}: {theirs:?}");
        assert_eq!(ranks[0].work.unsent, 0);
    }
    assert!(lines > 0, "no network has refused an operation");
}
