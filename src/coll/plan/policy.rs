//! Which shortcuts a plan takes. [`Policy`] is decided once, from the facts of the plan; [`Habits`]
//! follows the behaviour of its user. Neither touches a session or reads a clock, so both can be
//! tested here.

use crate::coll::plan::Engine;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A start runs the ready steps only of a program that moves at most so many bytes; it leaves
/// larger ones to other threads, so that the cost of a start does not grow with the message.
pub(super) const LIGHT: u64 = 4 << 10;
/// Bytes that a start may move: steps of its light program, and steps of other ranks that these
/// release.
pub(super) const AT_START: u64 = 4 * LIGHT;
/// Up to so many bytes of buffers that peers do not map are copied by the start, and any rank may
/// run the rank's steps. To wake a thread takes longer than to copy so much.
pub(super) const COPIED: u64 = 32 << 10;
/// A problem of so many bytes is large: its steps are cut into pieces that several ranks may run.
const LARGE: u64 = 256 << 10;

/// Looks of a waiting thread before it gives its core away: a few microseconds. Even with a core
/// for each rank the kernel may let two ranks share one.
const LOOKS: u32 = 30;
/// A waiting thread looks once more for each so many bytes of the round, up to MOST_LOOKS: together
/// about twice the time of copying them. A thread that gives its core to a progress thread may get
/// it back only after a whole time slice.
const BYTES_PER_LOOK: u64 = 1 << 10;
/// Upper limit of the looks that the size of the round adds: about a tenth of a millisecond.
const MOST_LOOKS: u64 = 1024;
/// Looks without a pause instruction, before the others, of a thread that holds a claim: about a
/// microsecond, in which most rounds of small plans end. A pause would be a large part of that
/// time.
pub(super) const BARE_LOOKS: u32 = 200;
/// Looks where ranks are more than cores, in place of all of these.
const LOOKS_IF_CROWDED: u32 = 2;

/// Nanoseconds between start and wait up to which a user counts as prompt: no other rank need run
/// this rank's steps meanwhile.
const PROMPT: u32 = 1_000;
/// After so many prompt rounds in a row deliverers leave the queue to its owner.
const PROMPT_ROUNDS: u32 = 4;
/// After so many rounds in a row that ended quickly the owner sets POLLED_ON, by which deliverers
/// know that threads of the owner poll the queue in every round.
const QUICK_ENDS: u32 = 64;
/// If the user let more nanoseconds than these pass between start and wait, the next start wakes
/// the progress thread: about the time of a wake-up.
const WORTH_A_WAKE_UP: u32 = 20_000;

/// The facts about a plan that are known when it is made.
pub(super) struct Facts {
    /// Bytes that this rank's steps move; each step counts as at least a line.
    pub cost: u64,
    /// Bytes of the vector, or of a block.
    pub size: u64,
    /// Bytes of those inputs that peers do not map.
    pub copied: u64,
    pub queues: u32,
    pub steps: u32,
    /// Whether other ranks may run this rank's steps.
    pub shared: bool,
    /// Whether a completion reports the end of each round.
    pub has_completion: bool,
    pub engine: Engine,
    /// Whether the ranks are more than their cores.
    pub crowded: bool,
    /// Whether membarrier can make all processes of the plan execute a fence.
    pub fenced: bool,
}

/// The decisions that follow from the facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// Every round is announced to the progress thread.
    pub tasked: bool,
    /// Only the user's thread starts and ends rounds, the program is small and has one queue: a
    /// round begins and ends by plain stores, and its queue is claimed with the start.
    pub plain: bool,
    /// The steps move so many bytes that the start leaves them to others, and waiting threads soon
    /// look for steps of other ranks.
    pub heavy: bool,
    /// Each start ends a nap of the progress thread.
    pub urgent: bool,
    /// The ranks are more than their cores.
    pub crowded: bool,
    /// The owner may set POLLED_ON, so that deliverers need no fence.
    pub may_poll_on: bool,
    /// How often a waiting thread looks before it gives its core away.
    pub looks: u32,
}

impl Policy {
    pub fn of(facts: &Facts) -> Policy {
        let Facts { cost, size, crowded, .. } = *facts;
        // Large by the whole problem, since a rank with few steps may run other ranks' steps. Such
        // a rank's start would have to report to the others in each queue that it is ready, which
        // takes several times as long as leaving that to the next thread that looks.
        let large = cost.max(size) >= LARGE;
        let heavy = cost > LIGHT || large && facts.queues > 1;
        let tasked = heavy || !facts.shared || facts.has_completion;
        let offload = facts.engine == Engine::Offload;
        let plain = offload && !tasked && facts.queues == 1 && facts.steps > 0;
        let looks = match (crowded, plain) {
            (true, _) => LOOKS_IF_CROWDED,
            (false, true) => BARE_LOOKS + LOOKS,
            (false, false) => LOOKS + (size / BYTES_PER_LOOK).min(MOST_LOOKS) as u32,
        };
        Policy {
            tasked,
            plain,
            heavy,
            urgent: !offload || facts.copied > COPIED,
            crowded,
            may_poll_on: facts.fenced && !crowded,
            looks,
        }
    }

