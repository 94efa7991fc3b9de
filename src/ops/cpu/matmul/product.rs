//! One product on one thread, computed by the gemm crate.

/// Whether a product replaces its output or is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// The old output is overwritten and never read.
    Replace,
    /// The product is added to the old output.
    Add,
}

/// One product on one thread, by raw pointers: for parts of buffers that other threads write at the same time.
pub(crate) struct Product {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: *const f32,
    /// (row, column).
    pub(crate) a_strides: (usize, usize),
    pub(crate) b: *const f32,
    /// (row, column).
    pub(crate) b_strides: (usize, usize),
    pub(crate) out: *mut f32,
    /// Between rows; columns are adjacent.
    pub(crate) out_stride: usize,
    pub(crate) write: Write,
}

impl Product {
    /// Multiplies.
    ///
    /// # Safety
    /// All of a, b and out are in bounds of live buffers, and nothing else writes a or b, or touches out, meanwhile.
    pub(crate) unsafe fn run(&self) {
        // SAFETY: passed on to the caller. With `read_dst` false, gemm does not read the output.
        unsafe {
            gemm::gemm(
                self.m,
                self.n,
                self.k,
                self.out,
                1,
                self.out_stride as isize,
                self.write == Write::Add,
                self.a,
                self.a_strides.1 as isize,
                self.a_strides.0 as isize,
                self.b,
                self.b_strides.1 as isize,
                self.b_strides.0 as isize,
                1.0,
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    }
}
