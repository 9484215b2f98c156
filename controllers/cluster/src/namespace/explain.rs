//! What a round of deletion has found and what follows it, in words, for people who ask why a namespace is still there.

use super::content::{NextStep, ResourceResult, Round};

/// Nothing is done about a namespace that is empty; its other finalizers are those of others.
pub(super) const FINALIZED: &str =
    "does nothing, as the namespace is empty and finalized; only finalizers of its metadata hold it up";

impl Round {
    /// What remains in the namespace with the finalizers in the way, and what follows.
    pub(super) fn explain(&self, namespace: &str) -> String {
        match self.next_step(namespace) {
            NextStep::Finalize => "removes the finalizer, as the namespace is empty".to_owned(),
            NextStep::Wait(delay) => {
                format!("looks again in {} s, as these remain: {}", delay.as_secs(), self.remaining_in_words())
            }
            NextStep::Retry(failure) => {
                let remaining = self.remaining_in_words();
                let remaining = if remaining.is_empty() { remaining } else { format!("; these remain: {remaining}") };
                format!("tries again, as something is in the way: {}{remaining}", failure.0.join(", "))
            }
        }
    }

    /// The remaining objects by resource, and the finalizers that they have.
    fn remaining_in_words(&self) -> String {
        let mut remaining: Vec<String> =
            self.results.iter().filter(|result| result.remaining > 0).map(ResourceResult::explain).collect();
        remaining.sort();
        remaining.join(", ")
    }
}

impl ResourceResult {
    fn explain(&self) -> String {
        let count = format!("{} {}", self.remaining, self.resource);
        let finalizers: Vec<String> =
            self.by_finalizer.iter().map(|(finalizer, count)| format!("{finalizer} on {count}")).collect();
        if finalizers.is_empty() { count } else { format!("{count} (finalizers: {})", finalizers.join(", ")) }
    }
}
