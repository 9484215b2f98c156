//! Legacy token cleaner: deletes tokens of service accounts that were made automatically and that nothing uses.
//!
//! Reads, all of it live and only once a day: the config map in which API servers note since when they track the use of
//! such tokens, the metadata of the secrets of their type, and, of secrets that seem unused, the service account and the
//! pods of the namespace. Labels and deletes secrets.
//!
//! ```text
//! every 24 h ──▶ tracked for long enough? ──▶ secrets ──▶ unused? ──▶ account, pods ──▶ label, a period later delete
//!                        (pure)                            (pure)        (live)               (pure)
//! ```
//!
//! # Guarantees
//! - Nothing happens before the day after the tracking began, and the period, have passed.
//! - A secret is kept that is younger than the period, terminating, used within the period by its label
//!   `kubernetes.io/legacy-token-last-used`, or whose label cannot be read.
//! - A secret is kept unless the account that it names exists, has the uid that it names, and references it: only those are
//!   known to be made automatically.
//! - A secret is kept that a pod of its namespace names.
//! - What is left is first labelled `kubernetes.io/legacy-token-invalid-since`, and deleted the period after that date. API
//!   servers refuse the token in between, and removing the label keeps it.
//! - A deletion carries uid and version, a label the uid: a secret that was used, changed or recreated meanwhile stays.
//!
//! # What it does not do
//! It keeps no cache. It never looks at the data of a secret.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/serviceaccount` of Kubernetes 1.36.3, `legacy_serviceaccount_token_cleaner.go`. Everything
//! else is as there.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | secrets, accounts and pods are read once a day | cached all the time | memory; and what is read is as new as can be |
//! | a deletion carries the uid too | the version | |

mod apply;
mod decide;
mod observe;
mod round;
mod settings;

#[cfg(test)]
mod tests;

use futures::FutureExt as _;
use kcm_framework::client::ClientBuilder;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use round::round;
use settings::{INTERVAL, ROWS, period};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("legacy-serviceaccount-token-cleaner-controller", init)
        .aliases(&["legacy-service-account-token-cleaner"])
        .service_account("legacy-service-account-token-cleaner")
        .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let period = period(context)?;
    // The service account of the controller may not read what it decides by.
    let reader = context.clients().client_for(ClientBuilder::MANAGER);
    let rounds = context.control_loop::<kcm_api::ObjectKey>("legacy_service_account_token_cleaner").writes_anything();
    let rounds = rounds.periodic(INTERVAL, move |session| {
        let reader = reader.clone();
        async move { Ok(round(&session, &reader, period).await?) }.boxed()
    });
    Ok(Loops::new().with(rounds))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
