//! Ranks that are killed behind a wire while operations on them are under way.
//!
//! Each kill has a job of its own with three ranks. Rank 0 has operations on rank 1, which dies,
//! and rank 1 has writes to a region of rank 0. When the operations have ended, rank 0 uses their
//! memory again, for reads from rank 2; it frees the region, and uses that memory again, too.
//! `LLCL_KILLS` is the number of kills.

use super::*;
use crate::transport::fabric::simulate;
use std::time::{Duration, Instant};

/// Operations on the rank that dies.
const OPERATIONS: usize = 12;
/// Sizes of reads and writes in words; the last one takes two fragments.
const WORDS: [usize; 4] = [1, 10, 512, CHUNK / 8 + 100];
const MOST: usize = WORDS[3];

/// The memory of one operation, and the words of its completion and of that of the read after it.
struct Use {
    memory: Vec<u64>,
    ended: AtomicU64,
    again: AtomicU64,
}

/// A xorshift generator (Marsaglia).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) as usize % limit
    }
}

fn transfer(op: Op, peer: u32, key: u64, memory: &mut [u64], ended: &AtomicU64) -> Command {
    let mut command = Command::new(op, peer);
    command.remote = Address { offset: 0, key };
    (command.local, command.size) = (memory.as_mut_ptr().cast(), size_of_val(memory) as u64);
    command.on_complete = add_to(ended);
    command
}

/// Ranks 0 and 1 ask for the keys that they use.
fn learn(ranks: &mut [Option<Rank>; 3], keys: &[u64]) {
    let limit = Instant::now() + Duration::from_secs(10);
    for (asker, peer) in [(0, 1), (0, 2), (1, 0)] {
        let address = Address { offset: 0, key: keys[peer as usize] };
        let knows = |rank: &Rank| {
            let port = rank.routes.port(peer).unwrap();
            rank.routes.locate(port, address, 8).is_ok()
        };
        while !knows(ranks[asker].as_ref().unwrap()) {
            for rank in ranks.iter_mut().flatten() {
                rank.round();
            }
            assert!(Instant::now() < limit, "the key of rank {peer} is not known");
        }
    }
}

