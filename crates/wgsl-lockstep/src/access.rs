//! Loads and stores of the active lanes: their faults and their counts.

use std::collections::BTreeMap;

use naga::{AtomicFunction, Expression, Handle, Scalar, ScalarKind, Span, TypeInner};

use super::arithmetic::f;
use super::evaluate::ODD;
use super::execute::copy_lanes;
use super::finding::{Finding, FindingKind, OtherAccess};
use super::interpreter::{EarlyEnd, Interpreter};
use super::memory::{By, Conflict, Epochs};
use super::value::{LaneValues, Mask, Outside, Root};
use super::{Access, AccessCount, AccessKind, OUTSIDE, Unwritten};

/// A place in the source with one kind of access to shared memory.
pub(crate) struct Site {
    span: Span,
    kind: AccessKind,
    /// For each variable that is accessed here, its number and the accesses by single invocations.
    counts: Vec<(usize, u64)>,
}

impl Interpreter<'_> {
    /// Returns the number of a site.
    ///
    /// # Errors
    /// When a program has more sites than a stamp can name.
    pub(crate) fn site(&mut self, span: Span, kind: AccessKind) -> Result<u16, EarlyEnd> {
        let range = span.to_range().unwrap_or_default();
        let key = (range.start as u32, range.end as u32, kind);
        if let Some(site) = self.known_sites.get(&key) {
            return Ok(*site);
        }
        let Ok(site) = u16::try_from(self.sites.len()) else {
            return Err(self.unsupported("this many loads and stores", span));
        };
        let counts = Vec::new();
        self.sites.push(Site { span, kind, counts });
        self.known_sites.insert(key, site);
        Ok(site)
    }

    /// Loads what a pointer points to into `out`.
    pub(crate) fn load(
        &mut self,
        frame: usize,
        pointer: Handle<Expression>,
        span: Span,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Result<(), EarlyEnd> {
        let node = &self.codes[frame].nodes[pointer.index()];
        let (words, lanes) = (node.size.words as usize, self.lanes);
        let kind = if node.is_atomic() {
            AccessKind::AtomicLoad
        } else {
            AccessKind::Load
        };
        let from = self.take(frame, pointer, kind, span, mask)?;
        out.resize(words * lanes);
        if let Some(Root::Shared(variable)) = from.root {
            let leaves = node.leaves(&self.context.layout);
            let site = self.site(span, kind)?;
            let by = By::new(self.clock_of(variable), (site, kind), mask, &from.words);
            self.shared[variable].load(&by, &leaves, &mut out.words);
            self.made(variable, &by, node.size.bytes as u32, 1, &out.words);
        } else {
            let own = self.own(from.root, span)?;
            if let Some(first) = from.common(mask) {
                out.words
                    .copy_from_slice(&own[first * lanes..(first + words) * lanes]);
            } else {
                for (at, out) in out.words.chunks_exact_mut(lanes).enumerate() {
                    for &lane in &mask.lanes {
                        let (lane, offset) = (lane as usize, from.words[lane as usize]);
                        let word = || own[(offset as usize + at) * lanes + lane];
                        out[lane] = if offset == OUTSIDE { 0 } else { word() };
                    }
                }
            }
        }
        if self.exact.is_some() {
            self.load_numbers((node.scalar, span), &from, mask, out)?;
        }
        self.frames[frame].values[pointer.index()] = from;
        Ok(())
    }

    /// Stores a value where a pointer points to.
    pub(crate) fn store(
        &mut self,
        frame: usize,
        pointer: Handle<Expression>,
        value: Handle<Expression>,
        span: Span,
        mask: &Mask,
    ) -> Result<(), EarlyEnd> {
        let code = &self.codes[frame];
        let node = &code.nodes[pointer.index()];
        let lanes = self.lanes;
        let kind = if node.is_atomic() {
            AccessKind::AtomicStore
        } else {
            AccessKind::Store
        };
        let to = self.take(frame, pointer, kind, span, mask)?;
        let from = std::mem::take(&mut self.frames[frame].values[value.index()]);
        if let Some(Root::Shared(variable)) = to.root {
            let leaves = node.leaves(&self.context.layout);
            let site = self.site(span, kind)?;
            let by = By::new(self.clock_of(variable), (site, kind), mask, &to.words);
            let vector = match code.function.expressions[pointer] {
                Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                    let whole = &code.nodes[base.index()];
                    let pointee = whole.pointee.as_deref();
                    let is_vector = matches!(pointee, Some(TypeInner::Vector { .. }));
                    let starts = &self.frames[frame].values[base.index()].words;
                    is_vector.then_some((starts.as_slice(), whole.size.bytes as u32))
                }
                _ => None,
            };
            self.shared[variable].store(&by, vector, &leaves, &from.words);
            self.made(variable, &by, node.size.bytes as u32, 1, &from.words);
        } else {
            let all = self.covers(to.root, mask);
            let own = self.own(to.root, span)?;
            if let Some(first) = to.common(mask) {
                let place = &mut own[first * lanes..][..from.words.len()];
                if all {
                    place.copy_from_slice(&from.words);
                } else {
                    copy_lanes(place, &from.words, mask);
                }
            } else {
                for (at, from) in from.words.chunks_exact(lanes).enumerate() {
                    for &lane in &mask.lanes {
                        let (lane, offset) = (lane as usize, to.words[lane as usize]);
                        if offset != OUTSIDE {
                            own[(offset as usize + at) * lanes + lane] = from[lane];
                        }
                    }
                }
            }
        }
        if self.exact.is_some() {
            self.store_numbers(node.scalar, &to, &from, mask);
        }
        self.frames[frame].values[pointer.index()] = to;
        self.frames[frame].values[value.index()] = from;
        Ok(())
    }

    /// Applies an atomic function, for one lane after the other.
    pub(crate) fn atomic(
        &mut self,
        frame: usize,
        pointer: Handle<Expression>,
        (fun, value): (&AtomicFunction, Handle<Expression>),
        result: Option<Handle<Expression>>,
        span: Span,
        mask: &Mask,
    ) -> Result<(), EarlyEnd> {
        let kind = AccessKind::Atomic;
        let node = &self.codes[frame].nodes[pointer.index()];
        let to = self.take(frame, pointer, kind, span, mask)?;
        let Some(Root::Shared(variable)) = to.root else {
            return Err(self.unsupported("this kind of atomic variable", span));
        };
        let site = self.site(span, kind)?;
        let by = By::new(self.clock_of(variable), (site, kind), mask, &to.words);
        let values = &self.frames[frame].values;
        let compare = match fun {
            AtomicFunction::Exchange {
                compare: Some(compare),
            } => Some(&values[compare.index()].words),
            _ => None,
        };
        let value = &values[value.index()].words;
        let (mut old, mut exchanged) = (vec![0; self.lanes], vec![0; self.lanes]);
        self.shared[variable].update(&by, node.scalar, |lane, found| {
            let equal = compare.is_none_or(|compare| compare[lane] == found);
            (old[lane], exchanged[lane]) = (found, equal.into());
            equal.then(|| change(fun, node.scalar, found, value[lane]))
        });
        let compares = compare.is_some();
        self.made(variable, &by, node.size.bytes as u32, 1, &old);
        self.frames[frame].values[pointer.index()] = to;
        if let Some(result) = result {
            if compares {
                old.append(&mut exchanged);
            }
            self.frames[frame].values[result.index()].words = old;
        }
        Ok(())
    }

    /// Takes a pointer's value for a load or store, and reports the lanes for which it is out of bounds.
    fn take(
        &mut self,
        frame: usize,
        pointer: Handle<Expression>,
        kind: AccessKind,
        span: Span,
        mask: &Mask,
    ) -> Result<LaneValues, EarlyEnd> {
        if self.codes[frame].nodes[pointer.index()].size.odd {
            return Err(self.unsupported(ODD, span));
        }
        let value = std::mem::take(&mut self.frames[frame].values[pointer.index()]);
        if !value.outside.is_empty() {
            self.report_outside(value.root, &value.outside, kind, span, mask);
        }
        Ok(value)
    }

    /// Returns the words of a variable in an invocation's own memory.
    fn own(&mut self, root: Option<Root>, span: Span) -> Result<&mut Vec<u32>, EarlyEnd> {
        match root {
            Some(Root::Local(frame, local)) => Ok(&mut self.frames[frame].locals[local.index()]),
            Some(Root::Private(at)) => Ok(&mut self.private[at]),
            _ => Err(self.unsupported("this pointer", span)),
        }
    }

    /// Returns true if no lane reads the variable again except those of the mask. Lanes that have returned do not.
    pub(crate) fn covers(&self, root: Option<Root>, mask: &Mask) -> bool {
        let readers = match root {
            Some(Root::Local(frame, _)) => self.frames[frame].running,
            _ => mask.total,
        };
        mask.lanes.len() == readers
    }

    /// Returns the clock of the memory that a variable is in.
    pub(crate) fn clock_of(&self, variable: usize) -> Epochs {
        self.clock(self.shared[variable].space())
    }

    /// Reports a pointer that is not the same for all lanes.
    pub(crate) fn check_uniform(
        &mut self,
        frame: usize,
        pointer: Handle<Expression>,
        span: Span,
        mask: &Mask,
    ) {
        let value = &self.frames[frame].values[pointer.index()];
        let offset_of = |lane: u32| value.words[lane as usize];
        let first = mask.lanes.first().map_or(0, |lane| offset_of(*lane));
        let mut lanes = mask.lanes.iter().copied();
        if let Some(other) = lanes.find(|lane| offset_of(*lane) != first) {
            let (root, offset) = (value.root, offset_of(other));
            let mut finding = self.finding(FindingKind::NonUniformValue, span, other);
            let mut number = usize::MAX;
            if let Some(Root::Shared(variable)) = root {
                number = variable;
                finding.variable = Some(self.shared[variable].name().to_owned());
                finding.element = (offset != OUTSIDE).then(|| self.path(variable, offset, 0));
            }
            self.find(finding, number);
        }
    }

    /// Counts an access that each lane makes `times` times, reports its conflicts, and passes it to the observer.
    pub(crate) fn made(
        &mut self,
        variable: usize,
        by: &By<'_>,
        bytes: u32,
        times: u64,
        values: &[u32],
    ) {
        let counts = &mut self.sites[usize::from(by.site)].counts;
        let times = times * by.mask.lanes.len() as u64;
        match counts.iter_mut().find(|count| count.0 == variable) {
            Some(count) => count.1 += times,
            None => counts.push((variable, times)),
        }
        let mut last = None;
        for conflict in std::mem::take(&mut self.shared[variable].conflicts) {
            // Most conflicts equal the one before.
            let now = Some((conflict.kind, conflict.other.site));
            if now == last {
                self.findings.again();
            } else {
                self.report_conflict(&conflict, variable, by);
            }
            last = now;
        }
        if self.watched {
            let (layout, shared) = (&self.context.layout, &self.shared[variable]);
            let (name, ty) = (shared.name(), shared.variable.ty);
            let path = |lane: u32| match by.offsets.get(lane as usize) {
                Some(offset) if *offset != OUTSIDE => layout.path(name, ty, *offset, bytes),
                _ => name.to_owned(),
            };
            self.observer.access(&Access {
                kind: by.kind,
                location: self.program.locate(self.sites[usize::from(by.site)].span),
                space: shared.space(),
                variable: name,
                binding: shared.binding(),
                lanes: &by.mask.lanes,
                offsets: by.offsets,
                bytes,
                elements: times / by.mask.lanes.len().max(1) as u64,
                values,
                path: &path,
            });
        }
    }

    /// Reports a conflict with an earlier access.
    fn report_conflict(&mut self, conflict: &Conflict, variable: usize, by: &By<'_>) {
        let who = by.actor.map_or(conflict.lane, u32::from);
        let (space, before) = (self.shared[variable].space(), conflict.other);
        let at = self.program.locate(self.sites[usize::from(by.site)].span);
        let other = (before.epoch != 0).then(|| {
            let site = &self.sites[usize::from(before.site)];
            OtherAccess {
                location: self.program.locate(site.span),
                access: site.kind,
                invocation: self.invocation_at(space, before.epoch, before.lane.into()),
            }
        });
        let other_line = other.as_ref().map_or(0, |other| other.location.line);
        let lines = (at.line, other_line);
        if !self.findings.is_new(conflict.kind, variable, lines) {
            return;
        }
        let mut finding = Finding::new(conflict.kind, at, self.invocation(who));
        finding.variable = Some(self.shared[variable].name().to_owned());
        finding.element = Some(self.path(variable, conflict.offset, conflict.bytes));
        finding.access = Some(by.kind);
        finding.other = other;
        self.add(finding);
    }

    /// Reports the active lanes that are out of bounds.
    pub(crate) fn report_outside(
        &mut self,
        root: Option<Root>,
        outside: &[Outside],
        kind: AccessKind,
        span: Span,
        mask: &Mask,
    ) {
        let lines = (self.program.locate(span).line, kind as u32);
        let (number, name) = match root {
            Some(Root::Shared(at) | Root::Private(at)) => (at, self.shared[at].name()),
            Some(Root::Local(frame, local)) => {
                let name = &self.codes[frame].function.local_variables[local].name;
                let name = name.as_deref().unwrap_or("variable");
                (usize::MAX - 1 - local.index(), name)
            }
            None => (usize::MAX, "value"),
        };
        let is_active = |lane: u32| mask.lanes.binary_search(&lane).is_ok();
        for one in outside.iter().filter(|one| is_active(one.lane)) {
            let fault = FindingKind::OutOfBounds;
            if !self.findings.is_new(fault, number, lines) {
                continue;
            }
            let mut finding = self.finding(fault, span, one.lane);
            let array = match root {
                Some(Root::Shared(variable)) => self.path(variable, one.base, one.bytes),
                _ => name.to_owned(),
            };
            finding.variable = Some(name.to_owned());
            finding.element = Some(format!("{array}[{}]", one.index));
            finding.access = Some(kind);
            finding.index = Some((one.index, one.count));
            self.add(finding);
        }
    }

    /// Adds a finding, or counts one that is known.
    pub(crate) fn find(&mut self, finding: Finding, variable: usize) {
        let lines = (finding.location.line, 0);
        if self.findings.is_new(finding.kind, variable, lines) {
            self.add(finding);
        }
    }

    /// Returns a finding about what a lane does at a place.
    pub(crate) fn finding(&self, kind: FindingKind, span: Span, lane: u32) -> Finding {
        Finding::new(kind, self.program.locate(span), self.invocation(lane))
    }

    fn add(&mut self, finding: Finding) {
        self.observer.finding(&finding);
        self.findings.list.push(finding);
    }

    /// Returns a part of a variable, as WGSL writes it.
    fn path(&self, variable: usize, offset: u32, bytes: u32) -> String {
        let shared = &self.shared[variable];
        let layout = &self.context.layout;
        layout.path(shared.name(), shared.variable.ty, offset, bytes)
    }

    /// Returns the buffers that had to be written, and of which some bytes were not.
    pub(crate) fn unwritten(&self) -> Vec<Unwritten> {
        // Some workgroups alone do not write everything.
        if !self.launch.only.is_empty() {
            return Vec::new();
        }
        let each = self
            .shared
            .iter()
            .enumerate()
            .filter_map(|(variable, shared)| {
                let (first, bytes) = shared.unwritten()?;
                Some(Unwritten {
                    variable: shared.name().to_owned(),
                    element: self.path(variable, first, 0),
                    first,
                    bytes,
                })
            });
        each.collect()
    }

    /// Returns how often each variable was accessed at each place.
    pub(crate) fn counts(&self) -> Vec<AccessCount> {
        let mut counts = BTreeMap::new();
        for site in &self.sites {
            let location = self.program.locate(site.span);
            for (number, times) in &site.counts {
                let shared = &self.shared[*number];
                let key = (location.line, location.column, location.span.end, *number);
                let count = counts.entry(key).or_insert_with(|| AccessCount {
                    location: location.clone(),
                    variable: shared.name().to_owned(),
                    space: shared.space(),
                    binding: shared.binding(),
                    loads: 0,
                    stores: 0,
                });
                match site.kind {
                    AccessKind::Load => count.loads += times,
                    AccessKind::Store => count.stores += times,
                    _ => {}
                }
            }
        }
        counts.into_values().collect()
    }
}

/// Returns the value that an atomic function leaves.
fn change(fun: &AtomicFunction, scalar: Scalar, old: u32, value: u32) -> u32 {
    let signed = scalar.kind == ScalarKind::Sint;
    match fun {
        AtomicFunction::Add if scalar.kind == ScalarKind::Float => (f(old) + f(value)).to_bits(),
        AtomicFunction::Subtract if scalar.kind == ScalarKind::Float => {
            (f(old) - f(value)).to_bits()
        }
        AtomicFunction::Add => old.wrapping_add(value),
        AtomicFunction::Subtract => old.wrapping_sub(value),
        AtomicFunction::And => old & value,
        AtomicFunction::ExclusiveOr => old ^ value,
        AtomicFunction::InclusiveOr => old | value,
        AtomicFunction::Min if signed => (old as i32).min(value as i32) as u32,
        AtomicFunction::Max if signed => (old as i32).max(value as i32) as u32,
        AtomicFunction::Min => old.min(value),
        AtomicFunction::Max => old.max(value),
        AtomicFunction::Exchange { .. } => value,
    }
}
