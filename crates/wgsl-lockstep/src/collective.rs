//! Operations of a whole subgroup on cooperative matrices.

use naga::{CooperativeData, Expression, Handle, Span, TypeInner};

use super::arithmetic::{f, round};
use super::code::ExpressionInfo;
use super::finding::{FindingKind, NO_VARIABLE};
use super::interpreter::{EarlyEnd, Interpreter};
use super::layout::Leaf;
use super::memory::LaneAccess;
use super::value::{LaneValues, Mask, Outside, Root};
use super::{AccessKind, OUTSIDE};

impl Interpreter<'_> {
    /// Returns the active lanes of each subgroup, and reports subgroups in which only some lanes are active.
    fn checked_subgroups(&mut self, span: Span, mask: &Mask) -> Vec<Vec<u32>> {
        let size = self.subgroup as u32;
        let subgroups = mask.subgroups(self.subgroup);
        for subgroup in &subgroups {
            let first = subgroup[0] - subgroup[0] % size;
            let all = first..(first + size).min(self.lanes as u32);
            if subgroup.len() < all.len() {
                let mut finding = self.finding(FindingKind::DivergentSubgroup, span, subgroup[0]);
                let missing = all.filter(|lane| !subgroup.contains(lane));
                finding.invocations = missing.map(|lane| self.invocation(lane)).collect();
                self.report(finding, NO_VARIABLE);
            }
        }
        subgroups
    }

    /// Loads or stores a matrix. The subgroup acts as one lane, numbered after all others; its first lane holds the elements row by row in
    /// `words`.
    pub(crate) fn transfer_matrix(
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
        let subgroups = self.checked_subgroups(span, mask);
        let site = self.site(span, kind)?;
        let total = self.lanes;
        let pointer = std::mem::take(&mut self.frames[frame].values[data.pointer.index()]);
        let Some(Root::Shared(variable)) = pointer.root else {
            let what = "a cooperative matrix in an invocation's own memory";
            return Err(self.unsupported(what, span));
        };
        let clock = self.clock_of(variable);
        let scalar = node.scalar;
        let leaf = [Leaf { offset: 0, scalar }];
        let width = u64::from(scalar.width);
        let mut outside = pointer.outside.clone();
        let mut offsets = vec![OUTSIDE; total];
        for subgroup in subgroups {
            let leader = subgroup[0] as usize;
            let start = pointer.words[leader];
            let stride = self.frames[frame].values[data.stride.index()].words[leader];
            let only = Mask {
                lanes: vec![subgroup[0]],
                total,
            };
            // Subgroups are numbered after all lanes.
            let actor = Some((total + leader / self.subgroup) as u16);
            let shared = &mut self.shared[variable];
            let length = shared.bytes.len() as u64;
            for (element, words) in (0..rows * columns).zip(words.chunks_exact_mut(total)) {
                let row = element / columns;
                let column = element % columns;
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
                        lane: subgroup[0],
                        index: (offset / width) as i64,
                        count: (length / width) as u32,
                        base: 0,
                        bytes: u32::MAX,
                    });
                }
                offsets[leader] = if inside { offset as u32 } else { OUTSIDE };
                let mut access = LaneAccess::new(clock, (site, kind), &only, &offsets);
                access.actor = actor;
                match kind {
                    AccessKind::Load => shared.load(&access, &leaf, words),
                    _ => shared.store(&access, None, &leaf, words),
                }
            }
            offsets[leader] = start;
            let mut access = LaneAccess::new(clock, (site, kind), &only, &offsets);
            access.actor = actor;
            let elements = u64::from(rows * columns);
            self.record_access(variable, &access, width as u32, elements, words);
        }
        if !outside.is_empty() {
            self.report_outside(pointer.root, &outside, kind, span, mask);
        }
        self.frames[frame].values[data.pointer.index()] = pointer;
        Ok(())
    }

    /// Adds the product of two matrices to a third; the first lane of each subgroup holds them row by row.
    pub(crate) fn multiply_add(
        &mut self,
        frame: usize,
        [a, b, c]: [Handle<Expression>; 3],
        span: Span,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Result<(), EarlyEnd> {
        let nodes = &self.codes[frame].nodes;
        let [(rows, inner), (_, columns)] =
            [a, b].map(|matrix| dimensions(nodes[matrix.index()].ty));
        let (rows, inner, columns) = (rows as usize, inner as usize, columns as usize);
        let subgroups = self.checked_subgroups(span, mask);
        let values = &self.frames[frame].values;
        let [a, b, sum] = [a, b, c].map(|matrix| &values[matrix.index()].words);
        let sizes = [rows * inner, inner * columns, rows * columns];
        if [a, b, sum].map(Vec::len) != sizes.map(|size| size * self.lanes) {
            return Err(self.unsupported("matrices of these sizes", span));
        }
        out.resize(sum.len());
        for subgroup in subgroups {
            let word_of = |index: usize| index * self.lanes + subgroup[0] as usize;
            for row in 0..rows {
                for column in 0..columns {
                    let start = f(sum[word_of(row * columns + column)]);
                    let inner = if self.launch.without_products {
                        0
                    } else {
                        inner
                    };
                    let value = (0..inner).fold(start, |sum, k| {
                        sum + f(a[word_of(row * inner + k)]) * f(b[word_of(k * columns + column)])
                    });
                    out.words[word_of(row * columns + column)] = value.to_bits();
                }
            }
        }
        round(nodes[c.index()].scalar, &mut out.words);
        Ok(())
    }
}

/// Returns the numbers of rows and columns of a cooperative matrix.
fn dimensions(inner: &TypeInner) -> (u32, u32) {
    match inner {
        TypeInner::CooperativeMatrix { columns, rows, .. } => (*rows as u32, *columns as u32),
        _ => (0, 0),
    }
}
