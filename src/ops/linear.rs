//! Linear layer without bias, y = x·Wᵀ, W stored `[out, in]`.
//!
//! Backward: dx = dy·W, dW = dyᵀ·x: two products of the forward's size, which is why a training step costs three forwards.

use super::format::Format;
use super::{Cost, Float, Kernels, Operation};
use crate::config::Matmul;

/// y = x·Wᵀ for x `[n, in]`, W `[out, in]`; y `[n, out]`.
#[derive(Clone, Debug)]
pub struct Linear {
    pub matmul: Matmul,
    pub format: Format,
}

impl Operation<2> for Linear {
    const NAME: &'static str = "linear";

    type Saved<B: Kernels> = [Float<B>; 2];

    fn version(&self) -> &'static str {
        version(self.matmul, self.format)
    }

    fn forward<B: Kernels>(&self, [x, w]: [Float<B>; 2]) -> (Float<B>, [Float<B>; 2]) {
        let [x, w] = [x, w].map(|it| B::operand(it, self.format));
        let y = match self.matmul {
            Matmul::Library => forward::<B>(x.clone(), w.clone()),
            _ => B::linear_own(x.clone(), w.clone(), None, self.format),
        };
        (y, [x, w])
    }

    fn backward<B: Kernels>(&self, [x, w]: [Float<B>; 2], dy: Float<B>) -> [Float<B>; 2] {
        let dy = B::operand(dy, self.format);
        gradients::<B>(self.matmul, self.format, [x, w, dy])
    }

    fn cost(&self, [x, w]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        cost(x, w)
    }
}

/// y = residual + x·Wᵀ: the residual stream is added where the product is stored, so it costs no pass of its own.
#[derive(Clone, Debug)]
pub struct LinearResidual {
    pub format: Format,
}

impl Operation<3> for LinearResidual {
    const NAME: &'static str = "linear+residual";

    type Saved<B: Kernels> = [Float<B>; 2];

    fn version(&self) -> &'static str {
        version(Matmul::Own, self.format)
    }

    fn forward<B: Kernels>(&self, [x, w, residual]: [Float<B>; 3]) -> (Float<B>, [Float<B>; 2]) {
        let [x, w] = [x, w].map(|it| B::operand(it, self.format));
        let y = B::linear_own(x.clone(), w.clone(), Some(residual), self.format);
        (y, [x, w])
    }

    fn backward<B: Kernels>(&self, [x, w]: [Float<B>; 2], dy: Float<B>) -> [Float<B>; 3] {
        let operand = B::operand(dy.clone(), self.format);
        let [dx, dw] = gradients::<B>(Matmul::Own, self.format, [x, w, operand]);
        [dx, dw, dy]
    }

    fn cost(&self, [x, w, residual]: &[Vec<usize>; 3]) -> (Cost, Cost) {
        let (mut forward, backward) = cost(x, w);
        forward.flops += residual.iter().product::<usize>() as f64;
        forward.bytes += 4.0 * residual.iter().product::<usize>() as f64;
        (forward, backward)
    }
}

/// The plain reference: the library's product with a transposed view of W.
pub fn forward<B: Kernels>(x: Float<B>, w: Float<B>) -> Float<B> {
    B::float_matmul(x, B::float_swap_dims(w, 0, 1)) // [n, out]
}

/// What the product is called where kernels are listed.
fn version(matmul: Matmul, format: Format) -> &'static str {
    match (matmul, format) {
        (Matmul::Library, _) => "library",
        (_, Format::Native) => "own, f16",
        (_, Format::Split) => "split",
        (_, Format::Full | Format::Emulated(_)) => "own",
    }
}

/// dx `[n, in]` and dW `[out, in]`.
pub fn gradients<B: Kernels>(
    matmul: Matmul,
    format: Format,
    [x, w, dy]: [Float<B>; 3],
) -> [Float<B>; 2] {
    match matmul {
        Matmul::Library => {
            let dx = B::float_matmul(dy.clone(), w); // [n, in]
            let dw = B::float_matmul(B::float_swap_dims(dy, 0, 1), x); // [out, in]
            [dx, dw]
        }
        _ => B::linear_backward_own(dy, x, w, format),
    }
}

fn cost(x: &[usize], w: &[usize]) -> (Cost, Cost) {
    let (n, k, m) = (x[0] as f64, x[1] as f64, w[0] as f64);
    let flops = 2.0 * n * k * m;
    let elements = n * k + m * k + n * m;
    (
        Cost::new(flops, elements),
        Cost::new(2.0 * flops, 2.0 * elements),
    )
}
