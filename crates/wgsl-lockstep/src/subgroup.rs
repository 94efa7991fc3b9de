//! Operations of the lanes of a subgroup on values: votes, sums, and values of other lanes.

use naga::{
    CollectiveOperation, Direction, Expression, GatherMode, Handle, Scalar, ScalarKind, Span,
    SubgroupOperation,
};

use super::arithmetic::{f, round};
use super::finding::{FindingKind, NO_VARIABLE};
use super::interpreter::Interpreter;
use super::open::OpenResult;
use super::value::Mask;

impl Interpreter<'_> {
    /// Returns the active lanes of each subgroup, for an operation at `span`. The report names the span of a run's first subgroup operation.
    fn subgroups_at(&mut self, span: Span, mask: &Mask) -> Vec<Vec<u32>> {
        self.first_subgroup.get_or_insert(span);
        mask.subgroups(self.subgroup)
    }

    /// Evaluates `subgroupBallot`: bit i of the result is set if lane i of the subgroup is active and its predicate is true.
    pub(crate) fn ballot(
        &mut self,
        frame: usize,
        (predicate, result): (Option<Handle<Expression>>, Handle<Expression>),
        span: Span,
        mask: &Mask,
    ) {
        let size = self.subgroup as u32;
        let lanes = self.lanes;
        let groups = self.subgroups_at(span, mask);
        let values = &mut self.frames[frame].values;
        let votes = predicate.map(|predicate| values[predicate.index()].words.clone());
        let out = values[result.index()].resize(4 * lanes);
        for group in groups {
            let mut bits = [0_u32; 4];
            let votes_true =
                |lane: u32| votes.as_ref().is_none_or(|votes| votes[lane as usize] != 0);
            for lane in group.iter().filter(|lane| votes_true(**lane)) {
                let bit = lane % size;
                bits[bit as usize / 32] |= 1 << (bit % 32);
            }
            for lane in group {
                for (index, word) in bits.iter().enumerate() {
                    out[index * lanes + lane as usize] = *word;
                }
            }
        }
    }

    /// Combines the values of a subgroup's active lanes. A reduction combines all of them, a scan for each lane those of the lanes up to it.
    pub(crate) fn combine(
        &mut self,
        frame: usize,
        (op, over): (SubgroupOperation, CollectiveOperation),
        [argument, result]: [Handle<Expression>; 2],
        span: Span,
        mask: &Mask,
    ) {
        let scalar = self.codes[frame].nodes[argument.index()].scalar;
        let groups = self.subgroups_at(span, mask);
        let lanes = self.lanes;
        let values = &mut self.frames[frame].values;
        let words = values[argument.index()].words.clone();
        let out = values[result.index()].resize(words.len());
        for (inputs, results) in words.chunks_exact(lanes).zip(out.chunks_exact_mut(lanes)) {
            for group in &groups {
                let mut total = neutral(op, scalar);
                for &lane in group {
                    let next = combined(op, scalar, total, inputs[lane as usize]);
                    results[lane as usize] = match over {
                        CollectiveOperation::ExclusiveScan => total,
                        _ => next,
                    };
                    total = next;
                }
                if over == CollectiveOperation::Reduce {
                    for &lane in group {
                        results[lane as usize] = total;
                    }
                }
            }
            round(scalar, results);
        }
    }

    /// Reads the value of another lane of the subgroup. A read of an inactive lane is reported, and gives 0.
    pub(crate) fn gather(
        &mut self,
        frame: usize,
        mode: GatherMode,
        [argument, result]: [Handle<Expression>; 2],
        span: Span,
        mask: &Mask,
    ) {
        let size = self.subgroup as u32;
        let lanes = self.lanes;
        let groups = self.subgroups_at(span, mask);
        let values = &mut self.frames[frame].values;
        let word =
            |value: Handle<Expression>, lane: u32| values[value.index()].words[lane as usize];
        // The lane of the workgroup that each lane reads.
        let mut sources = vec![None; lanes];
        for group in &groups {
            let start = group[0] - group[0] % size;
            for &lane in group {
                let position = lane - start;
                let source = match mode {
                    GatherMode::BroadcastFirst => Some(group[0] - start),
                    GatherMode::Broadcast(index) | GatherMode::Shuffle(index) => {
                        Some(word(index, lane))
                    }
                    GatherMode::ShuffleDown(by) => position.checked_add(word(by, lane)),
                    GatherMode::ShuffleUp(by) => position.checked_sub(word(by, lane)),
                    GatherMode::ShuffleXor(bits) => Some(position ^ word(bits, lane)),
                    GatherMode::QuadBroadcast(index) => {
                        Some(position / 4 * 4 + word(index, lane) % 4)
                    }
                    GatherMode::QuadSwap(direction) => Some(
                        position
                            ^ match direction {
                                Direction::X => 1,
                                Direction::Y => 2,
                                Direction::Diagonal => 3,
                            },
                    ),
                };
                sources[lane as usize] = source
                    .filter(|source| *source < size)
                    .and_then(|source| start.checked_add(source))
                    .filter(|source| group.binary_search(source).is_ok());
            }
        }
        let words = values[argument.index()].words.clone();
        let out = values[result.index()].resize(words.len());
        for (inputs, results) in words.chunks_exact(lanes).zip(out.chunks_exact_mut(lanes)) {
            for &lane in &mask.lanes {
                let source = sources[lane as usize];
                results[lane as usize] = source.map_or(0, |source| inputs[source as usize]);
            }
        }
        let mut active = mask.lanes.iter();
        if let Some(lane) = active.find(|lane| sources[**lane as usize].is_none()) {
            let open = FindingKind::Open(OpenResult::InactiveLane);
            let finding = self.finding(open, span, *lane);
            self.report(finding, NO_VARIABLE);
        }
    }
}

