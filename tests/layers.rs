//! Checks the source tree: layers import strictly downward, no transport imports another, modules
//! of a layer form no cycle, no file exceeds its limit, no comment has a long line, and no file
//! contains unfinished code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The layers, the lowest first. Names in one row are one layer; a later one may use an earlier.
const LAYERS: &[&[&str]] = &[
    &["util"],
    &["bootstrap"],
    &["transport"],
    &["engine"],
    &["core"],
    &["coll", "dsm"],
    &["api"],
];
const TRANSPORTS: &[&str] = &["loopback", "node", "wire"];
const LINES: usize = 450;
/// The longest line of a comment, in columns.
const COLUMNS: usize = 100;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|e| path.extension().is_some_and(|x| x == *e)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The text without comments; a `//` inside a string ends a line too early, which hides no import.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// The paths after each `prefix`: `crate::a::b` gives `a::b`, `crate::{a::b, c}` gives both.
fn paths_behind(code: &str, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let boundary = code[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':');
        let behind = &code[at + prefix.len()..];
        if !boundary {
            continue;
        }
        if behind.starts_with('{') {
            let (mut depth, mut start) = (0, 1);
            for (i, c) in behind.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 1 => {
                        found.push(behind[start..i].trim().to_string());
                        start = i + 1;
                    }
                    _ => {}
                }
                if depth == 0 {
                    found.push(behind[start..i].trim().to_string());
                    break;
                }
            }
        } else {
            let end = behind.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            found.push(behind[..end.unwrap_or(behind.len())].to_string());
        }
    }
    found
}

/// The position of a layer: its row, and its place in the row.
fn layer(name: &str) -> Option<(usize, usize)> {
    LAYERS
        .iter()
        .enumerate()
        .find_map(|(row, names)| names.iter().position(|n| *n == name).map(|at| (row, at)))
}

