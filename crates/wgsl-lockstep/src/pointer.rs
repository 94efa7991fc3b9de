//! Pointers to a part of a variable, and the lengths of arrays.

use naga::{Expression, Handle, Scalar, TypeInner};

use super::OUTSIDE;
use super::evaluate::index_value;
use super::interpreter::Interpreter;
use super::value::{LaneValues, Mask, Outside, Root};

impl Interpreter<'_> {
    /// Sets `out` to a pointer to a part of the variable that `base` points to, with the active lanes whose index is past the end. Returns
    /// `None` for a part that is not supported.
    pub(crate) fn point(
        &self,
        frame: usize,
        handle: Handle<Expression>,
        base: Handle<Expression>,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Option<()> {
        let code = &self.codes[frame];
        let from = &self.frames[frame].values[base.index()];
        let inner = code.nodes[base.index()].pointee.as_deref()?;
        let root = from.root?;
        out.root = Some(root);
        out.outside.clone_from(&from.outside);
        out.resize(self.lanes);
        let expression = &code.function.expressions[handle];
        if let Expression::AccessIndex { index, .. } = *expression
            && let Some((bytes, words)) = self.context.layout.member(inner, index)
        {
            let distance = if matches!(root, Root::Shared(_)) {
                bytes
            } else {
                words
            };
            for (place, start) in out.words.iter_mut().zip(&from.words) {
                *place = match *start {
                    OUTSIDE => OUTSIDE,
                    start => start.wrapping_add(distance),
                };
            }
            out.uniform = from.uniform;
            return Some(());
        }
        self.point_to_element(frame, expression, (inner, root), from, mask, out)
    }

    /// Sets `out` to a pointer to the element that each lane indexes. `from` points to the array, of the type `inner`.
    fn point_to_element(
        &self,
        frame: usize,
        expression: &Expression,
        (inner, root): (&TypeInner, Root),
        from: &LaneValues,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Option<()> {
        let code = &self.codes[frame];
        let stride = self.context.layout.stride(inner)?;
        let step = if matches!(root, Root::Shared(_)) {
            stride.bytes
        } else {
            stride.words
        };
        let constant;
        let (scalar, indices) = match *expression {
            Expression::Access { index, .. } => (
                code.nodes[index.index()].scalar,
                &self.frames[frame].values[index.index()].words,
            ),
            Expression::AccessIndex { index, .. } => {
                constant = vec![index; self.lanes];
                (Scalar::U32, &constant)
            }
            _ => return None,
        };
        let end = match (stride.count, root) {
            (Some(_), _) => 0,
            (None, Root::Shared(variable)) => self.shared_bytes(variable),
            _ => return None,
        };
        let count_from = |start: u32| {
            let rest = || end.saturating_sub(start) / stride.bytes.max(1);
            stride.count.unwrap_or_else(rest)
        };
        let place = |start: u32, count: u32, index: u32| {
            if start != OUTSIDE && index < count {
                start + index * step
            } else {
                OUTSIDE
            }
        };
        match from.common(mask) {
            // It is faster to compute the places of all lanes; those of inactive lanes do not matter.
            Some(start) if mask.is_dense() => {
                let start = start as u32;
                let count = count_from(start);
                for (out, index) in out.words.iter_mut().zip(indices) {
                    *out = place(start, count, *index);
                }
            }
            _ => {
                for &lane in &mask.lanes {
                    let start = from.words[lane as usize];
                    let index = indices[lane as usize];
                    out.words[lane as usize] = place(start, count_from(start), index);
                }
            }
        }
        if out.words.contains(&OUTSIDE) {
            for &lane in &mask.lanes {
                let start = from.words[lane as usize];
                if out.words[lane as usize] == OUTSIDE && start != OUTSIDE {
                    let bytes = stride.count.map(|count| count * stride.bytes);
                    out.outside.push(Outside {
                        lane,
                        index: index_value(scalar, indices[lane as usize]),
                        count: count_from(start),
                        base: start,
                        bytes: bytes.unwrap_or(u32::MAX),
                    });
                }
            }
        }
        let mut places = mask.lanes.iter().map(|lane| out.words[*lane as usize]);
        let first = places.next();
        out.uniform = places.all(|place| Some(place) == first);
        Some(())
    }

    /// Returns the number of elements of a runtime-sized array.
    pub(crate) fn length(&self, frame: usize, array: Handle<Expression>, stride: u32) -> u32 {
        let value = &self.frames[frame].values[array.index()];
        let start = value.words.first().copied().unwrap_or(0);
        match value.root {
            Some(Root::Shared(variable)) => {
                self.shared_bytes(variable).saturating_sub(start) / stride.max(1)
            }
            _ => 0,
        }
    }

    fn shared_bytes(&self, variable: usize) -> u32 {
        self.shared[variable].bytes.len() as u32
    }
}
