//! Memory that a rank maps, or that the kernel copies: loopback and shared memory.

use super::*;

#[test]
fn a_region_is_found_within_its_bounds_and_written_in_place() {
    over_mapped(|pair| {
        let (key, base, _kept) = pair.region(3, 9, 4096);
        assert_eq!(pair.locate(key.0, 8, 100), Ok(Access::Mapped));
        let place = pair.find(key, 8, 100).unwrap();
        // SAFETY: found for 100 bytes; base is the owner's mapping of the same region.
        unsafe {
            place.write(77);
            assert_eq!(base.add(8).read(), 77);
        }
        for (offset, size) in [(0, 4096), (4095, 1), (4096, 0), (0, 0)] {
            assert_eq!(pair.locate(key.0, offset, size), Ok(Access::Mapped));
            assert!(pair.find(key, offset, size).is_some(), "offset {offset} size {size}");
        }
        for (offset, size) in [(0, 4097), (4096, 1), (4097, 0), (u64::MAX, 1), (8, u64::MAX)] {
            assert_eq!(pair.locate(key.0, offset, size), Err(Status::ERR_RANGE));
            assert!(pair.find(key, offset, size).is_none(), "offset {offset} size {size}");
        }
        for (offset, found) in [(0, true), (4088, true), (4089, false), (u64::MAX, false)] {
            let word = Address { offset, key: key.0 };
            assert_eq!(pair.here.port.find_word(word).is_some(), found, "word at {offset}");
        }
    });
}

#[test]
fn a_key_fits_one_life_of_one_region_of_one_rank() {
    over_mapped(|pair| {
        let (key, _, _kept) = pair.region(0, 9, 64);
        let strange =
            [0, 1, Key::new(0, 1, 8).0, Key::new(0, 0, 9).0, Key::new(5, 1, 9).0, u64::MAX];
        for key in strange {
            assert_eq!(pair.locate(key, 0, 8), Err(Status::ERR_KEY), "{key:#x}");
            assert!(pair.find(Key(key), 0, 8).is_none(), "{key:#x}");
        }
        assert_eq!(pair.locate(key.0, 0, 8), Ok(Access::Mapped));
        pair.memory.retract(0);
        assert!(pair.find(key, 0, 8).is_none(), "found without asking, after its end");
        assert_eq!(pair.locate(key.0, 0, 8), Err(Status::ERR_KEY));
        let (again, _, _kept) = pair.region(0, 10, 128);
        assert_eq!(pair.locate(again.0, 100, 8), Ok(Access::Mapped));
        assert!(pair.find(again, 100, 8).is_some() && pair.find(key, 0, 8).is_none());
        assert_eq!(pair.locate(key.0, 0, 8), Err(Status::ERR_KEY));
    });
}

#[test]
fn what_a_living_peer_has_looked_up_is_not_used_again() {
    let pair = shared();
    let free = |place: Place, living: bool| {
        pair.memory.retract(3);
        pair.memory.empty(place, 8192);
        let held = Holders { users: pair.memory.users(3), since: 1 };
        let is_held = held.users.bits().any(|bit| bit == 0 && living);
        pair.memory.give_back(place, 8192, held, is_held);
    };
    let make = |life: u32| {
        let (place, mapping) = pair.memory.allocate(8192, std::ptr::null_mut()).unwrap();
        let (key, Place::File(offset)) = (Key::new(3, 1, life), place) else { unreachable!() };
        pair.memory.publish(3, key.0, place, 8192);
        (key, place, offset, mapping)
    };
    let (_, place, unused, _first) = make(1);
    free(place, true);
    let (key, place, used, mapping) = make(2);
    assert_eq!(used, unused, "nobody had looked it up");
    pair.locate(key.0, 0, 8).unwrap();
    let late = pair.find(key, 0, 8).unwrap();
    free(place, true);
    let (_, place, next, other) = make(3);
    assert_ne!(next, used, "rank 0 lives and may still store");
    // SAFETY: the port keeps `late` mapped; the others are mappings of the owner.
    unsafe {
        late.cast::<u64>().write_volatile(7);
        assert_eq!(mapping.base().cast::<u64>().read_volatile(), 7);
        assert_eq!(other.base().cast::<u64>().read_volatile(), 0);
    }
    free(place, true);
    assert_eq!(make(4).2, next, "rank 0 has its range still");
    pair.memory.reclaim(|held| held.users.bits().any(|bit| bit == 0));
    assert_ne!(make(5).2, used, "another rank has died");
    pair.here.port.cut_off_freed().unwrap();
    pair.memory.reclaim(|_| false);
    let (key, place, again, fresh) = make(6);
    assert_eq!(again, used, "its user has let go of it");
    // SAFETY: the port keeps `late` mapped; the other is a mapping of the owner.
    unsafe {
        late.cast::<u64>().write_volatile(8);
        assert_eq!(fresh.base().cast::<u64>().read_volatile(), 0);
    }
    pair.locate(key.0, 0, 8).unwrap();
    free(place, false);
    assert_eq!(make(7).2, used, "its user was dead when it ended");
}

