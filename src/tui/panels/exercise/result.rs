//! The card of an exercise: what the last check found or how far the present one has come, and whether the learner's
//! kernel computes for the model.

use ratatui::text::Line;

use super::Page;
use crate::app::exercise::{ExerciseState, InModel};
use crate::judge::kernel::CardLine;
use crate::tui::panels::question;
use crate::tui::text;

impl Page<'_> {
    /// The card of the last check, or of the one in progress.
    pub(super) fn result(&self) -> Vec<Line<'static>> {
        let theme = self.theme;
        let Some(desk) = self.desk else {
            return Vec::new();
        };
        if self.exercise.configs().is_some() {
            return self.runs(desk);
        }
        let mut out = Vec::new();
        if let Some(checking) = &desk.checking {
            let seconds = self.app.now_ms.saturating_sub(checking.since_ms) / 1000;
            out.push(question::rule("checking", self.columns, theme));
            out.extend(checking.card.iter().flat_map(|line| self.card_line(line)));
            let now = format!("{}, {seconds} s", checking.now);
            let mark = format!("{} ", theme.symbols.ghost);
            out.extend(text::wrap_item(
                &mark,
                theme.warning,
                &now,
                self.columns,
                theme.text,
            ));
        } else if let Some(report) = &desk.report {
            let (title, on) = match (report.passed, &report.facts.failed) {
                (_, Some(_)) => ("not checked", None),
                (true, None) => ("passed", report.facts.device.as_ref()),
                (false, None) => ("not yet", report.facts.device.as_ref()),
            };
            out.push(question::rule(title, self.columns, theme));
            out.extend(report.card.iter().flat_map(|line| self.card_line(line)));
            if let Some(device) = on {
                let slow = if device.kind == "vulkan-cpu" {
                    ", a CPU driver: being right counts there, speed does not"
                } else {
                    ""
                };
                let said = format!(
                    "checked in {:.1} s on {}{slow}",
                    report.facts.seconds, device.name
                );
                out.extend(text::wrap_plain(&said, self.columns, theme.dim));
            }
        }
        out.extend(self.in_model(desk));
        out
    }

    fn card_line(&self, line: &CardLine) -> Vec<Line<'static>> {
        let theme = self.theme;
        let (mark, style) = match line.good {
            Some(true) => (theme.symbols.good, theme.good),
            Some(false) => (theme.symbols.bad, theme.bad),
            None => (" ", theme.dim),
        };
        let body = if line.good == Some(false) {
            theme.strong
        } else {
            theme.text
        };
        text::wrap_item(&format!("{mark} "), style, &line.text, self.columns, body)
    }

    fn in_model(&self, desk: &ExerciseState) -> Vec<Line<'static>> {
        let theme = self.theme;
        let last_good = desk.report.as_ref().is_some_and(|report| !report.passed);
        let (mark, style, said) = match &desk.in_model {
            InModel::No => return Vec::new(),
            InModel::Asked => (
                theme.symbols.ghost,
                theme.warning,
                "your kernel takes over at the next step".to_owned(),
            ),
            InModel::Since(step) => {
                let which = if last_good {
                    "your last good kernel"
                } else {
                    "your kernel"
                };
                let since = step.map_or_else(String::new, |step| format!(" since step {step}"));
                (
                    theme.symbols.live,
                    theme.good,
                    format!("the model computes with {which}{since}"),
                )
            }
            InModel::Not(why) => (
                theme.symbols.ghost,
                theme.dim,
                format!("the model keeps its own kernel: {why}"),
            ),
        };
        let mut out: Vec<Line<'static>> = Vec::new();
        out.extend(text::wrap_item(
            &format!("{mark} "),
            style,
            &said,
            self.columns,
            theme.text,
        ));
        out
    }
}
