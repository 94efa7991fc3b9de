//! The parts of a kernel exercise, each read from its table: a shape, a buffer, a product of sizes, a criterion.

use serde::de::value::{Error, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::course::fields::{Fields, Table};
use crate::protocol::{
    KernelBinding, KernelCheck, KernelMetric, KernelShape, KernelStarter, MAX_SIZE, Product, Sizes,
    is_size_name,
};

pub fn shape(fields: &mut Fields<'_>, t: Table<'_>) -> KernelShape {
    let mut sizes = Sizes::new();
    for key in fields.keys(t).into_iter().filter(|key| key != "label") {
        let line = fields.line_of(t, &key);
        if !is_size_name(&key) {
            fields.fail(
                line,
                format!("`{key}` is no size; name sizes in capitals, such as N"),
            );
        } else if let Some(n) = fields.whole(t, &key) {
            if n == 0 || n > MAX_SIZE {
                fields.fail(
                    line,
                    format!(
                        "`{key}` is {n}; it takes a whole number from 1 to {}",
                        MAX_SIZE
                    ),
                );
            }
            sizes.insert(key, n);
        }
    }
    KernelShape {
        label: fields.text(t, "label"),
        sizes,
    }
}

pub fn binding(fields: &mut Fields<'_>, t: Table<'_>, shapes: &[KernelShape]) -> KernelBinding {
    fields.known(t, &["name", "role", "count", "fill"]);
    let role = fields.word(t, "role", &["in", "out", "inout"]);
    let fill = fields.word(t, "fill", &["normal", "large", "positive"]);
    let count = fields.text(t, "count");
    let line = fields.line_of(t, "count");
    KernelBinding {
        name: fields.text(t, "name"),
        role: of_word(role),
        count: product(fields, line, &count, shapes, &[]),
        fill: of_word(fill),
    }
}

/// Reads a product and tries it on every shape.
pub fn product(
    fields: &mut Fields<'_>,
    line: usize,
    text: &str,
    shapes: &[KernelShape],
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
    let metric = fields.word(t, "metric", &["correct", "speed", "invocations", "shared"]);
    let metric = of_word(metric);
    let at_least = match metric {
        KernelMetric::Speed | KernelMetric::Invocations => fields.number(t, "at-least"),
        KernelMetric::Correct | KernelMetric::Shared => Some(0.0),
    };
    if at_least.is_none() && !Fields::has(t, "at-least") {
        fields.missing(t, "at-least", "= 1.5");
    }
    let starter: KernelStarter = of_word(fields.word(t, "starter", &["fails", "passes"]));
    KernelCheck {
        name: fields.text(t, "name"),
        metric,
        at_least: at_least.unwrap_or(0.0),
        starter,
    }
}

/// The value that serde knows by this word; the default where there is none.
pub fn of_word<T: DeserializeOwned + Default>(word: Option<String>) -> T {
    word.and_then(|word| {
        let word: StrDeserializer<'_, Error> = word.as_str().into_deserializer();
        T::deserialize(word).ok()
    })
    .unwrap_or_default()
}
