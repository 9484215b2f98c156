//! The view of certificate signing requests, and what the API server keeps in them.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kcm_framework::api::time::{format_seconds, optional_seconds};
use kcm_framework::api::{Document, Documented, EditError, InternedStr, Resource};
use kcm_framework::workqueue::RetryLimits;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::to_raw_value;

use super::x509::{CertificateRequest, RequestError, expiry_of_pem};

/// Number of workers of each loop over signing requests, as upstream.
pub(crate) const WORKERS: usize = 5;

/// The rate limits of retries, as upstream.
pub(crate) const RETRY_LIMITS: RetryLimits = RetryLimits {
    base: Duration::from_millis(200),
    max: Duration::from_secs(1000),
    interval: Duration::from_millis(100),
    burst: 100,
};

const CONDITIONS: [&str; 2] = ["status", "conditions"];

pub(crate) const APPROVED: &str = "Approved";
pub(crate) const DENIED: &str = "Denied";
pub(crate) const FAILED: &str = "Failed";

/// A certificate signing request with its JSON.
pub(crate) type SigningRequest = Documented<SigningRequestView>;

kcm_framework::api::view! {
    /// The fields of a certificate signing request that decisions read without its document.
    pub(crate) struct SigningRequestView {
        resource: Resource::cluster_scoped(
            "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest"
        );

        "spec" {
            pub(crate) signer_name: InternedStr = "signerName";
            pub(crate) usages: Vec<InternedStr> = "usages";
            pub(crate) expiration_seconds: Option<i32> = "expirationSeconds";
        }
        "status" {
            pub(crate) conditions: Vec<RequestCondition> = "conditions";
            /// `status.certificate`, reduced to what decisions need.
            pub(crate) certificate: Issued = "certificate";
        }
    }
}

/// A condition of a signing request, as far as decisions read it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestCondition {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub(crate) type_: InternedStr,
    /// Status of the condition; objects of old versions have none.
    #[serde(default)]
    pub(crate) status: InternedStr,
    /// Time of the last update.
    #[serde(default, with = "optional_seconds")]
    pub(crate) last_update_time: Option<Timestamp>,
}

/// A certificate in the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Issued {
    #[default]
    No,
    Yes {
        /// The time at which it expires, unless it cannot be read.
        expiry: Option<Timestamp>,
    },
}

impl<'de> Deserialize<'de> for Issued {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
        let text: Option<Text<'de>> = Option::deserialize(deserializer)?;
        Ok(match text {
            Some(Text(text)) if !text.is_empty() => {
                Self::Yes { expiry: STANDARD.decode(&*text).ok().and_then(|pem| expiry_of_pem(&pem)) }
            }
            Some(_) | None => Self::No,
        })
    }
}

/// A request that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeRequestError {
    /// The field is no base64.
    #[error("spec.request is missing or no base64")]
    NotBase64,
    /// The content is no request.
    #[error("unable to parse csr: {0}")]
    Request(#[from] RequestError),
}

impl SigningRequestView {
    /// Returns `true` if the status has a certificate.
    pub(crate) fn is_issued(&self) -> bool {
        self.certificate != Issued::No
    }

    /// Returns the conditions of that type, with any status.
    pub(crate) fn conditions_of(&self, type_: &str) -> impl Iterator<Item = &RequestCondition> {
        self.conditions.iter().filter(move |condition| condition.type_ == *type_)
    }

    /// Returns `true` if there is a condition of that type, whatever its status.
    pub(crate) fn has(&self, type_: &str) -> bool {
        self.conditions_of(type_).next().is_some()
    }
}

/// A condition that is added to a signing request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewCondition<'a> {
    #[serde(rename = "type")]
    type_: &'a str,
    status: &'static str,
    reason: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_update_time: Option<String>,
}

impl<'a> NewCondition<'a> {
    /// A true condition. Without a time, the API server sets it.
    pub(crate) fn new(type_: &'a str, reason: &'a str, message: &'a str, updated: Option<Timestamp>) -> Self {
        Self { type_, status: "True", reason, message, last_update_time: updated.map(format_seconds) }
    }
}

/// Decodes `spec.request`. Its signature is not verified.
///
/// # Errors
/// The field is no base64, or the content no certificate request.
pub(crate) fn decode_request(document: &Document) -> Result<CertificateRequest, DecodeRequestError> {
    let text = string(document, &["spec", "request"]).ok_or(DecodeRequestError::NotBase64)?;
    let pem = STANDARD.decode(&*text).map_err(|_| DecodeRequestError::NotBase64)?;
    Ok(CertificateRequest::from_pem(&pem)?)
}

/// Returns the string at `path`, if there is one.
pub(crate) fn string<'a>(document: &'a Document, path: &[&str]) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(document.get(path)?).ok().map(|text| text.0)
}

/// Returns the document with one more condition at the end. The other conditions stay.
///
/// # Errors
/// The status or its conditions have another type.
pub(crate) fn with_condition(document: &Document, condition: &NewCondition<'_>) -> Result<Document, EditError> {
    let condition = to_raw_value(condition).expect("a condition is valid JSON");
    let mut conditions = document.items(&CONDITIONS)?;
    conditions.push(&condition);
    let mut changed = document.clone();
    changed.set(&CONDITIONS, &conditions)?;
    Ok(changed)
}

/// Returns the document with a certificate in its status.
///
/// # Errors
/// The status has another type.
pub(crate) fn with_certificate(document: &Document, pem: &str) -> Result<Document, EditError> {
    let mut changed = document.clone();
    changed.set(&["status", "certificate"], &STANDARD.encode(pem))?;
    Ok(changed)
}
