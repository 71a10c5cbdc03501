//! `llcl-run -n N program args`: starts N ranks of one program on this machine.

#[path = "llcl-run/child.rs"]
mod child;
#[path = "llcl-run/guard.rs"]
mod guard;
#[path = "llcl-run/job.rs"]
mod job;
#[path = "llcl-run/relay.rs"]
mod relay;
#[path = "llcl-run/signals.rs"]
mod signals;

use clap::{Parser, ValueEnum};
use llcl::bootstrap::MAX_RANKS;
use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

/// Start N ranks of a program on this machine.
///
/// The exit code is that of the first rank that fails (128 + signal for a signal, 1 for an end
/// without llcl_finalize), 124 when the time runs out, 126 or 127 when the program cannot be
/// started, 1 when output is lost that --tag-output passes on, else 0.
#[derive(Parser)]
#[command(name = "llcl-run", version)]
struct Options {
    /// How many ranks to start
    #[arg(short = 'n', value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RANKS)))]
    ranks: u32,

    /// End all ranks after this time, by SIGTERM and two seconds later by SIGKILL
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    #[arg(long, help = "Put \"[rank] \" before each line of output")]
    tag_output: bool,

    /// Let the others go on when a rank fails
    #[arg(long)]
    keep_going: bool,

    /// Pin each rank to a processor of its own
    #[arg(long, value_enum, value_name = "WHAT", default_value = "none")]
    bind: Bind,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bind {
    /// Leave it to the kernel
    None,
    /// Rank r gets the r-th allowed processor, in turn; its library's own threads get those that no
    /// rank has, else those of other ranks, unless LLCL_PROGRESS_CPUS is set
    Core,
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(s) if s > 0.0 && s <= 1e9 => Ok(Duration::from_secs_f64(s)),
        _ => Err("expected a number of seconds greater than 0 and at most 1e9".to_owned()),
    }
}

/// One line about the job. A closed stderr is no reason to end it.
fn report(text: &str) {
    let _ = writeln!(std::io::stderr(), "llcl-run: {text}");
}

fn main() {
    let code = match job::run(&Options::parse()) {
        Ok(code) => code,
        Err(e) => {
            report(&e.to_string());
            1
        }
    };
    // exit() and not a return, because a thread may still wait in a read of the terminal.
    std::process::exit(code.into());
}