/// The modules of a source file below src: `src/engine/ring/tests.rs` gives engine, ring, tests.
fn module(path: &Path) -> Vec<String> {
    let inside = path.strip_prefix(root().join("src")).unwrap().with_extension("");
    let mut parts: Vec<String> = inside.iter().map(|p| p.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// Every file of a layer: path, modules, code.
fn sources() -> Vec<(PathBuf, Vec<String>, String)> {
    let all = files("src", &["rs"]).into_iter().map(|path| {
        let modules = module(&path);
        let text = code(&fs::read_to_string(&path).unwrap());
        (path, modules, text)
    });
    let kept: Vec<_> = all
        .filter(|(_, m, _)| m.first().is_some_and(|m| m != "bin" && m != "lib" && m != "main"))
        .collect();
    assert!(!kept.is_empty(), "no source found below {}", root().display());
    kept
}

#[test]
fn every_folder_of_src_is_a_layer() {
    for (path, modules, _) in sources() {
        assert!(layer(&modules[0]).is_some(), "{} belongs to no layer of {LAYERS:?}", shown(&path));
    }
}

#[test]
fn layers_import_downward() {
    let mut upward = Vec::new();
    for (path, modules, text) in sources() {
        let own = layer(&modules[0]);
        for import in paths_behind(&text, "crate::") {
            if layer(word(&import)) > own {
                upward.push(format!("{} imports crate::{import}", shown(&path)));
            }
        }
        // Other layers must be named by crate::, which the lines above look for.
        for import in paths_behind(&text, "super::") {
            let target = import.trim_start_matches("super::");
            if import.starts_with("super::") && layer(word(target)).is_some_and(|l| Some(l) != own)
            {
                upward.push(format!("{} reaches {target} through super::", shown(&path)));
            }
        }
    }
    assert!(upward.is_empty(), "upward imports:\n{}", upward.join("\n"));
}

#[test]
fn no_transport_knows_another() {
    let mut bad = Vec::new();
    for (path, modules, text) in sources() {
        let Some(own) = modules
            .get(1)
            .filter(|m| modules[0] == "transport" && TRANSPORTS.contains(&m.as_str()))
        else {
            continue;
        };
        let imports = paths_behind(&text, "crate::transport::")
            .into_iter()
            .chain(paths_behind(&text, "super::"));
        for import in imports {
            let target = word(import.trim_start_matches("super::"));
            if TRANSPORTS.contains(&target) && target != own {
                bad.push(format!("{} knows {target}", shown(&path)));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Layers above the transports use `transport::fabric`, which chooses the transport for a peer.
#[test]
fn nothing_above_the_transports_names_one() {
    let above = layer("transport");
    let mut bad = Vec::new();
    for (path, modules, text) in sources() {
        if layer(&modules[0]) <= above {
            continue;
        }
        for import in paths_behind(&text, "crate::") {
            if names_transport(&import) {
                bad.push(format!("{} names crate::{import}", shown(&path)));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Whether an import leads into a transport: `transport::node::Node`,
/// `transport::{node, port::Port}`, `{transport::node, util}`.
fn names_transport(import: &str) -> bool {
    let Some(at) = import.find("transport::") else { return false };
    let behind = &import[at + "transport::".len()..];
    let mut names = behind.split(['{', ',', '}']).map(|name| word(name.trim()));
    names.any(|name| TRANSPORTS.contains(&name))
}

#[test]
fn modules_of_one_layer_form_no_cycle() {
    // Edges between the second components: engine::lane -> engine::command_queue. A layer's own
    // mod.rs is no node, since it may name its children and they may name it.
    let mut nodes: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for (_, modules, text) in sources() {
        let Some(own) = modules.get(1) else { continue };
        let edges = nodes.entry((modules[0].clone(), own.clone())).or_default();
        let layer_prefix = format!("crate::{}::", modules[0]);
        edges.extend(paths_behind(&text, &layer_prefix).iter().map(|i| word(i).to_string()));
        if modules.len() == 2 {
            edges.extend(paths_behind(&text, "super::").iter().map(|i| word(i).to_string()));
        }
        edges.remove(own);
    }
    fn visit(
        at: &(String, String),
        nodes: &BTreeMap<(String, String), BTreeSet<String>>,
        path: &mut Vec<String>,
        done: &mut BTreeSet<(String, String)>,
    ) {
        let name = format!("{}::{}", at.0, at.1);
        if let Some(start) = path.iter().position(|p| *p == name) {
            panic!("cycle: {} -> {name}", path[start..].join(" -> "));
        }
        if done.contains(at) {
            return;
        }
        path.push(name);
        for next in &nodes[at] {
            let next = (at.0.clone(), next.clone());
            if nodes.contains_key(&next) {
                visit(&next, nodes, path, done);
            }
        }
        path.pop();
        done.insert(at.clone());
    }
    let mut done = BTreeSet::new();
    for at in nodes.keys() {
        visit(at, &nodes, &mut Vec::new(), &mut done);
    }
}

#[test]
fn no_file_outgrows_its_limit() {
    let mut long = Vec::new();
    let folders = ["src", "tests", "c_tests", "bench_c", "examples", "scripts", "packaging"];
    for folder in folders.into_iter().chain(["fortran", "f_tests", "conduit", "python", "modules"])
    {
        let endings = ["rs", "c", "h", "mk", "awk", "sh", "f90", "F90", "cpp", "py"];
        for path in files(folder, &endings) {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            let limit = if folder == "examples" { 150 } else { LINES };
            if lines >= limit {
                long.push(format!("{}: {lines} lines, limit {limit}", shown(&path)));
            }
        }
    }
    assert!(long.is_empty(), "split these:\n{}", long.join("\n"));
}

/// Rows of tables may be longer, since they cannot be wrapped.
#[test]
fn no_comment_has_a_long_line() {
    let mut long = Vec::new();
    for path in ["src", "modules", "tests"].iter().flat_map(|folder| files(folder, &["rs"])) {
        let text = fs::read_to_string(&path).unwrap();
        for (at, line) in (1..).zip(text.lines()) {
            let comment = line.trim_start().strip_prefix("//");
            let row = |text: &str| text.trim_start_matches(['/', '!', ' ']).starts_with('|');
            if comment.is_some_and(|text| !row(text)) && line.chars().count() > COLUMNS {
                long.push(format!("{}:{at}", shown(&path)));
            }
        }
    }
    assert!(long.is_empty(), "comments of more than {COLUMNS} columns: {long:#?}");
}

#[test]
fn no_comment_of_c_or_fortran_has_a_long_line() {
    let mut long = Vec::new();
    for folder in ["include", "c_tests", "bench_c", "examples", "f_tests", "fortran"]
        .into_iter()
        .chain(["conduit", "modules", "tests", "src"])
    {
        for path in files(folder, &["c", "h", "hpp", "cpp", "f90", "F90"]) {
            let fortran = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("f90"));
            let mut inside = false;
            for (at, line) in (1..).zip(fs::read_to_string(&path).unwrap().lines()) {
                let text = line.trim_start();
                let begins = match fortran {
                    true => text.starts_with('!'),
                    false => text.starts_with("//") || text.starts_with("/*"),
                };
                if (begins || inside) && line.chars().count() > COLUMNS {
                    long.push(format!("{}:{at}", shown(&path)));
                }
                // A comment behind code may go on in the next lines.
                inside = !fortran
                    && match (line.rfind("/*"), line.rfind("*/")) {
                        (Some(begin), end) => end.is_none_or(|end| end < begin),
                        (None, end) => inside && end.is_none(),
                    };
            }
        }
    }
    assert!(long.is_empty(), "comments of more than {COLUMNS} columns: {long:#?}");
}

#[test]
fn nothing_unfinished_is_left() {
    let banned =
        ["TO\x44O", "FIX\x4dE", "static \x6dut ", "#[ig\x6eore", "db\x67!(", "unimple\x6dented!"];
    let mut found = Vec::new();
    for folder in ["src", "tests", "c_tests", "bench_c", "examples"] {
        for path in files(folder, &["rs", "c", "h"]) {
            let text = fs::read_to_string(&path).unwrap();
            for (number, line) in text.lines().enumerate() {
                if banned.iter().any(|b| line.contains(b)) {
                    found.push(format!("{}:{}: {}", shown(&path), number + 1, line.trim()));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_reader_of_imports_sees_every_form() {
    let text = code(
        "use crate::util::status; // crate::api::x\nuse crate::{core::a, engine::{b, c}};\nmycrate::dsm::x();",
    );
    assert_eq!(paths_behind(&text, "crate::"), ["util::status", "core::a", "engine::{b, c}"]);
    assert_eq!(word("engine::{b, c}"), "engine");
    for names in
        ["transport::node::Node", "transport::{port::Port, node}", "{transport::wire, util}"]
    {
        assert!(names_transport(names), "{names}");
    }
    assert!(!names_transport("transport::fabric::Fabric") && !names_transport("core::node"));
    assert!(
        layer("api") > layer("dsm")
            && layer("dsm") > layer("coll")
            && layer("coll") > layer("core")
    );
}
