//! Which shortcuts a plan takes. A [`Policy`] is made once, from the facts of the plan. [`Habits`]
//! record how its user calls it. Neither accesses a session or reads a clock, so both can be tested
//! here.

use crate::coll::plan::Engine;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The most bytes of a program whose ready steps a start runs. It leaves larger programs to other
/// threads, so that the cost of a start does not grow with the message.
pub(super) const LIGHT: u64 = 4 << 10;
/// The most bytes that a start moves: by steps of its light program, and by steps of other ranks
/// that these release.
pub(super) const AT_START: u64 = 4 * LIGHT;
/// The most bytes of unmapped buffers that a start copies, so that any rank may run the rank's
/// steps. To wake a thread takes longer than to copy so many.
pub(super) const COPIED: u64 = 32 << 10;
/// The least number of bytes of a large problem, whose steps are cut into pieces that several ranks
/// may run.
const LARGE: u64 = 256 << 10;

/// Looks of a waiting thread before it yields its core: a few microseconds. Even with a core for
/// each rank the kernel may let two ranks share one.
const LOOKS: u32 = 30;
/// The number of bytes of the round for which a waiting thread looks once more, up to MOST_LOOKS.
/// These looks take about twice the time of copying the bytes. A thread that yields its core to a
/// progress thread may get it back only after a whole time slice.
const BYTES_PER_LOOK: u64 = 1 << 10;
/// Upper limit of the looks that the size of the round adds: about a tenth of a millisecond.
const MOST_LOOKS: u64 = 1024;
/// Looks without a pause instruction, before the others, of a thread that holds a claim. They take
/// about a microsecond, in which most rounds of small plans end, and a pause instruction would be a
/// large part of that time.
pub(super) const BARE_LOOKS: u32 = 200;
/// The looks of a waiting thread if there are more ranks than cores, in place of all others.
const LOOKS_IF_CROWDED: u32 = 2;

/// The longest time between start and wait, in nanoseconds, for which a user counts as prompt. No
/// other rank need then run this rank's steps meanwhile.
const PROMPT: u32 = 1_000;
/// The number of prompt rounds in a row after which deliverers leave the queue to its owner.
const PROMPT_ROUNDS: u32 = 4;
/// The number of rounds in a row that ended quickly after which the owner sets POLLED_ON. By this
/// mark deliverers know that threads of the owner poll the queue in every round.
const QUICK_ENDS: u32 = 64;
/// The time between start and wait, in nanoseconds, above which the next start wakes the progress
/// thread. It is about the time of a wake-up.
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
    /// Whether there are more ranks than cores.
    pub crowded: bool,
    /// Whether membarrier can make all processes of the plan execute a fence.
    pub fenced: bool,
}

/// The decisions that follow from the facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// Every round is announced to the progress thread.
    pub tasked: bool,
    /// Only the user's thread starts and ends rounds, and the program is small and has one queue.
    /// So a round begins and ends by plain stores, and its queue is claimed with the start.
    pub plain: bool,
    /// The steps move so many bytes that the start leaves them to others, and waiting threads soon
    /// look for steps of other ranks.
    pub heavy: bool,
    /// Each start ends a nap of the progress thread.
    pub urgent: bool,
    /// There are more ranks than cores.
    pub crowded: bool,
    /// The owner may set POLLED_ON, so that deliverers need no fence.
    pub may_poll_on: bool,
    /// How often a waiting thread looks before it gives its core away.
    pub looks: u32,
}

impl Policy {
    pub fn of(facts: &Facts) -> Policy {
        let Facts { cost, size, crowded, .. } = *facts;
        // The size of the whole problem counts too, since a rank with few steps may run other
        // ranks' steps. The start of such a rank would have to report in each queue that the rank
        // is ready, which takes several times as long as to leave that to the next thread that
        // looks.
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

    /// Whether start and wait read the clock in this round. They do in one of 16 rounds, since a
    /// reading takes half as long as a signal. For a plan that may need the progress thread they do
    /// in one of 4.
    #[inline(always)]
    pub fn looks_at_the_clock(&self, round: u32) -> bool {
        is_sampled(round, if self.tasked { 4 } else { 16 })
    }
}

/// Selects one of `of` rounds (a power of two) at irregular distances. If a program uses a plan in
/// several ways in turn, rounds of each way are selected.
fn is_sampled(round: u32, of: u32) -> bool {
    round.wrapping_mul(0x9e37_79b1) >> (32 - of.ilog2()) == 0
}

/// Measurements of the last rounds, from which a plan predicts its user's next calls. These are
/// hints, so all accesses are Relaxed.
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

    /// Whether QUICK_ENDS rounds in a row have ended quickly, so that POLLED_ON is likely to save
    /// more than it costs to clear it again.
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
        // The problem is large and has several queues, though this rank moves few bytes.
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
