//! Residual addition, y = a + b. Both inputs get the gradient unchanged.

use super::{Cost, Float, Kernels, Operation};

/// The operation y = a + b; all three are `[n, d]`.
#[derive(Clone, Debug)]
pub struct Add;

impl Operation<2> for Add {
    const NAME: &'static str = "add";

    type Saved<B: Kernels> = ();

    fn version(&self) -> &'static str {
        "library"
    }

    fn forward<B: Kernels>(&self, [a, b]: [Float<B>; 2]) -> (Float<B>, ()) {
        (B::float_add(a, b), ())
    }

    fn backward<B: Kernels>(&self, (): (), dy: Float<B>) -> [Float<B>; 2] {
        [dy.clone(), dy]
    }

    fn cost(&self, [a, _]: &[Vec<usize>; 2]) -> (Cost, Cost) {
        let n = a.iter().product::<usize>() as f64;
        (
            Cost::new(n, 3.0 * n),
            Cost::nothing("the gradient passes through unchanged"),
        )
    }
}
