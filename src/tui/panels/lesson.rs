//! The lesson beside the run: symptom, hints, and once a prediction was made the evidence, the cause and the fix; in
//! the end the measured checks and the debrief. An open question stays at the foot, whatever is scrolled above it.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{cards, exercise, missing, open, question, show};
use crate::app::figures::{AsFound, Figures, letter};
use crate::app::study::Beat;
use crate::app::{Action, App, Overlay, Panel};
use crate::course::check::Outcome;
use crate::course::placeholder::Lookup;
use crate::course::progress::Prediction;
use crate::course::{SectionKind, Stage};
use crate::tui::theme::Theme;
use crate::tui::{keys, prose};

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    if let Some(open) = app.exercise() {
        return exercise::render(frame, area, app, open, theme);
    }
    let aside = app
        .stage()
        .map_or(String::new(), |stage| stage.level.name().to_owned());
    let inner = open(frame, area, Panel::Lesson, &aside, app, theme);
    let Some(stage) = app.stage() else {
        frame.render_widget(missing("this course has no stage", theme), inner);
        return 0;
    };
    let figures = Figures::of(app);
    let found = figures.as_ref().map(AsFound);
    let found = found.as_ref().map(|it| it as &dyn Lookup);
    let figures = figures.as_ref().map(|it| it as &dyn Lookup);
    let columns = usize::from(inner.width);
    let mut asked = question::lines(app, columns, found, theme);
    let page = |figures| Page {
        app,
        stage,
        columns,
        figures,
        theme,
    };
    let mut text = lines(&page(found), &page(figures));
    // A question that leaves no room to read is part of the text instead.
    if asked.len() + 4 > usize::from(inner.height) {
        text.push(Line::default());
        text.append(&mut asked);
    }
    let foot = u16::try_from(asked.len()).unwrap_or(0);
    let (above, below) = (
        inner.height - foot,
        Rect {
            y: inner.bottom() - foot,
            height: foot,
            ..inner
        },
    );
    show(frame, below, asked, 0, theme);
    show(
        frame,
        Rect {
            height: above,
            ..inner
        },
        text,
        app.view.scroll_of(Panel::Lesson),
        theme,
    )
}

/// The text above the question. What describes the stage as it was found keeps its figures when something else runs.
fn lines(found: &Page<'_>, page: &Page<'_>) -> Vec<Line<'static>> {
    let (app, stage) = (page.app, page.stage);
    let revealed = app.study.revealed(stage);
    let mut out = found.symptom();
    found.hints(&mut out);
    // What is new comes first: how the prediction fared, then the cause, then what was there from the start.
    if app.study.predicted(stage) && !app.study.open {
        found.prediction(&mut out);
    }
    if revealed {
        page.checks(&mut out);
        if app.study.beat(stage) == Beat::Debrief {
            page.sections(&[SectionKind::Debrief], &mut out);
            page.claims(&mut out);
            page.exercises(&mut out);
        }
        found.evidence(&mut out);
        page.sections(&[SectionKind::Evidence, SectionKind::Why], &mut out);
    }
    found.sections(&[SectionKind::Symptom, SectionKind::Background], &mut out);
    if !revealed {
        out.push(Line::default());
        let text = "The cause is told once you have predicted.";
        out.push(Line::styled(text, page.theme.dim));
    }
    out
}

struct Page<'a> {
    app: &'a App,
    stage: &'a Stage,
    columns: usize,
    figures: Option<&'a dyn Lookup>,
    theme: &'a Theme,
}

