//! The tables of flags, environment variables and exit codes.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::Command;

use crate::pages::{Names, Page, files, plain, same, spans};
use crate::support::story::SOON;
use crate::support::{Syncer, process::Folder};

const PAGE: &str = "docs/reference/flags.md";

/// How the paragraph about the flags begins that are accepted without effect, in the help and in the page.
const WITHOUT_EFFECT: &str = "The other logging flags of the Go syncer";

/// A flag, as the help or the page has it.
#[derive(Debug, Default, PartialEq)]
struct Flag {
    group: String,
    default: String,
    may_be_repeated: bool,
}

/// What `run --help` prints.
fn help() -> String {
    help_of("run")
}

fn help_of(command: &str) -> String {
    let output = Command::new(Syncer::program())
        .args([command, "--help"])
        .output()
        .expect("the binary can be started");
    String::from_utf8(output.stdout).expect("the help is UTF-8")
}

/// The flags of the help, by all their names.
fn flags_of_help() -> BTreeMap<String, Flag> {
    let help = help();
    // A paragraph about the flags without effect may have lines that begin with one.
    let (before, rest) = help.split_once(WITHOUT_EFFECT).expect("the help has that");
    let (_, after) = rest.split_once("\n\n").expect("the paragraph ends");
    flags_in_help(&[before, after].concat())
}

/// The flags of a help text without other lines that begin with one.
fn flags_in_help(help: &str) -> BTreeMap<String, Flag> {
    let mut group = "";
    let mut texts: Vec<(String, &str, String)> = Vec::new();
    for line in help.lines() {
        if let Some(head) = line.strip_suffix(':').filter(|head| !head.starts_with(' ')) {
            group = head;
        } else if line.starts_with("  -") {
            let words = line.split_whitespace().map(|word| word.trim_end_matches(','));
            let names: Vec<&str> = words.take_while(|word| word.starts_with('-')).collect();
            texts.push((names.join(" "), group, line.to_owned()));
        } else if let Some((_, _, text)) = texts.last_mut().filter(|_| line.starts_with("        ")) {
            text.extend([" ", line.trim()]);
        }
    }
    let flag = |(names, group, text): (String, &str, String)| {
        let (_, note) = text.split_once("(default: ").unwrap_or_default();
        let default = note.split([';', ')']).next().unwrap_or_default();
        let default = if text.contains("(required") {
            "required"
        } else {
            default
        };
        let flag = Flag {
            group: group.to_owned(),
            default: default.to_owned(),
            may_be_repeated: text.ends_with("repeatable)"),
        };
        (names, flag)
    };
    texts.into_iter().map(flag).collect()
}

/// The flags of the page, by all their names.
fn flags_of_page(path: &str) -> BTreeMap<String, Flag> {
    let flag = |row: &crate::pages::Row| {
        let flag = Flag {
            group: row.heading.clone(),
            default: plain(&row.cells[1]),
            may_be_repeated: row.cells[2].ends_with("May be repeated"),
        };
        (spans(&row.cells[0]).join(" "), flag)
    };
    Page::open(path).rows("flag").iter().map(flag).collect()
}

fn names<T>(of: &BTreeMap<String, T>) -> Names {
    of.keys().cloned().collect()
}

#[test]
fn the_commands_are_those_of_the_help() {
    let help = help_of("help");
    let (_, section) = help.split_once("\nCommands:\n").expect("the help has that");
    let section = section.split("\n\n").next().unwrap_or_default();
    let lines = section.lines().filter_map(|line| line.trim().split_once("  "));
    let in_help = lines.map(|(name, _)| name.to_owned()).collect();
    let rows = Page::open(PAGE).rows("command");
    let in_page = rows.iter().flat_map(|row| spans(&row.cells[0]));
    let mut in_page: Names = in_page.map(|name| name.trim_end_matches(" SHELL").to_owned()).collect();
    // In binaries of the feature.
    for role in ["init", "publish"] {
        if !help.contains(&format!("\n  {role} ")) {
            in_page.remove(role);
        }
    }
    same("commands", &in_page, &in_help);
}

#[test]
fn the_flags_are_those_of_the_help_with_their_defaults() {
    let (page, help) = (flags_of_page(PAGE), flags_of_help());
    same("flags", &names(&page), &names(&help));
    for (name, in_help) in help {
        let in_page = &page[&name];
        // The page has the last two groups in one table.
        let group = match in_help.group.as_str() {
            "Logging" | "Others" => "Logging and others",
            group => group,
        };
        assert_eq!(in_page.group, group, "the group of {name}");
        assert_eq!(
            in_page.may_be_repeated, in_help.may_be_repeated,
            "whether {name} may be repeated"
        );
        let default = &in_page.default;
        let is_it = match in_help.default.as_str() {
            "" => matches!(default.as_str(), "none" | "all" | "off" | ""),
            of_help => of_help == default || of_help.starts_with(&format!("{default}, but")) && !default.is_empty(),
        };
        assert!(is_it, "the default of {name}: {default:?} and {:?}", in_help.default);
    }
}

