//! The documentation, compared with the code that it describes.
//!
//! `UPDATE=1` rewrites the parts that are made from the code.

#![cfg(all(feature = "builtin", feature = "sandbox"))]

mod readme;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use kcm_config::{GateStage, Loaded, Origin, Row, Sources, Table};
use kcm_controller_manager::{UPSTREAM, UpstreamController};
use kcm_controllers as _;
use kcm_framework::Registry;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").to_path_buf()
}

fn linked() -> Registry {
    Registry::linked().expect("the built-in controllers are linked")
}

/// The command that rewrites what is made from the code.
const UPDATE: &str = "UPDATE=1 cargo test -p kcm-controller-manager --test documentation";

/// The text of a page with `text` between two markers.
fn between(old: &str, page: &str, name: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->\n"));
    let (before, rest) = old.split_once(&begin).unwrap_or_else(|| panic!("{page} has no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{page} has no {end}"));
    format!("{before}{begin}{}\n{end}{after}", text.trim_end())
}

/// Compares a file with the text that it should have, or writes it.
fn check_file(file: &str, old: &str, new: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(root().join(file), new).expect("the file can be written");
    } else {
        assert!(old == new, "{file} is behind the code: `{UPDATE}` rewrites it");
    }
}

/// Compares the part between two markers of a page with `text`, or replaces it.
fn check_generated(page: &str, name: &str, text: &str) {
    let old = fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    check_file(page, &old, &between(&old, page, name, text));
}

/// The settings of the binary without its sub-commands.
fn table() -> Table {
    kcm_controller_manager::table(&linked(), &[]).expect("the rows make a table")
}

#[test]
fn the_page_of_settings_has_every_row_and_gate() {
    let table = table();
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

/// The names of the settings whose line says that they have no effect yet.
fn noted(text: &str, name_in: impl Fn(&str) -> Option<String>) -> BTreeSet<String> {
    text.lines().filter(|line| line.contains("(No effect yet.)")).filter_map(name_in).collect()
}

#[test]
fn settings_without_effect_say_so_in_help_documents_and_effective_values_and_no_others_do() {
    let table = table();
    let without = || table.rows().iter().filter(|row| row.is_without_effect);
    let of_controllers: Vec<&str> = linked().rows().filter(|row| row.is_without_effect).map(|row| row.name).collect();
    assert_eq!(of_controllers, [""; 0], "a controller that is built acts on its settings");
    let labels: BTreeSet<String> = without().map(Row::label).collect();
    assert!(!labels.is_empty(), "settings wait for features");

    let shown = without().filter(|row| row.flag().is_some() && row.deprecated.is_none()).map(Row::label);
    let flag = |line: &str| line.split_whitespace().find(|word| word.starts_with("--")).map(str::to_owned);
    assert_eq!(noted(&table.help(None), flag), shown.collect());

    // `the_page_of_settings_has_every_row_and_gate` compares it with the page.
    let code = |line: &str| line.split('`').skip(1).step_by(2).find(|code| labels.contains(*code)).map(str::to_owned);
    assert_eq!(noted(&table.markdown(), code), labels);

    let effective = match table.load(&Sources::default()) {
        Ok(Loaded::Settings(settings)) => settings,
        other => panic!("the defaults must load: {other:?}"),
    };
    let first_word = |line: &str| line.split_whitespace().next().map(str::to_owned);
    assert_eq!(noted(&effective.render(), first_word), labels);
    let yaml = effective.render_yaml_with_origins();
    assert_eq!(yaml.matches("  # default (No effect yet.)\n").count(), labels.len());
    let json: Vec<serde_json::Value> =
        serde_json::from_str(&effective.render_json_with_origins()).expect("the settings are JSON");
    let json = json.iter().filter(|setting| setting["note"] == "No effect yet.");
    let names: BTreeSet<String> = json.filter_map(|setting| setting["name"].as_str().map(str::to_owned)).collect();
    assert_eq!(names, labels);
}

/// The file of which a table makes an example.
const EXAMPLE: &str = "docs/configuration.example.yaml";

#[test]
fn the_example_file_has_every_key_and_loads_as_the_defaults() {
    let table = table();
    let head = "\
# Every key of the configuration file of kube-controller-manager, with its default. See configuration.md.
# Made from the code: UPDATE=1 cargo test -p kcm-controller-manager --test documentation
";
    let text = format!("{head}{}", table.example_file());
    check_file(EXAMPLE, &fs::read_to_string(root().join(EXAMPLE)).unwrap_or_default(), &text);
    let loaded = |sources: &Sources| match table.load(sources) {
        Ok(Loaded::Settings(settings)) => settings,
        other => panic!("the example must load: {other:?}"),
    };
    let defaults = loaded(&Sources::default());
    let settings = loaded(&Sources::default().arguments(["--config", EXAMPLE]).file(EXAMPLE, text));
    assert_eq!(settings.render_json(), defaults.render_json());
    for row in table.rows().iter().filter(|row| row.path.is_some()) {
        let origin = settings.origin(row.name);
        assert!(matches!(origin, Some(Origin::File { at: Some(_), .. })), "{}: {origin:?}", row.name);
    }
}

#[test]
fn the_page_of_controllers_lists_each_with_its_state() {
    let linked = linked();
    let mut table = String::from("| controller | alias | upstream's default | here |\n| --- | --- | --- | --- |\n");
    let data = include_str!("../data/controllers.tsv").lines().skip(1);
    for (line, (name, aliases)) in data.zip(UPSTREAM.iter().map(UpstreamController::names)) {
        let fields: Vec<&str> = line.split('\t').collect();
        let here = if linked.find(name).is_some() { "**works**" } else { "planned" };
        let aliases: Vec<String> = aliases.iter().map(|alias| format!("`{alias}`")).collect();
        writeln!(table, "| `{name}` | {} | {} | {here} |", aliases.join(", "), fields[2])
            .expect("a string takes everything");
    }
    check_generated("docs/controllers.md", "controllers", &table);
}

#[test]
fn the_architecture_is_at_most_300_lines() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page can be read");
    assert!(
        page.lines().count() <= 300,
        "{} lines: move guarantees to the page of their subject",
        page.lines().count()
    );
}

