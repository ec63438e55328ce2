//! How a run ends: what it prints last, and its exit code.

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use driver::points::Verdict;
use kube_lite::access::AccessError;
#[cfg(any(feature = "init", feature = "publish"))]
use kube_lite::logging::LogFormat;

use super::usage::{NAME, UsageError};
#[cfg(feature = "init")]
use crate::init::{Init, RenderError};
use crate::model::OneCluster;

/// Something went wrong while running.
const FAILED: u8 = 1;

/// The command line or the configuration must be corrected by a person.
const UNUSABLE: u8 = 2;

/// Prints a line on stderr.
pub fn say(line: &str) {
    // If stderr is closed there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "{NAME}: {}", line.replace('\n', "\\n"));
}

/// Prints a text that was asked for. It is no failure if nobody reads it any more.
pub fn print(text: &str) -> ExitCode {
    let _ = write!(io::stdout().lock(), "{text}");
    ExitCode::SUCCESS
}

/// Prints why the program cannot run so, and returns the exit code for it.
#[cfg(any(feature = "admin", feature = "init", feature = "publish"))]
pub fn refuse(why: &str) -> ExitCode {
    say(why);
    ExitCode::from(FAILED)
}

/// Checks whether the role `init` would work, prints what was found, and gives the exit code for it.
#[cfg(feature = "init")]
pub async fn check_init(init: &Init, format: LogFormat) -> ExitCode {
    let points = edge_syncer_init::check(&init.settings).await;
    print(&points.text(format));
    code_of_points(points.worst())
}

/// Checks whether the role `publish` would work, prints what was found, and gives the exit code for it.
#[cfg(feature = "publish")]
pub async fn check_publish(publish: &crate::publish::Publish, format: LogFormat) -> ExitCode {
    let points = crate::publish::check(&publish.settings).await;
    print(&points.text(format));
    code_of_points(points.worst())
}

/// Prints the objects of an InitTarget.
#[cfg(feature = "init")]
pub async fn render(settings: &crate::init::Render) -> ExitCode {
    match crate::init::render(settings, driver::logger::now()).await {
        Ok(text) => print(&text),
        Err(RenderError::Unusable(why)) => fail(&UsageError::new(why).seen_from(super::init_args::RENDER)),
        Err(error) => fail(&error),
    }
}

/// Prints the schema of a PublishedResource, and the copy of an object.
#[cfg(feature = "publish")]
pub fn render_published(settings: &crate::publish::Render) -> ExitCode {
    match crate::publish::render(settings, driver::logger::now()) {
        Ok(text) => print(&text),
        Err(crate::publish::RenderError::Unusable(why)) => {
            fail(&UsageError::new(why).seen_from(super::publish_args::RENDER))
        }
        Err(error) => fail(&error),
    }
}

/// Prints the help text where it was not asked for.
pub fn print_help(text: &str) -> ExitCode {
    let _ = write!(io::stderr().lock(), "{text}");
    ExitCode::from(UNUSABLE)
}

/// The exit code of a check: all is good, something will not work, or something is not known.
pub(crate) fn code_of_points(worst: Verdict) -> ExitCode {
    match worst {
        Verdict::Good | Verdict::Note => ExitCode::SUCCESS,
        Verdict::Wrong => ExitCode::from(FAILED),
        Verdict::Unknown => ExitCode::from(UNUSABLE),
    }
}

/// The exit code of `diff` and `status`: nothing is found, something, or it is not known.
#[cfg(feature = "admin")]
pub(crate) fn code_of_finding(is_any: bool, is_known: bool) -> ExitCode {
    match (is_any, is_known) {
        (_, false) => ExitCode::from(UNUSABLE),
        (true, true) => ExitCode::from(FAILED),
        (false, true) => ExitCode::SUCCESS,
    }
}

/// Prints why something cannot be said, and returns the exit code for that.
#[cfg(feature = "admin")]
pub(crate) fn cannot_tell(error: &(dyn Error + 'static)) -> ExitCode {
    fail(error);
    ExitCode::from(UNUSABLE)
}

/// Prints an error with its causes as one line and returns the exit code for it.
pub fn fail(error: &(dyn Error + 'static)) -> ExitCode {
    // If stderr is closed there is nobody to tell.
    let _ = writeln!(io::stderr().lock(), "{NAME}: {}", chain(error));
    ExitCode::from(exit_code(error))
}

/// The messages of an error and its causes, without those that the one before already ends with.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text.replace('\n', "\\n")
}

fn exit_code(error: &(dyn Error + 'static)) -> u8 {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<UsageError>() || error.is::<AccessError>() || error.is::<OneCluster>() {
            return UNUSABLE;
        }
        cause = error.source();
    }
    FAILED
}

#[cfg(test)]
mod tests {
    use driver::serve::ListenAddress;

    use super::*;

    #[test]
    fn joins_causes_without_saying_them_twice() {
        let address = ListenAddress::parse("--listen-address", ":1").unwrap();
        let error = address.cannot_be_used(io::Error::other("one\ntwo"));
        assert_eq!(chain(&error), "cannot listen at :1 (--listen-address): one\\ntwo");
        assert_eq!(exit_code(&error), FAILED);
        assert_eq!(
            chain(&io::Error::other(UsageError::new("x"))),
            "x (see edge-syncer run --help)"
        );
        assert_eq!(exit_code(&UsageError::new("x")), UNUSABLE);
    }
}
