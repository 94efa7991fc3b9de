//! Products in one launch: what products in f32 (`matmul`) and on matrix cores (`matrix_cores`) have in common.

use crate::ops::gpu::wgsl::{self, Binding, Program};
use crate::ops::linear::fused_gpu::epilogue::{self, Epilogue, Store};
use burn_cubecl::tensor::CubeTensor;
use minijinja::{Value, context};
use serde::{Serialize, Serializer};
use std::array::from_fn;
use std::cmp::Reverse;
use std::fmt::Debug;
use std::hash::Hash;

/// A product with its plan.
pub(super) trait Product: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    fn program(all: Products<Self>) -> Program<Products<Self>>;

    /// Workgroups along each axis.
    fn groups(&self) -> [usize; 3];

    fn count(&self) -> usize {
        self.groups().iter().product()
    }

    /// Inner values of one part.
    fn length(&self) -> usize;

    /// An empty tensor for the stored result with the plan's parts, on the device of `like`.
    fn empty(&self, like: &CubeTensor) -> CubeTensor;

    /// Names and elements of A, B, the result and the buffers of its store.
    fn buffers(&self) -> Vec<(&'static str, &'static str)>;

    /// An item of the file's `products`.
    fn values(&self) -> Value;

    /// The file's other values, and its bindings.
    fn values_of_launch(all: &Products<Self>) -> Value;
}

/// Products in one launch, whose plans have equally many invocations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Products<P>(pub Vec<P>);

impl<P: Product> Products<P> {
    fn groups(&self) -> [usize; 3] {
        match &self.0[..] {
            [one] => one.groups(),
            several => wgsl::groups(several.iter().map(P::count).sum()),
        }
    }

    /// The buffers of one product after the other; a name ends with the product's number.
    pub(super) fn bindings(&self) -> Vec<Binding> {
        let all = self.0.iter().enumerate().flat_map(|(n, product)| {
            let buffers = product.buffers().into_iter();
            buffers.map(move |(name, of)| Binding {
                name: format!("{name}{n}"),
                of,
            })
        });
        all.collect()
    }
}

impl<P: Product> Serialize for Products<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let launched: usize = self.groups().iter().product();
        let mut end = 0;
        let products = self.0.iter().enumerate().map(|(i, product)| {
            // The first workgroup of the product, the one after its last, and whether others follow.
            let begin = end;
            end += product.count();
            let bounded = i + 1 < self.0.len() || end < launched;
            context! { groups => product.groups(), begin, end, bounded, ..product.values() }
        });
        let products: Vec<Value> = products.collect();
        let all = context! { groups => self.groups(), products, ..P::values_of_launch(self) };
        all.serialize(serializer)
    }
}

/// A·B of each pair, stored by its epilogue: `product` makes one from its index and what it stores itself, in `splits` parts. `more` are
/// the last buffers. 1 launch, or 2 if there are parts to add.
pub(super) fn multiply<P: Product, const N: usize>(
    pairs: [[&CubeTensor; 2]; N],
    thens: [Epilogue; N],
    splits: [usize; N],
    product: impl Fn(usize, Store) -> P,
    more: &[&CubeTensor],
) -> [CubeTensor; N] {
    let firsts: [Epilogue; N] = from_fn(|i| thens[i].of_parts(splits[i]));
    let products: [P; N] = from_fn(|i| product(i, firsts[i].store()));
    let outs: [CubeTensor; N] = from_fn(|i| products[i].empty(pairs[i][0]));
    // Workgroups start in order, so the longer ones come first.
    let mut order: [usize; N] = from_fn(|i| i);
    order.sort_by_key(|i| Reverse(products[*i].length()));
    let buffers = order.iter().flat_map(|i| {
        let [a, b] = pairs[*i];
        let own = [a, b, &outs[*i]].into_iter();
        own.chain(firsts[*i].buffers())
    });
    let buffers: Vec<&CubeTensor> = buffers.chain(more.iter().copied()).collect();
    let all = Products(order.map(|i| products[i].clone()).to_vec());
    let groups = all.groups();
    wgsl::launch(P::program(all), groups, &buffers);
    epilogue::finish(outs, thens, splits)
}