    /// Whether start and wait read the clock in this round: in one of 16, since a reading takes
    /// half as long as a signal; in one of 4 for a plan that may need the progress thread, because
    /// a start of a large plan has to load the clock's data into the cache first.
    #[inline(always)]
    pub fn looks_at_the_clock(&self, round: u32) -> bool {
        is_sampled(round, if self.tasked { 4 } else { 16 })
    }
}

/// Selects one of `of` rounds (a power of two), at irregular distances, so that a program which
/// uses a plan in several ways in turn is sampled in all of them.
fn is_sampled(round: u32, of: u32) -> bool {
    round.wrapping_mul(0x9e37_79b1) >> (32 - of.ilog2()) == 0
}

/// What the last rounds have shown about the plan's user. These are hints, so all accesses are
/// Relaxed.
pub(super) struct Habits {
    /// When the last timed round was started.
    began: AtomicU64,
    /// Nanoseconds between start and wait in the last timed round.
    away: AtomicU32,
    /// How many timed rounds in a row were prompt, up to PROMPT_ROUNDS.
    prompt: AtomicU32,
    /// How many rounds in a row have ended quickly, up to QUICK_ENDS.
    quick_ends: AtomicU32,
}

impl Habits {
    /// `has_completion`: a completion reports the rounds, so the user is assumed to compute
    /// meanwhile.
    pub fn new(has_completion: bool) -> Habits {
        Habits {
            began: AtomicU64::new(0),
            away: AtomicU32::new(if has_completion { u32::MAX } else { 0 }),
            prompt: AtomicU32::new(0),
            quick_ends: AtomicU32::new(0),
        }
    }

    /// A timed round begins at `now`, in nanoseconds.
    #[inline(always)]
    pub fn note_start(&self, now: u64) {
        self.began.store(now, Ordering::Relaxed);
    }

    /// The user begins to wait for a timed round.
    #[inline]
    pub fn note_wait(&self, now: u64, crowded: bool) {
        let passed = now.saturating_sub(self.began.load(Ordering::Relaxed));
        self.away.store(u32::try_from(passed).unwrap_or(u32::MAX), Ordering::Relaxed);
        let rounds = match passed < PROMPT.into() && !crowded {
            true => PROMPT_ROUNDS.min(self.prompt.load(Ordering::Relaxed) + 1),
            false => 0,
        };
        self.prompt.store(rounds, Ordering::Relaxed);
    }

    /// The user calls test, so it computes between its calls.
    pub fn note_test(&self) {
        self.prompt.store(0, Ordering::Relaxed);
    }

    /// A round has ended in its start, or while the user waited without giving the core away.
    #[inline]
    pub fn note_quick_end(&self) {
        let ends = self.quick_ends.load(Ordering::Relaxed);
        if ends < QUICK_ENDS {
            self.quick_ends.store(ends + 1, Ordering::Relaxed);
        }
    }

    /// A round has ended later than that.
    #[inline]
    pub fn note_slow_end(&self) {
        self.quick_ends.store(0, Ordering::Relaxed);
    }

    /// Whether the user is expected to wait at once, so that other ranks need not run this rank's
    /// steps until then.
    #[inline]
    pub fn is_prompt(&self) -> bool {
        self.prompt.load(Ordering::Relaxed) == PROMPT_ROUNDS
    }

    /// Whether the user is expected to compute for so long that a start should end a nap of the
    /// progress thread.
    #[inline(always)]
    pub fn is_worth_a_wake_up(&self) -> bool {
        self.away.load(Ordering::Relaxed) > WORTH_A_WAKE_UP
    }

