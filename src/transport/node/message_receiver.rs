//! The receiving side of active messages: the shares of this rank, one after the other. Whoever has
//! an inlet is the one receiver of its shares.

use crate::transport::node::lookout::Lookout;
use crate::transport::node::message_area::{Door, MessageArea, Policy, REPLIES};
use crate::transport::node::message_sender::{ENVELOPE_WORDS, INLINE_BYTES};
use crate::transport::node::segment::Segment;
use crate::transport::node::slots::{FIRST, Slot, SlotShare, mark};
use crate::util::counters::Counters;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Messages taken from one share before the next has its turn.
const BATCH: u32 = 32;
/// Looks without result between two looks at what others have begun: some tens of microseconds of a thread that does nothing
/// else. Each of those reads the claims of all slots, and costs the senders hand-overs.
const LOOKS: u32 = 1024;
/// Looks without result after which a sender that sleeps for credit is woken: about a microsecond.
const QUIET: u32 = 32;
/// Looks after which another one is woken, since nothing comes from that one: longer than it takes to wake.
const AGAIN: u32 = 4096;
/// How long a ticket may stay unclaimed before it is passed over. Its sender is between two
/// instructions: preempted, or dead.
const UNCLAIMED: Duration = Duration::from_millis(2);

/// A message that has come. Its bytes lie in its slot and are valid until it is done with.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    /// The handler's number, or the status of a reply.
    pub id: u16,
    /// What the payload is.
    pub kind: u8,
    /// Who sent it.
    pub source: u32,
    /// What its sender calls it; 0: it does not wait for its end.
    pub tag: u64,
    /// The header.
    pub header: (*const u8, usize),
    /// The payload.
    pub payload: (*const u8, usize),
}

/// Where one share stands.
struct Stand {
    number: usize,
    share: SlotShare<'static>,
    /// The ticket to be taken next.
    next: u64,
    /// Up to where slots were given back.
    returned: u64,
    /// How many are given back at a time.
    lot: u64,
    /// The most messages that were ever found waiting.
    most: u64,
    /// Since when the next ticket has been taken but not been published.
    unfinished: Option<Instant>,
    /// Looks in vain since a message was taken, or since the last look at the claims.
    misses: u32,
}

impl Stand {
    /// Whether a sender has begun with the next ticket or a later one.
    fn is_begun(&self) -> bool {
        self.share.is_begun(self.next)
    }
}

/// See the head of the file.
pub struct MessageReceiver {
    /// Of the segment below, which outlives it here.
    mail: MessageArea<'static>,
    _own: Arc<Segment>,
    lookout: Arc<Lookout>,
    dead: Arc<[AtomicBool]>,
    counts: Arc<Counters>,
    stands: Box<[Stand]>,
    /// Below their number.
    at: usize,
    /// Where the present share's next message will be, and how that is marked: all that a look needs.
    slot: &'static Slot,
    awaited: u64,
    /// How many looks may still be in vain before more is to be done, and how many there were.
    spare: u32,
    granted: u32,
    batch: u32,
    /// Slots freed since sleeping senders were looked for.
    freed: u64,
    /// Looks without result since a message was taken.
    quiet: u32,
    /// Policy limit: since when credits have been out while no message is under way.
    astray: Option<Instant>,
}

// SAFETY: as for Outbox; who has the inlet is the one receiver.
unsafe impl Send for MessageReceiver {}

impl MessageReceiver {
    /// The inlet of requests, or of replies; each to be made once.
    pub fn new(
        own: Arc<Segment>,
        dead: Arc<[AtomicBool]>,
        counts: Arc<Counters>,
        replies: bool,
    ) -> MessageReceiver {
        // SAFETY: the control area stays mapped where it is as long as the segment, which is kept.
        let mail = unsafe {
            std::mem::transmute::<MessageArea<'_>, MessageArea<'static>>(own.control().mail())
        };
        let shares = if replies { REPLIES..REPLIES + 1 } else { 0..mail.sizes.shares };
        let stand = |number: usize| {
            // A reply's slot is free before its request is forgotten, see `engine::messages::sender`.
            let lot =
                if replies { 1 } else { (mail.sizes.slots_of(number) as u64 / 4).clamp(1, 32) };
            // The receiver asks for SendCNT only where it lies here.
            let share = mail.share(number, mail.head);
            let (next, returned) = (FIRST, FIRST);
            Stand { number, share, next, returned, lot, most: 0, unfinished: None, misses: 0 }
        };
        let stands: Box<[Stand]> = shares.map(stand).collect();
        let slot = stands[0].share.slot(FIRST);
        let shares = stands.iter().map(|stand| stand.share).collect();
        MessageReceiver {
            mail,
            lookout: Arc::new(Lookout::new(own.clone(), shares)),
            _own: own,
            dead,
            counts,
            stands,
            at: 0,
            slot,
            awaited: mark(FIRST),
            spare: 0,
            granted: 0,
            batch: 0,
            freed: 0,
            quiet: 0,
            astray: None,
        }
    }

