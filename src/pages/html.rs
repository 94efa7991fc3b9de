//! Writes a sheet as one HTML file with its style and drawings. `page.html.jinja` has the markup and `page.css` the style; this file computes
//! coordinates. Nothing is loaded from elsewhere. The page can be read on a phone and on paper, light and dark.

use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior, context, escape_formatter};

use super::sheet::{
    Curve, LaneChart, RangeScale, Sheet, SheetBlock, SheetChart, SheetTable, StackedBar,
};
use crate::sanitize;
use crate::scale::Scale;
use protocol::units::{number, or_dash, show};

/// The width and height of a chart.
const CHART: (f64, f64) = (420.0, 220.0);
/// The space for the labels of a chart: left, right, above, below.
const MARGINS: [f64; 4] = [48.0, 52.0, 10.0, 24.0];
/// The width of a scale, and its height with one range.
const SCALE: (f64, f64) = (420.0, 44.0);
/// The part of this height that the ranges take.
const BANDS: f64 = 20.0;
/// The space for the label at each end of a scale.
const ENDS: f64 = 56.0;
/// The number of colours for parts.
const COLOURS: usize = 8;
/// The width of a bar of parts, and of a lane.
const BAR: f64 = 1000.0;
const LANE: f64 = 800.0;

/// Returns the text of the whole file.
pub fn page(sheet: &Sheet) -> String {
    let title = sheet.0.iter().find_map(|block| match block {
        SheetBlock::Title(text) => Some(text),
        _ => None,
    });
    // The template belongs to the program, so a mistake in it would be seen in every page.
    filled(context! { title, blocks => blocks(sheet) }).unwrap_or_else(|error| format!("{error:#}"))
}

fn filled(values: Value) -> Result<String, Error> {
    let mut files = Environment::new();
    files.set_trim_blocks(true);
    files.set_lstrip_blocks(true);
    files.set_undefined_behavior(UndefinedBehavior::Strict);
    files.set_auto_escape_callback(|_| AutoEscape::Html);
    // Texts come from outside: they may hold characters that no page should show, besides those that HTML reads.
    files.set_formatter(|out, state, value| {
        if value.kind() == ValueKind::String && !value.is_safe() {
            let text = sanitize::html(value.as_str().unwrap_or_default());
            out.write_str(&text).map_err(Error::from)
        } else {
            escape_formatter(out, state, value)
        }
    });
    // A long name may break after its underscores.
    files.add_filter("breakable", |text: &str| {
        Value::from_safe_string(sanitize::html(text).replace('_', "_<wbr>"))
    });
    files.add_template("page.css", include_str!("page.css"))?;
    files.add_template("page.html", include_str!("page.html.jinja"))?;
    files.get_template("page.html")?.render(values)
}

/// Returns the blocks as the template takes them. Remarks that follow each other are one list; drawings without figures are left out.
fn blocks(sheet: &Sheet) -> Vec<Value> {
    let mut blocks = Vec::new();
    let is_remark = |block: &SheetBlock| matches!(block, SheetBlock::Remark(_));
    for group in sheet.0.chunk_by(|a, b| is_remark(a) && is_remark(b)) {
        let (kind, value) = match &group[0] {
            SheetBlock::Title(text) => ("title", Some(text.into())),
            SheetBlock::Intro(text) => ("intro", Some(text.into())),
            SheetBlock::Heading(text) => ("heading", Some(text.into())),
            SheetBlock::Remark(_) => ("remarks", Some(group.iter().filter_map(remark).collect())),
            SheetBlock::Table(data) => ("table", Some(table(data))),
            SheetBlock::Chart(data) => ("figure", chart(data)),
            SheetBlock::Scale(data) => ("figure", Some(scale(data))),
            SheetBlock::Parts(data) => ("parts", parts(data)),
            SheetBlock::Lanes(data) => ("lanes", Some(lanes(data))),
        };
        blocks.extend(value.map(|value: Value| context! { kind, value }));
    }
    blocks
}

fn remark(block: &SheetBlock) -> Option<&str> {
    match block {
        SheetBlock::Remark(text) => Some(text),
        _ => None,
    }
}

