//! The tools of the CPU kernels, which are the files `fused_cpu.rs` and `naive_cpu.rs` of the operations: vector instructions, threads, and
//! buffers that several threads fill.
//!
//! A CPU kernel is a plain function over row-major `f32` slices. Its results depend on the shapes and the machine, never on the number of
//! threads. Lengths that do not match panic. The tensors are burn-flex's, whose own kernels take three times as long.

/// Compiles a function's body once per instruction set and picks one at run time.
///
/// The loops in the body are ordinary Rust that the compiler vectorises; no intrinsics are involved. On `x86_64`
/// there are three copies (AVX-512, AVX2, baseline); elsewhere the baseline is the only one (NEON is part of it).
/// Bodies write `a * b + c`, never `mul_add`: without hardware support that is a slow library call. Reductions, which
/// the compiler vectorises badly if at all, go through `reduce`, with the registers of the instruction set as type `L`.
macro_rules! simd {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $kind:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(
            clippy::extra_unused_type_parameters,
            clippy::too_many_arguments,
            reason = "one form for all kernels"
        )]
        $vis fn $name($($arg: $kind),*) $(-> $result)? {
            #[inline(always)]
            fn body<L: $crate::ops::cpu::reduce::Lanes>($($arg: $kind),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512($($arg: $kind),*) $(-> $result)? {
                    body::<$crate::ops::cpu::reduce::Avx512>($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $kind),*) $(-> $result)? {
                    body::<$crate::ops::cpu::reduce::Avx2>($($arg),*)
                }
                match $crate::ops::cpu::Instructions::detect() {
                    // SAFETY: `detect` found every feature the copy is compiled for.
                    $crate::ops::cpu::Instructions::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::ops::cpu::Instructions::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::ops::cpu::Instructions::Baseline => {}
                }
            }
            body::<[f32; $crate::ops::cpu::reduce::WIDTH]>($($arg),*)
        }
    };
}

pub(crate) mod exp;
pub mod format;
pub mod peaks;
pub(crate) mod reduce;
pub mod transpose;

use std::marker::PhantomData;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use burn::backend::Flex;
use burn::tensor::{Shape, TensorData};
use rayon::prelude::*;

use super::Float;

/// The vector instructions for which kernels are compiled. A machine uses the widest that it supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "there is one kind elsewhere")
)]
pub enum Instructions {
    /// Vectors have 512 bits.
    Avx512,
    /// Vectors have 256 bits, with fused multiply-add.
    Avx2,
    /// The instructions that every machine of the architecture has: SSE2 on `x86_64`, NEON on `aarch64`.
    Baseline,
}

impl Instructions {
    /// Returns the instructions of this machine, which are detected at the first call.
    pub fn detect() -> Self {
        static FOUND: LazyLock<Instructions> = LazyLock::new(|| {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                let avx512 = is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl");
                return if avx512 {
                    Instructions::Avx512
                } else {
                    Instructions::Avx2
                };
            }
            Instructions::Baseline
        });
        *FOUND
    }
}

/// The number of elements in one task of element-wise work. They take about 5 µs, much longer than the start of a task (under 1 µs).
pub(crate) const GRAIN: usize = 16 * 1024;

/// Returns the number of rows in one task of about [`GRAIN`] elements, if a row has `width` elements.
pub(crate) fn rows_per_task(width: usize) -> usize {
    (GRAIN / width.max(1)).max(1)
}

simd! {
    /// Computes `to += from`.
    pub(crate) fn add(to: &mut [f32], from: &[f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to += *from;
        }
    }
}

/// Calls `work` with every number below `count`, on all threads. A thread that is done takes the next number.
/// Starting one task for each thread takes half as long as starting one for each number.
pub(crate) fn for_each(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let take = || {
        let index = next.fetch_add(1, Relaxed);
        (index < count).then_some(index)
    };
    (0..rayon::current_num_threads().min(count))
        .into_par_iter()
        .with_max_len(1)
        .for_each(|_| {
            while let Some(index) = take() {
                work(index);
            }
        });
}

/// Returns `len` values that are computed in parallel, in parts of `part` values. `work` gets the index of a part, and the part itself, filled
/// with zeros. The threads write the zeros, because one thread would take longer for them than all threads take for the values.
pub(crate) fn filled(len: usize, part: usize, work: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    let mut values = Vec::with_capacity(len);
    let unwritten = SharedSlice::unwritten(&mut values, len);
    for_each(len.div_ceil(part), |index| {
        let start = index * part;
        let len = part.min(len - start);
        // SAFETY: parts do not overlap, each is taken once, and its zeros are written before it becomes a slice.
        let part = unsafe {
            unwritten.pointer(start).write_bytes(0, len);
            unwritten.part(start, len)
        };
        work(index, part);
    });
    // SAFETY: every part was written.
    unsafe { values.set_len(len) };
    values
}

/// Returns `len` zeros, written by all threads.
pub(crate) fn zeros(len: usize) -> Vec<f32> {
    filled(len, 4 * GRAIN, |_, _| {})
}

/// A slice that several tasks write at once, each in its own part.
#[derive(Clone, Copy)]
pub(crate) struct SharedSlice<'a> {
    start: *mut f32,
    len: usize,
    owner: PhantomData<&'a mut [f32]>,
}

// SAFETY: a `SharedSlice` is only an address and a length; `part` and `pointer` state the obligations of their callers.
unsafe impl Send for SharedSlice<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedSlice<'_> {}

impl<'a> SharedSlice<'a> {
    pub(crate) fn new(values: &'a mut [f32]) -> Self {
        Self {
            start: values.as_mut_ptr(),
            len: values.len(),
            owner: PhantomData,
        }
    }

    /// Returns the first `len` elements of the spare capacity of `values`, which are not written yet.
    pub(crate) fn unwritten(values: &'a mut Vec<f32>, len: usize) -> Self {
        let spare = &mut values.spare_capacity_mut()[..len];
        Self {
            start: spare.as_mut_ptr().cast(),
            len,
            owner: PhantomData,
        }
    }

    /// Returns the elements `start..start + len`, which have been written.
    ///
    /// # Safety
    /// While the result lives, nothing else may read or write these elements.
    pub(crate) unsafe fn part(self, start: usize, len: usize) -> &'a mut [f32] {
        assert!(
            start <= self.len && len <= self.len - start,
            "part {start}+{len} of {}",
            self.len
        );
        // SAFETY: in bounds by the assertion; the caller promises that nothing else uses the part.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }

    /// Returns the address of element `start`. The caller keeps accesses after it in bounds.
    pub(crate) fn pointer(self, start: usize) -> *mut f32 {
        assert!(start <= self.len, "element {start} of {}", self.len);
        self.start.wrapping_add(start)
    }
}

/// Returns the values of a contiguous tensor of the CPU device.
pub(crate) fn values(tensor: &FlexTensor) -> &[f32] {
    tensor
        .as_slice::<f32>()
        .expect("operations get contiguous f32 (`Kernels::contiguous`)")
}

/// Returns a new tensor of the CPU device.
pub(crate) fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape.into()))
}

/// Returns the values of a tensor of integers of the CPU device.
pub(crate) fn integers(tensor: FlexTensor) -> Vec<i32> {
    tensor.to_contiguous().into_data().iter::<i32>().collect()
}

/// Returns the strides of a tensor in elements.
pub(crate) fn strides(tensor: &FlexTensor) -> Vec<usize> {
    let strides = tensor.layout().strides();
    strides.iter().map(|stride| stride.unsigned_abs()).collect()
}

/// A tensor of burn-flex.
type FlexTensor = Float<Flex>;

#[cfg(test)]
pub mod testing;
