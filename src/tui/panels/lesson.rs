//! The panel of the lesson shows a page at a time: the symptom and hints, and after the prediction the evidence, the cause, the result and
//! the debrief. An open question stays at the foot of its page while the text above it scrolls.

use std::cmp::Ordering;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use strum::VariantArray;

use super::content::Content;
use super::{cards, exercise, knobs, mystery, question, watched};
use crate::app::beats::VoteState;
use crate::app::figures::{as_found, figures, truth};
use crate::app::learner::{Activity, LessonPage};
use crate::app::{Action, App, Overlay};
use crate::course::save_file::{Prediction, StageState, letter};
use crate::course::{LessonSection, SectionKind, Stage};
use crate::judge::{Outcome, StageReport};
use crate::tui::keys;
use crate::tui::prose::ProseWriter;
use crate::tui::theme::Theme;

pub fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    if app.knobs_open() {
        return knobs::content(app, theme, area);
    }
    let mut writer = ProseWriter::new(app, theme, area.width);
    if let Some(open) = app.exercise() {
        let (above, foot) = exercise::page(open, app, theme, area);
        return Content {
            title: Some(format!("exercise {}", open.label())),
            foot,
            ..Content::text(open.level.into_str(), above)
        };
    }
    if let Some(open) = app.mode.mystery() {
        mystery::page(open, &mut writer);
        return Content {
            title: Some("mystery".to_owned()),
            ..Content::text(format!("level {}", open.mystery.level()), writer.lines)
        };
    }
    let Some(stage) = app.stage() else {
        if app.can_edit() {
            let text = "A run without a stage: {} opens the knobs.";
            writer.keys(text, &[Action::Knobs]);
        } else if watched::is_shown(app) {
            return watched::page(app, theme, area);
        } else if app.mode.is_replay() {
            writer.text("A recorded run that belongs to no stage: it has no lesson.");
        } else {
            writer.dim("This course has no stage.");
        }
        return Content::text("", writer.lines);
    };
    let (mut lines, mut foot) = page_and_question(stage, app, theme, writer.columns);
    // A question that would leave no room to read becomes a part of the text.
    if foot.len() + 4 > usize::from(area.height) {
        lines.push(Line::default());
        lines.append(&mut foot);
    }
    let (_, at, of) = app.reading().page();
    let aside = format!("{} · page {at} of {of}", stage.level.into_str());
    Content {
        foot,
        ..Content::text(aside, lines)
    }
}

/// Returns the rows that the page of a stage, or its knobs, take at this width. `None` where neither is open.
pub fn rows(app: &App, theme: &Theme, columns: usize) -> Option<usize> {
    let shows_stage = app.stage().is_some() && app.exercise().is_none();
    let area = Rect::new(0, 0, columns as u16, u16::MAX);
    (app.knobs_open() || shows_stage).then(|| content(app, theme, area).rows())
}

/// Returns the sections of the stage's text that a page shows.
pub fn sections(page: LessonPage, stage: &Stage) -> impl Iterator<Item = &LessonSection> {
    let shows = move |index: usize, kind: SectionKind| match page {
        LessonPage::Start => kind == SectionKind::Symptom,
        LessonPage::Evidence => kind == SectionKind::Evidence,
        LessonPage::Background(section) => section == index,
        LessonPage::Cause => kind == SectionKind::Why,
        LessonPage::LookBack => kind == SectionKind::Debrief,
        LessonPage::Result | LessonPage::Quiz => false,
    };
    let sections = stage.lesson.sections.iter().enumerate();
    sections.filter_map(move |(index, section)| shows(index, section.kind).then_some(section))
}

/// Returns the open page of a stage, and the question at its foot.
fn page_and_question(
    stage: &Stage,
    app: &App,
    theme: &Theme,
    columns: usize,
) -> (Vec<Line<'static>>, Vec<Line<'static>>) {
    // Text about the stage as it was found keeps its figures while another configuration runs.
    let now = &figures(app);
    let found = &now.as_ref().map(|now| as_found(app, now));
    let mut question = ProseWriter::new(app, theme, columns);
    question.figures = found.as_ref();
    let voting = app.beat().is_some_and(|beat| beat.vote == VoteState::Open);
    if app.reading().asked_here() && app.beat().is_none() || voting {
        question::write_open(stage, &mut question);
    }
    let (page, ..) = app.reading().page();
    let mut writer = ProseWriter::new(app, theme, columns);
    writer.figures = match page {
        LessonPage::Start | LessonPage::Evidence | LessonPage::Background(_) => found.as_ref(),
        LessonPage::Cause | LessonPage::Result | LessonPage::LookBack | LessonPage::Quiz => {
            now.as_ref()
        }
    };
    let mut text = Text {
        stage,
        page,
        w: writer,
    };
    text.phases();
    match page {
        LessonPage::Start => text.start(),
        LessonPage::Evidence => {
            if !app.lesson.learner.tried(stage) && !app.lesson.learner.nothing_hidden {
                text.prediction();
            }
            text.evidence();
        }
        LessonPage::Background(_) => text.sections(),
        LessonPage::Cause => text.cause(),
        LessonPage::Result => {
            text.w.figures = found.as_ref();
            text.prediction();
            text.w.figures = now.as_ref();
            text.checks();
        }
        LessonPage::LookBack => {
            text.sections();
            text.claims();
            text.exercises();
        }
        LessonPage::Quiz => text.quiz(),
    }
    (text.w.lines, question.lines)
}

