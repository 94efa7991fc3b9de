//! Compares a kernel's text with its exercise: the extensions that it may enable, its entry point and its buffers.

use naga::valid::ModuleInfo;
use naga::{
    AddressSpace, ArraySize, EntryPoint, Handle, Module, Scalar, ShaderStage, StorageAccess, Type,
    TypeInner,
};

use super::message::whole;
use super::{Source, bytes_of};
use crate::kernel::{KernelBinding, KernelError, KernelRole, KernelSpec};

impl Source<'_> {
    /// Refuses `enable` of any extension that is not in `allowed`. `code` is the filled text without its comments.
    pub(super) fn check_extensions(&self, code: &str, allowed: &[&str]) -> Result<(), KernelError> {
        let refused = code
            .split(';')
            .filter_map(|statement| statement.trim_start().strip_prefix("enable"))
            .filter_map(|enabled| enabled.split_once(char::is_whitespace))
            .flat_map(|(_, names)| names.split(',').map(str::trim))
            .find(|name| !allowed.contains(name));
        match refused {
            Some(name) => {
                let message = format!("`{name}` is an extension that not every device has");
                Err(self.error(&self.first_of(&[name]), message, "plain WGSL with f32"))
            }
            None => Ok(()),
        }
    }

    /// Returns the only entry point, a compute kernel that is called `main`.
    pub(super) fn entry<'m>(&self, module: &'m Module) -> Result<&'m EntryPoint, KernelError> {
        const MAIN: &str = "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) \
                            id: vec3<u32>) { … }";
        const ONE: &str = "one @compute fn main, and plain functions that it calls";
        let entry = match module.entry_points.as_slice() {
            [entry] => entry,
            [] => {
                let message = "there is no entry point: no function is marked @compute";
                return Err(self.error(&self.first_of(&["fn main"]), message, MAIN));
            }
            several => {
                let names: Vec<_> = several
                    .iter()
                    .map(|entry| format!("`{}`", entry.name))
                    .collect();
                let message = format!(
                    "there are {} entry points, {}; only one can be launched",
                    several.len(),
                    names.join(" and ")
                );
                let second = format!("fn {}", several[1].name);
                return Err(self.error(&self.first_of(&[&second]), message, ONE));
            }
        };
        let declaration = format!("fn {}", entry.name);
        if entry.stage != ShaderStage::Compute {
            let words = ["@vertex", "@fragment", &declaration];
            return Err(self.error(
                &self.first_of(&words),
                "the entry point is not a compute kernel",
                MAIN,
            ));
        }
        let name = &entry.name;
        if name != "main" {
            let message = format!("the entry point is called `{name}`; only `main` is launched");
            return Err(self.error(&self.first_of(&[&declaration]), message, "fn main"));
        }
        if let Some((_, constant)) = module.overrides.iter().next() {
            let name = constant.name.as_deref().unwrap_or("override");
            let message = format!("`{name}` is an override, and overrides are not set here");
            return Err(self.error(&self.first_of(&["override "]), message, "`const`"));
        }
        Ok(entry)
    }

    /// Checks that the text declares every buffer of the exercise, each with its number, access and element type.
    pub(super) fn check_bindings_declared(
        &self,
        module: &Module,
        spec: &KernelSpec,
    ) -> Result<(), KernelError> {
        let expected = |index: usize| {
            let KernelBinding { name, element, .. } = &spec.bindings[index];
            let word = element.into_str();
            format!("@group(0) @binding({index}) var<storage, read_write> {name}: array<{word}>;")
        };
        let last = spec.bindings.len().saturating_sub(1);
        let mut found = vec![None; spec.bindings.len()];
        for (handle, variable) in module.global_variables.iter() {
            let Some(place) = variable.binding else {
                continue;
            };
            let span = module.global_variables.get_span(handle);
            let name = variable.name.clone().unwrap_or_default();
            let index = place.binding as usize;
            let wrong = |message: String, instead: String| {
                Err(self.error(&bytes_of(span), message, instead))
            };
            let group = place.group;
            if group != 0 || index > last {
                let message = format!(
                    "`{name}` is @group({group}) @binding({index}); \
                     this exercise has @group(0) and bindings 0 to {last}"
                );
                return wrong(message, expected(index.min(last)));
            }
            if let Some(other) = found[index].replace(name.clone()) {
                let message = format!("`{other}` and `{name}` are both @binding({index})");
                return wrong(message, format!("a different number for each, 0 to {last}"));
            }
            let both = StorageAccess::LOAD | StorageAccess::STORE;
            if !matches!(variable.space, AddressSpace::Storage { access } if access.contains(both))
            {
                let message = format!(
                    "`{name}` is not var<storage, read_write>: \
                     buffers share memory here, so every buffer is bound that way"
                );
                return wrong(message, expected(index));
            }
            let element = spec.bindings[index].element;
            if !is_array_of(module, variable.ty, element.into()) {
                let message = format!("`{name}` is not array<{}>", element.into_str());
                return wrong(message, expected(index));
            }
        }
        match found.iter().position(Option::is_none) {
            Some(missing) => Err(whole(
                format!("@binding({missing}) is not declared"),
                expected(missing),
            )),
            None => Ok(()),
        }
    }

    /// Checks that the entry point uses every buffer. A compiler removes an unused buffer, and the numbers of the others then no longer fit.
    pub(super) fn check_bindings_used(
        &self,
        module: &Module,
        info: &ModuleInfo,
        spec: &KernelSpec,
    ) -> Result<(), KernelError> {
        let uses = info.get_entry_point(0);
        for (handle, variable) in module.global_variables.iter() {
            let Some(place) = &variable.binding else {
                continue;
            };
            if !uses[handle].is_empty() {
                continue;
            }
            let name = variable.name.as_deref().unwrap_or_default();
            let missing = match spec.bindings[place.binding as usize].role {
                KernelRole::In => "read",
                KernelRole::Out | KernelRole::InOut => "written",
            };
            let message = format!(
                "`{name}` is never {missing}: an unused binding is removed, \
                 and the buffers no longer match"
            );
            let count = spec.bindings.len();
            let instead = format!("a kernel that uses each of its {count} buffers");
            let span = module.global_variables.get_span(handle);
            return Err(self.error(&bytes_of(span), message, instead));
        }
        Ok(())
    }
}

/// Returns true for the type `array<element>`, whose length is the buffer's.
fn is_array_of(module: &Module, ty: Handle<Type>, element: Scalar) -> bool {
    match module.types[ty].inner {
        TypeInner::Array {
            base,
            size: ArraySize::Dynamic,
            ..
        } => module.types[base].inner == TypeInner::Scalar(element),
        _ => false,
    }
}