impl Page<'_> {
    fn heading(&self, title: &str, out: &mut Vec<Line<'static>>) {
        if !title.is_empty() {
            out.push(Line::default());
            out.extend(crate::tui::text::wrap_plain(
                title,
                self.columns,
                self.theme.heading,
            ));
        }
    }

    /// Sections of the lesson of these kinds, in their own order.
    fn sections(&self, kinds: &[SectionKind], out: &mut Vec<Line<'static>>) {
        for section in self
            .stage
            .lesson
            .sections
            .iter()
            .filter(|section| kinds.contains(&section.kind))
        {
            self.heading(&section.title, out);
            out.extend(prose::lines(
                &section.blocks,
                self.columns,
                self.figures,
                Some(&self.app.course),
                self.theme,
            ));
        }
    }

    fn item(&self, marker: &str, text: &str, out: &mut Vec<Line<'static>>) {
        out.extend(prose::item(
            marker,
            self.theme.dim,
            text,
            self.columns,
            self.theme.text,
            self.figures,
        ));
    }

    /// Where in the stage we are, and what the panels show.
    fn symptom(&self) -> Vec<Line<'static>> {
        let now = self.app.study.beat(self.stage);
        let mut beats = Vec::new();
        for beat in Beat::ALL {
            if beat != Beat::Predict {
                beats.push(Span::styled(
                    format!(" {} ", self.theme.symbols.pointer),
                    self.theme.dim,
                ));
            }
            let (mark, style) = match beat.cmp(&now) {
                std::cmp::Ordering::Less => {
                    (format!("{} ", self.theme.symbols.good), self.theme.good)
                }
                std::cmp::Ordering::Equal => (String::new(), self.theme.key),
                std::cmp::Ordering::Greater => (String::new(), self.theme.dim),
            };
            beats.push(Span::styled(format!("{mark}{}", beat.name()), style));
        }
        let mut out = vec![Line::from(beats), Line::default()];
        let body = prose::item(
            "",
            self.theme.dim,
            &self.stage.symptom,
            self.columns,
            self.theme.strong,
            self.figures,
        );
        out.extend(body);
        // What a CPU cannot show names the cause.
        if let Some(note) = &self.stage.cpu_note
            && self.app.study.revealed(self.stage)
            && self.app.device().is_some_and(|device| device.kind == "cpu")
        {
            out.push(Line::default());
            self.item("On this CPU: ", note, &mut out);
        }
        out
    }

    fn hints(&self, out: &mut Vec<Line<'static>>) {
        let count = self.stage.hints.len();
        for (at, hint) in self
            .stage
            .hints
            .iter()
            .take(self.app.study.hints as usize)
            .enumerate()
        {
            out.push(Line::default());
            let marker = format!("Hint {}/{count}  ", at + 1);
            out.extend(prose::item(
                &marker,
                self.theme.warning,
                hint,
                self.columns,
                self.theme.text,
                self.figures,
            ));
        }
    }

    fn prediction(&self, out: &mut Vec<Line<'static>>) {
        self.heading("Your prediction", out);
        let question = &self.stage.prediction;
        match self.app.study.of(self.stage).prediction {
            Some(Prediction::Choice { choice, right }) => {
                let said = question.choices.get(choice).map_or("", String::as_str);
                self.item(&format!("You said {}: ", letter(choice)), said, out);
                self.estimate(out);
                if !self.app.study.tried(self.stage) {
                    if self.app.study.revealed(self.stage) {
                        out.push(Line::styled("Now see whether it is so.", self.theme.dim));
                    }
                    return;
                }
                let (mark, style, word) = if right {
                    (self.theme.symbols.good, self.theme.good, "It was so. ")
                } else {
                    (self.theme.symbols.bad, self.theme.bad, "It was not so. ")
                };
                let marker = format!("{mark} {word}");
                out.extend(prose::item(
                    &marker,
                    style,
                    &question.explanation,
                    self.columns,
                    self.theme.text,
                    self.figures,
                ));
            }
            _ => {
                out.push(Line::styled(
                    "Skipped; it does not count in your score.",
                    self.theme.dim,
                ));
                if self.app.study.tried(self.stage) {
                    let truth = letter(question.answer);
                    self.item(
                        &format!("The answer is {truth}. "),
                        &question.explanation,
                        out,
                    );
                }
            }
        }
    }

    /// The range the learner gave, and the truth in it or beside it.
    fn estimate(&self, out: &mut Vec<Line<'static>>) {
        let known = self.app.study.of(self.stage);
        if let (Some(of), Some(range)) = (&self.stage.estimate, known.estimate) {
            self.item("How much: ", &of.prompt, out);
            out.extend(question::scale(
                of,
                range,
                known.measured,
                self.columns,
                self.theme,
            ));
        }
    }

    /// Where to look, what is wrong, what the fix changes.
    fn evidence(&self, out: &mut Vec<Line<'static>>) {
        if !self.stage.evidence.is_empty() {
            self.heading("Where to look", out);
        }
        for pointer in &self.stage.evidence {
            let marker = format!("{} {}  ", self.theme.symbols.pointer, pointer.panel);
            out.extend(prose::item(
                &marker,
                self.theme.key,
                &pointer.text,
                self.columns,
                self.theme.text,
                self.figures,
            ));
        }
        if !self.stage.fault.is_empty() {
            self.heading("The fault", out);
            self.item("", &self.stage.fault, out);
        }
        if !self.stage.fix.is_empty() {
            self.heading("The fix", out);
            self.item("", &self.stage.fix, out);
        }
    }

    /// The stage's criteria, as far as they are measured.
    fn checks(&self, out: &mut Vec<Line<'static>>) {
        let verdict = cards::verdict(self.app, self.columns, self.theme);
        if !verdict.is_empty() {
            self.heading("In pairs", out);
            out.extend(verdict);
        }
        let Some(report) = &self.app.study.report else {
            return;
        };
        self.heading("Measured checks", out);
        for line in &report.lines {
            let (mark, style) = match line.outcome {
                Outcome::Passed => (self.theme.symbols.good, self.theme.good),
                Outcome::Failed => (self.theme.symbols.bad, self.theme.bad),
                Outcome::NotMeasured => (self.theme.symbols.ghost, self.theme.dim),
            };
            let optional = if line.optional { " (optional)" } else { "" };
            let text = format!(
                "{}{optional}: {}; measured: {}",
                line.name, line.asked, line.measured
            );
            out.extend(prose::item(
                &format!("{mark} "),
                style,
                &text,
                self.columns,
                self.theme.text,
                self.figures,
            ));
        }
    }

    /// Exercises on what this stage is about.
    fn exercises(&self, out: &mut Vec<Line<'static>>) {
        let name = self.stage.path.rsplit('/').next().unwrap_or_default();
        let here = self.app.course.exercises.iter().filter(|exercise| {
            let lesson = exercise.lesson.as_deref().unwrap_or_default();
            lesson.trim_end_matches(".md") == name
        });
        let here: Vec<_> = here.collect();
        if here.is_empty() {
            return;
        }
        let key = keys::label(Action::Open(Overlay::Stages), self.app);
        self.heading(&format!("Do it yourself ({key} lists them)"), out);
        for exercise in here {
            self.item(&format!("{}  ", exercise.label()), &exercise.title, out);
        }
    }

    fn claims(&self, out: &mut Vec<Line<'static>>) {
        if self.stage.claims.is_empty() {
            return;
        }
        self.heading("What others published", out);
        for claim in &self.stage.claims {
            let text = format!("{} ({})", claim.text, claim.source);
            self.item("· ", &text, out);
        }
    }
}
