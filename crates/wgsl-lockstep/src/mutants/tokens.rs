//! A WGSL text as tokens, with the structure that edits need: brackets, operands, statements and loops. Tokens have no types; naga
//! decides whether an edited text is a valid shader.

use std::ops::Range;

use super::rng::Rng;

/// The signs of more than one character, longer ones first.
const SIGNS: [&str; 19] = [
    "<<=", ">>=", "->", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "++",
    "--", "<<", ">>", "::",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Name,
    /// A literal, or a size such as `{{N}}u`.
    Number,
    Sign,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) kind: TokenKind,
    /// The offset of the first byte.
    at: usize,
    /// The counterpart of a bracket.
    pair: Option<usize>,
}

/// Ranges of tokens, each with its new text.
pub(crate) type TokenEdits = Vec<(Range<usize>, String)>;

/// Makes all edits of one kind that a text allows.
pub(crate) type Operator = fn(&WgslTokens<'_>, &mut Rng) -> Vec<TokenEdits>;

/// `for (init; condition; update) { body }`, each as a range of tokens without brackets.
pub(crate) struct Loop {
    /// From `for` to the last bracket.
    pub(crate) whole: Range<usize>,
    pub(crate) init: Range<usize>,
    pub(crate) condition: Range<usize>,
    pub(crate) update: Range<usize>,
    pub(crate) body: Range<usize>,
}

pub(crate) struct WgslTokens<'a> {
    pub(crate) source: &'a str,
    pub(crate) list: Vec<Token<'a>>,
}

impl<'a> WgslTokens<'a> {
    /// Reads a text without comments and white space.
    pub(crate) fn read(source: &'a str) -> Self {
        let (mut list, mut open) = (Vec::<Token<'a>>::new(), Vec::new());
        let mut at = 0;
        while let Some(c) = source[at..].chars().next() {
            let rest = &source[at..];
            let word = |rest: &str| {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                end.unwrap_or(rest.len())
            };
            let (kind, length) = match c {
                _ if c.is_whitespace() => {
                    at += c.len_utf8();
                    continue;
                }
                _ if rest.starts_with("//") => {
                    at += rest.find('\n').unwrap_or(rest.len());
                    continue;
                }
                _ if rest.starts_with("/*") => {
                    at += rest.find("*/").map_or(rest.len(), |end| end + 2);
                    continue;
                }
                _ if rest.starts_with("{{") && rest.contains("}}") => {
                    let end = rest.find("}}").map_or(2, |end| end + 2);
                    (TokenKind::Number, end + number(&rest[end..]))
                }
                '0'..='9' => (TokenKind::Number, number(rest)),
                _ if c.is_alphabetic() || c == '_' => (TokenKind::Name, word(rest)),
                _ => {
                    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                    let length = sign.map_or(c.len_utf8(), |sign| sign.len());
                    (TokenKind::Sign, length)
                }
            };
            let number = list.len();
            let mut pair = None;
            match c {
                '(' | '[' | '{' if kind == TokenKind::Sign => open.push(number),
                ')' | ']' | '}' => pair = open.pop(),
                _ => {}
            }
            if let Some(first) = pair {
                list[first].pair = Some(number);
            }
            let text = &rest[..length];
            list.push(Token {
                text,
                kind,
                at,
                pair,
            });
            at += length;
        }
        Self { source, list }
    }

    /// Returns the text of a token; empty past the end.
    pub(crate) fn text(&self, token: usize) -> &'a str {
        self.list.get(token).map_or("", |token| token.text)
    }

    fn bytes(&self, tokens: &Range<usize>) -> Range<usize> {
        let Some(first) = self.list.get(tokens.start) else {
            return self.source.len()..self.source.len();
        };
        let end = if tokens.is_empty() {
            first.at
        } else {
            let last = &self.list[tokens.end - 1];
            last.at + last.text.len()
        };
        first.at..end
    }

