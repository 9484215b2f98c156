//! Legacy token cleaner: deletes auto-generated token Secrets of `ServiceAccounts` that nothing uses.
//!
//! Reads from the API server, once a day: the `ConfigMap` in which API servers note since when they track the use of
//! tokens, the metadata of the token Secrets, and, for Secrets that seem unused, the `ServiceAccount` and the Pods of
//! the Namespace. Labels and deletes Secrets.
//!
//! ```text
//! every 24 h ──▶ tracked for long enough? ──▶ Secrets ──▶ unused? ──▶ account, Pods ──▶ label, a period later delete
//!                        (pure)                            (pure)     (live reads)           (pure)
//! ```
//!
//! # Guarantees
//! - Nothing happens before the day after the beginning of the tracking, plus the period.
//! - A Secret is kept if it is younger than the period, if it is terminating, if its label
//!   `kubernetes.io/legacy-token-last-used` shows a use within the period, or if that label cannot be read.
//! - A Secret is kept unless its account exists, has the uid that the Secret names, and references the Secret: only such
//!   Secrets are known to be auto-generated.
//! - A Secret is kept if a Pod of its Namespace names it.
//! - Other Secrets are labelled `kubernetes.io/legacy-token-invalid-since` first, and deleted the period after that date. In
//!   between, API servers reject the token. A Secret whose label is removed is kept.
//! - A deletion carries uid and version, a label the uid: a Secret that was used, changed or recreated meanwhile is kept.
//!
//! # What it does not do
//! It has no cache. It never reads the data of a Secret.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/serviceaccount` of Kubernetes 1.37.2, `legacy_serviceaccount_token_cleaner.go`.
//! `docs/differences.md` has the differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Secrets, `ServiceAccounts` and Pods are read once a day. | They are cached all the time. | Memory, and the reads are current. |

mod apply;
mod decide;
mod observe;
mod round;

#[cfg(test)]
mod tests;

use std::time::Duration;

use futures::FutureExt as _;
use jiff::SignedDuration;
use kcm_framework::api::ObjectKey;
use kcm_framework::client::ClientBuilder;
use kcm_framework::config::{GoDuration, Section, Setting};
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops};

use round::round;

const SECTION: Section = Section::new("Legacy-serviceaccount-token-cleaner-controller", "LegacySATokenCleaner");
const CLEAN_UP_PERIOD: Setting<GoDuration> = SECTION
    .duration(
        "legacy-service-account-token-clean-up-period",
        "CleanUpPeriod",
        GoDuration::from_secs(8760 * 60 * 60),
    )
    .help(
        "Time without use after which an auto-generated token Secret is marked invalid. It is deleted after the same time \
         again.",
    );

/// As upstream.
const INTERVAL: Duration = Duration::from_hours(24);

/// Time from a round that failed to the next one.
const RETRY: Duration = Duration::from_mins(10);

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("legacy-serviceaccount-token-cleaner-controller", init)
        .aliases(&["legacy-service-account-token-cleaner"])
        .service_account("legacy-service-account-token-cleaner")
        .settings(const { &[CLEAN_UP_PERIOD.row()] });

/// No token survives a period of zero.
#[derive(Debug, thiserror::Error)]
#[error("--{flag} is {0}: give a period above zero", flag = CLEAN_UP_PERIOD.name())]
struct InvalidPeriod(GoDuration);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let configured = context.get(&CLEAN_UP_PERIOD)?;
    let period = SignedDuration::try_from(configured.unsigned())?;
    if period.is_zero() {
        return Err(InvalidPeriod(configured).into());
    }
    // The service account of the controller may not read what it decides by.
    let reader = context.clients().client_for(ClientBuilder::MANAGER);
    let control_loop = context.control_loop::<ObjectKey>("legacy_service_account_token_cleaner").writes_anything();
    let rounds = control_loop.periodic(INTERVAL, move |session| {
        let reader = reader.clone();
        async move {
            let Err(error) = round(&session, &reader, period).await else { return Ok(()) };
            if error.is_of_request() {
                // A failed request must not cost a whole interval. Nothing helps tracking that has not begun.
                session.requeue_after(RETRY);
            }
            Err(error.into())
        }
        .boxed()
    });
    Ok(rounds.into())
}

kcm_framework::inventory::submit! { DESCRIPTOR }
