//! The page for people on site: what works, what fails and why, in HTML that needs nothing else.
//!
//! Promises: whatever names and words servers give, the page shows them as text, in their place and in their order; it
//! has no script, loads nothing, and is of bounded length.

use std::time::Duration;

use driver::failures::{Note, tried};
use kube_lite::logging::times::date_and_time;

use crate::report::Subject;
use crate::side::Side;
use crate::version;

/// How many rows a section has; a sentence says how many more there are.
const ROWS: usize = 20;
/// A longer name or sentence is cut: no name of an API is longer, and people read less.
const LONGEST: usize = 1000;

/// One column, so that it can be read on a phone; the colours follow the system's choice of dark or light.
const STYLE: &str = ":root{color-scheme:light dark;font:1em/1.45 system-ui,sans-serif}\
    body{max-width:44em;margin:0 auto;padding:.8em;overflow-wrap:anywhere}\
    h1{font-size:1.3em;margin:0}h2{font-size:1em;margin:1.4em 0 0}\
    ul{list-style:none;margin:0;padding:0}li{margin:.5em 0;padding-left:.7em;border-left:.3em solid #888}\
    .good{border-color:#2a9d58}.bad{border-color:#d33}footer{margin-top:1.5em;opacity:.75;font-size:.85em}";

/// How it is with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// It fails.
    Bad,
    /// It waits, or there is something to know.
    Waits,
    /// It works.
    Good,
}

/// What is said of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// How it is.
    pub mark: Mark,
    /// What it is.
    pub head: String,
    /// What is said of it.
    pub text: String,
}

/// Rows below a title.
pub struct Section {
    title: &'static str,
    rows: Vec<Row>,
    /// How many there would be.
    total: usize,
}

impl Row {
    fn new(mark: Mark, head: impl Into<String>, text: impl Into<String>) -> Self {
        let (head, text) = (head.into(), text.into());
        Self { mark, head, text }
    }
}

impl Section {
    /// The first rows of those that there are.
    pub fn of(title: &'static str, mut rows: Vec<Row>) -> Self {
        let total = rows.len();
        rows.truncate(ROWS);
        Self { title, rows, total }
    }
}

/// What is known of a side.
#[derive(Clone, Debug, Default)]
pub struct SideView<'a> {
    /// Where it is.
    pub address: &'a str,
    /// It answers.
    pub is_up: bool,
    /// It refuses the credentials.
    pub is_refusing: bool,
    /// When something last came from it, since 1970.
    pub heard: Option<Duration>,
    /// When the credentials for it end, in seconds since 1970.
    pub credentials_end: Option<u64>,
    /// Why it is not as it should be, with the server's words.
    pub note: Option<&'a Note>,
}

/// How it is with a side.
pub fn side(side: Side, view: &SideView<'_>) -> Row {
    let (mark, state) = match (view.is_up, view.is_refusing) {
        (false, _) => (Mark::Bad, "does not answer"),
        (true, true) => (Mark::Bad, "refuses the credentials"),
        (true, false) => (Mark::Good, "answers"),
    };
    let mut text = state.to_owned();
    match view.heard {
        Some(at) => text += &["; last contact ", &date_and_time(at)].concat(),
        None => text += "; no contact yet",
    }
    if let Some(end) = view.credentials_end {
        text += &["; credentials end ", &date_and_time(Duration::from_secs(end))].concat();
    }
    if let Some(note) = view.note {
        text += &["; ", &why(note)].concat();
    }
    Row::new(mark, [side.word(), " ", view.address].concat(), text)
}

/// What fails, and why.
pub fn failure(subject: &Subject, note: &Note) -> Row {
    let name = match subject.name() {
        "" => note.reason.as_str(),
        name => name,
    };
    Row::new(Mark::Bad, name, [subject.side().word(), ", ", &why(note)].concat())
}

/// The reason of the log's line, since when, what was done how often, and the server's words.
fn why(note: &Note) -> String {
    let colon = if note.message.is_empty() { "" } else { ": " };
    let reason = note.reason.as_str();
    let tried = tried(&note.doing, note.tries);
    [reason, " since ", &note.since, &tried, colon, &note.message].concat()
}

/// How it is with the objects of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// As they should be.
    pub synced: usize,
    /// Not yet, for whatever reason.
    pub open: usize,
    /// Of these, they fail.
    pub failing: usize,
    /// Of these, their delete is held.
    pub held: usize,
}

