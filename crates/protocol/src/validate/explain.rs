//! Turns a compiler error into a place in the learner's file, a plain sentence and what to write instead.

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

/// Labels of the front end that say less than its message.
const SKIPPED_LABELS: &[&str] = &[
    "see msg",
    "unknown identifier",
    "invalid accessor",
    "unknown type",
];

/// An error of naga's front end.
pub(super) fn parse(original: &str, filled: &FilledTemplate, found: &ParseError) -> KernelError {
    let label = found.labels().next();
    let range = label.as_ref().and_then(|(span, _)| span.to_range());
    let range = range.unwrap_or(0..0);
    let message = found.message();
    let mut message = message.replace("found \"\"", "found the end of the file");
    let says_more = |label: &str| !message.contains(label) && !SKIPPED_LABELS.contains(&label);
    if let Some((_, label)) = label.filter(|(_, label)| says_more(label)) {
        message = format!("{message}: {label}");
    }
    // For this error the front end gives no place.
    let range = match message.contains("type is too large") {
        true if range.is_empty() => largest_type(&filled.text),
        _ => range,
    };
    let offending = filled.text.get(range.clone()).unwrap_or("");
    let instead = advice(&message, offending, &filled.text)
        .unwrap_or_else(|| found.notes().take(3).collect::<Vec<_>>().join("; "));
    error(original, &filled.origin(&range), message, instead)
}

/// The line with the most nested arrays, from the first array on.
fn largest_type(text: &str) -> Range<usize> {
    const ARRAY: &str = "array<";
    let code = without_comments(text);
    let mut start = 0;
    let lines = code.split_inclusive('\n').map(|line| {
        let at = start;
        start += line.len();
        (line.matches(ARRAY).count(), at, line)
    });
    let most = lines.reduce(|most, next| if next.0 > most.0 { next } else { most });
    let found = most.and_then(|(_, at, line)| {
        let from = at + line.find(ARRAY)?;
        Some(from..at + line.trim_end().len())
    });
    found.unwrap_or(0..0)
}

/// An error of naga's validator: the innermost reason, and the outer ones only where they give a place.
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
    let span = found.spans().find(|(span, _)| span.to_range().is_some());
    let range = span.and_then(|(span, _)| span.to_range()).unwrap_or(0..0);
    let message = plain(&reason.to_string());
    let offending = filled.text.get(range.clone()).unwrap_or("");
    let instead = advice(&message, offending, &filled.text).unwrap_or_default();
    error(original, &filled.origin(&range), message, instead)
}

/// The validator's message without its internal indices, and with WGSL's type names.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(" [") {
        let tail = &rest[start + 2..];
        let digits = tail.chars().take_while(char::is_ascii_digit).count();
        let handle = digits > 0 && tail[digits..].starts_with(']');
        out.push_str(&rest[..if handle { start } else { start + 2 }]);
        rest = if handle { &tail[digits + 1..] } else { tail };
    }
    out.push_str(rest);
    for (said, meant) in PHRASES {
        out = out.replace(said, meant);
    }
    match out.contains(" cannot work with ") {
        true => out.trim_end_matches(')').to_owned(),
        false => out,
    }
}

#[rustfmt::skip] // One line for each.
/// Phrases and types of the validator after its indices are removed, and plain text for them.
const PHRASES: &[(&str, &str)] = &[
    ("Scalar(Scalar { kind: Sint, width: 4 })", "i32"),
    ("Scalar(Scalar { kind: Uint, width: 4 })", "u32"),
    ("Scalar(Scalar { kind: Float, width: 4 })", "f32"),
    ("Scalar(Scalar { kind: Bool, width: 1 })", "bool"),
    ("The type of doesn't match the type stored in", "the value and the variable it is stored in have different types"),
    ("Abstract types may only appear in constant expressions", "the types do not match here"),
    ("The `if` condition is not", "the condition of this `if` is not"),
    ("Shader requires capability Capabilities(SHADER_FLOAT16_IN_FLOAT32)", "not every device rounds to f16"),
    ("Shader requires capability", "not every device has"),
    (" can't work with (of type ", " cannot work with "),
    (") and (of type ", " and "),
];

/// Returns what to write instead, for the most frequent mistakes.
fn advice(message: &str, offending: &str, text: &str) -> Option<String> {
    let says = |piece: &str| message.contains(piece);
    if says("no definition in scope") {
        let known = words(text).filter(|word| *word != offending);
        let near = nearest(offending, known.chain(BUILTINS.split(' ')));
        return Some(format!(
            "`{near}`, if that is what was meant, or declare `{offending}` first"
        ));
    }
    let mut all = ADVICE.iter();
    let found = all.find(|(pieces, _)| pieces.iter().any(|piece| says(piece)));
    found.map(|(_, advice)| (*advice).to_owned())
}

#[rustfmt::skip] // One line for each.
/// Fragments of a message, and what to write instead.
const ADVICE: &[(&[&str], &str)] = &[
    (&["type is too large"], "a smaller array; large data belongs in a buffer"),
    (&["recursive", "cyclic"], "a loop: WGSL functions may not call themselves, directly or through others"),
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
     "the name of the variable in the function itself; pointers to variables of a function may be passed"),
    (&["not every device"], "f32, u32, i32 and bool"),
    (&["Division by zero"], "a divisor that is not 0"),
];

/// Names a learner may mean.
const BUILTINS: &str = "abs array arrayLength bool ceil clamp cos exp exp2 f32 floor fma global_invocation_id i32 \
    inverseSqrt local_invocation_id local_invocation_index log max min pow select sin sqrt \
    storageBarrier tanh u32 workgroupBarrier workgroup_id";

fn words(text: &str) -> impl Iterator<Item = &str> {
    let split = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    split.filter(|word| word.len() > 1 && !word.starts_with(|c: char| c.is_ascii_digit()))
}
