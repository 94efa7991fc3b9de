//! A sheet is a result as headings, tables, remarks and drawings. It can be written as plain text or Markdown, and `html` writes it as a
//! page. A sheet knows columns, but no measurements: the other modules of `pages` fill it.

use crate::sanitize::{markdown as escaped, plain as clean};
use protocol::NO_INTERVAL;
use protocol::units;

use crate::scale::Scale;
use crate::table;

/// A whole result, from top to bottom.
#[derive(Clone, Debug, Default)]
pub struct Sheet(pub Vec<SheetBlock>);

/// A block of a sheet.
#[derive(Clone, Debug)]
pub enum SheetBlock {
    Title(String),
    /// A sentence below the title or a heading.
    Intro(String),
    Heading(String),
    Table(SheetTable),
    /// A line below the tables of a heading.
    Remark(String),
    Chart(SheetChart),
    Scale(RangeScale),
    Parts(StackedBar),
    Lanes(LaneChart),
}

/// A bar that is divided into the parts of a whole. Text and Markdown leave it out, because tables have its figures.
#[derive(Clone, Debug)]
pub struct StackedBar {
    pub name: String,
    /// The name and the size of each part.
    pub parts: Vec<(String, f64)>,
    /// The size that fills the whole width. It counts where it is more than the sum of all parts, as for two bars of one scale.
    pub width: f64,
}

