//! The training of another program: its processes, the comparison of A and B, and the line of code that would report a missing figure.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::App;
use crate::panel::Panel;
use crate::tui::prose::ProseWriter;
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::RankReading;
use protocol::story::{PhaseName, RunDescription, RunStory, compare_unpaired, rank_phases};
use protocol::units::{ms, percent, show};

/// A figure that a program may report.
pub(super) struct ReportedFigure {
    /// The panel that is empty without it.
    panel: Option<Panel>,
    name: &'static str,
    is_told: fn(&RunStory) -> bool,
    /// The line of Python that reports it; none where nothing does.
    line: Option<&'static str>,
    /// When the figure comes, or why it never does.
    note: &'static str,
}

const fn figure(
    panel: Option<Panel>,
    name: &'static str,
    is_told: fn(&RunStory) -> bool,
    line: &'static str,
    note: &'static str,
) -> ReportedFigure {
    ReportedFigure {
        panel,
        name,
        is_told,
        line: Some(line),
        note,
    }
}

/// Returns the entry of a panel that no other program can fill.
const fn never(panel: Panel, note: &'static str) -> ReportedFigure {
    ReportedFigure {
        line: None,
        ..figure(Some(panel), "", |_| false, "", note)
    }
}

const WATCH: &str = "run = perflings.watch(model, optimizer)";

/// Every figure, in the order of the page; `docs/watch.md` has the JSON line of each.
const FIGURES: [ReportedFigure; 12] = [
    figure(
        Some(Panel::Loss),
        "the loss",
        |run| run.loss.first().is_some(),
        "run.loss(loss)",
        "in each step, if the model does not return the loss and `backward` is not called on it",
    ),
    figure(
        None,
        "what guessing loses",
        |run| run.description.ln_vocab.is_some(),
        "perflings.watch(model, optimizer, classes=1000)",
        "the number of classes or tokens, by which the first loss is judged",
    ),
    figure(
        Some(Panel::Throughput),
        "samples/s",
        |run| run.throughput.is_some(),
        "perflings.watch(model, optimizer, samples=32)",
        "the samples of a step in this process; or data=loader, which reports them",
    ),
    figure(
        Some(Panel::Ledger),
        "phases",
        |run| run.phases().is_some(),
        WATCH,
        "or `with run.phase(\"forward\"):` around a part of the step",
    ),
    figure(
        None,
        "waiting for data",
        |run| run.phases().is_some_and(|phases| phases.data.is_some()),
        "for batch in run.data:",
        "after run = perflings.watch(model, optimizer, data=loader); or `with run.phase(\"data\"):`",
    ),
    figure(
        Some(Panel::Gradients),
        "gradients",
        |run| run.gradients.is_some(),
        WATCH,
        "every ten seconds, before the optimizer's step",
    ),
    figure(
        Some(Panel::Memory),
        "memory",
        |run| run.memory.is_some(),
        WATCH,
        "every ten seconds; a peak on GPUs only",
    ),
    figure(
        Some(Panel::Kernels),
        "kernels",
        |run| run.kernels.is_some(),
        WATCH,
        "from a step that torch.profiler sees: the first after ten seconds, then at most one a minute",
    ),
    never(
        Panel::Roofline,
        "the trace of a step has no shapes: FLOP and bytes are unknown",
    ),
    never(Panel::Exponents, "only our engine counts exponents"),
    never(Panel::Evidence, "only our engine has a reference"),
    never(
        Panel::Timeline,
        "`t` shows the latest profile as `perflings open` does",
    ),
];

/// Returns true if what is shown is the training of another program.
pub(super) fn is_shown(app: &App) -> bool {
    let run = app.shown_run().shown();
    app.mode.watches() || run.has_begun() && run.description.is_foreign()
}

/// Returns the figure that a panel lacks because another program did not report it.
pub(super) fn unreported(panel: Panel, app: &App) -> Option<&'static ReportedFigure> {
    if !is_shown(app) {
        return None;
    }
    let figure = FIGURES.iter().find(|figure| figure.panel == Some(panel))?;
    let runs = &app.shown_run().story.slots;
    (!runs.iter().any(figure.is_told)).then_some(figure)
}

