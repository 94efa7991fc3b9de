//! The loss of A and B over steps, with ln V, the loss of a model that knows nothing, and the entropy of the data, below which no
//! correct run goes. A loss that is not finite is named with its step, not drawn.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::{App, Smoothing, Window};
use crate::tui::chart::{Chart, ReferenceLine};
use crate::tui::surface::{slot_label, slots};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::Slot;
use protocol::story::{Bucket, RunStory, Series};
use protocol::units::number;

/// How to read it.
pub(super) const READING: &[&str] = &[
    "The loss is the mean of -ln(probability given to the token that came next). ln V: all V tokens get the same \
             probability. Entropy: every token gets its true probability; only a model that has seen the answers is below.",
    "The first loss is taken before any update: it depends on the initial weights only.",
];

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    // As many words as there is room for.
    let legends = (0..=WORDS)
        .rev()
        .map(|words| legend(app, theme, words, true));
    let legends = legends.chain([legend(app, theme, 0, false)]);
    let legend = text::longest(legends, usize::from(area.width));
    let content = match legend.spans.is_empty() {
        true => Content::missing("no step has been trained yet", theme, area),
        false => {
            let mut content = Content::text("", vec![legend]);
            let chart = chart(app, theme);
            let draw = move |area, buffer: &mut Buffer| chart.draw(area, buffer);
            content.plot(None, (area.width, area.height), draw);
            content
        }
    };
    let scale = if app.view.log_axis(app.shown_run()) {
        "log"
    } else {
        "linear"
    };
    let mut aside = format!("nats · {scale} axis · {}", app.view.window.into_str());
    if app.view.smoothing != Smoothing::Raw {
        aside += &format!(" · {}", app.view.smoothing.into_str());
    }
    Content { aside, ..content }
}

/// The most words that a legend takes.
const WORDS: u8 = 3;

/// Which curve is whose and where it stands; more `words` also say where it began, `then` what another run has made of its weights.
fn legend(app: &App, theme: &Theme, words: u8, then: bool) -> Line<'static> {
    let mut spans = Vec::new();
    for (slot, run) in slots(app) {
        let Some(((begin, first), (step, loss))) = run.loss.first().zip(run.own_loss()) else {
            continue;
        };
        if !spans.is_empty() {
            spans.push(Span::raw(if words == 0 { "  " } else { "   " }));
        }
        // A toggle keeps the weights: the first loss after it says nothing of this variant.
        let (mut before, mut after) = (String::new(), String::new());
        let diverged = run.loss.not_finite;
        if begin > 0 {
            after = continued(run.went_on_from, slot, begin, words);
        } else if words > 1 && begin < step {
            before = format!("{} {} ", number(first), theme.symbols.to);
        }
        // "From step …" would read as where it diverged.
        if let Some((step, _)) = diverged {
            after = format!(" at step {step}");
        }
        // A that began again has a longer run behind it.
        let longer = app
            .shown_run()
            .longer_a()
            .filter(|_| slot == Slot::A && words > 0);
        if let Some((step, loss)) = longer.and_then(RunStory::own_loss) {
            after += &format!(", earlier {} at step {step}", number(loss));
        }
        // Trained by another run in between.
        let left = then && run.was_left() && diverged.is_none();
        if let Some((_, then)) = run.loss.last().filter(|_| left) {
            let whose = match words {
                0 => "",
                1 => " of both",
                _ => " on weights of both",
            };
            after += &format!(", then {}{whose}", number(then));
        }
        // The first value that is not a number says when; later ones say nothing new.
        let (loss, style) = match diverged {
            Some((_, value)) => (value, theme.bad),
            None => (loss, theme.strong),
        };
        spans.push(slot_label(slot, app, theme));
        spans.push(Span::styled(format!(" {before}"), theme.dim));
        spans.push(Span::styled(number(loss), style));
        spans.push(Span::styled(after, theme.dim));
    }
    Line::from(spans)
}

