//! The device of a check. It shares no memory with the model, checks bounds, and returns every error as text. The watcher gives up work that
//! hangs, and nothing waits for it again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use burn::cubecl::future::block_on;
use burn_wgpu::wgpu;
use burn_wgpu::wgpu::util::DownloadBuffer;

use super::super::adapters::{CPU_DRIVER, RankedAdapter, adapters, named};
use super::super::compile_ahead::ERROR_FILTERS;
use super::super::{devices, peaks};
use protocol::{self, Peaks};
use tiny_llama::ops::adapter::{MATRIX_CORES, has_matrix_cores};

/// The reason why a call to the device failed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GpuError {
    /// The driver or the library refused the call.
    Refused(String),
    /// The device is gone.
    Lost(String),
}

/// A compiled kernel with its grid.
pub(super) struct KernelPipeline {
    pipeline: wgpu::ComputePipeline,
    /// The number of workgroups along x, y and z.
    pub grid: [u32; 3],
}

/// An open device.
pub(super) struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pub info: protocol::Device,
    /// True if the driver computes on the CPU. Its results are right, but its times are not those of a GPU.
    pub on_cpu: bool,
    /// True if the device's own clock can time launches.
    pub timestamps: bool,
    pub matrix_cores: bool,
    /// The reason why the device was lost, once it is.
    lost: Arc<Mutex<Option<String>>>,
    driver: String,
    /// The value of `--device` that selects the device.
    select: String,
    /// The measured peaks, once they have been asked for.
    peaks: OnceLock<Option<Peaks>>,
}