    /// Whether the user was not prompt in the last timed round: the progress thread may then stay
    /// awake for the next one.
    pub fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed) > PROMPT
    }

    /// Whether the owner has polled its queue for QUICK_ENDS rounds in a row, so that POLLED_ON is
    /// worth the cost of changing it back.
    #[inline]
    pub fn has_quick_ends(&self) -> bool {
        self.quick_ends.load(Ordering::Relaxed) >= QUICK_ENDS
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SMALL: Facts = Facts {
        cost: 128,
        size: 8,
        copied: 0,
        queues: 1,
        steps: 2,
        shared: true,
        has_completion: false,
        engine: Engine::Offload,
        crowded: false,
        fenced: true,
    };

    #[test]
    fn a_small_plan_of_one_queue_is_plain_and_needs_no_progress_thread() {
        let policy = Policy::of(&SMALL);
        assert!(policy.plain && policy.may_poll_on && !policy.tasked && !policy.heavy);
        for other in [
            Facts { queues: 2, ..SMALL },
            Facts { steps: 0, ..SMALL },
            Facts { has_completion: true, ..SMALL },
            Facts { shared: false, ..SMALL },
            Facts { cost: LIGHT + 1, ..SMALL },
            Facts { engine: Engine::Thread, ..SMALL },
        ] {
            assert!(!Policy::of(&other).plain);
        }
    }

    #[test]
    fn the_progress_thread_is_called_for_what_a_start_leaves_undone() {
        let tasked = |facts: Facts| Policy::of(&facts).tasked;
        assert!(
            !tasked(Facts { cost: LIGHT, ..SMALL }) && tasked(Facts { cost: LIGHT + 1, ..SMALL })
        );
        assert!(
            tasked(Facts { has_completion: true, ..SMALL })
                && tasked(Facts { shared: false, ..SMALL })
        );
        // Large for others and in several queues, though this rank has little to do.
        let large = Facts { size: LARGE, ..SMALL };
        assert!(!tasked(large) && tasked(Facts { size: LARGE, queues: 2, ..SMALL }));
    }

    #[test]
    fn a_nap_is_too_long_for_engine_thread_and_for_inputs_that_a_start_does_not_copy() {
        let urgent = |facts: Facts| Policy::of(&facts).urgent;
        assert!(!urgent(SMALL) && !urgent(Facts { copied: COPIED, ..SMALL }));
        assert!(urgent(Facts { copied: COPIED + 1, ..SMALL }));
        assert!(urgent(Facts { engine: Engine::Thread, ..SMALL }));
    }

    #[test]
    fn looks_grow_with_the_message_and_end_soon_where_ranks_share_cores() {
        let looks = |facts: Facts| Policy::of(&facts).looks;
        assert_eq!(looks(SMALL), BARE_LOOKS + LOOKS);
        assert_eq!(looks(Facts { queues: 2, ..SMALL }), LOOKS);
        assert_eq!(looks(Facts { queues: 2, size: 4 << 10, ..SMALL }), LOOKS + 4);
        assert_eq!(looks(Facts { queues: 2, size: 1 << 40, ..SMALL }), LOOKS + 1024);
        let crowded = Facts { crowded: true, ..SMALL };
        assert!(!Policy::of(&crowded).may_poll_on);
        assert_eq!(looks(crowded), LOOKS_IF_CROWDED);
        assert!(!Policy::of(&Facts { fenced: false, ..SMALL }).may_poll_on);
    }

    #[test]
    fn one_round_of_16_is_timed_or_one_of_4() {
        let count = |facts: Facts| {
            let policy = Policy::of(&facts);
            (0..1600).filter(|round| policy.looks_at_the_clock(*round)).count()
        };
        assert!((90..110).contains(&count(SMALL)));
        assert!((380..420).contains(&count(Facts { has_completion: true, ..SMALL })));
    }

    #[test]
    fn a_user_is_prompt_after_four_prompt_rounds_and_no_longer_after_a_late_one() {
        let habits = Habits::new(false);
        for _ in 0..PROMPT_ROUNDS {
            assert!(!habits.is_prompt());
            habits.note_start(100);
            habits.note_wait(100 + u64::from(PROMPT) - 1, false);
        }
        assert!(habits.is_prompt() && !habits.is_away());
        habits.note_start(0);
        habits.note_wait(u64::from(WORTH_A_WAKE_UP), false);
        assert!(!habits.is_prompt() && habits.is_away() && !habits.is_worth_a_wake_up());
        habits.note_wait(u64::from(WORTH_A_WAKE_UP) + 1, false);
        assert!(habits.is_worth_a_wake_up());
        (0..PROMPT_ROUNDS).for_each(|_| habits.note_wait(0, true));
        assert!(!habits.is_prompt(), "nobody is where ranks share cores");
        (0..PROMPT_ROUNDS).for_each(|_| habits.note_wait(0, false));
        habits.note_test();
        assert!(!habits.is_prompt());
        assert!(Habits::new(true).is_worth_a_wake_up(), "a user that a completion tells is away");
    }

    #[test]
    fn a_queue_is_polled_on_after_64_quick_ends() {
        let habits = Habits::new(false);
        for _ in 0..QUICK_ENDS {
            assert!(!habits.has_quick_ends());
            habits.note_quick_end();
        }
        habits.note_quick_end();
        assert!(habits.has_quick_ends());
        habits.note_slow_end();
        assert!(!habits.has_quick_ends());
    }
}