/// How it is with a type, in words.
pub fn objects(name: String, of: Objects) -> Row {
    let pending = of.open.saturating_sub(of.failing + of.held);
    let counts = [
        (of.synced, " synced"),
        (pending, " pending"),
        (of.failing, " failing"),
        (of.held, " held"),
    ];
    let mut text = String::new();
    for (count, word) in counts {
        if count > 0 || word == " synced" {
            let comma = if text.is_empty() { "" } else { ", " };
            text += &[comma, &count.to_string(), word].concat();
        }
    }
    let mark = match (of.failing, of.open) {
        (0, 0) => Mark::Good,
        (0, _) => Mark::Waits,
        _ => Mark::Bad,
    };
    Row::new(mark, name, text)
}

/// All of it. `now` is the time since 1970.
pub fn render(name: &str, summary: &str, sections: &[Section], now: Duration) -> String {
    let mut page = begin(name);
    page += "<p>";
    escape(&mut page, summary);
    for Section { title, rows, total } in sections {
        if rows.is_empty() {
            continue;
        }
        page += &["<h2>", title, "</h2><ul>"].concat();
        for Row { mark, head, text } in rows {
            page += match mark {
                Mark::Good => "<li class=good>✔ <b><bdi>",
                Mark::Waits => "<li>… <b><bdi>",
                Mark::Bad => "<li class=bad>✗ <b><bdi>",
            };
            escape(&mut page, head);
            page += "</bdi></b><br><bdi>";
            escape(&mut page, text);
            page += "</bdi>";
        }
        page += "</ul>";
        if *total > rows.len() {
            page += &["<p>and ", &(total - rows.len()).to_string(), " more"].concat();
        }
    }
    end(&mut page, now);
    page
}

/// The page of a syncer that stands by while another one leads.
pub fn render_standby(now: Duration) -> String {
    let mut page = begin("edge-syncer");
    page += "<p>Another edge-syncer leads, and this one stands by: see the page of that one.";
    end(&mut page, now);
    page
}

fn begin(name: &str) -> String {
    let head = "<!doctype html><html lang=en><meta charset=utf-8>\
        <meta name=viewport content=\"width=device-width,initial-scale=1\"><title>";
    let mut page = head.to_owned();
    escape(&mut page, name);
    page += &["</title><style>", STYLE, "</style><h1><bdi>"].concat();
    escape(&mut page, name);
    page += "</bdi></h1>";
    page
}

fn end(page: &mut String, now: Duration) {
    let (version, commit) = (version::VERSION, version::COMMIT);
    let words = [
        "edge-syncer ",
        version,
        ", commit ",
        commit,
        ", at ",
        &date_and_time(now),
    ]
    .concat();
    *page += "<footer>";
    escape(page, &words);
    *page += "</footer>\n";
}

/// Adds a text as HTML shows it. What cannot be seen is shown as `\u202e`: it might move or hide what stands beside it.
fn escape(page: &mut String, text: &str) {
    for (at, c) in text.chars().enumerate() {
        if at == LONGEST {
            page.push('…');
            return;
        }
        match c {
            '&' => *page += "&amp;",
            '<' => *page += "&lt;",
            '>' => *page += "&gt;",
            '"' => *page += "&quot;",
            '\'' => *page += "&#39;",
            c if is_unseen(c) => *page += &["\\u", &format!("{:04x}", u32::from(c))].concat(),
            c => page.push(c),
        }
    }
}

