//! Kernels compiled before their turn. The library compiles a kernel when the device comes to its first launch, one after the other;
//! but launches are queued long before. Meanwhile this compiles the same texts on a second device, all at once, and the driver, which
//! keeps what it compiled, gives the results to the first.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use burn::cubecl::future::block_on;
use burn_wgpu::wgpu;

use crate::ops::gpu::wgsl;

/// Compiles ahead until it is dropped.
#[derive(Debug)]
pub struct CompileAhead(());

impl CompileAhead {
    /// Begins with the kernels that are launched from now on. The second device is opened in the background.
    pub fn begin(adapter: wgpu::Adapter) -> Self {
        let (sender, texts) = channel();
        wgsl::send_first_launches(Some(sender));
        let named = thread::Builder::new().name("compile-ahead".to_owned());
        // Without the thread, kernels are compiled at their turn.
        let _ = named.spawn(move || compile(&adapter, &texts));
        Self(())
    }
}

impl Drop for CompileAhead {
    fn drop(&mut self) {
        wgsl::send_first_launches(None);
    }
}

/// Compiles each text in a thread of its own, until no more can come. What fails here fails again at its turn, and is reported there.
fn compile(adapter: &wgpu::Adapter, texts: &Receiver<String>) {
    // The driver tells kernels apart by their code, so the code must be what the library's device makes of the same text.
    let wanted = wgpu::DeviceDescriptor {
        required_features: adapter.features() - wgpu::Features::MAPPABLE_PRIMARY_BUFFERS,
        required_limits: adapter.limits(),
        #[expect(unsafe_code, reason = "matrix cores are an experimental feature")]
        // SAFETY: nothing runs on this device.
        experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
        ..wgpu::DeviceDescriptor::default()
    };
    let Ok((device, _queue)) = block_on(adapter.request_device(&wanted)) else {
        return;
    };
    device.on_uncaptured_error(std::sync::Arc::new(|_| ()));
    thread::scope(|scope| {
        let compiled = |text| scope.spawn(|| pipeline(&device, text));
        // The handles keep the pipelines until no more texts come: a driver may forget what no pipeline uses.
        let kept: Vec<_> = texts.iter().map(compiled).collect();
        drop(kept);
    });
}

fn pipeline(device: &wgpu::Device, text: String) -> wgpu::ComputePipeline {
    let text = wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(text.into()),
    };
    #[expect(unsafe_code, reason = "as the library compiles it")]
    // SAFETY: nothing runs on this device.
    let module = unsafe {
        device.create_shader_module_trusted(text, wgpu::ShaderRuntimeChecks::unchecked())
    };
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions {
            zero_initialize_workgroup_memory: false,
            ..wgpu::PipelineCompilationOptions::default()
        },
        cache: None,
    })
}
