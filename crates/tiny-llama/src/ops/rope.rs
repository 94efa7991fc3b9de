//! Rotary position embedding (Su et al., 2021, arXiv 2104.09864), interleaved pairs (2i, 2i+1):
//! (a, b) → (a·cos − b·sin, a·sin + b·cos) with angle t·θ^(−2i/dh). The backward pass rotates by the opposite angle.

use burn::backend::TensorMetadata;
use burn::tensor::{Shape, Slice};

use super::format::Format;
use super::learner_kernel::{LiveKernel, LivePart, WorkgroupCount};
pub use super::shapes::{Rope, Rotation};
use super::{Cost, Float, Kernels, Operation};

impl Operation<1> for Rope {
    const NAME: &'static str = "rope";

    type Saved<B: Kernels> = ();

    fn version(&self) -> &'static str {
        if self.fused { "own" } else { "library" }
    }

    fn forward<B: Kernels>(&self, [x]: [Float<B>; 1]) -> (Float<B>, ()) {
        (self.turn::<B>(x, false, Format::Full), ())
    }

    fn backward<B: Kernels>(&self, (): (), dy: Float<B>) -> [Float<B>; 1] {
        [self.turn::<B>(dy, true, self.format)]
    }

    /// The learner's kernel computes the angle from the row's number, so each sequence needs a launch. It has no backward pass, so ours
    /// runs there. It rotates every column, so it is not used for rows that also hold values.
    fn forward_live<B: Kernels>(
        &self,
        live: &LivePart,
        [x]: &[Float<B>; 1],
    ) -> Option<(Float<B>, ())> {
        let [rows, width] = x.shape().dims();
        if self.rotated != width || !rows.is_multiple_of(self.context) {
            return None;
        }
        let heads = width / self.head_dim;
        let it = LiveKernel {
            live,
            which: 0,
            sizes: &[
                ("T", self.context as u64),
                ("H", heads as u64),
                ("D", self.head_dim as u64),
            ],
            cover: WorkgroupCount::Invocations((self.context * width) as u64),
            shares: (rows / self.context) as u64,
        };
        let y = B::learner(it, vec![x.clone()], &[[rows, width]])?.pop()?;
        Some((y, ()))
    }

    fn cost(&self, [x]: &[Vec<usize>; 1]) -> (Cost, Cost) {
        let n = x.iter().product::<usize>() as f64;
        let rotated = n * self.rotated as f64 / x[1] as f64;
        let written = n * self.format.written(self.fused);
        (
            Cost::new(3.0 * rotated, 2.0 * n),
            Cost::new(3.0 * rotated, n + written),
        )
    }
}

impl Rope {
    /// cos and sin.
    pub(super) fn tables<B: Kernels>(&self) -> [Float<B>; 2] {
        self.tables.each_ref().map(B::constant)
    }

    /// The forward rotation of rows of this width.
    pub(super) fn rotation(&self, width: usize) -> Rotation {
        Rotation {
            width,
            rotated: self.rotated,
            head_dim: self.head_dim,
            context: self.context,
            inverse: false,
        }
    }

    fn turn<B: Kernels>(&self, x: Float<B>, inverse: bool, format: Format) -> Float<B> {
        let [cos, sin] = self.tables::<B>();
        let rotation = Rotation {
            inverse,
            ..self.rotation(x.shape()[1])
        };
        if self.fused {
            B::rope(x, cos, sin, rotation, format)
        } else {
            turn::<B>(x, cos, sin, rotation)
        }
    }
}

/// cos and sin of t·θ^(−2i/dh), `[context, head_dim / 2]` each, row-major.
pub fn tables(context: usize, head_dim: usize, theta: f64) -> (Vec<f32>, Vec<f32>) {
    let half = head_dim / 2;
    let angle = |index: usize| {
        let (t, i) = (index / half, index % half);
        t as f64 * theta.powf(-2.0 * i as f64 / head_dim as f64)
    };
    (0..context * half)
        .map(|index| (angle(index).cos() as f32, angle(index).sin() as f32))
        .unzip()
}

/// The plain reference, by slices and concatenation.
pub fn turn<B: Kernels>(x: Float<B>, cos: Float<B>, sin: Float<B>, rotation: Rotation) -> Float<B> {
    let Rotation {
        width,
        rotated,
        head_dim,
        context,
        inverse,
    } = rotation;
    let (rows, half) = (x.shape()[0], head_dim / 2);
    let (batch, heads) = (rows / context, rotated / head_dim);
    let pairs = if rotated == width {
        x.clone()
    } else {
        B::float_slice(x.clone(), &[Slice::full(), Slice::from(0..rotated)]) // [n, rotated]
    };
    let pairs = B::float_reshape(pairs, Shape::from([batch, context, heads, half, 2])); // [b, t, h, dh/2, 2]
    let pick = |from: usize| {
        let mut slices = vec![Slice::full(); 4];
        slices.push(Slice::from(from..from + 1));
        B::float_slice(pairs.clone(), &slices) // [b, t, h, dh/2, 1]
    };
    let (a, b) = (pick(0), pick(1));
    let table = |t: Float<B>| B::float_reshape(t, Shape::from([1, context, 1, half, 1]));
    let (cos, sin) = (table(cos), table(sin));
    let sin = if inverse { B::float_neg(sin) } else { sin };
    let first = B::float_sub(
        B::float_mul(a.clone(), cos.clone()),
        B::float_mul(b.clone(), sin.clone()),
    );
    let second = B::float_add(B::float_mul(a, sin), B::float_mul(b, cos));
    let pairs = B::float_cat(vec![first, second], 4); // [b, t, h, dh/2, 2]
    let pairs = B::float_reshape(pairs, Shape::from([rows, rotated])); // [n, rotated]
    if rotated == width {
        return pairs;
    }
    let rest = B::float_slice(x, &[Slice::full(), Slice::from(rotated..width)]); // [n, w - rotated]
    B::float_cat(vec![pairs, rest], 1)
}
