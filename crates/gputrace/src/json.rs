//! Reads JSON as a stream of values: finds the start and end of each element of a long array. Files of any size are read with a small
//! buffer, and a damaged element affects no other element.

use std::io::Read;

/// The number of bytes read at a time.
const CHUNK: usize = 1 << 20;
/// The longest event that is read, in bytes. Profilers write far shorter events.
pub(crate) const EVENT: usize = 1 << 20;
/// The longest other value that is read, in bytes.
pub(crate) const VALUE: usize = 64 << 20;

/// The way in which a value ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueEnd {
    /// The value is complete.
    Whole,
    /// The data end inside the value.
    Cut,
    /// The value exceeds the longest allowed length.
    TooLong,
}

/// A reader of data with a window over the bytes that are not consumed yet.
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

    /// Returns the offset of the next byte.
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
        let before = self.buffer.len();
        let _ = (&mut self.data)
            .take(CHUNK as u64)
            .read_to_end(&mut self.buffer);
        self.end = self.buffer.len() == before;
        !self.end
    }

    /// Returns the next byte without consuming it; `None` at the end of the data.
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

    /// Consumes and returns the value that starts here, and how it ended. At most about `longest` bytes are consumed.
    pub(crate) fn value(&mut self, longest: usize) -> (&[u8], ValueEnd) {
        let mut seen = 0;
        let mut depth = 0_usize;
        let mut in_text = false;
        let mut ended = ValueEnd::Cut;
        let first = self.peek();
        'reading: loop {
            let bytes = &self.buffer[self.at..];
            while seen < bytes.len() {
                let byte = bytes[seen];
                if in_text {
                    match byte {
                        b'\\' if seen + 1 == bytes.len() => break,
                        b'\\' => seen += 1,
                        b'"' => in_text = false,
                        _ => {}
                    }
                    seen += 1;
                    if !in_text && depth == 0 && first == Some(b'"') {
                        ended = ValueEnd::Whole;
                        break 'reading;
                    }
                    continue;
                }
                match byte {
                    b'"' => in_text = true,
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

    /// Goes back by a number of bytes, at most by those that `value` just returned.
    pub(crate) fn back(&mut self, bytes: usize) {
        self.at -= bytes.min(self.at);
    }
}

/// Returns JSON text in which everything is repaired that strict readers refuse: control characters in strings, `NaN` and `Infinity`,
/// and bytes that are not UTF-8.
pub(crate) fn repaired(bytes: &[u8]) -> String {
    let lossy = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(lossy.len());
    let mut in_text = false;
    let mut is_escaped = false;
    let mut rest: &str = &lossy;
    while let Some(c) = rest.chars().next() {
        if in_text {
            in_text = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            out.push(if c < ' ' { ' ' } else { c });
        } else {
            let unsigned = rest.strip_prefix('-').unwrap_or(rest);
            let words = ["Infinity", "NaN", "nan", "inf"];
            if let Some(after) = words.iter().find_map(|word| unsigned.strip_prefix(word)) {
                out.push_str("null");
                rest = after;
                continue;
            }
            in_text = c == '"';
            out.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}
