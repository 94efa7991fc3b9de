//! Plays the program in a pseudo-terminal: the tests type keys, and a parser reads the screen that the program draws. They run on Linux only,
//! because they find the engine through `/proc`.
#![cfg(target_os = "linux")]

use crate::pty;
use std::io::Read;

use perflings::course::save_file::{self, StageState};
use perflings::tui::terminal::Screen;
use pty::{Terminal, is_engine, state, wait};
use pty_process::Size;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, OutputModes, tcgetattr};

/// Returns the position of the last occurrence of a text in the output.
fn last(bytes: &[u8], wanted: &str) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .rposition(|window| window == wanted.as_bytes())
}

/// Returns the attributes in the output that ask for a colour. 39 and 49 ask for the terminal's own colours and are left out.
fn colours(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let attributes = text.split("\u{1b}[").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':')?;
        rest[end..].starts_with('m').then(|| rest[..end].to_owned())
    });
    attributes
        .filter(|list| {
            list.split([';', ':'])
                .filter_map(|code| code.parse().ok())
                .any(|code: u32| matches!(code, 30..=38 | 40..=48 | 58 | 90..=97 | 100..=107))
        })
        .collect()
}

/// Answers the question of the first stage and returns to the panels.
fn predict(terminal: &mut Terminal) {
    terminal.press("\r");
    terminal.see(&["Answer the question: a to d"]);
    terminal.press("b");
    terminal.see(&["── how much ──", "No range yet"]);
    terminal.press("\u{1b}");
    terminal.see_that("panels", |text| !text.contains("── how much ──"));
}

/// Turns the first knob of B, while A's broken run stays in the background.
fn turn_a_knob_of_b(terminal: &mut Terminal) {
    terminal.press("t");
    terminal.see(&["knobs", "B is the same as A"]);
    terminal.press("\u{1b}[C");
    terminal.see(&["1 differs", "running B custom"]);
    terminal.press("f");
    terminal.see(&["○ A broken 1", "● B custom 6."]);
}

/// Returns true if a frame fills a terminal of this size. The smallest size has a text of its own. A larger frame reaches the right border, and
/// its last line names keys.
fn is_whole_frame(text: &str, cols: u16, rows: u16) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let widest = lines.iter().map(|line| line.chars().count()).max();
    let fits = lines.len() <= usize::from(rows) && widest <= Some(cols.into());
    let fills = lines.len() == usize::from(rows)
        && widest == Some(cols.into())
        && lines.last().is_some_and(|line| line.contains("q quit"));
    fits && (rows == 5 || fills)
}

#[test]
fn a_learner_s_run_survives_changes_of_size_and_the_death_of_the_engine() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    predict(&mut terminal);
    turn_a_knob_of_b(&mut terminal);
    for (cols, rows) in [(200, 50), (20, 5), (120, 36)] {
        terminal.resize(cols, rows);
        terminal.see_that(&format!("frame of {cols}x{rows}"), |text| {
            text.contains("B custom")
                && text.contains("running")
                && is_whole_frame(text, cols, rows)
        });
    }

    let first_engine = terminal.engine();
    let process = Pid::from_raw(first_engine as i32).expect("not 0");
    kill_process(process, Signal::KILL).expect("our process");
    terminal.see(&[
        "the engine is gone",
        "r: start a new engine",
        "○ B custom 6.",
    ]);
    assert!(terminal.shown().parser.screen().alternate_screen());
    assert!(!is_engine(first_engine));

    terminal.press("r");
    terminal.see_that("run that goes on", |text| {
        text.contains("running B custom") && !text.contains("the engine is gone")
    });
    assert_ne!(terminal.engine(), first_engine);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn quitting_gives_the_terminal_back_as_it_was() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let engine = terminal.engine();
    let during = tcgetattr(terminal.pty()).expect("a terminal");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);

    let output = terminal.all_output();
    for (what, changed, restored) in [
        ("the main screen", "\u{1b}[?1049h", "\u{1b}[?1049l"),
        ("the cursor", "\u{1b}[?25l", "\u{1b}[?25h"),
        ("the wrapping of lines", "\u{1b}[?7l", "\u{1b}[?7h"),
    ] {
        let changed_at = last(&output, changed);
        assert!(changed_at.is_some(), "{what} was never changed");
        assert!(last(&output, restored) > changed_at, "{what} is not back");
    }
    {
        let shown = terminal.shown();
        let screen = shown.parser.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    }
    let after = tcgetattr(terminal.pty()).expect("a terminal");
    let cooked = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
    assert!(!during.local_modes.contains(LocalModes::ICANON));
    assert!(after.local_modes.contains(cooked));
    assert!(after.output_modes.contains(OutputModes::OPOST));
    // So the test `no_color_means_no_colour` would find colours, if there were any.
    assert!(!colours(&output).is_empty());
    wait("end of the engine", || !is_engine(engine));
}

