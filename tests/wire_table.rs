//! The structs of `llcl_wire.h` are declared three times: there, in the library, and in the module
//! for MPI. This test compares them field by field.

use std::collections::BTreeMap;
use std::fs;

/// The names of each struct: in the header, in the library, in the module.
const STRUCTS: [(&str, &str, &str); 9] = [
    ("llcl_wire_key_t", "Key", "Key"),
    ("llcl_wire_piece_t", "Piece", "Piece"),
    ("llcl_wire_command_t", "Command", "Command"),
    ("llcl_wire_event_t", "Event", "Event"),
    ("llcl_wire_caps_t", "CapsTable", "Caps"),
    ("llcl_wire_host_t", "HostTable", "Host"),
    ("llcl_wire_open_t", "OpenTable", "Open"),
    ("llcl_wire_armed_t", "ArmedTable", "Armed"),
    ("llcl_wire_module_t", "Table", "Table"),
];

/// The fields of a struct: name, and layout in memory.
type Fields = Vec<(String, String)>;

fn read(path: &str) -> String {
    let text = fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let without = |text: String, from: &str, to: &str| {
        let mut parts = text.split(from);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| all + part.split_once(to).map_or("", |(_, rest)| rest))
    };
    let text = without(text, "/*", "*/");
    text.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The layout of a type in memory.
fn kind(named: &str) -> String {
    let named = named.trim().trim_start_matches("const ");
    let pointer = ["*", "fn(", "Call<", "Option<", "Unused"];
    if pointer.iter().any(|part| named.contains(part)) {
        return "pointer".into();
    }
    let plain = named.replace("uint", "u").replace("int", "i").replace("_t", "");
    if plain == "c_i" { "i32".into() } else { plain }
}

/// Names that are keywords of Rust, or that differ.
fn name_of(named: &str) -> String {
    match named.trim() {
        "type" => "kind".into(),
        "cls" => "class".into(),
        named => named.trim_end_matches('_').into(),
    }
}

fn of_header(text: &str) -> BTreeMap<String, Fields> {
    let mut all = BTreeMap::new();
    for part in text.split("typedef struct {").skip(1) {
        let (body, rest) = part.split_once('}').unwrap();
        let name = rest.split(';').next().unwrap().trim().to_owned();
        let mut fields = Fields::new();
        for declared in body.split(';').map(str::trim).filter(|declared| !declared.is_empty()) {
            if let Some((_, call)) = declared.split_once("(*") {
                fields.push((name_of(call.split(')').next().unwrap()), "pointer".into()));
                continue;
            }
            let mut names = declared.split(',');
            let first = names.next().unwrap();
            let at = first.rfind([' ', '*']).unwrap() + 1;
            let (kind_of, first) = first.split_at(at);
            for named in std::iter::once(first).chain(names) {
                let is_pointer = kind_of.contains('*') || named.contains('*');
                let named = named.trim().trim_start_matches('*');
                let (named, count) = named.split_once('[').unwrap_or((named, ""));
                let plain = if is_pointer { "pointer".into() } else { kind(kind_of) };
                let kind = match count.trim_end_matches(']') {
                    "" => plain,
                    count => format!("[{plain}; {count}]"),
                };
                fields.push((name_of(named), kind));
            }
        }
        all.insert(name, fields);
    }
    all
}

fn of_rust(text: &str, name: &str) -> Fields {
    let (_, rest) = text.split_once(&format!("pub struct {name} {{")).unwrap();
    let body = rest.split('}').next().unwrap();
    let mut fields = Fields::new();
    // A comma inside a type does not end a field: every field has a name and a colon.
    for part in body.split(',') {
        let part = part.rsplit("///").next().unwrap_or_default().trim().trim_start_matches("pub ");
        let Some((named, kind_of)) = part.split_once(": ") else { continue };
        if named.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            fields.push((name_of(named), kind(kind_of)));
        }
    }
    fields
}

#[test]
fn the_header_the_library_and_the_module_have_the_same_structs() {
    let header = of_header(&read("include/llcl_wire.h"));
    let library = read("src/transport/wire/table.rs") + &read("src/transport/wire/mod.rs");
    let module = read("modules/mpi/src/table.rs");
    for (in_header, in_library, in_module) in STRUCTS {
        let expected = &header[in_header];
        assert!(expected.len() > 1, "{in_header} was not read");
        assert_eq!(&of_rust(&library, in_library), expected, "{in_library} of the library");
        assert_eq!(&of_rust(&module, in_module), expected, "{in_module} of the module");
    }
}