/// A row of the page names a word, types, a crate and what the types are.
#[test]
fn every_type_of_the_page_is_in_the_crate_that_it_names() {
    let page = fs::read_to_string(root().join("docs/types.md")).expect("the page can be read");
    let rows = page.lines().filter(|line| line.contains("` | `"));
    let mut count = 0;
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [_, types, folder, _] = cells[..] else { panic!("not four cells: {row}") };
        let sources = texts(&root().join(folder.trim_matches('`')).join("src"));
        for name in types.split(", ").map(|name| name.trim_matches('`')) {
            let is_declared = sources.iter().any(|source| {
                let mut words = source.split(|letter: char| letter.is_whitespace() || "<({:;".contains(letter));
                let mut before = "";
                words.any(|word| {
                    let found = word == name && ["struct", "enum", "trait"].contains(&before);
                    before = word;
                    found
                })
            });
            assert!(is_declared, "{name} is not declared in {folder}");
            count += 1;
        }
    }
    assert!(count >= 30, "{count} types");
}

/// The pages outside of the crates.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let folders = ["", "docs", "docs/adr", "docs/benchmark"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("the folder is there"));
    let mut pages: Vec<PathBuf> = files.map(|file| file.expect("the folder can be read").path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// The sources, tables and pages beneath a file or folder.
fn texts(path: &Path) -> Vec<String> {
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("the folder can be read");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
        paths.sort();
        return paths.iter().flat_map(|path| texts(path)).collect();
    }
    let is_text = path.extension().is_some_and(|it| ["rs", "yaml", "toml", "md"].iter().any(|known| it == *known));
    let text = is_text.then(|| fs::read_to_string(path).expect("the file can be read"));
    text.into_iter().collect()
}

/// Files and tests are named in code spans: `informers/src/lib.rs`, or `api/tests/memory.rs::cached_objects_are_small` for a test.
#[test]
fn every_file_and_test_that_a_page_names_is_there() {
    let mut missing = BTreeSet::new();
    let mut found = 0;
    let mut runner = Runner::new();
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
            } else if let Some(name) = function
                && !runner.lists(&root().join(path), name)
            {
                missing.insert(format!("{}: {word} is not listed by the test runner", page.display()));
            }
            found += 1;
        }
    }
    assert!(found > 0, "the pages name files");
    assert!(missing.is_empty(), "not there: {missing:#?}");
}

/// `cargo xtask ci` sets it when the whole workspace is built: a program that is missing then is a mistake.
fn is_everything_built() -> bool {
    std::env::var_os("WORKSPACE_IS_BUILT").is_some()
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|file| file.modified()).expect("the file has a time of its last change")
}

/// The test binaries of the workspace, beside the one that runs.
struct Runner {
    packages: Vec<cargo_metadata::Package>,
    folder: PathBuf,
    /// The tests that a binary lists.
    listed: BTreeMap<PathBuf, Vec<String>>,
}

impl Runner {
    fn new() -> Self {
        let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec().expect("cargo describes the workspace");
        let own = std::env::current_exe().expect("the path of this test is known");
        let folder = own.parent().expect("a program lies in a folder").to_path_buf();
        Self { packages: metadata.packages, folder, listed: BTreeMap::new() }
    }

