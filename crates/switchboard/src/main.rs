//! The program `switchboard`: reads the command line and the options, wires the parts together, nothing else.
//!
//! What a command does stands in the file of [`commands`] that has its name. Only this crate reads the environment, and
//! only [`output`] writes to the standard streams.

mod background;
mod bridge;
mod cli;
mod commands;
mod config;
mod failure;
mod holder;
mod http;
mod output;
mod promptyoself;
mod running;
mod sse;
mod system;
mod wake;

#[cfg(test)]
mod reference;

use std::process::ExitCode;

pub(crate) use failure::{Exit, Failure};

// Half again as many requests per second as with the system's allocator, for a few MiB.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::run(std::env::args_os().collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::failure(&failure);
            failure.exit().into()
        }
    }
}
