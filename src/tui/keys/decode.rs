//! Turns bytes from a terminal into keys, clicks and pasted text. The bytes may come in pieces of any size. Invalid sequences are
//! dropped, and no earlier bytes can keep a later ctrl-c from being read.

use crossterm::event::{
    Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

/// The longest sequence of a key, in bytes. A longer one is dropped.
const MAX_SEQUENCE: usize = 64;
/// The longest answer of a terminal (its colours, its name) that is skipped, in bytes.
const MAX_ANSWER: usize = 4096;
/// The longest part of a pasted text that is kept, in bytes.
const MAX_PASTE: usize = 64 * 1024;
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// The kind of sequence that the bytes so far have begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    Escape,
    /// `ESC [` and the bytes that follow it.
    Sequence,
    /// `ESC O` and one more byte.
    Single,
    /// The three bytes of a click in the oldest form.
    OldClick,
    /// A character of several bytes, held with alt if an escape came before it.
    Character(KeyModifiers),
    /// An answer of the terminal, up to BEL or `ESC \`.
    Answer {
        escape: bool,
    },
    Paste,
}

/// The decoder takes bytes as they come and keeps the beginning of an incomplete sequence.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    bytes: Vec<u8>,
}

impl Decoder {
    /// Returns true while a sequence has begun and is not complete.
    pub fn is_waiting(&self) -> bool {
        self.state != State::Ground
    }

    /// Returns true while a pasted text has begun and is not complete.
    pub fn is_pasting(&self) -> bool {
        self.state == State::Paste
    }

    /// Reads further bytes and calls `emit` with each event that they complete.
    pub fn read(&mut self, bytes: &[u8], emit: &mut impl FnMut(Event)) {
        for byte in bytes {
            self.byte(*byte, emit);
        }
    }

    /// Treats the unfinished sequence as complete, because its rest did not come in time.
    pub fn give_up(&mut self, emit: &mut impl FnMut(Event)) {
        match std::mem::take(&mut self.state) {
            State::Escape => emit(key(KeyCode::Esc, KeyModifiers::NONE)),
            State::Paste => self.pasted(emit),
            _ => {}
        }
        self.bytes.clear();
    }

    fn byte(&mut self, byte: u8, emit: &mut impl FnMut(Event)) {
        match self.state {
            State::Ground => self.ground(byte, KeyModifiers::NONE, emit),
            State::Escape => self.after_escape(byte, emit),
            State::Paste => self.pasting(byte, emit),
            State::Answer { escape } => match byte {
                b'\\' if escape => self.state = State::Ground,
                0x07 => self.state = State::Ground,
                0x1b => self.state = State::Answer { escape: true },
                // The end of the answer is missing, so this was no answer.
                0..=0x1f => self.restart_with(byte, emit),
                _ if escape => {
                    self.state = State::Escape;
                    self.bytes.clear();
                    self.after_escape(byte, emit);
                }
                _ => {
                    self.bytes.push(byte);
                    if self.bytes.len() > MAX_ANSWER {
                        self.state = State::Ground;
                    }
                }
            },
            State::OldClick => {
                self.bytes.push(byte);
                if let [button, x, y] = self.bytes[..] {
                    self.state = State::Ground;
                    let number = |byte: u8| u32::from(byte.saturating_sub(32));
                    let release = number(button) & 3 == 3 && number(button) & 64 == 0;
                    emit(click(number(button), number(x), number(y), release));
                }
            }
            // A control character belongs to no sequence, so the bytes before it are dropped.
            _ if byte < 0x20 || byte == 0x7f => self.restart_with(byte, emit),
            State::Single => {
                self.state = State::Ground;
                if let Some(code) = letter_code(byte) {
                    emit(key(code, KeyModifiers::NONE));
                }
            }
            State::Sequence => {
                self.bytes.push(byte);
                // The Linux console sends `ESC [ [ A` for F1.
                let console = self.bytes == b"[";
                if (0x40..=0x7e).contains(&byte) && !console {
                    self.state = State::Ground;
                    self.sequence(emit);
                } else if self.bytes.len() > MAX_SEQUENCE {
                    self.state = State::Ground;
                }
            }
            State::Character(modifiers) => {
                if !(0x80..0xc0).contains(&byte) {
                    return self.restart_with(byte, emit);
                }
                self.bytes.push(byte);
                let read = std::str::from_utf8(&self.bytes);
                if read.is_err_and(|error| error.error_len().is_none()) {
                    return;
                }
                self.state = State::Ground;
                for letter in read.unwrap_or_default().chars() {
                    emit(key(KeyCode::Char(letter), modifiers));
                }
            }
        }
    }

