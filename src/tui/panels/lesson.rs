//! The panel of the lesson shows one page of the open stage: the symptom and hints, and after the prediction the evidence, the background,
//! the cause, the result and the debrief. An open question stays at the foot of its page while the text above it scrolls.
//!
//! ```text
//! ╭ lesson ───────────────────────── beginner · page 1 of 1 ╮
//! │ predict ▸ evidence ▸ fix ▸ check ▸ look back            │
//! │                                                         │
//! │ The loss starts near 122. A model that knows nothing    │
//! │ would start at 6.91.                                    │
//! │ ── predict ──────────────────────────────── ↓ 4 more    │
//! │ Which part of the network makes the first loss so large?│
//! │  a  The embedding                                       │
//! ╰─────────────────────────────────────────────────────────╯
//! ```
//!
//! While no stage is read, the panel has another page: of an exercise, of a mystery, of a watched training, or the knobs.

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
use crate::course::{Exercise, LessonSection, SectionKind, Stage};
use crate::judge::{Outcome, StageReport};
use crate::tui::keys;
use crate::tui::prose::ProseWriter;
use crate::tui::text;
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
    let (_, number, count) = app.reading().page();
    let aside = format!("{} · page {number} of {count}", stage.level.into_str());
    Content {
        foot,
        ..Content::text(aside, lines)
    }
}

/// Returns the rows that the page of a stage, or the knobs in its place, take at this width. `None` where neither is open.
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
    stage
        .lesson
        .sections
        .iter()
        .enumerate()
        .filter_map(move |(index, section)| shows(index, section.kind).then_some(section))
}

/// Returns the open page of a stage, with the question at its foot.
fn page_and_question(stage: &Stage, app: &App, theme: &Theme, columns: usize) -> exercise::Page {
    // Text about the stage as it was found keeps its figures while another configuration runs.
    let now = figures(app);
    let found = now.as_ref().map(|now| as_found(app, now));
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
    let w = &mut writer;
    activities(stage, w);
    match page {
        LessonPage::Start => start(stage, page, w),
        LessonPage::Evidence => {
            if !app.lesson.learner.tried(stage) && !app.lesson.learner.nothing_hidden {
                prediction(stage, w);
            }
            evidence(stage, page, w);
        }
        LessonPage::Background(_) => write_sections(page, stage, w),
        LessonPage::Cause => cause(stage, page, w),
        LessonPage::Result => {
            w.figures = found.as_ref();
            prediction(stage, w);
            w.figures = now.as_ref();
            checks(w);
        }
        LessonPage::LookBack => {
            write_sections(page, stage, w);
            claims(stage, w);
            exercises(stage, w);
        }
        LessonPage::Quiz => quiz(stage, w),
    }
    (writer.lines, question.lines)
}

/// Writes the sections of the lesson that belong to a page.
fn write_sections(page: LessonPage, stage: &Stage, w: &mut ProseWriter<'_>) {
    for section in sections(page, stage) {
        w.heading(&section.title);
        w.blocks(&section.blocks);
    }
}

/// Writes the activities of the stage, the present one highlighted, as in `✓ predict ▸ evidence ▸ fix`. Where columns are short, finished
/// activities have no names.
fn activities(stage: &Stage, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let now = w.app.lesson.learner.activity(stage);
    let mut parts = Vec::new();
    for activity in Activity::VARIANTS {
        if *activity != Activity::Predict {
            let pointer = format!(" {} ", theme.symbols.pointer);
            parts.push((0, Span::styled(pointer, theme.dim)));
        }
        let name = activity.into_str();
        match activity.cmp(&now) {
            Ordering::Less => {
                parts.push((0, Span::styled(theme.symbols.good, theme.good)));
                parts.push((1, Span::styled(format!(" {name}"), theme.good)));
            }
            Ordering::Equal => parts.push((0, Span::styled(name, theme.key))),
            Ordering::Greater => parts.push((0, Span::styled(name, theme.dim))),
        }
    }
    w.lines.push(text::ranked(parts, w.columns));
}

