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
    ("a name for an index", name_index),
    ("one name fewer", inline),
    ("operands exchanged", exchange_operands),
    ("fma", fma),
    ("a sum in two statements", split_sum),
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

/// Returns one edit for each change, which changes all places at once. In a change, `{}` is replaced by the old text.
fn change_all(
    tokens: &WgslTokens<'_>,
    places: &[Range<usize>],
    changes: &[&str],
) -> Vec<TokenEdits> {
    if places.is_empty() {
        return Vec::new();
    }
    let mut all = Vec::new();
    for change in changes {
        let new = |place: &Range<usize>| change.replace("{}", tokens.source(place.clone()));
        all.push(
            places
                .iter()
                .map(|place| (place.clone(), new(place)))
                .collect(),
        );
    }
    all
}

/// Returns an edit that replaces a name by `new` outside of its declaration.
fn replace_uses(
    tokens: &WgslTokens<'_>,
    name: &str,
    declaration: &Range<usize>,
    new: &str,
) -> TokenEdits {
    tokens
        .all(name)
        .filter(|token| !declaration.contains(token) && !tokens.is_member(*token))
        .map(|token| (token..token + 1, new.to_owned()))
        .collect()
}

/// Gives all variables other names, in one of several styles.
fn rename(tokens: &WgslTokens<'_>, rng: &mut Rng) -> Vec<TokenEdits> {
    let names = tokens.declared(&["let", "var", "const", ":"]);
    let uses: Vec<Range<usize>> = (0..tokens.list.len())
        .filter(|token| names.contains(&tokens.text(*token)) && !tokens.is_member(*token))
        .map(|token| token..token + 1)
        .collect();
    let with_number = format!("_{{}}{}", rng.below(100));
    change_all(tokens, &uses, &["main_{}", &with_number, "größe_{}"])
}

/// Adds blank lines or a comment behind every statement.
fn comments(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let statements = tokens.statements().into_iter();
    let ends: Vec<Range<usize>> = statements
        .map(|statement| statement.end..statement.end)
        .collect();
    let texts = [
        "\n\n\n",
        " // fn main() { workgroupBarrier(); for (;;) {} }\n",
        " /* /* x[i] */ @workgroup_size(1) */ ",
        "\r\n\t",
    ];
    change_all(tokens, &ends, &texts)
}

/// The parts of a loop that counts up.
struct CountedLoop<'a> {
    name: &'a str,
    start: &'a str,
    end: &'a str,
    step: &'a str,
    body: &'a str,
    /// All tokens of the loop.
    whole: Range<usize>,
}

/// Returns the loops that count up by equal steps and whose iterations can run in any order.
fn counted_loops<'a>(tokens: &WgslTokens<'a>) -> Vec<CountedLoop<'a>> {
    let mut counted = Vec::new();
    for head in tokens.loops() {
        let counts_up = tokens.text(head.update.start + 1) == "+="
            && tokens.text(head.condition.start + 1) == "<";
        let has_order = head
            .body
            .clone()
            .any(|token| tokens.text(token).ends_with("Barrier") || tokens.text(token) == "break");
        if counts_up && !has_order {
            counted.push(CountedLoop {
                name: tokens.text(head.init.start + 1),
                start: tokens.source(head.init.start + 3..head.init.end),
                end: tokens.source(head.condition.start + 2..head.condition.end),
                step: tokens.source(head.update.start + 2..head.update.end),
                body: tokens.source(head.body),
                whole: head.whole,
            });
        }
    }
    counted
}

fn backwards(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for CountedLoop {
        name,
        start,
        end,
        step,
        body,
        whole,
    } in counted_loops(tokens)
    {
        let count = format!("(({end}) - ({start}) + ({step}) - 1u) / ({step})");
        let new = format!(
            "for (var left = select(0u, {count}, ({start}) < ({end})); left > 0u; left -= 1u) {{
                let {name} = ({start}) + (left - 1u) * ({step});
                {body}
            }}"
        );
        all.push(vec![(whole, new)]);
    }
    all
}

fn unroll(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for CountedLoop {
        name,
        start,
        end,
        step,
        body,
        whole,
    } in counted_loops(tokens)
    {
        let new = format!(
            "for (var both = {start}; both < {end}; both += 2u * ({step})) {{
                {{ let {name} = both; {body} }}
                if (both + ({step}) < {end}) {{ let {name} = both + ({step}); {body} }}
            }}"
        );
        all.push(vec![(whole, new)]);
    }
    all
}