    /// Drops the unfinished sequence and reads the byte as the first one of a new sequence.
    fn restart_with(&mut self, byte: u8, emit: &mut impl FnMut(Event)) {
        self.state = State::Ground;
        self.ground(byte, KeyModifiers::NONE, emit);
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.bytes.clear();
    }

    fn ground(&mut self, byte: u8, modifiers: KeyModifiers, emit: &mut impl FnMut(Event)) {
        use KeyCode::{Backspace, Char, Enter, Tab};
        let control = modifiers | KeyModifiers::CONTROL;
        emit(match byte {
            0x1b => return self.begin(State::Escape),
            b'\r' => key(Enter, modifiers),
            b'\t' => key(Tab, modifiers),
            0x7f => key(Backspace, modifiers),
            0 => key(Char(' '), control),
            1..=0x1a => key(Char((byte | 0x60) as char), control),
            0x1c..=0x1f => key(Char((byte - 0x1c + b'4') as char), control),
            0x20..0x7f => key(Char(byte as char), modifiers),
            // This is the first byte of a character of several bytes.
            0xc2..0xf5 => {
                self.begin(State::Character(modifiers));
                return self.bytes.push(byte);
            }
            _ => return,
        });
    }

    fn after_escape(&mut self, byte: u8, emit: &mut impl FnMut(Event)) {
        match byte {
            b'[' => self.begin(State::Sequence),
            b'O' => self.begin(State::Single),
            // OSC, DCS, SOS, PM and APC.
            b']' | b'P' | b'X' | b'^' | b'_' => self.begin(State::Answer { escape: false }),
            // The first escape was the key; the second one may begin a sequence.
            0x1b => emit(key(KeyCode::Esc, KeyModifiers::NONE)),
            _ => {
                self.state = State::Ground;
                self.ground(byte, KeyModifiers::ALT, emit);
            }
        }
    }

    fn pasting(&mut self, byte: u8, emit: &mut impl FnMut(Event)) {
        self.bytes.push(byte);
        if self.bytes.ends_with(PASTE_ENDS) {
            self.bytes.truncate(self.bytes.len() - PASTE_ENDS.len());
            self.state = State::Ground;
            self.pasted(emit);
        } else if self.bytes.len() > MAX_PASTE {
            // The tail stays, because it may hold the end of the paste. The byte before the tail is dropped.
            let keep = MAX_PASTE - PASTE_ENDS.len();
            self.bytes.remove(keep);
        }
    }

    fn pasted(&mut self, emit: &mut impl FnMut(Event)) {
        emit(Event::Paste(
            String::from_utf8_lossy(&self.bytes).into_owned(),
        ));
        self.bytes.clear();
    }

