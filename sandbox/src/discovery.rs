//! What is served, told to clients; version and health. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kinds::{Kind, Kinds};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

pub(crate) enum Answer {
    Json(&'static str, Value),
    Text(&'static str),
    /// A version that a known group does not have.
    NotServed,
}

/// Answers what is not a resource; `None` where nothing is served.
pub(crate) fn answer(kinds: &Kinds, path: &[&str], accept: &str) -> Option<Answer> {
    let json = |value| Some(Answer::Json("application/json", value));
    let aggregated = accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2");
    match path {
        ["healthz" | "livez" | "readyz", ..] => Some(Answer::Text("ok")),
        ["version"] => json(version()),
        ["api"] if aggregated => Some(Answer::Json(AGGREGATED, aggregate(kinds, true))),
        ["apis"] if aggregated => Some(Answer::Json(AGGREGATED, aggregate(kinds, false))),
        ["api"] => json(json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })),
        ["apis"] => {
            let groups: Vec<Value> = groups(kinds).iter().filter(|(group, _)| !group.is_empty()).map(group).collect();
            json(json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
        }
        ["api", version] => Some(resources(kinds, "", version).and_then(json).unwrap_or(Answer::NotServed)),
        ["apis", name] => {
            let groups = groups(kinds);
            let (name, versions) = groups.get_key_value(*name).filter(|(name, _)| !name.is_empty())?;
            let mut found = group((name, versions));
            found["kind"] = json!("APIGroup");
            found["apiVersion"] = json!("v1");
            json(found)
        }
        ["apis", group, version] if groups(kinds).contains_key(group) => {
            Some(resources(kinds, group, version).and_then(json).unwrap_or(Answer::NotServed))
        }
        _ => None,
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
    })
}

type Groups<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Vec<&'a Kind>>>;

fn groups(kinds: &Kinds) -> Groups<'_> {
    let mut groups = Groups::new();
    for kind in kinds.iter() {
        let resource = &kind.resource;
        groups.entry(&resource.group).or_default().entry(&resource.version).or_default().push(kind);
    }
    groups
}

fn group((name, versions): (&&str, &BTreeMap<&str, Vec<&Kind>>)) -> Value {
    let versions: Vec<Value> = versions
        .keys()
        .map(|version| json!({ "groupVersion": format!("{name}/{version}"), "version": version }))
        .collect();
    json!({ "name": name, "preferredVersion": versions.last(), "versions": versions })
}

fn singular(kind: &Kind) -> String {
    kind.resource.kind.to_lowercase()
}

fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let groups = groups(kinds);
    let served = groups.get(group)?.get(version)?;
    let mut resources = Vec::new();
    for kind in served {
        let resource = &kind.resource;
        resources.push(json!({
            "name": resource.plural, "singularName": singular(kind), "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": VERBS,
        }));
        for subresource in kind.subresources() {
            let (of, verbs) = subresource_of(kind, subresource);
            resources.push(json!({
                "name": format!("{}/{subresource}", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": of, "verbs": verbs,
            }));
        }
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
    }))
}

fn subresource_of<'a>(kind: &'a Kind, subresource: &str) -> (&'a str, &'static [&'static str]) {
    match subresource {
        "binding" => ("Binding", &["create"]),
        "finalize" => (&kind.resource.kind, &["update"]),
        _ => (&kind.resource.kind, &["get", "patch", "update"]),
    }
}

/// # Upstream
/// `k8s.io/api/apidiscovery/v2`
fn aggregate(kinds: &Kinds, core: bool) -> Value {
    let items: Vec<Value> = groups(kinds)
        .into_iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .into_iter()
                .map(|(version, kinds)| {
                    let resources: Vec<Value> = kinds.into_iter().map(aggregated_resource).collect();
                    json!({ "version": version, "resources": resources, "freshness": "Current" })
                })
                .collect();
            let metadata = if group.is_empty() { json!({}) } else { json!({ "name": group }) };
            json!({ "metadata": metadata, "versions": versions })
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let resource = &kind.resource;
    // Built-in kinds leave group and version to be taken from where they stand.
    let (group, version) = if kind.is_custom() { (&*resource.group, &*resource.version) } else { ("", "") };
    let response_kind = |name: &str| json!({ "group": group, "version": version, "kind": name });
    let subresources: Vec<Value> = kind
        .subresources()
        .iter()
        .map(|subresource| {
            let (of, verbs) = subresource_of(kind, subresource);
            json!({ "subresource": subresource, "responseKind": response_kind(of), "verbs": verbs })
        })
        .collect();
    let mut described = json!({
        "resource": resource.plural,
        "responseKind": response_kind(&resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": singular(kind),
        "verbs": VERBS,
    });
    if !subresources.is_empty() {
        described["subresources"] = json!(subresources);
    }
    described
}
