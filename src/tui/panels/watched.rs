//! The page about the training of another program, in the place of the lesson: its processes, the comparison of A and B, and for each figure
//! that is missing the line of code that would report it. A panel without its figure shows that line, too.
//!
//! ```text
//! train.py on node-1: NVIDIA H100
//!
//! Processes
//! rank     step  step ms
//! 0         412    20.10  in forward
//! 1         411    20.31  no step for 12 s, in data
//!
//! Not reported so far
//! samples/s
//! perflings.watch(model, optimizer, samples=32)
//! ```

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
use protocol::units::{ms, or_dash, percent, show};

/// A figure that a program may report.
pub(super) struct ReportedFigure {
    /// The panel that is empty without the figure.
    panel: Option<Panel>,
    name: &'static str,
    is_reported: fn(&RunStory) -> bool,
    /// The line of Python that reports the figure. `None` if no program can report it.
    line: Option<&'static str>,
    /// A note that says when the figure comes, or why it never does.
    note: &'static str,
}

/// Makes the entry of a figure that a program reports with the line of Python `line`.
const fn figure(
    panel: Option<Panel>,
    name: &'static str,
    is_reported: fn(&RunStory) -> bool,
    line: &'static str,
    note: &'static str,
) -> ReportedFigure {
    ReportedFigure {
        panel,
        name,
        is_reported,
        line: Some(line),
        note,
    }
}

/// Makes the entry of a panel that no other program can fill.
const fn never(panel: Panel, note: &'static str) -> ReportedFigure {
    ReportedFigure {
        line: None,
        ..figure(Some(panel), "", |_| false, "", note)
    }
}

/// The line of Python with which a program begins to report.
const WATCH: &str = "run = perflings.watch(model, optimizer)";

/// Every figure, in the order of the page. `docs/watch.md` has the JSON line of each.
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

/// Returns true if the screen shows the training of another program.
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
    (!runs.iter().any(figure.is_reported)).then_some(figure)
}

impl ReportedFigure {
    /// Returns the text of a panel that lacks this figure: the line that would report it, and when the figure comes.
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

/// Returns the page in the place of the lesson.
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
    let is_apart = |run: &&RunStory| run.description.apart;
    let mut described: Vec<&RunStory> = story.slots.iter().filter(is_apart).collect();
    if described.is_empty() {
        described.push(run);
    }
    for run in described {
        description(run, &story.ranks, &mut w);
    }
    for training in story.ranks.chunk_by(|rank, next| rank.slot == next.slot) {
        ranks(training, run.description.apart, &mut w);
        phases(training, &mut w);
    }
    cost_of_watching(&story.ranks, &mut w);
    comparison(&story.slots, &mut w);
    let missing = FIGURES
        .iter()
        .filter(|figure| figure.line.is_some() && !(figure.is_reported)(run));
    for (index, figure) in missing.enumerate() {
        if index == 0 {
            w.heading("Not reported so far");
        }
        w.text(figure.name);
        figure.write(&mut w);
    }
    Content::titled("training", w.lines)
}

/// Writes the name of a run, its hosts and its device.
fn description(run: &RunStory, ranks: &[RankReading], w: &mut ProseWriter<'_>) {
    let RunDescription {
        name, slot, device, ..
    } = &run.description;
    let device = match device {
        Some(device) => &device.name,
        None => "device not reported",
    };
    let mut hosts: Vec<&str> = ranks
        .iter()
        .filter(|rank| rank.slot == *slot)
        .map(|rank| rank.host.as_deref().unwrap_or("an unnamed host"))
        .collect();
    hosts.dedup();
    let side = if run.description.apart {
        format!("{slot:?}: ")
    } else {
        String::new()
    };
    w.text(&format!("{side}{name} on {}: {device}", hosts.join(", ")));
}

/// Writes a line for each process: its step, the length of a step, and its state.
fn ranks(ranks: &[RankReading], is_apart: bool, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let Some(first) = ranks.first() else {
        return;
    };
    let with_slot = format!("Processes of {:?}", first.slot);
    w.heading(if is_apart { &with_slot } else { "Processes" });
    w.line("rank     step  step ms", theme.dim);
    for rank in ranks {
        let number = text::left(&rank.rank.to_string(), 5);
        let step = text::right(&or_dash(rank.step, |step| step.to_string()), 8);
        let length = text::right(&or_dash(rank.step_ms, ms), 9);
        let (state, style) = state(rank, theme);
        w.item_in(
            &format!("{number}{step}{length}  "),
            theme.text,
            &state,
            style,
        );
    }
}

