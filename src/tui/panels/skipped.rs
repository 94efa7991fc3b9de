//! The card of the skipped stages, for latecomers: a page for each skipped stage with its symptom and a key that goes back to it. The fault,
//! the fix and the figures of this machine are shown only when the learner asks for them.
//!
//! ```text
//! ╭ skipped 1/2: 3 A step that does not add up ─────────╮
//! │ enter goes back to it; ← → turn the pages           │
//! │                                                     │
//! │ The symptom                                         │
//! │ The phases of a step take a tenth of its time.      │
//! │                                                     │
//! │ s shows its fault and its fix.                      │
//! ╰─────────────────────────────────────────────────────╯
//! ```

use ratatui::layout::Rect;

use super::content::Content;
use crate::app::{Action, App};
use crate::course::Stage;
use crate::course::journey::JourneyRow;
use crate::course::placeholder::{FigureSources, fill_known};
use crate::tui::prose::ProseWriter;
use crate::tui::theme::Theme;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let skipped = app.lesson.skipped_stages();
    let index = app.view.selected.min(skipped.len().saturating_sub(1));
    let mut writer = ProseWriter::new(app, theme, area.width);
    // The text is as wide as the card, so that much of it fits.
    writer.widest = writer.columns;
    let stage = skipped
        .get(index)
        .and_then(|stage| app.lesson.course.stages.get(*stage));
    let title = match stage {
        Some(stage) => {
            page(stage, &mut writer);
            let page = index + 1;
            let pages = skipped.len();
            format!("skipped {page}/{pages}: {} {}", stage.number, stage.title)
        }
        None => {
            writer.dim("No stage was skipped.");
            "skipped stages".to_owned()
        }
    };
    Content::titled(title, writer.lines)
}

/// Writes the page of a stage.
fn page(stage: &Stage, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    // The stage was not run, so it has no figures.
    let none = FigureSources::none(&stage.broken);
    let filled = |text: &str| fill_known(text, &none);
    w.keys(
        "{} goes back to it; {} {} turn the pages",
        &[Action::Choose, Action::TurnPage(-1), Action::TurnPage(1)],
    );
    w.heading("The symptom");
    w.body(&filled(&stage.symptom), theme.text);
    if !w.app.view.fault_shown {
        w.blank();
        w.keys(
            "{} shows its fault and its fix. The stage stays open, so you can still find them yourself.",
            &[Action::Solution],
        );
        return;
    }
    w.heading("The fault");
    w.body(&filled(&stage.fault), theme.text);
    w.heading("Where it shows");
    for pointer in &stage.evidence {
        let marker = format!("{}  ", pointer.panel.into_str());
        w.course_text(&marker, theme.key, &filled(&pointer.text));
    }
    w.heading("The fix");
    w.body(&stage.fix, theme.text);
    w.heading("On this machine");
    measured(stage, w);
}

/// Writes the figures of this machine: the learner's pairs and the rows of the last `perflings run all`, or how to measure them.
fn measured(stage: &Stage, w: &mut ProseWriter<'_>) {
    let progress = w.app.lesson.learner.progress.stage(&stage.id);
    if let Some([ratio, low, high]) = progress.ratio {
        w.text(&format!(
            "broken over yours: {ratio:.3}x [{low:.3}, {high:.3}]"
        ));
    }
    let is_about_stage = |row: &JourneyRow| row.stage == stage.number;
    match &w.app.lesson.journey {
        Some(journey) if journey.rows.iter().any(is_about_stage) => {
            for row in journey.rows.iter().filter(|row| is_about_stage(row)) {
                let cells: Vec<String> = journey
                    .head
                    .iter()
                    .zip(&row.cells)
                    .filter(|(_, cell)| !cell.is_empty())
                    .map(|(head, cell)| format!("{head} {cell}"))
                    .collect();
                w.text(&cells.join("  "));
            }
            w.dim(&format!(
                "{}, {}, {}",
                journey.device, journey.preset, journey.date
            ));
        }
        _ if progress.ratio.is_none() => {
            w.dim("Not measured yet: `perflings run all` measures every stage, broken and fixed.");
        }
        _ => {}
    }
}
