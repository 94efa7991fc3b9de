//! The values of all lanes, and the mask of active lanes.

use naga::{Handle, LocalVariable};

use super::arithmetic::f;
use super::exact::Number;

/// The variable that a pointer points to. WGSL cannot select between pointers, so it is the same for all lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// A variable of the function with this number.
    Local(usize, Handle<LocalVariable>),
    /// The private variable with this number.
    Private(usize),
    /// The buffer or workgroup variable with this number.
    Shared(usize),
}

/// An index past the end of an array, a vector or a matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside {
    pub(crate) lane: u32,
    pub(crate) index: i64,
    /// Number of elements.
    pub(crate) count: u32,
    /// Offset of the indexed value in shared memory, and its size in bytes.
    pub(crate) base: u32,
    pub(crate) bytes: u32,
}

/// A value for each lane: the first scalar of all lanes, then the second, and so on. Floats of any width are stored as f32. A pointer
/// is one offset, in bytes or, in an invocation's own memory, in words.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneValues {
    pub(crate) words: Vec<u32>,
    /// In an exact run, the floats with their errors, in the order of the words. Without any, the words are exact; with them, the words
    /// mean nothing.
    pub(crate) numbers: Vec<Number>,
    pub(crate) root: Option<Root>,
    /// True if all lanes have the same offset.
    pub(crate) uniform: bool,
    /// Lanes whose offset is `OUTSIDE`, and why.
    pub(crate) outside: Vec<Outside>,
}

impl LaneValues {
    /// Makes room for `words` words; their contents are not specified.
    pub(crate) fn resize(&mut self, words: usize) -> &mut [u32] {
        if self.words.len() != words {
            self.words.clear();
            self.words.resize(words, 0);
        }
        &mut self.words
    }

    /// The same value for all lanes.
    pub(crate) fn splat(&mut self, scalars: &[u32], lanes: usize) {
        self.words.clear();
        for scalar in scalars {
            self.words.extend(std::iter::repeat_n(*scalar, lanes));
        }
    }

    /// A pointer to the start of a variable.
    pub(crate) fn point(&mut self, root: Root, lanes: usize) {
        self.root = Some(root);
        self.uniform = true;
        self.splat(&[0], lanes);
    }

    /// The offset of a pointer that is in bounds and the same for all active lanes.
    pub(crate) fn common(&self, mask: &Mask) -> Option<usize> {
        let first = self.words[*mask.lanes.first()? as usize];
        (self.uniform && first != super::OUTSIDE).then_some(first as usize)
    }

    /// Takes the numbers of the active lanes, before their words.
    pub(crate) fn take_numbers(&mut self, other: &Self, mask: &Mask) {
        if mask.is_full() {
            return self.numbers.clone_from(&other.numbers);
        }
        let exact = |value: &Self, at: usize| Number::exact(f(value.words[at]).into());
        if other.numbers.is_empty() && self.numbers.is_empty() {
            return;
        }
        if self.numbers.is_empty() {
            self.words.resize(mask.total, 0);
            self.numbers = (0..mask.total).map(|at| exact(self, at)).collect();
        }
        for &lane in &mask.lanes {
            let at = lane as usize;
            let number = other.numbers.get(at).copied();
            self.numbers[at] = number.unwrap_or_else(|| exact(other, at));
        }
    }

    pub(crate) fn copy(&mut self, other: &Self) {
        self.words.clone_from(&other.words);
        self.numbers.clone_from(&other.numbers);
        self.root = other.root;
        self.uniform = other.uniform;
        self.outside.clone_from(&other.outside);
    }
}

/// The active lanes, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mask {
    pub(crate) lanes: Vec<u32>,
    /// Lanes in the workgroup.
    pub(crate) total: usize,
}

impl Mask {
    pub(crate) fn full(total: usize) -> Self {
        Self {
            lanes: (0..total as u32).collect(),
            total,
        }
    }

    pub(crate) fn empty(total: usize) -> Self {
        let lanes = Vec::new();
        Self { lanes, total }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lanes.len() == self.total
    }

    /// Returns true if working on all lanes is faster than selecting the active ones.
    pub(crate) fn is_dense(&self) -> bool {
        self.lanes.len() * 4 >= self.total
    }

    /// Moves the lanes for which `holds` is true into a new mask.
    pub(crate) fn split(&mut self, holds: impl Fn(u32) -> bool) -> Self {
        let mut taken = Self::empty(self.total);
        if self.lanes.iter().all(|lane| holds(*lane)) {
            std::mem::swap(self, &mut taken);
        } else if self.lanes.iter().any(|lane| holds(*lane)) {
            let out = self.lanes.extract_if(.., |lane| holds(*lane));
            taken.lanes.extend(out);
        }
        taken
    }

    /// Adds these lanes.
    pub(crate) fn merge(&mut self, other: &mut Self) {
        if self.lanes.is_empty() {
            std::mem::swap(&mut self.lanes, &mut other.lanes);
        } else if !other.lanes.is_empty() {
            self.lanes.append(&mut other.lanes);
            self.lanes.sort_unstable();
        }
    }

    /// The inactive lanes.
    pub(crate) fn missing(&self) -> Vec<u32> {
        let mut here = self.lanes.iter().peekable();
        let all = 0..self.total as u32;
        all.filter(|lane| here.next_if_eq(&lane).is_none())
            .collect()
    }
}
