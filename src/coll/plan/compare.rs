//! What the ranks of a team tell each other when they make a plan, and what must be alike.

use crate::coll::agreement::Cards;
use crate::coll::choices;
use crate::coll::plan::asked::{Asked, Form};
use crate::coll::problem::{Block, Operation, Problem, Varied};
use crate::coll::team::Team;
use crate::fail;
use crate::util::digest::digest;
use crate::util::rounding::Environment;
use crate::util::status::Result;

/// Numbers of what a rank asks for that must be alike.
const NAMES: [&str; 13] = [
    "operation",
    "form",
    "count",
    "type",
    "element_size",
    "op",
    "root",
    "flags",
    ALGORITHM,
    "LLCL_COLL_SEGMENT",
    "LLCL_COLL_CACHE",
    TABLE,
    ENVIRONMENT,
];
/// What must be alike, as numbers.
pub type Alike = [u64; NAMES.len()];

const ALGORITHM: &str = "algorithm";
const TABLE: &str = choices::VARIABLE;
const ENVIRONMENT: &str = "the floating-point environment";

/// Compares what this rank asks for with what the others do. An error of one, or a difference, is
/// an error for all. `mine`: whether peers do not map some buffer of this rank's. Returns whether
/// that is so at any rank. Collective.
pub fn agree(team: &Team, asked: &Asked, forced: Option<&str>, mine: Result<bool>) -> Result<bool> {
    let own = alike(team, asked, forced);
    let bytes = own.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>();
    // All bits but the lowest are for the digest.
    let unmapped = u128::from(*mine.as_ref().unwrap_or(&false));
    let number = digest(bytes.iter().copied()) & !1 | unmapped;
    let all = team.exchange_with_status(mine.map(drop), &number.to_ne_bytes())?;
    let told = |bytes: &[u8]| bytes.try_into().map_or(0, u128::from_ne_bytes);
    match all.iter().all(|other| (told(other) ^ number) >> 1 == 0) {
        true => Ok(all.iter().any(|other| told(other) & 1 != 0)),
        false => name_difference(&team.exchange(&bytes)?, forced),
    }
}

/// The numbers of the ranks are not alike: which, and where.
fn name_difference(cards: &Cards, forced: Option<&str>) -> Result<bool> {
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
            fail!(
                ERR_INVALID,
                "{name} is {first} at rank 0 and {other} at rank {rank} of the team"
            );
        }
    }
    fail!(ERR_INTERNAL, "the ranks ask for the same, but their sums differ")
}

/// What this rank says of what must be alike. `forced`: the algorithm that is asked for by name.
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
        forced.map_or(0, |name| digest(name.bytes()) as u64),
        services.config.coll_segment,
        services.config.coll_cache,
        team.choices.number,
        asked.environment().map_or(0, Environment::number),
    ]
}

/// Bytes that another rank has told, as the numbers that they were made of.
pub(super) fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes)).collect()
}

/// One rank's counts and offsets.
struct Table {
    count: u64,
    send: Vec<Block>,
    receive: Vec<Block>,
}

/// Gathers the tables of the v forms and makes of them what the problem needs, in bytes.
/// Collective; a contradiction is found by all.
pub fn varied(team: &Team, asked: &Asked, problem: &Problem) -> Result<Varied> {
    let ranks = team.size();
    let used = tables_used(problem);
    let mut mine = vec![asked.count];
    for (blocks, used) in [&asked.send_blocks, &asked.receive_blocks].into_iter().zip(used) {
        let block = |at: usize| blocks.get(at).copied().unwrap_or_default();
        let count = if used { ranks } else { 0 };
        (0..count).for_each(|at| mine.extend([block(at).offset, block(at).size]));
    }
    let bytes = mine.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>();
    // What was exchanged is given back before the problem's blocks are made of it: each of the two
    // grows with the square of the ranks.
    let gathered = team.exchange(&bytes)?;
    let tables = gathered.iter().map(|bytes| table(bytes, used, ranks)).collect::<Vec<_>>();
    drop(gathered);
    let mut varied = blocks(problem, &tables);
    check(problem, &varied, &tables)?;
    for block in varied.send.iter_mut().chain(&mut varied.receive).flatten() {
        let bytes = |elements: u64| elements.wrapping_mul(problem.width);
        *block = Block { offset: bytes(block.offset), size: bytes(block.size) };
    }
    Ok(varied)
}

