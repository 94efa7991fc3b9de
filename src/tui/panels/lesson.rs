//! The lesson beside the run, a page at a time: the symptom and hints, and once a prediction was made the evidence, the
//! cause, the result and the debrief. An open question stays at the foot of its page, whatever is scrolled above it.

mod result;

use std::cmp::Ordering;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{exercise, missing, open, question, show};
use crate::app::figures::{AsFound, Figures};
use crate::app::pages::Page;
use crate::app::study::Beat;
use crate::app::{Action, App, Overlay, Panel};
use crate::course::placeholder::Lookup;
use crate::course::{SectionKind, Stage};
use crate::tui::text::wrap_plain;
use crate::tui::theme::Theme;
use crate::tui::{keys, prose};

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    if let Some(open) = app.exercise() {
        return exercise::render(frame, area, app, open, theme);
    }
    let (page, at, of) = app.page();
    let aside = app.stage().map_or(String::new(), |stage| {
        format!("{} · page {at} of {of}", stage.level.name())
    });
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
    let mut asked = if app.asked_here() || app.mode.beat().is_some() {
        question::lines(app, columns, found, theme)
    } else {
        Vec::new()
    };
    let sheet = |figures| Sheet {
        app,
        stage,
        columns,
        figures,
        theme,
    };
    let mut text = lines(page, &sheet(found), &sheet(figures));
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
fn lines(page: Page, found: &Sheet<'_>, now: &Sheet<'_>) -> Vec<Line<'static>> {
    let mut out = vec![now.beats()];
    match page {
        Page::Start => {
            found.symptom(&mut out);
            found.hints(&mut out);
            found.sections(SectionKind::Symptom, &mut out);
            if !now.app.study.revealed(now.stage) {
                out.push(Line::default());
                let text = "The cause is told once you have predicted and looked.";
                out.extend(wrap_plain(text, now.columns, now.theme.dim));
            }
        }
        Page::Evidence => {
            if !now.app.study.tried(now.stage) && !now.app.study.nothing_hidden {
                found.prediction(&mut out);
            }
            found.evidence(&mut out);
        }
        Page::Background(at) => found.section(at, &mut out),
        Page::Cause => now.cause(&mut out),
        Page::Result => {
            found.prediction(&mut out);
            now.checks(&mut out);
        }
        Page::LookBack => {
            now.sections(SectionKind::Debrief, &mut out);
            now.claims(&mut out);
            now.exercises(&mut out);
        }
        Page::Quiz => now.quiz(&mut out),
    }
    out
}

struct Sheet<'a> {
    app: &'a App,
    stage: &'a Stage,
    columns: usize,
    figures: Option<&'a dyn Lookup>,
    theme: &'a Theme,
}

impl Sheet<'_> {
    fn heading(&self, title: &str, out: &mut Vec<Line<'static>>) {
        if !title.is_empty() {
            out.push(Line::default());
            out.extend(wrap_plain(title, self.columns, self.theme.heading));
        }
    }

    /// Sections of the lesson of one kind, in their own order.
    fn sections(&self, kind: SectionKind, out: &mut Vec<Line<'static>>) {
        for (at, section) in self.stage.lesson.sections.iter().enumerate() {
            if section.kind == kind {
                self.section(at, out);
            }
        }
    }

    fn section(&self, at: usize, out: &mut Vec<Line<'static>>) {
        let Some(section) = self.stage.lesson.sections.get(at) else {
            return;
        };
        self.heading(&section.title, out);
        out.extend(prose::lines(
            &section.blocks,
            self.columns,
            self.figures,
            Some(&self.app.course),
            self.theme,
        ));
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

    /// Where in the stage the learner is. Where room is short, what is done has its mark alone.
    fn beats(&self) -> Line<'static> {
        let now = self.app.study.beat(self.stage);
        let symbols = &self.theme.symbols;
        let row = |names: bool| {
            let mut row = Vec::new();
            for beat in Beat::ALL {
                if beat != Beat::Predict {
                    row.push(Span::styled(
                        format!(" {} ", symbols.pointer),
                        self.theme.dim,
                    ));
                }
                row.push(match beat.cmp(&now) {
                    Ordering::Less if names => {
                        Span::styled(format!("{} {}", symbols.good, beat.name()), self.theme.good)
                    }
                    Ordering::Less => Span::styled(symbols.good, self.theme.good),
                    Ordering::Equal => Span::styled(beat.name(), self.theme.key),
                    Ordering::Greater => Span::styled(beat.name(), self.theme.dim),
                });
            }
            Line::from(row)
        };
        let whole = row(true);
        if whole.width() <= self.columns {
            whole
        } else {
            row(false)
        }
    }

    /// What the panels show of the fault.
    fn symptom(&self, out: &mut Vec<Line<'static>>) {
        out.push(Line::default());
        out.extend(prose::item(
            "",
            self.theme.dim,
            &self.stage.symptom,
            self.columns,
            self.theme.strong,
            self.figures,
        ));
        // What a CPU cannot show names the cause.
        if let Some(note) = &self.stage.cpu_note
            && self.app.study.revealed(self.stage)
            && self.app.device().is_some_and(|device| device.kind == "cpu")
        {
            out.push(Line::default());
            self.item("On this CPU: ", note, out);
        }
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

    /// Where to look: the lesson's own words, or else the panels that the stage names.
    fn evidence(&self, out: &mut Vec<Line<'static>>) {
        let told = |kind| {
            let mut sections = self.stage.lesson.sections.iter();
            sections.any(|section| section.kind == kind)
        };
        if told(SectionKind::Evidence) {
            return self.sections(SectionKind::Evidence, out);
        }
        self.heading("Where to look", out);
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
    }

    /// What is wrong in a sentence, at length, and what the fix changes.
    fn cause(&self, out: &mut Vec<Line<'static>>) {
        for (title, text) in [
            ("The fault", &self.stage.fault),
            ("The fix", &self.stage.fix),
        ] {
            if !text.is_empty() {
                self.heading(title, out);
                self.item("", text, out);
            }
        }
        self.sections(SectionKind::Why, out);
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
