//! What the learner has done so far, in their own numbers: for each stage the prediction, what was measured, the fix; and
//! where to go on. After the last stage it is the end of the course.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::question::with_unit;
use crate::app::{Action, App, Overlay};
use crate::course::Stage;
use crate::course::check::Starter;
use crate::course::progress::{Prediction, State};
use crate::tui::prose::{READING, Writer};
use crate::tui::surface::{Surface, closes, height};
use crate::tui::theme::Theme;
use crate::units::number;

/// Columns and rows that the card wants.
pub fn size(app: &App, area: Rect, theme: &Theme) -> (u16, u16) {
    let columns = area.width.min(READING as u16 + 4);
    let lines = lines(app, usize::from(columns.saturating_sub(4)), theme);
    (columns, height(lines.len() + 2))
}

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    s.card("what you have done", &closes(s.app), s.theme.border_focused);
    let lines = lines(s.app, usize::from(s.area.width), s.theme);
    s.show_card(lines)
}

fn lines(app: &App, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut w = Writer::new(app, theme, columns);
    let all = &app.course.stages;
    let passed = |stage: &&Stage| app.study.of(stage).state == State::Passed;
    let done = all.iter().filter(passed).count();
    let begin = format!("{done} of {} stages passed. ", all.len());
    let rest = "Every number here was measured on your own machine.";
    w.runs(
        &[
            Span::styled(begin, theme.strong),
            Span::styled(rest, theme.text),
        ],
        "",
        "",
    );
    w.blank();
    all.iter().for_each(|stage| of_stage(stage, &mut w));
    w.heading("In all");
    totals(&mut w);
    w.heading("Where to go on");
    let said = "{} lists every stage and exercise: runs to think through, recordings to solve, kernels to write.";
    w.keys(said, &[Action::Open(Overlay::Stages)]);
    let said =
        "`perflings --free` trains without a stage, with every knob: find a faster step than ours.";
    w.plain(said, theme.text);
    let said = "`perflings mystery` trains with faults drawn by a seed, to find and to mend.";
    w.plain(said, theme.text);
    let said = "`perflings run all` measures every stage in turns, broken and fixed, as one table with its traces.";
    w.plain(said, theme.text);
    w.lines
}

/// A stage: its title, what was said, what was measured, and what mended it.
fn of_stage(stage: &Stage, w: &mut Writer<'_>) {
    let (app, theme) = (w.app, w.theme);
    let known = app.study.of(stage);
    let passed = known.state == State::Passed;
    let title = format!("{} {}", stage.number, stage.title);
    if !passed {
        let said = format!("{title}: not passed yet");
        return w.marked((theme.symbols.ghost, theme.dim), &said, theme.dim);
    }
    w.blank();
    w.marked((theme.symbols.good, theme.good), &title, theme.strong);
    let mut said = vec![match known.prediction {
        Some(Prediction::Choice { right: true, .. }) => "You predicted it rightly".to_owned(),
        Some(Prediction::Choice { .. }) => "You predicted something else".to_owned(),
        Some(Prediction::Skipped) | None => "No prediction".to_owned(),
    }];
    if let (Some(of), Some((low, high)), Some(truth)) =
        (&stage.estimate, known.estimate, known.measured)
    {
        let inside = (low..=high).contains(&truth);
        let inside = if inside { "inside" } else { "outside" };
        let [low, high, truth] = [low, high, truth].map(|it| with_unit(of, it));
        said.push(format!("range {low} to {high}, measured {truth}: {inside}"));
    }
    if let Some([ratio, low, high]) = known.ratio {
        let [ratio, low, high] = [ratio, low, high].map(number);
        said.push(format!("A took {ratio}x [{low}, {high}] of your B's time"));
    }
    let key = stage.checks.iter().find(|it| it.starter == Starter::Fails);
    if let (Some(check), Some(found)) = (key, &known.found) {
        said.push(format!("{}: {found}", check.name));
    }
    if !stage.quiz.is_empty() {
        let (right, of) = (app.study.right_at_first(stage), stage.quiz.len());
        said.push(format!(
            "{right} of {of} questions right at the first answer"
        ));
    }
    w.item("  ", theme.dim, &said.join("; "), theme.text);
    if !stage.fix.is_empty() && !stage.fix.contains("{{") {
        w.item("  the fix: ", theme.dim, &stage.fix, theme.text);
    }
}

/// The score over all stages.
fn totals(w: &mut Writer<'_>) {
    let score = w.app.study.progress.calibration();
    let said = format!(
        "{} of {} predictions right; {} of {} ranges contained the measured figure.",
        score.right, score.answered, score.held, score.ranges
    );
    w.plain(&said, w.theme.strong);
}
