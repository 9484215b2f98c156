//! Licences, sources and advisories of everything that is linked or builds it. Duplicates are in `architecture.rs`.

use std::collections::BTreeSet;
use std::process::Command;

use cargo_metadata::semver::{Version, VersionReq};

/// Licences under which a dependency may be used. LLVM's exception only adds rights to Apache-2.0.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "MIT",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "CDLA-Permissive-2.0",
    "OpenSSL",
];

/// Advisories that a dependency may have, each with a reason.
const ACCEPTED: &[(&str, &str)] = &[(
    "RUSTSEC-2024-0436",
    "`paste` is unmaintained. It is a macro of `tikv-jemalloc-ctl` that runs when that is built, and its newest version still \
     needs it. `tikv-jemalloc-sys` alone would need unsafe code.",
)];

/// A row of `advisories.tsv`.
struct Advisory<'a> {
    package: &'a str,
    id: &'a str,
    kind: &'a str,
    unaffected: Vec<VersionReq>,
}

/// The snapshot of the `RustSec` advisory database. Includes packages that are no dependency: an added dependency is checked at
/// once.
fn advisories() -> Vec<Advisory<'static>> {
    let rows = include_str!("../data/advisories.tsv").lines().skip(2);
    rows.map(|row| {
        let [package, id, _date, kind, unaffected] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row:?}") };
        let unaffected = unaffected.split(" | ").filter(|it| !it.is_empty());
        let unaffected = unaffected.map(|it| VersionReq::parse(it).unwrap_or_else(|error| panic!("{row:?}: {error}")));
        Advisory { package, id, kind, unaffected: unaffected.collect() }
    })
    .collect()
}

/// Package and version of each entry of `Cargo.lock`, for all platforms.
fn locked(lock: &str) -> Vec<(&str, Version)> {
    let entries = lock.split("[[package]]\n").skip(1);
    let values = entries.filter_map(|entry| {
        let value = |key: &str| Some(entry.split_once(key)?.1.split_once('"')?.0);
        Some((value("name = \"")?, value("version = \"")?))
    });
    values.map(|(name, version)| (name, Version::parse(version).expect("cargo writes versions"))).collect()
}

/// The advisories that hold for one of the packages: `package version: id (kind)`.
fn affecting(advisories: &[Advisory<'_>], packages: &[(&str, Version)]) -> Vec<String> {
    let affected = |advisory: &Advisory<'_>, name: &str, version: &Version| {
        advisory.package == name && !advisory.unaffected.iter().any(|it| it.matches(version))
    };
    let mut found = Vec::new();
    for advisory in advisories {
        let of_it = packages.iter().filter(|(name, version)| affected(advisory, name, version));
        found.extend(of_it.map(|(name, version)| format!("{name} {version}: {} ({})", advisory.id, advisory.kind)));
    }
    found
}

/// Package and licence of each dependency on this platform.
fn dependencies() -> Vec<(String, String)> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let arguments = ["tree", "--offline", "--workspace", "--prefix=none", "--no-dedupe", "--format={p}\t{l}"];
    let tree = Command::new(cargo).args(arguments).output().expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let listed = String::from_utf8(tree.stdout).expect("names of packages are UTF-8");
    let rows: BTreeSet<&str> = listed.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let rows = rows.into_iter().filter_map(|line| line.split_once('\t'));
    rows.map(|(package, licence)| (package.trim_end_matches(" (proc-macro)").to_owned(), licence.to_owned())).collect()
}

/// Returns `true` if an SPDX expression can be met with these licences. `/` is an old form of `OR`.
fn allows(expression: &str, licences: &[&str]) -> bool {
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = expression.split_whitespace().peekable();
    let is_met = any(&mut words, licences);
    is_met && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, licences: &[&str]) -> bool {
    let mut is_met = all(words, licences);
    while words.next_if_eq(&"OR").is_some() {
        is_met |= all(words, licences);
    }
    is_met
}

fn all(words: &mut Words<'_>, licences: &[&str]) -> bool {
    let mut is_met = one(words, licences);
    while words.next_if_eq(&"AND").is_some() {
        is_met &= one(words, licences);
    }
    is_met
}

