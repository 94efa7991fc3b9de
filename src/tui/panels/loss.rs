//! The panel of the loss shows the loss of A and B over steps. Lines mark ln V, the loss of a model that knows nothing, and the entropy of
//! the data, below which no correct run goes. A loss that is not finite is named with its step, not drawn.
//!
//! ```text
//! ● A broken 120.6 → NaN at step 41
//!       │⠉⠉⠑⠒⠒⠢⠤⣀⣀⣀          A: NaN at step 41 │
//!    100│          ⠉⠑⠒⠒⠢⢄⣀⣀⡀                   │
//!       │                  ⠈⠉⠉⠑⠒⠤⠤⠤⣀⡀ ⣀⡀       A
//!      0│╌ entropy 2.31: the floor ╌╌ ln V 6.91 ╌│
//!        step 0                              41
//! ```

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

pub(super) const EXPLANATION: &[&str] = &[
    "The loss is the mean of -ln(probability given to the token that came next). \
     ln V: all V tokens get the same probability. \
     Entropy: every token gets its true probability; only a model that has seen the answers is below.",
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

/// Returns the parts of the legend with their ranks: for each curve the name, the latest loss, where the curve began and with whose weights,
/// and the loss that another run reached later with these weights.
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
        if begin == 0 && begin < step {
            let text = format!("{} {} ", number(first), theme.symbols.to);
            add(4, text, theme.dim);
        }
        // Of the values that are not finite only the first one means something.
        let diverged = run.loss.not_finite;
        if let Some((step, value)) = diverged {
            add(0, number(value), theme.bad);
            add(0, format!(" at step {step}"), theme.dim);
        } else {
            add(0, number(loss), theme.strong);
        }
        // A toggle keeps the weights, so the first loss after it says nothing about this variant. After a divergence the step of the toggle
        // would look like the step of the divergence.
        if begin > 0 && diverged.is_none() {
            let weights = match run.went_on_from {
                Some(from) if from != slot => format!("{}'s weights", from.into_str()),
                _ => "an earlier run's weights".to_owned(),
            };
            add(3, format!(" from step {begin} on"), theme.dim);
            add(4, ", ".to_owned(), theme.dim);
            add(5, "continued from ".to_owned(), theme.dim);
            add(4, weights, theme.dim);
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

/// Returns the points of a curve that the window shows.
fn points(series: &Series, window: Window) -> Vec<Bucket> {
    if window == Window::All {
        series.all().to_vec()
    } else {
        series.latest(128)
    }
}

/// Returns the exponential average of a curve over about `steps` steps. After a gap the average begins again.
fn smoothed(points: &[Bucket], steps: f64) -> Vec<Bucket> {
    let mut average = None;
    let smoothed_point = |bucket: &Bucket| {
        let weight = 1.0 - (-(bucket.points as f64) / steps).exp();
        let previous = match average {
            Some(average) if !bucket.gap => average,
            _ => bucket.mean,
        };
        let mean = previous + weight * (bucket.mean - previous);
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

/// Returns the chart of both curves. With smoothing, the averages are drawn over the values.
fn chart<'a>(app: &App, theme: &'a Theme) -> Chart<'a> {
    let mut curves: Vec<(Slot, Vec<Bucket>)> = slots(app)
        .map(|(slot, run)| (slot, points(&run.loss, app.view.window)))
        .collect();
    // The curve of the running slot is drawn last, on top of the other.
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
    let run = &app.shown_run().shown().description;
    let ln_vocab = run.ln_vocab.map(|ln_vocab| ReferenceLine {
        value: ln_vocab,
        name: format!("ln V {ln_vocab:.2}"),
        means: "knows nothing",
        symbol: theme.symbols.reference,
        style: theme.reference,
    });
    let entropy = run.entropy.map(|entropy| ReferenceLine {
        value: entropy,
        name: format!("entropy {entropy:.2}"),
        means: "the floor",
        symbol: theme.symbols.floor,
        style: theme.floor,
    });
    let divergence = |(slot, run): (Slot, &RunStory)| {
        let (step, value) = run.loss.not_finite?;
        let name = format!("{}: {} at step {step}", slot.into_str(), number(value));
        Some((step, name))
    };
    Chart {
        curves,
        behind,
        references: ln_vocab.into_iter().chain(entropy).collect(),
        moments: slots(app).filter_map(divergence).collect(),
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
