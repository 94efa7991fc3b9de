//! The solution of a stage: every knob that changes, and the files as they pass.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::exercise::new_lines;
use super::{card, closes, show};
use crate::app::App;
use crate::app::clean::harmful;
use crate::config::Knob;
use crate::tui::theme::Theme;
use crate::tui::{prose, text};

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = card(
        frame,
        area,
        "solution",
        &closes(app),
        theme.border_focused,
        theme,
    );
    let columns = usize::from(inner.width);
    if let Some(exercise) = app.exercise() {
        let mut lines = Vec::new();
        for kernel in exercise.kernels().iter().flat_map(|it| &it.kernels) {
            let file = &kernel.file;
            let new: Vec<&str> = new_lines(&file.starter, &file.solution).collect();
            lines.push(Line::styled(file.name.clone(), theme.heading));
            lines.extend(file.solution.lines().map(|line| {
                let mark = if new.contains(&line) {
                    theme.symbols.pointer
                } else {
                    " "
                };
                Line::from(vec![
                    Span::styled(format!("{mark} "), theme.key),
                    Span::styled(defused(line), theme.code),
                ])
            }));
            lines.push(Line::default());
        }
        if lines.is_empty() {
            lines.push(Line::styled(
                "This exercise is solved by measuring: its questions have the answers.",
                theme.dim,
            ));
        }
        return show(frame, inner, lines, app.view.overlay_scroll, theme);
    }
    let Some(stage) = app.stage() else { return 0 };
    let mut lines = prose::item("", theme.dim, &stage.fix, columns, theme.strong, None);
    lines.push(Line::default());
    for path in stage.broken.differences(&stage.fixed) {
        let Ok(knob) = Knob::find(path) else { continue };
        lines.push(Line::from(vec![
            Span::styled(text::left(path, 26), theme.text),
            Span::styled(format!("{} ", (knob.get)(&stage.broken)), theme.a),
            Span::styled(if theme.symbols.ascii { "-> " } else { "→ " }, theme.dim),
            Span::styled((knob.get)(&stage.fixed), theme.b),
        ]));
    }
    for file in &stage.files {
        lines.push(Line::default());
        lines.push(Line::styled(file.name.clone(), theme.heading));
        lines.extend(
            file.solution
                .lines()
                .map(|line| Line::styled(format!("  {}", defused(line)), theme.code)),
        );
    }
    show(frame, inner, lines, app.view.overlay_scroll, theme)
}

fn defused(line: &str) -> String {
    line.replace('\t', "    ")
        .chars()
        .map(|c| if harmful(c) { '·' } else { c })
        .collect()
}
