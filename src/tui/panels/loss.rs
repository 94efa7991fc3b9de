//! The loss of A and B over steps, with ln V, the loss of a model that knows nothing, and the entropy of the data, below which no
//! correct run goes. A loss that is not finite is named with its step, not drawn.

use ratatui::text::{Line, Span};

use crate::app::series::{Bucket, Series};
use crate::app::{App, Smoothing, Window};
use crate::panel::Panel;
use crate::protocol::Slot;
use crate::tui::chart::{Chart, ReferenceLine};
use crate::tui::surface::{Surface, letter, slot_label, slots, take_top};
use crate::tui::text;
use crate::tui::theme::Theme;
use crate::units::number;

/// How to read it.
pub const READING: &[&str] = &[
    "The loss is the mean of -ln(probability given to the token that came next). ln V: all V tokens get the same \
             probability. Entropy: every token gets its true probability; only a model that has seen the answers is below.",
    "The loss of step 0 is taken before any update: it depends on the initial weights only.",
];

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let app = s.app;
    let scale = if app.log_axis() { "log" } else { "linear" };
    let mut aside = format!("nats · {scale} axis · {}", app.view.window.name());
    if app.view.smoothing != Smoothing::Raw {
        aside += &format!(" · {}", app.view.smoothing.name());
    }
    s.open(Panel::Loss, &aside);
    draw_bare(s)
}

/// The curves and their legend, without a box.
pub fn draw_bare(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    if s.area.height == 0 {
        return 0;
    }
    // As many words as there is room for.
    let legends = (0..=WORDS).rev().map(|words| legend(app, theme, words));
    let mut legends = legends.skip_while(|it| text::width_of(it) > usize::from(s.area.width));
    let legend = legends.next().unwrap_or_else(|| legend(app, theme, 0));
    if legend.is_empty() {
        return s.missing("no step has been trained yet");
    }
    let top = take_top(&mut s.area, 1);
    s.put(top, Line::from(legend));
    chart(app, theme).render(s.area, s.frame.buffer_mut());
    0
}

/// The most words that a legend takes.
const WORDS: u8 = 3;

/// Which curve is whose and where it stands; more `words` also say where it began.
fn legend(app: &App, theme: &Theme, words: u8) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (slot, run) in slots(app) {
        let Some(((begin, first), (step, loss))) = run.loss.first().zip(run.loss.last()) else {
            continue;
        };
        if !spans.is_empty() {
            spans.push(Span::raw(if words == 0 { "  " } else { "   " }));
        }
        // A toggle keeps the weights: the first loss after it says nothing of this variant.
        let (mut before, mut after) = (String::new(), String::new());
        if begin > 0 {
            after = continued(run.went_on_from, slot, begin, words);
        } else if words > 1 && begin < step {
            before = format!("{} {} ", number(first), theme.symbols.to);
        }
        // A that began again has a longer run behind it.
        let longer = app.run.longer_a().filter(|_| slot == Slot::A && words > 0);
        if let Some((step, loss)) = longer.and_then(|it| it.loss.last()) {
            after += &format!(", earlier {} at step {step}", number(loss));
        }
        let style = if loss.is_finite() {
            theme.strong
        } else {
            theme.bad
        };
        spans.push(slot_label(slot, app, theme));
        spans.push(Span::styled(format!(" {before}"), theme.dim));
        spans.push(Span::styled(number(loss), style));
        spans.push(Span::styled(after, theme.dim));
    }
    spans
}

fn continued(from: Option<Slot>, slot: Slot, begin: u64, words: u8) -> String {
    let whose = match from {
        Some(from) if from != slot => format!("{}'s", letter(from)),
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
        return series.all().to_vec();
    }
    let mut before = None;
    let point = |(step, value): (u64, f64)| {
        let gap = before.replace(step).is_some_and(|it: u64| it + 1 != step);
        Bucket {
            first: step,
            last: step,
            low: value,
            high: value,
            mean: value,
            points: 1,
            gap,
        }
    };
    let skip = series.recent().len().saturating_sub(128);
    series.recent().skip(skip).map(point).collect()
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
    curves.sort_by_key(|(slot, _)| *slot == app.run.active);
    let mut behind = Vec::new();
    if let Some(steps) = app.view.smoothing.steps() {
        let smooth = curves.iter().map(|(slot, it)| (*slot, smoothed(it, steps)));
        let smooth = smooth.collect();
        behind = std::mem::replace(&mut curves, smooth);
    }
    if let Some(longer) = app
        .run
        .longer_a()
        .filter(|_| app.view.window == Window::All)
    {
        behind.push((Slot::A, points(&longer.loss, Window::All)));
    }
    let mut references = Vec::new();
    if let Some(started) = app.run.shown().started.as_ref() {
        references.push(ReferenceLine {
            value: started.ln_vocab,
            name: format!("ln V {:.2}", started.ln_vocab),
            means: "knows nothing",
            symbol: theme.symbols.reference,
            style: theme.reference,
        });
        references.extend(started.entropy.map(|entropy| ReferenceLine {
            value: entropy,
            name: format!("entropy {entropy:.2}"),
            means: "the floor",
            symbol: theme.symbols.floor,
            style: theme.floor,
        }));
    }
    let moments = slots(app).filter_map(|(slot, run)| {
        let (step, value) = run.loss.not_finite?;
        let name = format!("{}: {} at step {step}", letter(slot), number(value));
        Some((step, name))
    });
    Chart {
        curves,
        behind,
        references,
        moments: moments.collect(),
        log: app.log_axis(),
        theme,
    }
}

#[cfg(test)]
mod tests {
    use super::smoothed;
    use crate::app::series::Series;

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
