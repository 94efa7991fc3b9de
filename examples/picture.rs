//! Draws the screen of a recording as an animated SVG that needs no script, so that a page may show it as an image:
//! `cargo run --release --example picture -- run.jsonl assets/screen.svg`, which is the picture of the README. A row that does not
//! change from frame to frame is drawn once.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use perflings::app::source::FromEngine;
use perflings::app::{App, Message, Options, Replay, ThemeName, update};
use perflings::course::context::CourseContext;
use perflings::course::save_file::Progress;
use perflings::record::Recording;
use perflings::sanitize;
use perflings::tui::theme::{Background, Colours, Terminal, Theme};
use perflings::tui::view;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Columns and rows of the screen.
const SIZE: (u16, u16) = (120, 36);
/// Frames of a picture, and seconds for which each is seen.
const FRAMES: usize = 24;
const FRAME_SECONDS: f64 = 0.6;
/// Width and height of a cell, the baseline of its text, and the space around the screen, in pixels.
const CELL: (f64, f64) = (8.4, 17.0);
const BASELINE: f64 = 13.0;
const MARGIN: f64 = 8.0;
/// Colours that a terminal would choose.
const TEXT: &str = "#d8dee9";
const BACKGROUND: &str = "#16191f";

fn main() -> Result<()> {
    let mut paths = std::env::args().skip(1);
    let usage = "usage: cargo run --release --example picture -- RECORDING SVG";
    let (from, to) = (paths.next().context(usage)?, paths.next().context(usage)?);
    let recording = Recording::read(Path::new(&from))?;
    std::fs::write(&to, picture(&from, &recording)?).context(to)
}

/// The screen at even distances in the recording's time.
fn picture(file: &str, recording: &Recording) -> Result<String> {
    let course = CourseContext::load(None)?.course;
    let options = Options {
        stage: recording.stage(),
        recording: Some(Replay {
            file: file.to_owned(),
            device: recording.device.clone().unwrap_or_default(),
            date: recording.hello.date.clone(),
            paused: false,
            speed: 1.0,
            unsolved: false,
        }),
        ..Options::default()
    };
    let abilities = Terminal {
        colours: Colours::Indexed,
        background: Some(Background::Dark),
        ascii: false,
    };
    let (width, height) = SIZE;
    let mut screen = ratatui::Terminal::new(TestBackend::new(width, height))?;
    let (mut app, _) = App::new(course, Progress::default(), options);
    update(&mut app, Message::Resized { width, height });
    let last = recording.len().saturating_sub(1);
    let [begin, end] = [0, last].map(|at| recording.time(at).unwrap_or(0.0));
    let mut frames = Vec::with_capacity(FRAMES);
    let mut at = 0;
    for frame in 1..=FRAMES {
        let until = begin + (end - begin) * frame as f64 / FRAMES as f64;
        while recording.time(at).is_some_and(|time| time <= until) {
            if let Some(line) = recording.line(at) {
                let now_ms = (1e3 * (line.t - begin)) as u64;
                update(&mut app, Message::Tick { now_ms });
                update(&mut app, Message::Engine(FromEngine::Line(line)));
            }
            at += 1;
        }
        let theme = Theme::new(ThemeName::Dark, app.view.markers, abilities);
        let mut limits = None;
        screen.draw(|frame| limits = Some(view(frame, &app, &theme)))?;
        if let Some(limits) = limits {
            update(&mut app, Message::Drawn(limits));
        }
        frames.push(screen.backend().buffer().clone());
    }
    let label = format!("perflings in a terminal: {}", recording.badge());
    Ok(animated(&frames, FRAME_SECONDS * FRAMES as f64, &label))
}

/// The frames in a loop of `seconds`; only the last one for readers who prefer reduced motion.
/// `label` describes the picture for screen readers.
fn animated(frames: &[Buffer], seconds: f64, label: &str) -> String {
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
        let (ink, paper, modifier) = look(cell);
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
            attributes(modifier),
            sanitize::html(text),
        );
    }
    out
}

/// What neighbouring cells share to be one run: the colours of text and background where they are not the picture's own, and what
/// makes the text stand out.
fn look(cell: &Cell) -> (Option<String>, Option<String>, Modifier) {
    let (ink, paper) = (hex(cell.fg), hex(cell.bg));
    if cell.modifier.contains(Modifier::REVERSED) {
        let ink = ink.unwrap_or_else(|| TEXT.to_owned());
        let paper = paper.unwrap_or_else(|| BACKGROUND.to_owned());
        return (Some(paper), Some(ink), cell.modifier);
    }
    (ink, paper, cell.modifier)
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

/// A colour as pages write it: `#87afff`. The dark theme has numbers from 16 on, and otherwise the terminal's own colours.
fn hex(colour: Color) -> Option<String> {
    let number = match colour {
        Color::Indexed(n @ 16..=231) => {
            let steps = [0, 95, 135, 175, 215, 255];
            let n = usize::from(n - 16);
            u32::from_be_bytes([0, steps[n / 36], steps[n / 6 % 6], steps[n % 6]])
        }
        Color::Indexed(n @ 232..) => 0x01_0101 * (8 + 10 * u32::from(n - 232)),
        _ => return None,
    };
    Some(format!("#{number:06x}"))
}
