//! Which shortcuts a plan takes. [`Policy`] is decided once, from what the plan is; [`Habits`]
//! changes with what its user does. Neither touches a session or a clock, so both are tested here.

use crate::coll::plan::Engine;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A rank whose program costs more than this, in bytes moved, leaves all of it to others at the
/// start, so that the cost of a start does not grow with the message.
pub(super) const LIGHT: u64 = 4 << 10;
/// What a start may move of a light program, and of the steps of other ranks that this releases.
pub(super) const AT_START: u64 = 4 * LIGHT;
/// What a rank's buffers that peers do not map may take, so that a start copies them and all ranks
/// may run the rank's steps. Waking a thread for them takes longer than to copy so much.
pub(super) const COPIED: u64 = 32 << 10;
/// A problem of so many bytes is large: its steps are cut into pieces that many ranks may run.
const LARGE: u64 = 256 << 10;

/// Looks without giving the core away: a few microseconds. Even with a core for each rank two of
/// them may share one, as the kernel pleases.
const LOOKS: u32 = 30;
/// One look more for so many bytes of the round, up to MOST_LOOKS: about twice as long as it takes
/// to copy them. A thread that gives its core to a progress thread meanwhile may get it back after
/// a whole turn of the scheduler.
const BYTES_PER_LOOK: u64 = 1 << 10;
/// About a tenth of a millisecond.
const MOST_LOOKS: u64 = 1 << 10;
/// Before these, looks without a pause of a thread that holds a claim: about a microsecond, in
/// which most rounds of small plans come to their end, and of which a pause would be a large part.
pub(super) const BARE_LOOKS: u32 = 200;
/// In the place of all of these, where ranks are more than cores.
const LOOKS_IF_CROWDED: u32 = 2;

/// Nanoseconds between start and wait up to which nobody need stand in for the owner meanwhile.
const PROMPT: u32 = 1_000;
/// In how many such rounds, one after the other, until deliverers leave the rank alone.
const PROMPT_ROUNDS: u32 = 4;
/// How many rounds, one after the other, must have ended soon until a queue is polled on.
const QUICK_ENDS: u32 = 64;
/// Nanoseconds between start and wait from which on the progress thread is woken for the next
/// round: about what a wake-up takes.
const WORTH_A_WAKE_UP: u32 = 20_000;

/// What is known of a plan when it is made.
pub(super) struct Facts {
    /// Bytes that this rank's steps move, each at least a line.
    pub cost: u64,
    /// Bytes of the vector or of a block.
    pub size: u64,
    /// Bytes of the inputs that peers do not map.
    pub copied: u64,
    pub queues: u32,
    pub steps: u32,
    /// Other ranks may run this rank's steps.
    pub shared: bool,
    /// A completion tells the user of each round's end.
    pub has_completion: bool,
    pub engine: Engine,
    /// There are more ranks than cores for them.
    pub crowded: bool,
    /// All processes can be made to execute a fence.
    pub fenced: bool,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// The progress thread is told of every round.
    pub tasked: bool,
    /// It needs nobody but its user's thread, is small and has one queue: a round is begun and
    /// ended by stores, and its queue is claimed with its start.
    pub plain: bool,
    /// Its steps move so much that waiting threads look for work of others at once.
    pub heavy: bool,
    /// Even a nap of the progress thread is too long for a start to wait.
    pub urgent: bool,
    /// There are more ranks than cores for them.
    pub crowded: bool,
    /// The owner may come to poll its queue on, so that deliverers need no fence.
    pub may_poll_on: bool,
    /// How often a waiting thread looks before it gives its core away.
    pub looks: u32,
}

impl Policy {
    pub fn of(facts: &Facts) -> Policy {
        let Facts { cost, size, crowded, .. } = *facts;
        // By the whole problem: a rank whose own steps are few may run others', and a start that
        // tells them that it is ready, queue by queue, would take several times as long as one that
        // leaves that to them.
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

    /// Whether start and wait look at the clock in this round: in one of 16, since that takes as
    /// long as half a signal; in one of 4 of a plan that may need the progress thread, as a start
    /// of a large one must find the clock in memory first.
    #[inline(always)]
    pub fn looks_at_the_clock(&self, round: u32) -> bool {
        is_sampled(round, if self.tasked { 4 } else { 16 })
    }
}

/// One of so many rounds, a power of two, at no regular distance, so that a program that uses a
/// plan in several ways in turn is seen in all of them.
fn is_sampled(round: u32, of: u32) -> bool {
    round.wrapping_mul(0x9e37_79b1) >> (32 - of.ilog2()) == 0
}

/// What the last rounds of a plan have shown of its user. Hints: all is Relaxed.
pub(super) struct Habits {
    /// When the last round was started that was timed.
    began: AtomicU64,
    /// Nanoseconds that the user has let pass between start and wait the last time.
    away: AtomicU32,
    /// How often, one after the other and up to PROMPT_ROUNDS, the user has waited as soon as a
    /// round was started.
    prompt: AtomicU32,
    /// How many of the last rounds have ended soon, up to QUICK_ENDS.
    quick_ends: AtomicU32,
}

impl Habits {
    /// `has_completion`: a completion tells the user, which therefore is taken to be away.
    pub fn new(has_completion: bool) -> Habits {
        Habits {
            began: AtomicU64::new(0),
            away: AtomicU32::new(if has_completion { u32::MAX } else { 0 }),
            prompt: AtomicU32::new(0),
            quick_ends: AtomicU32::new(0),
        }
    }

    /// A round that is timed begins at this time, in nanoseconds.
    #[inline(always)]
    pub fn note_start(&self, now: u64) {
        self.began.store(now, Ordering::Relaxed);
    }

    /// The user begins to wait for a round that is timed.
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

    /// The user has tested: it computes meanwhile.
    pub fn note_test(&self) {
        self.prompt.store(0, Ordering::Relaxed);
    }

    /// A round has ended in its start, or while its user waited without giving the core away.
    #[inline]
    pub fn note_quick_end(&self) {
        let ends = self.quick_ends.load(Ordering::Relaxed);
        if ends < QUICK_ENDS {
            self.quick_ends.store(ends + 1, Ordering::Relaxed);
        }
    }

    /// A round has not ended soon.
    #[inline]
    pub fn note_slow_end(&self) {
        self.quick_ends.store(0, Ordering::Relaxed);
    }

    /// Whether the user is expected to wait at once, so that others need not stand in for this rank
    /// until then.
    #[inline]
    pub fn is_prompt(&self) -> bool {
        self.prompt.load(Ordering::Relaxed) == PROMPT_ROUNDS
    }

    /// Whether the user is expected to be away for so long that the progress thread is to come out
    /// of its nap.
    #[inline(always)]
    pub fn is_worth_a_wake_up(&self) -> bool {
        self.away.load(Ordering::Relaxed) > WORTH_A_WAKE_UP
    }

    /// Whether the progress thread may stay awake for the next round.
    pub fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed) > PROMPT
    }

    /// Whether the owner has looked at its queue all the time for so many rounds that deliverers
    /// may rely on it without a fence: to take that back is dear.
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
    fn the_progress_thread_is_told_of_what_a_start_leaves_undone() {
        let tasked = |facts: Facts| Policy::of(&facts).tasked;
        assert!(
            !tasked(Facts { cost: LIGHT, ..SMALL }) && tasked(Facts { cost: LIGHT + 1, ..SMALL })
        );
        assert!(
            tasked(Facts { has_completion: true, ..SMALL })
                && tasked(Facts { shared: false, ..SMALL })
        );
        // Large for others, in several queues, though this rank has little to do.
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
