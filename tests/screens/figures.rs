//! Figures on the screen: a share is the quotient of the two figures beside it, and a figure is whole or absent.

use std::collections::BTreeSet;

use perflings::tui::layout::arrange;
use protocol::random::Rng;

use super::*;

/// Returns a written figure and half a unit of its last digit.
fn written(text: &str) -> (f64, f64) {
    let digits = text.replace(',', "");
    let value: f64 = digits.parse().unwrap_or_else(|_| panic!("{text}"));
    let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
    (value, 0.5 * 10f64.powi(-(decimals as i32)))
}

/// Fails if `share`, in percent, is not `part` of `whole` within the rounding of all three.
fn quotient(share: &str, part: &str, whole: &str, screen: &str) {
    let [share, part, whole] = [share, part, whole].map(written);
    let least = 100.0 * (part.0 - part.1) / (whole.0 + whole.1) - share.1;
    let most = 100.0 * (part.0 + part.1) / (whole.0 - whole.1) + share.1;
    // Figures just below 100 % are not rounded up to it.
    let held = least <= share.0 + 0.1 && share.0 <= most + 0.1;
    assert!(held, "{} % of {part:?} and {whole:?}\n{screen}", share.0);
}

/// Returns the word before `mark`. `None` if the line does not contain it.
fn before<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let (head, _) = line.split_once(mark)?;
    head.split_whitespace().last()
}

/// Makes a profile whose times vary randomly.
fn profile(rng: &mut Rng, slot: Slot, step: u64) -> StepProfile {
    let names = ["mlp.gate", "mlp.up", "attention", "norm", "optimizer"];
    let rows = names.map(|part| KernelRow {
        part: part.to_owned(),
        phase: "forward".to_owned(),
        calls: 1,
        ms: 900.0 * rng.uniform() * rng.uniform(),
        ..KernelRow::default()
    });
    let device_ms: f64 = rows.iter().map(|row| row.ms).sum();
    // Some steps are longer than their rows, some are shorter: clocks change.
    let step_ms = device_ms * (0.97 + rng.uniform());
    StepProfile {
        slot,
        step,
        rows: rows.to_vec(),
        device_ms,
        step_ms: Some(step_ms),
        coverage: device_ms / step_ms,
        unbracketed_ms: (step_ms - device_ms).max(0.0),
        clock: "host".to_owned(),
        ..StepProfile::default()
    }
}

#[test]
fn a_peak_that_was_measured_under_load_has_no_share() {
    let shown = |peak_load| {
        let mut app = a_trains();
        let Event::Throughput(it) = sample::throughput(&app.bench.comparison.run_a(), 40) else {
            panic!("figures of a run")
        };
        hear(
            &mut app,
            Event::Throughput(Throughput {
                flops: Some(120e9),
                peak_load,
                ..it
            }),
        );
        text_at((200, 50), &mut app)
    };
    assert!(shown(None).contains("120.0 of 98.00 GFLOP/s (122 %)"));
    assert!(!shown(Some(0.6)).contains("122 %"));
}

