//! Constants that were measured are defined beside the code that uses them. docs/tuning.md lists
//! them all; this test writes that page, or compares it. After a change of a constant:
//! `WRITE_TUNING=1 cargo test --test tuning`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// By section: its title, how to measure its constants again, and the files (below src) with them.
const GROUPS: &[(&str, &str, &[&str])] = &[
    (
        "Threads at the command queue and the lane",
        "`bench_c/run --only \"msgrate overhead latency\"`: rate against threads, post overhead, latency",
        &[
            "engine/handover",
            "engine/lane",
            "engine/executor",
            "engine/doorbell",
            "engine/command_queue",
            "engine/by_caller",
            "util/admission",
            "util/backoff",
            "core/progress_thread",
            "core/blocking",
            "core/poster",
        ],
    ),
    (
        "Active messages, requests to owners",
        "`bench_c/run --only \"am_rate am_latency am_poll incast\"`: rate, round trips, empty polls, many senders to one",
        &[
            "engine/messages",
            "core/messages",
            "transport/memory/message",
            "transport/node/receiver",
            "engine/by_wire",
            "transport/wire",
            "transport/memory/slots",
            "transport/mod",
        ],
    ),
    (
        "Sleeping threads",
        "`bench_c/run --only noise`: what sleepers cost a thread that computes or writes",
        &["transport/sleepers", "transport/waiters", "core/wait", "core/watch"],
    ),
    (
        "Collectives",
        "`bench_c/run --only \"coll overlap\"`: each operation at 2, 4 and 8 ranks beside the MPIs, and what goes on while all ranks compute",
        &["coll/plan", "coll/runner", "coll/algorithms", "coll/select", "core/background"],
    ),
    (
        "Memory",
        "`bench_c/run --only \"memory bandwidth\"`: bytes for each peer, bandwidth against size",
        &[
            "coll/arena",
            "transport/memory/segment",
            "transport/memory/names",
            "core/region",
            "util/memory",
        ],
    ),
    (
        "Start, agreement, end",
        "`bench_c/run --only start`: start to exit of 2 to 1,000 ranks",
        &[
            "coll/agreement",
            "coll/cache",
            "coll/collectives",
            "bootstrap",
            "util/socket",
            "engine/routes",
            "core/finalize",
        ],
    ),
];

/// All durations are listed, and constants with these words in their names: how often, how much at
/// a time, or a threshold.
const NAMES: &[&str] = &[
    "LOOKS",
    "POLLS",
    "PAUSES",
    "YIELD",
    "BATCH",
    "ROUNDS",
    "STRETCH",
    "BURST",
    "HELP",
    "PROMPT",
    "QUICK",
    "WORTH",
    "PER_LOOK",
    "TURN",
    "LIGHT",
    "AT_START",
    "SWEEPS",
    "FEW",
    "CACHED",
    "SMALL",
    "AHEAD",
    "DEEP",
    "ARITY",
    "EMPTY",
    "UNDER",
    "TAKEN",
    "LINGER",
    "STRIDE",
    "JOINED",
    "STAYS",
    "AWAY",
    "AGAIN",
    "EVERYBODY",
    "PIECE",
    "TOGETHER",
    "PROGRAMS",
    "SHORT",
    "WINDOW",
    "HUGE",
    "SHARE",
    "NAP",
];
/// Measured constants with other names, each with its file.
const ALSO: &[(&str, &str)] = &[
    ("coll/algorithms/broadcast", "EAGER_INSIDE"),
    ("coll/algorithms/broadcast", "LONG"),
    ("coll/algorithms/reduce", "EAGER_INSIDE"),
    ("coll/plan/policy", "COPIED"),
    ("coll/plan/policy", "LARGE"),
    ("coll/runner/put_sender/room", "LEAST"),
    ("coll/select", "TWICE"),
    ("engine/executor", "LARGE"),
    ("engine/lane", "LEFT"),
    ("engine/messages/dispatch", "MOST"),
    ("engine/messages/dispatch/serve", "MANY"),
    ("transport/memory/message_area/places", "FETCHED"),
    ("transport/memory/message_area/places", "NEAR_MOST"),
    ("transport/memory/message_receiver", "QUIET"),
    ("util/admission", "REFUSALS"),
    ("util/backoff", "UNTIMED"),
];
/// Files in which such names have another meaning: tests, the interface, tools.
const OTHERS: &[&str] = &["tests", "models", "src/api", "simulator", "src/bin", "conformance"];
/// Constants that were chosen by definition, not measured.
const LAID_DOWN: &[&str] = &["SHARES", "LARGE_RESPONSES", "STARTED"];

struct Constant {
    file: String,
    name: String,
    value: String,
    doc: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            _ => {}
        }
    }
}

/// The name, the type and the value of a constant on one line.
fn constant(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.trim().split(" // ").next()?;
    let behind = &line[line.find("const ")? + 6..];
    let public = line.starts_with("const ") || line.starts_with("pub");
    let (name, rest) = behind.strip_suffix(';')?.split_once(": ")?;
    let (kind, value) = rest.split_once(" = ")?;
    (public && !line.contains("fn ")).then_some((name, kind, value))
}

fn is_measured(name: &str, kind: &str) -> bool {
    let number = ["u32", "u64", "usize", "i32"].contains(&kind);
    !LAID_DOWN.contains(&name)
        && (kind.contains("Duration") || number && NAMES.iter().any(|word| name.contains(word)))
}

