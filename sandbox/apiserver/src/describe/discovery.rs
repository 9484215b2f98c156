//! Non-resource endpoints: discovery, OpenAPI, version and health. Pure.
//!
//! # Upstream
//! `apiserver/pkg/endpoints/discovery`, `k8s.io/api/apidiscovery/v2`, `apiserver/pkg/server/{healthz,routes}`. The
//! health checks are our own, and `storageVersionHash` is left out.

use http::{Method, header};
use serde_json::{Value, json};

use kcm_api::Fnv1a;

use crate::describe::document::{DiscoveryDocument, DiscoveryRequest, TEXT};
use crate::describe::group_version::GroupVersion;
#[cfg(feature = "kubectl")]
use crate::describe::openapi;
use crate::describe::tag::hex;
use crate::kinds::{Kind, Kinds};
use crate::status::Status;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Serves non-resource requests.
///
/// # Errors
///
/// A `Status` for unknown versions of a known group, and for methods that are not allowed. Any other unknown path gets
/// a plain 404 page.
pub(crate) fn answer(kinds: &Kinds, request: &DiscoveryRequest<'_>) -> Result<DiscoveryDocument, Status> {
    let is_aggregated = request.accept.contains("as=APIGroupDiscoveryList") && request.accept.contains("v=v2");
    let answered = match request.path {
        [] => Some(DiscoveryDocument::json(&json!({ "paths": paths(kinds) }))),
        ["healthz" | "livez" | "readyz", ..] => health(request),
        ["version"] => Some(reading(request, DiscoveryDocument::json(&version()))?),
        ["api"] if is_aggregated => Some(aggregated(kinds, true, request)),
        ["apis"] if is_aggregated => Some(aggregated(kinds, false, request)),
        ["api"] => Some(DiscoveryDocument::json(&core_versions(request.host))),
        ["apis"] => {
            let groups: Vec<Value> = groups(kinds).iter().filter(|group| !group.name.is_empty()).map(group).collect();
            Some(DiscoveryDocument::json(&json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })))
        }
        ["api", version] => {
            let resources = resources(kinds, "", version).ok_or_else(Status::not_served)?;
            Some(reading(request, DiscoveryDocument::json(&resources))?)
        }
        ["apis", name] => {
            let groups = groups(kinds);
            groups.iter().find(|group| group.name == *name && !name.is_empty()).map(|found| {
                let mut described = group(found);
                described["kind"] = json!("APIGroup");
                described["apiVersion"] = json!("v1");
                DiscoveryDocument::json(&described)
            })
        }
        ["apis", name, version] if groups(kinds).iter().any(|group| group.name == *name) => {
            let resources = resources(kinds, name, version).ok_or_else(Status::not_served)?;
            Some(reading(request, DiscoveryDocument::json(&resources))?)
        }
        ["openapi", "v2"] => Some(described_in_short(request)),
        #[cfg(feature = "kubectl")]
        ["openapi", "v3", rest @ ..] => Some(openapi::answer(kinds, rest, request)),
        _ => None,
    };
    Ok(answered.unwrap_or_else(page_not_found))
}

fn page_not_found() -> DiscoveryDocument {
    DiscoveryDocument::new(404, TEXT, "404 page not found\n")
}

/// Returns the response for GET and HEAD; 405 otherwise.
fn reading(request: &DiscoveryRequest<'_>, answer: DiscoveryDocument) -> Result<DiscoveryDocument, Status> {
    if [Method::GET, Method::HEAD].contains(request.method) { Ok(answer) } else { Err(Status::method_not_allowed()) }
}

/// Returns all served paths.
fn paths(kinds: &Kinds) -> Vec<String> {
    let mut paths: Vec<String> = ["/api", "/apis", "/openapi/v2", "/version"].map(str::to_owned).to_vec();
    if cfg!(feature = "kubectl") {
        paths.push("/openapi/v3".to_owned());
    }
    for endpoint in ["/healthz", "/livez", "/readyz"] {
        paths.push(endpoint.to_owned());
        paths.extend(CHECKS.iter().map(|check| format!("{endpoint}/{check}")));
    }
    for group in groups(kinds) {
        if !group.name.is_empty() {
            paths.push(format!("/apis/{}", group.name));
        }
        let of = |version| GroupVersion { group: group.name, version };
        paths.extend(group.versions.iter().map(|version| format!("/{}", of(version.name).path())));
    }
    paths.sort();
    paths
}

/// The health checks: requests are served, and objects can be stored.
const CHECKS: [&str; 2] = ["ping", "storage"];

fn health(request: &DiscoveryRequest<'_>) -> Option<DiscoveryDocument> {
    let [endpoint, checks @ ..] = request.path else { return None };
    match checks {
        [] if !request.query.all("verbose").is_empty() => {
            let mut lines: Vec<String> = CHECKS.iter().map(|check| format!("[+]{check} ok\n")).collect();
            lines.push(format!("{endpoint} check passed\n"));
            Some(DiscoveryDocument::text(lines.concat()))
        }
        [] => Some(DiscoveryDocument::text("ok")),
        [check] if CHECKS.contains(check) => Some(DiscoveryDocument::text("ok")),
        _ => None,
    }
}

fn version() -> Value {
    let machine = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "major": "1",
        "minor": "37",
        "emulationMajor": "1",
        "emulationMinor": "37",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "36",
        "gitVersion": "v1.37.2",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{machine}", std::env::consts::OS),
    })
}