/// Kills rank 1 once. Returns how many operations have ended well, and how many by the death.
fn kill(seed: u64, number: u64) -> (usize, usize) {
    // The bytes that rank 1 writes. They live longer than rank 1.
    let (mut late, late_ended) = (vec![5; MOST], AtomicU64::new(0));
    simulate(Some(seed));
    let (_world, ranks) = some_ranks::<3>(16);
    simulate(None);
    let mut random = Random((seed << 32 | number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut memory: [Vec<u64>; 3] = std::array::from_fn(|rank| vec![rank as u64 + 1; MOST]);
    let keys: Vec<u64> =
        ranks.iter().zip(&mut memory).map(|(rank, memory)| rank.register(memory)).collect();
    let mut ranks = ranks.map(Some);
    let fabric = ranks[0].as_ref().unwrap().routes.clone();
    let (is_remote, most) = (fabric.fabric().has_silent_writes(), fabric.fabric().remote_most());
    drop(fabric);
    if is_remote {
        learn(&mut ranks, &keys);
    }
    // An operation's first stage: the wire reads or writes, or a request goes to the owner.
    let stage = |command: &Command, posted: bool| match posted && is_remote {
        true => InFlight::first_posted(command.size, most),
        false => Stage::Data { done: 0 },
    };
    let mut uses: Vec<Use> = (0..OPERATIONS)
        .map(|_| {
            let (ended, again) = (AtomicU64::new(0), AtomicU64::new(0));
            Use { memory: vec![9; WORDS[random.below(4)]], ended, again }
        })
        .collect();
    for Use { memory, ended, .. } in &mut uses {
        let rank = ranks[0].as_mut().unwrap();
        let posted = random.below(4) > 0;
        match random.below(3) {
            0 => {
                let posted = posted && rank.routes.fabric().has_atomics(1);
                let stage = if posted { InFlight::first_posted(0, most) } else { Stage::Word };
                rank.start(increment(1, keys[1], ended), stage);
            }
            1 => {
                let mut write = transfer(Op::WRITE, 1, keys[1], memory, ended);
                if random.below(2) == 0 {
                    (write.op, write.code, write.operand) = (Op::WRITE_SIGNAL, op::ADD, 1);
                    write.signal = Address { offset: 8 * (MOST as u64 - 1), key: keys[1] };
                }
                rank.start(write, stage(&write, posted));
            }
            _ => {
                let read = transfer(Op::READ, 1, keys[1], memory, ended);
                rank.start(read, stage(&read, posted));
            }
        }
    }
    for _ in 0..4 {
        let words = WORDS[random.below(4)];
        let write = transfer(Op::WRITE, 0, keys[0], &mut late[..words], &late_ended);
        let stage = stage(&write, random.below(4) > 0);
        ranks[1].as_mut().unwrap().start(write, stage);
    }
    let steps = random.below(60);
    for _ in 0..steps {
        let any = random.below(3);
        ranks[any].as_mut().unwrap().round();
        if random.below(4) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(100) as u64));
        }
    }
    // The rank dies with its endpoint, or it only stops and its endpoint goes on.
    if random.below(2) == 0 {
        drop(ranks[1].take());
    }
    let living = |ranks: &mut [Option<Rank>; 3]| {
        ranks[0].as_mut().unwrap().round();
        ranks[2].as_mut().unwrap().round();
    };
    (0..random.below(20)).for_each(|_| living(&mut ranks));
    for rank in [0, 2] {
        ranks[rank].as_ref().unwrap().routes.mark_dead(1);
    }
    let limit = Instant::now() + Duration::from_secs(10);
    let until = |ranks: &mut [Option<Rank>; 3], what: &str, done: &dyn Fn() -> bool| {
        while !done() {
            living(ranks);
            assert!(Instant::now() < limit, "seed {seed}, kill {number}: {what}");
        }
    };
    let all_ended = || uses.iter().all(|it| value(&it.ended) != 0);
    until(&mut ranks, "an operation has not ended", &all_ended);
    // All of this memory is free now, and is used again. So is the region.
    let rank = ranks[0].as_ref().unwrap();
    rank.segment.retract(0);
    rank.routes.fabric().deregister(keys[0], Duration::ZERO).unwrap();
    memory[0].fill(7);
    for Use { memory, again, .. } in &mut uses {
        memory.fill(7);
        let read = transfer(Op::READ, 2, keys[2], memory, again);
        ranks[0].as_mut().unwrap().start(read, stage(&read, true));
    }
    let all_read = || uses.iter().all(|it| value(&it.again) != 0);
    until(&mut ranks, "a read has not ended", &all_read);
    let fabrics = [0, 2].map(|rank| ranks[rank].as_ref().unwrap().routes.clone());
    let kept = || fabrics.iter().map(|routes| routes.fabric().slots_retired()).sum::<u64>();
    if seed.is_multiple_of(4) {
        // This wire can't fence.
        (0..100).for_each(|_| living(&mut ranks));
    } else {
        until(&mut ranks, "grants of the dead are out of use", &|| kept() == 0);
    }
    let foreign = memory[0].iter().find(|word| **word != 7);
    assert_eq!(foreign, None, "seed {seed}, kill {number}: the dead rank has written late");
    let (mut well, mut failed) = (0, 0);
    for Use { memory, ended, again } in &uses {
        match value(ended) {
            1 => well += 1,
            ended => {
                assert_eq!(ended, 1 | WORD_FAILED, "seed {seed}, kill {number}: fired twice");
                failed += 1;
            }
        }
        assert_eq!(value(again), 1, "seed {seed}, kill {number}");
        let foreign = memory.iter().find(|word| **word != 3);
        assert_eq!(foreign, None, "seed {seed}, kill {number}: written late");
    }
    let work = &ranks[0].as_ref().unwrap().work;
    assert!(work.is_idle() && work.unsent == 0 && work.places.iter().all(Option::is_none));
    (well, failed)
}

/// The completion of every operation on a killed rank fires once, and no bytes of the dead rank are
/// written to memory that is used again.
#[test]
fn what_is_pending_on_the_dead_is_told_once_and_nothing_of_them_is_written_late() {
    let kills = std::env::var("LLCL_KILLS").ok().and_then(|kills| kills.parse().ok());
    let kills = kills.unwrap_or(20);
    let (mut well, mut failed) = (0, 0);
    for number in 0..kills {
        let ended = kill(1 + number % 10, number);
        (well, failed) = (well + ended.0, failed + ended.1);
    }
    println!("{kills} kills: {well} operations have ended well, {failed} by the death");
    assert!(well > 0 && failed > 0);
}
