//! The solution of a stage: every knob that changes, and the files as they pass; of an exercise its files.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use super::exercise::new_lines;
use crate::app::{Action, App};
use crate::course::{Exercise, Stage};
use crate::tui::prose::{ProseWriter, harmless};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::config::Knob;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    if let Some(open) = app.exercise() {
        exercise(open, &mut w);
    } else if let Some(open) = app.stage() {
        if app.can_edit() {
            w.keys("{} runs it as your B", &[Action::TakeSolution]);
            w.blank();
        }
        stage(open, &mut w);
    }
    Content::titled("solution", w.lines)
}

/// The files of an exercise; lines that the starter has not are marked.
fn exercise(exercise: &Exercise, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let files = exercise.files().into_iter();
    for file in files.filter(|file| !file.solution.is_empty()) {
        let new: Vec<&str> = new_lines(&file.starter, &file.solution).collect();
        w.line(file.name.clone(), theme.heading);
        for line in file.solution.lines() {
            let mark = theme.symbols.pointer_at(new.contains(&line));
            let mark = Span::styled(format!("{mark} "), theme.key);
            let line = Span::styled(harmless(line), theme.code);
            w.lines.push(Line::from(vec![mark, line]));
        }
        w.blank();
    }
    if w.lines.is_empty() {
        let said = "This exercise is solved by measuring: its questions explain the answers.";
        w.line(said, theme.dim);
    }
}

fn stage(stage: &Stage, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    w.body(&stage.fix, theme.strong);
    w.blank();
    for path in stage.broken.differences(&stage.fixed) {
        let Ok(knob) = Knob::find(path) else { continue };
        w.lines.push(Line::from(vec![
            Span::styled(text::name(path, 26), theme.text),
            Span::styled(format!("{} ", (knob.get)(&stage.broken)), theme.a),
            Span::styled(format!("{} ", theme.symbols.to), theme.dim),
            Span::styled((knob.get)(&stage.fixed), theme.b),
        ]));
    }
    for file in &stage.files {
        w.blank();
        w.line(file.name.clone(), theme.heading);
        file.solution.lines().for_each(|line| w.code("  ", line));
    }
}
