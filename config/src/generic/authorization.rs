//! The settings of authorization on the HTTPS port.

use crate::duration::GoDuration;
use crate::row::{Initial, Row};

const SECTION: &str = "Authorization";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("authorization-always-allow-paths", SECTION, Initial::Strings(&["/healthz", "/readyz", "/livez"])).help("Paths that every request may get, authenticated or not."),
    Row::new("authorization-kubeconfig", SECTION, Initial::String("")).help("Kubeconfig for SubjectAccessReviews. If empty, only the paths of --authorization-always-allow-paths are allowed."),
    Row::new("authorization-webhook-cache-authorized-ttl", SECTION, Initial::Duration(GoDuration::from_secs(10))).help("Time for which an allowed SubjectAccessReview is cached."),
    Row::new("authorization-webhook-cache-unauthorized-ttl", SECTION, Initial::Duration(GoDuration::from_secs(10))).help("Time for which a denied SubjectAccessReview is cached."),
];
