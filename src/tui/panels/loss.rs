//! The panel of the loss shows the loss of A and B over steps. Lines mark ln V, the loss of a model that knows nothing, and the entropy of
//! the data, below which no correct run goes. A loss that is not finite is named with its step, not drawn.

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

/// The explanation of the panel.
pub(super) const READING: &[&str] = &[
    "The loss is the mean of -ln(probability given to the token that came next). ln V: all V tokens get the same \
             probability. Entropy: every token gets its true probability; only a model that has seen the answers is below.",
    "The first loss is taken before any update: it depends on the initial weights only.",
];

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    // The legend has as many words as there is room for.
    let legends = (0..=WORDS)
        .rev()
        .map(|words| legend(app, theme, words, true))
        .chain([legend(app, theme, 0, false)]);
    let legend = text::longest(legends, usize::from(area.width));
    let content = if legend.spans.is_empty() {
        Content::missing("no step has been trained yet", theme, area)
    } else {
        let mut content = Content::text("", vec![legend]);
        let chart = chart(app, theme);
        let draw = move |area, buffer: &mut Buffer| chart.draw(area, buffer);
        content.plot(None, (area.width, area.height), draw);
        content
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

/// The level of the wordiest legend.
const WORDS: u8 = 3;

/// Returns the legend: the name of each curve and its latest loss. Higher levels of `words` also say where a curve began; `with_later` adds
/// the loss that another run reached later with the weights of this one.
fn legend(app: &App, theme: &Theme, words: u8, with_later: bool) -> Line<'static> {
    let mut spans = Vec::new();
    for (slot, run) in slots(app) {
        let Some(((begin, first), (step, loss))) = run.loss.first().zip(run.own_loss()) else {
            continue;
        };
        if !spans.is_empty() {
            spans.push(Span::raw(if words == 0 { "  " } else { "   " }));
        }
        let mut before = String::new();
        let mut after = String::new();
        let diverged = run.loss.not_finite;
        // A toggle keeps the weights, so the first loss after it says nothing about this variant.
        if begin > 0 {
            after = continued(run.went_on_from, slot, begin, words);
        } else if words > 1 && begin < step {
            before = format!("{} {} ", number(first), theme.symbols.to);
        }
        // The step of the divergence replaces "from step …", which would read as that step.
        if let Some((step, _)) = diverged {
            after = format!(" at step {step}");
        }
        // If A was restarted, its earlier, longer run is named, too.
        if slot == Slot::A
            && words > 0
            && let Some((step, loss)) = app.shown_run().longer_a().and_then(RunStory::own_loss)
        {
            after += &format!(", earlier {} at step {step}", number(loss));
        }
        if with_later
            && run.was_left()
            && diverged.is_none()
            && let Some((_, later)) = run.loss.last()
        {
            let whose = match words {
                0 => "",
                1 => " of both",
                _ => " on weights of both",
            };
            after += &format!(", then {}{whose}", number(later));
        }
        // The first value that is not finite is shown; later ones say nothing new.
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

/// Says at which step a curve began and whose weights it began with, at a level of `words`.
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
    if window == Window::All {
        series.all().to_vec()
    } else {
        series.latest(128)
    }
}

/// Returns the exponential average of a curve over about `steps` steps. The average begins again after a gap.
fn smoothed(points: &[Bucket], steps: f64) -> Vec<Bucket> {
    let mut average = None;
    let smoothed_point = |bucket: &Bucket| {
        let weight = 1.0 - (-(bucket.points as f64) / steps).exp();
        let before = match average {
            Some(average) if !bucket.gap => average,
            _ => bucket.mean,
        };
        let mean = before + weight * (bucket.mean - before);
        average = Some(mean);
        Bucket {
            low: mean,
            high: mean,
            mean,
            ..*bucket
        }
    };
    points.iter().map(smoothed_point).collect()
}

fn chart<'a>(app: &App, theme: &'a Theme) -> Chart<'a> {
    let mut curves: Vec<(Slot, Vec<Bucket>)> = slots(app)
        .map(|(slot, run)| (slot, points(&run.loss, app.view.window)))
        .collect();
    // The curve of the running slot lies on top.
    curves.sort_by_key(|(slot, _)| *slot == app.shown_run().active);
    let mut behind = Vec::new();
    if let Some(steps) = app.view.smoothing.steps() {
        let averages = curves
            .iter()
            .map(|(slot, points)| (*slot, smoothed(points, steps)))
            .collect();
        behind = std::mem::replace(&mut curves, averages);
    }
    if app.view.window == Window::All
        && let Some(longer) = app.shown_run().longer_a()
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
        for step in 0..400 {
            series.push(step, 3.0 + (step % 2) as f64);
        }
        let swing = |points: &[super::Bucket]| {
            let late = points.iter().filter(|bucket| bucket.first > 200);
            let means = late.map(|bucket| bucket.mean);
            means.clone().fold(0.0, f64::max) - means.fold(f64::MAX, f64::min)
        };
        let average = smoothed(series.all(), 10.0);
        assert!(swing(series.all()) > 0.9 && swing(&average) < 0.2);
        assert!((average[399].mean - 3.5).abs() < 0.2);
    }
}
