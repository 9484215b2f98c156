//! Routing: from a method and a path to the target of a request.

use std::borrow::Cow;

use http::Method;

use super::query::Query;
use super::target::{Target, Verb};
use crate::kinds::{Kind, Kinds};
use crate::status::Status;

/// The route of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Route {
    Resource(Target, Query),
    /// Discovery, versions and health.
    Other(Vec<String>),
}

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
        // A namespace is an object with subresources, and the parent of other objects.
        ["namespaces", name, next, after @ ..] if !is_subresource_of_namespaces(next) => {
            (Some(*name), [&[*next], after].concat())
        }
        other => (None, other.to_vec()),
    };
    let (plural, name, subresource) = match rest.as_slice() {
        [plural] => (*plural, None, None),
        [plural, name] => (*plural, Some(*name), None),
        // A proxy path may have any form.
        [plural, name, "proxy", ..] => (*plural, Some(*name), Some("proxy")),
        [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
        _ => return Err(Status::not_served()),
    };
    let Some(kind) = kinds.find(group, version, plural) else {
        // An unknown group gets the plain 404 of the mux, not a `Status`.
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
        // Namespaced objects are written through their namespace; only reads span all namespaces.
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

/// Decodes one path segment; an encoded slash does not separate segments.
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

/// The resource that a path addresses.
#[derive(Debug, Clone, Copy)]
enum Scope<'a> {
    AllNamespaces,
    Collection,
    Object,
    Part(&'a str),
}

impl Scope<'_> {
    /// Returns the verb of a method: 405 if the kind does not support it, 404 if the path has no such method.
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
            // Only the deprecated watch path addresses a watch of one object.
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
    fn path_segments_are_decoded_separately() {
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
