//! Limits that every WebGPU device keeps, and a kernel with it.

use naga::valid::ModuleInfo;
use naga::{AddressSpace, EntryPoint, Handle, Module, Span, Type};

use super::explain::whole;
use super::validate::Source;
use crate::protocol::{KernelError, Product};

const MAX_SIZE: [u32; 3] = [256, 256, 64];
const MAX_INVOCATIONS: u32 = 256;
const MAX_WORKGROUP_BYTES: u64 = 16 * 1024;
const MAX_WORKGROUPS: u64 = 65_535;
const MAX_PRIVATE_BYTES: u64 = 8 * 1024;

impl Source<'_> {
    /// The workgroup is of a size that every device takes.
    pub fn workgroup(&self, entry: &EntryPoint) -> Result<(), KernelError> {
        let [x, y, z] = entry.workgroup_size;
        let total = x.saturating_mul(y).saturating_mul(z);
        let too_long = entry
            .workgroup_size
            .iter()
            .zip(MAX_SIZE)
            .any(|(size, most)| *size > most);
        if too_long || total > MAX_INVOCATIONS || total == 0 {
            let message = format!(
                "a workgroup of {x} × {y} × {z} = {total} invocations; every device takes up to {MAX_INVOCATIONS}, and {} × {} × {} along x, y and z",
                MAX_SIZE[0], MAX_SIZE[1], MAX_SIZE[2]
            );
            return Err(self.near(
                &["@workgroup_size"],
                message,
                "@workgroup_size(64), or (16, 16) for a matrix",
            ));
        }
        Ok(())
    }

    /// Bytes of workgroup memory.
    pub fn memory(&self, module: &Module, info: &ModuleInfo) -> Result<u64, KernelError> {
        let uses = info.get_entry_point(0);
        let bytes = |ty: Handle<Type>| u64::from(module.types[ty].inner.size(module.to_ctx()));
        let (mut shared, mut private) = (0_u64, 0_u64);
        let mut last = [Span::UNDEFINED; 2];
        for (handle, variable) in module
            .global_variables
            .iter()
            .filter(|(handle, _)| !uses[*handle].is_empty())
        {
            let span = module.global_variables.get_span(handle);
            match variable.space {
                AddressSpace::WorkGroup => {
                    (shared, last[0]) = (shared.saturating_add(bytes(variable.ty)), span)
                }
                AddressSpace::Private => {
                    (private, last[1]) = (private.saturating_add(bytes(variable.ty)), span)
                }
                _ => {}
            }
        }
        for function in module
            .functions
            .iter()
            .map(|(_, f)| f)
            .chain(module.entry_points.iter().map(|e| &e.function))
        {
            for (handle, variable) in function.local_variables.iter() {
                (private, last[1]) = (
                    private.saturating_add(bytes(variable.ty)),
                    function.local_variables.get_span(handle),
                );
            }
        }
        let shape = &self.shape.label;
        if shared > MAX_WORKGROUP_BYTES {
            let message = format!(
                "{shared} bytes of workgroup memory in shape `{shape}`; every device has {MAX_WORKGROUP_BYTES}"
            );
            return Err(self.spanned(last[0], message, "smaller tiles"));
        }
        if private > MAX_PRIVATE_BYTES {
            let message = format!(
                "{private} bytes of variables for each invocation in shape `{shape}`; up to {MAX_PRIVATE_BYTES} are allowed"
            );
            return Err(self.spanned(last[1], message, "smaller arrays, or workgroup memory"));
        }
        Ok(shared)
    }

    /// Workgroups along each axis.
    pub fn grid(&self, grid: &[Product], workgroup: [u32; 3]) -> Result<[u32; 3], KernelError> {
        let mut sizes = self.shape.sizes.clone();
        let own = ["WX", "WY", "WZ"].map(str::to_owned);
        sizes.extend(own.into_iter().zip(workgroup.map(u64::from)));
        let mut counts = [1; 3];
        for (axis, product) in grid.iter().enumerate().take(3) {
            let groups = product
                .value(&sizes)
                .map_err(|what| whole(what, "another grid in exercise.toml"))?;
            if groups > MAX_WORKGROUPS {
                let name = ["x", "y", "z"][axis];
                let message = format!(
                    "shape `{}` takes {groups} workgroups along {name}; every device launches up to {MAX_WORKGROUPS} along each axis",
                    self.shape.label
                );
                return Err(self.near(
                    &["@workgroup_size"],
                    message,
                    format!("a larger workgroup along {name}"),
                ));
            }
            counts[axis] = u32::try_from(groups).unwrap_or(1);
        }
        Ok(counts)
    }
}
