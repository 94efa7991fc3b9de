//! Operations of a whole subgroup: exchanges of values, and cooperative matrices.

use naga::{
    CollectiveOperation, CooperativeData, Direction, Expression, GatherMode, Handle, Scalar,
    ScalarKind, Span, SubgroupOperation, TypeInner,
};

use super::arithmetic::{f, round};
use super::evaluate::ExpressionInfo;
use super::execute::{EarlyEnd, Interpreter};
use super::finding::{Finding, FindingKind};
use super::layout::Leaf;
use super::memory::By;
use super::value::{LaneValues, Mask, Outside, Root};
use super::{AccessKind, OUTSIDE};

impl Interpreter<'_> {
    /// The active lanes of each subgroup.
    fn subgroups<'m>(&self, mask: &'m Mask) -> impl Iterator<Item = &'m [u32]> + use<'m> {
        let size = self.subgroup as u32;
        mask.lanes.chunk_by(move |a, b| a / size == b / size)
    }

    pub fn ballot(
        &mut self,
        frame: usize,
        result: Handle<Expression>,
        predicate: Option<Handle<Expression>>,
        mask: &Mask,
    ) {
        let mut out = std::mem::take(&mut self.frames[frame].values[result.index()]);
        out.resize(4 * self.lanes);
        let predicate = predicate.map(|it| &self.frames[frame].values[it.index()].words);
        for lanes in self.subgroups(mask) {
            let mut bits = 0_u128;
            for lane in lanes {
                if predicate.is_none_or(|it| it[*lane as usize] != 0) {
                    bits |= 1 << (*lane as usize % self.subgroup);
                }
            }
            for lane in lanes {
                for word in 0..4 {
                    out.words[word * self.lanes + *lane as usize] = (bits >> (32 * word)) as u32;
                }
            }
        }
        self.frames[frame].values[result.index()] = out;
    }

    pub fn gather(
        &mut self,
        frame: usize,
        mode: &GatherMode,
        argument: Handle<Expression>,
        result: Handle<Expression>,
        mask: &Mask,
    ) {
        let mut out = std::mem::take(&mut self.frames[frame].values[result.index()]);
        let values = &self.frames[frame].values;
        let from = &values[argument.index()].words;
        out.resize(from.len());
        let size = self.subgroup as u32;
        for lanes in self.subgroups(mask) {
            for &lane in lanes {
                let number =
                    |handle: &Handle<Expression>| values[handle.index()].words[lane as usize];
                let (first, own) = (lane - lane % size, lane % size);
                let source = match mode {
                    GatherMode::BroadcastFirst => lanes[0] % size,
                    GatherMode::Broadcast(at) | GatherMode::Shuffle(at) => number(at),
                    GatherMode::ShuffleDown(by) => own.wrapping_add(number(by)),
                    GatherMode::ShuffleUp(by) => own.wrapping_sub(number(by)),
                    GatherMode::ShuffleXor(by) => own ^ number(by),
                    GatherMode::QuadBroadcast(at) => own - own % 4 + number(at) % 4,
                    GatherMode::QuadSwap(Direction::X) => own ^ 1,
                    GatherMode::QuadSwap(Direction::Y) => own ^ 2,
                    GatherMode::QuadSwap(Direction::Diagonal) => own ^ 3,
                };
                // The value of an inactive lane is not specified; here the lane gets its own.
                let source = first.wrapping_add(source);
                let source = if lanes.contains(&source) {
                    source
                } else {
                    lane
                } as usize;
                for word in 0..from.len() / self.lanes {
                    out.words[word * self.lanes + lane as usize] = from[word * self.lanes + source];
                }
            }
        }
        self.frames[frame].values[result.index()] = out;
    }

    pub fn collect(
        &mut self,
        frame: usize,
        (op, how): (SubgroupOperation, CollectiveOperation),
        argument: Handle<Expression>,
        result: Handle<Expression>,
        mask: &Mask,
    ) {
        let mut out = std::mem::take(&mut self.frames[frame].values[result.index()]);
        let from = &self.frames[frame].values[argument.index()].words;
        let scalar = self.codes[frame].nodes[argument.index()].scalar;
        out.resize(from.len());
        for lanes in self.subgroups(mask) {
            for (from, out) in from
                .chunks_exact(self.lanes)
                .zip(out.words.chunks_exact_mut(self.lanes))
            {
                let mut all = None;
                for lane in lanes {
                    let before = all;
                    let own = from[*lane as usize];
                    all = Some(all.map_or(own, |all| combine(op, scalar, all, own)));
                    out[*lane as usize] = match how {
                        CollectiveOperation::ExclusiveScan => before.unwrap_or(neutral(op, scalar)),
                        _ => all.unwrap_or(own),
                    };
                }
                if how == CollectiveOperation::Reduce {
                    lanes
                        .iter()
                        .for_each(|lane| out[*lane as usize] = all.unwrap_or(0));
                }
            }
        }
        round(scalar, &mut out.words);
        self.frames[frame].values[result.index()] = out;
    }

    /// The active lanes of each subgroup; reports subgroups of which only a part is active.
    fn teams(&mut self, span: Span, mask: &Mask) -> Vec<Vec<u32>> {
        let teams: Vec<Vec<u32>> = self.subgroups(mask).map(<[u32]>::to_vec).collect();
        for team in &teams {
            let first = team[0] - team[0] % self.subgroup as u32;
            let all = first..(first + self.subgroup as u32).min(self.lanes as u32);
            if team.len() < all.len() {
                let location = self.program.locate(span);
                let mut finding = Finding::new(
                    FindingKind::DivergentSubgroup,
                    location,
                    self.invocation(team[0]),
                );
                let missing = all.filter(|lane| !team.contains(lane));
                finding.invocations = missing.map(|lane| self.invocation(lane)).collect();
                self.find(finding, usize::MAX);
            }
        }
        teams
    }

    pub fn cooperative_load(
        &mut self,
        frame: usize,
        node: &ExpressionInfo<'_>,
        data: &CooperativeData,
        span: Span,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Result<(), EarlyEnd> {
        out.resize(node.words() * self.lanes);
        self.transfer(
            frame,
            node,
            data,
            (span, AccessKind::Load),
            mask,
            &mut out.words,
        )
    }

    pub fn cooperative_store(
        &mut self,
        frame: usize,
        target: Handle<Expression>,
        data: &CooperativeData,
        span: Span,
        mask: &Mask,
    ) -> Result<(), EarlyEnd> {
        let node = &self.codes[frame].nodes[target.index()];
        let mut value = std::mem::take(&mut self.frames[frame].values[target.index()]);
        let result = self.transfer(
            frame,
            node,
            data,
            (span, AccessKind::Store),
            mask,
            &mut value.words,
        );
        self.frames[frame].values[target.index()] = value;
        result
    }

    /// Loads or stores a matrix. The subgroup acts as one lane, numbered after all others; its first lane holds the elements row by row.
    fn transfer(
        &mut self,
        frame: usize,
        node: &ExpressionInfo<'_>,
        data: &CooperativeData,
        (span, kind): (Span, AccessKind),
        mask: &Mask,
        words: &mut [u32],
    ) -> Result<(), EarlyEnd> {
        let (rows, columns) = dimensions(node.ty);
        self.check_uniform(frame, data.pointer, span, mask);
        let teams = self.teams(span, mask);
        let (site, total) = (self.site(span, kind)?, self.lanes);
        let pointer = std::mem::take(&mut self.frames[frame].values[data.pointer.index()]);
        let Some(Root::Shared(variable)) = pointer.root else {
            return Err(
                self.unsupported("a cooperative matrix in an invocation's own memory", span)
            );
        };
        let clock = self.clock_of(variable);
        let scalar = node.scalar;
        let leaf = [Leaf { offset: 0, scalar }];
        let width = u64::from(scalar.width);
        let mut outside = pointer.outside.clone();
        let mut offsets = vec![OUTSIDE; total];
        for team in teams {
            let leader = team[0] as usize;
            let start = pointer.words[leader];
            let stride = self.frames[frame].values[data.stride.index()].words[leader];
            let only = Mask {
                lanes: vec![team[0]],
                total,
            };
            // Subgroups are numbered after all lanes.
            let actor = Some((total + leader / self.subgroup) as u16);
            let shared = self.shared(variable, span)?;
            let length = shared.bytes.len() as u64;
            for (at, words) in (0..rows * columns).zip(words.chunks_exact_mut(total)) {
                let (row, column) = (at / columns, at % columns);
                let (far, near) = if data.row_major {
                    (row, column)
                } else {
                    (column, row)
                };
                let index = u64::from(far) * u64::from(stride) + u64::from(near);
                let offset = u64::from(start) + index * width;
                let inside = start != OUTSIDE && offset + width <= length;
                if !inside && start != OUTSIDE {
                    outside.push(Outside {
                        lane: team[0],
                        index: (offset / width) as i64,
                        count: (length / width) as u32,
                        base: 0,
                        bytes: u32::MAX,
                    });
                }
                offsets[leader] = if inside { offset as u32 } else { OUTSIDE };
                let mut by = By::new(clock, (site, kind), &only, &offsets);
                by.actor = actor;
                match kind {
                    AccessKind::Load => shared.load(&by, &leaf, words),
                    _ => shared.store(&by, None, &leaf, words),
                }
            }
            offsets[leader] = start;
            let mut by = By::new(clock, (site, kind), &only, &offsets);
            by.actor = actor;
            self.made(
                variable,
                &by,
                width as u32,
                u64::from(rows * columns),
                words,
            );
        }
        if !outside.is_empty() {
            self.report_outside(pointer.root, &outside, kind, span, mask);
        }
        self.frames[frame].values[data.pointer.index()] = pointer;
        Ok(())
    }

    pub fn multiply_add(
        &mut self,
        frame: usize,
        [a, b, c]: [Handle<Expression>; 3],
        span: Span,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Result<(), EarlyEnd> {
        let nodes = &self.codes[frame].nodes;
        let ((rows, inner), (_, columns)) = (
            dimensions(nodes[a.index()].ty),
            dimensions(nodes[b.index()].ty),
        );
        let (rows, inner, columns) = (rows as usize, inner as usize, columns as usize);
        let teams = self.teams(span, mask);
        let [a, b, sum] = [a, b, c].map(|it| &self.frames[frame].values[it.index()].words);
        let sizes = [rows * inner, inner * columns, rows * columns];
        if [a, b, sum].map(Vec::len) != sizes.map(|size| size * self.lanes) {
            return Err(self.unsupported("matrices of these sizes", span));
        }
        out.resize(sum.len());
        for team in teams {
            let at = |index: usize| index * self.lanes + team[0] as usize;
            for row in 0..rows {
                for column in 0..columns {
                    let start = f(sum[at(row * columns + column)]);
                    let inner = if self.without_products { 0 } else { inner };
                    let value = (0..inner).fold(start, |sum, inner_at| {
                        sum + f(a[at(row * inner + inner_at)])
                            * f(b[at(inner_at * columns + column)])
                    });
                    out.words[at(row * columns + column)] = value.to_bits();
                }
            }
        }
        round(nodes[c.index()].scalar, &mut out.words);
        Ok(())
    }
}

/// Rows and columns of a cooperative matrix.
fn dimensions(inner: &TypeInner) -> (u32, u32) {
    match inner {
        TypeInner::CooperativeMatrix { columns, rows, .. } => (*rows as u32, *columns as u32),
        _ => (0, 0),
    }
}

fn combine(op: SubgroupOperation, scalar: Scalar, a: u32, b: u32) -> u32 {
    use SubgroupOperation::*;
    match (op, scalar.kind) {
        (All | And, _) => a & b,
        (Any | Or, _) => a | b,
        (Xor, _) => a ^ b,
        (Add, ScalarKind::Float) => (f(a) + f(b)).to_bits(),
        (Mul, ScalarKind::Float) => (f(a) * f(b)).to_bits(),
        (Min, ScalarKind::Float) => f(a).min(f(b)).to_bits(),
        (Max, ScalarKind::Float) => f(a).max(f(b)).to_bits(),
        (Add, _) => a.wrapping_add(b),
        (Mul, _) => a.wrapping_mul(b),
        (Min, ScalarKind::Sint) => (a as i32).min(b as i32) as u32,
        (Max, ScalarKind::Sint) => (a as i32).max(b as i32) as u32,
        (Min, _) => a.min(b),
        (Max, _) => a.max(b),
    }
}

/// The first value of an exclusive scan.
fn neutral(op: SubgroupOperation, scalar: Scalar) -> u32 {
    match (op, scalar.kind) {
        (SubgroupOperation::Mul, ScalarKind::Float) => 1_f32.to_bits(),
        (SubgroupOperation::Mul, _) => 1,
        _ => 0,
    }
}
