use super::*;
use crate::bootstrap::World;
use crate::coll::arena::Arena;
use crate::core::context::{Context, Place};
use crate::core::services::Nobody;
use crate::engine::control_messages::ControlMessage;
use crate::util::config::Config;
use std::sync::mpsc::channel;
use std::time::Instant;

type Two<T> = [T; 2];
type Ranks = (World, Two<Context>, Two<Arc<Services>>, Two<Arc<Arena>>);

fn two_ranks() -> Ranks {
    let world = World::create(2).expect("a world of two");
    let config = || Config::from_environment().expect("a configuration");
    let contexts = [0, 1]
        .map(|rank| Context::create(Ok(config()), Place::World(&world, rank)).expect("a rank"));
    let services = contexts.each_ref().map(|context| Arc::new(context.services()));
    let arenas = services.each_ref().map(|services| Arena::new(services.clone()).into());
    (world, contexts, services, arenas)
}

fn group(peers: [u32; 2], me: usize) -> Group {
    Group::new(Arc::new(peers), me, 77)
}

/// Rank 0 cannot reach rank 1 in two exchanges; in the third it can.
#[test]
fn a_rank_that_could_not_reach_another_may_reach_it_later() {
    let (_world, _contexts, services, arenas) = two_ranks();
    let mut first = Board::new(&services[0], &arenas[0], group([0, 99], 0)).expect("a board");
    let mut second = Board::new(&services[1], &arenas[1], group([0, 1], 1)).expect("a board");
    for number in 1..=2 {
        let failure = first.exchange(&services[0], Status::OK, &[1]).expect_err("a failure");
        assert!(failure.everywhere && first.sequence() == number);
    }
    first.group = group([0, 1], 0);
    let (sender, results) = channel();
    let (waiting, behind) = (services[1].clone(), services[0].clone());
    // The other rank comes late to all three exchanges.
    std::thread::spawn(move || {
        let ends = [0; 3].map(|_| second.exchange(&waiting, Status::OK, &[2]));
        drop(sender.send((ends.map(|end| end.map_err(|failure| failure.error.status)), second)));
    });
    let all = first.exchange(&behind, Status::OK, &[1]).map_err(Error::from).expect("it passed");
    assert!(all.iter().eq([[1], [2]]));
    let (ends, second) = results.recv_timeout(Duration::from_secs(10)).expect("no rank hangs");
    let failed = || Err(Status::ERR_INVALID);
    let cards = Gathered { bytes: vec![1, 2], each: 1, ranks: 2 };
    assert_eq!(ends, [failed(), failed(), Ok(cards)]);
    first.leave(&services[0], &arenas[0]);
    second.leave(&services[1], &arenas[1]);
}

/// Two ranks in one process. Rank 0's list names a rank that does not exist, so rank 0 reaches
/// nobody; rank 1 waits for rank 0.
#[test]
fn a_rank_that_cannot_reach_another_fails_the_exchange_for_ranks_that_wait_for_it() {
    let (_world, _contexts, services, arenas) = two_ranks();
    let mut first = Board::new(&services[0], &arenas[0], group([0, 99], 0)).expect("a board");
    let mut second = Board::new(&services[1], &arenas[1], group([0, 1], 1)).expect("a board");
    let failure = first.exchange(&services[0], Status::OK, &[]).expect_err("a failure");
    assert_eq!(failure.error.status, Status::ERR_INVALID);
    assert!(failure.everywhere);
    // A rank that looks for the board only now must find it, so its memory must not be used again.
    let (place, own) = (first.own.place, first.own.bytes);
    first.leave(&services[0], &arenas[0]);
    let next = arenas[0].allocate(own, 0).expect("memory");
    assert_ne!(next.place.offset, place.offset);
    let (sender, results) = channel();
    let waiting = services[1].clone();
    std::thread::spawn(move || {
        let ends = [0, 1].map(|_| second.exchange(&waiting, Status::OK, &[]).map(drop));
        drop(sender.send((ends, second)));
    });
    let (ends, second) = results.recv_timeout(Duration::from_secs(10)).expect("no rank hangs");
    for end in ends {
        assert_eq!(end.expect_err("a failure").error.status, Status::ERR_INVALID);
    }
    second.leave(&services[1], &arenas[1]);
}

/// A rank of another node may have sent a sheet before this rank knows that it has no board.
#[test]
fn a_sheet_for_a_board_that_is_refused_is_dropped() {
    let (_world, _contexts, services, arenas) = two_ranks();
    services[1].connect(std::iter::once(0)).expect("a contact");
    let message =
        ControlMessage { peer: 0, name: 77, words: [1, 0, 0], keep: true, bytes: &[5; 100] };
    services[1].send_control(&message, &(Arc::new(Nobody) as _)).expect("accepted");
    let (messages, limit) =
        (services[0].routes.control_messages(), Instant::now() + Duration::from_secs(10));
    while messages.kept() == 0 {
        assert!(Instant::now() < limit, "the control message has not come");
        std::thread::yield_now();
    }
    let mut second = Board::new(&services[1], &arenas[1], group([0, 1], 1)).expect("a board");
    let behind = services[1].clone();
    let second = std::thread::spawn(move || {
        let status = second.exchange(&behind, Status::OK, &[]).map_err(|it| it.error.status);
        (status.map(drop), second)
    });
    let status = Status::ERR_NO_MEMORY;
    Board::refuse(&services[0], &group([0, 1], 0), status).expect("the other one has received it");
    assert_eq!(messages.kept(), 0);
    let (ended, second) = second.join().expect("no panic");
    assert_eq!(ended, Err(status));
    second.leave(&services[1], &arenas[1]);
}
