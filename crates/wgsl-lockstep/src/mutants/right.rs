//! Operators that change a kernel's text but not its results, except for rounding.

use std::ops::Range;

use super::rng::Rng;
use super::tokens::{Loop, Operator, TokenEdits, WgslTokens};

pub(crate) const OPERATORS: &[(&str, Operator)] = &[
    ("other names", rename),
    ("comments and blank lines", comments),
    ("a loop backwards", backwards),
    ("a loop unrolled by two", unroll),
    ("while in place of for", as_while),
    ("loop in place of for", as_loop),
    ("a name for an index", hoist),
    ("one name fewer", inline),
    ("operands exchanged", commute),
    ("fma", fma),
    ("a sum in two statements", split),
    ("another workgroup size", workgroup_size),
    ("a helper function", helper),
    ("a condition around the rest", guard),
    ("a pointer", pointer),
    ("a uniform load", uniform_load),
    ("a constant in place of its name", constant),
    ("one more barrier", more_barriers),
    ("an index that cannot be outside", bounded),
    ("a struct of workgroup memory", in_struct),
];

/// Returns all edits as one, if there are any.
fn together(edit: TokenEdits) -> Vec<TokenEdits> {
    let edits = (!edit.is_empty()).then_some(edit);
    edits.into_iter().collect()
}

fn rename(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let names = tokens.declared(&["let", "var", "const", ":"]);
    let builtin = |at: usize| tokens.text(at.wrapping_sub(1)) == ".";
    let one = |style: &str| {
        let uses =
            (0..tokens.list.len()).filter(|at| names.contains(&tokens.text(*at)) && !builtin(*at));
        let new = |at: usize| (at..at + 1, style.replace("{}", tokens.text(at)));
        together(uses.map(new).collect())
    };
    let number = rng.below(100);
    let styles = [
        "main_{}".to_owned(),
        format!("_{{}}{number}"),
        "größe_{}".to_owned(),
    ];
    styles.iter().flat_map(|style| one(style)).collect()
}

fn comments(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let ends = tokens
        .statements()
        .into_iter()
        .map(|statement| statement.end);
    let ends: Vec<usize> = ends.collect();
    let texts = [
        "\n\n\n",
        " // fn main() { workgroupBarrier(); for (;;) {} }\n",
        " /* /* x[i] */ @workgroup_size(1) */ ",
        "\r\n\t",
    ];
    let one = |text: &&str| {
        ends.iter()
            .map(|at| (*at..*at, (*text).to_owned()))
            .collect()
    };
    texts.iter().flat_map(|text| together(one(text))).collect()
}

/// Returns the variable, start, end and step of a loop that counts up by equal steps and whose iterations can run in any order.
fn counted<'a>(tokens: &WgslTokens<'a>, head: &Loop) -> Option<[&'a str; 4]> {
    let name = tokens.text(head.init.start + 1);
    let up =
        tokens.text(head.update.start + 1) == "+=" && tokens.text(head.condition.start + 1) == "<";
    let mut body = head.body.clone();
    let ordered = body.any(|at| tokens.text(at).ends_with("Barrier") || tokens.text(at) == "break");
    (up && !ordered).then(|| {
        [
            name,
            tokens.source(head.init.start + 3..head.init.end),
            tokens.source(head.condition.start + 2..head.condition.end),
            tokens.source(head.update.start + 2..head.update.end),
        ]
    })
}

fn backwards(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let all = tokens.loops().into_iter().filter_map(|head| {
        let ([name, start, end, step], body) = (counted(tokens, &head)?, tokens.source(head.body.clone()));
        let new = format!(
            "for (var left = select(0u, (({end}) - ({start}) + ({step}) - 1u) / ({step}), ({start}) < ({end})); left > 0u; left -= 1u) {{
                let {name} = ({start}) + (left - 1u) * ({step});
                {body}
            }}"
        );
        Some(vec![(head.whole, new)])
    });
    all.collect()
}

fn unroll(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let all = tokens.loops().into_iter().filter_map(|head| {
        let ([name, start, end, step], body) =
            (counted(tokens, &head)?, tokens.source(head.body.clone()));
        let new = format!(
            "for (var both = {start}; both < {end}; both += 2u * ({step})) {{
                {{ let {name} = both; {body} }}
                if (both + ({step}) < {end}) {{ let {name} = both + ({step}); {body} }}
            }}"
        );
        Some(vec![(head.whole, new)])
    });
    all.collect()
}

