//! Kernels written as WGSL text: what CubeCL has no words for, such as matrix cores. Only devices that compile WGSL take them.

use burn::cubecl::ir::metadata::Info;
use burn::cubecl::ir::{self, ElemType, UIntKind};
use burn::cubecl::prelude::*;
use burn::cubecl::server::KernelArguments;
use burn::cubecl::{CubeKernel, PrecompiledSource};
use burn_cubecl::tensor::CubeTensor;
use std::fmt::Debug;
use std::hash::Hash;

/// Adds a line to a text. Writing to a `String` cannot fail.
macro_rules! line {
    ($text:expr, $($part:tt)*) => {{ let _ = writeln!($text, $($part)*); }};
}
pub(super) use line;

/// A kernel's text and everything it depends on: equal values have equal texts, so that each is written and compiled once.
/// Bindings are `@group(0)`, numbered from 0, and all `read_write`, because tensors share buffers; the entry is `main`.
pub trait Program: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    /// Checked where a driver has to bound the loops of a text that is not ours.
    const MODE: ExecutionMode = ExecutionMode::Unchecked;

    /// The name in the table of kernels.
    fn name(&self) -> &'static str;

    fn text(&self) -> String;

    /// Invocations of a workgroup along each axis.
    fn workgroup(&self) -> [u32; 3];
}

/// Launches a program on contiguous tensors in the order of its bindings.
pub fn launch<P: Program>(program: P, groups: [usize; 3], buffers: &[&CubeTensor]) {
    let Some(first) = buffers.first() else { return };
    let arguments = buffers.iter().fold(KernelArguments::new(), |all, buffer| {
        debug_assert!(buffer.is_contiguous(), "kernels read contiguous tensors");
        all.with_buffer(buffer.handle.clone().binding())
    });
    launch_with(program, groups, first, arguments);
}

/// Launches a program with these buffers, or parts of buffers, on the device of `like`.
pub fn launch_with<P: Program>(
    program: P,
    groups: [usize; 3],
    like: &CubeTensor,
    arguments: KernelArguments,
) {
    let [x, y, z] = groups.map(|count| count as u32);
    let kernel = Box::new(Kernel(program));
    like.client
        .launch(kernel, CubeCount::Static(x, y, z), arguments);
}

struct Kernel<P>(P);

impl<P: Program> Kernel<P> {
    fn dim(&self) -> CubeDim {
        let [x, y, z] = self.0.workgroup();
        CubeDim::new_3d(x, y, z)
    }
}

impl<P: Program> KernelMetadata for Kernel<P> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn id(&self) -> KernelId {
        KernelId::new::<Self>()
            .info(self.0.clone())
            .cube_dim(self.dim().into())
            .mode(P::MODE)
    }

    fn address_type(&self) -> ElemType {
        UIntKind::U32.into()
    }
}

impl<P: Program> CubeKernel for Kernel<P> {
    fn define(&self) -> KernelDefinition {
        let settings = KernelSettings::new(self.dim().0, P::MODE, AddressType::U32);
        KernelDefinition {
            body: ir::Scope::root(settings.clone()),
            settings,
            info: Info::default(),
        }
    }

    fn source(&self) -> Option<PrecompiledSource> {
        Some(PrecompiledSource {
            source: self.0.text(),
            entrypoint_name: "main".into(),
            lang: "wgsl",
        })
    }
}
