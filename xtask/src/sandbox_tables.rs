//! Writes the tables of the sandbox: what the API serves and how its objects are shaped, from the discovery documents
//! and OpenAPI schemas that come with Kubernetes. Descriptions are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{control_plane, go_types, step};

/// Types that only requests and responses use, beside the types of the served kinds.
const MORE_ROOTS: [&str; 8] = [
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.api.core.v1.Binding",
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
];

/// Rewrites `sandbox/apiserver/data`.
///
/// # Errors
///
/// If Kubernetes has not been downloaded, or a document has a form that is not known here.
pub(crate) fn write() -> Result<()> {
    let kubernetes = control_plane::kubernetes_source()?;
    let api = kubernetes.join("api");
    let resources = resources(&api.join("discovery"))?;
    let schemas = schemas(&api.join("openapi-spec/v3"))?;
    let folder = step::root().join("sandbox/apiserver/data");
    save(&folder.join("resources.tsv"), &resources)?;
    let types = schemas.keys().map(String::as_str).filter(|name| scalar(name).is_none());
    let known = go_types::marks(&kubernetes, types)?;
    save(&folder.join("schema.txt"), &schema_text(&schemas, &known)?)
}

fn save(path: &PathBuf, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{} ({} KB)", path.display(), text.len() / 1024);
    Ok(())
}

fn read(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn words(value: &Value) -> String {
    let words: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(",") }
}

/// One line for each resource, in the order of discovery.
fn resources(discovery: &Path) -> Result<String> {
    let mut versions = vec!["v1".to_owned()];
    let groups = read(&discovery.join("apis.json"))?;
    for group in groups["groups"].as_array().context("apis.json must list groups")? {
        for version in group["versions"].as_array().into_iter().flatten() {
            versions.push(text(version, "groupVersion").to_owned());
        }
    }
    let mut out =
        String::from("group\tversion\tplural\tkind\tsingular\tscope\tshort\tcategories\tverbs\tsubresources\n");
    for group_version in versions {
        let (group, version) = group_version.split_once('/').unwrap_or(("", &group_version));
        let file =
            if group.is_empty() { format!("api__{version}.json") } else { format!("apis__{group}__{version}.json") };
        let list = read(&discovery.join(file))?;
        let all = list["resources"].as_array().context("a discovery document must list resources")?;
        for resource in all.iter().filter(|resource| !text(resource, "name").contains('/')) {
            let plural = text(resource, "name");
            let prefix = format!("{plural}/");
            let mut subresources = Vec::new();
            for sub in all {
                if let Some(name) = text(sub, "name").strip_prefix(&prefix) {
                    let kind = text(sub, "kind");
                    let (sub_group, sub_version) = match text(sub, "version") {
                        "" => (group, version),
                        other => (text(sub, "group"), other),
                    };
                    subresources.push(format!("{name}={sub_group}/{sub_version}/{kind}:{}", words(&sub["verbs"])));
                }
            }
            let scope = if resource["namespaced"] == true { "namespace" } else { "cluster" };
            let subresources = if subresources.is_empty() { "-".to_owned() } else { subresources.join(" ") };
            writeln!(
                out,
                "{}\t{version}\t{plural}\t{}\t{}\t{scope}\t{}\t{}\t{}\t{subresources}",
                if group.is_empty() { "-" } else { group },
                text(resource, "kind"),
                text(resource, "singularName"),
                words(&resource["shortNames"]),
                words(&resource["categories"]),
                words(&resource["verbs"]),
            )?;
        }
    }
    Ok(out)
}

/// All schemas that served kinds reach, by their full names.
fn schemas(folder: &Path) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("cannot list {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    files.sort();
    for file in files {
        let document = read(&file)?;
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            all.entry(name.clone()).or_insert_with(|| schema.clone());
        }
    }
    let is_root = |name: &str, schema: &Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array().map_or(0, Vec::len);
        MORE_ROOTS.contains(&name) || (kinds == 1 && !name.ends_with("List"))
    };
    let mut wanted: Vec<String> =
        all.iter().filter(|(name, schema)| is_root(name, schema)).map(|(name, _)| name.clone()).collect();
    let mut reached = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        let schema = all.get(&name).with_context(|| format!("{name} is referred to and not defined"))?;
        if reached.insert(name) {
            references(schema, &mut wanted);
        }
    }
    all.retain(|name, _| reached.contains(name));
    Ok(all)
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref").and_then(Value::as_str) {
                found.extend(name.rsplit('/').next().map(str::to_owned));
            }
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

const HEADER: &str = "\
# Types of the Kubernetes API. A type begins a line; its fields are indented: name, type, marks.
# Types: string int32 int64 number bool bytes time quantity int-or-string any, [T] a list, {T} a map, or another type.
# Marks: ! required, =JSON written where it is not given, atomic, set, map:K,K (lists by key), patch:S, key:K (strategic
# merge), kind:G/V/K on types. How an empty field is written: as its default, else not at all; with omit not at all, with
# null as null, with zero as 0, with pointer as it is. go:T how Go prints the type, where it is not plain; #N its
# number in protobuf, after that of the embedded struct.
";

