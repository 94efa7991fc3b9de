//! Which graphics adapters run kernels on matrix cores.

use burn::cubecl::future::block_on;
use burn_wgpu::wgpu;

/// The features of an adapter without which a text that uses matrix cores does not compile.
pub const MATRIX_CORES: wgpu::Features =
    wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX.union(wgpu::Features::SHADER_F16);

/// Returns true if an adapter of this machine has the matrix cores that f16 needs.
pub fn is_any_with_matrix_cores() -> bool {
    let backends = wgpu::Backends::PRIMARY;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters = block_on(instance.enumerate_adapters(backends));
    adapters.iter().any(has_matrix_cores)
}

/// Returns true if subgroups of 32 multiply 16×16 matrices of f16 and add in f32.
pub fn has_matrix_cores(adapter: &wgpu::Adapter) -> bool {
    let info = adapter.get_info();
    let subgroups_of_32 = (info.subgroup_min_size, info.subgroup_max_size) == (32, 32);
    let fits = |matrices: &wgpu::wgt::CooperativeMatrixProperties| {
        (matrices.m_size, matrices.n_size, matrices.k_size) == (16, 16, 16)
            && matrices.ab_type == wgpu::wgt::CooperativeScalarType::F16
            && matrices.cr_type == wgpu::wgt::CooperativeScalarType::F32
    };
    adapter.features().contains(MATRIX_CORES)
        && subgroups_of_32
        && adapter.cooperative_matrix_properties().iter().any(fits)
}
