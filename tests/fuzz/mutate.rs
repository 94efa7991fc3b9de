//! Damaged files, as a bad disk, a cut copy, another editor or an attacker could leave them.

use std::fmt;
use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::Index;

/// The name and the bytes of a file.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Input {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(&self.bytes);
        let some: String = text.chars().take(2000).collect();
        write!(f, "{} ({} bytes): {some:?}", self.name, self.bytes.len())
    }
}

/// One change of a file. An `Index` is a share of the file's length, so that a change fits a file of any length.
#[derive(Clone, Debug)]
enum Damage {
    /// Flips a bit of a byte.
    Bit(Index, u8),
    /// Replaces a byte.
    Byte(Index, u8),
    /// Removes everything after a place.
    Cut(Index),
    /// Removes a piece of this length.
    Remove(Index, usize),
    /// Inserts a piece of this length again, this number of times.
    Repeat(Index, usize, usize),
    /// Inserts a piece of this length at another place.
    Copy(Index, usize, Index),
    /// Inserts at a place: a piece of another file, from a place there, of this length.
    Foreign(Index, Index, Index, usize),
    Insert(Index, Vec<u8>),
    /// Replaces one of the numbers in the text.
    Number(Index, &'static str),
    /// Ends each line with CR LF.
    CarriageReturns,
    /// Puts a byte order mark before the text.
    Mark,
}

const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "7",
    "0.5",
    "1e-9",
    "1e9",
    "1e308",
    "1e999",
    "nan",
    "inf",
    "-0.0",
    "null",
    "\"NaN\"",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "9223372036854775807",
    "18446744073709551616",
];

const WORDS: [&str; 32] = [
    "\0",
    "\u{feff}",
    "\u{202e}",
    "\u{1b}[2J",
    "\r",
    "\r\n",
    "\n",
    "\n\n\n",
    "\"",
    "'''",
    "\"\"\"",
    "\\",
    "\\u{0}",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    "[[a]]\n",
    "[stage.x]\n",
    "=",
    ".",
    "#",
    "//",
    "/*",
    "*/",
    "{{",
    "}}",
    "null",
    "true",
    "../../x",
];

fn inserted() -> impl Strategy<Value = Vec<u8>> {
    let word = proptest::sample::select(&WORDS[..]).prop_map(|word| word.as_bytes().to_vec());
    let nested = [
        "[",
        "(",
        "{",
        "{\"a\":",
        "{a=",
        "a.",
        "-",
        "a(",
        "if true {",
        "> ",
        "*",
        "[[",
    ];
    let nested = (proptest::sample::select(nested.to_vec()), 1..2000_usize);
    let long = (
        proptest::sample::select(vec!["a", "9", "_", " ", "é", "\n"]),
        1..20_000_usize,
    );
    let many = |(piece, times): (&str, usize)| piece.repeat(times).into_bytes();
    prop_oneof![
        4 => word,
        1 => nested.prop_map(many),
        1 => long.prop_map(many),
        1 => proptest::collection::vec(any::<u8>(), 1..8),
    ]
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        2 => (at(), 0..8_u8).prop_map(|(at, bit)| Damage::Bit(at, bit)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        1 => at().prop_map(Damage::Cut),
        2 => (at(), 1..60_usize).prop_map(|(at, len)| Damage::Remove(at, len)),
        1 => (at(), 1..400_usize, 1..40_usize).prop_map(|(at, len, n)| Damage::Repeat(at, len, n)),
        2 => (at(), 1..400_usize, at()).prop_map(|(at, len, to)| Damage::Copy(at, len, to)),
        1 => (at(), at(), at(), 1..400_usize).prop_map(|(to, of, at, len)| Damage::Foreign(to, of, at, len)),
        4 => (at(), inserted()).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        6 => (at(), proptest::sample::select(&NUMBERS[..])).prop_map(|(at, it)| Damage::Number(at, it)),
        1 => Just(Damage::CarriageReturns),
        1 => Just(Damage::Mark),
    ]
}

/// Returns one of these files with up to seven changes.
pub(super) fn damaged(files: Vec<Input>) -> impl Strategy<Value = Input> {
    let which = 0..files.len();
    (which, proptest::collection::vec(damage(), 0..8)).prop_map(move |(which, all)| {
        let mut input = files[which].clone();
        for damage in all {
            apply(&mut input.bytes, damage, &files);
        }
        input
    })
}

fn apply(bytes: &mut Vec<u8>, damage: Damage, files: &[Input]) {
    let len = bytes.len();
    let place = |at: Index| at.index(len + 1);
    let range = |at: Index, n: usize| place(at)..(place(at) + n).min(len);
    match damage {
        Damage::Bit(at, bit) if len > 0 => bytes[at.index(len)] ^= 1 << bit,
        Damage::Byte(at, byte) if len > 0 => bytes[at.index(len)] = byte,
        Damage::Bit(..) | Damage::Byte(..) => {}
        Damage::Cut(at) => bytes.truncate(place(at)),
        Damage::Remove(at, n) => drop(bytes.drain(range(at, n))),
        Damage::Repeat(at, n, times) => {
            let piece = bytes[range(at, n)].repeat(times);
            insert(bytes, place(at), &piece);
        }
        Damage::Copy(at, n, to) => {
            let piece = bytes[range(at, n)].to_vec();
            insert(bytes, place(to), &piece);
        }
        Damage::Foreign(to, of, at, n) => {
            let other = &files[of.index(files.len())].bytes;
            let from = at.index(other.len() + 1);
            let piece = &other[from..(from + n).min(other.len())];
            insert(bytes, place(to), piece);
        }
        Damage::Insert(at, piece) => insert(bytes, place(at), &piece),
        Damage::Number(at, number) => {
            let all = numbers(bytes);
            if !all.is_empty() {
                bytes.splice(all[at.index(all.len())].clone(), number.bytes());
            }
        }
        Damage::CarriageReturns => {
            let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            *bytes = lines.join(&b"\r\n"[..]);
        }
        Damage::Mark => insert(bytes, 0, "\u{feff}".as_bytes()),
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// Returns the byte ranges of the numbers in a text, with their signs and exponents.
fn numbers(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match found.last_mut() {
            Some(last) if last.end == at && (byte.is_ascii_digit() || b".e+-".contains(byte)) => {
                last.end += 1
            }
            _ if byte.is_ascii_digit() => found.push(at..at + 1),
            _ => {}
        }
    }
    found
}
