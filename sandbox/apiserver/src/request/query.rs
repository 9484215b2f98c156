//! Parameters of the query string.

use std::collections::BTreeMap;

use super::target::Verb;
use crate::status::{FieldError, Status};

/// Decoded query parameters; the first of repeated ones counts unless documented otherwise.
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

    /// Returns a parameter if it is present and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).first().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns all values of a repeatable parameter.
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

    /// Returns the requested resource version, or the reason why it is invalid.
    pub(crate) fn version(&self) -> Result<Option<u64>, String> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax")
            })
        };
        self.get("resourceVersion").map(parse).transpose()
    }

    /// Reports whether a write is a dry run.
    ///
    /// # Errors
    /// 422 for invalid options: an unknown `dryRun` value, or `force` without an apply.
    pub(crate) fn dry_run(&self, verb: Verb, applies: bool) -> Result<bool, Status> {
        let options = match verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            Verb::Patch => "PatchOptions",
            // Deletions take `DeleteOptions`, in the body or the query.
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