/// Rewrites each loop with a template of `{init}`, `{condition}`, `{body}` and `{update}`.
fn other_loop(tokens: &WgslTokens<'_>, words: &str) -> Vec<TokenEdits> {
    let one = |head: Loop| {
        let new = words
            .replace("{init}", tokens.source(head.init))
            .replace("{condition}", tokens.source(head.condition))
            .replace("{update}", tokens.source(head.update))
            .replace("{body}", tokens.source(head.body));
        vec![(head.whole, new)]
    };
    tokens.loops().into_iter().map(one).collect()
}

fn as_while(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    other_loop(
        tokens,
        "{ {init}; while ({condition}) { {body} {update}; } }",
    )
}

fn as_loop(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let words =
        "{ {init}; loop { if (!({condition})) { break; } {body} continuing { {update}; } } }";
    other_loop(tokens, words)
}

/// Returns the indices that are more than a name, each with its statement.
fn indices(tokens: &WgslTokens<'_>) -> Vec<(Range<usize>, Range<usize>)> {
    let all = tokens.statements().into_iter().flat_map(|statement| {
        let within = statement.clone();
        let inside = tokens
            .inside("[")
            .filter(move |index| within.contains(&index.start));
        inside.map(move |index| (statement.clone(), index))
    });
    all.filter(|(_, index)| index.len() > 1).collect()
}

fn hoist(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let one = |(statement, index): (Range<usize>, Range<usize>)| {
        let before = format!("let place = {};\n", tokens.source(index.clone()));
        vec![
            (statement.start..statement.start, before),
            (index, "place".to_owned()),
        ]
    };
    indices(tokens).into_iter().map(one).collect()
}

fn inline(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let changes = tokens.declared(&["var"]);
    let lets = tokens.values().into_iter().filter(|(sign, value)| {
        let constant = |at: usize| tokens.text(at) != "[" && !changes.contains(&tokens.text(at));
        tokens.text(sign.wrapping_sub(2)) == "let" && value.clone().all(constant)
    });
    let one = |(sign, value): (usize, Range<usize>)| {
        let (name, whole) = (tokens.text(sign - 1), sign - 2..value.end + 1);
        let uses = tokens
            .all(name)
            .filter(|at| !whole.contains(at) && tokens.text(at - 1) != ".");
        let new = format!("({})", tokens.source(value));
        let mut edit: TokenEdits = uses.map(|at| (at..at + 1, new.clone())).collect();
        edit.push((whole.clone(), String::new()));
        edit
    };
    lets.map(one).collect()
}

fn commute(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let all = tokens
        .operators(3..5)
        .filter(|at| matches!(tokens.text(*at), "+" | "*"));
    let one = |at: usize| {
        let (left, right) = tokens.operands(at);
        let (a, b) = (tokens.source(left.clone()), tokens.source(right.clone()));
        vec![(
            left.start..right.end,
            format!("{b} {} ({a})", tokens.text(at)),
        )]
    };
    all.map(one).collect()
}

fn fma(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let products = tokens.operators(4..5).filter(|at| tokens.text(*at) == "*");
    let one = |at: usize| {
        let (left, right) = tokens.operands(at);
        let (a, b) = (tokens.source(left.clone()), tokens.source(right.clone()));
        let (before, after) = (left.start - 1, right.end);
        match (tokens.text(before), tokens.text(after)) {
            ("+=", ";") => {
                let sum = tokens.source(statement_start(tokens, before)..before);
                let new = format!("= fma({a}, {b}, {sum})");
                Some(vec![(before..right.end, new)])
            }
            ("=" | "(", "+") => {
                let (_, term) = tokens.operands(after);
                let new = format!("fma({a}, {b}, {})", tokens.source(term.clone()));
                Some(vec![(left.start..term.end, new)])
            }
            _ => None,
        }
    };
    products.filter_map(one).collect()
}

fn statement_start(tokens: &WgslTokens<'_>, at: usize) -> usize {
    let mut all = tokens.statements().into_iter();
    all.find(|statement| statement.contains(&at))
        .map_or(at, |statement| statement.start)
}

fn split(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let all = tokens
        .values()
        .into_iter()
        .filter(|(sign, _)| tokens.text(*sign) == "+=");
    let one = |(sign, value): (usize, Range<usize>)| {
        let start = statement_start(tokens, sign);
        let sum = tokens.source(start..sign);
        let new = format!(
            "let more = {};\n{sum} = more + {sum};",
            tokens.source(value.clone())
        );
        vec![(start..value.end + 1, new)]
    };
    all.map(one).collect()
}

/// Changes the workgroup size where each invocation works alone, or all share work in steps of `LANES`.
fn workgroup_size(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let lanes = tokens
        .all("LANES")
        .filter(|at| tokens.text(at.wrapping_sub(1)) == "const");
    let lanes = lanes.map(|at| at + 4..at + 5);
    let written = tokens
        .calls("workgroup_size")
        .filter_map(|(_, sizes)| sizes.first().cloned());
    let places = lanes.chain(written).filter(|place| {
        let is_number = tokens
            .text(place.start)
            .starts_with(|c: char| c.is_ascii_digit());
        is_number && tokens.all("coopMultiplyAdd").next().is_none()
    });
    tokens.changed(places, &["32u", "128u", "256u"])
}