    /// Returns the source from the first to the last of these tokens.
    pub(crate) fn source(&self, tokens: Range<usize>) -> &'a str {
        &self.source[self.bytes(&tokens)]
    }

    /// Returns the text after an edit, whose ranges must not overlap.
    pub(crate) fn apply(&self, mut edit: TokenEdits) -> String {
        edit.sort_by_key(|(tokens, _)| tokens.start);
        let (mut text, mut done) = (String::new(), 0);
        for (tokens, new) in edit {
            let bytes = self.bytes(&tokens);
            text += self.source.get(done..bytes.start).unwrap_or_default();
            text += &new;
            done = bytes.end.max(done);
        }
        text + &self.source[done..]
    }

    /// Changes each of these places in each of these ways, one for each edit; `{}` stands for what is there.
    pub(crate) fn changed(
        &self,
        places: impl Iterator<Item = Range<usize>>,
        changes: &[impl AsRef<str>],
    ) -> Vec<TokenEdits> {
        let one = |place: Range<usize>| {
            changes.iter().map(move |change| {
                let new = change.as_ref().replace("{}", self.source(place.clone()));
                vec![(place.clone(), new)]
            })
        };
        places.flat_map(one).collect()
    }

    pub(crate) fn is_name(&self, token: usize) -> bool {
        let found = self.list.get(token);
        found.is_some_and(|found| found.kind == TokenKind::Name) && self.text(token) != "return"
    }

    /// Returns the tokens with this text.
    pub(crate) fn all<'t>(&'t self, text: &'t str) -> impl Iterator<Item = usize> + 't {
        (0..self.list.len()).filter(move |at| self.text(*at) == text)
    }

    /// Returns the binary operators with a precedence in `levels`: 1 for `||` and `&&`, 2 for comparisons, 3 for sums, 4 for products.
    pub(crate) fn operators(&self, levels: Range<u8>) -> impl Iterator<Item = usize> + '_ {
        let is_one = move |at: &usize| {
            precedence(self.text(*at)).is_some_and(|level| levels.contains(&level))
                && !self.is_prefix(*at)
        };
        (1..self.list.len()).filter(is_one)
    }

    /// Returns true if a sign is a unary operator.
    pub(crate) fn is_prefix(&self, token: usize) -> bool {
        let before = token.checked_sub(1);
        let operand = |at: usize| {
            self.is_name(at)
                || self.list[at].kind == TokenKind::Number
                || matches!(self.text(at), ")" | "]")
        };
        matches!(self.text(token), "-" | "!" | "*" | "&" | "~") && !before.is_some_and(operand)
    }

    /// Returns the end of a factor: unary operators, then a name, number or bracket, then calls, indices and members.
    fn factor_end(&self, mut at: usize) -> usize {
        while self.is_prefix(at) {
            at += 1;
        }
        at = self.bracket_end(at);
        loop {
            at = match self.text(at) {
                "(" | "[" => self.bracket_end(at),
                "." => at + 2,
                _ => return at.min(self.list.len()),
            };
        }
    }

    fn bracket_end(&self, at: usize) -> usize {
        let pair = self.list.get(at).and_then(|token| token.pair);
        pair.filter(|pair| *pair > at).unwrap_or(at) + 1
    }

    /// Returns the start of the factor that ends at `end`.
    fn factor_start(&self, end: usize) -> usize {
        let mut at = end.saturating_sub(1);
        loop {
            let first = self.list[at].pair.filter(|first| *first < at);
            at = first.unwrap_or(at);
            let before = self.text(at.wrapping_sub(1));
            if first.is_some() && at > 0 && (self.is_name(at - 1) || matches!(before, ")" | "]")) {
                at -= 1;
            } else if first.is_none() && at > 1 && before == "." {
                at -= 2;
            } else {
                break;
            }
        }
        while at > 0 && self.is_prefix(at - 1) {
            at -= 1;
        }
        at
    }

    /// Returns both operands of a binary operator.
    pub(crate) fn operands(&self, operator: usize) -> (Range<usize>, Range<usize>) {
        let level = precedence(self.text(operator)).unwrap_or(0);
        let mut start = self.factor_start(operator);
        while start > 1 && precedence(self.text(start - 1)).is_some_and(|other| other >= level) {
            start = self.factor_start(start - 1);
        }
        let mut end = self.factor_end(operator + 1);
        while precedence(self.text(end)).is_some_and(|other| other > level) {
            end = self.factor_end(end + 1);
        }
        (start..operator, operator + 1..end)
    }

    /// Returns the tokens inside each pair of these brackets.
    pub(crate) fn inside<'t>(&'t self, open: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        self.all(open)
            .filter_map(|at| Some(at + 1..self.list[at].pair?))
    }

    /// Returns the parts of a range between separators outside of brackets.
    pub(crate) fn split(&self, tokens: Range<usize>, separator: &str) -> Vec<Range<usize>> {
        let (mut all, mut start, mut token) = (Vec::new(), tokens.start, tokens.start);
        while token < tokens.end {
            if self.text(token) == separator {
                all.push(start..token);
                start = token + 1;
            }
            token = self.bracket_end(token);
        }
        all.push(start..tokens.end);
        all
    }

    /// Returns the calls of a function: the token of its name, and its arguments.
    pub(crate) fn calls<'t>(
        &'t self,
        name: &'t str,
    ) -> impl Iterator<Item = (usize, Vec<Range<usize>>)> + 't {
        let called = self.all(name).filter(|at| self.text(at + 1) == "(");
        called.filter_map(|at| {
            let end = self.list[at + 1].pair?;
            Some((at, self.split(at + 2..end, ",")))
        })
    }

    /// Returns the statements that end with `;`, without the parts of a loop's head.
    pub(crate) fn statements(&self) -> Vec<Range<usize>> {
        let (mut all, mut start, mut depth, mut at) = (Vec::new(), 0, 0, 0);
        while at < self.list.len() {
            match self.text(at) {
                "(" | "[" => {
                    at = self.bracket_end(at);
                    continue;
                }
                sign @ ("{" | "}") => {
                    depth = match sign {
                        "{" => depth + 1,
                        _ => depth.max(1) - 1,
                    };
                    start = at + 1;
                }
                ";" => {
                    if depth > 0 && start < at {
                        all.push(start..at + 1);
                    }
                    start = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        all
    }

    /// Returns the assignments: the sign, and the value without the semicolon.
    pub(crate) fn values(&self) -> Vec<(usize, Range<usize>)> {
        let assigns = |at: &usize| matches!(self.text(*at), "=" | "+=" | "-=" | "*=" | "/=");
        let all = self.statements().into_iter();
        all.filter_map(|statement| {
            let sign = statement.clone().find(assigns)?;
            Some((sign, sign + 1..statement.end - 1))
        })
        .collect()
    }

    pub(crate) fn loops(&self) -> Vec<Loop> {
        let all = self.all("for").filter_map(|at| {
            let close = self.list.get(at + 1)?.pair?;
            let end = self.list.get(close + 1)?.pair?;
            let parts = self.split(at + 2..close, ";");
            let [init, condition, update] = <[_; 3]>::try_from(parts).ok()?;
            Some(Loop {
                whole: at..end + 1,
                init,
                condition,
                update,
                body: close + 2..end,
            })
        });
        all.collect()
    }

    /// Returns the conditions of `if`.
    pub(crate) fn conditions(&self) -> Vec<Range<usize>> {
        let all = self.all("if").filter(|at| self.text(at + 1) == "(");
        all.filter_map(|at| Some(at + 2..self.list[at + 1].pair?))
            .collect()
    }

    /// Returns the names that the text declares with one of these words; `:` stands for arguments.
    pub(crate) fn declared(&self, words: &[&str]) -> Vec<&'a str> {
        let after = |at: usize| {
            let is = |at: usize, sign: &str| usize::from(self.text(at) == sign);
            let skipped = at + 1 + 3 * is(at + 1, "<");
            // `var<storage, read_write>` has another word.
            skipped + 2 * is(skipped, ">")
        };
        let by_word = (0..self.list.len()).filter(|at| words.contains(&self.text(*at)));
        let by_word = by_word.map(after);
        let arguments = self.all(":").filter(|_| words.contains(&":"));
        let arguments = arguments.map(|at| at - 1);
        let found = by_word.chain(arguments).filter(|at| self.is_name(*at));
        let mut names: Vec<&str> = found.map(|at| self.text(at)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Returns the length of a literal with its suffix.
fn number(text: &str) -> usize {
    let mut before = ' ';
    let end = text.find(|c: char| {
        let part = c.is_alphanumeric() || c == '.' || matches!(c, '-' | '+') && before == 'e';
        before = c;
        !part
    });
    end.unwrap_or(text.len())
}

fn precedence(sign: &str) -> Option<u8> {
    match sign {
        "||" | "&&" => Some(1),
        "<" | ">" | "<=" | ">=" | "==" | "!=" => Some(2),
        "+" | "-" => Some(3),
        "*" | "/" | "%" => Some(4),
        _ => None,
    }
}
