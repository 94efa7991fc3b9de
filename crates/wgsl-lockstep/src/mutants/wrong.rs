//! Operators that make a kernel wrong, unless the change has no effect.

use std::ops::Range;

use super::rng::Rng;
use super::tokens::{Operator, TokenEdits, TokenKind, WgslTokens};

pub(crate) const OPERATORS: &[(&str, Operator)] = &[
    ("drop a barrier", drop_barrier),
    ("another barrier", other_barrier),
    ("move a bound", move_bound),
    ("another comparison", compare),
    ("change a constant by 2 %", constant),
    ("change an integer", integer),
    ("cap a bound", cap),
    ("skip the last element", skip_last),
    ("another name", other_name),
    ("swap an index", swap_index),
    ("move an index", move_index),
    ("clamp an index", clamp_index),
    ("clamp a value", clamp_value),
    ("weaken a type", weaken),
    ("drop a term", drop_term),
    ("another sign", sign),
    ("the first instead of the largest", first),
    ("another initial value", initial),
    ("a branch always or never", always),
    ("drop a statement", drop_statement),
    ("swap statements", swap_statements),
    ("another component", component),
    ("drop a call", drop_call),
    ("wrong at large sizes only", large),
];

/// The sizes that a learner may consider large.
const CAPS: [u32; 10] = [16, 32, 64, 100, 128, 256, 500, 512, 1000, 1024];

fn barriers(t: &WgslTokens<'_>) -> Vec<usize> {
    let calls = t.calls("workgroupBarrier").chain(t.calls("storageBarrier"));
    calls.map(|(at, _)| at).collect()
}

fn drop_barrier(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    t.changed(barriers(t).into_iter().map(|at| at..at + 4), &[""])
}

fn other_barrier(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let other = |at: usize| match t.text(at) {
        "workgroupBarrier" => "storageBarrier",
        _ => "workgroupBarrier",
    };
    let all = barriers(t).into_iter();
    all.map(|at| vec![(at..at + 1, other(at).to_owned())])
        .collect()
}

/// Changes the bound of each comparison.
fn bounds(t: &WgslTokens<'_>, changes: &[impl AsRef<str>]) -> Vec<TokenEdits> {
    t.changed(t.operators(2..3).map(|at| t.operands(at).1), changes)
}

fn move_bound(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    bounds(t, &["({}) - 1u", "({}) + 1u", "({}) / 2u", "2u * ({})"])
}

fn cap(t: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let cap = |_| format!("min({{}}, {}u)", CAPS[rng.below(CAPS.len())]);
    bounds(t, &[0; 3].map(cap))
}

/// Returns the words of a text in pairs.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let pairs = text.split("  ").filter_map(|pair| pair.split_once(' '));
    pairs.collect()
}

/// Replaces each operator with the one beside it in the table.
fn exchange(t: &WgslTokens<'_>, table: &[(&str, &str)]) -> Vec<TokenEdits> {
    let one = |at: usize| {
        let found = table.iter().filter(move |(old, _)| *old == t.text(at));
        found.map(move |(_, new)| vec![(at..at + 1, (*new).to_owned())])
    };
    (0..t.list.len()).flat_map(one).collect()
}

fn compare(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    exchange(t, &pairs("< <=  <= <  > >=  >= >  == !=  && ||  || &&"))
}

fn sign(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let table = "+ -  - +  * /  / *  % /  / %  += -=  += =  /= -=";
    let prefix = (0..t.list.len()).filter(|at| t.text(*at) == "-" && t.is_prefix(*at));
    let mut all = exchange(t, &pairs(table));
    all.extend(prefix.map(|at| vec![(at..at + 1, String::new())]));
    all
}

fn constant(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let numbers = (0..t.list.len()).filter(|at| t.list[*at].kind == TokenKind::Number);
    let changed = numbers.flat_map(|at| {
        let is_float = t.text(at).contains(['.', 'e']);
        let value: Option<f64> = t.text(at).parse().ok();
        let value = value.filter(|number| is_float && *number != 0.0);
        let factors = value.into_iter().flat_map(|x| [0.98 * x, 1.02 * x]);
        factors.map(move |x| vec![(at..at + 1, format!("{x:e}"))])
    });
    changed.collect()
}

