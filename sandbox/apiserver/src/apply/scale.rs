//! Server-side apply to the scale of an object: managed fields contain only the replica count. Pure.
//!
//! # Upstream
//! `apimachinery/pkg/util/managedfields/scalehandler.go`

use serde_json::Value;

use super::applied::{Application, Conflicts};
use super::element;
use super::fieldset::FieldSet;
use super::managers::{BEFORE_FIRST_APPLY, Entry, Manager, Managers, Operation};
use super::shape::Shape;
use crate::kinds::Kind;

const VERSION: &str = "autoscaling/v1";

/// The path of the replica count in the object.
pub(crate) fn path_of(kind: &Kind) -> Vec<String> {
    let path = kind.scale.as_ref().map_or(".spec.replicas", |paths| paths.wanted.as_str());
    path.split('.').filter(|name| !name.is_empty()).map(element::field).collect()
}

/// Applies to a scale. Returns the new scale, and the managers of its object.
pub(crate) fn apply(
    live: &Value,
    managers: &Managers,
    path: &[String],
    applied: &Value,
    by: &Manager,
    force: bool,
    kind: &Kind,
) -> Result<(Value, Managers), Conflicts> {
    let replicas = FieldSet::of_paths(&[&["spec", "replicas"]]);
    let mut seen = Managers::default();
    for (manager, entry) in managers.0.iter().filter(|(_, entry)| entry.fields.contains(path)) {
        let entry = Entry { fields: replicas.clone(), version: VERSION.to_owned(), time: entry.time.clone() };
        seen.0.insert(manager.clone(), entry);
    }
    if seen.0.is_empty() {
        let before = Manager::new(BEFORE_FIRST_APPLY, Operation::Update, VERSION, Some("scale"));
        seen.0.insert(before, Entry { fields: replicas.clone(), version: VERSION.to_owned(), time: None });
    }
    let nothing = FieldSet::default();
    let shape = Shape::of_version("autoscaling", "v1", "Scale");
    let application = Application { shape, version: VERSION, ignored: &nothing, object: applied, by, force };
    let (scale, seen) = application.to(live, seen)?;

    let mut own = FieldSet::default();
    own.insert(path);
    let mut managers = managers.clone();
    managers.0.retain(|manager, entry| {
        if !seen.0.contains_key(manager) {
            entry.fields.subtract(&own);
        }
        !entry.fields.is_empty()
    });
    let version = kind.resource.api_version();
    for manager in seen.0.iter().filter(|(_, entry)| !entry.fields.intersection(&replicas).is_empty()).map(|(it, _)| it)
    {
        let manager = Manager::new(&manager.name, manager.operation, &version, Some(&manager.subresource));
        // Upstream sets no time in this entry.
        let entry = Entry { fields: own.clone(), version: version.clone(), time: None };
        managers.0.entry(manager).or_insert(entry);
    }
    Ok((scale.unwrap_or_else(|| live.clone()), managers))
}
