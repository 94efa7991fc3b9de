//! Figures on the screen: a share is the quotient of the two figures beside it, and a figure is whole or absent.

use std::collections::BTreeSet;

use perflings::tui::layout::arrange;
use protocol::random::Rng;

use super::*;

/// A figure on the screen.
#[derive(Clone, Copy)]
struct Written {
    value: f64,
    /// Half a unit of the last digit.
    rounding: f64,
}

fn written(text: &str) -> Written {
    let digits = text.replace(',', "");
    let decimals = digits.split_once('.').map_or(0, |(_, after)| after.len());
    Written {
        value: digits.parse().unwrap_or_else(|_| panic!("{text}")),
        rounding: 0.5 * 10f64.powi(-(decimals as i32)),
    }
}

/// Fails if `share`, in percent, is not `part` over `whole` within the rounding of all three.
fn assert_is_quotient(share: &str, part: &str, whole: &str, screen: &str) {
    let [share, part, whole] = [share, part, whole].map(written);
    let low = 100.0 * (part.value - part.rounding) / (whole.value + whole.rounding);
    let high = 100.0 * (part.value + part.rounding) / (whole.value - whole.rounding);
    // Figures just below 100 % are not rounded up to it.
    let tolerance = share.rounding + 0.1;
    let fits = low - tolerance <= share.value && share.value <= high + tolerance;
    let Written { value, .. } = share;
    assert!(
        fits,
        "{value} % of {} and {}\n{screen}",
        part.value, whole.value
    );
}

/// Returns the word before `mark`. Fails if the line does not contain it.
fn word_before<'a>(line: &'a str, mark: &str) -> &'a str {
    let before = line.split_once(mark).map(|(before, _)| before);
    let word = before.and_then(|before| before.split_whitespace().last());
    word.unwrap_or_else(|| panic!("nothing before {mark}: {line}"))
}

/// Returns the word after `mark`. Fails if the line does not contain it.
fn word_after<'a>(line: &'a str, mark: &str) -> &'a str {
    let after = line.split_once(mark).map(|(_, after)| after);
    let word = after.and_then(|after| after.split_whitespace().next());
    word.unwrap_or_else(|| panic!("nothing after {mark}: {line}"))
}

/// Returns the first line of a screen with this text.
fn line_with<'a>(screen: &'a str, text: &str) -> &'a str {
    let line = screen.lines().find(|line| line.contains(text));
    line.unwrap_or_else(|| panic!("no {text}\n{screen}"))
}