impl ReportedFigure {
    /// Returns the text of its empty panel: the line that would fill it, and when the figure comes.
    pub(super) fn content<'a>(&self, app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
        let mut w = ProseWriter::new(app, theme, area.width);
        w.dim("not reported:");
        self.write(&mut w);
        Content::text("", w.lines)
    }

    fn write(&self, w: &mut ProseWriter<'_>) {
        if let Some(line) = self.line {
            w.plain(line, w.theme.code);
        }
        w.dim(self.note);
    }
}

/// The page in the place of a lesson.
pub(super) fn page<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let story = &app.shown_run().story;
    let run = app.shown_run().shown();
    let mut w = ProseWriter::new(app, theme, area.width);
    if story.ranks.is_empty() && !run.has_begun() {
        w.text("Waiting for the first line of the training.");
        w.blank();
        w.dim("A PyTorch script writes lines once it has called");
        w.plain(WATCH, theme.code);
        w.dim("`perflings watch --python` prints perflings.py for it; docs/watch.md says what other programs write.");
        return Content::titled("training", w.lines);
    }
    let is_apart = |one: &&RunStory| one.description.apart;
    let side_by_side: Vec<&RunStory> = story.slots.iter().filter(is_apart).collect();
    if side_by_side.is_empty() {
        description(run, &story.ranks, &mut w);
    }
    for one in side_by_side {
        description(one, &story.ranks, &mut w);
    }
    for training in story.ranks.chunk_by(|one, next| one.slot == next.slot) {
        ranks(training, run.description.apart, &mut w);
        phases(training, &mut w);
    }
    own_time(&story.ranks, &mut w);
    compared(&story.slots, &mut w);
    let missing = FIGURES
        .iter()
        .filter(|figure| figure.line.is_some() && !(figure.is_told)(run));
    for (at, figure) in missing.enumerate() {
        if at == 0 {
            w.heading("Not reported so far");
        }
        w.text(figure.name);
        figure.write(&mut w);
    }
    Content::titled("training", w.lines)
}

/// Writes the name of a run, its hosts and its device.
fn description(run: &RunStory, ranks: &[RankReading], w: &mut ProseWriter<'_>) {
    let RunDescription { name, slot, .. } = &run.description;
    let device = run.description.device.as_ref();
    let device = device.map_or("device not reported", |device| device.name.as_str());
    let of_run = ranks.iter().filter(|rank| rank.slot == *slot);
    let host = |rank: &RankReading| rank.host.clone().unwrap_or("an unnamed host".to_owned());
    let mut hosts: Vec<String> = of_run.map(host).collect();
    hosts.dedup();
    let side = if run.description.apart {
        format!("{slot:?}: ")
    } else {
        String::new()
    };
    w.text(&format!("{side}{name} on {}: {device}", hosts.join(", ")));
}

/// Writes a line for each process: its step, the length of a step, and what it does.
fn ranks(ranks: &[RankReading], is_apart: bool, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let Some(first) = ranks.first() else {
        return;
    };
    let of_slot = format!("Processes of {:?}", first.slot);
    w.heading(if is_apart { &of_slot } else { "Processes" });
    w.line("rank     step  step ms", theme.dim);
    for rank in ranks {
        let step = rank.step.map_or("-".to_owned(), |step| step.to_string());
        let length = rank.step_ms.map_or("-".to_owned(), ms);
        let number = text::left(&rank.rank.to_string(), 5);
        let figures = format!(
            "{number}{}{}  ",
            text::right(&step, 8),
            text::right(&length, 9)
        );
        let (said, style) = state(rank, theme);
        w.item_in(&figures, theme.text, &said, style);
    }
}

/// Returns in words what a process does, and their style.
fn state(rank: &RankReading, theme: &Theme) -> (String, Style) {
    let phase = rank.phase.as_deref();
    let place = phase.map_or(String::new(), |phase| format!(", in {phase}"));
    match (&rank.ended, rank.silent_s, rank.no_step_s, rank.step) {
        (Some(why), ..) if why.is_empty() => ("over".to_owned(), theme.dim),
        (Some(why), ..) => (format!("ended: {why}"), theme.bad),
        (None, Some(seconds), ..) => {
            let said = format!("silent for {seconds} s{place}: it may be gone");
            (said, theme.bad)
        }
        (None, None, Some(seconds), _) => {
            (format!("no step for {seconds} s{place}"), theme.warning)
        }
        (None, None, None, None) => ("before its first step".to_owned(), theme.dim),
        (None, None, None, Some(_)) => match phase {
            Some(phase) => (format!("in {phase}"), theme.text),
            None => ("running".to_owned(), theme.good),
        },
    }
}

