//! The rules by which one launch does the work of two operations. All of them are for GPUs. Each saves a launch, or a pass over memory;
//! the mathematics stay the same. `PERFLINGS_WITHOUT_FUSIONS=norm-in-products,swiglu-in-product` switches rules off, to see what they bring.

use std::sync::OnceLock;

use strum::{EnumIter, IntoEnumIterator as _, IntoStaticStr};

/// A rule. The operations that it joins count its work in their costs, and their names in the kernel table name both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub enum Fusion {
    /// In f16 on matrix cores, a norm with one reader has no launch. The product or embedding before it stores x·gain in f16 and the sums of
    /// squares of x's rows; the product behind it multiplies the rows of its result by 1/rms, and writes the normed x for its backward
    /// pass. The rule does not apply where the product before is in parts, or where the reader has few outputs.
    NormInProducts,
    /// The products that give q and k rotate them, and attention rotates their gradients back.
    RopeInProduct,
    /// The product that gives gates and ups computes the activation, and the product behind it that activation's backward pass.
    SwigluInProduct,
}

impl Fusion {
    /// Returns true unless `PERFLINGS_WITHOUT_FUSIONS` switches the rule off. The operations then apply it where formats and sizes allow.
    pub fn is_on(self) -> bool {
        static OFF: OnceLock<Vec<Fusion>> = OnceLock::new();
        let off = OFF.get_or_init(|| {
            let named = std::env::var("PERFLINGS_WITHOUT_FUSIONS").unwrap_or_default();
            Self::iter().filter(|rule| rule.is_named(&named)).collect()
        });
        !off.contains(&self)
    }

    /// Returns true if a list of names, separated by commas, contains this rule's name, or is `all`.
    fn is_named(self, list: &str) -> bool {
        list == "all" || list.split(',').any(|name| name.trim() == self.into_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_some_rules_or_all() {
        let named = |list: &str| Fusion::iter().filter(|rule| rule.is_named(list)).count();
        assert_eq!(named(""), 0);
        assert_eq!(named("rope-in-product, swiglu-in-product"), 2);
        assert_eq!(named("all"), Fusion::iter().count());
        assert!(Fusion::NormInProducts.is_named("x,norm-in-products"));
    }
}