fn continued(from: Option<Slot>, slot: Slot, begin: u64, words: u8) -> String {
    let whose = match from {
        Some(from) if from != slot => format!("{}'s", from.into_str()),
        _ => "an earlier run's".to_owned(),
    };
    match words {
        0 => String::new(),
        1 => format!(" from step {begin} on"),
        2 => format!(" from step {begin} on, {whose} weights"),
        _ => format!(" from step {begin} on, continued from {whose} weights"),
    }
}

fn points(series: &Series, window: Window) -> Vec<Bucket> {
    match window == Window::All {
        true => series.all().to_vec(),
        false => series.latest(128),
    }
}

/// The exponential average of a curve, over so many steps. It begins again after a gap.
fn smoothed(points: &[Bucket], steps: f64) -> Vec<Bucket> {
    let mut average = None;
    let point = |it: &Bucket| {
        let weight = 1.0 - (-(it.points as f64) / steps).exp();
        let before = average.filter(|_| !it.gap).unwrap_or(it.mean);
        let mean = before + weight * (it.mean - before);
        average = Some(mean);
        Bucket {
            low: mean,
            high: mean,
            mean,
            ..*it
        }
    };
    points.iter().map(point).collect()
}

fn chart<'a>(app: &App, theme: &'a Theme) -> Chart<'a> {
    let mut curves: Vec<(Slot, Vec<Bucket>)> = slots(app)
        .map(|(slot, run)| (slot, points(&run.loss, app.view.window)))
        .collect();
    // The one that runs lies on top.
    curves.sort_by_key(|(slot, _)| *slot == app.shown_run().active);
    let mut behind = Vec::new();
    if let Some(steps) = app.view.smoothing.steps() {
        let smooth = curves.iter().map(|(slot, it)| (*slot, smoothed(it, steps)));
        let smooth = smooth.collect();
        behind = std::mem::replace(&mut curves, smooth);
    }
    if let Some(longer) = app
        .shown_run()
        .longer_a()
        .filter(|_| app.view.window == Window::All)
    {
        behind.push((Slot::A, points(&longer.loss, Window::All)));
    }
    let mut references = Vec::new();
    let run = &app.shown_run().shown().description;
    references.extend(run.ln_vocab.map(|ln_vocab| ReferenceLine {
        value: ln_vocab,
        name: format!("ln V {ln_vocab:.2}"),
        means: "knows nothing",
        symbol: theme.symbols.reference,
        style: theme.reference,
    }));
    references.extend(run.entropy.map(|entropy| ReferenceLine {
        value: entropy,
        name: format!("entropy {entropy:.2}"),
        means: "the floor",
        symbol: theme.symbols.floor,
        style: theme.floor,
    }));
    let moments = slots(app).filter_map(|(slot, run)| {
        let (step, value) = run.loss.not_finite?;
        let name = format!("{}: {} at step {step}", slot.into_str(), number(value));
        Some((step, name))
    });
    Chart {
        curves,
        behind,
        references,
        moments: moments.collect(),
        log: app.view.log_axis(app.shown_run()),
        theme,
    }
}

#[cfg(test)]
mod tests {
    use super::smoothed;
    use protocol::story::Series;

    #[test]
    fn an_average_swings_less_and_ends_where_the_loss_does() {
        let mut series = Series::default();
        (0..400).for_each(|at| series.push(at, 3.0 + (at % 2) as f64));
        let swing = |points: &[super::Bucket]| {
            let late = points.iter().filter(|it| it.first > 200).map(|it| it.mean);
            let high = late.clone().fold(0.0, f64::max);
            high - late.fold(f64::MAX, f64::min)
        };
        let average = smoothed(series.all(), 10.0);
        assert!(swing(series.all()) > 0.9 && swing(&average) < 0.2);
        assert!((average[399].mean - 3.5).abs() < 0.2);
    }
}
