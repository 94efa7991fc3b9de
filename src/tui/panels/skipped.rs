//! For latecomers: a page for each skipped stage, with its symptom. Each page leads back to its stage; the fault, the fix and what
//! this machine measured are shown only when the learner asks for them.

use ratatui::layout::Rect;

use super::content::Content;
use crate::app::{Action, App};
use crate::course::Stage;
use crate::course::placeholder::{FigureSources, fill_known};
use crate::tui::prose::ProseWriter;
use crate::tui::theme::Theme;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let skipped = app.lesson.skipped_stages();
    let at = app.view.selected.min(skipped.len().saturating_sub(1));
    let stage = skipped
        .get(at)
        .and_then(|at| app.lesson.course.stages.get(*at));
    let of = skipped.len();
    let title = stage.map(|it| format!("skipped {}/{of}: {} {}", at + 1, it.number, it.title));
    let mut w = ProseWriter::new(app, theme, area.width);
    // As much of it as there is room for.
    w.widest = w.columns;
    match stage {
        Some(stage) => page(stage, &mut w),
        None => w.dim("No stage was skipped."),
    }
    let title = title.unwrap_or_else(|| "skipped stages".to_owned());
    Content::titled(title, w.lines)
}

fn page(stage: &Stage, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    // The stage was not run, so its figures are not known.
    let none = FigureSources::none(&stage.broken);
    let known = |text: &str| fill_known(text, &none);
    w.keys(
        "{} goes back to it; {} {} turn the pages",
        &[Action::Choose, Action::TurnPage(-1), Action::TurnPage(1)],
    );
    w.heading("The symptom");
    w.body(&known(&stage.symptom), theme.text);
    if !w.app.view.fault_shown {
        w.blank();
        w.keys(
            "{} shows its fault and its fix. The stage stays open, so you can still find them yourself.",
            &[Action::Solution],
        );
        return;
    }
    w.heading("The fault");
    w.body(&known(&stage.fault), theme.text);
    w.heading("Where it shows");
    for pointer in &stage.evidence {
        let marker = format!("{}  ", pointer.panel.into_str());
        w.course_text(&marker, theme.key, &known(&pointer.text));
    }
    w.heading("The fix");
    w.body(&stage.fix, theme.text);
    w.heading("On this machine");
    measured(stage, w);
}

/// The stage's rows of the last `perflings run all`, or what the learner measured, or how to.
fn measured(stage: &Stage, w: &mut ProseWriter<'_>) {
    let known = w.app.lesson.study.progress.stage(&stage.id);
    if let Some([ratio, low, high]) = known.ratio {
        w.text(&format!(
            "broken over yours: {ratio:.3}x [{low:.3}, {high:.3}]"
        ));
    }
    let journey = w.app.lesson.journey.as_ref();
    let rows = journey.into_iter().flat_map(|it| &it.rows);
    let rows: Vec<_> = rows.filter(|row| row.stage == stage.number).collect();
    if let Some(journey) = journey.filter(|_| !rows.is_empty()) {
        for row in rows {
            let cells = journey.head.iter().zip(&row.cells);
            let cells = cells.filter(|(_, cell)| !cell.is_empty());
            let cells = cells.map(|(head, cell)| format!("{head} {cell}"));
            w.text(&cells.collect::<Vec<_>>().join("  "));
        }
        w.dim(&format!(
            "{}, {}, {}",
            journey.device, journey.preset, journey.date
        ));
    } else if known.ratio.is_none() {
        w.dim("Not measured yet: `perflings run all` measures every stage, broken and fixed.");
    }
}
