//! The user's table of algorithms: a file, named by LLCL_COLL_TABLE, whose rows come before those
//! of the library.
//!
//! Each line is a row of five words: operation, most ranks, most bytes, algorithm, and the teams
//! for which the row is. `node`: teams with all ranks on one node. `single`: teams with each rank
//! on a node of its own. `several`: teams on several nodes, with several ranks on some of them. `-`
//! or no fifth word: all teams. `-` also stands for any number of ranks or bytes. `#` begins a
//! comment. The library uses the first row that fits. `bench_c/tune` writes such files.

use crate::coll::nodes::Nodes;
use crate::coll::select::{OPERATIONS, Row, named};
use crate::fail;
use crate::util::digest::digest;
use crate::util::status::Result;
use crate::util::trusted;
use std::ffi::OsStr;

/// The variable that names the file.
pub const VARIABLE: &str = "LLCL_COLL_TABLE";
const REASON: &str = "LLCL_COLL_TABLE says so";

/// For which teams a row is, by their nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Any,
    Node,
    Single,
    Several,
}

const REACHES: [(&str, Reach); 4] = [
    ("-", Reach::Any),
    ("node", Reach::Node),
    ("single", Reach::Single),
    ("several", Reach::Several),
];

/// The rows of the file; empty without a file.
#[derive(Default)]
pub struct Choices {
    /// In the order of the file.
    rows: Vec<(Reach, Row)>,
    /// A digest of the rows, by which ranks notice that their tables differ.
    pub number: u64,
}

impl Choices {
    /// The rows for a team on these nodes, in the order of the file. None: all ranks share memory.
    pub fn rows(&self, nodes: Option<&Nodes>) -> impl Iterator<Item = &Row> {
        let own = match nodes {
            None => Reach::Node,
            Some(nodes) if nodes.are_single() => Reach::Single,
            Some(_) => Reach::Several,
        };
        let is_for = move |reach| reach == Reach::Any || reach == own;
        self.rows.iter().filter(move |(reach, _)| is_for(*reach)).map(|(_, row)| row)
    }

    /// Reads the file that the environment names. The error for a wrong line names the file, the
    /// line and what was expected.
    pub fn from_environment() -> Result<Choices> {
        trusted::variable(VARIABLE).map_or(Ok(Choices::default()), |file| Choices::read(&file))
    }

    fn read(file: &OsStr) -> Result<Choices> {
        let name = file.to_string_lossy();
        match std::fs::read_to_string(file) {
            Ok(text) => Choices::parse(&name, &text),
            Err(error) => {
                fail!(ERR_INVALID, "{VARIABLE} names {name}, which cannot be read: {error}")
            }
        }
    }

    fn parse(file: &str, text: &str) -> Result<Choices> {
        let mut choices = Choices::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words = line.split_whitespace().collect::<Vec<_>>();
            if words.is_empty() {
                continue;
            }
            match row(&words) {
                Ok(row) => choices.rows.push(row),
                Err(what) => fail!(ERR_INVALID, "{VARIABLE}, {file}:{}: {what}", number + 1),
            }
            let row = words.iter().flat_map(|word| word.bytes().chain([b' ']));
            let all = choices.number.to_ne_bytes().into_iter().chain(row);
            choices.number = digest(all) as u64;
        }
        Ok(choices)
    }
}