fn integer(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let numbers = (0..t.list.len()).filter_map(|at| {
        let value: u32 = t.text(at).strip_suffix('u')?.parse().ok()?;
        Some((at, value))
    });
    let changed = numbers.flat_map(|(at, value)| {
        let others = [value + 1, value.saturating_sub(1), 2 * value];
        let others = others.into_iter().filter(move |other| *other != value);
        others.map(move |other| vec![(at..at + 1, format!("{other}u"))])
    });
    changed.collect()
}

/// Leaves out the last element, row, column or tile, always or only if there are many.
fn skip_last(t: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let one = |at: usize| {
        let (left, right) = t.operands(at);
        let (source, bound) = (t.source(left.clone()), t.source(right));
        let many = CAPS[rng.below(CAPS.len())];
        let skips = [
            format!("({source}) + 1u"),
            format!("({source}) + select(0u, 1u, ({bound}) > {many}u)"),
            format!("({source}) + ({bound}) % 2u"),
        ];
        skips.map(|new| vec![(left.clone(), new)])
    };
    let compares = t.operators(2..3).filter(|at| t.text(*at) != "==");
    compares.flat_map(one).collect()
}

/// Replaces a name with another; naga refuses names of other types.
fn other_name(t: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let names = t.declared(&["let", "var", "const", ":"]);
    let uses = (0..t.list.len()).filter(|at| names.contains(&t.text(*at)));
    let uses: Vec<usize> = uses.collect();
    let mut all = Vec::new();
    for at in uses {
        let other = names[rng.below(names.len())];
        if other != t.text(at) {
            all.push(vec![(at..at + 1, other.to_owned())]);
        }
    }
    all
}

/// Swaps two names in an index.
fn swap_index(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let one = |index: Range<usize>| {
        let names: Vec<usize> = index.filter(|at| t.is_name(*at)).collect();
        let pairs = names.iter().enumerate();
        let pairs = pairs.flat_map(|(nth, a)| names[nth + 1..].iter().map(|b| (*a, *b)));
        let differ = pairs.filter(|(a, b)| t.text(*a) != t.text(*b));
        let new = |(a, b): (usize, usize)| {
            let swap = |at: usize, by: usize| (at..at + 1, t.text(by).to_owned());
            vec![swap(a, b), swap(b, a)]
        };
        differ.map(new).collect::<Vec<_>>()
    };
    t.inside("[").flat_map(one).collect()
}

fn move_index(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let changes = [
        "({}) + 1u",
        "max({}, 1u) - 1u",
        "({}) ^ 1u",
        "({}) / 2u * 2u",
    ];
    t.changed(t.inside("["), &changes)
}

fn clamp_index(t: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let clamp = |_| format!("min({{}}, {}u)", CAPS[rng.below(CAPS.len())] - 1);
    t.changed(t.inside("["), &[0; 2].map(clamp))
}

/// Changes each value that is stored or named.
fn values(t: &WgslTokens<'_>, changes: &[String]) -> Vec<TokenEdits> {
    t.changed(t.values().into_iter().map(|(_, value)| value), changes)
}

fn clamp_value(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let limits = ["4.0", "30.0", "1000.0"];
    let both = limits.map(|limit| format!("clamp({{}}, -{limit}, {limit})"));
    let upper = limits.map(|limit| format!("min({{}}, {limit})"));
    let lower = ["0.0", "1e-6", "-1e4"].map(|limit| format!("max({{}}, {limit})"));
    values(t, &[both, upper, lower].concat())
}

fn weaken(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let masks = ["0xfffff000u", "0xffff0000u"];
    let masks = masks.map(|mask| format!("bitcast<f32>(bitcast<u32>({{}}) & {mask})"));
    let others = ["quantizeToF16({})", "round(({}) * 4096.0) / 4096.0"];
    values(t, &[masks, others.map(str::to_owned)].concat())
}

