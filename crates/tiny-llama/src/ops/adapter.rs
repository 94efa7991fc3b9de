//! What a graphics adapter needs for kernels on matrix cores.

use burn_wgpu::wgpu;

/// WGSL with matrix cores needs these features.
pub const MATRIX_CORES: wgpu::Features =
    wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX.union(wgpu::Features::SHADER_F16);

/// Returns true if subgroups of 32 multiply 16×16 matrices of f16 and add in f32.
pub fn has_matrix_cores(adapter: &wgpu::Adapter) -> bool {
    let info = adapter.get_info();
    let of_32 = (info.subgroup_min_size, info.subgroup_max_size) == (32, 32);
    let fits = |matrices: &wgpu::wgt::CooperativeMatrixProperties| {
        (matrices.m_size, matrices.n_size, matrices.k_size) == (16, 16, 16)
            && matrices.ab_type == wgpu::wgt::CooperativeScalarType::F16
            && matrices.cr_type == wgpu::wgt::CooperativeScalarType::F32
    };
    adapter.features().contains(MATRIX_CORES)
        && of_32
        && adapter.cooperative_matrix_properties().iter().any(fits)
}