/// Returns the value that changes no other: 0 for a sum, 1 for a product.
fn neutral(op: SubgroupOperation, scalar: Scalar) -> u32 {
    use SubgroupOperation::{Add, All, And, Any, Max, Min, Mul, Or, Xor};
    match (op, scalar.kind) {
        (Add | Or | Xor | Any, _) => 0,
        (Mul, ScalarKind::Float) => 1_f32.to_bits(),
        (Mul | All, _) => 1,
        (And, ScalarKind::Bool) => 1,
        (And, _) => u32::MAX,
        (Min, ScalarKind::Float) => f32::INFINITY.to_bits(),
        (Max, ScalarKind::Float) => f32::NEG_INFINITY.to_bits(),
        (Min, ScalarKind::Sint) => i32::MAX as u32,
        (Max, ScalarKind::Sint) => i32::MIN as u32,
        (Min, _) => u32::MAX,
        (Max, _) => 0,
    }
}

/// Returns the result of an operation on two values.
pub(crate) fn combined(op: SubgroupOperation, scalar: Scalar, a: u32, b: u32) -> u32 {
    use SubgroupOperation::{Add, All, And, Any, Max, Min, Mul, Or, Xor};
    match (op, scalar.kind) {
        (Add, ScalarKind::Float) => (f(a) + f(b)).to_bits(),
        (Mul, ScalarKind::Float) => (f(a) * f(b)).to_bits(),
        (Min, ScalarKind::Float) => f(a).min(f(b)).to_bits(),
        (Max, ScalarKind::Float) => f(a).max(f(b)).to_bits(),
        (Min, ScalarKind::Sint) => (a as i32).min(b as i32) as u32,
        (Max, ScalarKind::Sint) => (a as i32).max(b as i32) as u32,
        (Add, _) => a.wrapping_add(b),
        (Mul, _) => a.wrapping_mul(b),
        (Min, _) => a.min(b),
        (Max, _) => a.max(b),
        (And | All, _) => a & b,
        (Or | Any, _) => a | b,
        (Xor, _) => a ^ b,
    }
}