/// Returns the state of a process as a phrase, such as `in forward` or `no step for 12 s`, and the style of the phrase.
fn state(rank: &RankReading, theme: &Theme) -> (String, Style) {
    let phase = rank.phase.as_deref();
    let place = phase.map_or(String::new(), |phase| format!(", in {phase}"));
    match (&rank.ended, rank.silent_s, rank.no_step_s, rank.step) {
        (Some(why), ..) if why.is_empty() => ("over".to_owned(), theme.dim),
        (Some(why), ..) => (format!("ended: {why}"), theme.bad),
        (None, Some(seconds), ..) => {
            let phrase = format!("silent for {seconds} s{place}: it may be gone");
            (phrase, theme.bad)
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

/// Returns the state of the process that is in the worst trouble: it ended early, is silent or makes no step. `None` if all go on.
pub(super) fn trouble(app: &App, theme: &Theme) -> Option<String> {
    if !app.mode.watches() {
        return None;
    }
    let ranks = &app.shown_run().story.ranks;
    let ended_early = |rank: &&RankReading| rank.ended.as_ref().is_some_and(|why| !why.is_empty());
    // Of two trainings the second is the newer one. The page on the left shows both.
    let latest = ranks.chunk_by(|rank, next| rank.slot == next.slot).last()?;
    let worst = latest
        .iter()
        .find(ended_early)
        .or(latest.iter().find(|rank| rank.silent_s.is_some()))
        .or(latest.iter().find(|rank| rank.no_step_s.is_some()))?;
    let (state, _) = state(worst, theme);
    Some(match ranks.len() {
        1 => state,
        _ => format!("rank {}: {state}", worst.rank),
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
    let mut late = Vec::new();
    for phase in &phases {
        let figures = [ms(phase.median), ms(phase.worst)].map(|time| text::right(&time, 9));
        let name = text::left(phase.name.into_str(), 12);
        let line = format!("{name}{}  {}", figures.concat(), phase.rank);
        if phase.straggles {
            late.push(format!("{} in {}", phase.rank, phase.name.into_str()));
            w.line(line, theme.bad);
        } else {
            w.line(line, theme.text);
        }
    }
    if !late.is_empty() {
        let sentence = format!("The others wait for rank {}.", late.join(", and for rank "));
        w.plain(&sentence, theme.bad);
    }
    if phases.iter().any(|phase| phase.name == PhaseName::Backward) {
        w.dim(
            "Backward contains the exchange of gradients, in which early ranks wait for late ones, \
             so backward names no straggler.",
        );
    }
}

/// Writes the largest share of a step that a process spends on being watched.
fn cost_of_watching(ranks: &[RankReading], w: &mut ProseWriter<'_>) {
    let most = ranks
        .iter()
        .filter_map(|rank| Some((rank.own_ms?, rank.step_ms.filter(|step| *step > 0.0)?)))
        .map(|(own, step)| (own, own / step))
        .max_by(|(_, share), (_, other)| share.total_cmp(other));
    if let Some((own, share)) = most {
        w.heading("The watching");
        w.text(&format!(
            "It takes {} ms of a step, {} %, as the program counts it.",
            ms(own),
            percent(100.0 * share)
        ));
    }
}

/// Writes the comparison of B with A, and how much it is worth.
fn comparison([a, b]: &[RunStory; 2], w: &mut ProseWriter<'_>) {
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
    let mut row = |name: &str, [a, b]: [String; 2]| {
        let cells = [
            Span::styled(text::left(name, 12), w.theme.dim),
            Span::styled(text::right(&a, 9), w.theme.a),
            Span::styled(text::right(&b, 9), w.theme.b),
        ];
        w.lines.push(Line::from_iter(cells));
    };
    row("ms", ["A", "B"].map(str::to_owned));
    for (name, times) in found.phases {
        row(name.into_str(), times.map(ms));
    }
    if let Some(rates) = found.rates {
        row("samples/s", rates.map(|rate| show(rate, 1)));
    }
}