/// A value for readers: `Duration::from_micros(50)` is 50 us, `4 << 10` is 4 KiB.
fn shown(value: &str) -> String {
    let value = match value.strip_prefix("if cfg!(loom) {") {
        Some(both) => both.split("else {").last().unwrap_or(both).trim_end_matches('}'),
        None => value,
    };
    let mut text = value.replace("Duration::from_", "");
    for (unit, short) in [("micros", "us"), ("millis", "ms"), ("secs", "s")] {
        while let Some(at) = text.find(&format!("{unit}(")) {
            let end = at + text[at..].find(')').unwrap();
            let number = text[at + unit.len() + 1..end].to_string();
            text.replace_range(at..=end, &format!("{number} {short}"));
        }
    }
    for (shift, unit) in [(" << 10", " KiB"), (" << 20", " MiB"), (" << 30", " GiB")] {
        text = text.replace(shift, unit);
    }
    text.trim_matches(['(', ')', ' ']).to_string()
}

fn constants() -> Vec<Constant> {
    let mut paths = Vec::new();
    files(&root().join("src"), &mut paths);
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let shown_path =
            path.strip_prefix(root()).unwrap().with_extension("").display().to_string();
        if OTHERS.iter().any(|other| shown_path.contains(other)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let (mut doc, mut used) = (String::new(), false);
        for line in text.lines() {
            if let Some(more) = line.trim().strip_prefix("///") {
                if used {
                    doc.clear();
                }
                used = false;
                doc.push_str(more);
            } else if let Some((name, kind, value)) = constant(line) {
                // A constant without a comment shares that of the one above it.
                used = true;
                let file = shown_path.trim_start_matches("src/");
                if is_measured(name, kind) || ALSO.contains(&(file, name)) {
                    found.push(Constant {
                        file: file.to_string(),
                        name: name.to_string(),
                        value: shown(value),
                        doc: doc.trim().replace('|', "\\|"),
                    });
                }
            } else {
                doc.clear();
            }
        }
    }
    found
}

/// Wraps a paragraph in lines of at most 120 columns.
fn wrapped(text: &str) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        if column + 1 + word.len() > 120 {
            lines.push('\n');
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines += word;
        column += word.len();
    }
    lines + "\n"
}

fn page() -> String {
    let mut page = "# Constants that were measured\n\n".to_string();
    page += &wrapped(
        "This page lists the constants that were measured: how often a thread looks (checks what it waits for) before \
         it sleeps, the lengths of naps, the sizes of batches, and the sizes from which on the library does something \
         else. They were chosen on machines with two cores. If yours has more, the command of a group shows what a \
         change of its constants brings. Each constant is in the source beside the code that uses it. `tests/tuning.rs` \
         writes this page, and fails if the page is stale.",
    );
    page += "\n";
    page += &wrapped(
        "Tables choose the algorithms of collectives: `bench_c/tune` measures the algorithms and writes a table for \
         `LLCL_COLL_TABLE`. The library's own table (`src/coll/select.rs`) follows from several runs of this tool on \
         two cores with 2, 4 and 8 ranks, from four runs with 64 ranks and 8 B, 1 KiB and 64 KiB (three of them for \
         rooted operations and scans only), and from three runs with 256 ranks and 8 B and 64 KiB. With so many ranks \
         on two cores the order in which the kernel runs them decides as much as the algorithm; the rows for 256 ranks \
         are those in which the three runs agree. If such numbers of ranks matter, measure on your machine.",
    );
    let head = "| file | constant | value | what it decides |\n|---|---|---|---|\n";
    let mut all = constants();
    let benchmarks = fs::read_to_string(root().join("bench_c/run")).unwrap();
    for (title, command, places) in GROUPS {
        let names =
            command.split("--only ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
        for name in names.trim_matches('"').split(' ') {
            let run = benchmarks
                .lines()
                .any(|line| line.split_whitespace().any(|it| it.trim_end_matches(';') == name));
            assert!(run, "bench_c/run has no {name}");
        }
        let (mine, others) = all.into_iter().partition(|constant: &Constant| {
            places.iter().any(|place| constant.file.starts_with(place))
        });
        all = others;
        let measured = wrapped(&format!("Measured by {command}."));
        write!(page, "\n## {title}\n\n{measured}\n{head}").unwrap();
        assert!(!mine.is_empty(), "no constant of {title}");
        for Constant { file, name, value, doc } in mine {
            assert!(!doc.is_empty(), "{name} of src/{file}.rs has no comment");
            writeln!(page, "| `{file}` | `{name}` | {value} | {doc} |").unwrap();
        }
    }
    let homeless = all.iter().map(|c| format!("{} {}", c.file, c.name)).collect::<Vec<_>>();
    assert!(homeless.is_empty(), "of no group: {}", homeless.join(", "));
    page
}

#[test]
fn the_page_of_measured_constants_is_fresh() {
    let (path, page) = (root().join("docs/tuning.md"), page());
    if std::env::var_os("WRITE_TUNING").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(written.lines()).find(|(now, then)| now != then);
    assert!(
        page == written,
        "docs/tuning.md is stale, run WRITE_TUNING=1 cargo test --test tuning; first difference: {differs:?}"
    );
}

#[test]
fn the_constants_that_are_named_exist() {
    let all = constants();
    for (file, name) in ALSO {
        let exists = all.iter().any(|it| it.file == *file && it.name == *name);
        assert!(exists, "{file} has no constant {name}, which ALSO names");
    }
}

#[test]
fn values_are_shown_as_a_reader_would_write_them() {
    assert_eq!(shown("Duration::from_micros(50)"), "50 us");
    assert_eq!(shown("(Duration::from_micros(50), Duration::from_millis(2))"), "50 us, 2 ms");
    assert_eq!(shown("if cfg!(loom) { 3 } else { 16 }"), "16");
    assert_eq!(shown("4 << 10"), "4 KiB");
    assert_eq!(constant("    pub(super) const A_B: u32 = 7; // why"), Some(("A_B", "u32", "7")));
    assert_eq!(constant("pub const fn new() -> A;"), None);
}
