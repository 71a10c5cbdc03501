//! `llcl-info`: what this build of the library is, what it finds on this machine, and, with `-c`,
//! the configuration in force and where each value came from.

use std::process::ExitCode;

use clap::Parser;
use llcl::util::config::{Config, Origin, TABLE};

/// Tells about this installation of libllcl.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    /// Print the configuration table: variable, value in force, default, unit, origin, meaning
    #[arg(short, long)]
    config: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = match Config::from_environment() {
        Ok(config) => config,
        Err(error) => {
            eprintln!("llcl-info: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("libllcl {}", env!("CARGO_PKG_VERSION"));
    if arguments.config {
        println!();
        print_table(&config);
    }
    ExitCode::SUCCESS
}

/// One variable per paragraph: the values in columns, then what is accepted and what it does.
fn print_table(config: &Config) {
    println!("VARIABLE                      VALUE    DEFAULT  UNIT           ORIGIN");
    for (row, (value, origin)) in TABLE.iter().zip(config.values()) {
        let origin = match origin {
            Origin::Default => "default",
            Origin::Environment => "environment",
            Origin::Caller => "caller",
        };
        let value = row.show(value);
        println!("{:<24} {value:>10} {:>10}  {:<14} {origin}", row.name, row.default, row.unit);
        println!("    {}", row.help);
        println!("    Accepts {}.", row.range());
    }
}
