//! The abilities of the simulated network.

use crate::fail;
use crate::transport::wire::{Caps, NOTICE_WORDS};
use crate::util::status::Result;

/// How the simulated network behaves.
#[derive(Clone, Copy, Debug)]
pub struct Nature {
    /// The seed of the random delays.
    pub seed: u64,
    /// The lane has a descriptor to sleep on.
    pub has_fd: bool,
    /// fence() ends with `Event::FENCED`; without this ability, with `Event::UNFENCEABLE`.
    pub can_fence: bool,
    /// The bytes of a frame, and of a write that is not inline, are read until the command's end;
    /// without this, at the post.
    pub late: bool,
    /// All other abilities.
    pub caps: Caps,
}

/// [`Caps::atomics`] by the value of the switch `atomics`: none; fetch-add and compare-and-swap, as
/// most adapters have; those and swap.
const ATOMICS: [u64; 3] = [0, 1 << 5 | 1 << 4, 1 << 5 | 1 << 4 | 1 << 3];

/// [`Caps::notice_words`] where notices bring words.
const WORDS: u32 = NOTICE_WORDS as u32;

impl Nature {
    /// The network of a seed.
    pub fn of(seed: u64) -> Nature {
        let at = seed as usize;
        let remote = seed % 5 < 3;
        let caps = Caps {
            frame_most: [512, 4096, 1 << 20][at % 3],
            remote,
            inline_most: [0, 16, 256, 1000][at % 4],
            needs_local_key: seed % 3 == 2,
            message_most: [0, 1000, 1 << 16][at / 2 % 3],
            atomics: if remote { ATOMICS[[0, 1, 0, 2][at % 4]] } else { 0 },
            notice_bits: if remote && seed % 8 != 5 { [8, 32][at / 4 % 2] } else { 0 },
            shared_queue: (seed + 1) % 5 < 2,
            notice_words: if remote && at / 2 % 2 == 1 { WORDS } else { 0 },
            answers: seed.is_multiple_of(2),
            opener_polls: false,
        };
        let (has_fd, can_fence) = (seed % 2 == 1, !seed.is_multiple_of(4));
        let late = (seed / 4).is_multiple_of(2);
        Nature { seed, has_fd, can_fence, late, caps }
    }

    /// The network of `SEED` or `SEED:SWITCH=NUMBER:...`; a switch overrides one ability.
    pub fn named(name: &str) -> Result<Nature> {
        let mut parts = name.split(':');
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
        let Some(seed) = number(parts.next()) else {
            fail!(ERR_INVALID, "LLCL_WIRE_SEED is {name}, expected a number first");
        };
        let mut nature = Nature::of(seed);
        for part in parts {
            let (switch, text) = part.split_once('=').unwrap_or((part, ""));
            let Some(value) = number(Some(text)) else {
                fail!(ERR_INVALID, "LLCL_WIRE_SEED has {part}, expected SWITCH=NUMBER");
            };
            let caps = &mut nature.caps;
            match switch {
                "answers" => caps.answers = value != 0,
                "frame" => caps.frame_most = value as usize,
                "fence" => nature.can_fence = value != 0,
                "remote" => caps.remote = value != 0,
                "late" => nature.late = value != 0,
                "inline" => caps.inline_most = value as usize,
                "keys" => caps.needs_local_key = value != 0,
                "message" => caps.message_most = value,
                "atomics" => caps.atomics = ATOMICS[(value as usize).min(2)],
                "shared" => caps.shared_queue = value != 0,
                "notices" => {
                    caps.notice_bits = [0, 8, 8, 32][(value as usize).min(3)];
                    caps.notice_words = if value > 1 { WORDS } else { 0 };
                }
                "fd" => nature.has_fd = value != 0,
                _ => fail!(
                    ERR_INVALID,
                    "LLCL_WIRE_SEED has switch {switch}, expected answers, atomics, fd, fence, frame, \
                     inline, keys, late, message, notices, remote or shared"
                ),
            }
        }
        nature.caps.atomics *= u64::from(nature.caps.remote);
        nature.caps.notice_bits *= u32::from(nature.caps.remote);
        nature.caps.notice_words *= u32::from(nature.caps.remote);
        Ok(nature)
    }

    /// The network of `LLCL_WIRE_SEED`; seed 1 without the variable.
    pub fn from_environment() -> Result<Nature> {
        std::env::var("LLCL_WIRE_SEED").map_or(Ok(Nature::of(1)), |name| Nature::named(&name))
    }
}

#[cfg(test)]
impl Nature {
    /// Networks with and without access to memory, atomics, inline writes and a descriptor, in each
    /// combination: without access to memory there are no atomics and no inline writes. Each has a
    /// seed of its own, from which all else follows, but that those with atomics carry frames by
    /// tickets.
    pub fn combinations() -> impl Iterator<Item = String> {
        let abilities = |bits: u64| [0, 1, 2, 3].map(|at| bits >> at & 1);
        let has = |[remote, atomics, inline, _]: &[u64; 4]| *remote == 1 || atomics + inline == 0;
        let name = |([remote, atomics, inline, fd], seed): ([u64; 4], u64)| {
            let inline = inline * 64;
            format!(
                "{seed}:remote={remote}:atomics={atomics}:inline={inline}:fd={fd}\
                 :notices={remote}:message=0:shared=0:fence=1"
            )
        };
        (0..16).map(abilities).filter(has).zip(1..).map(name)
    }
}
