//! Writes which functions the linker of the shipped binary places side by side: those that a manager has executed.
//!
//! Linux maps a file in blocks of 64 KB around each page that is touched, so executed functions that lie between
//! unexecuted functions make both resident (`docs/adr/0012-function-order.md`).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;

use anyhow::{Context, Result, bail};

use crate::step;

/// The list, which `controller-manager/build.rs` hands to the linker.
const LIST: &str = "controller-manager/layout/functions.txt";

/// The end of the path of the recorded program.
const MANAGER: &str = "/kube-controller-manager";

/// Rewrites the list from what callgrind has recorded of one or more runs, in the order of the runs.
///
/// # Errors
///
/// If a file cannot be read, or holds no function with a mangled name.
pub(crate) fn write(recordings: &[&str]) -> Result<()> {
    let mut executed_by = Vec::new();
    for recording in recordings {
        let text = fs::read_to_string(recording).with_context(|| format!("cannot read {recording}"))?;
        let found = executed(&text);
        if found.is_empty() {
            bail!(
                "{recording} names no function of kube-controller-manager: record it with `valgrind --tool=callgrind --demangle=no`"
            );
        }
        executed_by.push(found);
    }
    let functions = in_order(executed_by);
    let text: String = functions.iter().flat_map(|function| [function.as_str(), "\n"]).collect();
    let path = step::root().join(LIST);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{} ({} functions)", path.display(), functions.len());
    Ok(())
}

/// Returns each function once, at the place of the first recording that has it: the functions of every manager stay
/// apart from the functions of some controllers, if the first recording is of an idle manager. Within a recording, the
/// functions of no controller come first, then each controller's.
fn in_order(executed_by: Vec<BTreeSet<String>>) -> Vec<String> {
    let mut listed = HashSet::new();
    let by_controller = |functions: BTreeSet<String>| {
        let mut functions: Vec<String> = functions.into_iter().collect();
        functions.sort_by(|a, b| controller(a).cmp(&controller(b)));
        functions
    };
    let functions = executed_by.into_iter().flat_map(by_controller);
    functions.filter(|function| listed.insert(function.clone())).collect()
}

/// The crate and the module of the controller that a pattern names first.
fn controller(pattern: &str) -> Option<(&str, &str)> {
    pattern.split("Cs*_").skip(1).find_map(|path| {
        let (name, rest) = identifier(path)?;
        let (module, _) = identifier(rest)?;
        name.starts_with("kcm_controllers_").then_some((name, module))
    })
}

/// An identifier of the mangling `v0`, which has its length before it, and what follows.
fn identifier(path: &str) -> Option<(&str, &str)> {
    let digits = path.find(|c: char| !c.is_ascii_digit())?;
    path[digits..].split_at_checked(path[..digits].parse().ok()?)
}

/// The functions of the manager that a recording of callgrind names, as patterns of the linker.
///
/// A function or object file is named at the first occurrence of its number, in a definition (`fn=`, `ob=`) or a call
/// (`cfn=`, `cob=`); later only the number stands there.
fn executed(recording: &str) -> BTreeSet<String> {
    let mut names: HashMap<(&str, &str), &str> = HashMap::new();
    let mut of_manager = false;
    let mut functions = BTreeSet::new();
    for line in recording.lines() {
        let Some((field, value)) = line.split_once('=') else { continue };
        let kind = field.trim_start_matches('c');
        if kind != "fn" && kind != "ob" {
            continue;
        }
        let (number, name) = value.split_once(' ').unwrap_or((value, ""));
        if !name.is_empty() {
            names.insert((kind, number), name);
        }
        let name = names.get(&(kind, number)).copied().unwrap_or_default();
        match field {
            "ob" => of_manager = name.ends_with(MANAGER),
            "fn" if of_manager => functions.extend(function(name)),
            _ => {}
        }
    }
    functions
}

/// The pattern of a function, unless callgrind knows only its address.
fn function(name: &str) -> Option<String> {
    // Callgrind numbers the levels of a recursion after a quote.
    let name = name.split_once('\'').map_or(name, |(name, _)| name);
    let is_symbol = !name.starts_with("0x") && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.$".contains(c));
    is_symbol.then(|| pattern(name))
}

/// A mangled name without what changes when a dependency or the compiler does: the hashes of crates.
/// The grammar is the mangling `v0` (RFC 2603), in which a crate is `Cs<hash>_<length><name>`.
fn pattern(name: &str) -> String {
    let Some(path) = name.strip_prefix("_R") else { return name.to_owned() };
    // The linker may split a function; what follows the dot is its choice.
    let mut rest = path.split_once('.').map_or(path, |(name, _)| name);
    let mut pattern = String::from("_R");
    while let Some(at) = rest.find("Cs") {
        let hash = rest[at + 2..].find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len() - at - 2);
        let crate_root = rest[at + 2 + hash..].strip_prefix('_');
        match crate_root {
            Some(after) if (8..=11).contains(&hash) => {
                pattern.push_str(&rest[..at]);
                pattern.push_str("Cs*_");
                rest = after;
            }
            _ => {
                pattern.push_str(&rest[..at + 2]);
                rest = &rest[at + 2..];
            }
        }
    }
    pattern.push_str(rest);
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_manager_are_listed_once() {
        let recording = "ob=(1) /t/kube-controller-manager\nfn=(12) main\n1 2\ncob=(2) /lib/libc.so.6\ncfn=(20) memchr\n\
                         cfn=(13) walk'2\ncalls=1\nfn=(13)\nfn=(14) walk\nfn=(15) 0x0000fe\nfn=(16) (below main)\nob=(2)\nfn=(20)\n";
        let found: Vec<String> = executed(recording).into_iter().collect();
        assert_eq!(found, ["main", "walk"]);
    }

    #[test]
    fn functions_stand_where_the_first_recording_has_them() {
        let recordings = [["main", "walk"].as_slice(), &["jobs", "main"]];
        let sets = recordings.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(in_order(sets.into()), ["main", "walk", "jobs"]);
    }

    #[test]
    fn functions_of_a_controller_stand_together() {
        let of_job = "_RNvNtNtCs*_20kcm_controllers_apps3job4plan4plan";
        let of_quota = "_RINvNtCs*_5serde2de4readNtNtCs*_29kcm_controllers_api_machinery5quota5KindsE";
        let instantiated_there = "_RNvNtCs*_2h25codec4readCs*_29kcm_controllers_api_machinery";
        assert_eq!(controller(of_job), Some(("kcm_controllers_apps", "job")));
        assert_eq!(controller(of_quota), Some(("kcm_controllers_api_machinery", "quota")));
        assert_eq!(controller(instantiated_there), None);
        let recording = [of_job, of_quota, instantiated_there, "main"].map(str::to_owned);
        assert_eq!(in_order(vec![recording.into()]), [instantiated_there, "main", of_quota, of_job]);
    }

    #[test]
    fn the_hash_of_a_crate_is_any() {
        let name = "_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeNtNtCslNYArtu3iFV_5alloc6string6StringECs4X4t9plMPHF_9addr2line";
        assert_eq!(pattern(name), "_RINvNtCs*_4core3ptr13drop_in_placeNtNtCs*_5alloc6string6StringECs*_9addr2line");
    }

    #[test]
    fn names_that_only_look_like_a_crate_stay() {
        assert_eq!(pattern("_RNvC5CsVec3new"), "_RNvC5CsVec3new");
        assert_eq!(pattern("je_malloc"), "je_malloc");
    }
}
