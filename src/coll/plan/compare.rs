//! Which parameters of a plan must be equal at all ranks, and how the ranks compare them.

use crate::coll::agreement::Gathered;
use crate::coll::choices;
use crate::coll::nodes::Nodes;
use crate::coll::plan::asked::{Asked, Form};
use crate::coll::problem::{Operation, Problem, Varied};
use crate::coll::select;
use crate::coll::tables::{self, Received};
use crate::coll::team::Team;
use crate::engine::atomic::{op_name, type_name};
use crate::fail;
use crate::util::digest::digest;
use crate::util::rounding::Environment;
use crate::util::status::Result;
use std::sync::Arc;

/// Bytes of a number that ranks exchange.
const WORD: usize = size_of::<u64>();
/// The names of the parameters that must be equal.
const NAMES: [&str; 14] = [
    OPERATION,
    FORM,
    "count",
    TYPE,
    "element_size",
    OP,
    "root",
    "flags",
    "depth",
    ALGORITHM,
    "LLCL_COLL_SEGMENT",
    "LLCL_COLL_CACHE",
    TABLE,
    ENVIRONMENT,
];
/// The values of the parameters that must be equal.
pub type Alike = [u64; NAMES.len()];

const OPERATION: &str = "operation";
const FORM: &str = "form";
const TYPE: &str = "type";
const OP: &str = "op";
const ALGORITHM: &str = "algorithm";
const TABLE: &str = choices::VARIABLE;
const ENVIRONMENT: &str = "the floating-point environment";

/// The result of agree().
pub struct Agreed {
    /// Whether at any rank peers do not map a buffer.
    pub unmapped: bool,
    /// The nodes of the ranks; None: all ranks share memory.
    pub nodes: Option<Arc<Nodes>>,
}

/// Compares this rank's parameters with those of the others. If the parameters differ, or one rank
/// has an error, it fails at all ranks. `mine`: whether peers do not map a buffer of this rank, or
/// why its parameters were refused. Collective.
pub fn agree(
    team: &Team,
    asked: &Asked,
    forced: Option<&str>,
    mine: Result<bool>,
) -> Result<Agreed> {
    let own = alike(team, asked, forced);
    let bytes = own.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>();
    // The lowest bit says whether a buffer is not mapped; the digest has the other bits.
    let unmapped = u128::from(*mine.as_ref().unwrap_or(&false));
    let number = digest(bytes.iter().copied()) & !1 | unmapped;
    // Either all ranks have a wire, and so the number of a node, or none has.
    let node = team.services.routes.fabric().node().map(u64::to_ne_bytes);
    let card = [&number.to_ne_bytes()[..], node.as_ref().map_or(&[][..], |node| node)].concat();
    let all = team.exchange_with_status(mine.map(drop), &card)?;
    let digest_of =
        |bytes: &[u8]| bytes.first_chunk().map_or(0, |number| u128::from_ne_bytes(*number));
    if !all.iter().all(|other| (digest_of(other) ^ number) >> 1 == 0) {
        return name_difference(&team.exchange(&bytes)?, forced);
    }
    let unmapped = all.iter().any(|other| digest_of(other) & 1 != 0);
    let nodes = node.map(|_| Nodes::new(all.iter().map(|card| &card[DIGEST..])));
    let nodes = nodes.filter(|nodes| nodes.count() > 1).map(Arc::new);
    Ok(Agreed { unmapped, nodes })
}

/// Bytes of the digest, before the number of the node.
const DIGEST: usize = size_of::<u128>();

/// Called if the digests differ: the error names the first parameter that differs, and a rank at
/// which it does.
fn name_difference(cards: &Gathered, forced: Option<&str>) -> Result<Agreed> {
    let cards = cards.iter().map(numbers).collect::<Vec<_>>();
    for (at, name) in NAMES.iter().enumerate() {
        let first = cards[0][at];
        if let Some((rank, other)) =
            cards.iter().enumerate().map(|(rank, card)| (rank, card[at])).find(|c| c.1 != first)
        {
            if *name == ENVIRONMENT {
                let [first, other] = [first, other].map(Environment::from_number);
                fail!(
                    ERR_INVALID,
                    "{name} is {first} at rank 0 and {other} at rank {rank} of the team"
                );
            }
            if *name == TABLE {
                fail!(
                    ERR_INVALID,
                    "the table of {name} differs at rank 0 and rank {rank} of the team"
                );
            }
            if *name == ALGORITHM {
                let own = forced.unwrap_or("auto");
                fail!(
                    ERR_INVALID,
                    "algorithm is not the same at rank 0 and rank {rank} of the team; {own} here"
                );
            }
            let [first, other] = [first, other].map(|number| shown(name, number));
            fail!(
                ERR_INVALID,
                "{name} is {first} at rank 0 and {other} at rank {rank} of the team"
            );
        }
    }
    fail!(ERR_INTERNAL, "the parameters of all ranks are equal, but their digests differ")
}

/// The value of a parameter as the program has given it.
fn shown(name: &str, number: u64) -> String {
    match name {
        OPERATION => select::name_of(number).to_string(),
        FORM if number == Form::Even as u64 => "one count".to_string(),
        FORM => "a count for each rank".to_string(),
        TYPE => type_name(number),
        OP => op_name(number),
        _ => number.to_string(),
    }
}

/// This rank's values of the parameters that must be equal. `forced`: the algorithm that it asks
/// for by name.
pub fn alike(team: &Team, asked: &Asked, forced: Option<&str>) -> Alike {
    let services = &team.services;
    let even = asked.form == Form::Even;
    let barrier = asked.operation == Operation::Barrier;
    let or_zero = |condition: bool, number: u64| if condition { number } else { 0 };
    [
        asked.operation as u64,
        asked.form as u64,
        or_zero(even && !barrier, asked.count),
        or_zero(!barrier, asked.kind.into()),
        or_zero(!barrier, asked.element_size.into()),
        or_zero(asked.combines(), asked.op.into()),
        or_zero(asked.has_root(), asked.root.into()),
        asked.common_flags().into(),
        asked.depth() as u64,
        forced.map_or(0, |name| digest(name.bytes()) as u64),
        services.config.coll_segment,
        services.config.coll_cache,
        team.choices.number,
        asked.environment().map_or(0, Environment::number),
    ]
}

/// The numbers in bytes that a rank has sent.
pub(super) fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes)).collect()
}

/// Exchanges the tables of a v form and returns those blocks that this rank's program needs, in
/// bytes. If two tables contradict each other, it fails at all ranks. Collective.
pub fn varied(team: &Team, asked: &Asked, problem: &Problem) -> Result<Varied> {
    let given = asked.given();
    let words = tables::encode(problem, given);
    let bytes = words.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>();
    let mut received = Received::new(problem, team.me);
    let mut row = vec![0; team.size()];
    team.exchange_parts(&bytes, |begin, part| {
        for at in 0..part.each() / WORD {
            let word = |card: &[u8]| numbers(&card[at * WORD..][..WORD]).first().copied();
            row.iter_mut().zip(part.iter()).for_each(|(to, card)| *to = word(card).unwrap_or(0));
            received.take(begin / WORD + at, &row);
        }
    })?;
    if problem.operation == Operation::Alltoall {
        let clash = received.compare_own(given).map(u64::to_ne_bytes);
        for card in team.exchange(clash.as_flattened())?.iter() {
            received.note(numbers(card).try_into().unwrap_or_default());
        }
    }
    received.blocks(given)
}
