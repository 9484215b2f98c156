//! The pages that people read, against the code that they speak of.
//!
//! `UPDATE=1` rewrites the parts that are made from the code.

#![cfg(all(feature = "builtin", feature = "sandbox"))]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use kcm_config::{GateStage, Row, Table, gates, generic};
use kcm_controller_manager::UPSTREAM;
use kcm_controllers as _;
use kcm_framework::Registry;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").to_path_buf()
}

fn linked() -> Registry {
    Registry::linked().expect("the built-in controllers are linked")
}

/// Compares what stands between two markers of a page with `text`, or puts it there.
fn check_generated(page: &str, name: &str, text: &str) {
    let file = root().join(page);
    let old = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{page}: {error}"));
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->\n"));
    let (before, rest) = old.split_once(&begin).unwrap_or_else(|| panic!("{page} has no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{page} has no {end}"));
    let new = format!("{before}{begin}\n{}\n\n{end}{after}", text.trim_end());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, &new).expect("the page can be written");
    } else {
        let how = "UPDATE=1 cargo test -p kcm-controller-manager --test documentation";
        assert!(old == new, "{page} is behind the code: `{how}` rewrites it");
    }
}

#[test]
fn the_page_of_settings_has_every_row_and_gate() {
    let controllers = linked();
    let rows = controllers.iter().flat_map(|controller| controller.rows().iter().copied());
    let rows: Vec<Row> = generic::ROWS.iter().copied().chain(rows).collect();
    let table = Table::with_gates(rows, gates::KNOWN.iter().copied()).expect("the rows make a table");
    let mut page = table.markdown();
    page.push_str("## Feature gates\n\n| gate | default | stage |\n| --- | --- | --- |\n");
    for gate in table.gates() {
        let stage = match gate.stage {
            GateStage::Alpha => "alpha",
            GateStage::Beta => "beta",
            GateStage::Ga => "GA",
            GateStage::Deprecated => "deprecated",
        };
        let default = if gate.default { "on" } else { "off" };
        writeln!(page, "| `{}` | {default} | {stage} |", gate.name).expect("a string takes everything");
    }
    check_generated("docs/configuration.md", "settings", &page);
    let table = Table::new(kcm_sandbox_cli::ROWS.iter().copied()).expect("the rows make a table");
    check_generated("docs/configuration.md", "sandbox", &table.markdown());
}

#[test]
fn the_readme_says_of_each_controller_whether_it_works() {
    let linked = linked();
    let mut table = String::from("| controller | alias | upstream's default | here |\n| --- | --- | --- | --- |\n");
    let data = include_str!("data/controllers.tsv").lines().skip(1);
    for (line, (name, aliases)) in data.zip(UPSTREAM) {
        let fields: Vec<&str> = line.split('\t').collect();
        let here = if linked.find(name).is_some() {
            "**works**"
        } else if fields[4].starts_with("cloud") {
            "a known name, never started, as upstream"
        } else {
            "planned"
        };
        let aliases: Vec<String> = aliases.iter().map(|alias| format!("`{alias}`")).collect();
        writeln!(table, "| `{name}` | {} | {} | {here} |", aliases.join(", "), fields[2])
            .expect("a string takes everything");
    }
    check_generated("README.md", "controllers", &table);
}

/// The pages outside of the crates.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let folders = ["", "docs", "docs/adr"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("the folder is there"));
    let mut pages: Vec<PathBuf> = files.map(|file| file.expect("the folder can be read").path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// What a page says is in code: `informers/src/lib.rs`, or `api/tests/memory.rs::cached_objects_are_small` for a test.
#[test]
fn every_file_and_test_that_a_page_names_is_there() {
    let mut missing = BTreeSet::new();
    let mut found = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("the page can be read");
        for word in text.split('`').skip(1).step_by(2) {
            let (path, function) = word.split_once("::").map_or((word, None), |(path, name)| (path, Some(name)));
            let is_path = path.contains('/')
                && Path::new(path).extension().is_some_and(|extension| extension == "rs")
                && !path.contains([' ', '*', 'N']);
            if !is_path {
                continue;
            }
            let source = fs::read_to_string(root().join(path)).ok();
            let holds = |name: &str| source.as_ref().is_some_and(|source| source.contains(&format!("fn {name}(")));
            if source.is_none() || function.is_some_and(|name| !holds(name)) {
                missing.insert(format!("{}: {word}", page.display()));
            }
            found += 1;
        }
    }
    assert!(found > 0, "the pages name files");
    assert!(missing.is_empty(), "not there: {missing:#?}");
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut broken = BTreeSet::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("the page can be read");
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let file = target.split('#').next().unwrap_or_default();
            if !page.parent().is_some_and(|folder| folder.join(file).exists()) {
                broken.insert(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken: {broken:#?}");
}
