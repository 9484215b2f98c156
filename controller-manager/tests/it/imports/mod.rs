//! Which module of a crate imports which, read from the text of its files.
//!
//! Paths that begin with `crate`, `self` or `super` count, in `use` declarations and elsewhere, and re-exports are
//! resolved to the module that defines the item. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The path of a module within its crate; the root is empty.
type ModulePath = Vec<String>;

struct Module {
    /// The file, relative to the folder of sources, without its extension: `["store", "index"]`, `["store", "mod"]`.
    file: Vec<String>,
    /// Every path that the file names, absolute within the crate.
    paths: BTreeSet<ModulePath>,
    /// Names that the module re-exports, each with the path behind it.
    exports: BTreeMap<String, ModulePath>,
}

/// The modules of one crate.
pub(crate) struct Imports(BTreeMap<ModulePath, Module>);

/// Siblings within one folder that import each other in a circle.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Circle {
    /// The folder, relative to the folder of sources; empty for that folder itself.
    pub(crate) folder: String,
    /// Files and folders of the circle.
    pub(crate) members: Vec<String>,
}

impl Imports {
    /// Reads the sources of a crate.
    pub(crate) fn of_crate(sources: &Path) -> Self {
        let files = rust_files(sources);
        let file_of = |file: &PathBuf| -> Vec<String> {
            let relative = file.strip_prefix(sources).expect("the file lies in the folder").with_extension("");
            relative.iter().map(|part| part.to_string_lossy().into_owned()).collect()
        };
        let modules = files.iter().filter(|file| !is_test(&file_of(file))).map(|path| {
            let file = file_of(path);
            let module = module_path(&file);
            let text = fs::read_to_string(path).expect("sources are readable");
            let (paths, exports) = named_paths(&production_text(&text), &module);
            (module, Module { file, paths, exports })
        });
        Self(modules.collect())
    }

    /// Circles between the files and folders of each folder.
    ///
    /// A file stands for itself in its folder, and for its folder in the folders above. `mod.rs` is the face of its
    /// folder and no member of it.
    pub(crate) fn circles(&self) -> Vec<Circle> {
        let mut edges: BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for module in self.0.values() {
            for path in &module.paths {
                let Some(target) = self.resolve(path, 0) else { continue };
                let (from, to) = (&module.file, &target.file);
                let shared = from.iter().zip(to).take_while(|(from, to)| from == to).count();
                let (Some(from), Some(to)) = (from.get(shared), to.get(shared)) else { continue };
                if ["mod", "lib", "main"].contains(&from.as_str()) || ["mod", "lib", "main"].contains(&to.as_str()) {
                    continue;
                }
                let folder = module.file[..shared].to_vec();
                edges.entry(folder).or_default().entry(from.clone()).or_default().insert(to.clone());
            }
        }
        let mut circles = Vec::new();
        for (folder, edges) in edges {
            let reached: BTreeMap<&String, BTreeSet<&String>> =
                edges.keys().map(|from| (from, reachable(from, &edges))).collect();
            let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
            for (from, to) in &reached {
                let back = |other: &&&String| reached.get(**other).is_some_and(|back| back.contains(from));
                let mut members: Vec<String> = to.iter().filter(back).map(|name| (*name).clone()).collect();
                members.sort();
                if members.len() > 1 {
                    found.insert(members);
                }
            }
            circles.extend(found.into_iter().map(|members| Circle { folder: folder.join("/"), members }));
        }
        circles
    }

    /// The module in which a path's item is defined.
    fn resolve(&self, path: &[String], depth: usize) -> Option<&Module> {
        let longest = (0..=path.len()).rev().find(|&length| self.0.contains_key(&path[..length]))?;
        let module = &self.0[&path[..longest]];
        match path.get(longest).and_then(|name| module.exports.get(name)) {
            // A glob or a name that is exported in two steps; a limit, as two modules may export each other's names.
            Some(target) if depth < 8 && target != path => self.resolve(target, depth + 1),
            Some(_) | None => Some(module),
        }
    }
}

