//! Which file uses which. An arrow goes from a file to the file that defines an item it names: in a `use`, or in a path
//! such as `panels::loss::render`. Test code makes no arrows. A method that is called on a value is not seen, and a file
//! that only re-exports what lies below it does not use it.

use std::collections::{BTreeMap, BTreeSet};

use super::source::File;

/// A path that a file names, as it stands there.
pub struct Named {
    pub line: usize,
    pub path: Vec<String>,
    /// Made absolute, without `crate`; None for other crates and for names of the file itself.
    pub absolute: Option<Vec<String>>,
    re_export: bool,
}

/// Where one file uses another, and what of it.
pub struct Arrow {
    pub line: usize,
    pub names: BTreeSet<String>,
}

/// Arrows by their ends, which are indices of files.
pub type Arrows = BTreeMap<(usize, usize), Arrow>;

/// What names mean in one file.
struct Scope {
    /// What the file defines, at any depth.
    defined: BTreeSet<String>,
    /// Names that `use` brought in, and where they come from.
    imported: BTreeMap<String, Vec<String>>,
    /// Modules of which `use` brought in everything.
    globs: Vec<Vec<String>>,
}

pub struct Sources<'a> {
    pub files: &'a [File],
    scopes: Vec<Scope>,
    pub named: Vec<Vec<Named>>,
    by_module: BTreeMap<&'a [String], usize>,
}

impl<'a> Sources<'a> {
    pub fn new(files: &'a [File]) -> Self {
        let library = files.iter().enumerate();
        let library = library.filter(|(_, file)| file.path != "src/main.rs");
        let mut sources = Self {
            files,
            scopes: Vec::new(),
            named: Vec::new(),
            by_module: library
                .map(|(at, file)| (file.module.as_slice(), at))
                .collect(),
        };
        for file in files {
            let mut scope = Scope {
                defined: defined(file),
                imported: BTreeMap::new(),
                globs: Vec::new(),
            };
            let mut named = sources.read(file, &mut scope);
            named.retain(|one| !one.path.is_empty());
            // What a path through an imported module or type means is known when all imports are.
            for one in named.iter_mut().filter(|one| one.absolute.is_none()) {
                if let Some(start) = scope.imported.get(&one.path[0]) {
                    one.absolute = Some([start, &one.path[1..]].concat());
                }
            }
            sources.scopes.push(scope);
            sources.named.push(named);
        }
        sources
    }

    /// All paths that the file names outside of tests.
    fn read(&self, file: &File, scope: &mut Scope) -> Vec<Named> {
        let mut named = Vec::new();
        // Modules written inside the file, each with the number of open braces around it.
        let (mut inline, mut braces) = (Vec::<(String, usize)>::new(), 0);
        let mut at = 0;
        while at < file.tokens.len() {
            let mut next = at + 1;
            match file.token(at) {
                _ if file.tokens[at].test => {}
                "{" => braces += 1,
                "}" => {
                    braces -= 1;
                    inline.retain(|(_, outside)| *outside < braces);
                }
                "mod" if file.token(at + 2) == "{" => {
                    inline.push((file.token(at + 1).to_owned(), braces));
                }
                "use" => {
                    let mut found = Vec::new();
                    next = use_tree(file, at + 1, &[], &mut found);
                    for (line, path, name) in found {
                        let absolute = self.absolute(file, &inline, &path);
                        if let Some(absolute) = &absolute {
                            if name == "*" {
                                scope.globs.push(absolute.clone());
                            } else {
                                scope.imported.insert(name, absolute.clone());
                            }
                        }
                        named.push(Named {
                            line,
                            path,
                            absolute,
                            re_export: is_public(file, at),
                        });
                    }
                }
                text if is_name(text) && file.token(at + 1) == "::" => {
                    let mut path = vec![text.to_owned()];
                    while file.token(next) == "::" && is_name(file.token(next + 1)) {
                        path.push(file.token(next + 1).to_owned());
                        next += 2;
                    }
                    let after_path = at > 0 && file.token(at - 1) == "::";
                    if path.len() > 1 && !after_path {
                        named.push(Named {
                            line: file.tokens[at].line,
                            absolute: self.absolute(file, &inline, &path),
                            path,
                            re_export: false,
                        });
                    }
                }
                _ => {}
            }
            at = next;
        }
        named
    }

