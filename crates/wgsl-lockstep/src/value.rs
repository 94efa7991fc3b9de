//! The values of all lanes, and the mask of the active lanes.

use std::rc::Rc;

use naga::{Handle, LocalVariable};

use super::exact::Number;

/// The variable that a pointer points to. All lanes have the same one, because WGSL cannot select between pointers.
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
    /// The offset of the array in shared memory, in bytes.
    pub(crate) base: u32,
    /// The size of the array in bytes; `u32::MAX` for an array that goes on to the end of its variable.
    pub(crate) bytes: u32,
}

/// Numbers with their errors, one for each lane; `None` if the words are exact. A value and the variables that hold it share them, because
/// most are loaded and stored as a whole.
pub(crate) type LaneNumbers = Option<Rc<Vec<Number>>>;

/// Returns the numbers of all lanes, to be changed lane by lane. If there are none yet, they begin as the exact numbers in `words`.
pub(crate) fn numbers_mut<'n>(numbers: &'n mut LaneNumbers, words: &[u32]) -> &'n mut [Number] {
    let exact = || Rc::new(words.iter().map(|word| Number::of_word(*word)).collect());
    let numbers: &mut Vec<Number> = Rc::make_mut(numbers.get_or_insert_with(exact));
    numbers
}

/// A value for each lane: the first scalar of all lanes, then the second, and so on. Floats of any width are stored as f32. A pointer
/// is an offset: in bytes for shared memory, in words for an invocation's own memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneValues {
    pub(crate) words: Vec<u32>,
    /// In an exact run, the floats of a scalar with their errors, which then replace the words.
    pub(crate) numbers: LaneNumbers,
    /// The variable, if the value is a pointer.
    pub(crate) root: Option<Root>,
    /// True if all lanes have the same offset.
    pub(crate) uniform: bool,
    /// For each lane whose offset is `OUTSIDE`, the index that is past the end.
    pub(crate) outside: Vec<Outside>,
}

impl LaneValues {
    /// Sets the number of words, and returns them; their contents are not specified.
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
            None => Number::of_word(self.words[lane]),
        }
    }

    /// Copies the numbers of the active lanes, before their words are copied. `all` is true if no other lane has a number to keep.
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
        let mut active = self.lanes.iter().peekable();
        (0..self.total as u32)
            .filter(|lane| active.next_if_eq(&lane).is_none())
            .collect()
    }
}
