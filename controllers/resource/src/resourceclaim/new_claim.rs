//! The claim that is created from a template. Pure.

use std::collections::BTreeMap;

use kcm_framework::api::views::ResourceClaim;
use kcm_framework::api::{KnownView as _, OwnerReference, Resource};
use serde::Serialize;
use serde_json::value::RawValue;

use super::template::{ClaimTemplate, metadata_of_claims, spec};

/// The annotation of a claim that names the entry for which it was created.
pub(super) const ENTRY_ANNOTATION: &str = "resource.kubernetes.io/pod-claim-name";

/// Longest prefix of a generated name: 63 letters without a hyphen and five random letters.
const LONGEST_PREFIX: usize = 57;

/// Returns the prefix of the names of the claims of an entry.
///
/// A long prefix is cut, both names in proportion to their lengths. Example: a Pod's name of 60 letters and the entry
/// `gpu` have a prefix of 65 letters. 52 letters of the Pod's name, a hyphen and `gp` remain.
///
/// Upstream leaves a dot or hyphen at the cut, with which the API server refuses the name. It is removed here.
pub(super) fn name_prefix(owner: &str, entry: &str) -> String {
    let whole = format!("{owner}-{entry}-");
    let length = whole.len();
    if length <= LONGEST_PREFIX {
        return whole;
    }
    let cut = |name: &str| {
        let kept = name.len() * LONGEST_PREFIX / length;
        // Names are ASCII.
        name.get(..kept).unwrap_or(name).trim_end_matches(['.', '-']).to_owned()
    };
    format!("{}-{}", cut(owner), cut(entry))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewClaim<'a> {
    api_version: String,
    kind: &'a str,
    metadata: NewMetadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewMetadata<'a> {
    name: &'a str,
    generate_name: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    owner_references: [&'a OwnerReference; 1],
}

/// Names of a new claim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) name: &'a str,
    pub(super) prefix: &'a str,
    pub(super) entry: &'a str,
}

/// Returns the JSON of a claim from the template.
pub(super) fn new_claim(names: Names<'_>, template: &ClaimTemplate, owner: &OwnerReference) -> Box<RawValue> {
    const CLAIM: Resource = ResourceClaim::RESOURCE;
    let mut annotations = metadata_of_claims(template, "annotations");
    annotations.insert(ENTRY_ANNOTATION.to_owned(), names.entry.to_owned());
    let claim = NewClaim {
        api_version: CLAIM.api_version(),
        kind: &CLAIM.kind,
        metadata: NewMetadata {
            name: names.name,
            generate_name: names.prefix,
            labels: metadata_of_claims(template, "labels"),
            annotations,
            owner_references: [owner],
        },
        spec: spec(template),
    };
    serde_json::value::to_raw_value(&claim).expect("maps with text as keys are valid JSON")
}
