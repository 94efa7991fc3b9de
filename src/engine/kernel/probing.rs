//! The first run of a trial, with probes: a loop without end is named before it can hang the device, and an index outside
//! of its array before it can hit a neighbour.

use std::ops::Range;

use super::explain;
use super::gpu::Trouble;
use super::probe::{self, Probed};
use super::trial::Trial;
use crate::protocol::{KernelError, KernelFault, KernelFaultKind as Kind};

impl Trial<'_> {
    /// What the kernel with probes finds: a loop without end, or the first index outside of its array.
    pub(super) fn probe(&self, inputs: &[Vec<f32>]) -> Result<Option<KernelFault>, Trouble> {
        let mut lengths = self.counts.to_vec();
        // CPU drivers cut loops short on their own, after 65,535 rounds.
        let rounds = if self.gpu.on_cpu { 1 << 15 } else { 1 << 21 };
        let Some(probed) = probe::probe(&self.filled.text, &lengths, rounds, !self.real) else {
            return Ok(None);
        };
        // A text that cannot be probed is still held against everything else.
        let Ok(pipeline) = self.gpu.compile(&probed.text, lengths.len() + 1) else {
            return Ok(None);
        };
        let mut buffers = self.fill(inputs, 0)?;
        buffers.push(self.gpu.upload(&[0.0; probe::WORDS])?);
        lengths.push(probe::WORDS);
        let bound = self.gpu.bind(&pipeline, &buffers, &lengths)?;
        self.gpu.launch(&pipeline, &bound, self.grid)?;
        let words: Vec<u32> = self
            .gpu
            .read(&buffers[lengths.len() - 1], probe::WORDS)?
            .into_iter()
            .map(f32::to_bits)
            .collect();
        if words[3] > 0 {
            return Ok(Some(self.endless(&probed, words[4], rounds)));
        }
        Ok(if words[0] == 0 {
            None
        } else {
            self.outside(&probed, words[1], words[2])
        })
    }

    fn endless(&self, probed: &Probed, site: u32, rounds: u32) -> KernelFault {
        let head = probed.loops.get(site as usize).cloned().unwrap_or(0..0);
        let place = self.place(&head);
        let text = format!(
            "line {}, column {}: `{}` does not end, or not within {rounds} rounds; when does its condition change?",
            place.line, place.column, place.text
        );
        self.fault(Kind::Endless, "", None, text)
    }

    fn place(&self, range: &Range<usize>) -> KernelError {
        explain::error(
            self.text,
            &self.filled.origin(range),
            String::new(),
            String::new(),
        )
    }

    fn outside(&self, probed: &Probed, site: u32, index: u32) -> Option<KernelFault> {
        let site = probed.sites.get(site as usize)?;
        let place = self.place(&site.range);
        // A negative number as an unsigned one.
        let index = if index > u32::MAX / 2 {
            i64::from(index as i32)
        } else {
            i64::from(index)
        };
        let text = format!(
            "line {}, column {}: `{}` takes element {index}, and `{}` has {}; compare the index with the size first",
            place.line, place.column, place.text, site.array, site.count
        );
        let at = usize::try_from(index).ok();
        Some(self.fault(Kind::OutOfBounds, &site.array, at, text))
    }
}
