//! The result of pairs in the throughput panel and in the lesson.

use super::*;

/// Returns the lines of the expanded throughput panel with this result of pairs, without the frame.
fn throughput_lines(pair: &Pair, width: u16) -> Vec<String> {
    let mut app = pairs_measured();
    app.lesson.learner.pair = Some(pair.clone());
    app.view.expanded = true;
    app.view.focus = Some(Panel::Throughput);
    text_at((width, 44), &mut app)
        .lines()
        .map(|line| line.trim_matches(['│', ' ']).to_owned())
        .collect()
}

/// Makes a result of 40 pairs without a clear verdict, with this interval of the ratio.
fn unclear_pairs(low: f64, high: f64) -> Pair {
    let Event::Pair(pair) = sample::pair(40, true) else {
        unreachable!()
    };
    Pair {
        verdict: Verdict::Unclear,
        low: Some(low),
        high: Some(high),
        ..pair
    }
}

#[test]
fn the_line_about_pairs_has_the_longest_form_that_fits() {
    let mut pair = unclear_pairs(0.906, 1.036);
    pair.tokens = Some([512, 4096]);
    let forms = [
        "40 pairs; medians A 205.0 ms for 512 tokens, B 180.1 ms for 4096 tokens; a difference above 9.4 % is ruled out",
        "40 pairs; medians A 205.0 ms, B 180.1 ms; 512 and 4096 tokens; at most 9.4 % apart",
        "40 pairs; A 205.0 ms, B 180.1 ms; 512 and 4096 tokens; at most 9.4 % apart",
    ];
    // A frame takes four columns.
    let [long, short, shorter] = forms.map(|form| form.len() as u16 + 4);
    let widths = [
        (200, 0),
        (long, 0),
        (long - 1, 1),
        (short, 1),
        (short - 1, 2),
        (shorter, 2),
    ];
    for (width, expected) in widths {
        let lines = throughput_lines(&pair, width);
        let found: Vec<&str> = forms
            .into_iter()
            .filter(|form| lines.iter().any(|line| line == form))
            .collect();
        assert_eq!(found, [forms[expected]], "{width}: {lines:#?}");
        let has_interval = lines.iter().any(|line| line.contains("0.906"));
        assert!(has_interval, "{width}: {lines:#?}");
    }
}

#[test]
fn the_line_about_pairs_wraps_in_the_lesson() {
    let mut app = pairs_measured();
    app.lesson.learner.pair = Some(Pair {
        tokens: Some([512, 4096]),
        ..unclear_pairs(0.906, 1.036)
    });

    let shown = text_at((120, 36), &mut app);

    let column: Vec<&str> = shown
        .lines()
        .filter_map(|line| Some(line.split('│').nth(1)?.trim()))
        .collect();
    let lesson = column.join(" ");
    for sentence in [
        "no clear difference (n=40) 1.138x per token 95 %: 0.906–1.036",
        "40 pairs; A 205.0 ms, B 180.1 ms; 512 and 4096 tokens; at most 9.4 % apart",
    ] {
        assert!(lesson.contains(sentence), "{sentence}: {lesson}");
    }
}

#[test]
fn an_interval_that_excludes_1_is_not_called_no_difference() {
    for ((low, high), verdict) in [
        ((0.906, 1.036), "no clear difference"),
        ((1.007, 1.113), "B may be faster"),
        ((0.871, 0.994), "B may be slower"),
    ] {
        let lines = throughput_lines(&unclear_pairs(low, high), 120);
        let found = lines.iter().any(|line| line.contains(verdict));
        assert!(found, "{verdict}: {lines:#?}");
    }
}

#[test]
fn a_later_figure_is_shown_while_b_passes() {
    for outcome in [Outcome::Passed, Outcome::Failed] {
        let mut app = b_trains();
        solve(&mut app);
        train(&mut app, 30);
        act(&mut app, Action::Pair);
        pair(&mut app, 40, true);
        let stage = app.stage().expect("a stage").clone();
        assert!(truth(&app, &stage).is_some_and(|figure| figure > 6.6));
        let progress = app.lesson.learner.progress_mut(&stage.id);
        progress.estimate = Some((5.0, 9.0));
        progress.measured = Some(6.5);
        let report = app.lesson.learner.report.as_mut().expect("judged");
        for line in &mut report.lines {
            line.outcome = outcome;
        }

        let shown = text_at((120, 60), &mut app).contains("Measured since");

        assert_eq!(shown, outcome == Outcome::Passed);
    }
}
