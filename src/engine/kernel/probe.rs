//! The same kernel with probes in it. In every index: is there such an element? Devices drop or bend what lies outside, so
//! that nothing shows in the results; the unchecked launch in the model would hit a neighbour. In every index into memory that
//! invocations share: how often, and which element do the first invocations take? In every loop: how many rounds? So a loop
//! without end ends here, and is named. In workgroup memory also: does another invocation touch it between two barriers?

use std::ops::Range;

use naga::valid::{Capabilities, FunctionInfo, ModuleInfo, ValidationFlags, Validator};
use naga::{
    AddressSpace, ArraySize, Block, BuiltIn, Expression, Function, Handle, Module, Statement,
    TypeInner,
};

use super::race::{self, Cell, Single, Watch};
use super::source::without_comments;
use super::tree::{blocks, root};

/// Numbers at the beginning of the probe's own buffer: how many went outside, site and index of the first; how many left a
/// loop because it went on too long, and that loop's site; how many invocations raced, site and index of the first.
const WORDS: usize = 8;
/// Invocations, from a workgroup's first on, of which each site keeps the first index.
const LANES: usize = 8;
/// Numbers for each site after that: how often, and one more than the first index of each lane.
const SITE: usize = 1 + LANES;

/// A text that records indices outside of their array, and loops with too many rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    pub text: String,
    pub sites: Vec<Site>,
    /// Heads of the loops, in bytes of the text without probes.
    pub loops: Vec<Range<usize>>,
    /// Numbers that the watch over workgroup memory keeps.
    watched: usize,
}

/// A place that takes an element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Of the whole expression, `out[i]`, in bytes of the text without probes.
    pub range: Range<usize>,
    pub array: String,
    pub count: u64,
    /// Which memory it is in, where that is more than an invocation's own.
    pub memory: Option<Memory>,
    cell: Option<Cell>,
}

/// Memory that invocations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The buffer with this binding.
    Buffer(usize),
    Workgroup,
}

/// What the probes of a launch saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The first index outside of its array: site and index.
    pub outside: Option<(usize, u32)>,
    /// The first element of workgroup memory that two invocations touch between two barriers, one of them to write: site and index.
    pub race: Option<(usize, u32)>,
    /// The first loop that went on too long.
    pub endless: Option<usize>,
    /// For each site, how often it was passed, and how many lanes took elements side by side.
    pub sites: Vec<(u32, usize)>,
}

impl Probed {
    /// Numbers in the probe's own buffer.
    pub fn words(&self) -> usize {
        WORDS + SITE * self.sites.len() + self.watched
    }

    /// What the numbers in the buffer say.
    pub fn read(&self, words: &[u32]) -> Seen {
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let site = |site: usize| {
            let at = WORDS + SITE * site;
            let first = (1..=LANES).map(|lane| word(at + lane));
            (word(at), side_by_side(&first.collect::<Vec<_>>()))
        };
        Seen {
            outside: (word(0) > 0).then(|| (word(1) as usize, word(2))),
            race: (word(5) > 0).then(|| (word(6) as usize, word(7))),
            endless: (word(3) > 0).then(|| word(4) as usize),
            sites: (0..self.sites.len()).map(site).collect(),
        }
    }
}

/// How many lanes take the element after the one of the lane before, from the first on. All lanes may take the same one.
fn side_by_side(first: &[u32]) -> usize {
    let steps = [0, 1].map(|step| {
        let mut lanes = first.iter().zip(0..);
        lanes.position(|(index, lane)| *index == 0 || *index != first[0] + step * lane)
    });
    let runs = steps.map(|end| end.unwrap_or(first.len()));
    if runs[0] == first.len() {
        runs[0]
    } else {
        runs[1]
    }
}

