//! `llcl-info`: prints the version of the library and what it can do on this machine; with `-c`,
//! the configuration in force and where each value came from; with `-a`, which algorithms do the
//! collective operations, and why.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use llcl::bootstrap::World;
use llcl::coll::choices::{Choices, VARIABLE};
use llcl::coll::nodes::Nodes;
use llcl::coll::problem::{Operation, Problem};
use llcl::coll::schedule::QUEUES;
use llcl::coll::select::{OPERATIONS, choose, forced, rows_first};
use llcl::core::context::{Context, Place};
use llcl::engine::queue_entry::INLINE;
use llcl::transport::fabric::{TRANSPORT, modules};
use llcl::transport::wire::module::MODULES;
use llcl::util::config::{Config, EXECUTIONS, Origin, TABLE};
use llcl::util::cores::PROGRESS_CPUS;
use llcl::util::machine::NODE_ID;
use llcl::util::memory::page_size;
use llcl::util::misspelt::warn_once;
use llcl::util::pin::joins_global_fence;
use llcl::util::status::Result;

/// Prints the version of libllcl and what it can do on this machine.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    /// Print the configuration table: variable, value in force, default, unit, origin, meaning
    #[arg(short, long)]
    config: bool,
    /// Print which algorithm does which collective operation, by ranks and bytes, and why
    #[arg(short, long)]
    algorithms: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut text = format!("libllcl {}\n", env!("CARGO_PKG_VERSION"));
    let reported = report(&arguments, &mut text);
    let printed = match std::io::stdout().write_all(text.as_bytes()) {
        // A reader such as `head` may close the pipe early.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    };
    if let Err(error) = &printed {
        eprintln!("llcl-info: standard output cannot be written: {error}");
    }
    if let Err(error) = &reported {
        eprintln!("llcl-info: {error}");
    }
    if printed.is_ok() && reported.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Adds to `text` what is asked for, up to the first error.
fn report(arguments: &Arguments, text: &mut String) -> Result<()> {
    let config = Config::from_environment()?;
    warn_once();
    if arguments.config {
        *text += &format!("\n{}", configuration(&config));
    }
    if arguments.algorithms {
        *text += &format!("\n{}", algorithms(&config, &Choices::from_environment()?));
    }
    if !arguments.config && !arguments.algorithms {
        *text += &format!("\n{}", capabilities(config)?);
    }
    Ok(())
}

/// The errno with which the kernel refuses that another process of this user copies from this one,
/// or into it; 0: it copies. A child tries it, because a process may always copy from itself, and
/// under Yama's ptrace_scope 1 also from its children.
fn refusal(write: bool) -> i32 {
    let mut word = [0u8; 8];
    let last = || std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    // SAFETY: the child makes two system calls and ends.
    match unsafe { libc::fork() } {
        -1 => last(),
        0 => {
            let span = libc::iovec { iov_base: word.as_mut_ptr().cast(), iov_len: word.len() };
            let call = if write { libc::process_vm_writev } else { libc::process_vm_readv };
            // SAFETY: the word has the same address here and in the parent, which does not use it.
            let copied = unsafe { call(libc::getppid(), &span, 1, &span, 1, 0) };
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(if copied == word.len() as isize { 0 } else { last() }) }
        }
        child => {
            let mut state = 0;
            // SAFETY: plain numbers, and a place for one.
            let waited = unsafe { libc::waitpid(child, &raw mut state, 0) };
            if waited == child { libc::WEXITSTATUS(state) } else { last() }
        }
    }
}

/// How registered memory of other ranks is reached.
fn registered_access(kernel_copies: bool) -> String {
    if !kernel_copies {
        return "messages to the owner: LLCL_CMA is off".to_string();
    }
    let text = |errno| std::io::Error::from_raw_os_error(errno);
    match (refusal(false), refusal(true)) {
        (0, 0) => "process_vm_readv, process_vm_writev".to_string(),
        (0, errno) => {
            format!("process_vm_readv; writes by messages: process_vm_writev: {}", text(errno))
        }
        (errno, _) => format!("messages to the owner: process_vm_readv: {}", text(errno)),
    }
}

/// Makes a context and says what it can do.
fn capabilities(config: Config) -> Result<String> {
    let (execution, kernel_copies) = (EXECUTIONS[config.execution as usize], config.cma == 1);
    let modules = modules();
    // A context of one rank needs no wire; the list of modules says which wires cannot be opened.
    // SAFETY: this process has no other thread yet.
    unsafe { std::env::remove_var("LLCL_TRANSPORT") };
    let world = World::create(1)?;
    // The context comes before the question to the kernel: it permits other processes to copy.
    let context = Context::create(Ok(config), Place::World(&world, 0))?;
    let registered = registered_access(kernel_copies);
    let wake = match joins_global_fence() {
        true => "by every store of the library (membarrier)",
        false => "by naps: the kernel has no membarrier",
    };
    context.finalize(None).status?;
    Ok(format!(
        "\
execution            {execution}
small writes         up to {INLINE} bytes
page                 {} bytes

transport loopback   this rank: loads, stores, atomic instructions
transport node       ranks of this machine:
  allocated memory   mapped: loads, stores, atomic instructions
  registered memory  {registered}; atomics by the owner
  sleepers are woken {wake}

{}",
        page_size(),
        wires(&modules)
    ))
}

/// The wires that are shared objects of their own.
fn wires(modules: &[(String, Vec<String>)]) -> String {
    let mut text =
        format!("wire modules{}\n", if modules.is_empty() { "         none" } else { "" });
    for (file, lines) in modules {
        text += &format!("  {file}: {}\n", lines.join("\n    "));
    }
    text
}