/// Writes a page of the stage's text.
struct Text<'a> {
    stage: &'a Stage,
    page: LessonPage,
    w: ProseWriter<'a>,
}

impl Text<'_> {
    /// Writes the sections of the lesson that belong to the page.
    fn sections(&mut self) {
        for section in sections(self.page, self.stage) {
            self.w.heading(&section.title);
            self.w.blocks(&section.blocks);
        }
    }

    fn item(&mut self, marker: &str, text: &str) {
        let theme = self.w.theme;
        self.w.course_text(marker, theme.dim, text);
    }

    /// Writes the activities of the stage with a mark at the present one. Where room is short, finished activities have no names.
    fn phases(&mut self) {
        let theme = self.w.theme;
        let now = self.w.app.lesson.learner.activity(self.stage);
        let row = |names: bool| {
            let mut row = Vec::new();
            for phase in Activity::VARIANTS {
                if *phase != Activity::Predict {
                    let pointer = format!(" {} ", theme.symbols.pointer);
                    row.push(Span::styled(pointer, theme.dim));
                }
                let (name, good) = (phase.into_str(), theme.symbols.good);
                row.push(match phase.cmp(&now) {
                    Ordering::Less if names => Span::styled(format!("{good} {name}"), theme.good),
                    Ordering::Less => Span::styled(good, theme.good),
                    Ordering::Equal => Span::styled(name, theme.key),
                    Ordering::Greater => Span::styled(name, theme.dim),
                });
            }
            Line::from(row)
        };
        let whole = row(true);
        let fits = whole.width() <= self.w.columns;
        self.w.lines.push(if fits { whole } else { row(false) });
    }

    /// Writes the symptom of the fault and the hints so far.
    fn start(&mut self) {
        let (app, theme, stage) = (self.w.app, self.w.theme, self.stage);
        let told = app.lesson.learner.revealed(stage);
        self.w.blank();
        self.w.body(&stage.symptom, theme.strong);
        let device = app.shown_run().device();
        let on_cpu = device.is_some_and(|device| device.kind == "cpu");
        // The note names the cause, because it says what a CPU cannot show.
        if told
            && on_cpu
            && let Some(note) = &stage.cpu_note
        {
            self.w.blank();
            self.item("About the CPU: ", note);
        }
        for hint in 0..app.reading().hints().0.min(stage.hints.len()) {
            self.w.blank();
            self.w.hint(hint, &stage.hints);
        }
        self.sections();
        if !told {
            self.w.blank();
            self.w
                .dim("The cause is shown once you have predicted and looked at the evidence.");
        }
    }

    /// Writes where to look: the lesson's section about the evidence, or else the panels that the stage names.
    fn evidence(&mut self) {
        if self.w.app.reading().asks_where() {
            self.w.heading("Which panel shows it, and which number?");
            if self.w.app.lesson.learner.second_try {
                let panels = self.w.app.reading().panels_named(self.stage);
                self.w
                    .text(&format!("Not there; the second try: {panels}?"));
            }
            let text = "Before the evidence is pointed out: {} changes the panel, {} the row, and {} chooses the marked row as the one \
                        that shows it. The first answer counts in your score. {} here skips it.";
            let keys = [
                Action::FocusNext,
                Action::Scroll(1),
                Action::Locate,
                Action::NextPointer,
            ];
            return self.w.keys(text, &keys);
        }
        if sections(self.page, self.stage).next().is_some() {
            return self.sections();
        }
        self.w.heading("Where to look");
        let theme = self.w.theme;
        for pointer in &self.stage.evidence {
            let marker = format!("{} {}  ", theme.symbols.pointer, pointer.panel.into_str());
            self.w.course_text(&marker, theme.key, &pointer.text);
        }
    }

    /// Writes the fault in a sentence and at length, and the fix after it was found or asked for.
    fn cause(&mut self) {
        let (app, stage) = (self.w.app, self.stage);
        let known = app.lesson.learner.progress_of(stage);
        let found =
            known.state == StageState::Passed || known.solution_shown || !app.keeps_progress();
        let texts = [("The fault", &stage.fault), ("The fix", &stage.fix)];
        for (title, text) in texts.into_iter().take(1 + usize::from(found)) {
            if !text.is_empty() {
                self.w.heading(title);
                self.item("", text);
            }
        }
        if let Some(lines) = app.lesson.course.in_pytorch(stage) {
            self.w.heading("In PyTorch, these lines make it");
            self.w.blocks(std::slice::from_ref(lines));
        }
        self.sections();
    }

    /// Writes the learner's prediction and range, and whether they were right.
    fn prediction(&mut self) {
        self.w.heading("Your prediction");
        let (app, theme, stage) = (self.w.app, self.w.theme, self.stage);
        let question = &stage.prediction;
        let tried = app.lesson.learner.tried(stage);
        let Some(Prediction::Choice { choice, right }) =
            app.lesson.learner.progress_of(stage).prediction
        else {
            self.w
                .line("Skipped; it does not count in your score.", theme.dim);
            if tried {
                let marker = format!("The answer is {}. ", letter(question.answer));
                self.item(&marker, &question.explanation);
            }
            return;
        };
        let words = question.choices.get(choice).map_or("", String::as_str);
        self.item(&format!("You said {}: ", letter(choice)), words);
        let learner = &app.lesson.learner;
        let known = learner.progress_of(stage);
        if let (Some(estimate), Some(range)) = (&stage.estimate, known.estimate) {
            self.item("How much: ", &estimate.prompt);
            question::scale(estimate, Some(range), known.measured, &mut self.w);
            let passed = learner.report.as_ref().is_some_and(StageReport::passed);
            match (
                known.measured,
                truth(app, stage),
                learner.other_differing_knob(stage),
            ) {
                (Some(first), Some(later), _) if passed => {
                    question::later(estimate, first, later, &mut self.w);
                }
                (None, None, Some(other)) if estimate.of.starts_with("pair.") => {
                    self.w.dim(&format!(
                        "Not judged: B also changes {other}. The question is about {} alone.",
                        stage.varies.join(", ")
                    ));
                }
                _ => {}
            }
        }
        if tried {
            let (mark, style) = theme.mark(right);
            let marker = if right {
                format!("{mark} Correct. ")
            } else {
                let answer = letter(question.answer);
                format!("{mark} Not correct. The answer is {answer}. ")
            };
            self.w.course_text(&marker, style, &question.explanation);
        }
    }

    /// Writes the verdict of the pairs and the results of the stage's checks.
    fn checks(&mut self) {
        let (app, theme) = (self.w.app, self.w.theme);
        let verdict = cards::verdict(app, self.w.columns, theme);
        if !verdict.is_empty() {
            self.w.heading("In pairs");
            self.w.lines.extend(verdict);
        }
        let Some(report) = &app.lesson.learner.report else {
            return;
        };
        self.w.heading("Measured checks");
        for line in &report.lines {
            let optional = if line.optional { " (optional)" } else { "" };
            let measured = if line.outcome == Outcome::NotMeasured {
                line.measured.clone()
            } else {
                format!("measured: {}", line.measured)
            };
            let text = format!("{}{optional}: {}; {measured}", line.name, line.asked);
            self.w.judged(theme.outcome(line.outcome), &text);
        }
    }

    /// Lists the exercises that belong to this stage.
    fn exercises(&mut self) {
        let app = self.w.app;
        let name = self.stage.path.rsplit('/').next().unwrap_or_default();
        let exercises = app.lesson.course.exercises.iter().filter(|exercise| {
            let lesson = exercise.lesson.as_deref().unwrap_or_default();
            lesson.trim_end_matches(".md") == name
        });
        for (index, exercise) in exercises.enumerate() {
            if index == 0 {
                let key = keys::label(Action::Open(Overlay::Stages), app);
                self.w
                    .heading(&format!("Do it yourself ({key} lists them)"));
            }
            self.item(&format!("{}  ", exercise.label()), &exercise.title);
        }
    }

    fn claims(&mut self) {
        let claims = &self.stage.claims;
        if !claims.is_empty() {
            self.w.heading("What others published");
        }
        for claim in claims {
            self.item("· ", &format!("{} ({})", claim.text, claim.source));
        }
    }

    /// Writes the learner's answers, the latest first: whether each was right, and the reason.
    fn quiz(&mut self) {
        let (theme, stage, learner) = (self.w.theme, self.stage, &self.w.app.lesson.learner);
        let all = stage.quiz.len();
        let given = learner.progress_of(stage).answers.len();
        let right = learner.right_at_first(stage);
        let title = format!("Questions: {given} of {all} answered, {right} right");
        self.w.heading(&title);
        self.w.dim("The first answer to each counts in your score.");
        if learner.can_ask_again(stage) {
            let text = "{} asks the wrongly answered ones again.";
            self.w.keys(text, &[Action::Question]);
        }
        for (number, first, later) in learner.quiz_answers(stage).into_iter().rev() {
            let Some(question) = stage.quiz.get(number) else {
                continue;
            };
            self.w.blank();
            self.item("", &question.prompt);
            let is_right = |choice| choice == question.answer;
            let (mark, style) = theme.mark(is_right(later.unwrap_or(first)));
            let answer = letter(question.answer);
            let choice = question.choices.get(question.answer);
            let words = choice.map_or("", String::as_str);
            let given = match later {
                Some(later) => format!("First {}, now {}", letter(first), letter(later)),
                None => format!("You said {}", letter(first)),
            };
            let verdict = if is_right(first) {
                format!("{answer}: {words}")
            } else {
                format!("{given}. The answer is {answer}: {words}")
            };
            self.w.judged((mark, style), &verdict);
            self.w.course_text("  ", style, &question.explanation);
        }
    }
}
