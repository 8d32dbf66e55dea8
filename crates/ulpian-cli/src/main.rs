//! The `ulpian` command. Here live argument parsing and printing; every computation is a library call.

/// Shadows the standard one, which panics where a reader has gone away or a disk is full.
macro_rules! println {
    () => {
        crate::say(format_args!(""))
    };
    ($($text:tt)+) => {
        crate::say(format_args!($($text)+))
    };
}

/// As `println!` here, to standard error; the status says enough where that cannot be written.
macro_rules! eprintln {
    ($($text:tt)+) => {
        crate::complain(format_args!($($text)+))
    };
}

mod bench;
mod bench_functions;
mod devices;
mod numerics;
mod plot;
mod prove;
mod train;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Tensors and training whose numbers are a contract.
#[derive(Debug, Parser)]
#[command(name = "ulpian", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Every device with its driver, facts, limits and self-test verdicts.
    Devices(devices::Args),
    /// Train a classifier; with no options: the embedded digits on the best device.
    Train(train::Args),
    /// What widths and orders cost: bandwidth of f32 and f64 add, and one sum taken many ways.
    Numerics(numerics::Args),
    /// Every input of the elementary functions, against the right values and another device; with hashes.
    Prove(prove::Args),
    /// Speed beside PyTorch in the same run, and the share of the hardware's limit.
    Bench(bench::Args),
}

/// A line on standard output. Where nobody reads on (`| head`), there is nothing left to do; what was saved is whole.
fn say(text: std::fmt::Arguments<'_>) {
    use std::io::Write;
    if let Err(e) = writeln!(std::io::stdout(), "{text}") {
        if e.kind() != std::io::ErrorKind::BrokenPipe {
            eprintln!("error: writing to standard output: {e}");
        }
        std::process::exit(1);
    }
}

/// A line on standard error, where it can be written.
fn complain(text: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Devices(a) => devices::run(&a),
        Command::Train(a) => train::run(&a),
        Command::Numerics(a) => numerics::run(&a),
        Command::Prove(a) => prove::run(&a),
        Command::Bench(a) => bench::run(&a),
    };
    let messages = ulpian_vulkan::validation_messages();
    if messages > 0 {
        eprintln!(
            "error: the Vulkan validation layer had {messages} messages, printed above: please report them"
        );
        return ExitCode::FAILURE;
    }
    match result {
        Ok(code) => code,
        Err(e) => {
            let mut said = e.to_string();
            eprintln!("error: {said}");
            let mut source = e.source();
            while let Some(s) = source {
                // Most messages have the one below them in them already.
                if !said.contains(&s.to_string()) {
                    said = s.to_string();
                    eprintln!("  because: {said}");
                }
                source = s.source();
            }
            ExitCode::FAILURE
        }
    }
}
