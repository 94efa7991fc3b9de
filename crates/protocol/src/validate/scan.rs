//! Scans a kernel's text before it is parsed.

use std::ops::Range;

use super::message::whole;
use crate::kernel::KernelError;

/// The largest file that is read, in bytes.
pub const MAX_BYTES: u64 = 256 * 1024;

/// Explains why a file of `length` bytes is refused.
pub fn too_large(length: u64) -> KernelError {
    whole(
        format!("the file has {length} bytes; the largest that is read has {MAX_BYTES}"),
        "a kernel of some dozen lines; another file may have been saved over it",
    )
}

/// Returns the text with each byte of its comments replaced by a space. Line breaks stay, so that each byte of the code keeps its place.
pub fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut index = 0;
    // The number of block comments that are open here. They may be nested.
    let mut depth = 0;
    let mut in_line_comment = false;
    while index < bytes.len() {
        let pair = (bytes[index], bytes.get(index + 1).copied().unwrap_or(b' '));
        let is_delimiter =
            !in_line_comment && (pair == (b'/', b'*') || depth > 0 && pair == (b'*', b'/'));
        match pair {
            (b'\n', _) => in_line_comment = false,
            (b'/', b'*') if !in_line_comment => depth += 1,
            (b'/', b'/') if depth == 0 => in_line_comment = true,
            _ => {}
        }
        let width = if is_delimiter { 2 } else { 1 };
        let end = (index + width).min(bytes.len());
        if (in_line_comment || depth > 0) && bytes[index] != b'\n' {
            bytes[index..end].fill(b' ');
        }
        if is_delimiter && pair == (b'*', b'/') {
            depth -= 1;
        }
        index = end;
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Returns the bytes of the longest run of characters that `belongs` accepts.
pub fn longest(text: &str, belongs: impl Fn(char) -> bool) -> Range<usize> {
    let mut longest = 0..0;
    let mut start = 0;
    for (offset, c) in text.char_indices().chain([(text.len(), '\n')]) {
        if !belongs(c) {
            if offset - start > longest.len() {
                longest = start..offset;
            }
            start = offset + c.len_utf8();
        }
    }
    longest
}

/// Returns the place of the first bracket that is nested in `most` others or more; `None` if there is none.
pub fn nested_deeper(code: &str, most: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut types = 0_usize;
    let mut before = ' ';
    for (offset, c) in code.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            // The bracket of a type, or a comparison, which ends with its statement.
            '<' if before.is_ascii_alphabetic() => types += 1,
            ';' => types = 0,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '>' => types = types.saturating_sub(1),
            _ => {}
        }
        if depth + types > most {
            return Some(offset);
        }
        before = c;
    }
    None
}
