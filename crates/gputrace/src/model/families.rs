//! The families of kernels. A kernel whose name matches no family gets it from the ranges around its executions.

use std::collections::HashMap;

use super::{NameId, Slice, SliceKind, Trace};
use crate::names::{self, Family};

impl Trace {
    /// Returns the family of each kernel and operation. A kernel without a known name takes part in a collective if most of its
    /// executions are within the range of one: on the device, or around the call that launched it.
    pub(super) fn families_of_work(&self) -> HashMap<NameId, Family> {
        let mut families = HashMap::new();
        // For each kernel without a known name, its executions within ranges of collectives, and all its executions.
        let mut unknown: HashMap<NameId, (u64, u64)> = HashMap::new();
        for slice in &self.slices {
            if !matches!(slice.kind, SliceKind::Kernel | SliceKind::Op) {
                continue;
            }
            let family = *families
                .entry(slice.name)
                .or_insert_with(|| names::family(self.name(slice.name)));
            if family == Family::Other && slice.kind == SliceKind::Kernel {
                unknown.entry(slice.name).or_default();
            }
        }
        if unknown.is_empty() {
            return families;
        }
        let ranges = self.ranges_of_collectives();
        let is_within_collective = |slice: &Slice| {
            ranges.get(&slice.lane).is_some_and(|ranges| {
                let after = ranges.partition_point(|range| range.0 <= slice.start);
                // Ranges of collectives are nested by a few at most.
                ranges[..after]
                    .iter()
                    .rev()
                    .take(4)
                    .any(|range| slice.start < range.1)
            })
        };
        for slice in self.slices_of(SliceKind::Kernel) {
            if let Some((inside, all)) = unknown.get_mut(&slice.name) {
                *all += 1;
                let call = self.linked(slice);
                if is_within_collective(slice) || call.is_some_and(is_within_collective) {
                    *inside += 1;
                }
            }
        }
        for (name, (inside, all)) in unknown {
            if 2 * inside > all {
                families.insert(name, Family::Communication);
            }
        }
        families
    }

    /// Returns start and end of the ranges of collectives, by lane, in order of their starts.
    fn ranges_of_collectives(&self) -> HashMap<u32, Vec<(i64, i64)>> {
        let mut known: HashMap<NameId, bool> = HashMap::new();
        let mut ranges: HashMap<u32, Vec<(i64, i64)>> = HashMap::new();
        for slice in &self.slices {
            let is_range = matches!(
                slice.kind,
                SliceKind::Annotation | SliceKind::DeviceAnnotation | SliceKind::Op
            );
            if is_range
                && *known.entry(slice.name).or_insert_with(|| {
                    names::family(self.name(slice.name)) == Family::Communication
                })
            {
                ranges.entry(slice.lane).or_default().push(slice.span());
            }
        }
        ranges
    }
}
