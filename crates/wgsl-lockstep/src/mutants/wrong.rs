//! Operators that make a kernel wrong, unless the change has no effect.

use super::rng::Rng;
use super::tokens::{Operator, TokenEdits, TokenKind, WgslTokens};

/// The operators, each with its name.
pub(crate) const OPERATORS: &[(&str, Operator)] = &[
    ("drop a barrier", drop_barrier),
    ("another barrier", other_barrier),
    ("move a bound", move_bound),
    ("another comparison", other_comparison),
    ("change a constant by 2 %", scale_constant),
    ("change an integer", change_integer),
    ("cap a bound", cap_bound),
    ("skip the last element", skip_last),
    ("another name", other_name),
    ("swap an index", swap_index),
    ("move an index", move_index),
    ("clamp an index", clamp_index),
    ("clamp a value", clamp_value),
    ("weaken a type", weaken_type),
    ("drop a term", drop_term),
    ("another sign", other_sign),
    (
        "the first instead of the largest",
        first_in_place_of_largest,
    ),
    ("another initial value", other_initial_value),
    ("a branch always or never", always_or_never),
    ("drop a statement", drop_statement),
    ("swap statements", swap_statements),
    ("another component", other_component),
    ("drop a call", drop_call),
    ("wrong at large sizes only", wrong_when_large),
];

/// Sizes from which a person may call a kernel's input large.
const LARGE_SIZES: [u32; 10] = [16, 32, 64, 100, 128, 256, 500, 512, 1000, 1024];

fn large_size(rng: &mut Rng) -> u32 {
    LARGE_SIZES[rng.below(LARGE_SIZES.len())]
}

fn drop_barrier(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let workgroup = tokens.calls("workgroupBarrier");
    let calls = workgroup.chain(tokens.calls("storageBarrier"));
    tokens.changed(calls.map(|(name, _)| name..name + 4), &[""])
}

fn other_barrier(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    exchange(
        tokens,
        "workgroupBarrier storageBarrier, storageBarrier workgroupBarrier",
    )
}

/// Changes the bound of each comparison.
fn bounds(tokens: &WgslTokens<'_>, changes: &[impl AsRef<str>]) -> Vec<TokenEdits> {
    let bounds = tokens
        .comparisons()
        .map(|comparison| tokens.operands(comparison).1);
    tokens.changed(bounds, changes)
}

fn move_bound(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let changes = ["({}) - 1u", "({}) + 1u", "({}) / 2u", "2u * ({})"];
    bounds(tokens, &changes)
}

fn cap_bound(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let caps = [0; 3].map(|_| format!("min({{}}, {}u)", large_size(rng)));
    bounds(tokens, &caps)
}

/// Replaces tokens by others. The table has pairs of an old and a new text: `< <=, <= <`.
fn exchange(tokens: &WgslTokens<'_>, table: &str) -> Vec<TokenEdits> {
    let pairs: Vec<(&str, &str)> = table
        .split(", ")
        .filter_map(|pair| pair.split_once(' '))
        .collect();
    let mut all = Vec::new();
    for token in 0..tokens.list.len() {
        for (old, new) in &pairs {
            if tokens.text(token) == *old {
                all.push(vec![(token..token + 1, (*new).to_owned())]);
            }
        }
    }
    all
}

fn other_comparison(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    exchange(tokens, "< <=, <= <, > >=, >= >, == !=, && ||, || &&")
}

fn other_sign(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let table = "+ -, - +, * /, / *, % /, / %, += -=, += =, /= -=";
    let mut all = exchange(tokens, table);
    for token in 0..tokens.list.len() {
        if tokens.text(token) == "-" && tokens.is_prefix(token) {
            all.push(vec![(token..token + 1, String::new())]);
        }
    }
    all
}

/// Scales each float by 0.98 and by 1.02.
fn scale_constant(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for (token, number) in tokens.list.iter().enumerate() {
        if number.kind != TokenKind::Number || !number.text.contains(['.', 'e']) {
            continue;
        }
        if let Ok(value) = number.text.parse::<f64>()
            && value != 0.0
        {
            for factor in [0.98, 1.02] {
                all.push(vec![(token..token + 1, format!("{:e}", factor * value))]);
            }
        }
    }
    all
}

/// Replaces each u32 by the next, the one before and twice its value.
fn change_integer(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for (token, number) in tokens.list.iter().enumerate() {
        let digits = number.text.strip_suffix('u').unwrap_or_default();
        let Ok(value) = digits.parse::<u32>() else {
            continue;
        };
        for other in [
            value.wrapping_add(1),
            value.saturating_sub(1),
            value.wrapping_mul(2),
        ] {
            if other != value {
                all.push(vec![(token..token + 1, format!("{other}u"))]);
            }
        }
    }
    all
}

/// Leaves out the last element, row, column or tile: always, or only if there are many.
fn skip_last(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for comparison in tokens.comparisons() {
        if tokens.text(comparison) == "==" {
            continue;
        }
        let (left, right) = tokens.operands(comparison);
        let source = tokens.source(left.clone());
        let bound = tokens.source(right);
        let many = large_size(rng);
        for new in [
            format!("({source}) + 1u"),
            format!("({source}) + select(0u, 1u, ({bound}) > {many}u)"),
            format!("({source}) + ({bound}) % 2u"),
        ] {
            all.push(vec![(left.clone(), new)]);
        }
    }
    all
}