/// Makes a profile whose times vary randomly.
fn random_profile(rng: &mut Rng, slot: Slot, step: u64) -> StepProfile {
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

/// Makes a step whose phases vary randomly. Some steps are longer than their phases, some are shorter.
fn random_step(rng: &mut Rng, slot: Slot, step: u64) -> Step {
    let phases = [0; 3].map(|_| 300.0 * rng.uniform());
    let ms = phases.iter().sum::<f64>() * (0.6 + rng.uniform());
    Step {
        slot,
        step,
        loss: Some(6.9.into()),
        ms,
        synced: true,
        phases: Some(PhaseTimes::from_parts(phases, ms)),
        clocks: Some(StepClocks {
            enqueue: 1.0,
            host_sync: ms,
            device: None,
        }),
        ..Step::default()
    }
}

#[test]
fn a_peak_that_was_measured_under_load_has_no_share() {
    let shown = |peak_load| {
        let mut app = a_trains();
        let Event::Throughput(throughput) = sample::throughput(&app.bench.comparison.run_a(), 40)
        else {
            panic!("figures of a run")
        };
        hear(
            &mut app,
            Event::Throughput(Throughput {
                flops: Some(120e9),
                peak_load,
                ..throughput
            }),
        );
        text_at((200, 50), &mut app)
    };
    assert!(shown(None).contains("120.0 of 98.00 GFLOP/s (122 %)"));
    assert!(!shown(Some(0.6)).contains("122 %"));
}

#[test]
fn every_share_of_the_kernels_is_the_quotient_of_the_figures_next_to_it() {
    let mut rng = Rng::named(1, "shares of kernels", 0);
    for case in 0..60 {
        let mut app = a_trains();
        let slot = app.bench.run.active;
        for step in 0..1 + case % 7 {
            let profile = random_profile(&mut rng, slot, step);
            hear(&mut app, Event::Kernels(profile));
        }

        let kernels = panel_text(Panel::Kernels, &mut app, (160, 20));

        let summary = line_with(&kernels, "covers ");
        let rows_ms = word_before(summary, " ms on the");
        let (_, covers) = summary.split_once("covers ").expect("a share");
        let step_ms = word_before(covers, " ms");
        assert_is_quotient(word_before(covers, " %"), rows_ms, step_ms, &kernels);
        let longer = if written(rows_ms).value > written(step_ms).value {
            rows_ms
        } else {
            step_ms
        };
        let is_row = |line: &&str| line.contains(" fwd ") || line.contains("rest of");
        for line in kernels.lines().filter(is_row) {
            let (figures, _) = line.split_once(" %").expect("a share");
            let words: Vec<&str> = figures.split_whitespace().collect();
            let (share, before) = words.split_last().expect("words");
            let is_figure = |word: &&&str| word.replace(',', "").parse::<f64>().is_ok();
            let ms = before.iter().rfind(is_figure).expect("a time");
            assert_is_quotient(share, ms, longer, &kernels);
        }
    }
}

#[test]
fn every_share_of_the_ledger_is_the_quotient_of_the_figures_next_to_it() {
    let mut rng = Rng::named(1, "shares of phases", 0);
    for _ in 0..60 {
        let mut app = a_trains();
        let slot = app.bench.run.active;
        hear(&mut app, Event::Step(random_step(&mut rng, slot, 900)));

        let ledger = panel_text(Panel::Ledger, &mut app, (160, 20));

        let step_ms = word_after(line_with(&ledger, "ms of "), "ms of ");
        let is_part = |line: &&str| line.contains(" ms ") && line.contains(" %");
        for line in ledger.lines().filter(is_part) {
            let time = word_before(line, " ms").trim_start_matches(['+', '-']);
            let share = word_before(line, " %").trim_start_matches(['+', '-']);
            assert_is_quotient(share, time, step_ms, &ledger);
        }
    }
}

/// A figure in a row of cells: the column of its first cell, the column after its last one, and its text.
struct FoundFigure {
    from: usize,
    to: usize,
    text: String,
}

/// Returns the figures in a row of cells.
fn figures(row: &[String]) -> Vec<FoundFigure> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let is_part = |cell: &str| {
        let may_stand = |letter: char| is_digit(letter) || matches!(letter, '.' | ',');
        !cell.is_empty() && cell.chars().all(may_stand)
    };
    let mut found: Vec<FoundFigure> = Vec::new();
    for (column, cell) in row.iter().enumerate().filter(|(_, cell)| is_part(cell)) {
        match found.last_mut() {
            Some(figure) if figure.to == column => {
                figure.to += 1;
                figure.text.push_str(cell);
            }
            _ => found.push(FoundFigure {
                from: column,
                to: column + 1,
                text: cell.clone(),
            }),
        }
    }
    found.retain(|figure| figure.text.contains(is_digit));
    for figure in &mut found {
        figure.text = figure.text.trim_matches(['.', ',']).to_owned();
    }
    found
}

/// Returns the cells of an area, row by row.
fn rows(buffer: &Buffer, area: Rect) -> Vec<Vec<String>> {
    let cell = |x, y| buffer[(x, y)].symbol().to_owned();
    let row = |y| (area.left()..area.right()).map(|x| cell(x, y)).collect();
    (area.top()..area.bottom()).map(row).collect()
}

