use std::collections::BTreeSet;

use kcm_api::Resource;
use serde_json::json;

use super::*;

const APPS: GroupVersion<'_> = GroupVersion { group: "apps", version: "v1" };
const EXAMPLE: GroupVersion<'_> = GroupVersion { group: "example.com", version: "v1" };

fn kinds() -> Kinds {
    let mut kinds = Kinds::built_in(false);
    kinds.register(Resource::namespaced("example.com", "v1", "widgets", "Widget"), None);
    kinds
}

fn at<'a>(document: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(document, |value, name| &value[*name])
}

/// Every name that a document refers to.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_served_version_has_a_document_that_defines_what_it_refers_to() {
    let kinds = kinds();
    let index = index(&kinds);
    let addresses = index["paths"].as_object().expect("the index must be a map");
    assert!(addresses.len() > 15 && addresses.contains_key("api/v1") && addresses.contains_key("apis/example.com/v1"));
    for path in addresses.keys() {
        let parts: Vec<&str> = path.split('/').collect();
        let of = match parts[..] {
            ["api", version] => GroupVersion { group: "", version },
            ["apis", group, version] => GroupVersion { group, version },
            _ => panic!("{path} must name a version"),
        };
        let document = document(&kinds, of).expect("a listed version must have a document");
        let mut names = BTreeSet::new();
        references(&document, &mut names);
        for name in names {
            let name = name.strip_prefix("#/components/schemas/").expect("a reference must be to a schema");
            assert!(!at(&document, &["components", "schemas", name]).is_null(), "{path} must define {name}");
        }
    }
    assert_eq!(document(&kinds, GroupVersion { group: "apps", version: "v9" }), None);
}

#[test]
fn types_are_described_as_upstream_describes_them() {
    let document = document(&kinds(), APPS).expect("apps must be served");
    let schema = |name: &str| at(&document, &["components", "schemas", name]).clone();
    let field = |of: &str, name: &str| {
        let mut field = at(&schema(of), &["properties", name]).clone();
        field.as_object_mut().expect("the field must be there").remove("description");
        field
    };
    let of = |name: &str| json!([{ "$ref": format!("#/components/schemas/{name}") }]);
    let spec = "io.k8s.api.apps.v1.DeploymentSpec";
    assert_eq!(schema(spec)["required"], json!(["selector", "template"]));
    assert_eq!(
        schema("io.k8s.api.apps.v1.Deployment")["x-kubernetes-group-version-kind"],
        json!([{ "group": "apps", "version": "v1", "kind": "Deployment" }])
    );
    for (name, field_name, expected) in [
        (spec, "replicas", json!({ "type": "integer", "format": "int32" })),
        (spec, "selector", json!({ "allOf": of("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector") })),
        (
            spec,
            "strategy",
            json!({
                "default": {}, "allOf": of("io.k8s.api.apps.v1.DeploymentStrategy"),
                "x-kubernetes-patch-strategy": "retainKeys",
            }),
        ),
        (
            "io.k8s.api.apps.v1.RollingUpdateDeployment",
            "maxSurge",
            json!({ "allOf": of("io.k8s.apimachinery.pkg.util.intstr.IntOrString") }),
        ),
        (
            "io.k8s.api.core.v1.ResourceRequirements",
            "limits",
            json!({
                "type": "object",
                "additionalProperties": { "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity" },
            }),
        ),
        (
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
            "ownerReferences",
            json!({
                "type": "array",
                "items": { "default": {}, "allOf": of("io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference") },
                "x-kubernetes-list-map-keys": ["uid"], "x-kubernetes-list-type": "map",
                "x-kubernetes-patch-merge-key": "uid", "x-kubernetes-patch-strategy": "merge",
            }),
        ),
        (
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
            "finalizers",
            json!({
                "type": "array", "items": { "type": "string", "default": "" },
                "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
            }),
        ),
    ] {
        assert_eq!(field(name, field_name), expected, "{name}.{field_name}");
    }
}

#[test]
fn a_patch_says_what_kubectl_looks_for() {
    let document = document(&kinds(), APPS).expect("apps must be served");
    let path = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
    let operation = &path["patch"];
    let identity = json!({ "group": "apps", "version": "v1", "kind": "Deployment" });
    assert_eq!(
        (&operation["x-kubernetes-action"], &operation["x-kubernetes-group-version-kind"]),
        (&json!("patch"), &identity)
    );
    let parameters: Vec<&str> =
        operation["parameters"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(parameters, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let scale = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"];
    let identity = json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" });
    assert_eq!(scale["patch"]["x-kubernetes-group-version-kind"], identity);
}

#[test]
fn custom_kinds_may_hold_any_field() {
    let document = document(&kinds(), EXAMPLE).expect("widgets must be served");
    let widget = at(&document, &["components", "schemas", "com.example.v1.Widget"]);
    assert_eq!(widget["x-kubernetes-preserve-unknown-fields"], true);
    let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    assert!(patch["requestBody"]["content"].get("application/strategic-merge-patch+json").is_none());
}

#[test]
fn an_address_changes_with_what_is_served() {
    let mut kinds = kinds();
    let (apps, example) = (address(&kinds, APPS), address(&kinds, EXAMPLE));
    kinds.register(Resource::namespaced("example.com", "v1", "gadgets", "Gadget"), None);
    assert_eq!(address(&kinds, APPS), apps);
    assert_ne!(address(&kinds, EXAMPLE), example);
}
