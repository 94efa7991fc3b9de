//! One product on one thread, computed by the gemm crate.

/// Computes `out = a · b`, or `out += a · b` if it `adds`. It takes raw pointers, because other threads write other parts of the buffers at the
/// same time. a is m × k, b is k × n. a and b have strides (row, column); out has a stride between rows, and adjacent columns. Unless it
/// `adds`, the old output is never read.
///
/// # Safety
/// All of a, b and out are in bounds of live buffers. Meanwhile nothing else writes a or b, and nothing else reads or writes out.
pub(crate) unsafe fn multiply(
    [m, n, k]: [usize; 3],
    (a, a_strides): (*const f32, (usize, usize)),
    (b, b_strides): (*const f32, (usize, usize)),
    (out, out_stride): (*mut f32, usize),
    adds: bool,
) {
    // SAFETY: passed on to the caller. With `read_dst` false, gemm does not read the output.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out,
            1,
            out_stride as isize,
            adds,
            a,
            a_strides.1 as isize,
            a_strides.0 as isize,
            b,
            b_strides.1 as isize,
            b_strides.0 as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
