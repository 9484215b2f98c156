//! The English of comments and pages, measured: patterns of translated text may only become rarer.
//!
//! `tests/data/english.tsv` has a budget for each pattern in each kind of text. `UPDATE=1` lowers the budgets to today's
//! counts, and never raises one. After a merge conflict in that file, keep either side and run with `UPDATE=1`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The page that explains the patterns. It quotes them, and is not measured.
const PAGE: &str = "docs/english.md";
const BUDGETS: &str = "controller-manager/tests/data/english.tsv";
const UPDATE: &str = "UPDATE=1 cargo test -p kcm-controller-manager --test english";

/// The largest distance between a count and its budget, so that a branch need not touch the budgets for each sentence.
const SLACK: usize = 10;

/// The crates that are not published: all their items are private.
const UNPUBLISHED: [&str; 4] = ["e2e", "xtask", "fuzz", "examples"];

/// A kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Text {
    /// Comments on `pub` items of published crates, and the pages of their `lib.rs`.
    Public,
    /// All comments that are not public.
    Private,
    /// Markdown pages, which include the help of every flag.
    Pages,
}

impl Text {
    const fn name(self) -> &'static str {
        match self {
            Self::Public => "comments on public items",
            Self::Private => "comments on private items",
            Self::Pages => "pages and help",
        }
    }
}

/// A pattern of translated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pattern {
    What,
    Whether,
    How,
    Pronoun,
    Where,
    Short,
}

impl Pattern {
    const ALL: [Self; 6] = [Self::What, Self::Whether, Self::How, Self::Pronoun, Self::Where, Self::Short];

    const fn name(self) -> &'static str {
        match self {
            Self::What => "begins with What",
            Self::Whether => "begins with Whether",
            Self::How => "begins with How many, How long or How often",
            Self::Pronoun => "that of, those of, one that, ones that",
            Self::Where => "where",
            Self::Short => "doc comment of at most three words",
        }
    }

    const fn phrases(self) -> &'static [&'static str] {
        match self {
            Self::What => &["What"],
            Self::Whether => &["Whether"],
            Self::How => &["How many", "How long", "How often"],
            Self::Pronoun => &["that of", "those of", "one that", "ones that"],
            Self::Where => &["where"],
            Self::Short => &[],
        }
    }

    /// Counts the pattern in a line of a comment, which begins with its slashes.
    fn in_comment(self, line: &str) -> usize {
        let begins = |phrase: &&&str| {
            let text = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
            text.is_some_and(|text| starts_with_phrase(text, phrase))
        };
        match self {
            Self::What | Self::Whether | Self::How => self.phrases().iter().filter(begins).count(),
            Self::Pronoun | Self::Where => self.phrases().iter().map(|phrase| count(line, phrase)).sum(),
            Self::Short => 0,
        }
    }

    /// Counts the pattern in a line of a page. A sentence begins after a full stop, and at the start of a line or cell.
    fn in_page(self, line: &str) -> usize {
        let sentences = || line.split(['|', '.']).map(|part| part.trim_start_matches([' ', '-', '*', '>', '#']));
        match self {
            Self::What | Self::Whether | Self::How => {
                let begins = |phrase: &&str| sentences().filter(|text| starts_with_phrase(text, phrase)).count();
                self.phrases().iter().map(begins).sum()
            }
            Self::Pronoun | Self::Where => self.phrases().iter().map(|phrase| count(line, phrase)).sum(),
            Self::Short => 0,
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn starts_with_phrase(text: &str, phrase: &str) -> bool {
    text.strip_prefix(phrase).is_some_and(|rest| !rest.bytes().next().is_some_and(is_word))
}

/// Counts a phrase of whole words.
fn count(line: &str, phrase: &str) -> usize {
    let bytes = line.as_bytes();
    let is_whole = |(at, _): &(usize, &str)| {
        let before = at.checked_sub(1).is_some_and(|before| is_word(bytes[before]));
        let after = bytes.get(at + phrase.len()).copied().is_some_and(is_word);
        !before && !after
    };
    line.match_indices(phrase).filter(is_whole).count()
}

type Counts = BTreeMap<(Text, Pattern), usize>;

fn add(counts: &mut Counts, text: Text, pattern: Pattern, count: usize) {
    *counts.entry((text, pattern)).or_default() += count;
}

/// Counts the patterns in the comments of a source file.
fn count_comments(counts: &mut Counts, source: &str, is_published: bool, is_lib: bool) {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_comment = |line: &&str| line.starts_with("//");
    let is_doc = |line: &&&str| line.starts_with("///") || line.starts_with("//!");
    let mut rest = &lines[..];
    while let Some(start) = rest.iter().position(&is_comment) {
        rest = &rest[start..];
        let end = rest.iter().position(|line| !is_comment(line)).unwrap_or(rest.len());
        let (block, after) = rest.split_at(end);
        rest = after;
        let is_page = is_lib && block[0].starts_with("//!");
        let text = if is_published && (is_page || is_public(after)) { Text::Public } else { Text::Private };
        for line in block {
            for pattern in Pattern::ALL {
                add(counts, text, pattern, pattern.in_comment(line));
            }
        }
        let docs: Vec<&&str> = block.iter().filter(is_doc).collect();
        let words = docs.iter().map(|line| line[3..].split_whitespace().count()).sum::<usize>();
        if !docs.is_empty() && words <= 3 {
            add(counts, text, Pattern::Short, 1);
        }
    }
}

/// Returns `true` if the first item of these lines is public. Attributes come before it.
fn is_public(lines: &[&str]) -> bool {
    let mut in_attribute = false;
    for line in lines {
        if in_attribute || line.starts_with("#[") {
            in_attribute = !line.ends_with(']');
        } else {
            return line.starts_with("pub ");
        }
    }
    false
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").to_path_buf()
}

/// Every source file and page beneath a folder, without build output and hidden folders.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            found.push(path);
        }
    }
}

