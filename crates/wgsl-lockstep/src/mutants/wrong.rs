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

fn barriers(tokens: &WgslTokens<'_>) -> Vec<usize> {
    let calls = tokens
        .calls("workgroupBarrier")
        .chain(tokens.calls("storageBarrier"));
    calls.map(|(at, _)| at).collect()
}

fn drop_barrier(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    tokens.changed(barriers(tokens).into_iter().map(|at| at..at + 4), &[""])
}

fn other_barrier(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let other = |at: usize| match tokens.text(at) {
        "workgroupBarrier" => "storageBarrier",
        _ => "workgroupBarrier",
    };
    let all = barriers(tokens).into_iter();
    all.map(|at| vec![(at..at + 1, other(at).to_owned())])
        .collect()
}

/// Changes the bound of each comparison.
fn bounds(tokens: &WgslTokens<'_>, changes: &[impl AsRef<str>]) -> Vec<TokenEdits> {
    tokens.changed(
        tokens.operators(2..3).map(|at| tokens.operands(at).1),
        changes,
    )
}

fn move_bound(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    bounds(
        tokens,
        &["({}) - 1u", "({}) + 1u", "({}) / 2u", "2u * ({})"],
    )
}

fn cap(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let cap = |_| format!("min({{}}, {}u)", CAPS[rng.below(CAPS.len())]);
    bounds(tokens, &[0; 3].map(cap))
}

/// Returns the words of a text in pairs.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let pairs = text.split("  ").filter_map(|pair| pair.split_once(' '));
    pairs.collect()
}

/// Replaces each operator with the one beside it in the table.
fn exchange(tokens: &WgslTokens<'_>, table: &[(&str, &str)]) -> Vec<TokenEdits> {
    let one = |at: usize| {
        let found = table.iter().filter(move |(old, _)| *old == tokens.text(at));
        found.map(move |(_, new)| vec![(at..at + 1, (*new).to_owned())])
    };
    (0..tokens.list.len()).flat_map(one).collect()
}

fn compare(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    exchange(
        tokens,
        &pairs("< <=  <= <  > >=  >= >  == !=  && ||  || &&"),
    )
}

fn sign(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let table = "+ -  - +  * /  / *  % /  / %  += -=  += =  /= -=";
    let prefix =
        (0..tokens.list.len()).filter(|at| tokens.text(*at) == "-" && tokens.is_prefix(*at));
    let mut all = exchange(tokens, &pairs(table));
    all.extend(prefix.map(|at| vec![(at..at + 1, String::new())]));
    all
}

fn constant(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let numbers = (0..tokens.list.len()).filter(|at| tokens.list[*at].kind == TokenKind::Number);
    let changed = numbers.flat_map(|at| {
        let is_float = tokens.text(at).contains(['.', 'e']);
        let value: Option<f64> = tokens.text(at).parse().ok();
        let value = value.filter(|number| is_float && *number != 0.0);
        let factors = value.into_iter().flat_map(|x| [0.98 * x, 1.02 * x]);
        factors.map(move |x| vec![(at..at + 1, format!("{x:e}"))])
    });
    changed.collect()
}

