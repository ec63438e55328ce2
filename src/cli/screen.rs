//! What tables are printed to: how wide it is, and whether it has colours.

use std::env;
use std::io::{self, IsTerminal as _};

/// A terminal that is narrower breaks lines anyway.
const NARROWEST: usize = 40;

/// Where a table is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// How many columns it has; `None` for a file or a pipe, of which nobody has said how wide it is.
    pub width: Option<usize>,
    /// It shows colours, and they are wanted.
    pub has_colours: bool,
}

impl Screen {
    /// That of stdout.
    pub fn of_stdout() -> Self {
        let columns = || {
            let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
            Some(usize::from(size.ws_col))
        };
        let is_terminal = io::stdout().is_terminal();
        Self::of(
            |name| env::var(name).ok(),
            is_terminal,
            is_terminal.then(columns).flatten(),
        )
    }

    fn of(variable: impl Fn(&str) -> Option<String>, is_terminal: bool, columns: Option<usize>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let given = set("COLUMNS").and_then(|text| text.parse().ok());
        let width = given.or(columns).filter(|columns| *columns > 0);
        let is_plain = set("NO_COLOR").is_some() || set("TERM").is_some_and(|terminal| terminal == "dumb");
        Self {
            width: width.map(|columns: usize| columns.max(NARROWEST)),
            has_colours: is_terminal && !is_plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_that_of_the_terminal_unless_columns_says_another_and_colours_are_for_terminals_alone() {
        for (variables, is_terminal, columns, width, has_colours) in [
            (&[][..], true, Some(80), Some(80), true),
            (&[], true, Some(200), Some(200), true),
            (&[("COLUMNS", "120")], true, Some(80), Some(120), true),
            (&[("COLUMNS", "120")], false, None, Some(120), false),
            (&[("COLUMNS", "wide")], true, Some(80), Some(80), true),
            (&[("COLUMNS", "0")], false, None, None, false),
            (&[("COLUMNS", "3")], false, None, Some(NARROWEST), false),
            // A serial line may not know.
            (&[], true, Some(0), None, true),
            (&[], false, None, None, false),
            (&[("NO_COLOR", "1")], true, Some(80), Some(80), false),
            (&[("NO_COLOR", "")], true, Some(80), Some(80), true),
            (&[("TERM", "dumb")], true, Some(80), Some(80), false),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let expected = Screen { width, has_colours };
            assert_eq!(Screen::of(variable, is_terminal, columns), expected, "{variables:?}");
        }
    }
}