fn counts() -> Counts {
    let mut counts = Counts::new();
    for text in [Text::Public, Text::Private, Text::Pages] {
        for pattern in Pattern::ALL.into_iter().filter(|pattern| (text, *pattern) != (Text::Pages, Pattern::Short)) {
            counts.insert((text, pattern), 0);
        }
    }
    let root = root();
    let mut found = Vec::new();
    files(&root, &mut found);
    for file in found {
        let path = file.strip_prefix(&root).expect("the file is in the workspace");
        let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if path.extension().is_some_and(|extension| extension == "rs") {
            let is_published = !UNPUBLISHED.iter().any(|folder| path.starts_with(folder))
                && path.components().any(|part| part.as_os_str() == "src");
            count_comments(&mut counts, &source, is_published, path.ends_with("src/lib.rs"));
        } else if path != Path::new(PAGE) && (path.parent() == Some(Path::new("")) || path.starts_with("docs")) {
            for line in source.lines() {
                for pattern in Pattern::ALL.into_iter().filter(|pattern| *pattern != Pattern::Short) {
                    add(&mut counts, Text::Pages, pattern, pattern.in_page(line));
                }
            }
        }
    }
    counts
}

/// Reads the budgets: text, pattern and number in each line.
fn read(table: &str) -> BTreeMap<(&str, &str), usize> {
    let rows = table.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [text, pattern, budget] = fields[..] else { panic!("{BUDGETS}: {line:?} has three fields") };
        ((text, pattern), budget.parse().unwrap_or_else(|error| panic!("{BUDGETS}: {line:?}: {error}")))
    });
    rows.collect()
}

#[test]
fn patterns_of_translated_text_become_rarer() {
    let file = root().join(BUDGETS);
    let table = fs::read_to_string(&file).unwrap_or_default();
    let budgets = read(&table);
    let counts = counts();
    if std::env::var_os("UPDATE").is_some() {
        let mut lowered = String::from("text\tpattern\tbudget\n");
        for ((text, pattern), count) in &counts {
            let budget = budgets.get(&(text.name(), pattern.name())).map_or(*count, |budget| (*budget).min(*count));
            writeln!(lowered, "{}\t{}\t{budget}", text.name(), pattern.name()).expect("a string takes everything");
        }
        fs::write(&file, lowered).expect("the budgets can be written");
    }
    let table = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{BUDGETS}: {error}: `{UPDATE}` writes it"));
    let budgets = read(&table);
    let mut wrong = Vec::new();
    for ((text, pattern), count) in counts {
        let (text, pattern) = (text.name(), pattern.name());
        let Some(&budget) = budgets.get(&(text, pattern)) else {
            wrong.push(format!("{text}: \"{pattern}\" has no budget: `{UPDATE}` adds it"));
            continue;
        };
        if count > budget {
            wrong.push(format!(
                "{text}: \"{pattern}\" occurs {count} times, and the budget is {budget}: rewrite what was added, see {PAGE}"
            ));
        } else if count + SLACK < budget {
            wrong.push(format!(
                "{text}: \"{pattern}\" occurs {count} times, and the budget is {budget}: `{UPDATE}` lowers it, in the \
                 same change"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn comments_are_counted_by_the_item_beneath_them() {
    const SOURCE: &str = "\
//! What the crate is for.

/// How many replicas there are, where that of `a` counts.
/// One that follows.
#[derive(
    Debug
)]
pub struct Public;

/// Whether it runs.
pub(crate) fn private() {
    // Where the nowhere is, everywhere is somewhere.
}

/// The name.
";
    let mut counts = Counts::new();
    count_comments(&mut counts, SOURCE, true, true);
    counts.retain(|_, count| *count > 0);
    let expected = [
        ((Text::Public, Pattern::What), 1),
        ((Text::Public, Pattern::How), 1),
        ((Text::Public, Pattern::Pronoun), 1),
        ((Text::Public, Pattern::Where), 1),
        ((Text::Private, Pattern::Whether), 1),
        ((Text::Private, Pattern::Short), 2),
    ];
    assert_eq!(counts, Counts::from(expected));
}

#[test]
fn pages_are_counted_by_sentence_and_cell() {
    let line = "- What it is. How many there are | Whether it is, where somewhat that of others";
    let counted = Pattern::ALL.map(|pattern| pattern.in_page(line));
    assert_eq!(counted, [1, 1, 1, 1, 1, 0]);
}
