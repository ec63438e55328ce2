//! What was found, for people: a table of the configs at each edge, what is wrong with each, and what to do.

use driver::failures::tried;

use super::report::{Copies, Explained, Followed, OfConfig, Report, State, Verdict};
use super::table::{Cell, Colour, Column, shown, table, wrapped};
use crate::api::status::OfEdge;
use crate::cli::Screen;

/// So many objects are named unless all are asked for.
const NAMED: usize = 20;
/// A reason in fewer columns says nothing.
const ROOM_FOR_WHY: usize = 30;

/// The columns, few and all. Of few, one has conflicts among what fails.
const NARROW: &[&str] = &["CONFIG", "EDGE", "STATE", "SYNCED", "FAILING", "HELD", "SEEN"];
const WIDE: &[&str] = &[
    "CONFIG",
    "EDGE",
    "UID",
    "STATE",
    "SYNCED",
    "PENDING",
    "FAILING",
    "CONFLICTS",
    "HELD",
    "PROBLEMS",
    "SEEN",
];

/// How it is written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Style {
    pub(super) screen: Screen,
    /// All columns and all objects, however wide.
    pub(super) is_wide: bool,
}

impl Style {
    /// Where tables are written: what is wide is not cut.
    fn of_tables(self) -> Screen {
        let width = self.screen.width.filter(|_| !self.is_wide);
        Screen { width, ..self.screen }
    }
}

/// All of it.
pub(super) fn text(report: &Report, style: Style) -> String {
    if !report.objects.is_empty() {
        return report.objects.iter().map(|object| explained(object, style)).collect();
    }
    let mut text = String::new();
    if !report.configs.is_empty() {
        text += &configs(&report.configs, style);
    }
    for config in &report.configs {
        if !config.message.is_empty() {
            text += &wrapped(
                &format!("{}: {}", called(config), config.message),
                0,
                style.screen.width,
            );
        }
        text += &confirmed_by(config.confirm.as_deref(), 2);
        let is_said = |edge: &&Followed| edge.state != State::Synced || !not_all(&edge.says).is_empty();
        for edge in config.edges.iter().filter(is_said) {
            text += &details(config, edge, style);
        }
    }
    if let Some(edge) = &report.edge {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &copies(edge, style);
    }
    text
}

fn called(config: &OfConfig) -> String {
    format!("{}/{}", config.kind, config.name)
}

fn column(head: &'static str) -> Column {
    Column {
        head,
        may_be_cut: matches!(head, "CONFIG" | "EDGE" | "WHY" | "TYPE"),
    }
}

fn configs(all: &[OfConfig], style: Style) -> String {
    let heads = if style.is_wide { WIDE } else { NARROW };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for config in all {
        if config.edges.is_empty() {
            rows.push(heads.iter().map(|head| unfollowed(head, config)).collect());
            reasons.push(config.message.clone());
        }
        for edge in &config.edges {
            let cell = |head: &&str| match *head {
                "FAILING" if !style.is_wide => (edge.says.failing + edge.says.conflicts).to_string().into(),
                head => cell(head, config, edge),
            };
            rows.push(heads.iter().map(cell).collect());
            reasons.push(why(edge, config.generation));
        }
    }
    let columns: Vec<Column> = heads.iter().map(|head| column(head)).collect();
    let screen = style.of_tables();
    let bare = table(&columns, &rows, Screen::default());
    let used = bare.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    // What is said below has no place in a narrow table.
    if screen.width.is_some_and(|width| width < used + ROOM_FOR_WHY) || reasons.iter().all(String::is_empty) {
        return table(&columns, &rows, screen);
    }
    let columns: Vec<Column> = columns
        .into_iter()
        .map(|column| Column {
            may_be_cut: false,
            ..column
        })
        .chain([column("WHY")])
        .collect();
    for (row, reason) in rows.iter_mut().zip(reasons) {
        row.push(reason.into());
    }
    table(&columns, &rows, screen)
}

fn state(word: &str, verdict: Verdict) -> Cell {
    let colour = match verdict {
        Verdict::Synced => Colour::Green,
        Verdict::NotSynced => Colour::Red,
        Verdict::Unknown => Colour::Yellow,
    };
    Cell::coloured(word, colour)
}

/// What stands below a head.
fn cell(head: &str, config: &OfConfig, edge: &Followed) -> Cell {
    let says = &edge.says;
    let number = match head {
        "CONFIG" => return called(config).into(),
        "EDGE" => return edge.edge().into(),
        "UID" => return says.uid.as_str().into(),
        "STATE" => return state(edge.state.word(), edge.verdict),
        "SYNCED" => return format!("{}/{}", says.synced, says.selected).into(),
        "SEEN" => return edge.seconds_ago.map_or_else(|| "never".to_owned(), age).into(),
        "PENDING" => says.pending,
        "FAILING" => says.failing,
        "CONFLICTS" => says.conflicts,
        "HELD" => says.held,
        _ => says.problem_count.max(says.problems.len()),
    };
    number.to_string().into()
}

/// The same of a config of which no edge says anything.
fn unfollowed(head: &str, config: &OfConfig) -> Cell {
    match head {
        "CONFIG" => called(config).into(),
        "STATE" => state("unknown", Verdict::Unknown),
        _ => "-".into(),
    }
}

