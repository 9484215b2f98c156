//! The plan for `cluster-info`: its signatures.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kcm_framework::api::{Document, Documented, EditError, Resource};

use super::signature::detached_signature;
use crate::shared::{BootstrapToken, Expiry};

const KUBECONFIG: &str = "kubeconfig";

/// The prefix of the keys of signatures. The id of the token follows.
const PREFIX: &str = "jws-kubeconfig-";

kcm_framework::api::view! {
    /// The metadata of the config map.
    pub(super) struct ClusterInfoView {
        resource: Resource::namespaced("", "v1", "configmaps", "ConfigMap");
    }
}

/// The config map with its JSON, so that an update keeps all other fields.
pub(super) type ClusterInfo = Documented<ClusterInfoView>;

/// The string data of a config map.
pub(super) type Data = BTreeMap<String, String>;

/// The reason why a token does not sign, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusable {
    Name,
    Id,
    NoSecret,
    Expired,
    Usage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plan {
    /// There is nothing to sign.
    NoKubeconfig,
    Sign(Signatures),
}

/// The signatures to change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Signatures {
    /// Keys and signatures that are new or differ.
    pub(super) set: Data,
    /// Keys without a token.
    pub(super) remove: BTreeSet<String>,
    /// The number of tokens that sign.
    pub(super) tokens: usize,
    /// The time at which the next token expires.
    pub(super) expires_at: Option<Timestamp>,
}

/// Returns the id of a token that is valid for signing at `now`.
pub(super) fn check(token: &BootstrapToken, now: Timestamp) -> Result<&str, Unusable> {
    let id = BootstrapToken::id_of(token.metadata.key.name()).ok_or(Unusable::Name)?;
    if *token.data.id != *id {
        return Err(Unusable::Id);
    }
    if token.data.secret.expose().is_empty() {
        return Err(Unusable::NoSecret);
    }
    if token.expiry().has_passed(now) {
        return Err(Unusable::Expired);
    }
    if token.data.signs { Ok(id) } else { Err(Unusable::Usage) }
}

/// Plans the signatures of the config map with this data. The signatures of `kept` ids stay: their tokens exist and cannot be
/// decoded.
pub(super) fn plan<'a>(
    data: &Data,
    tokens: impl IntoIterator<Item = &'a BootstrapToken>,
    kept: &BTreeSet<&str>,
    now: Timestamp,
) -> Plan {
    let Some(kubeconfig) = data.get(KUBECONFIG) else { return Plan::NoKubeconfig };
    let is_superfluous = |key: &&String| key.strip_prefix(PREFIX).is_some_and(|id| !kept.contains(id));
    let mut signatures =
        Signatures { remove: data.keys().filter(is_superfluous).cloned().collect(), ..Signatures::default() };
    for token in tokens {
        let id = match check(token, now) {
            Ok(id) => id,
            Err(reason) => {
                tracing::debug!(secret = %token.metadata.key, ?reason, "A bootstrap token does not sign");
                continue;
            }
        };
        signatures.tokens += 1;
        signatures.expires_at = match token.expiry() {
            Expiry::At(at) => Some(signatures.expires_at.map_or(at, |earlier| earlier.min(at))),
            Expiry::Never | Expiry::Unreadable => signatures.expires_at,
        };
        let key = format!("{PREFIX}{id}");
        signatures.remove.remove(&key);
        let signature = detached_signature(kubeconfig, id, token.data.secret.expose());
        if data.get(&key) != Some(&signature) {
            signatures.set.insert(key, signature);
        }
    }
    Plan::Sign(signatures)
}

impl Signatures {
    pub(super) fn is_at_rest(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }

    /// Returns the document to write.
    pub(super) fn applied_to(&self, document: &Document) -> Result<Document, EditError> {
        let mut changed = document.clone();
        for key in &self.remove {
            changed.remove(&["data", key])?;
        }
        for (key, signature) in &self.set {
            changed.set(&["data", key], signature)?;
        }
        Ok(changed)
    }
}

impl Plan {
    /// Explains the plan to operators.
    pub(super) fn explain(&self) -> String {
        let Self::Sign(signatures) = self else {
            return "does nothing: cluster-info has no data.kubeconfig to sign".to_owned();
        };
        let Signatures { set, remove, tokens, expires_at } = signatures;
        let next = expires_at.map(|at| format!("; the next token expires at {at}")).unwrap_or_default();
        if signatures.is_at_rest() {
            return format!("the signatures of {tokens} tokens are right{next}");
        }
        format!("writes {} and removes {} signatures, for {tokens} tokens{next}", set.len(), remove.len())
    }
}
