//! The packets between a rank and its hub: 24 bytes of head and a payload.

/// The most payload bytes of a packet, in either direction.
pub const PAYLOAD: usize = 48 << 10;

const HEAD: usize = 24;

/// A buffer of this size holds any packet.
pub const PACKET: usize = HEAD + PAYLOAD;

/// Changes whenever packets change, so that a library and a launcher of different releases refuse
/// each other instead of misunderstanding.
const VERSION: u32 = 4;

/// The most ranks of a world, so that each has some bytes in a packet of an exchange.
pub const MAX_RANKS: u32 = 4096;

/// The most bytes of a blob that a rank may publish.
pub const MAX_BLOB: usize = 256;

/// From a rank to its hub.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// The first request: joins as this rank of so many. It carries a pidfd of the process, if
    /// there is one.
    Join { rank: u32, size: u32 },
    /// Publishes the rank's card. It carries the card's descriptor.
    Publish { blob: Vec<u8> },
    /// Asks for the cards of these ranks. Each is sent when its rank has published it.
    Lookup { peers: Vec<u32> },
    /// Part of an exchange: this rank's bytes from `offset` on, out of `total`. The answer has
    /// those of all ranks.
    Exchange { total: u64, offset: u64, bytes: Vec<u8> },
    /// A fence: the answer comes when every living rank has sent this request.
    Fence,
    /// The rank leaves in order: its end is no death.
    Leave,
    /// Ends the whole job with this exit code. The sender ends by itself; the others have
    /// `grace_ms` milliseconds.
    Abort { code: i32, grace_ms: u32 },
}

/// From the hub to a rank.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// Answers the request with this token: status 0 and the result, or an error and its message.
    Answer { status: i32, bytes: Vec<u8> },
    /// Answers a Lookup for one of its ranks: status 0 and the card with its descriptor, or an
    /// error and its message.
    Card { rank: u32, status: i32, bytes: Vec<u8> },
    /// As Card, for a rank of another machine: there is no descriptor.
    FarCard { rank: u32, bytes: Vec<u8> },
    /// Sent without a request: these ranks have died or left.
    Gone { ranks: Vec<Departure> },
}

/// The end of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    pub rank: u32,
    /// Whether it left in order; else it has died.
    pub left: bool,
}

impl Departure {
    /// Bytes in a packet: the rank, and one bit above it. All of MAX_RANKS fit into a packet.
    const SIZE: usize = 4;
    const LEFT: u32 = 1 << 31;

    fn encode(&self) -> [u8; Departure::SIZE] {
        (self.rank | if self.left { Departure::LEFT } else { 0 }).to_le_bytes()
    }

    fn decode(bytes: &[u8; Departure::SIZE]) -> Departure {
        let word = u32::from_le_bytes(*bytes);
        Departure { rank: word & !Departure::LEFT, left: word & Departure::LEFT != 0 }
    }
}

const _: () = assert!(MAX_RANKS as usize * Departure::SIZE <= PAYLOAD);

