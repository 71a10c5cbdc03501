//! Layer 1 with threads as ranks: worlds of 1, 2, 3, 5 and 8, their collectives and their deaths.

mod common;

use common::lookup;
use llcl::bootstrap::{Bootstrap, MAX_BLOB, World};
use llcl::util::status::Status;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

const SIZES: [u32; 5] = [1, 2, 3, 5, 8];

/// Runs `body` in every rank of a world of `size`, each on a thread of its own.
fn in_world(size: u32, body: impl Fn(Bootstrap) + Sync) {
    let world = World::create(size).unwrap();
    std::thread::scope(|scope| {
        for rank in 0..size {
            let (world, body) = (&world, &body);
            scope.spawn(move || body(Bootstrap::from_world(world, rank).unwrap()));
        }
    });
    assert!(world.is_idle());
}

/// Waits until another thread has made a condition true; fails if it does not.
fn eventually(what: &str, test: impl Fn() -> bool) {
    let start = Instant::now();
    while !test() {
        assert!(start.elapsed() < Duration::from_secs(10), "still not: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn exchange(ranks: &Bootstrap, mine: &[u8]) -> std::result::Result<Vec<u8>, Status> {
    let mut all = vec![0xee; mine.len() * ranks.size() as usize];
    match ranks.exchange(mine, &mut all) {
        Ok(()) => Ok(all),
        Err(e) => {
            assert!(all.iter().all(|b| *b == 0xee), "written though it failed");
            Err(e.status)
        }
    }
}

#[test]
fn exchange_brings_every_size_to_everybody() {
    for size in SIZES {
        in_world(size, |me| {
            let most = (48 << 10) / size as usize;
            for length in [0, 1, 8, 1000, most - 1, most, most + 1, 2 * most, 200_000] {
                let pattern = |rank: u32| {
                    (0..length).map(move |i| (i as u32).wrapping_mul(31).wrapping_add(rank) as u8)
                };
                let mine: Vec<u8> = pattern(me.rank()).collect();
                let expected: Vec<u8> = (0..size).flat_map(pattern).collect();
                assert!(exchange(&me, &mine).unwrap() == expected, "{length} bytes");
            }
            me.leave();
        });
    }
}

#[test]
fn a_card_is_found_before_and_after_it_is_published() {
    for size in SIZES {
        in_world(size, |me| {
            // Odd ranks publish late, so that some look-ups wait.
            if me.rank() % 2 == 1 {
                std::thread::sleep(Duration::from_millis(20));
            }
            let (reader, mut writer) = UnixStream::pair().unwrap();
            writer.write_all(&[me.rank() as u8; 8]).unwrap();
            let blob = vec![me.rank() as u8; MAX_BLOB];
            me.publish(&blob, reader.as_fd()).unwrap();
            for step in 0..size {
                let peer = (me.rank() + step) % size;
                let card = lookup(&me, peer).unwrap();
                assert_eq!(card.blob, [peer as u8; MAX_BLOB]);
                let mut byte = [0xff];
                File::from(card.fd.unwrap()).read_exact(&mut byte).unwrap();
                assert_eq!(byte, [peer as u8]);
            }
            me.fence_survivors().unwrap();
            me.leave();
        });
    }
}

#[test]
fn parameters_are_checked() {
    in_world(2, |me| {
        let file = File::open("/dev/null").unwrap();
        let long = me.publish(&[0; MAX_BLOB + 1], file.as_fd()).unwrap_err();
        assert_eq!(long.status, Status::ERR_INVALID);
        assert!(long.message().contains("257 bytes, expected at most 256"), "{long}");
        me.publish(b"once", file.as_fd()).unwrap();
        let again = me.publish(b"twice", file.as_fd()).unwrap_err();
        assert_eq!(again.status, Status::ERR_STATE);
        let short = me.exchange(&[1, 2], &mut [0; 3]).unwrap_err();
        assert_eq!(short.status, Status::ERR_INVALID);
        // An exchange with different sizes fails at both ranks, and the next one works.
        let mine = vec![0; 3 + me.rank() as usize];
        assert_eq!(exchange(&me, &mine).unwrap_err(), Status::ERR_INVALID);
        assert_eq!(exchange(&me, &[me.rank() as u8]).unwrap(), [0, 1]);
        let large = vec![0; 100_000 * (1 + me.rank() as usize)];
        assert_eq!(exchange(&me, &large).unwrap_err(), Status::ERR_INVALID);
        assert_eq!(exchange(&me, &[]).unwrap(), []);
        me.leave();
        me.leave();
        assert_eq!(exchange(&me, &[1]).unwrap_err(), Status::ERR_STATE);
        assert_eq!(me.fence_survivors().unwrap_err().status, Status::ERR_STATE);
    });
}

#[test]
fn ranks_are_taken_once() {
    let world = World::create(2).unwrap();
    assert!(world.is_idle());
    assert_eq!(world.size(), 2);
    let zero = Bootstrap::from_world(&world, 0).unwrap();
    assert_eq!((zero.rank(), zero.size()), (0, 2));
    assert!(!world.is_idle());
    assert_eq!(Bootstrap::from_world(&world, 0).err().unwrap().status, Status::ERR_STATE);
    assert_eq!(Bootstrap::from_world(&world, 2).err().unwrap().status, Status::ERR_RANGE);
    zero.leave();
    assert!(world.is_idle());
    assert_eq!(Bootstrap::from_world(&world, 0).err().unwrap().status, Status::ERR_STATE);
    for size in [0, 4097, u32::MAX] {
        let refused = World::create(size).err().unwrap();
        assert_eq!(refused.status, Status::ERR_INVALID);
        assert!(refused.message().starts_with(&format!("size is {size}, expected 1 to 4096")));
    }
}

#[test]
fn a_death_wakes_those_who_wait_and_is_told_once() {
    for size in [2, 3, 5, 8] {
        let victim = size - 1;
        let joined = Barrier::new(size as usize);
        let file = File::open("/dev/null").unwrap();
        in_world(size, |me| {
            if me.rank() == victim {
                joined.wait();
                std::thread::sleep(Duration::from_millis(30));
                return; // Dropped without leave(), as by a death.
            }
            let told = Arc::new(Mutex::new(Vec::new()));
            let list = told.clone();
            me.on_death(Box::new(move |rank| list.lock().unwrap().push(rank)));
            joined.wait();
            me.publish(b"", file.as_fd()).unwrap();
            // Half of the others wait for the dead rank's card, half in the exchange.
            let error = if me.rank() % 2 == 0 {
                lookup(&me, victim).unwrap_err()
            } else {
                me.exchange(&[], &mut []).unwrap_err()
            };
            assert_eq!(error.status, Status::ERR_PEER_DEAD);
            assert_eq!(error.message(), format!("rank {victim} has died"));
            assert!(me.is_dead(victim) && !me.is_dead(me.rank()));
            assert_eq!(exchange(&me, &[1]).unwrap_err(), Status::ERR_PEER_DEAD);
            assert_eq!(lookup(&me, victim).unwrap_err().status, Status::ERR_PEER_DEAD);
            assert_eq!(lookup(&me, me.rank()).unwrap().blob, b"");
            eventually("told", || !told.lock().unwrap().is_empty());
            assert_eq!(*told.lock().unwrap(), [victim]);
            me.fence_survivors().unwrap();
            me.leave();
        });
    }
}

#[test]
fn a_rank_that_has_left_counts_as_gone_and_the_fence_goes_on() {
    in_world(3, |me| {
        if me.rank() == 2 {
            me.leave();
            return;
        }
        eventually("rank 2 has left", || me.is_dead(2));
        let error = me.exchange(&[], &mut []).unwrap_err();
        assert_eq!((error.status, error.message()), (Status::ERR_PEER_DEAD, "rank 2 has left"));
        assert_eq!(lookup(&me, 2).unwrap_err().status, Status::ERR_PEER_DEAD);
        // A handler that is registered late is called at once.
        let (sender, receiver) = mpsc::channel();
        me.on_death(Box::new(move |rank| sender.send(rank).unwrap()));
        assert_eq!(receiver.try_recv(), Ok(2));
        me.fence_survivors().unwrap();
        me.leave();
        assert!(receiver.try_iter().all(|rank| rank < 2 && rank != me.rank()));
    });
}

#[test]
fn many_threads_of_one_rank_may_ask_at_once() {
    in_world(2, |me| {
        let file = File::open("/dev/null").unwrap();
        let (sender, cards) = mpsc::channel();
        me.on_cards(Arc::new(move |cards| {
            cards.into_iter().for_each(|card| sender.send(card).unwrap_or(()));
        }));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        me.ask_card(1 - me.rank());
                        std::thread::yield_now();
                    }
                });
            }
            scope.spawn(|| {
                for round in 0..50u8 {
                    assert_eq!(exchange(&me, &[round]).unwrap(), [round, round]);
                }
            });
            me.publish(b"card", file.as_fd()).unwrap();
        });
        // At least one card arrives, and no more than were asked for.
        let (peer, first) = cards.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!((peer, first.unwrap().blob.as_slice()), (1 - me.rank(), &b"card"[..]));
        me.fence_survivors().unwrap();
        me.leave();
    });
}

