//! Creating the objects of manifest files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::decode;
use crate::json;
use crate::kinds::{Kind, Kinds};
use crate::sandbox::Sandbox;

/// All reasons why manifests could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct LoadErrors(pub Vec<String>);

/// An object and its location in the files.
struct Manifest {
    place: String,
    object: Value,
}

impl Sandbox {
    /// Creates the objects of all `*.yaml`, `*.yml` and `*.json` files of a folder and its subfolders, and returns
    /// their number.
    ///
    /// Namespaces and definitions of custom resources come first, the rest in the order of paths and documents.
    ///
    /// # Errors
    /// All errors, each with its file and document. If files cannot be read, or kinds are neither served nor defined by
    /// the manifests, nothing is created.
    pub fn load(&self, folder: &Path) -> Result<usize, LoadErrors> {
        let mut errors = Vec::new();
        let mut manifests = read_all(folder, &mut errors);
        manifests.sort_by_key(|manifest| rank(&manifest.object));
        // Kinds that the manifests define are served only after their definition is created.
        let defined: BTreeSet<(String, String)> =
            manifests.iter().flat_map(|manifest| defined_kinds(&manifest.object)).collect();
        for Manifest { place, object } in &manifests {
            let text = |field: &str| json::text(object, &[field]).unwrap_or_default().to_owned();
            if let Err(why) = self.kind_of(object)
                && !defined.contains(&(text("apiVersion"), text("kind")))
            {
                errors.push(format!("{place}: {why}"));
            }
        }
        if !errors.is_empty() {
            return Err(LoadErrors(errors));
        }
        let count = manifests.len();
        for Manifest { place, object } in manifests {
            let created = self.kind_of(&object).and_then(|kind| {
                let created = self.create(&kind.resource, object);
                created.map_err(|status| status.message)
            });
            if let Err(why) = created {
                errors.push(format!("{place}: {why}"));
            }
        }
        if errors.is_empty() { Ok(count) } else { Err(LoadErrors(errors)) }
    }

    fn kind_of(&self, object: &Value) -> Result<Arc<Kind>, String> {
        let version = json::text(object, &["apiVersion"]).unwrap_or_default();
        let name = json::text(object, &["kind"]).unwrap_or_default();
        if version.is_empty() || name.is_empty() {
            return Err("an object must have apiVersion and kind".to_owned());
        }
        self.with_kinds(|kinds| find(kinds, version, name).ok_or_else(|| not_known(kinds, version, name)))
    }
}

fn find(kinds: &Kinds, version: &str, name: &str) -> Option<Arc<Kind>> {
    let creatable = |kind: &&Arc<Kind>| kind.verbs.contains(&"create");
    let mut all = kinds.iter().filter(creatable);
    all.find(|kind| kind.resource.kind == name && kind.resource.api_version() == version).cloned()
}

fn not_known(kinds: &Kinds, version: &str, name: &str) -> String {
    let versions: BTreeSet<String> =
        kinds.iter().filter(|kind| kind.resource.kind == name).map(|kind| kind.resource.api_version()).collect();
    if versions.is_empty() {
        return format!("the kind {name} is not served");
    }
    let versions: Vec<String> = versions.into_iter().collect();
    format!("{name} is served as {}, not as {version}", versions.join(", "))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Namespace,
    Definition,
    Rest,
}

fn rank(object: &Value) -> Rank {
    match json::text(object, &["kind"]) {
        Some("Namespace") => Rank::Namespace,
        Some("CustomResourceDefinition") => Rank::Definition,
        Some(_) | None => Rank::Rest,
    }
}

/// The versions and kinds that a custom resource definition defines.
fn defined_kinds(object: &Value) -> Vec<(String, String)> {
    if rank(object) != Rank::Definition {
        return Vec::new();
    }
    let text = |path: &[&str]| json::text(object, path).unwrap_or_default();
    let (group, kind) = (text(&["spec", "group"]), text(&["spec", "names", "kind"]));
    let versions = json::list(object, &["spec", "versions"]).iter();
    let versions = versions.filter_map(|version| json::text(version, &["name"]));
    versions.map(|version| (format!("{group}/{version}"), kind.to_owned())).collect()
}

fn read_all(folder: &Path, errors: &mut Vec<String>) -> Vec<Manifest> {
    let mut manifests = Vec::new();
    let mut paths = Vec::new();
    if let Err(error) = files(folder, &mut paths) {
        errors.push(format!("cannot list {}: {error}", folder.display()));
    }
    paths.sort();
    for path in paths {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                errors.push(format!("cannot read {}: {error}", path.display()));
                continue;
            }
        };
        for (number, document) in decode::documents(&text).enumerate() {
            let place = format!("{}, document {}", path.display(), number + 1);
            match document {
                Ok(Value::Null) => {}
                Ok(document) => expand(place, document, &mut manifests),
                Err(why) => errors.push(format!("{place}: {why}")),
            }
        }
    }
    manifests
}

/// Replaces a `List` with its items.
fn expand(place: String, document: Value, manifests: &mut Vec<Manifest>) {
    match document.get("items").and_then(Value::as_array) {
        Some(items) if document.get("kind").is_some_and(|kind| kind == "List") => {
            for (number, item) in items.iter().enumerate() {
                manifests.push(Manifest { place: format!("{place}, item {}", number + 1), object: item.clone() });
            }
        }
        Some(_) | None => manifests.push(Manifest { place, object: document }),
    }
}

pub(super) fn files(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|it| it == "yaml" || it == "yml" || it == "json") {
            found.push(path);
        }
    }
    Ok(())
}
