//! Frames of the screen as one animated picture: an SVG that needs no script, so that a page may show it as an image. A row
//! that does not change from frame to frame is drawn once.

use std::collections::BTreeSet;
use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::Modifier;

use super::theme::hex;
use crate::sanitize;

/// Width and height of a cell, the baseline of its text, and the space around the screen, in pixels.
const CELL: (f64, f64) = (8.4, 17.0);
const BASELINE: f64 = 13.0;
const MARGIN: f64 = 8.0;
/// Colours that a terminal would choose.
const TEXT: &str = "#d8dee9";
const BACKGROUND: &str = "#16191f";

/// The frames in a loop of `seconds`; only the last one for readers who prefer reduced motion.
/// `label` describes the picture for screen readers.
pub fn animated(frames: &[Buffer], seconds: f64, label: &str) -> String {
    let Some(last) = frames.last() else {
        return String::new();
    };
    let (columns, rows) = (last.area.width, last.area.height);
    let mut spans = BTreeSet::new();
    let mut body = String::new();
    for y in 0..rows {
        let lines: Vec<String> = frames.iter().map(|frame| row(frame, y)).collect();
        let mut begin = 0;
        for alike in lines.chunk_by(|a, b| a == b) {
            let span = (begin, begin + alike.len());
            begin = span.1;
            if alike[0].is_empty() {
                continue;
            }
            if alike.len() == frames.len() {
                body += &alike[0];
                continue;
            }
            spans.insert(span);
            let stays = if span.1 == frames.len() { " last" } else { "" };
            let (from, to) = span;
            let _ = writeln!(body, "<g class=\"f f{from}-{to}{stays}\">{}</g>", alike[0]);
        }
    }
    let [width, height] = [
        f64::from(columns) * CELL.0 + 2.0 * MARGIN,
        f64::from(rows) * CELL.1 + 2.0 * MARGIN,
    ];
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"14\" fill=\"{TEXT}\">\n<style>{}</style>\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n{body}</svg>\n",
        sanitize::html(label),
        style(&spans, frames.len(), seconds),
    )
}

/// When each group of rows is seen.
fn style(spans: &BTreeSet<(usize, usize)>, frames: usize, seconds: f64) -> String {
    let mut style = format!(
        "text{{white-space:pre}}.f{{visibility:hidden;animation:{seconds:.1}s step-end infinite}}.last{{visibility:visible}}@media(prefers-reduced-motion:reduce){{.f{{animation:none}}}}"
    );
    let percent = |frame: usize| 100.0 * frame as f64 / frames as f64;
    for (from, to) in spans {
        let name = format!("f{from}-{to}");
        let _ = write!(style, ".{name}{{animation-name:{name}}}@keyframes {name}{{");
        if *from > 0 {
            style += "0%{visibility:hidden}";
        }
        let _ = write!(style, "{:.2}%{{visibility:visible}}", percent(*from));
        if *to < frames {
            let _ = write!(style, "{:.2}%{{visibility:hidden}}", percent(*to));
        }
        style.push('}');
    }
    style
}

/// A row of the screen: its backgrounds, and its text in runs of one style.
fn row(frame: &Buffer, y: u16) -> String {
    let cells: Vec<(u16, &Cell)> = (0..frame.area.width)
        .map(|x| (x, &frame[(frame.area.x + x, frame.area.y + y)]))
        .collect();
    let top = MARGIN + f64::from(y) * CELL.1;
    let mut out = String::new();
    for run in cells.chunk_by(|(_, a), (_, b)| look(a) == look(b)) {
        let Some(((first, cell), (last, _))) = run.first().zip(run.last()) else {
            continue;
        };
        let (ink, paper) = colours(cell);
        let width = f64::from(last - first + 1) * CELL.0;
        let left = MARGIN + f64::from(*first) * CELL.0;
        if let Some(paper) = paper {
            let _ = write!(
                out,
                "<rect x=\"{left:.1}\" y=\"{top:.0}\" width=\"{width:.1}\" height=\"{}\" fill=\"{paper}\"/>",
                CELL.1
            );
        }
        let text: String = run.iter().map(|(_, cell)| cell.symbol()).collect();
        let spaces = text.chars().take_while(|c| *c == ' ').count() as f64;
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        let length = text.chars().count() as f64 * CELL.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.0}\" textLength=\"{length:.1}\"{}{}>{}</text>",
            left + spaces * CELL.0,
            top + BASELINE,
            ink.map_or(String::new(), |ink| format!(" fill=\"{ink}\"")),
            attributes(cell.modifier),
            sanitize::html(text),
        );
    }
    out
}

/// What two neighbouring cells share to be one run.
fn look(cell: &Cell) -> (Option<String>, Option<String>, Modifier) {
    let (ink, paper) = colours(cell);
    (ink, paper, cell.modifier)
}

/// The colours of text and background, where they are not the picture's own.
fn colours(cell: &Cell) -> (Option<String>, Option<String>) {
    let (ink, paper) = (hex(cell.fg), hex(cell.bg));
    if cell.modifier.contains(Modifier::REVERSED) {
        let own = |colour: Option<String>, own: &str| colour.or_else(|| Some(own.to_owned()));
        return (own(paper, BACKGROUND), own(ink, TEXT));
    }
    (ink, paper)
}

fn attributes(modifier: Modifier) -> String {
    let all = [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::DIM, " opacity=\"0.6\""),
        (Modifier::ITALIC, " font-style=\"italic\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
    ];
    let set = all.iter().filter(|(which, _)| modifier.contains(*which));
    set.map(|(_, attribute)| *attribute).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_is_drawn_once_and_what_changes_is_seen_in_its_frames() {
        let frames = [["same", "1 <"], ["same", "2 <"], ["same", "2 <"]];
        let frames = frames.map(Buffer::with_lines);
        let picture = animated(&frames, 3.0, "two \"rows\"");
        assert_eq!(picture.matches(">same</text>").count(), 1);
        assert_eq!(picture.matches(">2 &lt;</text>").count(), 1);
        for part in [
            "class=\"f f0-1\"",
            "class=\"f f1-3 last\"",
            "@keyframes f0-1{0.00%{visibility:visible}33.33%{visibility:hidden}}",
            "@keyframes f1-3{0%{visibility:hidden}33.33%{visibility:visible}}",
            "aria-label=\"two &quot;rows&quot;\"",
        ] {
            assert!(picture.contains(part), "{part} is missing in {picture}");
        }
    }
}
