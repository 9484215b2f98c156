//! Token controller: fills Secrets of the type `kubernetes.io/service-account-token`, and deletes them with their
//! `ServiceAccount`.
//!
//! Reads `ServiceAccounts`, and the Secrets of that type. Updates and deletes Secrets, and updates the
//! `ServiceAccounts` that reference deleted Secrets.
//!
//! ```text
//! change of a Secret, deletion of an account ──event mapping──▶ key of the Secret
//!                                                                 │
//!            ┌── the Secret was deleted ◀─────────────────────────┤ cache
//!            ▼                                                    ▼
//!   remove its reference           account: cache, else a live read ──▶ none: delete the Secret
//!   from the live account                                         │
//!                                                                 ▼
//!                                    live Secret, same version ──▶ plan ──▶ token, ca.crt, namespace ──▶ update
//! ```
//!
//! # Guarantees
//! - A Secret is filled from a live read. If that shows another version than the cache, the Secret is not changed: the event
//!   of that version enqueues it again.
//! - A token is never signed twice, and a namespace never changed. `ca.crt` follows the root CA, if there is one.
//! - A Secret is deleted only after a live read has shown that its account does not exist, or has another uid than the Secret
//!   names.
//! - Fields of Secrets and `ServiceAccounts` that this version does not know survive.
//! - No token is kept in memory or logged: the cache only holds whether there is one.
//! - All tokens of a process are signed by the key that the file had at its start.
//!
//! # What it does not do
//! It creates no Secret, and adds no reference to one. Without `--service-account-private-key-file` it does nothing. As
//! upstream, the next process reads a changed key file; existing tokens stay valid while the API server knows their key.
//!
//! # Differences from upstream
//! Upstream is `pkg/controller/serviceaccount` of Kubernetes 1.37.2, `tokens_controller.go`. Header, claims and key id of a
//! token are equal. `docs/differences.md` has the differences that all controllers share.
//!
//! | here | upstream | reason |
//! | --- | --- | --- |
//! | Only Secrets of the type are cached, without their data. | All Secrets are cached. | Memory, and no secret data in it. |
//! | The deletion of an account enqueues its Secrets; they are deleted after a live read of the account. | The Secrets in the cache are deleted. | An account that was recreated keeps Secrets that name no uid. |
//! | An account that was recreated while the watch was late enqueues the Secrets of the earlier account. | These Secrets stay until they change. | They would stay for ever. |
//! | Accounts and Secrets share a queue and its workers. | They have a queue each, of the same name. | The metrics of upstream count both as one queue too. |
//! | A key that fails is retried without limit. | It is retried ten times. | A Secret must not stay unfilled after an outage. |
//! | RSA keys have 2,048 to 8,192 bits. | They have at least 1,024 bits. | The cryptographic library does not accept others. |
//! | A key file that cannot be used is read again with back-off. | It ends the process. | The other controllers continue. |

mod apply;
mod claims;
mod event_mapping;
mod key;
mod plan;
mod reconcile;
mod secret;
mod settings;
mod signer;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use kcm_framework::informers::ListOptions;
use kcm_framework::workqueue::Priority;
use kcm_framework::{BoxError, ControllerContext, ControllerDescriptor, Loops, Source, StartGroup};

use crate::shared::{RootCaSource, TOKEN_SECRET_FIELDS};
use event_mapping::{keys_for_account, keys_for_secret};
use key::TokenKey;
use reconcile::Reconciler;
use secret::TokenSecret;
use settings::{PRIVATE_KEY_FILE, SYNCS};
use signer::Signer;

/// The descriptor of the controller.
pub const DESCRIPTOR: ControllerDescriptor = ControllerDescriptor::new("serviceaccount-token-controller", init)
    .aliases(&["serviceaccount-token"])
    .manager_client("tokens-controller")
    .start_group(StartGroup::First)
    .settings(const { &[SYNCS.row(), PRIVATE_KEY_FILE.row()] });

fn init(context: &ControllerContext) -> Result<Loops, BoxError> {
    let key_file = context.get(&PRIVATE_KEY_FILE)?;
    if key_file.is_empty() {
        return Ok(Loops::none("the setting --service-account-private-key-file is empty, so no token can be signed"));
    }
    let signer = Signer::read(Path::new(&key_file))?;
    let root_ca = RootCaSource::read(context)?;
    let mut control_loop = context.control_loop("serviceaccount_tokens_service").workers(&SYNCS);
    let of_the_type = ListOptions { field_selector: Some(TOKEN_SECRET_FIELDS.to_owned()), ..ListOptions::default() };
    let secrets = control_loop.primary_with(Source::<TokenSecret>::known().list_options(of_the_type), keys_for_secret);
    let of_account = secrets.clone();
    let accounts = control_loop.watches(move |change| {
        let namespace = change.key().namespace().unwrap_or_default();
        keys_for_account(change, || of_account.in_namespace(namespace))
    });
    let (queue, all) = (control_loop.queue(), secrets.clone());
    let reconciler = Reconciler { secrets, accounts, root_ca: Arc::clone(&root_ca), signer };
    let loops = control_loop.reconcile(reconciler).into();
    Ok(root_ca.follow(loops, "serviceaccount_tokens_root_ca_file", context, move || {
        for key in all.list().iter().filter_map(|secret| TokenKey::of(secret)) {
            queue.add(key, Priority::Initial);
        }
    }))
}

kcm_framework::inventory::submit! { DESCRIPTOR }
