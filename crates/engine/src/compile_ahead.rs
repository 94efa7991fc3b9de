//! Kernels compiled before their turn. The library compiles a kernel when it comes to its first launch, one after the other; but
//! launches are queued long before. Meanwhile the same texts are compiled here, several at once. The driver keeps what it compiled, so that
//! the library's turn takes a millisecond.
//!
//! This is for GPUs only, on as many threads as there are cores, until the first step was taken.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use burn::cubecl::future::block_on;
use burn_wgpu::wgpu;

use tiny_llama::ops::gpu::wgsl;

/// Compiles ahead until it is dropped.
#[derive(Debug)]
pub(crate) struct CompileAhead(());

impl CompileAhead {
    /// Begins with the kernels that are launched on the device from now on, and were not before.
    pub(crate) fn begin(device: wgpu::Device) -> Self {
        let (sender, texts) = channel();
        wgsl::send_first_launches(Some(sender), &device);
        // Without the threads, kernels are compiled at their turn.
        let _ = named().spawn(move || compile(&device, texts));
        Self(())
    }
}

impl Drop for CompileAhead {
    fn drop(&mut self) {
        wgsl::send_first_launches(None, ());
    }
}

fn named() -> thread::Builder {
    thread::Builder::new().name("compile-ahead".to_owned())
}

/// Compiles texts on as many threads as there are cores, until no more can come.
fn compile(device: &wgpu::Device, texts: Receiver<String>) {
    let texts = Mutex::new(texts);
    let next = || texts.lock().ok()?.recv().ok();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            let _ = named().spawn_scoped(scope, || {
                // Pipelines are kept until no more texts come: a driver may forget what no pipeline uses.
                let kept: Vec<_> = std::iter::from_fn(next)
                    .map(|it| pipeline(device, it))
                    .collect();
                drop(kept);
            });
        }
    });
}

/// Compiles a text as the library does. Errors are not looked at: they come again at the text's turn, and are reported there.
fn pipeline(device: &wgpu::Device, text: String) -> wgpu::ComputePipeline {
    use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
    let errors = [Validation, Internal, OutOfMemory].map(|of| device.push_error_scope(of));
    let text = wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(text.into()),
    };
    #[expect(unsafe_code, reason = "the library compiles without these checks")]
    // SAFETY: the pipeline is never launched.
    let module = unsafe {
        device.create_shader_module_trusted(text, wgpu::ShaderRuntimeChecks::unchecked())
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
    for scope in errors.into_iter().rev() {
        let _ = block_on(scope.pop());
    }
    pipeline
}
