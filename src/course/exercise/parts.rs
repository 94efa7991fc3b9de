//! The parts of a kernel exercise, each read from its table: a shape, a buffer, a product of sizes, a criterion.

use super::size::{self, Product, Sizes};
use super::{Binding, Fill, KernelCheck, KernelMetric, Role, Shape};
use crate::course::fields::{Fields, Table};

pub fn shape(fields: &mut Fields<'_>, t: Table<'_>) -> Shape {
    let mut sizes = Sizes::new();
    for key in fields.keys(t).into_iter().filter(|key| key != "label") {
        let line = fields.line_of(t, &key);
        if !size::is_name(&key) {
            fields.fail(
                line,
                format!("`{key}` is no size; name sizes in capitals, such as N"),
            );
        } else if let Some(n) = fields.whole(t, &key) {
            if n == 0 || n > size::MAX {
                fields.fail(
                    line,
                    format!(
                        "`{key}` is {n}; it takes a whole number from 1 to {}",
                        size::MAX
                    ),
                );
            }
            sizes.insert(key, n);
        }
    }
    Shape {
        label: fields.text(t, "label"),
        sizes,
    }
}

pub fn binding(fields: &mut Fields<'_>, t: Table<'_>, shapes: &[Shape]) -> Binding {
    fields.known(t, &["name", "role", "count", "fill"]);
    let role = match fields.word(t, "role", &["in", "out", "inout"]).as_deref() {
        Some("out") => Role::Out,
        Some("inout") => Role::InOut,
        _ => Role::In,
    };
    let fill = match fields
        .word(t, "fill", &["normal", "large", "positive"])
        .as_deref()
    {
        Some("large") => Fill::Large,
        Some("positive") => Fill::Positive,
        _ => Fill::Normal,
    };
    let count = fields.text(t, "count");
    let line = fields.line_of(t, "count");
    Binding {
        name: fields.text(t, "name"),
        role,
        count: product(fields, line, &count, shapes, &[]),
        fill,
    }
}

/// Reads a product and tries it on every shape.
pub fn product(
    fields: &mut Fields<'_>,
    line: usize,
    text: &str,
    shapes: &[Shape],
    extra: &[&str],
) -> Product {
    let found = match Product::parse(text) {
        Ok(found) => found,
        Err(what) => {
            fields.fail(line, what);
            return Product::default();
        }
    };
    for shape in shapes {
        let mut sizes = shape.sizes.clone();
        sizes.extend(extra.iter().map(|name| ((*name).to_owned(), 64)));
        if let Err(what) = found.value(&sizes) {
            fields.fail(line, format!("{what}, in shape `{}`", shape.label));
            break;
        }
    }
    found
}

pub fn check(fields: &mut Fields<'_>, t: Table<'_>) -> KernelCheck {
    fields.known(t, &["name", "metric", "at-least", "starter"]);
    let word = fields
        .word(t, "metric", &["correct", "speed", "invocations", "shared"])
        .unwrap_or_default();
    let least = if word == "speed" || word == "invocations" {
        fields.number(t, "at-least")
    } else {
        Some(1.0)
    };
    if least.is_none() && !Fields::has(t, "at-least") {
        fields.missing(t, "at-least", "= 1.5");
    }
    let least = least.unwrap_or(1.0);
    let metric = match word.as_str() {
        "speed" => KernelMetric::Speed(least),
        "invocations" => KernelMetric::Invocations(least.max(0.0) as u64),
        "shared" => KernelMetric::Shared,
        _ => KernelMetric::Correct,
    };
    let starter_fails =
        fields.word(t, "starter", &["fails", "passes"]).as_deref() != Some("passes");
    KernelCheck {
        name: fields.text(t, "name"),
        metric,
        starter_fails,
    }
}
