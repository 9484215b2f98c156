//! From an HTTP request to what it asks of the API. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderMap, Method, header};
use kcm_api::Resource;

use crate::kinds::{Kind, Kinds};
pub(crate) use crate::service::list_options::{ListOptions, VersionMatch};
use crate::status::{FieldError, Status};
use crate::table::IncludeObject;

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

/// Decoded query parameters; of repeated ones the first counts, where it does not say otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            parameters.entry(name.into_owned()).or_default().push(value.into_owned());
        }
        Self(parameters)
    }

    /// A parameter, where it is present and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).first().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// All values of a parameter that may repeat.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    // As upstream converts booleans: a bare parameter is true.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let value = self.all(name).first()?;
        Some(!(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    pub(crate) fn number<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Status> {
        let parse = |text: &str| {
            text.parse().map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")))
        };
        self.get(name).map(parse).transpose()
    }

    /// The version that a read asks for, or why it is none.
    pub(crate) fn version(&self) -> Result<Option<u64>, String> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
            })
        };
        self.get("resourceVersion").map(parse).transpose()
    }

    /// Whether a write is only tried.
    ///
    /// # Errors
    /// 422 for what the options of that kind of write cannot be.
    pub(crate) fn dry_run(&self, verb: Verb, applies: bool) -> Result<bool, Status> {
        let options = match verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            Verb::Patch => "PatchOptions",
            // Deletions have options of their own, in the body or here.
            Verb::Delete | Verb::DeleteCollection | Verb::Get | Verb::List | Verb::Watch => return Ok(false),
        };
        let mut errors = Vec::new();
        if verb == Verb::Patch && !applies && self.flag("force").is_some() {
            errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
        }
        let stages = self.all("dryRun");
        if stages.iter().any(|stage| stage != "All") {
            errors.push(FieldError::not_supported("dryRun", stages.to_vec(), &["All"]));
        }
        if errors.is_empty() {
            return Ok(!stages.is_empty());
        }
        Err(Status::invalid("meta.k8s.io", options, "", &errors))
    }
}

/// Finds out what a request is about.
pub(crate) fn route(method: &Method, path: &str, query: &str, kinds: &Kinds) -> Result<Route, Status> {
    let query = Query::parse(query);
    let parts = path.split('/').filter(|part| !part.is_empty()).map(decode).collect::<Result<Vec<_>, _>>()?;
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        other => return Ok(Route::Other(other.iter().map(|&part| part.to_owned()).collect())),
    };
    let (old_path, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    if old_path && *method != Method::GET {
        return Err(Status::method_not_allowed());
    }
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
        // Behind a proxy there may be any path.
        [plural, name, "proxy", ..] => (*plural, Some(*name), Some("proxy")),
        [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
        _ => return Err(Status::not_served()),
    };
    let Some(kind) = kinds.find(group, version, plural) else {
        // Of groups that are not served nothing is known, not even what errors look like.
        if kinds.iter().any(|kind| kind.resource.group == group) {
            return Err(Status::not_served());
        }
        return Ok(Route::Other(parts.iter().map(|&part| part.to_owned()).collect()));
    };
    let resource = &kind.resource;
    if !resource.namespaced && namespace.is_some() {
        return Err(Status::not_served());
    }
    let watch = query.flag("watch").unwrap_or(false);
    let scope = match (name, subresource) {
        (Some(_), Some(subresource)) => Scope::Part(subresource),
        (Some(_), None) => Scope::Object,
        // Objects in namespaces are written through them; only reads span all.
        (None, _) if resource.namespaced && namespace.is_none() => Scope::AllNamespaces,
        (None, _) => Scope::Collection,
    };
    if name.is_some() && resource.namespaced && namespace.is_none() {
        return Err(Status::not_served());
    }
    let verb = scope.verb(kind, method, watch || old_path, old_path)?;
    let target = Target {
        verb,
        resource: resource.clone(),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
    };
    Ok(Route::Resource(target, query))
}

/// A part of a path as it is meant; a slash within it separates nothing.
fn decode(part: &str) -> Result<Cow<'_, str>, Status> {
    if !part.contains('%') {
        return Ok(part.into());
    }
    let refuse = |escape: &str| Status::bad_request(format!("invalid URL escape {escape:?}"));
    let mut bytes = Vec::with_capacity(part.len());
    let mut pieces = part.split('%');
    bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let code = piece.get(..2).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let shown = || format!("%{}", piece.chars().take(2).collect::<String>());
        bytes.push(byte.ok_or_else(|| refuse(&shown()))?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| refuse(part))
}

fn is_subresource_of_namespaces(part: &str) -> bool {
    part == "status" || part == "finalize"
}

/// What a path reaches.
#[derive(Debug, Clone, Copy)]
enum Scope<'a> {
    AllNamespaces,
    Collection,
    Object,
    Part(&'a str),
}