/// Aligns figures to the right, and with them the head and the words of a column that consists mostly of figures.
fn table(table: &SheetTable) -> Value {
    let SheetTable { head, rows } = table;
    let is_right = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        2 * cells.filter(|cell| is_figure(cell)).count() > rows.len()
    };
    let right: Vec<bool> = (0..head.len()).map(is_right).collect();
    let cells = |texts: &[String], is_head: bool| -> Value {
        let mut cells = Vec::new();
        for (column, text) in texts.iter().enumerate() {
            let class = if !is_head && is_figure(text) {
                " class=n"
            } else if right.get(column) == Some(&true) {
                " class=r"
            } else {
                ""
            };
            cells.push(context! { text, class });
        }
        cells.into()
    };
    context! {
        head => table.is_named().then(|| cells(head, true)),
        rows => rows.iter().map(|row| cells(row, false)).collect::<Value>(),
    }
}

/// Returns true if a cell is a number, perhaps followed by a unit.
fn is_figure(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default();
    let number = first.trim_end_matches(['x', '%']).replace(',', "");
    text.len() < 20 && (number.parse::<f64>().is_ok() || text == "-")
}

/// Rounds a coordinate to tenths, which is finer than a screen shows.
fn rounded(x: f64) -> f64 {
    (10.0 * x).round() / 10.0
}

fn label(x: f64, y: f64, anchor: &str, text: &str) -> Value {
    context! { kind => "label", x => rounded(x), y => rounded(y), anchor, text }
}

fn line(class: &str, from: [f64; 2], to: [f64; 2]) -> Value {
    context! { kind => "line", class, from => from.map(rounded), to => to.map(rounded) }
}

fn path(class: &str, d: &str) -> Value {
    context! { kind => "path", class, d }
}

fn figure((width, height): (f64, f64), shapes: &[Value], caption: &str) -> Value {
    context! { width, height => rounded(height), shapes, caption }
}

/// Draws a chart; `None` without points.
fn chart(chart: &SheetChart) -> Option<Value> {
    let is_finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
    let points = chart
        .curves
        .iter()
        .flat_map(|curve| curve.points.iter().filter(is_finite));
    let levels = chart.levels.iter().filter(|(_, y)| y.is_finite());
    let (first, last) = ends(points.clone().map(|point| point.0))?;
    let heights = points.map(|point| point.1);
    let (low, high) = ends(heights.chain(levels.clone().map(|level| level.1)))?;
    let [left, right, above, below] = MARGINS;
    let width = CHART.0 - left - right;
    let height = CHART.1 - above - below;
    let steps = Scale {
        low: first,
        high: last,
        log: false,
    };
    let values = Scale {
        low,
        high,
        log: low > 0.0 && high > 20.0 * low,
    };
    let x = |step: f64| left + width * steps.share(step);
    let y = |value: f64| above + height * (1.0 - values.share(value));
    let axis = format!("M{left} {above}V{}H{}", above + height, left + width);
    let mut shapes = vec![path("axis", &axis)];
    for (name, level) in levels {
        let end = left + width;
        shapes.push(line("level", [left, y(*level)], [end, y(*level)]));
        shapes.push(label(end + 4.0, y(*level) + 4.0, "start", name));
    }
    for (curve, class) in chart
        .curves
        .iter()
        .zip(["curve a", "curve b"].into_iter().cycle())
    {
        let points = curve.points.iter().filter(is_finite);
        let d = path_through(points.map(|(step, value)| (x(*step), y(*value))));
        shapes.push(path(class, &d));
    }
    for value in [low, high] {
        shapes.push(label(left - 6.0, y(value) + 4.0, "end", &number(value)));
    }
    for (step, anchor) in [(first, "start"), (last, "end")] {
        shapes.push(label(x(step), CHART.1 - 6.0, anchor, &show(step, 0)));
    }
    Some(figure(CHART, &shapes, &caption(chart)))
}

/// The smallest distance of two points of a curve along the axis. Points that are closer look like one on a screen.
const APART: f64 = 2.0;

/// Returns a line through the first point, the last point and all points between them that are far enough apart. Each point is written as
/// its distance from the previous one, in tenths, because curves are the largest part of a page.
fn path_through(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut rest = points.peekable();
    let mut path = String::new();
    let mut before = None;
    while let Some((x, y)) = rest.next() {
        let x = (10.0 * x).round();
        let y = (10.0 * y).round();
        match before {
            None => path = format!("M{} {}l", tenths(x), tenths(y)),
            Some((x0, _)) if x - x0 < 10.0 * APART && rest.peek().is_some() => continue,
            Some((x0, y0)) => {
                let right = tenths(x - x0);
                let down = tenths(y - y0);
                let between = if down.starts_with('-') { "" } else { " " };
                path += &format!("{right}{between}{down} ");
            }
        }
        before = Some((x, y));
    }
    path.trim_end().to_owned()
}

