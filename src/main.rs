//! The program: arguments in, exit code out. Everything else is in the library.
#![forbid(unsafe_code)]

use std::pin::Pin;
use std::process::ExitCode;

use edge_syncer::cli::{self, Invocation};

/// One type for all commands, so that the runtime is built into the binary once.
type Work = Pin<Box<dyn Future<Output = ExitCode>>>;

fn main() -> ExitCode {
    let work: Work = match cli::parse(std::env::args_os()) {
        Ok(Invocation::Run(settings)) => {
            if let Err(error) = cli::start_log(&settings) {
                return cli::fail(&error);
            }
            Box::pin(async move {
                match edge_syncer::run(*settings).await {
                    Ok(()) => ExitCode::SUCCESS,
                    Err(error) => cli::fail(error.as_ref()),
                }
            })
        }
        #[cfg(feature = "admin")]
        Ok(Invocation::Gen(settings)) => Box::pin(async move {
            match edge_syncer::generate(&settings, cli::say).await {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => cli::fail(error.as_ref()),
            }
        }),
        Ok(Invocation::Check(settings, format)) => Box::pin(edge_syncer::check(*settings, format)),
        #[cfg(feature = "admin")]
        Ok(Invocation::Diff(settings, options)) => {
            if let Err(error) = cli::start_quiet_log(&settings) {
                return cli::fail(&error);
            }
            Box::pin(edge_syncer::diff(*settings, options))
        }
        #[cfg(feature = "admin")]
        Ok(Invocation::Bundle(settings, options)) => {
            if let Err(error) = cli::start_quiet_log(&settings) {
                return cli::fail(&error);
            }
            Box::pin(edge_syncer::bundle(*settings, options))
        }
        #[cfg(feature = "admin")]
        Ok(Invocation::Status(settings, options)) => {
            if let Err(error) = cli::start_quiet_log(&settings) {
                return cli::fail(&error);
            }
            Box::pin(edge_syncer::status(*settings, options))
        }
        Ok(Invocation::Rbac(settings, options)) => Box::pin(async move {
            match edge_syncer::gen_rbac(*settings, options).await {
                Ok(roles) => cli::print(&roles),
                Err(error) => cli::fail(error.as_ref()),
            }
        }),
        #[cfg(feature = "init")]
        Ok(Invocation::Init(init)) => {
            if let Err(error) = cli::log_as(init.verbosity, init.format) {
                return cli::fail(&error);
            }
            Box::pin(async move {
                match edge_syncer::init::run(init.settings).await {
                    Ok(()) => ExitCode::SUCCESS,
                    Err(error) => cli::fail(error.as_ref()),
                }
            })
        }
        #[cfg(feature = "init")]
        Ok(Invocation::InitCheck(init, format)) => Box::pin(async move { cli::check_init(&init, format).await }),
        #[cfg(any(feature = "init", feature = "publish"))]
        Ok(Invocation::Refuse(why)) => return cli::refuse(&why),
        #[cfg(feature = "init")]
        Ok(Invocation::Render(settings)) => Box::pin(async move { cli::render(&settings).await }),
        #[cfg(feature = "publish")]
        Ok(Invocation::PublishCheck(publish, format)) => {
            Box::pin(async move { cli::check_publish(&publish, format).await })
        }
        #[cfg(feature = "publish")]
        Ok(Invocation::Publish(publish)) => {
            if let Err(error) = cli::log_as(publish.verbosity, publish.format) {
                return cli::fail(&error);
            }
            Box::pin(async move {
                match edge_syncer::publish::run(publish.settings).await {
                    Ok(()) => ExitCode::SUCCESS,
                    Err(error) => cli::fail(error.as_ref()),
                }
            })
        }
        #[cfg(feature = "publish")]
        Ok(Invocation::PublishRender(settings)) => return cli::render_published(&settings),
        Ok(Invocation::Help(text)) => return cli::print_help(text),
        Ok(Invocation::Print(text)) => return cli::print(&text),
        Err(error) => return cli::fail(&error),
    };
    // One thread: the work is waiting for the network, and each further thread costs memory on a small board.
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => cli::fail(&error),
    }
}
