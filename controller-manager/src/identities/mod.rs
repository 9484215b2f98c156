//! An identity for each controller: its service account in `kube-system`, with tokens by `TokenRequest`.
//!
//! # Guarantees
//! - A token is requested when it is first needed, and again when a fifth of its life is left, or at once when the API
//!   server refuses it with 401; the refused request is sent once more with the new token.
//! - No request waits for the renewal of a valid token, of which an account has one at a time. A renewal that fails is
//!   logged and tried again, after ten seconds and later after a minute, while the token is used until it expires.
//! - Without a valid token, a request waits ten seconds at most. The request for the token goes on.
//! - If there is no token, requests of the account fail with the reason, which the readiness check
//!   `service-account-tokens` shows too. A token is requested again by the next request, and after more failures once a
//!   minute at least, so that it is found if it is granted later.
//! - A service account that does not exist is created, even if it was deleted while it was used.
//! - Requests of a service account go over connections without the manager's own credentials. A client certificate
//!   would win over a token.
//! - A request without a token is not sent.
//!
//! # Upstream
//! `--use-service-account-credentials`: `controller-manager/pkg/clientbuilder`, `DynamicControllerClientBuilder`.

mod accounts;
mod token;
mod token_requests;
mod token_source;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kcm_framework::client::{ClientBuilder, ExecPluginMetrics, Limits, StackError, connect_seeded};
use kcm_framework::clock::SystemClock;
use kcm_framework::{ControllerDescriptor, ManagerBuilder, user_agent};

use accounts::ServiceAccounts;
pub(crate) use accounts::TokenHealth;

/// The clients of all controllers of `manager`, each with its service account, on the cluster that `config` names.
///
/// `client` is the client of the manager itself, which requests the tokens. The times for which connections are used derive
/// from `seed`.
///
/// # Errors
/// If the configuration cannot be used to connect.
pub(crate) fn clients(
    manager: &ManagerBuilder,
    client: kube::Client,
    config: &kube::Config,
    seed: u64,
) -> Result<ServiceAccounts, StackError> {
    let mut without_credentials = config.clone();
    without_credentials.auth_info = kube::config::AuthInfo::default();
    let anonymous = connect_seeded(&without_credentials, &ExecPluginMetrics::default(), seed)?;
    let own = ClientBuilder::new(client.clone(), user_agent(), Limits::default());
    let api = own.client_for(ClientBuilder::MANAGER);
    let accounts = manager.registry().iter().filter_map(ControllerDescriptor::account).map(str::to_owned);
    Ok(ServiceAccounts::new(client, anonymous, accounts, api, Arc::new(SystemClock)))
}
