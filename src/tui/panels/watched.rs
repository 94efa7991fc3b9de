//! The page about the training of another program shows its processes, compares its two parts, and says which line of the program would
//! report a figure that has not come.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::App;
use crate::panel::Panel;
use crate::tui::prose::ProseWriter;
use crate::tui::theme::Theme;
use protocol::RankReading;
use protocol::story::{PhaseName, RunStory, rank_phases, unpaired};
use protocol::units::{ms, or_dash, percent};

/// A figure that a program may report.
pub(super) struct ReportedFigure {
    /// The panel that is empty without the figure.
    panel: Option<Panel>,
    name: &'static str,
    /// Returns true if a run has reported the figure.
    is_told: fn(&RunStory) -> bool,
    /// The line of Python that reports the figure; `None` if no line does.
    line: Option<&'static str>,
    /// A note that says when the figure comes, or why it does not.
    note: &'static str,
}

/// Makes the entry of a figure that the program's `line` reports.
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

/// Makes the entry of a panel about something that only our engine reports.
const fn never(panel: Panel, note: &'static str) -> ReportedFigure {
    ReportedFigure {
        line: None,
        ..figure(Some(panel), "", |_| false, "", note)
    }
}

const WATCH: &str = "run = perflings.watch(model, optimizer)";

/// Every figure, in the order of the page. `docs/watch.md` has the JSON line of each.
const FIGURES: [ReportedFigure; 12] = [
    figure(
        Some(Panel::Loss),
        "the loss",
        |run| run.loss.first().is_some(),
        "run.loss(loss)",
        "of each step, where neither the model returns it nor `backward` is called on it",
    ),
    figure(
        None,
        "what guessing loses",
        |run| run.description.ln_vocab.is_some(),
        "perflings.watch(model, optimizer, classes=1000)",
        "the number of classes or tokens; the first loss is judged by it",
    ),
    figure(
        Some(Panel::Throughput),
        "samples/s",
        |run| run.throughput.is_some(),
        "perflings.watch(model, optimizer, samples=32)",
        "the samples of a step, all processes' own share; or data=loader, which tells them",
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
        "the trace of a step has no shapes, and so neither FLOP nor bytes of a kernel",
    ),
    never(
        Panel::Exponents,
        "only our engine counts the exponents of gradients",
    ),
    never(
        Panel::Evidence,
        "only our engine compares a model with a reference",
    ),
    never(
        Panel::Timeline,
        "the profiles are in the folder of the training: `perflings open FILE` shows the timeline of one",
    ),
];

/// Returns true if what is shown is the training of another program.
pub(super) fn is_shown(app: &App) -> bool {
    let run = app.shown_run().shown();
    app.mode.watches() || run.has_begun() && run.description.is_foreign()
}

/// Returns the figure that a panel lacks because another program did not report it; `None` if the panel lacks nothing.
pub(super) fn unreported(panel: Panel, app: &App) -> Option<&'static ReportedFigure> {
    if !is_shown(app) {
        return None;
    }
    let figure = FIGURES.iter().find(|figure| figure.panel == Some(panel))?;
    let runs = &app.shown_run().story.slots;
    (!runs.iter().any(figure.is_told)).then_some(figure)
}

impl ReportedFigure {
    /// Returns the contents of the empty panel: why it is empty, and the line that would fill it.
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

/// Returns the page that stands in the place of a lesson.
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
    let description = &run.description;
    let device = match &description.device {
        Some(device) => device.name.as_str(),
        None => "device not reported",
    };
    let ranks_with_host = story.ranks.iter();
    let mut hosts: Vec<&str> = ranks_with_host
        .filter_map(|rank| rank.host.as_deref())
        .collect();
    hosts.dedup();
    let hosts = hosts.join(", ");
    w.text(&format!("{} on {hosts}: {device}", description.name));
    ranks(&story.ranks, &mut w);
    phases(&story.ranks, &mut w);
    own_time(&story.ranks, &mut w);
    compared(&story.slots, &mut w);
    let missing = FIGURES
        .iter()
        .filter(|figure| figure.line.is_some() && !(figure.is_told)(run));
    for (index, figure) in missing.enumerate() {
        if index == 0 {
            w.heading("Not reported so far");
        }
        w.text(figure.name);
        figure.write(&mut w);
    }
    Content::titled("training", w.lines)
}

/// Writes a line for each process: its step, the length of a step, and what it does.
fn ranks(ranks: &[RankReading], w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    w.heading("Processes");
    w.line("rank     step  step ms", theme.dim);
    for rank in ranks {
        let step = or_dash(rank.step, |step| step.to_string());
        let step_ms = or_dash(rank.step_ms, ms);
        let figures = format!("{:<5}{step:>8}{step_ms:>9}  ", rank.rank);
        let (words, style) = state(rank, theme);
        w.item_in(&figures, theme.text, &words, style);
    }
}