/// Rewrites each loop with a template of `{init}`, `{condition}`, `{body}` and `{update}`.
fn other_loop(tokens: &WgslTokens<'_>, template: &str) -> Vec<TokenEdits> {
    let rewrite = |head: Loop| {
        let new = template
            .replace("{init}", tokens.source(head.init))
            .replace("{condition}", tokens.source(head.condition))
            .replace("{update}", tokens.source(head.update))
            .replace("{body}", tokens.source(head.body));
        vec![(head.whole, new)]
    };
    tokens.loops().into_iter().map(rewrite).collect()
}

fn as_while(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let template = "{ {init}; while ({condition}) { {body} {update}; } }";
    other_loop(tokens, template)
}

fn as_loop(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let template =
        "{ {init}; loop { if (!({condition})) { break; } {body} continuing { {update}; } } }";
    other_loop(tokens, template)
}

/// Returns the indices that are more than a name, each after its statement.
fn indices(tokens: &WgslTokens<'_>) -> Vec<(Range<usize>, Range<usize>)> {
    let mut all = Vec::new();
    for statement in tokens.statements() {
        for index in tokens.inside("[") {
            if statement.contains(&index.start) && index.len() > 1 {
                all.push((statement.clone(), index));
            }
        }
    }
    all
}

/// Writes `x[a + b]` as `let place = a + b; x[place]`.
fn name_index(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for (statement, index) in indices(tokens) {
        let declaration = format!("let place = {};\n", tokens.source(index.clone()));
        all.push(vec![
            (statement.start..statement.start, declaration),
            (index, "place".to_owned()),
        ]);
    }
    all
}

/// Replaces the name of a `let` with its value, if the value cannot change in between.
fn inline(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let variables = tokens.declared(&["var"]);
    let is_constant = |token: usize| {
        let text = tokens.text(token);
        text != "[" && (tokens.is_member(token) || !variables.contains(&text))
    };
    let mut all = Vec::new();
    for (sign, value) in tokens.values() {
        if tokens.text(sign.wrapping_sub(2)) != "let" || !value.clone().all(is_constant) {
            continue;
        }
        let name = tokens.text(sign - 1);
        let declaration = sign - 2..value.end + 1;
        let new = format!("({})", tokens.source(value));
        let mut edit = replace_uses(tokens, name, &declaration, &new);
        edit.push((declaration, String::new()));
        all.push(edit);
    }
    all
}

/// Writes `a + b` as `b + (a)`.
fn exchange_operands(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    tokens
        .operators()
        .filter(|operator| matches!(tokens.text(*operator), "+" | "*"))
        .map(|operator| {
            let (left, right) = tokens.operands(operator);
            let a = tokens.source(left.clone());
            let b = tokens.source(right.clone());
            let new = format!("{b} {} ({a})", tokens.text(operator));
            vec![(left.start..right.end, new)]
        })
        .collect()
}

