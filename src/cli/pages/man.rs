//! The manual page, in mdoc.

use std::fmt::Write as _;

use super::{Entry, Help, Section};

/// What mdoc wants of lines of text.
const WIDTH: usize = 78;

/// The page of the program. `date` is as `2026-11-24`.
pub(super) fn page(all: &[Help], date: &str) -> String {
    let Some((whole, commands)) = all.split_first() else {
        return String::new();
    };
    let mut page = format!(
        ".Dd {}\n.Dt EDGE-SYNCER 1\n.Os\n.Sh NAME\n.Nm edge-syncer\n.Nd keeps an edge cluster synced with a hub\n\
         .Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar flags\n.Sh DESCRIPTION\n",
        written_out(date)
    );
    let mut paragraphs = whole.sections.iter().flat_map(|section| &section.paragraphs);
    add_text(&mut page, paragraphs.next().map_or("", String::as_str));
    page += ".Pp\nThe commands are as follows:\n.Bl -tag -width Ds\n";
    for help in commands {
        let _ = writeln!(page, ".It Cm {}", escaped(&help.command));
        add_text(&mut page, &help.summary);
    }
    page += ".El\n";
    for paragraph in paragraphs {
        page += ".Pp\n";
        add_text(&mut page, paragraph);
    }
    let mut described: Vec<&str> = Vec::new();
    for help in commands.iter().filter(|help| help.flags().next().is_some()) {
        let _ = writeln!(page, ".Sh FLAGS OF {}", escaped(&help.command.to_uppercase()));
        let _ = writeln!(page, ".Dl {}", escaped(&help.usage));
        add_sections(&mut page, help, &described);
        described.extend(help.flags().map(|flag| flag.name.as_str()));
    }
    for (head, title) in [("Environment", "ENVIRONMENT"), ("Example", "EXAMPLES")] {
        let _ = writeln!(page, ".Sh {title}");
        for help in commands {
            for section in help.sections.iter().filter(|section| section.head == head) {
                add_end(&mut page, section);
            }
        }
    }
    page += ".Sh SEE ALSO\nThe documentation is in the folder\n.Pa docs\nof the source.\n";
    page
}

/// `November 24, 2026`, as mdoc wants it, of `2026-11-24`. What is no day remains.
fn written_out(date: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let parts: Vec<&str> = date.split('-').collect();
    if let &[year, month, day] = &parts[..]
        && let Ok(number) = month.parse::<usize>()
        && let Some(name) = MONTHS.get(number.wrapping_sub(1))
    {
        return format!("{name} {}, {year}", day.trim_start_matches('0'));
    }
    date.to_owned()
}

/// The flags of a command by section, but for those of another command that come before.
fn add_sections(page: &mut String, help: &Help, described: &[&str]) {
    for section in &help.sections {
        if matches!(section.head.as_str(), "Environment" | "Example") {
            continue;
        }
        let is_new = |entry: &&Entry| !described.contains(&entry.name.as_str());
        let entries: Vec<&Entry> = section.entries.iter().filter(is_new).collect();
        if !section.head.is_empty() && (!entries.is_empty() || !section.paragraphs.is_empty()) {
            let _ = writeln!(page, ".Ss {}", escaped(&section.head));
        }
        let mut is_first = !section.head.is_empty();
        let paragraphs = section.paragraphs.iter();
        if section.head.is_empty() {
            paragraphs
                .clone()
                .for_each(|text| add_paragraph(page, text, &mut is_first));
        }
        let has_entries = !entries.is_empty();
        if has_entries {
            *page += ".Bl -tag -width Ds\n";
            for entry in entries {
                let _ = writeln!(page, ".It {}", term(entry));
                add_text(page, &entry.text);
            }
            *page += ".El\n";
        }
        if !section.head.is_empty() {
            is_first = !has_entries;
            paragraphs.for_each(|text| add_paragraph(page, text, &mut is_first));
        }
    }
}

fn add_paragraph(page: &mut String, text: &str, is_first: &mut bool) {
    if !*is_first {
        *page += ".Pp\n";
    }
    *is_first = false;
    add_text(page, text);
}

/// The environment or the examples.
fn add_end(page: &mut String, section: &Section) {
    if !section.entries.is_empty() {
        *page += ".Bl -tag -width Ds\n";
        for entry in &section.entries {
            let _ = writeln!(page, ".It Ev {}", escaped(&entry.name.replace(", ", " , ")));
            add_text(page, &entry.text);
        }
        *page += ".El\n";
    }
    for paragraph in &section.paragraphs {
        if paragraph.starts_with("edge-syncer ") {
            let _ = writeln!(page, ".Dl {}", escaped(paragraph));
        } else {
            *page += ".Pp\n";
            add_text(page, paragraph);
        }
    }
}

/// `Fl v , Fl \-v Ar NUMBER`, or `Cm check` for a command of the command.
fn term(entry: &Entry) -> String {
    let name = |name: &&str| format!("Fl {}", escaped(&name[1..]));
    let names: Vec<String> = entry.names().iter().map(name).collect();
    if names.is_empty() {
        return format!("Cm {}", escaped(&entry.name));
    }
    let value = entry.value().map(|value| format!(" Ar {}", escaped(value)));
    names.join(" , ") + &value.unwrap_or_default()
}

/// A text, each sentence in a line of its own, as mdoc wants it.
fn add_text(page: &mut String, text: &str) {
    let text = text.replace(". ", ".\n").replace(": ", ":\n");
    for sentence in text.lines().filter(|line| !line.is_empty()) {
        let mut line = String::new();
        for word in sentence.split(' ').map(escaped) {
            if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
                add_line(page, &line);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += &word;
        }
        add_line(page, &line);
    }
}

/// What begins as a request is none.
fn add_line(page: &mut String, line: &str) {
    let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
    let _ = writeln!(page, "{guard}{line}");
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_command_have_their_names() {
        let all = super::super::read(|args| {
            let help = match args {
                ["help"] => "Usage: edge-syncer <command>\n\nCommands:\n  init        initialize\n",
                ["init", "--help"] => {
                    "Usage: edge-syncer init [flags]\n\nFlags:\n  -h, --help                  print this text\n\n\
                     Commands:\n  check                       say whether it works\n"
                }
                _ => "",
            };
            help.to_owned()
        });
        let page = page(&all, "2026-11-24");
        assert!(page.contains("\n.It Cm check\nsay whether it works\n"), "{page}");
    }

    #[test]
    fn a_date_is_written_out() {
        for (date, expected) in [
            ("2026-11-24", "November 24, 2026"),
            ("2027-01-09", "January 9, 2027"),
            ("unknown", "unknown"),
            ("2027-00-09", "2027-00-09"),
            ("2027-13-09", "2027-13-09"),
        ] {
            assert_eq!(written_out(date), expected);
        }
    }
}