    /// Reads a complete sequence, of which `bytes` has everything after `ESC [`.
    fn sequence(&mut self, emit: &mut impl FnMut(Event)) {
        let Some((last, body)) = self.bytes.split_last() else {
            return;
        };
        let last = *last;
        let body = std::str::from_utf8(body).unwrap_or_default();
        if let Some(body) = body.strip_prefix('<') {
            if let [button, x, y] = numbers(body)[..]
                && matches!(last, b'M' | b'm')
            {
                emit(click(button, x, y, last == b'm'));
            }
            return;
        }
        if last == b'M' && body.is_empty() {
            return self.begin(State::OldClick);
        }
        let parts = numbers(body);
        let modifiers = modifiers(parts.get(1).copied().unwrap_or(1));
        let code = match (last, body) {
            (b'A'..=b'E', "[") => Some(KeyCode::F(last - b'A' + 1)),
            (b'Z', _) => Some(KeyCode::BackTab),
            (b'~', "200") => return self.begin(State::Paste),
            (b'~', _) => parts.first().copied().and_then(number_code),
            // `ESC [ 5 ; 7 R` says where the cursor is and is no key.
            (b'R', _) => None,
            _ => letter_code(last),
        };
        if let Some(code) = code {
            emit(key(code, modifiers));
        }
    }
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

fn numbers(text: &str) -> Vec<u32> {
    text.split(';')
        .map(|number| number.parse().unwrap_or(1))
        .collect()
}

/// Returns the modifiers that a terminal's number means. The number 1 means no modifier.
fn modifiers(number: u32) -> KeyModifiers {
    let bits = number.saturating_sub(1);
    let named = [
        (1, KeyModifiers::SHIFT),
        (2, KeyModifiers::ALT),
        (4, KeyModifiers::CONTROL),
    ];
    named
        .into_iter()
        .filter(|(bit, _)| bits & bit != 0)
        .fold(KeyModifiers::NONE, |held, (_, modifier)| held | modifier)
}

/// Returns the key of `ESC [ A` and `ESC O A`, or `None` for an unknown letter.
fn letter_code(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        _ => return None,
    })
}

/// Returns the key of `ESC [ 5 ~`, or `None` for an unknown number.
fn number_code(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F((number - 10) as u8),
        17..=21 => KeyCode::F((number - 11) as u8),
        23 | 24 => KeyCode::F((number - 12) as u8),
        _ => return None,
    })
}