#[test]
fn the_very_first_start_begins_with_a_welcome_that_any_key_closes() {
    let mut terminal = Terminal::start_first();
    terminal.see(&["welcome to perflings", "any key closes", "running A broken"]);
    // Here `q`, too, only closes the card, and the run goes on behind it.
    terminal.press("q");
    terminal.see_training();
    assert!(!terminal.text().contains("welcome"));
    terminal.press("W");
    terminal.see(&["welcome to perflings"]);
    terminal.press("\u{1b}[15~");
    terminal.see_that("panels", |text| !text.contains("welcome"));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let (kept, problem) = save_file::load(&state(&terminal.home));
    assert!(kept.welcomed && problem.is_none());
}

#[test]
fn a_learner_solves_a_mystery_with_one_knob() {
    // In the mystery of seed 14 and level 1, the learning rate is too low.
    let mut terminal = Terminal::start_with(&["mystery", "--seed", "14"], &[]);
    terminal.see(&["mystery 14, level 1", "running A mystery"]);
    terminal.press("T");
    terminal.see(&["B is still the same as A"]);
    terminal.see(&["gradient       ?    ?"]);
    assert!(!terminal.text().contains("0.0000001"));
    // Select the learning rate. Its first turn sets the value of the preset.
    terminal.press(&"j".repeat(12));
    terminal.see(&["▸ learning-rate"]);
    terminal.press("\u{1b}[C");
    terminal.see(&["< 0.0003 >", "running B custom"]);
    // A comparison of equal configurations calls one of them slower in one case of forty. Then the test compares again.
    for _ in 0..4 {
        terminal.press("T");
        terminal.see_that("verdict", |text| {
            text.contains("Solved: ") || text.contains("The verdict: not yet")
        });
        if terminal.text().contains("Solved: ") {
            break;
        }
        assert!(terminal.text().contains("the loss falls"));
    }
    terminal.see(&["Solved: ", "train.learning-rate was 0.0000001"]);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let (kept, problem) = save_file::load(&state(&terminal.home));
    assert!(kept.mysteries.contains_key("14-1") && problem.is_none());
}

#[test]
fn ctrl_c_ends_the_screen_with_130() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    terminal.press("\u{3}");
    assert_eq!(terminal.ended(), 130);
}

#[test]
fn a_terminal_that_hangs_up_ends_the_program_and_its_engine() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let engine = terminal.engine();
    terminal.hang_up();
    terminal.ended();
    wait("end of the engine", || !is_engine(engine));
}

#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    for (cols, rows) in [
        (u16::MAX, u16::MAX),
        (u16::MAX, 1),
        (1, u16::MAX),
        (1, 1),
        (0, 0),
    ] {
        // The parser would keep every cell of such a terminal, so its size stays.
        terminal
            .pty()
            .resize(Size::new(rows, cols))
            .expect("resizes");
        terminal.wait_for_output();
    }
    terminal.resize(120, 36);
    terminal.see_that("a frame", |text| text.contains("running A broken"));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn no_color_means_no_colour() {
    let mut terminal = Terminal::start(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]);
    terminal.see_training();
    terminal.press("\r");
    terminal.see(&["Answer the question: a to d"]);
    // Wait until the page is closed: Escape and a letter that are read at once would be that letter with Alt.
    terminal.press("\u{1b}");
    terminal.see_that("panels", |text| !text.contains("Answer the question"));
    // Without a prediction the program asks before it toggles.
    terminal.press("t");
    terminal.see(&["Toggle?"]);
    terminal.press("y");
    terminal.see(&["B is the same as A"]);
    terminal.press("\u{1b}[C");
    terminal.see(&["running B custom"]);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let output = terminal.all_output();
    assert_eq!(colours(&output), Vec::<String>::new());
}