fn one(words: &mut Words<'_>, licences: &[&str]) -> bool {
    let Some(word) = words.next() else { return false };
    if word == "(" {
        let is_met = any(words, licences);
        return words.next() == Some(")") && is_met;
    }
    if words.next_if_eq(&"WITH").is_some() {
        let exception = words.next().unwrap_or_default();
        return licences.contains(&format!("{word} WITH {exception}").as_str());
    }
    licences.contains(&word)
}

#[test]
fn every_dependency_has_a_licence_of_the_list() {
    let dependencies = dependencies();
    assert!(dependencies.len() > 100, "cargo lists the dependencies");
    let refused: Vec<_> = dependencies.iter().filter(|(_, licence)| !allows(licence, LICENCES)).collect();
    assert!(refused.is_empty(), "not allowed: {refused:#?}");
}

#[test]
fn every_dependency_comes_from_crates_io_or_the_workspace() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let root = std::fs::canonicalize(root).expect("the workspace has a folder");
    let dependencies = dependencies();
    // Cargo prints a source in brackets, unless it is crates.io.
    let sources = dependencies.iter().filter_map(|(package, _)| Some((package, package.split_once(" (")?.1)));
    let foreign: Vec<_> = sources.filter(|(_, source)| !std::path::Path::new(source).starts_with(&root)).collect();
    assert!(foreign.is_empty(), "from elsewhere: {foreign:#?}");
}

#[test]
fn no_dependency_has_an_advisory_that_is_not_accepted() {
    let (advisories, packages) = (advisories(), locked(include_str!("../../../Cargo.lock")));
    assert!(packages.len() > 100, "Cargo.lock lists the dependencies");
    let found = affecting(&advisories, &packages);
    let is_accepted = |it: &&String| ACCEPTED.iter().any(|(id, _)| it.contains(id));
    let refused: Vec<_> = found.iter().filter(|it| !is_accepted(it)).collect();
    assert!(refused.is_empty(), "take other versions, or accept with a reason: {refused:#?}");
    for (id, reason) in ACCEPTED {
        assert!(found.iter().any(|it| it.contains(id)), "{id} holds for no dependency any more: {reason}");
    }
}

#[test]
fn an_advisory_holds_for_the_versions_that_it_does_not_exclude() {
    let advisory = |unaffected: &[&str]| {
        let unaffected = unaffected.iter().map(|it| VersionReq::parse(it).unwrap()).collect();
        [Advisory { package: "a", id: "RUSTSEC-1", kind: "vulnerability", unaffected }]
    };
    let lock = |version: &str| format!("version = 4\n\n[[package]]\nname = \"a\"\nversion = \"{version}\"\n");
    for (unaffected, version, holds) in [
        (&[][..], "1.2.3", true),
        (&["< 1.0.0", ">= 1.3.0"], "1.2.3", true),
        (&["< 1.0.0", ">= 1.3.0"], "1.3.0", false),
        (&["< 1.0.0", ">= 1.3.0"], "0.9.0", false),
        (&["1.2.4"], "1.2.3", true),
        (&["1.2.2"], "1.2.3", false),
        (&[">= 0.7.1"], "0.7.1+5.3.1-0-g81034ce", false),
    ] {
        let lock = lock(version);
        let expected = if holds { vec![format!("a {version}: RUSTSEC-1 (vulnerability)")] } else { Vec::new() };
        assert_eq!(affecting(&advisory(unaffected), &locked(&lock)), expected, "{unaffected:?} {version}");
    }
    assert!(affecting(&advisory(&[]), &locked("[[package]]\nname = \"b\"\nversion = \"1.0.0\"\n")).is_empty());
}

#[test]
fn no_dependency_takes_any_version() {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().expect("cargo describes the workspace");
    for package in metadata.workspace_packages() {
        let wild = package.dependencies.iter().find(|it| it.path.is_none() && it.req.comparators.is_empty());
        assert!(wild.is_none(), "{} takes any version of {:?}", package.name, wild.map(|it| &it.name));
    }
}

#[test]
fn expressions_are_read_as_spdx_defines_them() {
    let cases = [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0 AND MIT", false),
        // AND binds stronger.
        ("MIT OR GPL-3.0 AND ISC", true),
        ("ISC AND (Apache-2.0 OR GPL-3.0)", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("Apache-2.0 WITH Other-exception", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("GPL-2.0 WITH Classpath-exception-2.0 OR MIT", true),
        ("(MIT", false),
        ("", false),
    ];
    for (expression, expected) in cases {
        assert_eq!(allows(expression, LICENCES), expected, "{expression:?}");
    }
}
