//! Memory that invocations share, with its shadow. For each scalar, the shadow records the last accesses: their invocations and their
//! time.
//!
//! Time is counted in epochs. A barrier starts a new epoch for one kind of memory, and so does a workgroup. Two accesses of one
//! workgroup race if they are in the same epoch; accesses of different workgroups always race. Four stamps decide exactly whether an
//! access races with an earlier one: the last writer, two readers of this epoch in different lanes (at least one of them is not the
//! lane that writes now), and a reader of an earlier workgroup. Atomic accesses never race: WGSL allows no other access to an atomic
//! variable.

use half::f16;
use naga::{GlobalVariable, Scalar, ScalarKind};

use super::finding::FindingKind;
use super::layout::Leaf;
use super::value::Mask;
use super::{AccessKind, OUTSIDE, Space};

/// An access: its epoch, its lane, and its place in the source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccessStamp {
    /// The epoch, counted from 1; 0 means that there was no such access.
    pub(crate) epoch: u32,
    pub(crate) lane: u16,
    /// The index of the access's place in the source.
    pub(crate) site: u16,
}

/// The stamps of a scalar: the last writer, two readers, and a reader of an earlier workgroup. They are kept as numbers because the
/// system hands out large vectors of zeros without writing them.
type ShadowCell = [u64; 4];
const WRITER: usize = 0;
const READER: usize = 1;
const SECOND_READER: usize = 2;
const EARLIER_READER: usize = 3;

impl From<u64> for AccessStamp {
    fn from(bits: u64) -> Self {
        Self {
            epoch: (bits >> 32) as u32,
            lane: (bits >> 16) as u16,
            site: bits as u16,
        }
    }
}

impl From<AccessStamp> for u64 {
    fn from(stamp: AccessStamp) -> Self {
        Self::from(stamp.epoch) << 32 | Self::from(stamp.lane) << 16 | Self::from(stamp.site)
    }
}

/// The clock of one kind of memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Epochs {
    /// The present epoch.
    pub(crate) now: u32,
    /// The epoch in which this workgroup began.
    pub(crate) start: u32,
}

/// Something wrong with an access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub(crate) kind: FindingKind,
    pub(crate) lane: u32,
    /// The first byte of the accessed scalar.
    pub(crate) offset: u32,
    /// The size of the accessed scalar.
    pub(crate) bytes: u32,
    /// The earlier access; its epoch is 0 if there is none.
    pub(crate) other: AccessStamp,
}

/// A global variable with its bytes: a buffer, or workgroup memory. Private variables and those that the entry point does not use have no
/// bytes here.
pub(crate) struct SharedVariable<'a> {
    pub(crate) variable: &'a GlobalVariable,
    pub(crate) bytes: Vec<u8>,
    /// One cell for each granule; empty if no access can be wrong, because the shader only reads this memory.
    shadow: Vec<ShadowCell>,
    /// The base-2 logarithm of the bytes in a granule.
    shift: u32,
    pub(crate) space: Space,
    /// True if the memory held defined bytes before the launch.
    pub(crate) initialized: bool,
    /// What is wrong with the last access.
    pub(crate) conflicts: Vec<Conflict>,
}

/// An access by all active lanes.
pub(crate) struct LaneAccess<'a> {
    pub(crate) clock: Epochs,
    /// The index of its place in the source.
    pub(crate) site: u16,
    pub(crate) kind: AccessKind,
    /// The lanes whose values are loaded or stored.
    pub(crate) mask: &'a Mask,
    /// For a subgroup that acts together, the number that its stamps have in place of a lane.
    pub(crate) actor: Option<u16>,
    /// The offset in bytes for each lane of the workgroup.
    pub(crate) offsets: &'a [u32],
}

/// For a store in a component of a vector: the vector's offset for each lane of the workgroup, and its size in bytes.
pub(crate) type Vector<'a> = Option<(&'a [u32], u32)>;

impl<'a> SharedVariable<'a> {
    pub(crate) fn new(
        variable: &'a GlobalVariable,
        bytes: Vec<u8>,
        granule: u32,
        space: Space,
        shadowed: bool,
        initialized: bool,
    ) -> Self {
        let shift = granule.trailing_zeros();
        let cells = if shadowed { bytes.len() >> shift } else { 0 };
        Self {
            variable,
            bytes,
            shadow: vec![[0; 4]; cells],
            shift,
            space,
            initialized,
            conflicts: Vec::new(),
        }
    }

    /// Returns the number of bytes that a variable and its shadow take.
    pub(crate) fn cost(bytes: u64, granule: u32) -> u64 {
        bytes + (bytes >> granule.trailing_zeros()) * size_of::<ShadowCell>() as u64
    }

