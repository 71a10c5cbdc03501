//! Prints once those environment variables whose names look like this library's but are unknown,
//! with the nearest known name.

use crate::util::config::TABLE;
use crate::util::cores::PROGRESS_CPUS;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// Variables that are not in the table: those of the launcher, those of the tests, and those whose
/// values are neither numbers nor words.
const OTHERS: [&str; 9] = [
    "LLCL_RANK",
    "LLCL_SIZE",
    "LLCL_HUB_FD",
    "LLCL_RUN",
    "LLCL_NODE_ID",
    "LLCL_TRANSPORT",
    "LLCL_MODULES",
    "LLCL_COLL_TABLE",
    PROGRESS_CPUS,
];
/// Variables of the simulated network, if it is built in.
const WIRE: &[&str] = match cfg!(feature = "simulated") {
    true => &["LLCL_WIRE_SEED"],
    false => &[],
};

static SAID: AtomicBool = AtomicBool::new(false);

/// Prints on stderr the variables that are unknown: once in a process, and in a job only at rank 0.
pub fn warn_once() {
    let first = std::env::var_os("LLCL_RANK").is_none_or(|rank| rank.is_empty() || rank == "0");
    // Relaxed: the flag publishes nothing.
    if !first || SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    for (name, _) in std::env::vars_os() {
        if let Some(nearest) = name.to_str().and_then(nearest) {
            let name = name.to_string_lossy();
            // One write, so that the lines of several processes do not mix.
            let line = format!(
                "libllcl: {name} is no variable of this library and is ignored; did you mean {nearest}? \
                 (llcl-info -c lists them)\n"
            );
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}

/// The known variable with the nearest name. None: `name` is known, or does not look like this
/// library's.
fn nearest(name: &str) -> Option<&'static str> {
    let known = || TABLE.iter().map(|row| row.name).chain(OTHERS).chain(WIRE.iter().copied());
    if !name.starts_with("LLCL_") || known().any(|other| other == name) {
        return None;
    }
    known().min_by_key(|other| distance(name.as_bytes(), other.as_bytes()))
}

/// How many letters must be changed, added or removed to make one of the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        assert_eq!(nearest("LLCL_EXECUTON"), Some("LLCL_EXECUTION"));
        assert_eq!(nearest("LLCL_QUEUE_ENTRYS"), Some("LLCL_QUEUE_ENTRIES"));
        assert_eq!(nearest("LLCL_AMSLOTS"), Some("LLCL_AM_SLOTS"));
        assert_eq!(nearest("LLCL_EXECUTION"), None);
        assert_eq!(nearest("PATH"), None);
        assert_eq!(distance(b"kitten", b"sitting"), 3);
    }
}
