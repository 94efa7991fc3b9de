//! Reads a kernel exercise: the sizes, files and criteria of its `exercise.toml`, its WGSL files and `wrong.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{DrawnSizes, Kernel, Kernels, SizeRange, WrongSolution};
use crate::course::config_file::FileError;
use crate::course::exercise::folder::ExerciseFolder;
use crate::course::stage::{StageFile, plain_file};
use crate::course::toml_file::{self, TomlFile};
use crate::sanitize::one_line;
use protocol::config::nearest;
use protocol::{
    KernelBinding, KernelCheck, KernelFill, KernelMetric, KernelRole, KernelShape, KernelSpec,
    KernelStarter, KernelType, MAX_SIZE, SizeProduct, is_size_name,
};

/// The largest number of elements of a buffer. A buffer of this length takes 256 MiB.
const MAX_COUNT: u64 = 1 << 26;
/// The largest size of a shape, in the type of TOML's numbers.
const LARGEST_SIZE: i64 = MAX_SIZE as i64;

/// The keys of `exercise.toml` that only kernel exercises have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KernelsToml {
    replaces: Option<String>,
    #[serde(default)]
    shape: Vec<BTreeMap<String, ShapeValue>>,
    #[serde(default)]
    kernel: Vec<KernelToml>,
    #[serde(default)]
    hidden: BTreeMap<String, HiddenValue>,
    #[serde(default)]
    check: Vec<KernelCheck>,
}

/// A value in a `[[shape]]`: a size, or one of the keys with another meaning.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "it takes a whole number, or a text for `label` and `idea`, \
                 a number for `tolerance`, a table for `fill`"
)]
enum ShapeValue {
    Size(i64),
    Tolerance(f64),
    Text(String),
    Fill(BTreeMap<String, KernelFill>),
}

/// A value in `[hidden]`: the range of a size, or the idea.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "it takes a range such as [1, 300], [16, 320, 16] for multiples of 16, \
                 or a text for `idea`"
)]
enum HiddenValue {
    Range(SizeRange),
    Text(String),
}

/// A table `[[kernel]]` of the file.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct KernelToml {
    starter: Option<String>,
    solution: Option<String>,
    reference: String,
    #[serde(default)]
    flops: Vec<SizeProduct>,
    #[serde(default)]
    grid: Vec<SizeProduct>,
    tolerance: Option<f64>,
    #[serde(default)]
    matrix_cores: bool,
    #[serde(default)]
    binding: Vec<KernelBinding>,
}

/// A wrong solution in `wrong.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrongToml {
    /// The name of the learner's file that it replaces. Without a name, it replaces the first file.
    file: Option<String>,
    /// The words that the message must contain.
    refused: String,
    /// Words of the solution, each with its replacement.
    change: BTreeMap<String, String>,
}

/// Reads a kernel exercise.
///
/// # Errors
/// The first fault of its files.
pub(crate) fn read(folder: &ExerciseFolder<'_>) -> Result<Kernels, FileError> {
    let found: KernelsToml = folder.own()?;
    let fault = |path: &str, message: &str| Err(folder.file.fault(path, message));
    if found.shape.is_empty() {
        let message = "has no shape; write at least one `[[shape]]` with a label and its sizes";
        return fault("shape", message);
    }
    if found.kernel.is_empty() {
        return fault("kernel", "has no kernel; write at least one `[[kernel]]`");
    }
    let mut shapes = Vec::new();
    for (index, raw) in found.shape.into_iter().enumerate() {
        shapes.push(folder.shape(&format!("shape.{index}"), raw)?);
    }
    folder.check_limits(&found.check)?;
    let fails = |check: &KernelCheck| check.starter == KernelStarter::Fails;
    if !found.check.iter().any(fails) {
        let message = "no check fails on the starter; leave out `starter` in one check";
        return fault("check", message);
    }
    let hidden = folder.hidden(found.hidden, &shapes[0])?;
    let mut launched = shapes.clone();
    launched.extend(hidden.largest());
    let mut kernels = Vec::new();
    for (index, raw) in found.kernel.into_iter().enumerate() {
        kernels.push(folder.kernel(&format!("kernel.{index}"), raw, &launched)?);
    }
    folder.check_fills(&shapes, &kernels)?;
    Ok(Kernels {
        wrong: folder.wrong(&kernels),
        kernels,
        shapes,
        hidden,
        replaces: found.replaces,
        checks: found.check,
    })
}