/// The next test runs this one in a terminal of its own. It panics after it drew a screen.
#[test]
#[ignore = "it panics on purpose"]
fn a_panic_while_the_screen_is_drawn() {
    let mut screen = Screen::take().expect("a terminal");
    let drawn = screen.draw(|frame| frame.render_widget("workshop", frame.area()));
    drawn.expect("drawn");
    // The panic of another thread must not touch the screen.
    let other = std::thread::spawn(|| panic!("in the background"));
    assert!(other.join().is_err());
    panic!("on purpose");
}

#[test]
fn a_panic_gives_the_terminal_back_before_its_text_is_printed() {
    let (pty, slave) = pty_process::blocking::open().expect("a terminal opens");
    pty.resize(Size::new(24, 80)).expect("resizes");
    let before = tcgetattr(&pty).expect("a terminal");
    let program = std::env::current_exe().expect("this test");
    let args = [
        "--ignored",
        "--exact",
        "--nocapture",
        "terminal::a_panic_while_the_screen_is_drawn",
    ];
    let command = pty_process::blocking::Command::new(program).args(args);
    let mut child = command.spawn(slave).expect("it starts");
    let mut output = Vec::new();
    // At the end of the output, reading a terminal returns an error.
    let _ = (&pty).read_to_end(&mut output);
    assert!(!child.wait().expect("our child").success());
    let position = |wanted| {
        last(&output, wanted)
            .unwrap_or_else(|| panic!("{wanted}: {}", String::from_utf8_lossy(&output)))
    };
    let screen_left = position("\u{1b}[?1049l");
    let panic_printed = position("on purpose");
    assert!(position("workshop") < screen_left && screen_left < panic_printed);
    let between = &output[screen_left..panic_printed];
    assert!(
        last(between, "\u{1b}[?25h").is_some(),
        "the cursor is hidden"
    );
    let other_panic = last(&output, "in the background");
    assert_eq!(other_panic, None, "the text would garble the screen");
    let after = tcgetattr(&pty).expect("a terminal");
    assert_eq!(after.local_modes, before.local_modes);
    assert_eq!(after.output_modes, before.output_modes);
}

#[test]
fn a_learner_passes_stage_2_and_finds_everything_unchanged_after_a_restart() {
    let mut terminal = Terminal::start_with(&["--stage", "2"], &[]);
    terminal.see(&["running A broken"]);
    terminal.press("\r");
    terminal.see(&["Answer the question: a to d"]);
    terminal.press("b");
    terminal.see(&["How much?"]);
    terminal.press("\r");
    terminal.see(&["evidence"]);

    // The second knob of the stage is the one that matters.
    terminal.press("f");
    terminal.see(&["knobs", "initial weights"]);
    terminal.press("\u{1b}[B");
    terminal.see(&["how the attention kernel reads keys and values"]);
    terminal.press("\u{1b}[C");
    terminal.see(&["1 differs", "running B custom"]);
    let folder = state(&terminal.home);
    let saved_stage = || save_file::load(&folder).0.stage("strides");
    wait("a pass", || saved_stage().state == StageState::Passed);
    // Compare in pairs. Any verdict is right on this machine, but the pairs must end.
    terminal.press("T");
    terminal.see(&["B: model.kv-layout contiguous"]);
    terminal.see_that("end of the pairs", |text| {
        !text.contains("in pairs") && text.contains("B: model.kv-layout contiguous")
    });
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let file = folder.join("work/strides/config.toml");
    let config_text = || std::fs::read_to_string(&file).expect("the learner's file");
    let stage_before = saved_stage();
    let config_before = config_text();
    for part in [
        "kv-layout = \"contiguous\"",
        "layers = 2",
        // The comment lists the values of the knob.
        "contiguous, strided, assumed",
    ] {
        assert!(config_before.contains(part), "{config_before}");
    }

    let mut terminal = terminal.again(&[]);
    terminal.see(&["running A broken"]);
    assert_eq!(saved_stage(), stage_before);
    assert_eq!(config_text(), config_before);
    // B still has its changed knob.
    terminal.press("t");
    terminal.see(&["running B custom"]);
    terminal.press("f");
    terminal.see(&["1 differs"]);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    assert_eq!(saved_stage(), stage_before);
    assert_eq!(config_text(), config_before);
}