/// Writes a number of tenths: `1.5` for 15, `.5` for 5, `2` for 20.
fn tenths(count: f64) -> String {
    let number = (count / 10.0).to_string();
    number.replacen("0.", ".", usize::from(count.abs() < 10.0))
}

/// Returns the lowest and the highest value; `None` without values.
fn ends(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    values.clone().reduce(f64::min).zip(values.reduce(f64::max))
}

/// Says in words what a chart shows.
fn caption(chart: &SheetChart) -> String {
    let dashes = ["dashed", "solid"].into_iter().cycle();
    let curve = |(curve, dash): (&Curve, &str)| {
        let end = |point: Option<&(f64, f64)>| or_dash(point, |point| number(point.1));
        let first = end(curve.points.first());
        let last = end(curve.points.last());
        format!("{} ({dash}): {first} to {last}", curve.name)
    };
    let curves: Vec<String> = chart.curves.iter().zip(dashes).map(curve).collect();
    format!("{}. {}", chart.name, curves.join("; "))
}

/// Draws a scale with its ranges.
fn scale(scale: &RangeScale) -> Value {
    let ends = scale.scale;
    let end = SCALE.0 - ENDS;
    let x = |value: f64| ENDS + (end - ENDS) * ends.share(value);
    let band = (BANDS / scale.ranges.len().max(1) as f64).max(4.0);
    let bands = band * scale.ranges.len() as f64;
    let middle = 12.0 + bands / 2.0;
    let height = SCALE.1 - BANDS + bands;
    let mut shapes = vec![
        line("axis", [ENDS, middle], [end, middle]),
        label(ENDS - 8.0, middle + 4.0, "end", &number(ends.low)),
        label(end + 8.0, middle + 4.0, "start", &number(ends.high)),
    ];
    for (index, [from, to]) in scale.ranges.iter().enumerate() {
        shapes.push(context! {
            kind => "band",
            x => rounded(x(*from)),
            y => rounded(12.0 + band * index as f64),
            width => rounded((x(*to) - x(*from)).max(2.0)),
            height => rounded(band),
        });
    }
    if let Some(even) = scale.even {
        shapes.push(line("level", [x(even), 4.0], [x(even), height - 4.0]));
    }
    if let Some(mark) = scale.mark {
        let x = rounded(x(mark));
        let d = format!("M{x} {}l7 12l-7 12l-7 -12z", rounded(middle - 12.0));
        shapes.push(path("mark", &d));
    }
    figure((SCALE.0, height), &shapes, &scale.caption)
}

/// Draws a bar in colours, with the name and the share of each part; `None` if all parts are 0.
fn parts(bar: &StackedBar) -> Option<Value> {
    let is_positive = |size: &f64| size.is_finite() && *size > 0.0;
    let sum: f64 = bar
        .parts
        .iter()
        .map(|(_, size)| *size)
        .filter(is_positive)
        .sum();
    if sum <= 0.0 {
        return None;
    }
    let mut x = 0.0;
    let mut parts = Vec::new();
    let mut keys = Vec::new();
    for (index, (name, size)) in bar.parts.iter().enumerate() {
        // A part without a size keeps its colour, so that colours mean the same in several bars.
        let colour = index % COLOURS;
        if is_positive(size) {
            let width = BAR * size / bar.width.max(sum);
            parts.push(context! { x => rounded(x), width => rounded(width), colour });
            let text = format!("{name} {:.1} %", 100.0 * size / sum);
            keys.push(context! { text, colour });
            x += width;
        }
    }
    Some(context! { name => bar.name, parts, keys })
}