fn core_versions(host: &str) -> Value {
    let addresses =
        if host.is_empty() { json!([]) } else { json!([{ "clientCIDR": "0.0.0.0/0", "serverAddress": host }]) };
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses })
}

/// Returns an empty OpenAPI v2 document.
///
/// kubectl reads it before it checks the items of a `List`, and skips those that are not described.
fn described_in_short(request: &DiscoveryRequest<'_>) -> DiscoveryDocument {
    // Clients request it with `@` before the version, which no media type may contain; the response has a dot.
    const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    const ANSWERED: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    if [ASKED, ANSWERED].iter().any(|form| request.accept.contains(form)) {
        return DiscoveryDocument::new(200, ANSWERED, "");
    }
    let info = json!({ "title": "Kubernetes", "version": version()["gitVersion"] });
    DiscoveryDocument::json(&json!({ "swagger": "2.0", "info": info, "paths": {} }))
}

/// A group and its versions, in the order in which they are served.
struct Group<'a> {
    name: &'a str,
    versions: Vec<Version<'a>>,
}

struct Version<'a> {
    name: &'a str,
    kinds: Vec<&'a Kind>,
}

fn groups(kinds: &Kinds) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for kind in kinds.iter() {
        let resource = &kind.resource;
        let at = groups.iter().position(|group| group.name == resource.group).unwrap_or_else(|| {
            groups.push(Group { name: &resource.group, versions: Vec::new() });
            groups.len() - 1
        });
        let versions = &mut groups[at].versions;
        let at = versions.iter().position(|version| version.name == resource.version).unwrap_or_else(|| {
            versions.push(Version { name: &resource.version, kinds: Vec::new() });
            versions.len() - 1
        });
        versions[at].kinds.push(kind);
    }
    groups
}

fn group(group: &Group<'_>) -> Value {
    let name = group.name;
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({ "groupVersion": format!("{name}/{}", version.name), "version": version.name }))
        .collect();
    json!({ "name": name, "preferredVersion": versions.first(), "versions": versions })
}

fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let groups = groups(kinds);
    let found = groups.iter().find(|found| found.name == group)?;
    let served = &found.versions.iter().find(|found| found.name == version)?.kinds;
    let mut resources = Vec::new();
    for kind in served {
        let resource = &kind.resource;
        let mut listed = json!({
            "name": resource.plural, "singularName": kind.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": kind.verbs,
        });
        list_names(kind, &mut listed);
        resources.push(listed);
        for subresource in &kind.subresources {
            let mut listed = json!({
                "name": format!("{}/{}", resource.plural, subresource.name), "singularName": "",
                "namespaced": resource.namespaced, "kind": subresource.kind, "verbs": subresource.verbs,
            });
            if subresource.group != resource.group || subresource.version != resource.version {
                listed["group"] = json!(subresource.group);
                listed["version"] = json!(subresource.version);
            }
            resources.push(listed);
        }
    }
    // The list of the core group has no `apiVersion`, for old clients.
    if group.is_empty() {
        return Some(json!({ "kind": "APIResourceList", "groupVersion": version, "resources": resources }));
    }
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{group}/{version}"),
        "resources": resources,
    }))
}

/// Returns the short names of a kind.
fn list_names(kind: &Kind, listed: &mut Value) {
    for (field, names) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
        if !names.is_empty() {
            listed[field] = json!(names);
        }
    }
}

fn aggregated(kinds: &Kinds, core: bool, request: &DiscoveryRequest<'_>) -> DiscoveryDocument {
    let items: Vec<Value> = groups(kinds)
        .into_iter()
        .filter(|group| group.name.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .into_iter()
                .map(|version| {
                    let resources: Vec<Value> = version.kinds.into_iter().map(aggregated_resource).collect();
                    json!({ "version": version.name, "resources": resources, "freshness": "Current" })
                })
                .collect();
            let metadata = if core { json!({}) } else { json!({ "name": group.name }) };
            json!({ "metadata": metadata, "versions": versions })
        })
        .collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    });
    let text = list.to_string();
    let tag = hex(Fnv1a::new().part(&text).value());
    DiscoveryDocument::new(200, AGGREGATED, text).header(header::CACHE_CONTROL, "public").tagged(&tag, request)
}

fn aggregated_resource(kind: &Kind) -> Value {
    let resource = &kind.resource;
    // Built-in kinds omit group and version, which the list around them states.
    let (group, version) = if kind.is_custom() { (&*resource.group, &*resource.version) } else { ("", "") };
    let response_kind =
        |group: &str, version: &str, name: &str| json!({ "group": group, "version": version, "kind": name });
    let subresources: Vec<Value> = kind
        .subresources
        .iter()
        .map(|subresource| {
            let (group, version) = if subresource.group == resource.group && subresource.version == resource.version {
                (group, version)
            } else {
                (&*subresource.group, &*subresource.version)
            };
            let of = response_kind(group, version, &subresource.kind);
            json!({ "subresource": subresource.name, "responseKind": of, "verbs": subresource.verbs })
        })
        .collect();
    let mut described = json!({
        "resource": resource.plural,
        "responseKind": response_kind(group, version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": kind.verbs,
    });
    list_names(kind, &mut described);
    if !subresources.is_empty() {
        described["subresources"] = json!(subresources);
    }
    described
}
