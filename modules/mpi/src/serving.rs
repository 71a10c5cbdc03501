//! The owner's side of reads and writes. `remote` describes the protocol.

use crate::lane::MpiLane;
use crate::message::{
    ANSWER_ENTRY, KIND_BITS, Notice, WITH_NOTICE, WRITE, ended_and_answer, outcome, store, take,
    take_bytes, take_notice,
};
use crate::remote::{INLINE, LARGEST, OPERATIONS, Remote, SERVED, tag_of};
use crate::requests::{Came, Single};
use crate::table::{Event, Status};
use crate::unsent::Answer;
use std::cell::UnsafeCell;
use std::num::NonZeroU64;

/// The memory to which MPI stores the bytes of all refused writes; nobody reads it. It is part of
/// the module, since this rank must not fail for lack of memory when a peer's writes are wrong. The
/// kernel gives it pages at the first refused write. Several receives may name it at a time: their
/// bytes then mix, which no MPI that the tests run over objects to.
static SINK: Sink = Sink(UnsafeCell::new([0; LARGEST as usize]));

struct Sink(UnsafeCell<[u8; LARGEST as usize]>);

// SAFETY: only MPI stores there, and nobody depends on what.
unsafe impl Sync for Sink {}

/// The operations of a request, behind its head and the answer that it brings.
fn operations_of(Came { bytes, size, .. }: &Came) -> &[u8] {
    let mut left = bytes.get(..*size).unwrap_or_default();
    let (_, skipped) = take(&mut left).map_or((0, 0), |[head]| ended_and_answer(head));
    left.get(skipped..).unwrap_or_default()
}

/// Whether a request has no large operation, as serve() reads it.
fn is_small(request: &Came) -> bool {
    let mut left = operations_of(request);
    while let Some([number_and_kind, size, _, _]) = take(&mut left) {
        if size > INLINE {
            return false;
        }
        let (write, notice) = (number_and_kind & WRITE != 0, number_and_kind & WITH_NOTICE != 0);
        if notice && take_notice(&mut left).is_none()
            || write && take_bytes(&mut left, size).is_none()
        {
            break;
        }
    }
    true
}

impl MpiLane {
    /// Serves a request, or defers it. Drops the request of a dead peer.
    pub(crate) fn requested(&mut self, mut request: Came) {
        if self.remote.dead.contains(&request.peer) {
            return self.requests.recycle(request.bytes);
        }
        self.answered_by(&request);
        // Small requests do not wait: the words of a peer go on while its large operations do not.
        let Remote { served, deferred, .. } = &mut self.remote;
        let is_free = served.has_room(request.peer, SERVED)
            && deferred.iter().all(|it| it.peer != request.peer);
        if is_free || is_small(&request) {
            return self.serve(request);
        }
        // Peers that do not receive may have many requests wait for long.
        let own = request.bytes[..request.size].into();
        self.requests.recycle(std::mem::replace(&mut request.bytes, own));
        self.remote.deferred.push_back(request);
    }

    /// Executes the small operations of a request, and begins the large ones. Then sends the
    /// answer, or keeps it if libllcl answers all operations later. An operation that no libllcl
    /// would send ends the loop: the peer is faulty, and gets no answer for it.
    pub(crate) fn serve(&mut self, request: Came) {
        let (peer, mut left) = (request.peer, operations_of(&request));
        let mut answer = self.take_answer_for(peer);
        answer.ended += 1;
        // Whether libllcl answers all operations later.
        let mut waits = true;
        while let Some([number_and_kind, size, place, region]) = take(&mut left) {
            let (number, write) =
                ((number_and_kind >> KIND_BITS) as u32, number_and_kind & WRITE != 0);
            let mut notice = None;
            if number_and_kind & WITH_NOTICE != 0 {
                notice = take_notice(&mut left);
                if notice.is_none() {
                    break;
                }
            }
            let data = if write && size <= INLINE { size } else { 0 };
            let fits = size <= LARGEST && (number as usize) < OPERATIONS;
            let Some(data) = take_bytes(&mut left, data).filter(|_| fits) else { break };
            if size > INLINE {
                let tag = tag_of(number, write);
                let bytes = (region, place, size);
                let begun = self.transfer((peer, tag, number), bytes, write, notice);
                let status = if begun { Status::OK } else { Status::ERR_KEY };
                waits = false;
                // transferred() answers a write when its bytes are here.
                if !write {
                    self.add_entry(&mut answer, peer, outcome(number, status), (place, 0));
                }
                continue;
            }
            let status = match self.remote.find(region, place, size) {
                None => Status::ERR_KEY,
                Some(_) if write => {
                    // SAFETY: the region contains these bytes; deregister() needs the lane's lock.
                    unsafe { store(data, place as *mut u8) };
                    if notice.is_some_and(|notice| self.notice((peer, number), notice)) {
                        continue;
                    }
                    Status::OK
                }
                Some(_) => Status::OK,
            };
            waits = false;
            let back = if write || status != Status::OK { 0 } else { size };
            self.add_entry(&mut answer, peer, outcome(number, status), (place, back));
        }
        self.requests.recycle(request.bytes);
        if waits {
            self.unsent.keep(peer, answer);
        } else {
            self.send_answer(peer, answer);
        }
        self.requests.events.push_back(Event::about(Event::SERVED, peer));
    }

    /// Adds an entry to an answer, with `size` bytes from `place`. Sends the answer and begins
    /// another one if the entry does not fit.
    fn add_entry(
        &mut self,
        answer: &mut Answer,
        peer: u32,
        outcome: u64,
        (place, size): (u64, u64),
    ) {
        if !answer.message.has_room(ANSWER_ENTRY + size as usize) {
            let next = self.new_answer();
            let message = std::mem::replace(&mut answer.message, next.message);
            self.send_answer(peer, Answer { message, ended: 0 });
        }
        answer.message.put([outcome, size]);
        // SAFETY: a region contains these bytes; deregister() needs the lane's lock.
        unsafe { answer.message.put_bytes(place as *const u8, size) };
    }

    /// Begins the message of a large operation. False: no region contains the bytes of a read, so
    /// nothing is sent.
    fn transfer(
        &mut self,
        (peer, tag, index): (u32, u32, u32),
        (key, place, size): (u64, u64, u64),
        write: bool,
        notice: Option<Notice>,
    ) -> bool {
        let found = self.remote.find(key, place, size);
        let region = found.and_then(|found| {
            found.busy += 1;
            NonZeroU64::new(key)
        });
        if region.is_none() && !write {
            return false;
        }
        self.remote.served.take(peer);
        // The peer has begun to send a write, and MPI must receive the message.
        let to = if region.is_some() { place as *mut u8 } else { SINK.0.get().cast() };
        // SAFETY: `busy` keeps the region registered until the single has ended. The sink lives as
        // long as the process, and `serve` has checked the size.
        let begun = unsafe {
            match write {
                true => {
                    let notice = notice.map(Box::new);
                    let single = Single::Stored { peer, index, region, notice, cancelled: false };
                    self.requests.receive((peer, tag), to, size as usize, single)
                }
                false => {
                    let single = Single::Served { peer, region: key };
                    self.requests.send((peer, tag), to, size as usize, single)
                }
            }
        };
        self.went_well(begun);
        true
    }
}