/// Draws lanes one below the other, each with its name above it.
fn lanes(chart: &LaneChart) -> Value {
    let slice = |(place, length, colour): &(f64, f64, usize)| {
        let place = place.clamp(0.0, 1.0);
        let width = (LANE * length.clamp(0.0, 1.0 - place)).max(0.3);
        context! { x => rounded(LANE * place), width => rounded(width), colour => colour % COLOURS }
    };
    let lane = |(name, slices): &(String, Vec<_>)| {
        context! { name, slices => slices.iter().map(slice).collect::<Vec<Value>>() }
    };
    let key = |(text, colour): &(&str, usize)| context! { text, colour };
    context! {
        name => chart.name,
        width => chart.width,
        keys => chart.keys.iter().map(key).collect::<Vec<Value>>(),
        lanes => chart.lanes.iter().map(lane).collect::<Vec<Value>>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</style><script>alert(1)</script>\"' onload='x\u{1b}[2J\u{202e}&amp;";

    /// Returns the names of all tags of a page.
    fn tags(page: &str) -> Vec<String> {
        let mut names = Vec::new();
        for tag in page.split('<').skip(1) {
            let mut words = tag.split(['>', ' ', '/']);
            let name = words.find(|word| !word.is_empty());
            names.extend(name.map(str::to_owned));
        }
        names
    }

    #[test]
    fn whatever_a_text_says_stays_text() {
        let text = || HOSTILE.to_owned();
        let table = SheetTable::filled([()], &[(HOSTILE, &|()| text()), ("b", &|()| text())]);
        let sheet = |text: &dyn Fn() -> String, table: SheetTable| {
            Sheet(vec![
                SheetBlock::Title(text()),
                SheetBlock::Heading(text()),
                SheetBlock::Intro(text()),
                SheetBlock::Table(table),
                SheetBlock::Remark(text()),
                SheetBlock::Chart(SheetChart {
                    name: text(),
                    curves: vec![Curve {
                        name: text(),
                        points: vec![(0.0, 9.0), (1.0, f64::NAN), (2.0, 3.0)],
                    }],
                    levels: vec![(text(), 7.0)],
                }),
                SheetBlock::Parts(StackedBar {
                    name: text(),
                    parts: vec![(text(), 2.0), (text(), f64::NAN)],
                    width: f64::NAN,
                }),
                SheetBlock::Lanes(LaneChart {
                    name: text(),
                    width: text(),
                    keys: vec![("", 9)],
                    lanes: vec![(text(), vec![(0.5, 9.0, 8)])],
                }),
                SheetBlock::Scale(RangeScale {
                    caption: text(),
                    scale: Scale {
                        low: 0.0,
                        high: 0.0,
                        log: true,
                    },
                    ranges: vec![[f64::INFINITY, -1.0]],
                    mark: Some(f64::NAN),
                    even: Some(1.0),
                }),
            ])
        };
        let page = super::page(&sheet(&text, table));
        let plain = || "plain".to_owned();
        let harmless = SheetTable::filled([()], &[("a", &|()| plain()), ("b", &|()| plain())]);
        assert_eq!(
            tags(&page),
            tags(&super::page(&sheet(&plain, harmless))),
            "{page}"
        );
        for found in [
            "<script",
            "onload='",
            "onload=\"",
            "\u{1b}",
            "\u{202e}",
            "NaN",
            "inf",
        ] {
            assert!(!page.contains(found), "{found}: {page}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)"));
    }

    #[test]
    fn nothing_comes_from_outside_the_file() {
        let page = super::page(&Sheet(vec![SheetBlock::Title("T".to_owned())]));
        for found in ["http:", "https:", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(found), "{found}");
        }
        assert!(page.contains("default-src 'none'"));
        assert!(page.contains("width=device-width") && page.contains("prefers-color-scheme:dark"));
    }

    /// Nine stages with two long curves each are most of a learner's page.
    #[test]
    fn a_long_curve_is_drawn_in_few_bytes() {
        let noisy = |step: u32| (f64::from(step), 5.0 + f64::from(step * 7919 % 101) / 50.0);
        let curve = Curve {
            name: "A".to_owned(),
            points: (0..400).map(noisy).collect(),
        };
        let page = |curves| {
            super::page(&Sheet(vec![SheetBlock::Chart(SheetChart {
                name: "loss".to_owned(),
                curves,
                levels: Vec::new(),
            })]))
        };
        let empty = page(Vec::new());
        let drawn = page(vec![curve]);
        let bytes = drawn.len() - empty.len();
        assert!(bytes < 2300, "{bytes} bytes: {drawn}");
    }

    #[test]
    fn a_curve_fits_its_chart_and_a_list_is_closed() {
        let curve = |name: &str, points| Curve {
            name: name.to_owned(),
            points,
        };
        let page = super::page(&Sheet(vec![
            SheetBlock::Chart(SheetChart {
                name: "loss".to_owned(),
                curves: vec![
                    curve("A", vec![(0.0, 123.0), (100.0, 6.0)]),
                    curve("B", vec![(0.0, 6.9), (100.0, 4.0)]),
                ],
                levels: vec![("ln V".to_owned(), 6.9)],
            }),
            SheetBlock::Remark("one".to_owned()),
            SheetBlock::Remark("two".to_owned()),
        ]));
        assert!(page.contains("d=\"M48 10l320 "), "{page}");
        assert!(page.contains("A (dashed): 123"), "{page}");
        assert_eq!(
            (page.matches("<ul>").count(), page.matches("</ul>").count()),
            (1, 1)
        );
    }
}
