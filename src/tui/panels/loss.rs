//! The panel of the loss shows the loss of A and B over steps. Lines mark ln V, the loss of a model that knows nothing, and the entropy of
//! the data, below which no correct run goes. A loss that is not finite is named with its step, not drawn.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

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
    let legend = text::ranked(legend(app, theme), usize::from(area.width));
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

/// Returns the legend by ranks: the name of each curve and its latest loss, where the curve began and with whose weights, and the loss that
/// another run reached later with these weights.
fn legend(app: &App, theme: &Theme) -> Vec<(u8, Span<'static>)> {
    let mut parts = Vec::new();
    for (slot, run) in slots(app) {
        let Some(((begin, first), (step, loss))) = run.loss.first().zip(run.own_loss()) else {
            continue;
        };
        if !parts.is_empty() {
            parts.extend([(0, Span::raw("  ")), (3, Span::raw(" "))]);
        }
        parts.push((0, slot_label(slot, app, theme)));
        let mut add = |rank: u8, text: String, style| parts.push((rank, Span::styled(text, style)));
        add(0, " ".to_owned(), theme.dim);
        let diverged = run.loss.not_finite;
        if begin == 0 && begin < step {
            let text = format!("{} {} ", number(first), theme.symbols.to);
            add(4, text, theme.dim);
        }
        // The first value that is not finite is shown; later ones say nothing new.
        match diverged {
            Some((step, value)) => {
                add(0, number(value), theme.bad);
                add(0, format!(" at step {step}"), theme.dim);
            }
            None => add(0, number(loss), theme.strong),
        }
        // A toggle keeps the weights, so the first loss after it says nothing about this variant. The step of a divergence would read as
        // the step from which the curve goes on.
        if begin > 0 && diverged.is_none() {
            let whose = match run.went_on_from {
                Some(from) if from != slot => format!("{}'s weights", from.into_str()),
                _ => "an earlier run's weights".to_owned(),
            };
            add(3, format!(" from step {begin} on"), theme.dim);
            add(4, ", ".to_owned(), theme.dim);
            add(5, "continued from ".to_owned(), theme.dim);
            add(4, whose, theme.dim);
        }
        // If A was restarted, its earlier, longer run is named, too.
        if slot == Slot::A
            && let Some((step, loss)) = app.shown_run().longer_a().and_then(RunStory::own_loss)
        {
            let text = format!(", earlier {} at step {step}", number(loss));
            add(3, text, theme.dim);
        }
        if run.was_left()
            && diverged.is_none()
            && let Some((_, later)) = run.loss.last()
        {
            add(2, format!(", then {}", number(later)), theme.dim);
            add(4, " on weights".to_owned(), theme.dim);
            add(3, " of both".to_owned(), theme.dim);
        }
    }
    parts
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