#[test]
fn the_end_of_the_hub_is_an_answer_too() {
    let world = World::create(3).unwrap();
    let zero = Bootstrap::from_world(&world, 0).unwrap();
    let _one = Bootstrap::from_world(&world, 1).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let list = told.clone();
    zero.on_death(Box::new(move |rank| list.lock().unwrap().push(rank)));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| lookup(&zero, 1).unwrap_err());
        std::thread::sleep(Duration::from_millis(20));
        drop(world);
        let error = waiting.join().unwrap();
        let expected = (Status::ERR_SYSTEM, "the launcher has gone");
        assert_eq!((error.status, error.message()), expected);
    });
    eventually("both are told", || told.lock().unwrap().len() == 2);
    assert_eq!(*told.lock().unwrap(), [1, 2]);
    assert!(zero.is_dead(1) && zero.is_dead(2) && !zero.is_dead(0));
    assert_eq!(exchange(&zero, &[1]).unwrap_err(), Status::ERR_SYSTEM);
    assert_eq!(zero.fence_survivors().unwrap_err().status, Status::ERR_SYSTEM);
    zero.leave();
}

#[test]
fn leaving_wakes_the_own_threads_that_wait() {
    in_world(2, |me| {
        if me.rank() == 0 {
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| lookup(&me, 1).unwrap_err().status);
                std::thread::sleep(Duration::from_millis(20));
                me.leave();
                // Either the departure or the end of the other rank arrived first.
                let status = waiting.join().unwrap();
                assert!([Status::ERR_STATE, Status::ERR_PEER_DEAD].contains(&status));
            });
        } else {
            eventually("rank 0 has left", || me.is_dead(0));
            me.leave();
        }
    });
}

