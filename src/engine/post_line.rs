//! The operations that wait to be posted for one peer. To make their work requests takes long, and
//! a network without room refuses all of them. So a line that was refused leaves out the next
//! tries, more of them after each refusal, until the network completes an operation, which makes
//! room.

use crate::engine::in_flight::Tag;
use crate::engine::peer_turns::PeerLine;
use std::collections::VecDeque;

/// Most tries that a line leaves out after a refusal.
const PAUSE: u32 = 32;

/// See the head of the file.
#[derive(Default)]
pub struct PostLine {
    /// The operations, by age.
    pub tags: VecDeque<Tag>,
    /// How many tries the line leaves out, and how many after the next refusal.
    pause: u32,
    next_pause: u32,
    /// The number of completions at the last refusal.
    completions: u64,
}

impl PeerLine for PostLine {
    fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }
}

impl PostLine {
    /// The network has refused the first operation. `completions`: how many completions it has
    /// reported until now.
    pub fn refused(&mut self, completions: u64) {
        self.pause = self.next_pause.clamp(1, PAUSE);
        self.next_pause = 2 * self.pause;
        self.completions = completions;
    }

    /// Whether the line leaves this try out.
    pub fn pauses(&mut self, completions: u64) -> bool {
        if self.completions != completions {
            (self.pause, self.next_pause) = (0, 0);
        }
        let pauses = self.pause > 0;
        self.pause -= u32::from(pauses);
        pauses
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_refused_line_leaves_more_and_more_tries_out_until_a_completion() {
        let mut line = PostLine::default();
        let pauses_at = |line: &mut PostLine, completions| {
            line.refused(completions);
            (0..).take_while(|_| line.pauses(completions)).count()
        };
        assert!(!line.pauses(5), "the network has refused nothing");
        let counts = [(); 8].map(|()| pauses_at(&mut line, 5));
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 32, 32]);
        line.refused(5);
        assert!(line.pauses(5) && !line.pauses(6), "a completion has made room");
        assert_eq!(pauses_at(&mut line, 6), 1);
    }
}