#[test]
fn the_flags_of_gen_are_those_of_its_help_with_their_defaults() {
    let (page, help) = (flags_of_page("docs/reference/gen.md"), flags_in_help(&help_of("gen")));
    same("flags of gen", &names(&page), &names(&help));
    for (name, in_help) in help {
        let in_page = &page[&name];
        assert_eq!(in_page.group, in_help.group, "the group of {name}");
        let may_be_repeated = (in_page.may_be_repeated, in_help.may_be_repeated);
        assert_eq!(may_be_repeated.0, may_be_repeated.1, "whether {name} may be repeated");
        let default = &in_page.default;
        let is_it = match in_help.default.as_str() {
            "" => matches!(default.as_str(), "none" | "off" | ""),
            of_help => default == of_help || default.starts_with(&format!("{of_help};")),
        };
        assert!(is_it, "the default of {name}: {default:?} and {:?}", in_help.default);
    }
}

#[test]
fn the_flags_that_only_prep_has_are_those_of_its_help() {
    let own = |flags: BTreeMap<String, Flag>| -> BTreeMap<String, String> {
        flags.into_iter().map(|(name, flag)| (name, flag.default)).collect()
    };
    let mut help = flags_in_help(&help_of("prep"));
    help.retain(|_, flag| flag.group == "Flags of its own");
    let (page, help) = (own(flags_of_page("docs/prep.md")), own(help));
    let names_of = |flags: &BTreeMap<String, String>| -> Names { flags.keys().cloned().collect() };
    same("flags of prep", &names_of(&page), &names_of(&help));
    for (name, default) in help {
        let expected = if default.is_empty() { "off" } else { &default };
        assert_eq!(page[&name], expected, "the default of {name}");
    }
}

/// The words of a text that are flags.
fn flags_in<'a>(words: impl Iterator<Item = &'a str>) -> Names {
    let words = words.map(|word| word.trim_end_matches([',', '.']));
    words.filter(|word| word.starts_with('-')).map(str::to_owned).collect()
}

#[test]
fn the_logging_flags_without_effect_are_those_of_the_help() {
    let page = Page::open(PAGE);
    let in_page = page.paragraph(WITHOUT_EFFECT);
    let help = help();
    let (_, in_help) = help.split_once(WITHOUT_EFFECT).expect("the help has that");
    let in_help = in_help.split("\n\n").next().unwrap_or_default();
    same(
        "logging flags",
        &flags_in(spans(&in_page).into_iter()),
        &flags_in(in_help.split_whitespace()),
    );
    // And they are what the program takes.
    let mut args: Vec<&str> = vec!["edge-syncer", "run", "--from-kubeconfig=hub", "--sync-target-uid=u"];
    args.extend(spans(&in_page));
    let parsed = edge_syncer::cli::parse(args.iter().flat_map(|&arg| {
        let value = matches!(arg, "--vmodule" | "--stderrthreshold") || arg.starts_with("--log_");
        [arg.into()].into_iter().chain(value.then(|| "0".into()))
    }));
    assert!(parsed.is_ok(), "{parsed:?}");
}

#[test]
fn the_environment_variables_are_those_of_the_help() {
    // What the C library reads, and unit, image and manifests set, is not in the help.
    let of_the_library = ["MALLOC_MMAP_THRESHOLD_".to_owned()];
    let help = help();
    let (_, section) = help.split_once("\nEnvironment:\n").expect("the help has that");
    let section = section.split("\n\n").next().unwrap_or_default();
    let is_variable = |word: &&str| word.len() > 2 && word.chars().all(|letter| letter == '_' || letter.is_uppercase());
    let of_line = |line: &str| {
        let words = line.split_whitespace().map(|word| word.trim_end_matches(','));
        let words: Vec<String> = words.take_while(is_variable).map(str::to_owned).collect();
        words
    };
    let in_help = section.lines().flat_map(of_line).chain(of_the_library).collect();
    let rows = Page::open(PAGE).rows("variable");
    let in_page = rows.iter().flat_map(|row| spans(&row.cells[0])).map(str::to_owned);
    same("environment variables", &in_page.collect(), &in_help);
}

/// Whether the program knows this flag, by whatever name.
fn is_flag(name: &str) -> bool {
    ["run", "gen", "prep"].iter().any(|command| {
        let parsed = edge_syncer::cli::parse(["edge-syncer", command, name].map(Into::into));
        parsed.map_or_else(|error| !error.to_string().contains("unknown flag"), |_| true)
    })
}