/// Writes the symptom of the fault and the hints so far.
fn start(stage: &Stage, page: LessonPage, w: &mut ProseWriter<'_>) {
    let app = w.app;
    let revealed = app.lesson.learner.revealed(stage);
    w.blank();
    w.body(&stage.symptom, w.theme.strong);
    let device = app.shown_run().device();
    let on_cpu = device.is_some_and(|device| device.kind == "cpu");
    // The note says what a CPU cannot show, which names the cause.
    if revealed
        && on_cpu
        && let Some(note) = &stage.cpu_note
    {
        w.blank();
        w.course_text("About the CPU: ", w.theme.dim, note);
    }
    let (shown, _) = app.reading().hints();
    for hint in 0..shown.min(stage.hints.len()) {
        w.blank();
        w.hint(hint, &stage.hints);
    }
    write_sections(page, stage, w);
    if !revealed {
        w.blank();
        w.dim("The cause is shown once you have predicted and looked at the evidence.");
    }
}

/// Writes where to look: the lesson's section about the evidence, or else the panels that the stage names.
fn evidence(stage: &Stage, page: LessonPage, w: &mut ProseWriter<'_>) {
    if w.app.reading().asks_where() {
        w.heading("Which panel shows it, and which number?");
        if w.app.lesson.learner.second_try {
            let panels = w.app.reading().panels_named(stage);
            w.text(&format!("Not there; the second try: {panels}?"));
        }
        let text = "Before the evidence is pointed out: {} changes the panel, {} the row, and {} \
                    chooses the marked row as the one that shows it. The first answer counts in your \
                    score. {} here skips it.";
        let keys = [
            Action::FocusNext,
            Action::Scroll(1),
            Action::Locate,
            Action::NextPointer,
        ];
        return w.keys(text, &keys);
    }
    if sections(page, stage).next().is_some() {
        return write_sections(page, stage, w);
    }
    w.heading("Where to look");
    let theme = w.theme;
    for pointer in &stage.evidence {
        let marker = format!("{} {}  ", theme.symbols.pointer, pointer.panel.into_str());
        w.course_text(&marker, theme.key, &pointer.text);
    }
}

/// Writes the fault in a sentence and at length, and the fix once the learner has found it or asked for it.
fn cause(stage: &Stage, page: LessonPage, w: &mut ProseWriter<'_>) {
    let app = w.app;
    let progress = app.lesson.learner.progress_of(stage);
    let passed = progress.state == StageState::Passed;
    let shows_fix = passed || progress.solution_shown || !app.keeps_progress();
    let texts = [("The fault", &stage.fault), ("The fix", &stage.fix)];
    for (title, text) in texts.into_iter().take(1 + usize::from(shows_fix)) {
        if !text.is_empty() {
            w.heading(title);
            w.body(text, w.theme.text);
        }
    }
    if let Some(lines) = app.lesson.course.in_pytorch(stage) {
        w.heading("In PyTorch, these lines cause it");
        w.blocks(std::slice::from_ref(lines));
    }
    write_sections(page, stage, w);
}

/// Writes the learner's prediction and range and, once the stage was tried, the right answer.
fn prediction(stage: &Stage, w: &mut ProseWriter<'_>) {
    w.heading("Your prediction");
    let theme = w.theme;
    let question = &stage.prediction;
    let learner = &w.app.lesson.learner;
    let tried = learner.tried(stage);
    let Some(Prediction::Choice { choice, right }) = learner.progress_of(stage).prediction else {
        w.line("Skipped; it does not count in your score.", theme.dim);
        if tried {
            let marker = format!("The answer is {}. ", letter(question.answer));
            w.course_text(&marker, theme.dim, &question.explanation);
        }
        return;
    };
    let text = question.choices.get(choice).map_or("", String::as_str);
    let marker = format!("You said {}: ", letter(choice));
    w.course_text(&marker, theme.dim, text);
    range(stage, w);
    if tried {
        let (mark, style) = theme.mark(right);
        let marker = if right {
            format!("{mark} Correct. ")
        } else {
            let answer = letter(question.answer);
            format!("{mark} Not correct. The answer is {answer}. ")
        };
        w.course_text(&marker, style, &question.explanation);
    }
}