/// Returns what ails the worst process: it ended early, is silent or makes no step. `None` if all go on.
pub(super) fn trouble(app: &App, theme: &Theme) -> Option<String> {
    if !app.mode.watches() {
        return None;
    }
    let ranks = &app.shown_run().story.ranks;
    let ended_early = |rank: &&RankReading| rank.ended.as_ref().is_some_and(|why| !why.is_empty());
    // Of two trainings the second is the newer one; the page on the left tells about both.
    let latest = ranks.chunk_by(|one, next| one.slot == next.slot).last()?;
    let worst = latest
        .iter()
        .find(ended_early)
        .or(latest.iter().find(|rank| rank.silent_s.is_some()))
        .or(latest.iter().find(|rank| rank.no_step_s.is_some()))?;
    let said = state(worst, theme).0;
    Some(match ranks.len() {
        1 => said,
        _ => format!("rank {}: {said}", worst.rank),
    })
}

/// Writes the median and the worst of each phase, where there are several processes.
fn phases(ranks: &[RankReading], w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let phases = rank_phases(ranks);
    if ranks.len() < 2 || phases.is_empty() {
        return;
    }
    w.heading("Phases of all processes");
    w.line("ms             median    worst  rank", theme.dim);
    for phase in &phases {
        let figures = [ms(phase.median), ms(phase.worst)].map(|time| text::right(&time, 9));
        let name = text::left(phase.name.into_str(), 12);
        let style = if phase.straggles {
            theme.bad
        } else {
            theme.text
        };
        let line = format!("{name}{}  {}", figures.concat(), phase.rank);
        w.line(line, style);
    }
    let late: Vec<String> = phases
        .iter()
        .filter(|phase| phase.straggles)
        .map(|phase| format!("{} in {}", phase.rank, phase.name.into_str()))
        .collect();
    if !late.is_empty() {
        let said = format!("The others wait for rank {}.", late.join(", and for rank "));
        w.plain(&said, theme.bad);
    }
    if phases.iter().any(|phase| phase.name == PhaseName::Backward) {
        w.dim("Backward contains the exchange of gradients, in which early ranks wait for late ones, so backward names no straggler.");
    }
}

/// Writes the share of a step that the watching itself takes.
fn own_time(ranks: &[RankReading], w: &mut ProseWriter<'_>) {
    let told = ranks
        .iter()
        .filter_map(|rank| Some((rank.own_ms?, rank.step_ms.filter(|step| *step > 0.0)?)));
    let Some((own, step)) = told.max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1))) else {
        return;
    };
    w.heading("The watching");
    let share = percent(100.0 * own / step);
    w.text(&format!(
        "It takes {} ms of a step, {share} %, as the program counts it.",
        ms(own)
    ));
}

/// Writes the comparison of B with A, and what it is worth.
fn compared([a, b]: &[RunStory; 2], w: &mut ProseWriter<'_>) {
    if !b.has_begun() {
        return;
    }
    w.heading("B beside A");
    let Some(found) = compare_unpaired(a, b) else {
        w.dim("B has too few steps yet.");
        return;
    };
    let [change, worth] = found.sentences();
    w.plain(&change, w.theme.strong);
    w.text(&worth);
    let mut row = |name: &str, [of_a, of_b]: [&str; 2]| {
        let cell = |text: &str, style: Style| Span::styled(text::right(text, 9), style);
        let name = Span::styled(text::left(name, 12), w.theme.dim);
        let cells = [name, cell(of_a, w.theme.a), cell(of_b, w.theme.b)];
        w.lines.push(Line::from_iter(cells));
    };
    row("ms", ["A", "B"]);
    for (name, times) in found.phases {
        let [of_a, of_b] = times.map(ms);
        row(name.into_str(), [&of_a, &of_b]);
    }
    if let Some(rates) = found.rates {
        let [of_a, of_b] = rates.map(|rate| show(rate, 1));
        row("samples/s", [&of_a, &of_b]);
    }
}