/// Returns every figure of a state, whole: as a very large screen shows it with each panel expanded.
fn whole_figures(app: &App) -> BTreeSet<String> {
    let mut whole = BTreeSet::new();
    let panels = Panel::VARIANTS.iter().copied().map(Some);
    for expanded in panels.chain([None]) {
        let mut app = app.clone();
        if let Some(panel) = expanded {
            act(&mut app, Action::Focus(panel));
            act(&mut app, Action::Expand);
        }
        let buffer = screen::screen(&mut app, 240, 70, ThemeName::Dark, Markers::Braille);
        for row in rows(&buffer, buffer.area) {
            whole.extend(figures(&row).into_iter().map(|figure| figure.text));
        }
    }
    whole
}

/// Returns the figures of an area that are perhaps cut: they touch a mark of omission or, in a panel, its right edge.
fn perhaps_cut(buffer: &Buffer, area: Rect) -> Vec<String> {
    let mut found = Vec::new();
    for row in rows(buffer, area) {
        let is_blank = |cell: &String| matches!(cell.as_str(), " " | "│" | "┃" | "");
        let end = row
            .iter()
            .rposition(|cell| !is_blank(cell))
            .map_or(0, |last| last + 1);
        let at_edge = area != buffer.area && end + 2 >= row.len();
        let is_mark = |column: usize| row.get(column).is_some_and(|cell| cell == "…");
        for figure in figures(&row) {
            let after_mark = figure.from.checked_sub(1).is_some_and(is_mark);
            if after_mark || is_mark(figure.to) || at_edge && figure.to == end {
                found.push(figure.text);
            }
        }
    }
    found
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
    // A card covers other figures.
    states.retain(|app| app.view.overlay.is_none());
    for app in states {
        let whole = whole_figures(&app);
        for (width, height) in sizes {
            let mut app = app.clone();
            let dark = ThemeName::Dark;
            let buffer = screen::screen(&mut app, width, height, dark, Markers::Braille);
            let mut areas = vec![buffer.area];
            let panels = arrange(buffer.area, &app).panels;
            let others = panels.iter().filter(|(panel, _)| *panel != Panel::Lesson);
            areas.extend(others.map(|(_, area)| *area));
            for figure in areas
                .into_iter()
                .flat_map(|area| perhaps_cut(&buffer, area))
            {
                let shown = text(&buffer);
                assert!(
                    whole.contains(&figure),
                    "{figure} at {width}x{height}\n{shown}"
                );
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
            let shown = text_at((width, 36), &mut app);
            let vitals = shown.lines().nth(1).expect("a line").trim_end();
            let Some((_, speed)) = vitals.split_once("speed ") else {
                assert!(width < 80, "{vitals}");
                continue;
            };
            let names_peak = speed.contains("of peak");
            let needed = vitals.chars().count() + " of peak".len();
            assert!(
                names_peak || needed > usize::from(width),
                "{width}: {vitals}"
            );
            assert!(names_peak || width < 120, "{width}: {vitals}");
        }
    }
}

/// Returns the phrases between dots, of the lines of a panel that contain one of these marks.
fn phrases(app: &mut App, panel: Panel, width: u16, marks: &[&str]) -> BTreeSet<String> {
    panel_text(panel, app, (width, 20))
        .lines()
        .filter(|line| marks.iter().any(|mark| line.contains(mark)))
        .flat_map(|line| line.trim_matches(['│', ' ']).split('·'))
        .map(|phrase| phrase.trim().to_owned())
        .collect()
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
}

#[test]
fn the_rate_beside_large_numerals_is_not_cut_at_any_width() {
    let mut app = stage_without_syncs();
    for width in 60..160 {
        let shown = text_at((width, 24), &mut app);
        let is_rate = |line: &&str| line.contains("submitted at");
        for line in shown.lines().filter(is_rate) {
            let (_, rate) = line.split_once("submitted at ").expect("a rate");
            let unit = rate.split_whitespace().nth(1);
            assert_eq!(unit, Some("samples/s"), "{width}: {shown}");
        }
    }
    let shown = text_at((80, 24), &mut app);
    assert!(shown.contains("no sync: submitted at"), "{shown}");
}
