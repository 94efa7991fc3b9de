//! Splits a WGSL text into tokens, and finds the brackets, operands, statements and loops that edits need. Tokens have no types, so an
//! edited text may be invalid.

use std::collections::BTreeSet;
use std::ops::Range;

use super::rng::Rng;

/// The signs of more than one character. Longer ones come first, because the first match is taken.
const SIGNS: [&str; 19] = [
    "<<=", ">>=", "->", "==", "!=", "<=", ">=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "++",
    "--", "<<", ">>", "::",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Name,
    /// A literal, or a placeholder such as `{{N}}u`.
    Number,
    Sign,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) kind: TokenKind,
    /// The offset of the first byte.
    offset: usize,
    /// For a bracket, the index of its counterpart.
    pair: Option<usize>,
}

/// One change of a text: ranges of tokens, each with its new text.
pub(crate) type TokenEdits = Vec<(Range<usize>, String)>;

/// Returns all changes of one kind that a text allows.
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

/// A text with its tokens. Methods name a token by its index in `list`.
pub(crate) struct WgslTokens<'a> {
    pub(crate) source: &'a str,
    pub(crate) list: Vec<Token<'a>>,
}

impl<'a> WgslTokens<'a> {
    /// Reads the tokens of a text, without comments and white space.
    pub(crate) fn read(source: &'a str) -> Self {
        let mut list = Vec::<Token<'a>>::new();
        let mut open_brackets = Vec::new();
        let mut offset = 0;
        while let Some(c) = source[offset..].chars().next() {
            let rest = &source[offset..];
            let word = |rest: &str| {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                end.unwrap_or(rest.len())
            };
            let (kind, length) = match c {
                _ if c.is_whitespace() => {
                    offset += c.len_utf8();
                    continue;
                }
                _ if rest.starts_with("//") => {
                    offset += rest.find('\n').unwrap_or(rest.len());
                    continue;
                }
                _ if rest.starts_with("/*") => {
                    offset += rest.find("*/").map_or(rest.len(), |end| end + 2);
                    continue;
                }
                _ if rest.starts_with("{{") && rest.contains("}}") => {
                    let end = rest.find("}}").map_or(2, |end| end + 2);
                    (TokenKind::Number, end + number_length(&rest[end..]))
                }
                '0'..='9' => (TokenKind::Number, number_length(rest)),
                _ if c.is_alphabetic() || c == '_' => (TokenKind::Name, word(rest)),
                _ => {
                    let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                    let length = sign.map_or(c.len_utf8(), |sign| sign.len());
                    (TokenKind::Sign, length)
                }
            };
            let index = list.len();
            let mut pair = None;
            match c {
                '(' | '[' | '{' if kind == TokenKind::Sign => open_brackets.push(index),
                ')' | ']' | '}' => pair = open_brackets.pop(),
                _ => {}
            }
            if let Some(first) = pair {
                list[first].pair = Some(index);
            }
            let text = &rest[..length];
            list.push(Token {
                text,
                kind,
                offset,
                pair,
            });
            offset += length;
        }
        Self { source, list }
    }

