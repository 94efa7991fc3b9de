//! The same kernel with a probe in every index: which element of which array does it touch, and is there such an element?
//! Devices drop or bend what lies outside, so that nothing shows in the results; the unchecked launch in the model would
//! hit a neighbour.

use std::ops::Range;

use naga::{AddressSpace, ArraySize, Expression, Function, Handle, Module, Type, TypeInner};

use super::source::without_comments;

/// Numbers in the probe's own buffer: how many went outside, then the site and the index of the first.
pub const WORDS: usize = 3;

/// A text that writes down who goes outside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    pub text: String,
    pub sites: Vec<Site>,
}

/// A place that takes an element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Of the whole expression, `out[i]`, in bytes of the text without probes.
    pub range: Range<usize>,
    pub array: String,
    pub count: u64,
    /// Whether the array is a buffer.
    pub buffer: bool,
}

/// Puts probes into a text that has been validated; `counts` are the lengths of the buffers. `None` when there is nothing
/// to probe.
pub fn probe(text: &str, counts: &[usize]) -> Option<Probed> {
    let module = naga::front::wgsl::parse_str(text).ok()?;
    let code = without_comments(text);
    let mut sites: Vec<(Site, Range<usize>)> = Vec::new();
    let functions = module.functions.iter().map(|(_, f)| f).chain(module.entry_points.iter().map(|e| &e.function));
    for function in functions {
        for (handle, expression) in function.expressions.iter() {
            let Expression::Access { base, .. } = expression else { continue };
            let Some((array, count, buffer)) = array(&module, function, *base, counts) else { continue };
            let Some(range) = function.expressions.get_span(handle).to_range() else { continue };
            let Some(index) = index(&code, &range) else { continue };
            // A text stands for itself once, however often the tree refers to it.
            if sites.iter().all(|(_, known)| *known != index) {
                sites.push((Site { range, array, count, buffer }, index));
            }
        }
    }
    (!sites.is_empty()).then(|| Probed { text: insert(text, &sites, counts.len()), sites: sites.into_iter().map(|(site, _)| site).collect() })
}

/// Name and length of the array that `base` is, and whether it is a buffer.
fn array(module: &Module, function: &Function, base: Handle<Expression>, counts: &[usize]) -> Option<(String, u64, bool)> {
    let fixed = |ty: Handle<Type>| match module.types[ty].inner {
        TypeInner::Array { size: ArraySize::Constant(count), .. } => Some(u64::from(count.get())),
        _ => None,
    };
    match &function.expressions[base] {
        Expression::GlobalVariable(global) => {
            let variable = &module.global_variables[*global];
            let buffer = matches!(variable.space, AddressSpace::Storage { .. });
            let count = match variable.binding {
                Some(place) if buffer => counts.get(place.binding as usize).map(|count| *count as u64),
                _ => fixed(variable.ty),
            };
            Some((variable.name.clone()?, count?, buffer))
        }
        Expression::LocalVariable(local) => {
            let variable = &function.local_variables[*local];
            Some((variable.name.clone()?, fixed(variable.ty)?, false))
        }
        _ => None,
    }
}

/// The text between the last brackets of `a[…]`.
fn index(code: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let text = code.get(range.clone())?;
    let end = text.strip_suffix(']')?.len();
    let mut depth = 1_usize;
    let start = text[..end].rfind(|c| {
        match c {
            ']' => depth += 1,
            '[' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    Some(range.start + start + 1..range.start + end)
}

fn insert(text: &str, sites: &[(Site, Range<usize>)], binding: usize) -> String {
    let mut pieces: Vec<(usize, String)> = Vec::new();
    for (number, (site, index)) in sites.iter().enumerate() {
        pieces.push((index.start, format!("perflings_probe({number}u, {}u, u32(", site.count)));
        pieces.push((index.end, "))".to_owned()));
    }
    pieces.sort_by_key(|(at, _)| *at);
    let mut out = String::with_capacity(text.len() + 64 * pieces.len());
    let mut done = 0;
    for (at, piece) in pieces {
        out.push_str(&text[done..at]);
        out.push_str(&piece);
        done = at;
    }
    out.push_str(&text[done..]);
    out + &format!(
        "
@group(0) @binding({binding}) var<storage, read_write> perflings_outside: array<atomic<u32>>;
fn perflings_probe(site: u32, count: u32, index: u32) -> u32 {{
    if (index >= count && atomicAdd(&perflings_outside[0], 1u) == 0u) {{
        atomicStore(&perflings_outside[1], site);
        atomicStore(&perflings_outside[2], index);
    }}
    return index;
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_probed_once() {
        let text = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>; // x[1]
var<workgroup> w: array<f32, 4>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    w[i % 4u] = x[i];
    y[u32(x[i + 1u])] += w[/* ] */ i];
}";
        let probed = probe(text, &[10, 20]).expect("has indices");
        let found: Vec<_> = probed.sites.iter().map(|site| (&text[site.range.clone()], site.count, site.buffer)).collect();
        let mut wanted = [
            ("w[i % 4u]", 4, false),
            ("x[i]", 10, true),
            ("x[i + 1u]", 10, true),
            ("y[u32(x[i + 1u])]", 20, true),
            ("w[/* ] */ i]", 4, false),
        ];
        wanted.sort_unstable();
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, wanted);
        naga::front::wgsl::parse_str(&probed.text).expect("still reads");
        assert!(probe("fn f() {}", &[]).is_none());
    }
}
