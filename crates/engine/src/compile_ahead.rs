//! Compiles kernels before the library does. The library compiles each kernel at its first launch, one after the other, although launches are
//! queued long before. Meanwhile this module compiles the texts of queued launches, several at once. The driver keeps what it compiled, so the
//! library then needs a millisecond for each kernel.
//!
//! This happens on GPUs only, on as many threads as there are cores, until the first step was taken.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use burn::cubecl::future::block_on;
use burn_wgpu::wgpu;

use tiny_llama::ops::gpu::wgsl;

/// The kinds of errors that are caught around a call to the graphics library. Of several errors, the last kind is reported.
pub(crate) const ERROR_FILTERS: [wgpu::ErrorFilter; 3] = [
    wgpu::ErrorFilter::Internal,
    wgpu::ErrorFilter::OutOfMemory,
    wgpu::ErrorFilter::Validation,
];

/// Compiles ahead until this guard is dropped.
#[derive(Debug)]
pub(crate) struct CompileAhead(());

impl CompileAhead {
    /// Compiles each kernel from now on that is launched on the device for the first time.
    pub(crate) fn begin(device: wgpu::Device) -> Self {
        let (sender, texts) = channel();
        wgsl::send_first_launches(Some(sender), &device);
        // If no thread can be started, the library compiles the kernels.
        let _ = thread_builder().spawn(move || compile(&device, texts));
        Self(())
    }
}

impl Drop for CompileAhead {
    fn drop(&mut self) {
        wgsl::send_first_launches(None, ());
    }
}

/// Returns the builder of a thread with this module's name.
fn thread_builder() -> thread::Builder {
    thread::Builder::new().name("compile-ahead".to_owned())
}

/// Compiles texts on as many threads as there are cores, until the sender is dropped.
fn compile(device: &wgpu::Device, texts: Receiver<String>) {
    let shared = Mutex::new(texts);
    let next_text = || shared.lock().ok()?.recv().ok();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            let _ = thread_builder().spawn_scoped(scope, || {
                // A driver may forget a text that no pipeline uses, so the pipelines are kept until the end.
                let pipelines: Vec<_> = std::iter::from_fn(next_text)
                    .map(|text| pipeline(device, text))
                    .collect();
                drop(pipelines);
            });
        }
    });
}

/// Compiles a text as the library does. Errors are dropped, because the library meets them again and reports them.
fn pipeline(device: &wgpu::Device, text: String) -> wgpu::ComputePipeline {
    let scopes = ERROR_FILTERS.map(|filter| device.push_error_scope(filter));
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(text.into()),
    };
    #[expect(unsafe_code, reason = "the library compiles without these checks")]
    // SAFETY: the pipeline is never launched.
    let module = unsafe {
        device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
    };
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions {
            zero_initialize_workgroup_memory: false,
            ..wgpu::PipelineCompilationOptions::default()
        },
        cache: None,
    });
    for scope in scopes.into_iter().rev() {
        let _ = block_on(scope.pop());
    }
    pipeline
}
