use super::*;
use crate::bootstrap::World;
use crate::coll::plan::asked::{Asked, Form};
use crate::coll::plan::make::make;
use crate::coll::problem::Operation;
use crate::coll::reduction::Type;
use crate::coll::runner::stepping::Ranks;
use crate::coll::team::Team;
use crate::core::context::{Context, Place};
use crate::engine::atomic::op;
use crate::transport::address::ANY;
use crate::util::config::Config;
use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::time::Duration;

const RANKS: u32 = 3;

/// Puts the plan into the state in which it has ended `rounds` rounds.
fn pretend(plan: &Plan, rounds: u64) {
    let (stage, last, round) = (&plan.stage, rounds as u32 - 1, rounds as u32);
    let session = &stage.members[stage.me].session;
    for queue in 0..session.queues() {
        // Some signals are sent once in many rounds.
        for round in last - 300..=last {
            for record in session.records(queue).map(|at| session.record(at)) {
                stage.signal(stage.me, record, round);
            }
        }
        if plan.has_steps(queue) {
            session.queue(queue).finish(session.queue(queue).activate_claimed(last, stage.me));
        }
    }
    plan.round_end().end_own(round);
    plan.rounds.store(rounds, Ordering::Release);
    for word in [&plan.opening, &plan.opened, &plan.settled] {
        word.store(round, Ordering::Release);
    }
}

/// Sums of all ranks in four rounds before the counter's low half wraps around and in four after.
fn sums_around_the_wrap(team: &Team, algorithm: Option<&str>, counted: bool, all: &Barrier) {
    let first = (1 << 32) - 4;
    let [word, mine, sum] = [0; 3].map(AtomicU64::new);
    let place = |word: &AtomicU64| Address { offset: word.as_ptr() as u64, key: ANY.0 };
    let plan = make(
        team,
        &Asked {
            send: place(&mine),
            receive: place(&sum),
            count: 1,
            kind: Type::U64 as u32,
            op: op::ADD.into(),
            algorithm: algorithm.map(str::to_owned),
            on_complete: match counted {
                true => Completion { kind: completion::ADD, ..Completion::store_on(&word) },
                false => Completion::NOTHING,
            },
            ..Asked::nothing(Operation::Allreduce, Form::Even)
        },
    );
    let plan = plan.expect("a plan");
    // The ranks have the plan before one of them signals.
    all.wait();
    pretend(&plan, first);
    all.wait();
    for round in 1..=8 {
        mine.store(round + team.me as u64, Ordering::Relaxed);
        plan.start().expect("a round starts");
        if let Err(error) = plan.test() {
            assert_eq!(error.status, Status::RETRY_BUSY);
            plan.wait(None).expect("a round ends");
        }
        assert_eq!(sum.load(Ordering::Relaxed), 3 * round + 3, "round {round}");
        if counted {
            assert_eq!(word.load(Ordering::Relaxed), round);
            // Also round 0 of the counter's low half has ended and is no plan that never began.
            plan.test().expect("the round has ended");
            plan.wait(None).expect("the round has ended");
        }
    }
    assert_eq!(plan.about().2, first + 8);
    Plan::free(&plan).expect("no round is under way");
    all.wait();
}

#[test]
fn rounds_may_wrap_around() {
    let world = Arc::new(World::create(RANKS).expect("a world"));
    let all = Arc::new(Barrier::new(RANKS as usize));
    let (sender, results) = channel();
    for rank in 0..RANKS {
        let (world, all, sender) = (world.clone(), all.clone(), sender.clone());
        std::thread::spawn(move || {
            let config = Config::from_environment();
            let context = Context::create(config, Place::World(&world, rank)).expect("a rank");
            let services = Arc::new(context.services());
            let arena = Arc::new(Arena::new(services.clone()));
            let team = Team::world(services, arena, Default::default()).expect("a team");
            for algorithm in [None, Some("ring")] {
                for counted in [false, true] {
                    sums_around_the_wrap(&team, algorithm, counted, &all);
                }
            }
            drop(team);
            context.finalize(None).status.expect("the end");
            sender.send(()).expect("the test waits");
        });
    }
    for _ in 0..RANKS {
        results.recv_timeout(Duration::from_secs(30)).expect("no rank fails or hangs");
    }
}
