//! Explains a compiler error to a learner: a place in the learner's file, a plain sentence, and what to write instead.

use std::error::Error;
use std::ops::Range;

use naga::WithSpan;
use naga::front::wgsl::ParseError;
use naga::valid::ValidationError;

use super::message::error;
use super::scan::without_comments;
use crate::config::nearest;
use crate::kernel::KernelError;
use crate::template::FilledTemplate;

/// Labels of naga's front end that add nothing to its message.
const SKIPPED_LABELS: &[&str] = &[
    "see msg",
    "unknown identifier",
    "invalid accessor",
    "unknown type",
];

/// Explains why naga's front end cannot parse the text.
pub(super) fn syntax(original: &str, filled: &FilledTemplate, found: &ParseError) -> KernelError {
    let mut message = found
        .message()
        .replace("found \"\"", "found the end of the file");
    let mut range = 0..0;
    if let Some((span, label)) = found.labels().next() {
        range = span.to_range().unwrap_or(0..0);
        if !message.contains(label) && !SKIPPED_LABELS.contains(&label) {
            message = format!("{message}: {label}");
        }
    }
    // For this error the front end gives no place.
    if range.is_empty() && message.contains("type is too large") {
        range = largest_type(&filled.text);
    }
    let offending = filled.text.get(range.clone()).unwrap_or("");
    let instead = advice(&message, offending, &filled.text)
        .unwrap_or_else(|| found.notes().take(3).collect::<Vec<_>>().join("; "));
    error(original, &filled.origin(&range), message, instead)
}

/// Returns the place of the line with the most nested arrays, from its first array on; an empty range if no line has one.
fn largest_type(text: &str) -> Range<usize> {
    const ARRAY: &str = "array<";
    let code = without_comments(text);
    let mut most = 0;
    let mut place = 0..0;
    let mut start = 0;
    for line in code.split_inclusive('\n') {
        let arrays = line.matches(ARRAY).count();
        if arrays > most {
            most = arrays;
            place = start + line.find(ARRAY).unwrap_or(0)..start + line.trim_end().len();
        }
        start += line.len();
    }
    place
}

/// Explains why naga's validator refuses the text: by the innermost reason, since an outer one adds at most a place.
pub(super) fn invalid(
    original: &str,
    filled: &FilledTemplate,
    found: &WithSpan<ValidationError>,
) -> KernelError {
    let mut reason: &dyn Error = found.as_inner();
    while let Some(inner) = reason.source() {
        reason = inner;
    }
    // Every outer error adds its span after the inner one's.
    let range = found
        .spans()
        .find_map(|(span, _)| span.to_range())
        .unwrap_or(0..0);
    let message = in_plain_words(&reason.to_string());
    let offending = filled.text.get(range.clone()).unwrap_or("");
    let instead = advice(&message, offending, &filled.text).unwrap_or_default();
    error(original, &filled.origin(&range), message, instead)
}

/// Returns the validator's message without its internal indices (` [12]`), and with the type names of WGSL.
fn in_plain_words(text: &str) -> String {
    let mut pieces = text.split(" [");
    let mut message = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once(']') {
            Some((index, rest)) if index.parse::<u64>().is_ok() => message += rest,
            _ => message = format!("{message} [{piece}"),
        }
    }
    for (phrase, meaning) in PHRASES {
        message = message.replace(phrase, meaning);
    }
    if message.contains(" cannot work with ") {
        message.truncate(message.trim_end_matches(')').len());
    }
    message
}

#[rustfmt::skip] // A table reads best with one line for each phrase.
/// Phrases and types in the validator's messages, each with plain text that means it.
const PHRASES: &[(&str, &str)] = &[
    ("Scalar(Scalar { kind: Sint, width: 4 })", "i32"),
    ("Scalar(Scalar { kind: Uint, width: 4 })", "u32"),
    ("Scalar(Scalar { kind: Float, width: 4 })", "f32"),
    ("Scalar(Scalar { kind: Bool, width: 1 })", "bool"),
    ("The type of doesn't match the type stored in",
     "the value and the variable it is stored in have different types"),
    ("Abstract types may only appear in constant expressions", "the types do not match here"),
    ("The `if` condition is not", "the condition of this `if` is not"),
    ("Shader requires capability Capabilities(SHADER_FLOAT16_IN_FLOAT32)",
     "not every device rounds to f16"),
    ("Shader requires capability", "not every device has"),
    (" can't work with (of type ", " cannot work with "),
    (") and (of type ", " and "),
];

/// Returns what to write instead; `None` for a mistake that is not among the frequent ones.
fn advice(message: &str, offending: &str, text: &str) -> Option<String> {
    if message.contains("no definition in scope") {
        let known = words(text).filter(|word| *word != offending);
        let near = nearest(offending, known.chain(BUILTINS.split(' ')));
        return Some(format!(
            "`{near}`, if that is what was meant, or declare `{offending}` first"
        ));
    }
    ADVICE
        .iter()
        .find(|(pieces, _)| pieces.iter().any(|piece| message.contains(piece)))
        .map(|(_, advice)| (*advice).to_owned())
}

#[rustfmt::skip] // A table reads best with one line for each mistake.
/// What to write instead, if a message has one of these pieces. The first match counts.
const ADVICE: &[(&[&str], &str)] = &[
    (&["type is too large"], "a smaller array; large data belongs in a buffer"),
    (&["recursive", "cyclic"],
     "a loop: WGSL functions may not call themselves, directly or through others"),
    (&["unknown type"], "f32, u32, i32, bool, vec4<f32>, array<f32, 64>…"),
    (&["automatic conversions", "have different types", "do not match", "cannot work with"],
     "the same type on both sides: 1.0 is f32, 1u is u32, 1 is either; f32(x) and u32(x) convert"),
    (&["internal WGSL front end error"], "less deeply nested expressions"),
    (&["Unable to cast"], "f32, u32, i32 or bool: not every device has other types"),
    (&["is not a boolean scalar"], "a comparison, such as i >= N"),
    (&["found the end of the file"], "a `}` for every `{`"),
    (&["expected global item"], "WGSL: declarations with const, var and fn"),
    (&["atomic"], "no atomics: the buffers are array<f32>; sum in workgroup memory instead"),
    (&["expected `;`"], "a `;` at the end of the statement before"),
    (&["invalid left-hand side"], "`var` instead of `let` where it is declared"),
    (&["which can't be passed into functions"],
     "the name of the variable in the function itself; \
      pointers to variables of a function may be passed"),
    (&["not every device"], "f32, u32, i32 and bool"),
    (&["Division by zero"], "a divisor that is not 0"),
];

/// Names of WGSL that a learner may mean by an unknown name.
const BUILTINS: &str = "abs array arrayLength bool ceil clamp cos exp exp2 f32 floor fma global_invocation_id i32 \
    inverseSqrt local_invocation_id local_invocation_index log max min pow select sin sqrt \
    storageBarrier tanh u32 workgroupBarrier workgroup_id";

/// Returns the names in a text, without those of one letter.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.len() > 1 && !word.starts_with(|c: char| c.is_ascii_digit()))
}
