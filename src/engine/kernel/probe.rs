//! The same kernel with probes in it. In every index: is there such an element? Devices drop or bend what lies outside, so
//! that nothing shows in the results; the unchecked launch in the model would hit a neighbour. In every loop: how many
//! rounds? So a loop without end ends here, and is named.

use std::ops::Range;

use naga::{
    AddressSpace, ArraySize, Block, Expression, Function, Handle, Module, Statement, TypeInner,
};

use super::source::without_comments;
use super::tree::functions;

/// Numbers in the probe's own buffer: how many went outside, site and index of the first; how many left a loop because it
/// went on too long, and that loop's site.
pub const WORDS: usize = 5;

/// A text that records indices outside of their array, and loops with too many rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    pub text: String,
    pub sites: Vec<Site>,
    /// Heads of the loops, in bytes of the text without probes.
    pub loops: Vec<Range<usize>>,
}

/// A place that takes an element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Of the whole expression, `out[i]`, in bytes of the text without probes.
    pub range: Range<usize>,
    pub array: String,
    pub count: u64,
}

/// Puts probes into a text that has been validated; `counts` are the lengths of the buffers, `rounds` what an invocation
/// may do in all its loops together. Without `indices` only loops are probed. `None` when there is nothing to probe.
pub fn probe(text: &str, counts: &[usize], rounds: u32, indices: bool) -> Option<Probed> {
    let module = naga::front::wgsl::parse_str(text).ok()?;
    let code = without_comments(text);
    let mut sites: Vec<(Site, Range<usize>)> = Vec::new();
    let mut loops: Vec<Range<usize>> = Vec::new();
    for function in functions(&module) {
        for (handle, expression) in function.expressions.iter().filter(|_| indices) {
            // A text stands for itself once, however often the tree refers to it.
            if let Expression::Access { base, .. } = expression
                && let Some((array, count)) = array(&module, function, *base, counts)
                && let Some(range) = function.expressions.get_span(handle).to_range()
                && let Some(index) = index(&code, &range)
                && sites.iter().all(|(_, known)| *known != index)
            {
                let site = Site {
                    range,
                    array,
                    count,
                };
                sites.push((site, index));
            }
        }
        heads(&code, &function.body, &mut loops);
    }
    if sites.is_empty() && loops.is_empty() {
        return None;
    }
    let text = insert(text, &sites, &loops, counts.len(), rounds);
    Some(Probed {
        text,
        sites: sites.into_iter().map(|(site, _)| site).collect(),
        loops,
    })
}

/// The text of every loop up to its opening brace.
fn heads(code: &str, block: &Block, found: &mut Vec<Range<usize>>) {
    for (statement, span) in block.span_iter() {
        match statement {
            Statement::Block(inner) => heads(code, inner, found),
            Statement::If { accept, reject, .. } => {
                heads(code, accept, found);
                heads(code, reject, found);
            }
            Statement::Switch { cases, .. } => {
                cases.iter().for_each(|case| heads(code, &case.body, found))
            }
            Statement::Loop {
                body, continuing, ..
            } => {
                if let Some(range) = span.to_range()
                    && let Some(text) = code.get(range.clone())
                    && ["for", "while", "loop"]
                        .iter()
                        .any(|word| text.starts_with(word))
                    && let Some(brace) = text.find('{')
                    && let head = (range.start..range.start + brace + 1)
                    && !found.contains(&head)
                {
                    found.push(head);
                }
                heads(code, body, found);
                heads(code, continuing, found);
            }
            _ => {}
        }
    }
}

/// Name and length of the array that `base` is. An invocation's own arrays are left alone: an index outside of those
/// spoils nobody else's numbers.
fn array(
    module: &Module,
    function: &Function,
    base: Handle<Expression>,
    counts: &[usize],
) -> Option<(String, u64)> {
    let Expression::GlobalVariable(global) = function.expressions[base] else {
        return None;
    };
    let variable = &module.global_variables[global];
    let count = match (&variable.binding, &module.types[variable.ty].inner) {
        (Some(place), _) if matches!(variable.space, AddressSpace::Storage { .. }) => {
            *counts.get(place.binding as usize)? as u64
        }
        (
            _,
            TypeInner::Array {
                size: ArraySize::Constant(count),
                ..
            },
        ) => count.get().into(),
        _ => return None,
    };
    Some((variable.name.clone()?, count))
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

fn insert(
    text: &str,
    sites: &[(Site, Range<usize>)],
    loops: &[Range<usize>],
    binding: usize,
    rounds: u32,
) -> String {
    let mut pieces: Vec<(usize, String)> = Vec::new();
    for (number, (site, index)) in sites.iter().enumerate() {
        pieces.push((
            index.start,
            format!("perflings_index({number}u, {}u, u32(", site.count),
        ));
        pieces.push((index.end, "))".to_owned()));
    }
    for (number, head) in loops.iter().enumerate() {
        pieces.push((
            head.end,
            format!(" if (perflings_round({number}u)) {{ break; }} "),
        ));
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
@group(0) @binding({binding}) var<storage, read_write> perflings_seen: array<atomic<u32>>;
var<private> perflings_rounds: u32;
fn perflings_index(site: u32, count: u32, index: u32) -> u32 {{
    if (index >= count && atomicAdd(&perflings_seen[0], 1u) == 0u) {{
        atomicStore(&perflings_seen[1], site);
        atomicStore(&perflings_seen[2], index);
    }}
    return index;
}}
fn perflings_round(site: u32) -> bool {{
    perflings_rounds += 1u;
    if (perflings_rounds <= {rounds}u) {{
        return false;
    }}
    if (atomicAdd(&perflings_seen[3], 1u) == 0u) {{
        atomicStore(&perflings_seen[4], site);
    }}
    return true;
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_and_loop_is_probed_once() {
        let text = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>; // x[1]
var<workgroup> w: array<f32, 4>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    w[i % 4u] = x[i];
    for (var k = 0u; k < 4u; k++) /* { */ {
        y[u32(x[i + 1u])] += w[/* ] */ i];
        while (true) { if (k > 1u) { break; } continue; }
    }
    loop { break; }
}";
        let probed = probe(text, &[10, 20], 1000, true).expect("has indices");
        let found: Vec<_> = probed
            .sites
            .iter()
            .map(|site| (&text[site.range.clone()], site.count))
            .collect();
        let mut wanted = [
            ("w[i % 4u]", 4),
            ("x[i]", 10),
            ("x[i + 1u]", 10),
            ("y[u32(x[i + 1u])]", 20),
            ("w[/* ] */ i]", 4),
        ];
        wanted.sort_unstable();
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, wanted);
        let heads: Vec<_> = probed
            .loops
            .iter()
            .map(|range| &text[range.clone()])
            .collect();
        assert_eq!(
            heads,
            [
                "for (var k = 0u; k < 4u; k++) /* { */ {",
                "while (true) {",
                "loop {"
            ]
        );
        naga::front::wgsl::parse_str(&probed.text).expect("still reads");
        let loops = probe(text, &[10, 20], 1000, false).expect("has loops");
        assert_eq!((loops.sites.len(), loops.loops.len()), (0, 3));
        assert!(probe("fn f() {}", &[], 1, true).is_none());
    }
}
