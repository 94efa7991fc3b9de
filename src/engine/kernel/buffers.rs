//! Numbers on their way to the check's device and back.

use std::sync::{Arc, Mutex, PoisonError};

use burn_wgpu::wgpu;

use super::gpu::{Gpu, Trouble};

impl Gpu {
    /// A storage buffer with these values.
    pub fn upload(&self, values: &[f32]) -> Result<wgpu::Buffer, Trouble> {
        let buffer = self.storage(values.len())?;
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|x| x.to_bits().to_le_bytes())
            .collect();
        self.queue.write_buffer(&buffer, 0, &bytes);
        Ok(buffer)
    }

    /// A storage buffer for so many numbers.
    pub fn storage(&self, count: usize) -> Result<wgpu::Buffer, Trouble> {
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        self.buffer(count as u64 * 4, usage)
    }

    pub(super) fn buffer(
        &self,
        size: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<wgpu::Buffer, Trouble> {
        let most = self.device.limits().max_storage_buffer_binding_size;
        if size > most {
            return Err(Trouble::Refused(format!(
                "a buffer of {size} bytes; this device takes {most}"
            )));
        }
        self.guarded(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage,
                mapped_at_creation: false,
            })
        })
    }

    /// The first `count` numbers of a buffer.
    pub fn read(&self, buffer: &wgpu::Buffer, count: usize) -> Result<Vec<f32>, Trouble> {
        let bytes = self.read_bytes(buffer, count as u64 * 4)?;
        Ok(bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_bits(u32::from_le_bytes(*bytes)))
            .collect())
    }

    pub(super) fn read_bytes(&self, buffer: &wgpu::Buffer, size: u64) -> Result<Vec<u8>, Trouble> {
        let staging = self.buffer(
            size,
            wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        )?;
        let mapped = Arc::new(Mutex::new(None));
        let result = mapped.clone();
        self.guarded(|| {
            let mut encoder = self
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, size);
            self.queue.submit([encoder.finish()]);
            staging.map_async(wgpu::MapMode::Read, .., move |outcome| {
                *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            });
        })?;
        self.wait()?;
        match mapped.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(Ok(())) => {}
            other => {
                return Err(Trouble::Refused(format!(
                    "a buffer could not be read back: {other:?}"
                )));
            }
        }
        let view = staging.get_mapped_range(..).map_err(|error| {
            Trouble::Refused(format!("a buffer could not be read back: {error}"))
        })?;
        Ok(view.to_vec())
    }
}
