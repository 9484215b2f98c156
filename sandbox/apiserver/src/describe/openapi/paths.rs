//! The paths to the objects of a kind, and what can be done there.

use serde_json::{Map, Value, json};

use super::schemas::Schemas;
use crate::kinds::{Kind, Subresource};
use crate::media_type::{APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH};

/// Parameters of the query, with their types.
type Parameters = &'static [(&'static str, &'static str)];

const WRITE: Parameters = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH: Parameters =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
const LIST: Parameters = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const DELETE: Parameters = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const DELETE_COLLECTION: Parameters = &[
    ("continue", "string"),
    ("dryRun", "string"),
    ("fieldSelector", "string"),
    ("gracePeriodSeconds", "integer"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("timeoutSeconds", "integer"),
];

/// Describes the paths of a kind and of its subresources.
pub(super) fn describe(kind: &Kind, schemas: &mut Schemas, paths: &mut Map<String, Value>) {
    let resource = &kind.resource;
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let object = schemas.refer_to_kind(kind);
    let list = schemas.refer_to_list(kind);
    let builder =
        Builder { identity: identity(&resource.group, &resource.version, &resource.kind), is_custom: kind.is_custom() };

    let has = |verb: &str| kind.verbs.contains(&verb);
    let collection = if resource.namespaced {
        if has("list") {
            let mut everywhere = empty_path(&[]);
            everywhere["get"] = builder.operation("list", LIST, None, &list);
            paths.insert(format!("{root}/{}", resource.plural), everywhere);
        }
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    };
    let place: &[&str] = if resource.namespaced { &["namespace"] } else { &[] };
    let mut all = empty_path(place);
    if has("list") {
        all["get"] = builder.operation("list", LIST, None, &list);
    }
    if has("create") {
        all["post"] = builder.operation("post", WRITE, Some(body(&object)), &object);
    }
    let status = schemas.refer_to_meta("Status");
    let options = schemas.refer_to_meta("DeleteOptions");
    if has("deletecollection") {
        all["delete"] = builder.operation("deletecollection", DELETE_COLLECTION, Some(body(&options)), &status);
    }
    paths.insert(collection.clone(), all);

    let named: &[&str] = if resource.namespaced { &["name", "namespace"] } else { &["name"] };
    let mut one = empty_path(named);
    builder.describe_verbs(&kind.verbs, &object, schemas, &mut one);
    if has("delete") {
        one["delete"] = builder.operation("delete", DELETE, Some(body(&options)), &status);
    }
    if has("get") {
        paths.insert(format!("{collection}/{{name}}"), one);
    }
    for subresource in &kind.subresources {
        let described = describe_subresource(kind, subresource, schemas, named);
        paths.insert(format!("{collection}/{{name}}/{}", subresource.name), described);
    }
}

fn describe_subresource(kind: &Kind, subresource: &Subresource, schemas: &mut Schemas, named: &[&str]) -> Value {
    let Subresource { group, version, kind: name, verbs, .. } = subresource;
    let object = schemas.refer_to(group, version, name);
    let builder = Builder { identity: identity(group, version, name), is_custom: kind.is_custom() };
    let mut path = empty_path(named);
    builder.describe_verbs(verbs, &object, schemas, &mut path);
    if verbs.contains(&"create") {
        path["post"] = builder.operation("post", WRITE, Some(body(&object)), &object);
    }
    path
}

fn identity(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}

fn body(of: &Value) -> Value {
    json!({ "content": { "*/*": { "schema": of } }, "required": true })
}

fn parameter(name: &str, of: &str, place: &str) -> Value {
    json!({ "name": name, "in": place, "schema": { "type": of, "uniqueItems": true } })
}

/// A path without operations.
fn empty_path(named: &[&str]) -> Value {
    let mut parameters: Vec<Value> = named
        .iter()
        .map(|name| {
            let mut parameter = parameter(name, "string", "path");
            parameter["required"] = json!(true);
            parameter
        })
        .collect();
    parameters.push(parameter("pretty", "string", "query"));
    json!({ "parameters": parameters })
}

/// Builds operations on objects of one kind.
struct Builder {
    identity: Value,
    is_custom: bool,
}

impl Builder {
    /// Reads, puts and patches of single objects.
    fn describe_verbs(&self, verbs: &[&str], object: &Value, schemas: &mut Schemas, path: &mut Value) {
        if verbs.contains(&"get") {
            path["get"] = self.operation("get", &[], None, object);
        }
        if verbs.contains(&"update") {
            path["put"] = self.operation("put", WRITE, Some(body(object)), object);
        }
        if verbs.contains(&"patch") {
            let reference = schemas.refer_to_meta("Patch");
            let mut content = Map::new();
            for media_type in [APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH] {
                if !(self.is_custom && media_type == STRATEGIC_MERGE_PATCH) {
                    content.insert(media_type.to_owned(), json!({ "schema": reference }));
                }
            }
            let body = json!({ "content": content, "required": true });
            path["patch"] = self.operation("patch", PATCH, Some(body), object);
        }
    }

    fn operation(&self, action: &str, parameters: Parameters, body: Option<Value>, answer: &Value) -> Value {
        let parameters: Vec<Value> = parameters.iter().map(|(name, of)| parameter(name, of, "query")).collect();
        let content = json!({ "application/json": { "schema": answer } });
        let mut operation = json!({
            "parameters": parameters,
            "responses": { "200": { "description": "OK", "content": content } },
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.identity,
        });
        if action == "post" {
            operation["responses"]["201"] = json!({ "description": "Created", "content": content });
        }
        if let Some(body) = body {
            operation["requestBody"] = body;
        }
        operation
    }
}
