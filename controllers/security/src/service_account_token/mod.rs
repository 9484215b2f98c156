//! Token controller: fills secrets of the type `kubernetes.io/service-account-token`, and deletes them with their service
//! account.
//!
//! Reads service accounts, and of all secrets those of that type. Updates and deletes secrets, and updates the service
//! accounts that reference deleted ones.
//!
//! ```text
//! change of a secret, deletion of an account ──▶ key of the secret
//!                                                  │
//!            ┌── the secret is gone ◀──────────────┤ cache
//!            ▼                                     ▼
//!   remove its reference           account: cache, else a live read ──▶ none: delete the secret
//!   from the live account                          │
//!                                                  ▼
//!                        live secret, same version ──▶ plan ──▶ token, ca.crt, namespace ──▶ put
//! ```
//!
//! # Guarantees
//! - A secret is filled from a live read, and not at all where that shows another version than the cache: the event of
//!   that version enqueues it again.
//! - What a secret has stays: a token is never signed twice, a namespace never changed. `ca.crt` follows the root CA, where
//!   there is one.
//! - A secret is deleted only after a live read showed that its account is gone, or has another uid than the secret names;
//!   the deletion carries the uid of the secret.
//! - Fields of secrets and accounts that this version does not know survive.
//! - No token is kept in memory or logged: the cache holds whether there is one.
//! - All tokens of a process are signed by the key that the file had at its start.
//!
//! # What it does not do
//! It creates no secret, and references none. Without `--service-account-private-key-file` it does nothing. A changed key
//! file is read by the next process, as upstream; the tokens that there are stay valid while the API server knows their key.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/serviceaccount` of Kubernetes 1.36.3, `tokens_controller.go`. Everything else is as there:
//! header, claims and key id of a token are equal.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | only secrets of the type are cached, without their data | all secrets | memory, and no secrets in it |
//! | the deletion of an account enqueues its secrets, whose account is read live | deletes them by the cache | an account that exists again keeps secrets that name no uid |
//! | an account that was recreated while the watch was late enqueues the secrets of the earlier one | these stay until they change | |
//! | accounts and secrets share a queue and its workers | a queue each, of one name | the metrics of upstream's are those of one queue too |
//! | a key that fails is tried for ever | ten times | |
//! | RSA keys have 2,048 to 8,192 bits | 1,024 at least | the cryptographic library |
//! | a key file that cannot be used is tried again | ends the process | the other controllers go on |

mod apply;
mod claims;
mod key;
mod plan;
mod reconcile;
mod secret;
mod settings;
mod signer;
mod event_mapping;

#[cfg(test)]
mod tests;

use std::path::Path;

use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source, StartGroup};
use kcm_informers::ListOptions;

use crate::shared::{TOKEN_SECRET_FIELDS, root_ca};
use plan::RootCa;
use reconcile::Reconciler;
use secret::TokenSecret;
use settings::{CONCURRENT_SYNCS, PRIVATE_KEY_FILE, ROWS};
use signer::Signer;
use event_mapping::{keys_for_account, keys_for_secret};

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor =
    ControllerDescriptor::new("serviceaccount-token-controller", init)
        .aliases(&["serviceaccount-token"])
        .manager_client("tokens-controller")
        .start_group(StartGroup::First)
        .settings(ROWS);

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let key_file: String = context.setting(PRIVATE_KEY_FILE)?;
    if key_file.is_empty() {
        tracing::info!("No tokens are made in secrets, as there is no --service-account-private-key-file");
        return Ok(None);
    }
    let signer = Signer::read(Path::new(&key_file))?;
    let root_ca = RootCa::new(root_ca(context)?);
    let mut tokens = context.control_loop("serviceaccount_tokens_service").workers_from(CONCURRENT_SYNCS);
    let of_the_type = ListOptions { field_selector: Some(TOKEN_SECRET_FIELDS.to_owned()), ..ListOptions::default() };
    let secrets = tokens.watches_for(Source::<TokenSecret>::known().list_options(of_the_type), keys_for_secret);
    tokens.keyed_by(&secrets);
    let of_account = secrets.clone();
    let accounts = tokens.watches(move |change| {
        let namespace = change.key().namespace().unwrap_or_default();
        keys_for_account(change, || of_account.in_namespace(namespace))
    });
    let reconciler = Reconciler { secrets, accounts, root_ca, signer };
    Ok(Loops::new().with(tokens.reconcile(reconciler)))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