#[test]
fn a_port_learns_once_forgets_and_closes() {
    over_mapped(|pair| {
        let (key, _, _kept) = pair.region(2, 4, 64);
        pair.locate(key.0, 0, 8).unwrap();
        let port = &pair.here.port;
        let live = pair.memory.live(2);
        // SAFETY: no memory is answered; the pair keeps `live`.
        unsafe { port.learn(key, live, || panic!("it knows the region")).unwrap() };
        assert_eq!(port.length(key), Some(64));
        assert!(port.forget(2).is_some(), "the mapping comes back");
        assert!(pair.find(key, 0, 8).is_none() && port.length(key).is_none());
        assert!(port.forget(2).is_none());

        let (key, _, _kept) = pair.region(6, 4, 64);
        pair.locate(key.0, 0, 8).unwrap();
        assert!(pair.find(key, 0, 8).is_some());
        port.close();
        assert!(pair.find(key, 0, 8).is_none());
        let live = pair.memory.live(6);
        // SAFETY: as above.
        unsafe { port.learn(key, live, || panic!("a closed port learns nothing")).unwrap() };
    });
}

#[test]
fn a_storing_thread_sees_the_threads_that_sleep_at_the_owner() {
    over_mapped(|pair| {
        let (waiters, seen) = (pair.memory.control().waiters(), Cell::new(false));
        let word = Address { offset: 8, key: 99 };
        assert!(!pair.here.port.waiters().any_at(word));
        let awaited = Awaited { name: Some(word), local: None };
        Sleepers::default().sleep(waiters, &[awaited], Some(Duration::ZERO), || {
            seen.set(pair.here.port.waiters().any_at(word));
            true
        });
        assert!(seen.get() && !pair.here.port.waiters().any_at(word));
    });
}

#[test]
fn the_kernel_copies_both_ways() {
    over_mapped(|pair| {
        let mut theirs: Vec<u8> = (0..100_000).map(|i| i as u8 ^ 0x5a).collect();
        let mut ours = vec![0u8; theirs.len()];
        let (there, size) = (theirs.as_mut_ptr() as u64, ours.len());
        let End { transport, port, .. } = &pair.here;
        // Many pairs, in descending order, and more than one system call can copy.
        let pairs = |ours: *mut u8| {
            let pair = |at: usize| transport::Pair {
                ours: ours.wrapping_add(50 * at),
                theirs: there + 50 * at as u64,
                size: 50,
            };
            (0..size / 50).rev().map(pair).collect::<Vec<_>>()
        };
        // SAFETY: both vectors have `size` bytes, and nobody else uses them.
        unsafe { transport.kernel_read(port, &pairs(ours.as_mut_ptr())) }.unwrap();
        assert_eq!(ours, theirs);
        ours.reverse();
        // SAFETY: as above.
        unsafe { transport.kernel_write(port, &pairs(ours.as_mut_ptr())) }.unwrap();
        assert_eq!(ours, theirs);
    });
}

#[test]
fn registered_memory_is_not_mapped_by_another_rank() {
    let pair = shared();
    let key = Key::new(4, 1, 2);
    pair.memory.publish(4, key.0, Place::Own(0x1000), 64);
    let expected = match pair.here.transport.registered_access(&pair.here.port) {
        Access::Kernel(_) => Access::Kernel(0x1010),
        _ => Access::Message(0x1010),
    };
    assert_eq!(pair.locate(key.0, 16, 48), Ok(expected));
    assert_eq!(pair.locate(key.0, 16, 49), Err(Status::ERR_RANGE));
    assert!(pair.find(key, 16, 8).is_none());
}

/// Only for shared memory: a rank does not survive its own death.
#[test]
fn nothing_of_a_dead_rank_is_located() {
    let pair = shared();
    let (key, _, _kept) = pair.region(1, 1, 64);
    assert_eq!(pair.locate(key.0, 0, 8), Ok(Access::Mapped));
    pair.here.transport.mark_dead(1);
    assert_eq!(pair.locate(key.0, 0, 8), Err(Status::ERR_PEER_DEAD));
}