#[test]
fn every_share_is_the_quotient_of_the_figures_next_to_it() {
    let mut rng = Rng::named(1, "shares", 0);
    for case in 0..60 {
        let mut app = a_trains();
        let slot = app.bench.run.active;
        for step in 0..1 + case % 7 {
            hear(&mut app, Event::Kernels(profile(&mut rng, slot, step)));
        }
        let [forward, backward, optimizer] = [0; 3].map(|_| 300.0 * rng.uniform());
        let step = (forward + backward + optimizer) * (0.6 + rng.uniform());
        let phases = PhaseTimes::from_parts([forward, backward, optimizer], step);
        hear(
            &mut app,
            Event::Step(Step {
                slot,
                step: 900,
                loss: Some(6.9.into()),
                ms: step,
                synced: true,
                phases: Some(phases),
                clocks: Some(StepClocks {
                    enqueue: 1.0,
                    host_sync: step,
                    device: None,
                }),
                ..Step::default()
            }),
        );
        let mut drawn = |panel| {
            let buffer = screen::panel(&mut app, panel, 160, 20, ThemeName::Dark, Markers::Braille);
            text(&buffer)
        };
        let kernels = drawn(Panel::Kernels);
        let summary = kernels.lines().find(|line| line.contains("covers "));
        let summary = summary.expect("a summary");
        let clock = before(summary, " ms on the").expect("the sum of the rows");
        let (covers, of) = summary
            .split_once("covers ")
            .expect("checked")
            .1
            .split_once(" %")
            .expect("a share");
        let of = before(of, " ms").expect("the step");
        quotient(covers, clock, of, &kernels);
        let whole = if written(clock).0 > written(of).0 {
            clock
        } else {
            of
        };
        for line in kernels
            .lines()
            .filter(|line| line.contains(" fwd ") || line.contains("rest of"))
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            let at = words.iter().position(|word| *word == "%").expect("a share");
            let ms = words[..at - 1]
                .iter()
                .rev()
                .find(|word| word.replace(',', "").parse::<f64>().is_ok());
            quotient(words[at - 1], ms.expect("a time"), whole, &kernels);
        }
        let ledger = drawn(Panel::Ledger);
        let sum = ledger
            .lines()
            .find(|line| line.contains("ms of "))
            .expect("the sum");
        let step = sum
            .split_once("ms of ")
            .and_then(|(_, of)| of.split_whitespace().next());
        for line in ledger
            .lines()
            .filter(|line| line.contains(" ms ") && line.contains(" %"))
        {
            let (time, share) = (before(line, " ms"), before(line, " %"));
            let plain = |text: Option<&str>| {
                text.expect("a figure")
                    .trim_start_matches(['+', '-'])
                    .to_owned()
            };
            quotient(
                &plain(share),
                &plain(time),
                step.expect("the step"),
                &ledger,
            );
        }
    }
}

/// Returns the figures in a line, with the first column and the column after the last character of each.
fn figures(line: &[String]) -> Vec<(usize, usize, String)> {
    let part = |cell: &String| {
        cell.chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | ','))
            && !cell.is_empty()
    };
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    for (at, cell) in line.iter().enumerate() {
        match found.last_mut() {
            Some((_, end, figure)) if *end == at && part(cell) => {
                *end = at + 1;
                figure.push_str(cell);
            }
            _ if part(cell) => found.push((at, at + 1, cell.clone())),
            _ => {}
        }
    }
    found.retain(|(_, _, figure)| figure.chars().any(|c| c.is_ascii_digit()));
    found
}

fn plain(figure: &str) -> String {
    figure.trim_matches(['.', ',']).to_owned()
}

/// Returns the cells of an area, row by row.
fn rows(buffer: &Buffer, area: Rect) -> Vec<Vec<String>> {
    let cell = |x, y| buffer[(x, y)].symbol().to_owned();
    let row = |y| (area.left()..area.right()).map(|x| cell(x, y)).collect();
    (area.top()..area.bottom()).map(row).collect()
}

#[test]
fn no_figure_is_cut_at_any_size() {
    let sizes = [
        (60, 16),
        (66, 20),
        (80, 24),
        (97, 30),
        (120, 36),
        (133, 40),
        (160, 45),
        (181, 48),
    ];
    let mut states = all_states();
    states.extend([
        mystery_not_solved(),
        without_gradients(),
        on_a_busy_machine(),
        b_continues_a(),
    ]);
    // A card covers what lies behind it.
    states.retain(|app| app.view.overlay.is_none());
    for app in states {
        let draw = |app: &mut App, (width, height)| {
            screen::screen(app, width, height, ThemeName::Dark, Markers::Braille)
        };
        let mut known = BTreeSet::new();
        let focus = Panel::VARIANTS.iter().copied().map(Some).chain([None]);
        for panel in focus {
            let mut wide = app.clone();
            if let (Some(panel), None) = (panel, wide.view.overlay) {
                act(&mut wide, Action::Focus(panel));
                act(&mut wide, Action::Expand);
            }
            let buffer = draw(&mut wide, (240, 70));
            let all = rows(&buffer, buffer.area);
            known.extend(
                all.iter()
                    .flat_map(|row| figures(row))
                    .map(|figure| plain(&figure.2)),
            );
        }
        for size in sizes {
            let mut app = app.clone();
            let buffer = draw(&mut app, size);
            let it = arrange(buffer.area, &app);
            let shown = it
                .panels
                .iter()
                .filter(|(panel, _)| *panel != Panel::Lesson);
            let mut areas: Vec<Rect> = shown.map(|(_, area)| *area).collect();
            areas.push(buffer.area);
            for area in areas {
                for row in rows(&buffer, area) {
                    let end = row
                        .iter()
                        .rposition(|cell| !matches!(cell.as_str(), " " | "│" | "┃" | ""))
                        .map_or(0, |at| at + 1);
                    let edge = end + 2 >= row.len() && area != buffer.area;
                    let is_mark = |at: Option<usize>| {
                        at.and_then(|at| row.get(at))
                            .is_some_and(|cell| cell == "…")
                    };
                    for (from, to, figure) in figures(&row) {
                        let cut =
                            is_mark(Some(to)) || is_mark(from.checked_sub(1)) || edge && to == end;
                        let whole = known.contains(&plain(&figure));
                        assert!(!cut || whole, "{figure} at {size:?} in\n{}", text(&buffer));
                    }
                }
            }
        }
    }
}

