//! The settings of authorization on the HTTPS port.

use crate::duration::GoDuration;
use crate::row::{Initial, Row};

const SECTION: &str = "Authorization";

/// The rows of the section.
pub(super) const ROWS: &[Row] = &[
    Row::new("authorization-always-allow-paths", SECTION, Initial::Strings(&["/healthz", "/readyz", "/livez"])).help("The paths that every request may get, with or without a user."),
    Row::new("authorization-kubeconfig", SECTION, Initial::String("")).help("A kubeconfig whose user may create SubjectAccessReviews. Without it every request is forbidden but for the paths of --authorization-always-allow-paths."),
    Row::new("authorization-webhook-cache-authorized-ttl", SECTION, Initial::Duration(GoDuration::from_secs(10))).help("How long a SubjectAccessReview that allows counts."),
    Row::new("authorization-webhook-cache-unauthorized-ttl", SECTION, Initial::Duration(GoDuration::from_secs(10))).help("How long a SubjectAccessReview that denies counts."),
];
