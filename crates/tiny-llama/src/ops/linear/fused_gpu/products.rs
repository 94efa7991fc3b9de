//! The products of one launch, each with its plan. Their text is that of products in f32 (`full`) or on matrix cores (`matrix_cores`).

use super::epilogue::{self, Epilogue, Store};
use super::{full, matrix_cores};
use crate::ops::gpu::wgsl::{self, Binding, Program};
use crate::ops::linear::planner::{Plan, Problem};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use std::array::from_fn;
use std::cmp::Reverse;
use std::ops::Range;

/// A product with its plan. The plans of one launch may differ in the number of parts. On matrix cores they may also differ in the block, but not
/// in the number of invocations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Product {
    pub problem: Problem,
    pub plan: Plan,
    pub store: Store,
    /// How A and B are converted when they are staged.
    pub staged: [Staged; 2],
    /// The number of parts of the sums of squares, if A is x·gain of a norm that this product completes; otherwise 0.
    pub norm_parts: usize,
}

/// The conversion of an operand when it is staged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Staged {
    /// The operand is f32 and stays f32. Matrix cores do not take it.
    Full,
    /// The operand is f16 and stays f16.
    Short,
    /// The operand is f32 and is rounded to f16.
    Rounded,
    /// The operand is f32 and becomes two f16. Its largest magnitude is the largest of these values of the last buffer.
    Halves(Range<usize>),
}

impl Product {
    /// Returns true if matrix cores compute the product.
    pub(super) fn on_cores(&self) -> bool {
        self.staged[0] != Staged::Full
    }

    /// Returns the number of workgroups along each axis.
    pub(super) fn groups(&self) -> [usize; 3] {
        self.plan.groups(&self.problem)
    }

    /// Returns the number of workgroups.
    fn count(&self) -> usize {
        self.groups().iter().product()
    }

    /// Returns the number of inner values of one part.
    fn length(&self) -> usize {
        if self.on_cores() {
            self.problem.inner / self.plan.splits
        } else {
            self.plan.share(&self.problem)
        }
    }

    /// Allocates the stored result, with the plan's parts, on the device of `like`.
    fn empty(&self, like: &CubeTensor) -> CubeTensor {
        let dtype = if self.on_cores() && !self.store.is_linear() {
            DType::F16
        } else {
            DType::F32
        };
        self.store
            .empty(dtype, like, &self.problem, self.plan.splits)
    }

    /// Returns the names and elements of the product's buffers.
    fn buffers(&self) -> Vec<(&'static str, &'static str)> {
        if self.on_cores() {
            matrix_cores::buffers(self)
        } else {
            full::buffers(self)
        }
    }
}

/// The products of one launch, whose plans have equally many invocations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Products(pub Vec<Product>);

impl Products {
    /// Returns the kernel of this launch.
    pub(super) fn program(self) -> Program<Self> {
        let first = &self.0[0];
        let count = self.0.len();
        let (file, name) = match (&first.staged[0], count) {
            (Staged::Full, _) => ("linear/matmul.wgsl", "matmul"),
            (Staged::Halves(_), 1) => (matrix_cores::FILE, "matmul_split_matrix_cores"),
            (Staged::Halves(_), _) => (matrix_cores::FILE, "matmul_pair_split_matrix_cores"),
            (_, 1) => (matrix_cores::FILE, "matmul_matrix_cores"),
            _ => (matrix_cores::FILE, "matmul_pair_matrix_cores"),
        };
        let invocations = first.plan.threads();
        Program {
            name,
            ..Program::new(file, invocations, self)
        }
    }

    /// Returns the number of workgroups of the launch along each axis.
    fn groups(&self) -> [usize; 3] {
        match &self.0[..] {
            [product] => product.groups(),
            several => wgsl::groups(several.iter().map(Product::count).sum()),
        }
    }

    /// Joins the products' texts to the text of a launch, in which each product has its own workgroups.
    pub(super) fn dispatched(&self, bodies: &[String]) -> String {
        if let [body] = bodies {
            return format!("  let group = id;{}", body.trim_end());
        }
        let [wide, ..] = self.groups();
        let mut begin = 0;
        let mut branches = Vec::new();
        for (product, body) in self.0.iter().zip(bodies) {
            let [x, y, _] = product.groups();
            let xy = x * y;
            let end = begin + product.count();
            let indented = body.trim_end().replace("\n  ", "\n    ");
            branches.push(format!(
                "if place < {end}u {{
    let at = place - {begin}u;
    let group = vec3<u32>(at % {x}u, at / {x}u % {y}u, at / {xy}u);{indented}
  }}"
            ));
            begin = end;
        }
        format!(
            "  let place = id.y * {wide}u + id.x;\n  {}",
            branches.join(" else ")
        )
    }

    /// Returns the buffers of all products, one product after the other. A buffer's name ends with the number of its product.
    pub(super) fn bindings(&self) -> Vec<Binding> {
        let mut bindings = Vec::new();
        for (n, product) in self.0.iter().enumerate() {
            bindings.extend(
                product
                    .buffers()
                    .into_iter()
                    .map(|(name, element)| Binding {
                        name: format!("{name}{n}"),
                        element,
                    }),
            );
        }
        bindings
    }
}

impl Serialize for Products {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = if self.0[0].on_cores() {
            matrix_cores::values(self)
        } else {
            full::values(self)
        };
        values.map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// Computes A·B of each pair, in `splits` parts, stored by its epilogue. `product` makes the product with an index from the store of the first
/// launch. `more` are the last buffers. This takes 1 launch, or 2 if there are parts to add.
pub(super) fn multiply<const N: usize>(
    pairs: [[&CubeTensor; 2]; N],
    thens: [Epilogue; N],
    splits: [usize; N],
    product: impl Fn(usize, Store) -> Product,
    more: &[&CubeTensor],
) -> [CubeTensor; N] {
    let firsts: [Epilogue; N] = from_fn(|i| thens[i].of_parts(splits[i]));
    let products: [Product; N] = from_fn(|i| product(i, firsts[i].store()));
    let outs: [CubeTensor; N] = from_fn(|i| products[i].empty(pairs[i][0]));
    // Workgroups start in order, so those that take longest come first.
    let mut order: [usize; N] = from_fn(|i| i);
    order.sort_by_key(|i| Reverse(products[*i].length()));
    let mut buffers: Vec<&CubeTensor> = Vec::new();
    for i in order {
        let [a, b] = pairs[i];
        buffers.extend([a, b, &outs[i]]);
        buffers.extend(firsts[i].buffers());
    }
    buffers.extend(more);
    let all = Products(order.map(|i| products[i].clone()).to_vec());
    let groups = all.groups();
    wgsl::launch(all.program(), groups, &buffers);
    epilogue::finish(outs, thens, splits)
}