impl Scope<'_> {
    /// What a method does here: 405 where this kind does not do it, 404 where it does nothing here at all.
    fn verb(self, kind: &Kind, method: &Method, watch: bool, old_path: bool) -> Result<Verb, Status> {
        let (served, known): (&[&str], &[&str]) = match self {
            Self::AllNamespaces => (&kind.verbs, &["list", "watch"]),
            Self::Collection => (&kind.verbs, &["create", "deletecollection", "list", "watch"]),
            Self::Object => (&kind.verbs, &["delete", "get", "patch", "update"]),
            Self::Part(name) => {
                let not_there = || kind.left_out(name).map_or_else(Status::not_served, Status::not_implemented);
                let part = kind.subresource(name).ok_or_else(not_there)?;
                (&part.verbs, &["create", "get", "patch", "update"])
            }
        };
        let is_served = |verb: &str| served.contains(&verb) && known.contains(&verb);
        if !known.iter().any(|verb| is_served(verb)) {
            return Err(Status::not_served());
        }
        let many = matches!(self, Self::AllNamespaces | Self::Collection);
        let (verb, name) = match *method {
            Method::GET if watch && many => (Verb::Watch, "watch"),
            // The old path of a watch is the only one to a watch of one object.
            Method::GET if old_path && matches!(self, Self::Object) => (Verb::Watch, "get"),
            Method::GET if many => (Verb::List, "list"),
            Method::GET => (Verb::Get, "get"),
            Method::POST => (Verb::Create, "create"),
            Method::PUT => (Verb::Update, "update"),
            Method::PATCH => (Verb::Patch, "patch"),
            Method::DELETE if many => (Verb::DeleteCollection, "deletecollection"),
            Method::DELETE => (Verb::Delete, "delete"),
            _ => return Err(Status::method_not_allowed()),
        };
        if is_served(name) { Ok(verb) } else { Err(Status::method_not_allowed()) }
    }
}

/// The form in which a client wants objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    MetadataOnly,
    /// Printed by the server.
    Table {
        include: IncludeObject,
    },
}

/// The form of the `Accept` header that the client likes best of those that can be answered.
///
/// # Upstream
/// `apiserver/pkg/endpoints/handlers/negotiation`
pub(crate) fn accepted_form(headers: &HeaderMap, query: &Query, target: &Target) -> Result<Form, Status> {
    let Some(accept) = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()) else {
        return Ok(Form::Whole);
    };
    let mut ranges: Vec<MediaRange<'_>> = accept.split(',').map(MediaRange::parse).collect();
    ranges.sort_by(|one, other| other.quality.total_cmp(&one.quality));
    for range in ranges {
        if !matches!(range.media_type, "application/json" | "application/*" | "*/*" | "") {
            continue;
        }
        match (range.form, range.is_meta_v1) {
            (None, false) => return Ok(Form::Whole),
            (Some(form @ ("PartialObjectMetadata" | "PartialObjectMetadataList")), true) => {
                return metadata_form(form, target);
            }
            (Some("Table"), true) => return Ok(Form::Table { include: IncludeObject::parse(query)? }),
            // Whatever else there is, or in another version; another range may do.
            (Some(_), _) | (None, true) => {}
        }
    }
    Err(Status::not_acceptable())
}

/// Metadata alone, of an object or of a list: each has a form of its own.
fn metadata_form(form: &str, target: &Target) -> Result<Form, Status> {
    let listed = matches!(target.verb, Verb::List | Verb::DeleteCollection);
    if form.ends_with("List") == listed {
        return Ok(Form::MetadataOnly);
    }
    // The package of upstream's own type is called after the group.
    let package = target.resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    let (is, list) = if listed { ("is", "List") } else { ("is not", "") };
    let kind = &target.resource.kind;
    let message = format!("you requested {form}, but the requested object {is} a list (*{package}.{kind}{list})");
    Err(Status::new(406, "NotAcceptable", message))
}

/// One alternative of an `Accept` header.
struct MediaRange<'a> {
    media_type: &'a str,
    quality: f32,
    /// What objects are to be turned into.
    form: Option<&'a str>,
    /// The form is one of `meta.k8s.io/v1`.
    is_meta_v1: bool,
}

impl<'a> MediaRange<'a> {
    fn parse(range: &'a str) -> Self {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let parameters: BTreeMap<&str, &str> = parts.filter_map(|part| part.split_once('=')).collect();
        let get = |name| parameters.get(name).copied();
        Self {
            media_type,
            quality: get("q").and_then(|quality| quality.parse().ok()).unwrap_or(1.0),
            form: get("as"),
            is_meta_v1: get("g") == Some("meta.k8s.io") && get("v") == Some("v1"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str) -> Result<Option<String>, String> {
        match route(&Method::GET, path, "", &Kinds::built_in(false)) {
            Ok(Route::Resource(target, _)) => Ok(target.name),
            Ok(Route::Other(_)) => Ok(None),
            Err(status) => Err(status.message),
        }
    }

    #[test]
    fn parts_of_a_path_are_decoded_by_themselves() {
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        for (written, meant) in [
            ("system%3Anode", "system:node"),
            ("a%3ab", "a:b"),
            ("%c3%a9", "é"),
            ("a%2Fstatus", "a/status"),
            ("a+b", "a+b"),
            ("%25", "%"),
        ] {
            assert_eq!(name(&format!("{roles}/{written}")), Ok(Some(meant.to_owned())), "{written}");
        }
        assert_eq!(name("/api/v1/%6eamespaces/a"), Ok(Some("a".to_owned())));
        for (written, why) in
            [("a%", "%"), ("a%4", "%4"), ("%zz", "%zz"), ("%+1", "%+1"), ("%éa", "%éa"), ("%ff", "%ff")]
        {
            assert_eq!(name(&format!("{roles}/{written}")), Err(format!("invalid URL escape {why:?}")), "{written}");
        }
    }
}
