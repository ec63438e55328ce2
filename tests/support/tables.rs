//! Tables, as kubectl prints them.

use super::Server;

/// The columns of configs of both kinds.
pub const OF_CONFIGS: [&str; 7] = ["NAME", "READY", "SYNCED", "FAILING", "HELD", "HEARTBEAT", "AGE"];
/// The columns of edges.
pub const OF_EDGES: [&str; 7] = ["NAME", "READY", "SYNCED", "FAILING", "HELD", "HEARTBEAT", "VERSION"];

/// A table: the cells of its lines, of which the first are the heads.
pub type Table = Vec<Vec<String>>;

/// What kubectl prints of several types: a table for each, with an empty line between.
pub fn tables(text: &str) -> Vec<Table> {
    text.split("\n\n").map(table).collect()
}

/// Cells begin below their heads, which have one word each. Some may be empty.
fn table(text: &str) -> Table {
    let heads = text.lines().next().unwrap_or_default();
    let is_start = |at: usize| {
        heads.is_char_boundary(at) && !heads[at..].starts_with(' ') && (at == 0 || heads[..at].ends_with(' '))
    };
    let starts: Vec<usize> = (0..heads.len()).filter(|at| is_start(*at)).collect();
    let cell = |line: &str, column: usize| {
        let end = starts.get(column + 1).map_or(line.len(), |end| line.len().min(*end));
        line.get(starts[column]..end).unwrap_or_default().trim().to_owned()
    };
    let cells = |line| (0..starts.len()).map(|column| cell(line, column)).collect();
    text.lines().map(cells).collect()
}

/// The tables that kubectl prints with these arguments.
pub fn printed(at: &Server, args: &[&str]) -> Vec<Table> {
    tables(&at.kubectl(args))
}

/// The cells of an object, by its name.
pub fn cells<'a>(table: &'a Table, name: &str) -> Option<&'a [String]> {
    table.iter().find(|words| words[0] == name).map(Vec::as_slice)
}

/// How many seconds an age has, such as `2m5s`; `None` for a time that is not known.
pub fn seconds(age: &str) -> Option<u64> {
    let (mut sum, mut number) = (None, None);
    for letter in age.chars() {
        if let Some(digit) = letter.to_digit(10) {
            number = Some(number.unwrap_or(0) * 10 + u64::from(digit));
            continue;
        }
        let unit = match letter {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return None,
        };
        sum = Some(sum.unwrap_or(0) + number.take()? * unit);
    }
    sum.filter(|_| number.is_none())
}
