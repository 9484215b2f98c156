//! One round over all tokens.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use kcm_framework::Session;
use kcm_framework::client::ApiClient;

use super::apply::{delete, invalidate};
use super::decide::{Cutoff, Kept, Step, check_account, check_use, next_step};
use super::observe::{RoundError, SecretMetadata, account, mounted_secrets, token_secrets, tracked_since};

/// Labels and deletes the tokens that nothing uses. An error of one secret does not stop the round.
pub(super) async fn round(session: &Session, reader: &ApiClient, period: SignedDuration) -> Result<(), RoundError> {
    let since = tracked_since(session).await?;
    let Some(cutoff) = Cutoff::of(session.now(), since, period) else {
        tracing::debug!(%since, "The use of tokens has not been tracked for long enough");
        return Ok(());
    };
    let mut mounted = Mounted { reader, by_namespace: BTreeMap::new() };
    for secret in token_secrets(reader).await? {
        if let Err(error) = process(session, reader, &mut mounted, &secret, &cutoff).await {
            let error = &error as &(dyn std::error::Error + 'static);
            tracing::warn!(error, secret = %secret.metadata.key, "Cannot clean up a token of a service account");
        }
    }
    Ok(())
}

async fn process(
    session: &Session,
    reader: &ApiClient,
    mounted: &mut Mounted<'_>,
    secret: &SecretMetadata,
    cutoff: &Cutoff,
) -> Result<(), RoundError> {
    match decide(reader, mounted, secret, cutoff).await? {
        Ok(Step::Invalidate) => invalidate(session, secret, cutoff.today).await?,
        Ok(Step::Delete) => delete(session, secret).await?,
        Err(Kept::UnreadableDay) => {
            tracing::warn!(secret = %secret.metadata.key, "A token is kept, as the day of its last use cannot be read");
        }
        Err(kept) => tracing::debug!(secret = %secret.metadata.key, ?kept, "A token is kept"),
    }
    Ok(())
}

/// Reads account and pods only if they matter.
async fn decide(
    reader: &ApiClient,
    mounted: &mut Mounted<'_>,
    secret: &SecretMetadata,
    cutoff: &Cutoff,
) -> Result<Result<Step, Kept>, RoundError> {
    let name = secret.metadata.key.name();
    if let Err(kept) = check_use(&secret.metadata, cutoff) {
        return Ok(Err(kept));
    }
    let account = match secret.account() {
        Some(key) => account(reader, &key).await?,
        None => None,
    };
    let account = account.as_ref().map(|account| (&account.metadata.uid, account.references(name)));
    if let Err(kept) = check_account(&secret.account_uid(), account) {
        return Ok(Err(kept));
    }
    if mounted.of(secret.metadata.key.namespace().unwrap_or_default()).await?.contains(name) {
        return Ok(Err(Kept::Mounted));
    }
    Ok(next_step(&secret.metadata, cutoff))
}

/// The secrets that pods name, read once for each namespace.
struct Mounted<'a> {
    reader: &'a ApiClient,
    by_namespace: BTreeMap<String, BTreeSet<String>>,
}

impl Mounted<'_> {
    async fn of(&mut self, namespace: &str) -> Result<&BTreeSet<String>, RoundError> {
        if !self.by_namespace.contains_key(namespace) {
            let names = mounted_secrets(self.reader, namespace).await?;
            self.by_namespace.insert(namespace.to_owned(), names);
        }
        Ok(&self.by_namespace[namespace])
    }
}