fn drop_term(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let one = |at: usize| {
        let (left, right) = t.operands(at);
        let kept = |kept: Range<usize>| vec![(left.start..right.end, t.source(kept).to_owned())];
        [kept(left.clone()), kept(right.clone())]
    };
    t.operators(1..5).flat_map(one).collect()
}

fn first(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for name in ["max", "min"] {
        for (at, arguments) in t.calls(name) {
            let [a, b] = arguments.as_slice() else {
                continue;
            };
            let whole = at..b.end + 1;
            let (one, other) = (t.source(a.clone()), t.source(b.clone()));
            let inner = t.loops().into_iter().rev();
            let inner = inner.filter(|head| head.body.contains(&at)).take(1);
            let start = inner.map(|head| {
                let (name, start) = (
                    t.text(head.init.start + 1),
                    head.init.start + 3..head.init.end,
                );
                format!("select({one}, {other}, {name} == {})", t.source(start))
            });
            let new = [one.to_owned(), other.to_owned()].into_iter().chain(start);
            all.extend(new.map(|new| vec![(whole.clone(), new)]));
        }
    }
    all
}

fn initial(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let variables = t.values().into_iter();
    let variables = variables.filter(|(sign, _)| t.text(sign.saturating_sub(2)) == "var");
    let starts = variables.map(|(_, value)| value);
    let heads = t
        .loops()
        .into_iter()
        .map(|head| head.init.start + 3..head.init.end);
    let starts: Vec<_> = starts.chain(heads).collect();
    let others = ["0.0", "1.0", "-1.0", "-1e4", "1u", "({}) + 1u"];
    let one = |value: &Range<usize>| {
        let (value, old) = (value.clone(), t.source(value.clone()));
        let others = others.into_iter().filter(move |new| *new != old);
        others.map(move |new| vec![(value.clone(), new.replace("{}", old))])
    };
    starts.iter().flat_map(one).collect()
}

fn always(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    t.changed(t.conditions().into_iter(), &["true", "false"])
}

fn drop_statement(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let all = t.statements().into_iter();
    let kept = |at: usize| matches!(t.text(at), "let" | "var" | "workgroupBarrier");
    t.changed(all.filter(|statement| !kept(statement.start)), &[""])
}

fn swap_statements(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let all = t.statements();
    let pairs = all.windows(2).filter(|pair| pair[0].end == pair[1].start);
    pairs
        .map(|pair| {
            let source = |nth: usize| t.source(pair[nth].clone());
            let new = format!("{}\n{}", source(1), source(0));
            vec![(pair[0].start..pair[1].end, new)]
        })
        .collect()
}

fn component(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    exchange(t, &[("x", "y"), ("y", "x"), ("x", "z")])
}

fn drop_call(t: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let names = "exp sqrt inverseSqrt floor cos sin f32 pow".split(' ');
    let calls = names.flat_map(|name| t.calls(name));
    calls
        .map(|(at, arguments)| {
            let end = arguments.last().map_or(at, |last| last.end) + 1;
            vec![(at..end, format!("({})", t.source(arguments[0].clone())))]
        })
        .collect()
}

/// Makes a value 2 % wrong or an index off by one, but only above a size.
fn large(t: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let given = t.all("const").filter(|at| t.text(at + 5).starts_with("{{"));
    let sizes: Vec<&str> = given.map(|at| t.text(at + 1)).collect();
    if sizes.is_empty() {
        return Vec::new();
    }
    let mut past = || {
        let size = sizes[rng.below(sizes.len())];
        format!("{size} > {}u", CAPS[rng.below(CAPS.len())])
    };
    let off = [0; 2].map(|_| format!("({{}}) * select(1.0, 1.02, {})", past()));
    let shorter = [0; 2].map(|_| format!("({{}}) - select(0u, 1u, {})", past()));
    let mut all = values(t, &off);
    all.extend(bounds(t, &shorter));
    all
}