fn reachable<'a>(from: &'a String, edges: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        for to in edges.get(next).into_iter().flatten() {
            if reached.insert(to) {
                open.push(to);
            }
        }
    }
    reached
}

pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("sources are readable") {
            let path = entry.expect("sources are readable").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn is_test(file: &[String]) -> bool {
    file.iter().any(|part| part == "tests")
}

/// `store/index.rs` is `store::index`, `store/mod.rs` is `store`, `lib.rs` is the root.
fn module_path(file: &[String]) -> ModulePath {
    match file.split_last() {
        Some((last, parents)) if ["mod", "lib", "main"].contains(&last.as_str()) => parents.to_vec(),
        _ => file.to_vec(),
    }
}

/// The text without comments and without the module of tests, which ends a file.
fn production_text(text: &str) -> String {
    let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths in a text, and its re-exports.
fn named_paths(text: &str, module: &[String]) -> (BTreeSet<ModulePath>, BTreeMap<String, ModulePath>) {
    let tokens = tokens(text);
    let (mut paths, mut exports) = (BTreeSet::new(), BTreeMap::new());
    let mut at = 0;
    while at < tokens.len() {
        let is_path = ["crate", "self", "super"].contains(&tokens[at]) && tokens.get(at + 1) == Some(&"::");
        let follows_path = at > 0 && tokens[at - 1] == "::";
        if is_path && !follows_path {
            let mut tree = Tree { tokens: &tokens, at, found: Vec::new() };
            tree.read(&absolute(&[], module));
            paths.extend(tree.found.iter().map(|(path, _)| path.clone()));
            at = tree.at.max(at + 1);
        } else if tokens[at] == "use" && at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")") {
            let mut tree = Tree { tokens: &tokens, at: at + 1, found: Vec::new() };
            tree.read(module);
            exports.extend(tree.found.iter().filter_map(|(path, name)| Some((name.clone()?, path.clone()))));
            paths.extend(tree.found.into_iter().map(|(path, _)| path));
            at = tree.at.max(at + 1);
        } else {
            at += 1;
        }
    }
    (paths, exports)
}

fn absolute(path: &[&str], module: &[String]) -> ModulePath {
    module.iter().cloned().chain(path.iter().map(ToString::to_string)).collect()
}

/// Words, `::`, and every other sign by itself.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let length = if is_word(first) {
            rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    tokens
}

/// A path or a tree of paths, as `a::{b, c::{self, d as e}}`.
struct Tree<'a> {
    tokens: &'a [&'a str],
    at: usize,
    /// Each path, with the name that it is imported under.
    found: Vec<(ModulePath, Option<String>)>,
}

impl Tree<'_> {
    fn read(&mut self, base: &[String]) {
        let mut path = base.to_vec();
        let mut name = None;
        while let Some(&token) = self.tokens.get(self.at) {
            match token {
                "crate" => path.clear(),
                "self" => {}
                "super" => drop(path.pop()),
                "{" => {
                    self.at += 1;
                    while self.tokens.get(self.at).is_some_and(|token| *token != "}") {
                        self.read(&path);
                        if self.tokens.get(self.at) == Some(&",") {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                word if word.chars().next().is_some_and(|letter| letter.is_alphabetic() || letter == '_') => {
                    path.push(word.to_owned());
                    name = Some(word.to_owned());
                }
                _other => break,
            }
            self.at += 1;
            if self.tokens.get(self.at) == Some(&"::") {
                self.at += 1;
            } else {
                break;
            }
        }
        if self.tokens.get(self.at) == Some(&"as") {
            name = self.tokens.get(self.at + 1).map(ToString::to_string);
            self.at += 2;
        }
        if self.at < self.tokens.len() && !matches!(self.tokens[self.at], "," | "}" | ";") && path.len() == base.len() {
            self.at += 1;
        }
        self.found.push((path, name));
    }
}