    /// Returns the text of a token; empty past the end.
    pub(crate) fn text(&self, token: usize) -> &'a str {
        self.list.get(token).map_or("", |token| token.text)
    }

    /// Returns the range of bytes of a range of tokens.
    fn bytes(&self, tokens: &Range<usize>) -> Range<usize> {
        let Some(first) = self.list.get(tokens.start) else {
            return self.source.len()..self.source.len();
        };
        let end = if tokens.is_empty() {
            first.offset
        } else {
            let last = &self.list[tokens.end - 1];
            last.offset + last.text.len()
        };
        first.offset..end
    }

    /// Returns the source from the first to the last of these tokens.
    pub(crate) fn source(&self, tokens: Range<usize>) -> &'a str {
        &self.source[self.bytes(&tokens)]
    }

    /// Returns the text after an edit, whose ranges must not overlap.
    pub(crate) fn apply(&self, mut edit: TokenEdits) -> String {
        edit.sort_by_key(|(tokens, _)| tokens.start);
        let mut text = String::new();
        let mut copied = 0;
        for (tokens, new) in edit {
            let bytes = self.bytes(&tokens);
            text += self.source.get(copied..bytes.start).unwrap_or_default();
            text += &new;
            copied = bytes.end.max(copied);
        }
        text + &self.source[copied..]
    }

    /// Returns one edit for each place and each change. A change is the new text, in which `{}` is replaced by the old text.
    pub(crate) fn changed(
        &self,
        places: impl Iterator<Item = Range<usize>>,
        changes: &[impl AsRef<str>],
    ) -> Vec<TokenEdits> {
        let mut all = Vec::new();
        for place in places {
            let old = self.source(place.clone());
            for change in changes {
                all.push(vec![(place.clone(), change.as_ref().replace("{}", old))]);
            }
        }
        all
    }

    /// Returns true for a name other than `return`, which an operand can follow.
    pub(crate) fn is_name(&self, token: usize) -> bool {
        let found = self.list.get(token);
        found.is_some_and(|found| found.kind == TokenKind::Name) && self.text(token) != "return"
    }

    /// Returns true for the name of a member or of an attribute: `x` in `id.x`, `group` in `@group(0)`.
    pub(crate) fn is_member(&self, token: usize) -> bool {
        matches!(self.text(token.wrapping_sub(1)), "." | "@")
    }

    /// Returns all tokens with this text.
    pub(crate) fn all<'t>(&'t self, text: &'t str) -> impl Iterator<Item = usize> + 't {
        (0..self.list.len()).filter(move |token| self.text(*token) == text)
    }

    /// Returns the binary operators.
    pub(crate) fn operators(&self) -> impl Iterator<Item = usize> + '_ {
        (1..self.list.len())
            .filter(|token| precedence(self.text(*token)).is_some() && !self.is_prefix(*token))
    }

    /// Returns the comparisons among the binary operators.
    pub(crate) fn comparisons(&self) -> impl Iterator<Item = usize> + '_ {
        self.operators()
            .filter(|token| precedence(self.text(*token)) == Some(COMPARISON))
    }

    /// Returns true if a sign is a unary operator.
    pub(crate) fn is_prefix(&self, token: usize) -> bool {
        let ends_operand = |before: usize| {
            self.is_name(before)
                || self.list[before].kind == TokenKind::Number
                || matches!(self.text(before), ")" | "]")
        };
        let follows_operand = token.checked_sub(1).is_some_and(ends_operand);
        matches!(self.text(token), "-" | "!" | "*" | "&" | "~") && !follows_operand
    }

    /// Returns the end of a factor: unary operators, then a name, number or bracket, then calls, indices and members.
    fn factor_end(&self, start: usize) -> usize {
        let mut end = start;
        while self.is_prefix(end) {
            end += 1;
        }
        end = self.bracket_end(end);
        loop {
            end = match self.text(end) {
                "(" | "[" => self.bracket_end(end),
                "." => end + 2,
                _ => return end.min(self.list.len()),
            };
        }
    }

    /// Returns the token after a bracket and its counterpart, or after any other token.
    fn bracket_end(&self, token: usize) -> usize {
        let pair = self.list.get(token).and_then(|token| token.pair);
        pair.filter(|pair| *pair > token).unwrap_or(token) + 1
    }

    /// Returns the start of the factor that ends at `end`.
    fn factor_start(&self, end: usize) -> usize {
        let mut start = end.saturating_sub(1);
        loop {
            let bracket = self.list[start].pair.filter(|first| *first < start);
            start = bracket.unwrap_or(start);
            let before = self.text(start.wrapping_sub(1));
            let is_call_or_index =
                start > 0 && (self.is_name(start - 1) || matches!(before, ")" | "]"));
            if bracket.is_some() && is_call_or_index {
                start -= 1;
            } else if bracket.is_none() && start > 1 && before == "." {
                start -= 2;
            } else {
                break;
            }
        }
        while start > 0 && self.is_prefix(start - 1) {
            start -= 1;
        }
        start
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
            .filter_map(|bracket| Some(bracket + 1..self.list[bracket].pair?))
    }

    /// Returns the parts of a range between separators outside of brackets.
    pub(crate) fn split(&self, tokens: Range<usize>, separator: &str) -> Vec<Range<usize>> {
        let mut all = Vec::new();
        let mut start = tokens.start;
        let mut token = tokens.start;
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
        self.all(name)
            .filter(|token| self.text(token + 1) == "(")
            .filter_map(|token| {
                let end = self.list[token + 1].pair?;
                Some((token, self.split(token + 2..end, ",")))
            })
    }

    /// Returns the statements that end with `;`, without the parts of a loop's head.
    pub(crate) fn statements(&self) -> Vec<Range<usize>> {
        let mut all = Vec::new();
        let mut start = 0;
        let mut depth = 0_usize;
        let mut token = 0;
        while token < self.list.len() {
            match self.text(token) {
                "(" | "[" => {
                    token = self.bracket_end(token);
                    continue;
                }
                "{" => {
                    depth += 1;
                    start = token + 1;
                }
                "}" => {
                    depth = depth.saturating_sub(1);
                    start = token + 1;
                }
                ";" => {
                    if depth > 0 && start < token {
                        all.push(start..token + 1);
                    }
                    start = token + 1;
                }
                _ => {}
            }
            token += 1;
        }
        all
    }

    /// Returns the assignments: the sign, and the value without the semicolon.
    pub(crate) fn values(&self) -> Vec<(usize, Range<usize>)> {
        let mut all = Vec::new();
        for mut statement in self.statements() {
            let end = statement.end - 1;
            let assigns =
                |token: &usize| matches!(self.text(*token), "=" | "+=" | "-=" | "*=" | "/=");
            if let Some(sign) = statement.find(assigns) {
                all.push((sign, sign + 1..end));
            }
        }
        all
    }

    /// Returns the loops that are written with `for`.
    pub(crate) fn loops(&self) -> Vec<Loop> {
        let parts_of = |start: usize| {
            let close = self.list.get(start + 1)?.pair?;
            let end = self.list.get(close + 1)?.pair?;
            let parts = self.split(start + 2..close, ";");
            let [init, condition, update] = <[_; 3]>::try_from(parts).ok()?;
            Some(Loop {
                whole: start..end + 1,
                init,
                condition,
                update,
                body: close + 2..end,
            })
        };
        self.all("for").filter_map(parts_of).collect()
    }

    /// Returns the conditions of `if` statements, without brackets.
    pub(crate) fn conditions(&self) -> Vec<Range<usize>> {
        self.all("if")
            .filter(|token| self.text(token + 1) == "(")
            .filter_map(|token| Some(token + 2..self.list[token + 1].pair?))
            .collect()
    }

    /// Returns the names that are declared with one of these keywords, sorted. The keyword `:` stands for arguments and members.
    pub(crate) fn declared(&self, keywords: &[&str]) -> Vec<&'a str> {
        let mut names = BTreeSet::new();
        for keyword in 0..self.list.len() {
            let text = self.text(keyword);
            if !keywords.contains(&text) {
                continue;
            }
            let name = if text == ":" {
                keyword.wrapping_sub(1)
            } else {
                self.name_after(keyword)
            };
            if self.is_name(name) {
                names.insert(self.text(name));
            }
        }
        names.into_iter().collect()
    }

    /// Returns the token of the name that a keyword declares: after `let`, `var<workgroup>` or `var<storage, read_write>`.
    fn name_after(&self, keyword: usize) -> usize {
        match (self.text(keyword + 1), self.text(keyword + 3)) {
            ("<", ">") => keyword + 4,
            ("<", _) => keyword + 6,
            _ => keyword + 1,
        }
    }
}

/// Returns the length of a literal with its suffix.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    let end = text.find(|c: char| {
        let is_exponent_sign = matches!(c, '-' | '+') && before == 'e';
        before = c;
        !(c.is_alphanumeric() || c == '.' || is_exponent_sign)
    });
    end.unwrap_or(text.len())
}

/// The precedence of comparisons.
const COMPARISON: u8 = 2;

/// Returns the precedence of a binary operator; products have the highest.
fn precedence(sign: &str) -> Option<u8> {
    match sign {
        "||" | "&&" => Some(1),
        "<" | ">" | "<=" | ">=" | "==" | "!=" => Some(COMPARISON),
        "+" | "-" => Some(3),
        "*" | "/" | "%" => Some(4),
        _ => None,
    }
}