impl ExerciseFolder<'_> {
    /// Refuses a check that compares a figure and has no number to compare it with.
    fn check_limits(&self, checks: &[KernelCheck]) -> Result<(), FileError> {
        for (index, check) in checks.iter().enumerate() {
            let needs_least = matches!(
                check.metric,
                KernelMetric::Speed | KernelMetric::Invocations | KernelMetric::Neighbours
            );
            let path = format!("check.{index}");
            if needs_least && check.at_least == 0.0 {
                return Err(self.file.missing(&format!("{path}.at-least"), "1.5"));
            }
            if check.metric == KernelMetric::Fetches && check.at_most == 0.0 {
                return Err(self.file.missing(&format!("{path}.at-most"), "8"));
            }
        }
        Ok(())
    }

    /// Refuses a shape whose `fill` names something that is not an input of a kernel.
    fn check_fills(&self, shapes: &[KernelShape], kernels: &[Kernel]) -> Result<(), FileError> {
        let inputs: Vec<&str> = kernels
            .iter()
            .flat_map(|kernel| &kernel.spec.bindings)
            .filter(|binding| binding.role != KernelRole::Out)
            .map(|binding| binding.name.as_str())
            .collect();
        let is_unknown = |name: &&String| !inputs.contains(&name.as_str());
        for (index, shape) in shapes.iter().enumerate() {
            if let Some(name) = shape.fill.keys().find(is_unknown) {
                let near = nearest(name, inputs.iter().copied());
                let message =
                    format!("`{name}` is not a buffer that is read; the nearest is `{near}`");
                return Err(self.file.fault(&format!("shape.{index}.fill"), message));
            }
        }
        Ok(())
    }

    /// Reads `[hidden]`: a range for each size of the exercise's first shape, and an idea.
    fn hidden(
        &self,
        raw: BTreeMap<String, HiddenValue>,
        shape: &KernelShape,
    ) -> Result<DrawnSizes, FileError> {
        let mut drawn = DrawnSizes::default();
        for (key, value) in raw {
            match value {
                HiddenValue::Text(text) if key == "idea" => drawn.idea = Some(text),
                HiddenValue::Range(range) if shape.sizes.contains_key(&key) => {
                    drawn.ranges.insert(key, range);
                }
                _ => {
                    let sizes = shape.sizes.keys().map(String::as_str);
                    let near = nearest(&key, sizes.chain(["idea"]));
                    let message = format!(
                        "`{key}` is neither a size with a range nor an `idea` with a text; \
                         the nearest is `{near}`"
                    );
                    return Err(self.file.fault(&format!("hidden.{key}"), message));
                }
            }
        }
        let has_no_range = |name: &&String| !drawn.ranges.contains_key(*name);
        if !drawn.ranges.is_empty()
            && let Some(name) = shape.sizes.keys().find(has_no_range)
        {
            let message = format!("`{name}` has no range; write `{name} = [1, 300]`");
            return Err(self.file.fault("hidden", message));
        }
        Ok(drawn)
    }

    /// Reads the `[[shape]]` at `path`.
    fn shape(
        &self,
        path: &str,
        raw: BTreeMap<String, ShapeValue>,
    ) -> Result<KernelShape, FileError> {
        let mut shape = KernelShape::default();
        for (key, value) in raw {
            let fail = |message: &str| {
                let sentence = format!("`{key}` {message}");
                Err(self.file.fault(&format!("{path}.{key}"), sentence))
            };
            match (key.as_str(), value) {
                ("label", ShapeValue::Text(text)) => shape.label = text,
                ("idea", ShapeValue::Text(text)) => shape.idea = Some(text),
                ("fill", ShapeValue::Fill(fill)) => shape.fill = fill,
                ("tolerance", ShapeValue::Tolerance(most)) => shape.tolerance = Some(most),
                (name, ShapeValue::Size(size @ 1..=LARGEST_SIZE)) if is_size_name(name) => {
                    shape.sizes.insert(key, size as u64);
                }
                ("label" | "idea", _) => return fail("takes a quoted text"),
                ("fill", _) => return fail("takes a table, such as { x = \"large\" }"),
                ("tolerance", _) => return fail("takes a number, such as 1e-6"),
                (name, _) if is_size_name(name) => {
                    return fail(&format!("takes a whole number from 1 to {MAX_SIZE}"));
                }
                _ => return fail("is not a size; name sizes in capitals, such as N"),
            }
        }
        if shape.label.is_empty() {
            return Err(self.file.missing(&format!("{path}.label"), "\"…\""));
        }
        Ok(shape)
    }

    /// Reads the wrong solutions in `wrong.toml`. Each changes a solution and misses an idea. Faults are reported to the loader.
    fn wrong(&self, kernels: &[Kernel]) -> Vec<WrongSolution> {
        type WrongFile = BTreeMap<String, WrongToml>;
        let path = self.path_of("wrong.toml");
        if !self.loader.source.exists(&path) {
            return Vec::new();
        }
        let read = toml_file::read(self.loader, &path, |file, found: WrongFile| {
            found
                .into_iter()
                .map(|(name, raw)| wrong_solution(file, &name, raw, kernels))
                .collect()
        });
        self.loader.ok_or_report(read).unwrap_or_default()
    }

    /// Reads the `[[kernel]]` at `path`. Its buffers and its grid must fit at all `shapes`.
    fn kernel(
        &self,
        path: &str,
        raw: KernelToml,
        shapes: &[KernelShape],
    ) -> Result<Kernel, FileError> {
        let file = self.file;
        let starter = raw.starter.as_deref().unwrap_or("starter.wgsl");
        let solution = raw.solution.as_deref().unwrap_or("kernel.wgsl");
        let texts = [
            ("starter", starter),
            ("solution", solution),
            ("reference", &raw.reference),
        ];
        for (key, name) in texts {
            if !plain_file(name, &["wgsl"]) {
                let message =
                    format!("`{key}` is `{name}`; name a .wgsl file beside exercise.toml");
                return Err(file.fault(&format!("{path}.{key}"), message));
            }
        }
        let is_input = |binding: &KernelBinding| binding.role == KernelRole::In;
        if raw.binding.iter().all(is_input) {
            let message = "writes no buffer; give one `[[kernel.binding]]` the role \"out\"";
            return Err(file.fault(path, message));
        }
        for (number, binding) in raw.binding.iter().enumerate() {
            check_binding(file, &format!("{path}.binding.{number}"), binding, shapes)?;
        }
        for (index, product) in raw.flops.iter().enumerate() {
            for shape in shapes {
                if let Err(message) = product.work(&shape.sizes) {
                    return Err(file.fault(&format!("{path}.flops.{index}"), message));
                }
            }
        }
        for (axis, product) in raw.grid.iter().enumerate() {
            let path = format!("{path}.grid.{axis}");
            check_product(file, &path, product, shapes, &["WX", "WY", "WZ"], MAX_SIZE)?;
        }
        Ok(Kernel {
            file: StageFile {
                starter: self.text(starter)?,
                solution: self.text(&format!("solution/{solution}"))?,
                name: starter.to_owned(),
            },
            spec: KernelSpec {
                reference: self.text(&raw.reference)?,
                flops: raw.flops,
                bindings: raw.binding,
                grid: raw.grid.into_iter().take(3).collect(),
                tolerance: raw.tolerance,
                matrix_cores: raw.matrix_cores,
            },
        })
    }
}