#[test]
fn the_speed_is_called_a_share_of_the_peak_if_the_line_has_room() {
    let mut wrong = a_trains();
    let run = wrong.bench.run.wanted.clone().expect("a run");
    let Event::Step(mut step) = sample::step(&run, 41) else {
        unreachable!()
    };
    step.loss = Some(5.0.into());
    hear(&mut wrong, Event::Step(step));
    let mut shipped = session::begin(Course::builtin(), Options::default()).0;
    train(&mut shipped, 40);
    for mut app in [shipped, a_trains(), wrong, b_trains(), without_gradients()] {
        for width in 60..=200 {
            let theme = ThemeName::Dark;
            let drawn = screen::screen(&mut app, width, 36, theme, Markers::Braille);
            let drawn = text(&drawn);
            let vitals = drawn.lines().nth(1).expect("a line").trim_end();
            let Some((_, speed)) = vitals.split_once("speed ") else {
                assert!(width < 80, "{vitals}");
                continue;
            };
            let named = speed.contains("of peak");
            let with_it = vitals.chars().count() + " of peak".len();
            assert!(named || with_it > usize::from(width), "{width}: {vitals}");
            assert!(named || width < 120, "{width}: {vitals}");
        }
    }
}

/// Returns the phrases between dots that contain one of these words.
fn phrases(app: &mut App, panel: Panel, width: u16, marks: &[&str]) -> BTreeSet<String> {
    let (theme, markers) = (ThemeName::Dark, Markers::Braille);
    let drawn = text(&screen::panel(app, panel, width, 20, theme, markers));
    let lines = drawn.lines();
    let marked = lines.filter(|line| marks.iter().any(|mark| line.contains(mark)));
    let parts = marked.flat_map(|line| line.trim_matches(['│', ' ']).split('·'));
    parts.map(|part| part.trim().to_owned()).collect()
}

#[test]
fn no_phrase_is_cut_at_any_width() {
    let panels: [(Make, Panel, &[&str]); 3] = [
        (
            stage_without_syncs,
            Panel::Throughput,
            &["no sync:", "submitted at"],
        ),
        (a_trains, Panel::Kernels, &["launches", "covers"]),
        (a_trains, Panel::Roofline, &["roofs:"]),
    ];
    for (make, panel, marks) in panels {
        let mut app = make();
        let mut whole = phrases(&mut app, panel, 200, marks);
        // Narrow panels have shorter wordings.
        whole.extend(phrases(&mut app, panel, 59, marks));
        assert!(whole.len() > 2, "{whole:?}");
        for width in 20..200 {
            let shown = phrases(&mut app, panel, width, marks);
            assert!(shown.is_subset(&whole), "{width}: {shown:?}, {whole:?}");
        }
    }
    // Stage 3, whose panel is a strip beside large numerals.
    let mut app = stage_without_syncs();
    for width in 60..160 {
        let drawn = screen::screen(&mut app, width, 24, ThemeName::Dark, Markers::Braille);
        let drawn = text(&drawn);
        for line in drawn.lines().filter(|line| line.contains("submitted at")) {
            let (_, rate) = line.split_once("submitted at ").expect("filtered");
            let mut words = rate.split_whitespace().skip(1);
            assert_eq!(words.next(), Some("samples/s"), "{width}: {drawn}");
        }
        let says = width != 80 || drawn.contains("no sync: submitted at");
        assert!(says, "{drawn}");
    }
}