/// Returns the event of a click, a turn of the wheel or a motion. `button` is xterm's number: its two lowest bits name the button, and the
/// others the kind of event and the modifiers. `x` and `y` begin at 1.
fn click(button: u32, x: u32, y: u32, is_release: bool) -> Event {
    use MouseEventKind::{Down, Drag, Moved, ScrollDown, ScrollLeft, ScrollRight, ScrollUp, Up};
    let name = match button & 3 {
        1 => MouseButton::Middle,
        2 => MouseButton::Right,
        _ => MouseButton::Left,
    };
    let is_wheel = button & 64 != 0;
    let is_motion = button & 32 != 0;
    let kind = match button & 3 {
        0 if is_wheel => ScrollUp,
        1 if is_wheel => ScrollDown,
        2 if is_wheel => ScrollLeft,
        _ if is_wheel => ScrollRight,
        3 if is_motion => Moved,
        _ if is_motion => Drag(name),
        _ if is_release => Up(name),
        _ => Down(name),
    };
    let from_zero = |place: u32| u16::try_from(place.saturating_sub(1)).unwrap_or(u16::MAX);
    // The bits of shift, alt and control are two bits higher than in keys.
    let modifiers = modifiers(((button >> 2) & 7) + 1);
    Event::Mouse(MouseEvent {
        kind,
        column: from_zero(x),
        row: from_zero(y),
        modifiers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the events of the bytes. Asserts that the bytes give them one by one and all together.
    fn events(bytes: &[u8]) -> Vec<Event> {
        let mut all = [Vec::new(), Vec::new()];
        for (size, found) in [1, bytes.len().max(1)].into_iter().zip(&mut all) {
            let mut decoder = Decoder::default();
            for piece in bytes.chunks(size) {
                decoder.read(piece, &mut |event| found.push(event));
            }
            decoder.give_up(&mut |event| found.push(event));
            assert!(!decoder.is_waiting());
        }
        let [one_by_one, together] = all;
        assert_eq!(one_by_one, together);
        together
    }

    /// Returns the events of the bytes in words, with a blank between two events.
    fn names(bytes: &[u8]) -> String {
        let names = events(bytes).into_iter().map(|event| match event {
            Event::Key(key) => {
                let held: String = key
                    .modifiers
                    .iter_names()
                    .map(|(name, _)| format!("{name}-"))
                    .collect();
                held + &super::super::key_name(key.code)
            }
            Event::Mouse(mouse) => format!("{:?} {} {}", mouse.kind, mouse.column, mouse.row),
            Event::Paste(text) => format!("{text:?}"),
            other => format!("{other:?}"),
        });
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn keys_are_read_as_terminals_send_them() {
        assert_eq!(names(b"j\r\t\x7f \x1b"), "j enter tab backspace space esc");
        assert_eq!(names(b"\x03\x1a\0"), "CONTROL-c CONTROL-z CONTROL-space");
        assert_eq!(names("é√\u{1f600}".as_bytes()), "é √ \u{1f600}");
        assert_eq!(
            names(b"\x1b[A\x1bOB\x1b[H\x1b[4~\x1b[5~\x1b[Z"),
            "↑ ↓ home end PgUp shift-tab"
        );
        assert_eq!(
            names(b"\x1b[15~\x1b[15;2~\x1bOP\x1b[[E"),
            "F5 SHIFT-F5 F1 F5"
        );
        assert_eq!(
            names(b"\x1b[1;5C\x1bx\x1b\xc3\xa9"),
            "CONTROL-→ ALT-x ALT-é"
        );
    }

    #[test]
    fn clicks_are_read_in_both_forms() {
        assert_eq!(
            names(b"\x1b[<0;9;4M\x1b[<0;9;4m"),
            "Down(Left) 8 3 Up(Left) 8 3"
        );
        assert_eq!(
            names(b"\x1b[<64;1;1M\x1b[<65;999;2M"),
            "ScrollUp 0 0 ScrollDown 998 1"
        );
        assert_eq!(names(b"\x1b[M !\"q"), "Down(Left) 0 1 q");
    }

    #[test]
    fn pasted_text_gives_one_event_and_no_keys() {
        let paste = b"\x1b[200~q\r\x03\x1b[Ay\x1b[201~j";
        assert_eq!(names(paste), "\"q\\r\\u{3}\\u{1b}[Ay\" j");
        assert_eq!(names(b"\x1b[200~never ends"), "\"never ends\"");
        let mut long = b"\x1b[200~".to_vec();
        long.extend(std::iter::repeat_n(b'x', 3 * MAX_PASTE));
        long.extend(b"\x1b[201~q");
        let found = events(&long);
        assert_eq!(found.len(), 2);
        assert!(matches!(&found[0], Event::Paste(text) if text.len() <= MAX_PASTE));
    }

    #[test]
    fn an_incomplete_sequence_does_not_hide_a_ctrl_c() {
        let incomplete: [&[u8]; 9] = [
            b"\x1b",
            b"\x1b[",
            b"\x1b[1;2",
            b"\x1bO",
            b"\x1b]11;rgb:0",
            b"\xc3",
            b"\xff\xfe",
            b"\x1b[[",
            b"\x1bP\x1b",
        ];
        for sequence in incomplete {
            let bytes = [sequence, b"\x03"].concat();
            let last = names(&bytes).rsplit(' ').next().map(str::to_owned);
            // After an escape, ctrl-c comes with alt; it ends the program all the same.
            let is_control_c = matches!(last.as_deref(), Some("CONTROL-c" | "CONTROL-ALT-c"));
            assert!(is_control_c, "{sequence:?}: {last:?}");
        }
    }

    #[test]
    fn answers_of_the_terminal_and_sequences_that_are_too_long_are_dropped() {
        assert_eq!(names(b"\x1b]11;rgb:0/0/0\x07\x1bP1+r\x1b\\q\x1b[5;7R"), "q");
        assert_eq!(names(&[0x1b; 3]), "esc esc esc");
        let long = [&b"\x1b["[..], &[b'1'; 70], b"q"].concat();
        assert!(names(&long).ends_with('q'));
    }
}
