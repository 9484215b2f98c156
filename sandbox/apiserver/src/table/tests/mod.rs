//! Compares tables with those that kube-apiserver 1.36.3 printed of objects in many states (`recorded.json`).
//!
//! The objects are trimmed to what printing could care for. `now` is when the server was asked, so that ages agree.

use std::sync::Arc;

use jiff::Timestamp;
use kcm_api::Resource;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Table;
use crate::kinds::{Kind, Kinds};
use crate::store::stored::Stored;
use crate::table::IncludeObject;

#[derive(Deserialize)]
struct Recorded {
    group: String,
    resource: String,
    now: Timestamp,
    /// Name, type, format and priority.
    columns: Vec<(String, String, String, u8)>,
    rows: Vec<Value>,
}

const WIDGETS: Resource = Resource::namespaced("example.org", "v1", "widgets", "Widget");

fn recorded() -> Vec<Recorded> {
    serde_json::from_str(include_str!("recorded.json")).expect("the recording is well formed")
}

fn kinds() -> Kinds {
    let mut kinds = Kinds::built_in(true);
    kinds.register(WIDGETS, None);
    kinds
}

fn kind_of<'a>(kinds: &'a Kinds, recorded: &Recorded) -> Option<&'a Kind> {
    kinds
        .iter()
        .map(|kind| &**kind)
        .find(|kind| kind.resource.group == recorded.group && kind.resource.plural == recorded.resource)
}

fn print<'a>(kind: &Kind, objects: impl Iterator<Item = &'a Value>, now: Timestamp) -> Value {
    let objects: Vec<Stored> = objects.map(|object| Stored::new(&Arc::new(object.clone()))).collect();
    let table = Table::of_list(kind, json!({}), objects.iter(), IncludeObject::Object, now);
    serde_json::to_value(&table).expect("a table is JSON")
}

#[test]
fn has_the_columns_of_upstream() {
    let kinds = kinds();
    let mut compared = 0;
    for recorded in recorded() {
        // Kinds that a cluster has and the sandbox does not serve.
        let Some(kind) = kind_of(&kinds, &recorded) else { continue };
        let printed = print(kind, std::iter::empty(), recorded.now);
        let definitions = printed["columnDefinitions"].as_array().expect("definitions are a list");
        let columns: Vec<Value> = definitions
            .iter()
            .map(|column| json!([column["name"], column["type"], column["format"], column["priority"]]))
            .collect();
        assert_eq!(json!(columns), json!(recorded.columns), "{}.{}", recorded.resource, recorded.group);
        compared += 1;
    }
    assert!(compared > 50, "only {compared} kinds were compared");
}

#[test]
fn prints_what_upstream_printed() {
    let kinds = kinds();
    let mut compared = 0;
    for recorded in recorded() {
        let Some(kind) = kind_of(&kinds, &recorded) else { continue };
        let printed = print(kind, recorded.rows.iter().map(|row| &row["object"]), recorded.now);
        for (at, row) in recorded.rows.iter().enumerate() {
            let name = &row["object"]["metadata"]["name"];
            assert_eq!(printed["rows"][at], *row, "{}.{} {name}", recorded.resource, recorded.group);
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} rows were compared");
}

#[test]
fn has_a_string_for_everything_that_an_empty_object_lacks() {
    let empty = json!({});
    for kind in kinds().iter() {
        let printed = print(kind, std::iter::once(&empty), Timestamp::UNIX_EPOCH);
        let cells = printed["rows"][0]["cells"].as_array().expect("cells are a list");
        let columns = printed["columnDefinitions"].as_array().expect("definitions are a list");
        assert_eq!(cells.len(), columns.len(), "{}", kind.resource);
        let nulls = cells.iter().filter(|cell| cell.is_null()).count();
        assert_eq!(nulls, usize::from(kind.is_custom()), "{}: {cells:?}", kind.resource);
    }
}