    /// By which threads that do not hold this receiver see whether it has something to take.
    pub fn lookout(&self) -> Arc<Lookout> {
        self.lookout.clone()
    }

    fn is_for_replies(&self) -> bool {
        self.stands[0].number == REPLIES
    }

    fn door(&self) -> &'static Door {
        if self.is_for_replies() { &self.mail.head.replies } else { &self.mail.head.requests }
    }

    #[inline(always)]
    fn present(&mut self) -> &mut Stand {
        // SAFETY: there is one at least, and `at` stays below their number.
        unsafe { self.stands.get_unchecked_mut(self.at) }
    }

    /// The present share, or its next ticket, is another one.
    #[inline(always)]
    fn aim(&mut self) {
        let stand = self.present();
        (self.slot, self.awaited) = (stand.share.slot(stand.next), mark(stand.next));
    }

    /// The next message, which stays in its slot until done() is called.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<Arrived> {
        if self.batch >= BATCH || !self.is_ready() {
            self.search();
            if !self.is_ready() {
                return None;
            }
        }
        self.batch += 1;
        Some(self.read())
    }

    /// Whether there is a next message. While there is none this is in most cases a look at a mark and
    /// nothing else: what a waiting thread does most, and what a message waits for.
    #[inline(always)]
    pub fn has_come(&mut self) -> bool {
        if self.is_ready() {
            return true;
        }
        if self.spare > 0 {
            self.spare -= 1;
            return false;
        }
        self.search();
        self.grant();
        self.is_ready()
    }

    #[inline(always)]
    fn is_ready(&self) -> bool {
        self.slot.holds(self.awaited)
    }

    /// Nothing has come, and search() has done all that is due now: of a single share there is nothing to
    /// do but to look until the next thing is due.
    fn grant(&mut self) {
        let (single, quiet) = (self.stands.len() == 1, self.quiet);
        let until_waking = QUIET.wrapping_sub(quiet) % AGAIN;
        let looks = (LOOKS - 1).saturating_sub(self.present().misses).min(until_waking);
        self.granted = if single { looks } else { 0 };
        self.spare = self.granted;
    }

    /// Goes on to the next share that has a message; if none has, to where it began.
    #[inline(never)]
    fn search(&mut self) {
        let in_vain = self.granted - self.spare;
        (self.granted, self.spare) = (0, 0);
        self.quiet = self.quiet.wrapping_add(in_vain);
        self.present().misses += in_vain;
        for _ in 0..self.stands.len() {
            self.batch = 0;
            self.settle();
            self.missed();
            self.at += 1;
            if self.at == self.stands.len() {
                self.at = 0;
            }
            self.aim();
            if self.is_ready() {
                return;
            }
        }
        if self.quiet % AGAIN == QUIET {
            self.wake_a_sender(self.quiet != QUIET);
        }
        self.quiet = self.quiet.wrapping_add(1);
    }

    /// Nothing comes: whoever sleeps for credit finds all of it.
    fn wake_a_sender(&self, another: bool) {
        if !self.is_for_replies() && !self.mail.head.credit.idle(another) {
            std::thread::yield_now();
        }
    }

    /// The present share has nothing, or has had its turn.
    #[inline]
    fn missed(&mut self) {
        let stand = &mut self.stands[self.at];
        stand.misses += 1;
        if stand.misses >= LOOKS {
            self.look_after_the_unfinished();
        }
    }

    #[inline(always)]
    fn read(&self) -> Arrived {
        let mail = &self.mail;
        self.slot.body().with(|body| {
            let body: *const u64 = body.cast();
            // SAFETY: published and not given back, so it is ours; what a hostile peer writes into it
            // meanwhile is read once and bounded below.
            let (first, size, tag) = unsafe {
                (body.read_volatile(), body.add(1).read_volatile(), body.add(2).read_volatile())
            };
            let header = (first >> 24) as usize & 127;
            let header = header.min(64);
            let size = (size as usize).min(mail.sizes.medium);
            let bytes: *const u8 = body.wrapping_add(ENVELOPE_WORDS).cast();
            let room = header.next_multiple_of(8);
            let payload = match room + size > INLINE_BYTES {
                true => self.payload(),
                false => bytes.wrapping_add(room),
            };
            Arrived {
                id: first as u16,
                kind: (first >> 16) as u8,
                source: (first >> 32) as u32,
                tag,
                header: (bytes, header),
                payload: (payload, size),
            }
        })
    }

    /// Where the next message's payload lies, if not in its slot.
    fn payload(&self) -> *const u8 {
        let stand = &self.stands[self.at];
        self.mail.payload(stand.number, stand.share.index(stand.next))
    }

    /// The message that peek() gave has been consumed.
    #[inline(always)]
    pub fn done(&mut self) {
        let stand = self.present();
        stand.next = stand.next.wrapping_add(1);
        stand.unfinished = None;
        stand.misses = 0;
        let (next, lot_is_full) =
            (stand.next, stand.next.wrapping_sub(stand.returned) >= stand.lot);
        self.lookout.moved(self.at, next);
        (self.quiet, self.granted, self.spare) = (0, 0, 0);
        self.aim();
        if lot_is_full {
            self.settle();
        }
    }

    /// Gives back what the present share owes.
    #[inline(never)]
    fn settle(&mut self) {
        let stand = &mut self.stands[self.at];
        let owed = stand.next.wrapping_sub(stand.returned);
        if owed == 0 {
            return;
        }
        stand.share.give_back(stand.next);
        stand.returned = stand.next;
        if stand.most == 0 && stand.number != REPLIES {
            stand.most = 1;
            self.counts.slots_high_water.raise(1);
        }
        if stand.number != REPLIES && stand.share.is_ready(stand.next.wrapping_add(stand.most)) {
            Self::note_backlog(stand, &self.counts);
        }
        if self.mail.sizes.policy == Policy::Limit && stand.number != REPLIES {
            let consumed = &self.mail.head.consumed.0;
            // The receiver alone writes it.
            let now = consumed.load(Ordering::Relaxed).wrapping_add(owed);
            consumed.store(now, Ordering::Release);
        }
        // Who sleeps for want of credit is woken when there is much of it.
        self.freed += owed;
        if self.freed >= self.mail.sizes.slots as u64 / 2 && !self.is_for_replies() {
            self.freed = 0;
            self.mail.head.credit.freed();
        }
    }

    /// More messages wait than ever before: counts them.
    #[cold]
    fn note_backlog(stand: &mut Stand, counts: &Counters) {
        let all = stand.share.slots.len() as u64;
        while stand.most < all && stand.share.is_ready(stand.next.wrapping_add(stand.most)) {
            stand.most += 1;
        }
        counts.slots_high_water.raise(stand.most);
    }

    /// The head of the file `share` says when a ticket is passed over. Of the present share, which
    /// others that are busy do not keep from it.
    #[cold]
    fn look_after_the_unfinished(&mut self) {
        loop {
            let stand = &mut self.stands[self.at];
            stand.misses = 0;
            let (share, next) = (stand.share, stand.next);
            if share.is_ready(next) || !stand.is_begun() {
                stand.unfinished = None;
                break;
            }
            let since = stand.unfinished.unwrap_or_else(Instant::now);
            let dead = |rank: u32| {
                let flag = self.dead.get(rank as usize);
                // Acquire: pairs with the Release in Shm::bury.
                flag.is_none_or(|dead| dead.load(Ordering::Acquire))
            };
            if !share.pass_over(next, dead, since.elapsed() > UNCLAIMED) {
                stand.unfinished = Some(since);
                break;
            }
            self.counts.skips.up();
            self.done();
        }
        self.settle();
        self.find_astray();
    }

    /// Policy limit: a sender that died after it had counted its message and before it had a ticket
    /// leaves the counter too high for ever. Where nothing is under way both counters are equal; if they
    /// are not for a while, they are made so. A living sender that is in between then lets one message
    /// more through than the limit says, which the slots do not mind.
    fn find_astray(&mut self) {
        if self.mail.sizes.policy != Policy::Limit || self.is_for_replies() {
            return;
        }
        let head = self.mail.head;
        let (sent, consumed) = (&head.sent.0, head.consumed.0.load(Ordering::Relaxed));
        let seen = sent.load(Ordering::Relaxed);
        let idle = self.stands[0].share.sent() == self.stands[0].next;
        if seen == consumed || !idle {
            self.astray = None;
        } else if self.astray.get_or_insert_with(Instant::now).elapsed() > UNCLAIMED
            && sent.compare_exchange(seen, consumed, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.astray = None;
            self.counts.skips.up();
        }
    }

    /// Announces that nobody looks from now on, so that who sends something must ring. Some: how
    /// long the caller may sleep; None: something has come already, or is just coming.
    pub fn arm(&mut self, longest: Duration) -> Option<Duration> {
        /// Where the kernel does not run the fence a message may be overlooked for so long.
        const NAP: Duration = Duration::from_millis(1);
        for at in 0..self.stands.len() {
            self.at = at;
            self.aim();
            self.look_after_the_unfinished();
        }
        let certain = self.door().close();
        // Whoever was overlooked before the fence is seen now.
        self.wake_a_sender(true);
        let quiet = !self.stands.iter().any(Stand::is_begun);
        if !quiet || self.astray.is_some() {
            self.door().open();
            return None;
        }
        Some(if certain { longest } else { NAP })
    }

    /// Somebody looks again.
    pub fn disarm(&self) {
        self.door().open();
    }

    /// The ticket that is taken next, of an inlet with one share.
    pub fn next_ticket(&self) -> u64 {
        self.stands[0].next
    }
}
