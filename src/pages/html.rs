//! Writes a sheet as one HTML file with its style and drawings. The page loads nothing from elsewhere, and every text is escaped. It can be
//! read on a phone and on paper, in light and in dark colours.

use super::sheet::{
    Curve, LaneChart, RangeScale, Sheet, SheetBlock, SheetChart, SheetTable, StackedBar,
};
use crate::sanitize;
use crate::scale::Scale;
use protocol::units::{number, or_dash, show};

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1d1d1f;--dim:#5f6368;--rule:#d5d7da;--paper:#fff;--a:#b3261e;--b:#0b57d0;--soft:#e8eefb}\
@media(prefers-color-scheme:dark){:root{--ink:#e6e6e6;--dim:#a3a7ad;--rule:#3c4043;--paper:#16181a;--a:#ff9d91;--b:#8ab4f8;--soft:#243044}}\
*{box-sizing:border-box}\
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}\
main{max-width:64rem;margin:0 auto;padding:1rem;overflow-wrap:break-word}p,li{max-width:46rem}\
h1{font-size:1.6rem;line-height:1.2}h2{font-size:1.2rem;margin-top:2rem;padding-top:.75rem;border-top:1px solid var(--rule)}\
.wide{overflow-x:auto;margin:1rem 0;background:linear-gradient(to right,var(--paper) 50%,transparent) 0/3rem 100%,\
linear-gradient(to left,var(--paper) 50%,transparent) 100%/3rem 100%,linear-gradient(to right,var(--rule),transparent) 0/.8rem 100%,\
linear-gradient(to left,var(--rule),transparent) 100%/.8rem 100%;background-repeat:no-repeat;background-attachment:local,local,scroll,scroll}\
table{border-collapse:collapse;font-size:.9rem;min-width:min(100%,28rem)}\
th,td{text-align:left;vertical-align:top;padding:.25rem 1rem .25rem 0;border-bottom:1px solid var(--rule)}\
.r{text-align:right}td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
ul{padding-left:1.2rem}figure{margin:1rem 0}figcaption{color:var(--dim);font-size:.9rem}\
svg{display:block;width:100%;height:auto;max-width:30rem}\
svg text{fill:var(--dim);font:12px system-ui,sans-serif}\
.axis{stroke:var(--rule)}.level{stroke:var(--dim);stroke-dasharray:2 4}\
.curve{fill:none;stroke-width:2}.a{stroke:var(--a);stroke-dasharray:6 3}.b{stroke:var(--b)}\
text.a{fill:var(--a);stroke:none}text.b{fill:var(--b);stroke:none}\
.band{fill:var(--soft);stroke:var(--b)}.mark{fill:var(--a)}.lane{fill:var(--rule);opacity:.35}\
.p0{fill:#4c78c8}.p1{fill:#b3589a}.p2{fill:#3f8f6b}.p3{fill:#c0772c}.p4{fill:#7a6ff0}.p5{fill:#8a8f98}.p6{fill:#c9a227}.p7{fill:#d2544f}\
.key{display:inline-block;margin-right:1rem}.key svg{display:inline;width:.8em;height:.8em;margin-right:.3em}svg.bar{max-width:none;height:1.4rem}.name{margin:.5rem 0 .1rem;color:var(--dim);font-size:.85rem}\
@media print,(max-width:40rem){td:has(wbr){min-width:8.5rem}}\
@media print{:root{--ink:#000;--dim:#444;--rule:#bbb;--paper:#fff;--a:#b3261e;--b:#0b57d0;--soft:#e8eefb}\
main,p,li{max-width:none}main{padding:0}h2{break-after:avoid}tr,figure{break-inside:avoid}.wide{overflow:visible;background:none}}";

/// The width and height of a chart, in units of the drawing like all lengths here.
const CHART: (f64, f64) = (420.0, 220.0);
/// The margins for the labels of a chart: left, right, above, below.
const MARGINS: [f64; 4] = [48.0, 52.0, 10.0, 24.0];
/// The width of a scale, and its height with one range.
const SCALE: (f64, f64) = (420.0, 44.0);
/// The part of this height that the ranges take.
const BANDS: f64 = 20.0;
/// The margin for the labels on each side of a scale.
const SCALE_MARGIN: f64 = 56.0;

/// Returns the text of the whole file.
pub fn page(sheet: &Sheet) -> String {
    let title = sheet.0.iter().find_map(|block| match block {
        SheetBlock::Title(text) => Some(sanitize::html(text)),
        _ => None,
    });
    let mut body = String::new();
    let mut is_in_list = false;
    for block in &sheet.0 {
        let is_remark = matches!(block, SheetBlock::Remark(_));
        if is_remark != is_in_list {
            body += if is_remark { "<ul>\n" } else { "</ul>\n" };
            is_in_list = is_remark;
        }
        body += &match block {
            SheetBlock::Title(text) => format!("<h1>{}</h1>\n", sanitize::html(text)),
            SheetBlock::Intro(text) => format!("<p>{}</p>\n", prose(text)),
            SheetBlock::Heading(text) => format!("<h2>{}</h2>\n", sanitize::html(text)),
            SheetBlock::Remark(text) => format!("<li>{}</li>\n", prose(text)),
            SheetBlock::Table(data) => table(data),
            SheetBlock::Chart(data) => chart(data),
            SheetBlock::Scale(data) => scale(data),
            SheetBlock::Parts(data) => parts(data),
            SheetBlock::Lanes(data) => lanes(data),
        };
    }
    if is_in_list {
        body += "</ul>\n";
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        title.unwrap_or_default()
    )
}

/// Writes a sentence. Words between two backticks become code.
fn prose(text: &str) -> String {
    let escaped = sanitize::html(text);
    let pieces: Vec<&str> = escaped.split('`').collect();
    if pieces.len().is_multiple_of(2) {
        return escaped;
    }
    // The pieces at odd places are between backticks.
    let marked_up = |(index, piece): (usize, &&str)| match index % 2 {
        0 => (*piece).to_owned(),
        _ => format!("<code>{piece}</code>"),
    };
    pieces.iter().enumerate().map(marked_up).collect()
}

/// Writes a table. Cells and rows have no closing tags, because HTML closes them where the next one begins.
fn table(table: &SheetTable) -> String {
    let SheetTable { head: names, rows } = table;
    let count_figures = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.filter(|cell| is_figure(cell)).count()
    };
    // A column is aligned right if more than half of its cells are figures.
    let aligned_right: Vec<bool> = (0..names.len())
        .map(|column| 2 * count_figures(column) > rows.len())
        .collect();
    let mut head = String::new();
    if table.is_named() {
        head += "<thead><tr>";
        for (name, is_right) in names.iter().zip(&aligned_right) {
            let class = if *is_right { " class=r" } else { "" };
            head += &format!("<th scope=col{class}>{}", sanitize::html(name));
        }
        head += "\n";
    }
    let row = |row: &Vec<String>| {
        let cell = |(column, text): (usize, &String)| {
            let class = if is_figure(text) {
                " class=n"
            } else if aligned_right.get(column) == Some(&true) {
                " class=r"
            } else {
                ""
            };
            // A long name may break after its underscores.
            let breakable = sanitize::html(text).replace('_', "_<wbr>");
            format!("<td{class}>{breakable}")
        };
        let cells: String = row.iter().enumerate().map(cell).collect();
        format!("<tr>{cells}\n")
    };
    let body: String = rows.iter().map(row).collect();
    format!("<div class=wide><table>\n{head}<tbody>\n{body}</table></div>\n")
}

/// Returns true if a cell is a number, perhaps followed by a unit.
fn is_figure(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default();
    let number = first.trim_end_matches(['x', '%']).replace(',', "");
    text.len() < 20 && (number.parse::<f64>().is_ok() || text == "-")
}

/// Draws a chart. Returns an empty text without points.
fn chart(chart: &SheetChart) -> String {
    let is_finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
    let points = chart
        .curves
        .iter()
        .flat_map(|curve| curve.points.iter().filter(is_finite));
    let levels = chart.levels.iter().filter(|(_, y)| y.is_finite());
    let Some((first, last)) = lowest_and_highest(points.clone().map(|point| point.0)) else {
        return String::new();
    };
    let heights = points.map(|point| point.1);
    let all_heights = heights.chain(levels.clone().map(|level| level.1));
    let (low, high) = lowest_and_highest(all_heights).unwrap_or_default();
    let log = low > 0.0 && high > 20.0 * low;
    let [left, right, above, below] = MARGINS;
    let wide = CHART.0 - left - right;
    let tall = CHART.1 - above - below;
    let scale = |low, high, log| Scale { low, high, log };
    let x = |value: f64| left + wide * scale(first, last, false).share(value);
    let y = |value: f64| above + tall * (1.0 - scale(low, high, log).share(value));
    let mut drawn = String::new();
    for (name, level) in levels {
        let end = left + wide;
        drawn += &rule("level", (left, y(*level)), (end, y(*level)));
        drawn += &label((end + 4.0, y(*level) + 4.0), "", name);
        drawn += "\n";
    }
    for (curve, class) in chart.curves.iter().zip(["a", "b"].into_iter().cycle()) {
        let points = curve.points.iter().filter(is_finite);
        let path = path_through(points.map(|(step, value)| (x(*step), y(*value))));
        drawn += &format!("<path class=\"curve {class}\" d=\"{path}\"/>\n");
    }
    for value in [low, high] {
        drawn += &label((left - 6.0, y(value) + 4.0), "end", &number(value));
    }
    for (value, anchor) in [(first, "start"), (last, "end")] {
        drawn += &label((x(value), CHART.1 - 6.0), anchor, &show(value, 0));
    }
    let axis = format!(
        "<path class=\"axis\" fill=\"none\" d=\"M{left:.1} {above:.1}V{:.1}H{:.1}\"/>",
        above + tall,
        left + wide
    );
    figure(CHART, &caption(chart), &format!("{axis}\n{drawn}"))
}

/// The smallest distance of two points of a curve along the axis. Points that are closer look like one on a screen.
const MIN_DISTANCE: f64 = 2.0;

/// Returns a line through the first point, the last point and all points between them that are far enough apart. Each point is written as
/// its distance from the previous one, in tenths, because curves are the largest part of a page.
fn path_through(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut rest = points.peekable();
    let mut path = String::new();
    let mut last = None;
    while let Some((x, y)) = rest.next() {
        let x = (10.0 * x).round();
        let y = (10.0 * y).round();
        match last {
            None => path = format!("M{} {}l", tenths(x), tenths(y)),
            Some((x0, _)) if x - x0 < 10.0 * MIN_DISTANCE && rest.peek().is_some() => continue,
            Some((x0, y0)) => {
                let right = tenths(x - x0);
                let down = tenths(y - y0);
                let between = if down.starts_with('-') { "" } else { " " };
                path += &format!("{right}{between}{down} ");
            }
        }
        last = Some((x, y));
    }
    path.trim_end().to_owned()
}

/// Writes a number of tenths: `1.5` for 15, `.5` for 5, `2` for 20.
fn tenths(count: f64) -> String {
    let number = (count / 10.0).to_string();
    number.replacen("0.", ".", usize::from(count.abs() < 10.0))
}

/// Returns the lowest and the highest value; `None` without values.
fn lowest_and_highest(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    values.clone().reduce(f64::min).zip(values.reduce(f64::max))
}

/// Writes a text in a drawing. `anchor` says which part of the text is at the point: `start`, `end`, or an empty text for `start`.
fn label((x, y): (f64, f64), anchor: &str, text: &str) -> String {
    let attribute = match anchor {
        "" => String::new(),
        anchor => format!(" text-anchor=\"{anchor}\""),
    };
    let escaped = sanitize::html(text);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\"{attribute}>{escaped}</text>")
}

/// Draws a straight line of the class `class` from one point to another.
fn rule(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> String {
    format!("<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>")
}

/// Writes a drawing of this size with a caption, which has the content of the drawing in words.
fn figure((wide, tall): (f64, f64), caption: &str, drawn: &str) -> String {
    let escaped = sanitize::html(caption);
    format!(
        "<figure><svg viewBox=\"0 0 {wide} {tall:.0}\" aria-hidden=\"true\">\n{drawn}</svg>\n\
         <figcaption>{escaped}</figcaption></figure>\n"
    )
}

/// Returns the content of a chart in words: the first and the last value of each curve.
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
fn scale(chart: &RangeScale) -> String {
    let begin = SCALE_MARGIN;
    let end = SCALE.0 - SCALE_MARGIN;
    let x = |value: f64| begin + (end - begin) * chart.scale.share(value);
    let thick = (BANDS / chart.ranges.len().max(1) as f64).max(4.0);
    let bands = thick * chart.ranges.len() as f64;
    let middle = 12.0 + bands / 2.0;
    let tall = SCALE.1 - BANDS + bands;
    let mut drawn = rule("axis", (begin, middle), (end, middle));
    drawn += "\n";
    drawn += &label((begin - 8.0, middle + 4.0), "end", &number(chart.scale.low));
    drawn += &label((end + 8.0, middle + 4.0), "", &number(chart.scale.high));
    drawn += "\n";
    for (index, [low, high]) in chart.ranges.iter().enumerate() {
        let left = x(*low);
        let width = (x(*high) - left).max(2.0);
        let top = 12.0 + thick * index as f64;
        drawn += &format!(
            "<rect class=\"band\" x=\"{left:.1}\" y=\"{top:.1}\" \
             width=\"{width:.1}\" height=\"{thick:.1}\" rx=\"2\"/>\n"
        );
    }
    if let Some(even) = chart.even {
        drawn += &rule("level", (x(even), 4.0), (x(even), tall - 4.0));
        drawn += "\n";
    }
    if let Some(mark) = chart.mark {
        let top = middle - 12.0;
        let x = x(mark);
        drawn += &format!("<path class=\"mark\" d=\"M{x:.1} {top:.1}l7 12l-7 12l-7 -12z\"/>\n");
    }
    figure((SCALE.0, tall), &chart.caption, &drawn)
}

/// The number of colours for parts.
const COLOURS: usize = 8;

/// Draws a bar in colours, with the name and the share of each part. Returns an empty text if all parts are 0.
fn parts(bar: &StackedBar) -> String {
    let is_positive = |(_, size): &&(String, f64)| size.is_finite() && *size > 0.0;
    let positive = bar.parts.iter().filter(is_positive);
    let sum: f64 = positive.map(|(_, size)| size).sum();
    if sum <= 0.0 {
        return String::new();
    }
    let mut from = 0.0;
    let mut drawn = String::new();
    let mut keys = String::new();
    // A part without a size keeps its colour, so that each colour has one meaning in all bars.
    for (index, part) in bar.parts.iter().enumerate() {
        if !is_positive(&part) {
            continue;
        }
        let (name, value) = part;
        let wide = 1000.0 * value / bar.width.max(sum);
        let colour = index % COLOURS;
        drawn += &format!(
            "<rect class=\"p{colour}\" x=\"{from:.1}\" y=\"0\" width=\"{wide:.1}\" height=\"28\"/>"
        );
        keys += &key(&format!("{name} {:.1} %", 100.0 * value / sum), colour);
        from += wide;
    }
    let name = sanitize::html(&bar.name);
    format!(
        "<figure><svg class=\"bar\" viewBox=\"0 0 1000 28\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\">{drawn}</svg>\n\
         <figcaption>{name}. {keys}</figcaption></figure>\n"
    )
}

/// Writes the name of a part with its colour.
fn key(name: &str, colour: usize) -> String {
    format!(
        "<span class=\"key\"><svg viewBox=\"0 0 1 1\" aria-hidden=\"true\">\
         <rect class=\"p{colour}\" width=\"1\" height=\"1\"/></svg>{}</span>\n",
        sanitize::html(name)
    )
}

/// Draws lanes one below the other, each with its name above it.
fn lanes(chart: &LaneChart) -> String {
    let mut drawn = String::new();
    for (name, slices) in &chart.lanes {
        let mut pieces = String::new();
        for (place, length, colour) in slices {
            let from = place.clamp(0.0, 1.0);
            pieces += &format!(
                "<rect class=\"p{}\" x=\"{:.2}\" width=\"{:.2}\" height=\"14\"/>",
                colour % COLOURS,
                800.0 * from,
                (800.0 * length.clamp(0.0, 1.0 - from)).max(0.3)
            );
        }
        drawn += &format!(
            "<p class=\"name\">{}</p><svg class=\"bar\" viewBox=\"0 0 800 14\" \
             preserveAspectRatio=\"none\" aria-hidden=\"true\">\
             <rect class=\"lane\" width=\"800\" height=\"14\"/>{pieces}</svg>\n",
            sanitize::html(name)
        );
    }
    let name = sanitize::html(&chart.name);
    let width = sanitize::html(&chart.width);
    let keys: String = chart
        .keys
        .iter()
        .map(|(name, colour)| key(name, *colour))
        .collect();
    format!(
        "<figure>\n{drawn}<figcaption>{name}, lane by lane. The width is {width}. {keys}\
         </figcaption></figure>\n"
    )
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
    fn a_hostile_text_adds_no_tag_and_no_attribute() {
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
    fn a_page_loads_nothing_from_outside_its_file() {
        let page = super::page(&Sheet(vec![SheetBlock::Title("T".to_owned())]));
        for found in ["http:", "https:", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(found), "{found}");
        }
        assert!(page.contains("default-src 'none'"));
        assert!(page.contains("width=device-width") && page.contains("prefers-color-scheme:dark"));
    }

    /// The curves are most of a learner's page: nine stages have two of them each.
    #[test]
    fn a_curve_of_400_points_takes_at_most_2200_bytes() {
        let noisy = |step: u32| (f64::from(step), 5.0 + f64::from(step * 7919 % 101) / 50.0);
        let curve = Curve {
            name: "A".to_owned(),
            points: (0..400).map(noisy).collect(),
        };
        let drawn = chart(&SheetChart {
            name: "loss".to_owned(),
            curves: vec![curve],
            levels: Vec::new(),
        });
        assert!(drawn.len() < 2200, "{} bytes: {drawn}", drawn.len());
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
        assert_eq!(page.matches("<ul>").count(), 1);
        assert_eq!(page.matches("</ul>").count(), 1);
    }
}
