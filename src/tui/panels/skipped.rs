//! For those who come late: a page for each stage that was jumped over, with its fault, where it shows, the fix, and what this machine
//! measured, if it did. Each page leads back to its stage.

use crate::app::Action;
use crate::course::Stage;
use crate::tui::prose::Writer;
use crate::tui::surface::Surface;

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let app = s.app;
    let skipped = app.skipped_stages();
    let at = app.view.selected.min(skipped.len().saturating_sub(1));
    let stage = skipped.get(at).and_then(|at| app.course.stages.get(*at));
    let of = skipped.len();
    let title = stage.map(|it| format!("skipped {}/{of}: {} {}", at + 1, it.number, it.title));
    s.overlay(title.as_deref().unwrap_or("skipped stages"));
    let mut w = s.writer();
    // As much as there is room for.
    w.widest = w.columns;
    match stage {
        Some(stage) => page(stage, &mut w),
        None => w.plain("No stage was skipped.", s.theme.dim),
    }
    s.show_card(w.lines)
}

fn page(stage: &Stage, w: &mut Writer<'_>) {
    let theme = w.theme;
    w.keys(
        "{} goes back to it; {} {} turn the pages",
        &[Action::Choose, Action::TurnPage(-1), Action::TurnPage(1)],
    );
    w.heading("The fault");
    w.course_text("", theme.dim, &without_figures(&stage.fault), theme.text);
    w.heading("Where it shows");
    for pointer in &stage.evidence {
        let marker = format!("{}  ", pointer.panel.name());
        w.course_text(
            &marker,
            theme.key,
            &without_figures(&pointer.text),
            theme.text,
        );
    }
    w.heading("The fix");
    w.course_text("", theme.dim, &stage.fix, theme.text);
    w.heading("On this machine");
    measured(stage, w);
}

/// The sentences that name no figure: those of a run that was not made are not known.
fn without_figures(text: &str) -> String {
    let sentences = text.split_inclusive(['.', ':', ';', '?']);
    let known = sentences.filter(|it| !it.contains("{{"));
    known.collect::<String>().trim().to_owned()
}

/// The stage's rows of the last `perflings run all`, or what the learner measured, or how to.
fn measured(stage: &Stage, w: &mut Writer<'_>) {
    let theme = w.theme;
    let known = w.app.study.progress.stage(&stage.id);
    if let Some([ratio, low, high]) = known.ratio {
        w.plain(
            &format!("broken over yours: {ratio:.3}x [{low:.3}, {high:.3}]"),
            theme.text,
        );
    }
    let journey = w.app.journey.as_ref();
    let rows = journey.into_iter().flat_map(|it| &it.rows);
    let rows: Vec<_> = rows.filter(|row| row.stage == stage.number).collect();
    if let Some(journey) = journey.filter(|_| !rows.is_empty()) {
        for row in rows {
            let cells = journey.head.iter().zip(&row.cells);
            let cells = cells.filter(|(_, cell)| !cell.is_empty());
            let cells = cells.map(|(head, cell)| format!("{head} {cell}"));
            w.plain(&cells.collect::<Vec<_>>().join("  "), theme.text);
        }
        w.plain(
            &format!("{}, {}, {}", journey.device, journey.preset, journey.date),
            theme.dim,
        );
    } else if known.ratio.is_none() {
        w.plain(
            "Not measured yet: `perflings run all` measures every stage, broken and fixed.",
            theme.dim,
        );
    }
}
