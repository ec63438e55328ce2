//! `edge-syncer bundle`: one archive with what people who help need to see.
//!
//! Promises: it holds no Secret's data, no credentials and nothing of a kubeconfig but its path; it changes nothing at
//! either side; what cannot be had is named in it, and the rest is written; it is of bounded size, and only its owner
//! may read it.

mod archive;
mod given;
mod running;
mod texts;

use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use driver::logger;
use kube_lite::logging::{LogFormat, times};
use kube_lite::{Cluster, Content, ListRequest};
use serde_json::Value;

use self::archive::File;
use crate::check::{self, Checked};
use crate::cli::{self, BundleOptions, Settings};
use crate::join::Output;
use crate::model::effect::ConfigKind;
use crate::survey::survey;
use crate::{ask, version};

/// The longest file: what is longer is cut.
const LONGEST: usize = 1 << 20;
/// How many configs there are at most in it.
const CONFIGS: usize = 200;
/// What is never in it.
const LEFT_OUT: &str = "no objects but configs, no data of Secrets, no tokens, keys or other contents of kubeconfigs, no \
    log; names of objects, addresses, and the servers' own words are in it: read it before you send it";

/// What is in it so far.
#[derive(Default)]
struct Bundle {
    files: Vec<File>,
    /// What is missing, and why.
    missing: Vec<String>,
}

impl Bundle {
    fn add(&mut self, name: &'static str, mut text: String) {
        if text.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|&end| text.is_char_boundary(end));
            text.truncate(end.unwrap_or_default());
            text += "\n";
            self.missing.push(format!("{name}: cut after {LONGEST} bytes"));
        }
        self.files.push(File { name, text });
    }

    /// Adds it, or why it is missing.
    fn add_or_say(&mut self, name: &'static str, text: Result<String, String>) {
        match text {
            Ok(text) => self.add(name, text),
            Err(why) => self.missing.push(format!("{name}: {why}")),
        }
    }

    /// The sentences that say what is in it, and what is not.
    fn contents(&self) -> [String; 3] {
        let names: Vec<&str> = self.files.iter().map(|file| file.name).collect();
        let missing = match &*self.missing {
            [] => "nothing".to_owned(),
            some => some.join("; "),
        };
        [
            format!("it has {}", names.join(", ")),
            format!("missing: {missing}"),
            format!("left out: {LEFT_OUT}"),
        ]
    }
}

/// Writes the archive, and says what is in it. The exit code is that of `check`.
pub async fn bundle(settings: Settings, options: BundleOptions) -> ExitCode {
    let now = logger::since_1970();
    let output = match &*options.output {
        "-" => Output::Stdout,
        "" => Output::File(PathBuf::from(name_at(&times::date_and_time(now)))),
        path => Output::File(PathBuf::from(path)),
    };
    if let Err(error) = output.check() {
        return cannot_write(&options.output, &error);
    }
    let checked = check::find(&settings).await;
    let mut bundle = Bundle::default();
    bundle.add("version.txt", version::text("edge-syncer"));
    bundle.add(
        "flags.txt",
        given::text(&options.flags, |name| std::env::var(name).ok()),
    );
    bundle.add("check.txt", checked.points.text(LogFormat::Text));
    of_running(&mut bundle, &options.address);
    of_sides(&mut bundle, &checked).await;
    of_configs(&mut bundle, &settings, &checked).await;
    let [has, missing, left_out] = bundle.contents();
    bundle.add("README.txt", [&*has, &missing, &left_out, ""].join("\n"));
    let written = archive::packed(&bundle.files, now.as_secs()).and_then(|packed| output.write(packed));
    if let Err(error) = written {
        return cannot_write(&options.output, &error);
    }
    if let Output::File(path) = &output {
        cli::say(&format!("written: {}", path.display()));
    }
    for line in [has, missing, left_out] {
        cli::say(&line);
    }
    cli::code_of_points(checked.points.worst())
}

fn cannot_write(path: &str, error: &std::io::Error) -> ExitCode {
    cli::refuse(&format!("-o {path:?}: cannot be written: {error}"))
}

/// The name of an archive that was made at this time.
fn name_at(time: &str) -> String {
    let digits: String = time.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("edge-syncer-bundle-{digits}.tar.gz")
}

/// What a running syncer says.
fn of_running(bundle: &mut Bundle, address: &str) {
    for (name, path) in [("page.html", "/"), ("metrics.txt", "/metrics")] {
        let text = match address {
            "" => Err("--from-address was not given".to_owned()),
            address => running::ask(address, path).map_err(|why| format!("{address}: {why}")),
        };
        bundle.add_or_say(name, text);
    }
}

/// What both servers are.
async fn of_sides(bundle: &mut Bundle, checked: &Checked) {
    let sides = [&checked.hub, &checked.edge];
    let names = [
        ["hub-version.json", "hub-types.txt"],
        ["edge-version.json", "edge-types.txt"],
    ];
    for (side, [version, types]) in sides.into_iter().zip(names) {
        let Some(cluster) = side else {
            for name in [version, types] {
                bundle.add_or_say(name, Err("the side is not reached, see check.txt".to_owned()));
            }
            continue;
        };
        bundle.add_or_say(
            version,
            read(cluster, "/version").await.map(|answer| answer.to_string()),
        );
        let served = read(cluster, "/apis").await;
        bundle.add_or_say(types, served.map(|answer| texts::groups(&answer)));
    }
}

async fn read(cluster: &Cluster, path: &str) -> Result<Value, String> {
    let answer = cluster.get_path(path).await.map_err(|error| error.to_string())?;
    serde_json::from_slice(&answer).map_err(|_| "the answer is not JSON".to_owned())
}

/// The configs with their statuses, what fails by these, and what the configs resolve to.
async fn of_configs(bundle: &mut Bundle, settings: &Settings, checked: &Checked) {
    let names = ["configs.json", "failing.txt", "plan.txt"];
    let Some(hub) = &checked.hub else {
        for name in names {
            bundle.add_or_say(name, Err("the hub is not reached, see check.txt".to_owned()));
        }
        return;
    };
    let configs = list(hub).await;
    let failing = configs
        .as_ref()
        .map(|configs| texts::failing(configs))
        .map_err(Clone::clone);
    bundle.add_or_say(names[0], configs.map(texts::configs));
    bundle.add_or_say(names[1], failing);
    let sync_target = settings.sync_target();
    let view = ask::view(settings, &sync_target);
    let plan = match &checked.found {
        Some(found) => Ok(texts::plan(&found.plan, true)),
        None if checked.edge.is_some() => Err("a side does not say what it serves, see check.txt".to_owned()),
        None => match survey(hub, None, &view).await {
            Ok(found) => Ok(texts::plan(&found.plan, false)),
            Err((_, error)) => Err(error.to_string()),
        },
    };
    bundle.add_or_say(names[2], plan);
}

/// The configs of the hub.
async fn list(hub: &Rc<Cluster>) -> Result<Vec<Value>, String> {
    let mut configs = Vec::new();
    for kind in ConfigKind::ALL {
        let mut listing = hub.list(ListRequest::of_all(kind.resource_type(), Content::Full));
        loop {
            match listing.next().await {
                Ok(Some(config)) if configs.len() < CONFIGS => {
                    configs.push(serde_json::from_slice(&config).unwrap_or_default());
                }
                Ok(_) => break,
                // One of the two kinds is enough.
                Err(error) if error.is_type_not_served() => break,
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    Ok(configs)
}
