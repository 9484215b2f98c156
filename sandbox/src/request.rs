//! From an HTTP request to what it asks of the API. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderMap, Method, header};
use kcm_api::Resource;

use crate::kinds::Kinds;
use crate::status::{FieldError, Status};

/// What a request does, as authorization names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection.
    Watch,
    /// Makes an object.
    Create,
    /// Puts an object whole.
    Update,
    /// Changes an object by a patch.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
}

impl Verb {
    /// Whether the verb changes objects.
    #[must_use]
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// The object or collection that a request is about, and what it does with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What is done.
    pub verb: Verb,
    /// The resource.
    pub resource: Resource,
    /// The namespace of the path.
    pub namespace: Option<String>,
    /// The name of the path; for a create that of the object, where it has one.
    pub name: Option<String>,
    /// The subresource, for example `status`.
    pub subresource: Option<String>,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Route {
    Resource(Target, Query),
    /// Discovery, versions and health.
    Other(Vec<String>),
}

/// Decoded query parameters; of repeated ones the first counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            parameters.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        Self(parameters)
    }

    /// A parameter, where it is present and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    // As upstream converts booleans: a bare parameter is true.
    fn flag(&self, name: &str) -> Option<bool> {
        let value = self.0.get(name)?;
        Some(!(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Status> {
        let parse = |text: &str| {
            text.parse().map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
        };
        self.get(name).map(parse).transpose()
    }

    /// Whether the write is only tried.
    pub(crate) fn dry_run(&self) -> Result<bool, Status> {
        match self.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(Status::invalid(
                "meta.k8s.io",
                "Options",
                "",
                &[FieldError::not_supported("dryRun", other, &["All"])],
            )),
        }
    }
}

/// Finds out what a request is about.
pub(crate) fn route(method: &Method, path: &str, query: &str, kinds: &Kinds) -> Result<Route, Status> {
    let query = Query::parse(query);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        other => return Ok(Route::Other(other.iter().map(|&part| part.to_owned()).collect())),
    };
    let (namespace, rest) = match rest {
        // A namespace is both an object with subresources and the place of other objects.
        ["namespaces", name, next, after @ ..] if !is_subresource_of_namespaces(next) => {
            (Some(*name), [&[*next], after].concat())
        }
        other => (None, other.to_vec()),
    };
    let (plural, name, subresource) = match rest.as_slice() {
        [plural] => (*plural, None, None),
        [plural, name] => (*plural, Some(*name), None),
        [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
        _ => return Err(Status::not_served()),
    };
    let kind = kinds.find(group, version, plural).ok_or_else(Status::not_served)?;
    if subresource.is_some_and(|subresource| !kind.subresources().contains(&subresource)) {
        return Err(Status::not_served());
    }
    let resource = &kind.resource;
    // Objects in namespaces are reached through them; only collections span all.
    if (name.is_some() && resource.namespaced != namespace.is_some()) || (!resource.namespaced && namespace.is_some()) {
        return Err(Status::not_served());
    }
    let watch = query.flag("watch").unwrap_or(false);
    let verb = verb_of(method, name.is_some(), subresource, watch).ok_or_else(Status::method_not_allowed)?;
    let target = Target {
        verb,
        resource: resource.clone(),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
    };
    Ok(Route::Resource(target, query))
}

fn is_subresource_of_namespaces(part: &str) -> bool {
    part == "status" || part == "finalize"
}

fn verb_of(method: &Method, named: bool, subresource: Option<&str>, watch: bool) -> Option<Verb> {
    let creates = !named || subresource == Some("binding");
    match *method {
        Method::GET if named => Some(if watch { Verb::Watch } else { Verb::Get }),
        Method::GET => Some(if watch { Verb::Watch } else { Verb::List }),
        Method::POST if creates => Some(Verb::Create),
        Method::PUT if named => Some(Verb::Update),
        Method::PATCH if named => Some(Verb::Patch),
        Method::DELETE if subresource.is_some() => None,
        Method::DELETE => Some(if named { Verb::Delete } else { Verb::DeleteCollection }),
        _ => None,
    }
}

/// How a client matches the version that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// Parameters of lists and watches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) version: Option<u64>,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) limit: Option<usize>,
    pub(crate) continue_token: Option<String>,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout: Option<Duration>,
}

impl ListOptions {
    /// # Upstream
    /// `apimachinery/pkg/apis/meta/internalversion/validation`
    pub(crate) fn parse(query: &Query, watch: bool) -> Result<Self, Status> {
        let mut errors = Vec::new();
        let initial_events = query.flag("sendInitialEvents");
        let version_match = match query.get("resourceVersionMatch") {
            None => None,
            Some("Exact") => Some(VersionMatch::Exact),
            Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
            Some(other) => {
                let known: &[&str] = if watch { &["NotOlderThan"] } else { &["Exact", "NotOlderThan", ""] };
                errors.push(FieldError::not_supported("resourceVersionMatch", other, known));
                None
            }
        };
        check_match(query, watch, version_match, initial_events, &mut errors);
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors));
        }
        let version = query.get("resourceVersion").map(|text| {
            text.parse::<u64>().map_err(|_| {
                let why = format!(
                    "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
                );
                // Upstream has not given the error of a watch a code of its own.
                if watch {
                    Status::new(500, "", why)
                } else {
                    Status::bad_request(format!("invalid resource version: {why}"))
                }
            })
        });
        let timeout: Option<u64> = query.number("timeoutSeconds")?;
        Ok(Self {
            labels: query.get("labelSelector").map(str::to_owned),
            fields: query.get("fieldSelector").map(str::to_owned),
            version: version.transpose()?,
            version_match,
            limit: query.number("limit")?.filter(|limit| *limit > 0),
            continue_token: query.get("continue").map(str::to_owned),
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            initial_events,
            timeout: timeout.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        })
    }
}

fn check_match(
    query: &Query,
    watch: bool,
    version_match: Option<VersionMatch>,
    initial_events: Option<bool>,
    errors: &mut Vec<FieldError>,
) {
    let field = "resourceVersionMatch";
    let given = query.get(field).is_some();
    if watch {
        if initial_events.is_some() && version_match != Some(VersionMatch::NotOlderThan) {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(field, detail));
        }
        if given && initial_events.is_none() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(field, detail));
        }
        return;
    }
    if given && query.get("resourceVersion").is_none() {
        let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        errors.push(FieldError::forbidden(field, detail));
    }
    if given && query.get("continue").is_some() {
        errors.push(FieldError::forbidden(field, "resourceVersionMatch is forbidden when continue is provided"));
    }
    if version_match == Some(VersionMatch::Exact) && query.get("resourceVersion") == Some("0") {
        let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
        errors.push(FieldError::forbidden(field, detail));
    }
    if initial_events.is_some() {
        errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
}

/// The form in which a client wants objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    MetadataOnly,
}

/// The first form of the `Accept` header that can be answered.
pub(crate) fn accepted_form(headers: &HeaderMap) -> Result<Form, Status> {
    let Some(accept) = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()) else {
        return Ok(Form::Whole);
    };
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        if !matches!(parts.next(), Some("application/json" | "application/*" | "*/*" | "")) {
            continue;
        }
        match parts.find_map(|parameter| parameter.strip_prefix("as=")) {
            None => return Ok(Form::Whole),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") => return Ok(Form::MetadataOnly),
            // Tables and whatever else there is; another range may do.
            Some(_) => {}
        }
    }
    Err(Status::not_acceptable())
}