/// True for control characters, and for those that change the direction of a text, break its line or have no width.
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use kube_lite::logging::LogReason;

    use crate::report::Topic;

    use super::*;

    const NOW: Duration = Duration::from_secs(1_795_269_787);

    fn note(message: &str) -> Note {
        Note {
            reason: LogReason::ObjectRejected,
            message: message.into(),
            since: "2026-11-21T14:00:00Z".into(),
            doing: Box::default(),
            tries: 1,
        }
    }

    fn page(sections: &[Section]) -> String {
        render("site-7", "41 synced", sections, NOW)
    }

    #[test]
    fn hostile_names_and_words_are_text_and_stay_in_their_place() {
        let hostile =
            "<script>alert(1)</script>\"'><img src=x onerror=y>&\u{202e}txt\u{0}\u{1b}[31m\r\n\u{2066}\u{200b}\u{85}";
        let subject = Subject::Thing(Side::Edge, Topic::Object, hostile.to_owned());
        let row = failure(&subject, &note(hostile));
        let view = SideView {
            address: hostile,
            ..SideView::default()
        };
        let all = vec![
            row,
            side(Side::Hub, &view),
            objects(hostile.to_owned(), Objects::default()),
        ];
        let page = render(hostile, hostile, &[Section::of("All", all)], NOW);
        let plain = page.replace(hostile, "");
        assert_eq!(plain, page);
        for never in [
            "<script", "<img", "'", "\u{202e}", "\u{0}", "\u{1b}", "\r", "\u{2066}", "\u{200b}", "\u{85}",
        ] {
            assert!(!page.contains(never), "{never:?} in {page}");
        }
        let shown = "&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&gt;&lt;img src=x onerror=y&gt;&amp;\\u202etxt\
            \\u0000\
            \\u001b[31m\\u000d\\u000a\\u2066\\u200b\\u0085";
        assert_eq!(page.matches(shown).count(), 7, "{page}");
    }

    #[test]
    fn a_page_has_no_script_loads_nothing_and_is_of_bounded_length() {
        let long = "<".repeat(100_000);
        let rows = |count: usize| {
            let row = |_| Row::new(Mark::Bad, long.clone(), long.clone());
            (0..count).map(row).collect::<Vec<_>>()
        };
        let full = page(&[Section::of("Fails", rows(1000)), Section::of("Objects", rows(20))]);
        assert!(full.len() < 400_000, "{} bytes", full.len());
        assert_eq!(full.matches("<p>and 980 more").count(), 1);
        let usual = page(&[Section::of(
            "Objects",
            vec![objects("pods".into(), Objects::default()); 10],
        )]);
        assert!(usual.len() < 3000, "{} bytes", usual.len());
        for never in [
            "<script", "<link", "<img", "<a ", "http:", "https:", "url(", "@import", " on",
        ] {
            assert!(!usual.contains(never), "{never} in {usual}");
        }
    }

    #[test]
    fn a_side_says_whether_it_answers_since_when_not_and_why() {
        let note = note("x509: expired");
        let up = SideView {
            address: "https://h:6443",
            is_up: true,
            heard: Some(NOW),
            ..SideView::default()
        };
        let refuses = SideView {
            is_refusing: true,
            note: Some(&note),
            credentials_end: Some(NOW.as_secs()),
            ..up.clone()
        };
        let away = SideView::default();
        for (view, mark, text) in [
            (up, Mark::Good, "answers; last contact 2026-11-21T14:03:07Z"),
            (
                refuses,
                Mark::Bad,
                "refuses the credentials; last contact 2026-11-21T14:03:07Z; credentials end 2026-11-21T14:03:07Z; \
                 ObjectRejected since 2026-11-21T14:00:00Z: x509: expired",
            ),
            (away, Mark::Bad, "does not answer; no contact yet"),
        ] {
            let row = side(Side::Hub, &view);
            assert_eq!((row.mark, &*row.text), (mark, text));
        }
    }

    #[test]
    fn objects_are_synced_pending_failing_or_held() {
        for (synced, open, failing, held, mark, text) in [
            (0, 0, 0, 0, Mark::Good, "0 synced"),
            (5, 0, 0, 0, Mark::Good, "5 synced"),
            (5, 3, 0, 0, Mark::Waits, "5 synced, 3 pending"),
            (5, 3, 0, 3, Mark::Waits, "5 synced, 3 held"),
            (5, 9, 2, 3, Mark::Bad, "5 synced, 4 pending, 2 failing, 3 held"),
            (0, 1, 2, 0, Mark::Bad, "0 synced, 2 failing"),
        ] {
            let of = Objects {
                synced,
                open,
                failing,
                held,
            };
            assert_eq!(objects("pods".into(), of), Row::new(mark, "pods", text));
        }
    }

    #[test]
    fn what_fails_has_its_name_or_else_its_reason() {
        for (name, message, head, text) in [
            (
                "Pod/a/b",
                "no",
                "Pod/a/b",
                "edge, ObjectRejected since 2026-11-21T14:00:00Z: no",
            ),
            (
                "",
                "",
                "ObjectRejected",
                "edge, ObjectRejected since 2026-11-21T14:00:00Z",
            ),
        ] {
            let subject = Subject::Thing(Side::Edge, Topic::Object, name.to_owned());
            assert_eq!(failure(&subject, &note(message)), Row::new(Mark::Bad, head, text));
        }
    }
}
