//! The program in a pseudo-terminal: a parser reads what it drew, and keys are typed into it.
//! Linux only: the engine is found through `/proc`.
#![cfg(target_os = "linux")]

use crate::pty;
use std::io::Read;

use perflings::course::save_file::{self, StageState};
use perflings::tui::terminal::Screen;
use pty::{Terminal, is_engine, state, wait};
use pty_process::Size;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, OutputModes, tcgetattr};

fn last(bytes: &[u8], wanted: &str) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .rposition(|window| window == wanted.as_bytes())
}

/// Attributes in the output that ask for a colour. 39 and 49 are the terminal's own.
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

#[test]
fn a_session_from_the_first_frame_to_a_restored_terminal() {
    let mut terminal = Terminal::start(&[]);
    terminal.see_training();
    let during = tcgetattr(terminal.pty()).expect("a terminal");

    // The prediction.
    terminal.press("\r");
    terminal.see(&["Answer the question: a to d"]);
    terminal.press("b");
    terminal.see(&["── how much ──", "No range yet"]);
    terminal.press("\u{1b}");
    terminal.see_that("panels", |text| !text.contains("── how much ──"));

    // The fix, with the broken run in the background: nothing is changed yet, so the knobs come first.
    terminal.press("t");
    terminal.see(&["knobs", "B is the same as A"]);
    terminal.press("\u{1b}[C");
    terminal.see(&["1 differs", "running B custom"]);
    terminal.press("f");
    terminal.see(&["○ A broken 1", "● B custom 6."]);

    // Any size, at any time.
    for (cols, rows) in [(200, 50), (20, 5), (120, 36)] {
        terminal.resize(cols, rows);
        terminal.see_that(&format!("frame of {cols}x{rows}"), |text| {
            let lines: Vec<&str> = text.lines().collect();
            let widest = lines.iter().map(|line| line.chars().count()).max();
            // The smallest size has a text of its own; the others end with the keys and reach the right border.
            text.contains("B custom")
                && text.contains("running")
                && lines.len() <= usize::from(rows)
                && widest <= Some(cols.into())
                && (rows == 5
                    || lines.len() == usize::from(rows)
                        && widest == Some(cols.into())
                        && lines.last().is_some_and(|line| line.contains("q quit")))
        });
    }

    // When the engine is killed, the screen stays and says so.
    let first = terminal.engine();
    let pid = Pid::from_raw(first as i32).expect("not 0");
    kill_process(pid, Signal::KILL).expect("it is ours");
    terminal.see(&["the engine is gone", "r starts a new one", "○ B custom 6."]);
    assert!(terminal.shown().parser.screen().alternate_screen());
    assert!(!is_engine(first));
    terminal.press("r");
    terminal.see_that("run that goes on", |text| {
        text.contains("running B custom") && !text.contains("the engine is gone")
    });
    let second = terminal.engine();
    assert_ne!(first, second);

    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let output = terminal.all_output();
    let (on, off) = (
        last(&output, "\u{1b}[?1049h"),
        last(&output, "\u{1b}[?1049l"),
    );
    assert!(on.is_some() && off > on, "the screen before came back");
    let (hidden, seen) = (last(&output, "\u{1b}[?25l"), last(&output, "\u{1b}[?25h"));
    assert!(hidden.is_some() && seen > hidden, "the cursor is shown");
    let (unwrapped, wrapped) = (last(&output, "\u{1b}[?7l"), last(&output, "\u{1b}[?7h"));
    assert!(wrapped > unwrapped, "long lines wrap again");
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
    assert!(
        !colours(&output).is_empty(),
        "the test below looks at the right thing"
    );
    wait("end of the engine", || !is_engine(second));
}

