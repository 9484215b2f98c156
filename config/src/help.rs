//! The help: every flag with its type, its help and its default, under the heading of its section.
//!
//! # Upstream
//! The layout is pflag's, so that the same programs can read both.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::row::Row;
use crate::value::Kind;

/// The sections before the sections of controllers, and after them. Sections of controllers are sorted by name.
const FIRST: [&str; 6] =
    ["Debugging", "Leader-migration", "Generic", "Secure serving", "Authentication", "Authorization"];
const LAST: [&str; 4] = ["Metrics", "Logs", "Misc", GLOBAL];
const GLOBAL: &str = "Global";

/// The narrowest column of text. If the terminal is narrower, the text begins on a line of its own.
const NARROWEST: usize = 30;
/// Indentation of text on a line of its own.
const INDENT: usize = 10;

/// Renders the flags of `rows`, without those that are deprecated, and `--help` and `--version`.
///
/// Lines are wrapped to `width` columns, if there is one.
pub(crate) fn render(rows: &[Row], width: Option<usize>) -> String {
    let mut sections: BTreeMap<(usize, &str), Vec<(String, String)>> = BTreeMap::new();
    let mut shown: Vec<_> = rows.iter().filter(|row| row.deprecated.is_none()).collect();
    shown.sort_by_key(|row| row.name);
    for row in shown {
        if let Some(flag) = row.flag() {
            sections.entry(place(row.section)).or_default().push((declaration(row, flag), row.described()));
        }
    }
    let global = [
        ("  -h, --help", "Print this help."),
        ("      --version version[=true]", "Print the version; --version=raw prints more of it."),
    ];
    let global = global.map(|(flag, help)| (flag.to_owned(), help.to_owned()));
    sections.entry(place(GLOBAL)).or_default().extend(global);
    let mut help = String::new();
    for ((_, section), flags) in sections {
        if !help.is_empty() {
            help.push('\n');
        }
        writeln!(help, "{section} flags:\n").expect("a string takes everything");
        let column = flags.iter().map(|(flag, _)| flag.len()).max().unwrap_or(0) + 3;
        for (flag, text) in flags {
            push(&mut help, &flag, &text, column, width);
        }
    }
    help
}

/// Returns the sort key of a section.
fn place(section: &str) -> (usize, &str) {
    let first = FIRST.iter().position(|known| *known == section);
    let last = LAST.iter().position(|known| *known == section).map(|position| FIRST.len() + 1 + position);
    (first.or(last).unwrap_or(FIRST.len()), section)
}

fn declaration(row: &Row, flag: &str) -> String {
    let short = row.short.map_or_else(|| "      ".to_owned(), |short| format!("  -{short}, "));
    match row.kind() {
        Kind::Bool => format!("{short}--{flag}"),
        kind @ (Kind::Int32
        | Kind::Int
        | Kind::Float32
        | Kind::Float64
        | Kind::Duration
        | Kind::String
        | Kind::Strings
        | Kind::Int32s
        | Kind::Ip
        | Kind::Map
        | Kind::CertKeys
        | Kind::Quantity
        | Kind::Level
        | Kind::ModuleLevels
        | Kind::FeatureGates
        | Kind::Objects) => format!("{short}--{flag} {}", kind.name()),
    }
}

fn push(help: &mut String, flag: &str, text: &str, column: usize, width: Option<usize>) {
    let fits = width.is_none_or(|width| width >= column + NARROWEST);
    let column = if fits { column } else { INDENT };
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(column).max(NARROWEST));
    let mut lines = wrapped(text, room).into_iter();
    if fits {
        let first = lines.next().unwrap_or_default();
        writeln!(help, "{flag:column$}{first}").expect("a string takes everything");
    } else {
        writeln!(help, "{flag}").expect("a string takes everything");
    }
    for line in lines {
        writeln!(help, "{:column$}{line}", "").expect("a string takes everything");
    }
}

/// The text in lines of at most `width` characters, if there is a width; a longer word has a line of its own.
#[must_use]
pub fn wrap(text: &str, width: Option<usize>) -> String {
    let paragraphs = text.lines().map(|line| wrapped(line, width.unwrap_or(usize::MAX)).join("\n"));
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// The text in lines of at most `room` characters; a longer word has a line of its own.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Initial;

    fn rows() -> [Row; 5] {
        [
            Row::new("size", "Hello", Initial::Int32(1)).help("How large the greeting is, from small to very large."),
            Row::new("loud", "Hello", Initial::Bool(false)).help("Shout."),
            Row::new("v", "Logs", Initial::Level(0)).short('v').help("More."),
            Row::new("profiling", "Debugging", Initial::Bool(true)).help("Profile."),
            Row::new("old", "Hello", Initial::Bool(true)).help("Gone soon.").deprecated("leave it out"),
        ]
    }

    #[test]
    fn flags_stand_in_columns_under_their_headings() {
        assert_eq!(
            render(&rows(), None),
            "\
Debugging flags:

      --profiling   Profile. (default true)

Hello flags:

      --loud         Shout. (default false)
      --size int32   How large the greeting is, from small to very large. (default 1)

Logs flags:

  -v, --v Level   More. (default 0)

Global flags:

  -h, --help                     Print this help.
      --version version[=true]   Print the version; --version=raw prints more of it.
"
        );
    }

    #[test]
    fn lines_are_wrapped_to_the_terminal() {
        let wide = render(&rows()[..1], Some(60));
        assert!(
            wide.contains(
                "      --size int32   How large the greeting is, from small\n                     to very large. (default 1)\n"
            ),
            "{wide}"
        );
        let narrow = render(&rows()[..1], Some(42));
        assert!(
            narrow.contains(
                "      --size int32\n          How large the greeting is, from\n          small to very large. (default 1)\n"
            ),
            "{narrow}"
        );
    }
}