fn schema_text(schemas: &BTreeMap<String, Value>, known: &go_types::Marks) -> Result<String> {
    let mut out = String::from(HEADER);
    for (name, schema) in schemas {
        if scalar(name).is_some() {
            continue;
        }
        write!(out, "{name}")?;
        if schema["x-kubernetes-map-type"] == "atomic" {
            out.push_str(" atomic");
        }
        for kind in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten().take(1) {
            write!(out, " kind:{}/{}/{}", text(kind, "group"), text(kind, "version"), text(kind, "kind"))?;
        }
        out.push('\n');
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            write!(out, " {field} {}", type_of(property).with_context(|| format!("{name}.{field}"))?)?;
            if required.contains(field.as_str()) {
                out.push_str(" !");
            }
            out.push_str(&marks(property));
            let mark = known.get(&(name.clone(), field.clone())).cloned().unwrap_or_default();
            let is_clear = match mark.empty {
                " omit" => property.get("default").is_none_or(Value::is_object),
                " pointer" => !is_scalar(property),
                _ => false,
            };
            if !is_clear {
                out.push_str(mark.empty);
            }
            if !mark.go.is_empty() && !is_implied(&type_of(property)?, &mark.go) {
                write!(out, " go:{}", mark.go)?;
            }
            if !mark.number.is_empty() {
                write!(out, " #{}", mark.number)?;
            }
            out.push('\n');
        }
    }
    Ok(out)
}

/// Returns `true` if the Go type follows from the table's type. Go does not name the type of a value that decodes
/// itself.
fn is_implied(of: &str, go: &str) -> bool {
    let inner = |open: char, close: char| of.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let (Some(item), Some(go)) = (inner('[', ']'), go.strip_prefix("[]")) {
        return is_implied(item, go);
    }
    if let (Some(value), Some(go)) = (inner('{', '}'), go.strip_prefix("map[string]")) {
        return is_implied(value, go);
    }
    match of {
        "any" | "quantity" | "int-or-string" => true,
        "bytes" => go == "[]uint8",
        "time" => go != "v1.MicroTime",
        "number" => go == "float64",
        name => {
            let short = name.rsplitn(3, '.').take(2).collect::<Vec<_>>();
            if let [kind, version] = short[..] { go == format!("{version}.{kind}") } else { go == name }
        }
    }
}

/// Types that are scalars or arbitrary JSON, although their schema differs.
fn scalar(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once("pkg.")?.1 {
        "api.resource.Quantity" => "quantity",
        "util.intstr.IntOrString" => "int-or-string",
        "apis.meta.v1.Time" | "apis.meta.v1.MicroTime" => "time",
        "runtime.RawExtension"
        | "apis.meta.v1.FieldsV1"
        | "apis.apiextensions.v1.JSON"
        | "apis.apiextensions.v1.JSONSchemaPropsOrArray"
        | "apis.apiextensions.v1.JSONSchemaPropsOrBool"
        | "apis.apiextensions.v1.JSONSchemaPropsOrStringArray" => "any",
        _ => return None,
    })
}

/// Returns `true` if a value of the type can be empty without being an empty list or map.
fn is_scalar(schema: &Value) -> bool {
    type_of(schema).is_ok_and(|of| !of.contains('.') && !of.starts_with(['[', '{']))
}

fn type_of(schema: &Value) -> Result<String> {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    if let Some(name) = reference.and_then(|reference| reference.rsplit('/').next()) {
        return Ok(scalar(name).map_or_else(|| name.to_owned(), str::to_owned));
    }
    Ok(match (text(schema, "type"), text(schema, "format")) {
        ("string", "byte") => "bytes".to_owned(),
        ("string", "date-time") => "time".to_owned(),
        ("string", _) => "string".to_owned(),
        ("integer", "int32") => "int32".to_owned(),
        ("integer", _) => "int64".to_owned(),
        ("number", _) => "number".to_owned(),
        ("boolean", _) => "bool".to_owned(),
        ("array", _) => format!("[{}]", type_of(&schema["items"])?),
        ("object", _) if schema["additionalProperties"].is_object() => {
            format!("{{{}}}", type_of(&schema["additionalProperties"])?)
        }
        ("object" | "", _) => "any".to_owned(),
        (other, _) => bail!("the type {other:?} is not known"),
    })
}

fn marks(schema: &Value) -> String {
    // Empty, so that each mark has a space before it.
    let mut marks = vec![String::new()];
    marks.extend(schema.get("default").map(|default| format!("={default}")));
    match text(schema, "x-kubernetes-list-type") {
        "map" => marks.push(format!("map:{}", words(&schema["x-kubernetes-list-map-keys"]))),
        "" => {}
        other => marks.push(other.to_owned()),
    }
    if schema["x-kubernetes-map-type"] == "atomic" {
        marks.push("atomic".to_owned());
    }
    marks.extend(schema["x-kubernetes-patch-strategy"].as_str().map(|strategy| format!("patch:{strategy}")));
    marks.extend(schema["x-kubernetes-patch-merge-key"].as_str().map(|key| format!("key:{key}")));
    marks.join(" ")
}
