//! Sheets of ranks of other nodes. A rank that cannot map the board of another rank sends its
//! sheets as control messages under the team's name. The receiver keeps them here until its
//! exchange needs them. A sheet that comes before the receiver has the team waits in
//! `engine::control_messages`. A rank also sends the records of failed exchanges on its board to
//! the ranks that cannot read the board.

use crate::coll::agreement::{Group, Verdict};
use crate::core::services::Services;
use crate::engine::control_messages::{ControlMessage, ControlReceiver, Ended, MOST, Words};
use crate::engine::routes::Routes;
use crate::util::backoff::Backoff;
use crate::util::status::{Error, Result, Status};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The second word of a control message: step + part * PART, or FAILED.
const PART: u64 = 1 << 16;
const PARTS: u64 = 1 << 32;
const FAILED: u64 = u64::MAX;

/// The key of a part of a sheet: exchange, step, part.
type Place = (u64, u64, u64);

#[derive(Default)]
struct Arrived {
    sheets: HashMap<Place, (u64, Box<[u8]>)>,
    /// The last failed exchange that each rank has reported, and the reason, by world rank.
    failed: HashMap<u32, (u64, u64)>,
}

/// The sheets that have come for one team.
pub struct FarSheets {
    routes: Arc<Routes>,
    arrived: Mutex<Arrived>,
    /// How many control messages have come; threads sleep on this word.
    come: AtomicU64,
    /// The status of a control message that a peer could not take.
    refused: Arc<Refused>,
}

/// Receives the answers to this rank's control messages.
#[derive(Default)]
struct Refused(AtomicI32);

impl Ended for Refused {
    fn ended(&self, _: u32, _: usize, status: Status) {
        // A death is found by Group::check_alive().
        if !matches!(status, Status::OK | Status::ERR_PEER_DEAD | Status::ERR_CANCELED) {
            self.0.store(status.0, Ordering::Relaxed);
        }
    }
}

impl ControlReceiver for FarSheets {
    fn received(&self, source: u32, [number, which, word]: Words, bytes: &[u8]) {
        {
            let mut arrived = self.arrived();
            match which {
                FAILED => {
                    let said = arrived.failed.entry(source).or_default();
                    // Control messages overtake each other: only the largest number counts.
                    *said = (*said).max((number, word));
                }
                _ => {
                    let place = (number, which % PART, which % PARTS / PART);
                    arrived.sheets.insert(place, (word, bytes.into()));
                }
            }
        }
        self.come.fetch_add(1, Ordering::Release);
        self.routes.waiters().touched_word(self.come.as_ptr() as u64);
    }
}

impl FarSheets {
    /// For a new team.
    pub fn new(services: &Services) -> FarSheets {
        FarSheets {
            routes: services.routes.clone(),
            arrived: Mutex::default(),
            come: AtomicU64::new(0),
            refused: Arc::default(),
        }
    }

    fn arrived(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The word that threads sleep on while they wait for sheets.
    pub fn come(&self) -> &AtomicU64 {
        &self.come
    }

    /// An error, if a peer could not take a control message of this rank.
    pub fn check(&self) -> Result<()> {
        match Status(self.refused.0.load(Ordering::Relaxed)) {
            Status::OK => Ok(()),
            status => {
                let text = "a rank of another node could not take a sheet of the exchange";
                Err(Error::new(status, text.into()))
            }
        }
    }

    /// The number of control messages for a sheet.
    fn parts(bytes: usize) -> u64 {
        bytes.div_ceil(MOST).max(1) as u64
    }

    /// Sends the sheet of a step to a rank.
    pub fn send(
        &self,
        services: &Services,
        group: &Group,
        (peer, step): (u32, usize),
        (sequence, verdict, blocks): (u64, u64, &[u8]),
    ) -> Result<()> {
        for part in 0..FarSheets::parts(blocks.len()) {
            let begin = part as usize * MOST;
            let bytes = &blocks[begin..blocks.len().min(begin + MOST)];
            let which = step as u64 + part * PART;
            self.post(services, group, peer, ([sequence, which, verdict], bytes))?;
        }
        Ok(())
    }

    /// Sends a rank the number and the reason of failed exchanges that are on this rank's board.
    pub fn send_failed(
        &self,
        services: &Services,
        group: &Group,
        peer: u32,
        (number, verdict): (u64, u64),
    ) -> Result<()> {
        self.post(services, group, peer, ([number, FAILED, verdict], &[]))
    }

    fn post(
        &self,
        services: &Services,
        group: &Group,
        peer: u32,
        (words, bytes): (Words, &[u8]),
    ) -> Result<()> {
        let ends = self.refused.clone() as Arc<dyn Ended>;
        let message = ControlMessage { peer, name: group.name, words, keep: true, bytes };
        let mut backoff = Backoff::new(services.spin());
        loop {
            match services.send_control(&message, &ends) {
                Err(error) if error.status.is_retry() => {
                    group.check_alive(services)?;
                    if !services.help_others() {
                        backoff.pause();
                    }
                }
                end => return end,
            }
        }
    }

    /// Whether all parts of a step's sheet have come.
    pub fn has(&self, sequence: u64, step: usize, bytes: usize) -> bool {
        let arrived = self.arrived();
        (0..FarSheets::parts(bytes))
            .all(|part| arrived.sheets.contains_key(&(sequence, step as u64, part)))
    }

    /// Takes the sheet: copies the blocks, returns the verdict.
    pub fn take(&self, sequence: u64, step: usize, blocks: &mut [u8]) -> u64 {
        let (mut arrived, mut verdict) = (self.arrived(), 0);
        let parts = FarSheets::parts(blocks.len());
        for part in 0..parts {
            let place = &mut blocks[part as usize * MOST..];
            let Some((word, bytes)) = arrived.sheets.remove(&(sequence, step as u64, part)) else {
                continue;
            };
            verdict = word;
            // A rank that could not take part sends a verdict only.
            let size = bytes.len().min(place.len());
            place[..size].copy_from_slice(&bytes[..size]);
        }
        // Sheets of failed exchanges are of no use any more.
        arrived.sheets.retain(|(number, ..), _| *number >= sequence);
        verdict
    }

    /// The last failed exchange that a rank has reported, and why; see Failed::get().
    pub fn failed(&self, peer: u32) -> (u64, Verdict) {
        let (number, why) = self.arrived().failed.get(&peer).copied().unwrap_or_default();
        (number, Verdict(why))
    }
}
