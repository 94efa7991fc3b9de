//! The residual stream: a sum to which the halves of each block add, and which norms read. A sum is computed only when it is read, because
//! the norm that reads it, and the product that reads the norm, decide how (`fusion`).

use burn::tensor::{Device, Int, Tensor};

use super::add::Add;
use super::embedding::Embedding;
use super::fusion::Fusion;
use super::linear::{LinearResidual, fused_gpu};
use super::rms_norm::RmsNorm;
use super::shared_work::SharedWork;
use super::versions::{Input, Versions};
use super::{Parameter, Scope, apply};
use protocol::config::Matmul;

/// The residual stream, one matrix x `[n, d]`.
#[derive(Debug)]
pub struct Residual<'a> {
    versions: &'a Versions,
    /// The stream as the last norm read it; `None` before the first norm.
    x: Option<Tensor<2>>,
    /// The sum that the next norm still has to compute.
    next: Next<'a>,
}

/// The next step of a stream, which its next norm computes.
#[derive(Debug)]
enum Next<'a> {
    Nothing,
    /// The stream begins with the rows of a table for these tokens.
    Embedding(&'a Parameter, Tensor<1, Int>),
    /// The stream adds y·Wᵀ; y is `[n, in]`, W `[d, in]`.
    Sum(Scope, Tensor<2>, &'a Parameter),
}

/// A norm of the stream, which is computed when its readers are known.
#[derive(Debug)]
pub struct Normed<'s, 'a> {
    stream: &'s mut Residual<'a>,
    scope: Scope,
    gain: &'s Parameter,
}

impl<'a> Residual<'a> {
    /// Begins a stream with the rows of a table `[vocab, d]` for tokens `[n]`.
    pub fn embedding(versions: &'a Versions, table: &'a Parameter, tokens: Tensor<1, Int>) -> Self {
        Self {
            versions,
            x: None,
            next: Next::Embedding(table, tokens),
        }
    }

    /// Adds y·Wᵀ; y is `[n, in]`, W `[d, in]`. Our own product also accepts y as the last third of `[3n, in]`, which is what
    /// [`Versions::gated`] may return.
    ///
    /// # Panics
    /// When no norm has read the stream since the last sum.
    pub fn add(&mut self, scope: Scope, y: Tensor<2>, w: &'a Parameter) {
        let read = matches!(self.next, Next::Nothing);
        assert!(read, "a norm reads the stream before the sum of {scope:?}");
        self.next = Next::Sum(scope, y, w);
    }

    /// Returns the norm of the stream with a gain `[1, d]`.
    pub fn norm<'s>(&'s mut self, scope: Scope, gain: &'s Parameter) -> Normed<'s, 'a> {
        let stream = self;
        Normed {
            stream,
            scope,
            gain,
        }
    }

    /// Returns the stream `[n, d]` as the last norm read it; `None` before the first norm.
    pub fn read(&self) -> Option<&Tensor<2>> {
        self.x.as_ref()
    }
}

impl Normed<'_, '_> {
    /// Computes the norm `[n, d]` for any number of readers.
    pub fn value(self) -> Tensor<2> {
        self.computed(None).x
    }

    /// Computes the norm for one reader, the product with W.
    pub fn for_product(self, w: &Parameter) -> Input {
        self.computed(Some(w))
    }

    /// Computes the sum that the stream still has to add, and then the norm.
    fn computed(self, reader: Option<&Parameter>) -> Input {
        let versions = self.stream.versions;
        let (stream, shared) = match std::mem::replace(&mut self.stream.next, Next::Nothing) {
            Next::Nothing => (self.stream.x.take(), SharedWork::default()),
            Next::Embedding(table, tokens) => self.embedding(table, tokens, reader),
            Next::Sum(scope, y, w) => self.sum(scope, y, w, reader),
        };
        let x = stream.expect("a stream begins with an embedding"); // [n, d]
        let norm = RmsNorm {
            version: versions.config.norm,
            on_trunk: self.scope.layer.is_some(),
            format: versions.format,
            shared: shared.clone(),
        };
        let inputs = [x.clone(), self.gain.value.clone()];
        self.stream.x = Some(x);
        Input {
            x: apply(self.scope, norm, inputs), // [n, d]
            shared,
        }
    }

    fn embedding(
        &self,
        table: &Parameter,
        tokens: Tensor<1, Int>,
        reader: Option<&Parameter>,
    ) -> (Option<Tensor<2>>, SharedWork) {
        let sizes = [tokens.dims()[0], table.value.dims()[1]];
        let shared = SharedWork::new(self.gain_in_products(reader, &tokens.device(), sizes));
        let embedding = Embedding {
            tokens,
            version: self.stream.versions.config.matmul,
            shared: shared.clone(),
        };
        let x = apply(
            Scope::outside("embedding"),
            embedding,
            [table.value.clone()],
        ); // [n, d]
        (Some(x), shared)
    }

    /// Computes x + y·Wᵀ. Our own product does both in one operation.
    fn sum(
        &self,
        scope: Scope,
        y: Tensor<2>,
        w: &Parameter,
        reader: Option<&Parameter>,
    ) -> (Option<Tensor<2>>, SharedWork) {
        let versions = self.stream.versions;
        let Some(x) = self.stream.x.clone() else {
            return (None, SharedWork::default());
        };
        if versions.config.matmul == Matmul::Library {
            let y = versions.linear(scope, y, w); // [n, d]
            let part = match scope.part {
                "mlp.down" => "mlp.residual",
                _ => "attention.residual",
            };
            let x = apply(Scope { part, ..scope }, Add, [x, y]); // [n, d]
            return (Some(x), SharedWork::default());
        }
        let shared = SharedWork::new(self.gain_in_sum(&x, w, reader));
        let op = LinearResidual {
            format: versions.format,
            operand: w.operand.clone(),
            shared: shared.clone(),
            gated: y.dims()[0] > x.dims()[0],
        };
        let x = apply(scope, op, [y, w.value.clone(), x]); // [n, d]
        (Some(x), shared)
    }

    /// Returns the norm's gain `[1, d]` if the product with W, which is added to x `[n, d]`, does a part of the norm. A product whose parts
    /// another launch adds cannot do this.
    fn gain_in_sum(
        &self,
        x: &Tensor<2>,
        w: &Parameter,
        reader: Option<&Parameter>,
    ) -> Option<Tensor<2>> {
        let versions = self.stream.versions;
        let [_, inner] = w.value.dims();
        let in_parts = fused_gpu::is_in_parts(x, inner, versions.format);
        // Matrix cores, which do a part of the norm, read whole vectors.
        if in_parts || !inner.is_multiple_of(4) {
            return None;
        }
        self.gain_in_products(reader, &x.device(), x.dims())
    }

    /// Returns the norm's gain `[1, d]` if the operations around the norm do its work; x has the sizes `[n, d]`. The product that reads the
    /// norm must be able to do the rest of it.
    fn gain_in_products(
        &self,
        reader: Option<&Parameter>,
        on: &Device,
        x: [usize; 2],
    ) -> Option<Tensor<2>> {
        let versions = self.stream.versions;
        let reader_applies_norm =
            |w: &Parameter| fused_gpu::applies_norm(on, x, w.value.dims()[0], versions.format);
        let in_products = reader.is_some_and(reader_applies_norm)
            && Fusion::NormInProducts.is_on()
            && versions.own_norm(self.scope.part);
        in_products.then(|| self.gain.value.clone().without_autodiff()) // [1, d]
    }
}