/// Which of a rank's two tables, of its input and of its output, the operation needs; alike at all
/// ranks. All but an alltoall need one.
fn tables_used(problem: &Problem) -> [bool; 2] {
    match problem.operation {
        Operation::Scatter => [true, false],
        Operation::Alltoall => [!problem.in_place, true],
        _ => [false, true],
    }
}

fn table(bytes: &[u8], used: [bool; 2], ranks: usize) -> Table {
    let numbers = numbers(bytes);
    let mut rest = numbers.get(1..).unwrap_or_default();
    let [send, receive] = used.map(|used| {
        let (mine, others) = rest.split_at(if used { 2 * ranks } else { 0 });
        rest = others;
        mine.chunks_exact(2).map(|pair| Block { offset: pair[0], size: pair[1] }).collect()
    });
    Table { count: numbers[0], send, receive }
}

/// The blocks in elements.
fn blocks(problem: &Problem, tables: &[Table]) -> Varied {
    let row = |(rank, table): (usize, &Table)| {
        rows(problem, rank, table.count, (&table.send, &table.receive))
    };
    let (send, receive) = tables.iter().enumerate().map(row).unzip();
    Varied { send, receive }
}

/// One rank's rows of them: the blocks of its input and of its output. An empty block begins at 0,
/// wherever the user has put it.
pub fn rows(
    problem: &Problem,
    rank: usize,
    count: u64,
    (send, receive): (&[Block], &[Block]),
) -> (Vec<Block>, Vec<Block>) {
    let Problem { ranks, root, in_place, .. } = *problem;
    let row = |block: Block| vec![block; ranks];
    let whole = |size: u64| row(Block { offset: 0, size });
    let at_root = |blocks: &[Block]| if rank == root { blocks.to_vec() } else { whole(0) };
    let mut end = 0u64;
    let mut next = |block: &Block| {
        let placed = Block { offset: end, size: block.size };
        end = end.saturating_add(block.size);
        placed
    };
    let (mut send, mut receive) = match problem.operation {
        Operation::Gather => (whole(count), at_root(receive)),
        Operation::Scatter => (at_root(send), whole(count)),
        Operation::Allgather if in_place => (row(receive[rank]), receive.to_vec()),
        Operation::Allgather => (whole(count), receive.to_vec()),
        Operation::ReduceScatter => {
            (receive.iter().map(&mut next).collect(), whole(receive[rank].size))
        }
        _ if in_place => (receive.to_vec(), receive.to_vec()),
        _ => (send.to_vec(), receive.to_vec()),
    };
    for block in send.iter_mut().chain(&mut receive).filter(|block| block.size == 0) {
        block.offset = 0;
    }
    (send, receive)
}

/// What one rank sends another must be what that one expects.
fn check(problem: &Problem, varied: &Varied, tables: &[Table]) -> Result<()> {
    let Problem { operation, ranks, root, .. } = *problem;
    for (from, to) in (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to))) {
        let concerns = match operation {
            // At the root in place its own block is where it should be.
            Operation::Gather => to == root && !problem.is_in_place(from),
            Operation::Scatter => from == root && !problem.is_in_place(to),
            _ => true,
        };
        let sent = varied.send[from][to].size;
        let expected = match operation {
            Operation::ReduceScatter => tables[0].receive[to].size,
            _ => varied.receive[to][from].size,
        };
        if concerns && sent != expected {
            fail!(
                ERR_INVALID,
                "rank {from} of the team gives {sent} elements for rank {to}, expected {expected}"
            );
        }
    }
    Ok(())
}
