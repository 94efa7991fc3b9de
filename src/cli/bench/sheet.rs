//! A result as titled tables with remarks, in plain text or in Markdown. It knows columns and no measurements.

use std::fmt::Write;

use crate::units;

/// A whole result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    pub title: String,
    /// Lines below the title.
    pub intro: Vec<String>,
    pub parts: Vec<Part>,
}

/// A heading, tables below it, remarks below those.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub title: String,
    pub tables: Vec<Table>,
    pub remarks: Vec<String>,
}

/// A row shorter than the head says in its last cell why the rest is missing; that cell may be as wide as it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self {
            head: head.map(str::to_owned).to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: its name, then its cells or why there are none.
    pub fn push(&mut self, name: &str, cells: Result<Vec<String>, &str>) {
        let cells = cells.unwrap_or_else(|reason| vec![absent(reason)]);
        let row = std::iter::once(name).chain(cells.iter().map(String::as_str));
        self.rows.push(row.map(clean).collect());
    }

    fn text(&self, out: &mut String) {
        let mut widths: Vec<usize> = self.head.iter().map(|cell| width(cell)).collect();
        for row in &self.rows {
            let spans = usize::from(row.len() < widths.len());
            for (cell, widest) in row
                .iter()
                .take(row.len() - spans.min(row.len()))
                .zip(&mut widths)
            {
                *widest = width(cell).max(*widest);
            }
        }
        for row in std::iter::once(&self.head).chain(&self.rows) {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                line.push_str("  ");
                line.push_str(cell);
                let fill = widths.get(at).copied().unwrap_or(0);
                line.extend(std::iter::repeat_n(' ', fill.saturating_sub(width(cell))));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }

    fn markdown(&self, out: &mut String) {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        out.push_str(&line(self.head.iter().map(|cell| escaped(cell)).collect()));
        out.push_str(&line(vec!["---".to_owned(); self.head.len()]));
        for row in &self.rows {
            let mut cells: Vec<String> = row.iter().map(|cell| escaped(cell)).collect();
            cells.resize(self.head.len().max(cells.len()), String::new());
            out.push_str(&line(cells));
        }
    }
}

impl Sheet {
    pub fn text(&self) -> String {
        let mut out = String::new();
        for line in std::iter::once(&self.title).chain(&self.intro) {
            let _ = writeln!(out, "{}", clean(line));
        }
        for part in &self.parts {
            let _ = writeln!(out, "\n{}", clean(&part.title));
            for (at, table) in part.tables.iter().enumerate() {
                if at > 0 {
                    out.push('\n');
                }
                table.text(&mut out);
            }
            for remark in &part.remarks {
                let _ = writeln!(out, "  {}", clean(remark));
            }
        }
        out
    }

    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n", escaped(&self.title));
        for line in &self.intro {
            let _ = write!(out, "\n{}\n", escaped(line));
        }
        for part in &self.parts {
            let _ = write!(out, "\n## {}\n", escaped(&part.title));
            for table in &part.tables {
                out.push('\n');
                table.markdown(&mut out);
            }
            if !part.remarks.is_empty() {
                out.push('\n');
            }
            for remark in &part.remarks {
                let _ = writeln!(out, "- {}", escaped(remark));
            }
        }
        out
    }
}

fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Names come from engines, which may be anyone's: no escapes reach a terminal.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Names of devices and kernels must not become markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '>' | '\\' | '#') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A number with four significant digits.
pub fn digits(x: f64) -> String {
    units::digits(x, 4)
}

/// `12.3 [12.0, 12.9]`.
pub fn interval(x: f64, low: f64, high: f64) -> String {
    format!("{} [{}, {}]", digits(x), digits(low), digits(high))
}

/// What stands for a figure that is not there.
pub fn absent(reason: &str) -> String {
    format!("not measured: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let mut table = Table::new(["version", "speed", "n"]);
        table.push("v1", Ok(vec!["12.50".to_owned(), "90".to_owned()]));
        table.push("v2", Err("a|b, at some length"));
        Sheet {
            title: "T".to_owned(),
            intro: vec!["on x".to_owned()],
            parts: vec![Part {
                title: "tiny".to_owned(),
                tables: vec![table],
                remarks: vec!["lint".to_owned()],
            }],
        }
    }

    #[test]
    fn columns_line_up_and_reasons_may_be_long() {
        let text = "T\non x\n\ntiny\n  version  speed  n\n  v1       12.50  90\n  v2       not measured: a|b, at some length\n  lint\n";
        assert_eq!(sheet().text(), text);
    }

    #[test]
    fn markdown_keeps_its_columns() {
        let text = sheet().markdown();
        assert!(text.starts_with("# T\n\non x\n\n## tiny\n\n| version | speed | n |\n| --- | --- | --- |\n| v1 | 12.50 | 90 |\n"), "{text}");
        assert!(
            text.contains("| v2 | not measured: a\\|b, at some length |  |\n\n- lint\n"),
            "{text}"
        );
    }
}
