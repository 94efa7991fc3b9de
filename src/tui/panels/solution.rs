//! The card of the solution. For a stage it shows the fix, the knobs that change, and the files as they pass; for an exercise its files.
//!
//! ```text
//! enter runs it as your B
//!
//! every matrix starts as N(0, 0.02)
//!
//! model.init                library-default → normal-0.02
//!
//! config.toml
//!   [model]
//!   init = "normal-0.02"
//! ```

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
    let mut writer = ProseWriter::new(app, theme, area.width);
    if let Some(open) = app.exercise() {
        exercise(open, &mut writer);
    } else if let Some(open) = app.stage() {
        if app.can_edit() {
            writer.keys("{} runs it as your B", &[Action::TakeSolution]);
            writer.blank();
        }
        stage(open, &mut writer);
    }
    Content::titled("solution", writer.lines)
}

/// Writes the files of an exercise, and marks the lines that the starter does not have.
fn exercise(exercise: &Exercise, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    for file in exercise.files() {
        if file.solution.is_empty() {
            continue;
        }
        let new: Vec<&str> = new_lines(&file.starter, &file.solution).collect();
        w.line(file.name.clone(), theme.heading);
        for line in file.solution.lines() {
            let mark = theme.symbols.pointer_at(new.contains(&line));
            w.lines.push(Line::from(vec![
                Span::styled(format!("{mark} "), theme.key),
                Span::styled(harmless(line), theme.code),
            ]));
        }
        w.blank();
    }
    if w.lines.is_empty() {
        let text = "This exercise is solved by measuring: its questions explain the answers.";
        w.line(text, theme.dim);
    }
}

/// Writes the fix of a stage: a sentence, the changed knobs, and the file.
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
    w.blank();
    w.line(stage.file.name.clone(), theme.heading);
    for line in stage.file.solution.lines() {
        w.code("  ", line);
    }
}
