//! JSON as a stream of values: finds the start and end of each element of a long array. Files of any size are read with a small
//! buffer, and a damaged element affects no other.

use std::io::Read;

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;
/// Longest event that is read, in bytes; profilers write far shorter ones.
pub(crate) const EVENT: usize = 1 << 20;
/// Longest other value.
pub(crate) const VALUE: usize = 64 << 20;

/// How a value ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueEnd {
    /// At its end.
    Whole,
    /// The data end inside it.
    Cut,
    /// It exceeds the longest allowed length.
    TooLong,
}

/// A window over the data.
pub(crate) struct Scanner<R> {
    data: R,
    buffer: Vec<u8>,
    at: usize,
    end: bool,
    /// Bytes before the buffer.
    before: u64,
}

impl<R: Read> Scanner<R> {
    /// Starts at the beginning of the data.
    pub(crate) fn new(data: R) -> Self {
        Self {
            data,
            buffer: Vec::new(),
            at: 0,
            end: false,
            before: 0,
        }
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// Reads more data and keeps unused bytes. Returns false at the end of the data.
    fn more(&mut self) -> bool {
        if self.end {
            return false;
        }
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.before += self.at as u64;
            self.at = 0;
        }
        let had = self.buffer.len();
        let _ = (&mut self.data)
            .take(CHUNK as u64)
            .read_to_end(&mut self.buffer);
        self.end = self.buffer.len() == had;
        !self.end
    }

    /// The next byte, without consuming it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while self.at == self.buffer.len() {
            if !self.more() {
                return None;
            }
        }
        Some(self.buffer[self.at])
    }

    /// Consumes a byte.
    pub(crate) fn skip(&mut self) {
        self.at = (self.at + 1).min(self.buffer.len());
    }

    /// Skips white space and returns the next byte without consuming it.
    pub(crate) fn skip_blanks(&mut self) -> Option<u8> {
        loop {
            let byte = self.peek()?;
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Some(byte);
            }
            self.skip();
        }
    }

    /// Consumes the value that starts here, up to `longest` bytes.
    pub(crate) fn value(&mut self, longest: usize) -> (&[u8], ValueEnd) {
        let (mut seen, mut depth, mut text, mut ended) = (0, 0_usize, false, ValueEnd::Cut);
        let first = self.peek();
        'reading: loop {
            let bytes = &self.buffer[self.at..];
            while seen < bytes.len() {
                let byte = bytes[seen];
                if text {
                    match byte {
                        b'\\' if seen + 1 == bytes.len() => break,
                        b'\\' => seen += 1,
                        b'"' => text = false,
                        _ => {}
                    }
                    seen += 1;
                    if !text && depth == 0 && first == Some(b'"') {
                        ended = ValueEnd::Whole;
                        break 'reading;
                    }
                    continue;
                }
                match byte {
                    b'"' => text = true,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' if depth <= 1 => {
                        // At depth 0, a number or a word ends before the bracket of its container.
                        seen += depth;
                        ended = ValueEnd::Whole;
                        break 'reading;
                    }
                    b'}' | b']' => depth -= 1,
                    b',' if depth == 0 => {
                        ended = ValueEnd::Whole;
                        break 'reading;
                    }
                    _ => {}
                }
                seen += 1;
            }
            if self.buffer.len() - self.at > longest {
                ended = ValueEnd::TooLong;
                break;
            }
            if !self.more() {
                seen = self.buffer.len() - self.at;
                break;
            }
        }
        let from = self.at;
        self.at += seen;
        (&self.buffer[from..self.at], ended)
    }

    /// Goes back by some of the bytes that `value` just returned.
    pub(crate) fn back(&mut self, bytes: usize) {
        self.at -= bytes.min(self.at);
    }
}

/// JSON text after repairing what strict readers refuse: control characters in strings, `NaN` and `Infinity`, bytes that are not
/// UTF-8.
pub(crate) fn repaired(bytes: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(bytes);
    let (mut out, mut text, mut escaped) = (String::with_capacity(lossy.len()), false, false);
    let mut rest: &str = &lossy;
    while let Some(c) = rest.chars().next() {
        if !text {
            let word = rest.strip_prefix('-').unwrap_or(rest);
            let words = ["Infinity", "NaN", "nan", "inf"];
            if let Some(after) = words.iter().find_map(|it| word.strip_prefix(it)) {
                out.push_str("null");
                rest = after;
                continue;
            }
            text = c == '"';
            out.push(c);
        } else {
            let (was, now) = (escaped, c == '\\' && !escaped);
            escaped = now;
            text = c != '"' || was;
            out.push(if c < ' ' { ' ' } else { c });
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}