fn row(words: &[&str]) -> std::result::Result<(Reach, Row), String> {
    let (words, reach) = match words {
        [row @ .., reach] if row.len() == 4 => (row, *reach),
        row => (row, "-"),
    };
    let [operation, ranks, bytes, algorithm] = words else {
        let form = "expected \"operation ranks bytes algorithm\", and perhaps which nodes";
        return Err(format!("{} words, {form}", words.len()));
    };
    let Some((_, reach)) = REACHES.iter().find(|(name, _)| *name == reach) else {
        let names = REACHES.map(|(name, _)| name).join(", ");
        return Err(format!("the nodes are \"{reach}\", expected one of {names}"));
    };
    let Some((operation, ..)) = OPERATIONS.iter().find(|(_, name, _)| name == operation) else {
        let names = OPERATIONS.iter().map(|(_, name, _)| *name).collect::<Vec<_>>();
        return Err(format!("operation is \"{operation}\", expected one of {}", names.join(", ")));
    };
    let number = |word: &str, name: &str| match word {
        "-" => Ok(u64::MAX),
        _ => word
            .parse()
            .map_err(|_| format!("{name} is \"{word}\", expected a whole number, or - for any")),
    };
    let ranks = usize::try_from(number(ranks, "ranks")?).unwrap_or(usize::MAX);
    let bytes = number(bytes, "bytes")?;
    let algorithm = named(*operation, algorithm).map_err(|error| error.message().to_string())?;
    let algorithm = algorithm.name;
    Ok((*reach, Row { operation: *operation, ranks, bytes, algorithm, reason: REASON }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::problem::Operation;

    fn refused(text: &str) -> String {
        let error = Choices::parse("a.table", text).err().expect("is refused");
        assert_eq!(error.status, crate::util::status::Status::ERR_INVALID);
        error.message().to_string()
    }

    #[test]
    fn rows_are_read_in_their_order() {
        let text = "# all\n\nallgather 16 1024 bruck # why\n  allgather - - ring\n";
        let choices = Choices::parse("a.table", text).unwrap();
        let rows =
            choices.rows(None).map(|row| (row.operation, row.ranks, row.bytes, row.algorithm));
        let expected = [
            (Operation::Allgather, 16, 1024, "bruck"),
            (Operation::Allgather, usize::MAX, u64::MAX, "ring"),
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        let other =
            Choices::parse("b.table", "allgather 16 1024 bruck\nallgather - - ring").unwrap();
        assert_eq!(choices.number, other.number);
        let less = Choices::parse("b.table", "allgather 16 1024 bruck").unwrap();
        assert!(choices.number != less.number && Choices::default().number == 0);
    }

    #[test]
    fn a_row_is_for_the_teams_on_its_nodes_only() {
        let text = "barrier - - tree node\nbarrier 8 - dissemination single\n\
                    barrier - - two_level several\nbarrier 9 - tree -\nbarrier - - tree";
        let choices = Choices::parse("a.table", text).unwrap();
        let (single, several) = (Nodes::new(0..4), Nodes::new((0..4).map(|rank| rank / 2)));
        for (nodes, own) in
            [(None, "tree"), (Some(&single), "dissemination"), (Some(&several), "two_level")]
        {
            let rows = choices.rows(nodes).map(|row| row.algorithm).collect::<Vec<_>>();
            assert_eq!(rows, [own, "tree", "tree"]);
        }
        assert!(
            refused("barrier - - tree nodes")
                .contains("the nodes are \"nodes\", expected one of -, node, single, several")
        );
    }

    #[test]
    fn a_bad_line_is_told_with_its_number_and_what_was_expected() {
        let what = refused("barrier 2 - tree\nbarrier 2 tree");
        let expected = "LLCL_COLL_TABLE, a.table:2: 3 words, expected \"operation ranks bytes algorithm\", \
             and perhaps which nodes";
        assert_eq!(what, expected);
        assert!(
            refused("barrer - - tree")
                .contains("a.table:1: operation is \"barrer\", expected one of barrier, ")
        );
        assert!(
            refused("scan x - eager")
                .contains("ranks is \"x\", expected a whole number, or - for any")
        );
        assert!(refused("scan 2 -1 eager").contains("bytes is \"-1\", expected"));
        assert!(refused("scan 2 1 tree").contains("expected one of auto, direct, "));
        let missing = Choices::read(OsStr::new("/no/such/file")).err().expect("is refused");
        assert!(missing.message().contains("/no/such/file, which cannot be read"));
    }
}