/// Events over time, lane by lane. Text and Markdown leave them out.
#[derive(Clone, Debug)]
pub struct LaneChart {
    pub name: String,
    /// The time that the whole width shows, in words.
    pub width: String,
    /// The legend: a name and the number of its colour.
    pub keys: Vec<(&'static str, usize)>,
    /// The name of each lane, and its events.
    pub lanes: Vec<(String, Vec<LaneSlice>)>,
}

/// The place and the length of an event on its lane, each from 0 to 1, and its colour.
pub type LaneSlice = (f64, f64, usize);

/// Curves over steps. Text and Markdown leave them out, because tables have their figures.
#[derive(Clone, Debug)]
pub struct SheetChart {
    pub name: String,
    pub curves: Vec<Curve>,
    /// Horizontal lines: the name and the value of each.
    pub levels: Vec<(String, f64)>,
}

/// A curve of a chart.
#[derive(Clone, Debug)]
pub struct Curve {
    pub name: String,
    /// The points, each a step and a value.
    pub points: Vec<(f64, f64)>,
}

/// Ranges on a scale, one below the other, and a measured value. Text and Markdown have only its caption.
#[derive(Clone, Debug)]
pub struct RangeScale {
    pub caption: String,
    pub scale: Scale,
    /// The lower and the upper end of each range.
    pub ranges: Vec<[f64; 2]>,
    /// The measured value.
    pub mark: Option<f64>,
    /// The value at which both sides of a comparison are equal, such as 1 for a ratio.
    pub even: Option<f64>,
}

/// Rows of cells under a head.
#[derive(Clone, Debug)]
pub struct SheetTable {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// A column: its head, and a function that returns the cell of an item.
pub type FilledColumn<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

impl SheetTable {
    /// Returns a table with a row for each item.
    pub fn filled<T>(items: impl IntoIterator<Item = T>, columns: &[FilledColumn<'_, T>]) -> Self {
        let cells = |item: T| {
            columns
                .iter()
                .map(|(_, cell)| clean(&cell(&item)))
                .collect()
        };
        Self {
            head: columns.iter().map(|(head, _)| clean(head)).collect(),
            rows: items.into_iter().map(cells).collect(),
        }
    }

    /// Returns a table with a row for each figure: its name and its value.
    pub fn figures(head: [&str; 2], figures: Vec<(&'static str, String)>) -> Self {
        let [name_head, value_head] = head;
        Self::filled(
            figures,
            &[
                (name_head, &|(name, _)| (*name).to_owned()),
                (value_head, &|(_, value)| value.clone()),
            ],
        )
    }

    /// Returns true if a column has a head.
    pub fn is_named(&self) -> bool {
        self.head.iter().any(|head| !head.is_empty())
    }

    fn text(&self) -> String {
        let mut rows = self.rows.clone();
        if self.is_named() {
            rows.insert(0, self.head.clone());
        }
        let lines = table::lines(&rows, false);
        lines.iter().map(|line| format!("  {line}\n")).collect()
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let row = |row: &Vec<String>| {
            let mut cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
            cells.resize(self.head.len().max(cells.len()), String::new());
            line(&cells)
        };
        let rule = line(&vec!["---".to_owned(); self.head.len()]);
        row(&self.head) + &rule + &self.rows.iter().map(row).collect::<String>()
    }
}

impl Sheet {
    /// Writes the sheet as plain text, without drawings.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut after_table = false;
        for block in &self.0 {
            match block {
                SheetBlock::Title(text) | SheetBlock::Intro(text) => {
                    out += &format!("{}\n", clean(text))
                }
                SheetBlock::Heading(text) => out += &format!("\n{}\n", clean(text)),
                SheetBlock::Table(table) => {
                    out += if after_table { "\n" } else { "" };
                    out += &table.text();
                }
                SheetBlock::Remark(text) => out += &format!("  {}\n", clean(text)),
                SheetBlock::Scale(scale) => out += &format!("  {}\n", clean(&scale.caption)),
                SheetBlock::Chart(_) | SheetBlock::Parts(_) | SheetBlock::Lanes(_) => {}
            }
            after_table = matches!(block, SheetBlock::Table(_));
        }
        out
    }

    /// Writes the sheet as Markdown, without drawings.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let mut after_remark = false;
        for block in &self.0 {
            match block {
                SheetBlock::Title(text) => out += &format!("# {}\n", escaped(text)),
                SheetBlock::Intro(text) => out += &format!("\n{}\n", escaped(text)),
                SheetBlock::Heading(text) => out += &format!("\n## {}\n", escaped(text)),
                SheetBlock::Table(table) => out += &format!("\n{}", table.markdown()),
                SheetBlock::Remark(text) => {
                    out += if after_remark { "" } else { "\n" };
                    out += &format!("- {}\n", escaped(text));
                }
                SheetBlock::Scale(scale) => out += &format!("\n{}\n", escaped(&scale.caption)),
                SheetBlock::Chart(_) | SheetBlock::Parts(_) | SheetBlock::Lanes(_) => {}
            }
            after_remark = matches!(block, SheetBlock::Remark(_));
        }
        out
    }
}

/// Writes a number with four significant digits.
pub fn digits(x: f64) -> String {
    units::digits(x, 4)
}

/// Writes a number with its interval: `12.3 [12.0, 12.9]`.
pub fn interval(x: f64, low: f64, high: f64) -> String {
    format!("{} [{}, {}]", digits(x), digits(low), digits(high))
}

/// Writes a measured ratio with its interval, or with a note that it has none.
pub fn ratio_with_interval(ratio: f64, low: Option<f64>, high: Option<f64>) -> String {
    match low.zip(high) {
        Some((low, high)) => interval(ratio, low, high),
        None => format!("{} {NO_INTERVAL}", digits(ratio)),
    }
}

/// Returns the words for a figure that was not measured.
pub fn absent(reason: &str) -> String {
    format!("not measured: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_in_text_and_vertical_bars_are_escaped_in_markdown() {
        let table = SheetTable::filled(
            [("v1", "12.50"), ("v2", "a|b")],
            &[
                ("version", &|(version, _)| (*version).to_owned()),
                ("speed", &|(_, speed)| (*speed).to_owned()),
                ("n", &|_| "90".to_owned()),
            ],
        );
        let sheet = Sheet(vec![
            SheetBlock::Title("T".to_owned()),
            SheetBlock::Intro("on x".to_owned()),
            SheetBlock::Heading("tiny".to_owned()),
            SheetBlock::Table(table),
            SheetBlock::Remark("lint".to_owned()),
        ]);
        let text = "T\non x\n\ntiny\n  version  speed  n\n  v1       12.50  90\n  v2       a|b    90\n  lint\n";
        assert_eq!(sheet.text(), text);
        let markdown = "# T\n\non x\n\n## tiny\n\n| version | speed | n |\n| --- | --- | --- |\n| v1 | 12.50 | 90 |\n\
            | v2 | a\\|b | 90 |\n\n- lint\n";
        assert_eq!(sheet.markdown(), markdown);
    }
}
