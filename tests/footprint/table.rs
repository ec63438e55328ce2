//! The same table for a terminal and for a README, and the units in it.

use std::time::Duration;

use crate::bench::Figures;
use crate::support::Syncer;

/// Rows of cells, the head first; the first cell of each says what the others are.
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    /// A column for each of `columns`, which all have the same rows.
    pub(crate) fn new(columns: &[(String, Figures)]) -> Self {
        let head = columns.iter().map(|(head, _)| head.clone());
        let mut rows = vec![std::iter::once(String::new()).chain(head).collect::<Vec<_>>()];
        let what = columns.first().map(|(_, figures)| figures.rows()).unwrap_or_default();
        for (index, (what, _)) in what.iter().enumerate() {
            let cells = columns.iter().map(|(_, figures)| figures.rows()[index].1.clone());
            rows.push(std::iter::once(what.clone()).chain(cells).collect());
        }
        Self(rows)
    }

    /// These rows, the head first; all have the same number of cells.
    pub(crate) fn of_rows(rows: Vec<Vec<String>>) -> Self {
        Self(rows)
    }

    /// With aligned columns.
    pub(crate) fn text(&self) -> String {
        let widths: Vec<usize> = (0..self.0[0].len()).map(|column| self.width(column)).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths);
            let padded: Vec<String> = cells.map(|(cell, &width)| format!("{cell:<width$}")).collect();
            format!("{}\n", padded.join("  ").trim_end())
        };
        self.0.iter().map(line).collect()
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let line = |row: &[String]| format!("| {} |\n", row.join(" | "));
        let rule = format!("|{}\n", "---|".repeat(self.0[0].len()));
        let body: String = self.0[1..].iter().map(|row| line(row)).collect();
        line(&self.0[0]) + &rule + &body
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.0.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or_default()
    }
}

/// Resident memory of a syncer now, and the most that it has had in brackets.
pub(crate) fn memory(syncer: &mut Syncer) -> String {
    let (resident, peak) = (syncer.resident_kb() * 1024, syncer.peak_kb() * 1024);
    format!("{} ({})", megabytes(resident), megabytes(peak))
}

/// In MB.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{} MB", tenths(bytes, 1_000_000))
}

/// In the unit that suits it.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        ..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", tenths(bytes, 1_000)),
        _ => megabytes(bytes),
    }
}

/// In seconds, to a hundredth.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// In milliseconds, or in seconds if it took long.
pub(crate) fn milliseconds(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{:.1} ms", time.as_secs_f64() * 1000.0)
    } else {
        seconds(time)
    }
}

/// The growth from one to the other, to a tenth.
pub(crate) fn percent(before: u64, after: u64) -> String {
    let sign = if after < before { "-" } else { "" };
    format!("{sign}{} %", tenths(after.abs_diff(before) * 100, before))
}

fn tenths(bytes: u64, unit: u64) -> String {
    let tenths = (bytes * 10 + unit / 2) / unit;
    format!("{}.{}", tenths / 10, tenths % 10)
}
