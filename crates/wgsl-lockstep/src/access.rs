//! Loads and stores of the active lanes, with their counts and the findings about them.

use std::collections::BTreeMap;

use naga::{
    AtomicFunction, Expression, Handle, Scalar, ScalarKind, Span, SubgroupOperation, TypeInner,
};

use super::arithmetic::f;
use super::evaluate::ODD;
use super::execute::copy_lanes;
use super::finding::{Finding, FindingKind, NO_VARIABLE, OtherAccess};
use super::interpreter::{EarlyEnd, Interpreter};
use super::memory::{Conflict, Epochs, LaneAccess};
use super::subgroup::combined;
use super::value::{LaneValues, Mask, Outside, Root};
use super::{Access, AccessCount, AccessKind, OUTSIDE, Unwritten};

/// A place in the source with one kind of access to shared memory.
pub(crate) struct Site {
    span: Span,
    kind: AccessKind,
    /// For each variable that is accessed here, its number and the number of accesses, counting invocations.
    counts: Vec<(usize, u64)>,
}

impl Interpreter<'_> {
    /// Returns the index of a site, and adds the site if it is new.
    ///
    /// # Errors
    /// When the shader has more sites than the 16 bits of a stamp can name.
    pub(crate) fn site(&mut self, span: Span, kind: AccessKind) -> Result<u16, EarlyEnd> {
        let range = span.to_range().unwrap_or_default();
        let key = (range.start as u32, range.end as u32, kind);
        if let Some(site) = self.known_sites.get(&key) {
            return Ok(*site);
        }
        let Ok(site) = u16::try_from(self.sites.len()) else {
            return Err(self.unsupported("this many loads and stores", span));
        };
        self.sites.push(Site {
            span,
            kind,
            counts: Vec::new(),
        });
        self.known_sites.insert(key, site);
        Ok(site)
    }

    /// Loads the value that a pointer points to into `out`.
    pub(crate) fn load(
        &mut self,
        frame: usize,
        pointer: Handle<Expression>,
        span: Span,
        mask: &Mask,
        out: &mut LaneValues,
    ) -> Result<(), EarlyEnd> {
        let node = &self.codes[frame].nodes[pointer.index()];
        let kind = if node.is_atomic() {
            AccessKind::AtomicLoad
        } else {
            AccessKind::Load
        };
        let from = self.take_pointer(frame, pointer, kind, span, mask)?;
        out.resize(node.size.words as usize * self.lanes);
        if let Some(Root::Shared(variable)) = from.root {
            let leaves = node.leaves(&self.context.layout);
            let site = self.site(span, kind)?;
            let access = LaneAccess::new(self.clock_of(variable), (site, kind), mask, &from.words);
            self.shared[variable].load(&access, &leaves, &mut out.words);
            self.record_access(variable, &access, node.size.bytes as u32, 1, &out.words);
        } else {
            let own = self.own_words(from.root, span)?;
            load_own(own, &from, mask, &mut out.words);
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
        let kind = if node.is_atomic() {
            AccessKind::AtomicStore
        } else {
            AccessKind::Store
        };
        let to = self.take_pointer(frame, pointer, kind, span, mask)?;
        let from = std::mem::take(&mut self.frames[frame].values[value.index()]);
        if let Some(Root::Shared(variable)) = to.root {
            let leaves = node.leaves(&self.context.layout);
            let site = self.site(span, kind)?;
            let access = LaneAccess::new(self.clock_of(variable), (site, kind), mask, &to.words);
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
            self.shared[variable].store(&access, vector, &leaves, &from.words);
            self.record_access(variable, &access, node.size.bytes as u32, 1, &from.words);
        } else {
            let all = self.covers(to.root, mask);
            let own = self.own_words(to.root, span)?;
            store_own(own, &to, &from.words, mask, all);
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
        let to = self.take_pointer(frame, pointer, kind, span, mask)?;
        let Some(Root::Shared(variable)) = to.root else {
            return Err(self.unsupported("this kind of atomic variable", span));
        };
        let site = self.site(span, kind)?;
        let access = LaneAccess::new(self.clock_of(variable), (site, kind), mask, &to.words);
        let values = &self.frames[frame].values;
        let compare = match fun {
            AtomicFunction::Exchange {
                compare: Some(compare),
            } => Some(&values[compare.index()].words),
            _ => None,
        };
        let value = &values[value.index()].words;
        let mut old = vec![0; self.lanes];
        let mut exchanged = vec![0; self.lanes];
        self.shared[variable].update(&access, node.scalar, |lane, found| {
            let equal = compare.is_none_or(|compare| compare[lane] == found);
            old[lane] = found;
            exchanged[lane] = equal.into();
            equal.then(|| change(fun, node.scalar, found, value[lane]))
        });
        let compares = compare.is_some();
        self.record_access(variable, &access, node.size.bytes as u32, 1, &old);
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
    fn take_pointer(
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
    fn own_words(&mut self, root: Option<Root>, span: Span) -> Result<&mut Vec<u32>, EarlyEnd> {
        match root {
            Some(Root::Local(frame, local)) => Ok(&mut self.frames[frame].locals[local.index()]),
            Some(Root::Private(index)) => Ok(&mut self.private[index]),
            _ => Err(self.unsupported("this pointer", span)),
        }
    }

    /// Returns true if the lanes of the mask are all that can still read the variable: the others have returned.
    pub(crate) fn covers(&self, root: Option<Root>, mask: &Mask) -> bool {
        let readers = match root {
            Some(Root::Local(frame, _)) => self.frames[frame].running,
            _ => mask.total,
        };
        mask.lanes.len() == readers
    }

    /// Returns the clock of the memory that a variable is in.
    pub(crate) fn clock_of(&self, variable: usize) -> Epochs {
        self.clock(self.shared[variable].space)
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
            let root = value.root;
            let offset = offset_of(other);
            let mut finding = self.finding(FindingKind::NonUniformValue, span, other);
            let mut number = NO_VARIABLE;
            if let Some(Root::Shared(variable)) = root {
                number = variable;
                finding.variable = Some(self.shared[variable].name().to_owned());
                finding.element = (offset != OUTSIDE).then(|| self.path(variable, offset, 0));
            }
            self.report(finding, number);
        }
    }

    /// Counts an access that each lane makes `times` times, reports its conflicts, and passes it to the observer. `values` are the loaded or
    /// stored words.
    pub(crate) fn record_access(
        &mut self,
        variable: usize,
        access: &LaneAccess<'_>,
        bytes: u32,
        times: u64,
        values: &[u32],
    ) {
        let counts = &mut self.sites[usize::from(access.site)].counts;
        let lanes = access.mask.lanes.len() as u64;
        match counts.iter_mut().find(|count| count.0 == variable) {
            Some(count) => count.1 += times * lanes,
            None => counts.push((variable, times * lanes)),
        }
        let mut last = None;
        for conflict in std::mem::take(&mut self.shared[variable].conflicts) {
            // Most conflicts equal the one before.
            let now = Some((conflict.kind, conflict.other.site));
            if now == last {
                self.findings.count_again();
            } else {
                self.report_conflict(&conflict, variable, access);
            }
            last = now;
        }
        if self.watched {
            let layout = &self.context.layout;
            let shared = &self.shared[variable];
            let name = shared.name();
            let path = |lane: u32| match access.offsets.get(lane as usize) {
                Some(offset) if *offset != OUTSIDE => {
                    layout.path(name, shared.variable.ty, *offset, bytes)
                }
                _ => name.to_owned(),
            };
            self.observer.access(&Access {
                kind: access.kind,
                location: self
                    .shader
                    .locate(self.sites[usize::from(access.site)].span),
                space: shared.space,
                variable: name,
                binding: shared.binding(),
                lanes: &access.mask.lanes,
                offsets: access.offsets,
                bytes,
                elements: times,
                values,
                path: &path,
            });
        }
    }

    /// Reports a conflict with an earlier access.
    fn report_conflict(&mut self, conflict: &Conflict, variable: usize, access: &LaneAccess<'_>) {
        let lane = access.actor.map_or(conflict.lane, u32::from);
        let space = self.shared[variable].space;
        let earlier = conflict.other;
        let location = self
            .shader
            .locate(self.sites[usize::from(access.site)].span);
        let other = (earlier.epoch != 0).then(|| {
            let site = &self.sites[usize::from(earlier.site)];
            OtherAccess {
                location: self.shader.locate(site.span),
                access: site.kind,
                invocation: self.invocation_at(space, earlier.epoch, earlier.lane.into()),
            }
        });
        let other_line = other.as_ref().map_or(0, |other| other.location.line);
        let lines = (location.line, other_line);
        if !self.findings.register(conflict.kind, variable, lines) {
            return;
        }
        let mut finding = Finding::new(conflict.kind, location, self.invocation(lane));
        finding.variable = Some(self.shared[variable].name().to_owned());
        finding.element = Some(self.path(variable, conflict.offset, conflict.bytes));
        finding.access = Some(access.kind);
        finding.other = other;
        self.push_finding(finding);
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
        // Loads and stores of one line are different findings.
        let line_and_kind = (self.shader.locate(span).line, kind as u32);
        let (number, name) = match root {
            Some(Root::Shared(number) | Root::Private(number)) => {
                (number, self.shared[number].name())
            }
            Some(Root::Local(frame, local)) => {
                let name = &self.codes[frame].function.local_variables[local].name;
                let name = name.as_deref().unwrap_or("variable");
                // Local variables are numbered from the end, behind `NO_VARIABLE`.
                (NO_VARIABLE - 1 - local.index(), name)
            }
            None => (NO_VARIABLE, "value"),
        };
        let is_active = |lane: u32| mask.lanes.binary_search(&lane).is_ok();
        for place in outside.iter().filter(|place| is_active(place.lane)) {
            let fault = FindingKind::OutOfBounds;
            if !self.findings.register(fault, number, line_and_kind) {
                continue;
            }
            let mut finding = self.finding(fault, span, place.lane);
            let array = match root {
                Some(Root::Shared(variable)) => self.path(variable, place.base, place.bytes),
                _ => name.to_owned(),
            };
            finding.variable = Some(name.to_owned());
            finding.element = Some(format!("{array}[{}]", place.index));
            finding.access = Some(kind);
            finding.index = Some((place.index, place.count));
            self.push_finding(finding);
        }
    }

    /// Adds a finding, or counts it if the list has it already. `variable` is the number of the variable, or `NO_VARIABLE`.
    pub(crate) fn report(&mut self, finding: Finding, variable: usize) {
        let lines = (finding.location.line, 0);
        if self.findings.register(finding.kind, variable, lines) {
            self.push_finding(finding);
        }
    }

    /// Returns a finding about a lane at a place in the source.
    pub(crate) fn finding(&self, kind: FindingKind, span: Span, lane: u32) -> Finding {
        Finding::new(kind, self.shader.locate(span), self.invocation(lane))
    }

    fn push_finding(&mut self, finding: Finding) {
        self.observer.finding(&finding);
        self.findings.list.push(finding);
    }

    /// Returns a part of a variable, as WGSL writes it.
    fn path(&self, variable: usize, offset: u32, bytes: u32) -> String {
        let shared = &self.shared[variable];
        let layout = &self.context.layout;
        layout.path(shared.name(), shared.variable.ty, offset, bytes)
    }

    /// Returns the buffers that were not initialized and of which some bytes were never written.
    pub(crate) fn unwritten(&self) -> Vec<Unwritten> {
        // Some workgroups alone do not write everything.
        if !self.launch.only.is_empty() {
            return Vec::new();
        }
        self.shared
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
            })
            .collect()
    }

    /// Returns the number of loads and stores of each variable at each place.
    pub(crate) fn counts(&self) -> Vec<AccessCount> {
        let mut counts = BTreeMap::new();
        for site in &self.sites {
            let location = self.shader.locate(site.span);
            for (number, times) in &site.counts {
                let shared = &self.shared[*number];
                let key = (location.line, location.column, location.span.end, *number);
                let count = counts.entry(key).or_insert_with(|| AccessCount {
                    location: location.clone(),
                    variable: shared.name().to_owned(),
                    space: shared.space,
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

/// Loads from the invocations' own memory; lanes whose offset is `OUTSIDE` get zeros.
fn load_own(own: &[u32], from: &LaneValues, mask: &Mask, out: &mut [u32]) {
    let lanes = mask.total;
    if let Some(first) = from.common(mask) {
        let start = first * lanes;
        out.copy_from_slice(&own[start..start + out.len()]);
        return;
    }
    for (index, out) in out.chunks_exact_mut(lanes).enumerate() {
        for &lane in &mask.lanes {
            let lane = lane as usize;
            let offset = from.words[lane];
            let word = || own[(offset as usize + index) * lanes + lane];
            out[lane] = if offset == OUTSIDE { 0 } else { word() };
        }
    }
}

/// Stores words in the invocations' own memory. `all` is true if no inactive lane reads the variable again: all lanes may then be
/// overwritten.
fn store_own(own: &mut [u32], to: &LaneValues, words: &[u32], mask: &Mask, all: bool) {
    let lanes = mask.total;
    if let Some(first) = to.common(mask) {
        let place = &mut own[first * lanes..][..words.len()];
        if all {
            place.copy_from_slice(words);
        } else {
            copy_lanes(place, words, mask);
        }
        return;
    }
    for (index, words) in words.chunks_exact(lanes).enumerate() {
        for &lane in &mask.lanes {
            let lane = lane as usize;
            let offset = to.words[lane];
            if offset != OUTSIDE {
                own[(offset as usize + index) * lanes + lane] = words[lane];
            }
        }
    }
}

/// Returns the value that memory holds after an atomic function.
fn change(fun: &AtomicFunction, scalar: Scalar, old: u32, value: u32) -> u32 {
    let operation = match fun {
        AtomicFunction::Add => SubgroupOperation::Add,
        AtomicFunction::And => SubgroupOperation::And,
        AtomicFunction::ExclusiveOr => SubgroupOperation::Xor,
        AtomicFunction::InclusiveOr => SubgroupOperation::Or,
        AtomicFunction::Min => SubgroupOperation::Min,
        AtomicFunction::Max => SubgroupOperation::Max,
        AtomicFunction::Subtract if scalar.kind == ScalarKind::Float => {
            return (f(old) - f(value)).to_bits();
        }
        AtomicFunction::Subtract => return old.wrapping_sub(value),
        AtomicFunction::Exchange { .. } => return value,
    };
    combined(operation, scalar, old, value)
}