/// Checks the buffer in the table at `path`. Its length must fit at all `shapes`. Whole numbers in an input need a bound, and only they have
/// one.
fn check_binding(
    file: &TomlFile<'_>,
    path: &str,
    binding: &KernelBinding,
    shapes: &[KernelShape],
) -> Result<(), FileError> {
    let count = format!("{path}.count");
    check_product(file, &count, &binding.count, shapes, &[], MAX_COUNT)?;
    let below = format!("{path}.below");
    let is_integer = binding.element != KernelType::F32;
    match &binding.below {
        Some(bound) if is_integer => check_product(file, &below, bound, shapes, &[], MAX_SIZE),
        Some(_) => {
            let message = "`below` is for whole numbers; \
                           give the binding the type \"u32\" or \"i32\"";
            Err(file.fault(&below, message))
        }
        None if is_integer && binding.role != KernelRole::Out => Err(file.missing(&below, "\"N\"")),
        None => Ok(()),
    }
}

/// Makes a wrong solution: changes words of a solution, each of which must occur exactly once.
fn wrong_solution(
    file: &TomlFile<'_>,
    name: &str,
    raw: WrongToml,
    kernels: &[Kernel],
) -> Result<WrongSolution, FileError> {
    let names = || kernels.iter().map(|kernel| kernel.file.name.as_str());
    let kernel = match &raw.file {
        None => 0,
        Some(wanted) => names()
            .position(|name| name == wanted)
            .ok_or_else(|| file.unknown(&format!("{name}.file"), "file", wanted, names()))?,
    };
    let mut text = kernels[kernel].file.solution.clone();
    for (from, to) in &raw.change {
        let count = text.matches(from.as_str()).count();
        if count != 1 {
            let message = format!(
                "`{from}` occurs in {count} places of the solution; quote words that occur once"
            );
            return Err(file.fault(&format!("{name}.change"), message));
        }
        text = text.replacen(from.as_str(), to, 1);
    }
    Ok(WrongSolution {
        name: one_line(name),
        kernel,
        text,
        refused: raw.refused,
    })
}

/// Refuses a product that has no value, or a value above `most`, at one of the shapes. `extra` are further names, whose values the engine
/// fills in.
fn check_product(
    file: &TomlFile<'_>,
    path: &str,
    product: &SizeProduct,
    shapes: &[KernelShape],
    extra: &[&str],
    most: u64,
) -> Result<(), FileError> {
    for shape in shapes {
        let mut sizes = shape.sizes.clone();
        sizes.extend(extra.iter().map(|name| ((*name).to_owned(), 64)));
        let message = match product.value(&sizes) {
            Ok(value) if value <= most => continue,
            Ok(value) => format!("`{product}` is {value}; at most {most} is allowed"),
            Err(message) => message,
        };
        return Err(file.fault(path, format!("{message}, in shape `{}`", shape.label)));
    }
    Ok(())
}
