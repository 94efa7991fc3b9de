//! A result as headings, tables, remarks and drawings, in plain text or in Markdown; `html` writes the same as a page. It knows
//! columns and no measurements.

use crate::sanitize::{markdown as escaped, plain as clean};
use protocol::NO_INTERVAL;
use protocol::units;

use crate::table;

/// A whole result, from top to bottom.
#[derive(Clone, Debug, Default)]
pub struct Sheet(pub Vec<SheetBlock>);

#[derive(Clone, Debug)]
pub enum SheetBlock {
    Title(String),
    /// A sentence below the title.
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

/// What a whole is made of, as a bar. Text and Markdown leave it out: its figures stand in the tables beside it.
#[derive(Clone, Debug)]
pub struct StackedBar {
    pub name: String,
    /// What it is and how much of it.
    pub parts: Vec<(String, f64)>,
    /// What the bar's full width stands for, where that is more than all parts.
    pub width: f64,
}

/// What happened when, lane by lane. Text and Markdown leave it out.
#[derive(Clone, Debug)]
pub struct LaneChart {
    pub name: String,
    /// What the whole width is.
    pub width: String,
    /// What colours mean.
    pub keys: Vec<(&'static str, usize)>,
    /// Names of lanes, and what is in them.
    pub lanes: Vec<(String, Vec<LaneSlice>)>,
}

/// A place from 0 to 1, a length and a colour.
pub type LaneSlice = (f64, f64, usize);

/// Curves over steps. Text and Markdown leave it out: its figures stand in the tables beside it.
#[derive(Clone, Debug)]
pub struct SheetChart {
    pub name: String,
    pub curves: Vec<Curve>,
    /// Values that are the same at each step, with their names.
    pub levels: Vec<(String, f64)>,
}

#[derive(Clone, Debug)]
pub struct Curve {
    pub name: String,
    /// Step and value.
    pub points: Vec<(f64, f64)>,
}

/// Ranges on a scale, one below the other, and a value beside them; in words where nothing is drawn.
#[derive(Clone, Debug)]
pub struct RangeScale {
    pub said: String,
    pub from: f64,
    pub to: f64,
    pub log: bool,
    pub ranges: Vec<(f64, f64)>,
    pub mark: Option<f64>,
    /// Where two things are equal.
    pub even: Option<f64>,
}

/// Rows of cells under a head.
#[derive(Clone, Debug)]
pub struct SheetTable {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A column: its head, and what it says of a thing.
pub type FilledColumn<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

impl SheetTable {
    /// A row for each thing.
    pub fn filled<T>(things: impl IntoIterator<Item = T>, columns: &[FilledColumn<'_, T>]) -> Self {
        let cells = |thing: T| {
            columns
                .iter()
                .map(|(_, cell)| clean(&cell(&thing)))
                .collect()
        };
        Self {
            head: columns.iter().map(|(head, _)| clean(head)).collect(),
            rows: things.into_iter().map(cells).collect(),
        }
    }

    /// A row for each figure: its name and its value.
    pub fn figures(head: [&str; 2], figures: Vec<(&'static str, String)>) -> Self {
        let [name, value] = head;
        Self::filled(
            figures,
            &[(name, &|it| it.0.to_owned()), (value, &|it| it.1.clone())],
        )
    }

    /// As it was printed before.
    pub fn printed(head: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        Self { head, rows }
    }

    /// Whether a column has a head.
    pub fn is_named(&self) -> bool {
        self.head.iter().any(|head| !head.is_empty())
    }

    /// The head and the rows.
    pub fn cells(&self) -> (Vec<String>, Vec<Vec<String>>) {
        (self.head.clone(), self.rows.clone())
    }

    fn text(&self) -> String {
        let head = self.is_named().then(|| self.head.clone());
        let rows: Vec<Vec<String>> = head.into_iter().chain(self.rows.clone()).collect();
        let lines = table::lines(&rows, false).into_iter();
        lines.map(|line| format!("  {line}\n")).collect()
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
                SheetBlock::Scale(scale) => out += &format!("  {}\n", clean(&scale.said)),
                SheetBlock::Chart(_) | SheetBlock::Parts(_) | SheetBlock::Lanes(_) => {}
            }
            after_table = matches!(block, SheetBlock::Table(_));
        }
        out
    }

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
                SheetBlock::Scale(scale) => out += &format!("\n{}\n", escaped(&scale.said)),
                SheetBlock::Chart(_) | SheetBlock::Parts(_) | SheetBlock::Lanes(_) => {}
            }
            after_remark = matches!(block, SheetBlock::Remark(_));
        }
        out
    }
}

/// A number with four significant digits.
pub fn digits(x: f64) -> String {
    units::digits(x, 4)
}

/// `12.3 [12.0, 12.9]`.
pub fn interval(x: f64, low: f64, high: f64) -> String {
    format!("{} [{}, {}]", digits(x), digits(low), digits(high))
}

/// A measured ratio with its interval, where it has one.
pub fn worth(ratio: f64, low: Option<f64>, high: Option<f64>) -> String {
    match low.zip(high) {
        Some((low, high)) => interval(ratio, low, high),
        None => format!("{} {NO_INTERVAL}", digits(ratio)),
    }
}

/// What stands for a figure that is not there.
pub fn absent(reason: &str) -> String {
    format!("not measured: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_bars_are_escaped() {
        let table = SheetTable::filled(
            [("v1", "12.50"), ("v2", "a|b")],
            &[
                ("version", &|it| it.0.to_owned()),
                ("speed", &|it| it.1.to_owned()),
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
