//! What the attention kernels that are written as WGSL depend on, and how their texts name rows of a head.

use super::wgsl::line;
use crate::ops::shapes::{Columns, Heads};
use std::fmt::Write as _;

/// Sizes, and the columns of q, k and v in their buffers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub sizes: Heads,
    pub columns: [Columns; 3],
}

/// The rows of one head in a buffer, as WGSL: where row 0 begins, and values from row to row.
#[derive(Clone, Debug)]
pub struct Lines {
    pub start: String,
    pub stride: usize,
}

impl Shape {
    /// The rows of q, k or v.
    pub fn lines(&self, index: usize, head: &str) -> Lines {
        let Columns { offset, stride } = self.columns[index];
        let head_dim = self.sizes.head_dim;
        Lines {
            start: format!("(sequence * {stride}u + {offset}u + {head} * {head_dim}u)"),
            stride,
        }
    }

    /// The rows of the output and its gradient.
    pub fn dense(&self) -> Lines {
        let Heads {
            heads, head_dim, ..
        } = self.sizes;
        let stride = heads * head_dim;
        Lines {
            start: format!("(sequence * {stride}u + head * {head_dim}u)"),
            stride,
        }
    }

    /// Buffers of vectors, then of numbers, in the order of their bindings.
    pub fn bindings(text: &mut String, vectors: &[&str], numbers: &[&str]) {
        let vectors = vectors.iter().map(|name| (name, "vec4<f32>"));
        let all = vectors.chain(numbers.iter().map(|name| (name, "f32")));
        for (index, (name, kind)) in all.enumerate() {
            line!(
                text,
                "@group(0) @binding({index}) var<storage, read_write> {name}: array<{kind}>;"
            );
        }
    }

    /// Workgroup y as a sequence's first row, and one of `heads`: query heads, or key and value heads.
    pub fn place(&self, text: &mut String, heads: usize) {
        let context = self.sizes.context;
        line!(text, "  let sequence = group.y / {heads}u * {context}u;");
        if heads == self.sizes.heads {
            line!(
                text,
                "  let head = group.y % {heads}u;\n  let kv_head = head / {}u;",
                self.sizes.group()
            );
        } else {
            line!(text, "  let kv_head = group.y % {heads}u;");
        }
    }
}
