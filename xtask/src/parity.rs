//! `cargo xtask parity`: the committed tables of upstream's flags, controllers and feature gates, against its binary.
//!
//! The tests of the workspace compare our code with the tables; this command compares the tables with what
//! `kube-controller-manager --help` of the control plane prints, and our own `--help` with it. Help does not show everything: hidden flags, gates that
//! are GA or deprecated, aliases and required gates of controllers stay unchecked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{control_plane, step};

const FLAGS: &str = "config/tests/data/flags.tsv";
/// The flags that upstream does not have; everything else in our help is upstream's but for the sentences.
const OWN_FLAGS: &str = "config/tests/data/own-flags.tsv";
const GATES: &str = "config/tests/data/feature-gates.tsv";
const CONTROLLERS: &str = "controller-manager/tests/data/controllers.tsv";

/// Builds upstream's binary if it is missing, and compares.
pub(crate) fn run() -> Result<()> {
    control_plane::build()?;
    let help = step::output(Command::new(control_plane::program("kube-controller-manager")?).arg("--help"))?;
    let flags = flags(&help);
    let usage_of = |name: &str| flags.get(name).map(|flag| flag.usage.as_str()).unwrap_or_default();
    let mut differences = Vec::new();
    let mut check = |table: &str, committed: Lines, printed: Lines| {
        println!("{table}: {} rows in the help", printed.len());
        ensure!(!printed.is_empty(), "the help of upstream's binary is not understood: nothing for {table}");
        differences.extend(compare(&committed, &printed).into_iter().map(|line| format!("{table}: {line}")));
        Ok(())
    };
    check(
        FLAGS,
        committed_flags(&read(FLAGS)?)?,
        flags.iter().map(|(name, flag)| (name.clone(), flag.row())).collect(),
    )?;
    check(GATES, committed_gates(&read(GATES)?)?, gates(usage_of("feature-gates")))?;
    check(CONTROLLERS, committed_controllers(&read(CONTROLLERS)?)?, controllers(usage_of("controllers")))?;
    let own_help = step::output(Command::new("cargo").args([
        "run",
        "--quiet",
        "--package=kcm-controller-manager",
        "--bin=kube-controller-manager",
        "--",
        "--help",
    ]))?;
    let own_flags = read(OWN_FLAGS)?;
    let own_flags: BTreeSet<String> =
        self::rows::<2>(&own_flags)?.into_iter().map(|[_, name]| name.to_owned()).collect();
    let rows = |flags: BTreeMap<String, Flag>| -> Lines {
        flags.into_iter().map(|(name, flag)| (name, flag.row())).filter(|(name, _)| !own_flags.contains(name)).collect()
    };
    check("our --help", rows(self::flags(&own_help)), rows(self::flags(&help)))?;
    ensure!(
        differences.is_empty(),
        "the tables or our help differ from upstream's binary:\n  {}",
        differences.join("\n  ")
    );
    Ok(())
}

/// The compared text of each name.
type Lines = BTreeMap<String, String>;

