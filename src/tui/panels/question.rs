//! The open question with its choices, at the foot of the lesson.

use ratatui::text::Line;

use crate::app::figures::letter;
use crate::app::{Action, App};
use crate::course::placeholder::Lookup;
use crate::tui::theme::Theme;
use crate::tui::{keys, prose};

/// The question as lines; none when nothing is asked.
pub fn lines(app: &App, columns: usize, figures: Option<&dyn Lookup>, theme: &Theme) -> Vec<Line<'static>> {
    let Some((quiz, question)) = app.stage().and_then(|stage| app.study.question(stage)) else { return Vec::new() };
    if question.choices.is_empty() || app.recording.is_some() {
        return Vec::new();
    }
    let title = if quiz.is_some() { " question " } else { " predict " };
    let rule = theme.symbols.rule.repeat(columns.saturating_sub(title.len() + 2));
    let mut out = vec![Line::styled(format!("{0}{0}{title}{rule}", theme.symbols.rule), theme.border_focused)];
    out.extend(prose::item("", theme.dim, &question.prompt, columns, theme.strong, figures));
    for (at, choice) in question.choices.iter().enumerate() {
        let key = keys::label(Action::Answer(at), app);
        let key = if key.is_empty() { letter(at) } else { key };
        out.extend(prose::item(&format!(" {key}  "), theme.key, choice, columns, theme.text, figures));
    }
    out
}
