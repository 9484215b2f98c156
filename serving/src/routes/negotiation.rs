//! The form of responses of `/flagz` and `/statusz`, from the header `Accept`. Pure.
//!
//! # Upstream
//! `NegotiateOutputMediaType` in `apiserver/pkg/endpoints/handlers/negotiation`, with the restrictions of both paths.

use http::HeaderMap;
use http::header::ACCEPT;

/// The versions of the structured forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// The deprecated version of the API.
    V1Alpha1,
    V1Beta1,
}

impl Version {
    /// The version with its group, as `apiVersion` has it.
    pub(super) const fn api_version(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "config.k8s.io/v1alpha1",
            Self::V1Beta1 => "config.k8s.io/v1beta1",
        }
    }
}

/// The form of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Json(Version),
    Yaml(Version),
}

/// Returns the form that a request for an object of `kind` asks for, or `None` if no form that it accepts is served.
pub(super) fn negotiate(headers: &HeaderMap, kind: &str) -> Option<Form> {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accept.trim().is_empty() {
        return Some(Form::Text);
    }
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::read).collect();
    // Stable: of equal clauses the first counts.
    clauses.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    clauses.iter().find_map(|clause| clause.form(kind))
}

/// A media range with its parameters.
struct Clause<'a> {
    range: &'a str,
    weight: f32,
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

impl<'a> Clause<'a> {
    fn read(clause: &'a str) -> Self {
        let mut parts = clause.split(';').map(str::trim);
        let range = parts.next().unwrap_or_default();
        let mut read = Self { range, weight: 1.0, group: "", version: "", kind: "" };
        for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
            match name {
                "q" => read.weight = value.parse().unwrap_or(1.0),
                "g" => read.group = value,
                "v" => read.version = value,
                "as" => read.kind = value,
                _other => {}
            }
        }
        read
    }

    /// The first form that is served and in the range, of JSON, YAML and text.
    fn form(&self, kind: &str) -> Option<Form> {
        let accepts = |full: &str| {
            let main = full.split('/').next().unwrap_or_default();
            self.range == full || self.range == "*/*" || self.range.strip_suffix("/*") == Some(main)
        };
        let version = match (self.kind, self.group, self.version) {
            (as_kind, "config.k8s.io", "v1beta1") if as_kind == kind => Some(Version::V1Beta1),
            (as_kind, "config.k8s.io", "v1alpha1") if as_kind == kind => Some(Version::V1Alpha1),
            _other => None,
        };
        if let Some(version) = version {
            if accepts("application/json") {
                return Some(Form::Json(version));
            }
            if accepts("application/yaml") {
                return Some(Form::Yaml(version));
            }
        }
        (self.kind.is_empty() && accepts("text/plain")).then_some(Form::Text)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_form_is_that_of_the_first_range_that_is_served() {
        let json = "application/json;v=v1beta1;g=config.k8s.io;as=Flagz";
        let old_yaml = "application/yaml; g=config.k8s.io; v=v1alpha1; as=Flagz";
        let both = format!("{old_yaml};q=0.5, {json};q=0.9, text/plain;q=0.1");
        let first = format!("text/html, {old_yaml}, {json}");
        for (accept, form) in [
            ("", Some(Form::Text)),
            ("*/*", Some(Form::Text)),
            ("text/*", Some(Form::Text)),
            ("text/html, */*;q=0.8", Some(Form::Text)),
            (json, Some(Form::Json(Version::V1Beta1))),
            (old_yaml, Some(Form::Yaml(Version::V1Alpha1))),
            (&both, Some(Form::Json(Version::V1Beta1))),
            (&first, Some(Form::Yaml(Version::V1Alpha1))),
            ("application/*;v=v1beta1;g=config.k8s.io;as=Flagz", Some(Form::Json(Version::V1Beta1))),
            ("application/json", None),
            ("application/json;v=v1;g=config.k8s.io;as=Flagz", None),
            ("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", None),
            ("application/vnd.kubernetes.protobuf;v=v1beta1;g=config.k8s.io;as=Flagz", None),
            ("text/html", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_str(accept).expect("it is a header"));
            assert_eq!(negotiate(&headers, "Flagz"), form, "{accept:?}");
        }
        assert_eq!(negotiate(&HeaderMap::new(), "Flagz"), Some(Form::Text));
    }
}