impl Gpu {
    /// Opens `auto` (a GPU, else a CPU driver), `cpu` (a CPU driver, else a GPU), `gpu`, `gpu:N` or `vulkan-cpu`. Returns `None` for
    /// `auto` and `cpu` on a machine without an adapter.
    ///
    /// # Errors
    /// Fails if the named adapter does not exist or cannot be opened. The error has advice.
    pub(super) fn open(select: &str) -> Result<Option<Self>, String> {
        let adapters = adapters();
        let Some(found) = choose(select, &adapters)? else {
            return Ok(None);
        };
        found.ensure_usable()?;
        let adapter = &found.adapter;
        let name = &found.info.name;
        let limits = adapter.limits();
        let matrix_cores = has_matrix_cores(adapter);
        let mut features = adapter.features() & wgpu::Features::TIMESTAMP_QUERY;
        if matrix_cores {
            features |= MATRIX_CORES;
        }
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("kernel check"),
            required_features: features,
            // SAFETY: naga validates each text before a driver gets it, and the process that tries kernels has no other work.
            experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
            required_limits: wgpu::Limits {
                max_buffer_size: limits.max_buffer_size,
                max_compute_workgroup_storage_size: limits.max_compute_workgroup_storage_size,
                max_storage_buffer_binding_size: limits.max_storage_buffer_binding_size,
                ..wgpu::Limits::default()
            },
            ..wgpu::DeviceDescriptor::default()
        };
        let open = AssertUnwindSafe(|| block_on(adapter.request_device(&descriptor)));
        let (device, queue) = catch_unwind(open)
            .map_err(|_| format!("the driver of {name} panicked while it was opened"))?
            .map_err(|error| format!("{name} could not be opened: {error}"))?;
        let lost = Arc::new(Mutex::new(None));
        let lost_by_device = lost.clone();
        device.set_device_lost_callback(move |reason, text| {
            set_lost(&lost_by_device, format!("{reason:?} {text}"))
        });
        let lost_by_error = lost.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            set_lost(&lost_by_error, error.to_string())
        }));
        let timestamps = device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        Ok(Some(Self {
            device,
            queue,
            info: found.device(),
            on_cpu: found.on_cpu(),
            timestamps,
            matrix_cores,
            lost,
            driver: found.driver(),
            select: found.select.clone(),
            peaks: OnceLock::new(),
        }))
    }

    /// Returns the device's measured peaks, from the file or measured now with the training engine's library; `None` if they cannot be
    /// measured.
    pub(super) fn peaks(&self) -> Option<&Peaks> {
        let known_or_measured = || {
            peaks::known(&self.info, &self.driver).or_else(|| {
                let opened = devices::open(&self.select).ok()?;
                peaks::known_or_measured(&opened, |_| ()).ok()
            })
        };
        self.peaks.get_or_init(known_or_measured).as_ref()
    }

    /// Compiles a text whose entry point is `main` and whose buffers are in @group(0).
    ///
    /// # Errors
    /// Returns the driver's message.
    pub(super) fn compile(&self, text: &str, grid: [u32; 3]) -> Result<KernelPipeline, GpuError> {
        self.guarded(|| {
            let label = Some("kernel");
            let module = self
                .device
                .create_shader_module(wgpu::ShaderModuleDescriptor {
                    label,
                    source: wgpu::ShaderSource::Wgsl(text.into()),
                });
            let descriptor = wgpu::ComputePipelineDescriptor {
                label,
                layout: None,
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            };
            let pipeline = self.device.create_compute_pipeline(&descriptor);
            KernelPipeline { pipeline, grid }
        })
    }

    /// Binds the first `counts` elements of each buffer.
    pub(super) fn bind(
        &self,
        kernel: &KernelPipeline,
        buffers: &[wgpu::Buffer],
        counts: &[usize],
    ) -> Result<wgpu::BindGroup, GpuError> {
        let entries: Vec<_> = (0..)
            .zip(buffers.iter().zip(counts))
            .map(|(binding, (buffer, count))| wgpu::BindGroupEntry {
                binding,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: 0,
                    size: wgpu::BufferSize::new(*count as u64 * 4),
                }),
            })
            .collect();
        self.guarded(|| {
            self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &kernel.pipeline.get_bind_group_layout(0),
                entries: &entries,
            })
        })
    }

    /// Launches a kernel once with `grid` workgroups, and waits for its end.
    pub(super) fn launch(
        &self,
        kernel: &KernelPipeline,
        bound: &wgpu::BindGroup,
        grid: [u32; 3],
    ) -> Result<(), GpuError> {
        self.guarded(|| {
            let mut encoder = self.device.create_command_encoder(&Default::default());
            pass(&mut encoder, kernel, bound, grid, None);
            self.queue.submit([encoder.finish()]);
        })?;
        self.wait()
    }

    /// Launches each kernel once, one after the other, and returns the seconds of each launch. The device's clock measures them if it has
    /// one, else the host's clock from submission to completion.
    pub(super) fn time(
        &self,
        launches: &[(&KernelPipeline, &wgpu::BindGroup)],
    ) -> Result<Vec<f64>, GpuError> {
        if !self.timestamps {
            return launches
                .iter()
                .map(|(kernel, bound)| {
                    let began = Instant::now();
                    self.launch(kernel, bound, kernel.grid)?;
                    Ok(began.elapsed().as_secs_f64())
                })
                .collect();
        }
        let count = 2 * launches.len() as u32;
        let size = u64::from(count) * 8;
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let resolved = self.buffer(size, usage)?;
        self.guarded(|| {
            let queries = self.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count,
            });
            let mut encoder = self.device.create_command_encoder(&Default::default());
            for (index, (kernel, bound)) in (0_u32..).zip(launches) {
                let stamps = Some((&queries, 2 * index));
                pass(&mut encoder, kernel, bound, kernel.grid, stamps);
            }
            encoder.resolve_query_set(&queries, 0..count, &resolved, 0);
            self.queue.submit([encoder.finish()]);
        })?;
        self.wait()?;
        let bytes = self.read_bytes(&resolved)?;
        let period = f64::from(self.queue.get_timestamp_period()) * 1e-9;
        let (stamps, _) = bytes.as_chunks::<8>();
        let (starts_and_ends, _) = stamps.as_chunks::<2>();
        Ok(starts_and_ends
            .iter()
            .map(|stamps| stamps.map(u64::from_le_bytes))
            .map(|[start, end]| end.saturating_sub(start) as f64 * period)
            .collect())
    }

    /// Waits for all submitted work. It has no limit, because the watcher decides when work takes too long.
    fn wait(&self) -> Result<(), GpuError> {
        loop {
            let waited = self.device.poll(wgpu::PollType::Wait {
                submission_index: None,
                timeout: Some(Duration::from_secs(1)),
            });
            let lost = locked(&self.lost).clone();
            return match (waited, lost) {
                (_, Some(text)) => Err(GpuError::Lost(text)),
                (Ok(_), None) => Ok(()),
                (Err(wgpu::PollError::Timeout), None) => continue,
                (Err(error), None) => Err(GpuError::Lost(error.to_string())),
            };
        }
    }

    /// Makes calls to the library, and returns their errors and panics as text.
    fn guarded<T>(&self, calls: impl FnOnce() -> T) -> Result<T, GpuError> {
        let scopes = ERROR_FILTERS.map(|filter| self.device.push_error_scope(filter));
        let result = catch_unwind(AssertUnwindSafe(calls));
        // Scopes have to close in reverse order.
        let errors: Vec<_> = scopes
            .into_iter()
            .rev()
            .filter_map(|scope| block_on(scope.pop()))
            .collect();
        if let Some(error) = errors.first() {
            return Err(GpuError::Refused(error.to_string()));
        }
        result.map_err(|_| GpuError::Refused("the graphics library panicked".to_owned()))
    }

    /// Makes a storage buffer with these words.
    pub(super) fn upload(&self, words: &[u32]) -> Result<wgpu::Buffer, GpuError> {
        let usage = wgpu::BufferUsages::STORAGE
            | wgpu::BufferUsages::COPY_SRC
            | wgpu::BufferUsages::COPY_DST;
        let buffer = self.buffer(words.len() as u64 * 4, usage)?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.queue.write_buffer(&buffer, 0, &bytes);
        Ok(buffer)
    }

    fn buffer(&self, size: u64, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer, GpuError> {
        let most = self.device.limits().max_storage_buffer_binding_size;
        if size > most {
            return Err(GpuError::Refused(format!(
                "it needs a buffer of {size} bytes, and this device allows {most} bytes"
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

    /// Returns the words of a buffer.
    pub(super) fn read(&self, buffer: &wgpu::Buffer) -> Result<Vec<u32>, GpuError> {
        let bytes = self.read_bytes(buffer)?;
        let (words, _) = bytes.as_chunks::<4>();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    fn read_bytes(&self, buffer: &wgpu::Buffer) -> Result<Vec<u8>, GpuError> {
        let (sender, receiver) = channel();
        self.guarded(|| {
            let all = buffer.slice(..);
            DownloadBuffer::read_buffer(&self.device, &self.queue, &all, move |bytes| {
                let _ = sender.send(bytes.map(|bytes| bytes.to_vec()));
            });
        })?;
        self.wait()?;
        match receiver.try_recv() {
            Ok(Ok(bytes)) => Ok(bytes),
            other => Err(GpuError::Refused(format!(
                "a buffer could not be read back: {other:?}"
            ))),
        }
    }
}

/// Locks a mutex even if a panic poisoned it.
fn locked(lost: &Mutex<Option<String>>) -> MutexGuard<'_, Option<String>> {
    lost.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records why the device was lost. The first reason stays.
fn set_lost(lost: &Mutex<Option<String>>, text: String) {
    locked(lost).get_or_insert(text);
}

/// Adds a launch of `[x, y, z]` workgroups to an encoder. `stamps` are the queries for its timestamps and the index of the first one.
fn pass(
    encoder: &mut wgpu::CommandEncoder,
    kernel: &KernelPipeline,
    bound: &wgpu::BindGroup,
    [x, y, z]: [u32; 3],
    stamps: Option<(&wgpu::QuerySet, u32)>,
) {
    let timestamp_writes = stamps.map(|(query_set, first)| wgpu::ComputePassTimestampWrites {
        query_set,
        beginning_of_pass_write_index: Some(first),
        end_of_pass_write_index: Some(first + 1),
    });
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
        label: None,
        timestamp_writes,
    });
    pass.set_pipeline(&kernel.pipeline);
    pass.set_bind_group(0, bound, &[]);
    pass.dispatch_workgroups(x, y, z);
}

/// Returns the message for a machine without an adapter.
pub(super) fn no_adapter() -> String {
    format!("no GPU was found, and no CPU driver of Vulkan; {CPU_DRIVER}")
}

/// Returns the adapter that `select` names; `None` for `auto` and `cpu` on a machine without an adapter.
///
/// # Errors
/// Fails if the named adapter does not exist.
fn choose<'a>(
    select: &str,
    adapters: &'a [RankedAdapter],
) -> Result<Option<&'a RankedAdapter>, String> {
    let first = |on_cpu: bool| adapters.iter().find(|adapter| adapter.on_cpu() == on_cpu);
    match select {
        "auto" => Ok(first(false).or(first(true))),
        "cpu" => Ok(first(true).or(first(false))),
        other => named(other, adapters).map(Some),
    }
}
