//! The owner's side of reads and writes: see `remote`.

use crate::lane::Lane;
use crate::remote::{
    HEAD, INLINE, LARGEST, LAST, Message, OPERATIONS, SERVED, TOLD, store, tag_of, take,
    take_bytes, told,
};
use crate::requests::{ANSWERS, Single};
use crate::table::{Event, Status};

/// What peers ask for.
impl Lane {
    /// A request has come.
    pub(crate) fn requested(&mut self, at: usize, peer: u32, size: usize) {
        if self.remote.served < SERVED && self.remote.lying.is_empty() {
            self.serve(at, peer, size);
        } else {
            self.remote.lying.push_back((at, peer, size));
        }
    }

    pub(crate) fn serve(&mut self, at: usize, peer: u32, size: usize) {
        let message = self.requests.take_out(at);
        let (mut left, mut answer) = (message.get(HEAD..size).unwrap_or_default(), Message::new());
        while let Some([what, size, place, region]) = take(&mut left) {
            let (number, write) = ((what >> 1) as u32, what & 1 == 1);
            let data = if write && size <= INLINE { size } else { 0 };
            let fits = size <= LARGEST && (number as usize) < OPERATIONS;
            let Some(data) = take_bytes(&mut left, data).filter(|_| fits) else { break };
            if size > INLINE {
                let tag = tag_of(number, write);
                let begun = self.transfer((peer, tag, number), (region, place, size), write);
                let status = if begun { Status::OK } else { Status::ERR_KEY };
                // Of a write that follows when its bytes are here.
                if !write {
                    answer = self.tell(answer, peer, told(number, status), (place, 0));
                }
                continue;
            }
            let status = match self.remote.find(region, place, size) {
                None => Status::ERR_KEY,
                Some(_) if write => {
                    // SAFETY: the region has these bytes, and stays while the lane is locked.
                    unsafe { store(data, place as *mut u8) };
                    Status::OK
                }
                Some(_) => Status::OK,
            };
            let back = if write || status != Status::OK { 0 } else { size };
            answer = self.tell(answer, peer, told(number, status), (place, back));
        }
        self.requests.put_back(at, message);
        self.give_back(at as u64);
        let sent = self.requests.send_message((peer, ANSWERS), answer.end(LAST));
        self.went_well(sent);
        self.events.push_back(Event::about(Event::SERVED, peer));
    }

    /// Puts an entry into an answer, and sends it before where it is full. `bytes`: where what is
    /// brought lies in a region, and how much.
    fn tell(
        &mut self,
        mut answer: Message,
        peer: u32,
        what: u64,
        (place, size): (u64, u64),
    ) -> Message {
        if !answer.has_room(TOLD + size as usize) {
            let sent = self.requests.send_message((peer, ANSWERS), answer.end(0));
            self.went_well(sent);
            answer = Message::new();
        }
        answer.put(&[what, size]);
        // SAFETY: found in a region, which stays while the lane is locked.
        unsafe { answer.put_bytes(place as *const u8, size) };
        answer
    }

    /// Begins a large one. False: the region is not there, and nothing is sent.
    fn transfer(
        &mut self,
        (peer, tag, index): (u32, u32, u32),
        (region, place, size): (u64, u64, u64),
        write: bool,
    ) -> bool {
        let found = self.remote.find(region, place, size);
        let region = found.map(|found| {
            found.busy += 1;
            region
        });
        if region.is_none() && !write {
            return false;
        }
        self.remote.served += 1;
        let (mut to, mut refused) = (place as *mut u8, None);
        if region.is_none() {
            // The peer sends already.
            let bytes = refused.insert(vec![0; size as usize].into_boxed_slice());
            to = bytes.as_mut_ptr();
        }
        // SAFETY: the region stays until the single has ended, and so does the box.
        let begun = unsafe {
            match write {
                true => {
                    let single = Single::Stored { peer, index, region, refused };
                    self.requests.receive((peer, tag), to, size as usize, single)
                }
                false => {
                    let single = Single::Served { peer, region };
                    self.requests.send((peer, tag), to, size as usize, single)
                }
            }
        };
        self.went_well(begun);
        true
    }
}
