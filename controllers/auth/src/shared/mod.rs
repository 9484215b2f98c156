//! Views and settings that several controllers of the area share.

mod account;
mod bootstrap_token;
mod file_failure;
mod go_time;
pub(crate) mod kubelet;
mod root_ca;
pub(crate) mod signing_request;
mod sync_metrics;
pub(crate) mod x509;

pub(crate) use account::{ServiceAccount, TOKEN_SECRET_FIELDS};
pub(crate) use bootstrap_token::{BootstrapToken, Expiry, bootstrap_tokens};
pub(crate) use file_failure::FileFailure;
pub(crate) use root_ca::{ROOT_CA_FILE, RootCaSource, SECTION};
pub(crate) use sync_metrics::{SyncFamilies, SyncMetrics};