#[test]
fn every_flag_that_a_page_names_exists() {
    /// Of kubectl, of `scripts/footprint`, of `check`, `status`, `bundle`, `gen rbac`, `init render` and `publish render`, and
    /// what stands for any flag.
    const OF_OTHERS: [&str; 15] = [
        "--show-managed-fields",
        "--stress",
        "--minutes",
        "--output",
        "--from-address",
        "--side",
        "--allow-escalation",
        "--target",
        "--target-name",
        "--name",
        "--object",
        "--config",
        "--stale-after",
        "--cluster-path",
        "--flag",
    ];
    assert!(is_flag("--qps") && !is_flag("--nonsense"));
    let of_roles: Names = ["docs/init.md", "docs/publish.md"]
        .iter()
        .flat_map(|page| Page::open(page).rows("flag"))
        .map(|row| plain(&row.cells[0]))
        .collect();
    let mut count = 0;
    for path in files("docs", ".md").into_iter().chain(["README.md".to_owned()]) {
        let prose = Page::open(&path).prose();
        // What begins with another word is a command of another program.
        let spans = spans(&prose).into_iter().filter(|span| span.starts_with("--"));
        let words = spans.flat_map(str::split_whitespace);
        for word in words.filter(|word| word.starts_with("--")) {
            let name = word.split('=').next().unwrap_or_default();
            assert!(
                is_flag(name) || of_roles.contains(name) || OF_OTHERS.contains(&name),
                "{path}: {word} is no flag of run, gen, prep, init or publish"
            );
            count += 1;
        }
    }
    assert!(count > 50, "only {count} flags were found");
}

/// How the program ends with these arguments, by itself.
async fn code_of(args: &[&str], env: &[(&str, &str)]) -> Option<i32> {
    Syncer::start_raw(args, env).wait(SOON).await.code()
}

/// A kubeconfig of a server that nobody is.
const NOBODY: &str = "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n\
    clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n";

#[tokio::test]
async fn the_exit_codes_are_those_of_the_help_and_of_the_program() {
    let rows = Page::open("docs/reference/exit-codes.md").rows("code");
    let in_page: Names = rows.iter().map(|row| plain(&row.cells[0])).collect();
    let help = help();
    let (_, line) = help.split_once("\nExit codes: ").expect("the help has that");
    let words = line.split_whitespace();
    let in_help = words.filter(|word| word.parse::<u8>().is_ok()).map(str::to_owned);
    same("exit codes", &in_page, &in_help.collect());
    let meaning = |code: i32| {
        let row = rows.iter().find(|row| plain(&row.cells[0]) == code.to_string());
        row.unwrap_or_else(|| panic!("exit code {code} is not in the table"))
            .cells[1]
            .clone()
    };
    let says = |code: i32, what: &str| {
        assert!(meaning(code).contains(what), "exit code {code} has no {what:?}");
    };

    let folder = Folder::create("codes");
    let file = folder.write("kubeconfig", NOBODY).display().to_string();
    let (hub, edge) = (format!("--from-kubeconfig={file}"), format!("--to-kubeconfig={file}"));
    let good = ["run", &hub, &edge, "--sync-target-uid=u"];
    let with = |more: &'static str| [&good[..], &[more]].concat();
    let none: &[(&str, &str)] = &[];
    for (args, env, expected, what) in [
        (vec!["run", "--help"], none, 0, "printed the help"),
        (vec!["version"], none, 0, "the version"),
        (with("--nonsense"), none, 2, "wrong flags"),
        (
            good.to_vec(),
            &[("EDGE_SYNCER_LOG", "edge_syncer=loud")],
            2,
            "log filter",
        ),
        (with("--filter-file=/nonexistent"), none, 2, "filter file"),
        (good.to_vec(), &[("NAMESPACE", "a/b")], 2, "`NAMESPACE`"),
        (
            vec!["run", "--from-kubeconfig=/nonexistent", "--sync-target-uid=u"],
            none,
            2,
            "kubeconfig",
        ),
        (vec![], none, 2, "no command"),
    ] {
        assert_eq!(code_of(&args, env).await, Some(expected), "{what}");
        says(expected, what);
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = taken.local_addr().expect("it is bound");
    let listen = format!("--listen-address={address}");
    assert_eq!(code_of(&[&good[..], &[&listen]].concat(), none).await, Some(1));
    says(1, "the address of `--listen-address` is taken");
    drop(taken);

    let mut syncer = Syncer::start_raw(&good, none);
    syncer.wait_for_log("127.0.0.1:9", SOON).await;
    let (status, _) = syncer.terminate().await;
    assert_eq!(status.code(), Some(0), "{}", syncer.log());
    says(0, "SIGTERM");
}