fn packet(kind: u32, token: u32, a: u64, b: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + payload.len());
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&token.to_le_bytes());
    bytes.extend_from_slice(&a.to_le_bytes());
    bytes.extend_from_slice(&b.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn split(packet: &[u8]) -> Option<(u32, u32, u64, u64, &[u8])> {
    let (kind, rest) = packet.split_first_chunk()?;
    let (token, rest) = rest.split_first_chunk()?;
    let (a, rest) = rest.split_first_chunk()?;
    let (b, payload) = rest.split_first_chunk()?;
    let (kind, token) = (u32::from_le_bytes(*kind), u32::from_le_bytes(*token));
    Some((kind, token, u64::from_le_bytes(*a), u64::from_le_bytes(*b), payload))
}

fn join_word(size: u32) -> u64 {
    u64::from(VERSION) << 32 | u64::from(size)
}

impl Request {
    /// Encodes this as a packet.
    pub fn encode(&self, token: u32) -> Vec<u8> {
        match self {
            Request::Join { rank, size } => packet(1, token, (*rank).into(), join_word(*size), &[]),
            Request::Publish { blob } => packet(2, token, 0, 0, blob),
            Request::Lookup { peers } => {
                let bytes: Vec<u8> = peers.iter().flat_map(|peer| peer.to_le_bytes()).collect();
                packet(3, token, 0, 0, &bytes)
            }
            Request::Exchange { total, offset, bytes } => packet(4, token, *total, *offset, bytes),
            Request::Fence => packet(5, token, 0, 0, &[]),
            Request::Leave => packet(6, token, 0, 0, &[]),
            Request::Abort { code, grace_ms } => {
                packet(7, token, *code as u32 as u64, (*grace_ms).into(), &[])
            }
        }
    }

    /// Decodes a packet: its token and its request. None: no rank of this release sends such a
    /// packet.
    pub fn decode(bytes: &[u8]) -> Option<(u32, Request)> {
        let (kind, token, a, b, payload) = split(bytes)?;
        let small = u32::try_from(a);
        let request = match (kind, payload.len()) {
            (1, 0) if b >> 32 == u64::from(VERSION) => {
                Request::Join { rank: small.ok()?, size: b as u32 }
            }
            (2, _) => Request::Publish { blob: payload.to_vec() },
            (3, size) if size % 4 == 0 => {
                let number = |four: &[u8]| four.try_into().map(u32::from_le_bytes).ok();
                Request::Lookup { peers: payload.chunks(4).filter_map(number).collect() }
            }
            (4, _) => Request::Exchange { total: a, offset: b, bytes: payload.to_vec() },
            (5, 0) => Request::Fence,
            (6, 0) => Request::Leave,
            (7, 0) => Request::Abort { code: small.ok()? as i32, grace_ms: u32::try_from(b).ok()? },
            _ => return None,
        };
        Some((token, request))
    }
}

impl Reply {
    /// The rank whose card this is; None: it is no card.
    pub fn whose_card(&self) -> Option<u32> {
        match self {
            Reply::Card { rank, .. } => Some(*rank),
            _ => None,
        }
    }

    /// Encodes this as a packet.
    pub fn encode(&self, token: u32) -> Vec<u8> {
        match self {
            Reply::Answer { status, bytes } => packet(8, token, *status as u32 as u64, 0, bytes),
            Reply::Card { rank, status, bytes } => {
                packet(10, token, (*rank).into(), *status as u32 as u64, bytes)
            }
            Reply::FarCard { rank, bytes } => packet(11, token, (*rank).into(), 0, bytes),
            Reply::Gone { ranks } => {
                let bytes = ranks.iter().flat_map(Departure::encode).collect::<Vec<_>>();
                packet(9, token, 0, 0, &bytes)
            }
        }
    }

    /// Decodes a packet: its token and its reply. None: no hub of this release sends such a packet.
    pub fn decode(bytes: &[u8]) -> Option<(u32, Reply)> {
        let (kind, token, a, b, payload) = split(bytes)?;
        let a = u32::try_from(a).ok()?;
        match kind {
            8 => Some((token, Reply::Answer { status: a as i32, bytes: payload.to_vec() })),
            9 if payload.len().is_multiple_of(Departure::SIZE) => {
                let (all, _) = payload.as_chunks();
                Some((token, Reply::Gone { ranks: all.iter().map(Departure::decode).collect() }))
            }
            10 => {
                let (rank, status) = (a, b as u32 as i32);
                Some((token, Reply::Card { rank, status, bytes: payload.to_vec() }))
            }
            11 => Some((token, Reply::FarCard { rank: a, bytes: payload.to_vec() })),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_and_reply_arrives_as_it_was_sent() {
        let requests = [
            Request::Join { rank: 3, size: 8 },
            Request::Publish { blob: vec![1, 2, 3] },
            Request::Lookup { peers: vec![7, 0, 4095] },
            Request::Exchange { total: 1 << 40, offset: 5, bytes: vec![9; 100] },
            Request::Fence,
            Request::Leave,
            Request::Abort { code: -3, grace_ms: 7 },
        ];
        for (token, request) in (40..).zip(requests) {
            assert_eq!(Request::decode(&request.encode(token)), Some((token, request)));
        }
        let replies = [
            Reply::Answer { status: -4, bytes: b"rank 1 has died".to_vec() },
            Reply::Card { rank: 5, status: -4, bytes: vec![1] },
            Reply::FarCard { rank: 6, bytes: vec![2, 3] },
            Reply::Gone {
                ranks: vec![Departure { rank: 2, left: true }, Departure { rank: 7, left: false }],
            },
        ];
        for reply in replies {
            assert_eq!(Reply::decode(&reply.encode(6)), Some((6, reply)));
        }
    }

    #[test]
    fn what_nobody_says_is_refused() {
        assert_eq!(Request::decode(b""), None);
        assert_eq!(Request::decode(&[0; HEAD]), None);
        let fence = Request::Fence.encode(1);
        assert_eq!(Request::decode(&fence[..HEAD - 1]), None);
        let mut long = fence.clone();
        long.push(0);
        assert_eq!(Request::decode(&long), None);
        assert_eq!(Reply::decode(&fence), None);
        // A join of another release.
        assert_eq!(Request::decode(&packet(1, 1, 0, u64::from(VERSION + 1) << 32 | 2, &[])), None);
        assert_eq!(Request::decode(&packet(3, 1, 0, 0, &[1; 3])), None);
    }
}