/// A paragraph for each variable: its values in columns, then the accepted values and its effect.
fn configuration(config: &Config) -> String {
    let mut text = "\
        VARIABLE                      VALUE    DEFAULT  UNIT           ORIGIN\n"
        .to_string();
    for (row, (value, origin)) in TABLE.iter().zip(config.values()) {
        let origin = match origin {
            Origin::Default => "default",
            Origin::Environment => "environment",
            Origin::Caller => "caller",
        };
        let value = row.show(value);
        text += &format!(
            "{:<24} {value:>10} {:>10}  {:<14} {origin}\n    {}\n    Accepts {}.\n",
            row.name,
            row.default,
            row.unit,
            row.help,
            row.range()
        );
    }
    for (name, help, accepted) in TEXTS {
        let value = std::env::var_os(name).unwrap_or_default();
        let origin = if value.is_empty() { "default" } else { "environment" };
        let value = value.to_string_lossy();
        text += &format!(
            "{name:<24} {value:>10} {:>10}  {:<14} {origin}\n    {help}\n    Accepts {accepted}.\n",
            "", ""
        );
    }
    text
}

/// The variables that are neither numbers nor one of several words. They are unset by default.
const TEXTS: [(&str, &str, &str); 5] = [
    (
        TRANSPORT,
        "The wire (network) to other ranks. It leads to all ranks, except those that share a node by LLCL_NODE_ID.",
        "mpi, or the NAME of a module libllcl-NAME.so",
    ),
    (
        MODULES,
        "Where the modules of wires are, in place of llcl/ beside the library.",
        "folders, separated by colons",
    ),
    (
        NODE_ID,
        "The node of each rank, in place of the machine's identity. Only ranks of one node share memory.",
        "a number, or a list with one for each rank, as 0,0,1,1",
    ),
    (
        PROGRESS_CPUS,
        "Processors on which the library's own threads run, except those of the calling thread if others are listed.",
        "a list of processors, as 0,2-3",
    ),
    (
        VARIABLE,
        "A file whose rows choose the algorithms of collectives; they precede the rows that llcl-info -a prints.",
        "the name of a file",
    ),
];

/// The sizes and numbers of ranks for which choices are printed.
const SIZES: [(u64, &str); 5] = [
    (8, "8 B"),
    (1 << 10, "1 KiB"),
    (64 << 10, "64 KiB"),
    (1 << 20, "1 MiB"),
    (16 << 20, "16 MiB"),
];
const RANKS: [usize; 6] = [2, 4, 8, 16, 64, 256];

/// The algorithm for a range of sizes, and the reason.
#[derive(PartialEq)]
struct Choice {
    first: &'static str,
    last: &'static str,
    algorithm: &'static str,
    reason: String,
}

/// The algorithms of the collective operations. Neighbouring sizes with one algorithm share a
/// line.
fn algorithms(config: &Config, table: &Choices) -> String {
    let mut text = "Bytes: of the vector, or of one rank's block.\n".to_string();
    let places = [
        (None, "of one node"),
        (Some(1), "of several nodes, one of each"),
        (Some(2), "of several nodes, two of each"),
    ];
    for (each, place) in places {
        text += &format!(
            "\nRanks {place}:\n\n\
             OPERATION       RANKS                 BYTES             ALGORITHM           REASON\n{}",
            algorithms_of(config, table, each)
        );
    }
    text
}

/// As algorithms(), for ranks that all share memory, or for nodes of `each` ranks.
fn algorithms_of(config: &Config, table: &Choices, each: Option<usize>) -> String {
    let mut text = String::new();
    for (operation, called, _) in OPERATIONS {
        let mut groups: Vec<(String, Vec<Choice>)> = Vec::new();
        for ranks in RANKS.into_iter().filter(|ranks| each.is_none_or(|each| *ranks > each)) {
            let choices = choices(config, table, *operation, (ranks, each));
            match groups.last_mut() {
                Some((before, same)) if *same == choices => *before += &format!(", {ranks}"),
                _ => groups.push((ranks.to_string(), choices)),
            }
        }
        for (ranks, choices) in groups {
            for Choice { first, last, algorithm, reason } in choices {
                let bytes = match first == last {
                    true => first.to_string(),
                    false => format!("{first} to {last}"),
                };
                text += &format!("{called:<15} {ranks:<21} {bytes:<17} {algorithm:<19} {reason}\n");
            }
        }
    }
    text
}

/// The choices for one operation and number of ranks, by size.
fn choices(
    config: &Config,
    table: &Choices,
    operation: Operation,
    (ranks, each): (usize, Option<usize>),
) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    let sizes = match operation {
        Operation::Barrier => &[(0, "none")][..],
        _ => &SIZES[..],
    };
    let nodes = each.map(|each| Arc::new(Nodes::new((0..ranks).map(|rank| rank / each))));
    for &(bytes, last) in sizes {
        let problem = Problem {
            operation,
            ranks,
            root: 0,
            count: bytes / 8,
            width: 8,
            segment: config.coll_segment,
            in_place: false,
            queues: QUEUES,
            varied: None,
            nodes: nodes.clone(),
        };
        let nodes = nodes.as_deref();
        let rows = table.rows(nodes).chain(rows_first(false, nodes));
        let (algorithm, reason) = match choose(rows, &problem, forced(config, operation), false) {
            Ok((algorithm, reason)) => (algorithm.name, reason.to_string()),
            Err(error) => ("none", error.to_string()),
        };
        match choices.last_mut() {
            Some(before) if before.algorithm == algorithm && before.reason == reason => {
                before.last = last;
            }
            _ => choices.push(Choice { first: last, last, algorithm, reason }),
        }
    }
    choices
}
