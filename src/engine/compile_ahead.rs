//! Kernels compiled before their turn. The library compiles a kernel when it comes to its first launch, one after the other; but
//! launches are queued long before. Meanwhile the same texts are compiled here, all at once. The driver keeps what it compiled, so that
//! the library's turn takes a millisecond.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use burn::cubecl::future::block_on;
use burn_wgpu::wgpu;

use crate::ops::gpu::wgsl;

/// Compiles ahead until it is dropped.
#[derive(Debug)]
pub struct CompileAhead(());

impl CompileAhead {
    /// Begins with the kernels that are launched on the device from now on.
    pub fn begin(device: wgpu::Device) -> Self {
        let (sender, texts) = channel();
        wgsl::send_first_launches(Some(sender));
        let named = thread::Builder::new().name("compile-ahead".to_owned());
        // Without the thread, kernels are compiled at their turn.
        let _ = named.spawn(move || compile(&device, &texts));
        Self(())
    }
}

impl Drop for CompileAhead {
    fn drop(&mut self) {
        wgsl::send_first_launches(None);
    }
}

/// Compiles each text in a thread of its own, until no more can come.
fn compile(device: &wgpu::Device, texts: &Receiver<String>) {
    thread::scope(|scope| {
        let compiled = |text| scope.spawn(|| pipeline(device, text));
        // The handles keep the pipelines until no more texts come: a driver may forget what no pipeline uses.
        let kept: Vec<_> = texts.iter().map(compiled).collect();
        drop(kept);
    });
}

/// Compiles a text as the library does. An error comes again at its turn, and is reported there.
fn pipeline(device: &wgpu::Device, text: String) -> wgpu::ComputePipeline {
    let errors = device.push_error_scope(wgpu::ErrorFilter::Validation);
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
    let _ = block_on(errors.pop());
    pipeline
}
