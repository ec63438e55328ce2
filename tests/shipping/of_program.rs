//! The manual page and the completions have what the program has.

use std::io::Write as _;
use std::process::{Command, Stdio};

use edge_syncer::cli::pages::{Help, read};

const PROGRAM: &str = env!("CARGO_BIN_EXE_edge-syncer");

fn all() -> Vec<Help> {
    let all = read(said);
    assert!(all.iter().any(|help| help.command == "run"));
    let count: usize = all.iter().map(|help| help.flags().count()).sum();
    assert!(count > 30, "only {count} flags were found");
    all
}

/// What the program prints for these arguments.
fn said(args: &[&str]) -> String {
    let output = Command::new(PROGRAM).args(args).output().expect("it can be started");
    assert!(output.status.success(), "{args:?} fails");
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

/// What a program says to a text, if that program is here.
fn checked(program: &str, args: &[&str], text: &str) -> Option<(bool, String)> {
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        // Written past the capture of tests, so that nobody takes it for checked.
        let _ = writeln!(std::io::stderr(), "{program} is not here, so that it did not check");
        return None;
    };
    let mut input = child.stdin.take().expect("it was piped");
    input.write_all(text.as_bytes()).expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it was started");
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}

#[test]
#[cfg(all(feature = "init", feature = "publish"))]
fn the_commands_of_the_roles_are_known_too() {
    let all = all();
    for (command, flag) in [
        ("init", "--config-workspace"),
        ("init check", "--config-workspace"),
        ("init render", "--cluster-path"),
        ("publish", "--apiexportendpointslice-ref"),
        ("publish check", "--apiexportendpointslice-ref"),
        ("publish render", "--agent-name"),
    ] {
        let help = all.iter().find(|help| help.command == command);
        let help = help.unwrap_or_else(|| panic!("{command} is not known"));
        assert!(
            help.flags().any(|known| known.names().contains(&flag)),
            "{flag} of {command}"
        );
    }
}

#[test]
fn the_manual_page_names_every_flag_command_and_variable() {
    let all = all();
    let page = said(&["man"]);
    let plain = page.replace("\\-", "-");
    for help in &all {
        assert!(plain.contains(&format!(".It Cm {}\n", help.command)) || help.command.is_empty());
        for entry in help.sections.iter().flat_map(|section| &section.entries) {
            for name in entry.names() {
                let named = format!("Fl {}", &name[1..]);
                let found = plain.lines().filter(|line| line.starts_with(".It "));
                assert!(
                    found.flat_map(|line| line.split(" , ")).any(|item| {
                        let item = item.trim_start_matches(".It ");
                        item == named || item.starts_with(&format!("{named} "))
                    }),
                    "{} of {}",
                    name,
                    help.command
                );
            }
        }
        for variable in help
            .section("Environment")
            .into_iter()
            .flat_map(|section| &section.entries)
        {
            assert!(
                plain.contains(&format!(".It Ev {}", variable.name.replace(", ", " , "))),
                "{}",
                variable.name
            );
        }
    }
    // The date of a build that does not know its commit.
    let dated = page.replacen(".Dd unknown\n", ".Dd November 24, 2026\n", 1);
    if let Some((is_good, said)) = checked("mandoc", &["-Tlint", "-Wstyle"], &dated) {
        assert!(is_good && said.is_empty(), "{said}");
    }
    // As a person reads it. What is wrong with it begins with the name of a program.
    let as_text = ["-mdoc", "-Tascii", "-ww", "-P-cbou"];
    if let Some((is_good, shown)) = checked("groff", &as_text, &dated) {
        assert!(is_good && !shown.contains("troff"), "{shown}");
        for text in ["--from-kubeconfig FILE", "FLAGS OF GEN RBAC", "November 24, 2026"] {
            assert!(shown.contains(text), "{text}: {shown}");
        }
    }
}

#[test]
fn the_completions_name_every_flag_and_command() {
    let all = all();
    let [bash, zsh, fish] = ["bash", "zsh", "fish"].map(|shell| said(&["completion", shell]));
    for help in &all {
        let names = help.flags().map(|flag| flag.names());
        let complete = names.filter(|names| names.iter().any(|name| name.starts_with("--")));
        for name in complete.flatten() {
            let long = name.trim_start_matches('-');
            let is_long = name.starts_with("--");
            assert!(has_word(&bash, name), "bash: {name}");
            assert!(zsh.contains(&format!("{name}[")) || has_word(&zsh, name), "zsh: {name}");
            let flag = if is_long {
                format!("-l {long}")
            } else {
                format!("-s {long}")
            };
            let quoted = flag.replace(' ', " '") + "'";
            assert!(fish.contains(&flag) || fish.contains(&quoted), "fish: {name}");
        }
        for word in help.command.split(' ').filter(|word| !word.is_empty()) {
            for text in [&bash, &zsh, &fish] {
                assert!(text.contains(word), "{word}");
            }
        }
    }
    for (shell, text) in [("bash", &bash), ("zsh", &zsh), ("fish", &fish)] {
        if let Some((is_good, said)) = checked(shell, &["-n"], text) {
            assert!(is_good && said.is_empty(), "{shell}: {said}");
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split([' ', '"', '\'', '{', '}', ',', '\n', '(', ')', '|'])
        .any(|found| found == word)
}

/// A shell that has read the completions offers the commands and flags that begin so.
#[test]
fn shells_complete_commands_and_flags() {
    let script = said(&["completion", "bash"])
        + "\nCOMP_WORDS=(edge-syncer run --from-k) COMP_CWORD=2\n_edge-syncer\necho \"${COMPREPLY[@]}\"\n\
           COMP_WORDS=(edge-syncer ru) COMP_CWORD=1\n_edge-syncer\necho \"${COMPREPLY[@]}\"\n";
    let (is_good, offered) = checked("bash", &[], &script).expect("bash runs the scripts here");
    assert!(is_good);
    assert_eq!(offered, "--from-kubeconfig\nrun\n");
    let script = said(&["completion", "fish"])
        + "\nfor line in 'run --from-k' 'ru'; complete --do-complete \"edge-syncer $line\" | string split -f 1 \\t; end\n";
    if let Some((is_good, offered)) = checked("fish", &["--no-config"], &script) {
        assert!(is_good);
        assert_eq!(offered, "--from-kubeconfig\nrun\n");
    }
}
