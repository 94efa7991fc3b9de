//! Residual addition, y = a + b. Its gradient is handed on twice, unchanged.

use super::{Cost, Float, Gradients, Kernels, Operation, Saved};

/// y = a + b, both `[n, d]`.
#[derive(Clone, Debug)]
pub struct Add;

impl Operation<2> for Add {
    const NAME: &'static str = "add";

    fn version(&self) -> &'static str {
        "library"
    }

    fn forward<B: Kernels>(&self, [a, b]: [Float<B>; 2]) -> (Float<B>, Saved<B>) {
        (B::float_add(a, b), Vec::new())
    }

    fn backward<B: Kernels>(&self, _: Saved<B>, dy: Float<B>) -> Gradients<B, 2> {
        [Some(dy.clone()), Some(dy)]
    }

    fn cost(&self, [a, _]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let n = a.iter().product::<usize>() as f64;
        (
            Cost::new(n, 3.0 * n),
            Cost::nothing("the gradient is handed on as it is"),
        )
    }
}