    /// Whether a test binary has the test `function` of the file. Where no binary of the file's package is built (a run
    /// of this test alone), the source decides.
    fn lists(&mut self, file: &Path, function: &str) -> bool {
        let mut binaries = self.binaries(file);
        // One that is older than the source, in a run of this test alone, lists the tests of an earlier state.
        binaries.retain(|(binary, _)| modified(binary) >= modified(file));
        if binaries.is_empty() {
            return !is_everything_built();
        }
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let is_module = !["mod", "lib", "main"].contains(&stem.as_str());
        binaries.into_iter().any(|(binary, is_root)| {
            self.listed.entry(binary).or_insert_with_key(|binary| listed(binary)).iter().any(|test| {
                let mut modules: Vec<&str> = test.split("::").collect();
                modules.pop() == Some(function) && (is_root || !is_module || modules.contains(&stem.as_str()))
            })
        })
    }

    /// The newest binary of each target that the file may belong to, and whether the file is the target's root.
    fn binaries(&self, file: &Path) -> Vec<(PathBuf, bool)> {
        let package = self.packages.iter().filter(|package| file.starts_with(folder_of(&package.manifest_path)));
        let package = package.max_by_key(|package| package.manifest_path.as_str().len());
        let package = package.expect("the file is in a package");
        let is_test = file.starts_with(folder_of(&package.manifest_path).join("tests"));
        let targets = package.targets.iter().filter(|target| {
            let root = target.src_path.as_std_path();
            let of_folder =
                root.file_name().is_some_and(|name| name == "main.rs") && file.starts_with(folder_of(&target.src_path));
            let has_lib = package.targets.iter().any(cargo_metadata::Target::is_lib);
            if is_test {
                target.is_test() && (root == file || of_folder)
            } else {
                target.is_lib() || (target.is_bin() && !has_lib)
            }
        });
        targets.filter_map(|target| Some((self.newest(target)?, target.src_path.as_std_path() == file))).collect()
    }

    fn newest(&self, target: &cargo_metadata::Target) -> Option<PathBuf> {
        let prefix = format!("{}-", target.name.replace('-', "_"));
        let source = target.src_path.as_std_path().strip_prefix(root()).expect("the file is in the workspace");
        let source = source.to_str().expect("the path is UTF-8");
        let files = fs::read_dir(&self.folder).expect("the folder of test binaries can be read");
        let built = files.filter_map(Result::ok).filter(|file| {
            let name = file.file_name();
            let hash = name.to_str().and_then(|name| name.strip_prefix(&prefix));
            // Two packages may have targets of one name; the list of sources beside a binary tells them apart.
            let is_of_target = || {
                let sources = fs::read_to_string(file.path().with_extension("d")).unwrap_or_default();
                sources.split_whitespace().any(|path| path == source)
            };
            hash.is_some_and(|hash| hash.len() == 16 && !hash.contains('.')) && is_of_target()
        });
        let mut built: Vec<_> =
            built.filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path()))).collect();
        built.sort();
        // The binary of a program, without its tests, lists none.
        built.into_iter().rev().map(|(_, file)| file).find(|file| !listed(file).is_empty())
    }
}

fn folder_of(path: &cargo_metadata::camino::Utf8Path) -> &Path {
    path.parent().expect("a file lies in a folder").as_std_path()
}

/// The tests that a binary lists, with their modules.
fn listed(binary: &Path) -> Vec<String> {
    let output = Command::new(binary).args(["--list", "--format=terse"]).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
    let lines = String::from_utf8_lossy(&output.stdout);
    lines.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// The suite runs every scenario that it lists, and fails with the first that fails.
#[test]
fn every_controller_that_works_has_a_scenario() {
    let own = std::env::current_exe().expect("the path of this test is known");
    let suite = own.parent().and_then(Path::parent).expect("a test lies in `deps`").join("suite");
    if !suite.is_file() && !is_everything_built() {
        return;
    }
    let output = Command::new(&suite).arg("--list").output().expect("the suite starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let scenarios = String::from_utf8(output.stdout).expect("names are UTF-8");
    for controller in linked().iter() {
        let name = controller.name;
        let names = controller.aliases.iter().copied().chain([name.trim_end_matches("-controller")]);
        let mut prefixes = names.map(|name| format!("ours/{name}/"));
        let has_scenario = prefixes.any(|prefix| scenarios.lines().any(|line| line.trim().starts_with(&prefix)));
        assert!(
            has_scenario,
            "docs/controllers.md says that {name} works, and no scenario of the suite is named after it"
        );
    }
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