/// Puts probes into a text that has been validated; `counts` are the lengths of the buffers, `rounds` what an invocation
/// may do in all its loops together, `grid` the workgroups. Without `indices` only loops are probed. `None` when there is
/// nothing to probe.
pub fn probe(
    text: &str,
    counts: &[usize],
    grid: [u32; 3],
    rounds: u32,
    indices: bool,
) -> Option<Probed> {
    let module = naga::front::wgsl::parse_str(text).ok()?;
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
    let info = validator.validate(&module).ok()?;
    let code = without_comments(text);
    let mut sites: Vec<(Site, Range<usize>)> = Vec::new();
    let mut loops: Vec<Range<usize>> = Vec::new();
    let mut barriers = Vec::new();
    let mut singles: Vec<(Range<usize>, Single)> = Vec::new();
    let watch = Watch::new(&module);
    for (function, types) in functions(&module, &info) {
        let touched = race::touched(function);
        for (handle, expression) in function.expressions.iter().filter(|_| indices) {
            // A text stands for itself once, however often the tree refers to it.
            // An index that is a number can be no place outside; for races it counts.
            if let Expression::Access { base, .. } | Expression::AccessIndex { base, .. } =
                expression
                && let Some((count, memory)) = length(&module, function, types, *base, counts)
                && (memory == Some(Memory::Workgroup)
                    || matches!(expression, Expression::Access { .. }))
                && let Some(range) = function.expressions.get_span(handle).to_range()
                && let Some(index) = index(&code, &range)
                && sites.iter().all(|(_, known)| *known != index)
            {
                let array = code[range.start..index.start - 1].trim().to_owned();
                let site = Site {
                    range,
                    array,
                    count,
                    memory,
                    cell: (memory == Some(Memory::Workgroup))
                        .then(|| watch.cell(&module, function, &touched, *base, handle))
                        .flatten()
                        // Another element in the index would come between a row and what is taken of it.
                        .filter(|_| !code[index.clone()].contains('[')),
                };
                sites.push((site, index));
            }
        }
        heads(&code, &function.body, &mut loops);
        race::barriers(&function.body, &mut barriers);
        if indices {
            singles.extend(watch.singles(&module, function));
        }
    }
    if sites.is_empty() && loops.is_empty() {
        return None;
    }
    let put = |watch: Option<&Watch>| {
        let mut pieces = lane(&module, &code, watch.map(|_| grid));
        let barriers = barriers.iter().filter(|_| watch.is_some());
        pieces.extend(barriers.map(|at| (*at, race::BARRIER.to_owned())));
        let noted = singles.iter().filter(|_| watch.is_some());
        for (number, (range, single)) in (sites.len()..).zip(noted) {
            let (before, behind) = single.pieces(number);
            pieces.extend([(range.start, before), (range.end, behind)]);
        }
        let watch = watch.map(|watch| (watch, WORDS + SITE * (sites.len() + singles.len())));
        insert(text, &sites, &loops, pieces, counts.len(), rounds, watch)
    };
    let watched = Some(&watch).filter(|watch| indices && watch.words() > 0);
    // A barrier in a place where nothing can stand before it, and the like.
    let watched = watched.filter(|watch| naga::front::wgsl::parse_str(&put(Some(watch))).is_ok());
    let text = put(watched);
    let singles = singles.iter().map(|(range, _)| {
        let name = |c: char| c.is_alphanumeric() || c == '_';
        let end = code[range.start..].find(|c| !name(c)).unwrap_or(0);
        Site {
            range: range.clone(),
            array: code[range.start..range.start + end].to_owned(),
            count: 1,
            memory: Some(Memory::Workgroup),
            cell: None,
        }
    });
    Some(Probed {
        text,
        sites: sites
            .iter()
            .map(|(site, _)| site.clone())
            .chain(singles)
            .collect(),
        loops,
        watched: watched.map_or(0, Watch::words),
    })
}

/// Every function with the types of its expressions.
fn functions<'a>(
    module: &'a Module,
    info: &'a ModuleInfo,
) -> impl Iterator<Item = (&'a Function, &'a FunctionInfo)> {
    let plain = module.functions.iter();
    let plain = plain.map(|(handle, function)| (function, &info[handle]));
    let entries = module.entry_points.iter().enumerate();
    plain.chain(entries.map(|(at, entry)| (&entry.function, info.get_entry_point(at))))
}

