//! The knobs and free runs.

use super::*;

#[test]
fn the_knobs_are_on_the_screen_at_every_size() {
    let mut broken = at_the_knobs();
    let config = Err(
        "config.toml:5: unknown key `model.nrom`; the nearest known key is `model.norm`".to_owned(),
    );
    update(&mut broken, Message::FileSaved { config });
    let unknown = "config.toml:5: unknown key `model.nrom`; the nearest";
    let states: [(&str, App, &[&str]); 3] = [
        (
            "knobs",
            at_the_knobs(),
            &["6 of 6 · 1 differs", "▸ learning-rate "],
        ),
        ("knobs_broken_file", broken, &[unknown, "▸ learning-rate "]),
        (
            "free_run",
            free_run(),
            &["▸ kv-heads ", "▲ 8 kv-heads do not divide heads = 4"],
        ),
    ];
    for (name, mut app, says) in states {
        assert_says(&SIZES, &app, says);
        picture(name, &mut app, TYPICAL);
    }
}

#[test]
fn the_allowed_values_of_a_knob_are_not_cut_at_any_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let mut app = free_run();
        for index in 0..app.bench.comparison.offers.len() {
            app.bench.comparison.select(index);
            let knob = app.bench.comparison.offers[index];
            let shown = text_at((width, height), &mut app);
            let allowed = knob.allowed();
            let last_word = allowed.split_whitespace().last().expect("words");
            for word in [knob.name(), last_word] {
                assert!(shown.contains(word), "{}, {word}: {shown}", knob.path);
            }
        }
    }
}

#[test]
fn the_smallest_screen_explains_a_knob_in_two_lines_and_most_in_one() {
    let mut app = free_run();
    let offers = app.bench.comparison.offers.clone();
    let mut in_one_line = 0;
    for (index, knob) in offers.iter().enumerate() {
        app.bench.comparison.select(index);
        let shown = text_at((60, 16), &mut app);
        let about = format!("{}: ", knob.name());
        let lines = shown
            .lines()
            .skip_while(|line| !line.contains(&about))
            .take_while(|line| !line.starts_with('╰'))
            .count();
        assert!((1..=2).contains(&lines), "{}: {shown}", knob.path);
        in_one_line += usize::from(lines == 1);
    }
    let count = offers.len();
    assert!(in_one_line * 2 >= count, "{in_one_line} of {count}");
}