/// Writes `sum += a * b` and `a * b + c` with `fma`.
fn fma(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let with_fma = |product: usize| {
        let (left, right) = tokens.operands(product);
        let a = tokens.source(left.clone());
        let b = tokens.source(right.clone());
        let before = left.start - 1;
        let after = right.end;
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
    tokens
        .operators()
        .filter(|operator| tokens.text(*operator) == "*")
        .filter_map(with_fma)
        .collect()
}

/// Returns the first token of the statement that a token belongs to.
fn statement_start(tokens: &WgslTokens<'_>, token: usize) -> usize {
    let mut statements = tokens.statements().into_iter();
    statements
        .find(|statement| statement.contains(&token))
        .map_or(token, |statement| statement.start)
}

/// Writes `sum += x` as `let more = x; sum = more + sum`.
fn split_sum(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for (sign, value) in tokens.values() {
        if tokens.text(sign) == "+=" {
            let start = statement_start(tokens, sign);
            let sum = tokens.source(start..sign);
            let more = tokens.source(value.clone());
            let new = format!("let more = {more};\n{sum} = more + {sum};");
            all.push(vec![(start..value.end + 1, new)]);
        }
    }
    all
}

/// Changes the workgroup size of a kernel whose invocations work alone, or share their work in steps of `LANES`.
fn workgroup_size(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    if tokens.all("coopMultiplyAdd").next().is_some() {
        return Vec::new();
    }
    let constants = tokens
        .all("LANES")
        .filter(|token| tokens.text(token.wrapping_sub(1)) == "const")
        .map(|token| token + 4..token + 5);
    let attributes = tokens
        .calls("workgroup_size")
        .filter_map(|(_, sizes)| sizes.first().cloned());
    let is_number = |size: &Range<usize>| {
        let mut characters = tokens.text(size.start).chars();
        characters.next().is_some_and(|c| c.is_ascii_digit())
    };
    let sizes = constants.chain(attributes).filter(is_number);
    tokens.changed(sizes, &["32u", "128u", "256u"])
}

/// Moves the last sum of an index into a function.
fn helper(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let with_helper = |(_, mut index): (Range<usize>, Range<usize>)| {
        let plus = index.rfind(|token| tokens.text(*token) == "+")?;
        let (left, right) = tokens.operands(plus);
        let start = tokens.source(left.clone());
        let distance = tokens.source(right.clone());
        let function =
            "fn main_index(start: u32, distance: u32) -> u32 { return start + distance; }\n\n";
        let entry = tokens
            .all("@")
            .find(|token| tokens.text(token + 1) == "compute")?;
        Some(vec![
            (
                left.start..right.end,
                format!("main_index({start}, {distance})"),
            ),
            (entry..entry, function.to_owned()),
        ])
    };
    indices(tokens)
        .into_iter()
        .filter_map(with_helper)
        .collect()
}

/// Writes `if (c) { return; } rest` as `if (!(c)) { rest }`.
fn guard(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for condition in tokens.conditions() {
        let brace = condition.end + 1;
        let last = tokens.list.len() - 1;
        let only_returns = tokens.text(brace + 1) == "return" && tokens.text(brace + 3) == "}";
        if only_returns && brace + 4 < last {
            let negated = format!("!({})", tokens.source(condition.clone()));
            all.push(vec![
                (condition, negated),
                (brace + 1..brace + 4, String::new()),
                (last..last, "}\n".to_owned()),
            ]);
        }
    }
    all
}

/// Writes `x[i] = a` as `let to = &x[i]; *to = a`.
fn pointer(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let mut all = Vec::new();
    for (sign, _) in tokens.values() {
        if tokens.text(sign - 1) == "]" {
            let start = statement_start(tokens, sign);
            let new = format!("let to = &{};\n*to ", tokens.source(start..sign));
            all.push(vec![(start..sign, new)]);
        }
    }
    all
}

/// Loads `x[0]` with `workgroupUniformLoad`.
fn uniform_load(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let first_elements = tokens
        .values()
        .into_iter()
        .map(|(_, value)| value)
        .filter(|value| value.len() == 4 && matches!(tokens.text(value.start + 2), "0" | "0u"));
    tokens.changed(first_elements, &["workgroupUniformLoad(&{})"])
}

/// Replaces the name of a constant with its value.
fn constant(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let with_value = |name: &str| {
        let start = tokens.all(name).next()?;
        let end = (start..tokens.list.len()).find(|token| tokens.text(*token) == ";")?;
        let value = format!("({})", tokens.source(start + 4..end));
        let edit = replace_uses(tokens, name, &(start..end), &value);
        (!edit.is_empty()).then_some(edit)
    };
    let names = tokens.declared(&["const"]).into_iter();
    names.filter_map(with_value).collect()
}

/// Adds a barrier before a barrier.
fn more_barriers(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let calls = tokens.calls("workgroupBarrier").map(|(name, _)| name..name);
    tokens.changed(calls, &["storageBarrier();\n", "workgroupBarrier();\n"])
}

/// Limits an index of a buffer by the length of the buffer.
fn bounded(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let buffers: Vec<&str> = tokens
        .all("storage")
        .map(|token| tokens.text(token + 4))
        .collect();
    let mut all = Vec::new();
    for index in tokens.inside("[") {
        let buffer = tokens.text(index.start - 2);
        if buffers.contains(&buffer) {
            let source = tokens.source(index.clone());
            let new = format!("min({source}, arrayLength(&{buffer}) - 1u)");
            all.push(vec![(index, new)]);
        }
    }
    all
}

/// Makes `var<workgroup> name: array<…>` a member of a struct.
fn in_struct(tokens: &WgslTokens<'_>, _: &mut Rng) -> Vec<TokenEdits> {
    let with_struct = |space: usize| {
        let name = tokens.text(space + 2);
        let end = (space..tokens.list.len()).find(|token| tokens.text(*token) == ";")?;
        let ty = tokens.source(space + 4..end);
        let declaration = space.wrapping_sub(2)..end + 1;
        let mut edit = replace_uses(tokens, name, &declaration, &format!("held_in.{name}"));
        let new =
            format!("struct Held {{ round: u32, {name}: {ty} }}\nvar<workgroup> held_in: Held;");
        edit.push((declaration, new));
        Some(edit)
    };
    tokens.all("workgroup").filter_map(with_struct).collect()
}
