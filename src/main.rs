//! The program: arguments in, exit code out. All else is in the library.
#![forbid(unsafe_code)]

use std::future::Future;
use std::process::ExitCode;

use edge_syncer::cli::{self, Invocation, Settings};

fn main() -> ExitCode {
    match cli::parse(std::env::args_os()) {
        Ok(Invocation::Run(settings)) => {
            cli::heap::give_memory_back();
            run(*settings)
        }
        Ok(Invocation::Check(settings, format)) => block_on(edge_syncer::check(*settings, format)),
        Ok(Invocation::Rbac(settings, options)) => block_on(async move {
            match edge_syncer::gen_rbac(*settings, options).await {
                Ok(roles) => cli::print(&roles),
                Err(error) => cli::fail(error.as_ref()),
            }
        }),
        Ok(Invocation::Help(text)) => cli::print_help(text),
        Ok(Invocation::Print(text)) => cli::print(&text),
        Err(error) => cli::fail(&error),
    }
}

fn run(settings: Settings) -> ExitCode {
    if let Err(error) = cli::start_log(&settings) {
        return cli::fail(&error);
    }
    block_on(async {
        match edge_syncer::run(settings).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => cli::fail(error.as_ref()),
        }
    })
}

/// One thread: the work is waiting for the network, and each further thread costs memory on a small board.
fn block_on(work: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => cli::fail(&error),
    }
}
