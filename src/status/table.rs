//! Text for a terminal: tables that fit, lines that are wrapped, and nothing that a terminal would obey.

use std::fmt::Write as _;

use crate::cli::Screen;

/// Between two columns.
const GAP: usize = 2;
/// No column is made narrower to fit.
const NARROWEST: usize = 10;

/// Colours of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Red = 31,
    Green = 32,
    Yellow = 33,
}

/// A cell, with its colour.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl Cell {
    pub(super) fn coloured(text: &str, colour: Colour) -> Self {
        Self {
            colour: Some(colour),
            ..Self::from(text)
        }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: shown(text.as_ref()),
            colour: None,
        }
    }
}

/// A head, and whether it may be cut to fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) head: &'static str,
    pub(super) may_be_cut: bool,
}

/// The heads and the rows; what may be cut is cut until a line fits.
pub(super) fn table(columns: &[Column], rows: &[Vec<Cell>], screen: Screen) -> String {
    let length = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = columns.iter().map(|column| column.head.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = length(&cell.text).max(*width);
        }
    }
    let gaps = GAP * columns.len().saturating_sub(1);
    while screen
        .width
        .is_some_and(|most| widths.iter().sum::<usize>() + gaps > most)
    {
        let may_be_cut = |(at, width): &(usize, &mut usize)| columns[*at].may_be_cut && **width > NARROWEST;
        let widest = widths.iter_mut().enumerate().filter(may_be_cut);
        let Some((_, widest)) = widest.max_by_key(|(at, width)| (**width, usize::MAX - at)) else {
            break;
        };
        *widest -= 1;
    }
    let heads: Vec<Cell> = columns.iter().map(|column| column.head.into()).collect();
    let mut text = String::new();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            let padded = format!("{:<width$}", cut(&cell.text, *width), width = *width);
            match cell.colour.filter(|_| screen.has_colours) {
                Some(colour) => _ = write!(line, "\x1b[{}m{padded}\x1b[0m", colour as u8),
                None => line.push_str(&padded),
            }
            line.push_str(&" ".repeat(GAP));
        }
        text.extend([line.trim_end(), "\n"]);
    }
    text
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

/// A paragraph, indented so far, further lines two more.
pub(super) fn wrapped(text: &str, indent: usize, width: Option<usize>) -> String {
    let text = shown(text);
    let (mut lines, mut line) = (String::new(), " ".repeat(indent));
    let mut is_empty = true;
    for word in text.split(' ') {
        let is_full = width.is_some_and(|width| line.chars().count() + 1 + word.chars().count() > width);
        if is_full && !is_empty {
            lines.extend([&line, "\n"]);
            line = " ".repeat(indent + 2);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines + &line + "\n"
}

/// A text as it may be written to a terminal: what would move the cursor, colour, hide or turn round what others read
/// is written out.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for one in text.chars() {
        if is_obeyed(one) {
            shown.extend(one.escape_default());
        } else {
            shown.push(one);
        }
    }
    shown
}

/// True for control characters, and for those that have no width or change the direction of a text.
fn is_obeyed(one: char) -> bool {
    one.is_control()
        || matches!(one, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The same of JSON, in whose texts JSON itself leaves some of them.
pub(super) fn shown_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for one in json.chars() {
        if one != '\n' && is_obeyed(one) {
            let _ = write!(shown, "\\u{:04x}", u32::from(one));
        } else {
            shown.push(one);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column {
            head: "CONFIG",
            may_be_cut: true,
        },
        Column {
            head: "STATE",
            may_be_cut: false,
        },
        Column {
            head: "WHY",
            may_be_cut: true,
        },
    ];

    fn screen(width: Option<usize>) -> Screen {
        Screen {
            width,
            has_colours: false,
        }
    }

    #[test]
    fn a_table_is_cut_to_fit_and_else_as_wide_as_it_is() {
        let long = "x".repeat(60);
        let rows = vec![
            vec![long.as_str().into(), "failing".into(), "because of that".into()],
            vec!["a".into(), "synced".into(), Cell::default()],
        ];
        let whole = format!(
            "CONFIG{gap}  STATE    WHY\n{long}  failing  because of that\na{}  synced\n",
            " ".repeat(59),
            gap = " ".repeat(54)
        );
        assert_eq!(table(&COLUMNS, &rows, screen(None)), whole);
        assert_eq!(table(&COLUMNS, &rows, screen(Some(200))), whole);
        let cut = table(&COLUMNS, &rows, screen(Some(80)));
        assert!(cut.lines().all(|line| line.chars().count() <= 80), "{cut}");
        assert!(cut.contains("x…  failing  because of that\n"), "{cut}");
        // What may not be cut stays, however narrow the screen is.
        assert!(table(&COLUMNS, &rows, screen(Some(10))).contains("failing"));
    }

    #[test]
    fn colours_do_not_move_columns() {
        let rows = vec![vec!["a".into(), Cell::coloured("failing", Colour::Red), "b".into()]];
        let coloured = Screen {
            width: None,
            has_colours: true,
        };
        let found = table(&COLUMNS, &rows, coloured);
        assert!(found.ends_with("a       \x1b[31mfailing\x1b[0m  b\n"), "{found:?}");
        assert!(!table(&COLUMNS, &rows, screen(None)).contains('\x1b'));
    }

    #[test]
    fn paragraphs_are_wrapped_between_words() {
        let text = "one two three https://example.org/a/long/address four";
        assert_eq!(wrapped(text, 2, None), format!("  {text}\n"));
        assert_eq!(
            wrapped(text, 2, Some(16)),
            "  one two three\n    https://example.org/a/long/address\n    four\n"
        );
    }

    #[test]
    fn nothing_reaches_a_terminal_that_it_would_obey() {
        for (text, expected) in [
            ("plain ä", "plain ä"),
            ("\x1b[2J\x07", "\\u{1b}[2J\\u{7}"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            (
                "a\u{202e}b\u{200b}\u{2066}\u{feff}",
                "a\\u{202e}b\\u{200b}\\u{2066}\\u{feff}",
            ),
        ] {
            assert_eq!(shown(text), expected);
            let json = serde_json::to_string(text).unwrap();
            let safe = shown_json(&json);
            assert!(!safe.chars().any(is_obeyed), "{safe}");
            assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
        }
    }
}