fn read(table: &str) -> Result<String> {
    let path = step::root().join(table);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn compare(committed: &Lines, printed: &Lines) -> Vec<String> {
    let mut differences = Vec::new();
    for (name, row) in printed {
        match committed.get(name) {
            None => differences.push(format!("{name} is missing ({row})")),
            Some(other) if other != row => differences.push(format!("{name} is {row:?}, and {other:?} in the table")),
            Some(_) => {}
        }
    }
    let gone = committed.keys().filter(|name| !printed.contains_key(*name));
    differences.extend(gone.map(|name| format!("{name} is not in the help")));
    differences
}

/// A flag as the help prints it.
struct Flag {
    section: String,
    short: String,
    kind: String,
    usage: String,
}

impl Flag {
    /// The default at the end of the usage; the help omits a zero value.
    fn default(&self) -> &str {
        let default = self.usage.rsplit_once("(default ").and_then(|(_, rest)| rest.strip_suffix(')'));
        default.unwrap_or_default().trim_matches('"')
    }

    fn row(&self) -> String {
        row(&self.section, &self.short, &self.kind, self.default())
    }
}

fn row(section: &str, short: &str, kind: &str, default: &str) -> String {
    // Ours prints lists as flags take them, and the defaults that upstream leaves out.
    let default = default.trim_matches(['[', ']', '"']);
    let default = if ["false", "0", "0s"].contains(&default) { "" } else { default };
    format!("{section}|{short}|{kind}|{default}")
}

/// Reads sections, flags and the lines of usage that follow each.
fn flags(help: &str) -> BTreeMap<String, Flag> {
    let mut flags: BTreeMap<String, Flag> = BTreeMap::new();
    let (mut section, mut last) = (String::new(), None);
    for line in help.lines() {
        if let Some(name) = line.strip_suffix(" flags:").filter(|name| !name.starts_with(' ')) {
            name.clone_into(&mut section);
            last = None;
            continue;
        }
        let text = line.trim_start();
        let is_flag = (line.len() - text.len() <= 6) && text.starts_with('-') && !section.is_empty();
        if is_flag {
            let (short, long) = match text.split_once(", --") {
                Some((short, long)) if short.len() == 2 => (&short[1..], long),
                _ => ("", text.trim_start_matches("--")),
            };
            let (declaration, usage) = long.split_once("  ").unwrap_or((long, ""));
            let (name, kind) = declaration.split_once(' ').unwrap_or((declaration, "bool"));
            let flag = Flag {
                section: section.clone(),
                short: short.to_owned(),
                kind: kind.to_owned(),
                usage: usage.trim().to_owned(),
            };
            flags.insert(name.to_owned(), flag);
            last = Some(name.to_owned());
        } else if let Some(flag) = last.as_ref().and_then(|name| flags.get_mut(name)) {
            flag.usage.push('\n');
            flag.usage.push_str(text);
        }
    }
    for flag in flags.values_mut() {
        flag.usage.truncate(flag.usage.trim_end().len());
    }
    flags
}

/// Rows of a table, each with this many columns.
fn rows<const COLUMNS: usize>(table: &str) -> Result<Vec<[&str; COLUMNS]>> {
    let rows = table.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.map(|row| row.try_into().ok().with_context(|| format!("a row does not have {COLUMNS} columns"))).collect()
}

fn committed_flags(table: &str) -> Result<Lines> {
    let rows = rows::<6>(table)?.into_iter();
    let shown = rows.filter(|[.., note]| !note.contains("hidden"));
    Ok(shown
        .map(|[section, name, short, kind, default, _]| (name.to_owned(), row(section, short, kind, default)))
        .collect())
}

/// Gates as `kube:Name=true|false (BETA - default=true)`.
fn gates(usage: &str) -> Lines {
    let lines = usage.lines().filter_map(|line| line.trim().strip_prefix("kube:")?.split_once("=true|false "));
    lines.map(|(name, state)| (name.to_owned(), state.split(')').next().unwrap_or_default().to_owned())).collect()
}

fn committed_gates(table: &str) -> Result<Lines> {
    let rows = rows::<5>(table)?.into_iter();
    let shown = rows.filter(|[_, stage, ..]| ["Alpha", "Beta"].contains(stage));
    Ok(shown
        .map(|[name, stage, default, ..]| (name.to_owned(), format!("({} - default={default}", stage.to_uppercase())))
        .collect())
}

fn controllers(usage: &str) -> Lines {
    let list = |heading: &str| -> Vec<String> {
        let line = usage.lines().find_map(|line| line.trim().strip_prefix(heading)).unwrap_or_default();
        let line = line.split(" (default").next().unwrap_or_default();
        line.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    };
    let off = list("Disabled-by-default controllers:");
    let state = |name: &String| if off.contains(name) { "off" } else { "on" }.to_owned();
    list("All controllers:").into_iter().map(|name| (name.clone(), state(&name))).collect()
}

fn committed_controllers(table: &str) -> Result<Lines> {
    let rows = rows::<6>(table)?.into_iter();
    Ok(rows.map(|[name, _, default, ..]| (name.to_owned(), default.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::{compare, controllers, flags, gates};

    const HELP: &str = "\
Usage:
  manager [flags]

Generic flags:

      --controllers strings      A list. '*' enables all.
                                 All controllers: a-controller, b-controller
                                 Disabled-by-default controllers: b-controller (default [*])
      --name string              A name. (default \"x\")
      --feature-gates map        Options are:
                                 kube:AlphaOne=true|false (ALPHA - default=false)
Logs flags:

  -v, --v Level                  number for the log level verbosity
      --quiet                    Less.
";

    #[test]
    fn flags_have_section_type_and_default() {
        let flags = flags(HELP);
        let rows: Vec<String> = flags.iter().map(|(name, flag)| format!("{name}: {}", flag.row())).collect();
        assert_eq!(
            rows,
            [
                "controllers: Generic||strings|*",
                "feature-gates: Generic||map|",
                "name: Generic||string|x",
                "quiet: Logs||bool|",
                "v: Logs|v|Level|",
            ]
        );
    }

    #[test]
    fn controllers_and_gates_are_in_the_usage_of_their_flags() {
        let flags = flags(HELP);
        let controllers: Vec<_> = controllers(&flags["controllers"].usage).into_iter().collect();
        assert_eq!(
            controllers,
            [("a-controller".to_owned(), "on".to_owned()), ("b-controller".to_owned(), "off".to_owned())]
        );
        let gates: Vec<_> = gates(&flags["feature-gates"].usage).into_iter().collect();
        assert_eq!(gates, [("AlphaOne".to_owned(), "(ALPHA - default=false".to_owned())]);
    }

    #[test]
    fn a_row_may_be_missing_different_or_gone() {
        let lines = |rows: &[(&str, &str)]| rows.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let found =
            compare(&lines(&[("a", "1"), ("b", "1"), ("c", "1")]), &lines(&[("b", "2"), ("c", "1"), ("d", "1")]));
        assert_eq!(found, ["b is \"2\", and \"1\" in the table", "d is missing (1)", "a is not in the help"]);
    }
}