/// The text of every loop up to its opening brace.
fn heads(code: &str, block: &Block, found: &mut Vec<Range<usize>>) {
    for (statement, span) in block.span_iter() {
        if let Statement::Loop { .. } = statement
            && let Some(range) = span.to_range()
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
        for inner in blocks(statement) {
            heads(code, inner, found);
        }
    }
}

/// How many elements `base` has, an array or a vector, and which shared memory it lies in.
fn length(
    module: &Module,
    function: &Function,
    types: &FunctionInfo,
    base: Handle<Expression>,
    counts: &[usize],
) -> Option<(u64, Option<Memory>)> {
    let variable = match root(function, base) {
        Expression::GlobalVariable(global) => Some(&module.global_variables[*global]),
        _ => None,
    };
    let buffer = variable.and_then(|variable| Some(variable.binding?.binding as usize));
    let memory = match variable.map(|variable| variable.space) {
        Some(AddressSpace::Storage { .. }) => buffer.map(Memory::Buffer),
        Some(AddressSpace::WorkGroup) => Some(Memory::Workgroup),
        _ => None,
    };
    let inner = match *types[base].ty.inner_with(&module.types) {
        TypeInner::Pointer { base, .. } => &module.types[base].inner,
        ref value => value,
    };
    let count = match inner {
        TypeInner::Array {
            size: ArraySize::Constant(count),
            ..
        } => count.get().into(),
        TypeInner::Array { .. } => *counts.get(buffer?)? as u64,
        TypeInner::Vector { size, .. }
        | TypeInner::Matrix { columns: size, .. }
        | TypeInner::ValuePointer {
            size: Some(size), ..
        } => *size as u64,
        _ => return None,
    };
    Some((count, memory))
}