    pub(crate) fn name(&self) -> &'a str {
        self.variable.name.as_deref().unwrap_or("variable")
    }

    /// Returns the numbers of `@group` and `@binding`.
    pub(crate) fn binding(&self) -> Option<(u32, u32)> {
        let binding = self.variable.binding?;
        Some((binding.group, binding.binding))
    }

    /// Returns the range of shadow cells for a range of bytes; empty without a shadow.
    fn cells(&self, byte: u32, bytes: u32) -> std::ops::Range<usize> {
        if self.shadow.is_empty() {
            return 0..0;
        }
        (byte >> self.shift) as usize..((byte + bytes) >> self.shift) as usize
    }

    /// Loads a value for each lane; lanes whose offset is `OUTSIDE` get zeros.
    pub(crate) fn load(&mut self, access: &LaneAccess<'_>, leaves: &[Leaf], out: &mut [u32]) {
        if let ([leaf], true) = (leaves, self.shadow.is_empty())
            && leaf.scalar.width == 4
        {
            let (words, _) = self.bytes.as_chunks();
            let word_at = |offset: u32| {
                let word = words.get(offset as usize / 4);
                word.map_or(0, |word| u32::from_le_bytes(*word))
            };
            if access.actor.is_none() && access.mask.is_dense() {
                for (out, offset) in out.iter_mut().zip(access.offsets) {
                    *out = word_at(*offset);
                }
            } else {
                for &lane in &access.mask.lanes {
                    out[lane as usize] = word_at(access.offsets[lane as usize]);
                }
            }
            return;
        }
        for (leaf, out) in leaves
            .iter()
            .zip(out.chunks_exact_mut(access.offsets.len()))
        {
            for &lane in &access.mask.lanes {
                let offset = access.offsets[lane as usize];
                if offset == OUTSIDE {
                    out[lane as usize] = 0;
                    continue;
                }
                let byte = offset + leaf.offset;
                out[lane as usize] = get(&self.bytes, byte, leaf.scalar);
                if access.kind == AccessKind::Load {
                    self.record_load(access, lane, byte, leaf.scalar.width.into());
                }
            }
        }
    }

    /// Records a load of one lane in the shadow, and adds a conflict if something is wrong with it.
    fn record_load(&mut self, access: &LaneAccess<'_>, lane: u32, byte: u32, bytes: u32) {
        let clock = access.clock;
        let stamp = access.stamp(lane);
        let cells = self.cells(byte, bytes);
        let workgroup = self.space == Space::Workgroup;
        let mut found = None;
        for cell in &mut self.shadow[cells] {
            let writer = AccessStamp::from(cell[WRITER]);
            let reader = AccessStamp::from(cell[READER]);
            if writer.epoch == 0 || (workgroup && writer.epoch < clock.start) {
                if !self.initialized {
                    found = found.or(Some((FindingKind::UnwrittenRead, AccessStamp::default())));
                }
            } else if clock.is_unordered(writer, stamp) {
                found = Some((FindingKind::Race, writer));
            }
            if reader.epoch != stamp.epoch {
                if reader.epoch < clock.start && cell[EARLIER_READER] == 0 {
                    cell[EARLIER_READER] = cell[READER];
                }
                cell[READER] = stamp.into();
                cell[SECOND_READER] = 0;
            } else if reader.lane != stamp.lane {
                cell[SECOND_READER] = stamp.into();
            }
        }
        self.add_conflict(found, lane, byte, bytes);
    }

    /// Stores a value for each lane except those whose offset is `OUTSIDE`.
    pub(crate) fn store(
        &mut self,
        access: &LaneAccess<'_>,
        vector: Vector<'_>,
        leaves: &[Leaf],
        values: &[u32],
    ) {
        for (leaf, values) in leaves.iter().zip(values.chunks_exact(access.offsets.len())) {
            for &lane in &access.mask.lanes {
                let offset = access.offsets[lane as usize];
                if offset != OUTSIDE {
                    let byte = offset + leaf.offset;
                    let same = set(&mut self.bytes, byte, leaf.scalar, values[lane as usize]);
                    self.record_store(access, vector, lane, byte, leaf.scalar.width.into(), same);
                }
            }
        }
    }

    /// Records a store of one lane in the shadow, and adds a conflict if something is wrong with it. `same` means that the memory already
    /// held this value.
    fn record_store(
        &mut self,
        access: &LaneAccess<'_>,
        vector: Vector<'_>,
        lane: u32,
        byte: u32,
        bytes: u32,
        same: bool,
    ) {
        if self.shadow.is_empty() {
            return;
        }
        let clock = access.clock;
        let stamp = access.stamp(lane);
        let cells = self.cells(byte, bytes);
        if access.kind != AccessKind::Store {
            let cells = self.shadow[cells].iter_mut();
            return cells.for_each(|cell| cell[WRITER] = stamp.into());
        }
        // In workgroup memory, stamps older than the workgroup are ignored.
        let oldest = match self.space {
            Space::Workgroup => clock.start,
            _ => 1,
        };
        let is_unordered =
            |other: &AccessStamp| other.epoch >= oldest && clock.is_unordered(*other, stamp);
        let mut found = None;
        for cell in &mut self.shadow[cells] {
            let [writer, readers @ ..] = cell.map(AccessStamp::from);
            if let Some(reader) = readers.into_iter().find(is_unordered) {
                found = Some((FindingKind::Race, reader));
            } else if is_unordered(&writer) {
                let by_one_statement = writer.epoch == stamp.epoch && writer.site == stamp.site;
                let kind = if same && by_one_statement {
                    FindingKind::SameValue
                } else {
                    FindingKind::Race
                };
                found = found.or(Some((kind, writer)));
            }
            cell[WRITER] = stamp.into();
        }
        if let (None, Some((starts, size))) = (found, vector)
            && starts[lane as usize] != OUTSIDE
        {
            let cells = self.cells(starts[lane as usize], size);
            found = self.shadow[cells]
                .iter()
                .map(|cell| AccessStamp::from(cell[WRITER]))
                .find(is_unordered)
                .map(|other| (FindingKind::VectorComponent, other));
        }
        self.add_conflict(found, lane, byte, bytes);
    }

    /// Updates memory for one lane after the other: `change` maps a lane and the old value to the new value.
    pub(crate) fn update(
        &mut self,
        access: &LaneAccess<'_>,
        scalar: Scalar,
        mut change: impl FnMut(usize, u32) -> Option<u32>,
    ) {
        for &lane in &access.mask.lanes {
            let byte = access.offsets[lane as usize];
            if byte != OUTSIDE
                && let Some(new) = change(lane as usize, get(&self.bytes, byte, scalar))
            {
                set(&mut self.bytes, byte, scalar, new);
                self.record_store(access, None, lane, byte, scalar.width.into(), false);
            }
        }
    }

    /// Adds a conflict, if one was found.
    fn add_conflict(
        &mut self,
        found: Option<(FindingKind, AccessStamp)>,
        lane: u32,
        offset: u32,
        bytes: u32,
    ) {
        if let Some((kind, other)) = found {
            self.conflicts.push(Conflict {
                kind,
                lane,
                offset,
                bytes,
                other,
            });
        }
    }

    /// Returns, for a buffer that was not initialized, the first byte that was never written and the number of such bytes. `None` if all were
    /// written.
    pub(crate) fn unwritten(&self) -> Option<(u32, u64)> {
        if self.initialized || self.space != Space::Storage {
            return None;
        }
        let is_unwritten = |cell: &ShadowCell| cell[WRITER] == 0;
        let first = self.shadow.iter().position(is_unwritten)?;
        let count = self.shadow.iter().filter(|cell| is_unwritten(cell)).count() as u64;
        Some(((first << self.shift) as u32, count << self.shift))
    }
}

