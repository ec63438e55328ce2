//! The program: arguments in, exit code out. All else is in the library.
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;

use edge_syncer::cli::{self, Invocation, Settings};

fn main() -> ExitCode {
    match cli::parse(std::env::args_os()) {
        Ok(Invocation::Run(settings)) => {
            cli::heap::give_memory_back();
            run(*settings)
        }
        #[cfg(feature = "admin")]
        Ok(Invocation::Gen(settings)) => generate(&settings),
        Ok(Invocation::Help(text)) => cli::print_help(text),
        Ok(Invocation::Print(text)) => cli::print(&text),
        Err(error) => cli::fail(&error),
    }
}

fn run(settings: Settings) -> ExitCode {
    if let Err(error) = cli::start_log(&settings) {
        return cli::fail(&error);
    }
    wait_for(edge_syncer::run(settings))
}

#[cfg(feature = "admin")]
fn generate(settings: &edge_syncer::join::Settings) -> ExitCode {
    wait_for(edge_syncer::generate(settings, &cli::say))
}

fn wait_for(work: impl Future<Output = Result<(), Box<dyn Error>>>) -> ExitCode {
    // One thread: the work is waiting for the network, and each further thread costs memory on a small board.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cli::fail(&error),
    };
    match runtime.block_on(work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => cli::fail(error.as_ref()),
    }
}
