//! Checks a kernel's text without running it. The text has to be valid WGSL, to keep the rules of its exercise, and to stay within the
//! limits of plain WebGPU.

mod explain;
mod limits;
pub mod message;
mod rules;
pub mod scan;

use std::cell::OnceCell;
use std::ops::Range;

use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{Expression, Function, Module, Span};

use super::kernel::{KernelError, KernelFacts, KernelShape, KernelSpec};
use super::reference::Reference;
use super::size::Sizes;
use super::template::{self, FilledTemplate, UnknownSize};
use crate::config::nearest;
use message::whole;
use scan::{MAX_BYTES, too_large, without_comments};
use wgsl_lockstep::Shader;

/// A kernel's text with the sizes of one shape put in, parsed once for everything that is done with it.
#[derive(Debug)]
pub struct ParsedText {
    pub filled: FilledTemplate,
    pub facts: KernelFacts,
    pub shader: Shader,
    /// The number of workgroups along x, y and z.
    pub grid: [u32; 3],
    /// The number of elements of each buffer, in binding order.
    pub counts: Vec<usize>,
    /// The exercise's plain loop at this shape, once it has been asked for.
    reference: OnceCell<Reference>,
}

impl ParsedText {
    /// Parses a text at a shape and checks it against its exercise.
    ///
    /// # Errors
    /// Returns the first fault of the text.
    pub fn parse(text: &str, spec: &KernelSpec, shape: &KernelShape) -> Result<Self, KernelError> {
        if text.len() as u64 > MAX_BYTES {
            return Err(too_large(text.len() as u64));
        }
        if text.trim().is_empty() {
            let instead = "reset the exercise to get the starter back";
            return Err(whole("the file is empty", instead));
        }
        let filled = template::fill(text, &shape.sizes)
            .map_err(|unknown| unknown_size(text, &unknown, &shape.sizes))?;
        let source = Source {
            text,
            filled: &filled,
            shape,
        };
        let (facts, module, info) = source.check(spec).map_err(|error| error.at(shape))?;
        let grid = source
            .grid(spec, facts.workgroup)
            .map_err(refused_at_launch)?;
        let counts = spec
            .counts(&shape.sizes)
            .map_err(|why| whole(why, "another `count` in exercise.toml"))?;
        Ok(Self {
            shader: Shader::new(module, info, &filled.text),
            filled,
            facts,
            grid,
            counts,
            reference: OnceCell::new(),
        })
    }

    /// Returns the exercise's plain loop at the shape of this text. The first call parses it.
    ///
    /// # Errors
    /// Fails if the plain loop cannot be parsed, with the reason.
    pub fn reference(&self, spec: &KernelSpec, sizes: &Sizes) -> Result<&Reference, String> {
        match self.reference.get() {
            Some(reference) => Ok(reference),
            None => {
                let parsed = Reference::parse(spec, sizes)?;
                Ok(self.reference.get_or_init(|| parsed))
            }
        }
    }
}

/// Parses a text at every shape.
///
/// # Errors
/// Returns the first fault of the text.
pub fn validate(
    text: &str,
    spec: &KernelSpec,
    shapes: &[KernelShape],
) -> Result<Vec<ParsedText>, KernelError> {
    shapes
        .iter()
        .map(|shape| ParsedText::parse(text, spec, shape))
        .collect()
}

/// Joins the facts of one text at several shapes: the workgroup memory is the largest of all shapes.
pub fn facts<'a>(texts: impl IntoIterator<Item = &'a ParsedText>) -> KernelFacts {
    texts
        .into_iter()
        .fold(KernelFacts::default(), |joined, text| KernelFacts {
            workgroup_bytes: text.facts.workgroup_bytes.max(joined.workgroup_bytes),
            ..text.facts
        })
}