fn integer(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let numbers = (0..tokens.list.len()).filter_map(|at| {
        let value: u32 = tokens.text(at).strip_suffix('u')?.parse().ok()?;
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
fn skip_last(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let one = |at: usize| {
        let (left, right) = tokens.operands(at);
        let (source, bound) = (tokens.source(left.clone()), tokens.source(right));
        let many = CAPS[rng.below(CAPS.len())];
        let skips = [
            format!("({source}) + 1u"),
            format!("({source}) + select(0u, 1u, ({bound}) > {many}u)"),
            format!("({source}) + ({bound}) % 2u"),
        ];
        skips.map(|new| vec![(left.clone(), new)])
    };
    let compares = tokens.operators(2..3).filter(|at| tokens.text(*at) != "==");
    compares.flat_map(one).collect()
}

/// Replaces a name with another; naga refuses names of other types.
fn other_name(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let names = tokens.declared(&["let", "var", "const", ":"]);
    let uses = (0..tokens.list.len()).filter(|at| names.contains(&tokens.text(*at)));
    let uses: Vec<usize> = uses.collect();
    let mut all = Vec::new();
    for at in uses {
        let other = names[rng.below(names.len())];
        if other != tokens.text(at) {
            all.push(vec![(at..at + 1, other.to_owned())]);
        }
    }
    all
}

/// Swaps two names in an index.
fn swap_index(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let one = |index: Range<usize>| {
        let names: Vec<usize> = index.filter(|at| tokens.is_name(*at)).collect();
        let pairs = names.iter().enumerate();
        let pairs = pairs.flat_map(|(nth, a)| names[nth + 1..].iter().map(|b| (*a, *b)));
        let differ = pairs.filter(|(a, b)| tokens.text(*a) != tokens.text(*b));
        let new = |(a, b): (usize, usize)| {
            let swap = |at: usize, by: usize| (at..at + 1, tokens.text(by).to_owned());
            vec![swap(a, b), swap(b, a)]
        };
        differ.map(new).collect::<Vec<_>>()
    };
    tokens.inside("[").flat_map(one).collect()
}

fn move_index(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let changes = [
        "({}) + 1u",
        "max({}, 1u) - 1u",
        "({}) ^ 1u",
        "({}) / 2u * 2u",
    ];
    tokens.changed(tokens.inside("["), &changes)
}

fn clamp_index(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let clamp = |_| format!("min({{}}, {}u)", CAPS[rng.below(CAPS.len())] - 1);
    tokens.changed(tokens.inside("["), &[0; 2].map(clamp))
}

/// Changes each value that is stored or named.
fn values(tokens: &WgslTokens<'_>, changes: &[String]) -> Vec<TokenEdits> {
    tokens.changed(tokens.values().into_iter().map(|(_, value)| value), changes)
}

fn clamp_value(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let limits = ["4.0", "30.0", "1000.0"];
    let both = limits.map(|limit| format!("clamp({{}}, -{limit}, {limit})"));
    let upper = limits.map(|limit| format!("min({{}}, {limit})"));
    let lower = ["0.0", "1e-6", "-1e4"].map(|limit| format!("max({{}}, {limit})"));
    values(tokens, &[both, upper, lower].concat())
}

fn weaken(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let masks = ["0xfffff000u", "0xffff0000u"];
    let masks = masks.map(|mask| format!("bitcast<f32>(bitcast<u32>({{}}) & {mask})"));
    let others = ["quantizeToF16({})", "round(({}) * 4096.0) / 4096.0"];
    values(tokens, &[masks, others.map(str::to_owned)].concat())
}

fn drop_term(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let one = |at: usize| {
        let (left, right) = tokens.operands(at);
        let kept =
            |kept: Range<usize>| vec![(left.start..right.end, tokens.source(kept).to_owned())];
        [kept(left.clone()), kept(right.clone())]
    };
    tokens.operators(1..5).flat_map(one).collect()
}

fn first(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for name in ["max", "min"] {
        for (at, arguments) in tokens.calls(name) {
            let [a, b] = arguments.as_slice() else {
                continue;
            };
            let whole = at..b.end + 1;
            let (one, other) = (tokens.source(a.clone()), tokens.source(b.clone()));
            let inner = tokens.loops().into_iter().rev();
            let inner = inner.filter(|head| head.body.contains(&at)).take(1);
            let start = inner.map(|head| {
                let (name, start) = (
                    tokens.text(head.init.start + 1),
                    head.init.start + 3..head.init.end,
                );
                format!("select({one}, {other}, {name} == {})", tokens.source(start))
            });
            let new = [one.to_owned(), other.to_owned()].into_iter().chain(start);
            all.extend(new.map(|new| vec![(whole.clone(), new)]));
        }
    }
    all
}

fn initial(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let variables = tokens.values().into_iter();
    let variables = variables.filter(|(sign, _)| tokens.text(sign.saturating_sub(2)) == "var");
    let starts = variables.map(|(_, value)| value);
    let heads = tokens
        .loops()
        .into_iter()
        .map(|head| head.init.start + 3..head.init.end);
    let starts: Vec<_> = starts.chain(heads).collect();
    let others = ["0.0", "1.0", "-1.0", "-1e4", "1u", "({}) + 1u"];
    let one = |value: &Range<usize>| {
        let (value, old) = (value.clone(), tokens.source(value.clone()));
        let others = others.into_iter().filter(move |new| *new != old);
        others.map(move |new| vec![(value.clone(), new.replace("{}", old))])
    };
    starts.iter().flat_map(one).collect()
}

fn always(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    tokens.changed(tokens.conditions().into_iter(), &["true", "false"])
}

fn drop_statement(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let all = tokens.statements().into_iter();
    let kept = |at: usize| matches!(tokens.text(at), "let" | "var" | "workgroupBarrier");
    tokens.changed(all.filter(|statement| !kept(statement.start)), &[""])
}

fn swap_statements(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let all = tokens.statements();
    let pairs = all.windows(2).filter(|pair| pair[0].end == pair[1].start);
    pairs
        .map(|pair| {
            let source = |nth: usize| tokens.source(pair[nth].clone());
            let new = format!("{}\n{}", source(1), source(0));
            vec![(pair[0].start..pair[1].end, new)]
        })
        .collect()
}

fn component(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    exchange(tokens, &[("x", "y"), ("y", "x"), ("x", "z")])
}

fn drop_call(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let names = "exp sqrt inverseSqrt floor cos sin f32 pow".split(' ');
    let calls = names.flat_map(|name| tokens.calls(name));
    calls
        .map(|(at, arguments)| {
            let end = arguments.last().map_or(at, |last| last.end) + 1;
            vec![(
                at..end,
                format!("({})", tokens.source(arguments[0].clone())),
            )]
        })
        .collect()
}

/// Makes a value 2 % wrong or an index off by one, but only above a size.
fn large(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let given = tokens
        .all("const")
        .filter(|at| tokens.text(at + 5).starts_with("{{"));
    let sizes: Vec<&str> = given.map(|at| tokens.text(at + 1)).collect();
    if sizes.is_empty() {
        return Vec::new();
    }
    let mut past = || {
        let size = sizes[rng.below(sizes.len())];
        format!("{size} > {}u", CAPS[rng.below(CAPS.len())])
    };
    let off = [0; 2].map(|_| format!("({{}}) * select(1.0, 1.02, {})", past()));
    let shorter = [0; 2].map(|_| format!("({{}}) - select(0u, 1u, {})", past()));
    let mut all = values(tokens, &off);
    all.extend(bounds(tokens, &shorter));
    all
}