fn helper(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let one = |(_, index): (Range<usize>, Range<usize>)| {
        // The last `+` of the index, between u32 operands.
        let plus = index.clone().rfind(|at| tokens.text(*at) == "+")?;
        let (left, right) = tokens.operands(plus);
        let call = format!(
            "main_index({}, {})",
            tokens.source(left.clone()),
            tokens.source(right.clone())
        );
        let function = "fn main_index(from: u32, by: u32) -> u32 { return from + by; }\n\n";
        let entry = tokens
            .all("@")
            .find(|at| tokens.text(at + 1) == "compute")?;
        Some(vec![
            (left.start..right.end, call),
            (entry..entry, function.to_owned()),
        ])
    };
    indices(tokens).into_iter().filter_map(one).collect()
}

/// Writes `if (c) { return; } rest` as `if (!(c)) { rest }`.
fn guard(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let one = |condition: Range<usize>| {
        let (open, first) = (condition.end + 1, condition.end + 5);
        let returns = tokens.text(open + 1) == "return" && tokens.text(open + 3) == "}";
        let last = tokens.list.len() - 1;
        (returns && first < last).then(|| {
            vec![
                (
                    condition.clone(),
                    format!("!({})", tokens.source(condition.clone())),
                ),
                (open + 1..open + 4, String::new()),
                (last..last, "}\n".to_owned()),
            ]
        })
    };
    tokens.conditions().into_iter().filter_map(one).collect()
}

fn pointer(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let stores = tokens
        .values()
        .into_iter()
        .filter(|(sign, _)| tokens.text(sign - 1) == "]");
    let one = |(sign, _): (usize, Range<usize>)| {
        let start = statement_start(tokens, sign);
        let new = format!("let to = &{};\n*to ", tokens.source(start..sign));
        vec![(start..sign, new)]
    };
    stores.map(one).collect()
}

fn uniform_load(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let all = tokens.values().into_iter().map(|(_, value)| value);
    let first =
        all.filter(|value| value.len() == 4 && matches!(tokens.text(value.start + 2), "0" | "0u"));
    tokens.changed(first, &["workgroupUniformLoad(&{})"])
}

fn constant(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let one = |name: &str| {
        let mut all = tokens.all(name);
        let declared = all.next()?;
        let end = (declared..tokens.list.len()).find(|at| tokens.text(*at) == ";")?;
        let value = format!("({})", tokens.source(declared + 4..end));
        let uses = tokens
            .all(name)
            .filter(|at| *at > end && tokens.text(at - 1) != ".");
        Some(uses.map(|at| (at..at + 1, value.clone())).collect())
    };
    let names = tokens.declared(&["const"]).into_iter();
    names
        .filter_map(one)
        .filter(|edit: &TokenEdits| !edit.is_empty())
        .collect()
}

fn more_barriers(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let calls = tokens.calls("workgroupBarrier").map(|(at, _)| at..at);
    tokens.changed(calls, &["storageBarrier();\n", "workgroupBarrier();\n"])
}

fn bounded(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let buffers = tokens.all("storage").map(|at| tokens.text(at + 4));
    let buffers: Vec<&str> = buffers.collect();
    let all = tokens
        .inside("[")
        .filter(|index| buffers.contains(&tokens.text(index.start - 2)));
    let one = |index: Range<usize>| {
        let buffer = tokens.text(index.start - 2);
        let new = format!(
            "min({}, arrayLength(&{buffer}) - 1u)",
            tokens.source(index.clone())
        );
        vec![(index, new)]
    };
    all.map(one).collect()
}

/// Makes `var<workgroup> name: array<…>` a member of a struct.
fn in_struct(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let one = |at: usize| {
        let (name, end) = (
            tokens.text(at + 2),
            (at..tokens.list.len()).find(|at| tokens.text(*at) == ";")?,
        );
        let ty = tokens.source(at + 4..end);
        let new =
            format!("struct Held {{ round: u32, {name}: {ty} }}\nvar<workgroup> held_in: Held;");
        let uses = tokens
            .all(name)
            .filter(|use_at| *use_at > end && tokens.text(use_at - 1) != ".");
        let mut edit: TokenEdits = uses
            .map(|at| (at..at + 1, format!("held_in.{name}")))
            .collect();
        edit.push((at.wrapping_sub(2)..end + 1, new));
        Some(edit)
    };
    tokens.all("workgroup").filter_map(one).collect()
}