    /// A path from the crate's root; None where it begins with another crate or a name of the file.
    fn absolute(
        &self,
        file: &File,
        inline: &[(String, usize)],
        path: &[String],
    ) -> Option<Vec<String>> {
        let mut base = file.module.clone();
        base.extend(inline.iter().map(|(name, _)| name.clone()));
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => (base, rest) = (Vec::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|it| it == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            child => {
                let below = [file.module.as_slice(), &[child.to_owned()]].concat();
                self.by_module.get(below.as_slice())?;
                base.truncate(file.module.len());
            }
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    /// The file that defines what an absolute path names, and the name; None for a module.
    fn defining(&self, path: &[String], depth: usize) -> Option<(usize, String)> {
        let (at, rest) = (0..=path.len())
            .rev()
            .find_map(|end| Some((*self.by_module.get(&path[..end])?, &path[end..])))?;
        let name = rest.first()?;
        let scope = &self.scopes[at];
        // Re-exports of re-exports end; eight are more than anybody writes.
        if !scope.defined.contains(name) && depth < 8 {
            if let Some(start) = scope.imported.get(name) {
                return self.defining(&[start, &rest[1..]].concat(), depth + 1);
            }
            let through = scope.globs.iter().find_map(|glob| {
                let found = self.defining(&[glob, rest].concat(), depth + 1)?;
                let there = &self.scopes[found.0].defined;
                there.contains(name).then_some(found)
            });
            if through.is_some() {
                return through;
            }
        }
        Some((at, name.clone()))
    }

    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, named) in self.named.iter().enumerate() {
            for one in named {
                let Some(path) = &one.absolute else { continue };
                let Some((to, name)) = self.defining(path, 0) else {
                    continue;
                };
                let below = self.files[to].module.starts_with(&self.files[from].module);
                if to == from || (one.re_export && below) {
                    continue;
                }
                let arrow = arrows.entry((from, to)).or_insert(Arrow {
                    line: one.line,
                    names: BTreeSet::new(),
                });
                arrow.names.insert(name);
            }
        }
        arrows
    }
}

/// Groups of files in which each is reached from each other.
pub fn circles(arrows: &Arrows) -> Vec<BTreeSet<usize>> {
    let reached = |from: usize| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            let targets = arrows.range((at, 0)..(at + 1, 0)).map(|((_, to), _)| *to);
            open.extend(targets.filter(|to| seen.insert(*to)));
        }
        seen
    };
    let from_each: BTreeMap<usize, BTreeSet<usize>> = arrows
        .keys()
        .map(|(from, _)| (*from, reached(*from)))
        .collect();
    let mut circles = BTreeSet::new();
    for (from, targets) in from_each.iter().filter(|(from, it)| it.contains(from)) {
        let back = |to: &&usize| from_each.get(to).is_some_and(|it| it.contains(from));
        circles.insert(
            targets
                .iter()
                .filter(back)
                .copied()
                .collect::<BTreeSet<_>>(),
        );
    }
    circles.into_iter().collect()
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether the `use` at `at` has `pub` or `pub(…)` before it.
fn is_public(file: &File, at: usize) -> bool {
    at > 0 && (file.token(at - 1) == "pub" || file.token(at - 1) == ")")
}

/// Names of functions, types, constants, macros and modules that a file defines, at any depth.
fn defined(file: &File) -> BTreeSet<String> {
    const KEYWORDS: [&str; 9] = [
        "fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod",
    ];
    let mut names = BTreeSet::new();
    for at in 0..file.tokens.len() {
        let name = if file.has(at, &["macro_rules", "!"]) {
            file.token(at + 2)
        } else if KEYWORDS.contains(&file.token(at)) {
            // `mod name;` is defined in the file of that name.
            let elsewhere = file.token(at) == "mod" && file.token(at + 2) == ";";
            if elsewhere { "" } else { file.token(at + 1) }
        } else {
            ""
        };
        if is_name(name) {
            names.insert(name.to_owned());
        }
    }
    names
}

/// Reads `a::{b, c as d, e::*}` from `at` on, and returns where it ends. Each path comes with its line and the name it gets.
fn use_tree(
    file: &File,
    mut at: usize,
    before: &[String],
    found: &mut Vec<(usize, Vec<String>, String)>,
) -> usize {
    let mut path = before.to_vec();
    loop {
        match file.token(at) {
            "::" => at += 1,
            "{" => {
                at += 1;
                while !matches!(file.token(at), "}" | "") {
                    at = use_tree(file, at, &path, found);
                    at += usize::from(file.token(at) == ",");
                }
                return at + 1;
            }
            "*" => {
                found.push((file.tokens[at].line, path, "*".to_owned()));
                return at + 1;
            }
            // `self` at the end of a path stands for the path before it.
            "self" if !path.is_empty() => at += 1,
            text if is_name(text) && text != "as" => {
                path.push(text.to_owned());
                at += 1;
            }
            _ => break,
        }
    }
    let line = file.tokens[at.min(file.tokens.len() - 1)].line;
    let mut name = path.last().cloned().unwrap_or_default();
    if file.token(at) == "as" {
        name = file.token(at + 1).to_owned();
        at += 2;
    }
    found.push((line, path, name));
    at
}
