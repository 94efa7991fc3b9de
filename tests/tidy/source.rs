//! The files of `src` as tokens: comments, strings and characters left out, each token with its line and whether it is
//! test code. No parser: what these rules need is told from names, `::` and brackets.

use std::fs;
use std::path::Path;

pub struct Token {
    pub line: usize,
    /// A name or number, `::`, or one other character.
    pub text: String,
    /// Below `#[cfg(test)]`.
    pub test: bool,
}

pub struct File {
    /// From the root of the repository: `src/app/view.rs`.
    pub path: String,
    /// `["app", "view"]`; empty for `lib.rs` and `main.rs`.
    pub module: Vec<String>,
    pub text: String,
    pub tokens: Vec<Token>,
}

/// Every Rust file below `src`, in order of path.
pub fn files() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    collect(&root.join("src"), &mut paths);
    paths.sort();
    let mut files: Vec<File> = paths
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).expect("a source file");
            let path = path.strip_prefix(root).expect("below the root");
            File::new(&path.to_string_lossy(), text)
        })
        .collect();
    mark_test_files(&mut files);
    files
}

fn collect(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("a source folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
}

impl File {
    pub fn new(path: &str, text: String) -> Self {
        let name = path.trim_start_matches("src/").trim_end_matches(".rs");
        let module = match name {
            "lib" | "main" => Vec::new(),
            _ => name.split('/').map(str::to_owned).collect(),
        };
        let mut tokens = tokens(&text);
        mark_test_items(&mut tokens);
        Self {
            path: path.to_owned(),
            module,
            text,
            tokens,
        }
    }

    /// The text of token `at`; empty past the end.
    pub fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &token.text)
    }

    /// Whether these tokens begin at `at`.
    pub fn has(&self, at: usize, texts: &[&str]) -> bool {
        has(&self.tokens, at, texts)
    }
}

fn has(tokens: &[Token], at: usize, texts: &[&str]) -> bool {
    let here = tokens[at..].iter().map(|token| token.text.as_str());
    here.take(texts.len()).eq(texts.iter().copied())
}

fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let (mut at, mut line) = (0, 1);
    let mut tokens = Vec::new();
    while at < chars.len() {
        let end = at + length(&chars[at..]);
        let word: String = chars[at..end].iter().collect();
        let named = is_word(chars[at]) && !word.contains(['"', '\'']);
        let other = word == "::" || (end == at + 1 && !chars[at].is_whitespace());
        if named || other {
            tokens.push(Token {
                line,
                text: word.clone(),
                test: false,
            });
        }
        line += word.matches('\n').count();
        at = end;
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How many characters the next comment, literal, name or other character has.
fn length(rest: &[char]) -> usize {
    let starts = |text: &str| rest.iter().copied().take(text.len()).eq(text.chars());
    let find = |from: usize, end: &str| {
        let end: Vec<char> = end.chars().collect();
        let found = rest[from..].windows(end.len()).position(|it| *it == end);
        found.map_or(rest.len(), |at| from + at + end.len())
    };
    let word = rest.iter().take_while(|c| is_word(**c)).count();
    let prefix: String = rest[..word].iter().collect();
    let hashes = rest[word..].iter().take_while(|c| **c == '#').count();
    let quote = word + hashes;
    if starts("//") {
        find(0, "\n") - 1
    } else if starts("/*") {
        find(2, "*/")
    } else if ["r", "br", "cr"].contains(&prefix.as_str()) && rest.get(quote) == Some(&'"') {
        find(quote + 1, &format!("\"{}", "#".repeat(hashes)))
    } else if ["", "b", "c"].contains(&prefix.as_str()) && rest.get(word) == Some(&'"') {
        quoted(rest, word, '"')
    } else if ["", "b"].contains(&prefix.as_str()) && rest.get(word) == Some(&'\'') {
        // A character, or a lifetime, which has no second quote.
        let character = rest.get(word + 1) == Some(&'\\') || rest.get(word + 2) == Some(&'\'');
        if character {
            quoted(rest, word, '\'')
        } else {
            1 + rest[1..].iter().take_while(|c| is_word(**c)).count()
        }
    } else if starts("::") {
        2
    } else {
        word.max(1)
    }
}

/// The end of a literal that begins with `quote` at `from`.
fn quoted(rest: &[char], from: usize, quote: char) -> usize {
    let mut at = from + 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Marks what follows `#[cfg(test)]` and `#[cfg(all(test, …))]`, up to the end of the item.
fn mark_test_items(tokens: &mut [Token]) {
    let is_test = |tokens: &[Token], at| {
        has(tokens, at, &["#", "[", "cfg", "(", "test", ")"])
            || has(tokens, at, &["#", "[", "cfg", "(", "all", "(", "test", ","])
    };
    let mut at = 0;
    while at < tokens.len() {
        let mut end = at + 1;
        if is_test(tokens, at) {
            end = end_of_item(tokens, at);
            tokens[at..end].iter_mut().for_each(|it| it.test = true);
        }
        at = end;
    }
}

/// Past the `;` or `}` that ends the item which begins at `at` with its attributes.
fn end_of_item(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, token) in tokens[at..].iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" if depth == 1 => return at + offset + 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return at + offset + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// `#[cfg(test)] mod check;` makes the whole file `check.rs` test code.
fn mark_test_files(files: &mut [File]) {
    let mut tested = Vec::new();
    for file in files.iter() {
        for at in 0..file.tokens.len() {
            let declared = file.token(at) == "mod" && file.token(at + 2) == ";";
            if declared && file.tokens[at].test {
                let mut module = file.module.clone();
                module.push(file.token(at + 1).to_owned());
                tested.push(module);
            }
        }
    }
    for file in files {
        if tested.iter().any(|it| file.module.starts_with(it)) {
            file.tokens.iter_mut().for_each(|it| it.test = true);
        }
    }
}