impl<'a> LaneAccess<'a> {
    pub(crate) fn new(
        clock: Epochs,
        (site, kind): (u16, AccessKind),
        mask: &'a Mask,
        offsets: &'a [u32],
    ) -> Self {
        Self {
            clock,
            site,
            kind,
            mask,
            actor: None,
            offsets,
        }
    }

    /// Returns the stamp of the access by one lane.
    fn stamp(&self, lane: u32) -> AccessStamp {
        AccessStamp {
            epoch: self.clock.now,
            lane: self.actor.unwrap_or(lane as u16),
            site: self.site,
        }
    }
}

impl Epochs {
    /// Starts the epoch after a barrier.
    pub(crate) fn advance(&mut self) {
        self.now = self.now.saturating_add(1);
    }

    /// Starts the epoch of a new workgroup.
    pub(crate) fn begin(&mut self) {
        self.advance();
        self.start = self.now;
    }

    /// Returns true if nothing orders two accesses: they are of one epoch and different lanes, or of different workgroups.
    fn is_unordered(self, other: AccessStamp, stamp: AccessStamp) -> bool {
        (other.epoch == stamp.epoch && other.lane != stamp.lane)
            || (other.epoch < self.start && other.epoch != 0)
    }
}

/// Returns a scalar in memory as a word; 0 past the end.
pub(crate) fn get(bytes: &[u8], byte: u32, scalar: Scalar) -> u32 {
    let bytes = bytes.get(byte as usize..).unwrap_or_default();
    match scalar.width {
        1 => bytes.first().copied().unwrap_or(0).into(),
        2 => {
            let half = bytes.first_chunk().copied().map_or(0, u16::from_le_bytes);
            match scalar.kind {
                ScalarKind::Float => f16::from_bits(half).to_f32().to_bits(),
                _ => half.into(),
            }
        }
        _ => bytes.first_chunk().copied().map_or(0, u32::from_le_bytes),
    }
}

/// Writes a word to memory as a scalar. Returns true if the memory already held it.
fn set(bytes: &mut [u8], byte: u32, scalar: Scalar, word: u32) -> bool {
    let bytes = bytes.get_mut(byte as usize..).unwrap_or_default();
    match (scalar.width, scalar.kind) {
        (1, _) => replace(bytes, [word as u8]),
        (2, ScalarKind::Float) => {
            let half = f16::from_f32(f32::from_bits(word));
            replace(bytes, half.to_bits().to_le_bytes())
        }
        (2, _) => replace(bytes, (word as u16).to_le_bytes()),
        _ => replace(bytes, word.to_le_bytes()),
    }
}

/// Writes bytes to the start of memory, if there is room. Returns true if the memory already held them.
fn replace<const N: usize>(memory: &mut [u8], new: [u8; N]) -> bool {
    let place = memory.first_chunk_mut();
    place.is_some_and(|place| std::mem::replace(place, new) == new)
}
