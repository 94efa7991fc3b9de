//! A device of the check's own: no memory is shared with the model, bounds are checked, every error comes back as text.
//! What hangs is given up after a limit and never waited for again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use burn::cubecl::future::block_on;
use burn_wgpu::wgpu;

use super::super::adapters::adapters;
use super::super::{devices, roof};
use super::adapters::choose;
use crate::protocol::{self, Roof};

/// Why something did not come back.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// The driver or the library refused it.
    Refused(String),
    /// It did not end in time; the device cannot be used any more.
    Endless,
    /// The device is gone.
    Lost(String),
}

/// A compiled kernel.
pub struct Pipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// An open device.
pub struct Gpu {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub info: protocol::Device,
    /// Whether it is a driver that computes on the CPU: right, and no measure of speed.
    pub on_cpu: bool,
    pub timestamps: bool,
    /// Longest wait for one piece of work.
    pub limit: Duration,
    lost: Arc<Mutex<Option<String>>>,
    driver: String,
    /// What `--device` calls it.
    select: String,
    roof: OnceLock<Option<Roof>>,
}

impl Gpu {
    /// Opens `auto` (a GPU, else a CPU driver), `gpu`, `gpu:N`, `vulkan-cpu`, or for `cpu` what computes on the CPU.
    ///
    /// # Errors
    /// When there is none, with what to do about it.
    pub fn open(select: &str, limit: Duration) -> Result<Self, String> {
        let adapters = adapters();
        let found = choose(select, &adapters)?;
        let (adapter, info) = (&found.adapter, &found.info);
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let wanted = wgpu::Features::TIMESTAMP_QUERY;
            let ours = adapter.limits();
            let limits = wgpu::Limits {
                max_buffer_size: ours.max_buffer_size,
                max_storage_buffer_binding_size: ours.max_storage_buffer_binding_size,
                ..wgpu::Limits::default()
            };
            block_on(adapter.request_device(&wgpu::DeviceDescriptor {
                label: Some("kernel check"),
                required_features: adapter.features() & wanted,
                required_limits: limits,
                ..wgpu::DeviceDescriptor::default()
            }))
        }));
        let (device, queue) = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => return Err(format!("{} could not be opened: {error}", info.name)),
            Err(_) => {
                return Err(format!(
                    "the driver of {} panicked while it was opened",
                    info.name
                ));
            }
        };
        let lost = Arc::new(Mutex::new(None));
        let (by_callback, by_error) = (lost.clone(), lost.clone());
        device.set_device_lost_callback(move |reason, text| {
            note(&by_callback, format!("{reason:?} {text}"))
        });
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            note(&by_error, error.to_string())
        }));
        let on_cpu = info.device_type == wgpu::DeviceType::Cpu;
        let kind = if on_cpu { "vulkan-cpu" } else { "gpu" };
        let timestamps = device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        let info = protocol::Device {
            kind: kind.to_owned(),
            name: format!("{} ({:?})", info.name, info.backend),
        };
        Ok(Self {
            device,
            queue,
            info,
            on_cpu,
            timestamps,
            limit,
            lost,
            driver: found.driver(),
            select: found.select.clone(),
            roof: OnceLock::new(),
        })
    }

    /// What the device was measured to do at most: from the file, else measured now, through the training engine's library.
    pub fn roof(&self) -> Option<&Roof> {
        let find = || {
            roof::known(&self.info, &self.driver).or_else(|| {
                let opened = devices::open(&self.select).ok()?;
                roof::of(&opened, |_| ()).ok()
            })
        };
        self.roof.get_or_init(find).as_ref()
    }

    /// Compiles a text whose entry point is `main` and whose buffers are @group(0), bindings 0 to `buffers` − 1.
    ///
    /// # Errors
    /// With the driver's words.
    pub fn compile(&self, text: &str, buffers: usize) -> Result<Pipeline, Trouble> {
        self.guarded(|| {
            let module = self
                .device
                .create_shader_module(wgpu::ShaderModuleDescriptor {
                    label: Some("kernel"),
                    source: wgpu::ShaderSource::Wgsl(text.into()),
                });
            let entries: Vec<_> = (0..buffers as u32).map(entry).collect();
            let layout = self
                .device
                .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                    label: None,
                    entries: &entries,
                });
            let over = self
                .device
                .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                    bind_group_layouts: &[Some(&layout)],
                    ..wgpu::PipelineLayoutDescriptor::default()
                });
            let pipeline = self
                .device
                .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                    label: Some("kernel"),
                    layout: Some(&over),
                    module: &module,
                    entry_point: Some("main"),
                    compilation_options: wgpu::PipelineCompilationOptions::default(),
                    cache: None,
                });
            Pipeline { pipeline, layout }
        })
    }

    /// Binds the first `counts` numbers of the buffers.
    pub fn bind(
        &self,
        pipeline: &Pipeline,
        buffers: &[wgpu::Buffer],
        counts: &[usize],
    ) -> Result<wgpu::BindGroup, Trouble> {
        let entries =
            (0_u32..)
                .zip(buffers.iter().zip(counts))
                .map(|(binding, (buffer, count))| {
                    let size = wgpu::BufferSize::new(*count as u64 * 4);
                    let resource = wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer,
                        offset: 0,
                        size,
                    });
                    wgpu::BindGroupEntry { binding, resource }
                });
        let entries: Vec<_> = entries.collect();
        self.guarded(|| {
            self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.layout,
                entries: &entries,
            })
        })
    }

    /// Launches once and waits.
    pub fn launch(
        &self,
        pipeline: &Pipeline,
        bound: &wgpu::BindGroup,
        grid: [u32; 3],
    ) -> Result<(), Trouble> {
        self.guarded(|| {
            let mut encoder = self
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            pass(&mut encoder, pipeline, bound, grid, None);
            self.queue.submit([encoder.finish()]);
        })?;
        self.wait()
    }

    /// Launches each once, one after the other, and waits. Seconds of each: on the device's clock where it has one,
    /// else from submission to completion.
    pub fn time(
        &self,
        launches: &[(&Pipeline, &wgpu::BindGroup, [u32; 3])],
    ) -> Result<Vec<f64>, Trouble> {
        if !self.timestamps {
            let timed = launches.iter().map(|(pipeline, bound, grid)| {
                let began = Instant::now();
                self.launch(pipeline, bound, *grid)
                    .map(|()| began.elapsed().as_secs_f64())
            });
            return timed.collect();
        }
        let count = 2 * launches.len() as u32;
        let size = u64::from(count) * 8;
        let resolved = self.buffer(
            size,
            wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
        )?;
        self.guarded(|| {
            let queries = self.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count,
            });
            let mut encoder = self
                .device
                .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for (index, (pipeline, bound, grid)) in (0_u32..).zip(launches) {
                pass(
                    &mut encoder,
                    pipeline,
                    bound,
                    *grid,
                    Some((&queries, 2 * index)),
                );
            }
            encoder.resolve_query_set(&queries, 0..count, &resolved, 0);
            self.queue.submit([encoder.finish()]);
        })?;
        self.wait()?;
        let bytes = self.read_bytes(&resolved, size)?;
        let ticks: Vec<u64> = bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes))
            .collect();
        let period = f64::from(self.queue.get_timestamp_period()) * 1e-9;
        Ok(ticks
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[start, end]| end.saturating_sub(*start) as f64 * period)
            .collect())
    }

    /// Waits for everything submitted.
    pub(super) fn wait(&self) -> Result<(), Trouble> {
        let waited = self.device.poll(wgpu::PollType::Wait {
            submission_index: None,
            timeout: Some(self.limit),
        });
        let lost = self
            .lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match (waited, lost) {
            (_, Some(text)) => Err(Trouble::Lost(text)),
            (Ok(_), None) => Ok(()),
            (Err(wgpu::PollError::Timeout), None) => Err(Trouble::Endless),
            (Err(error), None) => Err(Trouble::Lost(error.to_string())),
        }
    }

    /// Runs calls whose errors are to come back as text.
    pub(super) fn guarded<T>(&self, calls: impl FnOnce() -> T) -> Result<T, Trouble> {
        let scopes = [
            wgpu::ErrorFilter::Internal,
            wgpu::ErrorFilter::OutOfMemory,
            wgpu::ErrorFilter::Validation,
        ];
        let scopes = scopes.map(|filter| self.device.push_error_scope(filter));
        let done = catch_unwind(AssertUnwindSafe(calls));
        // Scopes close in the opposite order.
        let [internal, memory, validation] = scopes;
        let errors = [
            block_on(validation.pop()),
            block_on(memory.pop()),
            block_on(internal.pop()),
        ];
        match (done, errors.into_iter().flatten().next()) {
            (_, Some(error)) => Err(Trouble::Refused(error.to_string())),
            (Ok(done), None) => Ok(done),
            (Err(_), None) => Err(Trouble::Refused("the graphics library panicked".to_owned())),
        }
    }
}

fn note(lost: &Mutex<Option<String>>, text: String) {
    lost.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert(text);
}

fn entry(binding: u32) -> wgpu::BindGroupLayoutEntry {
    wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only: false },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    }
}

fn pass(
    encoder: &mut wgpu::CommandEncoder,
    pipeline: &Pipeline,
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
    pass.set_pipeline(&pipeline.pipeline);
    pass.set_bind_group(0, bound, &[]);
    pass.dispatch_workgroups(x, y, z);
}