/// Writes the learner's range on its scale, with the measured figure once it is known. Writes nothing if the learner placed no range.
fn range(stage: &Stage, w: &mut ProseWriter<'_>) {
    let learner = &w.app.lesson.learner;
    let progress = learner.progress_of(stage);
    let Some((estimate, range)) = stage.estimate.as_ref().zip(progress.estimate) else {
        return;
    };
    w.course_text("How much: ", w.theme.dim, &estimate.prompt);
    question::scale(estimate, Some(range), progress.measured, w);
    let passed = learner.report.as_ref().is_some_and(StageReport::passed);
    let latest = truth(w.app, stage);
    if let (Some(first), Some(latest)) = (progress.measured, latest)
        && passed
    {
        question::write_later(estimate, first, latest, w);
    } else if let Some(other) = learner.other_differing_knob(stage)
        && progress.measured.is_none()
        && latest.is_none()
        && estimate.of.starts_with("pair.")
    {
        w.dim(&format!(
            "Not judged: B also changes {other}. The question is about {} alone.",
            stage.varies.join(", ")
        ));
    }
}

/// Writes the verdict of the pairs and the results of the stage's checks.
fn checks(w: &mut ProseWriter<'_>) {
    let verdict = cards::verdict(w.app, w.columns, w.theme);
    if !verdict.is_empty() {
        w.heading("In pairs");
        w.lines.extend(verdict);
    }
    let Some(report) = &w.app.lesson.learner.report else {
        return;
    };
    w.heading("Measured checks");
    for line in &report.lines {
        let optional = if line.optional { " (optional)" } else { "" };
        let measured = if line.outcome == Outcome::NotMeasured {
            line.measured.clone()
        } else {
            format!("measured: {}", line.measured)
        };
        let text = format!("{}{optional}: {}; {measured}", line.name, line.asked);
        w.judged(w.theme.outcome(line.outcome), &text);
    }
}

/// Writes a list of the exercises that belong to this stage.
fn exercises(stage: &Stage, w: &mut ProseWriter<'_>) {
    let app = w.app;
    let belongs = |exercise: &&Exercise| exercise.lesson.as_ref() == Some(&stage.lesson_file);
    let exercises = app.lesson.course.exercises.iter().filter(belongs);
    for (index, exercise) in exercises.enumerate() {
        if index == 0 {
            let key = keys::label(Action::Open(Overlay::Stages), app);
            w.heading(&format!("Do it yourself ({key} lists them)"));
        }
        let marker = format!("{}  ", exercise.label());
        w.course_text(&marker, w.theme.dim, &exercise.title);
    }
}

/// Writes what others published about the fault.
fn claims(stage: &Stage, w: &mut ProseWriter<'_>) {
    if !stage.claims.is_empty() {
        w.heading("What others published");
    }
    for claim in &stage.claims {
        let text = format!("{} ({})", claim.text, claim.source);
        w.course_text("· ", w.theme.dim, &text);
    }
}

/// Writes the learner's answers, the latest first, each with a mark for right or wrong, the right answer and the explanation.
fn quiz(stage: &Stage, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let learner = &w.app.lesson.learner;
    let all = stage.quiz.len();
    let given = learner.progress_of(stage).answers.len();
    let right = learner.right_at_first(stage);
    w.heading(&format!(
        "Questions: {given} of {all} answered, {right} right"
    ));
    w.dim("The first answer to each counts in your score.");
    if learner.can_ask_again(stage) {
        let text = "{} asks the wrongly answered ones again.";
        w.keys(text, &[Action::Question]);
    }
    for (number, first, later) in learner.quiz_answers(stage).into_iter().rev() {
        let Some(question) = stage.quiz.get(number) else {
            continue;
        };
        w.blank();
        w.body(&question.prompt, theme.text);
        let is_right = |choice| choice == question.answer;
        let (mark, style) = theme.mark(is_right(later.unwrap_or(first)));
        let choice = question.choices.get(question.answer);
        let text = choice.map_or("", String::as_str);
        let answer = format!("{}: {text}", letter(question.answer));
        let given = match later {
            Some(later) => format!("First {}, now {}", letter(first), letter(later)),
            None => format!("You said {}", letter(first)),
        };
        let verdict = if is_right(first) {
            answer
        } else {
            format!("{given}. The answer is {answer}")
        };
        w.judged((mark, style), &verdict);
        w.course_text("  ", style, &question.explanation);
    }
}
