//! The values of all lanes, and the mask that says which lanes are active.

use std::rc::Rc;

use naga::{Handle, LocalVariable};

use super::exact::Number;

/// The variable that a pointer points to, the same for all lanes: WGSL cannot select between pointers.
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
    /// The number of elements.
    pub(crate) count: u32,
    /// Offset of the indexed value in shared memory, in bytes.
    pub(crate) base: u32,
    /// Size of the indexed value in bytes; `u32::MAX` up to the end of its variable.
    pub(crate) bytes: u32,
}

/// Numbers with their errors, one for each lane; `None` where the words are exact. Values and variables share them, because most are loaded
/// and stored as a whole.
pub(crate) type LaneNumbers = Option<Rc<Vec<Number>>>;

/// Returns numbers that can be changed lane by lane; `words` holds those that are exact.
pub(crate) fn numbers_mut<'n>(numbers: &'n mut LaneNumbers, words: &[u32]) -> &'n mut [Number] {
    let exact = || Rc::new(words.iter().map(|word| Number::held(*word)).collect());
    let numbers: &mut Vec<Number> = Rc::make_mut(numbers.get_or_insert_with(exact));
    numbers
}

/// A value for each lane: the first scalar of all lanes, then the second, and so on. Floats of any width are stored as f32. A pointer
/// is one offset, in bytes or, in an invocation's own memory, in words.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneValues {
    pub(crate) words: Vec<u32>,
    /// In an exact run, the floats of a scalar with their errors. With them, the words mean nothing.
    pub(crate) numbers: LaneNumbers,
    /// The variable, if the value is a pointer.
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

    /// Sets the same value for all lanes.
    pub(crate) fn splat(&mut self, scalars: &[u32], lanes: usize) {
        self.words.clear();
        for scalar in scalars {
            self.words.extend(std::iter::repeat_n(*scalar, lanes));
        }
    }

    /// Points to the start of a variable.
    pub(crate) fn point(&mut self, root: Root, lanes: usize) {
        self.root = Some(root);
        self.uniform = true;
        self.splat(&[0], lanes);
    }

    /// Returns the offset of a pointer that is in bounds and the same for all active lanes.
    pub(crate) fn common(&self, mask: &Mask) -> Option<usize> {
        let first = self.words[*mask.lanes.first()? as usize];
        (self.uniform && first != super::OUTSIDE).then_some(first as usize)
    }

    /// Returns the number of one lane of a float.
    pub(crate) fn number(&self, lane: usize) -> Number {
        match &self.numbers {
            Some(numbers) => numbers[lane],
            None => Number::held(self.words[lane]),
        }
    }

    /// Takes the numbers of the active lanes, before their words; `all` says that no other lane has a number to keep.
    pub(crate) fn take_numbers(&mut self, other: &Self, mask: &Mask, all: bool) {
        if all {
            self.numbers.clone_from(&other.numbers);
        } else if other.numbers.is_some() || self.numbers.is_some() {
            self.words.resize(mask.total, 0);
            let numbers = numbers_mut(&mut self.numbers, &self.words);
            for &lane in &mask.lanes {
                numbers[lane as usize] = other.number(lane as usize);
            }
        }
    }

    /// Becomes a copy of another value.
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
    /// The number of lanes in the workgroup.
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
        Self {
            lanes: Vec::new(),
            total,
        }
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
        let count = self.lanes.iter().filter(|lane| holds(**lane)).count();
        if count == self.lanes.len() {
            std::mem::swap(self, &mut taken);
        } else if count > 0 {
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

    /// Returns the active lanes of each subgroup of `size` lanes.
    pub(crate) fn subgroups(&self, size: usize) -> Vec<Vec<u32>> {
        let size = size as u32;
        let groups = self.lanes.chunk_by(|a, b| a / size == b / size);
        groups.map(<[u32]>::to_vec).collect()
    }

    /// Returns the inactive lanes.
    pub(crate) fn missing(&self) -> Vec<u32> {
        if self.is_full() {
            return Vec::new();
        }
        let mut here = self.lanes.iter().peekable();
        let all = 0..self.total as u32;
        all.filter(|lane| here.next_if_eq(&lane).is_none())
            .collect()
    }
}