/// As kubectl writes ages.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The first of all that is wrong, in a few words.
fn why(edge: &Followed, generation: i64) -> String {
    let says = &edge.says;
    match edge.state {
        State::Synced => not_all(says).join("; "),
        State::Stale => match &edge.last_seen {
            Some(at) => format!("not heard of since {at}"),
            None => "never heard of".to_owned(),
        },
        State::Invalid => says
            .problems
            .first()
            .map_or_else(String::new, |problem| format!("{}: {}", problem.field, problem.message)),
        State::Failing => says.failures.first().map_or_else(
            || format!("{} fail", says.failing + says.conflicts),
            |failure| match &*failure.object {
                "" => format!("the {}: {}", failure.side, failure.message),
                object => format!("{object}: {}", failure.message),
            },
        ),
        State::DeletesHeld => says.hold.as_ref().map_or_else(String::new, |hold| hold.reason.clone()),
        State::Pending if says.observed_generation < generation => {
            "the edge has not followed the last change of the config yet".to_owned()
        }
        State::Pending => format!(
            "{} are not synced yet",
            says.pending.max(says.selected - says.synced.min(says.selected))
        ),
    }
}

/// What is to be known though nothing fails.
fn not_all(says: &OfEdge) -> Vec<String> {
    let denied = says.denied.iter();
    let denied = denied.map(|it| format!("{} not allowed by the owner of the edge: {}", it.objects, it.rule));
    let contested = format!(
        "{} with a status that the syncer of another edge writes too",
        says.contested
    );
    let contested = Some(contested).filter(|_| says.contested > 0);
    denied.chain(contested).collect()
}

/// All that is wrong with a config at an edge.
fn details(config: &OfConfig, edge: &Followed, style: Style) -> String {
    let (says, width) = (&edge.says, style.screen.width);
    let mut text = format!(
        "\n{} at {}: {}\n",
        shown(&called(config)),
        shown(edge.edge()),
        edge.state.word()
    );
    let mut say = |words: &str, indent: usize| text += &wrapped(words, indent, width);
    if matches!(edge.state, State::Stale | State::Pending) {
        say(&why(edge, config.generation), 2);
    }
    if edge.state == State::Stale {
        say(
            "see that its syncer runs and reaches the hub; what follows is from then",
            2,
        );
    }
    for problem in says.problems.iter().chain(&says.unmatched) {
        let since = match &*problem.since {
            "" => String::new(),
            since => format!(" (since {since})"),
        };
        say(&format!("{}: {}{since}", problem.field, problem.message), 2);
    }
    for words in not_all(says) {
        say(&words, 2);
    }
    more(
        &mut say,
        says.problem_count,
        says.problems.len(),
        "entries cannot be followed",
    );
    for failure in &says.failures {
        let object = if failure.object.is_empty() {
            format!("the {}", failure.side)
        } else {
            format!("{} at the {}", failure.object, failure.side)
        };
        let mut reason = failure.reason.clone();
        if style.is_wide {
            reason += &tried(&failure.doing, failure.tries);
        }
        say(&format!("{object} fails since {} ({reason}):", failure.since), 2);
        say(&failure.message, 4);
    }
    more(&mut say, says.failing + says.conflicts, says.failures.len(), "fail");
    if let Some(hold) = &says.hold {
        say(&format!("deletes are held ({}): {}", hold.reason, hold.message), 2);
        say("if they are meant, this confirms them:", 2);
    }
    text + &confirmed_by(edge.confirm.as_deref(), 2)
}

fn more(say: &mut impl FnMut(&str, usize), all: usize, named: usize, what: &str) {
    if all > named {
        say(
            &format!("and {} more {what}: the log of the edge names them", all - named),
            2,
        );
    }
}

/// The command in a line of its own, which is not wrapped: it is there to be copied.
fn confirmed_by(command: Option<&str>, indent: usize) -> String {
    command.map_or_else(String::new, |command| {
        format!("{}{}\n", " ".repeat(indent), shown(command))
    })
}

fn copies(edge: &Copies, style: Style) -> String {
    let width = style.screen.width;
    let about = format!("At the edge {}, copies of {}:", edge.address, edge.sync_target);
    let mut text = wrapped(&about, 0, width);
    let heads = ["TYPE", "WAY", "SELECTED", "IN PLACE", "OUT", "LEFT", "COPIES"];
    let columns = heads.map(column);
    let row = |of: &super::report::OfType| {
        let counts = [of.selected, of.in_place, of.out_of_place, of.left, of.copies];
        let counts = counts.map(|count| Cell::from(count.to_string()));
        let begin: [Cell; 2] = [of.resource.as_str().into(), of.direction.as_str().into()];
        begin.into_iter().chain(counts).collect::<Vec<Cell>>()
    };
    let rows: Vec<Vec<Cell>> = edge.types.iter().map(row).collect();
    if rows.is_empty() {
        return text + "  none\n";
    }
    text += &table(&columns, &rows, style.of_tables());
    let named = if style.is_wide { usize::MAX } else { NAMED };
    for object in edge.objects.iter().take(named) {
        let words = format!("{} at the {}: {}", object.object, object.side, object.state.words());
        text += &wrapped(&words, 2, width);
    }
    if edge.objects.len() > named {
        let more = edge.objects.len() - named;
        text += &wrapped(&format!("and {more} more: -o wide names all"), 2, width);
    }
    text
}

fn explained(object: &Explained, style: Style) -> String {
    let verdict = match object.verdict {
        Verdict::Synced => "synced",
        Verdict::NotSynced => "not synced",
        Verdict::Unknown => "whether it is synced is not known",
    };
    let way = match &*object.direction {
        "" => String::new(),
        way => format!(", {way}"),
    };
    let mut text = wrapped(&format!("{}: {verdict}{way}", object.object), 0, style.screen.width);
    for finding in &object.findings {
        text += &wrapped(finding, 2, style.screen.width);
    }
    text
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