/// Returns what a process does in words, with their style.
fn state(rank: &RankReading, theme: &Theme) -> (String, Style) {
    let phase = rank.phase.as_deref();
    let place = phase.map_or(String::new(), |phase| format!(", in {phase}"));
    match (&rank.ended, rank.silent_s, rank.no_step_s, rank.step) {
        (Some(why), ..) if why.is_empty() => ("over".to_owned(), theme.dim),
        (Some(why), ..) => (format!("ended: {why}"), theme.bad),
        (None, Some(seconds), ..) => (
            format!("silent for {seconds} s{place}: it may be gone"),
            theme.bad,
        ),
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

/// Returns the state of the process that is worst off; `None` while every process goes on.
pub(super) fn trouble(app: &App, theme: &Theme) -> Option<String> {
    if !app.mode.watches() {
        return None;
    }
    let ranks = &app.shown_run().story.ranks;
    let ended_early = |rank: &&RankReading| rank.ended.as_ref().is_some_and(|why| !why.is_empty());
    let worst = ranks
        .iter()
        .find(ended_early)
        .or(ranks.iter().find(|rank| rank.silent_s.is_some()))
        .or(ranks.iter().find(|rank| rank.no_step_s.is_some()))?;
    let (words, _) = state(worst, theme);
    Some(match ranks.len() {
        1 => words,
        _ => format!("rank {}: {words}", worst.rank),
    })
}

/// Writes the median and the longest time of each phase, where there are several processes.
fn phases(ranks: &[RankReading], w: &mut ProseWriter<'_>) {
    let (theme, phases) = (w.theme, rank_phases(ranks));
    if ranks.len() < 2 || phases.is_empty() {
        return;
    }
    w.heading("Phases of all processes");
    w.line("ms             median    worst  rank", theme.dim);
    let mut late = Vec::new();
    for phase in &phases {
        let (name, rank) = (phase.name.into_str(), phase.rank);
        let (median, worst) = (ms(phase.median), ms(phase.worst));
        let line = format!("{name:<12}{median:>9}{worst:>9}  {rank}");
        if phase.straggles {
            w.line(line, theme.bad);
            late.push(format!("{rank} in {name}"));
        } else {
            w.line(line, theme.text);
        }
    }
    if !late.is_empty() {
        let late = late.join(", and for rank ");
        w.plain(&format!("The others wait for rank {late}."), theme.bad);
    }
    if phases.iter().any(|phase| phase.name == PhaseName::Backward) {
        w.dim("Backward holds the exchange of gradients, in which who is early waits: it names no straggler.");
    }
}

/// Writes how much of a step the watching itself takes, in the process where the share is largest.
fn own_time(ranks: &[RankReading], w: &mut ProseWriter<'_>) {
    let known = ranks.iter().filter_map(|rank| {
        let step_ms = rank.step_ms.filter(|step_ms| *step_ms > 0.0)?;
        Some((rank.own_ms?, rank.own_ms? / step_ms))
    });
    if let Some((own_ms, share)) = known.max_by(|(_, a), (_, b)| a.total_cmp(b)) {
        w.heading("The watching");
        let (own_ms, share) = (ms(own_ms), percent(100.0 * share));
        w.text(&format!(
            "It takes {own_ms} ms of a step, {share} %, as the program counts it."
        ));
    }
}

/// Compares the times of A and B, and says whether the difference means anything.
fn compared([a, b]: &[RunStory; 2], w: &mut ProseWriter<'_>) {
    if !b.has_begun() {
        return;
    }
    w.heading("B beside A");
    let Some(found) = unpaired(a, b) else {
        w.dim("B has too few steps yet.");
        return;
    };
    let difference = (found.ratio - 1.0).abs();
    let than = if found.ratio < 1.0 { "less" } else { "more" };
    let change = percent(100.0 * difference);
    let sentence = format!("A step of B takes {change} % {than} time than one of A.");
    w.plain(&sentence, w.theme.strong);
    let wandered = percent(100.0 * found.wandered);
    let worth = if difference > found.wandered {
        "this is more"
    } else {
        "so this says nothing"
    };
    w.text(&format!(
        "Unpaired: the quarters of A alone lie up to {wandered} % apart; {worth}. The load of the machine, its clocks and the state of the \
         training may have changed as well: only runs in turns would tell."
    ));
    let mut rows = vec![("ms", ["A", "B"].map(str::to_owned))];
    let phases = found.phases.into_iter();
    rows.extend(phases.map(|(name, times)| (name.into_str(), times.map(ms))));
    for (name, [a, b]) in rows {
        w.lines.push(Line::from_iter([
            Span::styled(format!("{name:<12}"), w.theme.dim),
            Span::styled(format!("{a:>9}"), w.theme.a),
            Span::styled(format!("{b:>9}"), w.theme.b),
        ]));
    }
}