/// Returns the error of a placeholder that names no size of the exercise.
fn unknown_size(text: &str, unknown: &UnknownSize, sizes: &Sizes) -> KernelError {
    let UnknownSize { name, place } = unknown;
    let placeholders: Vec<String> = sizes.keys().map(|size| format!("{{{{{size}}}}}")).collect();
    let near = nearest(name, sizes.keys().map(String::as_str));
    message::error(
        text,
        place,
        format!("`{name}` is not a size of this exercise"),
        format!(
            "one of {}; the nearest is {{{{{near}}}}}",
            placeholders.join(", ")
        ),
    )
}

/// Marks an error as one of valid WGSL that no device would launch.
fn refused_at_launch(error: KernelError) -> KernelError {
    KernelError {
        launch: true,
        ..error
    }
}

/// A text with the sizes of one shape put in, before it is checked.
struct Source<'a> {
    /// The learner's file.
    text: &'a str,
    filled: &'a FilledTemplate,
    shape: &'a KernelShape,
}

impl Source<'_> {
    /// Returns an error about these bytes of the filled text.
    fn error(
        &self,
        range: &Range<usize>,
        message: impl Into<String>,
        instead: impl Into<String>,
    ) -> KernelError {
        message::error(self.text, &self.filled.origin(range), message, instead)
    }

    /// Returns the bytes of the first of `words` that the text has outside of comments.
    fn first_of(&self, words: &[&str]) -> Range<usize> {
        let code = without_comments(&self.filled.text);
        words
            .iter()
            .find_map(|word| code.find(word).map(|start| start..start + word.len()))
            .unwrap_or(0..0)
    }

    /// Parses the text and applies every rule and limit. Cheap ones and those that protect the parser come first.
    fn check(&self, spec: &KernelSpec) -> Result<(KernelFacts, Module, ModuleInfo), KernelError> {
        let code = without_comments(&self.filled.text);
        let (extensions, capabilities): (&[&str], _) = if spec.matrix_cores {
            (
                &["f16", "wgpu_cooperative_matrix"],
                Capabilities::SHADER_FLOAT16 | Capabilities::COOPERATIVE_MATRIX,
            )
        } else {
            (&[], Capabilities::empty())
        };
        self.check_extensions(&code, extensions)?;
        self.check_readable(&code)?;
        let module = naga::front::wgsl::parse_str(&self.filled.text)
            .map_err(|error| explain::syntax(self.text, self.filled, &error))?;
        self.check_compile_cost(&module)?;
        let entry = self.entry(&module)?;
        self.check_workgroup(entry).map_err(refused_at_launch)?;
        self.check_bindings_declared(&module, spec)?;
        let info = Validator::new(ValidationFlags::all(), capabilities)
            .validate(&module)
            .map_err(|error| explain::invalid(self.text, self.filled, &error))?;
        self.check_bindings_used(&module, &info, spec)?;
        let workgroup_bytes = self
            .workgroup_bytes(&module, &info)
            .map_err(refused_at_launch)?;
        let has = |is_wanted: fn(&Expression) -> bool| {
            functions(&module)
                .flat_map(|function| function.expressions.iter())
                .any(|(_, expression)| is_wanted(expression))
        };
        let facts = KernelFacts {
            matrix_cores: has(|expression| {
                matches!(expression, Expression::CooperativeMultiplyAdd { .. })
            }),
            workgroup: entry.workgroup_size,
            workgroup_bytes,
            array_length: has(|expression| matches!(expression, Expression::ArrayLength(_))),
        };
        Ok((facts, module, info))
    }
}

/// Returns the bytes of a span of naga's module; an empty range if it has no place.
fn bytes_of(span: Span) -> Range<usize> {
    span.to_range().unwrap_or(0..0)
}

/// Returns every function of a module, the entry points last.
fn functions(module: &Module) -> impl Iterator<Item = &Function> {
    module
        .functions
        .iter()
        .map(|(_, function)| function)
        .chain(module.entry_points.iter().map(|entry| &entry.function))
}
