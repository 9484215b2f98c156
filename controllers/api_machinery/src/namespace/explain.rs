//! Explanations of a round of deletion, for operators who ask why a Namespace still exists.

use super::content::{NextStep, ResourceResult, Round};

pub(super) const FINALIZED: &str =
    "does nothing, as the namespace is empty and finalized; only finalizers of its metadata hold it up";

impl Round {
    /// Explains which objects remain, which finalizers they have, and the next step.
    pub(super) fn explain(&self, namespace: &str) -> String {
        match self.next_step(namespace) {
            NextStep::Finalize => "removes the finalizer, as the namespace is empty".to_owned(),
            NextStep::Wait(delay) => {
                format!("looks again in {} s, as these remain: {}", delay.as_secs(), self.explain_remaining())
            }
            NextStep::Retry(failure) => {
                let remaining = self.explain_remaining();
                let remaining = if remaining.is_empty() { remaining } else { format!("; these remain: {remaining}") };
                format!("tries again, as something is in the way: {}{remaining}", failure.0.join(", "))
            }
        }
    }

    fn explain_remaining(&self) -> String {
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