#[test]
fn the_very_first_start_begins_with_a_welcome_that_any_key_closes() {
    let mut terminal = Terminal::start_first();
    terminal.see(&["welcome to perflings", "any key closes", "running A broken"]);
    // `q` only closes the card, too, and the run goes on behind it.
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

/// Seed 14 of level 1 is a learning rate that is too low: the loss panel shows it, and one knob fixes it.
#[test]
fn a_mystery_is_mended_through_the_knobs_and_judged() {
    let mut terminal = Terminal::start_with(&["mystery", "--seed", "14"], &[]);
    terminal.see(&["mystery 14, level 1", "running A mystery"]);
    terminal.press("T");
    terminal.see(&["B is still the same as A"]);
    terminal.see(&["gradient       ?    ?"]);
    assert!(!terminal.text().contains("0.0000001"));
    // Down to the learning rate; the first turn gives B the preset's.
    terminal.press(&"j".repeat(12));
    terminal.see(&["▸ learning-rate"]);
    terminal.press("\u{1b}[C");
    terminal.see(&["< 0.0003 >", "running B custom"]);
    // One comparison in forty calls equal ones slower; then it is asked again.
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
        // The parser would keep every cell of such a terminal: it stays as it is.
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
    // Escape and a letter read at once would be that letter with Alt.
    terminal.press("\u{1b}");
    terminal.see_that("panels", |text| !text.contains("Answer the question"));
    // Without a prediction it asks first.
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

/// What the next test runs in a terminal: a screen that is drawn when its thread panics.
#[test]
#[ignore = "it panics on purpose"]
fn a_panic_while_the_screen_is_drawn() {
    let mut screen = Screen::take().expect("a terminal");
    let drawn = screen.draw(|frame| frame.render_widget("workshop", frame.area()));
    drawn.expect("drawn");
    // Another thread's panic does not touch the screen.
    let other = std::thread::spawn(|| panic!("in the background"));
    assert!(other.join().is_err());
    panic!("on purpose");
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_is_told() {
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
    // An error is the end.
    let _ = (&pty).read_to_end(&mut output);
    assert!(!child.wait().expect("our child").success());
    let at = |wanted| {
        last(&output, wanted)
            .unwrap_or_else(|| panic!("{wanted}: {}", String::from_utf8_lossy(&output)))
    };
    let left = at("\u{1b}[?1049l");
    let told = at("on purpose");
    assert!(at("workshop") < left && left < told);
    assert!(
        last(&output[left..told], "\u{1b}[?25h").is_some(),
        "the cursor is back"
    );
    assert_eq!(
        last(&output, "in the background"),
        None,
        "it would lie over the screen"
    );
    let after = tcgetattr(&pty).expect("a terminal");
    assert_eq!(after.local_modes, before.local_modes);
    assert_eq!(after.output_modes, before.output_modes);
}

#[test]
fn a_learner_mends_stage_2_and_finds_all_of_it_after_a_restart() {
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
    let kept = state(&terminal.home);
    wait("a pass", || {
        save_file::load(&kept).0.stage("strides").state == StageState::Passed
    });
    // Measured in pairs, whatever comes of it on this machine; the knobs give way to them.
    terminal.press("T");
    terminal.see(&["B: model.kv-layout contiguous"]);
    // They end within the limit that they announce.
    terminal.see_that("end of the pairs", |text| {
        !text.contains("in pairs") && text.contains("B: model.kv-layout contiguous")
    });
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let file = kept.join("work/strides/config.toml");
    let of_stage = || save_file::load(&kept).0.stage("strides");
    let text = || std::fs::read_to_string(&file).expect("the learner's file");
    let (before, mine) = (of_stage(), text());
    assert!(
        mine.contains("kv-layout = \"contiguous\"") && mine.contains("layers = 2"),
        "{mine}"
    );
    assert!(
        mine.contains("contiguous, strided, assumed"),
        "what it takes: {mine}"
    );

    let mut terminal = terminal.again(&[]);
    terminal.see(&["running A broken"]);
    assert_eq!((of_stage(), text()), (before.clone(), mine.clone()));
    // B is as it was left.
    terminal.press("t");
    terminal.see(&["running B custom"]);
    terminal.press("f");
    terminal.see(&["1 differs"]);
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    assert_eq!((of_stage(), text()), (before, mine));
}
