//! The manual page and the completions have what the program has.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::help::{self, Help};
use crate::{complete, man};

const PROGRAM: &str = env!("CARGO_BIN_EXE_edge-syncer");

fn all() -> Vec<Help> {
    let all = help::of_program(Path::new(PROGRAM));
    assert!(all.iter().any(|help| help.command == "run"));
    let count: usize = all.iter().map(|help| help.flags().count()).sum();
    assert!(count > 30, "only {count} flags were found");
    all
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
fn the_manual_page_names_every_flag_command_and_variable() {
    let all = all();
    let page = man::page(&all, "November 24, 2026");
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
    if let Some((is_good, said)) = checked("mandoc", &["-Tlint", "-Wstyle"], &page) {
        assert!(is_good && said.is_empty(), "{said}");
    }
}

#[test]
fn the_completions_name_every_flag_and_command() {
    let all = all();
    let completions = complete::of(&all);
    for help in &all {
        let names = help.flags().map(|flag| flag.names());
        let complete = names.filter(|names| names.iter().any(|name| name.starts_with("--")));
        for name in complete.flatten() {
            let long = name.trim_start_matches('-');
            let is_long = name.starts_with("--");
            assert!(has_word(&completions.bash, name), "bash: {name}");
            assert!(
                completions.zsh.contains(&format!("{name}[")) || has_word(&completions.zsh, name),
                "zsh: {name}"
            );
            let fish = if is_long {
                format!("-l {long}")
            } else {
                format!("-s {long}")
            };
            let quoted = fish.replace(' ', " '") + "'";
            assert!(
                completions.fish.contains(&fish) || completions.fish.contains(&quoted),
                "fish: {name}"
            );
        }
        for word in help.command.split(' ').filter(|word| !word.is_empty()) {
            for text in [&completions.bash, &completions.zsh, &completions.fish] {
                assert!(text.contains(word), "{word}");
            }
        }
    }
    for (shell, text) in [
        ("bash", &completions.bash),
        ("zsh", &completions.zsh),
        ("fish", &completions.fish),
    ] {
        if let Some((is_good, said)) = checked(shell, &["-n"], text) {
            assert!(is_good && said.is_empty(), "{shell}: {said}");
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split([' ', '"', '\'', '{', '}', ',', '\n', '(', ')', '|'])
        .any(|found| found == word)
}

/// A shell that has read the completions offers the flags that begin so.
#[test]
fn bash_completes_a_flag_of_run() {
    let text = complete::of(&all()).bash;
    let script = text
        + "\nCOMP_WORDS=(edge-syncer run --from-k) COMP_CWORD=2\n_edge-syncer\necho \"${COMPREPLY[@]}\"\n\
           COMP_WORDS=(edge-syncer ru) COMP_CWORD=1\n_edge-syncer\necho \"${COMPREPLY[@]}\"\n";
    let (is_good, said) = checked("bash", &[], &script).expect("bash runs the scripts here");
    assert!(is_good);
    assert_eq!(said, "--from-kubeconfig\nrun\n");
}