#[test]
fn leaving_inside_the_death_callback_is_possible() {
    let world = World::create(2).unwrap();
    let zero = Arc::new(Bootstrap::from_world(&world, 0).unwrap());
    let one = Bootstrap::from_world(&world, 1).unwrap();
    let (sender, receiver) = mpsc::channel();
    let me = Arc::downgrade(&zero);
    zero.on_death(Box::new(move |rank| {
        me.upgrade().unwrap().leave();
        sender.send(rank).unwrap();
    }));
    drop(one);
    assert_eq!(receiver.recv_timeout(Duration::from_secs(10)), Ok(1));
    assert!(world.is_idle());
}

#[test]
fn a_process_without_a_launcher_is_a_world_of_one() {
    let me = Bootstrap::from_environment().unwrap();
    assert_eq!((me.rank(), me.size()), (0, 1));
    let file = File::open("/dev/null").unwrap();
    me.publish(b"me", file.as_fd()).unwrap();
    assert_eq!(exchange(&me, b"abc").unwrap(), b"abc");
    assert!(!me.is_dead(0));
    me.fence_survivors().unwrap();
    // A second world beside it is independent.
    assert_eq!(Bootstrap::from_environment().unwrap().size(), 1);
    me.leave();
    assert_eq!(exchange(&me, b"").unwrap_err(), Status::ERR_STATE);
}

#[test]
fn an_idle_world_uses_no_processor_time() {
    let world = World::create(4).unwrap();
    let ranks: Vec<_> = (0..4).map(|r| Bootstrap::from_world(&world, r).unwrap()).collect();
    // Threads that have only just started, also those of other tests in this process, switch once
    // more before they sleep. So the test waits for 300 ms in which as many threads sleep as belong
    // to this world.
    let mine = ranks.len() + 1;
    eventually("every thread of the world sleeps through", || {
        let before = switches_of_quiet_threads();
        std::thread::sleep(Duration::from_millis(300));
        let after = switches_of_quiet_threads();
        before.iter().filter(|entry| after.contains(entry)).count() >= mine
    });
    ranks.iter().for_each(Bootstrap::leave);
}

/// (thread, voluntary context switches) of the watchers and hubs of this process.
fn switches_of_quiet_threads() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let path = task.unwrap().path();
        let status = std::fs::read_to_string(path.join("status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find(|l| l.starts_with(name));
            line.map(|l| l[name.len()..].trim().to_owned()).unwrap_or_default()
        };
        if ["llcl-watch", "llcl-hub"].contains(&field("Name:").as_str()) {
            found.push((path.display().to_string(), field("voluntary_ctxt_switches:")));
        }
    }
    found
}
