//! A sum that the next kernel computes. A norm follows each product with a residual; on a GPU the product stores its parts of the inner
//! dimension, and the norm's kernel adds them to the residual while it reads its input. That saves the launch that adds the parts.

use std::sync::{Arc, Mutex, PoisonError};

use burn_cubecl::tensor::CubeTensor;

/// How a product passes its sum x `[n, d]` to the norm that follows, which writes x: until then x has no values.
#[derive(Clone, Debug, Default)]
pub struct PendingSum(Arc<Mutex<Option<Summands>>>);

/// x `[n, d]` = residual + the sum of parts.
#[derive(Clone, Debug)]
pub struct Summands {
    /// `[n, d]`
    pub residual: CubeTensor,
    /// `[parts·n, d]`
    pub parts: CubeTensor,
}

impl PendingSum {
    /// For the product's forward pass.
    pub fn put(&self, sum: Summands) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sum);
    }

    /// For the norm's forward pass; `None` if the product has computed the sum.
    pub fn take(&self) -> Option<Summands> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether x has no values yet.
    pub fn is_due(&self) -> bool {
        let sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.is_some()
    }
}