/// What has to be inserted so that an invocation of the first workgroup knows its number: places and pieces of text.
fn lane(module: &Module, code: &str, grid: Option<[u32; 3]>) -> Vec<(usize, String)> {
    let given = |wanted: BuiltIn| {
        let entry = module.entry_points.first()?;
        let is = |binding: &Option<naga::Binding>| *binding == Some(naga::Binding::BuiltIn(wanted));
        entry.function.arguments.iter().find_map(|argument| {
            let name = argument.name.as_ref()?;
            match &module.types[argument.ty].inner {
                _ if is(&argument.binding) => Some(name.clone()),
                TypeInner::Struct { members, .. } => {
                    let member = members.iter().find(|member| is(&member.binding))?;
                    Some(format!("{name}.{}", member.name.as_ref()?))
                }
                _ => None,
            }
        })
    };
    let places = || {
        let name = code.find("fn main")?;
        let open = name + code[name..].find('(')? + 1;
        let body = open + code[open..].find('{')? + 1;
        Some((open, body))
    };
    let Some((open, body)) = places() else {
        return Vec::new();
    };
    let mut arguments = String::new();
    let mut own = |wanted: BuiltIn, name: &str, declared: &str| {
        given(wanted).unwrap_or_else(|| {
            arguments += declared;
            name.to_owned()
        })
    };
    let index = own(
        BuiltIn::LocalInvocationIndex,
        "perflings_local",
        "@builtin(local_invocation_index) perflings_local: u32, ",
    );
    let group = own(
        BuiltIn::WorkGroupId,
        "perflings_group",
        "@builtin(workgroup_id) perflings_group: vec3<u32>, ",
    );
    // Without functions of WGSL, whose names a learner may have given to something else.
    let mut first = format!(
        " if ({group}.x == 0u && {group}.y == 0u && {group}.z == 0u) {{ perflings_lane = {index}; }} "
    );
    first += &grid.map_or_else(String::new, |grid| race::begin(&index, &group, grid));
    vec![(open, arguments), (body, first)]
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
    lane: Vec<(usize, String)>,
    binding: usize,
    rounds: u32,
    watch: Option<(&Watch, usize)>,
) -> String {
    let mut pieces = lane;
    for (number, (site, index)) in sites.iter().enumerate() {
        let cell = site.cell.as_ref().filter(|_| watch.is_some());
        let (probe, more) = match (cell, site.memory) {
            (Some(Cell::Row(inner)), _) => ("perflings_row_of", format!(", {inner}u")),
            (
                Some(Cell::Element {
                    first,
                    in_row,
                    kind,
                }),
                _,
            ) => {
                let row = if *in_row { " + perflings_row" } else { "" };
                ("perflings_cell", format!(", {first}u{row}, {kind}u"))
            }
            (None, Some(_)) => ("perflings_shared", String::new()),
            (None, None) => ("perflings_index", String::new()),
        };
        pieces.push((
            index.start,
            format!("{probe}({number}u, {}u, u32(", site.count),
        ));
        pieces.push((index.end, format!("){more})")));
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
    out += &watch.map_or_else(String::new, |(watch, words)| watch.functions(words));
    out + &format!(
        "
@group(0) @binding({binding}) var<storage, read_write> perflings_seen: array<atomic<u32>>;
var<private> perflings_rounds: u32;
var<private> perflings_lane: u32 = {LANES}u;
fn perflings_shared(site: u32, count: u32, index: u32) -> u32 {{
    let at = {WORDS}u + {SITE}u * site;
    atomicAdd(&perflings_seen[at], 1u);
    if (perflings_lane < {LANES}u && atomicLoad(&perflings_seen[at + 1u + perflings_lane]) == 0u) {{
        atomicStore(&perflings_seen[at + 1u + perflings_lane], index + 1u);
    }}
    return perflings_index(site, count, index);
}}
fn perflings_index(site: u32, count: u32, index: u32) -> u32 {{
    if (index >= count && atomicAdd(&perflings_seen[0], 1u) == 0u) {{
        atomicStore(&perflings_seen[1], site);
        atomicStore(&perflings_seen[2], index);
    }}
    return index;
}}
fn perflings_round(site: u32) -> bool {{
    perflings_rounds += 1u;
    // Once one has gone on too long, the others need not.
    if (perflings_rounds <= {rounds}u && (perflings_rounds % 256u != 0u || atomicLoad(&perflings_seen[3]) == 0u)) {{
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
    var own: array<f32, 3>;
    var v = vec4(1.0);
    own[i] = 1.0;
    v[i] = own[i + 2u];
}";
        let probed = probe(text, &[10, 20], [1, 1, 1], 1000, true).expect("has indices");
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
            ("own[i]", 3),
            ("own[i + 2u]", 3),
            ("v[i]", 4),
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
        let loops = probe(text, &[10, 20], [1, 1, 1], 1000, false).expect("has loops");
        assert_eq!((loops.sites.len(), loops.loops.len()), (0, 3));
        assert!(probe("fn f() {}", &[], [1, 1, 1], 1, true).is_none());
        let array = |text: &str| {
            let mut sites = probed.sites.iter();
            let site = sites.find(|site| site.array == text);
            site.map(|site| site.memory)
        };
        assert_eq!(array("y"), Some(Some(Memory::Buffer(1))));
        assert_eq!(array("w"), Some(Some(Memory::Workgroup)));
        assert_eq!(array("own"), Some(None));
    }

    #[test]
    fn lanes_side_by_side_are_counted() {
        assert_eq!(side_by_side(&[5, 6, 7, 8]), 4);
        assert_eq!(side_by_side(&[5, 6, 9, 8]), 2);
        assert_eq!(side_by_side(&[5, 5, 5, 5]), 4);
        assert_eq!(side_by_side(&[5, 5, 6, 6]), 1);
        assert_eq!(side_by_side(&[0, 0, 0, 0]), 0);
        assert_eq!(side_by_side(&[1, 0, 0, 0]), 1);
    }
}