/// Replaces each name by a random other one. A text with a name of another type is not valid and is left out later.
fn other_name(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let names = tokens.declared(&["let", "var", "const", ":"]);
    let mut all = Vec::new();
    for token in 0..tokens.list.len() {
        if !names.contains(&tokens.text(token)) {
            continue;
        }
        let other = names[rng.below(names.len())];
        if other != tokens.text(token) {
            all.push(vec![(token..token + 1, other.to_owned())]);
        }
    }
    all
}

/// Swaps two names in an index.
fn swap_index(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for index in tokens.inside("[") {
        let names: Vec<usize> = index.filter(|token| tokens.is_name(*token)).collect();
        for (position, first) in names.iter().copied().enumerate() {
            for second in names[position + 1..].iter().copied() {
                if tokens.text(first) != tokens.text(second) {
                    all.push(vec![
                        (first..first + 1, tokens.text(second).to_owned()),
                        (second..second + 1, tokens.text(first).to_owned()),
                    ]);
                }
            }
        }
    }
    all
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
    let clamps = [0; 2].map(|_| format!("min({{}}, {}u)", large_size(rng) - 1));
    tokens.changed(tokens.inside("["), &clamps)
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

/// Rounds each value to fewer bits.
fn weaken_type(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let changes = [
        "bitcast<f32>(bitcast<u32>({}) & 0xfffff000u)",
        "bitcast<f32>(bitcast<u32>({}) & 0xffff0000u)",
        "quantizeToF16({})",
        "round(({}) * 4096.0) / 4096.0",
    ];
    values(tokens, &changes.map(str::to_owned))
}

/// Keeps only one operand of each operator.
fn drop_term(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for operator in tokens.operators() {
        let (left, right) = tokens.operands(operator);
        let whole = left.start..right.end;
        for kept in [left, right] {
            all.push(vec![(whole.clone(), tokens.source(kept).to_owned())]);
        }
    }
    all
}

/// Keeps one argument of `max` and `min`: always the same one, or the first one only in the first iteration of the loop around the call.
fn first_in_place_of_largest(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for (name, arguments) in tokens.calls("max").chain(tokens.calls("min")) {
        let [first_tokens, second_tokens] = &arguments[..] else {
            continue;
        };
        let whole = name..second_tokens.end + 1;
        let first = tokens.source(first_tokens.clone());
        let second = tokens.source(second_tokens.clone());
        let mut loops = tokens.loops().into_iter().rev();
        let in_first_iteration = loops.find(|head| head.body.contains(&name)).map(|head| {
            let counter = tokens.text(head.init.start + 1);
            let start = tokens.source(head.init.start + 3..head.init.end);
            format!("select({first}, {second}, {counter} == {start})")
        });
        all.push(vec![(whole.clone(), first.to_owned())]);
        all.push(vec![(whole.clone(), second.to_owned())]);
        all.extend(in_first_iteration.map(|new| vec![(whole, new)]));
    }
    all
}

/// Changes the initial value of each variable and of each loop.
fn other_initial_value(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let variables = tokens
        .values()
        .into_iter()
        .filter(|(sign, _)| tokens.text(sign.saturating_sub(2)) == "var")
        .map(|(_, value)| value);
    let loops = tokens
        .loops()
        .into_iter()
        .map(|head| head.init.start + 3..head.init.end);
    let mut all = Vec::new();
    for value in variables.chain(loops) {
        let old = tokens.source(value.clone());
        for new in ["0.0", "1.0", "-1.0", "-1e4", "1u", "({}) + 1u"] {
            if new != old {
                all.push(vec![(value.clone(), new.replace("{}", old))]);
            }
        }
    }
    all
}

fn always_or_never(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    tokens.changed(tokens.conditions().into_iter(), &["true", "false"])
}

fn drop_statement(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let is_kept = |token: usize| matches!(tokens.text(token), "let" | "var" | "workgroupBarrier");
    let statements = tokens.statements().into_iter();
    tokens.changed(
        statements.filter(|statement| !is_kept(statement.start)),
        &[""],
    )
}

/// Swaps each two neighbouring statements.
fn swap_statements(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for pair in tokens.statements().windows(2) {
        let [first, second] = [&pair[0], &pair[1]];
        if first.end == second.start {
            let [before, after] = [first, second].map(|part| tokens.source(part.clone()));
            all.push(vec![(
                first.start..second.end,
                format!("{after}\n{before}"),
            )]);
        }
    }
    all
}

fn other_component(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    exchange(tokens, "x y, y x, x z")
}

/// Replaces the call of a function by its first argument.
fn drop_call(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for function in "exp sqrt inverseSqrt floor cos sin f32 pow".split(' ') {
        for (name, arguments) in tokens.calls(function) {
            let end = arguments.last().map_or(name, |last| last.end) + 1;
            let argument = tokens.source(arguments[0].clone());
            all.push(vec![(name..end, format!("({argument})"))]);
        }
    }
    all
}

/// Makes a value 2 % wrong or a bound smaller by one, but only above a size. The sizes are constants whose value is a placeholder such as
/// `{{N}}`.
fn wrong_when_large(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let sizes: Vec<&str> = tokens
        .all("const")
        .filter(|token| tokens.text(token + 5).starts_with("{{"))
        .map(|token| tokens.text(token + 1))
        .collect();
    if sizes.is_empty() {
        return Vec::new();
    }
    let mut is_large = || {
        let size = sizes[rng.below(sizes.len())];
        format!("{size} > {}u", large_size(rng))
    };
    let scaled = [0; 2].map(|_| format!("({{}}) * select(1.0, 1.02, {})", is_large()));
    let shorter = [0; 2].map(|_| format!("({{}}) - select(0u, 1u, {})", is_large()));
    let mut all = values(tokens, &scaled);
    all.extend(bounds(tokens, &shorter));
    all
}
